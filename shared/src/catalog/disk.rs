//! Disks: how full, how busy, how much is read and written.

use super::MetricDef;
use crate::unit::Unit;

const SECTORS_PER_MIB: f64 = 2048.0;
const PAGES_PER_GIB: f64 = 262_144.0;

/// Read, all disks.
pub static READ: MetricDef = MetricDef::counter("disk.in", Unit::Mebibytes)
    .title("Read from disk")
    .on("disk", "read")
    .steps(SECTORS_PER_MIB)
    .help("Read since the start from all disks that have a device of their own in /sys/block; partitions, device mapper, RAID, loop and zram are left out so that nothing counts twice. Sectors of /proc/diskstats, 512 bytes each.");

/// Written, all disks.
pub static WRITTEN: MetricDef = MetricDef::counter("disk.out", Unit::Mebibytes)
    .title("Written to disk")
    .on("disk", "write")
    .steps(SECTORS_PER_MIB)
    .help("Written since the start to all disks that have a device of their own in /sys/block; partitions, device mapper, RAID, loop and zram are left out so that nothing counts twice. Sectors of /proc/diskstats, 512 bytes each.");

/// Read, disk by disk.
pub static DEVICE_READ: MetricDef = MetricDef::counter("disk.{dev}.in", Unit::Mebibytes)
    .title("Read by device")
    .on("disk.read", "{dev}")
    .steps(SECTORS_PER_MIB)
    .help("Read from this block device since the start. Sectors of /proc/diskstats, 512 bytes each.");

/// Written, disk by disk.
pub static DEVICE_WRITTEN: MetricDef = MetricDef::counter("disk.{dev}.out", Unit::Mebibytes)
    .title("Written by device")
    .on("disk.write", "{dev}")
    .steps(SECTORS_PER_MIB)
    .help("Written to this block device since the start. Sectors of /proc/diskstats, 512 bytes each.");

/// Busy, disk by disk.
pub static DEVICE_BUSY: MetricDef = MetricDef::gauge("disk.{dev}.busy_percent", Unit::Percent)
    .title("Disk busy")
    .on("disk.busy", "{dev}")
    .help("Share of the time since the previous sample in which the device had requests in flight. A device that works in parallel can take more at 100. Time doing I/O of /proc/diskstats.");

/// Full, percent.
pub static USAGE_PERCENT: MetricDef = MetricDef::gauge("disk.{path}.usagePercent", Unit::Percent)
    .title("Disk fullness")
    .on("disk.usage", "{path}")
    .aliases(&["disk.{path}.usagePercen", "disk => /"])
    .help("100 x used / (used + free to unprivileged users) of the file system at the path, by statfs; blocks reserved for root are in neither term.");

/// Full, size.
pub static USAGE_GB: MetricDef = MetricDef::gauge("disk.{path}.usageGB", Unit::Gibibytes)
    .title("Disk space used")
    .on("disk.space", "{path}")
    .aliases(&["disk.{path}.usageGB)"])
    .steps(PAGES_PER_GIB)
    .help("Space in use on the file system at the path, by statfs.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&READ, &WRITTEN, &DEVICE_READ, &DEVICE_WRITTEN, &DEVICE_BUSY];

/// Fullness, in order on screen.
pub static USAGE_ROWS: &[&MetricDef] = &[&USAGE_PERCENT, &USAGE_GB];
