//! Profiling counters of an NVIDIA GPU (NVML's GPM on Hopper and newer, or DCGM), and its links.

use super::{Draw, MetricDef};
use crate::unit::Unit;

const LINE: &str = "GPU {i}";

/// Any engine busy.
pub static ENGINE_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.grEngineActive", Unit::Percent)
    .title("GPU engine active")
    .on("gpu.engine", LINE)
    .help("Share of time in which the graphics or compute engine worked, since the previous sample; for a MIG device, which has no gpu.{i}.gpu, the nearest to a utilization. NVML GPM graphics utilization; DCGM field 1001. DCGM's exporter gives 0 to 1, which is multiplied by 100 here.");

/// SMs with work.
pub static SM_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.smActive", Unit::Percent)
    .title("GPU SMs active")
    .on("gpu.sm", LINE)
    .help("Share of time, over all streaming multiprocessors, with at least one warp resident, since the previous sample. NVML GPM SM utilization; DCGM field 1002. DCGM's exporter gives 0 to 1, which is multiplied by 100 here.");

/// Warps resident.
pub static SM_OCCUPANCY: MetricDef = MetricDef::gauge("gpu.{i}.smOccupancy", Unit::Percent)
    .title("GPU SM occupancy")
    .on("gpu.sm.occupancy", LINE)
    .help("Warps resident as a share of the most that the streaming multiprocessors can hold, since the previous sample. NVML GPM SM occupancy; DCGM field 1003.");

/// Memory interface busy.
pub static DRAM_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.dramActive", Unit::Percent)
    .title("GPU memory bandwidth in use")
    .on("gpu.dram", LINE)
    .help("Bandwidth of device memory used, as a share of the most it can do, since the previous sample. NVML GPM DRAM bandwidth utilization; DCGM field 1005.");

/// Tensor cores.
pub static TENSOR_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.pipeTensorActive", Unit::Percent)
    .title("GPU tensor cores active")
    .on("gpu.tensor", LINE)
    .help("Share of cycles in which the tensor cores worked, since the previous sample. NVML GPM any-tensor utilization; DCGM field 1004.");

/// Tensor cores, half precision.
pub static HMMA_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.pipeTensorHmmaActive", Unit::Percent)
    .title("GPU tensor cores active, half precision")
    .on("gpu.tensor.hmma", LINE)
    .help("Share of cycles in which the tensor cores worked on half-precision products, since the previous sample. NVML GPM HMMA tensor utilization; DCGM field 1014.");

/// FP64.
pub static FP64_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.pipeFp64Active", Unit::Percent)
    .title("GPU FP64 pipe active")
    .on("gpu.fp64", LINE)
    .help("Share of cycles in which the 64-bit pipe worked, since the previous sample. NVML GPM FP64 utilization; DCGM field 1006.");

/// FP32.
pub static FP32_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.pipeFp32Active", Unit::Percent)
    .title("GPU FP32 pipe active")
    .on("gpu.fp32", LINE)
    .help("Share of cycles in which the 32-bit pipe worked, since the previous sample. NVML GPM FP32 utilization; DCGM field 1007.");

/// FP16.
pub static FP16_ACTIVE: MetricDef = MetricDef::gauge("gpu.{i}.pipeFp16Active", Unit::Percent)
    .title("GPU FP16 pipe active")
    .on("gpu.fp16", LINE)
    .help("Share of cycles in which the 16-bit pipe worked, tensor cores left out, since the previous sample. NVML GPM FP16 utilization; DCGM field 1008.");

/// Sent over PCIe.
pub static PCIE_TX: MetricDef = MetricDef::gauge("gpu.{i}.pcieTxBytes", Unit::BytesPerSecond)
    .title("GPU PCIe sent")
    .on("gpu.pcie.tx", LINE)
    .steps(1.0)
    .help("Bytes per second that the GPU sends over PCIe. NVML GPM PCIe TX (MiB/s) x 2^20, the mean since the previous sample; without GPM growth of NVML's field value PCIE_COUNT per second, exact below 4.3 GB per sample; DCGM field 1009. W&B 0.26 to 0.30 sent MiB/s under this name.");

/// Received over PCIe.
pub static PCIE_RX: MetricDef = MetricDef::gauge("gpu.{i}.pcieRxBytes", Unit::BytesPerSecond)
    .title("GPU PCIe received")
    .on("gpu.pcie.rx", LINE)
    .steps(1.0)
    .help("Bytes per second that the GPU receives over PCIe. NVML GPM PCIe RX (MiB/s) x 2^20, the mean since the previous sample; without GPM growth of NVML's field value PCIE_COUNT per second, exact below 4.3 GB per sample; DCGM field 1010. W&B 0.26 to 0.30 sent MiB/s under this name.");

