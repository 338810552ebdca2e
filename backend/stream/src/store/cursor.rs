//! Following a source: a reader's place in it, and what is new there since.
//!
//! A [`Cursor`] is all that the server keeps for a reader. It holds no ticks: those are taken from the store when the
//! reader is ready for them, and a reader that comes back too late begins anew. It may also hold the values after its
//! last tick, for readers who want those and not the frames.
//!
//! Each call takes the store, which its caller has locked; what the calls give is read outside the lock.

use super::{Block, Chunk, Frame, Placed, Since, Store, Stretch};
use shared::record::Record;
use shared::series::{SeriesId, Steps};
use shared::tick::TickState;
use shared::wire::SourceId;
use std::sync::Arc;

/// A reader's place in one source.
#[derive(Debug)]
pub struct Cursor {
    source: SourceId,
    /// Sequence of the last tick that the reader has; 0 before the first.
    seq: u64,
    /// The reader knows the series with ids below this,
    known: usize,
    /// as they were called when this was the newest tick.
    known_at: u64,
    /// After the tick `seq`; none where the reader wants frames alone, or `seq` was [sought](Cursor::seek).
    state: Option<Box<TickState>>,
    keeps_state: bool,
    /// Number of the last record that the reader has; none where it has those in front of its tick, without knowing which.
    record: Option<u64>,
}

/// What is new for a reader.
#[derive(Debug)]
pub enum News {
    /// The ticks behind its place, oldest first, and before them the series that are new to it, or others than it knows
    /// them as, in order of id. Both are empty where no tick came.
    Ticks(Vec<Arc<Frame>>, Vec<SeriesId>),
    /// The ticks behind its place are not in memory any more, or which series became others since is not known: it
    /// [begins anew](Cursor::begin).
    Lost,
}

/// Where a reader begins.
pub struct Opening {
    /// Sealed blocks with samples of the span that was asked for.
    pub blocks: Vec<Block>,
    /// The tick behind them, as a frame that stands alone. The ticks that follow it are in memory.
    pub keyframe: Vec<u8>,
    /// All series.
    pub series: Vec<SeriesId>,
}

