//! Following a source: the position of a reader, and the news after it.
//!
//! A [`Cursor`] is the only state per reader. It holds no ticks: those are taken from the store when the reader is
//! ready for them. A reader that resumes too late begins again. A cursor can also hold the values after its last tick,
//! for readers that need values instead of frames.
//!
//! Each call takes the store, which its caller has locked. The results are read outside the lock.

use super::{Block, Chunk, Frame, Placed, Since, Store, Stretch};
use shared::record::Record;
use shared::series::{SeriesId, Steps};
use shared::tick::TickState;
use shared::wire::SourceId;
use std::sync::Arc;

/// The position of a reader in one source.
#[derive(Debug)]
pub struct Cursor {
    source: SourceId,
    /// Sequence of the reader's last tick; 0 before the first.
    seq: u64,
    /// The reader knows the series with ids below this,
    known: usize,
    /// with their definitions when this was the newest tick.
    known_at: u64,
    /// State after the tick `seq`. None if the reader needs frames alone, or `seq` was [sought](Cursor::seek).
    state: Option<Box<TickState>>,
    keeps_state: bool,
    /// Number of the reader's last record. None if it has those before its tick, without their numbers being known.
    record: Option<u64>,
}

/// News for a reader.
#[derive(Debug)]
pub enum News {
    /// The ticks after its position, oldest first, and the series to send before them: the new and redefined ones, in
    /// order of id. Both are empty without a tick.
    Ticks(Vec<Arc<Frame>>, Vec<SeriesId>),
    /// The ticks after its position are not in memory any more, or the redefined series are unknown: the reader [begins
    /// again](Cursor::begin).
    Lost,
}

/// Start of a reader.
pub struct Opening {
    /// Sealed blocks with samples of the requested span.
    pub blocks: Vec<Block>,
    /// The tick after them, as a self-contained frame. The ticks that follow it are in memory.
    pub keyframe: Vec<u8>,
    /// All series.
    pub series: Vec<SeriesId>,
}

/// Start of a reader that gets the newest ticks first. [`read`](Self::read) makes its messages outside the lock.
pub struct OpeningNow {
    /// The tick of the keyframe.
    pub(super) seq: u64,
    pub(super) blocks: Vec<Block>,
    /// Cut off the head and not sealed yet.
    pub(super) cuts: Vec<Arc<Stretch>>,
    /// The head up to the keyframe.
    pub(super) before: Stretch,
}

impl OpeningNow {
    /// The keyframe, which `cursor` then has applied, and the data before it: sealed blocks of the span, then all
    /// unsealed ticks. Their columns are made when they are read. All unsealed ticks, since the answer to a later
    /// request has sealed ones only.
    ///
    /// # Panics
    /// If the frames do not follow each other; those of a store do.
    pub fn read(self, cursor: &mut Cursor) -> (Vec<u8>, Vec<Block>) {
        let OpeningNow { mut blocks, cuts, before, .. } = self;
        let mut state = before.base.clone();
        for frame in &before.frames {
            state.apply(frame.bytes()).expect("the frames of a store follow each other");
        }
        let cuts = cuts.iter().map(|cut| Stretch { base: cut.base.clone(), frames: cut.frames.clone() });
        let unsealed = cuts.chain([before]).filter(|stretch| !stretch.frames.is_empty());
        blocks.extend(unsealed.flat_map(Chunk::of_log).map(|chunk| Block::Memory(Arc::new(chunk))));
        let keyframe = state.keyframe();
        if cursor.keeps_state {
            cursor.state = Some(Box::new(state));
        }
        (keyframe, blocks)
    }
}

impl Cursor {
    /// The position before the first tick of a source; no series is known.
    pub fn new(source: SourceId) -> Self {
        Self::resumed(source, 0, 0)
    }

    /// The position of a reader that has the tick `seq`, and knows this number of series with their definitions at that
    /// tick.
    pub fn resumed(source: SourceId, seq: u64, known: usize) -> Self {
        Cursor { source, seq, known, known_at: seq, state: None, keeps_state: false, record: None }
    }

    /// The same cursor with the [values](Self::state) after the last tick.
    pub fn with_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    /// The source that is followed.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Sequence of the reader's last tick; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// State after the reader's last tick; none before it has begun, and for a cursor without state.
    pub fn state(&self) -> Option<&TickState> {
        self.state.as_deref()
    }

    /// The news. The reader's position advances when it [takes](Self::take) the ticks. The series count as known from
    /// this call on.
    pub fn news(&mut self, store: &Store) -> News {
        match store.since(self.source, self.seq) {
            Since::Frames(frames) if frames.is_empty() => News::Ticks(frames, Vec::new()),
            Since::Frames(frames) => match self.series(store) {
                Some(series) => News::Ticks(frames, series),
                None => News::Lost,
            },
            Since::Lost => News::Lost,
        }
    }

