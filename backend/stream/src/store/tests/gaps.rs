//! Sequences with gaps, over cuts, seals, drops, restarts and kills. A reader gets every tick once and in order, or
//! learns that its position is lost. The coverage equals the appended ticks without the dropped ones.

use super::*;
use crate::clock::Clock;
use crate::testing::bench::{self, Bench};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use tempfile::TempDir;

/// An event of a server.
#[derive(Clone, Debug)]
enum Step {
    /// This many ticks, the first of which skips this many sequences.
    Ticks(u64, u64),
    /// A new series.
    Series,
    /// The reader of this number reads on.
    Read(usize),
    /// The end of a quarter of an hour.
    Cut,
    /// An end and a restart.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let skipped = prop_oneof![3 => Just(0u64), 2 => 1..5u64, 1 => 1..1u64 << 40];
    prop_oneof![
        6 => (1..8u64, skipped).prop_map(|(ticks, skipped)| Step::Ticks(ticks, skipped)),
        1 => Just(Step::Series),
        5 => (0..3usize).prop_map(Step::Read),
        2 => Just(Step::Cut),
        1 => Just(Step::Restart),
    ]
}

/// Time and values of ticks by sequence, without absent values.
type Ticks = BTreeMap<u64, (i64, Vec<(SeriesId, f64)>)>;

fn present(values: &[f64]) -> Vec<(SeriesId, f64)> {
    (0..).zip(values.iter().copied()).filter(|(_, v)| v.is_finite()).collect()
}

/// Follows a source as a page does.
#[derive(Default)]
struct Reader {
    state: TickState,
    seen: Ticks,
}

impl Reader {
    /// Reads all new ticks; returns whether its position was lost.
    fn read(&mut self, store: &Store, source: SourceId) -> bool {
        let steps = store.state(source).expect("a source").steps();
        let (Since::Frames(frames), Some(renamed)) =
            (store.since(source, self.state.seq()), store.renamed(source, self.state.seq()))
        else {
            let (blocks, keyframe, seq) = store.opening(source, i64::MIN).expect("a source");
            self.seen = sealed(&blocks);
            self.state = TickState::default();
            self.state.extend(steps.iter().copied());
            self.state.apply(&keyframe).expect("a keyframe");
            assert_eq!(self.state.seq(), seq);
            if store.state(source).is_some_and(|state| state.seq() > seq) {
                assert!(!self.read(store, source), "the frames behind a keyframe are there");
            }
            return true;
        };
        self.state.extend(steps[self.state.steps().len()..].iter().copied());
        renamed.into_iter().for_each(|id| self.state.redefine(id, steps[id as usize]));
        for frame in frames {
            assert_eq!(frame.before, self.state.seq());
            self.state.apply(frame.bytes()).expect("it follows");
            let tick = (self.state.t(), present(self.state.values()));
            assert!(self.seen.insert(self.state.seq(), tick).is_none(), "tick {} twice", frame.seq);
        }
        false
    }
}

fn sealed(blocks: &[Block]) -> Ticks {
    let mut ticks = Ticks::new();
    for block in blocks {
        assert_eq!(block.last_seq() - block.first_seq() + 1, block.ticks() as u64, "a block spans no gap");
        let times = block.read_times().expect("sound");
        let mut values = vec![Vec::new(); times.len()];
        for id in block.series() {
            let column = block.read(id).expect("sound").expect("it is in its list");
            values.iter_mut().zip(column).for_each(|(tick, v)| tick.extend(v.is_finite().then_some((id, v))));
        }
        for (seq, tick) in (block.first_seq()..).zip(times.into_iter().zip(values)) {
            assert!(ticks.insert(seq, tick).is_none(), "tick {seq} stands in two blocks");
        }
    }
    ticks
}

