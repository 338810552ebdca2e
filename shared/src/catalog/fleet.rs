//! The rows of a fleet's overview: the values shown of each machine and of each GPU.
//!
//! A row reduces the values of one metric of a machine (for a counter, its rate) to one value. The value is rounded to
//! the precision of a cell, so that an overview is a few kilobytes a second.

use super::{Kind, MetricDef, cpu, disk, gpu, memory, network, tpu, trainium};
use crate::series::{Steps, quantize};
use crate::unit::Unit;
use serde::{Deserialize, Serialize};

/// The cells of an overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Grain {
    /// A cell a source.
    Sources,
    /// A cell a GPU.
    Gpus,
}

impl Grain {
    /// All of them.
    pub const ALL: [Grain; 2] = [Grain::Sources, Grain::Gpus];
}

/// Aggregation of the values of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Their mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// All together.
    Sum,
    /// Each has a cell of its own.
    Each,
    /// None: the row shows the state of the machine, by [`crate::connection_state::ConnectionState::code`].
    ConnectionState,
}

/// One row of an overview.
#[derive(Debug)]
pub struct FleetRow {
    /// Its ID in addresses and in the API.
    pub id: &'static str,
    /// Short name, sentence case.
    pub title: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Its aggregation.
    pub aggregate: Aggregate,
    /// The metrics that it can use: the first that the machine has.
    pub of: &'static [&'static MetricDef],
    /// Integer steps per unit: the precision of a cell.
    pub steps: Steps,
}

/// Steps of ten watts.
const TENS: Steps = 0.1;
/// Steps of 64 KiB: a cell shows a tenth of a megabyte.
const BLOCKS: Steps = 1.0 / 65_536.0;

static BUSY: &[&MetricDef] = &[&gpu::UTILIZATION, &tpu::TENSORCORE, &trainium::UTILIZATION];
static DEVICE_MEMORY: &[&MetricDef] = &[&gpu::MEMORY_ALLOCATED, &tpu::HBM_PERCENT];

const fn row(
    (id, title): (&'static str, &'static str),
    (unit, steps): (Unit, Steps),
    aggregate: Aggregate,
    of: &'static [&'static MetricDef],
) -> FleetRow {
    FleetRow { id, title, unit, aggregate, of, steps }
}

/// Busy, mean of all GPUs.
pub static GPU_BUSY: FleetRow = row(("gpu", "GPU busy"), (Unit::Percent, 1.0), Aggregate::Mean, BUSY);
/// Busy, the least busy GPU.
pub static GPU_BUSY_MIN: FleetRow = row(("gpu.min", "GPU busy, least"), (Unit::Percent, 1.0), Aggregate::Min, BUSY);
/// Memory of the fullest GPU.
pub static GPU_MEMORY: FleetRow =
    row(("gpu.memory", "GPU memory, fullest"), (Unit::Percent, 1.0), Aggregate::Max, DEVICE_MEMORY);
/// Temperature of the hottest GPU.
pub static GPU_TEMP: FleetRow =
    row(("gpu.temp", "GPU temperature, hottest"), (Unit::Celsius, 1.0), Aggregate::Max, &[&gpu::TEMP]);
/// Power of all GPUs.
pub static GPU_POWER: FleetRow =
    row(("gpu.power", "GPU power"), (Unit::Watts, TENS), Aggregate::Sum, &[&gpu::POWER_WATTS]);
/// CPU of the machine.
pub static CPU: FleetRow = row(("cpu", "CPU"), (Unit::Percent, 1.0), Aggregate::Max, &[&cpu::CPU_PERCENT]);
/// Memory of the machine.
pub static MEMORY: FleetRow = row(("memory", "Memory"), (Unit::Percent, 1.0), Aggregate::Max, &[&memory::PERCENT]);
/// Received, a second.
pub static NETWORK_IN: FleetRow =
    row(("network.in", "Network in"), (Unit::BytesPerSecond, BLOCKS), Aggregate::Sum, &[&network::RECEIVED]);
/// Sent, a second.
pub static NETWORK_OUT: FleetRow =
    row(("network.out", "Network out"), (Unit::BytesPerSecond, BLOCKS), Aggregate::Sum, &[&network::SENT]);
/// The fullest file system.
pub static DISK: FleetRow =
    row(("disk", "Disk, fullest"), (Unit::Percent, 1.0), Aggregate::Max, &[&disk::USAGE_PERCENT]);
