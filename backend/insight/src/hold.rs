//! Duration of a condition, in seconds of data. A missing sample is no evidence either way.

/// A condition that must hold without interruption.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hold {
    since: i64,
    /// Seconds from the start to the newest evidence.
    held: u32,
    on: bool,
}

impl Hold {
    /// Adds the verdict at `now`; None: unknown. After `patience` seconds without a verdict the condition ends.
    pub fn step(&mut self, now: i64, verdict: Option<bool>, patience: i64) {
        match verdict {
            Some(true) if self.on && now - self.last() <= patience => {
                self.held = u32::try_from(now - self.since).unwrap_or_default();
            }
            Some(true) => *self = Hold { since: now, held: 0, on: true },
            Some(false) => self.on = false,
            None if now - self.last() > patience => self.on = false,
            None => {}
        }
    }

    fn last(&self) -> i64 {
        self.since + i64::from(self.held)
    }

    /// Whether it has held for `seconds` by its newest evidence.
    pub fn held(&self, seconds: i64) -> bool {
        self.on && i64::from(self.held) >= seconds
    }

    /// Start, while it holds.
    pub fn since(&self) -> Option<i64> {
        self.on.then_some(self.since)
    }

    pub fn clear(&mut self) {
        self.on = false;
    }
}

/// A condition that must hold in a share of a window: one bit for each of the last 120 intervals, and one for whether
/// it is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    yes: u128,
    known: u128,
    since: i64,
    /// The newest interval since the Unix epoch, and its length, seconds.
    at: u32,
    step: u32,
}

/// Maximum number of intervals of a window.
const MAX_WINDOW: i64 = 120;

impl Share {
    /// Adds the verdict at `now` with an interval of `step` seconds; None: unknown.
    pub fn step(&mut self, now: i64, step: i64, verdict: Option<bool>) {
        let step = u32::try_from(step.max(1)).unwrap_or(u32::MAX);
        let at = u32::try_from(now / i64::from(step)).unwrap_or_default();
        if step != self.step || at < self.at {
            *self = Share { step, at, ..Share::default() };
        }
        let moved = (at - self.at).min(128);
        if moved >= 128 {
            (self.yes, self.known) = (0, 0);
        } else {
            self.yes <<= moved;
            self.known <<= moved;
        }
        self.at = at;
        let Some(verdict) = verdict else { return };
        if verdict && self.yes == 0 {
            self.since = now;
        }
        self.known |= 1;
        self.yes = self.yes & !1 | u128::from(verdict);
    }

    fn window(&self, seconds: i64) -> (u32, u128) {
        let n = (seconds / i64::from(self.step.max(1))).clamp(3, MAX_WINDOW);
        (n as u32, if n >= 128 { u128::MAX } else { (1u128 << n) - 1 })
    }

    /// Whether it held in at least `share` (0 to 1) of the last seconds, or of the last three intervals where they are
    /// longer.
    pub fn held(&self, share: f64, seconds: i64) -> bool {
        let (n, mask) = self.window(seconds);
        f64::from((self.yes & mask).count_ones()) >= (share * f64::from(n)).ceil().max(2.0)
    }

    /// Whether it held in less than `share` of the last seconds, with at least half of them known.
    pub fn ended(&self, share: f64, seconds: i64) -> bool {
        let (n, mask) = self.window(seconds);
        let known = (self.known & mask).count_ones();
        let yes = (self.yes & mask).count_ones();
        known * 2 >= n && (f64::from(yes) < share * f64::from(n) || yes == 0)
    }

    /// Start of the condition in the whole window.
    pub fn since(&self) -> i64 {
        self.since
    }

    /// Start of the condition in the last `seconds`.
    pub fn began(&self, seconds: i64) -> i64 {
        let (_, mask) = self.window(seconds);
        let oldest = 127 - i64::from((self.yes & mask).leading_zeros());
        ((i64::from(self.at) - oldest.max(0)) * i64::from(self.step.max(1))).max(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_survives_missing_samples_and_no_more() {
        let mut hold = Hold::default();
        for t in 0..30 {
            hold.step(t, if t % 7 == 3 { None } else { Some(true) }, 5);
        }
        assert!(hold.held(29) && !hold.held(30));
        assert_eq!(hold.since(), Some(0));
        for t in 30..36 {
            hold.step(t, None, 5);
        }
        assert!(!hold.held(0));
        hold.step(50, Some(true), 5);
        assert_eq!(hold.since(), Some(50), "a gap begins it anew");
        hold.step(51, Some(false), 5);
        assert!(!hold.held(0));
    }

    #[test]
    fn a_share_counts_what_is_known() {
        let mut share = Share::default();
        for t in 0..30 {
            share.step(t, 1, Some(t % 2 == 0));
        }
        assert!(share.held(0.5, 30) && !share.held(0.6, 30));
        assert!(!share.ended(0.1, 30));
        for t in 30..200 {
            share.step(t, 1, None);
        }
        assert!(!share.held(0.1, 60), "nothing is known");
        assert!(!share.ended(0.1, 60), "that it ended is not known either");
        for t in 200..260 {
            share.step(t, 1, Some(false));
        }
        assert!(share.ended(0.05, 60));
    }

    #[test]
    fn three_intervals_are_the_shortest_window() {
        let mut share = Share::default();
        for t in [0, 60, 120] {
            assert!(!share.held(0.5, 30) || t == 120);
            share.step(t, 60, Some(true));
        }
        assert!(share.held(0.5, 30));
        assert_eq!(share.since(), 0);
    }
}
