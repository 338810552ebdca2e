//! Reading on in a source from a place in its sequence: out of memory while we keep up, out of its history when we are
//! behind. There is no queue: what was not sent is where it is kept anyway.

use super::batch::Names;
use super::message::Label;
use crate::live::Hub;
use crate::store::{Block, Frame, Since, Store, Unread};
use shared::catalog::prometheus::{self, Family};
use shared::series::SeriesId;
use shared::tick::TickState;
use shared::wire::Source;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How far behind is caught up, milliseconds.
const OLDEST: i64 = 12 * 3_600_000;
/// The longest span of one run, milliseconds: its series go one after the other, and Prometheus takes samples that are at
/// most an hour behind the newest it has.
const SPAN: i64 = 900_000;
/// Values of unsealed ticks that are held at once: 8 MiB of them.
const HELD: usize = 1 << 20;
/// How long a block that the disk does not hand out is waited for; then what it lacks is left out, as damage is.
const PATIENCE: Duration = Duration::from_secs(600);

/// A source that is read on.
pub struct Follower {
    source: Source,
    /// The labels of its series.
    pub names: Names,
    /// The newest tick when they were looked up last.
    named_at: u64,
    /// By row of the table, in its version.
    families: HashMap<u16, Arc<Family>>,
    rows_version: u64,
    /// After the tick that was read last.
    state: Option<TickState>,
    /// Since when the disk has not handed out what is next.
    refused: Option<Duration>,
}

/// What comes next.
pub enum Next {
    /// Nothing is due.
    Nothing,
    /// Nothing lies between the place and the tick of this sequence: go on behind it.
    At(u64),
    /// What lies up to this sequence is older than is caught up.
    TooOld {
        /// Sequence of its last tick.
        seq: u64,
        /// Samples in it.
        samples: u64,
    },
    /// Ticks to be sent.
    Run(Run),
}

/// Ticks that follow each other.
pub struct Run {
    /// Sequence of the last one.
    pub last: u64,
    times: Vec<i64>,
    values: Values,
    refused: Cell<bool>,
}

enum Values {
    /// By tick and series.
    Ticks(Vec<Vec<f64>>),
    /// Of a block, but for so many ticks at its begin.
    Block(Block, usize),
}

/// What a place leads to; decoded outside the lock.
enum Found {
    Nothing,
    At(u64),
    Block(Block),
    /// A keyframe to begin at, unless the state at hand is where the frames begin.
    Frames(Option<Vec<u8>>, Vec<Arc<Frame>>),
}

impl Run {
    fn new(last: u64, times: Vec<i64>, values: Values) -> Self {
        Run { last, times, values, refused: Cell::new(false) }
    }

    /// Whether the disk did not hand out some of what was read of it.
    pub fn refused(&self) -> bool {
        self.refused.get()
    }

    /// Times and values of a series, oldest first; of a column that cannot be read none.
    pub fn samples(&self, id: SeriesId) -> Vec<(i64, f64)> {
        let present = |(t, v): (&i64, f64)| v.is_finite().then_some((*t, v));
        match &self.values {
            Values::Ticks(ticks) => {
                let values = ticks.iter().map(|values| values.get(id as usize).copied().unwrap_or(f64::NAN));
                self.times.iter().zip(values).filter_map(present).collect()
            }
            Values::Block(block, skip) => {
                let read = block.read(id).inspect_err(|why| {
                    self.refused.set(self.refused() || *why == Unread::Refused);
                });
                let values = read.ok().flatten().unwrap_or_default().into_iter().skip(*skip);
                let values = values.take(self.times.len());
                self.times.iter().zip(values).filter_map(present).collect()
            }
        }
    }
}

impl Follower {
    /// A follower that has read nothing.
    pub fn new(source: &Source) -> Self {
        Follower {
            source: source.clone(),
            names: Names::default(),
            named_at: 0,
            families: HashMap::new(),
            rows_version: 0,
            state: None,
            refused: None,
        }
    }

