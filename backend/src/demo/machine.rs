//! One simulated machine: what its job does there at an instant, and the readings that follow from it.

use super::fault::{Fault, WAITING, hung_power};
use super::gpu::{Gpu, IDLE, LIMIT};
use super::host::Host;
use super::job::{Job, Phase, Spent, cooled};
use super::noise::Key;
use crate::config::Fleet;
use collectors::Out;

/// Between two starts of a machine, milliseconds.
const BOOTS: i64 = 30 * 86_400_000;

/// The job on one machine at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Milliseconds since the Unix epoch.
    pub t: i64,
    pub phase: Phase,
    /// Milliseconds since the phase began.
    pub into: i64,
    /// Milliseconds since the run began.
    pub age: i64,
    /// Number of the run.
    pub run: i64,
    /// See [`super::job::Moment`].
    pub ramp: f64,
    pub warmth: (f64, f64),
    /// Kernels run that never end.
    pub hung: bool,
    /// 0 to 1: how much of the work stands still because the next data are late.
    pub dip: f64,
    /// 0 to 1: how much the GPUs tell each other.
    pub traffic: f64,
    /// Milliseconds since the machine was started.
    pub up: f64,
    /// Since then, in each phase.
    pub spent: Spent,
    /// Likewise: milliseconds of training less what was lost waiting for a slow GPU.
    pub done: f64,
    /// Milliseconds of training since the fault's moment.
    pub felt: f64,
    /// Milliseconds since the job stopped, 0 while it goes on.
    pub stopped: f64,
}

/// A machine.
pub(super) struct Machine {
    number: u32,
    key: Key,
    job: Job,
    fault: Option<Fault>,
    host: Host,
    gpus: Vec<Gpu>,
}

impl Machine {
    /// The machine of that number, from 0. `since` is the moment of the fleet's fault.
    pub fn new(fleet: &Fleet, number: u32, since: i64) -> Self {
        let seed = Key::new(fleet.seed);
        let key = seed.of(2).of(u64::from(number));
        let unlucky = (seed.of(3).unit(0) * f64::from(fleet.gpus)) as u32;
        Machine {
            number,
            key,
            job: Job::new(seed.of(1)),
            fault: Fault::new(fleet, unlucky, since),
            host: Host::new(key.of(1), fleet.gpus),
            gpus: (0..fleet.gpus).map(|i| Gpu::new(key, i, fleet.gpus)).collect(),
        }
    }

    /// Name among the sources.
    pub fn name(&self) -> String {
        format!("demo-{:02}", self.number + 1)
    }

    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Puts everything that the machine reads at an instant.
    pub fn read(&self, t: i64, out: &mut Out) {
        let drive = self.drive(t);
        for (i, gpu) in (0u32..).zip(&self.gpus) {
            let touch = self.fault.map_or(super::fault::Touch::Well, |fault| fault.touch(t, self.number, i));
            gpu.read(&drive, touch, out);
        }
        self.host.read(&drive, out);
    }

    fn drive(&self, t: i64) -> Drive {
        let offset = (self.key.of(2).unit(0) * BOOTS as f64) as i64;
        let boot = (t - offset).div_euclid(BOOTS) * BOOTS + offset;
        let stop = self.fault.and_then(|fault| fault.stop(self.number)).filter(|(stop, _)| t >= *stop);
        let worked = stop.map_or(t, |(stop, _)| stop);
        let moment = self.job.at(worked);
        let spent = self.job.spent(worked).since(self.job.spent(boot));
        let felt = self.fault.map_or(0.0, |fault| fault.trained(&self.job, worked));
        let waited = if self.fault.is_some_and(|fault| fault.slows_all()) { felt } else { 0.0 };
        let dip = if moment.phase == Phase::Train { self.dip(t) } else { 0.0 };
        let traffic = match moment.phase {
            Phase::Train => (0.9 + 0.08 * self.key.of(3).jitter(t, 1_000)) * (1.0 - dip),
            Phase::Evaluate => 0.12,
            _ => 0.0,
        };
        let mut drive = Drive {
            t,
            phase: moment.phase,
            into: moment.into,
            age: moment.age,
            run: moment.run,
            ramp: moment.ramp,
            warmth: moment.warmth,
            hung: false,
            dip,
            traffic: if waited > 0.0 { WAITING * traffic } else { traffic },
            up: (t - boot) as f64,
            spent,
            done: spent.train - (1.0 - WAITING) * waited,
            felt,
            stopped: 0.0,
        };
        if let Some((stop, hung)) = stop {
            let (phase, power) = if hung { (Phase::Train, hung_power(IDLE, LIMIT)) } else { (Phase::Dead, 0.0) };
            let left = cooled((t - stop) as f64);
            let between = |from: f64, left: f64| power + (from - power) * left;
            (drive.phase, drive.hung, drive.stopped) = (phase, hung, (t - stop) as f64);
            drive.warmth = (between(moment.warmth.0, left.0), between(moment.warmth.1, left.1));
            (drive.dip, drive.traffic) = (0.0, 0.0);
        }
        drive
    }

    /// Now and then the data come late for some seconds.
    fn dip(&self, t: i64) -> f64 {
        const CELL: i64 = 24_000;
        let key = self.key.of(4);
        let (cell, at) = (t.div_euclid(CELL), t.rem_euclid(CELL) as f64);
        if key.of(1).unit(cell) > 0.2 {
            return 0.0;
        }
        let begin = 18_000.0 * key.of(2).unit(cell);
        let long = 1_400.0 + 2_800.0 * key.of(3).unit(cell);
        if (begin..begin + long).contains(&at) { 0.2 + 0.4 * key.of(4).unit(cell) } else { 0.0 }
    }
}
