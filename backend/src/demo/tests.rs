//! Properties of a demo: it is reproducible, it is lively, and each fault shows in the expected series.

use super::past::RARE_MS;
use super::*;
use crate::config::Fail;
use collectors::Out;
use shared::catalog::{self, Catalog, Kind};
use shared::failure::FailureClass;
use shared::run::{BEGIN_KIND, Begun, END_KIND, How, Over};
use std::collections::BTreeMap;
use stream::clock::Manual;

const T0: i64 = 1_790_000_000_000;

pub(super) fn fleet(gpus: u32, hosts: u32, fail: Option<Fail>, seed: u64) -> Fleet {
    Fleet { gpus, hosts, fail, seed }
}

/// All readings of a machine at an instant.
fn at(machine: &Machine, t: i64) -> BTreeMap<String, f64> {
    let mut out = Out::default();
    out.begin(Duration::ZERO);
    machine.read(t, &mut out);
    out.present().into_iter().collect()
}

/// Mean of a tag over 20 s from `t` on; none when it is absent in one of them.
fn mean(machine: &Machine, t: i64, tag: &str) -> Option<f64> {
    let all: Option<Vec<f64>> = (0..20).map(|n| at(machine, t + n * 1_000).get(tag).copied()).collect();
    all.map(|all| all.iter().sum::<f64>() / all.len() as f64)
}

/// A begin of at least `long` milliseconds of undisturbed training, with 200 s of training and checkpoint before it.
pub(super) fn training(machine: &Machine, long: i64) -> i64 {
    let quiet = |t: i64| (t..t + long).step_by(1_000).all(|t| at(machine, t)["gpu.0.gpu"] > 90.0);
    (T0..).step_by(5_000).find(|t| quiet(*t)).expect("it trains most of the time")
}

fn broken(fail: Fail, gpus: u32) -> (Machine, Machine, i64, String) {
    let well = fleet(gpus, 1, None, 5);
    let since = training(&Machine::new(&well, 0, 0), 30_000) + 5_000;
    let machine = Machine::new(&Fleet { fail: Some(fail), ..well }, 0, since);
    let gpu = machine.fault().expect("a fault").gpu();
    (machine, Machine::new(&well, 0, 0).under_way(since), since, format!("gpu.{gpu}."))
}

#[test]
fn one_seed_is_one_fleet_at_any_instant_in_any_order() {
    let (a, b) = (Machine::new(&fleet(3, 2, None, 9), 1, 0), Machine::new(&fleet(3, 2, None, 9), 1, T0));
    let times: Vec<i64> = (0..200).map(|n| T0 + n * 7_321).collect();
    let forth: Vec<_> = times.iter().map(|t| at(&a, *t)).collect();
    let back: Vec<_> = times.iter().rev().map(|t| at(&b, *t)).collect();
    assert!(forth.iter().eq(back.iter().rev()));
    let other = Machine::new(&fleet(3, 2, None, 10), 1, 0);
    let neighbor = Machine::new(&fleet(3, 2, None, 9), 0, 0);
    assert_ne!(at(&other, T0), forth[0]);
    assert_ne!(at(&neighbor, T0), forth[0]);
}

#[test]
fn before_its_moment_a_fault_changes_nothing() {
    for (name, fail) in Fail::ALL.into_iter().filter(|(_, fail)| *fail != Fail::None) {
        let (machine, well, since, _) = broken(fail, 4);
        for t in (since - 20_000..since).step_by(1_000) {
            assert_eq!(at(&machine, t), at(&well, t), "{name}");
        }
    }
}

