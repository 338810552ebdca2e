//! Number of values of a response: determined from the stored samples if the span alone does not suffice.

use super::read::{Reading, Values};
use super::{Refused, Selection};
use std::sync::Arc;

/// Counts the values of a response, series by series, until the limit is exceeded or all are counted.
pub struct Count {
    selection: Arc<Selection>,
    most: i64,
    reading: Option<Reading>,
    found: i64,
}

impl Count {
    /// A count for a response with at most `most` values.
    pub fn new(selection: Arc<Selection>, most: i64) -> Self {
        // If even one value for each interval is within the limit, nothing is read.
        let bound = selection.at_most(selection.ask.step.unwrap_or(1));
        let reading = (bound > most).then(|| Reading::new(selection.clone()));
        Count { selection, most, reading, found: 0 }
    }

    /// Counts the next series. Returns `Some` once the response is known to be small enough, `None` before. May read
    /// the disk.
    ///
    /// # Errors
    /// [`Refused::Large`], with advice for a smaller query.
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
        // The remaining series are assumed to be like the counted ones.
        let all = self.selection.wanted.len() as f64 / (wanted + 1) as f64 * self.found as f64;
        let bound = self.selection.at_most(self.selection.ask.step.unwrap_or(1));
        Err(self.selection.too_large((all as i64).min(bound), self.most))
    }
}
