//! Offset between an agent's clock and ours, and the correction of its timestamps.
//!
//! An offset within two seconds is not corrected. A larger one gets a *shift*, which holds for an *era*: until that
//! clock steps, its life ends, or shift and clock diverge again. So charts use the hub's clock, whatever an agent's
//! clock shows.

use std::collections::VecDeque;
use team::accounts::Era;

/// A clock within this offset is right, milliseconds.
const RIGHT_MS: i64 = 2_000;
/// Consecutive measurements that are needed to decide that it is not.
const MIN_MEASUREMENTS: u32 = 3;
/// An offset larger than this in one life is not applied to another life.
const HOUR_MS: i64 = 3_600_000;
/// Number of remembered measurements, of which the best one counts.
const MAX_MEASUREMENTS: usize = 8;

/// Maximum number of eras. Above it the oldest are forgotten: the clock of some machines is set again and again.
const MAX_ERAS: usize = 1_000;

/// Result of one exchange of timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Offset of the agent's clock ahead of ours, milliseconds.
    pub skew_ms: i64,
    /// Round-trip time; the error of the offset is at most half of it.
    pub round_trip_ms: i64,
}

/// Neighbors of fetched ticks.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// Shift with which they continue exactly from the ticks before, milliseconds.
    pub goes_on: Option<i64>,
    /// Shift with which they lead exactly to the ticks after, milliseconds.
    pub leads_to: Option<i64>,
    /// The clock was set just before them, and the tick before that is stored here.
    pub set: bool,
    /// They belong to the agent's current life, whose eras are known.
    pub of_life: bool,
    /// Time between two ticks, milliseconds.
    pub interval: i64,
}

/// The clock of one link's agent.
#[derive(Debug, Default)]
pub struct AgentClock {
    /// The last answered question: its number, the agent's send time, and our receive and answer times.
    answered: Option<(u32, i64, i64, i64)>,
    measured: VecDeque<Measured>,
    /// Number of consecutive measurements in which shift and clock diverged.
    off: u32,
    /// Sorted by first sequence.
    eras: Vec<Era>,
}

impl AgentClock {
    /// The clock of an agent whose eras are known.
    pub fn new(eras: Vec<Era>) -> Self {
        AgentClock { eras, ..AgentClock::default() }
    }

    /// The current shift of timestamps, milliseconds.
    pub fn shift(&self) -> i64 {
        self.eras.last().map_or(0, |era| era.shift_ms)
    }

    /// The shift of this tick's timestamp; `life` is the first tick of the agent's life, whose clock is known.
    pub fn shift_at(&self, seq: u64, life: u64) -> i64 {
        match (self.eras.iter().rev().find(|era| era.first <= seq), self.eras.first()) {
            (Some(era), _) => era.shift_ms,
            (None, Some(first)) if seq >= life => first.shift_ms,
            // For an earlier life it is unknown: the clock may have been right then.
            (None, _) => Some(self.shift()).filter(|shift| shift.abs() <= HOUR_MS).unwrap_or(0),
        }
    }

    /// The shift of timestamps between known neighbors. `known` is used if with it they continue from the ticks before,
    /// or lead to those after. Else the shift of another era of the agent's life for which that holds is used. If there
    /// is none, the clock was set while nothing could be sent. Then the shift with which both sides fit is used, or the
    /// one with which they continue from the tick right before them.
    pub fn shift_between(&self, known: i64, beside: Beside) -> i64 {
        let Beside { goes_on, leads_to, set, of_life, interval } = beside;
        let off = |shift: i64| {
            let beside = [goes_on, leads_to].into_iter().flatten();
            beside.map(|exact| exact.saturating_sub(shift).unsigned_abs()).min().unwrap_or(0)
        };
        // If two are equally good, the newer is used.
        let others = self.eras.iter().rev().map(|era| era.shift_ms).chain([0]).filter(|_| of_life);
        let best = [known].into_iter().chain(others).min_by_key(|shift| off(*shift)).unwrap_or(known);
        let exact = match (goes_on, leads_to) {
            _ if off(known) <= RIGHT_MS as u64 => return known,
            _ if off(best) <= RIGHT_MS as u64 => return best,
            // A sampler that hung, or a machine that slept, is late on one side and early on the other.
            (Some(before), Some(behind)) if before.abs_diff(behind) <= RIGHT_MS as u64 => before,
            (Some(before), _) if set => before,
            _ => return best,
        };
        round(exact, interval.max(1_000))
    }