#[test]
fn the_seven_charts_of_the_notebook_have_data() {
    let catalog = Catalog::new(catalog::VOCABULARY.iter().copied().flatten().copied());
    let machine = Machine::new(&fleet(2, 1, None, 1), 0, 0);
    let seen = at(&machine, T0);
    for chart in &catalog.layout.lead {
        let drawn = seen.keys().filter_map(|tag| catalog.find(tag).ok()).filter(|found| {
            let row = &catalog.metrics[usize::from(found.metric)];
            row.chart == *chart && row.draw == catalog::Draw::Line
        });
        assert!(drawn.count() > 0, "{chart} would be empty");
    }
    for rows in [catalog::cpu::ROWS, catalog::memory::ROWS, catalog::disk::ROWS, catalog::network::ROWS] {
        for row in rows {
            assert!(
                seen.keys()
                    .any(|tag| catalog.find(tag).is_ok_and(|f| catalog.metrics[usize::from(f.metric)].tag == row.tag)),
                "{}",
                row.tag
            );
        }
    }
}

#[test]
fn values_can_be_and_counters_never_fall() {
    let catalog = Catalog::new(catalog::VOCABULARY.iter().copied().flatten().copied());
    for fail in [
        None,
        Some(Fail::Hang),
        Some(Fail::Ecc),
        Some(Fail::Straggler),
        Some(Fail::Oom),
        Some(Fail::Throttle),
        Some(Fail::Memory),
        Some(Fail::Starvation),
        Some(Fail::Idle),
    ] {
        let machine = Machine::new(&fleet(2, 1, fail, 3), 0, T0 + 200_000);
        let row = |tag: &String| &catalog.metrics[usize::from(catalog.find(tag).expect("a row").metric)];
        let mut before = at(&machine, T0);
        let percents: Vec<String> = before.keys().filter(|tag| row(tag).unit == Unit::Percent).cloned().collect();
        let counters: Vec<String> = before.keys().filter(|tag| row(tag).kind == Kind::Counter).cloned().collect();
        assert!(percents.len() > 30 && counters.len() > 15);
        for t in (T0..T0 + 700_000).step_by(500) {
            let seen = at(&machine, t);
            assert!(seen.values().all(|value| *value >= 0.0), "{fail:?} at {t}");
            for tag in percents.iter().filter(|tag| seen.contains_key(*tag)) {
                assert!(seen[tag] <= 100.6, "{fail:?} {tag} {} at {t}", seen[tag]);
            }
            for tag in &counters {
                assert!(seen[tag] >= before[tag], "{fail:?} {tag} fell from {} to {} at {t}", before[tag], seen[tag]);
            }
            before = seen;
        }
    }
}

#[test]
fn it_looks_like_training() {
    let machine = Machine::new(&fleet(8, 1, None, 1), 0, 0);
    let t = training(&machine, 40_000);
    let seen = at(&machine, t + 20_000);
    assert!(seen["gpu.0.powerWatts"] > 560.0 && seen["gpu.0.powerWatts"] < 704.0);
    assert!(seen["gpu.0.memoryAllocated"] > 85.0 && seen["gpu.0.temp"] > 55.0);
    // Within ten minutes there is a checkpoint: the GPUs are idle, and the disk is written.
    let minutes: Vec<_> = (t..t + 600_000).step_by(1_000).map(|t| at(&machine, t)).collect();
    let rate = |tag: &str, n: usize| minutes[n + 1][tag] - minutes[n][tag];
    let still: Vec<usize> = (0..599).filter(|n| minutes[*n]["gpu.0.gpu"] < 10.0).collect();
    assert!(still.len() >= 8, "{} seconds of standing still", still.len());
    let written: f64 = still.iter().map(|n| rate("disk.nvme1n1.out", *n)).sum();
    assert!(written > 10_000.0, "{written} MiB");
    // The temperature follows with inertia.
    let steps = minutes.windows(2).map(|w| (w[1]["gpu.0.temp"] - w[0]["gpu.0.temp"]).abs());
    assert!(steps.fold(0.0, f64::max) <= 4.0);
    // The energy counter matches the power readings, within 5 %.
    let joules = minutes[599]["gpu.3.energyJoules"] - minutes[0]["gpu.3.energyJoules"];
    let watts: f64 = minutes.iter().map(|m| m["gpu.3.powerWatts"]).sum::<f64>();
    assert!((joules / watts - 1.0).abs() < 0.05, "{joules} J by the counter, {watts} J by the meter");
    assert!((0..599).all(|n| rate("network.recv", n) >= 0.0) && rate("network.recv", 20) > 1e9);
}

