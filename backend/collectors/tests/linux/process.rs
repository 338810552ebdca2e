//! Tests of the process collector with machines made of files.

use crate::machine::{Machine, Readings, readings, value};
use collectors::OpenErrorKind;
use inventory::RankProcess;
use std::cell::Cell;

/// A machine of 8 cores and 1 GiB. The test advances its boot clock.
struct Proc {
    machine: Machine,
    uptime: Cell<u64>,
}

/// A process as its files describe it. Times are in ticks of a hundredth of a second.
#[derive(Clone)]
struct Process {
    pid: u32,
    parent: u32,
    name: &'static str,
    start: u64,
    own: u64,
    reaped: u64,
    state: char,
    pages: u64,
    /// Threads beside the first, and the children of each thread.
    threads: Vec<(u32, Vec<u32>)>,
}

fn process(pid: u32, parent: u32, start: u64) -> Process {
    Process {
        pid,
        parent,
        name: "a ) b",
        start,
        own: 0,
        reaped: 0,
        state: 'S',
        pages: 256,
        threads: vec![(pid, vec![])],
    }
}

impl Proc {
    fn new(pids: &[u32]) -> Proc {
        let mut machine = Machine::new();
        machine.options.pids = pids.to_vec();
        let cores: String = (0..8).map(|i| format!("cpu{i} 1 1 1 1 1 1 1 1 1 1\n")).collect();
        machine.write("proc/stat", format!("cpu 1 1 1 1 1 1 1 1 1 1\n{cores}intr 1\n"));
        machine.write("proc/meminfo", "MemTotal: 1048576 kB\n");
        let proc = Proc { machine, uptime: Cell::new(0) };
        proc.pass(1000);
        proc
    }

    /// Advances the boot clock.
    fn pass(&self, seconds: u64) {
        self.uptime.set(self.uptime.get() + seconds);
        self.machine.write("proc/uptime", format!("{}.00 1.00\n", self.uptime.get()));
    }

    fn put(&self, process: &Process) {
        let Process { pid, parent, name, start, own, reaped, state, pages, threads } = process;
        self.machine.write(
            &format!("proc/{pid}/stat"),
            format!(
                "{pid} ({name}) {state} {parent} 1 1 0 -1 4194304 0 0 0 0 {own} 0 {reaped} 0 20 0 {} 0 {start} 1 {} 1\n",
                threads.len(),
                pages - 1
            ),
        );
        // The field of the stat file above is short by a page, as it may be.
        self.machine.write(&format!("proc/{pid}/statm"), format!("9999 {pages} 1 1 0 1 0\n"));
        for (thread, children) in threads {
            let children: String = children.iter().map(|child| format!("{child} ")).collect();
            self.machine.write(&format!("proc/{pid}/task/{thread}/children"), children);
        }
    }

    fn end(&self, pid: u32) {
        self.machine.remove(&format!("proc/{pid}"));
    }

    fn in_group(&self, pid: u32, group: &str, cores: &str) {
        self.machine.write(&format!("proc/{pid}/cgroup"), format!("0::{group}\n"));
        self.machine.write(&format!("proc/{pid}/status"), format!("Name:\tx\nCpus_allowed_list:\t{cores}\n"));
    }
}

fn with_children(mut process: Process, threads: &[(u32, &[u32])]) -> Process {
    process.threads = threads.iter().map(|(thread, children)| (*thread, children.to_vec())).collect();
    process
}

fn using(mut process: Process, own: u64, reaped: u64) -> Process {
    (process.own, process.reaped) = (own, reaped);
    process
}

fn count(now: &Readings) -> Option<f64> {
    value(now, "proc.processes")
}

