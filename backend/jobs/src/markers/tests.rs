//! Markers are stored once and bounded, and runs of cells are made of them.

use super::cells::{measure, runs};
use super::*;
use serde_json::json as object;
use shared::answer::markers::CellGpu;
use shared::catalog::{Catalog, MetricDef, gpu, kernel as rows};
use shared::series::SeriesDef;
use stream::clock::Manual;
use stream::store::{Limits, Store};

const NOW: i64 = 1_700_000_000_000;
const ID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const GIB: f64 = (1u64 << 30) as f64;

fn live() -> (Arc<Live>, Arc<Manual>) {
    let all = [rows::ROWS, gpu::ROWS].concat();
    let mut store = Store::new(Arc::new(Catalog::new(all)), Limits { retention: 3_600_000, bytes: usize::MAX });
    store.add_source("here".into(), 1_000, Vec::new());
    let clock = Arc::new(Manual::at(NOW, Duration::ZERO));
    (Live::new(store, clock.clone(), 1, 3_600_000), clock)
}

fn new(value: serde_json::Value) -> NewMarker {
    serde_json::from_value(value).expect("a marker")
}

fn cell(seq: u64, t: i64, phase: &str) -> NewMarker {
    let seconds = t as f64 / 1_000.0;
    new(object!({ "kind": "cell", "kernel": ID, "seq": seq, "t": seconds, "phase": phase, "cell": "c", "n": 7 }))
}

fn taken(taken: u64, dropped: u64) -> Result<TakenMarkers, RefusedMarkers> {
    Ok(TakenMarkers { taken, dropped })
}

#[test]
fn a_marker_is_kept_once_however_often_it_is_sent() {
    let (live, _) = live();
    let markers = Markers::default();
    for _ in 0..3 {
        let two = vec![cell(1, NOW - 9_000, "start"), new(object!({ "text": "epoch 3", "id": "a", "kind": "epoch" }))];
        assert_eq!(markers.take(&live, 0, two), taken(2, 0));
    }
    // A restarted kernel counts from the start again.
    assert_eq!(markers.take(&live, 0, vec![cell(1, NOW - 5_000, "start")]), taken(1, 0));
    // Another server of the same folder knows them too.
    let again = Markers::default();
    assert_eq!(again.take(&live, 0, vec![cell(1, NOW - 9_000, "start")]), taken(1, 0));
    let kept = between(&live, 0, (0, NOW), 100, |_| true);
    let kept: Vec<_> = kept.iter().map(|(_, t, marker)| (NOW - t, marker.kind.as_str())).collect();
    assert_eq!(kept, [(9_000, "cell"), (5_000, "cell"), (0, "epoch")]);
    assert_eq!(markers.open(&live, 0, ID).map(|open| open.begun), Some(NOW - 5_000));
    assert_eq!(markers.take(&live, 0, vec![cell(2, NOW, "end")]), taken(1, 0));
    assert_eq!(markers.open(&live, 0, ID), None);
}

#[cfg(target_os = "linux")]
#[test]
fn a_mark_of_a_request_is_of_the_run_and_rank_below_which_its_process_stands() {
    let (live, _) = live();
    let (markers, own) = (Markers::default(), std::process::id());
    let start = launch::process::started(own).expect("it runs");
    let rank = ValueSender { run: Some("abc".into()), rank: Some(3), ..ValueSender::default() };
    live.source(0).job_values.set_processes(vec![(own, start, rank)]);
    let two = vec![
        new(object!({ "text": "lr", "pid": own, "id": "a" })),
        new(object!({ "text": "lr", "pid": own, "id": "b", "run": "named" })),
    ];
    assert_eq!(markers.take(&live, 0, two), taken(2, 0));
    live.source(0).job_values.set_processes(Vec::new());
    assert_eq!(markers.take(&live, 0, vec![new(object!({ "text": "lr", "pid": own, "id": "c" }))]), taken(1, 0));
    let kept = between(&live, 0, (0, NOW), 100, |_| true);
    let places: Vec<_> = kept.iter().map(|(_, _, marker)| (marker.run.as_deref(), marker.rank)).collect();
    assert_eq!(places, [(Some("abc"), Some(3)), (Some("named"), None), (None, None)]);
}

