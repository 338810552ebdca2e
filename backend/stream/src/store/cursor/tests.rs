//! Cursors over a store whose series come and go.

use super::*;
use crate::testing::fleeting::Fleeting;
use shared::series::SeriesDef;

/// A reader that stores everything it receives.
struct Reader {
    cursor: Cursor,
    names: Vec<SeriesDef>,
    ticks: Vec<u64>,
    begun_anew: usize,
}

impl Reader {
    fn new(cursor: Cursor) -> Self {
        Reader { cursor, names: Vec::new(), ticks: Vec::new(), begun_anew: 0 }
    }

    fn catch_up(&mut self, store: &Store) {
        let series = match self.cursor.news(store) {
            News::Ticks(frames, series) => {
                for frame in frames {
                    self.cursor.take(&frame);
                    self.ticks.push(frame.seq);
                }
                series
            }
            News::Lost => {
                self.begun_anew += 1;
                let opening = self.cursor.begin(store, i64::MIN).expect("a source");
                self.learn(store, opening.series);
                self.ticks.push(self.cursor.seq());
                return self.catch_up(store);
            }
        };
        self.learn(store, series);
    }

    fn learn(&mut self, store: &Store, series: Vec<SeriesId>) {
        assert!(series.is_sorted_by(|a, b| a < b), "{series:?}");
        for id in series {
            let def = store.series(self.cursor.source(), 0)[id as usize].clone();
            match self.names.get_mut(id as usize) {
                Some(known) => *known = def,
                None => self.names.push(def),
            }
        }
    }

    /// Asserts that it knows all series of the store.
    fn is_level(&self, store: &Store) {
        assert_eq!(self.names, store.series(self.cursor.source(), 0));
        let newest = store.state(self.cursor.source()).expect("a source");
        assert_eq!(self.cursor.seq(), newest.seq());
        if let Some(state) = self.cursor.state() {
            assert_eq!((state.seq(), state.t(), state.steps()), (newest.seq(), newest.t(), newest.steps()));
            let bits = |state: &TickState| state.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(state), bits(newest));
        }
    }
}

#[test]
fn whoever_follows_has_each_tick_once_and_each_series_under_its_name() {
    for pauses in [&[1][..], &[2, 1, 5, 3], &[7, 40, 1]] {
        let mut fleeting = Fleeting::empty();
        let mut readers = [Cursor::new(fleeting.source), Cursor::new(fleeting.source).with_state()].map(Reader::new);
        // A cursor with state begins first, as it needs a keyframe.
        readers[1].cursor.begin(&fleeting.live.store(), i64::MIN).expect("a source");
        for pause in pauses.iter().cycle() {
            (0..*pause).for_each(|_| fleeting.tick());
            for reader in &mut readers {
                reader.catch_up(&fleeting.live.store());
                reader.is_level(&fleeting.live.store());
            }
            if fleeting.ticks > 150 {
                break;
            }
        }
        assert!(fleeting.reused());
        for reader in readers {
            assert!(reader.ticks.is_sorted_by(|a, b| a < b), "{:?}", reader.ticks);
            let all = (1..=fleeting.ticks as u64).collect::<Vec<_>>();
            assert!(reader.begun_anew > 0 || reader.ticks == all, "{:?}", reader.ticks);
            assert!(reader.begun_anew == 0 || pauses.len() > 1, "nobody begins anew who keeps up");
            assert!(reader.begun_anew > 0 || !pauses.contains(&40), "who is away for long does");
        }
    }
}

#[test]
fn one_that_comes_back_is_told_what_it_missed_and_nothing_else() {
    let mut fleeting = Fleeting::empty();
    (0..100).for_each(|_| fleeting.tick());
    let mut reader = Reader::new(Cursor::new(fleeting.source));
    reader.catch_up(&fleeting.live.store());
    let (seq, known) = (reader.cursor.seq(), reader.names.len());
    (0..2).for_each(|_| fleeting.tick());
    reader.cursor = Cursor::resumed(fleeting.source, seq, known);
    reader.ticks.clear();
    reader.catch_up(&fleeting.live.store());
    reader.is_level(&fleeting.live.store());
    assert_eq!(reader.ticks, [101, 102]);
    let nothing = reader.cursor.news(&fleeting.live.store());
    assert!(matches!(nothing, News::Ticks(frames, series) if frames.is_empty() && series.is_empty()));
    // A position that no reader can have reached belongs to another run.
    let mut stray = Cursor::resumed(fleeting.source, 1_000, 1_000);
    assert!(matches!(stray.news(&fleeting.live.store()), News::Lost));
    assert!(matches!(Cursor::new(9).news(&fleeting.live.store()), News::Lost), "an unknown source");
}

#[test]
fn what_is_sealed_is_found_from_any_place() {
    let mut fleeting = Fleeting::empty();
    (0..10).for_each(|_| fleeting.tick());
    let store = fleeting.live.store();
    let mut cursor = Cursor::new(fleeting.source).with_state();
    cursor.begin_newest(&store);
    let mut sealed = |seq| {
        cursor.seek(seq);
        assert!(cursor.state().is_none(), "its values are not known there");
        cursor.sealed(&store).map(|block| (block.first_seq(), block.last_seq()))
    };
    // A block has three ticks; the tenth tick is unsealed.
    assert_eq!([0, 2, 3, 8].map(&mut sealed), [Some((1, 3)), Some((1, 3)), Some((4, 6)), Some((7, 9))]);
    assert_eq!([9, 10, 11].map(sealed), [None, None, None]);
}

#[test]
fn ten_thousand_of_them_are_small() {
    assert!(size_of::<Cursor>() <= 64, "{}", size_of::<Cursor>());
}
