//! Reads what launchers of training jobs set in the environment of the processes that they start.
//!
//! Environments of jobs are read in this file alone. Only the variables of [`VARIABLES`] ever leave it: nothing else is
//! stored, logged or counted, and the buffer is overwritten afterwards.

use launch::reserved::by_slurm;
use shared::run::{MAX_TAGS, Rank, Reserved};
use std::fs::File;
use std::io::{self, Read};

/// Maximum number of bytes that are read of an environment.
const MAX_BYTES: u64 = 256 << 10;

/// Maximum length of an ID or address, and of a name, bytes.
const MAX_WORD_BYTES: usize = 128;

/// Maximum length of a GPU's UUID after its first word, bytes.
const MAX_UUID_BYTES: usize = 64;

/// Maximum length of notes and lists, bytes.
const MAX_LONG_BYTES: usize = 2048;

/// Syntax of a value; a value of another syntax counts as absent.
#[derive(Clone, Copy)]
enum Grammar {
    /// One to seven digits.
    Number,
    /// Letters, digits and `_.:/@[]-`.
    Word,
    /// Any characters except those that control the terminal or the writing direction.
    Text,
    /// The same, with a higher limit.
    Long,
    /// GPUs, separated by commas: numbers, or UUIDs and prefixes of them, as `GPU-8932f937` and `MIG-GPU-8932f937/1/0`.
    Devices,
    /// Host names, separated by commas; only a checksum of them is kept.
    Hosts,
}

use Grammar::{Devices, Hosts, Long, Number, Text, Word};

/// All variables that are read.
const VARIABLES: &[(&str, Grammar)] = &[
    ("CLOUD_TPU_TASK_ID", Number),
    ("CROSS_RANK", Number),
    (CUDA_ORDER, Word),
    (CUDA_DEVICES, Devices),
    ("GROUP_RANK", Number),
    ("HIP_VISIBLE_DEVICES", Devices),
    ("JAX_COORDINATOR_ADDRESS", Word),
    ("JAX_NUM_PROCESSES", Number),
    ("JAX_PROCESS_ID", Number),
    ("JOB_COMPLETION_INDEX", Number),
    ("JOB_NAME", Word),
    ("KUBERNETES_SERVICE_HOST", Word),
    (LOCAL_RANK, Number),
    ("MASTER_ADDR", Word),
    ("MASTER_PORT", Number),
    ("MPI_LOCALRANKID", Number),
    ("MV2_COMM_WORLD_LOCAL_RANK", Number),
    ("MV2_COMM_WORLD_RANK", Number),
    ("MV2_COMM_WORLD_SIZE", Number),
    (NCCL_ADDRESS, Word),
    ("NODE_RANK", Number),
    (OF_CONTAINER, Devices),
    ("OMPI_COMM_WORLD_LOCAL_RANK", Number),
    ("OMPI_COMM_WORLD_RANK", Number),
    ("OMPI_COMM_WORLD_SIZE", Number),
    ("PALS_RANKID", Number),
    ("PET_NODE_RANK", Number),
    ("PET_RDZV_ID", Word),
    ("PMIX_RANK", Number),
    ("PMI_LOCAL_RANK", Number),
    ("PMI_RANK", Number),
    ("PMI_SIZE", Number),
    ("POD_NAMESPACE", Word),
    ("RANK", Number),
    ("RAY_JOB_ID", Word),
    (OF_RUNTIME, Devices),
    ("ROLE_NAME", Text),
    ("SLURM_ARRAY_JOB_ID", Word),
    ("SLURM_ARRAY_TASK_ID", Number),
    ("SLURM_CLUSTER_NAME", Word),
    ("SLURM_CPUS_ON_NODE", Number),
    ("SLURM_JOB_ACCOUNT", Text),
    ("SLURM_JOB_END_TIME", Word),
    ("SLURM_JOB_GPUS", Devices),
    ("SLURM_JOB_ID", Word),
    ("SLURM_JOB_NAME", Text),
    ("SLURM_JOB_START_TIME", Word),
    ("SLURM_LOCALID", Number),
    ("SLURM_MEM_PER_CPU", Number),
    ("SLURM_MEM_PER_GPU", Number),
    ("SLURM_MEM_PER_NODE", Number),
    ("SLURM_NODEID", Number),
    ("SLURM_NTASKS", Number),
    ("SLURM_PROCID", Number),
    (SLURM_RESTARTS, Number),
    ("SLURM_STEP_GPUS", Devices),
    ("SLURM_STEP_ID", Number),
    ("TORCHELASTIC_RESTART_COUNT", Number),
    ("TORCHELASTIC_RUN_ID", Word),
    ("TPU_WORKER_HOSTNAMES", Hosts),
    ("TPU_WORKER_ID", Number),
    ("WANDB_ENTITY", Word),
    ("WANDB_JOB_TYPE", Text),
    ("WANDB_NAME", Text),
    ("WANDB_NOTES", Long),
    ("WANDB_PROJECT", Text),
    ("WANDB_RUN_GROUP", Text),
    ("WANDB_RUN_ID", Word),
    ("WANDB_TAGS", Long),
    ("WANDB_X_LABEL", Text),
    ("WANDB_X_PRIMARY", Word),
    ("WATCHGLASS_LABEL", Text),
    ("WATCHGLASS_NAME", Text),
    ("WATCHGLASS_PROJECT", Text),
    ("WATCHGLASS_RANK", Number),
    ("WATCHGLASS_RUN_ID", Word),
    ("WORLD_SIZE", Number),
    ("ZE_AFFINITY_MASK", Devices),
];

