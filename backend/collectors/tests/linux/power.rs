//! Tests of the power of processors and machines, with machines made of files.

use crate::machine::{Machine, readings, value};
use collectors::OpenErrorKind;

/// A domain of RAPL: its place in the tree, name, range and counter.
fn domain(machine: &Machine, place: &str, name: &str, energy: u64) {
    let dir = format!("sys/class/powercap/{place}");
    machine.write(&format!("{dir}/name"), format!("{name}\n"));
    machine.write(&format!("{dir}/max_energy_range_uj"), "262143328850\n");
    machine.write(&format!("{dir}/energy_uj"), format!("{energy}\n"));
}

/// Two packages with memory, the counter's parts, the memory-mapped twin, and the platform.
fn server(machine: &Machine, packages: [u64; 2], memory: [u64; 2], platform: u64) {
    machine.folder("sys/class/powercap/intel-rapl");
    for (at, (package, memory)) in packages.into_iter().zip(memory).enumerate() {
        domain(machine, &format!("intel-rapl:{at}"), &format!("package-{at}"), package);
        domain(machine, &format!("intel-rapl:{at}:0"), "core", 7);
        domain(machine, &format!("intel-rapl:{at}:1"), "dram", memory);
    }
    domain(machine, "intel-rapl-mmio:0", "package-0", packages[0]);
    domain(machine, "intel-rapl:2", "psys", platform);
}

#[test]
pub fn packages_and_memory_are_counted_apart_and_through_a_wrap() {
    let machine = Machine::new();
    server(&machine, [262_143_000_000, 5_000_000], [0, 1_000_000], 9);
    let mut rapl = machine.open("rapl");
    assert_eq!(rapl.next(), readings([] as [(&str, f64); 0]), "power needs two readings");
    // The first counter starts again at zero.
    server(&machine, [199_671_150, 305_500_000], [20_000_000, 31_000_000], 900_000_009);
    let expected = [
        ("cpu.package.0.powerWatts", 100.0),
        ("cpu.package.1.powerWatts", 150.25),
        ("cpu.powerWatts", 250.25),
        ("memory.powerWatts", 25.0),
        ("system.powerWatts", 450.0),
    ];
    assert_eq!(rapl.after(2.0), readings(expected));
    // A suspended machine: nobody knows how often the counters wrapped.
    assert_eq!(rapl.after(3600.0), readings([] as [(&str, f64); 0]));
    assert_eq!(rapl.trouble(), None);
    machine.write("sys/class/powercap/intel-rapl:1/energy_uj", "?\n");
    let some = rapl.next();
    assert_eq!((value(&some, "cpu.package.0.powerWatts"), value(&some, "cpu.powerWatts")), (Some(0.0), None));
    assert!(rapl.trouble().is_some_and(|(reason, partial)| partial && reason.contains("intel-rapl:1/energy_uj")));
}

#[test]
fn domains_that_count_nothing_are_no_power() {
    let machine = Machine::new();
    server(&machine, [1_000_000, 1_000_000], [0, 0], 0);
    let mut rapl = machine.open("rapl");
    rapl.next();
    server(&machine, [51_000_000, 51_000_000], [0, 0], 0);
    let packages = [("cpu.package.0.powerWatts", 50.0), ("cpu.package.1.powerWatts", 50.0), ("cpu.powerWatts", 100.0)];
    assert_eq!(rapl.next(), readings(packages), "neither memory nor the platform is measured");
    // The board's part of the platform is less than its processors.
    server(&machine, [101_000_000, 101_000_000], [0, 0], 7_000_000);
    assert_eq!(rapl.next(), readings(packages));
    server(&machine, [151_000_000, 151_000_000], [0, 0], 187_000_000);
    assert_eq!(value(&rapl.next(), "system.powerWatts"), Some(180.0));
}

#[test]
fn the_machines_meter_comes_before_the_platforms_counter() {
    let machine = Machine::new();
    server(&machine, [0, 0], [0, 0], 0);
    machine.write("sys/class/hwmon/hwmon3/name", "power_meter\n");
    machine.write("sys/class/hwmon/hwmon3/power1_average", "612000000\n");
    let (mut rapl, mut meter) = (machine.open("rapl"), machine.open("power_meter"));
    rapl.next();
    server(&machine, [1_000_000, 0], [0, 0], 5_000_000);
    assert_eq!(value(&rapl.next(), "system.powerWatts"), None);
    assert_eq!(meter.next(), readings([("system.powerWatts", 612.0)]));
    machine.write("sys/class/hwmon/hwmon3/power1_average", "4294967295000000\n");
    assert_eq!(meter.next(), readings([] as [(&str, f64); 0]), "the controller has no reading");
}

/// Names and files as in NVIDIA's tuning guide for Grace.
#[test]
pub fn the_meters_of_a_grace_module_are_told_apart() {
    let machine = Machine::new();
    let names = ["Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0", "SysIO Power Socket 0"];
    let meter = |at: usize, name: &str, watts: f64| {
        let dir = format!("sys/class/hwmon/hwmon{at}/device");
        machine.write(&format!("{dir}/name"), "power_meter\n");
        machine.write(&format!("{dir}/power1_oem_info"), format!("{name}\n"));
        machine.write(&format!("{dir}/power1_average"), format!("{}\n", watts * 1e6));
    };
    for (at, (name, watts)) in names.into_iter().zip([640.0, 110.5, 80.25, 20.0]).enumerate() {
        meter(at, name, watts);
        meter(at + 4, &name.replace("Socket 0", "Socket 1"), watts + 1.0);
    }
    machine.write("sys/class/hwmon/hwmon9/name", "nvme\n");
    let expected = [("system.powerWatts", 1281.0), ("cpu.powerWatts", 161.5)];
    assert_eq!(machine.open("power_meter").next(), readings(expected));
}

#[test]
fn a_machine_without_counters_says_so() {
    for (name, words) in [("rapl", "no energy counters"), ("power_meter", "no ACPI power meter")] {
        let error = Machine::new().try_open(name).err().unwrap();
        assert!(error.kind == OpenErrorKind::Absent && error.reason.contains(words), "{error:?}");
    }
}

#[test]
#[ignore = "root may read every file; run it as another user"]
fn counters_that_only_root_may_read_come_with_the_command() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    domain(&machine, "intel-rapl:0", "package-0", 5);
    let file = machine.path("sys/class/powercap/intel-rapl:0/energy_uj");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    assert!(std::fs::read(&file).is_err(), "this user is root");
    let error = machine.try_open("rapl").err().unwrap();
    assert_eq!(error.kind, OpenErrorKind::Absent);
    assert!(error.remedy.starts_with("sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"), "{error:?}");
}
