//! Memory, disks, missing data, and machines that fall silent.

use super::trace::{Does, OFF, START, Sheet, Trace, WORKS, check, findings_of, last, one, put_host, rules};
use crate::{Job, Rank};
use shared::catalog::{cpu, disk, gpu, memory, mount, process};
use shared::finding::Severity;

fn works(t: i64) -> Sheet {
    one(8, t, |_, t| if t < 60 { OFF } else { WORKS })
}

fn with_memory(of: impl Fn(i64) -> f64) -> impl Fn(i64) -> Option<Sheet> {
    move |t| {
        Some(one(8, t, |gpu, t| match t {
            ..60 => OFF,
            _ if gpu == 5 => Does { memory: of(t), ..WORKS },
            _ => WORKS,
        }))
    }
}

#[test]
fn gpu_memory_that_leaks_is_told_before_it_is_full() {
    for interval in [1000, 10_000, 60_000] {
        let leak = |t: i64| (40.0 + 0.02 * (t - 600).max(0) as f64).min(80.0);
        let all = findings_of(2500, interval, with_memory(leak));
        assert_eq!(rules(&all), ["gpu_memory"], "{interval}");
        check(&all[0]);
        assert_eq!(all[0].subject[0].gpus, [5]);
        // It is full at second 2,600.
        let left = START + 2600 - all[0].told;
        assert!((60..=620).contains(&left), "{left} s before");
    }
    // From 56 % to full within 390 s, of which the last 6 % take 53 s: told by the samples before it is full.
    for interval in [15_000, 30_000] {
        let steep = |t: i64| if t < 900 { 45.0 } else { (45.0 + 0.09 * (t - 900) as f64).min(79.9) };
        let all = findings_of(1285, interval, with_memory(steep));
        assert_eq!(rules(&all), ["gpu_memory"], "{interval}");
        assert!(all[0].told < START + 1285, "{interval}");
    }
    let fast = |t: i64| if t < 900 { 40.0 } else { (40.0 + 0.1 * (t - 900) as f64).min(79.9) };
    let all = findings_of(1800, 1000, with_memory(fast));
    assert_eq!(rules(&all), ["gpu_memory"]);
    assert_eq!(all[0].severity, Severity::Warning, "the first tooth of a saw looks like this");
    assert!(all[0].until.is_some(), "full and flat: it is over");
}

#[test]
fn ticks_that_come_a_little_late_make_no_other_interval() {
    let mut trace = Trace::new(1, 60_000);
    for minute in 0..50_i64 {
        // Every 60 s, and up to 3 s late: the seconds between two ticks are 57 to 63.
        let t = 60 * minute + minute * 7 % 4;
        let memory = if minute < 20 { 50.0 } else { (50.0 + 1.2 * (minute - 20) as f64).min(80.0) };
        let sheet = one(2, t, |gpu, _| Does { memory: if gpu == 1 { memory } else { 50.0 }, ..WORKS });
        trace.tick(0, t, 0, &sheet);
        trace.judge(t + 1);
    }
    let found = last(&trace.told);
    assert_eq!(rules(&found), ["gpu_memory"], "{found:?}");
}

#[test]
fn memory_that_is_full_in_steps_or_in_teeth_is_no_leak() {
    type Course<'a> = (&'a str, &'a dyn Fn(i64) -> f64);
    let plans: [Course; 4] = [
        ("flat", &|_| 78.5),
        ("steps", &|t| 60.0 + 6.0 * ((t / 500) as f64).min(3.0)),
        ("teeth", &|t| 40.0 + 28.0 * ((t % 280) as f64 / 280.0)),
        ("plateau", &|t| 75.0 - 35.0 * (-((t - 60).max(0) as f64) / 250.0).exp()),
    ];
    for (name, of) in plans {
        assert_eq!(rules(&findings_of(3000, 1000, with_memory(of))), [""; 0], "{name}");
    }
}

#[test]
fn a_machine_that_runs_out_of_memory_is_told() {
    let all = findings_of(2400, 1000, |t| {
        let mut sheet = works(t);
        sheet.set(&memory::WORKING_SET, "", (50.0 + 0.03 * (t - 600).max(0) as f64).min(97.0));
        Some(sheet)
    });
    assert_eq!(rules(&all), ["host_memory"]);
    check(&all[0]);
    assert!(all[0].sentence.contains("was running out of memory from {since} on"), "{}", all[0].sentence);
    // Full and flat without pressure.
    let all = findings_of(1500, 1000, |t| {
        let mut sheet = works(t);
        sheet.set(&memory::WORKING_SET, "", 96.0);
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0]);
    // The same with pressure.
    let all = findings_of(1500, 1000, |t| {
        let mut sheet = works(t);
        let pressed = (600..900).contains(&t);
        sheet.set(&memory::WORKING_SET, "", if pressed { 96.0 } else { 60.0 });
        sheet.set(&cpu::PRESSURE_MEMORY_FULL, "", if pressed { 30.0 } else { 0.0 });
        Some(sheet)
    });
    assert_eq!(rules(&all), ["host_memory"]);
    assert_eq!(all[0].severity, Severity::Critical);
    assert!(all[0].until.is_some());
}