#[test]
pub fn processes_in_uninterruptible_sleep_are_counted() {
    let proc = Proc::new(&[10]);
    let waiting = |pid, parent| Process { state: 'D', ..process(pid, parent, 600) };
    proc.put(&with_children(process(10, 1, 500), &[(10, &[20, 21])]));
    proc.put(&waiting(20, 10));
    proc.put(&process(21, 10, 600));
    // A process outside the tree, and a thread of the kernel.
    proc.put(&waiting(99, 1));
    proc.put(&waiting(3, 2));
    let (mut watched, mut all) = (proc.machine.open("process"), proc.machine.open("processes"));
    assert_eq!(value(&watched.next(), "proc.processes_uninterruptible"), Some(1.0));
    assert_eq!(all.next(), readings([("system.processes_uninterruptible", 3.0)]));
    assert_eq!(all.next(), readings([] as [(&str, f64); 0]), "the table is made every 5 s");
    proc.put(&process(20, 10, 600));
    proc.end(99);
    assert_eq!(value(&watched.next(), "proc.processes_uninterruptible"), Some(0.0));
    assert_eq!(all.after(5.0), readings([("system.processes_uninterruptible", 1.0)]));
}

#[test]
pub fn the_service_of_wandb_is_counted_with_its_direct_children() {
    let proc = Proc::new(&[]);
    let mut collector = proc.machine.open("processes");
    let service = Process { pages: 512, name: "wandb-core", ..process(30, 1, 500) };
    let sidecar = Process { name: "wandb-symon", ..process(31, 30, 600) };
    let others = [process(32, 31, 600), process(33, 1, 600)];
    others.iter().chain([&service, &sidecar]).for_each(|process| proc.put(process));
    let asleep = ("system.processes_uninterruptible", 0.0);
    assert_eq!(collector.next(), readings([asleep, ("wandb.memory.rssMB", 3.0)]), "use needs two tables");
    proc.put(&using(service, 300, 0));
    proc.put(&using(sidecar, 100, 0));
    others.iter().for_each(|other| proc.put(&using(other.clone(), 400, 0)));
    let expected = [asleep, ("wandb.memory.rssMB", 3.0), ("wandb.cpu", 10.0)];
    assert_eq!(collector.after(5.0), readings(expected), "400 of 4000 ticks");
    proc.end(30);
    proc.end(31);
    assert_eq!(collector.after(5.0), readings([asleep]), "none runs");
}

#[test]
pub fn a_rank_is_counted_with_its_descendants() {
    let proc = Proc::new(&[]);
    let mut collector = proc.machine.open("processes");
    let rank = RankProcess { pid: 30, start: 500, instance: "/l:rank_1".into() };
    proc.machine.options.processes.set_ranks(vec![rank]);
    let (trainer, loader) = (process(30, 1, 500), process(31, 30, 600));
    [&trainer, &loader, &process(33, 1, 600)].into_iter().for_each(|process| proc.put(process));
    let asleep = ("system.processes_uninterruptible", 0.0);
    let memory = [("proc.cpu.threads/l:rank_1", 2.0), ("proc.memory.rssMB/l:rank_1", 2.0)];
    let at_once = [asleep, memory[0], memory[1]];
    assert_eq!(collector.next(), readings(at_once), "use needs two tables");
    proc.put(&using(trainer, 300, 0));
    proc.put(&using(loader, 100, 0));
    let mut expected = at_once.to_vec();
    expected.extend([("cpu/l:rank_1", 10.0), ("proc.cpu.cores/l:rank_1", 0.8)]);
    assert_eq!(collector.after(5.0), readings(expected), "400 ticks in 5 s, of 8 cores");
}

#[test]
fn nothing_is_watched_unless_asked_for() {
    let error = Machine::new().try_open("process").err().unwrap();
    assert_eq!((error.kind, error.reason.as_str()), (OpenErrorKind::Absent, "no process is configured"));
    assert_eq!(error.remedy, "name one with --pid PID");
    let error = Proc::new(&[7]).machine.try_open("process").err().unwrap();
    assert_eq!((error.kind, error.reason.as_str()), (OpenErrorKind::Absent, "process 7 does not run"));
}

