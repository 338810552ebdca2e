//! `rocm-smi --json` of ROCm 3 to 7: one object per card, all values as text. The names changed between releases.

use super::accelerator::AcceleratorReading;
use super::answer::{AmdForm, AmdGpu};
use super::json::{self, number};
use super::rocm_text;
use crate::devices::gpu_reading::GpuReading;
use serde_json::{Map, Value};

type Card = Map<String, Value>;

/// The requested values. `-a` leaves out the memory, and its topology search grows with the square of the card count.
macro_rules! asked {
    ($($form:literal)?) => {
        &[
            "--showuse",
            "--showmemuse",
            "--showmeminfo",
            "vram",
            "--showpower",
            "--showmaxpower",
            "--showtemp",
            "--showclocks",
            "--showfan",
            "--showbus",
            "--showmemoverdrive",
            $($form)?
        ]
    };
}

/// Output forms, best first.
pub(super) static FORMS: [AmdForm; 3] = [
    AmdForm { args: asked!("--json"), document: json::document },
    AmdForm { args: asked!("--csv"), document: |text| rocm_text::table(&String::from_utf8_lossy(text)) },
    AmdForm { args: asked!(), document: |text| rocm_text::lines(&String::from_utf8_lossy(text)) },
];

/// Every card of a document.
pub(super) fn gpus(document: &Value) -> Vec<AmdGpu> {
    let cards = document.as_object().into_iter().flatten();
    cards
        .filter_map(|(name, card)| {
            let number = name.strip_prefix("card")?.parse().ok()?;
            let card = card.as_object()?;
            let address = card.get("PCI Bus").and_then(Value::as_str).filter(|text| text.contains(':'));
            let identity = address.map_or_else(|| format!("rocm-smi {name}"), str::to_lowercase);
            Some(AmdGpu { number, identity, reading: reading(card), more: AcceleratorReading::default() })
        })
        .collect()
}

fn reading(card: &Card) -> GpuReading {
    let first = |keys: &[&str]| keys.iter().find_map(|key| card.get(*key).and_then(number));
    // From 6.0 on, accelerators and processors have another name for power. 7 may print both, one of them `N/A`.
    let power = first(&["Average Graphics Package Power (W)", "Current Socket Graphics Package Power (W)"]);
    // The first die reports the power limit of the package, so the second die's is left out.
    let limit = power.and_then(|_| first(&["Max Graphics Package Power (W)"]));
    let temps = ["memory", "junction", "edge"].map(|sensor| format!("Temperature (Sensor {sensor}) (C)"));
    let memory = first(&[&temps[0]]).filter(|degrees| *degrees != 0.0);
    GpuReading {
        utilization: first(&["GPU use (%)"]),
        // Until 6.1.1 the second name meant the same: the share of time, not of memory.
        activity: first(&["GPU Memory Read/Write Activity (%)", "GPU memory use (%)"]),
        overdrive: first(&["GPU Memory OverDrive value (%)"]),
        memory_percent: first(&["GPU Memory Allocated (VRAM%)"]),
        memory_used: first(&["VRAM Total Used Memory (B)"]),
        memory_total: first(&["VRAM Total Memory (B)"]),
        power,
        power_limit: limit,
        temp: memory.or_else(|| first(&[&temps[1], &temps[2]])),
        shader_clock: clock(card, "sclk clock speed:"),
        memory_clock: clock(card, "mclk clock speed:"),
        fan_percent: first(&["Fan speed (%)"]),
        ..GpuReading::default()
    }
}

/// A clock in MHz: `(300Mhz)`.
fn clock(card: &Card, key: &str) -> Option<f64> {
    let text = card.get(key)?.as_str()?;
    text.strip_prefix('(')?.strip_suffix("Mhz)")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tool::tests::{altered, present};
    use super::*;
    use crate::recordings;

    const RECORDINGS: &[&str] = &[
        "mi100-x4_rocm6.0.2",
        "mi100-x6_rocm5.7.1",
        "mi210_rocm5.x",
        "mi250_rocm5_abridged",
        "mi250_rocm6_abridged",
        "mi300x-x4_rocm6.0_CONVERTED",
        "mi50-vega20_old",
        "rx6700xt_rocm4.3.0",
        "rx6700xt_rocm5.7.1",
        "rx6700xt_rocm6.0.2",
        "rx6700xt_rocm6.1.2",
        "vega10-xt_old",
    ];

    const WITHHELD: &[&str] = &["radeon780m_rocm6.2.4_cut", "rx7900xtx_rocm6.x_oneline"];

    #[test]
    fn recordings_yield_their_lists_also_cut_and_altered() {
        yield_their_lists(RECORDINGS);
    }

    #[test]
    #[ignore = "reads recordings that are not published; WATCHGLASS_RECORDINGS names their folder"]
    fn with_recordings_their_lists_are_read_also_cut_and_altered() {
        yield_their_lists(WITHHELD);
    }

    fn yield_their_lists(names: &[&str]) {
        for name in names {
            let text = recordings::text(&format!("amd/rocm-smi_{name}.json"));
            let whole = present(gpus, text.as_bytes());
            recordings::check(&format!("amd_rocm-smi_{name}"), &whole);
            altered(gpus, text.as_bytes(), &whole);
        }
    }

    const OURS: &str = r#"WARNING: low-power state
{"card1": {"PCI Bus": "0000:1E:00.0", "GPU use (%)": "40", "GPU memory use (%)": "7", "GPU Memory OverDrive value (%)": "5",
  "VRAM Total Memory (B)": "409600", "VRAM Total Used Memory (B)": "102400",
  "Temperature (Sensor edge) (C)": "30.0", "Temperature (Sensor memory) (C)": "0.0",
  "Current Socket Graphics Package Power (W)": "50.0", "Max Graphics Package Power (W)": "200.0",
  "sclk clock speed:": "(1700Mhz)", "mclk clock speed:": "(N/A)", "Fan speed (%)": "31"},
 "card2": {"GPU use (%)": "N/A", "Average Graphics Package Power (W)": "N/A (Secondary die)",
  "Max Graphics Package Power (W)": "200.0"},
 "system": {"PID1": "python, 2, 0, 0, unknown", "Driver version": "6.2"}}
"#;

    #[test]
    fn a_document_of_ours_is_read() {
        let document = super::super::json::document(OURS.as_bytes()).unwrap();
        let gpus_read = gpus(&document);
        assert_eq!(
            gpus_read.iter().map(|gpu| gpu.identity.as_str()).collect::<Vec<_>>(),
            ["0000:1e:00.0", "rocm-smi card2"]
        );
        let tags = present(gpus, OURS.as_bytes());
        let tags: Vec<(&str, f64)> = tags.iter().map(|(tag, value)| (tag.as_str(), *value)).collect();
        assert_eq!(
            tags,
            [
                ("gpu.1.enforcedPowerLimitWatts", 200.0),
                ("gpu.1.fanSpeed", 31.0),
                ("gpu.1.gpu", 40.0),
                ("gpu.1.memoryAllocated", 25.0),
                ("gpu.1.memoryAllocatedBytes", 102_400.0),
                ("gpu.1.memoryOverDrive", 5.0),
                ("gpu.1.memoryReadWriteActivity", 7.0),
                ("gpu.1.memoryTotalBytes", 409_600.0),
                ("gpu.1.powerPercent", 25.0),
                ("gpu.1.powerWatts", 50.0),
                ("gpu.1.smClock", 1700.0),
                ("gpu.1.temp", 30.0),
            ]
        );
        altered(gpus, OURS.as_bytes(), &present(gpus, OURS.as_bytes()));
    }
}
