//! InfiniBand and RoCE: the ports of adapters that move memory from machine to machine past the kernel, which
//! /proc/net/dev therefore does not count. A port is named by its adapter and its number there: `mlx5_0/1`.

use super::MetricDef;
use crate::unit::Unit;

const LINE: &str = "{port}";

/// Received.
pub static RECEIVED: MetricDef = MetricDef::counter("infiniband.{port}.recv", Unit::Bytes)
    .title("InfiniBand received")
    .on("infiniband.in", LINE)
    .steps(0.25)
    .help("Received on this port of an adapter since the start, RDMA included; of RoCE it is RDMA alone, and network.{dev}.recv has the rest. File counters/port_rcv_data below /sys/class/infiniband x 4, for it counts words of 4 bytes; hw_counters/rx_bytes where an adapter has that instead, such as AWS's EFA.");

/// Sent.
pub static SENT: MetricDef = MetricDef::counter("infiniband.{port}.sent", Unit::Bytes)
    .title("InfiniBand sent")
    .on("infiniband.out", LINE)
    .steps(0.25)
    .help("Sent on this port of an adapter since the start, RDMA included; of RoCE it is RDMA alone, and network.{dev}.sent has the rest. File counters/port_xmit_data below /sys/class/infiniband x 4, for it counts words of 4 bytes; hw_counters/tx_bytes where an adapter has that instead, such as AWS's EFA.");

/// State of the port.
pub static STATE: MetricDef = MetricDef::state("infiniband.{port}.state")
    .title("InfiniBand port state")
    .on("infiniband.state", LINE)
    .help("State of the port: 1 down, 2 initializing, 3 armed, 4 active, 5 active with a link that is being mended. File state of the port below /sys/class/infiniband, read every 10 s.");

/// Rate of the link.
pub static RATE: MetricDef = MetricDef::gauge("infiniband.{port}.rate", Unit::BytesPerSecond)
    .title("InfiniBand link rate")
    .on("infiniband.rate", LINE)
    .steps(1.0)
    .help("Maximum of the port's link in one direction, all its lanes together, as negotiated; a link that lost lanes has less. File rate of the port below /sys/class/infiniband, Gb/sec x 10^9 / 8, read every 10 s.");

/// Errors of symbols.
pub static SYMBOL_ERRORS: MetricDef = MetricDef::counter("infiniband.{port}.symbol_errors", Unit::Count)
    .title("InfiniBand symbol errors")
    .on("infiniband.symbols", LINE)
    .help("Minor errors on the lanes of the link since the start: a bad cable or transceiver has many. File counters/symbol_error, read every 10 s.");

/// Times that the link went down.
pub static LINK_DOWNED: MetricDef = MetricDef::counter("infiniband.{port}.link_downed", Unit::Count)
    .title("InfiniBand links that went down")
    .on("infiniband.links", "{port}, down")
    .help("Times that the link could not be mended and went down, since the start. File counters/link_downed, read every 10 s.");

/// Times that the link recovered.
pub static LINK_RECOVERIES: MetricDef = MetricDef::counter("infiniband.{port}.link_recoveries", Unit::Count)
    .title("InfiniBand links that were mended")
    .on("infiniband.links", "{port}, mended")
    .help("Times that the link failed and was mended by itself, since the start. File counters/link_error_recovery, read every 10 s.");

/// Packets received with errors.
pub static RECEIVE_ERRORS: MetricDef = MetricDef::counter("infiniband.{port}.receive_errors", Unit::Count)
    .title("InfiniBand packets received with errors")
    .on("infiniband.errors", LINE)
    .help("Packets with errors that the port received since the start: wrong checksums, lengths or keys. File counters/port_rcv_errors, read every 10 s.");

/// Packets that were not sent.
pub static SEND_DISCARDS: MetricDef = MetricDef::counter("infiniband.{port}.send_discards", Unit::Count)
    .title("InfiniBand packets not sent")
    .on("infiniband.discards", LINE)
    .help("Packets that the port threw away instead of sending them since the start, because it was down or congested. File counters/port_xmit_discards, read every 10 s.");

/// Time without credits.
pub static SEND_WAIT: MetricDef = MetricDef::counter("infiniband.{port}.send_wait", Unit::Count)
    .title("InfiniBand send wait")
    .on("infiniband.wait", LINE)
    .help("Ticks of the adapter's clock in which the port had data and could not send, since the start: the other end or the network behind it was congested. File counters/port_xmit_wait, read every 10 s.");

/// Packets out of order.
pub static OUT_OF_SEQUENCE: MetricDef = MetricDef::counter("infiniband.{port}.out_of_sequence", Unit::Count)
    .title("InfiniBand packets out of order")
    .on("infiniband.order", "{port}, received")
    .help("Packets that came out of order since the start, of which RoCE has many where packets are lost. File hw_counters/out_of_sequence, read every 10 s.");

/// Complaints about the order.
pub static SEQUENCE_ERRORS: MetricDef = MetricDef::counter("infiniband.{port}.packet_sequence_errors", Unit::Count)
    .title("InfiniBand sequence errors")
    .on("infiniband.order", "{port}, reported by others")
    .help("Times that the other end reported a gap in what this port sent, since the start; it is sent again. File hw_counters/packet_seq_err, read every 10 s.");

/// Missing acknowledgments.
pub static ACK_TIMEOUTS: MetricDef = MetricDef::counter("infiniband.{port}.ack_timeouts", Unit::Count)
    .title("InfiniBand acknowledgements missed")
    .on("infiniband.timeouts", LINE)
    .help("Times that no acknowledgement came in time since the start; what was sent is sent again. File hw_counters/local_ack_timeout_err, read every 10 s.");

/// Congestion that this port reported.
pub static CONGESTION_SENT: MetricDef = MetricDef::counter("infiniband.{port}.congestion_sent", Unit::Count)
    .title("InfiniBand congestion notices sent")
    .on("infiniband.congestion", "{port}, sent")
    .help("Congestion notification packets that this port sent since the start, for packets that a switch had marked (RoCE). File hw_counters/np_cnp_sent, read every 10 s.");

/// Congestion that was reported to this port.
pub static CONGESTION_HANDLED: MetricDef = MetricDef::counter("infiniband.{port}.congestion_handled", Unit::Count)
    .title("InfiniBand congestion notices received")
    .on("infiniband.congestion", "{port}, received")
    .help("Congestion notification packets for which this port sent more slowly, since the start (RoCE). File hw_counters/rp_cnp_handled, read every 10 s.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[
    &RECEIVED,
    &SENT,
    &STATE,
    &RATE,
    &SYMBOL_ERRORS,
    &LINK_DOWNED,
    &LINK_RECOVERIES,
    &RECEIVE_ERRORS,
    &SEND_DISCARDS,
    &SEND_WAIT,
    &OUT_OF_SEQUENCE,
    &SEQUENCE_ERRORS,
    &ACK_TIMEOUTS,
    &CONGESTION_SENT,
    &CONGESTION_HANDLED,
];
