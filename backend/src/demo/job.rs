//! The timetable of a simulated rack's job: runs one after another, each with a start-up, then cycles of training that
//! end in a checkpoint, and an evaluation before every fifth checkpoint. All machines of a rack follow it together.
//!
//! Everything is a closed form of the time: the current work of the GPUs, their warmth, and the time spent in each
//! phase. So counters need no memory either.

use super::noise::Key;

/// Duration of each part of the job.
const START_UP_MS: i64 = 80_000;
const CHECKPOINT_MS: i64 = 9_000;
const EVALUATION_MS: i64 = 34_000;
const CHECKPOINTS_PER_EVALUATION: i64 = 5;
/// Time after which a job's baseline is learned, milliseconds.
const UNDER_WAY_MS: i64 = 30 * 60_000;

/// One of this many runs falls.
const FALLS_EVERY: i64 = 3;
/// Time constants of the temperature: the core's, and that of memory and heat sink, milliseconds.
const QUICK_COOLING_MS: f64 = 21_000.0;
const SLOW_COOLING_MS: f64 = 55_000.0;

/// Phases of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    StartUp,
    Train,
    Evaluate,
    Checkpoint,
    /// Its processes live, but are idle.
    Idle,
    /// It has ended.
    Dead,
}

impl Phase {
    /// Share of the power between idle and limit that it takes.
    pub fn power(self) -> f64 {
        match self {
            Phase::StartUp => 0.06,
            Phase::Train => 0.93,
            Phase::Evaluate => 0.60,
            Phase::Checkpoint => 0.09,
            Phase::Idle | Phase::Dead => 0.0,
        }
    }
}

/// Milliseconds in each phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spent {
    pub start_up: f64,
    pub train: f64,
    pub evaluate: f64,
    pub checkpoint: f64,
}

impl Spent {
    /// Time spent since an earlier instant.
    pub fn since(self, before: Spent) -> Spent {
        Spent {
            start_up: self.start_up - before.start_up,
            train: self.train - before.train,
            evaluate: self.evaluate - before.evaluate,
            checkpoint: self.checkpoint - before.checkpoint,
        }
    }
}

/// The job at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub phase: Phase,
    /// Milliseconds since the phase began.
    pub into: i64,
    /// Milliseconds since the run began.
    pub age: i64,
    /// Number of the run.
    pub run: i64,
    /// 0 to 1: warming of the cores, and of their memory, by the phase's power.
    pub warmth: (f64, f64),
    /// 0.84 to 1: the work grows as the loss falls, quickly at first.
    pub ramp: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    run: i64,
    cycle: i64,
    offset: i64,
}

impl Job {
    pub fn new(key: Key) -> Self {
        let cycle = key.derive(1).between(190.0, 270.0) as i64 * 1_000;
        let cycles = key.derive(2).between(40.0, 60.0) as i64;
        let run = START_UP_MS + cycles * cycle;
        Job { run, cycle, offset: (key.derive(3).unit(0) * run as f64) as i64 }
    }

    /// The same job, shifted so that at an instant its run has gone on for a while, goes on for a while, and follows one
    /// that fell: what a demo shows first does not depend on the hour. The shift is the same at near instants, so that two
    /// demos that are started together agree.
    pub fn under_way(self, t: i64) -> Self {
        let (run, age) = self.place(t);
        let later = (1 - run).rem_euclid(FALLS_EVERY);
        let shift = match age {
            ..UNDER_WAY_MS => -UNDER_WAY_MS,
            age if age > self.run - UNDER_WAY_MS => UNDER_WAY_MS,
            _ => 0,
        };
        Job { offset: self.offset + shift - later * self.run, ..self }
    }

    /// Whether the run of a number falls by an error of its own.
    pub fn falls(&self, run: i64) -> bool {
        run.rem_euclid(FALLS_EVERY) == 0
    }

    /// Number of the run at an instant.
    pub fn number(&self, t: i64) -> i64 {
        self.place(t).0
    }

    /// Start of the run of a number, milliseconds since the Unix epoch.
    pub fn begin(&self, run: i64) -> i64 {
        self.offset + run * self.run
    }

    /// Number of the run and time since it began.
    fn place(&self, t: i64) -> (i64, i64) {
        ((t - self.offset).div_euclid(self.run), (t - self.offset).rem_euclid(self.run))
    }

    /// Phase and its begin within the run.
    fn phase(&self, age: i64) -> (Phase, i64) {
        if age < START_UP_MS {
            return (Phase::StartUp, 0);
        }
        let (cycle, within) = ((age - START_UP_MS) / self.cycle, (age - START_UP_MS) % self.cycle);
        let begin = START_UP_MS + cycle * self.cycle;
        let checkpoint = self.cycle - CHECKPOINT_MS;
        let evaluation = checkpoint
            - if cycle % CHECKPOINTS_PER_EVALUATION == CHECKPOINTS_PER_EVALUATION - 1 { EVALUATION_MS } else { 0 };
        match within {
            w if w >= checkpoint => (Phase::Checkpoint, begin + checkpoint),
            w if w >= evaluation => (Phase::Evaluate, begin + evaluation),
            _ => (Phase::Train, begin),
        }
    }

