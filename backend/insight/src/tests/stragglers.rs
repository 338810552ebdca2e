//! Members slower than the others, links below their capacity, and traces that only look like it.

use super::trace::{
    Does, GIB, OFF, SPINS, START, Sheet, Trace, WORKS, check, findings_of, last, one, put, put_host, rules,
};
use crate::{Job, Rank};
use shared::catalog::{gpu, gpu_amd, gpu_health, gpu_parts, gpu_profile, infiniband, job, network};
use shared::finding::Severity;

/// Activity of all others while one of them takes `slower` times as long: they wait for it in a kernel.
fn waits(slower: f64) -> Does {
    Does { work: 0.95 / slower, spin: 1.0 - 0.95 / slower, ..WORKS }
}

fn slow_clock(t: i64, slow: u32, share: f64) -> Sheet {
    one(8, t, |gpu, t| match t {
        ..60 => OFF,
        60..900 | 1500.. => WORKS,
        _ if gpu == slow => Does { clock: 1755.0 * share, work: 0.95, spin: 0.05, ..WORKS },
        _ => waits(1.0 / share),
    })
}

#[test]
fn a_slow_clock_is_named_however_often_it_is_sampled() {
    for (share, interval) in [(0.75, 1000), (0.9, 1000), (0.75, 100), (0.75, 10_000)] {
        let all = findings_of(2000, interval, |t| Some(slow_clock(t, 3, share)));
        assert_eq!(rules(&all), ["straggler.slow"], "{share} at {interval}");
        let found = &all[0];
        check(found);
        assert_eq!((found.subject[0].gpus.as_slice(), found.affects[0].gpus.len()), (&[3][..], 7));
        assert_eq!(found.severity, Severity::Warning);
        assert!((found.since - START - 900).abs() <= 45, "{share} at {interval}: since {}", found.since - START);
        assert!(found.told - START - 900 <= 300, "told at {}", found.told - START);
        let until = if interval > 1000 { 1950 } else { 1720 };
        assert!(found.until.is_some_and(|t| t - START < until), "{share} at {interval}: {:?}", found.until);
        assert!(found.sentence.starts_with("GPU 3 runs at "), "{}", found.sentence);
    }
}

#[test]
fn the_cause_is_that_of_the_last_minutes_whatever_the_moment_of_the_report_shows() {
    // The driver reports no reason in 9 of 60 s, as in a checkpoint; at one of these starts the report falls into them.
    for start in (0..60).step_by(9) {
        for (bits, words) in [(2.0, "its clocks are set to a lower limit"), (4.0, "no cause visible in the metrics")] {
            let all = findings_of(1200, 1000, |t| {
                let mut sheet = slow_clock(t, 3, 0.75);
                let rests = (t - start).rem_euclid(60) < 9;
                sheet.set(&gpu::THROTTLE_REASONS, 3, if t < 900 || rests { 0.0 } else { bits });
                Some(sheet)
            });
            assert_eq!(rules(&all), ["straggler.slow"], "{start}");
            assert!(all[0].sentence.ends_with(words), "{start}: {}", all[0].sentence);
        }
    }
}

