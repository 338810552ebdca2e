//! Reading from a picture: values at an instant, labels, rows, numbers as text.

use super::{Picture, is, states};
use charts::axis::Axis;
use charts::band::quantile;
use charts::labels::Label;
use charts::reduce::Column;
use charts::{Hue, Shows};
use shared::series::SeriesId;
use std::collections::BTreeMap;

impl Picture {
    /// The instant with data that is nearest to `t`, ms since the epoch; None when no series has data near it.
    pub fn snap(&self, t: i64) -> Option<i64> {
        let near = self.ids.iter().filter_map(|i| self.traces.get(i)?.at(t).map(|c| c.t));
        near.min_by_key(|at| (at - t).abs())
    }

    /// The instants in a span at which a series has a value, oldest first, ms since the epoch.
    pub fn instants(&self, from: i64, to: i64) -> Vec<i64> {
        let columns = self.ids.iter().filter_map(|i| self.traces.get(i)).flat_map(|t| t.within(from, to));
        // In one column, series that lack a sample may have another middle. One instant is kept for each column.
        let mut slots = BTreeMap::default();
        slots.extend(columns.map(|c| (c.slot, c.t)));
        slots.values().copied().collect()
    }

    /// The value of each series at an instant, or for None the newest in the window. In a column with many samples this
    /// is the mean. NaN means no value, or a series that ended while others continued.
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

    /// The labels at the right edge; `focus` is the position of the highlighted series.
    pub fn labels(&self, at: Option<i64>, to: i64, focus: Option<usize>) -> Vec<Label> {
        let Some(axis) = &self.axis else { return Vec::new() };
        let values = self.values(at, to);
        if self.shows() == Some(Shows::States) {
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
            // A heat map itself marks rows far below the others.
            let is_row = self.shows() == Some(Shows::Rows) && !self.named.contains(&i);
            let hue = if is_row { self.names[i].hue } else { hue };
            label(name, values[i], hue, focus.is_none_or(|f| f == i) && !stands)
        });
        let mut labels: Vec<Label> = all.collect();
        if self.shows().is_some_and(Shows::median) {
            let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            labels.push(label("median", quantile(&sorted, 0.5), Hue::Ink, true));
        }
        labels
    }

    /// The series that are not hidden.
    pub fn shown(&self) -> Vec<SeriesId> {
        self.ids.iter().enumerate().filter(|(i, _)| !is(&self.muted, *i)).map(|(_, id)| *id).collect()
    }

    /// Time from one column to the next in ms.
    pub fn width(&self) -> i64 {
        self.step.max(self.interval)
    }

    /// Position of the series in a row of a heat map; None in other charts.
    pub fn in_row(&self, row: usize) -> Option<usize> {
        self.order.get(row).copied().filter(|_| self.shows() == Some(Shows::Rows))
    }

    /// The vertical axis; None before the first [`update`](Self::update).
    pub fn axis(&self) -> Option<&Axis> {
        self.axis.as_ref()
    }

    /// Writes a number as this chart does; a state is written as its word.
    pub fn number(&self, v: f64) -> String {
        if self.shows() == Some(Shows::States) {
            return states::state_word(self.lane_ids.first().map(|(lane, _)| lane), v);
        }
        self.axis.as_ref().map_or_else(String::new, |a| a.number(v))
    }

    /// Time of the newest column of any series, ms since the epoch; `to` when there is none.
    pub fn last(&self, to: i64) -> i64 {
        self.ids.iter().filter_map(|id| self.newest_column(*id, to)).map(|c| c.t).max().unwrap_or(to)
    }
}