    /// Whether there are enough measurements.
    pub fn is_known(&self) -> bool {
        self.measured.len() >= MIN_MEASUREMENTS as usize
    }

    /// The best of the last measurements.
    pub fn skew(&self) -> Option<Measured> {
        self.measured.iter().copied().min_by_key(|one| one.round_trip_ms)
    }

    /// Records a question that came at `received` and is answered at `answered`, by our clock. It also has the arrival
    /// time of the previous answer, which completes one more measurement.
    pub fn asked(&mut self, id: u32, sent: i64, arrived: Option<i64>, (received, answered): (i64, i64)) {
        let before = self.answered.replace((id, sent, received, answered));
        let Some(((last, t1, t2, t3), t4)) = before.zip(arrived) else { return };
        let within = [t1, t4].iter().all(|t| t.unsigned_abs() < 1 << 53);
        if last.checked_add(1) != Some(id) || !within || t4 < t1 {
            return;
        }
        let skew_ms = -((t2 - t1) + (t3 - t4)) / 2;
        let round_trip_ms = ((t4 - t1) - (t3 - t2)).max(0);
        if self.measured.len() == MAX_MEASUREMENTS {
            self.measured.pop_front();
        }
        self.measured.push_back(Measured { skew_ms, round_trip_ms });
        let best = self.skew().map_or(skew_ms, |best| best.skew_ms);
        self.off = if (best + self.shift()).abs() > RIGHT_MS { self.off + 1 } else { 0 };
    }

    /// A new era if shift and clock have clearly diverged. It begins with the tick after `seq`, of a source with a tick
    /// every `interval` milliseconds.
    pub fn part(&mut self, seq: u64, interval: i64) -> Option<Era> {
        if self.off < MIN_MEASUREMENTS {
            return None;
        }
        let skew = self.skew()?.skew_ms;
        self.begin(seq.checked_add(1)?, round(-skew, interval.max(1_000)))
    }

    /// The agent's clock was set by this amount just before the tick `seq`: the corrected timestamps continue without a
    /// step.
    pub fn stepped(&mut self, seq: u64, by_ms: i64, interval: i64) -> Option<Era> {
        if by_ms.abs() <= RIGHT_MS {
            return None;
        }
        // Earlier measurements do not apply any more.
        self.measured.clear();
        self.answered = None;
        let wanted = self.shift().saturating_sub(round(by_ms, interval.max(1_000)));
        self.begin(seq, if wanted.abs() <= RIGHT_MS { 0 } else { wanted })
    }

    fn begin(&mut self, first: u64, shift_ms: i64) -> Option<Era> {
        self.off = 0;
        if shift_ms == self.shift() {
            return None;
        }
        let Measured { skew_ms, round_trip_ms: rtt_ms } =
            self.skew().unwrap_or(Measured { skew_ms: 0, round_trip_ms: 0 });
        let era = Era { first, shift_ms, skew_ms, rtt_ms };
        self.eras.retain(|old| old.first < first);
        self.eras.push(era);
        let more = self.eras.len().saturating_sub(MAX_ERAS);
        self.eras.drain(..more);
        Some(era)
    }
}

