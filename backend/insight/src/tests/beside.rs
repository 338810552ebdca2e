//! Jobs beside other jobs of the same machine, and ranks that are started again.

use super::trace::{Does, IDLE_GPU, OFF, SPINS, START, Sheet, Trace, WORKS, check, last, one, put_host, rules};
use crate::{Job, Rank};
use shared::catalog::gpu_parts;
use shared::finding::{Finding, Severity};
use shared::processes::{Process, ProcessTable};

/// GPUs of the first job; the second one has the others of eight.
const FIRST: u32 = 4;

/// One job on GPUs 0 to 3 and one on GPUs 4 to 7, each of one process.
fn jobs() -> [Job; 2] {
    let job = |id: &str, pid, gpus: std::ops::Range<u32>| Job {
        id: id.into(),
        ranks: vec![Rank { source: 0, pid, gpus: gpus.collect(), logs: String::new() }],
        ..Job::default()
    };
    [job("one", 4000, 0..FIRST), job("two", 5000, FIRST..8)]
}

/// The processes of both jobs. The first one writes `written` bytes per second.
fn table(t: i64, written: f32) -> ProcessTable {
    let process = |pid, written| Process {
        pid,
        parent: 1,
        name: "python".into(),
        cpu: Some(100.0),
        read: Some(0.0),
        written: Some(written),
        ..Process::default()
    };
    let rows = vec![process(4000, written), process(5000, 0.0)];
    ProcessTable { t: (START + t) * 1000, total: 2, whole: true, rows }
}

/// Findings about two jobs of a machine whose disk is read all the time. `does` is the activity of the first job from
/// second 600 on; the other one goes on. `written`: bytes per second of the first job's process, where that is known.
fn beside(does: impl Fn(u32) -> Does, written: Option<f32>, until: i64) -> Vec<Finding> {
    let mut trace = Trace::new(1, 1000);
    trace.insight.jobs(&jobs());
    for begin in (0..until).step_by(5) {
        if let Some(written) = written {
            trace.insight.processes(0, &table(begin, written));
        }
        trace.run(begin..begin + 5, 1, |_, t| {
            let mut sheet = one(8, t, |gpu, t| match t {
                ..60 => OFF,
                600.. if gpu < FIRST => does(gpu),
                _ => WORKS,
            });
            for gpu in 0..8 {
                let pid = if gpu < FIRST { 4000 } else { 5000 };
                sheet.set(&gpu_parts::PROCESS_MEMORY, format!("{gpu}.proc.{pid}"), 6e10);
            }
            put_host(&mut sheet, t, 12.0, (400.0 * t as f64, 0.0, 0.0));
            Some(sheet)
        });
    }
    last(&trace.told)
}

#[test]
fn a_job_hangs_though_another_one_keeps_the_disks_busy() {
    // The bytes that its own process writes are not known, or none.
    for written in [None, Some(0.0)] {
        let all = beside(|_| SPINS, written, 900);
        assert_eq!(rules(&all), ["hang.spin"], "{written:?}");
        check(&all[0]);
        assert_eq!((all[0].severity, all[0].subject[0].gpus.as_slice()), (Severity::Critical, &[0, 1, 2, 3][..]));
        assert!(all[0].told - all[0].since <= 90, "told after {} s", all[0].told - all[0].since);
    }
    assert_eq!(rules(&beside(|_| SPINS, Some(3e8), 900)), [""; 0], "it writes itself");
}

#[test]
fn one_that_may_save_unseen_is_waited_for_longer() {
    let stops = |gpu: u32| if gpu == 2 { IDLE_GPU } else { SPINS };
    assert_eq!(rules(&beside(stops, None, 1150)), [""; 0], "it may save");
    let all = beside(stops, None, 1400);
    assert_eq!(rules(&all), ["hang.odd"]);
    assert!((600..660).contains(&(all[0].told - all[0].since)), "told after {} s", all[0].told - all[0].since);
    let all = beside(stops, Some(0.0), 1150);
    assert_eq!(rules(&all), ["hang.odd"], "it does not");
    assert_eq!(all[0].subject[0].gpus, [2]);
}

/// Eight GPUs with a process on each. From second 600 on seven wait for GPU 3, which works again from `again` on. Its
/// process is another one from second 603 on, if it `restarts`.
fn waited_for(t: i64, restarts: bool, again: i64) -> Sheet {
    let mut sheet = one(8, t, |gpu, t| match (gpu, t) {
        (_, ..60) => OFF,
        (_, ..600) => WORKS,
        (_, t) if t >= again => WORKS,
        (3, _) => IDLE_GPU,
        _ => SPINS,
    });
    for gpu in 0..8 {
        let is_new = restarts && gpu == 3 && t >= 603;
        let pid = if is_new { 5000 } else { 4000 } + gpu;
        // The new one holds more, and both are listed for some seconds.
        sheet.set(&gpu_parts::PROCESS_MEMORY, format!("{gpu}.proc.{pid}"), if is_new { 7e10 } else { 6e10 });
    }
    sheet
}

#[test]
fn a_rank_that_was_started_again_is_waited_for() {
    let told = |restarts: bool, again: i64, until: i64| {
        let mut trace = Trace::new(1, 1000);
        trace.run(0..until, 1, |_, t| Some(waited_for(t, restarts, again)));
        last(&trace.told)
    };
    assert_eq!(rules(&told(true, 1000, 1300)), [""; 0], "it is back after minutes");
    let all = told(false, 1000, 1300);
    assert_eq!(rules(&all), ["hang.odd"], "the same process does nothing");
    assert!(all[0].told - all[0].since <= 300, "told after {} s", all[0].told - all[0].since);
    let all = told(true, 9000, 1400);
    assert_eq!(rules(&all), ["hang.odd"], "it does not come back");
    check(&all[0]);
    assert!((600..660).contains(&(all[0].told - all[0].since)), "told after {} s", all[0].told - all[0].since);
}
