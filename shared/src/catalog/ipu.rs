//! Graphcore IPUs. W&B's tags are the keys of Graphcore's library with the unit that was removed from the value, so
//! they hold spaces, brackets and `%`.

use super::{Draw, MetricDef};
use crate::unit::Unit;

const LINE: &str = "IPU {i}";
const THOUSANDTHS: f64 = 1000.0;

/// Utilization.
pub static UTILIZATION: MetricDef = MetricDef::gauge("ipu.{i}.ipu utilisation (%)", Unit::Percent)
    .title("IPU utilization")
    .on("ipu", LINE)
    .help("Share of time in which the IPU ran a program. Graphcore's device information, key ipu utilisation.");

/// Utilization, session.
pub static SESSION_UTILIZATION: MetricDef = MetricDef::gauge("ipu.{i}.ipu utilisation (session) (%)", Unit::Percent)
    .title("IPU utilization, session")
    .on("ipu.session", LINE)
    .help("Share of time in which the IPU ran a program, since the process that uses it attached to it. Graphcore's device information, key ipu utilisation (session).");

/// Power.
pub static POWER: MetricDef = MetricDef::gauge("ipu.{i}.ipu power (W)", Unit::Watts)
    .title("IPU power")
    .on("ipu.power", LINE)
    .steps(THOUSANDTHS)
    .help("Power of the IPU. Graphcore's device information, key ipu power.");

/// Power of the board.
pub static BOARD_POWER: MetricDef = MetricDef::gauge("ipu.{i}.total board power (W)", Unit::Watts)
    .title("IPU board power")
    .on("ipu.power", "IPU {i}, board")
    .steps(THOUSANDTHS)
    .help("Power of the whole board that the IPU is on, which other IPUs may share; cards that do not measure an IPU alone give this. Graphcore's device information, key total board power.");

/// Clock.
pub static CLOCK: MetricDef = MetricDef::gauge("ipu.{i}.clock (MHz)", Unit::Megahertz)
    .title("IPU clock")
    .on("ipu.clock", LINE)
    .steps(THOUSANDTHS)
    .help("Clock of the IPU at this instant. Graphcore's device information, key clock.");

/// Temperature of the board.
pub static BOARD_TEMP: MetricDef = MetricDef::gauge("ipu.{i}.average board temp (C)", Unit::Celsius)
    .title("IPU board temperature")
    .on("ipu.temp.board", LINE)
    .steps(THOUSANDTHS)
    .help("Mean of the sensors on the IPU's board. Graphcore's device information, key average board temp.");

/// Temperature of the die.
pub static DIE_TEMP: MetricDef = MetricDef::gauge("ipu.{i}.average die temp (C)", Unit::Celsius)
    .title("IPU die temperature")
    .on("ipu.temp.die", LINE)
    .steps(THOUSANDTHS)
    .help("Mean of the sensors on the IPU's die. Graphcore's device information, key average die temp.");

/// Speed of any link.
pub static LINK_SPEED: MetricDef = MetricDef::gauge("ipu.{key}speed (GT/s)", Unit::GigatransfersPerSecond)
    .title("IPU link speed")
    .on("ipu.link", "{key}speed")
    .help("Speed of a link of the IPU, the device's number before the key. Graphcore's device information, any key that ends in speed.");

const fn identifier(tag: &'static str, help: &'static str) -> MetricDef {
    MetricDef::gauge(tag, Unit::Count).on("ipu.other", "{key}").draw(Draw::Hidden).steps(0.0).help(help)
}

/// ID of the device or process.
pub static ID: MetricDef = identifier(
    "ipu.{key}id",
    "A number that names and does not measure, so no chart draws it: of the device, of the process that uses it, of its file. Graphcore's device information, any key that ends in id.",
)
.title("IPU, identifiers");

/// Index among several.
pub static INDEX: MetricDef = identifier(
    "ipu.{key}index",
    "Position of the IPU on its board; no chart draws it. Graphcore's device information, any key that ends in index.",
)
.title("IPU, indices");

/// NUMA node.
pub static NODE: MetricDef = identifier(
    "ipu.{key}node",
    "NUMA node next to the IPU; no chart draws it. Graphcore's device information, any key that ends in node.",
)
.title("IPU, NUMA node");

/// Slot.
pub static SLOT: MetricDef = identifier(
    "ipu.{key}slot",
    "Slot that the IPU's board is in; no chart draws it. Graphcore's device information, any key that ends in slot.",
)
.title("IPU, slot");

/// Every other number.
pub static OTHER: MetricDef = MetricDef::gauge("ipu.{key}", Unit::Count)
    .title("IPU, other figures")
    .on("ipu.other", "{key}")
    .steps(0.0)
    .help("Any other number that Graphcore's device information holds, the device's number before the key. Its unit is the one that the key names, if any.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[
    &UTILIZATION,
    &SESSION_UTILIZATION,
    &POWER,
    &BOARD_POWER,
    &CLOCK,
    &BOARD_TEMP,
    &DIE_TEMP,
    &LINK_SPEED,
    &ID,
    &INDEX,
    &NODE,
    &SLOT,
    &OTHER,
];