/// State of the machine.
pub static STATE: FleetRow = row(("state", "State"), (Unit::Count, 1.0), Aggregate::ConnectionState, &[]);

/// Busy, GPU by GPU.
pub static EACH_BUSY: FleetRow = row(("gpu", "GPU busy"), (Unit::Percent, 1.0), Aggregate::Each, BUSY);
/// Memory in use, GPU by GPU.
pub static EACH_MEMORY: FleetRow =
    row(("gpu.memory", "GPU memory"), (Unit::Percent, 1.0), Aggregate::Each, DEVICE_MEMORY);
/// Temperature, GPU by GPU.
pub static EACH_TEMP: FleetRow =
    row(("gpu.temp", "GPU temperature"), (Unit::Celsius, 1.0), Aggregate::Each, &[&gpu::TEMP]);
/// Power, GPU by GPU.
pub static EACH_POWER: FleetRow =
    row(("gpu.power", "GPU power"), (Unit::Watts, TENS), Aggregate::Each, &[&gpu::POWER_WATTS]);

static SOURCE_ROWS: &[&FleetRow] = &[
    &GPU_BUSY,
    &GPU_BUSY_MIN,
    &GPU_MEMORY,
    &GPU_TEMP,
    &GPU_POWER,
    &CPU,
    &MEMORY,
    &NETWORK_IN,
    &NETWORK_OUT,
    &DISK,
    &STATE,
];
static GPU_ROWS: &[&FleetRow] = &[&EACH_BUSY, &EACH_MEMORY, &EACH_TEMP, &EACH_POWER];

/// The rows of an overview, in order: the series of row `r` in cell `c` is `c * rows + r`.
pub fn rows(grain: Grain) -> &'static [&'static FleetRow] {
    match grain {
        Grain::Sources => SOURCE_ROWS,
        Grain::Gpus => GPU_ROWS,
    }
}

/// The place of a row among those of an overview.
pub fn place(grain: Grain, row: &FleetRow) -> Option<usize> {
    rows(grain).iter().position(|known| known.id == row.id)
}

impl FleetRow {
    /// Whether its values are rates of counters.
    pub fn is_rate(&self) -> bool {
        self.of.first().is_some_and(|metric| metric.kind == Kind::Counter)
    }

    /// Reduces the values of a machine to one, as a cell shows it; None without values.
    pub fn fold(&self, values: impl IntoIterator<Item = f64>) -> Option<f64> {
        let (mut count, mut all) = (0.0, None);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            count += 1.0;
            all = Some(match (all, self.aggregate) {
                (None, _) => value,
                (Some(all), Aggregate::Min) => value.min(all),
                (Some(all), Aggregate::Mean | Aggregate::Sum) => value + all,
                (Some(all), _) => value.max(all),
            });
        }
        let all = if self.aggregate == Aggregate::Mean { all.map(|all| all / count) } else { all };
        all.map(|value: f64| quantize(value, self.steps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_row_has_an_id_of_its_own_and_the_unit_of_what_it_is_made_of() {
        for grain in Grain::ALL {
            let ids: HashSet<&str> = rows(grain).iter().map(|row| row.id).collect();
            assert_eq!(ids.len(), rows(grain).len());
            for (at, row) in rows(grain).iter().enumerate() {
                assert_eq!(place(grain, row), Some(at));
                assert_eq!(row.of.is_empty(), row.aggregate == Aggregate::ConnectionState);
                assert_eq!(row.aggregate == Aggregate::Each, grain == Grain::Gpus);
                for metric in row.of {
                    assert_eq!(metric.kind == Kind::Counter, row.is_rate(), "{}", metric.tag);
                    assert!(row.is_rate() || metric.unit == row.unit, "{}", metric.tag);
                }
            }
        }
    }

    #[test]
    fn values_become_one_that_a_cell_can_show() {
        let values = [97.0, 34.6, f64::NAN];
        assert_eq!(GPU_BUSY.fold(values), Some(66.0));
        assert_eq!(GPU_BUSY_MIN.fold(values), Some(35.0));
        assert_eq!(GPU_MEMORY.fold(values), Some(97.0));
        assert_eq!(GPU_POWER.fold([311.0, 312.4]), Some(620.0));
        assert_eq!(NETWORK_IN.fold([1_000_000.0]), Some(983_040.0));
        assert_eq!(GPU_BUSY.fold([f64::NAN]), None);
    }
}
