//! From ticks to columns: a stretch of frames that was cut off the head, and the sealed chunks it becomes.

use super::Frame;
use shared::column;
use shared::series::{SeriesId, Steps};
use shared::tick::{Applied, FrameError, TickState};
use shared::wire::SourceId;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Values that are decoded at once while a stretch is turned into columns: 16 MiB of them.
const MAX_DECODED_VALUES: usize = 2 << 20;

/// Frames that follow each other, and the state before the first; never changes.
#[derive(Debug)]
pub struct Stretch {
    /// Before the first frame, with the series of the last.
    pub base: TickState,
    /// The frames, oldest first.
    pub frames: Vec<Arc<Frame>>,
}

impl Stretch {
    /// `base` knows the steps of all series of which the frames speak.
    pub fn new(base: &TickState, steps: &[Steps], frames: Vec<Arc<Frame>>) -> Self {
        let mut base = base.clone();
        base.extend(steps[base.steps().len()..].iter().copied());
        Stretch { base, frames }
    }

    /// Ticks of a log.
    pub(super) fn of_span(source: SourceId, span: &history::TickSpan) -> Self {
        let mut state = span.base.clone();
        let mut frames = Vec::with_capacity(span.frames.len());
        for frame in &span.frames {
            // What follows a frame that does not fit cannot be placed.
            let before = state.seq();
            let Ok(Applied::Tick { clock_step, .. }) = state.apply(frame) else { break };
            frames.push(Arc::new(Frame::new(source, before, &state, clock_step, frame)));
        }
        Stretch { base: span.base.clone(), frames }
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

    /// The ranges of frames whose times rise, whose clock was not set in between, and which skip no sequence.
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
    /// A frame does not follow the one before; this store's own do.
    pub fn transpose(&self) -> Result<Vec<Chunk>, FrameError> {
        let mut state = self.base.clone();
        self.rising().into_iter().map(|span| seal(&mut state, &self.frames[span])).collect()
    }
}

/// A sealed span of ticks in memory; never changes.
#[derive(Debug)]
pub struct Chunk {
    /// Sequence of the first tick; those of the others follow it without a hole. 0 in a chunk of late samples.
    pub first_seq: u64,
    /// Number of ticks.
    pub ticks: usize,
    /// Time of the first tick, milliseconds since the Unix epoch.
    pub from: i64,
    /// Time of the last.
    pub to: i64,
    /// The wall clock was set just before the first tick.
    pub clock_step: bool,
    /// No tick has the sequences between the tick before and the first.
    pub after_gap: bool,
    /// Time column.
    pub times: Vec<u8>,
    /// Columns by series, in order of id.
    pub columns: Vec<(SeriesId, Box<[u8]>)>,
    /// Bytes of all columns and their index.
    pub bytes: usize,
    /// Samples present.
    pub samples: u64,
}

/// Frames whose times rise, as columns. `state` is that before the first, and afterwards that after the last.
fn seal(state: &mut TickState, frames: &[Arc<Frame>]) -> Result<Chunk, FrameError> {
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
            columns.extend(Column::of(id as SeriesId, column, state.steps()[id]));
        }
    }
    *state = after;
    let times: Vec<i64> = frames.iter().map(|f| f.t).collect();
    let first = frames.first();
    Ok(Chunk {
        clock_step: first.is_some_and(|f| f.clock_step),
        after_gap: first.is_some_and(|f| f.after_gap()),
        ..Chunk::new(first.map_or(0, |f| f.seq), &times, columns)
    })
}

/// A column that is put into a chunk.
pub struct Column {
    /// Its series.
    pub id: SeriesId,
    /// [`column::encode`], one value a tick.
    pub raw: Box<[u8]>,
    /// How many of the values are present.
    pub samples: u64,
}

impl Column {
    /// The values of a series by tick; none where all are absent.
    fn of(id: SeriesId, values: &[f64], steps: Steps) -> Option<Column> {
        let samples = values.iter().filter(|v| v.is_finite()).count() as u64;
        (samples > 0).then(|| Column { id, raw: column::encode(values, steps).into_boxed_slice(), samples })
    }
}

impl Chunk {
    /// Ticks at these times, of which there is at least one; columns come rising by id.
    pub fn new(first_seq: u64, times: &[i64], columns: Vec<Column>) -> Chunk {
        let encoded = column::encode_times(times);
        let index = size_of::<(SeriesId, Box<[u8]>)>();
        Chunk {
            first_seq,
            ticks: times.len(),
            from: times.first().copied().unwrap_or(0),
            to: times.last().copied().unwrap_or(0),
            clock_step: false,
            after_gap: false,
            bytes: encoded.len() + columns.iter().map(|c| c.raw.len() + index).sum::<usize>(),
            samples: columns.iter().map(|c| c.samples).sum(),
            times: encoded,
            columns: columns.into_iter().map(|c| (c.id, c.raw)).collect(),
        }
    }

    /// Late samples that an earlier version has left in its log: series, time in ms and value. Their series' `steps` are
    /// asked for by id.
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
                Column::of(*id, &values, steps(*id))
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
        let at = self.columns.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.columns[at].1)
    }
}
