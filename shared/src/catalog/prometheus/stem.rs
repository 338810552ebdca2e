//! Part of a row's name between `watchglass_` and its unit.

use crate::catalog::{Metric, tag};
use crate::unit::Unit;

/// Tags whose name by the rule would be poor, ambiguous or against Prometheus' habits. A tag that ends with a dot is a
/// prefix, and the rule names the rest.
const NAMED: &[(&str, &str)] = &[
    ("gpu.{i}.gpu", "gpu_utilization"),
    ("gpu.{i}.memory", "gpu_memory_utilization"),
    ("gpu.{i}.memoryAllocated", "gpu_memory_used"),
    ("gpu.{i}.memoryAllocatedBytes", "gpu_memory_used"),
    ("gpu.{i}.memoryUsed", "gpu_framebuffer_used"),
    ("gpu.{i}.memoryFree", "gpu_framebuffer_free"),
    ("gpu.{i}.enforcedPowerLimitWatts", "gpu_power_limit"),
    ("gpu.{i}.maxOpTemp", "gpu_temperature_limit"),
    ("gpu.{i}.memoryMaxOpTemp", "gpu_memory_temperature_limit"),
    ("gpu.{i}.recoveryCount", "gpu_recoveries"),
    // The device's figures while a watched process uses it; the usage of a process itself is `gpu_process_`.
    ("gpu.process.{i}.gpu", "gpu_watched_utilization"),
    ("gpu.process.{i}.memory", "gpu_watched_memory_utilization"),
    ("gpu.process.{i}.memoryAllocated", "gpu_watched_memory_used"),
    ("gpu.process.{i}.memoryAllocatedBytes", "gpu_watched_memory_used"),
    ("gpu.process.{i}.enforcedPowerLimitWatts", "gpu_watched_power_limit"),
    ("gpu.process.{i}.", "gpu_watched"),
    ("gpu.{process}.", "gpu_process"),
    ("ipu.{i}.ipu utilisation (%)", "ipu_utilization"),
    ("ipu.{i}.ipu utilisation (session) (%)", "ipu_session_utilization"),
    ("ipu.{i}.ipu power (W)", "ipu_power"),
    ("ipu.{i}.total board power (W)", "ipu_board_power"),
    ("ipu.{i}.clock (MHz)", "ipu_clock"),
    ("ipu.{i}.average board temp (C)", "ipu_board_temperature"),
    ("ipu.{i}.average die temp (C)", "ipu_die_temperature"),
    ("ipu.{key}speed (GT/s)", "ipu_link_speed"),
    ("ipu.{key}id", "ipu_identifier"),
    ("ipu.{key}index", "ipu_index"),
    ("ipu.{key}node", "ipu_numa_node"),
    ("ipu.{key}slot", "ipu_slot"),
    ("ipu.{key}", "ipu_other"),
    ("tpu.{i}.hbmCapacityUsage", "tpu_hbm_used"),
    ("tpu.{i}.hbmCapacityTotal", "tpu_hbm_total"),
    ("tpu.{i}.hbmMemoryUsage", "tpu_hbm_used"),
    ("tpu.collectiveE2ELatency.{label}.", "tpu_collective_latency"),
    // These names differ from the rows of the same name without a label.
    ("tpu.grpcTcpMinRtt.{label}.", "tpu_grpc_tcp_min_rtt_by_label"),
    ("tpu.grpcTcpDeliveryRate.{label}.", "tpu_grpc_tcp_delivery_rate_by_label"),
    ("trn.{i}.neuroncore_utilization", "neuron_core_utilization"),
    ("trn.{i}.neuroncore_memory_usage.", "neuron_core_memory"),
    ("trn.neuron_device_total_memory_usage", "neuron_device_memory_used"),
    ("trn.host_total_memory_usage", "neuron_host_memory_used"),
    ("trn.host_memory_usage.{part}", "neuron_host_memory_part"),
    ("trn.host_memory_usage.", "neuron_host_memory"),
    ("system.cpu_percent", "cpu_utilization"),
    ("cpu.{i}.cpu_percent", "cpu_core_utilization"),
    ("system.cores", "cpu_cores"),
    ("system.powerWatts", "machine_power"),
    ("system.", ""),
    ("cpu.avg_temp", "cpu_temperature"),
    ("cpu.ecpu_percent", "cpu_efficiency_cores_utilization"),
    ("cpu.pcpu_percent", "cpu_performance_cores_utilization"),
    ("cpu.ecpu_freq", "cpu_efficiency_cores_frequency"),
    ("cpu.pcpu_freq", "cpu_performance_cores_frequency"),
    ("ane.power", "neural_engine_power"),
    ("memory_percent", "memory_used"),
    ("memory.used_percent", "memory_apple_used"),
    ("proc.memory.availableMB", "memory_available"),
    ("disk.in", "disk_read"),
    ("disk.out", "disk_written"),
    ("disk.{dev}.in", "disk_device_read"),
    ("disk.{dev}.out", "disk_device_written"),
    ("disk.{dev}.readBps", "disk_device_read"),
    ("disk.{dev}.writeBps", "disk_device_written"),
    ("disk.{dev}.", "disk_device"),
    ("disk.{path}.usagePercent", "filesystem_used"),
    ("disk.{path}.usageGB", "filesystem_used"),
    ("network.recv", "network_receive"),
    ("network.sent", "network_transmit"),
    ("network.recvBps", "network_receive"),
    ("network.sentBps", "network_transmit"),
    ("network.{dev}.recv", "network_device_receive"),
    ("network.{dev}.sent", "network_device_transmit"),
    ("infiniband.{port}.recv", "infiniband_receive"),
    ("infiniband.{port}.sent", "infiniband_transmit"),
    ("kernel.{kernel}.cpu_percent", "jupyter_kernel_cpu_utilization"),
    ("kernel.{kernel}.memory", "jupyter_kernel_memory"),
    ("kernel.{kernel.gpu.i}.memory", "jupyter_kernel_gpu_memory"),
    ("kernel.{kernel.gpu.i}.share", "jupyter_kernel_gpu_utilization"),
    ("kernel.{kernel}.threads", "jupyter_kernel_threads"),
    ("cpu", "process_cpu_utilization"),
    ("proc.memory.rssMB", "process_resident_memory"),
    ("proc.memory.percent", "process_memory_used"),
    ("proc.cpu.cores", "process_cpu_cores"),
    ("proc.cpu.threads", "process_threads"),
    ("proc.processes", "process_members"),
    ("proc.processes_uninterruptible", "process_members_uninterruptible"),
    ("proc.memory.oomKills", "process_oom_kills"),
    ("mount.{path}.rttMicros", "mount_request_duration"),
    ("proc.", "process"),
    ("openmetrics.{sample}", "scraped_sample"),
    ("job.{value}", "job_other_value"),
    ("monitor.rssMB", "self_resident_memory"),
    ("monitor.late", "self_late_ticks"),
    ("monitor.{collector}.micros", "self_collector_duration"),
    ("monitor.{collector}.ok", "self_collector_ok"),
    ("monitor.", "self"),
];

