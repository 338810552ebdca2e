//! Tests of the disk collector with machines made of files.

use crate::machine::{Machine, Readings, readings, value};

/// Sectors read and written, and milliseconds busy.
type Io = (u64, u64, u64);

fn line(major: u32, minor: u32, name: &str, (read, written, busy): Io) -> String {
    format!("{major:4} {minor:7} {name} 1 2 {read} 4 5 6 {written} 8 0 {busy} 11 0 0 0 0 0 0\n")
}

fn real(machine: &Machine, name: &str) {
    machine.folder(&format!("sys/block/{name}/device"));
}

/// Sectors of a mebibyte.
const MIB: u64 = 2048;

#[test]
pub fn forty_disks_with_all_that_lies_on_them() {
    let machine = Machine::new();
    for i in 0..40 {
        real(&machine, &format!("nvme{i}n1"));
    }
    for name in ["dm-0", "md127", "loop0", "zram0"] {
        machine.folder(&format!("sys/block/{name}"));
    }
    // A path of a multipath disk.
    real(&machine, "nvme39c1n1");
    machine.write("sys/block/nvme39c1n1/hidden", "1\n");
    let write = |t: u64| {
        let mut text = String::new();
        for i in 0..40u64 {
            let io = (7_000 + i * MIB * t, 9_000 + 2 * i * MIB * t, 100 + 25 * i * t);
            text += &line(259, i as u32, &format!("nvme{i}n1"), io);
            text += &line(259, 100 + i as u32, &format!("nvme{i}n1p1"), io);
        }
        for (i, name) in ["dm-0", "md127", "loop0", "zram0", "nvme39c1n1"].iter().enumerate() {
            // The path counts less than its disk, which also counts other paths.
            let busy = if name.starts_with("nvme") { 100 } else { 1000 };
            text += &line(250, i as u32, name, (5 * MIB * t, 5 * MIB * t, busy * t));
        }
        machine.write("proc/diskstats", text);
    };
    write(0);
    let mut disk = machine.open("disk");
    let expected = |t: f64| -> Readings {
        let mut expected = vec![("disk.in".to_string(), 780.0 * t), ("disk.out".to_string(), 1560.0 * t)];
        for i in 0..40 {
            expected.push((format!("disk.nvme{i}n1.in"), f64::from(i) * t));
            expected.push((format!("disk.nvme{i}n1.out"), f64::from(2 * i) * t));
            if t > 0.0 {
                expected.push((format!("disk.nvme{i}n1.busy_percent"), f64::from(i) * 2.5));
            }
        }
        readings(expected)
    };
    assert_eq!(disk.next(), expected(0.0), "totals begin at 0");
    write(1);
    assert_eq!(disk.next(), expected(1.0));
    write(3);
    assert_eq!(disk.after(2.0), expected(3.0));
    assert_eq!(disk.trouble(), None);
}

#[test]
fn an_nvme_disk_that_is_counted_on_its_hidden_paths_counts_once() {
    // On the paths only, on the disk only, and on both.
    for (on_paths, on_disk) in [(1, 0), (0, 1), (1, 1)] {
        let machine = Machine::new();
        for name in ["nvme0n1", "nvme0c0n1", "nvme0c1n1", "nvme1n1"] {
            real(&machine, name);
        }
        machine.write("sys/block/nvme0c0n1/hidden", "1\n").write("sys/block/nvme0c1n1/hidden", "1\n");
        let write = |t: u64| {
            let io = |times: u64| (9 + 30 * MIB * t * times, 9 + 4 * MIB * t * times, 250 * t * times);
            let paths = [line(0, 0, "nvme0c0n1", io(on_paths)), line(0, 0, "nvme0c1n1", io(on_paths))];
            let disk = line(259, 1, "nvme0n1", io(2 * on_disk));
            machine.write("proc/diskstats", paths.concat() + &disk + &line(259, 2, "nvme1n1", io(1)));
        };
        write(0);
        let mut disk = machine.open("disk");
        disk.next();
        for t in 1..3 {
            write(t);
            let now = disk.next();
            let read = [value(&now, "disk.in"), value(&now, "disk.nvme0n1.in"), value(&now, "disk.nvme1n1.in")];
            let t = t as f64;
            assert_eq!(read, [90.0, 60.0, 30.0].map(|mib| Some(mib * t)), "{on_paths} {on_disk}");
            assert_eq!(value(&now, "disk.out"), Some(12.0 * t), "{on_paths} {on_disk}");
            let busy = value(&now, "disk.nvme0n1.busy_percent").expect("it was busy");
            assert!(busy >= 25.0, "{on_paths} {on_disk}: {busy}");
            assert_eq!(value(&now, "disk.nvme0c0n1.in"), None, "a path is no disk");
        }
    }
}

#[test]
fn counters_that_wrap_or_reset_go_on() {
    let machine = Machine::new();
    real(&machine, "sda");
    let write = |read: u64, written: u64, busy: u64| {
        machine.write("proc/diskstats", line(8, 0, "sda", (read, written, busy)));
    };
    let wrap = 1 << 32;
    write(wrap - MIB, 1_000 * MIB, wrap - 100);
    let mut disk = machine.open("disk");
    disk.next();
    write(MIB, 3 * MIB, 150);
    let expected = [
        ("disk.in", 2.0),
        ("disk.out", 3.0),
        ("disk.sda.busy_percent", 25.0),
        ("disk.sda.in", 2.0),
        ("disk.sda.out", 3.0),
    ];
    assert_eq!(disk.next(), readings(expected));
}

