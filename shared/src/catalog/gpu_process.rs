//! W&B's `gpu.process` tags: the device's own figures, repeated while a watched process uses the device.
//!
//! They are never a process's share. The charts draw the device's rows; these are for the API and the exports.

use super::{Draw, MetricDef};
use crate::unit::Unit;

const LINE: &str = "GPU {i}, in use by a watched process";

const fn copy(tag: &'static str, unit: Unit, chart: &'static str) -> MetricDef {
    MetricDef::gauge(tag, unit).on(chart, LINE).draw(Draw::Hidden)
}

/// Copy of [`UTILIZATION`](super::gpu::UTILIZATION).
pub static UTILIZATION: MetricDef = copy("gpu.process.{i}.gpu", Unit::Percent, "gpu")
    .title("GPU utilization while a watched process uses it")
    .help("The value of gpu.{i}.gpu, while a watched process or one of its descendants is among the device's compute or graphics processes; it is the whole device's, not the process's share.");

/// Copy of [`MEMORY_ACTIVITY`](super::gpu::MEMORY_ACTIVITY).
pub static MEMORY_ACTIVITY: MetricDef = copy("gpu.process.{i}.memory", Unit::Percent, "gpu.memory.activity")
    .title("GPU memory utilization while a watched process uses it")
    .help("The value of gpu.{i}.memory, while a watched process or one of its descendants is among the device's compute or graphics processes; it is the whole device's, not the process's share.");

/// Copy of [`MEMORY_ALLOCATED`](super::gpu::MEMORY_ALLOCATED).
pub static MEMORY_ALLOCATED: MetricDef = copy("gpu.process.{i}.memoryAllocated", Unit::Percent, "gpu.memory.percent")
    .title("GPU memory used while a watched process uses it, share")
    .help("The value of gpu.{i}.memoryAllocated, while a watched process or one of its descendants is among the device's compute or graphics processes; it is the whole device's, not the process's share.");

/// Copy of [`MEMORY_ALLOCATED_BYTES`](super::gpu::MEMORY_ALLOCATED_BYTES).
pub static MEMORY_ALLOCATED_BYTES: MetricDef =
    copy("gpu.process.{i}.memoryAllocatedBytes", Unit::Bytes, "gpu.memory")
        .title("GPU memory used while a watched process uses it")
        .steps(super::gpu::MEMORY_ALLOCATED_BYTES.steps)
        .help("The value of gpu.{i}.memoryAllocatedBytes, while a watched process or one of its descendants is among the device's compute or graphics processes; it is the whole device's, not the process's share.");

/// Copy of [`TEMP`](super::gpu::TEMP).
pub static TEMP: MetricDef = copy("gpu.process.{i}.temp", Unit::Celsius, "gpu.temp")
    .title("GPU temperature while a watched process uses it")
    .steps(super::gpu::TEMP.steps)
    .help("The value of gpu.{i}.temp, while a watched process or one of its descendants is among the device's compute or graphics processes.");

/// Copy of [`POWER_WATTS`](super::gpu::POWER_WATTS).
pub static POWER_WATTS: MetricDef = copy("gpu.process.{i}.powerWatts", Unit::Watts, "gpu.power")
    .title("GPU power while a watched process uses it")
    .steps(super::gpu::POWER_WATTS.steps)
    .help("The value of gpu.{i}.powerWatts, while a watched process or one of its descendants is among the device's compute or graphics processes; it is the whole device's, not the process's share.");

/// Copy of [`POWER_LIMIT_WATTS`](super::gpu::POWER_LIMIT_WATTS).
pub static POWER_LIMIT_WATTS: MetricDef = copy("gpu.process.{i}.enforcedPowerLimitWatts", Unit::Watts, "gpu.power")
    .title("GPU power limit while a watched process uses it")
    .steps(super::gpu::POWER_LIMIT_WATTS.steps)
    .help("The value of gpu.{i}.enforcedPowerLimitWatts, while a watched process or one of its descendants is among the device's compute or graphics processes.");

/// Copy of [`POWER_PERCENT`](super::gpu::POWER_PERCENT).
pub static POWER_PERCENT: MetricDef = copy("gpu.process.{i}.powerPercent", Unit::Percent, "gpu.power.percent")
    .title("GPU power while a watched process uses it, share of the limit")
    .help("The value of gpu.{i}.powerPercent, while a watched process or one of its descendants is among the device's compute or graphics processes; it is the whole device's, not the process's share.");

/// In the order of the device's rows.
pub static ROWS: &[&MetricDef] = &[
    &UTILIZATION,
    &MEMORY_ALLOCATED_BYTES,
    &POWER_WATTS,
    &POWER_LIMIT_WATTS,
    &TEMP,
    &MEMORY_ACTIVITY,
    &MEMORY_ALLOCATED,
    &POWER_PERCENT,
];
