//! Tests of the network collector with machines made of files.

use crate::machine::{Machine, readings, value};

const HEADINGS: &str = "Inter-|   Receive |  Transmit\n face |bytes packets |bytes packets\n";

fn write(machine: &Machine, links: &[(&str, u64, u64)]) {
    let line = |(name, received, sent): &(&str, u64, u64)| {
        format!("{name:>6}:{received:8} 1 0 0 0 0 0 0 {sent:8} 1 0 0 0 0 0 0\n")
    };
    machine.write("proc/net/dev", HEADINGS.to_string() + &links.iter().map(line).collect::<String>());
}

fn segments(machine: &Machine, count: &str) {
    let text = format!("Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 {count} 0\n");
    machine.write("proc/net/snmp", text);
}

#[test]
pub fn links_that_are_part_of_another_count_once() {
    let machine = Machine::new();
    let class = |link: &str, master: &str| {
        machine.folder(&format!("sys/class/net/{link}"));
        if !master.is_empty() {
            machine.link(&format!("sys/class/net/{link}/master"), &format!("../{master}"));
        }
    };
    for (link, master) in [
        ("br0", ""),
        ("eth0", "br0"),
        ("veth1", "br0"),
        ("bond0", ""),
        ("eth1", "bond0"),
        ("team0", ""),
        ("eth2", "team0"),
        ("vrf-blue", ""),
        ("eth3", "vrf-blue"),
        ("ovs-system", ""),
        ("eth4", "ovs-system"),
        ("lora0", ""),
    ] {
        class(link, master);
    }
    machine.write("sys/class/net/vrf-blue/uevent", "DEVTYPE=vrf\nINTERFACE=vrf-blue\n");
    machine.write("sys/class/net/br0/uevent", "DEVTYPE=bridge\nINTERFACE=br0\n");
    machine.write("sys/class/net/dummy-lo/type", "772\n").write("sys/class/net/lora0/type", "1\n");
    segments(&machine, "40");
    let all = |t: u64| {
        let names =
            ["lo", "dummy-lo", "br0", "eth0", "veth1", "bond0", "eth1", "team0", "eth2", "eth3", "eth4", "lora0"];
        let links: Vec<_> = names.iter().map(|name| (*name, 1000 + 10 * t, 5000 + t)).collect();
        write(&machine, &links);
    };
    all(0);
    let mut network = machine.open("network");
    assert!(network.next().iter().all(|(_, value)| *value == 0.0), "totals begin at 0");
    all(3);
    segments(&machine, "42");
    let mut expected = vec![
        ("network.recv".to_string(), 180.0),
        ("network.sent".to_string(), 18.0),
        ("network.tcpRetransmits".to_string(), 2.0),
    ];
    for link in ["br0", "bond0", "team0", "eth0", "eth1", "eth2", "eth3", "eth4", "lora0"] {
        expected.push((format!("network.{link}.recv"), 30.0));
        expected.push((format!("network.{link}.sent"), 3.0));
    }
    assert_eq!(network.next(), readings(expected));
    assert_eq!(network.trouble(), None);
}

#[test]
fn where_a_link_joins_a_bridge_only_the_link_counts_from_then_on() {
    let machine = Machine::new();
    segments(&machine, "0");
    write(&machine, &[("eth0", 0, 0), ("br0", 0, 0)]);
    machine.folder("sys/class/net/eth0");
    let mut network = machine.open("network");
    network.next();
    machine.link("sys/class/net/eth0/master", "../br0");
    write(&machine, &[("eth0", 100, 0), ("br0", 100, 0)]);
    let now = network.after(10.0);
    assert_eq!((value(&now, "network.recv"), value(&now, "network.eth0.recv")), (Some(100.0), Some(100.0)));
}

#[test]
fn counters_that_wrap_or_reset_go_on_and_a_link_that_returns_keeps_its_total() {
    let machine = Machine::new();
    segments(&machine, "4294967290");
    write(&machine, &[("eth0", (1 << 32) - 50, 7_000), ("eth1", 0, 0)]);
    let mut network = machine.open("network");
    network.next();
    segments(&machine, "4");
    write(&machine, &[("eth0", 50, 30), ("eth1", 10, 0)]);
    let now = network.next();
    assert_eq!(value(&now, "network.eth0.recv"), Some(100.0));
    assert_eq!(value(&now, "network.eth0.sent"), Some(30.0));
    assert_eq!(value(&now, "network.tcpRetransmits"), Some(10.0));
    write(&machine, &[("eth0", 50, 30)]);
    let now = network.next();
    assert_eq!((value(&now, "network.eth1.recv"), value(&now, "network.recv")), (None, Some(110.0)));
    write(&machine, &[("eth0", 50, 30), ("eth1", 5, 0)]);
    network.next();
    write(&machine, &[("eth0", 50, 30), ("eth1", 9, 0)]);
    let now = network.next();
    assert_eq!((value(&now, "network.eth1.recv"), value(&now, "network.recv")), (Some(14.0), Some(114.0)));
}

#[test]
fn of_a_mounted_machine_the_first_process_tells() {
    let machine = Machine::new();
    segments(&machine, "0");
    write(&machine, &[("eth0", 5, 5)]);
    machine.write("proc/1/net/dev", format!("{HEADINGS} host0: 1 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0\n"));
    let now = machine.open("network").next();
    assert_eq!((value(&now, "network.host0.recv"), value(&now, "network.eth0.recv")), (Some(0.0), None));
}

#[test]
fn missing_and_unreadable_parts_cost_themselves_only() {
    let machine = Machine::new();
    machine.write("proc/net/dev", format!("{HEADINGS}  eth0: many 0\n  eth1: 1 0 0 0 0 0 0 0 1 0\n"));
    let mut network = machine.open("network");
    let now = network.next();
    assert_eq!(value(&now, "network.eth1.recv"), Some(0.0));
    assert_eq!(value(&now, "network.eth0.recv"), None);
    assert_eq!(value(&now, "network.tcpRetransmits"), None);
    assert!(network.trouble().unwrap().1, "partly read");
}

#[test]
fn a_counter_that_dips_is_no_restart() {
    let machine = Machine::new();
    segments(&machine, "0");
    let mut network = None;
    let mut grown = None;
    for received in [5_000_000_000_000, 4_999_999_000_000, 4_999_999_500_000] {
        write(&machine, &[("bond0", received, 7)]);
        let now = network.get_or_insert_with(|| machine.open("network")).next();
        grown = value(&now, "network.recv");
    }
    assert_eq!(grown, Some(0.0));
}
