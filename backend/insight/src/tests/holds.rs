//! GPUs that are held without work, and properties of all findings: limits, clocks, restarts, disabled kinds.

use super::trace::{
    Does, IDLE_GPU, OFF, SPINS, START, Sheet, Trace, WORKS, check, findings_of, last, one, put_host, rules,
};
use crate::{Insight, Job, Reserved, Settings};
use shared::catalog::{Metric, gpu, gpu_pods};
use shared::finding::{Severity, Watch};

/// Half an hour without work after five minutes in use, with its memory held or not.
fn held(t: i64, does: Does) -> Sheet {
    let mut sheet = one(4, t, |_, t| {
        if t < 60 {
            OFF
        } else if t < 360 {
            WORKS
        } else {
            does
        }
    });
    // The machine is active otherwise, so this is no hang.
    put_host(&mut sheet, t, 40.0, (0.0, 0.0, 0.0));
    sheet
}

#[test]
fn gpus_that_are_held_are_told_once() {
    for interval in [1000, 60_000] {
        let all = findings_of(2400, interval, |t| Some(held(t, IDLE_GPU)));
        assert_eq!(rules(&all), ["idle"], "{interval}");
        check(&all[0]);
        assert_eq!((all[0].severity, all[0].subject[0].gpus.as_slice()), (Severity::Note, &[0, 1, 2, 3][..]));
        assert!(all[0].told - START - 360 >= 900, "{}", all[0].told - START);
    }
    assert_eq!(rules(&findings_of(2400, 1000, |t| Some(held(t, OFF)))), [""; 0], "nothing holds them");
    let all = findings_of(5000, 5000, |t| Some(held(t, IDLE_GPU)));
    assert_eq!(all[0].severity, Severity::Warning, "after an hour");
}

/// A job for which these GPUs of the first machine are reserved.
fn reserving(gpus: &[u32]) -> Job {
    let reserved = vec![Reserved { source: 0, gpus: gpus.to_vec() }];
    Job { id: "train-7".into(), reserved, owner: "ada".into(), ..Job::default() }
}

#[test]
fn reserved_gpus_without_a_process_are_told_with_their_job_and_end_with_it() {
    let mut trace = Trace::new(1, 1000);
    trace.insight.jobs(&[reserving(&[2, 3])]);
    // The first two work, and the others do nothing; all memory of theirs is free.
    let sheet = |t: i64| Some(one(4, t, |gpu, _| if gpu < 2 { WORKS } else { OFF }));
    trace.run(0..580, 1, |_, t| sheet(t));
    assert_eq!(rules(&last(&trace.told)), [""; 0], "ten minutes have not passed");
    trace.run(580..900, 1, |_, t| sheet(t));
    let all = last(&trace.told);
    assert_eq!(rules(&all), ["unused"]);
    check(&all[0]);
    assert_eq!((all[0].severity, all[0].subject[0].gpus.as_slice()), (Severity::Note, &[2, 3][..]));
    let sentence = &all[0].sentence;
    assert!(
        sentence.starts_with("GPUs 2, 3 are reserved for run train-7 of ada, but nothing has used them for 10 min"),
        "{sentence}"
    );
    assert_eq!(all[0].until, None);
    // One of them begins to work; then the job ends.
    trace.run(900..960, 1, |_, t| Some(one(4, t, |gpu, _| if gpu < 3 { WORKS } else { OFF })));
    assert_eq!(last(&trace.told)[0].until, None, "the other is still unused");
    trace.insight.jobs(&[]);
    trace.run(960..1000, 1, |_, t| sheet(t));
    assert!(last(&trace.told)[0].until.is_some(), "nobody reserves them any more");
}

