//! Lost GPUs, and broken memory.

use super::trace::{Does, OFF, SPINS, START, Sheet, Trace, WORKS, check, findings_of, last, one, rules};
use shared::catalog::{gpu, gpu_health, gpu_parts, gpu_profile, monitor};
use shared::finding::{Finding, Severity};
use shared::xid::{self, Action};

fn works(t: i64) -> Sheet {
    one(8, t, |_, t| if t < 60 { OFF } else { WORKS })
}

#[test]
fn a_gpu_that_no_longer_answers_is_lost() {
    let all = findings_of(700, 1000, |t| {
        let mut sheet = one(8, t, |_, t| {
            if t < 60 {
                OFF
            } else if t < 400 {
                WORKS
            } else {
                SPINS
            }
        });
        if t >= 400 {
            sheet.drop_gpu(3);
        }
        Some(sheet)
    });
    let mut found = rules(&all);
    found.sort_unstable();
    assert_eq!(found, ["hang.odd", "lost_gpu"]);
    let lost = all.iter().find(|f| f.rule == "lost_gpu").expect("it is lost");
    let hang = all.iter().find(|f| f.rule == "hang.odd").expect("others wait");
    check(lost);
    check(hang);
    assert_eq!((lost.since - START, lost.subject[0].gpus.as_slice()), (400, &[3][..]));
    assert!(lost.told - lost.since <= 5);
    assert_eq!(hang.because.as_deref(), Some(lost.id.as_str()));
    assert!(lost.sentence.ends_with("; 7 other GPUs have been waiting since"), "{}", lost.sentence);
}

#[test]
fn it_ends_when_it_is_back() {
    let all = findings_of(700, 1000, |t| {
        let mut sheet = works(t);
        if (300..400).contains(&t) {
            sheet.drop_gpu(3);
        }
        Some(sheet)
    });
    assert_eq!(rules(&all), ["lost_gpu"]);
    assert_eq!(all[0].until.map(|until| until - START), Some(410));
}