#[test]
fn requests_are_bounded_together_whatever_runs_they_name() {
    let (live, clock) = live();
    let markers = Markers::default();
    let send = |from: u64, by: Option<&str>| {
        let some = (from..from + 200).map(|n| new(object!({ "text": "x", "run": format!("r{n}") })));
        let some = markers.take_sent(&live, 0, some.collect(), by).expect("taken");
        (some.taken, some.dropped)
    };
    let all: Vec<_> = (0..6).map(|part| send(200 * part, Some("key ci"))).collect();
    assert_eq!(all, [[(200, 0); 5].as_slice(), &[(0, 200)]].concat());
    assert_eq!(send(2_000, None), (200, 0), "programs of the machine have their own limits");
    clock.pass(Duration::from_secs(1));
    assert_eq!(send(3_000, Some("key ci")), (100, 100));
}

#[test]
fn ten_thousand_markers_at_once_are_bounded_and_counted() {
    let (live, clock) = live();
    let markers = Markers::default();
    let mut sum = TakenMarkers::default();
    for part in 0..40 {
        let some = (0..MAX_NEW_MARKERS as u64).map(|n| cell(1 + part * 256 + n, NOW, "start"));
        let some = markers.take(&live, 0, some.collect()).expect("taken");
        (sum.taken, sum.dropped) = (sum.taken + some.taken, sum.dropped + some.dropped);
    }
    assert_eq!((sum.taken, sum.dropped, markers.dropped()), (256, 9_984, 9_984));
    assert_eq!(markers.take(&live, 0, vec![new(object!({ "text": "another's" }))]), taken(1, 0));
    clock.pass(Duration::from_secs(1));
    let some = (0..60).map(|n| cell(100_000 + n, NOW, "start")).collect();
    assert_eq!(markers.take(&live, 0, some), taken(50, 10));
}

#[test]
fn what_is_no_marker_is_refused_with_a_sentence() {
    let (live, _) = live();
    let markers = Markers::default();
    let long = "x".repeat(300);
    for (bad, word) in [
        (object!({ "kind": "run", "text": "x" }), "kind is one of"),
        (object!({ "kind": "cell", "kernel": ID }), "phase"),
        (object!({ "kind": "cell", "phase": "end" }), "kernel or pid"),
        (object!({ "phase": "end", "text": "x" }), "phase"),
        (object!({ "kernel": "../../x", "text": "x" }), "UUID"),
        (object!({ "text": long }), "256"),
        (object!({ "text": "x", "t": NOW as f64 / 1_000.0 + 3_600.0 }), "not in the future"),
        (object!({ "text": "x", "t": "soon" }), "RFC 3339"),
        (object!({ "text": "x", "t": NOW / 1_000, "end": NOW / 1_000 - 5 }), "before"),
        (object!({}), "text"),
        (object!({ "text": "\u{1b}\n" }), "text"),
    ] {
        let good = new(object!({ "text": "good" }));
        match markers.take(&live, 0, vec![good, new(bad.clone())]) {
            Err(RefusedMarkers::Bad(1, why)) => assert!(why.to_string().contains(word), "{bad}: {why}"),
            other => panic!("{bad}: {other:?}"),
        }
    }
    assert_eq!(between(&live, 0, (0, NOW), 10, |_| true), [], "of those sent with a bad one none is taken");
}

fn series(live: &Live, row: &MetricDef, instance: &str) -> usize {
    let mut store = live.store();
    let metric = store.catalog().position(row.tag).expect("a row");
    store.intern(0, SeriesDef { metric, instance: instance.into() }).expect("room") as usize
}

#[test]
fn a_cell_has_what_was_sampled_while_it_ran() {
    let (live, _) = live();
    let ids = [
        series(&live, &rows::MEMORY, "0a1b2c3d"),
        series(&live, &gpu::UTILIZATION, "0"),
        series(&live, &gpu::MEMORY_ALLOCATED_BYTES, "0"),
        series(&live, &gpu::MEMORY_TOTAL_BYTES, "0"),
        series(&live, &gpu::UTILIZATION, "1"),
    ];
    // A cell from second 10 to second 51: the GPU is busy except in its first 7 s, and memory stays 2.1 GiB higher.
    for second in 0..60i64 {
        let within = (10..=51).contains(&second);
        let busy = if (17..=51).contains(&second) { 100.0 } else { 0.0 };
        let memory = if second < 10 {
            4.0
        } else if second == 30 {
            9.0
        } else {
            6.1
        };
        let mut values = [0.0; 5];
        values[ids[0]] = memory * GIB;
        values[ids[1]] = busy;
        values[ids[2]] = if within { 12.3 } else { 1.0 } * GIB;
        values[ids[3]] = 15.9 * GIB;
        live.append(0, NOW - 60_000 + second * 1_000, false, &values).expect("a tick");
    }
    let at = |second: i64| NOW - 60_000 + second * 1_000;
    let mut start = Marker { kind: "cell".into(), kernel: Some(ID.into()), n: Some(7), ..Marker::default() };
    (start.phase, start.cpu_seconds, start.cores) = (Some(CellPhase::Start), Some(100.0), Some(8.0));
    let mut end = start.clone();
    (end.phase, end.cpu_seconds, end.ok) = (Some(CellPhase::End), Some(259.9), Some(true));
    let found = runs(&[(1, at(10), start), (2, at(51), end)], NOW, |_| None);
    let mut cells: Vec<_> = found.into_iter().map(|(cell, ..)| cell).collect();
    measure(&live, 0, &mut cells, NOW);
    let cell = &cells[0];
    let line = "[7] 41 s · GPU 0 83 % busy, peak 12.3 of 15.9 GiB · +2.1 GiB retained · 3.9 of 8 cores";
    assert_eq!(words::line(cell), line);
    assert_eq!(words::finding(cell).as_deref(), None, "7 s of 41 are no fifth");
    assert_eq!((cell.peak, cell.at_least), (Some((9.0 * GIB) as u64), false));
    assert_eq!(cell.gpus.len(), 1, "the other GPU did nothing");
    let shown = json::cell(cell, "here");
    assert_eq!((shown.gpus[0].idle, shown.memory.map(|memory| memory.at_least)), (Some(7.0), Some(false)));
}

