//! Tests the table of metrics: against the collectors, against its document, and with every tag in the pages and
//! versions of W&B.

use crate::house::source::{Source, tree};
use collectors::COLLECTORS;
use shared::catalog::{self as rows, MetricDef, VOCABULARY, faults, metrics_markdown};
use std::collections::HashSet;

/// Slices without a producer, each with the collector that will fill it. A slice leaves this list when its collector is
/// added; the test below checks that.
const WAITING: &[(&str, &[&[&MetricDef]])] = &[
    ("tpu", &[rows::tpu::LIBRARY]),
    // W&B derives these rates for its terminal view. Ours are drawn from the counters, so no producer will ever send
    // these.
    ("wandb", &[rows::wandb::ROWS]),
];

fn tags<'a>(slices: impl IntoIterator<Item = &'a [&'a MetricDef]>) -> HashSet<&'a str> {
    slices.into_iter().flatten().map(|row| row.tag).collect()
}

#[test]
fn the_whole_table_has_no_fault() {
    assert_eq!(faults(&collectors::catalog()), Vec::<String>::new());
}

#[test]
fn every_row_has_a_producer_or_waits_for_a_named_one() {
    let produced = tags(COLLECTORS.iter().flat_map(|entry| entry.metrics).copied());
    let waiting = tags(WAITING.iter().flat_map(|(_, slices)| *slices).copied());
    for tag in tags(VOCABULARY.iter().copied()) {
        match (produced.contains(tag), waiting.contains(tag)) {
            (true, false) | (false, true) => {}
            (true, true) => panic!("{tag} has a producer: take its slice off the list of those that wait"),
            (false, false) => panic!("{tag} has no producer: no collector's entry names its slice"),
        }
    }
}

/// Module, name and tag of each row that is a static.
fn statics(sources: &[Source]) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|s| s.path.starts_with("shared/src/catalog/")) {
        let module = source.path.rsplit('/').next().unwrap_or("").trim_end_matches(".rs");
        for row in source.text.split("pub static ").skip(1) {
            if let Some((name, rest)) = row.split_once(": MetricDef =") {
                let tag = rest.split('"').nth(1).expect("a row has a tag");
                found.push((module.to_string(), name.to_string(), tag.to_string()));
            }
        }
    }
    found
}

// A slice in an entry is only a claim. A collector can fill a row only if it names it.
#[test]
fn rows_are_named_by_a_collector_exactly_when_they_are_claimed() {
    let sources = tree();
    let claimed = tags(COLLECTORS.iter().flat_map(|entry| entry.metrics).copied());
    // The table itself names slices, and the readers of other systems fill none here.
    let elsewhere = |path: &str| path.ends_with("/lib.rs") || path.contains("/portable/");
    let collectors: Vec<HashSet<&str>> = sources
        .iter()
        .filter(|s| s.path.starts_with("backend/collectors/src/") && !s.is_test() && !elsewhere(&s.path))
        .map(|s| s.code.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect())
        .collect();
    let rows = statics(sources);
    assert!(rows.len() > 100, "{} rows were found: are rows written otherwise now?", rows.len());
    for (module, name, tag) in rows {
        let named = collectors.iter().any(|words| words.contains(module.as_str()) && words.contains(name.as_str()));
        match (claimed.contains(tag.as_str()), named) {
            (true, false) => panic!("{tag} is claimed by an entry, but no collector names {module}::{name}"),
            (false, true) => panic!("{tag} is named by a collector ({module}::{name}), but no entry has its slice"),
            _ => {}
        }
    }
}

#[test]
fn collectors_are_told_apart_and_say_what_they_read() {
    let mut names = HashSet::new();
    for entry in COLLECTORS {
        assert!(names.insert(entry.name), "two collectors are called {}", entry.name);
        assert!(entry.about.ends_with('.'), "{}: about is a full sentence", entry.name);
        assert!(!entry.metrics.is_empty(), "{}: it produces nothing", entry.name);
    }
}

#[test]
fn the_guide_has_a_section_for_each_collector() {
    let guide = include_str!("../docs/start/collectors.md");
    let headings: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let names: Vec<&str> = COLLECTORS.iter().map(|entry| entry.name).collect();
    assert_eq!(headings, names);
}