/// A launcher, and the variables with the numbers of a process; an empty name if it does not set that number.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    /// Required variable of a rank: other programs use the other names, too.
    needs: &'static str,
    world: &'static str,
    local: &'static str,
    node: &'static [&'static str],
    attempt: &'static str,
}

/// Variable with the number of a process among those of its launcher on its machine.
const LOCAL_RANK: &str = "LOCAL_RANK";

/// Launchers, best first. The second one covers torchrun, Accelerate, Lightning, DeepSpeed and plain DDP.
const LAUNCHERS: &[Launcher] = &[
    plain("watchglass", "WATCHGLASS_RANK"),
    Launcher {
        name: TORCH,
        rank: "RANK",
        needs: "WORLD_SIZE",
        world: "WORLD_SIZE",
        local: LOCAL_RANK,
        node: &["GROUP_RANK", "CROSS_RANK", "PET_NODE_RANK"],
        attempt: "TORCHELASTIC_RESTART_COUNT",
    },
    // Lightning's own variables: its first process has none of these.
    Launcher {
        name: TORCH,
        rank: LOCAL_RANK,
        needs: "NODE_RANK",
        world: "WORLD_SIZE",
        local: LOCAL_RANK,
        node: &["NODE_RANK"],
        attempt: "",
    },
    Launcher {
        name: "slurm",
        rank: "SLURM_PROCID",
        // The step of a batch script and of an interactive shell has no number: these are no tasks.
        needs: "SLURM_STEP_ID",
        world: "SLURM_NTASKS",
        local: "SLURM_LOCALID",
        node: &["SLURM_NODEID"],
        attempt: SLURM_RESTARTS,
    },
    Launcher {
        world: "OMPI_COMM_WORLD_SIZE",
        local: "OMPI_COMM_WORLD_LOCAL_RANK",
        ..plain("mpi", "OMPI_COMM_WORLD_RANK")
    },
    Launcher {
        world: "MV2_COMM_WORLD_SIZE",
        local: "MV2_COMM_WORLD_LOCAL_RANK",
        ..plain("mpi", "MV2_COMM_WORLD_RANK")
    },
    Launcher { world: "PMI_SIZE", local: "PMI_LOCAL_RANK", ..plain("mpi", "PMI_RANK") },
    Launcher { local: "MPI_LOCALRANKID", ..plain("mpi", "PMIX_RANK") },
    plain("mpi", "PALS_RANKID"),
    Launcher { world: "JAX_NUM_PROCESSES", ..plain("jax", "JAX_PROCESS_ID") },
    plain("jax", "TPU_WORKER_ID"),
    plain("jax", "CLOUD_TPU_TASK_ID"),
    Launcher { needs: "KUBERNETES_SERVICE_HOST", ..plain("kubernetes", "JOB_COMPLETION_INDEX") },
];

/// Name of the launchers that torch understands. Their processes are ranks for good; those of others may be launchers
/// themselves.
pub(super) const TORCH: &str = "torch";

const fn plain(name: &'static str, rank: &'static str) -> Launcher {
    Launcher { name, rank, needs: "", world: "", local: "", node: &[], attempt: "" }
}

/// Variables that identify the run of a process, best first: their origin, and the variables that must all be set.
const KEYS: &[(&str, &[&str])] = &[
    // IDs of W&B are unique only within their project.
    ("wandb", &["WANDB_ENTITY", "WANDB_PROJECT", "WANDB_RUN_ID"]),
    ("wandb", &["WANDB_PROJECT", "WANDB_RUN_ID"]),
    ("wandb", &["WANDB_RUN_ID"]),
    // Each step of a job is a run; processes that a batch script starts outside of a step belong to the job. A job that
    // was requeued is another run, and its steps count from 0 again.
    ("slurm", &["SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID", SLURM_RESTARTS]),
    ("slurm", &["SLURM_JOB_ID", "SLURM_STEP_ID", SLURM_RESTARTS]),
    ("slurm", &["SLURM_CLUSTER_NAME", "SLURM_JOB_ID", SLURM_RESTARTS]),
    ("slurm", &["SLURM_JOB_ID", SLURM_RESTARTS]),
    ("slurm", &["SLURM_CLUSTER_NAME", "SLURM_JOB_ID", "SLURM_STEP_ID"]),
    ("slurm", &["SLURM_JOB_ID", "SLURM_STEP_ID"]),
    ("slurm", &["SLURM_CLUSTER_NAME", "SLURM_JOB_ID"]),
    ("slurm", &["SLURM_JOB_ID"]),
    ("kubernetes", &["KUBERNETES_SERVICE_HOST", "POD_NAMESPACE", "JOB_NAME"]),
    ("kubernetes", &["KUBERNETES_SERVICE_HOST", "PET_RDZV_ID"]),
    ("ray", &["RAY_JOB_ID"]),
    ("torchrun", &["TORCHELASTIC_RUN_ID"]),
    ("torchrun", &["PET_RDZV_ID"]),
    ("ddp", &["MASTER_ADDR", "MASTER_PORT"]),
    ("jax", &["JAX_COORDINATOR_ADDRESS"]),
    ("jax", &["TPU_WORKER_HOSTNAMES"]),
];