    /// Series that are new or redefined for the reader, in order of id; they count as known from now on. None if that
    /// cannot be determined any more: then no series counts as known, and the next call returns all.
    pub fn series(&mut self, store: &Store) -> Option<Vec<SeriesId>> {
        let (steps, newest) = store.state(self.source).map(|state| (state.steps(), state.seq()))?;
        let Some(mut series) = store.renamed(self.source, self.known_at) else {
            self.forget();
            return None;
        };
        series.retain(|id| (*id as usize) < self.known);
        if let Some(state) = &mut self.state {
            series.iter().for_each(|id| state.redefine(*id, steps[*id as usize]));
            state.extend(steps[state.steps().len().min(steps.len())..].iter().copied());
        }
        series.extend(self.known as SeriesId..steps.len() as SeriesId);
        (self.known, self.known_at) = (steps.len(), newest);
        Some(series)
    }

    /// Advances over this tick: the next one of those returned by [`news`](Self::news).
    ///
    /// # Panics
    /// If it does not follow the tick before, and the cursor keeps the values.
    pub fn take(&mut self, frame: &Frame) {
        if let Some(state) = &mut self.state {
            state.apply(frame.bytes()).expect("the frames of a store follow each other");
        }
        self.seq = frame.seq;
    }

    /// The records that the reader has yet to [take](Self::take_record), as far as they are in memory, ascending by
    /// number. Each belongs between the tick that it is placed after and the next.
    pub fn records(&self, store: &Store) -> Vec<Placed> {
        match self.record {
            Some(last) => store.records_since(self.source, last),
            // Those placed after this very tick may have been sent: a page recognizes them by number.
            None => store.records_since(self.source, 0).into_iter().filter(|one| one.after >= self.seq).collect(),
        }
    }

    /// Advances over this record.
    pub fn take_record(&mut self, record: &Record) {
        self.record = Some(record.n);
    }

    /// Begins again: with the sealed blocks from `from` on, milliseconds since the Unix epoch, then the keyframe, which
    /// becomes the position. Records of that span in memory come next. None for an unknown source.
    pub fn begin(&mut self, store: &Store, from: i64) -> Option<Opening> {
        let (blocks, keyframe, seq) = store.opening(self.source, from)?;
        let state = store.state(self.source)?;
        self.begin_records(store, from);
        self.place(seq, state.seq(), state.steps(), |state| {
            // The store has just made it, of the same series.
            state.apply(&keyframe).expect("a keyframe stands alone");
        });
        Some(Opening { blocks, keyframe, series: (0..self.known as SeriesId).collect() })
    }

    /// Begins again with the newest `ticks`: the position is before them, and all series are known. Earlier data is in
    /// the [opening](OpeningNow::read): sealed blocks from `from` on and unsealed ticks. Records come next, as in
    /// [`begin`](Self::begin). None for an unknown source.
    pub fn begin_now(&mut self, store: &Store, from: i64, ticks: usize) -> Option<(OpeningNow, Vec<SeriesId>)> {
        let opening = store.opening_now(self.source, from, ticks)?;
        let state = store.state(self.source)?;
        self.begin_records(store, from);
        (self.seq, self.known, self.known_at, self.state) = (opening.seq, state.steps().len(), state.seq(), None);
        Some((opening, (0..self.known as SeriesId).collect()))
    }

    /// Moves before the first record of a span that is in memory.
    fn begin_records(&mut self, store: &Store, from: i64) {
        // A record may have an earlier time than the one before it. So the first match counts, not the last mismatch.
        let first = store.records_since(self.source, 0).into_iter().find(|one| one.record.t >= from);
        self.record = Some(first.map_or(store.last_record(self.source), |one| one.record.n - 1));
    }

    /// Begins again at the newest tick, which becomes the position; returns all series. No earlier data is read.
    pub fn begin_newest(&mut self, store: &Store) -> Vec<SeriesId> {
        self.record = Some(store.last_record(self.source));
        if let Some(newest) = store.state(self.source) {
            self.place(newest.seq(), newest.seq(), newest.steps(), |state| state.clone_from(newest));
        }
        (0..self.known as SeriesId).collect()
    }

    /// Moves to an earlier position of the reader, however old. The values there are unknown: the next data is
    /// [sealed](Self::sealed), or follows a new [start](Self::begin).
    pub fn seek(&mut self, seq: u64) {
        (self.seq, self.state) = (seq, None);
    }

    /// The block with the tick after the reader's position, or with the next stored one; none if that is not sealed.
    pub fn sealed(&self, store: &Store) -> Option<Block> {
        let kept = store.kept(self.source)?;
        let sealed_to = kept.base_of_unsealed().seq();
        let next = kept.blocks.iter().find(|block| block.last_seq() > self.seq)?;
        (self.seq < sealed_to && next.first_seq() <= sealed_to).then(|| next.clone())
    }

    /// Sets the position to this tick, with all series known as of the newest tick; `steps` are those of the series.
    fn place(&mut self, seq: u64, newest: u64, steps: &[Steps], set: impl FnOnce(&mut TickState)) {
        (self.seq, self.known, self.known_at, self.state) = (seq, steps.len(), newest, None);
        if self.keeps_state {
            let mut state = Box::<TickState>::default();
            state.extend(steps.iter().copied());
            set(&mut state);
            self.state = Some(state);
        }
    }

    /// Marks all series as unknown.
    fn forget(&mut self) {
        (self.known, self.known_at, self.state) = (0, u64::MAX, None);
    }
}

#[cfg(test)]
mod tests;
