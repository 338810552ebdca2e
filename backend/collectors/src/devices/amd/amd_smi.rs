//! `amd-smi metric --json`: a list of GPUs up to ROCm 6, the same below `gpu_data` from 7 on. `amd-smi monitor --json`
//! has the same values under flat names.

use super::accelerator::{AcceleratorReading, BlockErrors};
use super::answer::{AmdForm, AmdGpu};
use super::json::{self, number, with_unit};
use crate::devices::gpu_reading::GpuReading;
use serde_json::Value;

/// Command lines of the tool.
pub(super) static FORMS: [AmdForm; 1] = [AmdForm { args: &["metric", "--json"], document: json::document }];

const GIGATRANSFERS: &[(&str, f64)] = &[("GT/s", 1.0)];
const PERCENT: &[(&str, f64)] = &[("%", 1.0)];
const WATTS: &[(&str, f64)] = &[("W", 1.0), ("mW", 1e-3)];
const CELSIUS: &[(&str, f64)] = &[("C", 1.0), ("\u{b0}C", 1.0)];
const MEGAHERTZ: &[(&str, f64)] = &[("MHz", 1.0), ("GHz", 1e3)];
const JOULES: &[(&str, f64)] = &[("J", 1.0)];
// The tool writes MB and means MiB.
const BYTES: &[(&str, f64)] = &[("B", 1.0), ("KB", 1024.0), ("MB", 1_048_576.0), ("GB", 1_073_741_824.0)];

/// Every GPU of a document.
pub(super) fn gpus(document: &Value) -> Vec<AmdGpu> {
    let list = document.get("gpu_data").unwrap_or(document).as_array();
    let gpus = list.into_iter().flatten();
    gpus.filter_map(|gpu| {
        let index = gpu.get("gpu")?.as_u64()?;
        let number = u32::try_from(index).ok()?;
        let (reading, more) = (reading(gpu), more(gpu));
        Some(AmdGpu { number, identity: format!("amd-smi {number}"), reading, more })
    })
    .collect()
}

fn reading(gpu: &Value) -> GpuReading {
    // The first of several places that has a number.
    let first = |places: &[&str], units: &[(&str, f64)]| {
        places.iter().find_map(|place| gpu.pointer(place).and_then(|value| with_unit(value, units)))
    };
    let count = |place: &str| gpu.pointer(place).and_then(number);
    let memory = first(&["/temperature/mem", "/memory_temperature"], CELSIUS).filter(|degrees| *degrees != 0.0);
    let hottest = || {
        let places = ["/temperature/hotspot", "/hotspot_temperature", "/temperature/edge"];
        first(&places, CELSIUS)
    };
    GpuReading {
        utilization: first(&["/usage/gfx_activity", "/gfx"], PERCENT),
        activity: first(&["/usage/umc_activity", "/mem"], PERCENT),
        memory_used: first(&["/mem_usage/used_vram", "/vram_used"], BYTES),
        memory_total: first(&["/mem_usage/total_vram", "/vram_total"], BYTES),
        power: first(&["/power/socket_power", "/power_usage"], WATTS),
        // Cards without an energy counter print 0.0; a running card has used some energy.
        energy: first(&["/energy/total_energy_consumption"], JOULES).filter(|joules| *joules > 0.0),
        temp: memory.or_else(hottest),
        shader_clock: first(&["/clock/gfx_0/clk", "/gfx_clock"], MEGAHERTZ),
        memory_clock: first(&["/clock/mem_0/clk", "/mem_clock"], MEGAHERTZ),
        fan_percent: first(&["/fan/usage"], PERCENT),
        corrected: count("/ecc/total_correctable_count"),
        uncorrected: count("/ecc/total_uncorrectable_count"),
        ..GpuReading::default()
    }
}

/// Causes in the order of the shares, under the names of ROCm 6.4 and later, and of 6.3.
const VIOLATION_PLACES: [[&str; 2]; 5] = [
    ["/throttle/ppt_violation_activity", "/throttle/ppt_violation_percent"],
    ["/throttle/socket_thermal_violation_activity", "/throttle/socket_thermal_violation_percent"],
    ["/throttle/hbm_thermal_violation_activity", "/throttle/hbm_thermal_violation_percent"],
    ["/throttle/vr_thermal_violation_activity", "/throttle/vr_thermal_violation_percent"],
    ["/throttle/prochot_violation_activity", "/throttle/prochot_violation_percent"],
];

/// Values of an accelerator. The tool prints the bandwidth of PCIe in a unit that its own versions disagree about, so
/// it is not read.
fn more(gpu: &Value) -> AcceleratorReading {
    let value = |place: &str, units: &[(&str, f64)]| gpu.pointer(place).and_then(|value| with_unit(value, units));
    let count = |place: &str| gpu.pointer(place).and_then(number);
    AcceleratorReading {
        held: VIOLATION_PLACES.map(|places| places.iter().find_map(|place| value(place, PERCENT))),
        pcie_width: count("/pcie/width").filter(|lanes| *lanes > 0.0),
        pcie_speed: value("/pcie/speed", GIGATRANSFERS).filter(|speed| *speed > 0.0),
        pcie_replays: count("/pcie/replay_count"),
        pcie_recoveries: count("/pcie/l0_to_recovery_count"),
        partitions: partitions(gpu),
        blocks: blocks(gpu),
        ..AcceleratorReading::default()
    }
}

