//! Faults of a simulated fleet, and their effect on each GPU of the first rack.

use super::job::{Job, Phase};
use crate::config::{Fail, Fleet};
use shared::connection_state::ConnectionState;

/// Time for the GPU memory to fill up, milliseconds.
const FILL_MS: i64 = 150_000;
/// Duration of a cut link whose samples are still missing, milliseconds.
const FILLED_MS: i64 = 120_000;
/// Time for the memory of a machine to fill up, milliseconds.
const HOST_FILL_MS: i64 = 215_000;
/// Time from the begin of memory errors to the first uncorrectable one, milliseconds.
const FAILING_MS: i64 = 45_000;
/// Time that the ranks of a job wait for a lost one, milliseconds: the timeout of collective libraries.
const GIVE_UP_MS: i64 = 600_000;

/// A fault, from its moment on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    fail: Fail,
    /// Its moment, milliseconds since the Unix epoch.
    since: i64,
    /// The affected GPU of the first machine.
    gpu: u32,
}

/// The effect on a GPU, and its duration in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Touch {
    Well,
    /// Duration, milliseconds.
    Lost(f64),
    Hot(f64),
    Failing(f64),
    Slow(f64),
    Waits(f64),
    /// Share of the way to the limit, 0 to 1.
    Fills(f64),
    HalfLanes,
}

/// Remains of a stopped job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Left {
    /// Kernels that never end.
    Kernels,
    /// Idle processes.
    Processes,
    Nothing,
}

impl Fault {
    pub fn new(fleet: &Fleet, gpu: u32, since: i64) -> Option<Self> {
        fleet.fail.filter(|fail| *fail != Fail::None).map(|fail| Fault { fail, since, gpu })
    }

    /// The kind of the fault.
    pub fn fail(&self) -> Fail {
        self.fail
    }

    /// The affected GPU of the first machine.
    pub fn gpu(&self) -> u32 {
        self.gpu
    }

    /// The effect on a GPU at an instant.
    pub fn touch(&self, t: i64, host: u32, gpu: u32) -> Touch {
        let passed = (t - self.since) as f64;
        if passed < 0.0 {
            return Touch::Well;
        }
        let it = (host, gpu) == (0, self.gpu);
        match self.fail {
            Fail::Lost if it => Touch::Lost(passed),
            Fail::Throttle if it => Touch::Hot(passed),
            Fail::Ecc if it => Touch::Failing(passed.min(FAILING_MS as f64)),
            Fail::Straggler if it => Touch::Slow(passed),
            Fail::Straggler | Fail::Throttle => Touch::Waits(passed),
            Fail::Link if it => Touch::HalfLanes,
            Fail::Oom if it => Touch::Fills((passed / FILL_MS as f64).min(1.0)),
            _ => Touch::Well,
        }
    }

    /// Time of the job's stop, as seen at an instant, and its remains: all its machines are affected.
    pub fn stop(&self, t: i64) -> Option<(i64, Left)> {
        let ended = self.end().filter(|end| t >= *end);
        let (stop, left) = match (self.fail, ended) {
            (_, Some(end)) => (end, Left::Nothing),
            (Fail::Hang | Fail::Lost, None) => (self.since, Left::Kernels),
            (Fail::Idle, None) => (self.since, Left::Processes),
            _ => return None,
        };
        Some((stop, left)).filter(|(stop, _)| t >= *stop)
    }

    /// Time of the job's death by the fault; none if it survives.
    pub fn end(&self) -> Option<i64> {
        let after = match self.fail {
            Fail::Lost => GIVE_UP_MS,
            Fail::Oom => FILL_MS,
            Fail::Ecc => FAILING_MS,
            Fail::Memory => HOST_FILL_MS,
            _ => return None,
        };
        Some(self.since + after)
    }

    /// Remaining share of its work that the job does.
    pub fn share(&self) -> f64 {
        match self.fail {
            Fail::Straggler => 0.74,
            Fail::Throttle => 0.62,
            Fail::Starvation => 0.58,
            _ => 1.0,
        }
    }

    /// Whether the data arrive too late.
    pub fn starves(&self, t: i64) -> bool {
        self.fail == Fail::Starvation && t >= self.since
    }

    /// Extra memory use of a machine above the usual one, as a share of the way to the limit, 0 to 1.
    pub fn fills(&self, t: i64, host: u32) -> f64 {
        let way = (t - self.since) as f64 / HOST_FILL_MS as f64;
        if (self.fail, host) == (Fail::Memory, 0) { way.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Milliseconds of training since its moment.
    pub fn trained(&self, job: &Job, t: i64) -> f64 {
        if t > self.since { job.spent(t).since(job.spent(self.since)).train } else { 0.0 }
    }

    /// Time range of a machine's missing samples, and its connection state unless that is detected by itself.
    pub fn away(&self, host: u32) -> Option<((i64, i64), Option<ConnectionState>)> {
        let filled = self.since + FILLED_MS;
        let (until, connection_state) = match (self.fail, host) {
            // Its link is connected, but carries no data.
            (Fail::Links, 1) => (i64::MAX, None),
            (Fail::Links, 2) => (i64::MAX, Some(ConnectionState::Unreachable)),
            (Fail::Links, 3) => (i64::MAX, Some(ConnectionState::Stopped("it was told to stop".into()))),
            (Fail::Links, 4) => (filled, Some(ConnectionState::Filling { missing: FILLED_MS, rate: 0.0 })),
            _ => return None,
        };
        Some(((self.since, until), connection_state))
    }

    /// One sentence for the check of a machine's GPUs, and its remedy.
    pub fn words(&self, host: u32) -> Option<(String, String)> {
        let gpu = self.gpu;
        (self.fail == Fail::Lost && host == 0).then(|| {
            (format!("GPU {gpu} does not respond: it has fallen off the bus (XID 79)"), "restart the machine".into())
        })
    }

    /// Kind and place of the fault, for the facts of the fleet.
    pub fn what(&self) -> String {
        let name = Fail::ALL.iter().find(|(_, fail)| *fail == self.fail).map_or("", |(name, _)| name);
        match self.fail {
            Fail::Hang | Fail::Idle | Fail::Starvation => format!("{name} on all GPUs"),
            Fail::Memory => format!("{name} of the machine"),
            Fail::Links => "links of four machines".into(),
            _ => format!("{name} on GPU {}", self.gpu),
        }
    }
}

/// The power, between idle and limit, of a phase in which kernels hang: a fifth of the limit.
pub(super) fn hung_power(idle: f64, limit: f64) -> f64 {
    (0.2 * limit - idle) / (limit - idle)
}

/// Whether the phase trains, so that a slow GPU has an effect.
pub(super) fn is_felt(phase: Phase) -> bool {
    matches!(phase, Phase::Train | Phase::Evaluate)
}