/// Origins that identify a run by its rendezvous address: the next job may use the same address.
const ADDRESSES: &[&str] = &["ddp", "jax"];

/// How often Slurm has started the job again; the first time it is not set.
const SLURM_RESTARTS: &str = "SLURM_RESTART_COUNT";

/// Variable with the address on which NCCL answers.
const NCCL_ADDRESS: &str = "NCCL_RAS_ADDR";

/// The list of GPUs that CUDA obeys, and the order in which it counts them.
const CUDA_DEVICES: &str = "CUDA_VISIBLE_DEVICES";
const CUDA_ORDER: &str = "CUDA_DEVICE_ORDER";

/// Lists of the GPUs that a process sees. Each of the first two groups counts within the GPUs that the next one leaves.
const OF_PROGRAM: &[&str] = &[CUDA_DEVICES, "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"];
const OF_RUNTIME: &str = "ROCR_VISIBLE_DEVICES";
/// GPUs of the job, by the machine's own numbers.
const OF_JOB: &[&str] = &["SLURM_STEP_GPUS", "SLURM_JOB_GPUS"];
/// GPUs of the container, by the machine's own numbers.
const OF_CONTAINER: &str = "NVIDIA_VISIBLE_DEVICES";

/// Facts from an environment about the run of its process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EnvironFacts {
    /// The run that `watchglass run` began.
    pub run: Option<String>,
    /// The origin of the run's ID, and the values that identify it.
    pub key: Option<(&'static str, String)>,
    /// Its rank in the run.
    pub rank: Option<Rank>,
    /// The GPU that it was told to use, by its UUID or a prefix of it; set when its number is unknown.
    pub device: Option<String>,
    /// The GPU's number is CUDA's, which counts the fastest first. The driver's numbers may differ.
    pub fastest_first: bool,
    /// Display names, with W&B's names for them.
    pub name: Option<String>,
    pub project: Option<String>,
    pub group: Option<String>,
    pub job_type: Option<String>,
    pub label: Option<String>,
    pub notes: Option<String>,
    /// Tags of W&B, which have no values.
    pub tags: Vec<String>,
    /// ID of its Slurm job.
    pub slurm: Option<String>,
    /// The part of the machine that Slurm reserved for its job.
    pub reserved: Option<Reserved>,
    /// UUIDs of the GPUs of its container, or prefixes of them; empty if one of them has a number instead.
    pub of_container: Vec<String>,
    /// Address on which NCCL answers, if it is set.
    pub nccl: Option<String>,
}

/// Reads the initial environment of a process.
///
/// # Errors
/// The process has ended, has overwritten its environment, or belongs to another user.
pub(super) fn read(pid: u32) -> io::Result<EnvironFacts> {
    let mut bytes = Vec::new();
    let read = File::open(format!("/proc/{pid}/environ"))?.take(MAX_BYTES).read_to_end(&mut bytes);
    let (named, is_gone) = (EnvironFacts::from_bytes(&bytes), is_gone(&bytes));
    // Without this the compiler would drop the last write to memory that is freed.
    std::hint::black_box(&mut bytes).fill(0);
    read.and_then(|_| if is_gone { Err(io::ErrorKind::InvalidData.into()) } else { Ok(named) })
}