#[test]
fn children_of_every_thread_belong() {
    let proc = Proc::new(&[10]);
    let root = with_children(process(10, 1, 500), &[(10, &[20]), (11, &[]), (12, &[30])]);
    let grandchild = process(31, 30, 700);
    proc.put(&using(root.clone(), 5000, 0));
    proc.put(&process(20, 10, 600));
    proc.put(&with_children(process(30, 10, 600), &[(30, &[31])]));
    proc.put(&grandchild);
    proc.put(&process(99, 1, 600));
    let mut collector = proc.machine.open("process");
    let at_once = [
        ("proc.cpu.threads", 6.0),
        ("proc.memory.percent", 0.39),
        ("proc.memory.rssMB", 4.0),
        ("proc.processes", 4.0),
        ("proc.processes_uninterruptible", 0.0),
    ];
    assert_eq!(collector.next(), readings(at_once), "use needs two readings");
    proc.put(&using(root, 5040, 0));
    proc.put(&using(grandchild, 40, 0));
    proc.pass(1);
    let mut expected = at_once.to_vec();
    expected.push(("cpu", 10.0));
    assert_eq!(collector.next(), readings(expected), "80 of 800 ticks");
    assert_eq!(collector.trouble(), None);
}

#[test]
fn a_kernel_that_lists_no_children_is_searched_by_parents() {
    let proc = Proc::new(&[10]);
    proc.put(&with_children(process(10, 1, 500), &[]));
    // The child has the lower PID, so it is read before its parent.
    proc.put(&with_children(process(5, 30, 700), &[]));
    proc.put(&with_children(process(30, 10, 600), &[]));
    proc.put(&with_children(process(99, 1, 600), &[]));
    let mut collector = proc.machine.open("process");
    assert_eq!(count(&collector.next()), Some(3.0));
    proc.put(&with_children(process(100, 5, 800), &[]));
    assert_eq!(count(&collector.next()), Some(4.0));
    proc.end(5);
    proc.put(&with_children(process(100, 1, 800), &[]));
    assert_eq!(count(&collector.next()), Some(3.0), "it has another parent now and still belongs");
}

#[test]
fn a_tree_of_many_threads_is_searched_by_parents_too() {
    let proc = Proc::new(&[10]);
    let mut root = process(10, 1, 500);
    root.threads = (100..200).map(|thread| (thread, vec![])).collect();
    root.threads[50].1.push(20);
    proc.put(&root);
    proc.machine.write("proc/10/task/10/children", "");
    proc.put(&process(20, 10, 600));
    let mut collector = proc.machine.open("process");
    assert_eq!(count(&collector.next()), Some(2.0));
    // From the second reading on the number of threads is known; the new child is in no list of children.
    proc.put(&process(30, 20, 700));
    assert_eq!(count(&collector.next()), Some(3.0));
}

#[test]
fn death_takes_the_processs_tags_and_reuse_of_its_number_does_not_bring_them_back() {
    let proc = Proc::new(&[10]);
    proc.put(&with_children(process(10, 1, 500), &[(10, &[20])]));
    proc.put(&process(20, 10, 600));
    let mut collector = proc.machine.open("process");
    assert_eq!(count(&collector.next()), Some(2.0));
    let reused = process(10, 1, 90_000);
    proc.put(&reused);
    proc.put(&process(20, 1, 91_000));
    assert_eq!(collector.next(), []);
    let (reason, partial) = collector.trouble().unwrap();
    assert_eq!(reason, "process 10 has ended, and another process has its number");
    assert!(!partial);
    proc.put(&process(10, 1, 500));
    assert_eq!(collector.next(), [], "gone is gone");
}

#[test]
fn a_process_that_waits_for_its_parent_to_notice_has_ended() {
    let proc = Proc::new(&[10, 50]);
    proc.put(&process(10, 1, 500));
    proc.put(&process(50, 1, 500));
    let mut collector = proc.machine.open("process");
    assert_eq!(count(&collector.next()), Some(2.0));
    proc.put(&Process { state: 'Z', ..process(10, 1, 500) });
    assert_eq!(count(&collector.next()), Some(1.0), "the other one goes on");
    assert_eq!(collector.trouble(), Some(("process 10 has ended", true)));
    proc.end(50);
    assert_eq!(collector.next(), []);
    assert_eq!(collector.trouble(), Some(("process 10 has ended, process 50 has ended", false)));
}

