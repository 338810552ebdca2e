//! Network of the host.

use super::MetricDef;
use crate::unit::Unit;

/// Received, all links.
pub static RECEIVED: MetricDef = MetricDef::counter("network.recv", Unit::Bytes)
    .title("Received")
    .on("network", "in")
    .help("Received since the start by the network cards of the machine; what bonds, VLANs, bridges and tunnels pass on is in it once. In a container, by the links that lead out of it. Read from /proc/net/dev.");

/// Sent, all links.
pub static SENT: MetricDef = MetricDef::counter("network.sent", Unit::Bytes)
    .title("Sent")
    .on("network", "out")
    .help("Sent since the start by the network cards of the machine; what bonds, VLANs, bridges and tunnels pass on is in it once. In a container, by the links that lead out of it. Read from /proc/net/dev.");

/// Received, link by link.
pub static DEVICE_RECEIVED: MetricDef = MetricDef::counter("network.{dev}.recv", Unit::Bytes)
    .title("Received by link")
    .on("network.in", "{dev}")
    .help("Received on this link since the start. Read from /proc/net/dev.");

/// Sent, link by link.
pub static DEVICE_SENT: MetricDef = MetricDef::counter("network.{dev}.sent", Unit::Bytes)
    .title("Sent by link")
    .on("network.out", "{dev}")
    .help("Sent on this link since the start. Read from /proc/net/dev.");

/// Segments that had to be sent again.
pub static RETRANSMITS: MetricDef = MetricDef::counter("network.tcpRetransmits", Unit::Count)
    .title("TCP retransmits")
    .on("network.retransmits", "segments")
    .help("TCP segments sent again since the start. RetransSegs of the Tcp row of /proc/net/snmp.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&RECEIVED, &SENT, &DEVICE_RECEIVED, &DEVICE_SENT, &RETRANSMITS];