#[test]
fn gpus_held_by_a_pod_without_a_process_are_told_with_the_pod_and_end_with_it() {
    // The kubelet is asked every ten seconds. Two pods share GPU 3, and one with a run holds GPU 1.
    let sheet = |t: i64, held: bool| {
        let mut sheet = one(4, t, |gpu, _| if gpu == 0 { WORKS } else { OFF });
        if t % 10 == 0 {
            sheet.set(&gpu_pods::HELD_BY_POD, "0.pod.training/train-0", 1.0).set(
                &gpu_pods::HELD_BY_POD,
                "1.pod.training/train-1",
                1.0,
            );
            if held {
                sheet.set(&gpu_pods::HELD_BY_POD, "3.pod.serving/llm-1", 1.0).set(
                    &gpu_pods::HELD_BY_POD,
                    "3.pod.serving/llm-0",
                    1.0,
                );
            }
        }
        Some(sheet)
    };
    let mut trace = Trace::new(1, 1000);
    trace.insight.jobs(&[reserving(&[1])]);
    trace.run(0..580, 1, |_, t| sheet(t, true));
    assert_eq!(rules(&last(&trace.told)), [""; 0], "ten minutes have not passed");
    trace.run(580..900, 1, |_, t| sheet(t, true));
    let all = last(&trace.told);
    assert_eq!(rules(&all), ["unused", "unused"], "GPU 0 works, and nobody holds GPU 2");
    let of = |gpu: u32| all.iter().find(|found| found.subject[0].gpus == [gpu]).expect("a finding");
    assert!(of(1).sentence.starts_with("GPU 1 is reserved for run train-7 of ada, but"), "{}", of(1).sentence);
    assert!(of(3).sentence.starts_with("GPU 3 is reserved for pod serving/llm-0, but"), "{}", of(3).sentence);
    check(of(3));
    trace.run(900..1000, 1, |_, t| sheet(t, false));
    let all = last(&trace.told);
    let until = |gpu: u32| all.iter().find(|found| found.subject[0].gpus == [gpu]).and_then(|found| found.until);
    assert!(until(3).is_some_and(|until| until - START <= 960), "the pods were deleted: {:?}", until(3));
    assert_eq!(until(1), None);
}

#[test]
fn reserved_gpus_that_are_used_or_free_for_all_are_no_finding() {
    for (gpus, does) in [(&[0u32, 1, 2, 3][..], WORKS), (&[], OFF)] {
        let mut trace = Trace::new(1, 1000);
        trace.insight.jobs(&[reserving(gpus)]);
        trace.run(0..1500, 1, |_, t| Some(one(4, t, |_, _| does)));
        assert_eq!(rules(&last(&trace.told)), [""; 0], "{gpus:?}");
    }
}

fn hangs(t: i64) -> Sheet {
    one(8, t, |_, t| {
        if t < 60 {
            OFF
        } else if t < 600 {
            WORKS
        } else {
            SPINS
        }
    })
}

#[test]
fn a_restart_gives_the_same_ids() {
    let whole = findings_of(1000, 1000, |t| Some(hangs(t)));
    // The last quarter of an hour is replayed, as after a restart.
    let mut trace = Trace::new(1, 1000);
    trace.run(100..1000, 1, |_, t| Some(hangs(t)));
    let again = last(&trace.told);
    assert_eq!(whole.len(), 1);
    assert_eq!(whole.iter().map(|f| &f.id).collect::<Vec<_>>(), again.iter().map(|f| &f.id).collect::<Vec<_>>());
}

#[test]
fn ticks_in_any_order_and_clocks_that_are_off_change_nothing() {
    let run = |order: [u32; 2], off: i64| {
        let mut trace = Trace::new(2, 1000);
        for t in 0..900 {
            for host in order {
                let shift = if host == 1 { off } else { 0 };
                trace.tick(host, t + shift, 0, &hangs(t));
            }
            trace.judge(t + 1);
        }
        trace.judge(920);
        last(&trace.told)
    };
    let text = |all: &[shared::finding::Finding]| serde_json::to_string(all).expect("it is JSON");
    let straight = run([0, 1], 0);
    assert_eq!(rules(&straight), ["hang.spin"]);
    assert_eq!(straight[0].subject.len(), 2, "on both hosts");
    check(&straight[0]);
    assert_eq!(text(&straight), text(&run([1, 0], 0)));
    for off in [-5, 5] {
        let shifted = run([0, 1], off);
        assert_eq!(rules(&shifted), ["hang.spin"], "{off}");
        assert_eq!(shifted[0].subject, straight[0].subject, "{off}");
    }
}

