//! Jobs that wait for nothing, and jobs that only seem to.

use super::trace::{Does, IDLE_GPU, OFF, SPINS, START, Trace, WORKS, check, findings_of, last, one, put_host, rules};
use shared::catalog::gpu_profile;
use shared::finding::Finding;
use shared::finding::Severity;

/// A start of a minute, work until `at`, then `does`.
fn until(at: i64, does: Does) -> impl Fn(u32, i64) -> Does {
    move |_, t| {
        if t < 60 {
            OFF
        } else if t < at {
            WORKS
        } else {
            does
        }
    }
}

#[test]
fn all_that_spin_hang() {
    let all = findings_of(900, 1000, |t| Some(one(8, t, until(600, SPINS))));
    assert_eq!(rules(&all), ["hang.spin"]);
    let hang = &all[0];
    check(hang);
    assert!((hang.since - START - 600).abs() <= 15, "{}", hang.since - START);
    assert!(hang.told - hang.since <= 90, "told after {} s", hang.told - hang.since);
    assert_eq!((hang.severity, hang.subject[0].gpus.len(), hang.until), (Severity::Critical, 8, None));
    assert!(
        hang.sentence.starts_with(
            "All 8 GPUs have been stuck in one kernel since {since}: utilization 100 %, power 19 % of the limit"
        ),
        "{}",
        hang.sentence
    );
}

#[test]
fn it_ends_when_it_works_again() {
    let does = |_: u32, t: i64| {
        if t < 60 {
            OFF
        } else if (600..800).contains(&t) {
            SPINS
        } else {
            WORKS
        }
    };
    let all = findings_of(1000, 1000, |t| Some(one(8, t, does)));
    assert_eq!(rules(&all), ["hang.spin"]);
    let until = all[0].until.expect("it has ended") - START;
    assert!((805..860).contains(&until), "{until}");
}

#[test]
fn it_ends_when_the_processes_are_gone() {
    let does = |_: u32, t: i64| {
        if !(60..800).contains(&t) {
            OFF
        } else if t < 600 {
            WORKS
        } else {
            SPINS
        }
    };
    let all = findings_of(1000, 1000, |t| Some(one(8, t, does)));
    assert_eq!(rules(&all), ["hang.spin"]);
    assert!(all[0].until.is_some_and(|until| (800..830).contains(&(until - START))), "{:?}", all[0].until);
}

#[test]
fn one_that_stopped_is_named() {
    let does = |gpu: u32, t: i64| match (gpu, t) {
        (_, ..60) => OFF,
        (_, ..600) => WORKS,
        (3, _) => IDLE_GPU,
        _ => SPINS,
    };
    let all = findings_of(900, 1000, |t| Some(one(8, t, does)));
    assert_eq!(rules(&all), ["hang.odd"]);
    check(&all[0]);
    assert_eq!((all[0].subject[0].gpus.as_slice(), all[0].affects[0].gpus.len()), (&[3][..], 7));
    assert!(
        all[0].sentence.starts_with("GPU 3 stopped at {since}; 7 others are waiting for it"),
        "{}",
        all[0].sentence
    );
}