#[test]
fn sections_name_collectors_that_are_or_that_are_waited_for() {
    for section in collectors::catalog().layout.sections {
        for name in &section.checks {
            let is = COLLECTORS.iter().any(|entry| entry.name == name);
            assert!(is || WAITING.iter().any(|(waiting, _)| waiting == name), "{}: {name} is unknown", section.id);
        }
    }
}

#[test]
fn the_document_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/metrics.md");
    let text = metrics_markdown(&collectors::catalog());
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &text).expect("static/ can be written");
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    let differs = stored.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        stored == text,
        "docs/reference/metrics.md is stale, first in line {differs:?}: UPDATE=1 cargo test -p watchglass-tests catalog"
    );
}

#[test]
fn the_page_of_xids_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/xids.md");
    let text = shared::xid::markdown();
    if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
        std::fs::write(path, &text).expect("the page can be written");
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(stored == text, "docs/reference/xids.md is stale: UPDATE=1 cargo test -p watchglass-tests catalog");
}

/// Tags as the pages and versions of W&B wrote them, and their canonical form.
const SPELLINGS: &[(&str, &str)] = &[
    ("gpu.0.memoryTotal", "gpu.0.memoryTotalBytes"),
    ("memory", "memory_percent"),
    ("disk", "disk./.usagePercent"),
    ("disk./mnt/data.v2.usagePercen", "disk./mnt/data.v2.usagePercent"),
    ("disk./.usageGB)", "disk./.usageGB"),
    ("gpu.3.unCorrectedMemoryErrors", "gpu.3.uncorrectedMemoryErrors"),
    ("gpu.1.totalEnergyConsumption", "gpu.1.energyJoules"),
    ("tpu", "tpu.0.tensorcoreUtilization"),
    ("tpu.1.memoryUsage", "tpu.1.hbmMemoryUsage"),
    ("tpu.1.memoryUsageBytes", "tpu.1.hbmCapacityUsage"),
    ("trn.host_total_memory_usage.application_memory", "trn.host_memory_usage.application_memory"),
    ("trn.host_total_memory_usage.constants", "trn.host_memory_usage.constants"),
    ("trn.host_total_memory_usage.dma_buffers", "trn.host_memory_usage.dma_buffers"),
    ("trn.host_total_memory_usage.tensors", "trn.host_memory_usage.tensors"),
    ("trn.neuron_device_total_memory_usage)", "trn.neuron_device_total_memory_usage"),
    ("system.gpu.0.temp", "gpu.0.temp"),
    ("system.memory", "memory_percent"),
];

