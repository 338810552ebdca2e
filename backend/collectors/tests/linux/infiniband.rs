//! Tests of the InfiniBand collector with machines made of files, in the form of the kernel's drivers.

use crate::machine::{Machine, readings, value};

const CLASS: &str = "sys/class/infiniband";

/// Counters of an mlx5 adapter of 400 Gb/s.
fn port(machine: &Machine, adapter: &str, received: u64, sent: u64, errors: u64) {
    let dir = format!("{CLASS}/{adapter}/ports/1");
    machine.write(&format!("{dir}/state"), "4: ACTIVE\n").write(&format!("{dir}/phys_state"), "5: LinkUp\n");
    machine.write(&format!("{dir}/rate"), "400 Gb/sec (4X NDR)\n").write(&format!("{dir}/link_layer"), "InfiniBand\n");
    for (file, value) in [
        ("counters/port_rcv_data", received),
        ("counters/port_xmit_data", sent),
        ("counters/port_rcv_packets", received / 1024),
        ("counters/symbol_error", errors),
        ("counters/link_downed", 2 * errors),
        ("counters/link_error_recovery", 3 * errors),
        ("counters/port_rcv_errors", 4 * errors),
        ("counters/port_xmit_discards", 5 * errors),
        ("counters/port_xmit_wait", 6 * errors),
        ("hw_counters/lifespan", 10),
        ("hw_counters/out_of_sequence", 7 * errors),
        ("hw_counters/packet_seq_err", 8 * errors),
        ("hw_counters/local_ack_timeout_err", 9 * errors),
        ("hw_counters/np_cnp_sent", 10 * errors),
        ("hw_counters/rp_cnp_handled", 11 * errors),
    ] {
        machine.write(&format!("{dir}/{file}"), format!("{value}\n"));
    }
}

/// Names of the counters other than bytes, in the order above.
const ERRORS: [&str; 11] = [
    "symbol_errors",
    "link_downed",
    "link_recoveries",
    "receive_errors",
    "send_discards",
    "send_wait",
    "out_of_sequence",
    "packet_sequence_errors",
    "ack_timeouts",
    "congestion_sent",
    "congestion_handled",
];

#[test]
pub fn traffic_is_read_at_every_tick_and_errors_every_ten_seconds() {
    let machine = Machine::new();
    port(&machine, "mlx5_0", 1_000_000, 500, 3);
    let mut adapters = machine.open("infiniband");
    let mut expected: Vec<(String, f64)> = ERRORS.iter().map(|name| (name.to_string(), 0.0)).collect();
    expected.extend([("recv", 0.0), ("sent", 0.0), ("state", 4.0), ("rate", 50e9)].map(|(n, v)| (n.to_string(), v)));
    let named = |all: &[(String, f64)]| readings(all.iter().map(|(n, v)| (format!("infiniband.mlx5_0/1.{n}"), *v)));
    assert_eq!(adapters.next(), named(&expected), "all counts from the start on");
    port(&machine, "mlx5_0", 1_000_025, 750, 5);
    let traffic = readings([("infiniband.mlx5_0/1.recv", 100.0), ("infiniband.mlx5_0/1.sent", 1000.0)]);
    assert_eq!(adapters.next(), traffic, "words of four bytes");
    for (name, value) in expected.iter_mut().take(ERRORS.len()) {
        let at = ERRORS.iter().position(|error| error == name).unwrap();
        *value = 2.0 * (at + 1) as f64;
    }
    expected.retain(|(name, _)| name != "recv" && name != "sent");
    expected.extend([("recv".to_string(), 100.0), ("sent".to_string(), 1000.0)]);
    assert_eq!(adapters.after(9.0), named(&expected));
    assert_eq!(adapters.trouble(), None);
}