#[test]
fn one_condition_short_it_is_none() {
    // A member works: it is waited for.
    let works = |gpu: u32, t: i64| if t >= 600 && gpu == 0 { WORKS } else { until(600, SPINS)(gpu, t) };
    // The power varies: something is computed.
    let varies = |_: u32, t: i64| {
        let spin = Does { work: 0.12 * (t % 20) as f64 / 10.0, ..SPINS };
        if t < 60 {
            OFF
        } else if t < 600 {
            WORKS
        } else {
            spin
        }
    };
    // It is too short.
    let short = |_: u32, t: i64| {
        if t < 60 {
            OFF
        } else if (600..650).contains(&t) {
            SPINS
        } else {
            WORKS
        }
    };
    type Plan<'a> = (&'a str, &'a dyn Fn(u32, i64) -> Does);
    let cases: [Plan; 3] = [("works", &works), ("varies", &varies), ("short", &short)];
    for (name, does) in cases {
        let all = findings_of(1000, 1000, |t| Some(one(8, t, does)));
        assert_eq!(rules(&all), [""; 0], "{name}");
    }
    // A checkpoint: something is written.
    let all = findings_of(1000, 1000, |t| {
        let mut sheet = one(8, t, until(600, SPINS));
        put_host(&mut sheet, t, 12.0, (0.0, 400.0 * (t - 600).max(0) as f64, 0.0));
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0], "checkpoint");
    // Links are alive.
    let all = findings_of(1000, 1000, |t| {
        let mut sheet = one(8, t, until(600, SPINS));
        if t >= 600 {
            for gpu in 0..8 {
                sheet.set(&gpu_profile::NVLINK_TX, gpu, 30e9);
            }
        }
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0], "links");
}

#[test]
fn long_pauses_of_the_job_are_learned() {
    // Every ten minutes all spin for 55 s, then for 65 s: that is usual for this job.
    let does = |_: u32, t: i64| {
        if t < 60 {
            OFF
        } else if t % 600 > 540 {
            SPINS
        } else {
            WORKS
        }
    };
    let all = findings_of(4000, 1000, |t| Some(one(8, t, does)));
    assert_eq!(rules(&all), [""; 0]);
}