#[test]
fn trees_that_overlap_count_once() {
    let proc = Proc::new(&[20, 10, 10]);
    proc.put(&with_children(process(10, 1, 500), &[(10, &[20])]));
    proc.put(&with_children(process(20, 10, 600), &[(20, &[30])]));
    proc.put(&process(30, 20, 700));
    let mut collector = proc.machine.open("process");
    assert_eq!(count(&collector.next()), Some(3.0));
    proc.end(20);
    proc.put(&with_children(process(10, 1, 500), &[(10, &[])]));
    proc.put(&process(30, 1, 700));
    assert_eq!(count(&collector.next()), Some(2.0), "30 goes on");
}

#[test]
fn what_a_watched_process_started_goes_on_when_it_ends() {
    for lists_children in [true, false] {
        let proc = Proc::new(&[10, 50]);
        let below = |process: Process, children: &[u32]| {
            let pid = process.pid;
            if lists_children { with_children(process, &[(pid, children)]) } else { with_children(process, &[]) }
        };
        proc.put(&below(process(10, 1, 500), &[20]));
        proc.put(&below(process(20, 10, 600), &[30]));
        proc.put(&using(below(process(30, 20, 700), &[]), 100, 0));
        proc.put(&below(process(50, 1, 500), &[]));
        proc.put(&process(99, 1, 600));
        let mut collector = proc.machine.open("process");
        assert_eq!(count(&collector.next()), Some(4.0));
        // The watched process and its child end. The grandchild now belongs to init and starts another process.
        proc.end(10);
        proc.end(20);
        proc.put(&using(below(process(30, 1, 700), &[40]), 140, 0));
        proc.put(&using(below(process(40, 30, 100_010), &[]), 40, 0));
        proc.pass(1);
        let now = collector.next();
        assert_eq!((count(&now), value(&now, "cpu")), (Some(3.0), Some(10.0)), "80 of 800 ticks");
        assert_eq!(collector.trouble(), Some(("process 10 has ended; its descendants still run", true)));
        // The other watched process ends too; its end hides nothing.
        proc.end(50);
        proc.put(&using(below(process(30, 1, 700), &[]), 150, 0));
        proc.put(&using(below(process(40, 1, 100_010), &[]), 50, 0));
        assert_eq!(count(&collector.next()), Some(2.0));
        // A process with a reused PID is no member, and the end of the last member ends the tags.
        proc.put(&below(process(30, 1, 200_000), &[]));
        assert_eq!(count(&collector.next()), Some(1.0));
        proc.end(40);
        assert_eq!(collector.next(), []);
        assert_eq!(collector.trouble(), Some(("process 10 has ended, process 50 has ended", false)));
        proc.put(&below(process(40, 1, 100_010), &[]));
        assert_eq!(collector.next(), [], "nothing comes back");
    }
}

#[test]
fn an_orphans_end_takes_nothing_from_what_others_reaped() {
    let proc = Proc::new(&[10, 50]);
    proc.put(&with_children(process(10, 1, 500), &[(10, &[20])]));
    proc.put(&using(process(20, 10, 600), 5_000, 0));
    proc.put(&using(process(50, 1, 500), 0, 0));
    let mut collector = proc.machine.open("process");
    collector.next();
    proc.end(10);
    proc.put(&using(process(20, 1, 600), 5_000, 0));
    proc.pass(1);
    collector.next();
    // Init reaps the orphan's time, and process 50 that of a child of its own.
    proc.end(20);
    proc.put(&using(process(50, 1, 500), 0, 80));
    proc.pass(1);
    assert_eq!(value(&collector.next(), "cpu"), Some(10.0), "80 of 800 ticks");
}

