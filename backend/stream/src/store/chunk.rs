//! Conversion of ticks to columns: a stretch of frames from the head or a log, and the sealed chunks made of it.

use super::Frame;
use history::LoggedTick;
use parking_lot::Mutex;
use shared::column;
use shared::series::{SeriesId, Steps};
use shared::tick::{FrameError, TickState};
use shared::wire::SourceId;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Number of values decoded at once while a stretch is converted to columns: 16 MiB.
const MAX_DECODED_VALUES: usize = 2 << 20;

/// Consecutive frames, and the state before the first; immutable.
#[derive(Debug)]
pub struct Stretch {
    /// Before the first frame, with the series of the last.
    pub base: TickState,
    /// The frames, oldest first.
    pub frames: Vec<Arc<Frame>>,
}

impl Stretch {
    /// `base` knows the steps of all series in the frames.
    pub fn new(base: &TickState, steps: &[Steps], frames: Vec<Arc<Frame>>) -> Self {
        let mut base = base.clone();
        base.extend(steps[base.steps().len()..].iter().copied());
        Stretch { base, frames }
    }

    /// Ticks of a log.
    pub(super) fn of_span(source: SourceId, span: &history::TickSpan) -> Self {
        let frame = |tick: &LoggedTick| {
            Arc::new(Frame::new(source, (tick.before, tick.seq), tick.t, tick.clock_step, &tick.frame))
        };
        Stretch { base: span.base.clone(), frames: span.ticks.iter().map(frame).collect() }
    }

    /// Calls `each` with every frame and the state after it, oldest first.
    ///
    /// # Errors
    /// A frame does not follow the one before.
    pub fn replay(&self, mut each: impl FnMut(&Frame, &TickState)) -> Result<(), FrameError> {
        let mut state = self.base.clone();
        self.frames.iter().try_for_each(|frame| {
            state.apply(frame.bytes())?;
            each(frame, &state);
            Ok(())
        })
    }

    /// The ranges of frames with rising times, without a set clock in between, and without a skipped sequence.
    fn rising(&self) -> Vec<Range<usize>> {
        let breaks = |pair: &[Arc<Frame>]| pair[1].clock_step || pair[1].t <= pair[0].t || pair[1].after_gap();
        let cuts = (1..self.frames.len()).filter(|&i| breaks(&self.frames[i - 1..=i]));
        let mut starts: Vec<usize> = std::iter::once(0).chain(cuts).collect();
        starts.push(self.frames.len());
        starts.windows(2).map(|pair| pair[0]..pair[1]).filter(|span| !span.is_empty()).collect()
    }

    /// The frames as columns: one chunk for each range of rising times.
    ///
    /// # Errors
    /// A frame does not follow the one before. The store's own frames always do.
    pub fn transpose(&self) -> Result<Vec<Chunk>, FrameError> {
        let mut state = self.base.clone();
        let chunk = |range: Range<usize>| {
            let made = seal(&mut state, &self.frames[range.clone()])?;
            Ok(Chunk::from_frames(&self.frames[range], Body::Made(made)))
        };
        self.rising().into_iter().map(chunk).collect()
    }
}

/// Columns by series, in order of id.
#[derive(Debug, Default)]
struct Columns {
    columns: Vec<(SeriesId, Box<[u8]>)>,
    /// Bytes of all columns and of their index.
    bytes: usize,
    /// Samples present.
    samples: u64,
}

impl Columns {
    fn new(columns: Vec<Column>) -> Self {
        let index = size_of::<(SeriesId, Box<[u8]>)>();
        Columns {
            bytes: columns.iter().map(|c| c.raw.len() + index).sum(),
            samples: columns.iter().map(|c| c.samples).sum(),
            columns: columns.into_iter().map(|c| (c.id, c.raw)).collect(),
        }
    }
}

