//! Arguments of `watchglass demo`.

use super::ConfigError;

/// Maximum number of GPUs of one simulated machine.
pub const MAX_HOST_GPUS: u32 = 512;
/// Maximum number of simulated machines: trials of a hub need some hundreds.
pub const MAX_HOSTS: u32 = 256;
/// Maximum number of GPUs of the whole fleet.
pub const MAX_FLEET_GPUS: u32 = 4096;

/// Minimum number of machines for failing links.
const HOSTS_WITH_LINKS: u32 = 5;

/// A simulated fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// GPUs of each machine, 1 to [`MAX_HOST_GPUS`].
    pub gpus: u32,
    /// Machines, 1 to [`MAX_HOSTS`].
    pub hosts: u32,
    /// The simulated fault.
    pub fail: Option<Fail>,
    /// One seed, one fleet: the same values at the same instants in every run.
    pub seed: u64,
}

/// Faults of a simulated fleet. All but [`Fail::Links`] are on the first machine, but they affect the whole job of its
/// rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// Nothing: the fleet is healthy.
    None,
    /// A GPU falls off the bus: its series end, all others wait for it in a kernel, and the job dies after ten
    /// minutes.
    Lost,
    /// All GPUs of the job are in a busy loop: utilization 100, a fifth of the power, no traffic.
    Hang,
    /// A GPU is at its slowdown temperature, with lower clocks, and the others wait for it.
    Throttle,
    /// The memory of a GPU fails: corrected errors rise, then one that cannot be corrected ends the job.
    Ecc,
    /// A GPU is slow without a measured cause, and the others wait for it.
    Straggler,
    /// The memory of a GPU fills up to its limit, and the job dies.
    Oom,
    /// The data arrive late from a disk at its limit.
    Starvation,
    /// A GPU has half of its PCIe lanes.
    Link,
    /// The memory of a machine fills up to its limit, and the kernel kills the job.
    Memory,
    /// The job is idle and holds its GPUs.
    Idle,
    /// Four machines are unhealthy: the second is late, the third lost, the fourth stopped, and the fifth still lacks
    /// some data.
    Links,
}

impl Fail {
    /// All kinds by name.
    pub const ALL: [(&'static str, Fail); 12] = [
        ("none", Fail::None),
        ("lost", Fail::Lost),
        ("hang", Fail::Hang),
        ("throttle", Fail::Throttle),
        ("ecc", Fail::Ecc),
        ("straggler", Fail::Straggler),
        ("oom", Fail::Oom),
        ("starvation", Fail::Starvation),
        ("link", Fail::Link),
        ("memory", Fail::Memory),
        ("idle", Fail::Idle),
        ("links", Fail::Links),
    ];
}

impl Fleet {
    /// Checks the limits of the whole fleet; each number was checked when it was read.
    pub(super) fn check(self) -> Result<Self, ConfigError> {
        let all = self.gpus * self.hosts;
        if self.fail == Some(Fail::Links) && self.hosts < HOSTS_WITH_LINKS {
            return Err(ConfigError::new(format!(
                "--fail links needs links between machines; write --hosts {HOSTS_WITH_LINKS} or more"
            )));
        }
        if all <= MAX_FLEET_GPUS {
            return Ok(self);
        }
        let Fleet { gpus, hosts, .. } = self;
        let fewer = MAX_FLEET_GPUS / hosts;
        Err(ConfigError::new(format!(
            "--gpus {gpus} on each of --hosts {hosts} makes {all} GPUs, and a demo has at most {MAX_FLEET_GPUS}; \
            write --gpus {fewer} or fewer"
        )))
    }
}

/// Reads the number of GPUs of each machine.
pub(super) fn gpus(text: &str) -> Result<u32, String> {
    within(text, MAX_HOST_GPUS, "GPUs on each machine")
}

/// Reads the number of machines.
pub(super) fn hosts(text: &str) -> Result<u32, String> {
    within(text, MAX_HOSTS, "machines")
}

fn within(text: &str, most: u32, what: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|n| (1..=most).contains(n));
    number.ok_or_else(|| format!("\"{text}\" is out of range; a demo has 1 to {most} {what}"))
}

/// Reads the fault.
pub(super) fn fail(text: &str) -> Result<Fail, String> {
    let found = Fail::ALL.iter().find(|(name, _)| *name == text).map(|(_, fail)| *fail);
    let names: Vec<&str> = Fail::ALL.iter().map(|(name, _)| *name).collect();
    found.ok_or_else(|| format!("\"{text}\" is unknown; write one of {}", names.join(", ")))
}