#[test]
fn a_kill_is_told_at_once() {
    let all = findings_of(1500, 1000, |t| {
        let mut sheet = works(t);
        sheet.set(&process::OOM_KILLS, "", if t < 300 { 4.0 } else { 5.0 });
        Some(sheet)
    });
    assert_eq!(rules(&all), ["host_memory"]);
    check(&all[0]);
    assert_eq!((all[0].told - START, all[0].until.map(|until| until - START)), (300, Some(900)));
}

#[test]
fn a_disk_that_fills_up_is_told() {
    let all = findings_of(6000, 10_000, |t| {
        let mut sheet = works(t);
        let share = 91.0 + 0.003 * (t - 1200).max(0) as f64;
        sheet.set(&disk::USAGE_PERCENT, "/data", if t < 3600 { share } else { 60.0 });
        sheet.set(&disk::USAGE_PERCENT, "/", 95.0);
        sheet.set(&disk::USAGE_PERCENT, "/snap/core", 100.0);
        Some(sheet)
    });
    assert_eq!(rules(&all), ["disk_full"]);
    check(&all[0]);
    assert_eq!(all[0].device.as_deref(), Some("/data"));
    assert!(all[0].until.is_some_and(|until| (3600..3620).contains(&(until - START))), "{:?}", all[0].until);
}

/// GPUs that wait half of the time, in pieces of a second.
fn starves(t: i64) -> Sheet {
    one(8, t, |gpu, t| match t {
        ..60 => OFF,
        900..1500 if (t + i64::from(gpu) * 3) % 2 == 0 => Does { work: 0.0, spin: 0.0, ..WORKS },
        _ => WORKS,
    })
}

#[test]
fn gpus_that_wait_for_a_disk_are_told_and_which() {
    for interval in [1000, 100] {
        let all = findings_of(1900, interval, |t| {
            let mut sheet = starves(t);
            let slow = (900..1500).contains(&t);
            sheet.set(&disk::DEVICE_BUSY, "nvme0n1", if slow { 99.0 } else { 30.0 });
            sheet.set(&disk::DEVICE_BUSY, "sda", 1.0);
            Some(sheet)
        });
        assert_eq!(rules(&all), ["starvation"], "{interval}");
        check(&all[0]);
        assert_eq!((all[0].severity, all[0].device.as_deref()), (Severity::Warning, Some("nvme0n1")));
        assert!((all[0].since - START - 900).abs() < 45, "{}", all[0].since - START);
        assert!(all[0].told - START < 1150 && all[0].until.is_some(), "{:?}", all[0]);
    }
}

#[test]
fn gpus_that_wait_for_a_file_server_are_told_and_its_mount() {
    let all = findings_of(1900, 1000, |t| {
        let mut sheet = starves(t);
        let slow = (900..1500).contains(&t);
        sheet.set(&mount::WAITING, "/data", if slow { 14.0 } else { 2.0 });
        sheet.set(&mount::WAITING, "/home", 0.1);
        // Tasks that wait for it wait for I/O, too.
        sheet.set(&cpu::PRESSURE_IO_SOME, "", if slow { 60.0 } else { 1.0 });
        Some(sheet)
    });
    assert_eq!(rules(&all), ["starvation"]);
    check(&all[0]);
    assert_eq!((all[0].severity, all[0].device.as_deref()), (Severity::Warning, Some("/data")));
    assert_eq!(all[0].next, crate::next::MOUNT_WAITS);
    assert!(all[0].sentence.ends_with("for data: 14 requests to /data always under way"), "{}", all[0].sentence);
}

#[test]
fn a_wait_at_full_clock_is_one_though_power_falls_less_than_use() {
    // As a T4: 9 W idle, 30 W in a wait with its process there, 70 W in work.
    let all = findings_of(1900, 1000, |t| {
        let waits = |gpu: u32| (900..1500).contains(&t) && (t + i64::from(gpu) * 3) % 3 != 0;
        let mut sheet = one(8, t, |gpu, t| match t {
            ..60 => OFF,
            _ if waits(gpu) => Does { work: 0.0, spin: 0.0, ..WORKS },
            _ => WORKS,
        });
        for gpu in 0..8 {
            let watts = if t < 60 { 9.0 } else { 70.0 - f64::from(u8::from(waits(gpu))) * 40.0 };
            sheet.set(&gpu::POWER_WATTS, gpu, watts).set(&gpu::POWER_LIMIT_WATTS, gpu, 70.0);
        }
        sheet.set(&disk::DEVICE_BUSY, "nvme0n1", if (900..1500).contains(&t) { 99.0 } else { 30.0 });
        Some(sheet)
    });
    assert_eq!(rules(&all), ["starvation"]);
    assert_eq!((all[0].severity, all[0].device.as_deref()), (Severity::Warning, Some("nvme0n1")));
}

