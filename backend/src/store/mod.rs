//! The last hours of every source, in memory: sealed columns, and the newest ticks as the frames that were broadcast.
//!
//! There is one writer (the sampler; later also a hub's ingest) and many readers. A reader takes a [`Snapshot`], which
//! clones pointers, and decodes outside the lock. What stays narrow is the face: [`Store::intern`], [`Store::append`],
//! [`Store::snapshot`], [`Store::since`]; a later store on disk stands behind the same four.

mod chunk;
mod read;

pub use chunk::Chunk;
pub use read::Snapshot;

use shared::catalog::{Catalog, Chart, Metric};
use shared::series::{SeriesDef, SeriesId};
use shared::tick::TickState;
use shared::wire::{Check, Source, SourceId, encode_ticks};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Ticks in a sealed chunk. Below about 600 the codec loses to its headers; above, the head costs more to replay.
pub const SEAL: usize = 900;

/// Limits of what is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Samples older than this are dropped, milliseconds.
    pub retention: i64,
    /// Bytes of all sealed chunks; the oldest are dropped beyond it.
    pub bytes: usize,
}

/// One tick as it was broadcast.
#[derive(Debug)]
pub struct Frame {
    /// Sequence within the source, from 1.
    pub seq: u64,
    /// Milliseconds since the Unix epoch.
    pub t: i64,
    /// The whole WebSocket message with this one frame; the same bytes go to every reader.
    pub message: axum::body::Bytes,
    /// Where the frame begins in the message.
    start: usize,
}

impl Frame {
    /// The frame alone.
    pub fn bytes(&self) -> &[u8] {
        &self.message[self.start..]
    }
}

/// What one source has in memory.
struct Kept {
    info: Source,
    defs: Vec<SeriesDef>,
    ids: HashMap<SeriesDef, SeriesId>,
    /// Times of the first and last sample by series.
    spans: Vec<Option<(i64, i64)>>,
    checks: Arc<Vec<Check>>,
    checks_version: u64,
    /// After the newest tick.
    state: TickState,
    /// Before the first frame of the head.
    base: TickState,
    chunks: VecDeque<Arc<Chunk>>,
    chunk_bytes: usize,
    /// Frames of the head, and before them those of the chunk sealed last, from which a page can still resume.
    frames: VecDeque<Arc<Frame>>,
    /// How many of `frames` are the head.
    head: usize,
}

/// Counts of what went through, for our own health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Ticks appended.
    pub ticks: u64,
    /// Samples appended.
    pub samples: u64,
    /// Bytes of sealed chunks held now.
    pub chunk_bytes: usize,
    /// Samples in sealed chunks held now.
    pub chunk_samples: u64,
    /// Chunks dropped because the byte limit was reached, before their time.
    pub chunks_dropped: u64,
}

/// The last hours of every source.
pub struct Store {
    catalog: Arc<Catalog>,
    limits: Limits,
    sources: Vec<Kept>,
    counts: Counts,
}

/// What a reader gets that follows a source.
pub enum Since {
    /// Frames after its place, oldest first; empty when nothing is new.
    Frames(Vec<Arc<Frame>>),
    /// Its place is not in memory any more.
    Lost,
}

impl Store {
    /// An empty store.
    pub fn new(catalog: Arc<Catalog>, limits: Limits) -> Self {
        Store { catalog, limits, sources: Vec::new(), counts: Counts::default() }
    }

    /// The table.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// Adds a row to the table, with its chart, unless it is there; its position, or none when the table is full. Readers
    /// keep the table that they have taken: rows are only ever added behind those that are there.
    pub fn add_row(&mut self, metric: Metric, chart: Chart) -> Option<u16> {
        Arc::make_mut(&mut self.catalog).add(metric, chart)
    }