#[test]
fn times_that_ranks_log_for_each_step_are_evidence_and_tell_a_cause_that_no_metric_shows() {
    let logs = |rank: u32| format!("{{rank=\"{rank}\",run=\"a\"}}");
    let rank = |gpu: u32| Rank { source: 0, pid: 4000 + gpu, gpus: vec![gpu], logs: logs(gpu) };
    // Rank 5 goes on and the others wait for it: it takes longer for each step, or for its data, or nobody logs times.
    let none = "no cause visible in the metrics";
    for (row, own, words, others) in [
        (&job::STEP_TIME, 1.3, "; its rank takes 1.2", "s per step, the others 1 s"),
        (&job::DATA_TIME, 0.4, "; its rank waits for data 3", "ms per step, the others 100 ms"),
        (&job::DATA_TIME, 0.12, none, none),
        (&job::LOSS, 9.0, none, none),
    ] {
        let mut trace = Trace::new(1, 1000);
        trace.insight.jobs(&[Job { id: "a".into(), ranks: (0..8).map(rank).collect(), ..Job::default() }]);
        trace.run(0..1500, 1, |_, t| {
            let mut sheet = one(8, t, |gpu, t| match t {
                ..60 => OFF,
                60..900 => WORKS,
                _ if gpu == 5 => WORKS,
                _ => waits(1.3),
            });
            for gpu in 0..8 {
                sheet.set(&job::STEP_TIME, logs(gpu), 1.0).set(&job::DATA_TIME, logs(gpu), 0.1);
                if gpu == 5 && t >= 900 {
                    sheet.set(row, logs(gpu), own);
                }
            }
            Some(sheet)
        });
        let all = last(&trace.told);
        assert_eq!(rules(&all), ["straggler.waits"], "{words}");
        check(&all[0]);
        // The mean of a minute is not all of the new time yet.
        let said = &all[0].sentence;
        assert!(said.contains(words) && said.ends_with(others), "{said}");
        let fact = all[0].evidence.iter().find(|fact| fact.tag == row.tag);
        assert_eq!(fact.map(|fact| fact.instance.clone()), (words != none).then(|| logs(5)), "{words}");
        assert_eq!(all[0].next.contains("data of this rank"), words.contains("waits for data"), "{}", all[0].next);
    }
}

#[test]
fn one_that_alone_goes_on_is_waited_for() {
    // Another program takes half of GPU 5: its clock and use are as ever, and all others wait.
    let does = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        60..900 => WORKS,
        _ if gpu == 5 => WORKS,
        _ => waits(1.3),
    };
    let all = findings_of(1500, 1000, |t| Some(one(8, t, does)));
    assert_eq!(rules(&all), ["straggler.waits"]);
    check(&all[0]);
    assert_eq!(all[0].subject[0].gpus, [5]);
}

#[test]
fn one_that_takes_a_little_longer_is_told_once_however_it_comes_and_goes() {
    // A tenth slower and less, all the time; and for 200 s, then not for 120 s.
    let steady = |t: i64| (900..2100).contains(&t);
    let at_times = |t: i64| (900..2100).contains(&t) && (t - 900) % 320 < 200;
    type Plan<'a> = (f64, i64, &'a dyn Fn(i64) -> bool);
    let plans: [Plan; 4] =
        [(1.08, 1000, &steady), (1.1, 500, &steady), (1.08, 10_000, &steady), (1.12, 1000, &at_times)];
    for (slower, interval, is) in plans {
        let all = findings_of(3000, interval, |t| {
            Some(one(8, t, |gpu, t| match t {
                ..60 => OFF,
                _ if is(t) && gpu != 5 => waits(slower),
                _ => WORKS,
            }))
        });
        assert_eq!(rules(&all), ["straggler.waits"], "{slower} at {interval}");
        let found = &all[0];
        check(found);
        assert_eq!((found.subject[0].gpus.as_slice(), found.affects[0].gpus.len()), (&[5][..], 7));
        assert!((found.since - START - 900).abs() <= 60, "since {}", found.since - START);
        assert!(found.told - START - 900 <= 600, "told at {}", found.told - START);
        assert!(found.until.is_some_and(|t| t - START < 2500), "{slower} at {interval}: {:?}", found.until);
        assert!(found.sentence.contains(" % more relative to theirs than usual"), "{}", found.sentence);
    }
}

#[test]
fn one_that_was_slower_from_the_start_is_a_note() {
    let uneven = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        _ if gpu == 3 => Does { clock: 1500.0, ..WORKS },
        _ => waits(1.1),
    };
    let all = findings_of(2500, 1000, |t| Some(one(8, t, uneven)));
    assert_eq!(rules(&all), ["uneven"]);
    check(&all[0]);
    assert_eq!((all[0].severity, all[0].subject[0].gpus.as_slice()), (Severity::Note, &[3][..]));
    assert!(all[0].sentence.starts_with("GPU 3 has run at 1,500 MHz since {since}"), "{}", all[0].sentence);
    // Its peers wait for it without a kernel, or are at their power limit.
    let peers = [Does { work: 0.7, spin: 0.0, ..WORKS }, Does { limit: 590.0, ..WORKS }];
    for peers in peers {
        let all = findings_of(2500, 1000, |t| {
            Some(one(8, t, |gpu, t| match t {
                ..60 => OFF,
                _ if gpu == 3 => Does { clock: 1200.0, limit: peers.limit, ..WORKS },
                _ => peers,
            }))
        });
        assert_eq!(rules(&all), ["uneven"], "{peers:?}");
    }
}

