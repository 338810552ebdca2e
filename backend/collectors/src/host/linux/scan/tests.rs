//! Tests of tables of machines made of files.

use super::*;
use proptest::prelude::*;

/// A machine made of files.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Machine(tempfile::tempdir().unwrap())
    }

    fn process(&self, pid: u32, name: &str, parent: u32, cpu_ticks: u64, pages: u64) {
        let dir = self.0.path().join(pid.to_string());
        std::fs::create_dir_all(&dir).unwrap();
        let stat = format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {cpu_ticks} 0 0 0 20 0 3 0 {} 0 {pages} 0\n",
            1_000 + pid
        );
        std::fs::write(dir.join("stat"), stat).unwrap();
        std::fs::write(dir.join("statm"), format!("9 {pages} 1 1 0 1 0\n")).unwrap();
    }

    fn scan(&self, watched: &[u32]) -> Scan {
        Scan {
            proc: self.0.path().into(),
            watched: watched.iter().map(|&pid| (pid, u64::from(1_000 + pid))).collect(),
            users: HashMap::new(),
            known: HashMap::new(),
            at: None,
            turn: 0,
            boot: None,
            buffer: Vec::new(),
            ticks: 100.0,
            page: 4096,
            room: Room::new(2),
            graphics: false,
            show_args: false,
            uninterruptible: 0,
            stopped: HashSet::new(),
        }
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn row(table: &ProcessTable, pid: u32) -> &Process {
    table.rows.iter().find(|row| row.pid == pid).unwrap()
}

#[test]
fn cpu_is_of_the_time_between_two_tables() {
    let machine = Machine::new();
    machine.process(10, "train.py", 1, 500, 100);
    machine.process(11, "a) b (c", 10, 0, 7);
    let mut scan = machine.scan(&[]);
    let first = scan.table(at(0), &GpuUse::new()).unwrap();
    assert_eq!(row(&first, 10).cpu, None, "there is no interval yet");
    assert_eq!(row(&first, 11).name, "a) b (c");
    machine.process(10, "train.py", 1, 1_500, 200);
    let second = scan.table(at(5), &GpuUse::from([(10, (1 << 30, Some(55.0)))])).unwrap();
    let train = row(&second, 10);
    assert_eq!((train.cpu, train.rss, train.threads), (Some(200.0), 200 * 4096, 3));
    assert_eq!((train.gpu_memory, train.gpu_share), (Some(1 << 30), Some(55.0)));
    assert_eq!(second.rows[0].pid, 10, "the busiest first");
}

#[test]
fn a_thread_of_the_kernel_that_never_runs_is_read_more_rarely_and_loses_no_time() {
    let machine = Machine::new();
    machine.process(2, "kthreadd", 0, 0, 0);
    machine.process(10, "kswapd0", 2, 500, 0);
    machine.process(11, "sleep", 1, 500, 1);
    let mut scan = machine.scan(&[]);
    scan.room = Room::new(100);
    let mut t = 0;
    let mut table = |scan: &mut Scan| {
        t += 5;
        scan.table(at(t), &GpuUse::new()).unwrap()
    };
    for _ in 0..u32::from(TABLES_TO_REST) + RESTING_TURNS {
        table(&mut scan);
    }
    assert_eq!(scan.room.left(), 97, "the others hold three files, and it none");
    machine.process(10, "kswapd0", 2, 2_500, 0);
    machine.process(11, "sleep", 1, 1_000, 1);
    let (mut rest, mut found) = (0, None);
    while found.is_none() {
        let table = table(&mut scan);
        assert_eq!(table.total, 3, "it is counted while it rests");
        assert!(rest > 0 || row(&table, 11).cpu == Some(100.0), "a process is read in each table");
        rest += 1;
        found = table.rows.iter().find(|row| row.pid == 10).map(|row| row.cpu);
    }
    assert!(rest > 1 && rest <= RESTING_TURNS, "{rest}");
    assert_eq!(found.unwrap(), Some(100.0), "20 s of CPU time in {RESTING_TURNS} tables of 5 s");
    machine.process(10, "kswapd0", 2, 2_750, 0);
    assert_eq!(row(&table(&mut scan), 10).cpu, Some(50.0), "one that runs is read in each table");
}

#[test]
fn what_a_signal_has_stopped_is_told_until_it_goes_on() {
    let machine = Machine::new();
    machine.process(10, "train.py", 1, 500, 100);
    machine.process(11, "sh (T", 1, 500, 100);
    let state = |now: &str, next: &str| {
        let file = machine.0.path().join("10/stat");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(&format!(") {now} "), &format!(") {next} "))).unwrap();
    };
    let mut scan = machine.scan(&[]);
    let mut stopped = |t| {
        scan.table(at(t), &GpuUse::new()).unwrap();
        scan.stopped.clone()
    };
    assert_eq!(stopped(0), HashSet::new());
    state("S", "T");
    assert_eq!(stopped(5), HashSet::from([(10, 1_010)]));
    state("T", "t");
    assert_eq!(stopped(10), HashSet::new(), "a debugger holds it");
}

