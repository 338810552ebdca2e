//! The last hours of every source: sealed blocks, in memory or on disk, and the newest ticks as the frames that were
//! broadcast.
//!
//! Each source has one writer (the sampler, or a hub's ingest) and many readers. A reader takes a [`Snapshot`], which
//! clones pointers, and decodes outside the lock. A tick is appended in two steps, so that it can be logged before a
//! reader sees it: [`Store::encode`], then [`Store::push`].
//!
//! The frames since the last cut are the *head*. [`Store::cut`] takes them off as a [`Stretch`]. The caller converts it
//! to blocks outside the lock and returns them with [`Store::sealed`]. Only reading a block on disk touches the disk.

mod announced;
mod block;
mod chunk;
mod coverage;
mod cursor;
mod damage;
mod figures;
mod hold;
mod instants;
mod kept;
mod read;
mod records;
mod removal;
mod restore;
mod retention;
mod rows;
mod series;

pub use announced::AnnouncedSeries;
pub use block::{Block, Unread};
pub use chunk::{Chunk, Column, Stretch};
pub use coverage::{Run, first_number};
pub use cursor::{Cursor, News, Opening, OpeningNow};
pub use damage::Damages;
pub use figures::Figures;
pub use read::Snapshot;
pub use records::{EncodedRecord, MAX_RECORD_BYTES, MAX_RECORDS, Placed, RecordRefused, RecordsSnapshot};
pub use restore::Unwritten;
pub use retention::Retentions;
pub use series::MAX_STORED_SERIES;

use kept::KeptSource;
use shared::catalog::Catalog;
use shared::series::{SeriesDef, SeriesId};
use shared::tick::TickState;
use shared::wire::{Check, CheckState, Source, SourceId, encode_ticks};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The head is cut at multiples of this, milliseconds since the Unix epoch. Shorter blocks waste bytes on the codec's
/// headers, a longer head takes longer to replay.
pub const QUARTER: i64 = 900_000;

/// Maximum number of alive series of a source. A series is alive while it had a value within the ticks of a quarter of
/// an hour. Further series are refused and counted.
pub const MAX_ALIVE_SERIES: usize = 100_000;

/// Maximum sequence of a tick: numbers of a page are exact up to here, and additions to it cannot overflow.
pub const MAX_SEQUENCE: u64 = 1 << 53;

/// Limits of the store.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Samples older than this are dropped, milliseconds. Sources may have [their own
    /// retention](Store::set_retentions).
    pub retention: i64,
    /// Maximum bytes of all sealed blocks in memory; above it the oldest are dropped.
    pub bytes: usize,
}

/// One tick as it was broadcast.
#[derive(Debug)]
pub struct Frame {
    /// Sequence within the source.
    pub seq: u64,
    /// Sequence of the tick before it; there is none between the two.
    pub before: u64,
    /// Milliseconds since the Unix epoch.
    pub t: i64,
    /// The wall clock was set between the tick before and this one.
    pub clock_step: bool,
    /// The whole WebSocket message with this one frame; all readers share its bytes.
    pub message: bytes::Bytes,
    /// Offset of the frame in the message.
    start: usize,
}

impl Frame {
    /// The frame of a tick with the sequences of the tick before and its own, its time, and whether the clock was set
    /// before it.
    fn new(source: SourceId, (before, seq): (u64, u64), t: i64, clock_step: bool, frame: &[u8]) -> Self {
        let message = encode_ticks(source, [frame]);
        let start = message.len() - frame.len();
        Frame { seq, before, t, clock_step, message: message.into(), start }
    }

    /// Whether sequences before it were skipped.
    pub fn after_gap(&self) -> bool {
        self.seq > self.before + 1
    }

    /// The frame alone.
    pub fn bytes(&self) -> &[u8] {
        &self.message[self.start..]
    }
}

/// A tick that is not visible yet.
#[derive(Debug)]
pub struct Encoded {
    source: SourceId,
    frame: Frame,
}

impl Encoded {
    /// The frame alone, for the log.
    pub fn bytes(&self) -> &[u8] {
        self.frame.bytes()
    }
}

