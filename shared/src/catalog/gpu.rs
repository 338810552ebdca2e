//! GPUs of any vendor. NVIDIA's names are W&B's; AMD, Intel and Apple use the same rows for the same measurements.
//!
//! Index: NVIDIA keeps NVML's (PCI bus order, independent of CUDA_VISIBLE_DEVICES); then AMD, then Intel, each the next
//! free number. Memory profiling and link rates are in [`gpu_profile`](super::gpu_profile).

use super::{Draw, MetricDef, Range};
use crate::unit::Unit;

// Drivers allocate whole pages; Apple and AMD report at best tenths of a degree; power is in milliwatts.
const KIB: f64 = 1.0 / 1024.0;
const TENTHS: f64 = 10.0;
const THOUSANDTHS: f64 = 1000.0;

/// Name of a GPU's line on every chart.
const LINE: &str = "GPU {i}";

/// Busy with a kernel.
pub static UTILIZATION: MetricDef = MetricDef::gauge("gpu.{i}.gpu", Unit::Percent)
    .title("GPU utilization")
    .on("gpu", LINE)
    .help("Share of the driver's last measuring period (1 s or less) in which at least one kernel ran; it does not say how much of the GPU the kernel used. NVML utilization rates, gpu; AMD rsmi_dev_busy_percent_get; on Apple silicon active residency x mean active frequency / maximum. Intel: share of the time since the previous sample in which the busiest unit (GT) was not in its idle state, 100 x (1 - growth of gtidle/idle_residency_ms of xe or rc6_residency_ms of i915 / time); a unit that is kept awake counts as busy. Or xpu-smi.");

/// Used, bytes.
pub static MEMORY_ALLOCATED_BYTES: MetricDef = MetricDef::gauge("gpu.{i}.memoryAllocatedBytes", Unit::Bytes)
    .title("GPU memory used")
    .on("gpu.memory", LINE)
    .steps(KIB)
    .help("Device memory in use, memory reserved by the driver included where it counts it. NVML memory info, used; AMD VRAM used; on Apple silicon IOAccelerator statistics by ioreg, In use system memory.");

/// Total, the limit on the memory chart.
pub static MEMORY_TOTAL_BYTES: MetricDef = MetricDef::gauge("gpu.{i}.memoryTotalBytes", Unit::Bytes)
    .title("GPU memory total")
    .on("gpu.memory", "GPU {i} total")
    .draw(Draw::Limit)
    .steps(KIB)
    .aliases(&["gpu.{i}.memoryTotal"])
    .help("Device memory that exists. NVML memory info, total; AMD VRAM total.");

/// Power draw.
pub static POWER_WATTS: MetricDef = MetricDef::gauge("gpu.{i}.powerWatts", Unit::Watts)
    .title("GPU power")
    .on("gpu.power", LINE)
    .steps(THOUSANDTHS)
    .help("Power of the whole board as the driver reports it. NVML field value POWER_INSTANT / 1000, on older drivers power usage / 1000, which recent boards average over 1 s; AMD rsmi_dev_power_get / 10^6; on Apple silicon energy of the GPU / time.");

/// Power limit, drawn as such.
pub static POWER_LIMIT_WATTS: MetricDef = MetricDef::gauge("gpu.{i}.enforcedPowerLimitWatts", Unit::Watts)
    .title("GPU power limit")
    .on("gpu.power", "GPU {i} limit")
    .draw(Draw::Limit)
    .steps(THOUSANDTHS)
    .help(
        "The lowest of all power limits in force. NVML enforced power limit / 1000; AMD rsmi_dev_power_cap_get / 10^6.",
    );

/// Temperature.
pub static TEMP: MetricDef = MetricDef::gauge("gpu.{i}.temp", Unit::Celsius)
    .title("GPU temperature")
    .on("gpu.temp", LINE)
    .steps(TENTHS)
    .help("Temperature of the GPU's core by NVML and on Apple silicon; W&B reads the memory sensor on AMD, and so does this tag. NVML temperature; AMD rsmi_dev_temp_metric_get / 1000.");

/// Highest temperature at which the core keeps its speed.
pub static MAX_OP_TEMP: MetricDef = MetricDef::gauge("gpu.{i}.maxOpTemp", Unit::Celsius)
    .title("GPU temperature limit")
    .on("gpu.temp", "GPU {i} limit")
    .draw(Draw::Limit)
    .steps(TENTHS)
    .help("Highest temperature of the core in normal operation. NVML temperature threshold, GPU maximum; DCGM field DEV_GPU_MAX_OP_TEMP.");