/// A stretch of a log. For a thousand machines it has a million ticks, so the columns are not made at the start of the
/// server. The first reader makes them, or else the write to disk.
#[derive(Debug)]
struct Logged {
    /// None after the columns are made.
    stretch: Mutex<Option<Stretch>>,
    /// Columns of each range of rising times.
    made: OnceLock<Vec<Columns>>,
}

impl Logged {
    fn columns(&self) -> &[Columns] {
        self.made.get_or_init(|| {
            let stretch = self.stretch.lock().take();
            let Some(stretch) = stretch else { return Vec::new() };
            let (mut state, mut made) = (stretch.base.clone(), Vec::new());
            for range in stretch.rising() {
                // The reader of the log has applied each frame, so this is no fault of a disk. The ticks after it are a
                // gap.
                made.push(seal(&mut state, &stretch.frames[range]).unwrap_or_else(|error| {
                    tracing::error!("ticks of the log do not follow each other: {error}");
                    Columns::default()
                }));
            }
            made
        })
    }
}

#[derive(Debug)]
enum Body {
    Made(Columns),
    /// A range of a stretch of a log, and the bytes of its frames.
    Logged(Arc<Logged>, usize, usize),
}

/// A sealed span of ticks in memory; immutable.
#[derive(Debug)]
pub struct Chunk {
    /// Sequence of the first tick; the others follow without a gap. 0 in a chunk of late samples.
    pub first_seq: u64,
    /// Number of ticks.
    pub ticks: usize,
    /// Time of the first tick, milliseconds since the Unix epoch.
    pub from: i64,
    /// Time of the last tick.
    pub to: i64,
    /// The wall clock was set just before the first tick.
    pub clock_step: bool,
    /// There are no ticks for the sequences between the tick before and the first.
    pub after_gap: bool,
    /// Time column.
    pub times: Vec<u8>,
    body: Body,
}

/// Frames with rising times, as columns. `state` is the state before the first frame, and on return the one after the
/// last.
fn seal(state: &mut TickState, frames: &[Arc<Frame>]) -> Result<Columns, FrameError> {
    let (ticks, series) = (frames.len(), state.steps().len());
    let band = (MAX_DECODED_VALUES / ticks.max(1)).clamp(64, series.max(64));
    let mut values = vec![f64::NAN; ticks * band.min(series)];
    let mut columns = Vec::new();
    let mut after = state.clone();
    for first in (0..series.max(1)).step_by(band) {
        after = state.clone();
        let last = (first + band).min(series);
        for (i, frame) in frames.iter().enumerate() {
            after.apply(frame.bytes())?;
            for (row, &v) in after.values()[first..last].iter().enumerate() {
                values[row * ticks + i] = v;
            }
        }
        for id in first..last {
            let column = &values[(id - first) * ticks..(id - first + 1) * ticks];
            columns.extend(Column::from_values(id as SeriesId, column, state.steps()[id]));
        }
    }
    *state = after;
    Ok(Columns::new(columns))
}

/// A column to be put into a chunk.
pub struct Column {
    /// Its series.
    pub id: SeriesId,
    /// [`column::encode`], one value per tick.
    pub raw: Box<[u8]>,
    /// Number of present values.
    pub samples: u64,
}

impl Column {
    /// The values of a series by tick; none if all are absent.
    fn from_values(id: SeriesId, values: &[f64], steps: Steps) -> Option<Column> {
        let samples = values.iter().filter(|v| v.is_finite()).count() as u64;
        (samples > 0).then(|| Column { id, raw: column::encode(values, steps).into_boxed_slice(), samples })
    }
}

impl Chunk {
    /// Ticks at these times, at least one; columns ascend by id.
    pub fn new(first_seq: u64, times: &[i64], columns: Vec<Column>) -> Chunk {
        Self::with(first_seq, times, Body::Made(Columns::new(columns)))
    }

    /// The same chunk after possibly missing ticks. `clock_step`: whether the clock was set just before it.
    pub fn after_gap(self, clock_step: bool) -> Chunk {
        Chunk { clock_step, after_gap: true, ..self }
    }

