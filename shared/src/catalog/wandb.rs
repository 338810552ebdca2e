//! Rates that W&B's terminal view derives from totals. No collector of ours sends them, since every counter is drawn as a
//! rate; the rows are here so that what W&B recorded or showed can be read.

use super::{Draw, MetricDef};
use crate::unit::Unit;

/// Rate of reading.
pub static READ_RATE: MetricDef = MetricDef::gauge("disk.{dev}.readBps", Unit::BytesPerSecond)
    .title("Read by device, rate")
    .on("disk.read", "{dev} by W&B")
    .draw(Draw::Hidden)
    .help("Increase of disk.{dev}.in per second. W&B's terminal view derives it; the chart draws the rate of disk.{dev}.in.");

/// Rate of writing.
pub static WRITE_RATE: MetricDef = MetricDef::gauge("disk.{dev}.writeBps", Unit::BytesPerSecond)
    .title("Written by device, rate")
    .on("disk.write", "{dev} by W&B")
    .draw(Draw::Hidden)
    .help("Increase of disk.{dev}.out per second. W&B's terminal view derives it; the chart draws the rate of disk.{dev}.out.");

/// Rate of receiving.
pub static RECEIVE_RATE: MetricDef = MetricDef::gauge("network.recvBps", Unit::BytesPerSecond)
    .title("Received, rate")
    .on("network", "in by W&B")
    .draw(Draw::Hidden)
    .help("Increase of network.recv per second. W&B's terminal view derives it; the chart draws the rate of network.recv.");

/// Rate of sending.
pub static SEND_RATE: MetricDef = MetricDef::gauge("network.sentBps", Unit::BytesPerSecond)
    .title("Sent, rate")
    .on("network", "out by W&B")
    .draw(Draw::Hidden)
    .help("Increase of network.sent per second. W&B's terminal view derives it; the chart draws the rate of network.sent.");

/// All of them.
pub static ROWS: &[&MetricDef] = &[&READ_RATE, &WRITE_RATE, &RECEIVE_RATE, &SEND_RATE];