/// Memory controller busy.
pub static MEMORY_ACTIVITY: MetricDef = MetricDef::gauge("gpu.{i}.memory", Unit::Percent)
    .title("GPU memory utilization")
    .on("gpu.memory.activity", LINE)
    .help("Share of the driver's last measuring period in which device memory was read or written; it is not the memory in use. NVML utilization rates, memory.");

/// Likewise, AMD.
pub static MEMORY_READ_WRITE_ACTIVITY: MetricDef =
    MetricDef::gauge("gpu.{i}.memoryReadWriteActivity", Unit::Percent)
        .title("GPU memory utilization, AMD")
        .on("gpu.memory.activity", LINE)
        .help("Share of the period in which device memory was read or written; AMD's name for gpu.{i}.memory. AMD rsmi_dev_memory_busy_percent_get.");

/// Used, percent.
pub static MEMORY_ALLOCATED: MetricDef = MetricDef::gauge("gpu.{i}.memoryAllocated", Unit::Percent)
    .title("GPU memory used, share")
    .on("gpu.memory.percent", LINE)
    .help("100 x device memory in use / device memory that exists. NVML memory info; AMD VRAM used and total; DCGM DEV_FB_USED_PERCENT, else DEV_FB_USED by the sum of it and DEV_FB_FREE; on Apple silicon, which has one memory for all, what the GPU uses of the machine's: IOAccelerator statistics by ioreg, In use system memory. W&B before 0.31 sent AMD's memory busy share here on ROCm 5.");

/// Power, percent of the limit.
pub static POWER_PERCENT: MetricDef = MetricDef::gauge("gpu.{i}.powerPercent", Unit::Percent)
    .title("GPU power, share of the limit")
    .on("gpu.power.percent", LINE)
    .help("100 x gpu.{i}.powerWatts / gpu.{i}.enforcedPowerLimitWatts; it can exceed 100 for a moment. Absent on Apple silicon, which tells no limit: W&B before 0.18.4 divided by 16.5 W on every chip.");

/// Mean power from the energy counter.
pub static POWER_MEAN_WATTS: MetricDef = MetricDef::gauge("gpu.{i}.powerMeanWatts", Unit::Watts)
    .title("GPU mean power")
    .on("gpu.power.mean", "GPU {i}, mean")
    .draw(Draw::Hidden)
    .steps(THOUSANDTHS)
    .help("Increase of gpu.{i}.energyJoules / time since the previous sample: the mean over the whole interval, where gpu.{i}.powerWatts is the driver's reading at its end. The chart draws the energy's rate, which is the same.");

/// Energy.
pub static ENERGY_JOULES: MetricDef = MetricDef::counter("gpu.{i}.energyJoules", Unit::Joules)
    .title("GPU energy")
    .on("gpu.power.mean", LINE)
    .aliases(&["gpu.{i}.totalEnergyConsumption"])
    .steps(THOUSANDTHS)
    .help("Energy since the driver was loaded, so only differences have a meaning; drawn as a rate it is the mean power. NVML total energy consumption / 1000; AMD rsmi_dev_energy_count_get x resolution / 10^6; DCGM field DEV_TOTAL_ENERGY_CONSUMPTION / 1000, which W&B passes on in millijoules as totalEnergyConsumption.");

/// Streaming multiprocessors' clock.
pub static SM_CLOCK: MetricDef = MetricDef::gauge("gpu.{i}.smClock", Unit::Megahertz)
    .title("GPU SM clock")
    .on("gpu.clock.sm", LINE)
    .steps(1.0)
    .help("Clock of the streaming multiprocessors at this instant. NVML clock info, SM.");

/// Memory's clock.
pub static MEMORY_CLOCK: MetricDef = MetricDef::gauge("gpu.{i}.memoryClock", Unit::Megahertz)
    .title("GPU memory clock")
    .on("gpu.clock.memory", LINE)
    .steps(1.0)
    .help("Clock of the device memory at this instant. NVML clock info, memory.");

/// Graphics clock.
pub static GRAPHICS_CLOCK: MetricDef = MetricDef::gauge("gpu.{i}.graphicsClock", Unit::Megahertz)
    .title("GPU graphics clock")
    .on("gpu.clock.graphics", LINE)
    .steps(1.0)
    .help("Clock of the graphics engine at this instant. NVML clock info, graphics; W&B documents the tag and has not sent it since 0.18.2.");

/// Frequency on Apple silicon and Intel.
pub static FREQUENCY: MetricDef = MetricDef::gauge("gpu.{i}.freq", Unit::Megahertz)
    .title("GPU frequency")
    .on("gpu.clock.graphics", LINE)
    .steps(TENTHS)
    .help("Apple: mean frequency since the previous sample, weighted by residency, absent while the GPU sleeps; IOReport. Intel: actual frequency at this instant, 0 while it is powered down; act_freq of xe, rps_act_freq_mhz of i915, or xpu-smi.");