#[test]
fn a_disk_that_is_pulled_and_comes_back_keeps_its_total() {
    let machine = Machine::new();
    real(&machine, "sda");
    real(&machine, "sdb");
    let write = |sectors: u64, with_b: bool| {
        let b = if with_b { line(8, 16, "sdb", (sectors, 0, 0)) } else { String::new() };
        machine.write("proc/diskstats", line(8, 0, "sda", (sectors, 0, 0)) + &b);
    };
    write(0, true);
    let mut disk = machine.open("disk");
    disk.next();
    write(MIB, true);
    disk.next();
    write(2 * MIB, false);
    let now = disk.next();
    assert_eq!((value(&now, "disk.sdb.in"), value(&now, "disk.in")), (None, Some(3.0)));
    write(9 * MIB, true);
    let now = disk.next();
    assert_eq!((value(&now, "disk.sdb.in"), value(&now, "disk.sdb.busy_percent")), (Some(1.0), None));
    assert_eq!(value(&now, "disk.in"), Some(10.0));
    write(10 * MIB, true);
    assert_eq!(value(&disk.next(), "disk.sdb.in"), Some(2.0));
}

#[test]
fn the_device_behind_a_watched_path_is_listed_but_counts_in_no_total() {
    let mut machine = Machine::new();
    real(&machine, "sda");
    machine.folder("sys/block/dm-3");
    machine.options.disk_paths = vec!["/".into(), "/mnt/my data.v2/sets".into()];
    machine.write(
        "proc/self/mountinfo",
        "1 0 0:30 / / rw - overlay overlay rw\n2 1 253:3 / /mnt/my\\040data.v2 rw - xfs /dev/mapper/vg-lv rw\n",
    );
    let write = |t: u64| {
        let lines = [
            line(8, 0, "sda", (MIB * t, 0, 0)),
            line(8, 1, "sda1", (MIB * t, 0, 0)),
            line(253, 3, "dm-3", (MIB * t, 0, 0)),
            line(253, 4, "dm-4", (MIB * t, 0, 0)),
        ];
        machine.write("proc/diskstats", lines.concat());
    };
    write(0);
    let mut disk = machine.open("disk");
    disk.next();
    write(4);
    let expected = [
        ("disk.dm-3.busy_percent", 0.0),
        ("disk.dm-3.in", 4.0),
        ("disk.dm-3.out", 0.0),
        ("disk.in", 4.0),
        ("disk.out", 0.0),
        ("disk.sda.busy_percent", 0.0),
        ("disk.sda.in", 4.0),
        ("disk.sda.out", 0.0),
    ];
    assert_eq!(disk.next(), readings(expected));
}

#[test]
fn a_machine_without_a_real_disk_has_no_totals() {
    let machine = Machine::new();
    machine.write("proc/diskstats", line(7, 0, "loop0", (1, 1, 1)));
    assert_eq!(machine.open("disk").next(), []);
}

#[test]
fn a_line_that_is_not_understood_costs_its_device_only() {
    let machine = Machine::new();
    real(&machine, "sda");
    real(&machine, "sdb");
    machine.write("proc/diskstats", format!("8 0 sda 1 2 x 4\n{}", line(8, 16, "sdb", (1, 1, 1))));
    let mut disk = machine.open("disk");
    assert_eq!(value(&disk.next(), "disk.sdb.in"), Some(0.0));
    assert!(disk.trouble().unwrap().1, "partly read");
}

#[test]
fn a_path_that_cannot_be_read_costs_only_itself() {
    let mut machine = Machine::new();
    machine.folder("mnt/my disk.v2/ünlü");
    let awkward = machine.path("mnt/my disk.v2/ünlü");
    machine.options.disk_paths =
        vec!["/".into(), awkward.clone(), "/nowhere at all".into(), "/proc".into(), "/".into()];
    let mut usage = machine.open("disk_usage");
    assert_eq!(usage.parts.len(), 4, "a part for each path, once");
    let now = usage.next();
    let shown: Vec<_> = now.iter().map(|(tag, _)| tag.clone()).collect();
    let mut expected = vec!["disk./.usageGB".to_string(), "disk./.usagePercent".to_string()];
    expected.extend(["usageGB", "usagePercent"].map(|what| format!("disk.{}.{what}", awkward.display())));
    expected.sort();
    assert_eq!(shown, expected);
    assert!(now.iter().all(|(_, value)| *value > 0.0));
    let reasons: Vec<_> =
        usage.outcomes.iter().map(|outcome| outcome.as_ref().err().map(|e| e.reason.clone())).collect();
    assert!(reasons[0].is_none() && reasons[1].is_none());
    assert!(reasons[2].as_ref().unwrap().starts_with("/nowhere at all: No such file"), "{reasons:?}");
    assert!(reasons[3].as_ref().unwrap().contains("has no size"), "{reasons:?}");
}
