//! A sealed stretch of ticks: one time column, one column per series that has samples in it.

use super::Frame;
use shared::column;
use shared::series::SeriesId;
use shared::tick::TickState;
use std::sync::Arc;

/// A sealed stretch of ticks; never changes.
#[derive(Debug)]
pub struct Chunk {
    /// Sequence of the first tick.
    pub first_seq: u64,
    /// Number of ticks.
    pub ticks: usize,
    /// Time of the first tick, milliseconds since the Unix epoch.
    pub from: i64,
    /// Time of the last.
    pub to: i64,
    /// Time column.
    pub times: Vec<u8>,
    /// Columns by series, in order of id.
    pub columns: Vec<(SeriesId, Box<[u8]>)>,
    /// Bytes of all columns and their index.
    pub bytes: usize,
    /// Samples present.
    pub samples: u64,
}

impl Chunk {
    /// Transposes frames into columns. `state` is that before the first frame, and afterwards that after the last.
    pub(super) fn seal(state: &mut TickState, frames: &[Arc<Frame>]) -> Chunk {
        let (ticks, series) = (frames.len(), state.steps().len());
        let mut values = vec![f64::NAN; ticks * series];
        for (i, frame) in frames.iter().enumerate() {
            state.apply(frame.bytes()).expect("frames of the head follow each other: this store encoded them");
            for (id, &v) in state.values().iter().enumerate() {
                values[id * ticks + i] = v;
            }
        }
        let mut samples = 0;
        let columns: Vec<(SeriesId, Box<[u8]>)> = (0..series)
            .filter_map(|id| {
                let column = &values[id * ticks..(id + 1) * ticks];
                let present = column.iter().filter(|v| v.is_finite()).count() as u64;
                samples += present;
                (present > 0).then(|| (id as SeriesId, column::encode(column, state.steps()[id]).into()))
            })
            .collect();
        let times: Vec<i64> = frames.iter().map(|f| f.t).collect();
        let encoded = column::encode_times(&times);
        let bytes =
            encoded.len() + columns.iter().map(|(_, c)| c.len() + size_of::<(SeriesId, Box<[u8]>)>()).sum::<usize>();
        Chunk {
            first_seq: frames.first().map_or(0, |f| f.seq),
            ticks,
            from: times.first().copied().unwrap_or(0),
            to: times.last().copied().unwrap_or(0),
            times: encoded,
            columns,
            bytes,
            samples,
        }
    }

    /// The column of a series.
    pub fn column(&self, id: SeriesId) -> Option<&[u8]> {
        let at = self.columns.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.columns[at].1)
    }
}
