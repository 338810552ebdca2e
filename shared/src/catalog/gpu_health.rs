//! Health of an NVIDIA GPU and its links: states and counts that change rarely, and are polled rarely. A row has a
//! value only in ticks in which it was polled.

use super::{Draw, MetricDef, Range};
use crate::unit::Unit;

const LINE: &str = "GPU {i}";

/// Performance state.
pub static PERFORMANCE_STATE: MetricDef = MetricDef::state("gpu.{i}.performanceState")
    .title("GPU performance state")
    .on("gpu.pstate", LINE)
    .help("Performance state P0 to P15 as its number: 0 is full speed, 8 and above are those of an idle GPU. NVML performance state, asked for every 10 s; nvidia-smi's pstate.");

/// Persistence mode.
pub static PERSISTENCE_MODE: MetricDef = MetricDef::state("gpu.{i}.persistenceMode")
    .title("GPU persistence mode")
    .on("gpu.pstate", LINE)
    .draw(Draw::Hidden)
    .help("Persistence mode: 1 the driver stays loaded while no program uses the GPU, 0 it is unloaded then, and the next program waits for it. NVML persistence mode, asked for every 60 s; absent under Windows.");

/// Share of the time below the application clocks for want of power.
pub static POWER_VIOLATION: MetricDef = MetricDef::gauge("gpu.{i}.powerViolationPercent", Unit::Percent)
    .title("GPU throttled by power")
    .on("gpu.violation.power", LINE)
    .help("Share of the time since the previous reading, 10 s earlier, in which a power limit kept the clocks below the application clocks. Growth of NVML violation status, power policy (ns), by time. AMD gpu_metrics 1.6 to 1.9, every sample: growth of ppt_residency_acc by that of accumulation_counter.");

/// Likewise for heat.
pub static THERMAL_VIOLATION: MetricDef = MetricDef::gauge("gpu.{i}.thermalViolationPercent", Unit::Percent)
    .title("GPU throttled by heat")
    .on("gpu.violation.thermal", LINE)
    .help("Share of the time since the previous reading, 10 s earlier, in which a temperature limit kept the clocks below the application clocks. Growth of NVML violation status, thermal policy (ns), by time. AMD gpu_metrics 1.6 to 1.9, every sample: growth of socket_thm_residency_acc by that of accumulation_counter.");

/// NVLinks that work.
pub static NVLINKS_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.nvlinksActive", Unit::Count)
    .title("GPU NVLinks active")
    .on("gpu.nvlink.links", LINE)
    .help("NVLinks of the GPU that are active; fewer than a minute ago means that one went down. NVML NVLink state of each link, asked for every 30 s; absent without NVLink and in MIG mode.");

/// NVLinks that there are.
pub static NVLINKS: MetricDef = MetricDef::gauge("gpu.{i}.nvlinks", Unit::Count)
    .title("GPU NVLinks")
    .on("gpu.nvlink.links", "GPU {i} all")
    .draw(Draw::Limit)
    .help("NVLinks that the GPU has, active or not: those whose state the driver tells. A board without a bridge has some, none of them active. NVML NVLink state, asked for every 30 s.");

/// Packets sent again.
pub static NVLINK_REPLAYS: MetricDef = MetricDef::counter("gpu.{i}.nvlinkReplays", Unit::Count)
    .title("GPU NVLink replays")
    .on("gpu.errors.nvlink", "GPU {i} replays")
    .help("Times that something was sent again over any of the GPU's NVLinks, since the start. NVML NVLink error counter, replay, asked for every 60 s; absent on Blackwell, which does not count it.");

/// Links that recovered.
pub static NVLINK_RECOVERIES: MetricDef = MetricDef::counter("gpu.{i}.nvlinkRecoveries", Unit::Count)
    .title("GPU NVLink recoveries")
    .on("gpu.errors.nvlink", "GPU {i} recoveries")
    .help("Times that any of the GPU's NVLinks failed and was trained again, since the start. NVML NVLink error counter, recovery, asked for every 60 s; on Blackwell field value NVLINK_COUNT_LINK_RECOVERY_EVENTS.");

/// Packets with a wrong checksum.
pub static NVLINK_CRC_ERRORS: MetricDef = MetricDef::counter("gpu.{i}.nvlinkCrcErrors", Unit::Count)
    .title("GPU NVLink CRC errors")
    .on("gpu.errors.nvlink", "GPU {i} CRC")
    .help("Pieces with a wrong checksum that came over any of the GPU's NVLinks, since the start. NVML NVLink error counter, CRC of flits, asked for every 60 s; absent on Blackwell, which does not count it.");

/// PCIe packets sent again.
pub static PCIE_REPLAYS: MetricDef = MetricDef::counter("gpu.{i}.pcieReplays", Unit::Count)
    .title("GPU PCIe replays")
    .on("gpu.errors.pcie", LINE)
    .help("Packets that were sent again over PCIe since the driver was loaded; a bad slot or cable has ever more. NVML PCIe replay counter, asked for every 10 s; AMD gpu_metrics 1.4 to 1.9, pcie_replay_count_acc.");

/// Rows of memory replaced after corrected errors.
pub static REMAPPED_CORRECTED: MetricDef = MetricDef::gauge("gpu.{i}.correctedRemappedRows", Unit::Count)
    .title("GPU rows remapped after corrected errors")
    .on("gpu.remap", "GPU {i} corrected")
    .range(Range::FromZero)
    .help("Rows of device memory that spare ones stand for after corrected errors, in the board's life. NVML remapped rows, asked for every 10 s; Ampere and newer.");