#[test]
fn one_condition_short_it_is_none() {
    // The clock is lower, and no other waits.
    let free = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        900.. if gpu == 3 => Does { clock: 1500.0, ..WORKS },
        _ => WORKS,
    };
    // All are slower alike, as under a cap.
    let all_slow = |_: u32, t: i64| match t {
        ..60 => OFF,
        900.. => Does { clock: 1400.0, bits: 4.0, ..WORKS },
        _ => WORKS,
    };
    // For less than the window.
    let short = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        900..960 if gpu == 3 => Does { clock: 1200.0, ..WORKS },
        900..960 => waits(1.4),
        _ => WORKS,
    };
    // A little slower, and not for long.
    let briefly = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        900..1000 if gpu != 3 => waits(1.1),
        _ => WORKS,
    };
    // One does a tenth more than before, and no other waits for it.
    let busier = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        900.. if gpu == 3 => WORKS,
        _ => Does { work: 0.86, spin: 0.14, ..WORKS },
    };
    // One evaluates now and then, and the others wait for it.
    let evaluates = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        _ if t % 600 > 520 && gpu == 0 => Does { work: 0.5, spin: 0.0, ..WORKS },
        _ if t % 600 > 520 => SPINS,
        _ => WORKS,
    };
    // Three of eight go on while five do less: they are of another job.
    let mixed = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        900.. if gpu < 5 => waits(1.25),
        _ => WORKS,
    };
    type Plan<'a> = (&'a str, &'a dyn Fn(u32, i64) -> Does);
    let plans: [Plan; 7] = [
        ("mixed", &mixed),
        ("free", &free),
        ("all", &all_slow),
        ("short", &short),
        ("briefly", &briefly),
        ("busier", &busier),
        ("evaluates", &evaluates),
    ];
    for (name, does) in plans {
        let all = findings_of(2500, 1000, |t| Some(one(8, t, does)));
        assert_eq!(rules(&all), [""; 0], "{name}");
    }
}

/// A job on eight GPUs, one process on each. From second 900 to 1500 process 9000 is on GPU 5, too, and the job then
/// takes `slower` times as long.
fn visited(t: i64, comes: bool, slower: f64) -> Sheet {
    let there = (900..1500).contains(&t);
    let mut sheet = one(8, t, |_, t| match t {
        ..60 => OFF,
        _ if there => waits(slower),
        _ => WORKS,
    });
    for gpu in 0..8 {
        sheet.set(&gpu_parts::PROCESS_MEMORY, format!("{gpu}.proc.{}", 4000 + gpu), 50.0 * GIB);
    }
    if comes && there {
        sheet.set(&gpu_parts::PROCESS_MEMORY, "5.proc.9000", 8.0 * GIB);
    }
    sheet
}

#[test]
fn another_program_on_a_gpu_is_named_where_the_job_does_less_since_it_came() {
    for interval in [1000, 10_000] {
        let all = findings_of(2000, interval, |t| Some(visited(t, true, 1.08)));
        assert_eq!(rules(&all), ["straggler.shared"], "{interval}");
        let found = &all[0];
        check(found);
        assert_eq!((found.subject[0].gpus.as_slice(), found.affects[0].gpus.len()), (&[5][..], 7));
        assert!((found.since - START - 900).abs() <= 10, "since {}", found.since - START);
        assert!(found.sentence.contains("process 9000") && found.sentence.contains(" % slower"), "{}", found.sentence);
        assert!(found.told - START - 900 <= 240, "told at {}", found.told - START);
        assert!(found.until.is_some_and(|t| t - START < 1700), "{:?}", found.until);
    }
    // One condition short: no loss of pace; and no arrival.
    assert_eq!(rules(&findings_of(2000, 1000, |t| Some(visited(t, true, 1.0)))), [""; 0]);
    assert_eq!(rules(&findings_of(2000, 1000, |t| Some(visited(t, false, 1.08)))), [""; 0]);
}

