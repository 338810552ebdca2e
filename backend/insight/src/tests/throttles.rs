//! Throttled GPUs, and GPUs that are only hot or capped.

use super::trace::{Does, OFF, START, Sheet, WORKS, check, findings_of, one, put, rules};
use shared::catalog::{gpu, gpu_amd, gpu_profile};
use shared::finding::Severity;

fn with(gpus: &'static [u32], span: std::ops::Range<i64>, does: Does) -> impl Fn(u32, i64) -> Does {
    move |gpu, t| match t {
        ..60 => OFF,
        t if gpus.contains(&gpu) && span.contains(&t) => does,
        _ => WORKS,
    }
}

const HOT: Does = Does { clock: 1300.0, temp: 88.0, bits: 32.0, ..WORKS };

#[test]
fn heat_is_told_with_temperature_and_clock() {
    for interval in [100, 1000, 5000, 60_000] {
        let all = findings_of(1800, interval, |t| Some(one(8, t, with(&[5], 600..1200, HOT))));
        assert_eq!(rules(&all), ["throttle.heat"], "{interval}");
        check(&all[0]);
        assert_eq!((all[0].severity, all[0].subject[0].gpus.as_slice()), (Severity::Warning, &[5][..]));
        assert!((all[0].since - START - 600).abs() <= 1.max(interval / 1000), "{}", all[0].since - START);
        let until = all[0].until.expect("it has ended") - START;
        assert!((1200..1500).contains(&until), "{until} at {interval}");
    }
    let all = findings_of(900, 1000, |t| Some(one(8, t, with(&[5], 600..900, Does { clock: 900.0, ..HOT }))));
    assert_eq!(all[0].severity, Severity::Critical);
    assert!(all[0].sentence.contains("88 °C, "), "{}", all[0].sentence);
}

#[test]
fn faults_of_a_divided_board_are_found_on_the_board() {
    // AMD's partitions (CPX) have a utilization of their own; power, heat, clocks and links are the board's.
    let divided = |change: &dyn Fn(i64, &mut Sheet)| {
        findings_of(1200, 1000, |t| {
            let mut sheet = one(8, t, with(&[5], 600..1200, WORKS));
            for gpu in 0..8 {
                for part in 0..8 {
                    sheet.set(&gpu::UTILIZATION, format!("{gpu}.xcp.{part}"), if t < 60 { 0.0 } else { 99.0 });
                }
                sheet.set(&gpu_amd::XGMI_ACTIVE, gpu, 7.0);
            }
            if t >= 600 {
                change(t, &mut sheet);
            }
            Some(sheet)
        })
    };
    assert_eq!(rules(&divided(&|_, _| {})), [""; 0]);
    let hot = divided(&|t, sheet| put(sheet, 5, t, HOT));
    let lanes = divided(&|_, sheet| {
        sheet.set(&gpu_profile::PCIE_WIDTH, 5, 8.0);
    });
    let links = divided(&|_, sheet| {
        sheet.set(&gpu_amd::XGMI_ACTIVE, 5, 6.0);
    });
    for (all, rule) in [(hot, "throttle.heat"), (lanes, "slow_link.pcie"), (links, "slow_link.nvlink")] {
        assert_eq!(rules(&all), [rule]);
        check(&all[0]);
        assert_eq!(all[0].subject[0].gpus, [5], "{rule}");
    }
}

#[test]
fn hot_and_capped_is_not_held_back() {
    for (bits, temp) in [(0.0, 88.0), (4.0, 70.0), (1.0, 60.0), (2.0, 60.0), (16.0, 60.0)] {
        let does = Does { bits, temp, ..WORKS };
        let all = findings_of(1200, 1000, |t| Some(one(8, t, with(&[5], 600..1200, does))));
        assert_eq!(rules(&all), [""; 0], "{bits} {temp}");
    }
    // A short peak.
    let all = findings_of(900, 1000, |t| Some(one(8, t, with(&[5], 600..610, HOT))));
    assert_eq!(rules(&all), [""; 0]);
}

#[test]
fn the_brake_and_a_limit_that_fell_are_told() {
    let brake = Does { bits: 128.0, clock: 1400.0, ..WORKS };
    let all = findings_of(1200, 1000, |t| Some(one(8, t, with(&[2], 600..900, brake))));
    assert_eq!(rules(&all), ["throttle.power"]);
    check(&all[0]);
    assert!(all[0].until.is_some());
    // AMD's PROCHOT is the slowdown alone.
    let prochot = Does { bits: 8.0, ..brake };
    let all = findings_of(1200, 1000, |t| Some(one(8, t, with(&[2], 600..900, prochot))));
    assert_eq!(rules(&all), ["throttle.power"]);
    assert!(all[0].sentence.starts_with("GPU 2's hardware slowdown has been active"), "{}", all[0].sentence);
    assert_eq!(all[0].evidence[0].words, "the hardware slowdown was active for half of 30 s");
    let cut = Does { limit: 450.0, bits: 4.0, clock: 1300.0, ..WORKS };
    let all = findings_of(1200, 1000, |t| Some(one(8, t, with(&[2], 600..900, cut))));
    assert_eq!(rules(&all), ["throttle.power"]);
    check(&all[0]);
    assert!(
        all[0].sentence.starts_with("GPU 2 has a power limit of 450 W since {since}, 700 W before"),
        "{}",
        all[0].sentence
    );
    // The limit is lower and does not bind.
    let loose = Does { limit: 650.0, ..WORKS };
    let all = findings_of(1200, 1000, |t| Some(one(8, t, with(&[2], 600..900, loose))));
    assert_eq!(rules(&all), [""; 0]);
    // All share it.
    let all = findings_of(1200, 1000, |t| Some(one(8, t, with(&[0, 1, 2, 3, 4, 5, 6, 7], 600..900, cut))));
    assert_eq!(rules(&all), [""; 0]);
}

#[test]
fn limits_that_are_set_one_after_the_other_are_a_cap_of_all() {
    let does = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        _ if t < 600 + i64::from(gpu) => Does { bits: 4.0, ..WORKS },
        _ => Does { bits: 4.0, limit: 500.0, clock: 1500.0, ..WORKS },
    };
    let all = findings_of(1200, 1000, |t| Some(one(8, t, does)));
    assert_eq!(rules(&all), [""; 0]);
}
