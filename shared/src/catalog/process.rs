//! The watched processes (`--pid`) with all their descendants. With a label, such as `cpu/l:rank_3`, also the ranks of
//! training jobs with theirs, refreshed every 5 s from the process table.

use super::{MetricDef, Range};
use crate::unit::Unit;

/// CPU of the watched processes.
pub static CPU: MetricDef = MetricDef::gauge("cpu", Unit::Percent)
    .title("Process CPU")
    .on("process.cpu", "CPU")
    .help("CPU time of the watched processes and all their descendants since the previous sample, divided by the CPU capacity: the cgroup's limit where it has one, else the logical cores. User and system time of /proc/PID/stat. W&B 0.31 divides by physical cores instead.");

/// Threads.
pub static THREADS: MetricDef = MetricDef::gauge("proc.cpu.threads", Unit::Count)
    .title("Process threads")
    .on("process.threads", "threads")
    .help("Threads of the watched processes and all their descendants. Field 20 of /proc/PID/stat.");

/// Processes in the tree.
pub static PROCESSES: MetricDef = MetricDef::gauge("proc.processes", Unit::Count)
    .title("Processes watched")
    .on("process.count", "processes")
    .help("The watched processes that are alive, and all their descendants.");

/// Watched processes in state D.
pub static UNINTERRUPTIBLE: MetricDef = MetricDef::gauge("proc.processes_uninterruptible", Unit::Count)
    .title("Watched processes in uninterruptible sleep")
    .on("tasks.blocked", "watched, uninterruptible")
    .help("Watched processes and descendants whose first thread is in uninterruptible sleep (state D): it waits for a disk, a network file system or a driver. State in /proc/PID/stat.");

/// Throttling.
pub static THROTTLED: MetricDef = MetricDef::gauge("proc.cpu.throttledPercent", Unit::Percent)
    .title("Process CPU throttled")
    .on("process.throttled", "periods")
    .help("100 x increase of nr_throttled / increase of nr_periods in cpu.stat of the watched process's cgroup since the previous sample. Absent without a quota, and when no period passed.");

/// Resident set.
pub static RSS: MetricDef = MetricDef::gauge("proc.memory.rssMB", Unit::Mebibytes)
    .title("Process memory")
    .on("process.memory", "resident")
    .steps(256.0)
    .help("Resident set of the watched processes and all their descendants; a page shared by several counts once for each. Second number of /proc/PID/statm.");

/// Resident set, share.
pub static RSS_PERCENT: MetricDef = MetricDef::gauge("proc.memory.percent", Unit::Percent)
    .title("Process memory, share")
    .on("process.memory.percent", "resident")
    .range(Range::PERCENT)
    .help("100 x resident set of the watched processes and their descendants / memory limit of the cgroup where there is one, else total memory.");

/// Killed for want of memory.
pub static OOM_KILLS: MetricDef = MetricDef::counter("proc.memory.oomKills", Unit::Count)
    .title("Out-of-memory kills")
    .on("process.oom", "kills")
    .help("Processes killed for want of memory in the watched process's cgroup since the start. oom_kill of memory.events; only where the cgroup has a limit.");

/// CPU of W&B's own processes.
pub static WANDB_CPU: MetricDef = MetricDef::gauge("wandb.cpu", Unit::Percent)
    .title("W&B CPU")
    .on("process.cpu", "W&B")
    .help("CPU time of all processes wandb-core and their direct children, divided by the cores that they may use: what W&B itself costs the machine. Summed from the process table, every 5 s. W&B 0.31 tells it of its own process where x_stats_self_usage is set.");

/// Memory of W&B's own processes.
pub static WANDB_RSS: MetricDef = MetricDef::gauge("wandb.memory.rssMB", Unit::Mebibytes)
    .title("W&B memory")
    .on("process.memory", "W&B")
    .steps(256.0)
    .help("Resident set of all processes wandb-core and their direct children; a page shared by several counts once for each. Summed from the process table, every 5 s. W&B 0.31 tells it of its own process where x_stats_self_usage is set.");

/// CPU of a rank in cores.
pub static CORES: MetricDef = MetricDef::gauge("proc.cpu.cores", Unit::Count)
    .title("Process CPU, cores")
    .on("process.cores", "cores")
    .help("CPU time of a rank of a training job and all its descendants per second, 1 is one core busy all the time. Summed from the process table, every 5 s. There is no such series for watched processes.");

/// Rows that only ranks have.
pub static RANK_ROWS: &[&MetricDef] = &[&CORES];

/// Rows of watched processes that ranks have, too.
pub static SHARED_ROWS: &[&MetricDef] = &[&CPU, &THREADS, &RSS];

/// Values of W&B's own processes, summed from the process table.
pub static WANDB_ROWS: &[&MetricDef] = &[&WANDB_CPU, &WANDB_RSS];

/// Rows of Linux only.
pub static KERNEL_ROWS: &[&MetricDef] = &[&UNINTERRUPTIBLE];

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&CPU, &THREADS, &PROCESSES, &THROTTLED, &RSS, &RSS_PERCENT, &OOM_KILLS];