    /// The ticks behind sequence `place`: those up to `through` where that is given, else what there is once it is `due`
    /// ticks.
    pub fn next(&mut self, hub: &Hub, place: u64, through: Option<u64>, due: u64) -> Next {
        let store = hub.store();
        let newest = store.state(self.source.id).map_or(0, TickState::seq);
        if place > newest {
            // A power cut took ticks that were sent; others have their sequences now.
            return Next::At(newest);
        }
        if through.is_none_or(|through| through <= place) && newest - place < due {
            return Next::Nothing;
        }
        self.announce(&store);
        let found = self.find(&store, place);
        let steps = store.state(self.source.id).map(|s| s.steps().to_vec()).unwrap_or_default();
        drop(store);
        let through = through.filter(|through| *through > place).unwrap_or(u64::MAX);
        match found {
            Found::Nothing => Next::Nothing,
            Found::At(seq) => Next::At(seq),
            Found::Block(block) if block.to() < hub.clock.wall() - OLDEST => {
                Next::TooOld { seq: block.last_seq(), samples: block.samples() }
            }
            // What was in flight is not kept any more.
            Found::Block(block) if block.first_seq() > through => Next::At(block.first_seq() - 1),
            Found::Block(block) => {
                let skip = (place + 1).saturating_sub(block.first_seq()) as usize;
                let last = block.last_seq().min(through);
                let mut times = match block.read_times() {
                    Ok(times) => times,
                    Err(Unread::Refused) if self.waits(hub.clock.steady()) => return Next::Nothing,
                    // Without the block's own times nothing of it can be placed.
                    Err(why) => {
                        self.over(why == Unread::Refused);
                        return Next::At(block.last_seq());
                    }
                };
                times.truncate((last + 1 - block.first_seq()) as usize);
                times.drain(..skip);
                let end = times.first().map_or(0, |first| first + SPAN);
                // The same ticks once more after a restart, though the block may have become a longer one.
                if through == u64::MAX {
                    times.truncate(times.partition_point(|t| *t < end));
                }
                let last = place.max(block.first_seq() - 1) + times.len() as u64;
                Next::Run(Run::new(last, times, Values::Block(block, skip)))
            }
            Found::Frames(keyframe, frames) => {
                let mut state = match keyframe {
                    Some(keyframe) => {
                        let mut state = TickState::default();
                        state.extend(steps.iter().copied());
                        if state.apply(&keyframe).is_err() {
                            return Next::Nothing;
                        }
                        state
                    }
                    None => self.state.take().unwrap_or_default(),
                };
                state.extend(steps[state.steps().len().min(steps.len())..].iter().copied());
                if state.seq() >= through {
                    return Next::At(state.seq());
                }
                let most = HELD / steps.len().max(1) + 1;
                let (mut times, mut ticks) = (Vec::new(), Vec::new());
                for frame in frames.iter().take_while(|frame| frame.seq <= through) {
                    let long = times.first().is_some_and(|first| frame.t - first >= SPAN);
                    if ticks.len() >= most || long || state.apply(frame.bytes()).is_err() {
                        break;
                    }
                    if frame.seq > place {
                        times.push(frame.t);
                        ticks.push(state.values().to_vec());
                    }
                }
                let last = state.seq();
                self.state = Some(state);
                match ticks.is_empty() {
                    true => Next::Nothing,
                    false => Next::Run(Run::new(last, times, Values::Ticks(ticks))),
                }
            }
        }
    }

    /// Whether what the disk refuses now, `now` by the steady clock, is waited for: a disk that fails for a while must cost
    /// no samples, and one bad sector not all that comes after it. Once it is waited for no more, that holds until what
    /// is read is [`over`](Self::over): each request of it would wait anew, and those before be sent again.
    pub fn waits(&mut self, now: Duration) -> bool {
        let since = *self.refused.get_or_insert_with(|| {
            tracing::warn!(
                source = self.source.name,
                "the disk does not hand out what is to be sent next; it is waited for"
            );
            now
        });
        now.saturating_sub(since) < PATIENCE
    }

    /// What was read is sent, without what the disk still `refused`: what comes next is waited for anew.
    pub fn over(&mut self, refused: bool) {
        if refused {
            tracing::warn!(source = self.source.name, "the disk still refuses: what it refuses is not sent");
        }
        self.refused = None;
    }