#[test]
fn time_of_children_that_ended_counts_once() {
    let proc = Proc::new(&[10]);
    let root = with_children(process(10, 1, 500), &[(10, &[20])]);
    proc.put(&using(root.clone(), 100, 1000));
    proc.put(&using(process(20, 10, 600), 300, 0));
    let mut collector = proc.machine.open("process");
    collector.next();
    let cpu = |now: &Readings| value(now, "cpu");
    // Process 20 used 40 more ticks and ended. In addition, a child that lived for less than one of our ticks used 120.
    proc.put(&using(with_children(root.clone(), &[(10, &[])]), 100, 1000 + 340 + 120));
    proc.end(20);
    proc.pass(1);
    assert_eq!(cpu(&collector.next()), Some(20.0), "160 of 800 ticks");
    // A new child counts from its birth.
    let root = using(with_children(root, &[(10, &[40])]), 100, 1460);
    proc.put(&root);
    proc.put(&using(process(40, 10, 100_150), 80, 0));
    proc.pass(1);
    assert_eq!(cpu(&collector.next()), Some(10.0));
    // It ends and its time is not reaped: the total does not fall.
    proc.put(&with_children(root.clone(), &[(10, &[])]));
    proc.end(40);
    proc.pass(1);
    assert_eq!(cpu(&collector.next()), Some(0.0));
    // An old process that joins does not add its past.
    proc.put(&with_children(root, &[(10, &[60])]));
    proc.put(&using(process(60, 10, 300), 1_000_000, 0));
    proc.pass(1);
    assert_eq!(cpu(&collector.next()), Some(0.0));
}

#[test]
pub fn a_groups_limits_are_the_capacity() {
    let proc = Proc::new(&[10, 20]);
    let group = |file: &str, text: &str| {
        proc.machine.write(&format!("sys/fs/cgroup/pod/{file}"), text);
    };
    group("cpu.max", "200000 100000\n");
    group("memory.max", "16777216\n");
    group("memory.events", "low 0\noom 5\noom_kill 7\n");
    group("cpu.stat", "usage_usec 1\nnr_periods 100\nnr_throttled 50\n");
    for pid in [10, 20] {
        proc.put(&process(pid, 1, 500));
        proc.in_group(pid, "/pod", "0-7");
    }
    let mut collector = proc.machine.open("process");
    let now = collector.next();
    assert_eq!(value(&now, "proc.memory.percent"), Some(12.5), "2 of 16 MiB");
    assert_eq!(value(&now, "proc.memory.oomKills"), Some(0.0));
    assert_eq!(value(&now, "proc.cpu.throttledPercent"), None);
    proc.put(&using(process(10, 1, 500), 100, 0));
    group("cpu.stat", "usage_usec 1\nnr_periods 110\nnr_throttled 54\n");
    let now = collector.next();
    assert_eq!(value(&now, "cpu"), Some(50.0), "a core of two");
    assert_eq!(value(&now, "proc.cpu.throttledPercent"), Some(40.0));
    assert_eq!(value(&collector.next(), "proc.cpu.throttledPercent"), None, "no period passed");
    // The kill that ends the watched processes is still reported.
    proc.end(10);
    proc.end(20);
    group("memory.events", "low 0\noom 6\noom_kill 9\n");
    assert_eq!(collector.next(), readings([("proc.memory.oomKills", 2.0)]));
}

#[test]
fn pinned_processes_have_the_cores_of_both() {
    let proc = Proc::new(&[10, 20]);
    for (pid, cores) in [(10, "0-1"), (20, "1,6")] {
        proc.put(&process(pid, 1, 500));
        proc.in_group(pid, "/", cores);
    }
    let mut collector = proc.machine.open("process");
    collector.next();
    proc.put(&using(process(10, 1, 500), 150, 0));
    assert_eq!(value(&collector.next(), "cpu"), Some(50.0), "150 of 300 ticks");
}

