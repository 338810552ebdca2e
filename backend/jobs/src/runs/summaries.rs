//! Cached summaries for lists of runs: a page requests them again and again, and the history of a run is long.

use super::measure::measure;
use super::sums::Sums;
use parking_lot::Mutex;
use shared::run::Run;
use shared::wire::{Source, SourceId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use stream::live::Live;

/// Maximum number of cached runs; about a kilobyte each.
const MAX_KEPT: usize = 2_048;
/// Points of the sparkline.
const POINTS: usize = 60;
/// Cache time of an ended run, milliseconds: an agent may still send old samples.
const OVER_MS: i64 = 600_000;
/// Minimum cache time of a running run, milliseconds; otherwise a two-hundredth of its age.
const RUNNING_MS: i64 = 5_000;

/// Summary of a run for a list.
#[derive(Debug)]
pub struct ListSummary {
    /// GPU time and other sums.
    pub sums: Sums,
    /// Utilization over its life, the mean of its ranks, percent.
    pub spark: Vec<Option<f64>>,
}

/// Cache key: ID of the run, its number of processes, its end, and the machines that the reader may see.
type Key = (String, usize, Option<i64>, Vec<SourceId>);

/// A run with the times at which it is valid: after its reading, unless the clock was set back since.
type KeptSummary = (Range<i64>, Arc<ListSummary>);

/// Cached runs.
#[derive(Debug, Default)]
pub struct ListSummaries(Mutex<BTreeMap<Key, KeptSummary>>);

impl ListSummaries {
    /// The summary of a run at `now`, milliseconds since the Unix epoch. It may read the disk.
    pub fn summary(&self, live: &Live, sources: &[Arc<Source>], run: &Run, now: i64) -> Arc<ListSummary> {
        let seen = sources.iter().filter(|source| run.processes.iter().any(|one| one.source == source.name));
        let key = (run.id.clone(), run.processes.len(), run.ended, seen.map(|source| source.id).collect());
        let known = self.0.lock().get(&key).cloned();
        if let Some((_, summary)) = known.filter(|(valid, _)| valid.contains(&now)) {
            return summary;
        }
        let measured = measure(live, sources, run, now, (POINTS, false));
        let lines = measured.measures.first().map(|first| first.lines.as_slice()).unwrap_or_default();
        let mean = |at: usize| {
            let values: Vec<f64> = lines.iter().filter_map(|line| *line.values.get(at)?).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let spark = (0..lines.first().map_or(0, |line| line.values.len())).map(mean).collect();
        let summary = Arc::new(ListSummary { sums: measured.sums, spark });
        let lasts = if run.ended.is_some() { OVER_MS } else { ((now - run.began) / 200).max(RUNNING_MS) };
        let mut kept = self.0.lock();
        if kept.len() >= MAX_KEPT {
            // Expired entries are evicted first, else the one that expires next.
            kept.retain(|_, (valid, _)| valid.contains(&now));
            let next = kept.iter().min_by_key(|(_, (valid, _))| valid.end).map(|(key, _)| key.clone());
            next.filter(|_| kept.len() >= MAX_KEPT).and_then(|key| kept.remove(&key));
        }
        kept.insert(key, (now..now + lasts, summary.clone()));
        summary
    }
}
