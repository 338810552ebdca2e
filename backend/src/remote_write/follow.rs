//! Reads a source from a sequence on: from memory while the sender keeps up, from its history when it is behind. There
//! is no queue: unsent samples are in the store anyway.

use super::batch::Names;
use super::message::Label;
use super::span::{SpanValues, TickSpan};
use shared::catalog::prometheus::{self, Family};
use shared::tick::TickState;
use shared::wire::Source;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use stream::store::{Block, Cursor, Frame, News, Store, Unread};

/// Maximum lag that is caught up, milliseconds.
pub(super) const MAX_BEHIND_MS: i64 = 12 * 3_600_000;
/// Maximum length of one span, milliseconds: its series are sent one after the other, and Prometheus accepts samples
/// at most an hour behind its newest.
const MAX_SPAN_MS: i64 = 900_000;
/// Maximum number of unsealed values in memory at once: 8 MiB.
const MAX_VALUES_HELD: usize = 1 << 20;
/// Timeout for a block that the disk refuses; then its missing part is skipped, like damage.
const REFUSED_TIMEOUT: Duration = Duration::from_secs(600);

/// Reader of one source.
pub struct Follower {
    source: Source,
    /// The labels of its series.
    pub names: Names,
    /// By row of the catalog, in its version.
    families: HashMap<u16, Arc<Family>>,
    rows_version: u64,
    /// Its position is the tick that was read last.
    cursor: Cursor,
    /// Start of the disk's refusal of the next block.
    refused: Option<Duration>,
}

/// The next step for a source.
pub enum Due {
    /// Nothing is due.
    Nothing,
    /// There are no ticks between the position and this sequence: continue behind it.
    At(u64),
    /// Ticks up to this sequence are older than the maximum lag.
    TooOld {
        /// Sequence of its last tick.
        seq: u64,
        /// Samples in it.
        samples: u64,
    },
    /// Ticks to be sent.
    Ticks(TickSpan),
}

/// Data behind a position; decoded outside the lock.
enum NextData {
    Nothing,
    At(u64),
    Block(Block),
    /// Ticks in memory behind the cursor's position.
    Frames(Vec<Arc<Frame>>),
}

impl Follower {
    /// A follower that has read nothing.
    pub fn new(source: &Source) -> Self {
        Follower {
            source: source.clone(),
            names: Names::default(),
            families: HashMap::new(),
            rows_version: 0,
            cursor: Cursor::new(source.id).with_state(),
            refused: None,
        }
    }

