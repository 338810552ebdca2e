//! Power of the processor, of the memory beside it, and of the whole machine. Apple's collector fills two of these rows.

use super::MetricDef;
use crate::unit::Unit;

const MILLIWATTS: f64 = 1000.0;

/// Power of all processors.
pub static CPU: MetricDef = MetricDef::gauge("cpu.powerWatts", Unit::Watts)
    .title("CPU power")
    .on("power", "CPU")
    .steps(MILLIWATTS)
    .help("Energy of all processor packages / time since the previous sample. RAPL's packages in /sys/class/powercap, which only root may read unless it is allowed; on NVIDIA Grace the ACPI meters of its CPU sockets; on Apple silicon the energy of the cores by IOReport.");

/// Power of one processor.
pub static PACKAGE: MetricDef = MetricDef::gauge("cpu.package.{package}.powerWatts", Unit::Watts)
    .title("CPU package power")
    .on("power", "package {package}")
    .steps(MILLIWATTS)
    .help("Energy of a processor package with its cores and caches / time since the previous sample. On many machines its memory is not part of it. RAPL, energy_uj of the package's domain in /sys/class/powercap.");

/// Power of the memory.
pub static MEMORY: MetricDef = MetricDef::gauge("memory.powerWatts", Unit::Watts)
    .title("Memory power")
    .on("power", "memory")
    .steps(MILLIWATTS)
    .help("Energy of the memory of all packages / time since the previous sample. RAPL, energy_uj of the domains dram in /sys/class/powercap.");

/// Power of the whole machine.
pub static SYSTEM: MetricDef = MetricDef::gauge("system.powerWatts", Unit::Watts)
    .title("Machine power")
    .on("power", "machine")
    .steps(MILLIWATTS)
    .help("Power of the whole machine, GPUs included; absent when it cannot be read. On Linux the machine's ACPI power meter (/sys/class/hwmon, power_meter), on NVIDIA Grace the sum of its modules, and without a meter RAPL's domain psys. On Apple silicon key PSTR of its SMC, at least the sum of CPU, GPU and neural engine.");

/// Rows that Apple's collector does not fill.
pub static ROWS: &[&MetricDef] = &[&PACKAGE, &MEMORY];

/// Rows of RAPL.
pub static RAPL: &[&MetricDef] = &[&CPU, &PACKAGE, &MEMORY, &SYSTEM];

/// Rows of power meters.
pub static METER: &[&MetricDef] = &[&SYSTEM, &CPU];
