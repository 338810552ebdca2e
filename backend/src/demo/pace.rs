//! Detects that a demo does not keep its interval: warnings on the page, in the log and on `/metrics`.

use shared::wire::{Check, CheckState};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::live::Live;

/// Length of the observed window, milliseconds.
const WINDOW_MS: i64 = 60_000;
/// Minimum of dropped instants, and of due instants for their share, before a warning: short disturbances by another
/// program are no fault of the demo.
const MIN_DROPPED: i64 = 3;
const MIN_DUE: i64 = 10;
const MIN_DROPPED_SHARE: f64 = 0.1;
/// Maximum age of values in intervals, with a minimum in milliseconds.
const MAX_LAG_INTERVALS: i64 = 3;
const MIN_LAG_MS: i64 = 3_000;
/// Time between two updates of the warning's numbers, milliseconds.
const SAY_EVERY_MS: i64 = 5_000;
/// Id of the check; the page shows it above the charts.
const CHECK: &str = "demo";

/// State of a fleet's pace.
pub(super) struct Pace {
    /// Between ticks, milliseconds.
    interval: i64,
    /// Description of the simulation, for people.
    what: String,
    /// Instants in the window with the number of instants dropped before them, oldest first; only those with any.
    dropped: VecDeque<(i64, i64)>,
    begun: Option<i64>,
    /// Time of the last warning; none while the pace is kept.
    said: Option<i64>,
}

/// A change to report.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PaceNews {
    /// It is behind; with a sentence.
    Behind(String),
    /// It keeps its interval again.
    Well,
}

impl Pace {
    pub fn new(interval: i64, what: String) -> Self {
        Pace { interval, what, dropped: VecDeque::new(), begun: None, said: None }
    }

    /// Records that the ticks of instant `t` were there at `now`, after `dropped` instants without ticks. Returns a
    /// change to report, if any. Times are milliseconds since the Unix epoch.
    pub fn tick(&mut self, t: i64, now: i64, dropped: i64) -> Option<PaceNews> {
        // The time of the start is not representative.
        let dropped = if self.begun.is_some() { dropped } else { 0 };
        let begun = *self.begun.get_or_insert(t);
        if dropped > 0 {
            self.dropped.push_back((t, dropped));
        }
        while self.dropped.front().is_some_and(|(at, _)| *at <= t - WINDOW_MS) {
            self.dropped.pop_front();
        }
        let window = (t - begun + self.interval).clamp(self.interval, WINDOW_MS);
        let due = (window / self.interval).max(1);
        let dropped = self.dropped.iter().map(|(_, count)| count).sum::<i64>().min(due);
        let lag = (now - t).max(0);
        let late = lag > (MAX_LAG_INTERVALS * self.interval).max(MIN_LAG_MS);
        let many = due >= MIN_DUE && dropped >= MIN_DROPPED && dropped as f64 >= MIN_DROPPED_SHARE * due as f64;
        if !late && !many {
            return self.said.take().map(|_| PaceNews::Well);
        }
        if self.said.is_some_and(|said| (now - said).abs() < SAY_EVERY_MS) {
            return None;
        }
        self.said = Some(now);
        let window = crate::config::show_duration(Duration::from_millis((window - window % 1_000).max(1_000) as u64));
        Some(PaceNews::Behind(format!(
            "this machine is too slow to simulate {}: the newest values are {:.1} s old, and {dropped} of {due} \
            ticks of the last {window} were dropped",
            self.what,
            lag as f64 / 1_000.0
        )))
    }

    /// As [`tick`](Self::tick), and reports the change on the page and in the log.
    pub fn tell(&mut self, live: &Live, t: i64, dropped: i64) {
        let now = live.clock.wall();
        let lag = (now - t).max(0);
        let behind = if lag > self.interval { lag as u64 } else { 0 };
        live.counts.behind_ms.store(behind, Ordering::Relaxed);
        live.counts.dropped_ticks.fetch_add(dropped.max(0) as u64, Ordering::Relaxed);
        let begins = self.said.is_none();
        match self.tick(t, now, dropped) {
            Some(PaceNews::Behind(reason)) => {
                if begins {
                    tracing::warn!("the demo is behind: {reason}");
                }
                let remedy = "choose fewer --hosts or --gpus, or a longer --interval".into();
                live.store().set_check(&check(CheckState::Partial, reason, remedy));
            }
            Some(PaceNews::Well) => {
                tracing::info!("the demo keeps its interval again");
                live.store().set_check(&check(CheckState::Ok, String::new(), String::new()));
            }
            None => {}
        }
    }
}

fn check(state: CheckState, reason: String, remedy: String) -> Check {
    Check { id: CHECK.into(), state, tried: Vec::new(), found: "a tick at each interval".into(), reason, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace::new(1_000, "64 machines with 8 GPUs each every 1s".into())
    }

    #[test]
    fn a_demo_that_drops_ticks_says_how_many_and_that_it_is_well_again() {
        let mut pace = pace();
        assert!((0..100).all(|n| pace.tick(n * 1_000, n * 1_000 + 30, 0).is_none()));
        // Each tick takes two seconds and a half: two of three are dropped.
        let said: Vec<PaceNews> =
            (0..40).filter_map(|n| pace.tick(102_000 + n * 3_000, 104_500 + n * 3_000, 2)).collect();
        let Some(PaceNews::Behind(first)) = said.first() else { panic!("{said:?}") };
        assert_eq!(
            first,
            "this machine is too slow to simulate 64 machines with 8 GPUs each every 1s: the newest values are 2.5 s old, \
             and 6 of 60 ticks of the last 1m were dropped"
        );
        let Some(PaceNews::Behind(last)) = said.last() else { panic!("{said:?}") };
        assert!(last.ends_with("and 40 of 60 ticks of the last 1m were dropped"), "{last}");
        assert!(said.len() <= 24, "at most each five seconds: {}", said.len());
        let mut after: Vec<PaceNews> =
            (0..120).filter_map(|n| pace.tick(222_000 + n * 1_000, 222_030 + n * 1_000, 0)).collect();
        assert_eq!(after.pop(), Some(PaceNews::Well), "once, and then nothing");
        assert!(
            after.len() <= 12 && !after.contains(&PaceNews::Well),
            "numbers fall while the window goes on: {after:?}"
        );
    }

    #[test]
    fn values_that_are_old_are_told_without_a_dropped_tick_and_one_hiccup_is_not() {
        let mut slow = pace();
        assert_eq!(slow.tick(0, 2_900, 0), None);
        assert!(matches!(slow.tick(1_000, 4_200, 0), Some(PaceNews::Behind(words)) if words.contains("are 3.2 s old")));
        let mut hiccup = pace();
        assert!((0..100).all(|n| hiccup.tick(n * 1_000, n * 1_000, i64::from(n == 50) * 2).is_none()));
    }
}
