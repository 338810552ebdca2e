//! Metrics of W&B that we do not record. These are rates that its terminal view derives from totals, and values in
//! units that only some of its versions used. No collector of ours sends the rates, because every counter is drawn as a
//! rate.

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

/// The part of a GPU's tag after its number, without a label and W&B's prefix.
fn of_gpu(spelling: &str) -> Option<&str> {
    let spelling = spelling.strip_prefix("system.").unwrap_or(spelling);
    let tag = spelling.split("/l:").next()?;
    tag.strip_prefix("gpu.")?.split_once('.').map(|(_, name)| name)
}

/// Whether W&B uses this spelling only with DCGM's exporter.
pub fn of_exporter(spelling: &str) -> bool {
    of_gpu(spelling) == Some("totalEnergyConsumption")
}

/// Factor and divisor that convert values recorded by W&B under a spelling to the unit of the row. `version` is W&B's,
/// if known. `largest` is the largest value of the series, which distinguishes units that share a name. `exporter`: the
/// machine's values came through DCGM's exporter.
pub fn factor(spelling: &str, version: Option<(u32, u32)>, largest: f64, exporter: bool) -> (f64, f64) {
    /// 16 TiB in MiB, or 16 MiB in bytes: no GPU has as much memory as the first, and no working GPU uses less than the
    /// second.
    const MOST_MIB: f64 = 16_777_216.0;
    /// Rate of the fastest link in MiB/s; the same number in bytes per second is negligible.
    const MAX_LINK_RATE: f64 = 4e6;
    let mib = crate::unit::Unit::Mebibytes.to_base();
    match of_gpu(spelling) {
        Some("memoryUsed" | "memoryFree" | "memoryTotal") if largest < MOST_MIB => (mib, 1.0),
        Some("totalEnergyConsumption") => (1.0, 1000.0),
        Some("pcieLinkSpeed") if largest > 1e6 => (1.0, 1e9),
        Some("pcieTxBytes" | "pcieRxBytes" | "nvlinkTxBytes" | "nvlinkRxBytes")
            if version.is_some_and(|v| ((0, 26)..(0, 31)).contains(&v)) && largest < MAX_LINK_RATE =>
        {
            (mib, 1.0)
        }
        Some("smActive" | "smOccupancy") if exporter && largest <= 1.0 => (100.0, 1.0),
        Some(name) if exporter && largest <= 1.0 && name.starts_with("pipe") => (100.0, 1.0),
        _ => (1.0, 1.0),
    }
}

/// Divisor of a value of this row for W&B's readers, which expect W&B's unit.
pub fn sent_over(row: &super::Metric) -> f64 {
    match of_gpu(&row.tag) {
        Some("memoryUsed" | "memoryFree") => crate::unit::Unit::Mebibytes.to_base(),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_w_and_b_sent_in_another_unit_is_told_by_version_and_size() {
        let mib = 1024.0 * 1024.0;
        for (spelling, version, largest, exporter, expected) in [
            ("gpu.0.memoryUsed/l:node", None, 81_000.0, true, (mib, 1.0)),
            ("gpu.0.memoryUsed", None, 8e9, false, (1.0, 1.0)),
            ("system.gpu.0.totalEnergyConsumption", None, 5e9, true, (1.0, 1000.0)),
            ("gpu.1.pcieLinkSpeed", None, 32e9, false, (1.0, 1e9)),
            ("gpu.1.pcieLinkSpeed", None, 32.0, false, (1.0, 1.0)),
            ("gpu.0.pcieTxBytes", Some((0, 28)), 25_000.0, false, (mib, 1.0)),
            ("gpu.0.pcieTxBytes", Some((0, 28)), 25e9, false, (1.0, 1.0)),
            ("gpu.0.pcieTxBytes", Some((0, 31)), 25_000.0, false, (1.0, 1.0)),
            ("gpu.0.pcieTxBytes", None, 25_000.0, false, (1.0, 1.0)),
            ("gpu.0.smActive", None, 0.7, true, (100.0, 1.0)),
            ("gpu.0.smActive", None, 0.7, false, (1.0, 1.0)),
            ("gpu.0.temp", None, 0.7, true, (1.0, 1.0)),
        ] {
            assert_eq!(factor(spelling, version, largest, exporter), expected, "{spelling} {version:?} {largest}");
        }
        assert!(of_exporter("gpu.7.totalEnergyConsumption/l:a") && !of_exporter("gpu.7.energyJoules"));
    }
}