/// Reasons for reduced clocks.
pub static THROTTLE_REASONS: MetricDef = MetricDef::state("gpu.{i}.throttleReasons")
    .title("GPU throttle reasons")
    .on("gpu.throttle", LINE)
    .help("Set of bits that say what holds the clocks down: 1 idle, 2 application clocks, 4 software power cap, 8 hardware slowdown, 16 synchronized boost, 32 software thermal slowdown, 64 hardware thermal slowdown, 128 hardware power brake, 256 display clocks. NVML current clocks throttle reasons. AMD gpu_metrics 1.6 to 1.9: 4, 8 and 64 where power, PROCHOT or heat held the clocks back for a tenth of the time since the previous sample.");

/// Fan.
pub static FAN_SPEED: MetricDef = MetricDef::gauge("gpu.{i}.fanSpeed", Unit::Percent)
    .title("GPU fan speed")
    .on("gpu.fan", LINE)
    .help("Intended speed of the first fan, percent of its maximum; absent on boards without a fan of their own. NVML fan speed, fan 0.");

/// Fan in revolutions.
pub static FAN_RPM: MetricDef = MetricDef::gauge("gpu.{i}.fanRpm", Unit::Count)
    .title("GPU fan, revolutions")
    .on("gpu.fan.rpm", LINE)
    .help("Revolutions per minute of the first fan; 0 while it stands. fan1_input of the driver's sensors on AMD and Intel.");

/// Memory's temperature.
pub static MEMORY_TEMP: MetricDef = MetricDef::gauge("gpu.{i}.memoryTemp", Unit::Celsius)
    .title("GPU memory temperature")
    .on("gpu.temp.memory", LINE)
    .steps(TENTHS)
    .help("Temperature of the device memory. NVML field value MEMORY_TEMP; DCGM field DEV_MEMORY_TEMP.");

/// Highest temperature at which the memory keeps its speed.
pub static MEMORY_MAX_OP_TEMP: MetricDef = MetricDef::gauge("gpu.{i}.memoryMaxOpTemp", Unit::Celsius)
    .title("GPU memory temperature limit")
    .on("gpu.temp.memory", "GPU {i} limit")
    .draw(Draw::Limit)
    .steps(TENTHS)
    .help("Highest temperature of the device memory in normal operation. NVML temperature threshold, memory maximum; DCGM field DEV_MEM_MAX_OP_TEMP.");

/// Corrected ECC errors.
pub static CORRECTED_ERRORS: MetricDef = MetricDef::counter("gpu.{i}.correctedMemoryErrors", Unit::Count)
    .title("GPU corrected memory errors")
    .on("gpu.errors.corrected", LINE)
    .help("Errors in device memory that ECC corrected since the driver was loaded; absent without ECC. NVML memory error counter, corrected, volatile; W&B before 0.19.6 sent the board's lifetime count.");

/// Uncorrected ECC errors.
pub static UNCORRECTED_ERRORS: MetricDef = MetricDef::counter("gpu.{i}.uncorrectedMemoryErrors", Unit::Count)
    .title("GPU uncorrected memory errors")
    .on("gpu.errors.uncorrected", LINE)
    .aliases(&["gpu.{i}.unCorrectedMemoryErrors"])
    .help("Errors in device memory that ECC could not correct since the driver was loaded; absent without ECC. NVML memory error counter, uncorrected, volatile.");

/// Restarts of Apple's GPU.
pub static RECOVERIES: MetricDef = MetricDef::counter("gpu.{i}.recoveryCount", Unit::Count)
    .title("GPU recoveries, Apple")
    .on("gpu.errors.recoveries", LINE)
    .help(
        "Times that the driver restarted the GPU. Apple's IOAccelerator statistics by ioreg, recoveryCount; W&B sent it from 0.16.1 to 0.18.3.",
    );

/// Video encoder.
pub static ENCODER: MetricDef = MetricDef::gauge("gpu.{i}.encoderUtilization", Unit::Percent)
    .title("GPU encoder utilization")
    .on("gpu.encoder", LINE)
    .help("Share of the driver's period in which the video encoder worked. NVML encoder utilization; W&B documents the tag and has not sent it since 0.18.2.");

/// Video decoder.
pub static DECODER: MetricDef = MetricDef::gauge("gpu.{i}.decoderUtilization", Unit::Percent)
    .title("GPU decoder utilization")
    .on("gpu.decoder", LINE)
    .help("Share of the driver's period in which the video decoder worked. NVML decoder utilization.");

