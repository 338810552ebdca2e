//! Converts one sample of Apple silicon to metrics. It is independent of macOS.

use crate::Out;
use shared::catalog::{MetricDef, apple, cpu, gpu, power};

/// A kind of core, or the GPU, over the sampling interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cluster {
    /// Mean frequency, MHz; 0 while it sleeps.
    pub megahertz: f64,
    /// Active residency weighted by frequency over its maximum, 0 to 1.
    pub ratio: f64,
}

/// One sample. Values that the machine does not have are absent; powers are in watts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AppleReport {
    /// The slowest kind of core.
    pub efficiency: Option<Cluster>,
    /// The fastest kind of core.
    pub performance: Option<Cluster>,
    pub gpu: Option<Cluster>,
    pub cpu_power: Option<f64>,
    pub gpu_power: Option<f64>,
    pub ane_power: Option<f64>,
    /// Power of the whole machine; 0 when it cannot be read.
    pub system_power: Option<f64>,
    /// Mean of the sensors, degrees Celsius.
    pub cpu_temp: Option<f64>,
    pub gpu_temp: Option<f64>,
    /// Bytes; memory and GPU memory are one. The memory collector reports memory in use.
    pub memory_used: Option<f64>,
    pub memory_total: Option<f64>,
}

impl AppleReport {
    /// Puts the plausible values. The GPU is `gpu.{i}`, and is left out if it has no number.
    pub fn put(&self, i: Option<u32>, out: &mut Out) {
        put_cluster(out, (&apple::ECPU_PERCENT, &apple::ECPU_FREQUENCY), self.efficiency);
        put_cluster(out, (&apple::PCPU_PERCENT, &apple::PCPU_FREQUENCY), self.performance);
        if let Some(i) = i {
            out.put_some(&gpu::UTILIZATION, i, self.gpu.and_then(|cluster| percent(cluster.ratio)));
            out.put_some(&gpu::FREQUENCY, i, self.gpu.and_then(|cluster| awake(cluster.megahertz)));
            out.put_some(&gpu::POWER_WATTS, i, watts(self.gpu_power));
            out.put_some(&gpu::TEMP, i, degrees(self.gpu_temp));
        }
        out.put_some(&power::CPU, (), watts(self.cpu_power));
        out.put_some(&apple::ANE_POWER, (), watts(self.ane_power));
        out.put_some(&power::SYSTEM, (), watts(self.system_power).filter(|watts| *watts > 0.0));
        out.put_some(&cpu::TEMPERATURE, (), degrees(self.cpu_temp));
        let used = self.memory_used.zip(self.memory_total).filter(|(_, total)| *total > 0.0);
        let share = used.and_then(|(used, total)| percent(used / total));
        out.put_rounded(&apple::MEMORY_PERCENT, (), share);
    }
}

fn put_cluster(out: &mut Out, rows: (&'static MetricDef, &'static MetricDef), cluster: Option<Cluster>) {
    if let Some(cluster) = cluster {
        out.put_some(rows.0, (), percent(cluster.ratio));
        out.put_some(rows.1, (), awake(cluster.megahertz));
    }
}

fn percent(ratio: f64) -> Option<f64> {
    // Residencies and their interval are read in sequence, so a busy cluster can be slightly above 1.
    (0.0..=1.05).contains(&ratio).then(|| 100.0 * ratio.min(1.0))
}

/// A frequency of 0 means that the cluster was asleep the whole time.
fn awake(megahertz: f64) -> Option<f64> {
    (megahertz > 0.0 && megahertz < 10_000.0).then_some(megahertz)
}

fn watts(value: Option<f64>) -> Option<f64> {
    value.filter(|watts| (0.0..=2000.0).contains(watts))
}