/// Whether no variable is left. The Python package setproctitle, as in vLLM and SGLang, puts the title of a process
/// over its arguments and fills its environment with zeros. The kernel returns nothing of a process that has ended.
fn is_gone(bytes: &[u8]) -> bool {
    let is_variable = |pair: &[u8]| {
        let name = pair.iter().position(|byte| *byte == b'=').map_or(&[][..], |equals| &pair[..equals]);
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    !bytes.split(|byte| *byte == 0).any(is_variable)
}

impl EnvironFacts {
    /// Whether an address identifies the run.
    pub fn is_address(&self) -> bool {
        self.run.is_none() && self.key.as_ref().is_some_and(|(who, _)| ADDRESSES.contains(who))
    }

    fn from_bytes(bytes: &[u8]) -> EnvironFacts {
        let mut values: [Option<String>; VARIABLES.len()] = [const { None }; VARIABLES.len()];
        for pair in bytes.split(|byte| *byte == 0) {
            let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { continue };
            let (name, value) = (&pair[..equals], &pair[equals + 1..]);
            if let Some(at) = VARIABLES.iter().position(|(known, _)| known.as_bytes() == name) {
                values[at] = checked(value, VARIABLES[at].1);
            }
        }
        let value = |name: &str| {
            let at = VARIABLES.iter().position(|(known, _)| *known == name)?;
            values[at].as_deref()
        };
        let text = |names: &[&str]| names.iter().find_map(|name| value(name)).map(String::from);
        EnvironFacts {
            run: text(&["WATCHGLASS_RUN_ID"]),
            key: key(&value),
            rank: rank(&value),
            device: match own_device(&value) {
                Some(Device::Named(name)) => Some(name),
                _ => None,
            },
            fastest_first: value(CUDA_DEVICES).is_some() && value(CUDA_ORDER) != Some("PCI_BUS_ID"),
            name: text(&["WATCHGLASS_NAME", "WANDB_NAME"]).or_else(|| task_name(&value)),
            project: text(&["WATCHGLASS_PROJECT", "WANDB_PROJECT", "SLURM_JOB_ACCOUNT"]),
            group: text(&["WANDB_RUN_GROUP"]).or_else(|| Some(format!("array {}", value("SLURM_ARRAY_JOB_ID")?))),
            job_type: text(&["WANDB_JOB_TYPE", "ROLE_NAME"]),
            label: text(&["WATCHGLASS_LABEL", "WANDB_X_LABEL"]),
            notes: text(&["WANDB_NOTES"]),
            tags: tags(value("WANDB_TAGS").unwrap_or_default()),
            slurm: text(&["SLURM_JOB_ID"]),
            reserved: by_slurm(|name| value(name).map(String::from)),
            of_container: value(OF_CONTAINER).and_then(named_devices).unwrap_or_default(),
            nccl: text(&[NCCL_ADDRESS]),
        }
    }
}

fn checked(value: &[u8], grammar: Grammar) -> Option<String> {
    let text = str::from_utf8(value).ok()?;
    let fits = match grammar {
        Number => (1..=7).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()),
        Word => {
            (1..=MAX_WORD_BYTES).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:/@[]-".contains(c))
        }
        Devices => {
            (1..=MAX_LONG_BYTES).contains(&text.len()) && text.split(',').all(|part| Device::parse(part).is_some())
        }
        Hosts => {
            (1..=MAX_LONG_BYTES).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.:-,".contains(c))
        }
        Text | Long => true,
    };
    if !fits {
        return None;
    }
    let drawn = |c: &char| {
        !c.is_control() && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if matches!(grammar, Hosts) {
        return Some(format!("{:08x}", shared::crc32c::crc32c(text.as_bytes())));
    }
    let mut kept: String = text.chars().filter(drawn).collect();
    let most = if matches!(grammar, Long) { MAX_LONG_BYTES } else { MAX_WORD_BYTES };
    kept.truncate(kept.floor_char_boundary(most));
    (!kept.is_empty()).then_some(kept)
}

/// The name of a Slurm job, with its number if it is part of an array.
fn task_name<'a>(value: &impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let name = value("SLURM_JOB_NAME")?;
    Some(value("SLURM_ARRAY_TASK_ID").map_or_else(|| name.into(), |task| format!("{name}[{task}]")))
}

/// Tags, separated by commas.
fn tags(text: &str) -> Vec<String> {
    let each = text.split(',').map(str::trim).filter(|tag| (1..=MAX_WORD_BYTES).contains(&tag.len()));
    each.take(MAX_TAGS).map(String::from).collect()
}

fn key<'a>(value: &impl Fn(&str) -> Option<&'a str>) -> Option<(&'static str, String)> {
    // Marked, so that it is not taken for the number of a step.
    let part = |name: &&str| match (*name, value(name)) {
        (SLURM_RESTARTS, Some("0")) => None,
        (SLURM_RESTARTS, Some(count)) => Some(format!("r{count}")),
        (_, found) => found.map(String::from),
    };
    KEYS.iter().find_map(|(who, names)| {
        let values = names.iter().map(part).collect::<Option<Vec<_>>>()?;
        // torchrun writes `none` when no ID was given.
        (values != ["none"]).then(|| (*who, values.join(":")))
    })
}

/// A GPU in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Device {
    Number(u32),
    /// A UUID, or a prefix of it.
    Named(String),
}

impl Device {
    fn parse(text: &str) -> Option<Device> {
        let text = text.trim();
        if let Ok(number) = text.parse::<u16>() {
            return Some(Device::Number(number.into()));
        }
        let behind = text.strip_prefix("GPU-").or_else(|| {
            let own = text.strip_prefix("MIG-")?;
            Some(own.strip_prefix("GPU-").unwrap_or(own))
        })?;
        let plain = |c: char| c.is_ascii_hexdigit() || c == '-' || c == '/';
        ((1..=MAX_UUID_BYTES).contains(&behind.len()) && behind.chars().all(plain)).then(|| Device::Named(text.into()))
    }
}

