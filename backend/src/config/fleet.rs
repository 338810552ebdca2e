//! What `watchglass demo` simulates.

use super::ConfigError;

/// The most GPUs of one simulated machine.
pub const MAX_HOST_GPUS: u32 = 512;
/// The most simulated machines.
pub const MAX_HOSTS: u32 = 64;
/// The most GPUs of the whole fleet.
pub const MAX_FLEET_GPUS: u32 = 4096;

/// The fewest machines of which links can fail.
const HOSTS_WITH_LINKS: u32 = 5;

/// A simulated fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// GPUs of each machine, 1 to [`MAX_HOST_GPUS`].
    pub gpus: u32,
    /// Machines, 1 to [`MAX_HOSTS`].
    pub hosts: u32,
    /// What goes wrong.
    pub fail: Option<Fail>,
    /// One seed, one fleet: the same values at the same instants in every run.
    pub seed: u64,
}

/// What can go wrong in a simulated fleet; all of it but [`Fail::Links`] on the first machine, though the whole job of its rack
/// feels it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// Nothing: the fleet is well.
    None,
    /// A GPU falls off the bus: its series end, all others wait for it in a kernel, and after ten minutes the job dies.
    Lost,
    /// All GPUs of the job are busy with nothing: utilization 100, a fifth of the power, no traffic.
    Hang,
    /// A GPU stands at its slowdown temperature, with lower clocks, and the others wait for it.
    Throttle,
    /// The memory of a GPU fails: corrected errors rise, then one that cannot be corrected ends the job.
    Ecc,
    /// A GPU is slow for no reason that is measured, and the others wait for it.
    Straggler,
    /// The memory of a GPU fills up to its limit, and the job dies.
    Oom,
    /// The data come too late from a disk that does no more.
    Starvation,
    /// A GPU has half of its PCIe lanes.
    Link,
    /// The memory of a machine fills up to its limit, and the kernel kills the job.
    Memory,
    /// The job does nothing any more, and holds its GPUs.
    Idle,
    /// Four machines are not as they should be: the second is late, the third lost, the fourth stopped, and of the fifth
    /// some is missing still.
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
    /// Whether the fleet as a whole is within the limits; each number by itself was looked at when it was read.
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

/// Reads what goes wrong.
pub(super) fn fail(text: &str) -> Result<Fail, String> {
    let found = Fail::ALL.iter().find(|(name, _)| *name == text).map(|(_, fail)| *fail);
    let names: Vec<&str> = Fail::ALL.iter().map(|(name, _)| *name).collect();
    found.ok_or_else(|| format!("\"{text}\" is unknown; write one of {}", names.join(", ")))
}
