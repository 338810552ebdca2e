//! What a group does, second by second, and how long it usually pauses.

use std::collections::VecDeque;

/// What a group does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No process, no memory.
    Off,
    /// It has not worked for a minute yet.
    Starting,
    /// Half of its members work.
    Working,
    /// Anything else after work.
    Pausing,
    /// Busy, with little power, but for at most one member.
    Spinning,
    /// No use on any.
    Idle,
}

/// What is seen of the members at a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub members: usize,
    /// Of which something is known now.
    pub known: usize,
    pub working: usize,
    pub spinning: usize,
    pub idle: usize,
    /// Neither process nor memory.
    pub off: usize,
}

/// How many pauses are remembered.
const PAUSES: usize = 16;

/// The course of a group.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub phase: Phase,
    /// When the phase began, second.
    pub since: i64,
    /// Seconds of work in all.
    pub worked: i64,
    /// When it worked last, and when that stretch of work began.
    pub last_work: i64,
    pub stretch: i64,
    /// The longest stretch of work, seconds.
    pub longest: i64,
    /// When it last changed between starting, working and pausing.
    pub changed: i64,
    /// The last pauses, by what it did in them, and how long.
    pauses: VecDeque<(Phase, i64)>,
    /// Longest time in a phase within the pause that goes on.
    pause: [i64; 2],
}

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
        }
    }

    /// A second in which something of it was seen; `dt` seconds after the one before.
    pub fn step(&mut self, now: i64, dt: i64, seen: Seen) {
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
                    if self.pauses.len() > PAUSES {
                        self.pauses.pop_front();
                    }
                }
            }
        }
        (self.phase, self.since) = (phase, now);
    }

    /// The longest pause remembered in which it did this, seconds.
    pub fn longest_pause(&self, of: Phase) -> i64 {
        self.pauses.iter().filter(|(phase, _)| *phase == of).map(|(_, length)| *length).max().unwrap_or(0)
    }

    /// Nothing but a loss is told in the half minute after a change among starting, working and pausing.
    pub fn is_settled(&self, now: i64) -> bool {
        now - self.changed >= 30
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(working: usize, spinning: usize, idle: usize) -> Seen {
        Seen { members: 4, known: 4, working, spinning, idle, off: 0 }
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
        course.step(72, 1, Seen { members: 4, ..Seen::default() });
        assert_eq!((course.phase, course.since), (Phase::Pausing, 71), "nothing is known");
    }

    #[test]
    fn it_starts_until_it_has_worked_for_a_minute() {
        let mut course = Course::new(0);
        course.step(1, 1, seen(0, 4, 0));
        assert_eq!(course.phase, Phase::Starting);
        course.step(2, 1, Seen { off: 4, ..seen(0, 0, 4) });
        assert_eq!(course.phase, Phase::Off);
    }
}