#[test]
fn one_machine_of_three_that_waits_for_its_network_is_no_slow_gpu() {
    // The traffic that the machine receives rises to the capacity of its network, or stays as it was.
    for (most, rule) in [(1.6e9, "starvation"), (1e9, "straggler.slow")] {
        let mut trace = Trace::new(3, 1000);
        let ranks = (0..3).map(|source| Rank { source, pid: 7, gpus: vec![0], logs: String::new() }).collect();
        trace.insight.jobs(&[Job { id: "run".into(), ranks, ..Job::default() }]);
        trace.run(0..1500, 3, |host, t| {
            let mut sheet = one(1, t, |_, t| match t {
                ..60 => OFF,
                60..900 => WORKS,
                _ if host == 0 && t % 3 == 0 => Does { work: 0.0, spin: 0.0, ..WORKS },
                _ if host == 0 => WORKS,
                _ => Does { work: 0.65, spin: 0.35, ..WORKS },
            });
            let more = if host == 0 { most - 1e9 } else { 0.0 };
            let received = 1e9 * t as f64 + more * (t - 900).max(0) as f64;
            put_host(&mut sheet, t, 12.0, (0.0, 0.0, received));
            Some(sheet)
        });
        let all = last(&trace.told);
        assert_eq!(rules(&all), [rule], "{most}");
        assert_eq!(all[0].subject.len(), 1);
        assert_eq!(all[0].subject[0].source, "node-0");
    }
}

#[test]
fn what_another_job_begins_to_receive_is_no_limit_of_the_network() {
    // GPU 0 works less from second 900 on. From then on the machine receives more, for its job or for the other one.
    for (jobs, severity) in [(1, Severity::Warning), (2, Severity::Note)] {
        let mut trace = Trace::new(1, 1000);
        let ranks = |gpu| vec![Rank { source: 0, pid: 7 + gpu, gpus: vec![gpu], logs: String::new() }];
        let all: Vec<Job> =
            (0..jobs).map(|gpu| Job { id: format!("run-{gpu}"), ranks: ranks(gpu), ..Job::default() }).collect();
        trace.insight.jobs(&all);
        trace.run(0..1500, 1, |_, t| {
            let mut sheet = one(jobs, t, |gpu, t| match t {
                ..60 => OFF,
                900.. if gpu == 0 && t % 2 == 0 => Does { work: 0.0, spin: 0.0, ..WORKS },
                _ => WORKS,
            });
            put_host(&mut sheet, t, 12.0, (0.0, 0.0, 1e9 * t as f64 + 6e8 * (t - 900).max(0) as f64));
            Some(sheet)
        });
        let all = last(&trace.told);
        assert_eq!(rules(&all), ["starvation"], "{jobs}");
        assert_eq!(all[0].severity, severity, "{jobs}: {}", all[0].sentence);
    }
}

#[test]
fn without_a_cause_it_is_a_note_and_with_use_as_ever_nothing() {
    let all = findings_of(1900, 1000, |t| Some(starves(t)));
    assert_eq!(rules(&all), ["starvation"]);
    assert_eq!(all[0].severity, Severity::Note);
    check(&all[0]);
    let all = findings_of(1900, 1000, |t| {
        let mut sheet = works(t);
        sheet.set(&disk::DEVICE_BUSY, "nvme0n1", if t > 900 { 99.0 } else { 30.0 });
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0], "a busy disk that nobody waits for");
    // A checkpoint: one long stop, and the disk is written to.
    let all = findings_of(1900, 1000, |t| {
        let stop = (900..1100).contains(&t);
        let mut sheet = one(8, t, |_, t| {
            if t < 60 {
                OFF
            } else if stop {
                Does { work: 0.0, spin: 0.0, ..WORKS }
            } else {
                WORKS
            }
        });
        sheet.set(&disk::DEVICE_BUSY, "nvme0n1", if stop { 99.0 } else { 30.0 });
        put_host(&mut sheet, t, 12.0, (t as f64, 900.0 * (t - 900).clamp(0, 200) as f64, 0.0));
        Some(sheet)
    });
    assert_eq!(rules(&all), [""; 0], "a checkpoint");
}

#[test]
fn a_machine_is_lost_where_it_is_followed_and_said_no_goodbye() {
    let run = |follow: bool, goodbye: bool, until: i64| {
        let mut trace = Trace::new(2, 1000);
        trace.insight.follow(follow);
        trace.run(0..300, 2, |_, t| Some(works(t)));
        if goodbye {
            trace.insight.goodbye(1, (START + 300) * 1000);
        }
        trace.run(300..600, 2, |host, t| (host == 0 || t >= until).then(|| works(t)));
        last(&trace.told)
    };
    let all = run(true, false, 500);
    assert_eq!(rules(&all), ["host_lost"]);
    check(&all[0]);
    assert_eq!((all[0].since - START, all[0].subject[0].source.as_str()), (300, "node-1"));
    assert!(all[0].told - START <= 320);
    assert_eq!(all[0].until.map(|until| until - START), Some(500));
    assert_eq!(rules(&run(false, false, 500)), [""; 0]);
    assert_eq!(rules(&run(true, true, 500)), [""; 0]);
    assert_eq!(rules(&run(true, false, 308)), [""; 0], "it was away for seconds");
}
