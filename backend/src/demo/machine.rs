//! One simulated machine: the state of its job at an instant, and the readings that follow from it.

use super::drive::Drive;
use super::fault::{Fault, Left, Touch, hung_power};
use super::gpu::{Gpu, IDLE_WATTS, POWER_LIMIT_WATTS};
use super::host::Host;
use super::job::{Job, Phase, cooled};
use super::noise::Key;
use super::processes;
use crate::config::Fleet;
use collectors::Out;
use shared::processes::ProcessTable;

/// Between two starts of a machine, milliseconds.
const BOOT_INTERVAL_MS: i64 = 30 * 86_400_000;

/// Machines of a simulated rack, which train one job together.
const HOSTS_A_RACK: u32 = 8;

/// A machine.
pub(super) struct Machine {
    number: u32,
    /// Machines of its rack.
    nodes: u32,
    key: Key,
    job: Job,
    fault: Option<Fault>,
    host: Host,
    gpus: Vec<Gpu>,
}

impl Machine {
    /// The machine of that number, from 0. `since` is the time of the fleet's fault.
    pub fn new(fleet: &Fleet, number: u32, since: i64) -> Self {
        let seed = Key::new(fleet.seed);
        let key = seed.derive(2).derive(u64::from(number));
        let unlucky = (seed.derive(3).unit(0) * f64::from(fleet.gpus)) as u32;
        let rack = number / HOSTS_A_RACK;
        // Only the job of the first rack is affected.
        let fault = Fault::new(fleet, unlucky, since).filter(|_| rack == 0);
        let job = Job::new(if rack == 0 { seed.derive(1) } else { seed.derive(1).derive(u64::from(rack)) });
        Machine {
            number,
            nodes: (fleet.hosts - rack * HOSTS_A_RACK).min(HOSTS_A_RACK),
            key,
            // A job that has just begun shows no fault: its baseline is unknown.
            job: if fault.is_some() { job.under_way(since) } else { job },
            fault,
            host: Host::new(key.derive(1), fleet.gpus),
            gpus: (0..fleet.gpus).map(|i| Gpu::new(key, i, fleet.gpus)).collect(),
        }
    }

    /// The same machine, whose run goes on at an instant, as [`Job::under_way`] says.
    pub fn under_way(self, t: i64) -> Self {
        Machine { job: self.job.under_way(t), ..self }
    }

    /// Name among the sources.
    pub fn name(&self) -> String {
        format!("demo-{:02}", self.number + 1)
    }

    /// Number of its rack, its own number in it, and the size of the rack; numbers from 0.
    pub fn place(&self) -> (u32, u32, u32) {
        (self.number / HOSTS_A_RACK, self.number % HOSTS_A_RACK, self.nodes)
    }

    pub fn job(&self) -> &Job {
        &self.job
    }

    pub fn gpus(&self) -> u32 {
        self.gpus.len() as u32
    }

    /// Key of its process numbers.
    pub fn processes_key(&self) -> Key {
        self.key.derive(6)
    }

    /// Key of the values that its job logs.
    pub fn values_key(&self) -> Key {
        self.key.derive(8)
    }

    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Writes all readings of the machine at an instant.
    pub fn read(&self, t: i64, out: &mut Out) {
        let drive = self.drive(t);
        for (i, gpu) in (0u32..).zip(&self.gpus) {
            gpu.read(&drive, self.touch(t, i), out);
        }
        self.host.read(&drive, out);
        self.log(&drive, out);
    }

    /// The process table at an instant.
    pub fn processes(&self, t: i64) -> ProcessTable {
        let drive = self.drive(t);
        let held = (0u32..).zip(&self.gpus).map(|(i, gpu)| gpu.held(&drive, self.touch(t, i)));
        processes::table(self.processes_key(), &drive, &self.host, &held.collect::<Vec<_>>())
    }

    /// The effect of the fleet's fault on a GPU.
    fn touch(&self, t: i64, gpu: u32) -> Touch {
        self.fault.map_or(Touch::Well, |fault| fault.touch(t, self.number, gpu))
    }

    fn drive(&self, t: i64) -> Drive {
        let offset = (self.key.derive(2).unit(0) * BOOT_INTERVAL_MS as f64) as i64;
        let boot = (t - offset).div_euclid(BOOT_INTERVAL_MS) * BOOT_INTERVAL_MS + offset;
        let stop = self.fault.and_then(|fault| fault.stop(t));
        let worked = stop.map_or(t, |(stop, _)| stop);
        let moment = self.job.at(worked);
        let spent = self.job.spent(worked).since(self.job.spent(boot));
        let felt = self.fault.map_or(0.0, |fault| fault.trained(&self.job, worked));
        let share = self.fault.filter(|_| felt > 0.0).map_or(1.0, |fault| fault.share());
        let starved = moment.phase == Phase::Train && self.fault.is_some_and(|fault| fault.starves(t));
        let dip = match moment.phase {
            Phase::Train if starved => 1.0 - share + 0.1 * self.key.derive(7).jitter(t, 1_000),
            Phase::Train => self.dip(t),
            _ => 0.0,
        };
        let traffic = match moment.phase {
            Phase::Train => (0.9 + 0.08 * self.key.derive(3).jitter(t, 1_000)) * (1.0 - dip),
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
            // The dip already accounts for late data.
            share: if starved { 1.0 } else { share },
            starved,
            fills: self.fault.map_or(0.0, |fault| fault.fills(worked, self.number)),
            dip,
            traffic: if starved { traffic } else { share * traffic },
            up: (t - boot) as f64,
            spent,
            done: spent.train - (1.0 - share) * felt,
            felt,
            stopped: 0.0,
        };
        if let Some((stop, left)) = stop {
            let hung = left == Left::Kernels;
            let (phase, power) = match left {
                Left::Kernels => (Phase::Train, hung_power(IDLE_WATTS, POWER_LIMIT_WATTS)),
                Left::Processes => (Phase::Idle, 0.0),
                Left::Nothing => (Phase::Dead, 0.0),
            };
            let cooled = cooled((t - stop) as f64);
            let between = |from: f64, cooled: f64| power + (from - power) * cooled;
            (drive.phase, drive.hung, drive.stopped) = (phase, hung, (t - stop) as f64);
            drive.warmth = (between(moment.warmth.0, cooled.0), between(moment.warmth.1, cooled.1));
            (drive.dip, drive.traffic, drive.share, drive.starved) = (0.0, 0.0, 1.0, false);
            if left == Left::Nothing {
                drive.fills = 0.0;
            }
        }
        drive
    }

    /// Occasionally the data arrive late for some seconds.
    fn dip(&self, t: i64) -> f64 {
        const DIP_CELL_MS: i64 = 24_000;
        let key = self.key.derive(4);
        let (cell, at) = (t.div_euclid(DIP_CELL_MS), t.rem_euclid(DIP_CELL_MS) as f64);
        if key.derive(1).unit(cell) > 0.2 {
            return 0.0;
        }
        let begin = 18_000.0 * key.derive(2).unit(cell);
        let long = 1_400.0 + 2_800.0 * key.derive(3).unit(cell);
        if (begin..begin + long).contains(&at) { 0.2 + 0.4 * key.derive(4).unit(cell) } else { 0.0 }
    }
}
