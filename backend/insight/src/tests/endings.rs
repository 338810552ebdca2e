//! Jobs that end for lack of memory, and the predictions of it.

use super::trace::{Does, IDLE_GPU, OFF, SPINS, START, Trace, WORKS, check, last, one, put_host, rules};
use crate::{Job, Rank};
use shared::catalog::{disk, gpu_parts, memory, process};
use shared::finding::{Finding, Severity};

/// Findings about one machine until second `until`, and those open then.
fn at(until: i64, does: impl Fn(u32, i64) -> Does) -> (Vec<Finding>, Vec<Finding>) {
    let mut trace = Trace::new(1, 1000);
    trace.run(0..until, 1, |_, t| Some(one(8, t, &does)));
    let open = trace.insight.open().into_iter().cloned().collect();
    (last(&trace.told), open)
}

/// GPU 7 fills up from second 900 on, and is full at 1,150: the job ends.
fn fills(then: impl Fn(u32, i64) -> Does) -> impl Fn(u32, i64) -> Does {
    move |gpu, t| match t {
        ..60 => OFF,
        1150.. => then(gpu, t),
        900.. if gpu == 7 => Does { memory: 60.0 + 0.079 * (t - 900) as f64, ..WORKS },
        _ => WORKS,
    }
}

#[test]
fn a_job_that_ended_because_a_gpu_was_full_is_told_until_another_works() {
    // Still open hours later.
    for until in [1180, 1200, 4000, 12_000] {
        let (_, open) = at(until, fills(|_, _| OFF));
        assert_eq!(rules(&open), ["gpu_memory.ended"], "at {until}");
        let found = &open[0];
        check(found);
        let said =
            "The job ended at {since}: GPU 7 was full; all 8 GPUs have been idle since: 79.7 of 80 GiB were in use";
        assert_eq!((found.sentence.as_str(), found.severity), (said, Severity::Critical));
        assert_eq!((found.since - START, found.subject[0].gpus.as_slice()), (1150, &[7][..]));
        assert_eq!(found.affects[0].gpus.len(), 7);
        assert_eq!(found.evidence[0].tag, "gpu.{i}.memoryAllocatedBytes");
    }
    // The same with known processes.
    let mut trace = Trace::new(1, 1000);
    let does = fills(|_, _| OFF);
    trace.run(0..1300, 1, |_, t| {
        let mut sheet = one(8, t, &does);
        for gpu in (0..8).filter(|_| (60..1150).contains(&t)) {
            sheet.set(&gpu_parts::PROCESS_MEMORY, format!("{gpu}.proc.{}", 4000 + gpu), 5e10);
        }
        Some(sheet)
    });
    let open: Vec<Finding> = trace.insight.open().into_iter().cloned().collect();
    assert_eq!(rules(&open), ["gpu_memory.ended"]);
    assert!(open[0].sentence.contains("GPU 7 was full; all 8 GPUs have been idle since"), "{}", open[0].sentence);
    // With a run, the process that fails leaves it a moment before its memory is released.
    let mut trace = Trace::new(1, 1000);
    let does = fills(|_, _| OFF);
    for (span, ranks) in [(0..1146, 8), (1146..1300, 7)] {
        let rank = |gpu| Rank { source: 0, pid: 4000 + gpu, gpus: vec![gpu], logs: String::new() };
        trace.insight.jobs(&[Job { id: "run".into(), ranks: (0..ranks).map(rank).collect(), ..Job::default() }]);
        trace.run(span, 1, |_, t| Some(one(8, t, &does)));
    }
    let open: Vec<Finding> = trace.insight.open().into_iter().cloned().collect();
    assert!(open[0].sentence.contains("GPU 7 was full; all 8 GPUs have been idle since"), "{}", open[0].sentence);
    // Another job works in its place: they are no longer idle, and the event ends soon.
    let again = |_: u32, t: i64| if t < 1500 { OFF } else { WORKS };
    let (_, open) = at(1800, fills(again));
    assert_eq!(rules(&open), ["gpu_memory.ended"]);
    assert!(!open[0].sentence.contains("idle"), "{}", open[0].sentence);
    let (all, open) = at(2400, fills(again));
    assert_eq!((rules(&all), rules(&open)), (vec!["gpu_memory", "gpu_memory.ended"], vec![]));
}

#[test]
fn what_others_do_after_it_follows_from_it() {
    // The others hold their memory and do nothing, or wait in a kernel.
    for rest in [IDLE_GPU, SPINS] {
        let (all, open) = at(2600, fills(move |gpu, _| if gpu == 7 { OFF } else { rest }));
        let ended = open.iter().find(|found| found.rule == "gpu_memory.ended").expect("it is told");
        assert!(ended.sentence.contains("GPU 7"), "{}", ended.sentence);
        for found in all.iter().filter(|found| found.kind == "hang" || found.kind == "idle") {
            assert_eq!(found.because.as_deref(), Some(ended.id.as_str()), "{found:#?}");
        }
    }
}