/// Where a reader begins that wants the newest ticks first; what is sent of it is made outside the lock, by
/// [`read`](Self::read).
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
    /// The keyframe, which the reader then has, and what is before it: sealed blocks of the span, and behind them all that is
    /// not sealed, whose columns are made when they are read. All of that, since an answer to a later request has only what
    /// is sealed.
    ///
    /// # Panics
    /// Where the frames do not follow each other; those of a store do.
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
    /// The place before the first tick of a source; no series is known.
    pub fn new(source: SourceId) -> Self {
        Self::resumed(source, 0, 0)
    }

    /// The place of a reader that has the tick `seq`, and knows as many series as they were called then.
    pub fn resumed(source: SourceId, seq: u64, known: usize) -> Self {
        Cursor { source, seq, known, known_at: seq, state: None, keeps_state: false, record: None }
    }

    /// The same with the [values](Self::state) after the last tick.
    pub fn with_state(mut self) -> Self {
        self.keeps_state = true;
        self
    }

    /// The source that is followed.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Sequence of the last tick that the reader has; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// After the last tick that the reader has; none before it has begun, and for a cursor without state.
    pub fn state(&self) -> Option<&TickState> {
        self.state.as_deref()
    }

    /// What is new. The reader's place moves when it [takes](Self::take) the ticks; that it is told of the series is
    /// noted here.
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

    /// Series that are new to the reader, or others than it knows them as, in order of id; it knows them from now on. None
    /// where that is not known any more: then it knows none, and is told of all the next time.
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

    /// The reader has this tick now: the next one of those that [`news`](Self::news) gave.
    ///
    /// # Panics
    /// Where it does not follow the tick before, and the cursor keeps the values.
    pub fn take(&mut self, frame: &Frame) {
        if let Some(state) = &mut self.state {
            state.apply(frame.bytes()).expect("the frames of a store follow each other");
        }
        self.seq = frame.seq;
    }

    /// The records that the reader has yet to [take](Self::take_record), as far as they are in memory, rising by number.
    /// Each comes behind the tick that it is placed after, and before the next.
    pub fn records(&self, store: &Store) -> Vec<Placed> {
        match self.record {
            Some(last) => store.records_since(self.source, last),
            // Those of the very tick may have been sent: a page knows them by their number.
            None => store.records_since(self.source, 0).into_iter().filter(|one| one.after >= self.seq).collect(),
        }
    }

    /// The reader has this record now.
    pub fn take_record(&mut self, record: &Record) {
        self.record = Some(record.n);
    }

    /// Begins anew: with the sealed blocks from `from` on, milliseconds since the Unix epoch, then the keyframe, which the
    /// reader then has. Records of that span that are in memory come next. None for an unknown source.
    pub fn begin(&mut self, store: &Store, from: i64) -> Option<Opening> {
        let (blocks, keyframe, seq) = store.opening(self.source, from)?;
        let state = store.state(self.source)?;
        self.begin_records(store, from);
        self.place(seq, state.seq(), state.steps(), |state| {
            // The store made it just now, of the same series.
            state.apply(&keyframe).expect("a keyframe stands alone");
        });
        Some(Opening { blocks, keyframe, series: (0..self.known as SeriesId).collect() })
    }

    /// Begins anew with the newest `ticks`: its place is before them, and all series are known. What was before is in the
    /// [opening](OpeningNow::read), sealed blocks from `from` on and what is not sealed; records come next, as in
    /// [`begin`](Self::begin). None for an unknown source.
    pub fn begin_now(&mut self, store: &Store, from: i64, ticks: usize) -> Option<(OpeningNow, Vec<SeriesId>)> {
        let opening = store.opening_now(self.source, from, ticks)?;
        let state = store.state(self.source)?;
        self.begin_records(store, from);
        (self.seq, self.known, self.known_at, self.state) = (opening.seq, state.steps().len(), state.seq(), None);
        Some((opening, (0..self.known as SeriesId).collect()))
    }

    /// Goes to before the first record of a span that is in memory.
    fn begin_records(&mut self, store: &Store, from: i64) {
        // A record may tell of an earlier time than the one before it, so the first that fits counts, not the last that
        // does not.
        let first = store.records_since(self.source, 0).into_iter().find(|one| one.record.t >= from);
        self.record = Some(first.map_or(store.last_record(self.source), |one| one.record.n - 1));
    }

    /// Begins anew with the newest tick, which the reader then has; all series. Nothing of what was before is read.
    pub fn begin_newest(&mut self, store: &Store) -> Vec<SeriesId> {
        self.record = Some(store.last_record(self.source));
        if let Some(newest) = store.state(self.source) {
            self.place(newest.seq(), newest.seq(), newest.steps(), |state| state.clone_from(newest));
        }
        (0..self.known as SeriesId).collect()
    }

    /// Goes to a place that the reader has been at, however long ago. The values there are not known: what follows is
    /// [sealed](Self::sealed), or comes after one begins [anew](Self::begin).
    pub fn seek(&mut self, seq: u64) {
        (self.seq, self.state) = (seq, None);
    }

    /// The block with the tick behind the reader's place, or with the next one that is kept; none where that is not sealed.
    pub fn sealed(&self, store: &Store) -> Option<Block> {
        let kept = store.kept(self.source)?;
        let sealed_to = kept.base_of_unsealed().seq();
        let next = kept.blocks.iter().find(|block| block.last_seq() > self.seq)?;
        (self.seq < sealed_to && next.first_seq() <= sealed_to).then(|| next.clone())
    }

    /// The reader has all up to this tick, and knows all series of which there are these, at the newest tick.
    fn place(&mut self, seq: u64, newest: u64, steps: &[Steps], set: impl FnOnce(&mut TickState)) {
        (self.seq, self.known, self.known_at, self.state) = (seq, steps.len(), newest, None);
        if self.keeps_state {
            let mut state = Box::<TickState>::default();
            state.extend(steps.iter().copied());
            set(&mut state);
            self.state = Some(state);
        }
    }

    /// All series are new to the reader from now on.
    fn forget(&mut self) {
        (self.known, self.known_at, self.state) = (0, u64::MAX, None);
    }
}

#[cfg(test)]
mod tests;
