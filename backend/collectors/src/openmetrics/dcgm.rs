//! Pages of DCGM's exporter: mapping of its fields to GPU metrics and units, and its sentinel values.

use super::key::Labels;
use shared::catalog::{MetricDef, gpu, gpu_profile as profile};
use shared::unit::Unit;

const MIB: f64 = (1u64 << 20) as f64;
const PERCENT: f64 = 100.0;

/// Field after `DCGM_FI_`, its metric, and the factor to the metric's unit.
const FIELDS: &[(&str, &MetricDef, f64)] = &[
    ("DEV_GPU_UTIL", &gpu::UTILIZATION, 1.0),
    ("DEV_MEM_COPY_UTIL", &gpu::MEMORY_ACTIVITY, 1.0),
    ("DEV_ENC_UTIL", &gpu::ENCODER, 1.0),
    ("DEV_DEC_UTIL", &gpu::DECODER, 1.0),
    ("DEV_GPU_TEMP", &gpu::TEMP, 1.0),
    ("DEV_GPU_MAX_OP_TEMP", &gpu::MAX_OP_TEMP, 1.0),
    ("DEV_MEMORY_TEMP", &gpu::MEMORY_TEMP, 1.0),
    ("DEV_MEM_MAX_OP_TEMP", &gpu::MEMORY_MAX_OP_TEMP, 1.0),
    ("DEV_POWER_USAGE", &gpu::POWER_WATTS, 1.0),
    ("DEV_TOTAL_ENERGY_CONSUMPTION", &gpu::ENERGY_JOULES, 0.001),
    ("DEV_SM_CLOCK", &gpu::SM_CLOCK, 1.0),
    ("DEV_MEM_CLOCK", &gpu::MEMORY_CLOCK, 1.0),
    ("DEV_FB_USED", &gpu::MEMORY_USED, MIB),
    ("DEV_FB_TOTAL", &gpu::MEMORY_TOTAL_BYTES, MIB),
    ("DEV_FB_FREE", &gpu::MEMORY_FREE, MIB),
    ("PROF_GR_ENGINE_ACTIVE", &profile::ENGINE_ACTIVE, PERCENT),
    ("PROF_SM_ACTIVE", &profile::SM_ACTIVE, PERCENT),
    ("PROF_SM_OCCUPANCY", &profile::SM_OCCUPANCY, PERCENT),
    ("PROF_DRAM_ACTIVE", &profile::DRAM_ACTIVE, PERCENT),
    ("PROF_PIPE_TENSOR_ACTIVE", &profile::TENSOR_ACTIVE, PERCENT),
    ("PROF_PIPE_TENSOR_HMMA_ACTIVE", &profile::HMMA_ACTIVE, PERCENT),
    ("PROF_PIPE_FP64_ACTIVE", &profile::FP64_ACTIVE, PERCENT),
    ("PROF_PIPE_FP32_ACTIVE", &profile::FP32_ACTIVE, PERCENT),
    ("PROF_PIPE_FP16_ACTIVE", &profile::FP16_ACTIVE, PERCENT),
    ("PROF_PCIE_TX_BYTES", &profile::PCIE_TX, 1.0),
    ("PROF_PCIE_RX_BYTES", &profile::PCIE_RX, 1.0),
    ("PROF_NVLINK_TX_BYTES", &profile::NVLINK_TX, 1.0),
    ("PROF_NVLINK_RX_BYTES", &profile::NVLINK_RX, 1.0),
];

/// The metrics that a page of GPUs can fill.
pub(crate) static ROWS: &[&MetricDef] = &{
    let mut rows = [FIELDS[0].1; FIELDS.len()];
    let mut i = 0;
    while i < FIELDS.len() {
        rows[i] = FIELDS[i].1;
        i += 1;
    }
    rows
};

const PREFIX: &str = "DCGM_FI_";

/// Whether the sample is one of DCGM's, so that sentinels have to be dropped.
pub(super) fn is_dcgm(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// DCGM prints large numbers for "blank", "not found", "not supported" and "not permitted": four for each number type.
pub(super) fn is_sentinel(value: f64) -> bool {
    let four = |first: f64| (first..=first + 3.0).contains(&value);
    value >= 9_223_372_036_854_775_792.0 || four(2_147_483_632.0) || four(140_737_488_355_328.0)
}

/// A sample that is a value of a GPU.
#[derive(Clone, Debug)]
pub(super) struct DcgmReading {
    pub def: &'static MetricDef,
    /// Factor for the printed value.
    pub factor: f64,
    /// Permanent identity of the GPU.
    pub identity: String,
    /// Its index as DCGM counts.
    pub index: u32,
    /// The machine that it sits in, if the page names it.
    pub host: Option<String>,
    /// The MIG device, if the value is not the whole GPU's.
    pub mig: Option<u32>,
    /// Whether it names a pod. Pods that share a GPU have a sample each.
    pub is_of_pod: bool,
}

/// Labels of an exporter for the pod that uses a GPU, original and as renamed by Prometheus.
const POD_LABELS: [&str; 5] = ["pod", "exported_pod", "pod_name", "container", "exported_container"];

/// The values of one metric of one GPU in a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneReading {
    value: f64,
    is_of_pod: bool,
    /// Whether pods have different values; then none is the device's.
    differs: bool,
}

