//! Processor, load and pressure of the host.

use super::{Draw, MetricDef, Range};
use crate::unit::Unit;

/// Whole machine.
pub static CPU_PERCENT: MetricDef = MetricDef::gauge("system.cpu_percent", Unit::Percent)
    .title("CPU utilization")
    .on("cpu", "all cores")
    .help("Share of the time of all logical cores since the previous sample that was neither idle nor waiting for I/O; time that the hypervisor took counts as busy. Read from the first line of /proc/stat.");

/// Core by core.
pub static CORE_PERCENT: MetricDef = MetricDef::gauge("cpu.{i}.cpu_percent", Unit::Percent)
    .title("CPU core utilization")
    .on("cpu.cores", "core {i}")
    .help("Share of one logical core's time since the previous sample that was neither idle nor waiting for I/O. Read from its line of /proc/stat.");

/// Time in user mode.
pub static USER_PERCENT: MetricDef = MetricDef::gauge("system.cpu_user_percent", Unit::Percent)
    .title("CPU time in programs")
    .on("cpu.modes", "user")
    .help("Share of all cores' time in user mode, niced programs included. Read from /proc/stat.");

/// Time in the kernel.
pub static SYSTEM_PERCENT: MetricDef = MetricDef::gauge("system.cpu_system_percent", Unit::Percent)
    .title("CPU time in the kernel")
    .on("cpu.modes", "system")
    .help("Share of all cores' time in the kernel, interrupts included. Read from /proc/stat.");

/// Time waiting for disks.
pub static IOWAIT_PERCENT: MetricDef = MetricDef::gauge("system.cpu_iowait_percent", Unit::Percent)
    .title("CPU waiting for I/O")
    .on("cpu.modes", "I/O wait")
    .help("Share of all cores' time that was idle with I/O outstanding. Read from /proc/stat, where the kernel calls it unreliable; pressure is the better sign.");

/// Time taken by the hypervisor.
pub static STEAL_PERCENT: MetricDef = MetricDef::gauge("system.cpu_steal_percent", Unit::Percent)
    .title("CPU time stolen")
    .on("cpu.modes", "stolen")
    .help("Share of all cores' time that the hypervisor gave to other machines. Read from /proc/stat.");

/// Load, one minute.
pub static LOAD1: MetricDef = MetricDef::gauge("system.load1", Unit::Count)
    .title("Load, 1 minute")
    .on("load", "1 min")
    .steps(100.0)
    .help("Runnable and uninterruptible tasks, averaged over one minute by the kernel. Read from /proc/loadavg.");

/// Load, five minutes.
pub static LOAD5: MetricDef = MetricDef::gauge("system.load5", Unit::Count)
    .title("Load, 5 minutes")
    .on("load", "5 min")
    .steps(100.0)
    .help("Runnable and uninterruptible tasks, averaged over five minutes by the kernel. Read from /proc/loadavg.");

/// Load, fifteen minutes.
pub static LOAD15: MetricDef =
    MetricDef::gauge("system.load15", Unit::Count).title("Load, 15 minutes").on("load", "15 min").steps(100.0).help(
        "Runnable and uninterruptible tasks, averaged over fifteen minutes by the kernel. Read from /proc/loadavg.",
    );

/// Logical cores, the limit on the load chart.
pub static CORES: MetricDef = MetricDef::gauge("system.cores", Unit::Count)
    .title("Logical cores")
    .on("load", "cores")
    .draw(Draw::Limit)
    .help("Logical cores that are online. The number of core lines in /proc/stat.");

/// Tasks that want a core now.
pub static TASKS_RUNNABLE: MetricDef = MetricDef::gauge("system.tasks_runnable", Unit::Count)
    .title("Runnable tasks")
    .on("tasks", "runnable")
    .help("Tasks that run or wait for a core at this instant. Read from /proc/loadavg.");

/// All tasks.
pub static TASKS: MetricDef = MetricDef::gauge("system.tasks", Unit::Count)
    .title("Tasks")
    .on("tasks.all", "tasks")
    .range(Range::Fit)
    .help("Processes and threads that exist. Read from /proc/loadavg.");

/// Time since boot.
pub static UPTIME: MetricDef = MetricDef::gauge("system.uptime", Unit::Seconds)
    .title("Uptime")
    .on("uptime", "up")
    .range(Range::Fit)
    .steps(100.0)
    .help("Seconds since the machine booted. Read from /proc/uptime.");

/// Tasks that wait for a disk.
pub static TASKS_BLOCKED: MetricDef = MetricDef::gauge("system.tasks_blocked", Unit::Count)
    .title("Blocked tasks")
    .on("tasks.blocked", "blocked")
    .help("Tasks that wait for I/O at this instant; the column b of vmstat. Line procs_blocked of /proc/stat.");

