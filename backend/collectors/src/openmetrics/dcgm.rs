//! Pages of DCGM's exporter: mapping of its fields to GPU metrics and units, and its sentinel values.

use super::key::Labels;
use shared::catalog::{MetricDef, gpu, gpu_health as health, gpu_parts as parts, gpu_profile as profile};
use shared::unit::Unit;
use shared::xid::Action;

const MIB: f64 = (1u64 << 20) as f64;
const KIB: f64 = (1u64 << 10) as f64;
/// DCGM divides KiB by 1000 where it prints MB of NVLinks.
const THOUSAND_KIB: f64 = 1000.0 * KIB;
const PERCENT: f64 = 100.0;

/// Field after `DCGM_FI_`, its metric, and the factor to the metric's unit. The first field of a metric that a page
/// has counts. DCGM 4.6 renamed most fields and keeps the old names; 4.7 has fields in base units beside them.
const FIELDS: &[(&str, &MetricDef, f64)] = &[
    ("DEV_GPU_UTIL_RATIO", &gpu::UTILIZATION, PERCENT),
    ("DEV_GPU_UTIL", &gpu::UTILIZATION, 1.0),
    ("DEV_MEMORY_UTIL_RATIO", &gpu::MEMORY_ACTIVITY, PERCENT),
    ("DEV_MEM_COPY_UTIL", &gpu::MEMORY_ACTIVITY, 1.0),
    ("DEV_ENC_UTIL_RATIO", &gpu::ENCODER, PERCENT),
    ("DEV_ENC_UTIL", &gpu::ENCODER, 1.0),
    ("DEV_DEC_UTIL_RATIO", &gpu::DECODER, PERCENT),
    ("DEV_DEC_UTIL", &gpu::DECODER, 1.0),
    ("DEV_GPU_TEMP_CELSIUS", &gpu::TEMP, 1.0),
    ("DEV_GPU_TEMP", &gpu::TEMP, 1.0),
    ("DEV_GPU_MAX_OP_TEMP_CELSIUS", &gpu::MAX_OP_TEMP, 1.0),
    ("DEV_GPU_MAX_OP_TEMP", &gpu::MAX_OP_TEMP, 1.0),
    ("DEV_MEMORY_TEMP_CELSIUS", &gpu::MEMORY_TEMP, 1.0),
    ("DEV_MEMORY_TEMP", &gpu::MEMORY_TEMP, 1.0),
    ("DEV_MEMORY_MAX_OP_TEMP_CELSIUS", &gpu::MEMORY_MAX_OP_TEMP, 1.0),
    ("DEV_MEM_MAX_OP_TEMP", &gpu::MEMORY_MAX_OP_TEMP, 1.0),
    ("DEV_BOARD_POWER_WATTS", &gpu::POWER_WATTS, 1.0),
    ("DEV_POWER_USAGE", &gpu::POWER_WATTS, 1.0),
    ("DEV_ENFORCED_POWER_LIMIT", &gpu::POWER_LIMIT_WATTS, 1.0),
    ("DEV_POWER_MGMT_LIMIT", &gpu::POWER_LIMIT_WATTS, 1.0),
    ("DEV_GPU_ENERGY_JOULES_TOTAL", &gpu::ENERGY_JOULES, 1.0),
    ("DEV_TOTAL_ENERGY_CONSUMPTION", &gpu::ENERGY_JOULES, 0.001),
    ("DEV_SM_CLOCK_HERTZ", &gpu::SM_CLOCK, 1e-6),
    ("DEV_SM_CLOCK", &gpu::SM_CLOCK, 1.0),
    ("DEV_MEMORY_CLOCK_HERTZ", &gpu::MEMORY_CLOCK, 1e-6),
    ("DEV_MEM_CLOCK", &gpu::MEMORY_CLOCK, 1.0),
    ("DEV_FB_USED_PERCENT", &gpu::MEMORY_ALLOCATED, PERCENT),
    ("DEV_FB_USED_BYTES", &gpu::MEMORY_USED, 1.0),
    ("DEV_FB_USED", &gpu::MEMORY_USED, MIB),
    ("DEV_FB_CAPACITY_BYTES", &gpu::MEMORY_TOTAL_BYTES, 1.0),
    ("DEV_FB_TOTAL", &gpu::MEMORY_TOTAL_BYTES, MIB),
    ("DEV_FB_FREE_BYTES", &gpu::MEMORY_FREE, 1.0),
    ("DEV_FB_FREE", &gpu::MEMORY_FREE, MIB),
    ("DEV_FB_RESERVED_BYTES", &gpu::MEMORY_RESERVED, 1.0),
    ("DEV_FB_RESERVED", &gpu::MEMORY_RESERVED, MIB),
    ("DEV_CLOCKS_EVENT_REASONS", &gpu::THROTTLE_REASONS, 1.0),
    ("DEV_CLOCK_THROTTLE_REASONS", &gpu::THROTTLE_REASONS, 1.0),
    ("DEV_ECC_SBE_VOL_DEV", &gpu::CORRECTED_ERRORS, 1.0),
    ("DEV_ECC_SBE_VOL_TOTAL", &gpu::CORRECTED_ERRORS, 1.0),
    ("DEV_ECC_DBE_VOL_DEV", &gpu::UNCORRECTED_ERRORS, 1.0),
    ("DEV_ECC_DBE_VOL_TOTAL", &gpu::UNCORRECTED_ERRORS, 1.0),
    ("DEV_XID_ERROR", &parts::LAST_XID, 1.0),
    ("DEV_XID_ERRORS", &parts::LAST_XID, 1.0),
    ("DEV_VGPU_LICENSE_STATUS", &gpu::VGPU_LICENSE, 1.0),
    ("DEV_GPU_RECOVERY_ACTION", &health::RECOVERY_ACTION, 1.0),
    ("DEV_PCIE_REPLAY_TOTAL", &health::PCIE_REPLAYS, 1.0),
    ("DEV_PCIE_REPLAY_COUNTER", &health::PCIE_REPLAYS, 1.0),
    ("DEV_ROW_REMAP_CORRECTABLE_TOTAL", &health::REMAPPED_CORRECTED, 1.0),
    ("DEV_CORRECTABLE_REMAPPED_ROWS", &health::REMAPPED_CORRECTED, 1.0),
    ("DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", &health::REMAPPED_UNCORRECTED, 1.0),
    ("DEV_UNCORRECTABLE_REMAPPED_ROWS", &health::REMAPPED_UNCORRECTED, 1.0),
    ("DEV_ROW_REMAP_PENDING", &health::REMAP_PENDING, 1.0),
    ("DEV_ROW_REMAP_FAILED", &health::REMAP_FAILED, 1.0),
    ("DEV_ROW_REMAP_FAILURE", &health::REMAP_FAILED, 1.0),
    ("PROF_GR_ENGINE_UTIL_RATIO", &profile::ENGINE_ACTIVE, PERCENT),
    ("PROF_GR_ENGINE_ACTIVE", &profile::ENGINE_ACTIVE, PERCENT),
    ("PROF_SM_UTIL_RATIO", &profile::SM_ACTIVE, PERCENT),
    ("PROF_SM_ACTIVE", &profile::SM_ACTIVE, PERCENT),
    ("PROF_SM_OCCUPANCY_RATIO", &profile::SM_OCCUPANCY, PERCENT),
    ("PROF_SM_OCCUPANCY", &profile::SM_OCCUPANCY, PERCENT),
    ("PROF_DRAM_UTIL_RATIO", &profile::DRAM_ACTIVE, PERCENT),
    ("PROF_DRAM_ACTIVE", &profile::DRAM_ACTIVE, PERCENT),
    ("PROF_TENSOR_UTIL_RATIO", &profile::TENSOR_ACTIVE, PERCENT),
    ("PROF_PIPE_TENSOR_ACTIVE", &profile::TENSOR_ACTIVE, PERCENT),
    ("PROF_PIPE_TENSOR_HMMA_ACTIVE", &profile::HMMA_ACTIVE, PERCENT),
    ("PROF_FP64_UTIL_RATIO", &profile::FP64_ACTIVE, PERCENT),
    ("PROF_PIPE_FP64_ACTIVE", &profile::FP64_ACTIVE, PERCENT),
    ("PROF_FP32_UTIL_RATIO", &profile::FP32_ACTIVE, PERCENT),
    ("PROF_PIPE_FP32_ACTIVE", &profile::FP32_ACTIVE, PERCENT),
    ("PROF_PIPE_FP16_ACTIVE", &profile::FP16_ACTIVE, PERCENT),
    ("PROF_PCIE_TX_BYTES", &profile::PCIE_TX, 1.0),
    ("DEV_PCIE_TX_THROUGHPUT", &profile::PCIE_TX, KIB),
    ("PROF_PCIE_RX_BYTES", &profile::PCIE_RX, 1.0),
    ("DEV_PCIE_RX_THROUGHPUT", &profile::PCIE_RX, KIB),
    ("PROF_NVLINK_TX_BYTES", &profile::NVLINK_TX, 1.0),
    ("PROF_NVLINK_RX_BYTES", &profile::NVLINK_RX, 1.0),
    ("DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", &profile::NVLINK_TOTAL, 1.0),
    ("DEV_NVLINK_THROUGHPUT_TOTAL", &profile::NVLINK_TOTAL, THOUSAND_KIB),
    ("DEV_NVLINK_BANDWIDTH_TOTAL", &profile::NVLINK_TOTAL, THOUSAND_KIB),
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
    /// Position of its field among those of the metric: the lowest one on a page counts.
    rank: usize,
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

/// Labels of an exporter for the pod that uses a GPU, original and as renamed by Prometheus, and for a share of a GPU that
/// several pods use in turn.
const POD_LABELS: [&str; 6] = ["pod", "exported_pod", "pod_name", "container", "exported_container", "vgpu"];

/// The values of one metric of one GPU in a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneReading {
    rank: usize,
    value: f64,
    is_of_pod: bool,
    /// Whether pods have different values; then none is the device's.
    differs: bool,
}