    /// What follows a place.
    fn find(&self, store: &Store, place: u64) -> Found {
        let id = self.source.id;
        if self.state.as_ref().is_some_and(|state| state.seq() == place)
            && let Since::Frames(frames) = store.since(id, place)
        {
            return Found::Frames(None, frames);
        }
        let Some((_, keyframe, base)) = store.opening(id, i64::MAX) else { return Found::Nothing };
        if place < base {
            let blocks = store.snapshot(id, i64::MIN, i64::MAX);
            let next = blocks.iter().flat_map(|s| s.blocks()).find(|block| block.last_seq() > place).cloned();
            if let Some(block) = next.filter(|block| block.first_seq() <= base) {
                return Found::Block(block);
            }
        }
        match store.since(id, base) {
            Since::Frames(frames) => Found::Frames(Some(keyframe), frames),
            Since::Lost => Found::At(base),
        }
    }

    /// Learns the labels of series that are new, or others than they were.
    fn announce(&mut self, store: &Store) {
        let catalog = store.catalog();
        let (replaced, version) = store.replaced_rows(self.rows_version);
        self.rows_version = version;
        self.families.retain(|row, _| !replaced.contains(row));
        let series = store.series(self.source.id, 0);
        let renamed = store.renamed(self.source.id, self.named_at).unwrap_or_else(|| {
            self.names = Names::default();
            Vec::new()
        });
        self.named_at = store.state(self.source.id).map_or(0, TickState::seq);
        let known = self.names.len() as SeriesId;
        let others = renamed.into_iter().filter(|id| *id < known).collect::<Vec<_>>();
        if !others.is_empty() || known == 0 {
            // It holds the steps of those that were.
            self.state = None;
        }
        for id in others.into_iter().chain(known..series.len() as SeriesId) {
            let def = &series[id as usize];
            let named = catalog.metric(def).map(|metric| {
                let family = self.families.entry(def.metric).or_insert_with(|| Arc::new(Family::of(metric)));
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
    use crate::clock::Manual;
    use crate::keeper::tests::bench::{self, Bench};
    use crate::store::Limits;
    use shared::catalog::{Catalog, cpu};
    use shared::series::SeriesDef;
    use std::time::Duration;

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
        let hub = Hub::new(store, Arc::new(Manual::at(300_000, Duration::ZERO)), 1, 60_000);
        let next = |place, through| Follower::new(&source).next(&hub, place, Some(through), 15);
        assert!(matches!(next(15, 30), Next::At(100)), "of a block that has expired");
        assert!(matches!(next(30, 45), Next::At(100)));
    }

    #[test]
    fn what_the_disk_refuses_for_a_while_is_waited_for_and_what_is_damaged_is_not() {
        let (folder, clock) = (tempfile::TempDir::new().expect("a folder"), bench::clock());
        let mut bench = Bench::open(folder.path(), &clock);
        bench.ticks(1_000);
        let source = bench.hub.store().sources().remove(0);
        let block = bench.hub.store().snapshot(source.id, i64::MIN, i64::MAX).expect("a source").blocks()[0].clone();
        let name = block.place().rsplit(' ').next().expect("a file").to_string();
        let mut follower = Follower::new(&source);
        let Next::Run(run) = follower.next(&bench.hub, 0, None, 15) else { panic!("the first quarter") };
        let before = run.samples(0);
        assert!(!before.is_empty() && !run.refused());
        bench.faulty.unread(&name);
        assert!(run.samples(1).is_empty() && run.refused(), "a column");
        assert!(matches!(follower.next(&bench.hub, 0, None, 15), Next::Nothing), "the times");
        bench.faulty.heal();
        let Next::Run(run) = follower.next(&bench.hub, 0, None, 15) else { panic!("it is there again") };
        assert!(run.samples(0) == before && !run.refused());
        // One that stays broken holds up what comes after it only so long.
        bench.faulty.unread(&name);
        follower.over(false);
        assert!(matches!(follower.next(&bench.hub, 0, None, 15), Next::Nothing));
        clock.pass(PATIENCE);
        let now = bench.hub.clock.steady();
        assert!(!follower.waits(now) && !follower.waits(now), "nor does each request of it wait anew");
        assert!(matches!(follower.next(&bench.hub, 0, None, 15), Next::At(seq) if seq == block.last_seq()));
        assert!(follower.waits(now), "what comes next is waited for again");
    }
}
