//! How many values an answer would hold: found by reading what is stored, where the span alone does not tell.

use super::read::{Reading, Values};
use super::{Refused, Selection};
use std::sync::Arc;

/// Counts the values of an answer, series after series, until it is known whether they are too many.
pub struct Count {
    selection: Arc<Selection>,
    most: i64,
    reading: Option<Reading>,
    found: i64,
}

impl Count {
    /// For an answer with at most `most` values.
    pub fn new(selection: Arc<Selection>, most: i64) -> Self {
        // Where even a value for each interval is few enough, nothing has to be read.
        let bound = selection.at_most(selection.ask.step.unwrap_or(1));
        let reading = (bound > most).then(|| Reading::new(selection.clone()));
        Count { selection, most, reading, found: 0 }
    }

    /// Whether the answer is small enough; none while that is not known, after the next series. May read the disk.
    ///
    /// # Errors
    /// [`Refused::Large`], with what to narrow.
    pub fn go_on(&mut self) -> Result<Option<()>, Refused> {
        let Some(reading) = &mut self.reading else { return Ok(Some(())) };
        let Some((wanted, values)) = reading.next() else { return Ok(Some(())) };
        let count = match values {
            Values::Points(points) => points.count(),
            Values::Buckets(buckets) => buckets.count(),
        };
        self.found += count as i64;
        if self.found <= self.most {
            return Ok(None);
        }
        // The series that were not counted are taken for like those that were.
        let all = self.selection.wanted.len() as f64 / (wanted + 1) as f64 * self.found as f64;
        let bound = self.selection.at_most(self.selection.ask.step.unwrap_or(1));
        Err(self.selection.too_large((all as i64).min(bound), self.most))
    }
}
