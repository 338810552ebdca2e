//! AMD's accelerators: time in which something held the clocks back, XGMI links, compute dies, and errors by block.
//!
//! The series of a link names GPU and link, `0.xgmi.3`; that of a die `0.xcc.5`; that of a block `0.ecc.gfx`. A
//! partition of a GPU (`0.xcp.1`) uses the GPU's own rows, as a MIG device does.

use super::{Draw, MetricDef, gpu, gpu_health, gpu_profile};
use crate::unit::Unit;

const LINE: &str = "GPU {i}";

/// Share of the time below the clocks for the heat of the memory.
pub static MEMORY_VIOLATION: MetricDef = MetricDef::gauge("gpu.{i}.hbmThermalViolationPercent", Unit::Percent)
    .title("GPU throttled by memory heat")
    .on("gpu.violation.thermal", "GPU {i} memory")
    .help("Share of the time since the previous sample in which the heat of the memory held the clocks back. AMD gpu_metrics 1.6 to 1.9: growth of hbm_thm_residency_acc by that of accumulation_counter; amd-smi hbm_thermal_violation_activity.");

/// Likewise for the voltage regulators.
pub static REGULATOR_VIOLATION: MetricDef = MetricDef::gauge("gpu.{i}.vrThermalViolationPercent", Unit::Percent)
    .title("GPU throttled by regulator heat")
    .on("gpu.violation.thermal", "GPU {i} voltage regulators")
    .help("Share of the time since the previous sample in which the heat of the voltage regulators held the clocks back. AMD gpu_metrics 1.6 to 1.9: growth of vr_thm_residency_acc by that of accumulation_counter; amd-smi vr_thermal_violation_activity.");

/// Likewise for the signal PROCHOT.
pub static PROCHOT_VIOLATION: MetricDef = MetricDef::gauge("gpu.{i}.prochotViolationPercent", Unit::Percent)
    .title("GPU throttled by PROCHOT")
    .on("gpu.violation.thermal", "GPU {i} PROCHOT")
    .help("Share of the time since the previous sample in which the signal PROCHOT held the clocks back: the GPU or its board reports an emergency of heat or power. AMD gpu_metrics 1.6 to 1.9: growth of prochot_residency_acc by that of accumulation_counter; amd-smi prochot_violation_activity.");

/// Traffic over PCIe.
pub static PCIE_BYTES: MetricDef = MetricDef::gauge("gpu.{i}.pcieBytes", Unit::BytesPerSecond)
    .title("GPU PCIe traffic, AMD")
    .on("gpu.pcie", LINE)
    .help("Bytes per second over PCIe in both directions, at this instant; the table has whole GB/s. AMD gpu_metrics 1.4 to 1.9, pcie_bandwidth_inst x 10^9.");

/// Times that the link was trained again.
pub static PCIE_RECOVERIES: MetricDef = MetricDef::counter("gpu.{i}.pcieRecoveries", Unit::Count)
    .title("GPU PCIe recoveries, AMD")
    .on("gpu.errors.pcie", "GPU {i} recoveries")
    .help("Times that the PCIe link left its working state L0 and recovered, since the driver was loaded; a bad slot has ever more. AMD gpu_metrics 1.4 to 1.9, pcie_l0_to_recov_count_acc; amd-smi l0_to_recovery_count.");

/// Sent over all links.
pub static XGMI_TX: MetricDef = MetricDef::gauge("gpu.{i}.xgmiWriteBytes", Unit::BytesPerSecond)
    .title("GPU XGMI sent")
    .on("gpu.xgmi.tx", LINE)
    .steps(1.0)
    .help("Bytes per second that the GPU writes over all its XGMI links, the mean since the previous sample. AMD gpu_metrics 1.4 to 1.9: growth of the sum of xgmi_write_data_acc (KiB) x 2^10 per second.");

/// Received over all links.
pub static XGMI_RX: MetricDef = MetricDef::gauge("gpu.{i}.xgmiReadBytes", Unit::BytesPerSecond)
    .title("GPU XGMI received")
    .on("gpu.xgmi.rx", LINE)
    .steps(1.0)
    .help("Bytes per second that the GPU reads over all its XGMI links, the mean since the previous sample. AMD gpu_metrics 1.4 to 1.9: growth of the sum of xgmi_read_data_acc (KiB) x 2^10 per second.");

/// Sent over one link.
pub static LINK_TX: MetricDef = MetricDef::gauge("gpu.{i.xgmi.j}.linkWriteBytes", Unit::BytesPerSecond)
    .title("GPU XGMI sent by link")
    .on("gpu.xgmi.link.tx", "GPU {i.xgmi.j}")
    .steps(1.0)
    .help("Bytes per second that the GPU writes over one XGMI link, which leads to one neighbor, as in gpu.0.xgmi.3.linkWriteBytes; the mean since the previous sample. AMD gpu_metrics 1.4 to 1.9: growth of xgmi_write_data_acc (KiB) x 2^10 per second.");