    /// Adds a source and gives it its number.
    pub fn add_source(&mut self, name: String, interval: i64, facts: Vec<(String, String)>) -> SourceId {
        let id = self.sources.len() as SourceId;
        self.sources.push(Kept {
            info: Source { id, name, interval, facts },
            defs: Vec::new(),
            ids: HashMap::new(),
            spans: Vec::new(),
            checks: Arc::default(),
            checks_version: 0,
            state: TickState::default(),
            base: TickState::default(),
            chunks: VecDeque::new(),
            chunk_bytes: 0,
            frames: VecDeque::new(),
            head: 0,
        });
        id
    }

    fn kept(&self, source: SourceId) -> Option<&Kept> {
        self.sources.get(usize::from(source))
    }

    /// All sources.
    pub fn sources(&self) -> Vec<Source> {
        self.sources.iter().map(|s| s.info.clone()).collect()
    }

    /// Replaces what is said of a source's collectors.
    pub fn set_checks(&mut self, source: SourceId, checks: Vec<Check>) {
        if let Some(kept) = self.sources.get_mut(usize::from(source))
            && *kept.checks != checks
        {
            kept.checks = Arc::new(checks);
            kept.checks_version += 1;
        }
    }

    /// How a source's collectors stand, and a version that grows with each change.
    pub fn checks(&self, source: SourceId) -> (Arc<Vec<Check>>, u64) {
        self.kept(source).map(|k| (k.checks.clone(), k.checks_version)).unwrap_or_default()
    }

    /// The number of a series, given at its first appearance.
    pub fn intern(&mut self, source: SourceId, def: SeriesDef) -> Option<SeriesId> {
        let kept = self.sources.get_mut(usize::from(source))?;
        if let Some(&id) = kept.ids.get(&def) {
            return Some(id);
        }
        let id = kept.defs.len() as SeriesId;
        kept.state.extend([self.catalog.metric(&def)?.steps]);
        kept.ids.insert(def.clone(), id);
        kept.defs.push(def);
        kept.spans.push(None);
        Some(id)
    }

    /// Series of a source from id `first` on.
    pub fn series(&self, source: SourceId, first: usize) -> &[SeriesDef] {
        self.kept(source).and_then(|k| k.defs.get(first..)).unwrap_or_default()
    }

    /// Times of the oldest sample kept and of the newest of a series.
    pub fn span(&self, source: SourceId, id: SeriesId) -> Option<(i64, i64)> {
        let kept = self.kept(source)?;
        let (first, last) = (*kept.spans.get(id as usize)?)?;
        // The smallest, not the first: the clock may have stepped back in between.
        let head = kept.frames.get(kept.frames.len() - kept.head).map(|f| f.t);
        let oldest = kept.chunks.iter().map(|c| c.from).chain(head).min()?;
        (last >= oldest).then_some((first.max(oldest), last))
    }

    /// Appends a tick; `values` are by series id, NaN is absent. Returns its sequence.
    pub fn append(&mut self, source: SourceId, t: i64, clock_step: bool, values: &[f64]) -> Option<u64> {
        let kept = self.sources.get_mut(usize::from(source))?;
        self.counts.ticks += 1;
        for (_, span) in values.iter().zip(&mut kept.spans).filter(|(v, _)| v.is_finite()) {
            self.counts.samples += 1;
            *span = Some((span.map_or(t, |(first, _)| first.min(t)), t));
        }
        // A chunk's times only grow: after a step back a new one begins.
        if kept.head >= SEAL || (kept.head > 0 && t <= kept.state.t()) {
            kept.seal();
        }
        let frame = kept.state.encode(t, clock_step, values);
        let message = encode_ticks(source, [&frame[..]]);
        let start = message.len() - frame.len();
        let seq = kept.state.seq();
        kept.frames.push_back(Arc::new(Frame { seq, t, message: message.into(), start }));
        kept.head += 1;
        self.drop_old(usize::from(source), t);
        Some(seq)
    }

