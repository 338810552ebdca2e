//! Reading a stretch of the store outside its lock.

use super::{Chunk, Frame};
use shared::column::{self, Damaged};
use shared::series::{SeriesId, Steps};
use shared::tick::TickState;
use std::sync::Arc;

/// Everything of one source between two times; it holds pointers, not copies.
pub struct Snapshot {
    pub(super) chunks: Vec<Arc<Chunk>>,
    pub(super) base: TickState,
    pub(super) frames: Vec<Arc<Frame>>,
    pub(super) steps: Vec<Steps>,
    pub(super) from: i64,
    pub(super) to: i64,
}

impl Snapshot {
    /// Sealed chunks that reach into the span.
    pub fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    /// Samples (time in ms, value) of each of these series within the span, both ends included, in the order they were taken.
    ///
    /// # Errors
    /// [`Damaged`] when a sealed column cannot be read.
    pub fn samples(&self, ids: &[SeriesId]) -> Result<Vec<Vec<(i64, f64)>>, Damaged> {
        let mut all = vec![Vec::new(); ids.len()];
        let within = |t: i64| t >= self.from && t <= self.to;
        for chunk in &self.chunks {
            let times = column::decode_times(&chunk.times, chunk.ticks)?;
            for (samples, &id) in all.iter_mut().zip(ids) {
                let Some(bytes) = chunk.column(id) else { continue };
                let values = column::decode(bytes, chunk.ticks)?;
                samples.extend(times.iter().copied().zip(values).filter(|(t, v)| within(*t) && v.is_finite()));
            }
        }
        if self.frames.last().is_some_and(|f| f.t >= self.from) {
            let mut state = self.base.clone();
            state.extend(self.steps[state.steps().len()..].iter().copied());
            for frame in &self.frames {
                state.apply(frame.bytes()).map_err(|_| Damaged)?;
                if within(frame.t) {
                    for (samples, &id) in all.iter_mut().zip(ids) {
                        let v = state.values().get(id as usize).copied().unwrap_or(f64::NAN);
                        if v.is_finite() {
                            samples.push((frame.t, v));
                        }
                    }
                }
            }
        }
        Ok(all)
    }
}