#[test]
fn arguments_are_read_only_where_they_were_asked_for_and_anew_for_another_program() {
    let machine = Machine::new();
    machine.process(10, "python3", 1, 500, 100);
    let cmdline = |text: &str| std::fs::write(machine.0.path().join("10/cmdline"), text).unwrap();
    cmdline("python3\0train.py\0--token\0abc\0");
    let mut scan = machine.scan(&[]);
    assert_eq!(row(&scan.table(at(0), &GpuUse::new()).unwrap(), 10).args, "");
    scan.show_args = true;
    let table = scan.table(at(5), &GpuUse::new()).unwrap();
    assert_eq!(
        (row(&table, 10).args.as_str(), row(&table, 10).script()),
        ("python3 train.py --token …", Some("train.py"))
    );
    cmdline("sleep\x005\0");
    machine.process(10, "sleep", 1, 500, 100);
    assert_eq!(row(&scan.table(at(10), &GpuUse::new()).unwrap(), 10).args, "sleep 5");
}

#[test]
fn a_number_used_again_is_another_process() {
    let machine = Machine::new();
    machine.process(10, "old", 1, 500, 1);
    let mut scan = machine.scan(&[]);
    scan.table(at(0), &GpuUse::new()).unwrap();
    machine.process(10, "new", 1, 3, 1);
    let table = scan.table(at(5), &GpuUse::new()).unwrap();
    assert_eq!((row(&table, 10).name.as_str(), row(&table, 10).cpu), ("new", None));
}

#[test]
fn a_process_has_its_start_and_its_state() {
    let machine = Machine::new();
    machine.process(10, "train", 1, 0, 1);
    let mut scan = machine.scan(&[]);
    let table = scan.table(at(0), &GpuUse::new()).unwrap();
    assert_eq!((row(&table, 10).state, row(&table, 10).started), (Some('S'), None), "the uptime is not known");
    assert_eq!(boot(machine.0.path(), 1_000_000), None);
    std::fs::write(machine.0.path().join("uptime"), "600.37 1000.00\n").unwrap();
    scan.boot = boot(machine.0.path(), 1_000_000);
    assert_eq!(scan.boot, Some(400_000), "in whole seconds");
    // It started 1,010 ticks of 10 ms after that.
    assert_eq!(row(&scan.table(at(5), &GpuUse::new()).unwrap(), 10).started, Some(410_100));
}

#[test]
fn the_watched_tree_is_marked_to_its_leaves() {
    let machine = Machine::new();
    for (pid, parent) in [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1)] {
        machine.process(pid, "p", parent, 0, 1);
    }
    let table = machine.scan(&[10]).table(at(0), &GpuUse::new()).unwrap();
    let mut watched: Vec<u32> = table.rows.iter().filter(|row| row.watched).map(|row| row.pid).collect();
    watched.sort_unstable();
    assert_eq!(watched, [10, 11, 12]);
}