/// AMD memory overdrive.
pub static MEMORY_OVERDRIVE: MetricDef = MetricDef::gauge("gpu.{i}.memoryOverDrive", Unit::Percent)
    .title("GPU memory overdrive, AMD")
    .on("gpu.overdrive", LINE)
    .range(Range::FromZero)
    .help("How far the memory clock is set above its default, in percent. AMD rsmi_dev_mem_overdrive_level_get.");

/// Memory that is the machine's.
pub static MEMORY_SHARED: MetricDef = MetricDef::state("gpu.{i}.memoryShared")
    .title("GPU memory shared with the machine")
    .on("gpu.memory.shared", LINE)
    .help("1 where the GPU has no memory of its own and uses the machine's, as on DGX Spark (GB10). There its memory in use is the sum of its processes, and its total is the machine's, which counts once where several GPUs share it. NVML answers not supported for the memory of such a GPU. Absent for GPUs with memory of their own.");

/// DCGM's spelling of memory in use.
pub static MEMORY_USED: MetricDef = MetricDef::gauge("gpu.{i}.memoryUsed", Unit::Bytes)
    .title("GPU memory used, DCGM")
    .on("gpu.memory", LINE)
    .steps(KIB)
    .help("Device memory in use, under the name that W&B gives DCGM's field DEV_FB_USED; sent for GPUs that only DCGM's exporter tells of. W&B passes on MiB, here it is bytes.");

/// DCGM's memory left.
pub static MEMORY_FREE: MetricDef = MetricDef::gauge("gpu.{i}.memoryFree", Unit::Bytes)
    .title("GPU memory free, DCGM")
    .on("gpu.memory", "GPU {i} free")
    .draw(Draw::Hidden)
    .steps(KIB)
    .help("Device memory that is not in use, under the name that W&B gives DCGM's field DEV_FB_FREE. W&B passes on MiB, here it is bytes.");

/// DCGM's memory of the driver.
pub static MEMORY_RESERVED: MetricDef = MetricDef::gauge("gpu.{i}.memoryReserved", Unit::Bytes)
    .title("GPU memory reserved, DCGM")
    .on("gpu.memory", "GPU {i} reserved")
    .draw(Draw::Hidden)
    .steps(KIB)
    .help("Device memory that the driver keeps for itself, beside what is used and free. DCGM field 253, FB_RESERVED (MiB), or 1628, FB_RESERVED_BYTES.");

/// DCGM's state of a license.
pub static VGPU_LICENSE: MetricDef = MetricDef::state("gpu.{i}.vgpuLicense")
    .title("GPU license of the virtual GPU, DCGM")
    .on("gpu.vgpu", LINE)
    .help("License of a virtual GPU in its virtual machine: 1 licensed, 0 not, or no virtual GPU. DCGM field VGPU_LICENSE_STATUS.");

/// Rows that every NVIDIA driver reports, in order on screen.
pub static ROWS: &[&MetricDef] = &[
    &UTILIZATION,
    &MEMORY_ALLOCATED_BYTES,
    &MEMORY_TOTAL_BYTES,
    &POWER_WATTS,
    &POWER_LIMIT_WATTS,
    &TEMP,
    &MEMORY_ACTIVITY,
    &MEMORY_ALLOCATED,
    &POWER_PERCENT,
    &ENERGY_JOULES,
    &SM_CLOCK,
    &MEMORY_CLOCK,
    &FAN_SPEED,
    &CORRECTED_ERRORS,
    &UNCORRECTED_ERRORS,
];

/// Rows of some boards only, and rows that cost more to read.
pub static MORE: &[&MetricDef] = &[
    &MAX_OP_TEMP,
    &POWER_MEAN_WATTS,
    &GRAPHICS_CLOCK,
    &THROTTLE_REASONS,
    &MEMORY_TEMP,
    &MEMORY_MAX_OP_TEMP,
    &ENCODER,
    &DECODER,
    &MEMORY_SHARED,
];

/// Rows of AMD only.
pub static AMD: &[&MetricDef] = &[&MEMORY_READ_WRITE_ACTIVITY, &MEMORY_OVERDRIVE, &FAN_RPM];

/// Rows of Intel beside the common ones.
pub static INTEL: &[&MetricDef] = &[&FREQUENCY];

/// Rows of Apple silicon only.
pub static APPLE: &[&MetricDef] = &[&RECOVERIES];

/// Names that W&B has only with DCGM's exporter.
pub static DCGM: &[&MetricDef] =
    &[&MEMORY_USED, &MEMORY_FREE, &MEMORY_RESERVED, &VGPU_LICENSE, &super::gpu_profile::NVLINK_TOTAL];