impl OneReading {
    pub(super) fn new(reading: &DcgmReading, value: f64) -> Self {
        OneReading { rank: reading.rank, value, is_of_pod: reading.is_of_pod, differs: false }
    }

    /// Adds another sample of the same metric. A sample without a pod is the device's own.
    pub(super) fn add(&mut self, reading: &DcgmReading, value: f64) {
        match (self.is_of_pod, reading.is_of_pod) {
            _ if reading.rank < self.rank => *self = OneReading::new(reading, value),
            _ if reading.rank > self.rank => {}
            (true, false) => *self = OneReading::new(reading, value),
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
        let rank = FIELDS.iter().position(|(known, ..)| *known == field)?;
        let (_, def, factor) = FIELDS[rank];
        let label = |name: &str| labels.iter().find(|(l, v)| *l == name && !v.is_empty()).map(|(_, v)| v.as_str());
        let mig = match label("GPU_I_ID") {
            Some(id) => Some(id.parse().ok()?),
            None => None,
        };
        let index = label("gpu").or_else(|| label("device")?.strip_prefix("nvidia"))?.parse().ok()?;
        // One page may cover several nodes, each of which numbers its GPUs from 0.
        let host = label("hostname").or_else(|| label("Hostname")).or_else(|| label("instance")).map(str::to_string);
        let node = host.as_ref().map_or(String::new(), |host| format!(", {host}"));
        let identity = label("UUID").map_or_else(|| format!("{endpoint}{node}, GPU {index}"), str::to_string);
        let is_of_pod = POD_LABELS.iter().any(|name| label(name).is_some());
        Some(DcgmReading { def, rank, factor, identity, index, host, mig, is_of_pod })
    }

    /// The instance in the tag, for a GPU with this number.
    pub(super) fn instance(&self, number: u32) -> String {
        self.mig.map_or_else(|| number.to_string(), |mig| format!("{number}.mig.{mig}"))
    }

    /// The value in the metric's unit; none if it is impossible.
    pub(super) fn value(&self, printed: f64) -> Option<f64> {
        if std::ptr::eq(self.def, &health::RECOVERY_ACTION) {
            return Some(printed).filter(|number| *number >= 0.0 && Action::of_recovery(*number as u8).is_some());
        }
        // A factor below 1 is not a number of the computer's, but its inverse is.
        let value = if self.factor < 1.0 { printed / (1.0 / self.factor).round() } else { printed * self.factor };
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
