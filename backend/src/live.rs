//! The live stream: one hub that everybody reads, and the state of one page that follows it.
//!
//! No reader has a queue. A page's [`Session`] holds its place in every source; when it is ready for more it takes the
//! frames behind that place from the store. One that is slow takes several at once; one whose place has left memory
//! gets a resync. So a sleeping page costs its session and nothing else.

mod minutes;

pub use minutes::Stretches;

use crate::clock::{Clock, Stopped};
use crate::store::{Block, Damages, Inserted, Since, Store, Told};
use axum::body::Bytes;
use collectors::{GpuNumbers, Processes};
use history::Log;
use shared::catalog::{Catalog, Layout};
use shared::segment;
use shared::series::{SeriesDef, SeriesId};
use shared::wire::{
    self, CREDIT, ColumnBytes, Columns, Hello, MAX_MESSAGE, PROTOCOL, PageMessage, Recorded, ServerMessage, SourceId,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tokio::sync::watch;

/// Counts of the stream, for our own health.
#[derive(Debug, Default)]
pub struct Counts {
    /// Pages and scripts connected now.
    pub viewers: AtomicU64,
    /// Times a page's place was gone and everything was sent anew.
    pub resyncs: AtomicU64,
    /// Times a page had used up its credit while ticks went on: ticks were held back, none was queued.
    pub held_back: AtomicU64,
    /// Bytes handed to sockets.
    pub bytes: AtomicU64,
}

/// What is written to disk as ticks come.
#[derive(Default)]
pub struct Writing {
    /// The log; none where nothing is kept on disk.
    pub log: Option<Log>,
    /// What its present file has been told.
    pub told: Told,
    closed: bool,
}

/// What the sampler writes and every page, script and request reads.
pub struct Hub {
    store: Mutex<Store>,
    /// Held by whoever appends: readers of the store do not wait for the disk.
    writing: Mutex<Writing>,
    newest: watch::Sender<u64>,
    /// Counts of the stream.
    pub counts: Counts,
    /// Random number of this run.
    pub boot: u64,
    /// The clock that everything here is told.
    pub clock: Arc<dyn Clock>,
    /// How long history is kept, milliseconds.
    pub retention: i64,
    /// The process table of this machine.
    pub processes: Arc<Processes>,
    /// The source that is measured here, and its GPUs.
    pub gpus: OnceLock<(SourceId, Arc<GpuNumbers>)>,
    /// The values are simulated; pages are told so.
    pub simulated: bool,
    /// What is replayed here, where nothing is live.
    pub recorded: Option<Recorded>,
}

impl Hub {
    /// A hub over a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>, boot: u64, retention: i64) -> Arc<Self> {
        Arc::new(Hub {
            store: Mutex::new(store),
            writing: Mutex::default(),
            newest: watch::Sender::new(0),
            counts: Counts::default(),
            boot,
            clock,
            retention,
            processes: Arc::default(),
            gpus: OnceLock::new(),
            simulated: false,
            recorded: None,
        })
    }

    /// A hub over a store of simulated values.
    pub fn of_simulated(store: Store, clock: Arc<dyn Clock>, boot: u64, retention: i64) -> Arc<Self> {
        let mut hub = Self::new(store, clock, boot, retention);
        if let Some(hub) = Arc::get_mut(&mut hub) {
            hub.simulated = true;
        }
        hub
    }

    /// A hub over a store that holds a recording; the clock stands at its end.
    pub fn of_recording(store: Store, boot: u64, recorded: Recorded, simulated: bool) -> Arc<Self> {
        let (clock, retention) = (Arc::new(Stopped(recorded.to)), recorded.to - recorded.from);
        let mut hub = Self::new(store, clock, boot, retention);
        if let Some(hub) = Arc::get_mut(&mut hub) {
            (hub.recorded, hub.simulated) = (Some(recorded), simulated);
        }
        hub
    }

    /// The store, for a moment: decode outside.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// What is written to disk, for a moment in which nothing is appended.
    pub fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Appends a tick of a source: it is logged, where there is a log, before anybody sees it. `values` are by series id,
    /// NaN is absent. Its sequence, or none for an unknown source, at an instant that has its tick, and after
    /// [`close`](Self::close). Readers hear of it with the next [`announce`](Self::announce).
    pub fn append(&self, source: SourceId, t: i64, clock_step: bool, values: &[f64]) -> Option<u64> {
        let mut writing = self.writing();
        if writing.closed {
            return None;
        }
        let (encoded, records) = {
            let mut store = self.store();
            let encoded = store.encode(source, t, clock_step, values)?;
            let Writing { log, told, .. } = &mut *writing;
            let records = log.as_ref().map(|_| told.tick(&store, &encoded));
            (encoded, records)
        };
        if let (Some(log), Some(records)) = (&writing.log, records) {
            // A disk that does not answer, or fails, is the keeper's to deal with: the page goes on.
            log.write(records);
        }
        Some(self.store().push(encoded))
    }

    /// Stores samples that come after their tick: those within the retention, not more than 10 minutes ahead of the clock,
    /// at instants where their series has none. Reads the disk: not where others wait.
    pub fn insert(&self, source: SourceId, samples: &[(SeriesId, i64, f64)]) -> Inserted {
        let mut writing = self.writing();
        let (fits, mut inserted) = self.store().in_time(samples, self.clock.wall());
        let times = || fits.iter().map(|(_, t, _)| *t);
        let (Some(from), Some(to)) = (times().min(), times().max()) else { return inserted };
        let Some(snapshot) = self.store().snapshot(source, from, to) else { return inserted };
        let mut ids: Vec<SeriesId> = fits.iter().map(|(id, ..)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        let read = snapshot.samples(&ids).into_iter().map(|s| s.into_iter().map(|(t, _)| t).collect());
        let mut known: HashMap<SeriesId, HashSet<i64>> = ids.into_iter().zip(read).collect();
        let new = |(id, t, _): &(SeriesId, i64, f64)| known.get_mut(id).is_some_and(|known| known.insert(*t));
        let all = fits.len();
        let fits: Vec<_> = fits.into_iter().filter(new).collect();
        (inserted.taken, inserted.duplicate) = (fits.len() as u64, (all - fits.len()) as u64);
        let Writing { log, told, .. } = &mut *writing;
        if let Some(log) = log {
            log.write(told.late(&self.store(), source, &fits));
        }
        let mut store = self.store();
        store.insert(source, &fits);
        store.count_duplicates(inserted.duplicate);
        inserted
    }

    /// Ends the log in order; nothing is appended any more. Waits for a disk at most as long as [`Log::close`] does.
    pub fn close(&self) {
        let mut writing = self.writing();
        writing.closed = true;
        if let Some(log) = writing.log.take()
            && !log.close()
        {
            tracing::warn!("the disk did not take the last ticks in time");
        }
    }

    /// Tells every reader that there is something new.
    pub fn announce(&self) {
        self.newest.send_modify(|n| *n += 1);
    }

    /// Resolves with each announcement.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    fn control(&self, message: &ServerMessage) -> Bytes {
        wire::encode(message).into()
    }
}