#[test]
fn lost_one_gpu_ends_and_the_others_wait() {
    let (machine, _, since, gpu) = broken(Fail::Lost, 4);
    let seen = at(&machine, since + 60_000);
    assert!(!seen.keys().any(|tag| tag.starts_with(&gpu)), "its series end");
    assert_eq!(seen.keys().filter(|tag| tag.ends_with(".powerWatts")).count(), 3);
    let last = at(&machine, since + 500);
    assert_eq!(last.keys().filter(|tag| tag.starts_with(&gpu)).count(), 2, "the driver's last word");
    assert_eq!(last[&format!("{gpu}lastXid")], 79.0);
    let waiting = seen.iter().filter(|(tag, _)| tag.ends_with(".powerWatts")).map(|(_, watts)| *watts);
    assert!(waiting.fold(0.0, f64::max) < 0.25 * 700.0, "the others wait for it in a kernel");
    assert!(at(&machine, since + 700_000)["gpu.0.gpu"].min(at(&machine, since + 700_000)["gpu.3.gpu"]) < 1.0);
    assert!(machine.fault().and_then(|fault| fault.words(0)).is_some_and(|(reason, _)| reason.contains("bus")));
}

#[test]
fn hang_all_are_busy_with_nothing() {
    let (machine, _, since, _) = broken(Fail::Hang, 4);
    let (a, b) = (at(&machine, since + 170_000), at(&machine, since + 180_000));
    for i in 0..4 {
        assert_eq!(b[&format!("gpu.{i}.gpu")], 100.0);
        assert!((130.0..150.0).contains(&b[&format!("gpu.{i}.powerWatts")]), "a fifth of 700 W");
        assert_eq!(b[&format!("gpu.{i}.nvlinkTxBytes")], 0.0);
        assert!(b[&format!("gpu.{i}.temp")] < 45.0, "it has cooled down");
    }
    assert_eq!(a["network.ib0.sent"], b["network.ib0.sent"]);
}

#[test]
fn throttle_one_is_hot_and_slow() {
    let (machine, well, since, gpu) = broken(Fail::Throttle, 4);
    let other = if gpu == "gpu.0." { "gpu.1." } else { "gpu.0." };
    let of = |machine: &Machine| mean(machine, since, &format!("{other}pipeTensorActive")).expect("it is there");
    assert!(of(&machine) < 0.75 * of(&well), "the others wait for it");
    let (seen, healthy) = (at(&machine, since + 150_000), at(&well, since - 1_000));
    assert!((86.0..=90.0).contains(&seen[&format!("{gpu}temp")]));
    assert!(seen[&format!("{gpu}smClock")] < 1_300.0 && healthy[&format!("{gpu}smClock")] > 1_600.0);
    assert_eq!(seen[&format!("{gpu}throttleReasons")], 96.0);
}

#[test]
fn ecc_errors_rise() {
    let (machine, _, since, gpu) = broken(Fail::Ecc, 4);
    let (early, late) = (at(&machine, since - 1_000), at(&machine, since + 120_000));
    let risen = |name: &str| late[&format!("{gpu}{name}")] - early[&format!("{gpu}{name}")];
    assert!(risen("correctedMemoryErrors") >= 100.0 && risen("uncorrectedMemoryErrors") == 1.0);
    assert_eq!((late[&format!("{gpu}lastXid")], late["gpu.0.gpu"]), (48.0, 0.0), "and the job is dead");
}

#[test]
fn straggler_one_is_slow_and_the_others_wait() {
    let (machine, well, since, gpu) = broken(Fail::Straggler, 4);
    let slow = mean(&machine, since, &format!("{gpu}gpu")).expect("it is there");
    assert!(slow > 98.0, "{slow}: it has no time to wait");
    let clock = |machine: &Machine| mean(machine, since, &format!("{gpu}smClock")).expect("it is there");
    assert!(clock(&machine) < 0.85 * clock(&well));
    let other = (0..4).map(|i| format!("gpu.{i}.")).find(|other| *other != gpu).expect("there are others");
    let of = |machine: &Machine, name: &str| mean(machine, since, &format!("{other}{name}")).expect("it is there");
    assert!(of(&machine, "gpu") > 98.0, "waiting counts as busy");
    assert!(of(&machine, "powerWatts") < 0.85 * of(&well, "powerWatts"));
    assert!(of(&machine, "pipeTensorActive") < 0.8 * of(&well, "pipeTensorActive"));
    assert!(of(&machine, "nvlinkTxBytes") < 0.8 * of(&well, "nvlinkTxBytes"));
}

