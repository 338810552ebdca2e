//! Machines with GPUs, sample by sample.

use crate::{Insight, Settings};
use shared::catalog::{Metric, MetricDef, cpu, disk, gpu, gpu_parts, gpu_profile, memory, network};
use shared::finding::Finding;
use shared::series::SeriesId;
use std::collections::BTreeMap;

pub const GIB: f64 = (1u64 << 30) as f64;

/// The samples of a machine at an instant.
#[derive(Default)]
pub struct Sheet(pub BTreeMap<(&'static str, String), (&'static MetricDef, f64)>);

impl Sheet {
    pub fn set(&mut self, row: &'static MetricDef, instance: impl ToString, value: f64) -> &mut Self {
        self.0.insert((row.tag, instance.to_string()), (row, value));
        self
    }

    pub fn drop(&mut self, row: &'static MetricDef) -> &mut Self {
        self.0.retain(|(tag, _), _| *tag != row.tag);
        self
    }

    pub fn drop_gpu(&mut self, gpu: u32) -> &mut Self {
        let name = gpu.to_string();
        self.0.retain(|(tag, instance), _| !tag.starts_with("gpu.{i}") || *instance != name);
        self
    }
}

/// Pseudorandom number between -1 and 1, the same for the same arguments.
pub fn noise(a: u64, b: u64) -> f64 {
    let mut x = a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_mul(0xC2B2_AE3D_27D4_EB4F) ^ 0x1656_67B1;
    for _ in 0..3 {
        x ^= x >> 29;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^= x >> 32;
    }
    (x % 20_001) as f64 / 10_000.0 - 1.0
}

/// Activity of a GPU, from which its readings are derived.
#[derive(Clone, Copy, Debug)]
pub struct Does {
    /// Share of the time in work, and of waiting in a kernel; the rest is idle.
    pub work: f64,
    pub spin: f64,
    /// MHz while it works.
    pub clock: f64,
    /// GiB of 80.
    pub memory: f64,
    pub temp: f64,
    pub limit: f64,
    pub bits: f64,
}

pub const WORKS: Does =
    Does { work: 0.95, spin: 0.05, clock: 1755.0, memory: 60.0, temp: 66.0, limit: 700.0, bits: 0.0 };
pub const SPINS: Does = Does { work: 0.0, spin: 1.0, clock: 1980.0, ..WORKS };
pub const IDLE_GPU: Does = Does { work: 0.0, spin: 0.0, clock: 1980.0, ..WORKS };
pub const OFF: Does = Does { work: 0.0, spin: 0.0, clock: 345.0, memory: 0.5, ..WORKS };

/// The readings of a GPU.
pub fn put(sheet: &mut Sheet, gpu: u32, t: i64, does: Does) {
    let n = |what: u64| noise(t as u64 * 31 + what, u64::from(gpu) + 1);
    let Does { work, spin, clock, memory, temp, limit, bits } = does;
    let watts = 72.0 + work * 520.0 * clock / 1755.0 + spin * 60.0 + n(1) * 4.0;
    sheet
        .set(&gpu::UTILIZATION, gpu, (100.0 * (work + spin)).round().min(100.0))
        .set(&gpu::POWER_WATTS, gpu, watts)
        .set(&gpu::POWER_LIMIT_WATTS, gpu, limit)
        .set(&gpu::TEMP, gpu, temp)
        .set(&gpu::SM_CLOCK, gpu, clock)
        .set(&gpu::MEMORY_ALLOCATED_BYTES, gpu, memory * GIB)
        .set(&gpu::MEMORY_TOTAL_BYTES, gpu, 80.0 * GIB)
        .set(&gpu::MEMORY_ALLOCATED, gpu, 100.0 * memory / 80.0)
        .set(&gpu::MEMORY_ACTIVITY, gpu, (45.0 * work + n(2)).max(0.0).round())
        .set(&gpu::THROTTLE_REASONS, gpu, bits)
        .set(&gpu::CORRECTED_ERRORS, gpu, 2.0)
        .set(&gpu::UNCORRECTED_ERRORS, gpu, 0.0)
        .set(&gpu_parts::XID_ERRORS, gpu, 0.0)
        .set(&gpu_profile::TENSOR_ACTIVE, gpu, (48.0 * work + 0.5 * n(3)).max(0.0))
        .set(&gpu_profile::SM_ACTIVE, gpu, 85.0 * work + 12.0 * spin)
        .set(&gpu_profile::DRAM_ACTIVE, gpu, 50.0 * work)
        .set(&gpu_profile::NVLINK_TX, gpu, 90e9 * work * (1.0 + 0.03 * n(4)))
        .set(&gpu_profile::NVLINK_RX, gpu, 90e9 * work * (1.0 + 0.03 * n(5)))
        .set(&gpu_profile::PCIE_WIDTH, gpu, 16.0)
        .set(&gpu_profile::MAX_PCIE_WIDTH, gpu, 16.0)
        .set(&gpu_profile::PCIE_GEN, gpu, if work + spin > 0.0 { 5.0 } else { 1.0 })
        .set(&gpu_profile::MAX_PCIE_GEN, gpu, 5.0);
}

