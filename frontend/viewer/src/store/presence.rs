//! Counts the instants of a span that have a sample of a chart. Each sealed stretch is decoded once.

use super::source::Source;
use charts::order;
use shared::series::SeriesId;
use std::collections::BTreeMap;

/// Largest number of series whose minutes are counted.
const MAX_SERIES: usize = 8;

/// The instants with a sample in one stretch.
struct SampleInstants {
    columns: usize,
    here: Vec<bool>,
    total: usize,
}

/// The counts of one chart.
#[derive(Default)]
pub struct Presence {
    members: usize,
    chunks: BTreeMap<u64, SampleInstants>,
    /// For spans of days: the epoch of the count, then each minute with its largest number of samples, oldest first.
    minutes: (u32, Vec<(i64, u32)>),
}

impl Presence {
    /// Number of distinct instants from `from` to `to` (ms since the epoch) at which one of the series has a sample.
    pub fn count(&mut self, source: &Source, series: &[SeriesId], from: i64, to: i64) -> usize {
        if self.members != series.len() {
            self.members = series.len();
            self.chunks.clear();
            self.minutes = Default::default();
        }
        self.chunks.retain(|first, _| source.chunks.contains_key(first));
        // Ticks that are already in the minutes are not counted again.
        let days = source.in_days((from, to));
        let minutes = if days { source.days.last_seq() } else { 0 };
        let (mut total, mut before) = (if days { self.of_days(source, series, from, to) } else { 0 }, minutes);
        for (first, chunk) in source.chunks.iter() {
            let own = chunk.own(*first, before, source.head.front());
            before = before.max(chunk.last_seq);
            let end = chunk.times.partition_point(|t| *t <= to).min(own.end);
            let start = chunk.times.partition_point(|t| *t < from).max(own.start);
            if start >= end {
                continue;
            }
            // An hour may have replaced its first quarter.
            let stale = self
                .chunks
                .get(first)
                .is_none_or(|s| (s.columns, s.here.len()) != (chunk.columns.len(), chunk.times.len()));
            if stale {
                let mut here = vec![false; chunk.times.len()];
                for id in series {
                    if let Some(values) = chunk.values(*id) {
                        here.iter_mut().zip(&values).for_each(|(h, v)| *h |= v.is_finite());
                        if here.iter().all(|h| *h) {
                            break;
                        }
                    }
                }
                let all = here.iter().filter(|h| **h).count();
                self.chunks.insert(*first, SampleInstants { columns: chunk.columns.len(), here, total: all });
            }
            let seen = &self.chunks[first];
            let whole = start == 0 && end == seen.here.len();
            total += if whole { seen.total } else { seen.here[start..end].iter().filter(|h| **h).count() };
        }
        let here = |values: &[f64]| series.iter().any(|id| values.get(*id as usize).is_some_and(|v| v.is_finite()));
        total
            + source
                .head
                .iter()
                .filter(|t| t.seq > minutes)
                .filter(|t| t.t >= from && t.t <= to && here(&t.values))
                .count()
    }

    fn of_days(&mut self, source: &Source, series: &[SeriesId], from: i64, to: i64) -> usize {
        let (epoch, minutes) = &mut self.minutes;
        if *epoch != source.epoch || minutes.is_empty() {
            *epoch = source.epoch;
            minutes.clear();
            let mut all = Vec::new();
            // The series of a chart are sampled together, so a few represent all.
            for id in series.iter().take(MAX_SERIES) {
                source.days.minutes(*id, i64::MIN / 2, |bucket, _| all.push((bucket.t, bucket.count)));
            }
            for (t, count) in order::by(all.iter().map(|minute| minute.0)).into_iter().map(|i| all[i]) {
                match minutes.last_mut() {
                    Some((last, most)) if *last == t => *most = count.max(*most),
                    _ => minutes.push((t, count)),
                }
            }
        }
        let within = minutes.iter().skip(minutes.partition_point(|m| m.0 < from)).take_while(|m| m.0 <= to);
        within.map(|(_, count)| *count as usize).sum()
    }
}