#[test]
fn what_the_watched_tree_started_stays_marked_when_those_above_it_end() {
    let machine = Machine::new();
    for (pid, parent) in [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1)] {
        machine.process(pid, "p", parent, 0, 1);
    }
    let mut scan = machine.scan(&[10]);
    scan.table(at(0), &GpuUse::new()).unwrap();
    for pid in ["10", "11"] {
        std::fs::remove_dir_all(machine.0.path().join(pid)).unwrap();
    }
    machine.process(12, "p", 1, 0, 1);
    machine.process(30, "p", 12, 0, 1);
    let mut watched = |seconds| {
        let table = scan.table(at(seconds), &GpuUse::new()).unwrap();
        let mut watched: Vec<u32> = table.rows.iter().filter(|row| row.watched).map(|row| row.pid).collect();
        watched.sort_unstable();
        watched
    };
    assert_eq!(watched(5), [12, 30]);
    // A process that reuses the watched one's PID is another process.
    let stat = "10 (p) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 9999 0 1 0\n";
    std::fs::create_dir(machine.0.path().join("10")).unwrap();
    std::fs::write(machine.0.path().join("10/stat"), stat).unwrap();
    assert_eq!(watched(10), [12, 30]);
}

#[test]
fn a_process_as_old_as_the_machine_is_known_like_any_other() {
    let machine = Machine::new();
    let stat = "1 (init) S 0 1 1 0 -1 0 0 0 0 0 700 0 0 0 20 0 1 0 0 0 1 0\n";
    std::fs::create_dir(machine.0.path().join("1")).unwrap();
    std::fs::write(machine.0.path().join("1/stat"), stat).unwrap();
    let mut scan = machine.scan(&[]);
    scan.at = Some(at(0));
    let table = scan.table(at(5), &GpuUse::new()).unwrap();
    let init = row(&table, 1);
    assert_eq!(init.cpu, None, "there is no reading before it");
    assert!(!init.user.is_empty());
}

#[test]
fn idle_threads_of_the_kernel_have_no_row_but_count() {
    let machine = Machine::new();
    machine.process(2, "kthreadd", 0, 0, 0);
    machine.process(30, "kswapd0", 2, 0, 0);
    machine.process(31, "kworker", 2, 0, 0);
    let mut scan = machine.scan(&[]);
    scan.table(at(0), &GpuUse::new()).unwrap();
    machine.process(30, "kswapd0", 2, 400, 0);
    let table = scan.table(at(5), &GpuUse::new()).unwrap();
    assert_eq!(table.total, 3);
    assert_eq!(table.rows.iter().map(|row| row.pid).collect::<Vec<_>>(), [30]);
}

#[test]
fn details_are_read_of_the_watched_and_the_busiest() {
    let machine = Machine::new();
    let id = "0123456789abcdef".repeat(4);
    for pid in 100..200 {
        machine.process(pid, "p", 1, 0, 1);
        let dir = machine.0.path().join(pid.to_string());
        std::fs::write(dir.join("io"), "rchar: 9\nread_bytes: 1000\nwrite_bytes: 0\n").unwrap();
        std::fs::write(dir.join("cgroup"), format!("0::/system.slice/docker-{id}.scope\n")).unwrap();
    }
    let mut scan = machine.scan(&[]);
    scan.table(at(0), &GpuUse::new()).unwrap();
    std::fs::write(machine.0.path().join("100/io"), "read_bytes: 6000\nwrite_bytes: 50\n").unwrap();
    let table = scan.table(at(5), &GpuUse::new()).unwrap();
    let first = row(&table, 100);
    assert_eq!((first.read, first.written), (Some(1000.0), Some(10.0)));
    assert_eq!(first.container, "0123456789ab");
    assert_eq!(table.rows.iter().filter(|row| row.read.is_some()).count(), MAX_BUSIEST);
}

