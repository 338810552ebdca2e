//! Tests of the pressure collector with machines made of files.

use crate::machine::{Machine, readings};
use collectors::OpenErrorKind;

fn line(kind: &str, total: u64) -> String {
    format!("{kind} avg10=9.99 avg60=9.99 avg300=9.99 total={total}\n")
}

#[test]
pub fn totals_become_shares_of_the_time_between() {
    let machine = Machine::new();
    let write = |cpu: u64, some: u64, full: u64| {
        machine.write("proc/pressure/cpu", line("some", cpu));
        machine.write("proc/pressure/memory", line("some", some) + &line("full", full));
        machine.write("proc/pressure/io", line("some", some) + &line("full", 2 * full));
    };
    write(1_000, 5_000, 7_000);
    let mut pressure = machine.open("pressure");
    assert_eq!(pressure.next(), []);
    write(1_001_000, 505_000, 57_000);
    let expected = [
        ("pressure.cpu.some_percent", 50.0),
        ("pressure.io.full_percent", 5.0),
        ("pressure.io.some_percent", 25.0),
        ("pressure.memory.full_percent", 2.5),
        ("pressure.memory.some_percent", 25.0),
    ];
    assert_eq!(pressure.after(2.0), readings(expected));
}

#[test]
fn a_kernel_without_pressure_is_absent_with_a_remedy() {
    let error = Machine::new().try_open("pressure").err().unwrap();
    assert_eq!(error.kind, OpenErrorKind::Absent);
    assert!(error.remedy.contains("psi=1"));
}

#[test]
fn a_line_without_a_total_is_absent() {
    let machine = Machine::new();
    let write = |total| {
        machine.write("proc/pressure/io", line("some", total) + "full avg10=0.00\n");
    };
    write(0);
    let mut pressure = machine.open("pressure");
    pressure.next();
    write(10_000);
    assert_eq!(pressure.next(), readings([("pressure.io.some_percent", 1.0)]));
}

#[test]
fn a_kernel_that_measures_one_resource_shows_that_one() {
    let machine = Machine::new();
    machine.write("proc/pressure/memory", line("some", 0));
    let mut pressure = machine.open("pressure");
    pressure.next();
    machine.write("proc/pressure/memory", line("some", 10_000));
    assert_eq!(pressure.next(), readings([("pressure.memory.some_percent", 1.0)]));
    assert_eq!(pressure.trouble(), None);
}
