//! Samples that the other server has taken and may not have on its disk yet: they are repeated if that server is
//! killed.
//!
//! The time of sending counts, never that of the samples: catching up sends hours of them in a second, and a killed
//! server loses seconds of its own time. Repeated samples are equal in time and value.

use super::covered::SentRange;
use std::time::Duration;

/// Maximum time for a server to write taken samples to disk. VictoriaMetrics takes some 5 s, and longer on a slow
/// disk.
const SETTLE_TIME: Duration = Duration::from_secs(30);
/// Maximum number of repeats of a range: a server that closes every connection never shows that it is alive.
const MAX_AGAIN: u8 = 4;
/// Maximum number of ranges of one source; beyond it two are merged, and the gap is repeated, too.
const MAX_RANGES: usize = 256;

/// Ticks that were taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenTicks {
    /// First and last sequence.
    pub range: SentRange,
    /// They are late, and lie among others.
    pub late: bool,
    /// Time of the response, by the steady clock.
    pub at: Duration,
    /// Number of repeats.
    pub again: u8,
}

/// Recently taken ticks of one source, and ticks to repeat.
#[derive(Debug, Default)]
pub struct Unsettled {
    taken: Vec<TakenTicks>,
    again: Vec<TakenTicks>,
    /// Number of losses that are handled.
    losses: u64,
}

impl Unsettled {
    /// Repeats the ticks of an earlier run: the server may have ended with that run, unnoticed.
    pub fn resumed(ranges: &[(u64, u64, bool)], at: Duration) -> Self {
        let again = ranges.iter().map(|&(first, last, late)| TakenTicks { range: (first, last), late, at, again: 0 });
        Unsettled { again: again.collect(), ..Unsettled::default() }
    }

    /// Records taken ticks. If the connection was `lost` after some of them, they are repeated.
    pub fn took(&mut self, taken: TakenTicks, lost: bool) {
        let all = if lost { &mut self.again } else { &mut self.taken };
        if lost && taken.again >= MAX_AGAIN {
            return;
        }
        let joins = |before: &TakenTicks| {
            (before.late, before.again) == (taken.late, taken.again)
                && before.range.1 + 1 == taken.range.0
                && taken.at.saturating_sub(before.at) < Duration::from_secs(1)
        };
        match all.last_mut().filter(|before| joins(before)) {
            Some(before) => before.range.1 = taken.range.1,
            None => all.push(taken),
        }
        if all.len() > MAX_RANGES {
            let first = all.remove(0);
            if let Some(next) = all.iter_mut().find(|next| next.late == first.late) {
                next.range = (next.range.0.min(first.range.0), next.range.1.max(first.range.1));
            }
        }
    }

    /// Updates the state: the number of losses, and the time of the last response, by the steady clock. Ticks taken
    /// shortly before a loss are repeated; older ones are settled.
    pub fn update_losses(&mut self, losses: u64, answered: Duration) {
        if losses != self.losses {
            self.losses = losses;
            let lost = std::mem::take(&mut self.taken).into_iter().filter(|taken| taken.again < MAX_AGAIN);
            self.again.extend(lost);
        }
        self.taken.retain(|taken| answered.saturating_sub(taken.at) < SETTLE_TIME);
    }

    /// The first ticks to repeat.
    pub fn next(&self) -> Option<TakenTicks> {
        self.again.first().copied()
    }

    /// Removes the first ticks to repeat, which were sent.
    pub fn gone(&mut self) {
        self.again.remove(0);
    }

    /// All ticks that would be lost with the server.
    pub fn ranges(&self) -> Vec<(u64, u64, bool)> {
        self.again.iter().chain(&self.taken).map(|taken| (taken.range.0, taken.range.1, taken.late)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(range: SentRange, at: u64) -> TakenTicks {
        TakenTicks { range, late: false, at: Duration::from_secs(at), again: 0 }
    }

    fn again(own: &mut Unsettled) -> Vec<SentRange> {
        let mut all = Vec::new();
        while let Some(next) = own.next() {
            own.gone();
            own.took(TakenTicks { again: next.again + 1, ..next }, false);
            all.push(next.range);
        }
        all
    }

    #[test]
    fn what_was_sent_shortly_before_a_loss_goes_again_however_old_its_samples_are() {
        let mut own = Unsettled::default();
        for n in 0..60 {
            own.took(taken((n * 900 + 1, n * 900 + 900), n), false);
            own.update_losses(0, Duration::from_secs(n));
        }
        assert_eq!(own.next(), None);
        // It was unreachable for an hour: the time of its last response counts.
        own.update_losses(1, Duration::from_secs(59));
        own.update_losses(1, Duration::from_secs(3_659));
        let all = again(&mut own);
        assert_eq!((all.first(), all.last()), (Some(&(30 * 900 + 1, 31 * 900)), Some(&(59 * 900 + 1, 60 * 900))));
        own.update_losses(1, Duration::from_secs(3_660));
        assert_eq!((own.next(), own.ranges()), (None, vec![]), "settled");
    }

    #[test]
    fn a_server_that_is_lost_all_the_time_is_sent_it_five_times_in_all() {
        let mut own = Unsettled::default();
        own.took(taken((1, 15), 0), false);
        let sent: usize = (1..20)
            .map(|loss| {
                own.update_losses(loss, Duration::ZERO);
                again(&mut own).len()
            })
            .sum();
        assert_eq!(sent, usize::from(MAX_AGAIN));
        own.took(TakenTicks { again: MAX_AGAIN, ..taken((1, 15), 0) }, true);
        assert_eq!(own.next(), None);
    }

    #[test]
    fn few_ranges_are_kept_and_none_is_forgotten() {
        let mut own = Unsettled::default();
        (0..5_000).for_each(|n| own.took(TakenTicks { late: n % 2 == 1, ..taken((n * 3, n * 3), n) }, false));
        let ranges = own.ranges();
        assert_eq!(ranges.len(), MAX_RANGES);
        for n in 0..5_000 {
            assert!(
                ranges.iter().any(|(first, last, late)| *late == (n % 2 == 1) && (*first..=*last).contains(&(n * 3)))
            );
        }
        (0..5_000).for_each(|n| own.took(taken((20_000 + n, 20_000 + n), 6_000), false));
        assert_eq!(own.ranges().last(), Some(&(20_000, 24_999, false)), "what follows at once is one range");
        let resumed = Unsettled::resumed(&own.ranges(), Duration::ZERO);
        assert_eq!(resumed.ranges(), own.ranges());
    }

    #[test]
    fn what_a_run_left_goes_once_more_in_the_next_though_no_loss_was_seen() {
        let mut before = Unsettled::default();
        before.took(taken((1, 15), 0), false);
        let mut own = Unsettled::resumed(&before.ranges(), Duration::from_secs(100));
        own.update_losses(0, Duration::from_secs(100));
        assert_eq!(again(&mut own), [(1, 15)]);
        own.update_losses(0, Duration::from_secs(140));
        assert_eq!((own.next(), own.ranges()), (None, vec![]), "it went, and is settled");
    }
}