    pub fn at(&self, t: i64) -> Moment {
        let (run, age) = self.place(t);
        let (phase, begin) = self.phase(age);
        Moment {
            phase,
            into: age - begin,
            age,
            run,
            warmth: self.warmth(t, phase, t - (age - begin)),
            ramp: 1.0 - 0.16 * (-(age as f64) / 420_000.0).exp(),
        }
    }

    /// A first-order response to the phases' power: each past change counts by its decayed remainder.
    fn warmth(&self, t: i64, phase: Phase, begin: i64) -> (f64, f64) {
        let (mut quick, mut slow) = (phase.power(), phase.power());
        let (mut level, mut at) = (phase.power(), begin);
        while (t - at) as f64 <= 6.0 * SLOW_COOLING_MS {
            let (_, age) = self.place(at - 1);
            let (before, start) = self.phase(age);
            let change = before.power() - level;
            quick += change * (-((t - at) as f64) / QUICK_COOLING_MS).exp();
            slow += change * (-((t - at) as f64) / SLOW_COOLING_MS).exp();
            level = before.power();
            at -= 1 + age - start;
        }
        (quick, slow)
    }

    /// Time in each phase since a fixed origin; only differences are meaningful.
    pub fn spent(&self, t: i64) -> Spent {
        let (runs, age) = self.place(t);
        let (whole, part) = (self.within(self.run), self.within(age));
        let sum = |whole: i64, part: i64| (runs * whole + part) as f64;
        Spent {
            start_up: sum(whole[0], part[0]),
            train: sum(whole[1], part[1]),
            evaluate: sum(whole[2], part[2]),
            checkpoint: sum(whole[3], part[3]),
        }
    }

    /// Time in each phase since the run began.
    fn within(&self, age: i64) -> [i64; 4] {
        let start_up = age.min(START_UP_MS);
        let (cycles, rest) = ((age - start_up) / self.cycle, (age - start_up) % self.cycle);
        let checkpoint = cycles * CHECKPOINT_MS + (rest - (self.cycle - CHECKPOINT_MS)).max(0);
        let evaluating = cycles % CHECKPOINTS_PER_EVALUATION == CHECKPOINTS_PER_EVALUATION - 1;
        let into = (rest - (self.cycle - CHECKPOINT_MS - EVALUATION_MS)).clamp(0, EVALUATION_MS);
        let evaluate = cycles / CHECKPOINTS_PER_EVALUATION * EVALUATION_MS + if evaluating { into } else { 0 };
        [start_up, age - start_up - checkpoint - evaluate, evaluate, checkpoint]
    }
}

/// Remainder of a difference after a time in milliseconds, for cores and for memory.
pub(super) fn cooled(ms: f64) -> (f64, f64) {
    ((-ms / QUICK_COOLING_MS).exp(), (-ms / SLOW_COOLING_MS).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_is_under_way_has_gone_on_for_a_while() {
        for seed in 0..4 {
            let job = Job::new(Key::new(seed));
            for t in (0..2 * job.run).step_by(60_977) {
                let (run, age) = job.under_way(t).place(t);
                assert!((UNDER_WAY_MS..=job.run - UNDER_WAY_MS).contains(&age), "seed {seed}, {t}: {age}");
                assert!(job.falls(run - 1) && !job.falls(run), "seed {seed}, {t}: {run}");
                // A fault shifts it for its begin, and the start once more.
                let earlier = job.under_way(t - UNDER_WAY_MS / 10);
                let again = earlier.under_way(t).place(t);
                assert!((UNDER_WAY_MS..=job.run - UNDER_WAY_MS).contains(&again.1), "seed {seed}, {t}: {again:?}");
            }
        }
    }

    #[test]
    fn time_spent_grows_in_the_phase_that_is() {
        for seed in 0..4 {
            let job = Job::new(Key::new(seed));
            for t in (0..2 * job.run).step_by(977) {
                let (now, then) = (job.spent(t), job.spent(t + 1));
                let grown = then.since(now);
                let expected = match job.at(t).phase {
                    Phase::StartUp => Spent { start_up: 1.0, ..Spent::default() },
                    Phase::Train => Spent { train: 1.0, ..Spent::default() },
                    Phase::Evaluate => Spent { evaluate: 1.0, ..Spent::default() },
                    Phase::Checkpoint => Spent { checkpoint: 1.0, ..Spent::default() },
                    Phase::Idle | Phase::Dead => unreachable!("a timetable has no such phase"),
                };
                assert_eq!(grown, expected, "seed {seed}, {t}");
            }
        }
    }

    #[test]
    fn warmth_never_jumps_and_stays_between_the_phases() {
        let job = Job::new(Key::new(7));
        for t in (job.offset..job.offset + job.run).step_by(500) {
            let (a, b) = (job.at(t).warmth, job.at(t + 500).warmth);
            assert!((a.0 - b.0).abs() < 0.03 && (a.1 - b.1).abs() < 0.012, "{t}: {a:?} {b:?}");
            assert!((0.0..=0.94).contains(&a.0) && (0.0..=0.94).contains(&a.1), "{t}: {a:?}");
        }
    }
}