/// The most rows of the table in one message: their texts together are far below [`MAX_MESSAGE`].
const ROWS: usize = 250;

/// The most series that are others than they were in one message; their names are as long as a page of metrics has them.
const SERIES: usize = 100;

/// A page's place in one source.
struct Place {
    source: SourceId,
    seq: u64,
    series: usize,
    checks: u64,
}

/// What one page has been sent, and what it still waits for.
pub struct Session {
    hub: Arc<Hub>,
    places: Vec<Place>,
    /// What is to be sent: one window of history, whose blocks are read when their turn comes, or one message of ticks a
    /// source.
    waiting: VecDeque<Next>,
    sent: u32,
    acknowledged: u32,
    window: i64,
    /// Rows of the table that the page knows.
    rows: usize,
    /// The version of the table that it knows them by.
    rows_version: u64,
    /// What was last said of the sources, as [`Store::facts`] counts it.
    facts: u64,
}

/// What a page is to be sent next; [read](Next::read) it.
pub enum Next {
    /// This message.
    Message(Bytes),
    /// A sealed block.
    Part(Part),
    /// Sealed blocks as minutes.
    Minutes(Box<Stretches>),
}

impl Next {
    /// Whether reading it may have to wait for a disk, or takes long.
    pub fn waits(&self) -> bool {
        match self {
            Next::Message(_) => false,
            Next::Part(part) => part.waits(),
            Next::Minutes(_) => true,
        }
    }

