//! AWS Trainium, from the report of neuron-monitor, summed over the watched processes.

use super::MetricDef;
use crate::unit::Unit;

/// Core busy.
pub static UTILIZATION: MetricDef = MetricDef::gauge("trn.{i}.neuroncore_utilization", Unit::Percent)
    .title("NeuronCore utilization")
    .on("trn", "core {i}")
    .help("Share of the report's period in which the NeuronCore worked for the watched processes, or for all where none is watched. neuron-monitor, neuroncore_counters, neuroncores_in_use, neuroncore_utilization.");

/// Device memory.
pub static DEVICE_MEMORY: MetricDef = MetricDef::gauge("trn.neuron_device_total_memory_usage", Unit::Bytes)
    .title("Neuron device memory")
    .on("trn.memory", "devices")
    .aliases(&["trn.neuron_device_total_memory_usage)"])
    .help("Memory that the watched processes, or all where none is watched, hold on all Neuron devices. neuron-monitor, memory_used, neuron_runtime_used_bytes, neuron_device.");

/// Host memory.
pub static HOST_MEMORY: MetricDef = MetricDef::gauge("trn.host_total_memory_usage", Unit::Bytes)
    .title("Neuron host memory")
    .on("trn.memory", "host")
    .help("Memory that the Neuron runtimes of the watched processes, or all where none is watched, hold on the host. neuron-monitor, memory_used, neuron_runtime_used_bytes, host.");

/// Host memory of the application.
pub static HOST_APPLICATION: MetricDef =
    MetricDef::gauge("trn.host_memory_usage.application_memory", Unit::Bytes)
        .title("Neuron host memory, application")
        .on("trn.memory.host", "application")
        .aliases(&["trn.host_total_memory_usage.application_memory"])
        .help("Part of trn.host_total_memory_usage that the application's buffers take. neuron-monitor, usage_breakdown, host, application_memory.");

/// Host memory of constants.
pub static HOST_CONSTANTS: MetricDef = MetricDef::gauge("trn.host_memory_usage.constants", Unit::Bytes)
    .title("Neuron host memory, constants")
    .on("trn.memory.host", "constants")
    .aliases(&["trn.host_total_memory_usage.constants"])
    .help("Part of trn.host_total_memory_usage that constants of models take. neuron-monitor, usage_breakdown, host, constants.");

/// Host memory of DMA.
pub static HOST_DMA: MetricDef = MetricDef::gauge("trn.host_memory_usage.dma_buffers", Unit::Bytes)
    .title("Neuron host memory, DMA buffers")
    .on("trn.memory.host", "DMA buffers")
    .aliases(&["trn.host_total_memory_usage.dma_buffers"])
    .help("Part of trn.host_total_memory_usage that buffers for transfers take. neuron-monitor, usage_breakdown, host, dma_buffers.");

/// Host memory of tensors.
pub static HOST_TENSORS: MetricDef = MetricDef::gauge("trn.host_memory_usage.tensors", Unit::Bytes)
    .title("Neuron host memory, tensors")
    .on("trn.memory.host", "tensors")
    .aliases(&["trn.host_total_memory_usage.tensors"])
    .help("Part of trn.host_total_memory_usage that tensors take. neuron-monitor, usage_breakdown, host, tensors.");

/// Host memory of anything that later versions add.
pub static HOST_OTHER: MetricDef = MetricDef::gauge("trn.host_memory_usage.{part}", Unit::Bytes)
    .title("Neuron host memory, other parts")
    .on("trn.memory.host", "{part}")
    .aliases(&["trn.host_total_memory_usage.{part}"])
    .help("Any other part of trn.host_total_memory_usage that neuron-monitor names. neuron-monitor, usage_breakdown, host.");

/// Core's memory for tensors.
pub static CORE_TENSORS: MetricDef = MetricDef::gauge("trn.{i}.neuroncore_memory_usage.tensors", Unit::Bytes)
    .title("NeuronCore memory, tensors")
    .on("trn.core.tensors", "core {i}")
    .help("Device memory that tensors take for this core. neuron-monitor, usage_breakdown, neuroncore_memory_usage, tensors.");

/// Core's memory for constants.
pub static CORE_CONSTANTS: MetricDef = MetricDef::gauge("trn.{i}.neuroncore_memory_usage.constants", Unit::Bytes)
    .title("NeuronCore memory, constants")
    .on("trn.core.constants", "core {i}")
    .help("Device memory that constants take for this core: weights in training. neuron-monitor, usage_breakdown, neuroncore_memory_usage, constants.");

/// Core's memory for code.
pub static CORE_CODE: MetricDef = MetricDef::gauge("trn.{i}.neuroncore_memory_usage.model_code", Unit::Bytes)
    .title("NeuronCore memory, model code")
    .on("trn.core.code", "core {i}")
    .help("Device memory that the models' code takes for this core. neuron-monitor, usage_breakdown, neuroncore_memory_usage, model_code.");

/// Core's scratchpad.
pub static CORE_SCRATCHPAD: MetricDef =
    MetricDef::gauge("trn.{i}.neuroncore_memory_usage.model_shared_scratchpad", Unit::Bytes)
        .title("NeuronCore memory, scratchpad")
        .on("trn.core.scratchpad", "core {i}")
        .help("Device memory that the models' shared scratchpad takes for this core. neuron-monitor, usage_breakdown, neuroncore_memory_usage, model_shared_scratchpad.");

/// Core's memory for the runtime.
pub static CORE_RUNTIME: MetricDef =
    MetricDef::gauge("trn.{i}.neuroncore_memory_usage.runtime_memory", Unit::Bytes)
        .title("NeuronCore memory, runtime")
        .on("trn.core.runtime", "core {i}")
        .help("Device memory that the Neuron runtime takes for this core. neuron-monitor, usage_breakdown, neuroncore_memory_usage, runtime_memory.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[
    &UTILIZATION,
    &DEVICE_MEMORY,
    &HOST_MEMORY,
    &HOST_APPLICATION,
    &HOST_CONSTANTS,
    &HOST_DMA,
    &HOST_TENSORS,
    &HOST_OTHER,
    &CORE_TENSORS,
    &CORE_CONSTANTS,
    &CORE_CODE,
    &CORE_SCRATCHPAD,
    &CORE_RUNTIME,
];
