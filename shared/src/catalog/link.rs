//! Measurements of a hub about its links to machines.

use super::{MetricDef, Range};
use crate::unit::Unit;

/// Lead of a machine's clock over the hub's.
pub static CLOCK_SKEW: MetricDef = MetricDef::gauge("system.clock_skew", Unit::Seconds)
    .title("Clock ahead of the hub")
    .on("clock", "ahead")
    .range(Range::Fit)
    .steps(1000.0)
    .help("How far the machine's clock is ahead of the hub's, as the hub measures it once a minute by NTP's formula; negative: behind. From 2 s on the machine's samples are moved by it.");

/// The only row.
pub static ROWS: &[&MetricDef] = &[&CLOCK_SKEW];
