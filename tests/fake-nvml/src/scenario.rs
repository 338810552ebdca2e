//! What a scenario says.

use serde::Deserialize;
use std::collections::BTreeMap;

/// A machine's GPUs, and what goes wrong.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Scenario {
    /// The driver's version; the wrapper picks the numbering of fields by it.
    #[serde(default)]
    pub driver_version: String,
    /// In NVML's order: a GPU's index is its position.
    pub gpus: Vec<Gpu>,
    /// What the first, second, ... start of the library answers (0 is success); the last one stays.
    #[serde(default)]
    pub init: Vec<u32>,
    /// What goes wrong; the first that fits a call decides.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Events that wait to be fetched.
    #[serde(default)]
    pub xids: Vec<Xid>,
    /// Least time between two samples of the profiling counters, in ms; the library refuses closer ones.
    #[serde(default = "hundred")]
    pub gpm_min_ms: u64,
}

fn hundred() -> u64 {
    100
}

/// A GPU; units are NVML's.
#[derive(Clone, Debug, Deserialize)]
pub struct Gpu {
    /// Its identity.
    pub uuid: String,
    /// Product name.
    #[serde(default)]
    pub name: String,
    /// Where it is plugged in.
    #[serde(default)]
    pub pci_bus_id: String,
    /// Whether it is cut into MIG devices; absent on cards that cannot.
    pub mig_mode: Option<bool>,
    /// Device memory.
    pub memory: Option<Memory>,
    /// Busy shares, percent.
    pub utilization: Option<Utilization>,
    /// Video encoder, percent.
    pub encoder: Option<u32>,
    /// Video decoder, percent.
    pub decoder: Option<u32>,
    /// °C.
    pub temperature: Option<u32>,
    /// °C.
    pub memory_temperature: Option<u32>,
    /// Milliwatts.
    pub power_mw: Option<u32>,
    /// Milliwatts.
    pub power_limit_mw: Option<u32>,
    /// Millijoules since the driver was loaded.
    pub energy_mj: Option<u64>,
    /// MHz.
    pub clocks: Option<Clocks>,
    /// Percent.
    pub fan: Option<u32>,
    /// Errors in device memory since the driver was loaded.
    pub ecc_volatile_dram: Option<Ecc>,
    /// The link.
    pub pcie: Option<Pcie>,
    /// Bytes sent over NVLink, KiB, all links.
    pub nvlink_tx_kib: Option<u64>,
    /// Bytes received over NVLink, KiB, all links.
    pub nvlink_rx_kib: Option<u64>,
    /// Set of bits.
    pub throttle_reasons: Option<u64>,
    /// Who uses it.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// Shares of processes; none is NOT_FOUND.
    #[serde(default)]
    pub process_utilization: Vec<ProcessUtilization>,
    /// Its parts.
    #[serde(default)]
    pub mig_devices: Vec<Mig>,
    /// Profiling counters by their number; absent where the card has none.
    pub gpm: Option<BTreeMap<u32, f64>>,
    /// Whether version 2 of the memory call exists.
    #[serde(default = "yes")]
    pub memory_v2: bool,
    /// Whether the field of instant power exists.
    #[serde(default = "yes")]
    pub instant_power: bool,
}

fn yes() -> bool {
    true
}

/// Bytes.
#[derive(Clone, Debug, Deserialize)]
pub struct Memory {
    /// All.
    pub total: u64,
    /// The driver's own.
    #[serde(default)]
    pub reserved: u64,
    /// In use, without the driver's own.
    pub used: u64,
}

/// Percent; larger numbers are what a broken driver says.
#[derive(Clone, Debug, Deserialize)]
pub struct Utilization {
    /// Kernels.
    pub gpu: u32,
    /// Memory.
    pub memory: u32,
}

/// MHz.
#[derive(Clone, Debug, Deserialize)]
pub struct Clocks {
    /// Graphics.
    pub graphics: u32,
    /// Streaming multiprocessors.
    pub sm: u32,
    /// Memory.
    pub mem: u32,
}

/// Errors.
#[derive(Clone, Debug, Deserialize)]
pub struct Ecc {
    /// Repaired.
    pub corrected: u64,
    /// Not repaired.
    pub uncorrected: u64,
}

/// A link.
#[derive(Clone, Debug, Deserialize)]
pub struct Pcie {
    /// Generation.
    #[serde(rename = "gen")]
    pub generation: Option<u32>,
    /// Lanes.
    pub width: Option<u32>,
    /// Bytes sent since the driver was loaded.
    pub tx_bytes: Option<u64>,
    /// Bytes received likewise.
    pub rx_bytes: Option<u64>,
}

/// A process.
#[derive(Clone, Debug, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// `C`, `G`, `C+G`, or `M` for a client of the multi-process service.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Bytes; absent where the driver does not say.
    pub used_gpu_memory: Option<u64>,
    /// Which part it runs on.
    pub gpu_instance_id: Option<u32>,
    /// Likewise.
    pub compute_instance_id: Option<u32>,
}

/// A process's share.
#[derive(Clone, Debug, Deserialize)]
pub struct ProcessUtilization {
    /// Its number.
    pub pid: u32,
    /// When, in µs.
    pub timestamp: u64,
    /// Percent of the multiprocessors.
    pub sm: u32,
}

/// A MIG device.
#[derive(Clone, Debug, Deserialize)]
pub struct Mig {
    /// Index on its GPU.
    pub index: u32,
    /// Its GPU instance.
    pub gpu_instance_id: u32,
    /// Bytes.
    pub memory_total: u64,
    /// Bytes.
    pub memory_used: u64,
    /// Profiling counters by their number.
    pub gpm: Option<BTreeMap<u32, f64>>,
}

/// Something that goes wrong.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Fault {
    /// UUID of the GPU that it strikes; absent: all, and calls without a GPU.
    pub gpu: Option<String>,
    /// Name of the call; absent: all but the start, the end and the count.
    pub call: Option<String>,
    /// What the call answers; absent: what it answers anyway (with a delay).
    pub code: Option<u32>,
    /// Calls that it lets through first.
    #[serde(default)]
    pub after: u64,
    /// Calls that it strikes then; absent: all.
    #[serde(rename = "for")]
    pub times: Option<u64>,
    /// Ends with this start of the library, counted from 1.
    pub until_init: Option<u64>,
    /// How long the call takes.
    #[serde(default)]
    pub delay_ms: u64,
    /// The call does not return until the scenario is replaced.
    #[serde(default)]
    pub hang: bool,
}

/// An event.
#[derive(Clone, Debug, Deserialize)]
pub struct Xid {
    /// UUID of the GPU.
    pub gpu: String,
    /// Its number.
    pub xid: u64,
}
