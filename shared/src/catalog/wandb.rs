//! What only W&B's own programs produce. No collector of ours reads it; the rows are here so that runs recorded by W&B
//! can be read.

use super::{Draw, MetricDef};
use crate::unit::Unit;

/// CPU of W&B's monitor.
pub static CPU: MetricDef = MetricDef::gauge("wandb.cpu", Unit::Percent)
    .title("W&B's own CPU")
    .on("monitor.cpu", "W&B")
    .draw(Draw::Hidden)
    .help("CPU time of wandb-core and its direct children since the previous sample, divided by the CPU capacity. Sent by W&B 0.31 when asked to; our own cost is monitor.cpu.");

/// Memory of W&B's monitor.
pub static RSS: MetricDef = MetricDef::gauge("wandb.memory.rssMB", Unit::Mebibytes)
    .title("W&B's own memory")
    .on("monitor.memory", "W&B")
    .draw(Draw::Hidden)
    .steps(256.0)
    .help("Resident set of wandb-core and its direct children. Sent by W&B 0.31 when asked to; our own cost is monitor.rssMB.");

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
pub static ROWS: &[&MetricDef] = &[&CPU, &RSS, &READ_RATE, &WRITE_RATE, &RECEIVE_RATE, &SEND_RATE];
