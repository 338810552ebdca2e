//! The form of a scenario.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The GPUs of a machine, and the faults of the library.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Scenario {
    /// Version of the driver, from which the wrapper chooses the numbers of fields.
    #[serde(default)]
    pub driver_version: String,
    /// GPUs in NVML's order: the index of a GPU is its position.
    pub gpus: Vec<Gpu>,
    /// Answers of the first, second, ... start of the library (0 is success). The last one is repeated.
    #[serde(default)]
    pub init: Vec<u32>,
    /// Faults. The first that matches a call applies.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Queued events.
    #[serde(default)]
    pub xids: Vec<Xid>,
    /// Shortest time in ms between two samples of the profiling counters. The library refuses closer samples.
    #[serde(default = "hundred")]
    pub gpm_min_ms: u64,
}

fn hundred() -> u64 {
    100
}

/// A GPU, in NVML's units. None is a value that the card does not support.
#[derive(Clone, Debug, Deserialize)]
pub struct Gpu {
    /// Unique id of the GPU.
    pub uuid: String,
    /// Product name of the GPU.
    #[serde(default)]
    pub name: String,
    /// Address of the GPU on the PCI bus.
    #[serde(default)]
    pub pci_bus_id: String,
    /// True when the GPU is divided into MIG devices; None for a card without MIG.
    pub mig_mode: Option<bool>,
    /// Memory of the device.
    pub memory: Option<Memory>,
    /// Utilization in percent.
    pub utilization: Option<Utilization>,
    /// Utilization of the video encoder in percent.
    pub encoder: Option<u32>,
    /// Utilization of the video decoder in percent.
    pub decoder: Option<u32>,
    /// Temperature of the GPU in °C.
    pub temperature: Option<u32>,
    /// Temperature of the memory in °C.
    pub memory_temperature: Option<u32>,
    /// Maximum operating temperature of the GPU in °C.
    pub max_temperature: Option<u32>,
    /// Maximum operating temperature of the memory in °C.
    pub max_memory_temperature: Option<u32>,
    /// Milliwatts.
    pub power_mw: Option<u32>,
    /// Power limit in milliwatts.
    pub power_limit_mw: Option<u32>,
    /// Energy in millijoules since the driver was loaded.
    pub energy_mj: Option<u64>,
    /// Clock rates in MHz.
    pub clocks: Option<Clocks>,
    /// Speed of the fan in percent.
    pub fan: Option<u32>,
    /// Errors in device memory since the driver was loaded.
    pub ecc_volatile_dram: Option<Ecc>,
    /// The PCIe link.
    pub pcie: Option<Pcie>,
    /// Data sent over all NVLinks in KiB.
    pub nvlink_tx_kib: Option<u64>,
    /// Data received over all NVLinks in KiB.
    pub nvlink_rx_kib: Option<u64>,
    /// Reasons for throttling as a set of bits.
    pub throttle_reasons: Option<u64>,
    /// Performance state, 0 to 15.
    pub performance_state: Option<u32>,
    /// True when the driver stays loaded while no program uses the GPU.
    pub persistence_mode: Option<bool>,
    /// NVLinks by their number; empty for a card without any.
    #[serde(default)]
    pub nvlinks: Vec<NvLink>,
    /// Remapped rows of memory.
    pub remapped_rows: Option<Remapped>,
    /// The NVLink fabric; None for a GPU without one.
    pub fabric: Option<Fabric>,
    /// Number of the action that the driver requires to clear a fault.
    pub recovery_action: Option<u32>,
    /// Times during which limits reduced the clocks.
    pub violations: Option<Violations>,
    /// Processes that use the GPU.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// Utilization by process; when it is empty, the call answers NOT_FOUND.
    #[serde(default)]
    pub process_utilization: Vec<ProcessUtilization>,
    /// MIG devices of the GPU.
    #[serde(default)]
    pub mig_devices: Vec<Mig>,
    /// Profiling counters by their number; None for a card without them.
    pub gpm: Option<BTreeMap<u32, f64>>,
    /// True when version 2 of the memory call exists.
    #[serde(default = "yes")]
    pub memory_v2: bool,
    /// True when the field of the instant power exists.
    #[serde(default = "yes")]
    pub instant_power: bool,
}

fn yes() -> bool {
    true
}

/// Memory of a GPU in bytes.
#[derive(Clone, Debug, Deserialize)]
pub struct Memory {
    /// All memory in bytes.
    pub total: u64,
    /// Bytes that the driver uses itself.
    #[serde(default)]
    pub reserved: u64,
    /// Bytes in use, without those of the driver.
    pub used: u64,
}

/// Utilization in percent. A broken driver may report more than 100.
#[derive(Clone, Debug, Deserialize)]
pub struct Utilization {
    /// Share of time in which a kernel ran.
    pub gpu: u32,
    /// Share of time in which memory was read or written.
    pub memory: u32,
}

/// Clock rates in MHz.
#[derive(Clone, Debug, Deserialize)]
pub struct Clocks {
    /// Clock of the graphics engine.
    pub graphics: u32,
    /// Clock of the streaming multiprocessors.
    pub sm: u32,
    /// Clock of the memory.
    pub mem: u32,
}

/// Numbers of memory errors.
#[derive(Clone, Debug, Deserialize)]
pub struct Ecc {
    /// Number of errors that were corrected.
    pub corrected: u64,
    /// Number of errors that were not corrected.
    pub uncorrected: u64,
}

