//! Jupyter kernels of the user who runs Watchglass, each with all its descendants. An instance is the first eight
//! letters of the kernel's id, or all of a shorter one.

use super::{MetricDef, Range};
use crate::unit::Unit;

/// Number of letters of a kernel's id in the instances of its series.
const SHORT_LETTERS: usize = 8;

/// The instance of a kernel's series, from its id.
pub fn short(id: &str) -> &str {
    id.get(..SHORT_LETTERS).unwrap_or(id)
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