    /// The next message of it, and what is left, which is [put back](Session::put_back).
    pub fn read(self) -> (Option<Bytes>, Option<Next>) {
        match self {
            Next::Message(bytes) => (Some(bytes), None),
            Next::Part(part) => {
                let (bytes, rest) = part.read();
                (bytes, rest.map(Next::Part))
            }
            Next::Minutes(stretches) => {
                let (bytes, rest) = stretches.read();
                (bytes, rest.map(|rest| Next::Minutes(Box::new(rest))))
            }
        }
    }
}

/// A sealed block that is on its way to a page, from one of its columns on.
pub struct Part {
    source: SourceId,
    block: Block,
    /// How many of its columns have been sent.
    sent: usize,
    damages: Arc<Damages>,
}

impl Part {
    /// Whether reading it may have to wait for a disk.
    fn waits(&self) -> bool {
        !self.block.in_memory()
    }

    /// The next message of it, at most [`MAX_MESSAGE`] bytes or one column, and what is left. What is damaged is left out:
    /// a gap on the page.
    fn read(mut self) -> (Option<Bytes>, Option<Part>) {
        let (block, damages) = (&self.block, &self.damages);
        let Some(times) = damages.checked(block, None, block.times()) else { return (None, None) };
        let (mut columns, mut size, mut whole) = (Vec::new(), times.len() + 64, true);
        block.columns(self.sent, |column| {
            match column {
                Ok((id, bytes)) => {
                    whole = columns.is_empty() || size + bytes.len() + 16 <= MAX_MESSAGE;
                    if !whole {
                        return false;
                    }
                    size += bytes.len() + 16;
                    columns.push((id, ColumnBytes(bytes.into_owned())));
                    self.sent += 1;
                }
                Err(part) => {
                    let id = match part {
                        segment::Part::Column(id) | segment::Part::Index(id) | segment::Part::Tier(id) => Some(id),
                        segment::Part::Times => None,
                    };
                    damages.met(block, id);
                    self.sent += usize::from(matches!(part, segment::Part::Column(_)));
                }
            }
            true
        });
        let message = wire::encode(&ServerMessage::Columns(Columns {
            source: self.source,
            first_seq: block.first_seq(),
            last_seq: block.last_seq(),
            ticks: block.ticks() as u32,
            times: times.into_owned(),
            columns,
        }));
        (Some(message.into()), (!whole).then_some(self))
    }
}

impl Session {
    /// A session that has yet to be opened.
    pub fn new(hub: Arc<Hub>) -> Self {
        Session {
            hub,
            places: Vec::new(),
            waiting: VecDeque::new(),
            sent: 0,
            acknowledged: 0,
            window: 0,
            rows: 0,
            rows_version: 0,
            facts: u64::MAX,
        }
    }