#[test]
fn who_comes_back_among_the_busiest_has_no_traffic_of_a_longer_time() {
    let machine = Machine::new();
    for pid in 100..=100 + MAX_BUSIEST as u32 {
        machine.process(pid, "p", 1, 0, if pid == 100 { 9 } else { 5 });
        std::fs::write(machine.0.path().join(format!("{pid}/io")), "read_bytes: 0\nwrite_bytes: 0\n").unwrap();
    }
    let mut scan = machine.scan(&[]);
    let mut read = |seconds, pages, bytes| {
        machine.process(100, "p", 1, 0, pages);
        std::fs::write(machine.0.path().join("100/io"), format!("read_bytes: {bytes}\nwrite_bytes: 0\n")).unwrap();
        row(&scan.table(at(seconds), &GpuUse::new()).unwrap(), 100).read
    };
    assert_eq!(read(0, 9, 0), None);
    assert_eq!(read(5, 9, 500), Some(100.0));
    assert_eq!(read(10, 1, 900), None, "it is the least of all now");
    assert_eq!(read(15, 9, 10_000), None);
    assert_eq!(read(20, 9, 10_500), Some(100.0));
}

#[test]
fn this_machine_agrees_with_itself() {
    let roots = Roots::default();
    let options = Options::default();
    let mut part = open(&options, &roots).unwrap().remove(0);
    let mut out = Out::default();
    out.begin(at(0));
    part.collector.collect(&mut out).unwrap();
    let table = options.processes.newest().unwrap();
    let own = row(&table, std::process::id());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let threads: u32 = status.lines().find_map(|l| l.strip_prefix("Threads:")?.trim().parse().ok()).unwrap();
    assert!(own.threads.abs_diff(threads) <= 8, "{} {threads}", own.threads);
    assert!(own.rss > 1 << 20);
    assert_eq!(own.parent, std::os::unix::process::parent_id());
}

proptest! {
    #[test]
    fn no_text_panics(text: Vec<u8>) {
        disk_bytes(&text);
        container_of(&text);
        users(&text);
    }
}

#[test]
fn no_more_files_stay_open_than_there_is_room() {
    let machine = Machine::new();
    for pid in 10..15 {
        machine.process(pid, "one", 1, 5, 1);
    }
    let mut scan = machine.scan(&[]);
    for second in 0..3 {
        assert_eq!(scan.table(at(second * 5), &GpuUse::new()).unwrap().total, 5);
        assert_eq!(scan.room.left(), 0);
    }
    for pid in 10..14 {
        std::fs::remove_dir_all(machine.0.path().join(pid.to_string())).unwrap();
    }
    assert_eq!(scan.table(at(15), &GpuUse::new()).unwrap().total, 1);
    std::fs::remove_dir_all(machine.0.path().join("14")).unwrap();
    assert_eq!(scan.table(at(20), &GpuUse::new()).unwrap().total, 0);
    assert_eq!(scan.room.left(), 2, "those that ended made room");
}

#[test]
fn memory_on_other_vendors_gpus_is_read_for_the_watched_tree_and_added_to_nvidias() {
    let machine = Machine::new();
    for pid in [10, 11] {
        machine.process(pid, "train", 1, 0, 1);
        let dir = machine.0.path().join(pid.to_string());
        std::fs::create_dir_all(dir.join("fd")).unwrap();
        std::fs::create_dir_all(dir.join("fdinfo")).unwrap();
        std::os::unix::fs::symlink("/dev/dri/renderD128", dir.join("fd/3")).unwrap();
        let said = "drm-driver:\tamdgpu\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t4 KiB\n";
        std::fs::write(dir.join("fdinfo/3"), said).unwrap();
    }
    let mut scan = machine.scan(&[10]);
    let none = scan.table(at(0), &GpuUse::new()).unwrap();
    assert_eq!(row(&none, 10).gpu_memory, None, "there are no such GPUs");
    scan.graphics = true;
    let own = scan.table(at(5), &GpuUse::new()).unwrap();
    assert_eq!((row(&own, 10).gpu_memory, row(&own, 11).gpu_memory), (Some(4096), None));
    let both = scan.table(at(10), &GpuUse::from([(10, (1, None))])).unwrap();
    assert_eq!(row(&both, 10).gpu_memory, Some(4097));
}