#[test]
fn oom_the_memory_fills_up_and_the_job_dies() {
    let (machine, _, since, gpu) = broken(Fail::Oom, 4);
    let share = |t: i64| at(&machine, t)[&format!("{gpu}memoryAllocated")];
    assert!(share(since + 30_000) > share(since) && share(since + 148_000) > 99.5);
    let dead = at(&machine, since + 170_000);
    for i in 0..4 {
        assert_eq!(dead[&format!("gpu.{i}.gpu")], 0.0);
        assert!(dead[&format!("gpu.{i}.memoryAllocated")] < 1.0 && dead[&format!("gpu.{i}.powerWatts")] < 80.0);
    }
    assert!(!dead.contains_key("proc.processes"), "its processes are gone");
    assert!(dead["system.cpu_percent"] < 5.0);
}

#[test]
fn the_process_table_is_the_same_twice_and_fits_the_devices() {
    let (a, b) = (Machine::new(&fleet(8, 1, None, 3), 0, 0), Machine::new(&fleet(8, 1, None, 3), 0, T0));
    let t = training(&a, 30_000) + 20_000;
    let (table, seen) = (a.processes(t), at(&a, t));
    assert_eq!(table, b.processes(t));
    assert_ne!(table, Machine::new(&fleet(8, 1, None, 4), 0, 0).processes(t));
    let job: Vec<_> = table.rows.iter().filter(|p| p.watched).collect();
    assert_eq!(job.len() as f64, seen["proc.processes"]);
    assert_eq!(job.iter().map(|p| p.threads).sum::<u32>() as f64, seen["proc.cpu.threads"]);
    let resident = job.iter().map(|p| p.rss as f64).sum::<f64>() / 1024.0 / 1024.0;
    assert!((resident / seen["proc.memory.rssMB"] - 1.0).abs() < 0.01);
    // The driver has its part, the job's trainers have the rest: one on each GPU.
    let mut held: Vec<f64> = job.iter().filter_map(|p| p.gpu_memory).map(|bytes| bytes as f64).collect();
    let mut used: Vec<f64> = (0..8).map(|i| seen[&format!("gpu.{i}.memoryAllocatedBytes")]).collect();
    held.sort_by(f64::total_cmp);
    used.sort_by(f64::total_cmp);
    assert_eq!(held.len(), 8);
    assert!(held.iter().zip(&used).all(|(held, used)| (0.005..0.01).contains(&(1.0 - held / used))));
    let pids: std::collections::BTreeSet<u32> = table.rows.iter().map(|p| p.pid).collect();
    assert_eq!(pids.len(), table.rows.len(), "no process stands there twice");
    assert!(table.rows.iter().all(|p| p.parent <= 1 || pids.contains(&p.parent)));
    assert!(table.rows.windows(2).all(|w| w[0].cpu >= w[1].cpu), "busiest first");
}

#[test]
fn starvation_the_disk_does_no_more_and_the_gpus_wait() {
    let (machine, well, since, _) = broken(Fail::Starvation, 4);
    let of = |machine: &Machine, tag: &str| mean(machine, since, tag).expect("it is there");
    assert!(of(&machine, "gpu.0.gpu") < 70.0 && of(&well, "gpu.0.gpu") > 85.0);
    assert!(of(&machine, "disk.nvme1n1.busy_percent") > 97.0);
    assert!(of(&machine, "gpu.0.powerWatts") < 0.85 * of(&well, "gpu.0.powerWatts"));
}

