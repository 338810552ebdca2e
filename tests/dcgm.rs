//! Findings about machines that are seen through DCGM's exporter alone: its pages, as its default counters fill them,
//! through the collector into the rules. No driver, no processes and nothing of the machine itself is read.

use insight::{Insight, Settings};
use shared::catalog::Metric;
use shared::finding::{Finding, Severity};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Number of GPUs of the machine.
const GPUS: u32 = 8;
/// Start of a test, seconds since the Unix epoch: a multiple of every interval.
const START: i64 = 1_800_000_000;

/// Activity of a GPU at a second, from which its counters are derived.
#[derive(Clone, Copy)]
struct Activity {
    /// Share of the time in work, and in a kernel that waits; the rest is idle.
    work: f64,
    spin: f64,
    /// Clock of the cores, MHz, and °C.
    clock: f64,
    celsius: f64,
    /// Memory in use, MiB of 81,559.
    used: f64,
    last_xid: u32,
    lost_rows: u32,
}

const WORKS: Activity =
    Activity { work: 0.95, spin: 0.05, clock: 1755.0, celsius: 66.0, used: 61_000.0, last_xid: 0, lost_rows: 0 };
const WAITS: Activity = Activity { work: 0.0, spin: 1.0, clock: 1980.0, ..WORKS };
const IDLE_GPU: Activity = Activity { work: 0.0, spin: 0.0, clock: 1980.0, ..WORKS };
const FREE: Activity = Activity { work: 0.0, spin: 0.0, clock: 345.0, celsius: 33.0, used: 4.0, ..WORKS };

