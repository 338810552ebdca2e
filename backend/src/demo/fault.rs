//! What goes wrong in a simulated fleet, and what of it each GPU feels.

use super::job::{Job, Phase};
use crate::config::{Fail, Fleet};
use shared::standing::Standing;

/// How long the memory takes to fill up, milliseconds.
const FILL_MS: i64 = 90_000;
/// How long a link was cut whose samples are missing still, milliseconds.
const FILLED_MS: i64 = 120_000;
/// Share of its work that a job does while one GPU is slow.
pub(super) const WAITING_SHARE: f64 = 0.74;

/// A fault, from its moment on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    fail: Fail,
    /// Its moment, milliseconds since the Unix epoch.
    since: i64,
    /// The GPU of the first machine that it happens to.
    gpu: u32,
}

/// What a GPU feels of it, and for how many milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Touch {
    Well,
    Lost,
    Hot(f64),
    Failing(f64),
    Slow(f64),
    Waits(f64),
    /// Share of the way to the limit, 0 to 1.
    Fills(f64),
}

impl Fault {
    pub fn new(fleet: &Fleet, gpu: u32, since: i64) -> Option<Self> {
        fleet.fail.map(|fail| Fault { fail, since, gpu })
    }

    /// The GPU of the first machine that it happens to.
    #[cfg(test)]
    pub fn gpu(&self) -> u32 {
        self.gpu
    }

    /// What a GPU feels of it at an instant.
    pub fn touch(&self, t: i64, host: u32, gpu: u32) -> Touch {
        let passed = (t - self.since) as f64;
        if passed < 0.0 {
            return Touch::Well;
        }
        let it = (host, gpu) == (0, self.gpu);
        match self.fail {
            Fail::Lost if it => Touch::Lost,
            Fail::Throttle if it => Touch::Hot(passed),
            Fail::Ecc if it => Touch::Failing(passed),
            Fail::Straggler if it => Touch::Slow(passed),
            Fail::Straggler => Touch::Waits(passed),
            Fail::Oom if it => Touch::Fills((passed / FILL_MS as f64).min(1.0)),
            _ => Touch::Well,
        }
    }

    /// When the job stops on a machine, and what is left then: kernels that never end, or nothing.
    pub fn stop(&self, host: u32) -> Option<(i64, bool)> {
        match self.fail {
            Fail::Hang if host == 0 => Some((self.since, true)),
            Fail::Oom => Some((self.since + FILL_MS, false)),
            _ => None,
        }
    }

    /// Milliseconds of training since its moment.
    pub fn trained(&self, job: &Job, t: i64) -> f64 {
        if t > self.since { job.spent(t).since(job.spent(self.since)).train } else { 0.0 }
    }

    /// What of a machine's samples is not here, as the time between which they lie, and how the machine stands, unless that is
    /// seen by itself.
    pub fn away(&self, host: u32) -> Option<((i64, i64), Option<Standing>)> {
        let filled = self.since + FILLED_MS;
        let (until, standing) = match (self.fail, host) {
            // Its link is there, and nothing comes over it.
            (Fail::Links, 1) => (i64::MAX, None),
            (Fail::Links, 2) => (i64::MAX, Some(Standing::Unreachable)),
            (Fail::Links, 3) => (i64::MAX, Some(Standing::Stopped("it was told to stop".into()))),
            (Fail::Links, 4) => (filled, Some(Standing::Filling { missing: FILLED_MS, rate: 0.0 })),
            _ => return None,
        };
        Some(((self.since, until), standing))
    }

    /// Whether the whole job waits for one slow GPU.
    pub fn slows_all(&self) -> bool {
        self.fail == Fail::Straggler
    }

    /// One sentence for the check of a machine's GPUs, and what to do about it.
    pub fn words(&self, host: u32) -> Option<(String, String)> {
        let gpu = self.gpu;
        (self.fail == Fail::Lost && host == 0).then(|| {
            (format!("GPU {gpu} does not answer: it has fallen off the bus (XID 79)"), "restart the machine".into())
        })
    }

    /// What it is and where, for the facts of the fleet.
    pub fn what(&self) -> String {
        let name = Fail::ALL.iter().find(|(_, fail)| *fail == self.fail).map_or("", |(name, _)| name);
        match self.fail {
            Fail::Hang => format!("{name} on all GPUs"),
            Fail::Links => "links of four machines".into(),
            _ => format!("{name} on GPU {}", self.gpu),
        }
    }
}

/// The power, between idle and limit, of a phase in which kernels hang: a fifth of the limit.
pub(super) fn hung_power(idle: f64, limit: f64) -> f64 {
    (0.2 * limit - idle) / (limit - idle)
}

/// Whether the phase trains, so that a slow GPU is felt.
pub(super) fn is_felt(phase: Phase) -> bool {
    matches!(phase, Phase::Train | Phase::Evaluate)
}
