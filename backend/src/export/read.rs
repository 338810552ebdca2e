//! Reads a selection series by series. Short series are read in batches, since a batch reads each block's times once.
//! Long ones are read in stretches, so that only one stretch is in memory.

use super::fit::Wanted;
use super::select::{MAX_HELD_SAMPLES, Selection};
use shared::rollup::{Bucket, rate, rolled};
use shared::series::SeriesId;
use std::collections::VecDeque;
use std::sync::Arc;

type Points = Box<dyn Iterator<Item = (i64, f64)> + Send>;

/// Number of samples that determine the usual distance between a series' samples.
const PACE_SAMPLES: usize = 101;

/// Values of one series to write, in order of time; never empty.
pub(super) enum Values {
    /// Samples, or rates: time in ms and value.
    Points(Points),
    /// Roll-ups.
    Buckets(Box<dyn Iterator<Item = Bucket> + Send>),
}

/// Series after series, by their position in the selection.
pub(super) struct Reading {
    selection: Arc<Selection>,
    next: usize,
    ready: VecDeque<(usize, Values)>,
}

impl Reading {
    pub fn new(selection: Arc<Selection>) -> Self {
        Reading { selection, next: 0, ready: VecDeque::new() }
    }

    /// The next series that are read together: of one source, within the memory limit.
    fn batch(&self) -> &[Wanted] {
        let wanted = &self.selection.wanted[self.next..];
        let Some(first) = wanted.first() else { return wanted };
        let interval = self.selection.parts.get(&first.source).map_or(1, |part| part.interval);
        let mut room = MAX_HELD_SAMPLES;
        let fits = |w: &&Wanted| {
            room -= (w.span.1 - w.span.0) / interval + 1;
            w.source == first.source && room >= 0
        };
        let count = wanted.iter().take_while(fits).count();
        &wanted[..count.max(1)]
    }

    fn read(&mut self) {
        let batch = self.batch();
        let (first, ids) = (self.next, batch.iter().map(|w| w.id).collect::<Vec<SeriesId>>());
        let Some(source) = batch.first().map(|w| w.source) else { return };
        self.next += ids.len();
        let Some(part) = self.selection.parts.get(&source) else { return };
        let stepped = self.selection.ask.step.filter(|_| !self.selection.ask.rate);
        match (&part.stretches[..], stepped) {
            ([only], None) => {
                for (i, samples) in only.samples(&ids).into_iter().enumerate() {
                    self.ready.push_back((first + i, self.shown(first + i, Box::new(samples.into_iter()))));
                }
            }
            ([only], Some(step)) => {
                for (i, buckets) in only.buckets(&ids, step, true).into_iter().enumerate() {
                    self.ready.push_back((first + i, Values::Buckets(Box::new(buckets.into_iter()))));
                }
            }
            (stretches, stepped) => {
                for (i, id) in ids.into_iter().enumerate() {
                    let (selection, count) = (self.selection.clone(), stretches.len());
                    let values = match stepped {
                        None => {
                            let samples = (0..count).flat_map(move |n| {
                                selection.parts[&source].stretches[n].samples(&[id]).into_iter().flatten()
                            });
                            self.shown(first + i, Box::new(samples))
                        }
                        Some(step) => Values::Buckets(Box::new((0..count).flat_map(move |n| {
                            selection.parts[&source].stretches[n].buckets(&[id], step, true).into_iter().flatten()
                        }))),
                    };
                    self.ready.push_back((first + i, values));
                }
            }
        }
    }

    /// Samples in the requested form: raw, as rates, or as rolled-up rates.
    fn shown(&self, wanted: usize, samples: Points) -> Values {
        let (ask, wanted) = (&self.selection.ask, &self.selection.wanted[wanted]);
        if !ask.rate {
            return Values::Points(samples);
        }
        let interval = self.selection.parts.get(&wanted.source).map_or(1, |part| part.interval);
        let (from, factor) = (ask.from, self.selection.metric(wanted).unit.to_base());
        let rates = rates(samples, interval).filter(move |(t, _)| *t >= from).map(move |(t, v)| (t, v * factor));
        // The rate of a counter near the largest number can be larger than any number.
        let rates = rates.filter(|(_, v)| v.is_finite());
        match ask.step {
            None => Values::Points(Box::new(rates)),
            Some(step) => Values::Buckets(Box::new(rolled(rates, step))),
        }
    }
}

/// The rates of a counter; none across a gap of 1.5 times the usual distance between its samples.
fn rates(mut samples: Points, interval: i64) -> impl Iterator<Item = (i64, f64)> + Send {
    let first: Vec<(i64, f64)> = samples.by_ref().take(PACE_SAMPLES).collect();
    let mut gaps: Vec<i64> = first.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    gaps.sort_unstable();
    let pace = gaps.get(gaps.len() / 2).copied().unwrap_or(interval).max(interval);
    rate(first.into_iter().chain(samples), pace * 3 / 2)
}

impl Iterator for Reading {
    type Item = (usize, Values);

    fn next(&mut self) -> Option<(usize, Values)> {
        loop {
            if let Some((wanted, values)) = self.ready.pop_front() {
                if let Some(values) = present(values) {
                    return Some((wanted, values));
                }
            } else if self.next < self.selection.wanted.len() {
                self.read();
            } else {
                return None;
            }
        }
    }
}

/// The values, or `None` if there are none.
fn present(values: Values) -> Option<Values> {
    Some(match values {
        Values::Points(points) => {
            let mut points = points.peekable();
            points.peek()?;
            Values::Points(Box::new(points))
        }
        Values::Buckets(buckets) => {
            let mut buckets = buckets.peekable();
            buckets.peek()?;
            Values::Buckets(Box::new(buckets))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(samples: &[(i64, f64)]) -> Vec<(i64, f64)> {
        rates(Box::new(Vec::from(samples).into_iter()), 1_000).collect()
    }

    #[test]
    fn rates_leave_out_resets_and_holes_at_the_pace_of_the_series() {
        let slow = [(0, 0.0), (15_000, 30.0), (30_000, 60.0), (60_000, 90.0), (75_000, 10.0), (90_000, 25.0)];
        assert_eq!(rated(&slow), [(15_000, 2.0), (30_000, 2.0), (90_000, 1.0)]);
        assert_eq!(rated(&[(0, 0.0), (1_000, 5.0), (2_400, 7.8)]), [(1_000, 5.0), (2_400, 2.0)]);
        assert_eq!(rated(&[(0, 1.0)]), []);
    }
}