/// The name of a row of ours, without prefix and unit.
pub fn stem(metric: &Metric) -> String {
    let tag = metric.tag.as_str();
    if let Some((_, stem)) = NAMED.iter().find(|(named, _)| *named == tag) {
        return (*stem).to_string();
    }
    let begins = |(named, _): &&(&str, &str)| named.ends_with('.') && tag.starts_with(named);
    let longest = NAMED.iter().filter(begins).max_by_key(|(named, _)| named.len());
    let (named, rest) = longest.map_or(("", tag), |(named, stem)| (*stem, &tag[named.len()..]));
    let bare = match tag::split(rest) {
        Some((before, after, _)) => format!("{before}.{after}"),
        None => rest.to_string(),
    };
    let mut words: Vec<String> = bare.split(|c: char| !c.is_ascii_alphanumeric()).flat_map(humps).collect();
    if words.len() > 1 && words.last().is_some_and(|word| is_unit(word, metric.unit)) {
        words.pop();
    }
    let words = words.iter().map(|word| match word.as_str() {
        "temp" => "temperature",
        "freq" => "frequency",
        word => word,
    });
    std::iter::once(named).chain(words).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

/// `memoryTotalBytes` is `memory`, `total`, `bytes`; `p50Us` is `p50`, `us`.
fn humps(word: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in word.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the word is the unit's name in tags, which is replaced by the base unit's.
fn is_unit(word: &str, unit: Unit) -> bool {
    match unit {
        Unit::Percent => word == "percent",
        Unit::Bytes => word == "bytes",
        Unit::Mebibytes => word == "mb",
        Unit::Gibibytes => word == "gb",
        Unit::BytesPerSecond => word == "bytes" || word == "bps",
        Unit::Watts => word == "watts",
        Unit::Joules => word == "joules",
        Unit::Microseconds => word == "us",
        Unit::MegabitsPerSecond => word == "mbps",
        _ => false,
    }
}