#[test]
fn link_one_has_half_of_its_lanes() {
    let (machine, _, since, gpu) = broken(Fail::Link, 4);
    let seen = at(&machine, since + 1_000);
    let widths: Vec<f64> = (0..4).map(|i| seen[&format!("gpu.{i}.pcieLinkWidth")]).collect();
    assert_eq!(seen[&format!("{gpu}pcieLinkWidth")], 8.0);
    assert_eq!(widths.iter().sum::<f64>(), 56.0);
}

#[test]
fn memory_the_machine_is_full_and_the_job_is_killed() {
    let (machine, _, since, _) = broken(Fail::Memory, 4);
    let used = |t: i64| at(&machine, t)["memory.working_set_percent"];
    assert!(used(since + 180_000) > 80.0 && used(since + 213_000) > 97.0);
    assert!(used(since + 300_000) < 10.0 && at(&machine, since + 300_000)["gpu.0.gpu"] < 1.0);
}

#[test]
fn idle_the_gpus_are_held_and_nothing_is_done() {
    let (machine, _, since, _) = broken(Fail::Idle, 4);
    let seen = at(&machine, since + 60_000);
    assert!(seen["gpu.0.memoryAllocated"] > 80.0 && seen["gpu.0.gpu"] == 0.0);
    assert!(machine.processes(since + 60_000).rows.iter().any(|process| process.watched));
}

#[test]
fn when_the_job_has_died_its_processes_are_gone() {
    let (machine, _, since, _) = broken(Fail::Oom, 4);
    let table = machine.processes(since + 170_000);
    assert!(table.rows.len() > 8 && table.rows.iter().all(|p| !p.watched && p.gpu_memory.is_none()));
}

/// The clock does not advance during the work, so the whole retention is filled in.
#[test]
fn history_is_filled_in_and_goes_on_without_a_seam() {
    let fleet = fleet(2, 3, None, 1);
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: 3_600_000, bytes: usize::MAX });
    let clock = Manual::at(T0 + 345, Duration::ZERO);
    let mut demo = Demo::new(&mut store, &fleet, 1_000, T0);
    assert_eq!(demo.fill(&mut store, &fleet, (3_600_000, usize::MAX), &clock), 3_600_000);
    demo.feeds.iter_mut().for_each(|feed| feed.tick(&mut store, T0 + 1_000, false));
    let names: Vec<String> = store.sources().iter().map(|s| s.name.clone()).collect();
    assert_eq!(names, ["demo-01", "demo-02", "demo-03"]);
    for source in store.sources() {
        assert!(source.facts.iter().any(|(word, value)| word == "simulated" && value.contains("seed 1")));
        let id = store.series(source.id, 0).iter().position(|def| store.catalog().tag(def) == "gpu.1.temp");
        let id = id.expect("it has two GPUs") as u32;
        let samples = store.snapshot(source.id, 0, i64::MAX).expect("it is there").samples(&[id]);
        let times: Vec<i64> = samples[0].iter().map(|(t, _)| *t).collect();
        assert!(times.windows(2).all(|w| w[1] - w[0] == 1_000), "every second once");
        assert!(times.len() >= 3_000 && *times.last().expect("some") == T0 + 1_000);
        let (checks, _) = store.checks(source.id);
        assert!(checks.iter().any(|c| c.id == "nvidia" && c.state == CheckState::Ok));
        assert!(checks.iter().any(|c| c.id == "monitor" && c.state == CheckState::Absent && !c.reason.is_empty()));
    }
}

/// A machine of a fleet whose first rack has a fault at `T0`.
fn of_fleet(fail: Fail, number: u32) -> Machine {
    Machine::new(&fleet(2, 10, Some(fail), 5), number, T0)
}

#[test]
fn a_fault_is_felt_by_the_job_of_its_rack_and_by_no_other() {
    for (name, fail) in Fail::ALL.into_iter().filter(|(_, fail)| !matches!(fail, Fail::None | Fail::Links)) {
        let (other, well) = (of_fleet(fail, 8), Machine::new(&fleet(2, 10, None, 5), 8, 0));
        for t in (T0 - 60_000..T0 + 900_000).step_by(30_000) {
            assert_eq!(at(&other, t), at(&well, t), "{name}");
        }
        assert_eq!(of_fleet(fail, 7).place(), (0, 7, 8));
        assert_eq!(other.place(), (1, 0, 2), "{name}");
    }
}