/// The readings of the machine itself, with its totals so far (MiB and bytes).
pub fn put_host(sheet: &mut Sheet, t: i64, cpu: f64, (read, written, net): (f64, f64, f64)) {
    sheet
        .set(&cpu::CPU_PERCENT, "", cpu + 0.3 * noise(t as u64, 99))
        .set(&cpu::CORES, "", 64.0)
        .set(&cpu::PRESSURE_CPU, "", 0.5)
        .set(&cpu::PRESSURE_IO_SOME, "", 0.5)
        .set(&cpu::PRESSURE_MEMORY_FULL, "", 0.0)
        .set(&memory::WORKING_SET, "", 40.0)
        .set(&memory::TOTAL, "", 1024.0 * GIB)
        .set(&disk::READ, "", read)
        .set(&disk::WRITTEN, "", written)
        .set(&network::RECEIVED, "", net)
        .set(&network::SENT, "", net)
        .set(&network::RETRANSMITS, "", (t / 7) as f64);
}

/// Findings about machines whose samples `sheet` gives, from second 0 to `seconds`, every `interval` milliseconds.
pub struct Trace {
    pub insight: Insight,
    pub told: Vec<Finding>,
    ids: BTreeMap<(u32, &'static str, String), SeriesId>,
    pub interval: i64,
}

/// Begin of the traces: a multiple of every interval.
pub const START: i64 = 1_800_000_000;

impl Trace {
    pub fn new(hosts: u32, interval: i64) -> Self {
        let mut insight = Insight::new(Settings::default());
        for host in 0..hosts {
            insight.source(host, &format!("node-{host}"), interval);
        }
        Trace { insight, told: Vec::new(), ids: BTreeMap::new(), interval }
    }

    /// Second `t` of a machine, `part` milliseconds into it.
    pub fn tick(&mut self, host: u32, t: i64, part: i64, sheet: &Sheet) {
        let mut samples = Vec::new();
        for ((tag, instance), (row, value)) in &sheet.0 {
            let next = self.ids.len() as SeriesId;
            let id = *self.ids.entry((host, *tag, instance.clone())).or_insert_with(|| {
                self.insight.series(host, next, &Metric::from(*row), instance);
                next
            });
            samples.push((id, *value));
        }
        self.insight.tick(host, (START + t) * 1000 + part, samples);
    }

    pub fn judge(&mut self, t: i64) {
        self.insight.judge((START + t) * 1000, &mut self.told);
    }

    /// Runs a span of seconds; a machine without a sheet is silent.
    pub fn run(&mut self, span: std::ops::Range<i64>, hosts: u32, of: impl Fn(u32, i64) -> Option<Sheet>) {
        for t in span {
            for part in (0..1000).step_by(self.interval.min(1000) as usize) {
                if (t * 1000 + part) % self.interval == 0 {
                    for host in 0..hosts {
                        if let Some(sheet) = of(host, t) {
                            self.tick(host, t, part, &sheet);
                        }
                    }
                }
            }
            self.judge(t + 1);
        }
    }
}

/// One machine with `gpus` GPUs and the activity `does`.
pub fn one(gpus: u32, t: i64, does: impl Fn(u32, i64) -> Does) -> Sheet {
    let mut sheet = Sheet::default();
    for gpu in 0..gpus {
        put(&mut sheet, gpu, t, does(gpu, t));
    }
    put_host(&mut sheet, t, 12.0, (1.0 * t as f64, 0.1 * t as f64, 1e4 * t as f64));
    sheet
}

/// Findings about one machine for so many seconds, each once, in its last state.
pub fn findings_of(seconds: i64, interval: i64, of: impl Fn(i64) -> Option<Sheet>) -> Vec<Finding> {
    let mut trace = Trace::new(1, interval);
    trace.run(0..seconds, 1, |_, t| of(t));
    last(&trace.told)
}

/// Each finding once, in its last state, in the order in which they were raised.
pub fn last(told: &[Finding]) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    for finding in told {
        match all.iter_mut().find(|known| known.id == finding.id) {
            Some(known) => *known = finding.clone(),
            None => all.push(finding.clone()),
        }
    }
    all
}

/// Rules of findings, in order.
pub fn rules(of: &[Finding]) -> Vec<&str> {
    of.iter().map(|finding| finding.rule.as_str()).collect()
}

/// Properties that every finding must have.
pub fn check(finding: &Finding) {
    assert!(finding.sentence.contains("{since}"), "{}", finding.sentence);
    for word in [" may be", "anomal", "possibly", "NaN", "inf"] {
        assert!(!finding.sentence.contains(word), "{}", finding.sentence);
    }
    assert!(!finding.evidence.is_empty(), "{}", finding.rule);
    assert!(!finding.next.is_empty(), "{}", finding.rule);
    assert!(finding.since <= finding.told, "{finding:?}");
    let size = serde_json::to_string(finding).expect("it is JSON").len();
    assert!(size <= shared::finding::MAX_FINDING_BYTES, "{size} bytes: {finding:?}");
}
