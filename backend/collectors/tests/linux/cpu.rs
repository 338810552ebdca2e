//! Tests of the processor collector with machines made of files.

use crate::machine::{Machine, readings, value};

/// Core `i` was busy for `i` of the 100 ticks since `start`.
fn stat(cores: impl Iterator<Item = u64> + Clone, seconds: u64) -> String {
    let line = |name: String, busy: u64, idle: u64| {
        format!("{name} {} 0 {} {} {} 0 0 0 0 0\n", 500 + busy, 300, 9000 + idle, 70)
    };
    let busy: u64 = cores.clone().sum();
    let count = cores.clone().count() as u64;
    let mut text = line("cpu ".into(), busy * seconds, (100 * count - busy) * seconds);
    for core in cores {
        text += &line(format!("cpu{core}"), core * seconds, (100 - core) * seconds);
    }
    // One number per interrupt source, most of them 0.
    let each = " 0".repeat(3_000);
    let (interrupts, switches, forks) = (12_000 + 900 * seconds, 70_000 + 2_500 * seconds, 300 + 4 * seconds);
    text + &format!("intr {interrupts} 17{each}\nctxt {switches}\nbtime 1795457888\nprocesses {forks}\n")
        + "procs_running 7\nprocs_blocked 3\nsoftirq 1686357 0 191770 4 390942 348607 0 1261 172054 2882 578837\n"
}

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write("proc/stat", stat(0..64, 0));
    machine.write("proc/loadavg", "63.50 12.25 7.00 65/1200 4711\n").write("proc/uptime", "86400.25 5000000.00\n");
    machine
}

#[test]
pub fn sixty_four_cores() {
    let machine = machine();
    let mut cpu = machine.open("cpu");
    let at_once = readings([
        ("system.context_switches", 0.0),
        ("system.cores", 64.0),
        ("system.forks", 0.0),
        ("system.interrupts", 0.0),
        ("system.load1", 63.5),
        ("system.load15", 7.0),
        ("system.load5", 12.25),
        ("system.tasks", 1200.0),
        ("system.tasks_blocked", 3.0),
        ("system.tasks_runnable", 65.0),
        ("system.uptime", 86400.25),
    ]);
    assert_eq!(cpu.next(), at_once, "shares need two readings");
    machine.write("proc/stat", stat(0..64, 1));
    let mut expected: Vec<_> = at_once.into_iter().filter(|(_, value)| *value > 0.0).collect();
    for (tag, count) in [("context_switches", 2_500.0), ("forks", 4.0), ("interrupts", 900.0)] {
        expected.push((format!("system.{tag}"), count));
    }
    expected.extend((0..64).map(|core| (format!("cpu.{core}.cpu_percent"), f64::from(core))));
    for (tag, percent) in
        [("cpu", 31.5), ("cpu_user", 31.5), ("cpu_system", 0.0), ("cpu_iowait", 0.0), ("cpu_steal", 0.0)]
    {
        expected.push((format!("system.{tag}_percent"), percent));
    }
    assert_eq!(cpu.next(), readings(expected));
    assert_eq!(cpu.trouble(), None);
    assert!(value(&cpu.next(), "system.cpu_percent").is_none(), "no tick passed");
}

#[test]
fn a_core_that_goes_offline_is_absent_and_the_others_keep_theirs() {
    let machine = machine();
    let mut cpu = machine.open("cpu");
    cpu.next();
    let without = |core| (0..64).filter(move |other| *other != core);
    machine.write("proc/stat", stat(without(10), 1));
    let now = cpu.next();
    assert_eq!(value(&now, "system.cores"), Some(63.0));
    assert_eq!(value(&now, "cpu.10.cpu_percent"), None);
    assert_eq!(value(&now, "cpu.11.cpu_percent"), Some(11.0));
    machine.write("proc/stat", stat(0..64, 2));
    let now = cpu.next();
    assert_eq!(value(&now, "cpu.10.cpu_percent"), None, "it has one reading so far");
    assert_eq!(value(&now, "cpu.63.cpu_percent"), Some(63.0));
}

#[test]
fn what_cannot_be_read_is_absent_and_the_rest_stays() {
    let machine = machine();
    machine.remove("proc/loadavg").write("proc/uptime", "soon\n");
    let mut cpu = machine.open("cpu");
    cpu.next();
    machine.write("proc/stat", stat(0..64, 1).replace("cpu5 505", "cpu5 ???"));
    let now = cpu.next();
    assert_eq!(value(&now, "cpu.5.cpu_percent"), None);
    assert_eq!(value(&now, "cpu.6.cpu_percent"), Some(6.0));
    assert_eq!(value(&now, "system.load1"), None);
    assert_eq!(value(&now, "system.uptime"), None);
    let (reason, partial) = cpu.trouble().unwrap();
    assert!(reason.contains("loadavg") && partial, "{reason}");
}

#[test]
fn without_the_file_the_collector_is_absent() {
    let error = Machine::new().try_open("cpu").err().unwrap();
    assert_eq!(error.kind, collectors::OpenErrorKind::Absent);
    assert!(error.reason.contains("proc/stat"), "{}", error.reason);
}

#[test]
pub fn the_packages_sensors_speak_for_the_processor() {
    let machine = machine();
    for (i, (label, thousandths)) in
        [("Package id 0", "61000"), ("Core 0", "99000"), ("Package id 1", "63000"), ("Package id 2", "0")]
            .iter()
            .enumerate()
    {
        machine.write(&format!("sys/class/hwmon/hwmon1/temp{i}_label"), label);
        machine.write(&format!("sys/class/hwmon/hwmon1/temp{i}_input"), thousandths);
    }
    machine.write("sys/class/hwmon/hwmon1/name", "coretemp\n");
    machine.write("sys/class/hwmon/hwmon0/name", "nvme\n").write("sys/class/hwmon/hwmon0/temp1_input", "45000\n");
    machine.write("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    machine.write("sys/class/thermal/thermal_zone0/temp", "40000\n");
    let mut cpu = machine.open("cpu");
    assert_eq!(value(&cpu.next(), "cpu.avg_temp"), Some(62.0), "the reading of 0 is dropped");
    machine.write("sys/class/hwmon/hwmon1/temp0_input", "?").write("sys/class/hwmon/hwmon1/temp2_input", "-1000");
    assert_eq!(value(&cpu.next(), "cpu.avg_temp"), Some(99.0), "the cores speak when no package does");
    machine.remove("sys/class/hwmon/hwmon1");
    machine.write("sys/class/thermal/thermal_zone0/temp", "40500\n");
    assert_eq!(value(&machine.open("cpu").next(), "cpu.avg_temp"), Some(40.5));
}
