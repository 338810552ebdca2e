//! What is read from a picture: values at an instant, labels, rows, numbers in words.

use super::{Picture, is, states};
use charts::axis::Axis;
use charts::band::quantile;
use charts::over::Label;
use charts::reduce::Column;
use charts::{Chart, Hue};
use shared::series::SeriesId;
use std::collections::BTreeMap;

impl Picture {
    /// The instant of data nearest to `t`.
    pub fn snap(&self, t: i64) -> Option<i64> {
        let near = self.ids.iter().filter_map(|i| self.traces.get(i)?.at(t).map(|c| c.t));
        near.min_by_key(|at| (at - t).abs())
    }

    /// The instants within a span at which a series has a value, oldest first.
    pub fn instants(&self, from: i64, to: i64) -> Vec<i64> {
        let columns = self.ids.iter().filter_map(|i| self.traces.get(i)).flat_map(|t| t.within(from, to));
        // Of one column, series that lack a sample have a middle of their own.
        let mut slots = BTreeMap::default();
        slots.extend(columns.map(|c| (c.slot, c.t)));
        slots.values().copied().collect()
    }

    /// Value of each series at an instant (the mean where a column holds many samples), else the newest in the window. A
    /// series that ended while others went on has none.
    pub fn values(&self, at: Option<i64>, to: i64) -> Vec<f64> {
        let newest = self.ids.iter().filter_map(|id| self.newest_column(*id, to)).map(|c| c.last_t).max().unwrap_or(to);
        let ended = newest - self.cadence * 2 - self.cadence / 4;
        let value = |id: &SeriesId| {
            let trace = self.traces.get(id)?;
            match at {
                Some(t) => trace.at(t).map(Column::mean),
                None => self.newest_column(*id, to).filter(|c| c.last_t >= ended).map(|c| c.last),
            }
        };
        self.ids.iter().map(|id| value(id).unwrap_or(f64::NAN)).collect()
    }

    fn newest_column(&self, id: SeriesId, to: i64) -> Option<&Column> {
        self.traces.get(&id)?.newest(self.from, to)
    }

    /// The labels at the right edge.
    pub fn labels(&self, at: Option<i64>, to: i64, focus: Option<usize>) -> Vec<Label> {
        let Some(axis) = &self.axis else { return Vec::new() };
        let values = self.values(at, to);
        if self.chart == Some(Chart::Lanes) {
            return Vec::new();
        }
        let label = |name: &str, value: f64, hue, bright| Label {
            name: name.to_string(),
            value,
            text: if value.is_finite() { axis.number(value) } else { "–".into() },
            hue,
            bright,
        };
        let all = self.drawn().into_iter().map(|(i, hue)| {
            let name = &self.names[i];
            let stands = is(&self.muted, i) || is(&self.dim, i);
            let name = if self.full_names { &name.full } else { &name.short };
            label(name, values[i], hue, focus.is_none_or(|f| f == i) && !stands)
        });
        let mut labels: Vec<Label> = all.collect();
        if matches!(self.chart, Some(Chart::Band | Chart::Heat)) {
            let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            labels.push(label("median", quantile(&sorted, 0.5), Hue::Ink, true));
        }
        labels
    }

    /// Time from one column to the next, ms.
    pub fn width(&self) -> i64 {
        self.step.max(self.interval)
    }

    /// The series in a row of a heat map; none in other charts.
    pub fn in_row(&self, row: usize) -> Option<usize> {
        self.order.get(row).copied().filter(|_| self.chart == Some(Chart::Heat))
    }

    /// Its vertical axis; none before the first [`update`](Self::update).
    pub fn axis(&self) -> Option<&Axis> {
        self.axis.as_ref()
    }

    /// A number as this chart writes it; a state in its word.
    pub fn number(&self, v: f64) -> String {
        if self.chart == Some(Chart::Lanes) {
            return states::word(self.lane_ids.first().map(|(lane, _)| lane), v);
        }
        self.axis.as_ref().map_or_else(String::new, |a| a.number(v))
    }

    /// Newest column end of any series, ms.
    pub fn last(&self, to: i64) -> i64 {
        self.ids.iter().filter_map(|id| self.newest_column(*id, to)).map(|c| c.t).max().unwrap_or(to)
    }
}