/// Counters of the store, for the server's own metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ticks appended.
    pub ticks: u64,
    /// Samples appended.
    pub samples: u64,
    /// Bytes of sealed blocks held in memory now.
    pub chunk_bytes: usize,
    /// Samples in sealed blocks now, on disk or in memory.
    pub chunk_samples: u64,
    /// Blocks dropped from memory because the byte limit was reached, before their time.
    pub chunks_dropped: u64,
    /// Series refused because their source has [`MAX_ALIVE_SERIES`] alive, or history of [`MAX_STORED_SERIES`].
    pub series_refused: u64,
    /// Series that are alive now.
    pub series_alive: u64,
    /// Series that are alive or have history.
    pub series_stored: u64,
    /// Samples refused because the clock was set back to an instant that already has a tick.
    pub refused_again: u64,
    /// Records appended.
    pub records: u64,
    /// Records dropped for lack of memory before they were in a segment.
    pub records_dropped: u64,
    /// Damaged columns and blocks that readers met.
    pub damaged: u64,
    /// Figures of the data folder; none without a data folder.
    pub history: Option<Figures>,
}

/// The last hours of every source.
pub struct Store {
    catalog: Arc<Catalog>,
    rows: rows::Rows,
    limits: Limits,
    sources: Vec<KeptSource>,
    /// See [`take_outdated`](Self::take_outdated).
    outdated: Vec<Arc<Stretch>>,
    /// Keys of sources that were removed.
    removed: Arc<BTreeSet<String>>,
    retentions: Arc<Retentions>,
    /// Bytes of the blocks of all sources that are in memory.
    memory: usize,
    counts: Counts,
    damages: Arc<Damages>,
    /// Incremented when a fact of a source changes.
    facts: u64,
}

/// Ticks after a position in a source.
enum Since {
    /// Frames after the position, oldest first; empty without new ticks.
    Frames(Vec<Arc<Frame>>),
    /// The position is not in memory any more.
    Lost,
}

impl Store {
    /// An empty store.
    pub fn new(catalog: Arc<Catalog>, limits: Limits) -> Self {
        let rows = rows::Rows::new(&catalog);
        Store {
            catalog,
            rows,
            limits,
            sources: Vec::new(),
            outdated: Vec::new(),
            removed: Arc::default(),
            retentions: Arc::default(),
            memory: 0,
            counts: Counts::default(),
            damages: Arc::default(),
            facts: 0,
        }
    }

    /// The table of rows.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Adds a source, identified by its key in files, and assigns its number.
    pub fn add_source(&mut self, key: String, interval: i64, facts: Vec<(String, String)>) -> SourceId {
        let id = self.sources.len() as SourceId;
        self.facts += 1;
        self.sources.push(KeptSource::new(Source::new(id, key, interval, facts), self.facts));
        id
    }

    fn kept(&self, source: SourceId) -> Option<&KeptSource> {
        self.sources.get(usize::from(source))
    }

    /// All sources, in order of number.
    pub fn sources(&self) -> Vec<Arc<Source>> {
        self.sources.iter().map(|s| s.info.clone()).collect()
    }

    /// Whether a source has no data.
    pub fn is_empty(&self, source: SourceId) -> bool {
        self.kept(source).is_none_or(KeptSource::is_empty)
    }

    /// A source, and the value of [`facts`](Self::facts) at its last change.
    pub fn source(&self, source: SourceId) -> Option<(&Arc<Source>, u64)> {
        self.kept(source).map(|kept| (&kept.info, kept.facts))
    }

    /// A number that grows with each change of [`sources`](Self::sources).
    pub fn facts(&self) -> u64 {
        self.facts
    }

