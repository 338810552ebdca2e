//! `amd-smi metric --json`: a list of GPUs up to ROCm 6, the same below `gpu_data` from 7 on. `amd-smi monitor --json`
//! has the same values under flat names.

use super::answer::{AmdForm, AmdGpu};
use super::json::{self, number, with_unit};
use crate::devices::gpu_reading::GpuReading;
use serde_json::Value;

/// Command lines of the tool.
pub(super) static FORMS: [AmdForm; 1] = [AmdForm { args: &["metric", "--json"], document: json::document }];

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
        Some(AmdGpu { number, identity: format!("amd-smi {number}"), reading: reading(gpu) })
    })
    .collect()
}

fn reading(gpu: &Value) -> GpuReading {
    // The first of several places that has a number. A partitioned GPU has lists in some places; those are skipped.
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
            recordings::check(&format!("amd_amd-smi-{name}"), &whole);
            altered(gpus, text.as_bytes(), &whole);
        }
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
