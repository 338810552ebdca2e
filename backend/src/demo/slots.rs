//! The readings of one machine by slot, and their series in the store.

use super::machine::Machine;
use collectors::Out;
use shared::catalog::{Chart, Metric, MetricDef, job};
use shared::series::{SeriesDef, SeriesId};
use shared::wire::SourceId;
use std::time::Duration;
use stream::store::Store;

/// The last readings, and the series of each slot. Live ticks and the past have one each: their slots may have
/// different orders, but their series are the same.
#[derive(Default)]
pub(super) struct MachineSlots {
    out: Out,
    series: Vec<Option<(SeriesId, &'static MetricDef)>>,
}

impl MachineSlots {
    pub fn len(&self) -> usize {
        self.out.values().len()
    }

    /// Reads a machine at an instant.
    pub fn read(&mut self, machine: &Machine, t: i64) {
        self.out.begin(Duration::ZERO);
        machine.read(t, &mut self.out);
    }

    /// Values by slot; NaN is absent.
    pub fn values(&self) -> &[f64] {
        self.out.values()
    }

    /// Interns the series of new slots.
    pub fn number(&mut self, store: &mut Store, source: SourceId) {
        for (slot, row, instance) in self.out.news() {
            self.series.resize(self.series.len().max(slot + 1), None);
            let metric = store.catalog().position(row.tag).or_else(|| {
                // Values of jobs bring their rows along.
                let chart = Chart { id: row.chart.into(), title: row.title.into(), section: job::SECTION.into() };
                store.add_row_of(Some(source), Metric::from(row), chart)
            });
            let id = metric.and_then(|metric| store.intern(source, SeriesDef { metric, instance }));
            self.series[slot] = id.map(|id| (id, row));
        }
    }

    /// Slot, series and row of each that has one.
    pub fn numbered(&self) -> impl Iterator<Item = (usize, SeriesId, &'static MetricDef)> {
        self.series.iter().enumerate().filter_map(|(slot, one)| one.map(|(id, row)| (slot, id, row)))
    }
}
