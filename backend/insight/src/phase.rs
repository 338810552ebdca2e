//! Phase of a group per second, and its usual pauses.

use std::collections::VecDeque;

/// Phase of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No process and no memory.
    Off,
    /// It has not worked for a minute yet.
    Starting,
    /// At least half of its members work.
    Working,
    /// Any other state after work.
    Pausing,
    /// Busy with little power, except for at most one member.
    Spinning,
    /// No member is used.
    Idle,
}

/// State of the members at a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemberStates {
    pub members: usize,
    /// Members with a known state.
    pub known: usize,
    pub working: usize,
    pub spinning: usize,
    pub idle: usize,
    /// Members with neither process nor memory.
    pub off: usize,
}

/// Maximum number of stored pauses.
const MAX_PAUSES: usize = 16;

/// Phases of a group over time.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub phase: Phase,
    /// Start of the phase, second.
    pub since: i64,
    /// Total seconds of work.
    pub worked: i64,
    /// Newest second of work, and start of that stretch of work.
    pub last_work: i64,
    pub stretch: i64,
    /// The longest stretch of work, seconds.
    pub longest: i64,
    /// Last change between starting, working and pausing.
    pub changed: i64,
    /// Recent pauses: phase and length.
    pauses: VecDeque<(Phase, i64)>,
    /// Longest time per phase within the current pause.
    pause: [i64; 2],
    /// Times of the last stops of work.
    stops: [i64; 4],
}

/// Work with this many stops in so many seconds stops in every step.
const CYCLE: i64 = 240;

impl Course {
    pub fn new(now: i64) -> Self {
        Course {
            phase: Phase::Starting,
            since: now,
            worked: 0,
            last_work: now,
            stretch: now,
            longest: 0,
            changed: now,
            pauses: VecDeque::new(),
            pause: [0; 2],
            stops: [i64::MIN / 4; 4],
        }
    }

    /// Advances to a second with a sample, `dt` seconds after the previous one.
    pub fn step(&mut self, now: i64, dt: i64, seen: MemberStates) {
        if seen.known == 0 {
            return;
        }
        let all = seen.known >= seen.members.div_ceil(2);
        let phase = if seen.working * 2 >= seen.members && seen.working > 0 {
            Phase::Working
        } else if seen.off == seen.known && all {
            Phase::Off
        } else if self.worked < 60 {
            Phase::Starting
        } else if seen.idle == seen.known && all {
            Phase::Idle
        } else if seen.spinning > 0 && seen.working == 0 && seen.spinning + 1 >= seen.members {
            Phase::Spinning
        } else {
            Phase::Pausing
        };
        if phase == Phase::Working {
            self.worked += dt;
            if self.worked < 60 && self.phase != Phase::Working {
                // Work of the first minute is part of the start.
                self.stretch = now;
            }
            self.last_work = now;
        }
        match self.phase {
            Phase::Spinning => self.pause[0] = self.pause[0].max(now - self.since),
            Phase::Idle => self.pause[1] = self.pause[1].max(now - self.since),
            _ => {}
        }
        if phase == self.phase {
            if phase == Phase::Working {
                self.longest = self.longest.max(now - self.stretch);
            }
            return;
        }
        if self.phase == Phase::Working {
            self.stops.rotate_left(1);
            self.stops[3] = now;
        }
        let quiet = |phase| matches!(phase, Phase::Spinning | Phase::Idle | Phase::Off);
        if !quiet(phase) {
            self.changed = now;
        }
        if phase == Phase::Working {
            self.stretch = now;
            for (of, at) in [(Phase::Spinning, 0), (Phase::Idle, 1)] {
                let length = std::mem::take(&mut self.pause[at]);
                if length > 2 * dt.max(1) {
                    self.pauses.push_back((of, length));
                    if self.pauses.len() > MAX_PAUSES {
                        self.pauses.pop_front();
                    }
                }
            }
        }
        (self.phase, self.since) = (phase, now);
    }

    /// Longest stored pause in this phase, seconds.
    pub fn longest_pause(&self, of: Phase) -> i64 {
        self.pauses.iter().filter(|(phase, _)| *phase == of).map(|(_, length)| *length).max().unwrap_or(0)
    }

    /// Whether its steps are so long that it works and waits in turn: the waits are part of the work.
    pub fn is_cyclic(&self, now: i64) -> bool {
        now - self.stops[0] <= CYCLE && now - self.last_work <= 60
    }

    /// Whether it starts, or has worked within the last `seconds`.
    pub fn is_alive(&self, now: i64, seconds: i64) -> bool {
        self.phase == Phase::Starting || (self.phase != Phase::Off && now - self.last_work < seconds)
    }

    /// Whether half a minute has passed since a change among starting, working and pausing. Before that only losses are
    /// reported.
    pub fn is_settled(&self, now: i64) -> bool {
        now - self.changed >= 30
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(working: usize, spinning: usize, idle: usize) -> MemberStates {
        MemberStates { members: 4, known: 4, working, spinning, idle, off: 0 }
    }

    #[test]
    fn pauses_are_remembered_by_what_was_done() {
        let mut course = Course::new(0);
        let plan =
            [(0..100, seen(4, 0, 0)), (100..140, seen(0, 4, 0)), (140..200, seen(4, 0, 0)), (200..290, seen(0, 0, 4))];
        for (span, seen) in plan {
            for t in span {
                course.step(t, 1, seen);
            }
        }
        assert_eq!((course.phase, course.since), (Phase::Idle, 200));
        assert_eq!(course.longest_pause(Phase::Idle), 0, "it goes on");
        course.step(290, 1, seen(4, 0, 0));
        assert_eq!((course.longest_pause(Phase::Spinning), course.longest_pause(Phase::Idle)), (40, 90));
        assert_eq!((course.phase, course.longest), (Phase::Working, 99));
    }

    #[test]
    fn one_may_be_another_while_all_others_spin() {
        let mut course = Course::new(0);
        for t in 0..70 {
            course.step(t, 1, seen(4, 0, 0));
        }
        course.step(70, 1, seen(0, 3, 1));
        assert_eq!(course.phase, Phase::Spinning);
        course.step(71, 1, seen(1, 3, 0));
        assert_eq!(course.phase, Phase::Pausing, "one works: it is waited for");
        course.step(72, 1, MemberStates { members: 4, ..MemberStates::default() });
        assert_eq!((course.phase, course.since), (Phase::Pausing, 71), "nothing is known");
    }

    #[test]
    fn it_starts_until_it_has_worked_for_a_minute() {
        let mut course = Course::new(0);
        course.step(1, 1, seen(0, 4, 0));
        assert_eq!(course.phase, Phase::Starting);
        course.step(2, 1, MemberStates { off: 4, ..seen(0, 0, 4) });
        assert_eq!(course.phase, Phase::Off);
    }
}