#[test]
fn any_interval_gives_the_same_hang() {
    for interval in [100, 1000, 10_000, 60_000] {
        let all = findings_of(1800, interval, |t| Some(hangs(t)));
        assert_eq!(rules(&all), ["hang.spin"], "{interval}");
        assert!((all[0].since - START - 600).abs() <= 60, "{interval}: {}", all[0].since - START);
        assert_eq!(all[0].subject[0].gpus.len(), 8, "{interval}");
    }
}

#[test]
fn what_is_silenced_is_not_told() {
    for word in ["hang", "hang.spin"] {
        let mut trace = Trace::new(1, 1000);
        trace.insight = Insight::new(Settings { silence: vec![word.into()], ..Settings::default() });
        trace.insight.source(0, "node-0", 1000);
        trace.run(0..900, 1, |_, t| Some(hangs(t)));
        assert_eq!(rules(&last(&trace.told)), [""; 0], "{word}");
    }
}

#[test]
fn there_is_a_bound_and_what_is_beyond_is_counted() {
    let mut trace = Trace::new(1, 1000);
    trace.run(0..200, 1, |_, t| {
        let mut sheet = Sheet::default();
        for gpu in 0..300 {
            sheet.set(&gpu::UTILIZATION, gpu, 0.0);
            sheet.set(&gpu::UNCORRECTED_ERRORS, gpu, if t < 100 + i64::from(gpu) / 10 * 40 { 0.0 } else { 1.0 });
        }
        Some(sheet)
    });
    assert!(trace.insight.open().len() <= 200);
    let told = last(&trace.told);
    assert!(told.iter().all(|finding| finding.rule == "ecc.uncorrected"), "{:?}", rules(&told));
}

#[test]
fn rules_say_what_they_lack() {
    let mut insight = Insight::new(Settings::default());
    let state = |insight: &Insight, rule: &str| insight.rules().into_iter().find(|state| state.rule == rule);
    insight.source(1, "node-1", 1000);
    let needs = state(&insight, "throttle.heat").expect("it is a rule");
    assert_eq!((needs.state, needs.words.as_str()), (Watch::Needs, "needs gpu.{i}.throttleReasons"));
    for (id, row) in [&gpu::UTILIZATION, &gpu::POWER_WATTS].into_iter().enumerate() {
        insight.series(1, id as u32, &Metric::from(row), "0");
    }
    insight.tick(1, START * 1000, [(0, 50.0), (1, 300.0)]);
    insight.judge((START + 5) * 1000, &mut Vec::new());
    let weaker = state(&insight, "hang.spin").expect("it is a rule");
    assert_eq!(
        (weaker.state, weaker.words.as_str()),
        (Watch::Weaker, "weaker without NVLink counters, profiling counters")
    );
    let mut names: Vec<String> = insight.rules().into_iter().map(|state| state.rule).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), all >= 20), (all, true));
}

#[test]
fn a_machine_that_is_removed_takes_its_findings_with_it() {
    let mut trace = Trace::new(1, 1000);
    trace.run(0..900, 1, |_, t| Some(hangs(t)));
    assert_eq!(trace.insight.open().len(), 1);
    trace.insight.remove(0);
    trace.judge(901);
    assert!(trace.insight.open().is_empty());
    assert!(last(&trace.told)[0].until.is_some());
}

#[test]
fn a_clock_that_goes_back_begins_anew() {
    let mut trace = Trace::new(1, 1000);
    trace.run(5000..5900, 1, |_, t| Some(hangs(t - 5000)));
    trace.run(0..900, 1, |_, t| Some(hangs(t)));
    assert_eq!(rules(&last(&trace.told)), ["hang.spin", "hang.spin"]);
}