#[test]
fn ports_are_told_apart_and_one_that_left_goes_on_when_it_is_back() {
    let machine = Machine::new();
    port(&machine, "mlx5_0", 10, 10, 0);
    port(&machine, "mlx5_1", 10, 10, 0);
    let mut adapters = machine.open("infiniband");
    adapters.next();
    port(&machine, "mlx5_0", 20, 10, 0);
    port(&machine, "mlx5_1", 10, 40, 0);
    // A new port is found in the next search.
    port(&machine, "mlx5_2", 70, 70, 0);
    let now = adapters.next();
    assert_eq!(value(&now, "infiniband.mlx5_0/1.recv"), Some(40.0));
    assert_eq!(value(&now, "infiniband.mlx5_1/1.sent"), Some(120.0));
    assert_eq!(value(&now, "infiniband.mlx5_2/1.recv"), None);
    machine.remove(&format!("{CLASS}/mlx5_1"));
    let now = adapters.after(10.0);
    assert_eq!(value(&now, "infiniband.mlx5_1/1.sent"), None);
    assert_eq!(value(&now, "infiniband.mlx5_2/1.recv"), Some(0.0));
    assert_eq!(adapters.trouble(), None);
    // Its counters were reset.
    port(&machine, "mlx5_1", 3, 3, 0);
    let now = adapters.after(10.0);
    assert_eq!(value(&now, "infiniband.mlx5_1/1.sent"), Some(120.0));
    port(&machine, "mlx5_1", 3, 4, 0);
    assert_eq!(value(&adapters.next(), "infiniband.mlx5_1/1.sent"), Some(124.0));
}

#[test]
fn adapters_without_infinibands_counters_are_read_by_their_own() {
    let machine = Machine::new();
    // AWS's EFA has no such folder; iWARP's file contains words instead of a number.
    let (efa, iwarp) = (format!("{CLASS}/rdmap16s27/ports/1"), format!("{CLASS}/i40iw0/ports/1"));
    machine.write(&format!("{efa}/state"), "4: ACTIVE\n").write(&format!("{efa}/rate"), "100 Gb/sec (4X EDR)\n");
    machine.write(&format!("{efa}/hw_counters/rx_bytes"), "1000\n");
    machine.write(&format!("{efa}/hw_counters/tx_bytes"), "2000\n");
    machine.write(&format!("{iwarp}/state"), "1: DOWN\n").write(&format!("{iwarp}/rate"), "40 Gb/sec (4X QDR)\n");
    for file in ["port_rcv_data", "port_xmit_data", "symbol_error", "link_downed"] {
        machine.write(&format!("{iwarp}/counters/{file}"), "N/A (no PMA)\n");
    }
    let mut adapters = machine.open("infiniband");
    let expected = readings([
        ("infiniband.i40iw0/1.rate", 5e9),
        ("infiniband.i40iw0/1.state", 1.0),
        ("infiniband.rdmap16s27/1.rate", 12.5e9),
        ("infiniband.rdmap16s27/1.recv", 0.0),
        ("infiniband.rdmap16s27/1.sent", 0.0),
        ("infiniband.rdmap16s27/1.state", 4.0),
    ]);
    assert_eq!(adapters.next(), expected);
    machine.write(&format!("{efa}/hw_counters/rx_bytes"), "1700\n");
    let now = adapters.next();
    assert_eq!(value(&now, "infiniband.rdmap16s27/1.recv"), Some(700.0), "bytes");
    assert_eq!(adapters.trouble(), None);
}

#[test]
fn a_counter_that_is_no_number_any_more_is_said_and_the_rest_goes_on() {
    let machine = Machine::new();
    port(&machine, "mlx5_0", 10, 10, 0);
    let mut adapters = machine.open("infiniband");
    adapters.next();
    machine.write(&format!("{CLASS}/mlx5_0/ports/1/counters/port_rcv_data"), "?\n");
    let now = adapters.next();
    assert_eq!(now, readings([("infiniband.mlx5_0/1.sent", 0.0)]));
    let (reason, partial) = adapters.trouble().unwrap();
    assert!(reason.ends_with("port_rcv_data: not a number") && partial, "{reason}");
}

#[test]
fn without_an_adapter_it_is_absent() {
    let error = Machine::new().try_open("infiniband").err().unwrap();
    assert_eq!(error.kind, collectors::OpenErrorKind::Absent);
    assert_eq!(error.reason, "there is no InfiniBand or RoCE adapter");
}