/// Processes in state D.
pub static PROCESSES_UNINTERRUPTIBLE: MetricDef = MetricDef::gauge("system.processes_uninterruptible", Unit::Count)
    .title("Processes in uninterruptible sleep")
    .on("tasks.blocked", "uninterruptible")
    .help("Processes of the whole machine whose first thread is in uninterruptible sleep (state D): it waits for a disk, a network file system or a driver and cannot be killed meanwhile. Counted with the process table, every 5 s. State in /proc/PID/stat.");

/// Interrupts.
pub static INTERRUPTS: MetricDef = MetricDef::counter("system.interrupts", Unit::Count)
    .title("Interrupts")
    .on("switches", "interrupts")
    .help("Interrupts that all cores served since the start. First number of line intr of /proc/stat.");

/// Context switches.
pub static CONTEXT_SWITCHES: MetricDef = MetricDef::counter("system.context_switches", Unit::Count)
    .title("Context switches")
    .on("switches", "context switches")
    .help("Times that a core went from one task to another, since the start. Line ctxt of /proc/stat.");

/// Tasks that were started.
pub static FORKS: MetricDef = MetricDef::counter("system.forks", Unit::Count)
    .title("Forks")
    .on("forks", "processes and threads")
    .help("Processes and threads that were started on the machine since the start. Line processes of /proc/stat.");

/// Temperature of the package.
pub static TEMPERATURE: MetricDef = MetricDef::gauge("cpu.avg_temp", Unit::Celsius)
    .title("CPU temperature")
    .on("cpu.temp", "CPU")
    .steps(1000.0)
    .help("Mean of the best processor sensors: package or die, else control, else cores. Read from hwmon, else a thermal zone of the processor; on Apple silicon from the SMC. Readings at or below 0 or above 150 are dropped.");

/// Stalls for want of a core.
pub static PRESSURE_CPU: MetricDef = MetricDef::gauge("pressure.cpu.some_percent", Unit::Percent)
    .title("CPU pressure")
    .on("pressure.cpu", "some")
    .help("Share of the time since the previous sample in which at least one task waited for a core. From the total of /proc/pressure/cpu.");

/// Stalls for want of memory, some.
pub static PRESSURE_MEMORY_SOME: MetricDef = MetricDef::gauge("pressure.memory.some_percent", Unit::Percent)
    .title("Memory pressure")
    .on("pressure.memory", "some")
    .help("Share of the time since the previous sample in which at least one task waited for memory. From the total of /proc/pressure/memory.");

/// Stalls for want of memory, all.
pub static PRESSURE_MEMORY_FULL: MetricDef = MetricDef::gauge("pressure.memory.full_percent", Unit::Percent)
    .title("Memory pressure, all tasks")
    .on("pressure.memory", "full")
    .help("Share of the time since the previous sample in which all tasks that were not idle waited for memory. From the total of /proc/pressure/memory.");

/// Stalls for want of disks, some.
pub static PRESSURE_IO_SOME: MetricDef = MetricDef::gauge("pressure.io.some_percent", Unit::Percent)
    .title("I/O pressure")
    .on("pressure.io", "some")
    .help("Share of the time since the previous sample in which at least one task waited for I/O. From the total of /proc/pressure/io.");

/// Stalls for want of disks, all.
pub static PRESSURE_IO_FULL: MetricDef = MetricDef::gauge("pressure.io.full_percent", Unit::Percent)
    .title("I/O pressure, all tasks")
    .on("pressure.io", "full")
    .help("Share of the time since the previous sample in which all tasks that were not idle waited for I/O. From the total of /proc/pressure/io.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[
    &CPU_PERCENT,
    &CORE_PERCENT,
    &USER_PERCENT,
    &SYSTEM_PERCENT,
    &IOWAIT_PERCENT,
    &STEAL_PERCENT,
    &LOAD1,
    &LOAD5,
    &LOAD15,
    &CORES,
    &TASKS_RUNNABLE,
    &TASKS,
    &UPTIME,
    &TEMPERATURE,
];

/// Further values of vmstat, on Linux.
pub static KERNEL_ROWS: &[&MetricDef] = &[&TASKS_BLOCKED, &INTERRUPTS, &CONTEXT_SWITCHES, &FORKS];

/// Values that are counted with the process table.
pub static TABLE_ROWS: &[&MetricDef] = &[&PROCESSES_UNINTERRUPTIBLE];

/// Pressure, in order on screen.
pub static PRESSURE_ROWS: &[&MetricDef] =
    &[&PRESSURE_CPU, &PRESSURE_MEMORY_SOME, &PRESSURE_MEMORY_FULL, &PRESSURE_IO_SOME, &PRESSURE_IO_FULL];