impl OneReading {
    pub(super) fn new(value: f64, is_of_pod: bool) -> Self {
        OneReading { value, is_of_pod, differs: false }
    }

    /// Adds another sample of the same metric. A sample without a pod is the device's own.
    pub(super) fn add(&mut self, value: f64, is_of_pod: bool) {
        match (self.is_of_pod, is_of_pod) {
            (true, false) => *self = OneReading::new(value, false),
            (false, true) => {}
            _ => self.differs |= self.value != value,
        }
    }

    /// The device's value, if it is known.
    pub(super) fn value(self) -> Option<f64> {
        (!self.differs).then_some(self.value)
    }
}

impl DcgmReading {
    /// Parses a sample; none for other samples.
    pub(super) fn from_sample(endpoint: &str, name: &str, labels: &Labels<'_>) -> Option<DcgmReading> {
        let field = name.strip_prefix(PREFIX)?;
        let (_, def, factor) = *FIELDS.iter().find(|(known, ..)| *known == field)?;
        let label = |name: &str| labels.iter().find(|(l, v)| *l == name && !v.is_empty()).map(|(_, v)| v.as_str());
        let mig = match label("GPU_I_ID") {
            Some(id) => Some(id.parse().ok()?),
            None => None,
        };
        let index = label("gpu").or_else(|| label("device")?.strip_prefix("nvidia"))?.parse().ok()?;
        // One page may cover several nodes, each of which numbers its GPUs from 0.
        let host = label("Hostname").or_else(|| label("instance")).map(str::to_string);
        let node = host.as_ref().map_or(String::new(), |host| format!(", {host}"));
        let identity = label("UUID").map_or_else(|| format!("{endpoint}{node}, GPU {index}"), str::to_string);
        let is_of_pod = POD_LABELS.iter().any(|name| label(name).is_some());
        Some(DcgmReading { def, factor, identity, index, host, mig, is_of_pod })
    }

    /// The instance in the tag, for a GPU with this number.
    pub(super) fn instance(&self, number: u32) -> String {
        self.mig.map_or_else(|| number.to_string(), |mig| format!("{number}.mig.{mig}"))
    }

    /// The value in the metric's unit; none if it is impossible.
    pub(super) fn value(&self, printed: f64) -> Option<f64> {
        let value = printed * self.factor;
        let possible = match self.def.unit {
            Unit::Percent => 0.0..=100.0,
            Unit::Celsius => -40.0..=150.0,
            Unit::Watts => 0.0..=2_000.0,
            _ => 0.0..=f64::MAX,
        };
        possible.contains(&value).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels<'a>(pairs: &[(&'a str, &str)]) -> Labels<'a> {
        pairs.iter().map(|(l, v)| ((*l).into(), v.to_string())).collect()
    }

    #[test]
    fn a_gpu_is_known_by_its_uuid_and_counted_by_its_label_or_its_device() {
        let of =
            |pairs: &[(&'static str, &str)]| DcgmReading::from_sample("dcgm", "DCGM_FI_DEV_GPU_TEMP", &labels(pairs));
        let both = of(&[("gpu", "3"), ("UUID", "GPU-1"), ("device", "nvidia9")]).expect("a GPU");
        assert_eq!((both.identity.as_str(), both.index), ("GPU-1", 3));
        assert_eq!(of(&[("device", "nvidia2")]).expect("a GPU").identity, "dcgm, GPU 2");
        assert!(of(&[("UUID", "GPU-1")]).is_none());
        assert!(of(&[("gpu", "0"), ("UUID", "GPU-1"), ("GPU_I_ID", "x")]).is_none());
        let mig = |id: &str| of(&[("gpu", "0"), ("GPU_I_ID", id)]).expect("a GPU").instance(4);
        assert_eq!([mig("7"), mig("")], ["4.mig.7", "4"]);
    }

    #[test]
    fn values_are_converted_once_and_impossible_ones_are_none() {
        let value =
            |name: &str, v: f64| DcgmReading::from_sample("d", name, &labels(&[("gpu", "0")])).expect(name).value(v);
        assert_eq!(value("DCGM_FI_DEV_FB_USED", 2.0), Some(2_097_152.0));
        assert_eq!(value("DCGM_FI_PROF_SM_ACTIVE", 0.5), Some(50.0));
        assert_eq!(value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 128_996_013.0), Some(128_996.013));
        assert_eq!(value("DCGM_FI_DEV_GPU_UTIL", 101.0), None);
        assert_eq!(value("DCGM_FI_DEV_GPU_TEMP", -41.0), None);
        assert_eq!(value("DCGM_FI_DEV_POWER_USAGE", f64::NAN), None);
    }

    #[test]
    fn sentinels_are_known_in_every_width() {
        for v in [
            "9223372036854775794",
            "9223372036854775792",
            "2147483632",
            "2147483635",
            "140737488355328",
            "140737488355331",
            "1e300",
        ] {
            assert!(is_sentinel(v.parse().expect("a number")), "{v}");
        }
        for v in [0.0, 2_147_483_631.0, 2_147_483_636.0, 140_737_488_355_327.0, 128_996_013.0] {
            assert!(!is_sentinel(v), "{v}");
        }
    }
}