/// Tags that are canonical already.
const CANONICAL: &str = "cpu cpu.0.cpu_percent proc.cpu.threads proc.cpu.throttledPercent system.load1 system.load5 \
    system.load15 system.uptime cpu.avg_temp memory_percent proc.memory.availableMB proc.memory.rssMB \
    proc.memory.percent proc.memory.oomKills swap.used swap.used_percent memory.used memory.used_percent \
    disk./mnt/data.v2.usagePercent disk./.usageGB disk.sda.in disk.nvme0n1.out disk.in disk.out disk.sda.readBps \
    disk.sda.writeBps network.sent network.recv network.tcpRetransmits network.sentBps network.recvBps gpu.0.gpu \
    gpu.0.memory gpu.0.memoryAllocated gpu.0.memoryAllocatedBytes gpu.0.temp gpu.0.powerWatts \
    gpu.0.enforcedPowerLimitWatts gpu.0.powerPercent gpu.0.energyJoules gpu.0.smClock gpu.0.memoryClock \
    gpu.0.correctedMemoryErrors gpu.0.uncorrectedMemoryErrors gpu.0.fanSpeed gpu.0.pcieTxBytes gpu.0.pcieRxBytes \
    gpu.0.graphicsClock gpu.0.encoderUtilization gpu.0.pcieLinkGen gpu.0.pcieLinkSpeed gpu.0.pcieLinkWidth \
    gpu.0.maxPcieLinkGen gpu.0.maxPcieLinkWidth gpu.0.smActive gpu.0.smOccupancy gpu.0.dramActive \
    gpu.0.pipeTensorActive gpu.0.pipeTensorHmmaActive gpu.0.pipeFp64Active gpu.0.pipeFp32Active \
    gpu.0.pipeFp16Active gpu.0.nvlinkTxBytes gpu.0.nvlinkRxBytes gpu.process.0.gpu gpu.process.0.memory \
    gpu.process.0.memoryAllocated gpu.process.0.memoryAllocatedBytes gpu.process.0.temp gpu.process.0.powerWatts \
    gpu.process.0.enforcedPowerLimitWatts gpu.process.0.powerPercent gpu.0.memoryUsed \
    gpu.0.memoryFree gpu.0.memoryTemp gpu.0.maxOpTemp gpu.0.memoryMaxOpTemp \
    gpu.0.memoryReadWriteActivity gpu.0.memoryOverDrive gpu.0.freq cpu.ecpu_freq cpu.pcpu_freq cpu.ecpu_percent \
    cpu.pcpu_percent cpu.powerWatts ane.power system.powerWatts gpu.0.recoveryCount tpu.0.tensorcoreUtilization \
    tpu.0.tensorcoreIdleDuration tpu.0.dutyCycle tpu.0.hbmCapacityTotal tpu.0.hbmCapacityUsage tpu.0.hbmMemoryUsage \
    tpu.0.runtimeHbmUtilization tpu.0.iciLinkHealth tpu.0.throttleScore tpu.bufferTransferLatency.8mb_.meanUs \
    tpu.inboundBufferTransferLatency.x.p50Us tpu.hostToDeviceTransferLatency.x.p90Us \
    tpu.deviceToHostTransferLatency.x.p95Us tpu.collectiveE2ELatency.x.p99Us tpu.hostComputeLatency.x.p999Us \
    tpu.hloExecTiming.x.meanUs tpu.grpcTcpMinRtt.p50Us tpu.grpcTcpMinRtt.x.p50Us tpu.grpcTcpDeliveryRate.p50Mbps \
    tpu.hloQueueSize.x trn.0.neuroncore_utilization trn.host_total_memory_usage \
    trn.neuron_device_total_memory_usage trn.host_memory_usage.application_memory trn.host_memory_usage.constants \
    trn.host_memory_usage.dma_buffers trn.host_memory_usage.tensors trn.0.neuroncore_memory_usage.constants \
    trn.0.neuroncore_memory_usage.model_code trn.0.neuroncore_memory_usage.model_shared_scratchpad \
    trn.0.neuroncore_memory_usage.runtime_memory trn.0.neuroncore_memory_usage.tensors \
    openmetrics.dcgm.DCGM_FI_DEV_GPU_TEMP.0 ipu.0.anything";

/// Canonical tags with spaces.
const SPACED: &[&str] = &[
    "ipu.0.average board temp (C)",
    "ipu.0.average die temp (C)",
    "ipu.0.clock (MHz)",
    "ipu.0.ipu power (W)",
    "ipu.0.ipu utilisation (%)",
    "ipu.0.ipu utilisation (session) (%)",
    "ipu.0.pcie link speed (GT/s)",
    "openmetrics.node.http_requests_total{method=\"GET\",path=\"/a b\"}",
];

#[test]
fn every_tag_of_every_page_and_version_is_read() {
    let catalog = collectors::catalog();
    let same = CANONICAL.split_whitespace().chain(SPACED.iter().copied()).map(|tag| (tag, tag));
    for (spelling, canonical) in SPELLINGS.iter().copied().chain(same) {
        for label in [None, Some("node-1/rank0")] {
            let text = label.map_or(spelling.to_string(), |label| format!("{spelling}/l:{label}"));
            let found = catalog.find(&text).unwrap_or_else(|error| panic!("{error}"));
            let series = shared::series::SeriesDef { metric: found.metric, instance: found.instance };
            assert_eq!(catalog.tag(&series), canonical, "{text}");
            assert_eq!(found.label.as_deref(), label, "{text}");
        }
    }
}