#[test]
fn a_job_that_does_nothing_any_more() {
    let cpu = |t: i64| if (60..900).contains(&t) { 20.0 } else { 1.0 };
    let sheet = |t: i64| {
        let mut sheet = one(8, t, until(900, IDLE_GPU));
        put_host(&mut sheet, t, cpu(t), (0.0, 0.0, 0.0));
        sheet
    };
    let all = findings_of(1500, 1000, |t| Some(sheet(t)));
    assert_eq!(rules(&all), ["hang.idle"]);
    check(&all[0]);
    assert_eq!(all[0].severity, Severity::Warning);
    // The processors work: it prepares something.
    let all = findings_of(1500, 1000, |t| {
        let mut sheet = sheet(t);
        put_host(&mut sheet, t, 30.0, (0.0, 0.0, 0.0));
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
    // The job is over: its memory is free.
    let all = findings_of(1500, 1000, |t| Some(one(8, t, until(900, OFF))));
    assert_eq!(rules(&all), [""; 0]);
}

/// Findings about machines with `gpus` GPUs each that work on one job without a run. `does` returns the activity by GPU
/// and machine.
fn unnamed(hosts: u32, gpus: u32, seconds: i64, does: impl Fn(u32, u32, i64) -> Does) -> Vec<Finding> {
    let mut trace = Trace::new(hosts, 1000);
    trace.run(0..seconds, hosts, |host, t| Some(one(gpus, t, |gpu, t| does(host, gpu, t))));
    last(&trace.told)
}

#[test]
fn one_that_works_on_another_machine_is_waited_for_though_no_run_names_the_job() {
    // One of 8, one of 2, and one that is alone on its machine evaluates for ten minutes, and all others wait for it.
    // One that neither works nor is quiet saves its data.
    let evaluates = Does { work: 0.5, spin: 0.0, ..WORKS };
    for gpus in [2, 4, 8] {
        let all = unnamed(3, gpus, 1700, |host, gpu, t| match (host, gpu, t) {
            (.., ..60) => OFF,
            (.., ..600 | 1200..) => WORKS,
            (0, 0, _) => evaluates,
            _ => SPINS,
        });
        assert_eq!(rules(&all), [""; 0], "{gpus} GPUs: {all:#?}");
    }
    let mut trace = Trace::new(2, 1000);
    trace.run(0..1700, 2, |host, t| {
        let does = |gpu: u32, t: i64| match (host, gpu, t) {
            (.., ..60) => OFF,
            (.., ..600 | 1200..) => WORKS,
            (0, 0, _) => IDLE_GPU,
            _ => SPINS,
        };
        let mut sheet = one(4, t, does);
        if host == 0 {
            put_host(&mut sheet, t, 12.0, (0.0, 300.0 * (t - 600).clamp(0, 600) as f64, 0.0));
        }
        Some(sheet)
    });
    assert_eq!(rules(&last(&trace.told)), [""; 0], "saves");
}

#[test]
fn a_job_that_no_run_names_hangs_as_one() {
    let all = unnamed(3, 4, 900, |_, _, t| match t {
        ..60 => OFF,
        60..600 => WORKS,
        _ => SPINS,
    });
    assert_eq!(rules(&all), ["hang.spin"]);
    check(&all[0]);
    assert!(all[0].told - all[0].since <= 90, "told after {} s", all[0].told - all[0].since);
    assert_eq!(all[0].subject.len(), 3);
    assert!(all[0].sentence.starts_with("All 12 GPUs on 3 hosts have been stuck"), "{}", all[0].sentence);
    // One of them has stopped: only that one is named, on any machine.
    for at in 0..3 {
        let all = unnamed(3, 4, 900, |host, gpu, t| match (host, gpu, t) {
            (.., ..60) => OFF,
            (.., ..600) => WORKS,
            (_, 2, _) if host == at => IDLE_GPU,
            _ => SPINS,
        });
        assert_eq!(rules(&all), ["hang.odd"], "{all:#?}");
        let affects: usize = all[0].affects.iter().map(|place| place.gpus.len()).sum();
        assert_eq!((all[0].subject[0].source.as_str(), affects), (format!("node-{at}").as_str(), 11));
        assert_eq!(all[0].subject[0].gpus, [2]);
    }
}

#[test]
fn a_job_that_hangs_beside_others_is_told_though_they_began_together() {
    let all = unnamed(3, 4, 1500, |host, _, t| match (host, t) {
        (_, ..60) => OFF,
        (1, 600..) => SPINS,
        _ => WORKS,
    });
    assert_eq!(rules(&all), ["hang.spin"]);
    assert!(all[0].told - all[0].since <= 300, "told after {} s", all[0].told - all[0].since);
    assert!(all[0].sentence.starts_with("All 4 GPUs of node-1 have been stuck"), "{}", all[0].sentence);
}

#[test]
fn what_proves_a_hang_comes_first_and_each_series_has_its_own_value() {
    let all = findings_of(900, 1000, |t| Some(one(8, t, until(600, SPINS))));
    let evidence = &all[0].evidence;
    assert_eq!(evidence[0].tag, "gpu.{i}.powerWatts");
    assert!(evidence.iter().all(|e| e.tag != "gpu.{i}.gpu"), "use is what it always is: {evidence:#?}");
    let links: Vec<_> = evidence.iter().filter(|e| e.tag.contains("nvlink")).collect();
    assert_eq!(links.iter().map(|e| e.value).collect::<Vec<_>>(), [Some(0.0), Some(0.0)], "no mean that decays");
    for link in links {
        let level = link.level.expect("it is known");
        assert!((0.9..1.1).contains(&(level / 85.5e9)), "{level} is not of one series");
    }
}

#[test]
fn a_sentence_about_several_machines_names_each_once() {
    // The order of machines does not matter: GPUs that are held without work on all of them.
    for order in [[0, 9, 18], [9, 0, 18], [18, 9, 0]] {
        let all = unnamed(3, 2, 1200, |host, _, t| match t {
            t if t < 60 + order[host as usize] => OFF,
            _ => IDLE_GPU,
        });
        assert_eq!(rules(&all), ["idle"], "{all:#?}");
        let sentence = &all[0].sentence;
        for host in 0..3 {
            assert_eq!(sentence.matches(&format!("node-{host}")).count(), 1, "{sentence}");
        }
    }
}