/// The nearest multiple of a step.
fn round(ms: i64, step: i64) -> i64 {
    ms.saturating_add(step / 2).div_euclid(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent that is `ahead` of us asks `times` times, with a latency of 20 ms to us and 40 ms back.
    fn ask(clock: &mut AgentClock, ahead: i64, times: u32) {
        let (mut now, mut arrived) = (1_700_000_000_000, None);
        let first = clock.answered.map_or(1, |(id, ..)| id + 1);
        for id in first..first + times {
            clock.asked(id, now + ahead, arrived, (now + 20, now + 21));
            arrived = Some(now + 61 + ahead);
            now += 100;
        }
    }

    #[test]
    fn a_clock_that_is_right_is_left_alone() {
        for ahead in [0, 1_500, -1_500] {
            let mut clock = AgentClock::default();
            ask(&mut clock, ahead, 9);
            let measured = clock.skew().expect("it was asked nine times");
            assert_eq!(measured.round_trip_ms, 60);
            assert!((measured.skew_ms - ahead).abs() <= 30, "{measured:?}");
            assert_eq!((clock.part(7, 1_000), clock.shift()), (None, 0));
        }
    }

    #[test]
    fn one_that_is_an_hour_off_gets_a_shift_in_whole_intervals_after_three_measurements() {
        for ahead in [3_600_000, -3_600_000] {
            let mut clock = AgentClock::default();
            ask(&mut clock, ahead, 3);
            assert_eq!(clock.part(7, 1_000), None, "two measurements are not enough");
            ask(&mut clock, ahead, 2);
            assert_eq!(clock.part(7, 1_000).map(|era| (era.first, era.shift_ms)), Some((8, -ahead)));
            assert_eq!((clock.shift_at(7, 7), clock.shift_at(8, 7), clock.shift()), (-ahead, -ahead, -ahead));
            ask(&mut clock, ahead, 9);
            assert_eq!(clock.part(20, 1_000), None, "it is corrected");
        }
    }

    #[test]
    fn a_step_is_taken_back_at_once_and_a_clock_that_was_set_right_has_no_shift() {
        let mut clock = AgentClock::default();
        let mut step = |seq, by| clock.stepped(seq, by, 1_000).map(|era| (era.first, era.shift_ms));
        assert_eq!(step(10, 1_000), None);
        assert_eq!(step(10, 3_600_200), Some((10, -3_600_000)));
        assert_eq!(step(50, -3_600_100), Some((50, 0)));
        assert_eq!((clock.shift_at(9, 10), clock.shift_at(49, 10), clock.shift_at(50, 10)), (0, -3_600_000, 0));
    }

    #[test]
    fn a_clock_that_is_set_again_and_again_has_the_newest_eras_only() {
        let mut clock = AgentClock::default();
        for seq in 0..3 * MAX_ERAS as u64 {
            let by = if seq % 2 == 0 { HOUR_MS } else { -HOUR_MS };
            assert!(clock.stepped(seq, by, 1_000).is_some());
        }
        let newest = 3 * MAX_ERAS as u64 - 1;
        assert_eq!(
            (clock.eras.len(), clock.shift_at(newest, 0), clock.shift_at(newest - 1, 0)),
            (MAX_ERAS, 0, -HOUR_MS)
        );
        assert_eq!(clock.shift_at(0, 0), clock.eras[0].shift_ms, "the first known one of this life");
    }

    #[test]
    fn what_lies_beside_a_step_that_nobody_told_of_is_put_where_it_belongs() {
        const HOUR: i64 = 3_600_000;
        let era = |first, shift_ms| Era { first, shift_ms, skew_ms: -shift_ms, rtt_ms: 1 };
        let clock = AgentClock::new(vec![era(50, -HOUR)]);
        let beside = |goes_on, leads_to, set| Beside { goes_on, leads_to, set, of_life: true, interval: 1_000 };
        let shift = |goes_on, leads_to, set| clock.shift_between(-HOUR, beside(goes_on, leads_to, set));
        assert_eq!(shift(None, None, false), -HOUR, "nobody is beside it");
        assert_eq!(shift(Some(0), Some(0), false), 0, "from before the step");
        assert_eq!(shift(Some(0), Some(-HOUR + 1_500), false), -HOUR, "it leads to what is there");
        assert_eq!(shift(Some(-HOUR - 9_000), None, false), -HOUR, "a sampler that hung moves nothing");
        assert_eq!(shift(Some(HOUR / 2 + 300), Some(7 * HOUR), true), HOUR / 2, "set twice meanwhile");
        assert_eq!(shift(Some(HOUR / 2), Some(7 * HOUR), false), 0, "no step is told, so none is made up");
        assert_eq!(shift(Some(HOUR / 2), Some(HOUR / 2 - 900), false), HOUR / 2, "both sides say so");
        // Eras do not apply to an earlier life.
        let other = |goes_on, leads_to, set| {
            clock.shift_between(0, Beside { of_life: false, ..beside(goes_on, leads_to, set) })
        };
        assert_eq!(
            other(Some(-HOUR), Some(4 * HOUR), false),
            0,
            "numbers of two lives say nothing of the time between"
        );
        assert_eq!(other(Some(-HOUR), Some(4 * HOUR), true), -HOUR);
        assert_eq!(other(Some(-HOUR), Some(-HOUR), false), -HOUR);
    }

    #[test]
    fn absurd_times_are_no_measurements() {
        let mut clock = AgentClock::default();
        for (id, sent, arrived) in
            [(1, i64::MIN, None), (2, i64::MAX, Some(i64::MIN)), (3, 5, Some(i64::MAX)), (9, 0, Some(9))]
        {
            clock.asked(id, sent, arrived, (1, 2));
        }
        assert_eq!(clock.skew(), None);
    }
}