/// The UUIDs in a list of GPUs; None if it has a number. The device plugin of Kubernetes writes UUIDs. Numbers come from
/// people, who do not decide about the GPUs of a container.
fn named_devices(list: &str) -> Option<Vec<String>> {
    let named = |part: &str| match Device::parse(part)? {
        Device::Named(name) => Some(name),
        Device::Number(_) => None,
    };
    list.split(',').map(named).collect()
}

/// GPUs of a list; None stands for an unknown one.
type DeviceList = Vec<Option<Device>>;

/// The GPU that a process is told to use: the one with its number among several visible ones, or the only visible one.
fn own_device<'a>(value: &impl Fn(&str) -> Option<&'a str>) -> Option<Device> {
    let visible = visible(value)?;
    let local = || {
        LAUNCHERS.iter().find(|launcher| says(launcher, value)).and_then(|one| value(one.local)?.parse::<u32>().ok())
    };
    match visible.as_slice() {
        [one] => one.clone(),
        several => several.get(local()? as usize)?.clone(),
    }
}

/// The GPUs that a process sees, by the machine's own numbers or by UUIDs. Lists nest: in a job or a container with
/// some of the machine's GPUs, a program counts those from 0.
fn visible<'a>(value: &impl Fn(&str) -> Option<&'a str>) -> Option<DeviceList> {
    let list = |name: &str| -> Option<DeviceList> { Some(value(name)?.split(',').map(Device::parse).collect()) };
    let first = |names: &[&str]| names.iter().find_map(|name| list(name));
    let inner = first(OF_PROGRAM);
    let seen = match (inner, list(OF_RUNTIME)) {
        (Some(inner), Some(runtime)) => Some(counted_in(&inner, &runtime)),
        (inner, runtime) => inner.or(runtime),
    };
    let (job, container) = (first(OF_JOB), list(OF_CONTAINER));
    let outer = match (&job, &container) {
        (Some(job), Some(container)) if job != container => {
            // It is unknown which of the two is within the other.
            return Some(seen.unwrap_or_else(|| job.clone()).into_iter().map(|one| one.filter(is_named)).collect());
        }
        (Some(job), _) => job,
        (None, Some(container)) => {
            return Some(seen.map_or_else(|| container.clone(), |seen| counted_in(&seen, container)));
        }
        // No variable names the GPUs of a pod.
        (None, None) if value("KUBERNETES_SERVICE_HOST").is_some() => {
            return Some(seen?.into_iter().map(|one| one.filter(is_named)).collect());
        }
        (None, None) => return seen,
    };
    let Some(seen) = seen else { return Some(outer.clone()) };
    // Under Slurm, programs count from 0 only if Slurm isolates them from the other GPUs.
    let numbers = || seen.iter().flatten().filter(|one| !is_named(one));
    let by_machine = numbers().all(|one| outer.contains(&Some(one.clone())));
    let by_place = numbers().all(|one| place_in(one, outer).is_some());
    Some(match (by_machine, by_place) {
        (true, false) => seen,
        (false, true) => counted_in(&seen, outer),
        _ => {
            let alike = |one: &Device| is_named(one) || place_in(one, outer).as_ref() == Some(one);
            seen.into_iter().map(|one| one.filter(alike)).collect()
        }
    })
}

/// Devices of a list whose numbers are positions in another list.
fn counted_in(inner: &DeviceList, outer: &DeviceList) -> DeviceList {
    let of = |one: &Device| if is_named(one) { Some(one.clone()) } else { place_in(one, outer) };
    inner.iter().map(|one| one.as_ref().and_then(of)).collect()
}

/// The device at a position of a list.
fn place_in(place: &Device, list: &DeviceList) -> Option<Device> {
    match place {
        Device::Number(place) => list.get(*place as usize)?.clone(),
        Device::Named(_) => None,
    }
}

fn is_named(device: &Device) -> bool {
    matches!(device, Device::Named(_))
}

/// Whether a launcher sets the number of a process.
fn says<'a>(launcher: &Launcher, value: &impl Fn(&str) -> Option<&'a str>) -> bool {
    value(launcher.rank).is_some() && (launcher.needs.is_empty() || value(launcher.needs).is_some())
}