/// Rows of memory replaced after uncorrected errors.
pub static REMAPPED_UNCORRECTED: MetricDef = MetricDef::gauge("gpu.{i}.uncorrectedRemappedRows", Unit::Count)
    .title("GPU rows remapped after uncorrected errors")
    .on("gpu.remap", "GPU {i} uncorrected")
    .help("Rows of device memory that spare ones stand for after uncorrected errors, in the board's life. NVML remapped rows, asked for every 10 s; Ampere and newer.");

/// Rows wait for a reset.
pub static REMAP_PENDING: MetricDef = MetricDef::state("gpu.{i}.rowRemapPending")
    .title("GPU row remap pending")
    .on("gpu.remap.state", "GPU {i} pending")
    .help("Rows of device memory that failed are to be replaced: 1 they will be when the GPU is reset, and until then its memory has errors; 0 there are none. NVML remapped rows, is pending, asked for every 10 s.");

/// No spare row was left.
pub static REMAP_FAILED: MetricDef = MetricDef::state("gpu.{i}.rowRemapFailed")
    .title("GPU row remap failed")
    .on("gpu.remap.state", "GPU {i} failed")
    .help("A row of device memory that failed could not be replaced in the past: 1 it could not, and the board is for exchange; 0 that never happened. NVML remapped rows, failure occurred, asked for every 10 s.");

/// Action that the driver asks for.
pub static RECOVERY_ACTION: MetricDef = MetricDef::state("gpu.{i}.recoveryAction")
    .title("GPU recovery action")
    .on("gpu.recovery", LINE)
    .help("Action that the driver requires to clear a fault of the GPU: 0 none, 1 reset the GPU, 2 restart the machine, 3 stop peer-to-peer work, then reset, 4 let its jobs end, then reset, 5 recover the IMEX domain, 6 reset its PCIe bus, 7 restart the machine. NVML field GET_GPU_RECOVERY_ACTION, asked for every 10 s; nvidia-smi's gpu_recovery_action. Drivers from 570 on.");

/// State of the NVLink fabric.
pub static FABRIC_STATE: MetricDef = MetricDef::state("gpu.{i}.fabricState")
    .title("GPU NVLink fabric")
    .on("gpu.fabric", LINE)
    .help("Registration of the GPU at the fabric manager of its NVLink switches: 1 not started, 2 in progress, 3 complete, 4 failed. Programs cannot use the GPU before it is complete. NVML GPU fabric info, state and status, asked for every 10 s; absent without such a fabric.");

/// Error of the registration.
pub static FABRIC_STATUS: MetricDef = MetricDef::state("gpu.{i}.fabricStatus")
    .title("GPU NVLink fabric status")
    .on("gpu.fabric", "GPU {i} status")
    .draw(Draw::Hidden)
    .help("NVML's error number of the registration at the fabric manager, 0 for none. It tells why the state of the fabric is 4. NVML GPU fabric info, status, asked for every 10 s.");

/// Health of the fabric.
pub static FABRIC_HEALTH: MetricDef = MetricDef::state("gpu.{i}.fabricHealth")
    .title("GPU NVLink fabric health")
    .on("gpu.fabric.health", LINE)
    .help("Health of the NVLink fabric at this GPU: 1 healthy, 2 unhealthy, 3 limited capacity. NVML GPU fabric info, health summary, asked for every 10 s; drivers from 570 on, and older ones by the mask.");

/// Faults of the fabric.
pub static FABRIC_FAULTS: MetricDef = MetricDef::state("gpu.{i}.fabricFaults")
    .title("GPU NVLink fabric faults")
    .on("gpu.fabric.health", "GPU {i} faults")
    .draw(Draw::Hidden)
    .help("Set of bits that say what is wrong with the NVLink fabric at this GPU: 1 degraded bandwidth, 2 a route recovers, 4 an unhealthy route, 8 recovery after an access timeout, 16 incorrect configuration. NVML GPU fabric info, health mask, asked for every 10 s.");

/// Clique of the fabric.
pub static FABRIC_CLIQUE: MetricDef = MetricDef::state("gpu.{i}.fabricClique")
    .title("GPU NVLink clique")
    .on("gpu.fabric", "GPU {i} clique")
    .draw(Draw::Hidden)
    .help("Number of the clique within the fabric's cluster: GPUs of one clique reach each other over NVLink. NVML GPU fabric info, clique, asked for every 10 s.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[
    &PERFORMANCE_STATE,
    &PERSISTENCE_MODE,
    &POWER_VIOLATION,
    &THERMAL_VIOLATION,
    &NVLINKS_ACTIVE,
    &NVLINKS,
    &NVLINK_REPLAYS,
    &NVLINK_RECOVERIES,
    &NVLINK_CRC_ERRORS,
    &PCIE_REPLAYS,
    &REMAPPED_CORRECTED,
    &REMAPPED_UNCORRECTED,
    &REMAP_PENDING,
    &REMAP_FAILED,
    &RECOVERY_ACTION,
    &FABRIC_STATE,
    &FABRIC_STATUS,
    &FABRIC_HEALTH,
    &FABRIC_FAULTS,
    &FABRIC_CLIQUE,
];