fn ends(machine: &Machine, from: i64, to: i64) -> Vec<Over> {
    let told = machine.list_records(from, to).into_iter().filter(|record| record.kind == END_KIND);
    told.map(|record| serde_json::from_slice(&record.body).expect("an end")).collect()
}

#[test]
fn runs_of_a_rack_follow_each_other_with_a_rank_for_each_gpu() {
    let machine = Machine::new(&fleet(2, 10, None, 5), 9, 0);
    let (from, to) = (T0, T0 + 12 * 3_600_000);
    let whole = machine.list_records(from, to);
    assert!(whole.windows(2).all(|w| w[0].t <= w[1].t) && whole.iter().all(|one| from < one.t && one.t <= to));
    // Second by second it returns the same records once.
    let seconds =
        (from..to).step_by(1_000).flat_map(|t| machine.list_records(t, t + 1_000)).map(|one| (one.t, one.body));
    assert_eq!(seconds.collect::<Vec<_>>(), whole.iter().map(|one| (one.t, one.body.clone())).collect::<Vec<_>>());
    let begins = whole.iter().filter(|one| one.kind == BEGIN_KIND);
    let begins: Vec<Begun> = begins.map(|one| serde_json::from_slice(&one.body).expect("a begin")).collect();
    assert!(begins.len() >= 6 && begins.len().is_multiple_of(3), "{}", begins.len());
    for run in begins.chunks(3) {
        assert!(run.iter().all(|one| one.run == run[0].run && one.joined), "its first machine began it");
        let ranks: Vec<_> =
            run.iter().filter_map(|one| one.rank.as_ref().map(|rank| (rank.rank, rank.world))).collect();
        assert_eq!(ranks, [(2, Some(4)), (3, Some(4))]);
        let pids: Vec<u32> = machine.processes(run[0].t + 60_000).rows.iter().map(|process| process.pid).collect();
        assert!(run.iter().all(|one| pids.contains(&one.pid)), "they are in the process table");
    }
    let ends = ends(&machine, from, to);
    let fallen: Vec<&Over> = ends.iter().filter(|over| over.how.exit != Some(0)).collect();
    assert!(!fallen.is_empty() && fallen.len() < ends.len() && fallen.len().is_multiple_of(3), "every third run falls");
    for run in fallen.chunks(3) {
        // Its rank that fell first is on the other machine.
        let (signal, exit) =
            (run.iter().filter(|over| over.how.signal.is_some()), run.iter().filter_map(|o| o.how.exit));
        assert_eq!(
            (signal.count(), exit.collect::<Vec<_>>()),
            (2, vec![1]),
            "the launcher ends the others, and itself"
        );
        assert!(run.iter().all(|over| over.begun.run == run[0].begun.run));
    }
    assert!((ends.len() as i64 - begins.len() as i64).abs() <= 3);
}

#[test]
fn a_job_that_dies_of_a_fault_falls_at_the_rank_that_has_it_and_is_not_begun_again() {
    for (fail, how) in [
        (Fail::Oom, How { exit: Some(1), ..How::default() }),
        (Fail::Ecc, How { exit: Some(1), ..How::default() }),
        (
            Fail::Lost,
            How { signal: Some("SIGABRT".into()), failure: Some(FailureClass::NcclTimeout), ..How::default() },
        ),
    ] {
        let (machine, to) = (of_fleet(fail, 0), T0 + 24 * 3_600_000);
        let gpu = machine.fault().expect("a fault").gpu();
        let mut ends = ends(&machine, T0, to);
        ends.sort_by_key(|over| over.t);
        assert_eq!(ends.len(), 3, "{fail:?}");
        assert_eq!(ends[0].begun.rank.as_ref().map(|rank| &rank.gpus[..]), Some(&[gpu][..]), "{fail:?}");
        assert_eq!(ends[0].how, how);
        assert_eq!((ends[2].begun.rank.as_ref(), ends[2].how.exit), (None, Some(1)));
        assert!(machine.list_records(T0, to).iter().all(|record| record.kind == END_KIND), "{fail:?}: none begins");
    }
}