#[test]
fn heat_is_the_cause_of_what_it_slows() {
    let does = |gpu: u32, t: i64| match t {
        ..60 => OFF,
        60..900 => WORKS,
        _ if gpu == 3 => Does { clock: 1300.0, temp: 89.0, bits: 64.0, ..WORKS },
        _ => waits(1.35),
    };
    let all = findings_of(1400, 1000, |t| Some(one(8, t, does)));
    assert_eq!(rules(&all), ["throttle.heat", "straggler.slow"]);
    assert_eq!(all[1].because.as_deref(), Some(all[0].id.as_str()));
    assert!(all[1].sentence.ends_with("thermal throttling"), "{}", all[1].sentence);
    assert!(all[0].is_on_top() && !all[1].is_on_top());
}

#[test]
fn lost_lanes_and_a_low_generation_are_told() {
    let sheet = |t: i64, lanes: f64| {
        let mut sheet = one(8, t, |_, t| if t < 60 { OFF } else { WORKS });
        sheet.set(&gpu_profile::PCIE_WIDTH, 6, if (600..900).contains(&t) { lanes } else { 16.0 });
        sheet
    };
    let all = findings_of(1200, 1000, |t| Some(sheet(t, 8.0)));
    assert_eq!(rules(&all), ["slow_link.pcie"]);
    check(&all[0]);
    assert_eq!((all[0].since - START, all[0].sentence.as_str()), (600, "GPU 6 has 8 of 16 PCIe lanes since {since}"));
    assert!(all[0].until.is_some_and(|until| until - START < 930));
    assert_eq!(rules(&findings_of(1200, 1000, |t| Some(sheet(t, 16.0)))), [""; 0]);
    // Its generation is low under load, its peers' is not.
    let all = findings_of(1200, 1000, |t| {
        let mut sheet = sheet(t, 16.0);
        sheet.set(&gpu_profile::PCIE_GEN, 2, if t >= 600 { 3.0 } else { 5.0 });
        Some(sheet)
    });
    assert_eq!(rules(&all), ["slow_link.pcie"]);
    // All run slower: the board saves power.
    let all = findings_of(1200, 1000, |t| {
        let mut sheet = sheet(t, 16.0);
        (0..8).for_each(|gpu| {
            sheet.set(&gpu_profile::PCIE_GEN, gpu, 3.0);
        });
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
    // Lanes missing since the start are a note.
    let all = findings_of(600, 1000, |t| {
        let mut sheet = sheet(t, 16.0);
        (0..8).for_each(|gpu| {
            sheet.set(&gpu_profile::PCIE_WIDTH, gpu, 8.0);
        });
        Some(sheet)
    });
    assert_eq!(rules(&all), ["slow_link.pcie"]);
    assert_eq!((all[0].severity, all[0].subject[0].gpus.len()), (Severity::Note, 8));
}

#[test]
fn a_link_that_falls_back_is_told_by_its_traffic() {
    let sheet = |t: i64, share: f64| {
        let mut sheet = one(8, t, |_, t| if t < 60 { OFF } else { WORKS });
        if (900..1300).contains(&t) {
            sheet.set(&gpu_profile::NVLINK_TX, 6, 85e9 * share).set(&gpu_profile::NVLINK_RX, 6, 85e9 * share);
        }
        sheet
    };
    let all = findings_of(1600, 1000, |t| Some(sheet(t, 0.1)));
    assert_eq!(rules(&all), ["slow_link.nvlink"]);
    check(&all[0]);
    assert!((all[0].since - START - 900).abs() < 45, "{}", all[0].since - START);
    assert!(all[0].until.is_some());
    assert_eq!(rules(&findings_of(1600, 1000, |t| Some(sheet(t, 0.8)))), [""; 0]);
}

#[test]
fn resent_segments_matter_where_the_job_is_slower() {
    let sheet = |t: i64, slower: f64| {
        let mut sheet = one(8, t, |_, t| {
            if t < 60 {
                OFF
            } else if t < 900 {
                WORKS
            } else {
                waits(slower)
            }
        });
        let resent = (t / 7) as f64 + if t >= 900 { 300.0 * (t - 900) as f64 } else { 0.0 };
        sheet.set(&network::RETRANSMITS, "", resent);
        sheet
    };
    let all = findings_of(1200, 1000, |t| Some(sheet(t, 1.4)));
    assert_eq!(rules(&all), ["slow_link.net"]);
    check(&all[0]);
    assert!(all[0].sentence.contains("TCP segments per second"), "{}", all[0].sentence);
    assert_eq!(rules(&findings_of(1200, 1000, |t| Some(sheet(t, 1.0)))), [""; 0]);
}

#[test]
fn gpus_of_two_models_are_no_peers() {
    let all = findings_of(1500, 1000, |t| {
        let mut sheet = Sheet::default();
        for gpu in 0..4 {
            let slow = Does { clock: 1100.0, memory: 20.0, ..WORKS };
            put(
                &mut sheet,
                gpu,
                t,
                if t < 60 {
                    OFF
                } else if gpu < 2 {
                    WORKS
                } else {
                    slow
                },
            );
            if gpu >= 2 {
                sheet.set(&gpu::MEMORY_TOTAL_BYTES, gpu, 24.0 * super::trace::GIB);
            }
        }
        put_host(&mut sheet, t, 12.0, (t as f64, 0.0, 0.0));
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
}

#[test]
fn nvlinks_that_go_down_and_errors_on_them_are_told() {
    let sheet = |t: i64, up: f64, errors: f64| {
        let mut sheet = one(8, t, |_, t| if t < 60 { OFF } else { WORKS });
        if t % 30 == 0 {
            for gpu in 0..8 {
                let it = gpu == 4 && t >= 600;
                sheet.set(&gpu_health::NVLINKS_ACTIVE, gpu, if it { up } else { 12.0 });
                let grown = if it { errors * (t - 600) as f64 / 60.0 } else { 0.0 };
                sheet.set(&gpu_health::NVLINK_CRC_ERRORS, gpu, 3.0 + grown.floor());
            }
        }
        Some(sheet)
    };
    let all = findings_of(900, 1000, |t| sheet(t, 10.0, 0.0));
    assert_eq!(rules(&all), ["slow_link.nvlink"]);
    check(&all[0]);
    assert_eq!((all[0].since - START, all[0].sentence.as_str()), (600, "GPU 4 has 10 of 12 NVLinks since {since}"));
    let all = findings_of(900, 1000, |t| sheet(t, 12.0, 200.0));
    assert_eq!(rules(&all), ["slow_link.nvlink"]);
    check(&all[0]);
    assert_eq!(rules(&findings_of(900, 1000, |t| sheet(t, 12.0, 5.0))), [""; 0], "a few errors");
}

/// A machine with AMD's accelerators: their links have rows of their own.
fn accelerators(t: i64, active: f64, share: f64) -> Sheet {
    let mut sheet = one(8, t, |_, t| if t < 60 { OFF } else { WORKS });
    sheet.drop(&gpu_profile::NVLINK_TX).drop(&gpu_profile::NVLINK_RX);
    for gpu in 0..8 {
        let it = gpu == 4 && t >= 600;
        let sent = if t < 60 { 0.0 } else { 90e9 * if it { share } else { 1.0 } };
        sheet.set(&gpu_amd::XGMI_TX, gpu, sent).set(&gpu_amd::XGMI_RX, gpu, sent);
        sheet.set(&gpu_amd::XGMI_ACTIVE, gpu, if it { active } else { 7.0 });
    }
    sheet
}

#[test]
fn xgmi_links_that_go_down_and_carry_less_are_told() {
    let all = findings_of(900, 1000, |t| Some(accelerators(t, 6.0, 1.0)));
    assert_eq!(rules(&all), ["slow_link.nvlink"]);
    check(&all[0]);
    assert_eq!(all[0].sentence, "GPU 4 has 6 of 7 XGMI links since {since}");
    assert_eq!(all[0].evidence[0].tag, gpu_amd::XGMI_ACTIVE.tag);
    let all = findings_of(900, 1000, |t| Some(accelerators(t, 7.0, 0.3)));
    assert_eq!(rules(&all), ["slow_link.nvlink"]);
    assert!(all[0].sentence.starts_with("GPU 4 sends 27"), "{}", all[0].sentence);
    assert!(all[0].sentence.contains(" over XGMI since "), "{}", all[0].sentence);
}

#[test]
fn a_port_that_lost_speed_is_told() {
    let sheet = |t: i64, rate: f64| {
        let mut sheet = one(8, t, |_, t| if t < 60 { OFF } else { WORKS });
        if t % 10 == 0 {
            sheet.set(&infiniband::RATE, "mlx5_0", if (600..800).contains(&t) { rate } else { 50e9 });
            sheet.set(&infiniband::RATE, "mlx5_1", 25e9);
        }
        Some(sheet)
    };
    let all = findings_of(1000, 1000, |t| sheet(t, 12.5e9));
    assert_eq!(rules(&all), ["slow_link.port"]);
    check(&all[0]);
    assert_eq!(all[0].device.as_deref(), Some("mlx5_0"));
    assert!(all[0].until.is_some_and(|until| until - START <= 830));
    assert_eq!(rules(&findings_of(1000, 1000, |t| sheet(t, 50e9))), [""; 0]);
}

/// The number before a word in a sentence.
fn number(sentence: &str, before: &str) -> f64 {
    let head = &sentence[..sentence.find(before).unwrap_or_else(|| panic!("{before}: {sentence}"))];
    let digits: String = head.chars().rev().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
    digits.chars().rev().filter(|c| *c != ',').collect::<String>().parse().expect("a number")
}

#[test]
fn numbers_are_of_the_time_since_the_onset() {
    for (share, interval) in [(0.9, 1000), (0.75, 1000), (0.75, 5000), (0.6, 1000), (0.75, 10_000)] {
        let all = findings_of(1500, interval, |t| Some(slow_clock(t, 3, share)));
        let (found, clock) = (&all[0], 1755.0 * share);
        let said = number(&found.sentence, " MHz");
        assert!((said - clock).abs() <= 1.0, "{share} at {interval}: {}", found.sentence);
        let less = number(&found.sentence, " % slower");
        assert!((less - 100.0 * (1.0 - share)).abs() <= 1.5, "{share} at {interval}: {}", found.sentence);
        let first = &found.evidence[0];
        assert_eq!(first.tag, "gpu.{i}.smClock");
        assert!(first.value.is_some_and(|value| (value - clock).abs() <= 1.0), "{first:#?}");
    }
    for slower in [1.15, 1.3] {
        let all = findings_of(1500, 1000, |t| Some(visited(t, true, slower)));
        let less = number(&all[0].sentence, " % slower");
        assert!((less - 100.0 * (1.0 - 1.0 / slower)).abs() <= 1.5, "{slower}: {}", all[0].sentence);
    }
}

#[test]
fn resent_segments_and_what_they_cost_are_of_the_time_since_the_onset() {
    for (slower, rate) in [(1.4, 300.0), (1.2, 1000.0)] {
        let sheet = |t: i64| {
            let mut sheet = one(8, t, |_, t| match t {
                ..60 => OFF,
                60..900 => WORKS,
                _ => waits(slower),
            });
            let resent = (t / 7) as f64 + rate * (t - 900).max(0) as f64;
            sheet.set(&network::RETRANSMITS, "", resent);
            sheet
        };
        let all = findings_of(1200, 1000, |t| Some(sheet(t)));
        let (segments, less) = (number(&all[0].sentence, " TCP"), number(&all[0].sentence, " % slower"));
        assert!((segments / rate - 1.0).abs() <= 0.02, "{}", all[0].sentence);
        assert!((less - 100.0 * (1.0 - 1.0 / slower)).abs() <= 1.5, "{}", all[0].sentence);
    }
}

#[test]
fn evidence_leaves_out_what_is_as_ever() {
    let all = findings_of(1500, 1000, |t| Some(slow_clock(t, 3, 0.75)));
    let own: Vec<_> = all[0].evidence.iter().filter(|e| e.instance == "3").collect();
    assert!(own.iter().all(|e| e.tag != "gpu.{i}.gpu"), "its use is what it always was: {own:#?}");
    for fact in own {
        assert!(
            !["+0 %", "-0 %", "+1 %", "-1 %", "+2 %", "-2 %"].iter().any(|off| fact.words.contains(off)),
            "{fact:?}"
        );
    }
}
