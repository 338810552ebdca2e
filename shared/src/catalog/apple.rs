//! Metrics that only Apple silicon has. Its GPU, memory in use and swap use the common rows.

use super::{MetricDef, power};
use crate::unit::Unit;

const MILLIWATTS: f64 = 1000.0;
const TENTHS: f64 = 10.0;

/// Memory, as macOS counts it.
pub static MEMORY_PERCENT: MetricDef = MetricDef::gauge("memory.used_percent", Unit::Percent)
    .title("Memory used, Apple")
    .on("memory.percent", "used")
    .help("Share of memory in use as macOS counts it. Sent on Apple silicon only.");

/// Efficiency cores.
pub static ECPU_PERCENT: MetricDef = MetricDef::gauge("cpu.ecpu_percent", Unit::Percent)
    .title("Efficiency cores")
    .on("cpu.clusters", "efficiency cores")
    .help("Mean over the efficiency cores of active residency x frequency / maximum frequency x 100, since the previous sample. Apple's IOReport.");

/// Performance cores.
pub static PCPU_PERCENT: MetricDef = MetricDef::gauge("cpu.pcpu_percent", Unit::Percent)
    .title("Performance cores")
    .on("cpu.clusters", "performance cores")
    .help("Mean over the performance cores of active residency x frequency / maximum frequency x 100, since the previous sample. Apple's IOReport.");

/// Efficiency cores' frequency.
pub static ECPU_FREQUENCY: MetricDef = MetricDef::gauge("cpu.ecpu_freq", Unit::Megahertz)
    .title("Efficiency cores' frequency")
    .on("cpu.clock", "efficiency cores")
    .steps(TENTHS)
    .help("Mean frequency of the efficiency cores since the previous sample, weighted by residency; absent while they sleep. Apple's IOReport.");

/// Performance cores' frequency.
pub static PCPU_FREQUENCY: MetricDef = MetricDef::gauge("cpu.pcpu_freq", Unit::Megahertz)
    .title("Performance cores' frequency")
    .on("cpu.clock", "performance cores")
    .steps(TENTHS)
    .help("Mean frequency of the performance cores since the previous sample, weighted by residency; absent while they sleep. Apple's IOReport.");

/// Neural engine's power.
pub static ANE_POWER: MetricDef = MetricDef::gauge("ane.power", Unit::Watts)
    .title("Neural engine power")
    .on("power", "neural engine")
    .steps(MILLIWATTS)
    .help("Energy of the neural engine / time since the previous sample. Apple's IOReport.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[
    &ECPU_PERCENT,
    &PCPU_PERCENT,
    &ECPU_FREQUENCY,
    &PCPU_FREQUENCY,
    &power::CPU,
    &ANE_POWER,
    &power::SYSTEM,
    &MEMORY_PERCENT,
];