#[test]
fn a_silent_collector_and_a_silent_machine_lose_nothing() {
    // Two samples of one are missing.
    let all = findings_of(500, 1000, |t| {
        let mut sheet = works(t);
        if (300..302).contains(&t) {
            sheet.drop_gpu(3);
        }
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
    // All of them are away.
    let all = findings_of(800, 1000, |t| {
        let mut sheet = works(t);
        if (300..500).contains(&t) {
            (0..8).for_each(|gpu| {
                sheet.drop_gpu(gpu);
            });
        }
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
    // The machine is silent, and one GPU is not read after its start.
    let all = findings_of(800, 1000, |t| {
        let mut sheet = works(t);
        if t >= 300 {
            sheet.drop_gpu(3);
        }
        (!(300..400).contains(&t)).then_some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
}

#[test]
fn xid_79_is_a_loss_at_once_and_programs_errors_are_notes() {
    let of = |number: f64| {
        findings_of(1500, 1000, move |t| {
            let mut sheet = works(t);
            if t >= 300 {
                sheet.set(&gpu_parts::XID_ERRORS, 2, 1.0).set(&gpu_parts::LAST_XID, 2, number);
                if number == 79.0 {
                    sheet.drop(&gpu::UTILIZATION);
                    (0..8).filter(|gpu| *gpu != 2).for_each(|gpu| {
                        sheet.set(&gpu::UTILIZATION, gpu, 99.0);
                    });
                }
            }
            Some(sheet)
        })
    };
    let lost = of(79.0);
    assert_eq!(rules(&lost), ["lost_gpu"]);
    assert_eq!((lost[0].told - START, lost[0].sentence.as_str()), (300, "GPU 2 fell off the bus at {since} (XID 79)"));
    let program = of(31.0);
    assert_eq!(rules(&program), ["xid"]);
    assert_eq!(program[0].severity, Severity::Note);
    assert_eq!(program[0].until.map(|until| until - START), Some(900));
    check(&program[0]);
    assert_eq!(rules(&of(48.0)), ["ecc.uncorrected"]);
}

/// Findings about GPU 2, whose errors come at these seconds, with the action that was read from the message.
fn errors(all: &'static [(i64, u32, Option<u8>)]) -> Vec<Finding> {
    findings_of(1100, 1000, move |t| {
        let mut sheet = works(t);
        let past: Vec<_> = all.iter().filter(|(at, ..)| *at <= t).collect();
        sheet.set(&gpu_parts::XID_ERRORS, 2, past.iter().filter(|(_, code, _)| *code != 0).count() as f64);
        if let Some((_, code, _)) = past.iter().rev().find(|(_, code, _)| *code != 0) {
            sheet.set(&gpu_parts::LAST_XID, 2, f64::from(*code));
        }
        if let Some((_, _, Some(action))) = past.last() {
            sheet.set(&gpu_parts::LAST_XID_ACTION, 2, f64::from(*action));
        }
        Some(sheet)
    })
}

#[test]
fn no_error_is_graver_than_its_class_in_the_catalog() {
    let of = |code: u32| {
        let all = findings_of(500, 1000, move |t| {
            let mut sheet = works(t);
            if t >= 300 {
                sheet.set(&gpu_parts::XID_ERRORS, 2, 1.0).set(&gpu_parts::LAST_XID, 2, f64::from(code));
            }
            Some(sheet)
        });
        assert_eq!(all.len(), 1, "{code}: {all:?}");
        check(&all[0]);
        (all[0].rule.clone(), all[0].severity, all[0].next.clone())
    };
    for code in [8, 13, 14, 45, 46, 48, 54, 62, 63, 64, 74, 78, 79, 92, 94, 95, 109, 110, 119, 120, 136, 140, 142, 143]
        .into_iter()
        .chain(144..=172)
    {
        let (rule, severity, next) = of(code);
        let action = xid::by_code(code).expect("a code of the catalog").action();
        assert!(severity <= action.severity(), "{code}: {severity:?}");
        assert_eq!(next, action.next(), "{code}");
        let expected = match code {
            79 => "lost_gpu",
            48 | 64 | 94 | 95 | 140 | 171 | 172 => "ecc.uncorrected",
            _ => "xid",
        };
        assert_eq!(rule, expected, "{code}");
    }
    assert_eq!((of(63).1, of(92).1, of(94).1), (Severity::Note, Severity::Note, Severity::Warning));
    assert_eq!((of(119).1, of(149).1, of(171).1), (Severity::Critical, Severity::Warning, Severity::Critical));
    let (rule, severity, next) = of(999);
    assert_eq!((rule.as_str(), severity, next.as_str()), ("xid", Severity::Note, crate::next::UNKNOWN_XID));
}

/// Findings where the driver requires these actions of GPU 2 from these seconds on, and it reports an XID at one.
fn required(actions: &'static [(i64, f64)], xid: Option<(i64, f64)>) -> Vec<Finding> {
    findings_of(1500, 1000, move |t| {
        let mut sheet = works(t);
        // It is read every 10 s.
        if let Some((_, action)) = actions.iter().rev().find(|(from, _)| t % 10 == 0 && *from <= t) {
            sheet.set(&gpu_health::RECOVERY_ACTION, 2, *action);
        }
        if let Some((_, code)) = xid.filter(|(from, _)| *from <= t) {
            sheet.set(&gpu_parts::XID_ERRORS, 2, 1.0).set(&gpu_parts::LAST_XID, 2, code);
        }
        Some(sheet)
    })
}

#[test]
fn a_gpu_whose_driver_requires_a_reset_is_told_until_it_no_longer_does() {
    let all = required(&[(0, 0.0), (305, 4.0), (400, 2.0), (500, 0.0)], None);
    assert_eq!(rules(&all), ["recovery"]);
    check(&all[0]);
    assert_eq!((all[0].told - START, all[0].since - START), (310, 310));
    assert_eq!(all[0].until.map(|until| until - START), Some(500));
    assert_eq!((all[0].severity, all[0].subject[0].gpus.as_slice()), (Severity::Critical, &[2][..]));
    let words = "GPU 2 has needed a restart of the machine since {since}: its driver requires it";
    assert_eq!((all[0].sentence.as_str(), all[0].next.as_str()), (words, Action::RestartMachine.next()));
    assert_eq!(rules(&required(&[(0, 0.0), (300, 9.0)], None)), [""; 0], "no action has this number");
    // NVML of 2026 has more actions.
    for (actions, severity, need) in [
        (&[(0, 0.0), (300, 5.0)], Severity::Warning, "a recovery of its IMEX domain"),
        (&[(0, 0.0), (300, 6.0)], Severity::Critical, "a reset of its PCIe bus"),
    ] {
        let all = required(actions, None);
        assert_eq!((rules(&all), all[0].severity), (vec!["recovery"], severity));
        assert!(all[0].sentence.contains(need), "{}", all[0].sentence);
    }
}

#[test]
fn the_fault_behind_a_required_action_gets_its_next_step() {
    let all = required(&[(0, 0.0), (310, 2.0), (700, 0.0)], Some((305, 31.0)));
    assert_eq!(rules(&all), ["xid"]);
    assert_eq!(all[0].next, Action::RestartMachine.next());
    // The fault is no longer new, and the action is still required.
    let all = required(&[(0, 0.0), (310, 1.0), (1200, 0.0)], Some((305, 31.0)));
    let last = all.iter().find(|f| f.rule == "recovery").expect("a finding of its own");
    assert_eq!(rules(&all), ["xid", "recovery"]);
    assert_eq!((last.since - START, last.next.as_str()), (910, Action::ResetGpu.next()));
}

#[test]
fn a_gpu_outside_its_fabric_is_told_until_it_has_joined() {
    let of = |state: fn(i64) -> (f64, f64)| {
        findings_of(900, 1000, move |t| {
            let mut sheet = works(t);
            if t % 10 == 0 {
                let (state, health) = state(t);
                sheet.set(&gpu_health::FABRIC_STATE, 2, state).set(&gpu_health::FABRIC_HEALTH, 2, health);
            }
            Some(sheet)
        })
    };
    let all = of(|t| if (300..600).contains(&t) { (4.0, 1.0) } else { (3.0, 1.0) });
    assert_eq!(rules(&all), ["fabric"]);
    check(&all[0]);
    assert_eq!((all[0].told - START, all[0].until.map(|until| until - START)), (300, Some(600)));
    assert_eq!(all[0].severity, Severity::Critical);
    assert_eq!(rules(&of(|t| if t < 100 { (2.0, 1.0) } else { (3.0, 1.0) })), [""; 0], "it registers");
    let limited = of(|t| (3.0, if t >= 300 { 3.0 } else { 1.0 }));
    assert_eq!((rules(&limited), limited[0].severity), (vec!["fabric"], Severity::Warning));
}

/// A machine of which only DCGM's exporter tells: its last XID is a state without a count.
#[test]
fn faults_are_found_where_dcgm_alone_tells_of_them() {
    let of = |change: fn(i64, &mut Sheet)| {
        findings_of(700, 1000, move |t| {
            let mut sheet = works(t);
            sheet.drop(&gpu::MEMORY_ALLOCATED_BYTES).drop(&gpu_parts::XID_ERRORS).drop(&gpu::POWER_LIMIT_WATTS);
            (0..8).for_each(|gpu| {
                sheet.set(&gpu_parts::LAST_XID, gpu, 0.0).set(&gpu::UNCORRECTED_ERRORS, gpu, 0.0);
            });
            if t >= 300 {
                change(t, &mut sheet);
            }
            Some(sheet)
        })
    };
    let xid = of(|_, sheet| {
        sheet.set(&gpu_parts::LAST_XID, 2, 119.0);
    });
    assert_eq!((rules(&xid), xid[0].told - START), (vec!["xid"], 300));
    check(&xid[0]);
    let lost = of(|_, sheet| {
        sheet.drop_gpu(2);
    });
    assert_eq!(rules(&lost), ["lost_gpu"]);
    let ecc = of(|_, sheet| {
        sheet.set(&gpu::UNCORRECTED_ERRORS, 2, 1.0);
    });
    assert_eq!(rules(&ecc), ["ecc.uncorrected"]);
}

#[test]
fn a_graver_error_replaces_the_open_one_and_a_lesser_one_changes_nothing() {
    let all = errors(&[(300, 13, None), (310, 119, None), (320, 31, None)]);
    let of = |code: &str| all.iter().find(|f| f.sentence.contains(code)).unwrap_or_else(|| panic!("{code}: {all:?}"));
    assert_eq!((all.len(), of("XID 13").severity, of("XID 119").severity), (2, Severity::Note, Severity::Critical));
    assert_eq!(of("XID 13").until.map(|until| until - START), Some(310));
    assert_eq!(of("XID 119").until.map(|until| until - START), Some(920), "the last error prolongs it");
}

#[test]
fn the_action_of_a_message_counts_also_when_it_comes_later() {
    // The event has the number alone; two seconds later the kernel's log tells a reset.
    let all = errors(&[(300, 149, Some(4)), (302, 0, Some(11))]);
    assert_eq!((all.len(), all[0].severity), (1, Severity::Critical));
    assert_eq!(all[0].next, Action::ResetGpu.next());
    let harmless = errors(&[(300, 149, Some(4)), (302, 0, Some(0))]);
    assert_eq!((harmless.len(), harmless[0].severity), (1, Severity::Note));
}

#[test]
fn a_recovery_action_tells_what_to_do_about_the_error_before_it() {
    let all = errors(&[(300, 48, Some(11)), (301, 45, Some(1)), (302, 154, Some(13))]);
    assert_eq!(rules(&all), ["ecc.uncorrected"]);
    assert_eq!(all[0].next, Action::RestartMachine.next());
    let alone = errors(&[(300, 154, Some(12))]);
    assert_eq!((rules(&alone), alone[0].severity), (vec!["xid"], Severity::Critical));
    assert_eq!(alone[0].next, Action::DrainAndReset.next());
}

#[test]
fn lost_data_is_as_grave_as_its_xid() {
    let of = |code: f64, later: i64| {
        findings_of(900, 1000, move |t| {
            let mut sheet = works(t);
            sheet.set(&gpu::UNCORRECTED_ERRORS, 2, if t < 300 { 0.0 } else { 1.0 });
            if t >= 300 + later {
                sheet.set(&gpu_parts::XID_ERRORS, 2, 1.0).set(&gpu_parts::LAST_XID, 2, code);
            }
            Some(sheet)
        })
    };
    for (code, later, severity) in
        [(94.0, 0, Severity::Warning), (94.0, 2, Severity::Warning), (95.0, 2, Severity::Critical)]
    {
        let all = of(code, later);
        assert_eq!((rules(&all), all[0].severity), (vec!["ecc.uncorrected"], severity), "{code} after {later} s");
        assert!(all[0].sentence.contains("found 1 uncorrectable memory error"), "{}", all[0].sentence);
    }
}

#[test]
fn a_gpu_with_few_values_is_lost_although_its_errors_are_still_counted() {
    let all = findings_of(500, 1000, |t| {
        let mut sheet = works(t);
        sheet.0.retain(|(tag, _), _| !tag.starts_with("gpu.{i}"));
        for gpu in 0..2 {
            sheet.set(&gpu_parts::XID_ERRORS, gpu, 0.0);
            if gpu == 0 || t < 300 {
                sheet.set(&gpu::UTILIZATION, gpu, 90.0).set(&gpu::TEMP, gpu, 60.0);
            }
        }
        Some(sheet)
    });
    assert_eq!(rules(&all), ["lost_gpu"]);
    assert_eq!(all[0].subject[0].gpus, [1]);
    assert!(all[0].told - START - 300 <= 10, "{:?}", all[0]);
}

#[test]
fn a_collectors_report_of_a_lost_gpu_counts_although_some_of_its_values_come() {
    let mut trace = Trace::new(1, 1000);
    let lost = "GPU 0: no fan speed; GPU 2 (PCI 0000:65:00.0) is lost: no response since 14:02 UTC: GPU is lost";
    let mut from = 0;
    for (until, collector, reason) in [
        (300, "nvidia", lost),
        (400, "other", "GPU 7 is fine, a packet was lost elsewhere"),
        (500, "nvidia", ""),
        (700, "other", ""),
    ] {
        trace.run(from..until, 1, |_, t| Some(works(t)));
        trace.insight.record_reason(0, (START + until) * 1000, collector, reason);
        from = until;
    }
    let all = last(&trace.told);
    assert_eq!(rules(&all), ["lost_gpu"], "{all:#?}");
    check(&all[0]);
    assert_eq!(all[0].subject[0].gpus, [2]);
    assert!(all[0].told - START - 300 <= 10, "{:?}", all[0]);
    assert!(all[0].until.is_some_and(|until| (500..=520).contains(&(until - START))), "{:?}", all[0].until);
}

#[test]
fn an_old_xid_that_is_read_again_is_not_new() {
    let all = findings_of(900, 1000, |t| {
        let mut sheet = works(t);
        sheet.set(&gpu_parts::XID_ERRORS, 2, 4.0).set(&gpu_parts::LAST_XID, 2, 79.0);
        if t % 50 == 7 {
            sheet.drop(&gpu_parts::XID_ERRORS).drop(&gpu_parts::LAST_XID);
        }
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
}

#[test]
fn uncorrectable_errors_are_told_at_once_and_a_restart_is_none() {
    let all = findings_of(1500, 1000, |t| {
        let mut sheet = works(t);
        sheet.set(&gpu::UNCORRECTED_ERRORS, 5, if t < 300 { 1.0 } else { 3.0 });
        Some(sheet)
    });
    assert_eq!(rules(&all), ["ecc.uncorrected"]);
    check(&all[0]);
    assert_eq!(all[0].sentence, "GPU 5 found 2 uncorrectable memory errors at {since}");
    assert_eq!((all[0].told - START, all[0].until.map(|until| until - START)), (300, Some(900)));
    let all = findings_of(900, 1000, |t| {
        let mut sheet = works(t);
        sheet.set(&gpu::UNCORRECTED_ERRORS, 5, if t < 300 { 7.0 } else { 3.0 });
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
}

#[test]
fn corrected_errors_are_told_by_their_rate() {
    let of = |rate: f64| {
        findings_of(2000, 1000, move |t| {
            let mut sheet = works(t);
            let errors = (rate * (t.clamp(300, 900) - 300) as f64 / 60.0).floor();
            sheet.set(&gpu::CORRECTED_ERRORS, 1, 2.0 + errors);
            Some(sheet)
        })
    };
    let many = of(140.0);
    assert_eq!(rules(&many), ["ecc.corrected"]);
    check(&many[0]);
    assert_eq!(many[0].severity, Severity::Warning);
    assert!(many[0].until.is_some_and(|until| (1495..1515).contains(&(until - START))), "{:?}", many[0].until);
    assert_eq!(rules(&of(6.0)), [""; 0], "a few");
}

/// Several faults in sequence on one machine, sampled every `interval` milliseconds.
fn one_after_the_other(interval: i64) -> Vec<Finding> {
    findings_of(2400, interval, |t| {
        let mut sheet = one(8, t, |gpu, t| match t {
            ..60 => OFF,
            900..1500 if gpu == 6 => Does { clock: 1200.0, temp: 90.0, bits: 64.0, ..WORKS },
            _ => WORKS,
        });
        if t >= 600 {
            sheet.drop_gpu(3);
            sheet.set(&gpu::UNCORRECTED_ERRORS, 5, 3.0);
        }
        if (1200..1800).contains(&t) {
            sheet.set(&gpu_profile::PCIE_WIDTH, 1, 8.0);
        }
        Some(sheet)
    })
}

#[test]
fn any_interval_gives_the_same_list() {
    for interval in [100, 1000, 60_000] {
        let all = one_after_the_other(interval);
        let mut found: Vec<_> = all
            .iter()
            .map(|f| (f.rule.as_str(), f.subject[0].gpus.clone(), f.severity, f.since - START, f.until.is_some()))
            .collect();
        found.sort_unstable();
        let expected = [
            ("ecc.uncorrected", vec![5], Severity::Critical, 600, true),
            ("lost_gpu", vec![3], Severity::Critical, 600, false),
            ("slow_link.pcie", vec![1], Severity::Warning, 1200, true),
            ("throttle.heat", vec![6], Severity::Warning, 900, true),
        ];
        assert_eq!(found, expected, "{interval}");
    }
}

#[test]
fn equal_runs_give_equal_bytes() {
    let run = || {
        let mut trace = Trace::new(2, 1000);
        trace.run(0..700, 2, |host, t| {
            let mut sheet = works(t);
            if t >= 400 && host == 1 {
                sheet.drop_gpu(3);
            }
            Some(sheet)
        });
        serde_json::to_string(&trace.told).expect("it is JSON")
    };
    let text = run();
    assert_eq!(text, run());
    assert!(text.contains("GPU 3 of node-1"), "{text}");
    let _ = last(&[]);
}

#[test]
fn a_collector_that_falls_silent_is_noted_and_one_that_never_answered_is_not() {
    let sheet = |t: i64| {
        let mut sheet = one(2, t, |_, _| OFF);
        sheet.set(&monitor::OK, "nvidia", if (600..700).contains(&t) { 0.0 } else { 1.0 });
        sheet.set(&monitor::OK, "amd", 0.0);
        // Held up for less than half a minute.
        sheet.set(&monitor::OK, "disk", if (600..625).contains(&t) { 0.0 } else { 1.0 });
        Some(sheet)
    };
    let all = findings_of(900, 1000, sheet);
    assert_eq!(rules(&all), ["collector_silent"]);
    let found = &all[0];
    check(found);
    assert_eq!((found.severity, found.device.as_deref()), (Severity::Note, Some("nvidia")));
    assert_eq!((found.since - START, found.told - START), (600, 630));
    assert!(found.until.is_some_and(|t| t - START <= 715), "{:?}", found.until);
    assert!(found.sentence.starts_with("The collector nvidia has been incomplete"), "{}", found.sentence);
}

#[test]
fn a_gpu_is_lost_also_while_one_of_its_series_still_comes() {
    let whole = works(100);
    let series: Vec<_> = whole.0.keys().filter(|(tag, gpu)| tag.starts_with("gpu.") && gpu == "3").collect();
    assert!(series.len() > 15);
    for kept in series {
        let all = findings_of(320, 1000, |t| {
            let mut sheet = one(5, t, |_, t| if t < 60 { OFF } else { WORKS });
            if t >= 300 {
                sheet.0.retain(|key, _| key.1 != "3" || key == kept || !key.0.starts_with("gpu."));
            }
            Some(sheet)
        });
        assert_eq!(rules(&all), ["lost_gpu"], "{kept:?}");
        assert_eq!((all[0].since - START, all[0].subject[0].gpus.as_slice()), (300, &[3][..]), "{kept:?}");
        check(&all[0]);
    }
    // All others lack the same: it is a collector, not a GPU.
    let all = findings_of(320, 1000, |t| {
        let mut sheet = one(5, t, |_, t| if t < 60 { OFF } else { WORKS });
        if t >= 300 {
            sheet.0.retain(|(tag, _), _| !tag.starts_with("gpu.") || *tag == "gpu.{i}.powerWatts");
        }
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
}