/// A PCIe link.
#[derive(Clone, Debug, Deserialize)]
pub struct Pcie {
    /// Generation of the link.
    #[serde(rename = "gen")]
    pub generation: Option<u32>,
    /// Number of lanes.
    pub width: Option<u32>,
    /// Maximum generation that card and slot support.
    #[serde(rename = "max_gen")]
    pub max_generation: Option<u32>,
    /// Maximum number of lanes that card and slot support.
    pub max_width: Option<u32>,
    /// Millions of transfers per second and lane.
    pub speed: Option<u32>,
    /// Replays: packets that were resent since the driver was loaded.
    pub replays: Option<u32>,
    /// Bytes sent since the driver was loaded.
    pub tx_bytes: Option<u64>,
    /// Bytes received since the driver was loaded.
    pub rx_bytes: Option<u64>,
}

/// An NVLink.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NvLink {
    /// True when it is active; None for one that is switched off in the factory.
    pub active: Option<bool>,
    /// Replays: packets that were resent. None where the call has no count, as on Blackwell and for a link that is
    /// down.
    pub replays: Option<u64>,
    /// Number of recoveries (failure and new training of the link), by the same call.
    pub recoveries: Option<u64>,
    /// Flits with a wrong checksum, by the same call.
    pub crc: Option<u64>,
    /// Number of recoveries (failure and new training of the link), by the field that Blackwell has.
    pub recovery_events: Option<u64>,
}

/// Remapped rows of memory.
#[derive(Clone, Debug, Deserialize)]
pub struct Remapped {
    /// Rows remapped after corrected errors.
    pub corrected: u32,
    /// Rows remapped after uncorrected errors.
    pub uncorrected: u32,
    /// True when rows are pending until a reset.
    #[serde(default)]
    pub pending: bool,
    /// True when remapping of a row failed.
    #[serde(default)]
    pub failed: bool,
}

/// State of the NVLink fabric at a GPU, in NVML's numbers.
#[derive(Clone, Debug, Deserialize)]
pub struct Fabric {
    /// 1 not started, 2 in progress, 3 complete.
    pub state: u8,
    /// Error of the registration.
    #[serde(default)]
    pub status: u32,
    /// Clique within the cluster.
    #[serde(default)]
    pub clique: u32,
    /// Health mask.
    #[serde(default)]
    pub mask: u32,
    /// Health summary, which only version 3 of the call has.
    #[serde(default)]
    pub summary: u8,
    /// True when version 3 of the call exists.
    #[serde(default = "yes")]
    pub v3: bool,
}

/// Times during which limits kept the clocks below the application clocks, in nanoseconds since the driver was loaded.
#[derive(Clone, Debug, Deserialize)]
pub struct Violations {
    /// Time at the power limit.
    pub power_ns: u64,
    /// Time at the temperature limit.
    pub thermal_ns: u64,
}

/// A process on a GPU.
#[derive(Clone, Debug, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Kind of the process: `C`, `G`, `C+G`, or `M` for a client of the multi-process service.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Memory on the GPU in bytes; None where the driver does not report it.
    pub used_gpu_memory: Option<u64>,
    /// Id of the GPU instance on which the process runs; None without MIG.
    pub gpu_instance_id: Option<u32>,
    /// Id of the compute instance on which the process runs; None without MIG.
    pub compute_instance_id: Option<u32>,
}

/// The utilization of a GPU by one process.
#[derive(Clone, Debug, Deserialize)]
pub struct ProcessUtilization {
    /// Process id.
    pub pid: u32,
    /// Time of the sample in µs.
    pub timestamp: u64,
    /// Utilization of the multiprocessors in percent.
    pub sm: u32,
}

/// A MIG device.
#[derive(Clone, Debug, Deserialize)]
pub struct Mig {
    /// Index of the MIG device on its GPU.
    pub index: u32,
    /// Id of the GPU instance.
    pub gpu_instance_id: u32,
    /// All memory of the MIG device in bytes.
    pub memory_total: u64,
    /// Memory in use in bytes.
    pub memory_used: u64,
    /// Profiling counters by their number; None when there are none.
    pub gpm: Option<BTreeMap<u32, f64>>,
}

/// A fault of the library.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Fault {
    /// UUID of the GPU that has the fault; None for all GPUs and for calls without a GPU.
    pub gpu: Option<String>,
    /// Name of the call. None for all calls on devices and profiling samples, except the count of devices.
    pub call: Option<String>,
    /// Code that the call returns. None for its usual answer, which makes sense with a delay.
    pub code: Option<u32>,
    /// Number of matching calls that succeed before the fault begins.
    #[serde(default)]
    pub after: u64,
    /// Number of calls that have the fault; None for all.
    #[serde(rename = "for")]
    pub times: Option<u64>,
    /// Number of the library's start, from 1, with which the fault ends; None for never.
    pub until_init: Option<u64>,
    /// Delay of the call in ms.
    #[serde(default)]
    pub delay_ms: u64,
    /// True when the call does not return before the scenario is replaced.
    #[serde(default)]
    pub hang: bool,
}

/// An XID event.
#[derive(Clone, Debug, Deserialize)]
pub struct Xid {
    /// UUID of the GPU.
    pub gpu: String,
    /// Number of the error.
    pub xid: u64,
}
