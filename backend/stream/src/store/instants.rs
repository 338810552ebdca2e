//! The instants at which a source has ticked. One instant has one tick. If the clock is set back over it, the first
//! tick stays, because it may have been forwarded already. Later ones are left out and counted.

use super::Block;

/// Maximum number of separate runs; above it neighbors are joined.
const MAX_RUNS: usize = 10_000;

/// Runs at most this far apart, milliseconds, are neighbors.
const NEIGHBOR_MS: i64 = 60_000;

/// Instants at equal distances.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: i64,
    last: i64,
    /// Distance in milliseconds; 0 for a single instant.
    step: i64,
}

impl Run {
    fn holds(&self, t: i64) -> bool {
        // A run of one instant contains itself, at any step.
        (self.first..=self.last).contains(&t) && (t - self.first) % self.step.max(1) == 0
    }
}

/// Instants that already have a tick, milliseconds since the Unix epoch.
#[derive(Debug)]
pub(super) struct Instants {
    /// In order of arrival, which is nearly always the order of time.
    runs: Vec<Run>,
    newest: i64,
}

impl Default for Instants {
    fn default() -> Self {
        Instants { runs: Vec::new(), newest: i64::MIN }
    }
}

impl Instants {
    /// The end of the run that contains this instant, if it already has a tick.
    pub fn taken(&self, t: i64) -> Option<i64> {
        // The usual case: time advances.
        let taken = (t <= self.newest).then(|| self.runs.iter().rev().find(|run| run.holds(t)));
        taken.flatten().map(|run| run.last)
    }

    /// Marks an instant as taken.
    pub fn take(&mut self, t: i64) {
        self.newest = self.newest.max(t);
        match self.runs.last_mut() {
            Some(run) if run.step > 0 && t.saturating_sub(run.last) == run.step => run.last = t,
            Some(run) if run.step == 0 && (1..=NEIGHBOR_MS).contains(&t.saturating_sub(run.last)) => {
                (run.step, run.last) = (t - run.last, t);
            }
            _ => {
                self.runs.push(Run { first: t, last: t, step: 0 });
                self.bound();
            }
        }
    }

    /// Marks the instants of a block. If they cannot be read, the whole span of the block counts as taken: they may
    /// become readable.
    pub fn take_block(&mut self, block: &Block) {
        match block.read_times() {
            Ok(times) => times.into_iter().for_each(|t| self.take(t)),
            Err(_) => {
                self.newest = self.newest.max(block.to());
                self.runs.push(Run { first: block.from(), last: block.to(), step: 1 });
                self.bound();
            }
        }
    }

    /// Drops runs that ended before this time: their ticks are not stored any more, so no duplicate is possible.
    pub fn forget(&mut self, before: i64) {
        self.runs.retain(|run| run.last >= before);
    }

    /// Joins neighbors, with the time between them counted as taken. If that is not enough, drops the oldest.
    fn bound(&mut self) {
        if self.runs.len() <= MAX_RUNS {
            return;
        }
        self.runs.sort_by_key(|run| run.first);
        self.runs.dedup_by(|next, run| {
            let near = next.first.saturating_sub(run.last) <= NEIGHBOR_MS;
            if near {
                *run = Run { first: run.first, last: run.last.max(next.last), step: 1 };
            }
            near
        });
        let half = MAX_RUNS / 2;
        if self.runs.len() > half {
            self.runs.drain(..self.runs.len() - half);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn an_instant_is_taken_once_it_was_and_no_other(
            // Steps of a clock that usually advances, and is set at times.
            steps in prop::collection::vec(prop_oneof![5 => 1..4i64, 1 => -200..200i64, 1 => -4_000_000..4_000_000i64], 1..400),
        ) {
            let (mut instants, mut known, mut t) = (Instants::default(), HashSet::new(), 1_700_000_000_000);
            for step in steps {
                t += step;
                prop_assert_eq!(instants.taken(t).is_some(), !known.insert(t));
                if instants.taken(t).is_none() {
                    instants.take(t);
                }
            }
            prop_assert!((t - 300..t + 300).all(|t| instants.taken(t).is_some() == known.contains(&t)));
        }
    }

    #[test]
    fn a_clock_that_never_keeps_step_takes_bounded_memory_and_no_instant_twice() {
        let (mut instants, mut t) = (Instants::default(), 0);
        let mut all = Vec::new();
        for i in 0..100_000i64 {
            t += 1_000 + i * i % 7;
            instants.take(t);
            all.push(t);
        }
        assert!(instants.runs.len() <= MAX_RUNS);
        assert!(all.iter().all(|t| instants.taken(*t).is_some()));
        instants.forget(t + 1);
        assert!(instants.runs.is_empty());
    }
}