/// Utilization of each compute die, by partition: lists named `xcp_0` to `xcp_7`. A GPU without such lists has none.
fn partitions(gpu: &Value) -> Vec<Vec<f64>> {
    let list = |n: usize| gpu.pointer(&format!("/usage/gfx_busy_inst/xcp_{n}"))?.as_array();
    let die = |die: &Value| with_unit(die, PERCENT).filter(|busy| (0.0..=100.0).contains(busy));
    (0..8).map_while(list).map(|dies| dies.iter().filter_map(die).collect()).collect()
}

fn blocks(gpu: &Value) -> Vec<BlockErrors> {
    let blocks = gpu.get("ecc_blocks").and_then(Value::as_object);
    let of = |(name, counts): (&String, &Value)| {
        let block = name.to_ascii_lowercase();
        let count = |name: &str| counts.get(name).and_then(number);
        let known = block.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        known.then(|| BlockErrors {
            block,
            corrected: count("correctable_count"),
            uncorrected: count("uncorrectable_count"),
            deferred: count("deferred_count"),
        })
    };
    blocks.into_iter().flatten().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tool::tests::{altered, present};
    use super::*;
    use crate::recordings;

    const RECORDINGS: &[&str] = &[
        "metric-usage_mi300x-dpx_rocm7.0.2_cut",
        "metric-usage_w7700_rocm6",
        "metric_rdna4-x2_rocm7",
        "monitor_radeon_15760MB",
    ];

    #[test]
    #[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
    fn with_recordings_their_lists_are_read_also_cut_and_altered() {
        for name in RECORDINGS {
            let text = recordings::text(&format!("amd/amd-smi-{name}.json"));
            let whole = present(gpus, text.as_bytes());
            // The lists follow W&B's names, which have no dies and no partitions.
            let (parts, listed): (Vec<_>, Vec<_>) =
                whole.iter().cloned().partition(|(tag, _)| [".xcp.", ".xcc."].iter().any(|part| tag.contains(part)));
            assert_eq!(parts.len(), if name.contains("dpx") { 10 } else { 0 }, "{name}: two partitions of four dies");
            recordings::check(&format!("amd_amd-smi-{name}"), &listed);
            altered(gpus, text.as_bytes(), &whole);
        }
    }

    #[test]
    fn a_throttled_accelerator_with_partitions_is_read() {
        let name = "metric_mi300x-dpx_throttled_CONSTRUCTED";
        let text = recordings::text(&format!("amd/amd-smi-{name}.json"));
        let whole = present(gpus, text.as_bytes());
        recordings::check(&format!("amd_amd-smi-{name}"), &whole);
    }

    const OURS: &str = r#"{"gpu_data": [{"gpu": 2,
  "usage": {"gfx_activity": {"value": 55, "unit": "%"}, "umc_activity": "N/A"},
  "power": {"socket_power": {"value": 300, "unit": "W"}},
  "energy": {"total_energy_consumption": {"value": 1234.5, "unit": "J"}},
  "clock": {"gfx_0": {"clk": {"value": [1, 2], "unit": "MHz"}}, "mem_0": {"clk": {"value": 900, "unit": "MHz"}}},
  "temperature": {"edge": {"value": 40, "unit": "C"}, "hotspot": "N/A", "mem": {"value": 0, "unit": "C"}},
  "ecc": {"total_correctable_count": 3, "total_uncorrectable_count": "N/A"},
  "mem_usage": {"total_vram": {"value": 400, "unit": "MB"}, "used_vram": {"value": 100, "unit": "MB"}}}]}
"#;

    #[test]
    fn a_document_of_ours_is_read() {
        let tags = present(gpus, OURS.as_bytes());
        let tags: Vec<(&str, f64)> = tags.iter().map(|(tag, value)| (tag.as_str(), *value)).collect();
        assert_eq!(
            tags,
            [
                ("gpu.2.correctedMemoryErrors", 3.0),
                ("gpu.2.energyJoules", 1234.5),
                ("gpu.2.gpu", 55.0),
                ("gpu.2.memoryAllocated", 25.0),
                ("gpu.2.memoryAllocatedBytes", 104_857_600.0),
                ("gpu.2.memoryClock", 900.0),
                ("gpu.2.memoryTotalBytes", 419_430_400.0),
                ("gpu.2.powerWatts", 300.0),
                ("gpu.2.temp", 40.0),
            ]
        );
        altered(gpus, OURS.as_bytes(), &present(gpus, OURS.as_bytes()));
    }
}