    /// Replaces the checks of a source's collectors.
    pub fn set_checks(&mut self, source: SourceId, checks: Vec<Check>) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            let of_server = kept.checks[kept.checks.len() - kept.of_server..].to_vec();
            kept.set_checks([checks, of_server].concat());
        }
    }

    /// Sets a check of a part of the server, beside the checks of each source's collectors.
    pub fn set_check(&mut self, check: &Check) {
        for kept in &mut self.sources {
            let of_server = kept.checks.len() - kept.of_server;
            // The usual case: it is set every second.
            if kept.checks[of_server..].contains(check) {
                continue;
            }
            let mut all = kept.checks.to_vec();
            match all[of_server..].iter_mut().find(|known| known.id == check.id) {
                Some(known) => known.clone_from(check),
                None => {
                    all.push(check.clone());
                    kept.of_server += 1;
                }
            }
            kept.set_checks(all);
        }
    }

    /// The checks of a source's collectors, without those of the server.
    pub fn own_checks(&self, source: SourceId) -> Vec<Check> {
        let own = self.kept(source).map(|kept| kept.checks[..kept.checks.len() - kept.of_server].to_vec());
        own.unwrap_or_default()
    }

    /// The checks of a source's collectors and of the server, and a version that grows with each change.
    pub fn checks(&self, source: SourceId) -> (Arc<Vec<Check>>, u64) {
        self.kept(source).map(|k| (k.checks.clone(), k.checks_version)).unwrap_or_default()
    }

    /// Figures of the data folder; none without a data folder.
    pub fn figures(&self) -> Option<Figures> {
        self.counts.history
    }

    /// Sets the figures of the data folder.
    pub fn set_figures(&mut self, figures: Figures) {
        self.counts.history = Some(figures);
    }

    /// The id of a series, assigned at its first appearance. It is assigned again after all its data was dropped, which
    /// changes its [generation](Self::generations).
    ///
    /// None for a row that is not in the table, and for a source that has [`MAX_ALIVE_SERIES`] alive or history of
    /// [`MAX_STORED_SERIES`].
    pub fn intern(&mut self, source: SourceId, def: SeriesDef) -> Option<SeriesId> {
        self.intern_among(source, def, MAX_ALIVE_SERIES)
    }

    /// Likewise for a source with at most `most` alive series.
    pub fn intern_among(&mut self, source: SourceId, def: SeriesDef, most: usize) -> Option<SeriesId> {
        let fixed = self.fixed_rows();
        let kept = self.sources.get_mut(usize::from(source))?;
        if let Some(id) = kept.series.id(&def) {
            return Some(id);
        }
        let (steps, is_fixed) = (self.catalog.metric(&def)?.steps, usize::from(def.metric) < fixed);
        if !kept.series.room(kept.ticks, kept.max_idle_ticks(), most.min(MAX_ALIVE_SERIES)) {
            self.counts.series_refused += 1;
            return None;
        }
        if !is_fixed {
            kept.rows.insert(def.metric);
        }
        Some(kept.announce(def, steps))
    }

    /// The id of a known series.
    pub fn id(&self, source: SourceId, def: &SeriesDef) -> Option<SeriesId> {
        self.kept(source)?.series.id(def)
    }

    /// Series of a source from id `first` on.
    pub fn series(&self, source: SourceId, first: usize) -> &[SeriesDef] {
        self.kept(source).and_then(|k| k.series.defs().get(first..)).unwrap_or_default()
    }

    /// By series id, the number of times that the id was reassigned to another series. A holder of an id stores this
    /// number with it.
    pub fn generations(&self, source: SourceId) -> &[u32] {
        self.kept(source).map(|k| k.series.generations()).unwrap_or_default()
    }

    /// Series redefined or unused since the tick of sequence `since`, for a reader that knew them all then, in order of
    /// id. None if that is not known any more.
    fn renamed(&self, source: SourceId, since: u64) -> Option<Vec<SeriesId>> {
        self.kept(source)?.series.renamed(since)
    }

    /// Series of a source that are alive now.
    pub fn series_alive(&self, source: SourceId) -> usize {
        self.kept(source).map_or(0, |kept| kept.series.alive(kept.ticks, kept.max_idle_ticks()))
    }

    /// Bytes of the sealed blocks of a source on disk.
    pub fn disk_bytes(&self, source: SourceId) -> u64 {
        self.kept(source).map_or(0, |kept| kept.blocks.iter().map(Block::disk_bytes).sum())
    }

    /// Times of the oldest stored sample and of the newest of a series.
    pub fn span(&self, source: SourceId, id: SeriesId) -> Option<(i64, i64)> {
        let kept = self.kept(source)?;
        let (first, last) = kept.series.span(id)?;
        let oldest = kept.oldest()?;
        (last >= oldest).then_some((first.max(oldest), last))
    }

    /// [`span`](Self::span) of each series of a source from id `first` on.
    pub fn spans(&self, source: SourceId, first: usize) -> impl Iterator<Item = Option<(i64, i64)>> + '_ {
        let kept = self.kept(source);
        let (end, oldest) = (kept.map_or(first, |kept| kept.series.defs().len()), kept.and_then(KeptSource::oldest));
        (first..end).map(move |id| {
            let ((first, last), oldest) = (kept?.series.span(id as SeriesId)?, oldest?);
            (last >= oldest).then_some((first.max(oldest), last))
        })
    }

    /// Encodes the next tick of a source, which becomes visible when it is [pushed](Self::push). `values` are by series
    /// id, NaN is absent. Each encoded tick is pushed before the next is encoded.
    ///
    /// None for an unknown source, and at an instant that already has a tick: the first tick stays, and the refused
    /// values are counted.
    pub fn encode(&mut self, source: SourceId, t: i64, clock_step: bool, values: &[f64]) -> Option<Encoded> {
        let seq = self.kept(source)?.next_seq();
        self.encode_at(source, seq, t, clock_step, values)
    }

    /// Likewise a tick with a sequence assigned elsewhere, above the newest and at most [`MAX_SEQUENCE`]; none
    /// otherwise. The sequences between the newest and this one are a gap: no reader waits for them, and a block ends
    /// before it.
    pub fn encode_at(
        &mut self,
        source: SourceId,
        seq: u64,
        t: i64,
        clock_step: bool,
        values: &[f64],
    ) -> Option<Encoded> {
        let kept = self.sources.get_mut(usize::from(source))?;
        let before = kept.encoder.seq();
        if kept.removed || seq <= before || seq > MAX_SEQUENCE {
            return None;
        }
        if let Some(until) = kept.instants.taken(t) {
            let known = &values[..values.len().min(kept.series.defs().len())];
            self.counts.refused_again += known.iter().filter(|v| v.is_finite()).count() as u64;
            kept.clock_step |= clock_step;
            if !std::mem::replace(&mut kept.set_back, true) {
                self.set_check(&clock(Some(until.saturating_sub(t) / 1_000 + 1)));
            }
            return None;
        }
        // The mark of a tick that was left out moves to the next one.
        let clock_step = std::mem::take(&mut kept.clock_step) | clock_step;
        let frame = kept.encoder.encode_at(seq, t, clock_step, values);
        let frame = Frame::new(source, (before, kept.encoder.seq()), kept.encoder.t(), clock_step, &frame);
        if std::mem::take(&mut kept.set_back) {
            self.set_check(&clock(None));
        }
        Some(Encoded { source, frame })
    }

    /// Makes an encoded tick the newest. Returns its sequence.
    ///
    /// # Panics
    /// If it does not follow the newest: another tick was encoded before this one was pushed.
    pub fn push(&mut self, encoded: Encoded) -> u64 {
        let Encoded { source, frame } = encoded;
        let (seq, t) = (frame.seq, frame.t);
        self.counts.ticks += 1;
        self.counts.samples += self.sources[usize::from(source)].push(frame);
        self.drop_old(source, t);
        seq
    }

    /// Appends a tick that is not logged: [`Store::encode`] and [`Store::push`]. Returns its sequence.
    pub fn append(&mut self, source: SourceId, t: i64, clock_step: bool, values: &[f64]) -> Option<u64> {
        let encoded = self.encode(source, t, clock_step, values)?;
        Some(self.push(encoded))
    }

    /// Cuts the head of a source; its ticks are read from the stretch until that is [sealed](Self::sealed). None for an
    /// empty head.
    pub fn cut(&mut self, source: SourceId) -> Option<Arc<Stretch>> {
        let (stretch, outdated) = self.sources.get_mut(usize::from(source))?.cut()?;
        self.outdated.extend(outdated);
        Some(stretch)
    }

    /// Whether a source has had no tick since the newest cut.
    pub fn is_cut(&self, source: SourceId) -> bool {
        self.kept(source).is_none_or(KeptSource::is_cut)
    }

    /// Stretches that cuts have released. Drop them outside all locks, since they hold a million frames for a thousand
    /// machines.
    pub fn take_outdated(&mut self) -> Vec<Arc<Stretch>> {
        std::mem::take(&mut self.outdated)
    }

    /// Replaces a stretch that was cut by its blocks.
    pub fn sealed(&mut self, source: SourceId, stretch: &Arc<Stretch>, blocks: Vec<Block>) {
        if let Some(now) = self.change(source, |kept| {
            kept.sealed(stretch, blocks);
            kept.state.t()
        }) {
            self.drop_old(source, now);
        }
    }

    /// Cuts and seals the head of a source in memory, in one step: for stores without other readers.
    pub fn seal(&mut self, source: SourceId) {
        if let Some(stretch) = self.cut(source) {
            let chunks = stretch.transpose().expect("this store encoded these frames one after the other");
            let blocks = chunks.into_iter().map(|chunk| Block::Memory(Arc::new(chunk)));
            self.sealed(source, &stretch, blocks.collect());
            self.outdated.clear();
        }
    }

    fn drop_old(&mut self, source: SourceId, now: i64) {
        let retention = self.retention(source);
        self.change(source, |kept| kept.drop_old(now, retention));
        while self.memory > self.limits.bytes {
            let oldest = |s: &KeptSource| s.blocks.iter().find(|b| b.in_memory()).map(Block::from);
            let oldest = self.sources.iter().filter_map(|s| Some((oldest(s)?, s.info.id))).min();
            let Some((_, source)) = oldest else { break };
            self.change(source, KeptSource::drop_oldest_in_memory);
            self.counts.chunks_dropped += 1;
        }
    }

    /// Changes the data of a source, and updates the memory count of all sources; none for an unknown source.
    fn change<T>(&mut self, source: SourceId, change: impl FnOnce(&mut KeptSource) -> T) -> Option<T> {
        let kept = self.sources.get_mut(usize::from(source))?;
        let before = kept.memory;
        let changed = change(kept);
        self.memory = self.memory - before + kept.memory;
        Some(changed)
    }

    /// Frames of a source after sequence `place`.
    fn since(&self, source: SourceId, place: u64) -> Since {
        let Some(kept) = self.kept(source) else { return Since::Lost };
        let newest = kept.state.seq();
        if place == newest {
            return Since::Frames(Vec::new());
        }
        kept.after(place).map_or(Since::Lost, Since::Frames)
    }

    /// All data of a source between two times, to be decoded outside the lock.
    pub fn snapshot(&self, source: SourceId, from: i64, to: i64) -> Option<Snapshot> {
        let kept = self.kept(source)?;
        Some(Snapshot {
            blocks: kept.blocks.iter().filter(|b| b.to() >= from && b.from() <= to).cloned().collect(),
            stretches: kept.unsealed(from),
            damages: self.damages.clone(),
            from,
            to,
        })
    }

    /// Sealed blocks of a span, the keyframe before the unsealed ticks, and its sequence.
    fn opening(&self, source: SourceId, from: i64) -> Option<(Vec<Block>, Vec<u8>, u64)> {
        let kept = self.kept(source)?;
        let blocks = kept.blocks.iter().filter(|b| b.to() >= from).cloned().collect();
        let base = kept.base_of_unsealed();
        Some((blocks, base.keyframe(), base.seq()))
    }

    /// Start of a reader that gets the newest ticks first: see [`Cursor::begin_now`].
    fn opening_now(&self, source: SourceId, from: i64, ticks: usize) -> Option<OpeningNow> {
        self.kept(source).map(|kept| kept.opening_now(from, ticks))
    }

    /// Time and values of the newest tick, by series id.
    pub fn newest(&self, source: SourceId) -> Option<(i64, Vec<f64>)> {
        let kept = self.kept(source)?;
        (kept.state.seq() > 0).then(|| (kept.state.t(), kept.state.values().to_vec()))
    }

    /// The newest value of a series while that is current; see [`Series::current`](series::Series::current).
    pub fn current(&self, source: SourceId, id: SeriesId) -> Option<f64> {
        let kept = self.kept(source)?;
        kept.series.current(id, kept.ticks)
    }

    /// The state after the newest tick, for a reader that begins here.
    pub fn state(&self, source: SourceId) -> Option<&TickState> {
        self.kept(source).map(|k| &k.state)
    }

    /// Damaged parts of the history.
    pub fn damages(&self) -> &Arc<Damages> {
        &self.damages
    }

    /// Counters for the server's own metrics.
    pub fn counts(&self) -> Counts {
        Counts {
            chunk_bytes: self.memory,
            chunk_samples: self.sources.iter().flat_map(|s| &s.blocks).map(Block::samples).sum(),
            damaged: self.damages.count(),
            series_alive: self.sources.iter().map(|s| s.series.alive(s.ticks, s.max_idle_ticks()) as u64).sum(),
            series_stored: self.sources.iter().map(|s| s.series.stored() as u64).sum(),
            ..self.counts
        }
    }
}

/// State of the clock; `left` is the number of seconds for which ticks will be left out, none while they are stored.
fn clock(left: Option<i64>) -> Check {
    let reason = left.map(|left| {
        format!(
            "the clock was set back: for about {left} s no new samples are stored or shown, because this time \
            already has values"
        )
    });
    Check {
        id: "clock".into(),
        state: if left.is_some() { CheckState::Partial } else { CheckState::Ok },
        tried: Vec::new(),
        found: "an instant has only one value".into(),
        remedy: if left.is_some() { "nothing to do: it ends by itself".into() } else { String::new() },
        reason: reason.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
