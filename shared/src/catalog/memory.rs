//! Memory and swap of the host, or of the container's limit where there is one.

use super::{Draw, MetricDef};
use crate::unit::Unit;

const KIB: f64 = 1.0 / 1024.0;

/// Used, all platforms.
pub static USED: MetricDef = MetricDef::gauge("memory.used", Unit::Bytes)
    .title("Memory used")
    .on("memory", "used")
    .steps(KIB)
    .help("Memory that programs and the kernel hold and could not give back: total less available. Read from /proc/meminfo; with a cgroup limit, memory.current less inactive_file.");

/// Total, the limit on the memory chart.
pub static TOTAL: MetricDef = MetricDef::gauge("memory.total", Unit::Bytes)
    .title("Memory total")
    .on("memory", "total")
    .draw(Draw::Limit)
    .steps(KIB)
    .help("Memory of the machine, or the smallest memory.max of the cgroups above this process when that is less.");

/// W&B's percentage.
pub static PERCENT: MetricDef = MetricDef::gauge("memory_percent", Unit::Percent)
    .title("Memory in use, page cache included")
    .on("memory.percent", "with page cache")
    .draw(Draw::Hidden)
    .aliases(&["memory", "system.memory_percent"])
    .help("W&B's formula: with a finite cgroup memory.max 100 x memory.current / memory.max, page cache included; else 100 x (total - available) / total. Reading a large data set in a limited container drives it to 100 with nothing wrong; the chart draws memory.working_set_percent.");

/// Without inactive page cache.
pub static WORKING_SET: MetricDef = MetricDef::gauge("memory.working_set_percent", Unit::Percent)
    .title("Memory in use")
    .on("memory.percent", "in use")
    .help("Share of the memory limit that cannot be taken back: with a cgroup limit 100 x (memory.current - inactive_file) / memory.max, else 100 x (total - available) / total.");

/// Left to use.
pub static AVAILABLE: MetricDef = MetricDef::gauge("proc.memory.availableMB", Unit::Mebibytes)
    .title("Memory available")
    .on("memory.available", "available")
    .steps(1024.0)
    .help("With a cgroup limit memory.max - memory.current, not below 0; else MemAvailable of /proc/meminfo. Of the host, in spite of its name (W&B's).");

/// Page cache.
pub static CACHED: MetricDef = MetricDef::gauge("memory.cached", Unit::Bytes)
    .title("Page cache")
    .on("memory.cache", "cached")
    .steps(KIB)
    .help("File data kept in memory, which is given back when programs need it. Cached of /proc/meminfo.");

/// Not yet on disk.
pub static DIRTY: MetricDef = MetricDef::gauge("memory.dirty", Unit::Bytes)
    .title("Waiting to be written")
    .on("memory.dirty", "dirty")
    .steps(KIB)
    .help("File data in memory that has yet to be written to disk. Dirty plus Writeback of /proc/meminfo.");

/// Swap used.
pub static SWAP_USED: MetricDef = MetricDef::gauge("swap.used", Unit::Bytes)
    .title("Swap used")
    .on("swap", "used")
    .steps(KIB)
    .help("Swap in use. SwapTotal less SwapFree of /proc/meminfo.");

/// Swap total.
pub static SWAP_TOTAL: MetricDef = MetricDef::gauge("swap.total", Unit::Bytes)
    .title("Swap total")
    .on("swap", "total")
    .draw(Draw::Limit)
    .steps(KIB)
    .help("Swap that exists. SwapTotal of /proc/meminfo.");

/// Swap used, percent.
pub static SWAP_PERCENT: MetricDef = MetricDef::gauge("swap.used_percent", Unit::Percent)
    .title("Swap used, share")
    .on("swap.percent", "used")
    .help("Share of swap in use; 0 on a machine without swap.");

/// In order on screen.
pub static ROWS: &[&MetricDef] =
    &[&USED, &TOTAL, &PERCENT, &WORKING_SET, &AVAILABLE, &CACHED, &DIRTY, &SWAP_USED, &SWAP_TOTAL, &SWAP_PERCENT];