    /// Takes in a message of the page.
    ///
    /// # Errors
    /// One sentence for the person at the page; the connection then ends.
    pub fn receive(&mut self, message: PageMessage) -> Result<(), String> {
        match message {
            PageMessage::Open { protocol, .. } if protocol != PROTOCOL => {
                Err("this page is of another version than the server; reload it".into())
            }
            PageMessage::Open { .. } if !self.places.is_empty() => Err("the stream is open already".into()),
            PageMessage::Open { window, resume, source, .. } => {
                self.window = window.clamp(0, self.hub.retention);
                self.say(&ServerMessage::Hello(Hello {
                    protocol: PROTOCOL,
                    version: env!("CARGO_PKG_VERSION").into(),
                    boot: self.hub.boot,
                    now: self.hub.clock.wall(),
                    retention: self.hub.retention,
                    simulated: self.hub.simulated,
                    recorded: self.hub.recorded.clone(),
                }));
                let resume = resume.filter(|r| r.boot == self.hub.boot);
                let (sources, facts) = {
                    let store = self.hub.store();
                    (store.sources(), store.facts())
                };
                if let Some(resume) = &resume {
                    self.rows = resume.rows as usize;
                } else {
                    let (catalog, version) = {
                        let store = self.hub.store();
                        (store.catalog().clone(), store.replaced_rows(0).1)
                    };
                    let (metrics, charts) = catalog.part(0, ROWS);
                    (self.rows, self.rows_version) = (metrics.len(), version);
                    let layout = Layout { charts, ..catalog.layout.clone() };
                    self.say(&ServerMessage::Catalog(Catalog { metrics, layout }));
                    self.say(&ServerMessage::Sources(sources.clone()));
                    self.facts = facts;
                }
                // A fleet's pages look at one machine at a time: the others cost them nothing.
                let shown = sources.iter().find(|s| Some(&s.name) == source.as_ref()).or(sources.first());
                if let Some(shown) = shown {
                    let place = resume.as_ref().and_then(|r| r.places.iter().find(|(id, ..)| *id == shown.id));
                    match place {
                        Some(&(source, seq, series)) => {
                            self.places.push(Place { source, seq, series: series as usize, checks: u64::MAX });
                        }
                        None => {
                            self.places.push(Place { source: shown.id, seq: 0, series: 0, checks: u64::MAX });
                            self.restart(self.places.len() - 1);
                        }
                    }
                }
                Ok(())
            }
            PageMessage::History { source, from, to } => {
                // One request at a time: the answer is bounded by the retention.
                if self.waiting.iter().any(|w| !matches!(w, Next::Message(_))) {
                    return Ok(());
                }
                let snapshot = self.hub.store().snapshot(source, from, to);
                if let Some(snapshot) = snapshot {
                    self.send_blocks(source, snapshot.blocks().to_vec());
                }
                self.say(&ServerMessage::HistoryEnd { source, from, to });
                Ok(())
            }
            PageMessage::Minutes { source, from, to } => {
                if self.waiting.iter().any(|w| !matches!(w, Next::Message(_))) {
                    return Ok(());
                }
                let stretches = Stretches::new(&self.hub.store(), source, from, to);
                self.waiting.extend(stretches.map(|all| Next::Minutes(Box::new(all))));
                self.say(&ServerMessage::MinutesEnd { source, from, to });
                Ok(())
            }
            PageMessage::Ack { messages } => {
                if messages > self.sent {
                    return Err("the page acknowledged what was not sent".into());
                }
                self.acknowledged = self.acknowledged.max(messages);
                Ok(())
            }
            // Answered at once where the connection is: nothing of it is followed.
            PageMessage::Processes { .. } => Ok(()),
        }
    }

    fn say(&mut self, message: &ServerMessage) {
        self.waiting.push_back(Next::Message(self.hub.control(message)));
    }

    /// Late samples reach the page when their hour is merged.
    fn send_blocks(&mut self, source: SourceId, blocks: Vec<Block>) {
        let damages = self.hub.store().damages().clone();
        let part = |block| Next::Part(Part { source, block, sent: 0, damages: damages.clone() });
        self.waiting.extend(blocks.into_iter().filter(|block| !block.late()).map(part));
    }

    /// Series, sealed history of the window, and a keyframe from which the frames of the head follow.
    fn restart(&mut self, at: usize) {
        let source = self.places[at].source;
        let from = self.hub.clock.wall() - self.window;
        // Taken before the series are listed: a keyframe must not speak of one that appeared in between.
        let opening = self.hub.store().opening(source, from);
        self.places[at].series = 0;
        self.announce_series(at, &[]);
        self.announce_checks(at);
        if let Some((blocks, keyframe, seq)) = opening {
            self.send_blocks(source, blocks);
            self.say(&ServerMessage::HistoryEnd { source, from, to: i64::MAX });
            self.waiting.push_back(Next::Message(wire::encode_ticks(source, [&keyframe[..]]).into()));
            self.sent += 1;
            self.places[at].seq = seq;
        }
    }

    /// Rows that the page does not know, then series that name them: those that are new, and those that it knows as others.
    fn announce_series(&mut self, at: usize, renamed: &[SeriesId]) {
        let (source, mut first) = (self.places[at].source, self.places[at].series);
        let (defs, others, catalog, (replaced, version)) = {
            let store = self.hub.store();
            let known = store.series(source, 0).get(..first).unwrap_or_default();
            let other = |id: &SeriesId| Some((*id, known.get(*id as usize)?.clone()));
            let others: Vec<(SeriesId, SeriesDef)> = renamed.iter().filter_map(other).collect();
            let replaced = store.replaced_rows(self.rows_version);
            (store.series(source, first).to_vec(), others, store.catalog().clone(), replaced)
        };
        if defs.is_empty() && others.is_empty() {
            return;
        }
        self.rows_version = version;
        let known = self.rows;
        for row in replaced.into_iter().filter(|row| usize::from(*row) < known) {
            let (metrics, charts) = catalog.part(usize::from(row), 1);
            self.say(&ServerMessage::Rows { first: u32::from(row), metrics, charts });
        }
        while catalog.metrics.len() > self.rows {
            let (metrics, charts) = catalog.part(self.rows, ROWS);
            let message = ServerMessage::Rows { first: self.rows as u32, metrics, charts };
            self.rows = catalog.metrics.len().min(self.rows + ROWS);
            self.say(&message);
        }
        for run in others.chunk_by(|a, b| a.0 + 1 == b.0).flat_map(|run| run.chunks(SERIES)) {
            let defs = run.iter().map(|(_, def)| def.clone()).collect();
            self.say(&ServerMessage::Series { source, first: run[0].0, defs });
        }
        let mut rest = &defs[..];
        while !rest.is_empty() {
            let mut size = 0;
            let fits = rest.iter().take_while(|def| {
                size += def.instance.len() + 8;
                size < MAX_MESSAGE
            });
            let (now, later) = rest.split_at(fits.count().max(1));
            self.say(&ServerMessage::Series { source, first: first as u32, defs: now.to_vec() });
            first += now.len();
            rest = later;
        }
        self.places[at].series = first;
    }

