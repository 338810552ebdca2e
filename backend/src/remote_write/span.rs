//! Ticks to send: decoded unsealed ticks, or a part of a block, whose columns are read on demand.

use shared::series::SeriesId;
use std::cell::Cell;
use stream::store::{Block, Unread};

/// Consecutive ticks.
pub struct TickSpan {
    /// Sequence of the last one.
    pub last: u64,
    /// The sequences of all of them, as rising ranges.
    pub ranges: Vec<(u64, u64)>,
    times: Vec<i64>,
    values: SpanValues,
    refused: Cell<bool>,
}

pub(super) enum SpanValues {
    /// By tick and series.
    Ticks(Vec<Vec<f64>>),
    /// A block, without this many ticks at its begin.
    Block(Block, usize),
}

impl TickSpan {
    /// Ticks of these sequences, which rise and do not touch.
    pub(super) fn new(ranges: Vec<(u64, u64)>, times: Vec<i64>, values: SpanValues) -> Self {
        let last = ranges.last().map_or(0, |(_, last)| *last);
        TickSpan { last, ranges, times, values, refused: Cell::new(false) }
    }

    /// Whether the disk refused some of its data.
    pub fn refused(&self) -> bool {
        self.refused.get()
    }

    /// Times and values of a series, oldest first; empty if its column cannot be read.
    pub fn samples(&self, id: SeriesId) -> Vec<(i64, f64)> {
        let present = |(t, v): (&i64, f64)| v.is_finite().then_some((*t, v));
        match &self.values {
            SpanValues::Ticks(ticks) => {
                let values = ticks.iter().map(|values| values.get(id as usize).copied().unwrap_or(f64::NAN));
                self.times.iter().zip(values).filter_map(present).collect()
            }
            SpanValues::Block(block, skip) => {
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
