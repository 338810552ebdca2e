//! From ticks to columns: a stretch of frames that was cut off the head, and the sealed chunks it becomes.

use super::Frame;
use shared::column;
use shared::series::{SeriesId, Steps};
use shared::tick::{Applied, FrameError, TickState};
use shared::wire::SourceId;
use std::ops::Range;
use std::sync::Arc;

/// Values held at once while a stretch is turned into columns: 16 MiB of them.
const HELD: usize = 2 << 20;

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
    pub(super) fn of_run(source: SourceId, run: &history::Run) -> Self {
        let mut state = run.base.clone();
        let mut frames = Vec::with_capacity(run.frames.len());
        for frame in &run.frames {
            // What follows a frame that does not fit cannot be placed.
            let Ok(Applied::Tick { clock_step }) = state.apply(frame) else { break };
            frames.push(Arc::new(Frame::new(source, state.seq(), state.t(), clock_step, frame)));
        }
        Stretch { base: run.base.clone(), frames }
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

    /// The runs of frames whose times rise and whose clock was not set in between.
    fn runs(&self) -> Vec<Range<usize>> {
        let breaks = |pair: &[Arc<Frame>]| pair[1].clock_step || pair[1].t <= pair[0].t;
        let cuts = (1..self.frames.len()).filter(|&i| breaks(&self.frames[i - 1..=i]));
        let mut starts: Vec<usize> = std::iter::once(0).chain(cuts).collect();
        starts.push(self.frames.len());
        starts.windows(2).map(|pair| pair[0]..pair[1]).filter(|run| !run.is_empty()).collect()
    }

    /// The frames as columns: one chunk for each run of rising times.
    ///
    /// # Errors
    /// A frame does not follow the one before; this store's own do.
    pub fn transpose(&self) -> Result<Vec<Chunk>, FrameError> {
        let mut state = self.base.clone();
        self.runs().into_iter().map(|run| seal(&mut state, &self.frames[run])).collect()
    }
}

/// A sealed run of ticks in memory; never changes.
#[derive(Debug)]
pub struct Chunk {
    /// Sequence of the first tick; those of the others follow it without a hole.
    pub first_seq: u64,
    /// Number of ticks.
    pub ticks: usize,
    /// Time of the first tick, milliseconds since the Unix epoch.
    pub from: i64,
    /// Time of the last.
    pub to: i64,
    /// The wall clock was set just before the first tick.
    pub clock_step: bool,
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
    let band = (HELD / ticks.max(1)).clamp(64, series.max(64));
    let mut values = vec![f64::NAN; ticks * band.min(series)];
    let (mut columns, mut samples) = (Vec::new(), 0);
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
            let present = column.iter().filter(|v| v.is_finite()).count() as u64;
            if present > 0 {
                samples += present;
                columns.push((id as SeriesId, column::encode(column, state.steps()[id]).into_boxed_slice()));
            }
        }
    }
    *state = after;
    let times: Vec<i64> = frames.iter().map(|f| f.t).collect();
    let encoded = column::encode_times(&times);
    let index = size_of::<(SeriesId, Box<[u8]>)>();
    let bytes = encoded.len() + columns.iter().map(|(_, c)| c.len() + index).sum::<usize>();
    Ok(Chunk {
        first_seq: frames.first().map_or(0, |f| f.seq),
        ticks,
        from: times.first().copied().unwrap_or(0),
        to: times.last().copied().unwrap_or(0),
        clock_step: frames.first().is_some_and(|f| f.clock_step),
        times: encoded,
        columns,
        bytes,
        samples,
    })
}

impl Chunk {
    /// The column of a series.
    pub fn column(&self, id: SeriesId) -> Option<&[u8]> {
        let at = self.columns.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.columns[at].1)
    }
}
