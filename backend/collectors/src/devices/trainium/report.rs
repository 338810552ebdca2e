//! One report of neuron-monitor: a line of JSON. Unknown fields are ignored. If a group has an error, only that group
//! is left out.

use crate::Out;
use serde_json::{Map, Value};
use shared::catalog::{MetricDef, trainium};
use std::collections::BTreeMap;
use std::time::Duration;

/// Values of a report for the runtimes that count here.
#[derive(Debug)]
pub(super) struct NeuronReport {
    /// The longest period of a group.
    pub period: Duration,
    /// Reason for missing values, one sentence without a full stop.
    pub trouble: Option<String>,
    /// Use of cores, percent.
    cores: BTreeMap<u32, f64>,
    /// Bytes of metrics without a placeholder.
    totals: Vec<(&'static MetricDef, f64)>,
    /// Bytes of parts of the host's memory that have no metric of their own.
    others: BTreeMap<String, f64>,
    /// Bytes by metric and core.
    parts: Vec<(&'static MetricDef, u32, f64)>,
}

/// Maximum numbers of cores and of kinds of memory. The limits prevent series from a malformed report.
const MAX_CORES: usize = 1024;
const MAX_MEMORY_KINDS: usize = 32;

/// Used if no group has a period: the tool's own default.
const DEFAULT_PERIOD_SECONDS: f64 = 5.0;

static HOST_PARTS: &[(&str, &MetricDef)] = &[
    ("application_memory", &trainium::HOST_APPLICATION),
    ("constants", &trainium::HOST_CONSTANTS),
    ("dma_buffers", &trainium::HOST_DMA),
    ("tensors", &trainium::HOST_TENSORS),
];

static CORE_PARTS: &[(&str, &MetricDef)] = &[
    ("constants", &trainium::CORE_CONSTANTS),
    ("model_code", &trainium::CORE_CODE),
    ("model_shared_scratchpad", &trainium::CORE_SCRATCHPAD),
    ("runtime_memory", &trainium::CORE_RUNTIME),
    ("tensors", &trainium::CORE_TENSORS),
];

impl NeuronReport {
    /// Reads a line; none if it is no report. `watched`: whether a process counts.
    pub fn read(line: &[u8], mut watched: impl FnMut(u32) -> bool) -> Option<NeuronReport> {
        let json: Value = serde_json::from_slice(line).ok()?;
        let runtimes = json.get("neuron_runtime_data")?.as_array()?;
        let mut report = NeuronReport {
            period: Duration::ZERO,
            trouble: None,
            cores: BTreeMap::new(),
            totals: Vec::new(),
            others: BTreeMap::new(),
            parts: Vec::new(),
        };
        report.note("neuron-monitor", &json["neuron_hardware_info"]);
        let mut period = 0.0_f64;
        for runtime in runtimes {
            let pid = runtime["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
            if pid.is_some_and(&mut watched) {
                for group in ["neuroncore_counters", "memory_used"] {
                    period = period.max(runtime["report"][group]["period"].as_f64().unwrap_or(0.0));
                }
                report.add(pid.unwrap_or_default(), runtime);
            }
        }
        let period = if period > 0.0 { period.clamp(1.0, 3600.0) } else { DEFAULT_PERIOD_SECONDS };
        report.period = Duration::from_secs_f64(period);
        Some(report)
    }

    /// Stores the first error of a group. Returns whether the group has one.
    fn note(&mut self, what: &str, json: &Value) -> bool {
        let error = json["error"].as_str().map(str::trim).filter(|error| !error.is_empty());
        if let Some(error) = error {
            self.trouble.get_or_insert_with(|| format!("{what}: {}", crate::read::exec::short(error)));
        }
        error.is_some()
    }

    fn add(&mut self, pid: u32, runtime: &Value) {
        if self.note(&format!("process {pid}"), runtime) {
            return;
        }
        let report = &runtime["report"];
        let counters = &report["neuroncore_counters"];
        if !self.note(&format!("neuroncore_counters of process {pid}"), counters) {
            for (core, fields) in by_core(&counters["neuroncores_in_use"]) {
                let used = fields["neuroncore_utilization"].as_f64().filter(|used| (0.0..=100.0).contains(used));
                if let Some(used) = used {
                    let sum = self.cores.entry(core).or_insert(0.0);
                    *sum = (*sum + used).min(100.0);
                }
            }
        }
        let memory = &report["memory_used"];
        if !self.note(&format!("memory_used of process {pid}"), memory) {
            self.add_memory(&memory["neuron_runtime_used_bytes"]);
        }
    }

    fn add_memory(&mut self, used: &Value) {
        self.total(&trainium::HOST_MEMORY, bytes(&used["host"]));
        self.total(&trainium::DEVICE_MEMORY, bytes(&used["neuron_device"]));
        let breakdown = &used["usage_breakdown"];
        for (part, value) in object(&breakdown["host"]).take(MAX_MEMORY_KINDS) {
            match HOST_PARTS.iter().find(|(name, _)| name == part) {
                Some((_, row)) => self.total(row, bytes(value)),
                None => {
                    if let Some(value) = bytes(value) {
                        *self.others.entry(part.clone()).or_insert(0.0) += value;
                    }
                }
            }
        }
        for (core, fields) in by_core(&breakdown["neuroncore_memory_usage"]) {
            for (part, row) in CORE_PARTS {
                if let Some(value) = bytes(&fields[*part]) {
                    match self.parts.iter_mut().find(|at| std::ptr::eq(at.0, *row) && at.1 == core) {
                        Some(at) => at.2 += value,
                        None => self.parts.push((row, core, value)),
                    }
                }
            }
        }
    }

    fn total(&mut self, row: &'static MetricDef, value: Option<f64>) {
        let Some(value) = value else { return };
        match self.totals.iter_mut().find(|at| std::ptr::eq(at.0, row)) {
            Some(at) => at.1 += value,
            None => self.totals.push((row, value)),
        }
    }

    /// Whether it contains no number.
    pub fn is_empty(&self) -> bool {
        self.cores.is_empty() && self.totals.is_empty() && self.others.is_empty() && self.parts.is_empty()
    }

    /// Puts all numbers.
    pub fn put(&self, out: &mut Out) {
        self.cores.iter().for_each(|(core, used)| out.put(&trainium::UTILIZATION, *core, *used));
        self.totals.iter().for_each(|(row, value)| out.put(row, (), *value));
        self.others.iter().for_each(|(part, value)| out.put(&trainium::HOST_OTHER, part.as_str(), *value));
        self.parts.iter().for_each(|(row, core, value)| out.put(row, *core, *value));
    }
}

fn object(json: &Value) -> impl Iterator<Item = (&String, &Value)> {
    json.as_object().into_iter().flat_map(Map::iter)
}

/// Members whose names are core numbers.
fn by_core(json: &Value) -> impl Iterator<Item = (u32, &Value)> {
    object(json).take(MAX_CORES).filter_map(|(core, fields)| Some((core.parse().ok()?, fields)))
}

fn bytes(json: &Value) -> Option<f64> {
    json.as_f64().filter(|bytes| (0.0..=1e18).contains(bytes))
}