#[test]
fn a_job_that_ends_otherwise_is_no_such_event() {
    type Plan<'a> = (&'a str, &'a dyn Fn(u32, i64) -> Does);
    let flat = |_: u32, t: i64| match t {
        60..1150 => Does { memory: 79.2, ..WORKS },
        _ => OFF,
    };
    // It was ended long before it was full.
    let early = |gpu: u32, t: i64| if t >= 1060 { OFF } else { fills(|_, _| OFF)(gpu, t) };
    // It releases memory that it does not need, and goes on.
    let goes_on = fills(|gpu, _| if gpu == 7 { Does { memory: 20.0, ..WORKS } } else { WORKS });
    let named: [Plan; 2] = [("flat", &flat), ("early", &early)];
    for (name, does) in named {
        assert!(!rules(&at(1700, does).0).contains(&"gpu_memory.ended"), "{name}");
    }
    let mut trace = Trace::new(1, 1000);
    trace.run(0..1700, 1, |_, t| {
        let mut sheet = one(8, t, &goes_on);
        for gpu in 0..8 {
            sheet.set(&gpu_parts::PROCESS_MEMORY, format!("{gpu}.proc.{}", 4000 + gpu), 2e10);
        }
        Some(sheet)
    });
    assert!(!rules(&last(&trace.told)).contains(&"gpu_memory.ended"), "it goes on");
}

#[test]
fn a_prediction_speaks_in_the_past_once_its_time_has_passed() {
    // It fills up more and more slowly, so that the predicted time passes; and it ends.
    let (all, _) = at(1700, fills(|_, _| OFF));
    assert_eq!(all[0].rule, "gpu_memory");
    assert!(all[0].sentence.starts_with("GPU 7's memory was filling up from {since} on"), "{}", all[0].sentence);
    let mut trace = Trace::new(1, 1000);
    let share = |t: i64| (50.0 + 0.08 * (t - 600).max(0) as f64).min(94.0) + 0.0008 * (t - 1150).max(0) as f64;
    let mut said: Vec<(i64, String)> = Vec::new();
    for t in 0..1500 {
        trace.run(t..t + 1, 1, |_, t| {
            let mut sheet = one(2, t, |_, t| if t < 60 { OFF } else { WORKS });
            sheet.set(&memory::WORKING_SET, "", share(t)).set(&disk::USAGE_PERCENT, "/data", share(t));
            Some(sheet)
        });
        said.extend(trace.insight.open().iter().map(|found| (t, found.sentence.clone())));
    }
    let foretold: Vec<_> = said.iter().filter(|(_, said)| said.contains(" will ")).collect();
    assert!(!foretold.is_empty(), "{said:?}");
    // After the predicted time no finding still makes the prediction.
    assert!(foretold.iter().all(|(t, _)| *t < 1350), "{:?}", foretold.last());
}

#[test]
fn a_kill_stays_until_another_job_works() {
    let told = |until: i64, again: i64| {
        let mut trace = Trace::new(1, 1000);
        trace.run(0..until, 1, |_, t| {
            let mut sheet = one(4, t, |_, t| if (60..900).contains(&t) || t >= again { WORKS } else { OFF });
            sheet.set(&process::OOM_KILLS, "", if t < 900 { 4.0 } else { 5.0 });
            put_host(&mut sheet, t, 1.0, (0.0, 0.0, 0.0));
            Some(sheet)
        });
        trace.insight.open().into_iter().cloned().collect::<Vec<_>>()
    };
    let open = told(9000, i64::MAX);
    assert_eq!(rules(&open), ["host_memory"]);
    assert!(open[0].sentence.ends_with("; all 4 GPUs have been idle since"), "{}", open[0].sentence);
    assert!(rules(&told(3000, 1000)).is_empty());
}

#[test]
fn gpus_that_do_nothing_are_told_once() {
    let sheet = |t: i64| {
        let mut sheet = one(8, t, |_, t| match t {
            ..60 => OFF,
            60..900 => WORKS,
            _ => IDLE_GPU,
        });
        put_host(&mut sheet, t, if (60..900).contains(&t) { 20.0 } else { 1.0 }, (0.0, 0.0, 0.0));
        sheet
    };
    let mut trace = Trace::new(1, 1000);
    trace.run(0..3000, 1, |_, t| Some(sheet(t)));
    assert_eq!(rules(&last(&trace.told)), ["hang.idle"]);
}