#[test]
fn ends_belong_to_the_start_before_them_of_the_same_kernel() {
    let other = "ffffffff-4e5f-6071-8293-a4b5c6d7e8f9";
    let marker = |t: i64, id: &str, phase, n| {
        let marker = Marker { kernel: Some(id.into()), phase: Some(phase), n: Some(n), ..Marker::default() };
        (0, t, marker)
    };
    let all = [
        marker(900, ID, CellPhase::End, 0),
        marker(1_000, ID, CellPhase::Start, 1),
        marker(1_500, other, CellPhase::Start, 9),
        marker(2_000, ID, CellPhase::End, 1),
        marker(3_000, ID, CellPhase::Start, 2),
        marker(4_000, ID, CellPhase::Start, 3),
        marker(4_500, other, CellPhase::End, 9),
        marker(5_000, other, CellPhase::Start, 10),
    ];
    let found = runs(&all, 10_000, |id| (id == ID).then_some(6_000));
    let spans: Vec<_> = found.iter().map(|(cell, ..)| (cell.n, cell.from, cell.to, cell.seconds)).collect();
    let run = |n, from, to, seconds| (Some(n), from, to, seconds);
    assert_eq!(
        spans,
        [
            run(1, 1_000, Some(2_000), 1.0),
            run(9, 1_500, Some(4_500), 3.0),
            run(2, 3_000, Some(4_000), 1.0),
            run(3, 4_000, Some(6_000), 2.0),
            run(10, 5_000, None, 5.0),
        ]
    );
    assert_eq!((found[3].0.ok, found[3].0.error.as_deref()), (Some(false), Some("kernel ended")));
}

#[test]
fn what_lab_tells_of_cells_is_left_out_once_their_kernel_tells_it() {
    let (live, _) = live();
    let markers = Markers::default();
    let lab = |t: i64, phase: &str, cell: &str| {
        let (seconds, id) = (t as f64 / 1_000.0, format!("{cell}-{t}-{phase}"));
        new(
            object!({ "kind": "cell", "by": "lab", "kernel": ID, "id": id, "t": seconds, "phase": phase, "cell": cell }),
        )
    };
    let at = |second: i64| NOW - 60_000 + second * 1_000;
    // The cell that loads the hooks has no start of its own; from the next cell on both sources report.
    let first =
        [lab(at(1), "start", "a"), lab(at(2), "end", "a"), lab(at(3), "start", "c"), cell(1, at(3) + 2, "start")];
    assert_eq!(markers.take(&live, 0, first.into()), taken(4, 0));
    assert_eq!(markers.take(&live, 0, vec![cell(2, at(5), "end"), lab(at(5) + 3, "end", "c")]), taken(2, 0));
    assert_eq!(markers.take(&live, 0, vec![lab(at(6), "start", "d"), lab(at(7), "end", "d")]), taken(2, 0));
    let kept = between(&live, 0, (0, NOW), 100, |_| true);
    assert_eq!(
        kept.iter().filter(|(_, _, marker)| marker.by.is_some()).count(),
        3,
        "of what came later none: {kept:?}"
    );
    let found = runs(&kept, NOW, |_| None);
    let spans: Vec<_> = found.iter().map(|(cell, ..)| (cell.cell.as_deref(), cell.from, cell.to)).collect();
    assert_eq!(spans, [(Some("a"), at(1), Some(at(2))), (Some("c"), at(3) + 2, Some(at(5)))]);
    // A restarted kernel has no hooks until they are loaded again.
    let again = inventory::Kernel { id: ID.into(), started: Some(at(8)), ..inventory::Kernel::default() };
    live.source(0).kernels.put(vec![again], Vec::new(), 0);
    assert_eq!(markers.take(&live, 0, vec![lab(at(9), "start", "e")]), taken(1, 0));
    assert_eq!(markers.open(&live, 0, ID).and_then(|open| open.cell).as_deref(), Some("e"));
}

