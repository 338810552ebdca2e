//! GPU time of runs by day (UTC).

use super::measure::{held_sums, measure};
use super::sums::Sums;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use shared::run::Run;
use shared::wire::{Source, SourceId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use stream::live::Live;

/// One day, milliseconds.
pub(super) const DAY_MS: i64 = 86_400_000;

/// Maximum number of cached days of runs; some 300 bytes each.
const MAX_CACHED: usize = 20_000;
/// Maximum number of days that one answer reads from the history. Further ones have their GPU-hours alone, until they
/// are cached.
const MAX_READ: usize = 500;
/// Cache time of a day that goes on, milliseconds.
const OPEN_MS: i64 = 60_000;
/// Cache time of a day that is over, milliseconds: an agent may still send old samples.
const OVER_MS: i64 = 600_000;
/// Time that an agent buffers unsent samples, milliseconds. After it a day does not change any more.
const SETTLED_MS: i64 = 12 * 3_600_000;

/// GPU time of a run on one day.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunDay {
    /// Days since the Unix epoch.
    pub day: i64,
    /// The sums of that day.
    pub sums: Sums,
}

/// Cache key: ID of the run, day, processes and end of that part, and the machines that the reader may see.
type Key = (String, i64, usize, Option<i64>, Vec<SourceId>);

/// A day of a run with the times at which it is valid: after its reading, unless the clock was set back since.
type KeptDay = (Range<i64>, Arc<Sums>);

/// Cached days of runs.
#[derive(Debug, Default)]
pub struct RunDays(Mutex<BTreeMap<Key, KeptDay>>);

/// The part of a run between two times, milliseconds since the Unix epoch, as if it had begun and ended then. None if
/// it was not there. `now` is the end of processes that run.
pub(super) fn part_of(run: &Run, (from, to): (i64, i64), now: i64) -> Option<Run> {
    // The processes of a lost run have no end.
    let now = run.ended.map_or(now, |ended| ended.min(now));
    let to = to.min(now);
    let mut part = Run { processes: Vec::new(), ..run.clone() };
    for process in &run.processes {
        let (began, ended) = (process.began.max(from), process.ended.unwrap_or(now).min(to));
        if began < ended {
            let mut process = process.clone();
            (process.began, process.ended) = (began, Some(ended));
            part.processes.push(process);
        }
    }
    part.began = part.processes.iter().map(|one| one.began).min()?;
    part.ended = part.processes.iter().filter_map(|one| one.ended).max();
    Some(part)
}

/// The parts of a run by day, between two days, both included.
fn parts(run: &Run, (first, last): (i64, i64), now: i64) -> impl Iterator<Item = (i64, Run)> {
    let now = run.ended.map_or(now, |ended| ended.min(now));
    let end = run.processes.iter().map(|one| one.ended.unwrap_or(now)).max().unwrap_or(run.began);
    let days = run.began.div_euclid(DAY_MS).max(first)..=end.div_euclid(DAY_MS).min(last);
    days.filter_map(move |day| Some((day, part_of(run, (day * DAY_MS, (day + 1) * DAY_MS), now)?)))
}

/// All days of a run on which it held a GPU, or one was reserved for it. It may read the disk.
pub(super) fn days_of(live: &Live, sources: &[Arc<Source>], run: &Run, now: i64) -> Vec<RunDay> {
    let all = parts(run, (i64::MIN, i64::MAX), now);
    let read = all.map(|(day, part)| RunDay { day, sums: measure(live, sources, &part, now, (1, false)).sums });
    read.filter(|one| one.sums.has_gpus()).collect()
}

/// Number of days that an answer may still read from the history.
pub(super) struct DayBudget(usize);

impl Default for DayBudget {
    fn default() -> Self {
        DayBudget(MAX_READ)
    }
}

impl RunDays {
    /// The days of a run between two days, both included, at `now`, milliseconds since the Unix epoch. It may read the
    /// disk.
    pub(super) fn between(
        &self,
        live: &Live,
        sources: &[Arc<Source>],
        run: &Run,
        (days, now): ((i64, i64), i64),
        budget: &mut DayBudget,
    ) -> Vec<RunDay> {
        let seen = sources.iter().filter(|source| run.processes.iter().any(|one| one.source == source.name));
        let seen: Vec<SourceId> = seen.map(|source| source.id).collect();
        let one = |(day, part): (i64, Run)| {
            let is_open = run.ended.is_none() && part.ended.is_some_and(|ended| ended >= now);
            let end = part.ended.filter(|_| !is_open);
            let key = (run.id.clone(), day, part.processes.len(), end, seen.clone());
            let sums = self.cached(&key, now).or_else(|| {
                budget.0 = budget.0.checked_sub(1)?;
                let sums = Arc::new(measure(live, sources, &part, now, (1, false)).sums);
                let is_settled = end.is_some_and(|end| end < now - SETTLED_MS);
                let lasts = if is_open { OPEN_MS } else { OVER_MS };
                self.insert(key, now..if is_settled { i64::MAX } else { now + lasts }, sums.clone());
                Some(sums)
            });
            let sums = sums.map_or_else(|| held_sums(&part, now), Arc::unwrap_or_clone);
            RunDay { day, sums }
        };
        parts(run, days, now).map(one).filter(|one| one.sums.has_gpus()).collect()
    }

    fn cached(&self, key: &Key, now: i64) -> Option<Arc<Sums>> {
        let cached = self.0.lock();
        cached.get(key).filter(|(valid, _)| valid.contains(&now)).map(|(_, sums)| sums.clone())
    }

    fn insert(&self, key: Key, valid: Range<i64>, sums: Arc<Sums>) {
        let mut cached = self.0.lock();
        if cached.len() >= MAX_CACHED {
            cached.retain(|_, (known, _)| known.contains(&valid.start));
        }
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(key, (valid, sums));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::{Rank, RunProcess};

    const HOUR: i64 = 3_600_000;

    fn rank(began: i64, ended: Option<i64>, gpus: &[u32]) -> RunProcess {
        let rank = Rank { gpus: gpus.to_vec(), ..Rank::default() };
        RunProcess { source: "node".into(), began, ended, rank: Some(rank), ..RunProcess::default() }
    }

    #[test]
    fn a_day_that_was_read_before_the_clock_was_set_back_is_read_again() {
        let days = RunDays::default();
        let key = || ("a".to_string(), 0, 1, None, Vec::new());
        days.insert(key(), 100..160, Arc::default());
        let is_cached = |now| days.cached(&key(), now).is_some();
        assert_eq!([99, 100, 159, 160].map(is_cached), [false, true, true, false]);
    }

    #[test]
    fn a_run_over_midnight_is_divided_and_each_day_has_its_own_hours() {
        let processes = vec![rank(22 * HOUR, Some(26 * HOUR), &[0, 1]), rank(25 * HOUR, None, &[2])];
        let run = Run { began: 22 * HOUR, processes, ..Run::default() };
        let now = 49 * HOUR;
        let hours: Vec<(i64, Option<f64>)> =
            parts(&run, (0, 9), now).map(|(day, part)| (day, held_sums(&part, now).gpu_hours())).collect();
        assert_eq!(hours, [(0, Some(4.0)), (1, Some(4.0 + 23.0)), (2, Some(1.0))]);
        let some: Vec<i64> = parts(&run, (1, 1), now).map(|(day, _)| day).collect();
        assert_eq!(some, [1], "between two days");
        assert_eq!(part_of(&run, (60 * HOUR, 70 * HOUR), now), None, "it was not there");
    }
}