fn rank<'a>(value: &impl Fn(&str) -> Option<&'a str>) -> Option<Rank> {
    let number = |name: &str| value(name)?.parse::<u32>().ok();
    let launcher = LAUNCHERS.iter().find(|launcher| says(launcher, value))?;
    // Lightning does not set the number of processes on the nodes before.
    if launcher.rank == LOCAL_RANK && number("NODE_RANK") != Some(0) {
        return None;
    }
    let gpu = match own_device(value) {
        Some(Device::Number(number)) => Some(number),
        _ => None,
    };
    Some(Rank {
        rank: number(launcher.rank)?,
        launcher: launcher.name.into(),
        world: number(launcher.world),
        local: number(launcher.local),
        node: launcher.node.iter().find_map(|name| number(name)),
        attempt: number(launcher.attempt),
        gpus: gpu.into_iter().collect(),
        assumed: gpu.is_some(),
        primary: value("WANDB_X_PRIMARY").is_some_and(|primary| ["true", "True", "1"].contains(&primary)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded environments of launchers: variables, and the expected key and rank.
    type Recorded = (&'static str, Option<(&'static str, &'static str)>, Option<(&'static str, u32, Option<u32>)>);

    const RECORDED: &[Recorded] = &[
        (
            "RANK=3 WORLD_SIZE=8 LOCAL_RANK=3 GROUP_RANK=0 TORCHELASTIC_RUN_ID=job-7 TORCHELASTIC_RESTART_COUNT=1 MASTER_ADDR=n1 MASTER_PORT=29500",
            Some(("torchrun", "job-7")),
            Some((TORCH, 3, Some(8))),
        ),
        (
            "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 TORCHELASTIC_RUN_ID=none MASTER_ADDR=n1 MASTER_PORT=29500",
            Some(("ddp", "n1:29500")),
            Some((TORCH, 0, Some(2))),
        ),
        (
            "SLURM_JOB_ID=42 SLURM_CLUSTER_NAME=big SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_LOCALID=1 SLURM_NODEID=1",
            Some(("slurm", "big:42:0")),
            Some(("slurm", 5, Some(16))),
        ),
        ("SLURM_JOB_ID=42 SLURM_STEP_ID=batch SLURM_PROCID=0", Some(("slurm", "42")), None),
        (
            "SLURM_JOB_ID=42 SLURM_CLUSTER_NAME=big SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_RESTART_COUNT=1",
            Some(("slurm", "big:42:0:r1")),
            Some(("slurm", 5, Some(16))),
        ),
        ("SLURM_JOB_ID=42 SLURM_CLUSTER_NAME=big SLURM_RESTART_COUNT=2", Some(("slurm", "big:42:r2")), None),
        ("SLURM_JOB_ID=42 SLURM_RESTART_COUNT=0", Some(("slurm", "42")), None),
        ("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=1", None, Some(("mpi", 1, Some(4)))),
        ("PMI_RANK=2 PMI_SIZE=3", None, Some(("mpi", 2, Some(3)))),
        (
            "JAX_PROCESS_ID=1 JAX_NUM_PROCESSES=2 JAX_COORDINATOR_ADDRESS=10.0.0.1:1234",
            Some(("jax", "10.0.0.1:1234")),
            Some(("jax", 1, Some(2))),
        ),
        ("RAY_JOB_ID=01000000 RANK=1 WORLD_SIZE=2", Some(("ray", "01000000")), Some((TORCH, 1, Some(2)))),
        (
            "KUBERNETES_SERVICE_HOST=10.0.0.1 POD_NAMESPACE=ml JOB_NAME=train JOB_COMPLETION_INDEX=4",
            Some(("kubernetes", "10.0.0.1:ml:train")),
            Some(("kubernetes", 4, None)),
        ),
        ("JOB_NAME=train JOB_COMPLETION_INDEX=4", None, None),
        (
            "KUBERNETES_SERVICE_HOST=10.0.0.1 PET_RDZV_ID=job-9 PET_NODE_RANK=1 RANK=5 WORLD_SIZE=8",
            Some(("kubernetes", "10.0.0.1:job-9")),
            Some((TORCH, 5, Some(8))),
        ),
        ("PET_RDZV_ID=job-9 PET_NODE_RANK=1", Some(("torchrun", "job-9")), None),
        ("WATCHGLASS_RANK=2 RANK=7 WORLD_SIZE=8", None, Some(("watchglass", 2, None))),
        ("WANDB_ENTITY=team WANDB_PROJECT=llm WANDB_RUN_ID=abc123", Some(("wandb", "team:llm:abc123")), None),
        (
            "SLURM_JOB_ID=43 SLURM_ARRAY_JOB_ID=42 SLURM_ARRAY_TASK_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1",
            Some(("slurm", "43:0")),
            Some(("slurm", 0, Some(1))),
        ),
        ("TPU_WORKER_ID=3 TPU_WORKER_HOSTNAMES=a.b,c.d", Some(("jax", "ffc1d330")), Some(("jax", 3, None))),
        ("CLOUD_TPU_TASK_ID=1 TPU_WORKER_HOSTNAMES=a;b", None, Some(("jax", 1, None))),
        ("WANDB_RUN_ID=abc123 SLURM_JOB_ID=42", Some(("wandb", "abc123")), None),
        (
            "LOCAL_RANK=3 NODE_RANK=0 WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=12910",
            Some(("ddp", "127.0.0.1:12910")),
            Some((TORCH, 3, Some(4))),
        ),
        ("LOCAL_RANK=1 NODE_RANK=1 WORLD_SIZE=4", None, None),
        // Other programs set RANK, too, and invalid values count as absent.
        ("RANK=3", None, None),
        ("RANK=12345678 WORLD_SIZE=8 MASTER_ADDR=a;b MASTER_PORT=1", None, None),
    ];

    fn named(words: &str) -> EnvironFacts {
        EnvironFacts::from_bytes(words.replace(' ', "\0").as_bytes())
    }

    #[test]
    fn each_launcher_is_understood() {
        for (words, key, rank) in RECORDED {
            let found = named(words);
            assert_eq!(found.key.as_ref().map(|(who, key)| (*who, key.as_str())), *key, "{words}");
            let said = found.rank.as_ref().map(|rank| (rank.launcher.as_str(), rank.rank, rank.world));
            assert_eq!(said, *rank, "{words}");
        }
        for launcher in LAUNCHERS {
            let names = [launcher.rank, launcher.needs, launcher.world, launcher.local, launcher.attempt];
            let lists =
                KEYS.iter().flat_map(|(_, names)| names.iter()).chain(launcher.node).chain(OF_PROGRAM).chain(OF_JOB);
            for name in names.into_iter().chain(lists.copied()) {
                let known = VARIABLES.iter().any(|(known, _)| *known == name);
                assert!(known || name.is_empty(), "{name} is not in the table");
            }
        }
    }

    #[test]
    fn gpus_that_are_said_to_be_seen_are_assumed() {
        let gpus = |words: &str| named(&format!("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 {words}")).rank.map(|rank| rank.gpus);
        assert_eq!(gpus("CUDA_VISIBLE_DEVICES=4,6"), Some(vec![6]));
        assert_eq!(gpus("ROCR_VISIBLE_DEVICES=3"), Some(vec![3]));
        assert_eq!(gpus("CUDA_VISIBLE_DEVICES=GPU-1234"), Some(vec![]));
        assert_eq!(gpus(""), Some(vec![]));
    }

    #[test]
    fn lists_of_gpus_nest_and_what_is_not_known_is_left_out() {
        let of = |words: &[&str]| {
            let said = EnvironFacts::from_bytes(
                [&["RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1"], words].concat().join("\0").as_bytes(),
            );
            (said.rank.expect("a rank").gpus.first().copied(), said.device)
        };
        for (words, gpu) in [
            // Slurm isolates the job's GPUs, and programs count from 0.
            (&["SLURM_STEP_GPUS=2,3", "CUDA_VISIBLE_DEVICES=0,1"][..], Some(3)),
            (&["SLURM_JOB_GPUS=4,5,6", "CUDA_VISIBLE_DEVICES=0,1,2"], Some(5)),
            // Without isolation, they use the machine's numbers.
            (&["SLURM_STEP_GPUS=2,3", "CUDA_VISIBLE_DEVICES=2,3"], Some(3)),
            (&["SLURM_STEP_GPUS=0,1", "CUDA_VISIBLE_DEVICES=0,1"], Some(1)),
            (&["SLURM_STEP_GPUS=1,2", "CUDA_VISIBLE_DEVICES=1"], None),
            (&["SLURM_STEP_GPUS=2,3", "CUDA_VISIBLE_DEVICES=5,6"], None),
            (&["SLURM_STEP_GPUS=2,3", "ROCR_VISIBLE_DEVICES=0,1"], Some(3)),
            // A container's GPUs are counted from 0 in it.
            (&["NVIDIA_VISIBLE_DEVICES=4,6", "CUDA_VISIBLE_DEVICES=1"], Some(6)),
            (&["NVIDIA_VISIBLE_DEVICES=4,6"], Some(6)),
            (&["NVIDIA_VISIBLE_DEVICES=4", "CUDA_VISIBLE_DEVICES=0,1"], None),
            (&["NVIDIA_VISIBLE_DEVICES=all", "CUDA_VISIBLE_DEVICES=0,1"], Some(1)),
            (&["SLURM_STEP_GPUS=2,3", "NVIDIA_VISIBLE_DEVICES=2,3", "CUDA_VISIBLE_DEVICES=0,1"], Some(3)),
            (&["SLURM_STEP_GPUS=2,3", "NVIDIA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=0,1"], None),
            (&["KUBERNETES_SERVICE_HOST=10.0.0.1", "CUDA_VISIBLE_DEVICES=0,1"], None),
            // HIP counts the GPUs that ROCr leaves.
            (&["ROCR_VISIBLE_DEVICES=5,7", "HIP_VISIBLE_DEVICES=0,1"], Some(7)),
            (&["ROCR_VISIBLE_DEVICES=5,7", "CUDA_VISIBLE_DEVICES=1,0"], Some(5)),
            // Blanks.
            (&["CUDA_VISIBLE_DEVICES=4, 6"], Some(6)),
            (&["SLURM_STEP_GPUS= 2 , 3 ", "CUDA_VISIBLE_DEVICES= 0, 1"], Some(3)),
            (&["CUDA_VISIBLE_DEVICES="], None),
            (&["CUDA_VISIBLE_DEVICES=-1"], None),
        ] {
            assert_eq!(of(words), (gpu, None), "{words:?}");
        }
        let (one, two) = ("GPU-aaaa", "GPU-bbbb");
        let both = format!("NVIDIA_VISIBLE_DEVICES={one},{two}");
        assert_eq!(of(&[&both, "CUDA_VISIBLE_DEVICES=1,0"]), (None, Some(one.into())));
        assert_eq!(
            of(&["SLURM_STEP_GPUS=2,3", &format!("CUDA_VISIBLE_DEVICES={one},{two}")]),
            (None, Some(two.into()))
        );
        let mig = "MIG-8932f937-d72c-4106-c12f-20bd9faed9f6";
        assert_eq!(of(&[&format!("NVIDIA_VISIBLE_DEVICES={mig}"), "CUDA_VISIBLE_DEVICES=0"]), (None, Some(mig.into())));
    }

    #[test]
    fn a_gpu_is_told_by_its_uuid_too() {
        let said = |words: &str| named(&format!("RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 {words}"));
        let device = |words: &str| said(words).device;
        let (one, two) = ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-5e1c");
        assert_eq!(device(&format!("CUDA_VISIBLE_DEVICES={one},{two}")).as_deref(), Some(two));
        assert_eq!(device(&format!("NVIDIA_VISIBLE_DEVICES={one}")).as_deref(), Some(one));
        let eight = [one; 8].join(",");
        assert_eq!(device(&format!("CUDA_VISIBLE_DEVICES={eight}")).as_deref(), Some(one), "a whole machine's list");
        let mig = "MIG-GPU-8932f937-d72c-4106-c12f-20bd9faed9f6/1/0";
        assert_eq!(device(&format!("CUDA_VISIBLE_DEVICES=0,{mig}")).as_deref(), Some(mig));
        for none in ["0,1", "GPU-", "GPU-canary", "MIG-GPU-", "all", "GPU-12,x", "GPU-1"] {
            let several = format!("CUDA_VISIBLE_DEVICES={none},{none}");
            assert_eq!(device(&several).is_some(), none == "GPU-1", "{none}");
        }
        assert!(said("CUDA_VISIBLE_DEVICES=0,1").fastest_first && !said("ROCR_VISIBLE_DEVICES=0,1").fastest_first);
        assert!(!said("CUDA_VISIBLE_DEVICES=0,1 CUDA_DEVICE_ORDER=PCI_BUS_ID").fastest_first);
    }

    #[test]
    fn names_are_those_of_wandb_and_of_slurm() {
        let said = named("WATCHGLASS_NAME=mine WANDB_NAME=theirs WANDB_TAGS=a,,b WANDB_NOTES=n SLURM_JOB_ACCOUNT=lab");
        assert_eq!((said.name.as_deref(), said.project.as_deref()), (Some("mine"), Some("lab")));
        assert_eq!((said.tags, said.notes.as_deref()), (vec!["a".into(), "b".into()], Some("n")));
        let said =
            named("SLURM_JOB_NAME=sweep SLURM_ARRAY_JOB_ID=42 SLURM_ARRAY_TASK_ID=7 SLURM_JOB_ID=49 ROLE_NAME=trainer");
        assert_eq!((said.name.as_deref(), said.group.as_deref()), (Some("sweep[7]"), Some("array 42")));
        assert_eq!((said.slurm.as_deref(), said.job_type.as_deref()), (Some("49"), Some("trainer")));
        let rank = |words: &str| named(words).rank.expect("a rank");
        assert!(rank("RANK=3 WORLD_SIZE=4 WANDB_X_PRIMARY=true").primary);
        assert_eq!(rank("RANK=3 WORLD_SIZE=4 CROSS_RANK=1 LOCAL_RANK=1 SLURM_STEP_GPUS=2,3").node, Some(1));
        assert_eq!(rank("RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 SLURM_STEP_GPUS=2,3").gpus, [3]);
    }

    #[test]
    fn an_environment_that_its_process_has_overwritten_says_nothing() {
        for gone in [&b""[..], b"\0\0\0\0", b"orker (rank=3)\0\0\0", b"=x\0"] {
            assert!(is_gone(gone), "{}", String::from_utf8_lossy(gone));
        }
        for there in [&b"RANK=3\0"[..], b"\0\0PATH=/bin\0", b"a b=c\0_X1=\0"] {
            assert!(!is_gone(there), "{}", String::from_utf8_lossy(there));
        }
    }

    #[test]
    fn no_other_variable_is_heard_of() {
        let said = format!(
            "{:?}",
            named(
                "AWS_SECRET_ACCESS_KEY=canary RANK=canary WANDB_API_KEY=canary XRANK=canary WORLD_SIZE=canary =canary \
                 WANDB_X_PRIMARY=canary SLURM_STEP_GPUS=canary TPU_WORKER_HOSTNAMES=canary WATCHGLASS_KEY=canary canary"
            )
        );
        assert!(!said.contains("canary"), "{said}");
        let text = EnvironFacts::from_bytes("WANDB_NAME=a\u{1b}[31m\u{202e}b".as_bytes()).name;
        assert_eq!(text.as_deref(), Some("a[31mb"));
        assert_eq!(
            EnvironFacts::from_bytes(format!("WANDB_NAME={}", "é".repeat(100)).as_bytes()).name.map(|name| name.len()),
            Some(128)
        );
    }
}
