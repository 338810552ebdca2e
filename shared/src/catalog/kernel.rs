//! Jupyter kernels of the user who runs Watchglass, each with all its descendants. An instance is the first eight
//! letters of a UUID, and up to 24 letters of another id.

use super::{MetricDef, Range};
use crate::unit::Unit;

/// Number of letters of a UUID in the instances of its kernel's series. All of them are random.
const UUID_LETTERS: usize = 8;

/// Maximum number of letters of another id there. Notebooks of one window of VS Code share the first letters of theirs:
/// `v2-`, the PID of the window, and only then 12 random letters.
const MAX_OTHER_LETTERS: usize = 24;

/// The instance of a kernel's series, from its id.
pub fn short(id: &str) -> &str {
    let is_uuid = id.len() == 36 && id.as_bytes()[UUID_LETTERS] == b'-';
    id.get(..if is_uuid { UUID_LETTERS } else { MAX_OTHER_LETTERS }).unwrap_or(id)
}

/// Whether an instance is of the kernel with this id: its own, or a GPU's of it.
pub fn is_instance_of(id: &str, instance: &str) -> bool {
    instance.strip_prefix(short(id)).is_some_and(|rest| rest.is_empty() || rest.starts_with(".gpu."))
}

/// CPU of a kernel.
pub static CPU: MetricDef = MetricDef::gauge("kernel.{kernel}.cpu_percent", Unit::Percent)
    .title("Kernel CPU")
    .on("kernel.cpu", "kernel {kernel}")
    .range(Range::PERCENT)
    .help("CPU time of a Jupyter kernel and all its descendants since the previous sample, divided by the CPU capacity: the cgroup's limit where it has one, else the logical cores. User and system time of /proc/PID/stat, that of children that ended included.");

/// Memory of a kernel.
pub static MEMORY: MetricDef = MetricDef::gauge("kernel.{kernel}.memory", Unit::Bytes)
    .title("Kernel memory")
    .on("kernel.memory", "kernel {kernel}")
    .help("Proportional set size of a Jupyter kernel and all its descendants, and what of them is swapped out; a page shared by several counts once. Pss and SwapPss of /proc/PID/smaps_rollup every 5 s; between, the change of the resident set in /proc/PID/statm is added.");

/// Threads of a kernel.
pub static THREADS: MetricDef = MetricDef::gauge("kernel.{kernel}.threads", Unit::Count)
    .title("Kernel threads")
    .on("kernel.threads", "kernel {kernel}")
    .help("Threads of a Jupyter kernel and all its descendants. Field 20 of /proc/PID/stat.");

/// GPU memory of a kernel. An instance is a kernel's, `.gpu.` and the number of the GPU.
pub static GPU_MEMORY: MetricDef = MetricDef::gauge("kernel.{kernel.gpu.i}.memory", Unit::Bytes)
    .title("Kernel GPU memory")
    .on("kernel.gpu.memory", "kernel {kernel.gpu.i}")
    .help("Memory that a Jupyter kernel and all its descendants hold on a GPU, by the vendor's list of processes. Absent where a process of that list is none that runs here with the device open, as in some containers.");

/// Share of a GPU that a kernel uses. Instances as for [`GPU_MEMORY`].
pub static GPU_SHARE: MetricDef = MetricDef::gauge("kernel.{kernel.gpu.i}.share", Unit::Percent)
    .title("Kernel GPU share")
    .on("kernel.gpu.share", "kernel {kernel.gpu.i}")
    .range(Range::PERCENT)
    .help("Share of a GPU's multiprocessors that a Jupyter kernel and all its descendants used, the sum of gpu.{process}.smUtilization; absent where the driver tells no process's share, as in MIG mode, and under the conditions of kernel.{kernel.gpu.i}.memory.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&CPU, &MEMORY, &GPU_MEMORY, &GPU_SHARE, &THREADS];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notebooks_of_one_window_have_series_of_their_own() {
        assert_eq!(short("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"), "0a1b2c3d");
        let (one, other) = ("v2-4194304kSC9njpUbH1b", "v2-4194304vbBrK2x9QmZt");
        assert_eq!((short(one), short(other)), (one, other));
        assert_eq!(short("v31a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"), "v31a2b3c4d5e6f708192a3b4");
        assert_eq!((short("4711"), short("")), ("4711", ""));
        let own = |instance| is_instance_of("4711", instance);
        assert!(own("4711") && own("4711.gpu.0") && !own("47110") && !own("47110.gpu.0") && !own("471"));
    }
}