/// A number between -1 and 1 that looks random, the same for the same second, GPU and purpose.
fn noise(second: i64, gpu: u32, purpose: u64) -> f64 {
    let mut bits = (second as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ u64::from(gpu + 1).wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
        ^ (purpose + 1).wrapping_mul(0x1656_67B1_9E37_79F9);
    for _ in 0..3 {
        bits ^= bits >> 29;
        bits = bits.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits ^= bits >> 32;
    }
    (bits % 20_001) as f64 / 10_000.0 - 1.0
}

/// Lines of a GPU, as the exporter prints its default counters under their old names.
fn print_gpu(page: &mut String, gpu: u32, second: i64, does: Activity) {
    let Activity { work, spin, clock, celsius, used, last_xid, lost_rows } = does;
    let shake = |purpose| noise(second, gpu, purpose);
    let watts = 72.0 + work * 520.0 * clock / 1755.0 + spin * 60.0 + 4.0 * shake(1);
    let labels = format!(
        "gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",pci_bus_id=\"00000000:{gpu:02X}:00.0\",device=\"nvidia{gpu}\",\
         modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"node-a\""
    );
    for (field, value) in [
        ("DEV_SM_CLOCK", clock),
        ("DEV_MEM_CLOCK", 2619.0),
        ("DEV_MEMORY_TEMP", celsius + 8.0),
        ("DEV_GPU_TEMP", celsius),
        ("DEV_POWER_USAGE", watts),
        ("DEV_TOTAL_ENERGY_CONSUMPTION", 500_000.0 * second as f64),
        ("DEV_PCIE_REPLAY_COUNTER", 0.0),
        ("DEV_GPU_UTIL", (100.0 * (work + spin)).round().min(100.0)),
        ("DEV_MEM_COPY_UTIL", (45.0 * work + shake(2)).max(0.0).round()),
        ("DEV_ENC_UTIL", 0.0),
        ("DEV_DEC_UTIL", 0.0),
        ("DEV_XID_ERRORS", f64::from(last_xid)),
        ("DEV_FB_FREE", 80_989.0 - used),
        ("DEV_FB_USED", used),
        ("DEV_FB_RESERVED", 570.0),
        ("DEV_UNCORRECTABLE_REMAPPED_ROWS", f64::from(lost_rows)),
        ("DEV_CORRECTABLE_REMAPPED_ROWS", 0.0),
        ("DEV_ROW_REMAP_FAILURE", 0.0),
        ("DEV_NVLINK_BANDWIDTH_TOTAL", (180_000.0 * work * (1.0 + 0.03 * shake(4))).round()),
        ("DEV_VGPU_LICENSE_STATUS", 0.0),
        ("PROF_GR_ENGINE_ACTIVE", (work + spin).min(1.0)),
        ("PROF_PIPE_TENSOR_ACTIVE", (0.48 * work + 0.005 * shake(3)).max(0.0)),
        ("PROF_DRAM_ACTIVE", 0.5 * work),
        ("PROF_PCIE_TX_BYTES", (2e9 * work * (1.0 + 0.03 * shake(5))).round()),
        ("PROF_PCIE_RX_BYTES", (3e9 * work * (1.0 + 0.03 * shake(6))).round()),
    ] {
        writeln!(page, "DCGM_FI_{field}{{{labels}}} {value}").expect("text");
    }
}

/// The page at a second; a GPU without activity is not on it.
fn page(second: i64, does: impl Fn(u32, i64) -> Option<Activity>) -> String {
    let mut page = String::new();
    for gpu in 0..GPUS {
        if let Some(does) = does(gpu, second) {
            print_gpu(&mut page, gpu, second, does);
        }
    }
    page
}

/// Findings about so many seconds of pages, each once, in its last state. The page is fetched every `scrape` seconds; the
/// exporter reads the GPUs every `refresh` seconds.
fn findings_of(
    seconds: i64,
    (scrape, refresh): (i64, i64),
    does: impl Fn(u32, i64) -> Option<Activity>,
) -> Vec<Finding> {
    let mut insight = Insight::new(Settings::default());
    insight.source(0, "node-a", scrape * 1000);
    let mut read = collectors::openmetrics::reader("dcgm");
    let (mut out, mut told) = (collectors::Out::default(), Vec::new());
    for second in (0..seconds).step_by(scrape as usize) {
        out.begin(Duration::from_secs(second as u64));
        let text = page(second / refresh * refresh, &does);
        assert_eq!(read(&text, false, &mut out), Some(0), "every sample of the page is read");
        for (slot, def, instance) in out.news() {
            insight.series(0, slot as u32, &Metric::from(def), &instance);
        }
        let samples = out.values().iter().enumerate().filter(|(_, value)| !value.is_nan());
        insight.tick(0, (START + second) * 1000, samples.map(|(slot, value)| (slot as u32, *value)));
        insight.judge((START + second + 1) * 1000, &mut told);
    }
    let mut all: BTreeMap<String, Finding> = BTreeMap::new();
    told.into_iter().for_each(|finding| drop(all.insert(finding.id.clone(), finding)));
    let mut all: Vec<Finding> = all.into_values().collect();
    all.sort_by(|a, b| a.since.cmp(&b.since).then(a.rule.cmp(&b.rule)));
    all
}

/// Checks that there is this finding and no other, about this GPU, from this second on, and returns it.
#[track_caller]
fn only(all: &[Finding], rule: &str, gpus: &[u32], since: i64) -> Finding {
    let rules: Vec<&str> = all.iter().map(|finding| finding.rule.as_str()).collect();
    assert_eq!(rules, [rule], "{all:#?}");
    let found = &all[0];
    assert_eq!(found.subject[0].gpus, gpus, "{found:#?}");
    assert!((found.since - START - since).abs() <= 90, "since {}: {found:#?}", found.since - START);
    assert!(!found.evidence.is_empty() && !found.next.is_empty(), "{found:#?}");
    found.clone()
}

/// Intervals of scrapes and of the exporter: every second, and as they come with a cluster.
const INTERVALS: [(i64, i64); 2] = [(1, 1), (15, 30)];

#[test]
fn a_calm_page_has_no_finding() {
    // A job begins, pauses for a checkpoint, goes on, and ends; its memory is released.
    let does = |_: u32, second: i64| {
        Some(match second {
            ..60 => FREE,
            1200..1230 => IDLE_GPU,
            2400.. => FREE,
            _ => WORKS,
        })
    };
    for intervals in INTERVALS {
        let all = findings_of(4200, intervals, does);
        assert!(all.is_empty(), "{intervals:?}: {all:#?}");
    }
}

#[test]
fn a_hot_gpu_is_throttled() {
    let hot = |gpu: u32, second: i64| {
        Some(match second {
            ..60 => FREE,
            900.. if gpu == 6 => Activity { clock: 1050.0, celsius: 91.0, ..WORKS },
            _ => WORKS,
        })
    };
    for intervals in INTERVALS {
        let found = only(&findings_of(1500, intervals, hot), "throttle.heat", &[6], 900);
        assert!(found.severity >= Severity::Warning && found.sentence.contains("91 °C"), "{found:#?}");
    }
}

#[test]
fn gpus_that_wait_in_a_kernel_hang_and_the_one_that_does_nothing_is_named() {
    for intervals in INTERVALS {
        let all = findings_of(1800, intervals, |_, second| {
            Some(match second {
                ..60 => FREE,
                900.. => WAITS,
                _ => WORKS,
            })
        });
        only(&all, "hang.spin", &[0, 1, 2, 3, 4, 5, 6, 7], 900);
        let all = findings_of(1800, intervals, |gpu, second| {
            Some(match second {
                ..60 => FREE,
                900.. if gpu == 3 => IDLE_GPU,
                900.. => WAITS,
                _ => WORKS,
            })
        });
        only(&all, "hang.odd", &[3], 900);
    }
}

#[test]
fn a_slower_gpu_is_a_straggler() {
    let slow = |gpu: u32, second: i64| {
        Some(match second {
            ..60 => FREE,
            1500.. if gpu == 5 => Activity { clock: 1316.0, ..WORKS },
            1500.. => Activity { work: 0.7125, spin: 0.2875, ..WORKS },
            _ => WORKS,
        })
    };
    for intervals in INTERVALS {
        only(&findings_of(2700, intervals, slow), "straggler.slow", &[5], 1500);
    }
}

#[test]
fn a_gpu_that_is_no_longer_on_the_page_is_lost_and_errors_are_told() {
    type Change = fn(i64, Activity) -> Option<Activity>;
    let changes: [(Change, &str); 2] =
        [(|_, _| None, "lost_gpu"), (|_, does| Some(Activity { last_xid: 119, ..does }), "xid")];
    for intervals in INTERVALS {
        for (change, rule) in changes {
            let all = findings_of(1500, intervals, |gpu, second| {
                let does = if second < 60 { FREE } else { WORKS };
                if gpu == 2 && second >= 900 { change(second, does) } else { Some(does) }
            });
            only(&all, rule, &[2], 900);
        }
    }
}