/// Two processes in two groups below one with these limits. Returns `cpu` after each has used two cores for a second,
/// and the percent of memory for 2 MiB.
fn siblings(prepare: impl Fn(&Proc)) -> (Option<f64>, Option<f64>) {
    let proc = Proc::new(&[10, 20]);
    for (pid, task) in [(10, "task_0"), (20, "task_1")] {
        proc.put(&process(pid, 1, 500));
        proc.in_group(pid, &format!("/job/step/user/{task}"), "0-7");
        for tree in ["", "/memory", "/cpu"] {
            proc.machine.folder(&format!("sys/fs/cgroup{tree}/job/step/user/{task}"));
        }
    }
    prepare(&proc);
    let mut collector = proc.machine.open("process");
    let percent = value(&collector.next(), "proc.memory.percent");
    [10, 20].iter().for_each(|pid| proc.put(&using(process(*pid, 1, 500), 200, 0)));
    proc.pass(1);
    (value(&collector.next(), "cpu"), percent)
}

#[test]
fn a_limit_that_several_groups_share_counts_once() {
    let set = |proc: &Proc, level: &str, cores: &str, mib: u64| {
        proc.machine.write(&format!("sys/fs/cgroup/{level}/cpu.max"), format!("{cores}00000 100000\n"));
        proc.machine.write(&format!("sys/fs/cgroup/{level}/memory.max"), format!("{}\n", mib << 20));
    };
    assert_eq!(siblings(|proc| set(proc, "job/step", "4", 16)), (Some(100.0), Some(12.5)), "4 of 4 cores, 2 of 16 MiB");
    // A group with a limit of its own, in a group with a wider one.
    let nested = siblings(|proc| {
        set(proc, "job", "6", 32);
        set(proc, "job/step/user/task_0", "1", 4);
    });
    assert_eq!(nested, (Some(66.67), Some(6.25)), "4 of 6 cores, 2 of 32 MiB");
    let own = siblings(|proc| {
        set(proc, "job/step/user/task_0", "1", 4);
        set(proc, "job/step/user/task_1", "3", 12);
        set(proc, "job", "8", 64);
    });
    assert_eq!(own, (Some(100.0), Some(12.5)), "each has its own, and both are less than the one above");
}

#[test]
fn a_limit_of_version_1_is_shared_likewise() {
    let shared = siblings(|proc| {
        for (pid, task) in [(10, "task_0"), (20, "task_1")] {
            let path = format!("/job/step/user/{task}");
            proc.machine.write(&format!("proc/{pid}/cgroup"), format!("4:memory:{path}\n3:cpu,cpuacct:{path}\n"));
        }
        proc.machine.write("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", format!("{}\n", 16 << 20));
        proc.machine.write("sys/fs/cgroup/cpu/job/step/cpu.cfs_quota_us", "400000\n");
        proc.machine.write("sys/fs/cgroup/cpu/job/step/cpu.cfs_period_us", "100000\n");
        proc.machine.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
        proc.machine.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    });
    assert_eq!(shared, (Some(100.0), Some(12.5)));
}

#[test]
fn a_limit_above_the_machines_memory_is_the_machines_memory() {
    let above = siblings(|proc| {
        for task in ["task_0", "task_1"] {
            let file = format!("sys/fs/cgroup/job/step/user/{task}/memory.max");
            proc.machine.write(&file, format!("{}\n", 768 << 20));
        }
    });
    assert_eq!(above.1.map(|percent| (percent * 100.0).round()), Some(20.0), "2 of 1,024 MiB");
}

#[test]
fn a_first_thread_that_is_bound_does_not_bound_the_process() {
    let proc = Proc::new(&[10]);
    proc.put(&with_children(process(10, 1, 500), &[(10, &[]), (11, &[])]));
    proc.in_group(10, "/", "3");
    proc.machine.write("proc/10/task/11/status", "Name:\tx\nCpus_allowed_list:\t0-3\n");
    let mut collector = proc.machine.open("process");
    collector.next();
    proc.put(&using(with_children(process(10, 1, 500), &[(10, &[]), (11, &[])]), 200, 0));
    assert_eq!(value(&collector.next(), "cpu"), Some(50.0), "2 of 4 cores");
}