    /// Frames with rising times.
    fn from_frames(frames: &[Arc<Frame>], body: Body) -> Chunk {
        let times: Vec<i64> = frames.iter().map(|f| f.t).collect();
        let first = frames.first();
        Chunk {
            clock_step: first.is_some_and(|f| f.clock_step),
            after_gap: first.is_some_and(|f| f.after_gap()),
            ..Chunk::with(first.map_or(0, |f| f.seq), &times, body)
        }
    }

    /// Ticks of a log, whose columns are made by the first read.
    pub(super) fn of_log(stretch: Stretch) -> Vec<Chunk> {
        let ranges = stretch.rising();
        let frames = stretch.frames.clone();
        let logged = Arc::new(Logged { stretch: Mutex::new(Some(stretch)), made: OnceLock::new() });
        let chunk = |(at, range): (usize, Range<usize>)| {
            let bytes = frames[range.clone()].iter().map(|frame| frame.message.len() + size_of::<Frame>()).sum();
            Chunk::from_frames(&frames[range], Body::Logged(logged.clone(), at, bytes))
        };
        ranges.into_iter().enumerate().map(chunk).collect()
    }

    fn with(first_seq: u64, times: &[i64], body: Body) -> Chunk {
        Chunk {
            first_seq,
            ticks: times.len(),
            from: times.first().copied().unwrap_or(0),
            to: times.last().copied().unwrap_or(0),
            clock_step: false,
            after_gap: false,
            times: column::encode_times(times),
            body,
        }
    }

    /// The columns, if they are made.
    fn made(&self) -> Option<&Columns> {
        match &self.body {
            Body::Made(made) => Some(made),
            Body::Logged(logged, at, _) => logged.made.get()?.get(*at),
        }
    }

    /// Whether its columns are made.
    pub fn is_made(&self) -> bool {
        self.made().is_some()
    }

    /// Columns by series, in order of id. The columns of a log are made by the first call, which may take a tenth of a
    /// second for a quarter of an hour.
    pub fn columns(&self) -> &[(SeriesId, Box<[u8]>)] {
        if let Body::Logged(logged, ..) = &self.body {
            logged.columns();
        }
        self.made().map_or(&[], |made| &made.columns)
    }

    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        let waiting = if let Body::Logged(_, _, bytes) = self.body { bytes } else { 0 };
        self.times.len() + self.made().map_or(waiting, |made| made.bytes)
    }

    /// Samples present; 0 before it [is made](Self::is_made).
    pub fn samples(&self) -> u64 {
        self.made().map_or(0, |made| made.samples)
    }

    /// Late samples in the log of an earlier version: series, time in ms and value. `steps` returns the steps of a
    /// series by id.
    pub(super) fn of_late(samples: &[(SeriesId, i64, f64)], steps: impl Fn(SeriesId) -> Steps) -> Vec<Chunk> {
        let mut times: Vec<i64> = samples.iter().map(|(_, t, _)| *t).collect();
        times.sort_unstable();
        times.dedup();
        let ids: BTreeSet<SeriesId> = samples.iter().map(|(id, ..)| *id).collect();
        let chunk = |times: &[i64]| {
            let column = |id: &SeriesId| {
                let mut values = vec![f64::NAN; times.len()];
                for (_, t, v) in samples.iter().filter(|(own, ..)| own == id) {
                    if let Ok(at) = times.binary_search(t) {
                        values[at] = *v;
                    }
                }
                Column::from_values(*id, &values, steps(*id))
            };
            Chunk::new(0, times, ids.iter().filter_map(column).collect())
        };
        times.chunks(column::MAX_TICKS).map(chunk).collect()
    }

    /// Sequence of the last tick; 0 in a chunk of late samples.
    pub fn last_seq(&self) -> u64 {
        if self.first_seq == 0 { 0 } else { self.first_seq + self.ticks as u64 - 1 }
    }

    /// The column of a series.
    pub fn column(&self, id: SeriesId) -> Option<&[u8]> {
        let columns = self.columns();
        let at = columns.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&columns[at].1)
    }
}