/// The sequences as ranges.
fn ranges<'a>(seqs: impl IntoIterator<Item = &'a u64>) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for seq in seqs {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *seq => *last = *seq,
            _ => ranges.push((*seq, *seq)),
        }
    }
    ranges
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_tick_is_followed_once_over_gaps_cuts_and_restarts(steps in prop::collection::vec(step(), 1..60)) {
        let (folder, clock) = (TempDir::new().expect("a folder"), bench::clock());
        let mut bench = Bench::open(folder.path(), &clock);
        let (mut truth, mut readers) = (Ticks::new(), [(); 3].map(|()| Reader::default()));
        for step in steps {
            match step {
                Step::Ticks(ticks, skipped) => {
                    for i in 0..ticks {
                        clock.pass(Duration::from_secs(1));
                        let t = clock.wall();
                        let values: Vec<f64> = bench.ids.iter().map(|id| value(*id, t / 1_000 % 10_000)).collect();
                        let next = bench.live.store().kept(bench.source).expect("a source").next_seq();
                        let seq = next + if i == 0 { skipped } else { 0 };
                        prop_assert_eq!(bench.live.append_at(bench.source, seq, t, false, &values), Some(seq));
                        truth.insert(seq, (t, present(&values)));
                    }
                }
                Step::Series => {
                    let def = SeriesDef { metric: 0, instance: bench.ids.len().to_string() };
                    let id = bench.live.store().intern(bench.source, def).expect("a row");
                    bench.ids.push(id);
                }
                Step::Read(n) => {
                    readers[n].read(&bench.live.store(), bench.source);
                    prop_assert_eq!(&readers[n].seen, &truth);
                }
                Step::Cut => {
                    bench.archive.cut();
                    bench.archive.step();
                }
                Step::Restart => {
                    let known = bench.ids.len();
                    drop(bench);
                    bench = Bench::open(folder.path(), &clock);
                    for more in bench.ids.len()..known {
                        let def = SeriesDef { metric: 0, instance: more.to_string() };
                        bench.ids.push(bench.live.store().intern(bench.source, def).expect("a row"));
                    }
                    let report = bench.live.store().counts().history.map_or(0, |history| history.missing_ticks);
                    prop_assert_eq!(report, 0);
                    // Sequences of another run are meaningless to a page.
                    readers = [(); 3].map(|()| Reader::default());
                }
            }
            prop_assert_eq!(bench.live.store().coverage(bench.source), ranges(truth.keys()));
        }
        for reader in &mut readers {
            reader.read(&bench.live.store(), bench.source);
            prop_assert_eq!(&reader.seen, &truth);
        }
    }
}

#[test]
fn a_sequence_that_jumps_drops_nothing_and_lets_no_series_go() {
    let (mut store, source) = store(Limits { retention: 3_600_000, bytes: usize::MAX });
    let id = series(&mut store, source, &shared::catalog::cpu::CPU_PERCENT, "");
    let other = series(&mut store, source, &shared::catalog::cpu::CORE_PERCENT, "0");
    let mut seq = 0;
    for i in 0..2_000 {
        seq += if i % 100 == 99 { 1 << 40 } else { 1 };
        let encoded = store.encode_at(source, seq, T0 + i * 1_000, false, &[value(id, i), 1.0]).expect("it is above");
        assert_eq!(store.push(encoded), seq);
        if i % 900 == 899 {
            store.seal(source);
        }
    }
    assert_eq!((store.counts().series_alive, store.counts().series_stored), (2, 2));
    assert_eq!(store.snapshot(source, 0, i64::MAX).unwrap().samples(&[other])[0].len(), 2_000);
    assert!(store.encode_at(source, seq, T0 + 3_000_000, false, &[]).is_none(), "it has its tick");
    assert!(store.encode_at(source, MAX_SEQUENCE + 1, T0 + 3_000_000, false, &[]).is_none());
}

#[test]
fn a_damaged_block_is_covered_no_more() {
    let (folder, clock) = (TempDir::new().expect("a folder"), bench::clock());
    let mut bench = Bench::open(folder.path(), &clock);
    bench.ticks(1_000);
    let covered = bench.live.store().coverage(bench.source);
    let block = bench.live.store().snapshot(bench.source, 0, i64::MAX).expect("a source").blocks()[0].clone();
    assert_eq!((covered.len(), covered[0].1 - covered[0].0), (1, 999));
    bench.live.store().damages().met(&block, Some(3));
    assert_eq!(bench.live.store().coverage(bench.source), [(block.last_seq() + 1, covered[0].1)]);
}

#[test]
fn a_life_on_disk_begins_at_tenths_of_seconds_and_above_what_is_stored() {
    let (folder, clock) = (TempDir::new().expect("a folder"), bench::clock());
    let mut first = Bench::open(folder.path(), &clock);
    first.ticks(3);
    let begin = first_number(bench::T0);
    assert_eq!(first.live.store().coverage(first.source), [(begin, begin + 2)]);
    drop(first);
    // Another life within the same tenth of a second, as after a clock was set back.
    let clock = Arc::new(crate::clock::Manual::at(bench::T0 - 10_000, Duration::from_secs(100)));
    let second = Bench::open(folder.path(), &clock);
    for s in 1..=20 {
        second.live.append(second.source, bench::T0 - 10_000 + s * 1_000, false, &[1.0]);
    }
    let covered = second.live.store().coverage(second.source);
    assert_eq!(covered, [(begin, begin + 19)], "the three instants that have their tick are left out");
}