    /// The ticks behind sequence `place`: those up to `through` if it is given, else all, once there are `due` ticks.
    pub fn next(&mut self, live: &Live, place: u64, through: Option<u64>, due: u64) -> Due {
        let store = live.store();
        let newest = store.state(self.source.id).map_or(0, TickState::seq);
        if place > newest {
            // A power cut lost ticks that were sent; others have their sequences now.
            return Due::At(newest);
        }
        if through.is_none_or(|through| through <= place) && store.ticks_after(self.source.id, place) < due {
            return Due::Nothing;
        }
        self.learn_names(&store);
        let found = self.find(&store, place);
        drop(store);
        let through = through.filter(|through| *through > place).unwrap_or(u64::MAX);
        match found {
            NextData::Nothing => Due::Nothing,
            NextData::At(seq) => Due::At(seq),
            NextData::Block(block) if block.to() < live.clock.wall() - MAX_BEHIND_MS => {
                Due::TooOld { seq: block.last_seq(), samples: block.samples() }
            }
            // The ticks of the request in flight are no longer stored.
            NextData::Block(block) if block.first_seq() > through => Due::At(block.first_seq() - 1),
            // The same ticks again after a restart, though the block may have become a longer one.
            NextData::Block(block) => self.of_block(live, block, place, through, through == u64::MAX),
            NextData::Frames(_) if self.cursor.seq() >= through => Due::At(self.cursor.seq()),
            NextData::Frames(frames) => {
                let most = MAX_VALUES_HELD / self.names.len().max(1) + 1;
                let (mut times, mut ticks, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
                for frame in frames.iter().take_while(|frame| frame.seq <= through) {
                    let long = times.first().is_some_and(|first| frame.t - first >= MAX_SPAN_MS);
                    if ticks.len() >= most || long {
                        break;
                    }
                    self.cursor.take(frame);
                    if frame.seq > place {
                        times.push(frame.t);
                        match ranges.last_mut() {
                            Some((_, last)) if *last + 1 == frame.seq => *last = frame.seq,
                            _ => ranges.push((frame.seq, frame.seq)),
                        }
                        ticks.extend(self.cursor.state().map(|state| state.values().to_vec()));
                    }
                }
                match ticks.is_empty() {
                    // A power cut lost the ticks in flight, and the next life has other sequences.
                    true if frames.iter().any(|frame| frame.seq > through) => Due::At(place.max(self.cursor.seq())),
                    true => Due::Nothing,
                    false => Due::Ticks(TickSpan::new(ranges, times, SpanValues::Ticks(ticks))),
                }
            }
        }
    }

    /// Late ticks behind sequence `place`, up to `through`: they are in blocks, and may lie among unsealed ones.
    pub fn late(&mut self, live: &Live, place: u64, through: u64) -> Due {
        let block = {
            let store = live.store();
            self.learn_names(&store);
            store.block_behind(self.source.id, place)
        };
        match block.filter(|block| block.first_seq() <= through) {
            Some(block) => self.of_block(live, block, place, through, true),
            None => Due::At(through),
        }
    }

    /// The ticks of a block behind sequence `place`, up to `through`; a `short` span has no more than one request may
    /// take.
    fn of_block(&mut self, live: &Live, block: Block, place: u64, through: u64, short: bool) -> Due {
        let skip = (place + 1).saturating_sub(block.first_seq()) as usize;
        let last = block.last_seq().min(through);
        let mut times = match block.read_times() {
            Ok(times) => times,
            Err(Unread::Refused) if self.waits(live.clock.steady()) => return Due::Nothing,
            // Without the block's own times its samples have no time.
            Err(why) => {
                self.over(why == Unread::Refused);
                return Due::At(block.last_seq());
            }
        };
        times.truncate((last + 1 - block.first_seq()) as usize);
        times.drain(..skip);
        let end = times.first().map_or(0, |first| first + MAX_SPAN_MS);
        if short {
            times.truncate(times.partition_point(|t| *t < end));
        }
        let first = place.max(block.first_seq() - 1) + 1;
        let range = (first, first + times.len() as u64 - 1);
        Due::Ticks(TickSpan::new(vec![range], times, SpanValues::Block(block, skip)))
    }

    /// Whether to wait for data that the disk refuses now; `now` is by the steady clock. A temporary failure must cost
    /// no samples, and one bad sector must not cost all later ones. After the timeout it does not wait again until the
    /// span is [`over`](Self::over): otherwise each request of the span would wait again, and earlier ones would be
    /// repeated.
    pub fn waits(&mut self, now: Duration) -> bool {
        let since = *self.refused.get_or_insert_with(|| {
            tracing::warn!(
                source = self.source.name,
                "the disk does not return the next samples; the sender waits for it"
            );
            now
        });
        now.saturating_sub(since) < REFUSED_TIMEOUT
    }

    /// The span was sent, without data that the disk still `refused`: the next span waits again.
    pub fn over(&mut self, refused: bool) {
        if refused {
            tracing::warn!(source = self.source.name, "the disk still refuses: what it refuses is not sent");
        }
        self.refused = None;
    }

    /// The data behind a position.
    fn find(&mut self, store: &Store, place: u64) -> NextData {
        if self.cursor.seq() != place {
            self.cursor.seek(place);
        }
        if self.cursor.state().is_some()
            && let News::Ticks(frames, _) = self.cursor.news(store)
        {
            return NextData::Frames(frames);
        }
        if let Some(block) = self.cursor.sealed(store) {
            return NextData::Block(block);
        }
        if self.cursor.begin(store, i64::MAX).is_none() {
            return NextData::Nothing;
        }
        match self.cursor.news(store) {
            News::Ticks(frames, _) => NextData::Frames(frames),
            News::Lost => NextData::At(self.cursor.seq()),
        }
    }

    /// Updates the labels of new and changed series.
    fn learn_names(&mut self, store: &Store) {
        let catalog = store.catalog();
        let (replaced, version) = store.replaced_rows(self.rows_version);
        self.rows_version = version;
        self.families.retain(|row, _| !replaced.contains(row));
        // If the changes are unknown, all are updated.
        let series = self.cursor.series(store).or_else(|| self.cursor.series(store)).unwrap_or_default();
        let defs = store.series(self.source.id, 0);
        for id in series {
            let def = &defs[id as usize];
            let named = catalog.metric(def).map(|metric| {
                let family = self.families.entry(def.metric).or_insert_with(|| Arc::new(Family::from_metric(metric)));
                let own = prometheus::labels(metric, &def.instance).into_iter();
                let own = own.map(|(name, value)| Label { name: name.into(), value: value.into() });
                (family.clone(), own.collect())
            });
            self.names.set(id, &self.source.name, named);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::message::WriteRequest;
    use shared::catalog::{Catalog, cpu};
    use shared::series::SeriesDef;
    use std::time::Duration;
    use stream::clock::Manual;
    use stream::store::Limits;
    use stream::testing::bench::{self, Bench};
    use stream::testing::fleeting::Fleeting;

    #[test]
    fn a_request_whose_ticks_are_not_kept_any_more_is_given_up() {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 60_000, bytes: usize::MAX });
        let id = store.add_source("here".into(), 1_000, Vec::new());
        store.intern(id, SeriesDef { metric: 0, instance: "0".into() }).expect("a row");
        for tick in 1..=300 {
            store.append(id, tick * 1_000, false, &[tick as f64]).expect("a source");
            if tick == 100 || tick == 250 {
                store.seal(id);
            }
        }
        let source = store.sources().remove(0);
        let live = Live::new(store, Arc::new(Manual::at(300_000, Duration::ZERO)), 1, 60_000);
        let next = |place, through| Follower::new(&source).next(&live, place, Some(through), 15);
        assert!(matches!(next(15, 30), Due::At(100)), "of a block that has expired");
        assert!(matches!(next(30, 45), Due::At(100)));
    }

    #[test]
    fn a_request_whose_ticks_a_power_cut_took_is_given_up_at_once() {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 60_000, bytes: usize::MAX });
        let id = store.add_source("here".into(), 1_000, Vec::new());
        store.intern(id, SeriesDef { metric: 0, instance: "0".into() }).expect("a row");
        for tick in 1..=9 {
            store.append(id, tick * 1_000, false, &[tick as f64]).expect("a source");
        }
        // The tenth was in flight to the server, and not on the disk; the next life has its own numbers.
        let next = store.encode_at(id, 1_000, 20_000, false, &[20.0]).expect("above the newest");
        store.push(next);
        let source = store.sources().remove(0);
        let live = Live::new(store, Arc::new(Manual::at(20_000, Duration::ZERO)), 1, 60_000);
        let mut follower = Follower::new(&source);
        let Due::At(place) = follower.next(&live, 9, Some(10), 1) else { panic!("it waits for what is gone") };
        let Due::Ticks(span) = follower.next(&live, place, None, 1) else { panic!("what comes next") };
        assert_eq!((span.samples(0), span.last), (vec![(20_000, 20.0)], 1_000));
    }

    #[test]
    fn what_the_disk_refuses_for_a_while_is_waited_for_and_what_is_damaged_is_not() {
        let (folder, clock) = (tempfile::TempDir::new().expect("a folder"), bench::clock());
        let mut bench = Bench::open(folder.path(), &clock);
        bench.ticks(1_000);
        let source = bench.live.store().sources().remove(0);
        let block = bench.live.store().snapshot(source.id, i64::MIN, i64::MAX).expect("a source").blocks()[0].clone();
        let name = block.place().rsplit(' ').next().expect("a file").to_string();
        let mut follower = Follower::new(&source);
        let Due::Ticks(span) = follower.next(&bench.live, 0, None, 15) else { panic!("the first quarter") };
        let before = span.samples(0);
        assert!(!before.is_empty() && !span.refused());
        bench.faulty.unread(&name);
        assert!(span.samples(1).is_empty() && span.refused(), "a column");
        assert!(matches!(follower.next(&bench.live, 0, None, 15), Due::Nothing), "the times");
        bench.faulty.heal();
        let Due::Ticks(span) = follower.next(&bench.live, 0, None, 15) else { panic!("it is there again") };
        assert!(span.samples(0) == before && !span.refused());
        // A permanently broken block delays later ones only up to the timeout.
        bench.faulty.unread(&name);
        follower.over(false);
        assert!(matches!(follower.next(&bench.live, 0, None, 15), Due::Nothing));
        clock.pass(REFUSED_TIMEOUT);
        let now = bench.live.clock.steady();
        assert!(!follower.waits(now) && !follower.waits(now), "nor does each request of it wait anew");
        assert!(matches!(follower.next(&bench.live, 0, None, 15), Due::At(seq) if seq == block.last_seq()));
        assert!(follower.waits(now), "what comes next is waited for again");
    }

    /// Reads up to the newest tick, and checks that each sample is sent under the labels of its own series.
    fn sends_the_rest(follower: &mut Follower, fleeting: &Fleeting, place: &mut u64) -> usize {
        let mut sent = 0;
        loop {
            let span = match follower.next(&fleeting.live, *place, None, 1) {
                Due::Nothing => return sent,
                Due::At(seq) | Due::TooOld { seq, .. } => {
                    *place = seq;
                    continue;
                }
                Due::Ticks(span) => span,
            };
            let request = WriteRequest::unpack(&follower.names.batch(&span, 0, None, WriteRequest::pack).body)
                .expect("a request");
            for series in request.timeseries {
                let n: usize = series.labels.iter().find_map(|label| label.value.parse().ok()).expect("its number");
                let name = series.labels.iter().find(|label| label.name == "__name__").map(|label| &label.value);
                let catalog = fleeting.live.store().catalog().clone();
                let family = Family::from_metric(catalog.metric(&Fleeting::def(n)).expect("a row"));
                assert_eq!(name, Some(&family.name), "series {n}");
                for sample in series.samples {
                    let tick = (sample.timestamp - Fleeting::time(0)) / (Fleeting::time(1) - Fleeting::time(0));
                    let expected = Fleeting::values(tick as usize).find(|(own, _)| *own == n).map(|(_, v)| v);
                    assert_eq!(Some(sample.value), expected.map(|v| family.value(v)), "series {n}, tick {tick}");
                    sent += 1;
                }
            }
            *place = span.last;
        }
    }

    #[test]
    fn no_sample_goes_out_under_the_labels_of_another_series_whose_id_it_has() {
        // Read at each tick, after some, and after so many that they are read from blocks, or are dropped already.
        for pauses in [&[1][..], &[2, 1, 5, 3], &[7, 40, 1]] {
            let mut fleeting = Fleeting::empty();
            let source = fleeting.live.store().sources().remove(0);
            let (mut follower, mut place, mut sent) = (Follower::new(&source), 0, 0);
            for pause in pauses.iter().cycle() {
                (0..*pause).for_each(|_| fleeting.tick());
                sent += sends_the_rest(&mut follower, &fleeting, &mut place);
                assert_eq!(place, fleeting.ticks as u64);
                if fleeting.ticks > 150 {
                    break;
                }
            }
            assert!(fleeting.reused());
            let all: usize = (0..fleeting.ticks).map(|tick| Fleeting::values(tick).count()).sum();
            assert!(sent == all || pauses.contains(&40), "{sent} of {all}");
        }
    }
}