/// Absent sensors report 0 or less, and broken ones far more than a chip survives.
fn degrees(value: Option<f64>) -> Option<f64> {
    value.filter(|degrees| *degrees > 0.0 && *degrees <= 150.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings;
    use serde_json::Value;
    use shared::catalog::memory;

    /// A sample from the JSON printed by the same library's tool, in the layout of 0.6 and 0.7 or of 0.8.
    fn report(json: &Value) -> AppleReport {
        let number = |place: &str| json.pointer(place).and_then(Value::as_f64);
        let cluster = |name: &str| {
            let old = number(&format!("/{name}_usage/0")).zip(number(&format!("/{name}_usage/1")));
            let new = || number(&format!("/{name}_freq_mhz")).zip(number(&format!("/{name}_scaled_ratio")));
            old.or_else(new).map(|(megahertz, ratio)| Cluster { megahertz, ratio })
        };
        AppleReport {
            efficiency: cluster("ecpu"),
            performance: cluster("pcpu"),
            gpu: cluster("gpu"),
            cpu_power: number("/cpu_power"),
            gpu_power: number("/gpu_power"),
            ane_power: number("/ane_power"),
            system_power: number("/sys_power"),
            cpu_temp: number("/temp/cpu_temp_avg"),
            gpu_temp: number("/temp/gpu_temp_avg"),
            memory_used: number("/memory/ram_usage"),
            memory_total: number("/memory/ram_total"),
        }
    }

    fn present(json: &Value) -> Vec<(String, f64)> {
        recordings::present(|out| report(json).put(Some(0), out))
    }

    #[test]
    fn recordings_yield_their_lists() {
        for (file, list) in [
            ("macmon-pipe_v0.6-0.7_m-series.jsonl", "apple_macmon-pipe_v0.6-0.7"),
            ("macmon-pipe_v0.8_README.json", "apple_macmon-pipe_v0.8"),
        ] {
            let text = recordings::text(&format!("apple/{file}"));
            let json: Value = serde_json::from_str(&text).unwrap();
            let mut read = present(&json);
            // Memory in use and swap come from the memory collector on this system, too.
            let mut out = Out::default();
            out.begin(std::time::Duration::ZERO);
            let bytes = |key: &str| json["memory"][key].as_f64().unwrap();
            let memory = crate::host::portable::memory::Bytes {
                total: bytes("ram_total"),
                used: bytes("ram_usage"),
                swap_total: bytes("swap_total"),
                swap_used: bytes("swap_usage"),
            };
            memory.put(&mut out);
            let theirs = [&memory::USED, &memory::SWAP_USED, &memory::SWAP_PERCENT].map(|row| row.tag.to_string());
            read.extend(out.present().into_iter().filter(|(tag, _)| theirs.contains(tag)));
            recordings::check(list, &read);
            altered(&json);
        }
    }

    const OURS: &str = r#"{"ecpu_usage": [1100, 0.25], "pcpu_freq_mhz": 3200, "pcpu_scaled_ratio": 0.5,
        "gpu_usage": [0, 0.0], "cpu_power": 3.5, "gpu_power": 0.0, "sys_power": 0.0,
        "temp": {"cpu_temp_avg": 0.0, "gpu_temp_avg": 41.5}, "memory": {"ram_total": 4096, "ram_usage": 1024}}"#;

    #[test]
    fn what_sleeps_or_is_not_there_is_absent() {
        let json: Value = serde_json::from_str(OURS).unwrap();
        let wanted: [(&MetricDef, f64); 8] = [
            (&apple::ECPU_FREQUENCY, 1100.0),
            (&apple::ECPU_PERCENT, 25.0),
            (&apple::PCPU_FREQUENCY, 3200.0),
            (&apple::PCPU_PERCENT, 50.0),
            (&power::CPU, 3.5),
            (&gpu::UTILIZATION, 0.0),
            (&gpu::POWER_WATTS, 0.0),
            (&gpu::TEMP, 41.5),
        ];
        let mut wanted: Vec<_> = wanted.iter().map(|(row, value)| (row.tag_of("0"), *value)).collect();
        wanted.push((apple::MEMORY_PERCENT.tag.into(), 25.0));
        wanted.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(present(&json), wanted);
        altered(&json);
    }

    /// Checks that a number that is removed or impossible removes its own tags and adds none.
    fn altered(json: &Value) {
        let whole = present(json);
        let object = json.as_object().unwrap();
        let inner = |(key, value): (&String, &Value)| match value {
            Value::Object(map) => map.keys().map(|k| format!("/{key}/{k}")).collect(),
            Value::Array(list) => (0..list.len()).map(|i| format!("/{key}/{i}")).collect(),
            _ => vec![format!("/{key}")],
        };
        for leaf in object.iter().flat_map(inner) {
            for other in [Value::Null, Value::from("N/A"), Value::from(-1e12), Value::from(1e12)] {
                let mut json = json.clone();
                *json.pointer_mut(&leaf).unwrap() = other;
                let read = present(&json);
                let same = |reading| whole.contains(reading) || leaf.contains("/memory/");
                assert!(read.iter().all(same), "{leaf}");
            }
        }
    }
}