    /// How the source's collectors stand, and what is said of the sources, where that has changed.
    fn announce_checks(&mut self, at: usize) {
        let place = &mut self.places[at];
        let (checks, version, sources) = {
            let store = self.hub.store();
            let (checks, version) = store.checks(place.source);
            let changed = std::mem::replace(&mut self.facts, store.facts()) != store.facts();
            (checks, version, changed.then(|| store.sources()))
        };
        if let Some(sources) = sources {
            self.waiting.push_back(Next::Message(self.hub.control(&ServerMessage::Sources(sources))));
        }
        if place.checks != version {
            place.checks = version;
            let message = ServerMessage::Checks { source: place.source, checks: checks.to_vec() };
            self.say(&message);
        }
    }

    /// Whether the page has used up its credit.
    pub fn held(&self) -> bool {
        self.sent - self.acknowledged >= CREDIT
    }

    /// What to send next, or none until the hub announces more or the page acknowledges.
    pub fn next_message(&mut self) -> Option<Next> {
        if let Some(next) = self.waiting.pop_front() {
            return Some(next);
        }
        if self.held() {
            self.hub.counts.held_back.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        // Thousands of pages follow, and most wait for nothing: the room of a long history is given back.
        self.waiting.shrink_to(1);
        (0..self.places.len()).for_each(|at| self.advance(at));
        self.waiting.pop_front()
    }

    /// Takes back what is left of a block: it comes next.
    pub fn put_back(&mut self, rest: Next) {
        self.waiting.push_front(rest);
    }

    /// Puts what is new in a source, as far as it fits one message of ticks, among the waiting messages.
    fn advance(&mut self, at: usize) {
        let Place { source, seq, .. } = self.places[at];
        let (since, renamed) = {
            let store = self.hub.store();
            (store.since(source, seq), store.renamed(source, seq))
        };
        self.announce_checks(at);
        match (since, renamed) {
            (Since::Frames(frames), _) if frames.is_empty() => {}
            (Since::Frames(mut frames), Some(renamed)) => {
                self.announce_series(at, &renamed);
                let mut size = 0;
                let fits = frames.iter().take_while(|f| {
                    size += f.message.len();
                    size <= MAX_MESSAGE
                });
                frames.truncate(fits.count().max(1));
                self.places[at].seq = frames.last().map_or(seq, |f| f.seq);
                let message = match &frames[..] {
                    [frame] => frame.message.clone(),
                    frames => wire::encode_ticks(source, frames.iter().map(|f| f.bytes())).into(),
                };
                self.waiting.push_back(Next::Message(message));
                self.sent += 1;
            }
            (Since::Lost, _) | (_, None) => {
                self.hub.counts.resyncs.fetch_add(1, Ordering::Relaxed);
                self.say(&ServerMessage::Resync);
                // The page forgets all of its sources.
                (0..self.places.len()).for_each(|at| self.restart(at));
            }
        }
    }

    /// The words before the connection ends.
    pub fn goodbye(reason: &str) -> Bytes {
        wire::encode(&ServerMessage::Goodbye { reason: reason.into() }).into()
    }

    /// A sign of life.
    pub fn heartbeat(&self) -> Bytes {
        self.hub.control(&ServerMessage::Heartbeat { now: self.hub.clock.wall() })
    }
}

#[cfg(test)]
mod churn;
#[cfg(test)]
mod tests;