#[test]
fn a_kernel_that_has_ended_is_told_of_by_the_next_program_too() {
    use inventory::{Kernel, KernelEnd};
    let (live, _) = live();
    let keeper = ended::keeper(&live, 0);
    Markers::default().take(&live, 0, vec![cell(1, NOW - 9_000, "start")]).expect("taken");
    let path = Some("/a/<b>.ipynb".to_string());
    let end = KernelEnd { at: NOW - 2_000, killed_for_memory: true, cell: None };
    let kernel = Kernel { id: ID.into(), pid: 5, path, used: Some(9), limit: Some(10), ..Kernel::default() };
    let (started, other) = (Some(NOW - 4_000), "ffffffff-4e5f-6071-8293-a4b5c6d7e8f9".to_string());
    let second =
        Kernel { id: other, started, end: Some(KernelEnd { at: NOW - 1_000, ..end.clone() }), ..Kernel::default() };
    let first = Kernel { end: Some(end), ..kernel };
    let mut both = vec![first, second];
    both.iter_mut().for_each(|kernel| keeper.ended(kernel));
    live.source(0).kernels.put(Vec::new(), both, 0);
    let told = live.source(0).kernels.all().0;
    let cells: Vec<_> = told.iter().filter_map(|kernel| kernel.end.clone()?.cell).collect();
    assert_eq!((told.len(), cells), (2, vec!["[7]".to_string()]), "the newest first");
    // Another process of the same folder has the records only.
    let fresh = inventory::Kernels::default();
    fresh.put_former(ended::former(&live, 0));
    assert_eq!(fresh.all().0, told);
}

#[test]
fn a_cell_that_asked_a_full_gpu_for_memory_says_who_held_it() {
    let gib = |gib: f64| Some((gib * GIB) as u64);
    let gpu = |gpu, peak, kernel| CellGpu { gpu, peak, total: gib(15.9), kernel, ..CellGpu::default() };
    let gpus = vec![gpu(0, gib(3.0), None), gpu(1, gib(15.2), gib(11.0))];
    let mut cell = Cell { error: Some("OutOfMemoryError".into()), gpus, ..Cell::default() };
    let found = "GPU 1 was full: 15.2 of 15.9 GiB was in use, 11 GiB of it by this kernel";
    assert_eq!(words::finding(&cell).as_deref(), Some(found));
    cell.error = Some("KeyError".into());
    assert_eq!(words::finding(&cell), None);
    cell = Cell { error: Some("OutOfMemoryError".into()), ..Cell::default() };
    assert_eq!(words::finding(&cell), None, "of which GPU is not known");
}

#[test]
fn how_a_kernel_ended_is_one_sentence() {
    use inventory::{Kernel, KernelEnd, MemoryWarning};
    let bytes = |gib: f64| Some((gib * GIB) as u64);
    let mut kernel = Kernel {
        path: Some("/home/a/train.ipynb".into()),
        memory: bytes(28.4),
        used: bytes(31.8),
        limit: bytes(32.0),
        limited: true,
        warning: Some(MemoryWarning::Seconds(12)),
        ..Kernel::default()
    };
    assert_eq!(words::how(&kernel), None, "it runs");
    let warning = "Memory will be full in about 12 s at this rate: 31.8 of 32 GiB of this container is in use.";
    assert_eq!(words::warning(&kernel).as_deref(), Some(warning));
    kernel.end = Some(KernelEnd { at: NOW, killed_for_memory: true, cell: Some("[7]".into()) });
    let how = "The kernel of train.ipynb was killed for memory: 31.8 of 32 GiB of this container was in use, 28.4 GiB of it in the kernel, while cell [7] ran.";
    assert_eq!(words::how(&kernel).as_deref(), Some(how));
    kernel.end = Some(KernelEnd { at: NOW, ..KernelEnd::default() });
    kernel.used = bytes(10.0);
    let how = "The kernel of train.ipynb ended; memory was not short. The cause cannot be determined.";
    assert_eq!(words::how(&kernel).as_deref(), Some(how));
}