/// Sent over NVLink.
pub static NVLINK_TX: MetricDef = MetricDef::gauge("gpu.{i}.nvlinkTxBytes", Unit::BytesPerSecond)
    .title("GPU NVLink sent")
    .on("gpu.nvlink.tx", LINE)
    .steps(1.0)
    .help("Bytes per second that the GPU sends over all its NVLinks, the mean since the previous sample. NVML GPM NVLink total TX (MiB/s) x 2^20; without GPM growth of NVML's field value NVLINK_THROUGHPUT_DATA_TX (KiB) x 2^10 per second; DCGM field 1011. W&B 0.26 to 0.30 sent MiB/s under this name.");

/// Received over NVLink.
pub static NVLINK_RX: MetricDef = MetricDef::gauge("gpu.{i}.nvlinkRxBytes", Unit::BytesPerSecond)
    .title("GPU NVLink received")
    .on("gpu.nvlink.rx", LINE)
    .steps(1.0)
    .help("Bytes per second that the GPU receives over all its NVLinks, the mean since the previous sample. NVML GPM NVLink total RX (MiB/s) x 2^20; without GPM growth of NVML's field value NVLINK_THROUGHPUT_DATA_RX (KiB) x 2^10 per second; DCGM field 1012. W&B 0.26 to 0.30 sent MiB/s under this name.");

/// Sent and received over NVLink together.
pub static NVLINK_TOTAL: MetricDef = MetricDef::gauge("gpu.{i}.nvlinkBytes", Unit::BytesPerSecond)
    .title("GPU NVLink traffic")
    .on("gpu.nvlink.total", LINE)
    .steps(1.0)
    .help("Bytes per second that the GPU sends and receives over all its NVLinks together, as DCGM's exporter tells them: DCGM field 449, NVLINK_BANDWIDTH_TOTAL (MB/s, KiB/s / 1000) x 1024000, or 1648, NVLINK_THROUGHPUT_BYTES_PER_SECOND.");

/// Link generation.
pub static PCIE_GEN: MetricDef =
    MetricDef::gauge("gpu.{i}.pcieLinkGen", Unit::Count).title("GPU PCIe generation").on("gpu.pcie.gen", LINE).help(
        "Generation at which the PCIe link runs now; it falls when the GPU is idle. NVML current PCIe link generation; AMD gpu_metrics 1.4 to 1.9, from pcie_link_speed.",
    );

/// Highest link generation.
pub static MAX_PCIE_GEN: MetricDef = MetricDef::gauge("gpu.{i}.maxPcieLinkGen", Unit::Count)
    .title("GPU PCIe generation, highest")
    .on("gpu.pcie.gen", "GPU {i} highest")
    .draw(Draw::Limit)
    .help("Highest PCIe generation that the GPU and its slot can do together. NVML maximum PCIe link generation; AMD from max_link_speed of the PCI device.");

/// Link width.
pub static PCIE_WIDTH: MetricDef = MetricDef::gauge("gpu.{i}.pcieLinkWidth", Unit::Count)
    .title("GPU PCIe lanes")
    .on("gpu.pcie.width", LINE)
    .help("Lanes of the PCIe link that are in use now. NVML current PCIe link width; AMD gpu_metrics 1.4 to 1.9, pcie_link_width.");

/// Widest link.
pub static MAX_PCIE_WIDTH: MetricDef = MetricDef::gauge("gpu.{i}.maxPcieLinkWidth", Unit::Count)
    .title("GPU PCIe lanes, most")
    .on("gpu.pcie.width", "GPU {i} most")
    .draw(Draw::Limit)
    .help("Most PCIe lanes that the GPU and its slot can use together. NVML maximum PCIe link width; AMD max_link_width of the PCI device.");

/// Speed of a lane.
pub static PCIE_SPEED: MetricDef = MetricDef::gauge("gpu.{i}.pcieLinkSpeed", Unit::GigatransfersPerSecond)
    .title("GPU PCIe lane speed")
    .on("gpu.pcie.speed", LINE)
    .steps(1000.0)
    .help("Speed of one lane of the PCIe link. NVML PCIe speed / 1000; AMD gpu_metrics 1.4 to 1.9, pcie_link_speed / 10; W&B 0.18.4 to 0.19.1 sent it in bit/s, 10^9 of which are 1 GT/s.");

/// Counters that NVML's GPM or DCGM profiles.
pub static ROWS: &[&MetricDef] = &[
    &ENGINE_ACTIVE,
    &SM_ACTIVE,
    &SM_OCCUPANCY,
    &DRAM_ACTIVE,
    &TENSOR_ACTIVE,
    &HMMA_ACTIVE,
    &FP64_ACTIVE,
    &FP32_ACTIVE,
    &FP16_ACTIVE,
    &NVLINK_TX,
    &NVLINK_RX,
];

/// The PCIe link.
pub static PCIE: &[&MetricDef] =
    &[&PCIE_TX, &PCIE_RX, &PCIE_GEN, &MAX_PCIE_GEN, &PCIE_WIDTH, &MAX_PCIE_WIDTH, &PCIE_SPEED];