    fn drop_old(&mut self, source: usize, now: i64) {
        let before = now - self.limits.retention;
        let kept = &mut self.sources[source];
        // By age, and by the ticks that came after, should the clock have been ahead when it was stamped.
        let ticks = (self.limits.retention / kept.info.interval.max(1)) as u64;
        let newest = kept.state.seq();
        while kept.chunks.front().is_some_and(|c| c.to < before || c.first_seq + c.ticks as u64 + ticks <= newest) {
            kept.drop_chunk();
        }
        let mut total: usize = self.sources.iter().map(|s| s.chunk_bytes).sum();
        while total > self.limits.bytes {
            let oldest = self.sources.iter_mut().filter(|s| !s.chunks.is_empty()).min_by_key(|s| s.chunks[0].from);
            let Some(kept) = oldest else { break };
            total -= kept.drop_chunk();
            self.counts.chunks_dropped += 1;
        }
    }

    /// Frames of a source after sequence `place`.
    pub fn since(&self, source: SourceId, place: u64) -> Since {
        let Some(kept) = self.kept(source) else { return Since::Lost };
        let newest = kept.state.seq();
        if place == newest {
            return Since::Frames(Vec::new());
        }
        match kept.frames.front() {
            Some(first) if place < newest && place + 1 >= first.seq => {
                Since::Frames(kept.frames.iter().skip((place + 1 - first.seq) as usize).cloned().collect())
            }
            _ => Since::Lost,
        }
    }

    /// Everything of a source between two times, to be decoded outside the lock.
    pub fn snapshot(&self, source: SourceId, from: i64, to: i64) -> Option<Snapshot> {
        let kept = self.kept(source)?;
        Some(Snapshot {
            chunks: kept.chunks.iter().filter(|c| c.to >= from && c.from <= to).cloned().collect(),
            base: kept.base.clone(),
            frames: kept.frames.iter().skip(kept.frames.len() - kept.head).cloned().collect(),
            steps: kept.state.steps().to_vec(),
            from,
            to,
        })
    }

    /// Sealed chunks of a span, the keyframe in front of the head, and the sequence it stands for.
    pub fn opening(&self, source: SourceId, from: i64) -> Option<(Vec<Arc<Chunk>>, Vec<u8>, u64)> {
        let kept = self.kept(source)?;
        let chunks = kept.chunks.iter().filter(|c| c.to >= from).cloned().collect();
        Some((chunks, kept.base.keyframe(), kept.base.seq()))
    }

    /// Time and values of the newest tick, by series id.
    pub fn newest(&self, source: SourceId) -> Option<(i64, Vec<f64>)> {
        let kept = self.kept(source)?;
        (kept.state.seq() > 0).then(|| (kept.state.t(), kept.state.values().to_vec()))
    }

    /// The state after the newest tick, for a reader that begins here.
    pub fn state(&self, source: SourceId) -> Option<&TickState> {
        self.kept(source).map(|k| &k.state)
    }

    /// Counts for our own health.
    pub fn counts(&self) -> Counts {
        Counts {
            chunk_bytes: self.sources.iter().map(|s| s.chunk_bytes).sum(),
            chunk_samples: self.sources.iter().flat_map(|s| &s.chunks).map(|c| c.samples).sum(),
            ..self.counts
        }
    }
}

impl Kept {
    fn seal(&mut self) {
        let head = self.frames.range(self.frames.len() - self.head..).cloned().collect::<Vec<_>>();
        let mut state = self.base.clone();
        state.extend(self.state.steps()[state.steps().len()..].iter().copied());
        let chunk = Chunk::seal(&mut state, &head);
        self.chunk_bytes += chunk.bytes;
        self.chunks.push_back(Arc::new(chunk));
        self.base = state;
        self.frames.drain(..self.frames.len() - self.head);
        self.head = 0;
    }

    fn drop_chunk(&mut self) -> usize {
        let bytes = self.chunks.pop_front().map_or(0, |c| c.bytes);
        self.chunk_bytes -= bytes;
        bytes
    }
}

#[cfg(test)]
mod tests;
