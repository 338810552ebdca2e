//! Memory and swap of the host, or of the container's limit if there is one.

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
    .help("Memory of the machine, or the smallest memory.max of the cgroups above this process when that is less; the limit of Watchglass's own systemd unit does not count. Memory of a GPU that Linux counts as a NUMA node, as on GH200, is left out here and in used, free and available: it is the GPU's.");

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
    .help("With a cgroup limit memory.max - memory.current, not below 0; else MemAvailable of /proc/meminfo. A value of the host, in spite of its name (W&B's).");

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

/// In use for nothing.
pub static FREE: MetricDef = MetricDef::gauge("memory.free", Unit::Bytes)
    .title("Memory free")
    .on("memory.parts", "free")
    .steps(KIB)
    .help("Memory of the machine that nothing is kept in, not even file data; a machine that works has little of it, and memory.used says what is short. MemFree of /proc/meminfo.");

/// Buffers.
pub static BUFFERS: MetricDef = MetricDef::gauge("memory.buffers", Unit::Bytes)
    .title("Buffers")
    .on("memory.parts", "buffers")
    .steps(KIB)
    .help("Blocks of disks kept in memory outside the page cache, mostly of file systems' own structures; given back when programs need it. Buffers of /proc/meminfo.");

/// Shared memory.
pub static SHARED: MetricDef = MetricDef::gauge("memory.shared", Unit::Bytes)
    .title("Shared memory")
    .on("memory.parts", "shared")
    .steps(KIB)
    .help("Memory that processes share by name or by tmpfs, such as /dev/shm, through which loaders of data hand batches over; it counts as cached and cannot be given back. Shmem of /proc/meminfo.");

/// The kernel's own structures.
pub static SLAB: MetricDef = MetricDef::gauge("memory.slab", Unit::Bytes)
    .title("Slab")
    .on("memory.parts", "slab")
    .steps(KIB)
    .help("Memory of the kernel's own structures, such as those of open files and names of files; a part is given back when programs need it. Slab of /proc/meminfo.");

/// Read from disks for the page cache.
pub static PAGED_IN: MetricDef = MetricDef::counter("memory.paged_in", Unit::Bytes)
    .title("Paged in")
    .on("memory.paging", "in")
    .steps(KIB)
    .help("Read from block devices into memory since the start, swap included; the column bi of vmstat. Line pgpgin of /proc/vmstat, which counts KiB, read every 5 s.");

/// Written to disks.
pub static PAGED_OUT: MetricDef = MetricDef::counter("memory.paged_out", Unit::Bytes)
    .title("Paged out")
    .on("memory.paging", "out")
    .steps(KIB)
    .help("Written from memory to block devices since the start, swap included; the column bo of vmstat. Line pgpgout of /proc/vmstat, which counts KiB, read every 5 s.");

/// Brought back from swap.
pub static SWAPPED_IN: MetricDef =
    MetricDef::counter("swap.in", Unit::Bytes).title("Swapped in").on("swap.paging", "in").steps(KIB).help(
        "Brought back from swap since the start; the column si of vmstat. Line pswpin of /proc/vmstat x the size of a page, read every 5 s.",
    );

/// Put out to swap.
pub static SWAPPED_OUT: MetricDef =
    MetricDef::counter("swap.out", Unit::Bytes).title("Swapped out").on("swap.paging", "out").steps(KIB).help(
        "Put out to swap since the start; the column so of vmstat. Line pswpout of /proc/vmstat x the size of a page, read every 5 s.",
    );

/// Faults that waited for a disk.
pub static MAJOR_FAULTS: MetricDef = MetricDef::counter("memory.major_faults", Unit::Count)
    .title("Major page faults")
    .on("memory.faults", "faults")
    .help("Times that a task wanted a page that had to be read from a disk first, since the start. Line pgmajfault of /proc/vmstat, read every 5 s.");

/// Killed for want of memory, on the whole machine.
pub static OOM_KILLS: MetricDef = MetricDef::counter("memory.oom_kills", Unit::Count)
    .title("Out-of-memory kills on the machine")
    .on("memory.oom", "kills")
    .help("Processes that the kernel killed for want of memory since the start, of the machine or of any control group. Line oom_kill of /proc/vmstat, from Linux 4.13 on, read every 5 s.");

/// Further values of free and vmstat, on Linux.
pub static KERNEL_ROWS: &[&MetricDef] =
    &[&FREE, &BUFFERS, &SHARED, &SLAB, &PAGED_IN, &PAGED_OUT, &SWAPPED_IN, &SWAPPED_OUT, &MAJOR_FAULTS, &OOM_KILLS];

/// In order on screen.
pub static ROWS: &[&MetricDef] =
    &[&USED, &TOTAL, &PERCENT, &WORKING_SET, &AVAILABLE, &CACHED, &DIRTY, &SWAP_USED, &SWAP_TOTAL, &SWAP_PERCENT];