/// Received over one link.
pub static LINK_RX: MetricDef = MetricDef::gauge("gpu.{i.xgmi.j}.linkReadBytes", Unit::BytesPerSecond)
    .title("GPU XGMI received by link")
    .on("gpu.xgmi.link.rx", "GPU {i.xgmi.j}")
    .steps(1.0)
    .help("Bytes per second that the GPU reads over one XGMI link, which leads to one neighbor, as in gpu.0.xgmi.3.linkReadBytes; the mean since the previous sample. AMD gpu_metrics 1.4 to 1.9: growth of xgmi_read_data_acc (KiB) x 2^10 per second.");

/// The GPU at the other end of a link.
pub static LINK_NEIGHBOR: MetricDef = MetricDef::state("gpu.{i.xgmi.j}.linkNeighbor")
    .title("GPU XGMI neighbor by link")
    .on("gpu.xgmi.neighbor", "GPU {i.xgmi.j}")
    .help("Number of the GPU at the other end of one XGMI link, as in gpu.0.xgmi.3.linkNeighbor, read every 10 s. Files xgmi_port_num and xgmi_hive_info of amdgpu. Absent for drivers with gpu_metrics before 1.9: those count the links in either of two orders.");

/// Links that work.
pub static XGMI_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.xgmiLinksActive", Unit::Count)
    .title("GPU XGMI links active")
    .on("gpu.xgmi.links", LINE)
    .help("XGMI links of the GPU that are active. AMD gpu_metrics 1.7 to 1.9, entries of xgmi_link_status that are 1; absent on a virtual machine.");

/// Links that there are.
pub static XGMI_LINKS: MetricDef = MetricDef::gauge("gpu.{i}.xgmiLinks", Unit::Count)
    .title("GPU XGMI links")
    .on("gpu.xgmi.links", "GPU {i} all")
    .draw(Draw::Limit)
    .help("XGMI links that the GPU has, active or not. AMD gpu_metrics 1.7 to 1.9, entries of xgmi_link_status that are 0 or 1.");

/// A compute die at work.
pub static XCC_BUSY: MetricDef = MetricDef::gauge("gpu.{i.xcc.j}.xccBusy", Unit::Percent)
    .title("GPU utilization by compute die, AMD")
    .on("gpu.xcc", "GPU {i.xcc.j}")
    .help("Utilization of one compute die (XCC) at this instant, as in gpu.0.xcc.5.xccBusy; dies are counted through the partitions. AMD gpu_metrics 1.6 to 1.9, gfx_busy_inst (of xcp_stats up to 1.8); amd-smi gfx_busy_inst.");

/// Corrected errors of a block.
pub static BLOCK_CORRECTED: MetricDef = MetricDef::counter("gpu.{block}.eccCorrected", Unit::Count)
    .title("GPU corrected errors by block, AMD")
    .on("gpu.ecc.corrected", "GPU {block}")
    .help("Errors in one block of the GPU that ECC corrected since the driver was loaded, as in gpu.0.ecc.gfx.eccCorrected; umc is the memory. Line ce of ras/{block}_err_count or ras/aca_{block} of amdgpu; amd-smi ecc_blocks, correctable_count.");

/// Uncorrected errors of a block.
pub static BLOCK_UNCORRECTED: MetricDef = MetricDef::counter("gpu.{block}.eccUncorrected", Unit::Count)
    .title("GPU uncorrected errors by block, AMD")
    .on("gpu.ecc.uncorrected", "GPU {block}")
    .help("Errors in one block of the GPU that ECC could not correct since the driver was loaded, as in gpu.0.ecc.gfx.eccUncorrected. Line ue of ras/{block}_err_count or ras/aca_{block} of amdgpu; amd-smi ecc_blocks, uncorrectable_count.");

/// Deferred errors of a block.
pub static BLOCK_DEFERRED: MetricDef = MetricDef::counter("gpu.{block}.eccDeferred", Unit::Count)
    .title("GPU deferred errors by block, AMD")
    .on("gpu.ecc.uncorrected", "GPU {block} deferred")
    .help("Uncorrected errors in one block of the GPU whose data no program has used yet, since the driver was loaded, as in gpu.0.ecc.umc.eccDeferred. Line de of ras/{block}_err_count or ras/aca_{block} of amdgpu; amd-smi ecc_blocks, deferred_count.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[
    &PCIE_BYTES,
    &XGMI_TX,
    &XGMI_RX,
    &XGMI_ACTIVE,
    &XGMI_LINKS,
    &LINK_TX,
    &LINK_RX,
    &LINK_NEIGHBOR,
    &MEMORY_VIOLATION,
    &REGULATOR_VIOLATION,
    &PROCHOT_VIOLATION,
    &PCIE_RECOVERIES,
    &XCC_BUSY,
    &BLOCK_CORRECTED,
    &BLOCK_UNCORRECTED,
    &BLOCK_DEFERRED,
];

/// Rows of other GPUs that AMD's accelerators have, too.
pub static COMMON: &[&MetricDef] = &[
    &gpu::THROTTLE_REASONS,
    &gpu_health::POWER_VIOLATION,
    &gpu_health::THERMAL_VIOLATION,
    &gpu_health::PCIE_REPLAYS,
    &gpu_profile::PCIE_GEN,
    &gpu_profile::MAX_PCIE_GEN,
    &gpu_profile::PCIE_WIDTH,
    &gpu_profile::MAX_PCIE_WIDTH,
    &gpu_profile::PCIE_SPEED,
];
