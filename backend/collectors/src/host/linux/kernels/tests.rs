//! Tests of kernels on a machine made of files.

use super::*;
use crate::host::facts;
use inventory::{KernelEnd, MemoryWarning};
use std::path::Path;

const ID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const PAGE: u64 = 4096;

/// A machine made of files: 4 cores, 1 GiB, and a cgroup of 1 MiB.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Machine(tempfile::tempdir().unwrap());
        machine.write("proc/uptime", "100.0 0.0\n");
        machine.write("proc/stat", "cpu 1\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\n");
        machine.write("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
        machine.write("sys/fs/cgroup/lab/memory.max", "1048576\n");
        machine.group(400_000, 0);
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn group(&self, used: u64, kills: u64) {
        self.write("sys/fs/cgroup/lab/memory.current", &format!("{used}\n"));
        self.write("sys/fs/cgroup/lab/memory.stat", "inactive_file 0\n");
        self.write("sys/fs/cgroup/lab/memory.events", &format!("oom 0\noom_kill {kills}\n"));
    }

    fn process(&self, pid: u32, parent: u32, ticks: u64, pages: u64) {
        let at = |name: &str| format!("proc/{pid}/{name}");
        let stat = format!("{pid} (python) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 3 0 5000 0 {pages} 0\n");
        self.write(&at("stat"), &stat);
        self.write(&at("statm"), &format!("9 {pages} 1 1 0 1 0\n"));
        self.write(&at("cgroup"), "0::/lab\n");
        self.write(&at("smaps_rollup"), &format!("Pss: {} kB\nSwapPss: 4 kB\n", pages * PAGE / 2 / 1024));
        self.write(&at(&format!("task/{pid}/children")), "");
        for thread in [pid + 1_000, pid + 1_001] {
            self.write(&at(&format!("task/{thread}/children")), "");
        }
    }

    fn kernel(&self, pid: u32, id: &str, ticks: u64, pages: u64) {
        self.process(pid, 1, ticks, pages);
        let file = format!("python\0-m\0ipykernel_launcher\0-f\0/run/kernel-{id}.json\0--token=secret\0");
        self.write(&format!("proc/{pid}/cmdline"), &file);
        self.write(&format!("proc/{pid}/environ"), "SECRET=1\0JPY_SESSION_NAME=/home/a/train.ipynb\0");
    }

    fn end(&self, pid: u32) {
        std::fs::remove_dir_all(self.0.path().join(format!("proc/{pid}"))).unwrap();
    }

    fn open(&self) -> (Options, Box<dyn Collector>, Out) {
        self.open_with(Options::default())
    }

    fn open_with(&self, options: Options) -> (Options, Box<dyn Collector>, Out) {
        let roots = Roots::below(self.path());
        let mut parts = open(&options, &roots).unwrap();
        (options, parts.remove(0).collector, Out::default())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn tick(collector: &mut Box<dyn Collector>, out: &mut Out, second: u64) {
    out.begin(Duration::from_secs(second));
    out.stamp(1_000_000 + second as i64 * 1_000);
    collector.collect(out).unwrap();
}

#[test]
fn a_kernel_and_what_it_started_are_read() {
    let machine = Machine::new();
    machine.kernel(70, ID, 1_000, 100);
    machine.process(71, 70, 50, 10);
    machine.write("proc/70/task/70/children", "71");
    std::fs::create_dir_all(machine.path().join("proc/71/fd")).unwrap();
    std::os::unix::fs::symlink("/dev/nvidia0", machine.path().join("proc/71/fd/3")).unwrap();
    let (options, mut collector, mut out) = machine.open();
    options
        .processes
        .set_gpu(2, [(71, (5 << 20, Some(37.0))), (70, (9 << 20, Some(5.0))), (4_711, (1 << 30, None))].into());
    tick(&mut collector, &mut out, 0);
    machine.process(71, 70, 250, 30);
    tick(&mut collector, &mut out, 1);
    let per_second = facts::ticks_per_second();
    let memory = (100 * PAGE / 2 + 4096 + 10 * PAGE / 2 + 4096 + 20 * PAGE) as f64;
    let cpu = kernel::CPU.rounded(100.0 * 200.0 / per_second / 4.0);
    let expected = [
        ("kernel.0a1b2c3d.cpu_percent", cpu),
        // The other PID in the list has no GPU open here, so the driver means another process.
        ("kernel.0a1b2c3d.gpu.2.memory", (5 << 20) as f64),
        ("kernel.0a1b2c3d.gpu.2.share", 37.0),
        ("kernel.0a1b2c3d.memory", memory),
        ("kernel.0a1b2c3d.threads", 6.0),
    ];
    assert_eq!(out.present(), expected.map(|(tag, value)| (tag.to_string(), value)));
    let (all, left_out) = options.kernels.all();
    let one = &all[0];
    assert_eq!((all.len(), left_out, one.id.as_str(), one.pid, one.processes), (1, 0, ID, 70, 2));
    assert_eq!(one.path.as_deref(), Some("/home/a/train.ipynb"));
    assert_eq!((one.limit, one.limited, one.used, one.cores), (Some(1 << 20), true, Some(400_000), Some(4.0)));
    assert_eq!(one.started, Some(1_000_000 - 100_000 + (5_000_000.0 / per_second) as i64));
    let now = options.kernels.read(ID).unwrap();
    assert_eq!(now, KernelSample { cpu_seconds: 1_250.0 / per_second, memory: Some(memory as u64) });
    assert_eq!(options.kernels.of_process(71), Ok(ID.to_string()), "what it started belongs to it");
    assert_eq!(options.kernels.of_process(4_711), Err(NoKernel::NoProcess));
    machine.process(90, 1, 0, 1);
    assert_eq!(options.kernels.of_process(90), Err(NoKernel::NotOne));
    machine.write("proc/90/comm", "train.py\n");
    assert_eq!(options.kernels.program(90).as_deref(), Some("train.py"));
    assert_eq!(options.kernels.program(4_711), None);
}

#[test]
fn a_kernel_is_found_at_once_by_who_asks_and_else_within_seconds() {
    let machine = Machine::new();
    let (options, mut collector, mut out) = machine.open();
    tick(&mut collector, &mut out, 0);
    assert_eq!(out.present(), []);
    machine.kernel(70, ID, 0, 1);
    assert_eq!(options.kernels.of_process(70), Ok(ID.to_string()));
    tick(&mut collector, &mut out, 1);
    assert_eq!(options.kernels.all().0.len(), 1);
    let other = ID.replace('0', "f");
    machine.kernel(80, &other, 0, 1);
    tick(&mut collector, &mut out, 5);
    assert!(options.kernels.get(&other).is_some());
}

#[test]
fn a_kernel_that_no_server_started_has_series_of_its_own() {
    let machine = Machine::new();
    machine.kernel(70, "4711", 0, 1);
    // Two notebooks of one window of VS Code.
    machine.kernel(80, "v2-29684vbBrK2x9QmZt", 0, 1);
    machine.kernel(90, "v2-29684kSC9njpUbH1b", 0, 1);
    let (_, mut collector, mut out) = machine.open();
    tick(&mut collector, &mut out, 0);
    let tags: Vec<String> = out.present().into_iter().map(|(tag, _)| tag).collect();
    let ids = ["4711", "v2-29684vbBrK2x9QmZt", "v2-29684kSC9njpUbH1b"];
    for tag in ids.map(|id| format!("kernel.{id}.memory")) {
        assert!(tags.contains(&tag), "{tag}: {tags:?}");
    }
}

#[test]
fn a_child_with_the_arguments_of_its_kernel_is_no_second_one() {
    let machine = Machine::new();
    machine.kernel(70, ID, 0, 1);
    machine.kernel(60, ID, 0, 1);
    machine.process(60, 70, 0, 1);
    machine.write("proc/70/task/70/children", "60");
    let later = std::fs::read_to_string(machine.path().join("proc/60/stat")).unwrap().replace(" 5000 ", " 5001 ");
    machine.write("proc/60/stat", &later);
    let (options, mut collector, mut out) = machine.open();
    tick(&mut collector, &mut out, 0);
    let all = options.kernels.all().0;
    assert_eq!(all.iter().map(|kernel| (kernel.pid, kernel.processes)).collect::<Vec<_>>(), [(70, 2)]);
    assert_eq!(options.kernels.of_process(60), Ok(ID.to_string()));
}

#[test]
fn how_a_kernel_ended_is_kept_and_another_of_its_id_is_watched() {
    let machine = Machine::new();
    machine.kernel(70, ID, 0, 1);
    let kernel_ended = KernelEndListener::new(|kernel| {
        kernel.end.as_mut().expect("it has ended").cell = Some("[7]".into());
    });
    let (options, mut collector, mut out) = machine.open_with(Options { kernel_ended, ..Options::default() });
    for second in 0..=6 {
        machine.group(700_000 + second * 20_000, 3);
        tick(&mut collector, &mut out, second);
    }
    assert_eq!(options.kernels.all().0[0].warning, Some(MemoryWarning::Seconds(11)));
    machine.end(70);
    machine.group(100_000, 4);
    tick(&mut collector, &mut out, 7);
    let ended = options.kernels.get(ID).unwrap();
    assert_eq!(ended.end, Some(KernelEnd { at: 1_007_000, killed_for_memory: true, cell: Some("[7]".into()) }));
    assert_eq!((ended.used, ended.warning), (Some(820_000), None), "what was used last stays said");
    assert_eq!(options.kernels.read(ID), None);
    machine.kernel(75, ID, 0, 1);
    tick(&mut collector, &mut out, 12);
    machine.end(75);
    tick(&mut collector, &mut out, 13);
    let all: Vec<_> = options.kernels.all().0.into_iter().map(|kernel| (kernel.pid, kernel.end)).collect();
    let cell = || Some("[7]".to_string());
    let end = |at, killed_for_memory| Some(KernelEnd { at, killed_for_memory, cell: cell() });
    assert_eq!(all, [(75, end(1_013_000, false)), (70, end(1_007_000, true))]);
}

#[test]
fn more_kernels_than_are_watched_are_counted_and_take_free_places() {
    let machine = Machine::new();
    let id = |n: u32| format!("{n:08x}{}", &ID[8..]);
    (0..MAX_KERNELS as u32 + 3).for_each(|n| machine.kernel(100 + n, &id(n), 0, 1));
    let (options, mut collector, mut out) = machine.open();
    tick(&mut collector, &mut out, 0);
    let (all, left_out) = options.kernels.all();
    assert_eq!((all.len(), left_out), (MAX_KERNELS, 3));
    assert_eq!(out.present().iter().filter(|(tag, _)| tag.ends_with(".threads")).count(), MAX_KERNELS);
    all[..3].iter().for_each(|kernel| machine.end(kernel.pid));
    tick(&mut collector, &mut out, 1);
    tick(&mut collector, &mut out, 6);
    let (all, left_out) = options.kernels.all();
    let running = all.iter().filter(|kernel| kernel.end.is_none()).count();
    assert_eq!((running, left_out), (MAX_KERNELS, 0));
}
