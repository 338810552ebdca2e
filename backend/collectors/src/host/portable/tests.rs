//! Compares our readers with sysinfo on the test machine.

use super::*;
use crate::{Options, Out, Roots};
use shared::catalog::MetricDef;
use shared::catalog::cpu::{CORES, CPU_PERCENT, LOAD1, UPTIME};
use shared::catalog::memory::{AVAILABLE, PERCENT, SWAP_TOTAL, TOTAL};
use shared::catalog::network::{DEVICE_RECEIVED, RECEIVED};
use shared::catalog::process::{CPU, PROCESSES, RSS};
use std::time::{Duration, Instant};

/// Maximum time that a pair of readings takes: a twelfth of the time between two pairs, so shares of it differ by no
/// more than 8 % for that.
const MAX_APART: Duration = Duration::from_millis(50);

type Open = fn(&Options, &Roots) -> Result<Vec<Part>, OpenError>;

/// Two readings of both, as close together as possible. `busy` keeps one core busy between them.
fn both(ours: Open, theirs: Open, busy: bool) -> [Out; 2] {
    both_of(std::process::id(), ours, theirs, busy)
}

/// The same for a process with all its descendants. On a loaded machine the thread may be stalled between the two, and
/// theirs are then of another time: they are read again.
fn both_of(pid: u32, ours: Open, theirs: Open, busy: bool) -> [Out; 2] {
    let begin = Instant::now();
    loop {
        let (outs, apart) = both_once(pid, ours, theirs, busy);
        if apart < MAX_APART || begin.elapsed() > Duration::from_secs(20) {
            return outs;
        }
    }
}

/// Two readings of both, and the most time between the begin and the end of a pair.
fn both_once(pid: u32, ours: Open, theirs: Open, busy: bool) -> ([Out; 2], Duration) {
    let mut apart = Duration::ZERO;
    let options = Options { pids: vec![pid], ..Options::default() };
    let mut parts = [ours, theirs].map(|open| open(&options, &Roots::default()).unwrap().remove(0));
    let mut outs = [Out::default(), Out::default()];
    let start = Instant::now();
    for reading in 0..2 {
        let pair = Instant::now();
        for (part, out) in parts.iter_mut().zip(&mut outs) {
            out.begin(start.elapsed());
            part.collector.collect(out).unwrap();
        }
        apart = apart.max(pair.elapsed());
        // sysinfo skips readings that are less than 200 ms apart.
        while reading == 0 && start.elapsed() < Duration::from_millis(600) {
            if !busy {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    (outs, apart)
}

#[track_caller]
fn agree(outs: &[Out; 2], def: &'static MetricDef, within: f64) {
    let value = |out: &Out| out.present().into_iter().find(|(tag, _)| *tag == def.tag).map(|(_, value)| value);
    let (ours, theirs) = (value(&outs[0]).unwrap(), value(&outs[1]).unwrap());
    assert!((ours - theirs).abs() <= within, "{}: ours {ours}, sysinfo {theirs}", def.tag);
}

#[test]
fn processor_load_and_uptime_agree() {
    let outs = both(crate::host::cpu::open, cpu::open, true);
    agree(&outs, &CPU_PERCENT, 10.0);
    agree(&outs, &CORES, 0.0);
    agree(&outs, &LOAD1, 0.5);
    agree(&outs, &UPTIME, 2.0);
    assert!(outs[0].present().iter().any(|(tag, value)| tag.ends_with(".cpu_percent") && *value > 20.0));
}

#[test]
fn memory_agrees() {
    let in_a_group = std::fs::read("/proc/self/cgroup").ok().and_then(|text| {
        let (levels, files) = crate::read::cgroup::memory_levels("/sys".as_ref(), &text);
        files.smallest(&levels)
    });
    let outs = both(crate::host::memory::open, memory::open, false);
    agree(&outs, &SWAP_TOTAL, 0.0);
    // sysinfo ignores limits here.
    if in_a_group.is_none() {
        agree(&outs, &TOTAL, 0.0);
        agree(&outs, &PERCENT, 5.0);
        agree(&outs, &AVAILABLE, 1000.0);
    }
}

#[test]
fn traffic_agrees() {
    let outs = both(crate::host::network::open, network::open, false);
    agree(&outs, &RECEIVED, 10e6);
    let links = |out: &Out| {
        let received = out.slots().filter(|(def, _)| std::ptr::eq(*def, &DEVICE_RECEIVED));
        received.map(|(_, name)| name).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(links(&outs[0]).is_subset(&links(&outs[1])));
}

/// A process that is ended with the test, even if the test fails.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both calls fail only if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_agrees() {
    // Not this process, because other tests start programs below it at any time.
    #[allow(clippy::disallowed_methods, reason = "a process to look at, in a test")]
    let child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let child = Ended(child);
    let outs = both_of(child.0.id(), crate::host::process::open, process::open, false);
    agree(&outs, &RSS, 8.0);
    agree(&outs, &PROCESSES, 0.0);
    agree(&outs, &CPU, 15.0);
}

#[test]
fn our_own_cost_agrees() {
    let (mut ours, mut theirs) =
        (crate::host::linux::own::LinuxOwn::open().unwrap(), own::PortableOwn::open().unwrap());
    let (a, b) = (ours.cpu_time().unwrap(), theirs.cpu_time().unwrap());
    assert!(b.abs_diff(a) < Duration::from_secs(1), "{a:?} {b:?}");
    let (a, b) = (ours.resident().unwrap(), theirs.resident().unwrap());
    assert!((a - b).abs() < 64e6, "{a} {b}");
    assert!(!ours.tried().is_empty() && !theirs.tried().is_empty());
}

#[test]
fn the_processes_that_are_watched_agree() {
    let pids = [std::process::id()];
    let mut ours = crate::host::process::Watched::new(&Roots::default(), &pids);
    assert!(ours.pids().contains(&pids[0]));
    assert!(process::PortableWatched::new(&Roots::default(), &pids).pids().contains(&pids[0]));
}

#[test]
fn what_only_other_systems_use_can_be_read_here() {
    let read = |open: Open| {
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        let mut part = open(&Options::default(), &Roots::default()).unwrap().remove(0);
        (part.collector.collect(&mut out), out.present().len())
    };
    assert_eq!(read(disk::open).0, Ok(()));
    assert!(matches!(read(disk_usage::open), (Ok(()), 2) | (Err(_), 0)), "a root without a volume has no share");
    let absent = linux_only::open(&Options::default(), &Roots::default()).err().unwrap();
    assert_eq!(absent.kind, OpenErrorKind::Absent);
}