#[test]
fn the_past_of_a_fleet_comes_newest_first_until_it_is_whole() {
    const LONG_MS: i64 = 6 * 3_600_000;
    let fleet = fleet(1, 2, None, 1);
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: LONG_MS, bytes: usize::MAX });
    let mut demo = Demo::new(&mut store, &fleet, 1_000, T0);
    let last = T0 / 1_000;
    for feed in &mut demo.feeds {
        let span = (last - LONG_MS / 1_000, last);
        let mut past = MachinePast::new(&feed.machine, feed.source, 1_000, span, None, false);
        past.fill(&mut store, last - 240);
        store.go_on_above(feed.source, past.seq(last) - 1);
        feed.tick(&mut store, T0, false);
        demo.filler.pasts.push(past);
    }
    let live = Live::of_simulated(store, Arc::new(Manual::at(T0 + 345, Duration::ZERO)), 1, LONG_MS);
    let times = |tag: &str| {
        let store = live.store();
        let id = store.series(1, 0).iter().position(|def| store.catalog().tag(def) == tag).expect("it is there") as u32;
        store.snapshot(1, i64::MIN, i64::MAX).expect("it is there").samples(&[id]).remove(0)
    };
    assert_eq!(times("gpu.0.temp").len(), 241);
    demo.filler.ticked = Arc::new(T0.into());
    let (filler, learned) = (demo.filler, std::cell::Cell::new(0));
    filler.run(&live, &AtomicBool::new(false), || learned.set(times("gpu.0.temp").len()));
    assert!((4_500..9_000).contains(&learned.get()), "{}", learned.get());
    let machine = &demo.feeds[1].machine;
    for (tag, grows) in [("gpu.0.temp", false), ("gpu.0.energyJoules", true), ("network.recv", true)] {
        let all = times(tag);
        assert_eq!(all.len() as i64, LONG_MS / 1_000 + 1, "{tag}");
        assert!(all.windows(2).all(|w| w[1].0 - w[0].0 == 1_000 && (!grows || w[1].1 >= w[0].1)), "{tag}");
        // At instants with readings it equals them.
        let (t, value) = all.iter().copied().find(|(t, _)| t % RARE_MS == 0).expect("a reading");
        assert_eq!(value, at(machine, t)[tag], "{tag}");
        let (t, value) = all[all.len() - 1_801];
        assert_eq!(value, at(machine, t)[tag], "{tag} in the newest hour");
    }
    assert_eq!(live.store().coverage(1), [(1, LONG_MS as u64 / 1_000 + 1)], "no sequence is missing");
    assert_eq!(live.source(1).connection_state().0, ConnectionState::Live);
    assert!(live.source(1).figures().holes.is_empty());
}

#[test]
fn a_past_that_finds_no_room_ends_and_what_is_there_is_whole() {
    const LONG_MS: i64 = 12 * 3_600_000;
    let fleet = fleet(1, 1, None, 1);
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: LONG_MS, bytes: usize::MAX });
    let demo = Demo::new(&mut store, &fleet, 1_000, T0);
    let last = T0 / 1_000;
    let past = MachinePast::new(&demo.feeds[0].machine, 0, 1_000, (last - LONG_MS / 1_000, last), None, false);
    let live = Live::of_simulated(store, Arc::new(Manual::at(T0, Duration::ZERO)), 1, LONG_MS);
    let filler = Filler { pasts: vec![past], bytes: 0, most: 200_000, ticked: Arc::new(T0.into()) };
    filler.run(&live, &AtomicBool::new(false), || {});
    let runs = live.store().coverage(0);
    assert_eq!((runs.len(), runs[0].1), (1, LONG_MS as u64 / 1_000));
    assert!(runs[0].0 > 1, "the oldest is left out: {runs:?}");
    assert_eq!(live.source(0).connection_state().0, ConnectionState::Live);
}
