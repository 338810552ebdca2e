//! The requested metrics, and the conversion of their answers.

use super::distribution::BucketCounts;
use super::messages::{Attribute, AttributeValue, Gauge, Point, TpuMetric};
use crate::Out;
use shared::catalog::{MetricDef, tpu};
use std::collections::{BTreeMap, HashMap};

/// A metric of the service.
pub(super) struct Metric {
    /// Name in the service.
    pub name: &'static str,
    meaning: Meaning,
}

enum Meaning {
    /// A value per device, within these bounds.
    Device(&'static MetricDef, f64, f64),
    /// A value per device, or per chip if a chip is two devices.
    Duty,
    /// A count by label.
    Queue,
    /// Mean and percentiles by label.
    Labeled(&'static [MetricDef; 6]),
    /// Mean and percentiles, by label and without a label.
    Both(&'static [MetricDef; 6], &'static [MetricDef; 6]),
}

const PERCENT: f64 = 100.0;
const BYTES: f64 = 1e15;
const SECONDS: f64 = 1e9;

const fn metric(name: &'static str, meaning: Meaning) -> Metric {
    Metric { name, meaning }
}

/// All requested metrics.
pub(super) static METRICS: &[Metric] = &[
    metric("tpu.runtime.hbm.memory.total.bytes", Meaning::Device(&tpu::HBM_TOTAL, 0.0, BYTES)),
    metric("tpu.runtime.hbm.memory.usage.bytes", Meaning::Device(&tpu::HBM_USAGE, 0.0, BYTES)),
    metric("tpu.runtime.tensorcore.dutycycle.percent", Meaning::Duty),
    metric("tpu.runtime.hbm.utilization.percent", Meaning::Device(&tpu::RUNTIME_HBM, 0.0, PERCENT)),
    metric("tpu.runtime.tensorcore.idle_duration.seconds", Meaning::Device(&tpu::IDLE, 0.0, SECONDS)),
    metric("hlo.queue.size.gauge", Meaning::Queue),
    metric("hlo.execution.timing.distribution.microseconds", Meaning::Labeled(&tpu::HLO_TIMING)),
    metric(
        "megascale.collective_end_to_end_latencies.microsecond.cumulative.distribution",
        Meaning::Labeled(&tpu::COLLECTIVE),
    ),
    metric(
        "megascale.dcn_transfer_latencies.microsecond.cumulative.distribution",
        Meaning::Labeled(&tpu::BUFFER_TRANSFER),
    ),
    metric(
        "megascale.dcn_inbound_transfer_latencies.microsecond.cumulative.distribution",
        Meaning::Labeled(&tpu::INBOUND_TRANSFER),
    ),
    metric(
        "megascale.host_to_device_transfer_latencies.microsecond.cumulative.distribution",
        Meaning::Labeled(&tpu::HOST_TO_DEVICE),
    ),
    metric(
        "megascale.device_to_host_transfer_latencies.microsecond.cumulative.distribution",
        Meaning::Labeled(&tpu::DEVICE_TO_HOST),
    ),
    metric(
        "megascale.mxla_compute_latencies.microsecond.cumulative.distribution",
        Meaning::Labeled(&tpu::HOST_COMPUTE),
    ),
    metric(
        "megascale.grpc_tcp_min_rtt.microsecond.cumulative.distribution",
        Meaning::Both(&tpu::MIN_RTT, &tpu::MIN_RTT_OF),
    ),
    metric(
        "megascale.grpc_tcp_delivery_rate.Mbps.cumulative.distribution",
        Meaning::Both(&tpu::DELIVERY_RATE, &tpu::DELIVERY_RATE_OF),
    ),
];

/// Attribute keys that distinguish points, best first.
const LABELS: &[&str] = &["buffer-size", "buffer_size", "device_ordinal", "device-id"];

/// Shares of the percentiles, by position in the list of a distribution's metrics.
const SHARES: [(usize, f64); 5] =
    [(tpu::P50, 0.5), (tpu::P90, 0.9), (tpu::P95, 0.95), (tpu::P99, 0.99), (tpu::P999, 0.999)];

/// Maximum points of one metric. Hosts have eight devices and a dozen buffer sizes; the limit prevents series from a
/// malformed answer.
const MAX_POINTS: usize = 512;

/// State of one program between readings.
#[derive(Default)]
pub(super) struct Reader {
    /// BucketCounts by metric and label.
    counts: HashMap<(usize, String), BucketCounts>,
    /// Whether duty is reported by chip, with two devices each. None until it was compared with the memory of devices.
    by_chip: Option<bool>,
}

/// Values of all programs in one tick.
#[derive(Default)]
pub(super) struct TpuReadings {
    devices: Vec<(&'static MetricDef, u32, f64)>,
    used: BTreeMap<u32, f64>,
    total: BTreeMap<u32, f64>,
    queues: BTreeMap<String, f64>,
    counts: BTreeMap<(usize, String), BucketCounts>,
}

impl Reader {
    /// Adds a program's answers: position in the table and metric.
    pub fn read(&mut self, answers: &[(usize, TpuMetric)], all: &mut TpuReadings) {
        let mut duty = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for (position, answer) in answers {
            match &METRICS[*position].meaning {
                Meaning::Device(row, least, most) => {
                    for (device, value) in gauges(answer, *least, *most) {
                        all.devices.push((row, device, value));
                        if std::ptr::eq(*row, &tpu::HBM_USAGE) {
                            all.used.insert(device, value);
                        } else if std::ptr::eq(*row, &tpu::HBM_TOTAL) {
                            all.total.insert(device, value);
                            seen.insert(device, value);
                        }
                    }
                }
                Meaning::Duty => duty.extend(gauges(answer, 0.0, PERCENT)),
                Meaning::Queue => {
                    for point in answer.metrics.iter().take(MAX_POINTS) {
                        if let Some(value) = point.gauge.as_ref().and_then(number).filter(|n| *n >= 0.0) {
                            *all.queues.entry(label(point).unwrap_or_else(|| "all".into())).or_insert(0.0) += value;
                        }
                    }
                }
                Meaning::Labeled(_) | Meaning::Both(..) => self.distributions(*position, answer, all),
            }
        }
        self.duty(&duty, &seen, all);
    }

    /// v2 and v3 report duty by chip (two devices each) and memory by device. Nothing is put until the form is known,
    /// because a value might belong to another device.
    fn duty(&mut self, duty: &BTreeMap<u32, f64>, devices: &BTreeMap<u32, f64>, all: &mut TpuReadings) {
        if !duty.is_empty() && !devices.is_empty() {
            let pair = |chip: &u32| devices.contains_key(&(2 * chip)) && devices.contains_key(&(2 * chip + 1));
            self.by_chip = Some(devices.len() == 2 * duty.len() && duty.keys().all(pair));
        }
        for (&i, &value) in duty {
            match self.by_chip {
                Some(true) => all.devices.extend([2 * i, 2 * i + 1].map(|i| (&tpu::DUTY_CYCLE, i, value))),
                Some(false) => all.devices.push((&tpu::DUTY_CYCLE, i, value)),
                None => {}
            }
        }
    }

    /// Adds the values since the last reading. Points with the same label are summed.
    fn distributions(&mut self, position: usize, answer: &TpuMetric, all: &mut TpuReadings) {
        let mut now: BTreeMap<String, BucketCounts> = BTreeMap::new();
        for point in answer.metrics.iter().take(MAX_POINTS) {
            let Some(counts) = point.distribution.as_ref().and_then(BucketCounts::read) else { continue };
            match now.entry(label(point).unwrap_or_default()) {
                std::collections::btree_map::Entry::Vacant(new) => drop(new.insert(counts)),
                std::collections::btree_map::Entry::Occupied(mut old) => drop(old.get_mut().add(&counts)),
            }
        }
        for (label, counts) in now {
            let key = (position, label);
            let new = self.counts.get(&key).and_then(|before| counts.since(before));
            if let Some(new) = new {
                match all.counts.get_mut(&key) {
                    Some(sum) => drop(sum.add(&new)),
                    None => drop(all.counts.insert(key.clone(), new)),
                }
            }
            self.counts.insert(key, counts);
        }
    }
}

impl TpuReadings {
    /// Puts all values; returns false if there are none.
    pub fn put(&self, out: &mut Out) -> bool {
        for (row, device, value) in &self.devices {
            out.put(row, *device, *value);
        }
        for (device, used) in &self.used {
            let total = self.total.get(device).filter(|total| **total > 0.0 && used <= total);
            out.put_rounded(&tpu::HBM_PERCENT, *device, total.map(|total| 100.0 * used / total));
        }
        for (label, size) in &self.queues {
            out.put(&tpu::QUEUE, label.as_str(), *size);
        }
        for ((position, label), counts) in &self.counts {
            let rows: &'static [MetricDef; 6] = match (&METRICS[*position].meaning, label.is_empty()) {
                (Meaning::Labeled(rows) | Meaning::Both(_, rows), false) | (Meaning::Both(rows, _), true) => rows,
                (Meaning::Labeled(rows), true) => {
                    put_all(rows, "all", counts, out);
                    continue;
                }
                _ => continue,
            };
            match label.as_str() {
                "" => put_all(rows, (), counts, out),
                label => put_all(rows, label, counts, out),
            }
        }
        !(self.devices.is_empty() && self.queues.is_empty() && self.counts.is_empty())
    }
}

fn put_all<'a, I: Into<crate::Instance<'a>> + Copy>(
    rows: &'static [MetricDef; 6],
    label: I,
    counts: &BucketCounts,
    out: &mut Out,
) {
    out.put_rounded(&rows[tpu::MEAN], label, counts.mean());
    for (position, share) in SHARES {
        out.put_rounded(&rows[position], label, counts.percentile(share));
    }
}

/// Devices and their values within the bounds.
fn gauges(answer: &TpuMetric, least: f64, most: f64) -> impl Iterator<Item = (u32, f64)> {
    answer.metrics.iter().take(MAX_POINTS).filter_map(move |point| {
        let value = number(point.gauge.as_ref()?).filter(|value| (least..=most).contains(value))?;
        Some((device(point.attribute.as_ref()?)?, value))
    })
}

fn number(gauge: &Gauge) -> Option<f64> {
    gauge.double.or(gauge.int.map(|int| int as f64)).filter(|value| value.is_finite())
}

/// The device's own number; in a slice, numbers need not begin at zero.
fn device(attribute: &Attribute) -> Option<u32> {
    let value = attribute.value.as_ref()?;
    let nested = || value.list.as_ref()?.attributes.iter().filter(|a| a.key.starts_with("device")).find_map(device);
    let own = value.int.and_then(|int| u32::try_from(int).ok());
    own.or_else(|| value.text.as_ref()?.parse().ok()).or_else(nested)
}

/// The label of a point in the words of a tag: `8MB+` is `8mb_plus`.
fn label(point: &Point) -> Option<String> {
    let value = point.attribute.as_ref()?.value.as_ref()?;
    let text = match &value.list {
        None => words_of(value),
        Some(list) => {
            let by_key = |key: &&'static str| list.attributes.iter().find(|attribute| attribute.key == **key);
            let best = LABELS.iter().find_map(by_key).or(list.attributes.first())?;
            words_of(best.value.as_ref()?)
        }
    };
    words(&text?)
}

/// Converts a text to the words of a tag.
pub(super) fn words(text: &str) -> Option<String> {
    let text = text.replace('+', " plus ").replace('%', " percent ").to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    Some(words.join("_").chars().take(64).collect()).filter(|label: &String| !label.is_empty())
}

fn words_of(value: &AttributeValue) -> Option<String> {
    value.text.clone().or_else(|| value.int.map(|int| int.to_string()))
}
