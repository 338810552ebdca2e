//! From the store to the frame of one panel: traces brought up to date, axis, gaps, limits, labels, words.

use super::names::{Name, names};
use crate::store::presence::Presence;
use crate::store::source::{Members, Source};
use crate::store::trace::{self, Trace};
use crate::store::{Store, reading};
use charts::axis::{self, Axis};
use charts::band::quantile;
use charts::over::Label;
use charts::reduce::Column;
use charts::{Band, Chart, Frame, Gap, Hue, Limit, Line, Measures, Theme};
use shared::catalog::Range;
use shared::series::SeriesId;
use shared::unit::Unit;
use std::collections::BTreeMap;

/// How a panel stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The newest sample is at most two intervals old.
    Live,
    /// No sample in the window.
    #[default]
    Empty,
    /// The newest sample is older.
    Stale,
}

impl State {
    /// Its name in `data-state`.
    pub fn name(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Empty => "empty",
            State::Stale => "stale",
        }
    }
}

/// How the page looks at the moment; the same for all panels.
#[derive(Clone, Debug)]
pub struct Look {
    /// Colours.
    pub theme: &'static Theme,
    /// Lengths.
    pub measures: Measures,
    /// Units in a CSS pixel.
    pub css: f64,
    /// Units in a device pixel.
    pub device: f64,
    /// Span shown, ms.
    pub span: (i64, i64),
    /// Local time minus UTC, ms.
    pub offset: i64,
    /// The server's clock, ms.
    pub now: i64,
    /// Whether the right edge is now and ticks come.
    pub live: bool,
    /// Whether the span stands still.
    pub frozen: bool,
}

/// What a drawing looks like from afar: as long as it is the same, drawing again would change no pixel worth it. Time
/// counts in quarters of a pixel, so that a window of 12 h is drawn a few times a minute and one of 5 min each second.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    edges: (i64, i64),
    size: (i32, i32),
    axis: Option<(f64, f64)>,
    sums: [String; 3],
    gaps: (usize, i64),
    limits: usize,
    step: i64,
    epoch: u32,
    dark: bool,
    focus: Option<usize>,
    kept: (Vec<bool>, Vec<bool>),
    looks: (State, bool, usize),
}

/// What is kept of a panel between two frames.
#[derive(Default)]
pub struct Picture {
    /// Names and colours.
    pub names: Vec<Name>,
    /// How the panel stands.
    pub state: State,
    /// Distinct instants in the window.
    pub samples: usize,
    /// Smallest, mean and largest value in the window, in words; empty when there are none.
    pub sums: [String; 3],
    /// Unit and what else is to be known of the axis.
    pub note: String,
    /// Time of the newest sample, ms.
    pub newest: i64,
    /// Unit of the numbers.
    pub unit: &'static str,
    /// Width of a column, ms; 1 when each sample is shown.
    pub step: i64,
    /// By position: series that a person put out of sight; only their names stay. Empty: none.
    pub muted: Vec<bool>,
    /// By position: series that stand back because another has the attention. Empty: none.
    pub dim: Vec<bool>,
    full_names: bool,
    chart: Option<Chart>,
    axis: Option<Axis>,
    interval: i64,
    /// Time between the samples of the series that has the fewest, ms.
    cadence: i64,
    ids: Vec<SeriesId>,
    limits: Vec<Limit>,
    gaps: Vec<Gap>,
    traces: BTreeMap<SeriesId, Trace>,
    band: Vec<(i64, Band)>,
    presence: Presence,
}

impl Picture {
    /// What describes the data, whether or not the panel is in view.
    pub fn measure(&mut self, source: Option<&Source>, id: &str, look: &Look) {
        let none = Members::default();
        let lines = &source.and_then(|s| s.charts.get(id)).unwrap_or(&none).lines;
        let Some(source) = source else { return };
        self.samples = self.presence.count(source, lines, look.span.0, look.span.1);
        self.newest = lines.iter().filter_map(|i| source.newest.get(*i as usize)).copied().max().unwrap_or(0);
        let cadence = lines.iter().map(|i| source.cadence(*i)).max().unwrap_or(source.info.interval);
        self.cadence = cadence;
        self.state = match self.samples {
            0 => State::Empty,
            // A quarter of an interval is what a tick may take to close and travel.
            _ if look.now - self.newest <= cadence * 2 + cadence / 4 => State::Live,
            _ => State::Stale,
        };
    }

    /// Brings everything up to date for drawing on a canvas of `width` units.
    pub fn update(&mut self, store: &Store, source: Option<&Source>, id: &str, wide: bool, look: &Look, width: i32) {
        let (from, to) = look.span;
        let catalog = &store.catalog;
        let none = Members::default();
        let members = source.and_then(|s| s.charts.get(id)).unwrap_or(&none);
        let metric = members.lines.first().and_then(|i| source?.defs.get(*i as usize)).and_then(|d| catalog.metric(d));
        let unit = metric.map_or(Unit::Count, trace::unit);
        let chart = Chart::for_series(members.lines.len());
        if self.ids != members.lines {
            self.ids = members.lines.clone();
            self.names = source.map(|s| names(catalog, &s.defs, &self.ids)).unwrap_or_default();
            self.traces.retain(|i, _| members.lines.contains(i));
            self.band.clear();
        }
        // A wide chart names its series in full, where there is room.
        self.full_names = wide && look.measures.right >= 70.0;
        self.interval = source.map_or(1000, |s| s.info.interval);
        self.step = step(look, width, self.interval, chart);
        if let Some(source) = source {
            for id in &self.ids {
                let fits = self.traces.get(id).is_some_and(|t| t.fits(self.step, from, source));
                if !fits {
                    self.traces.insert(*id, Trace::new(*id, self.step, from, source, catalog));
                    self.band.clear();
                }
                if let Some(trace) = self.traces.get_mut(id) {
                    trace.feed(source, from);
                }
            }
            self.limits = limits(source, store, members, to);
        }
        if chart == Chart::Band {
            self.spread(from);
        }
        self.chart = Some(chart);
        let range = metric.map_or(Range::FromZero, |m| m.range);
        let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut sum, mut count) = (0.0, 0u64);
        let seen = self.ids.iter().enumerate().filter(|(i, _)| !is(&self.muted, *i));
        for c in seen.filter_map(|(_, id)| self.traces.get(id)).flat_map(|t| t.within(from, to)) {
            (lo, hi) = (lo.min(c.min), hi.max(c.max));
            (sum, count) = (sum + c.sum, count + u64::from(c.count));
        }
        let top = self.limits.iter().map(|l| l.value).fold(hi, f64::max);
        let axis = axis::values(unit, range, lo, if count > 0 { top } else { f64::NAN });
        self.unit = axis.scale.symbol;
        let word = |v: f64| axis.number(v);
        self.sums = if count > 0 { [word(lo), word(sum / count as f64), word(hi)] } else { Default::default() };
        let cut = if axis.cut { format!("axis from {}", axis.number(axis.lo)) } else { String::new() };
        let many = if chart == Chart::Band {
            format!("{}: median, middle 80 %, extremes", self.ids.len())
        } else {
            String::new()
        };
        self.note = [self.unit, &cut, &many].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", ");
        self.axis = Some(axis);
        self.find_gaps(look, wide);
        for limit in &mut self.limits {
            if let Some(axis) = &self.axis {
                limit.text = format!("{} {} {}", limit.text, axis.number(limit.value), axis.scale.symbol);
            }
        }
    }

    /// What a drawing on a canvas of that size would look like.
    pub fn sight(&self, look: &Look, size: (i32, i32), focus: Option<usize>, epoch: u32) -> Sight {
        let (from, to) = look.span;
        let pixels =
            f64::from(size.0) / look.device - look.css / look.device * (look.measures.left + look.measures.right);
        let quarter = ((to - from) / (pixels.max(1.0) as i64) / 4).max(1);
        Sight {
            edges: (to.div_euclid(quarter), to - from),
            size,
            axis: self.axis.as_ref().map(|a| (a.lo, a.hi)),
            sums: self.sums.clone(),
            gaps: (self.gaps.len(), self.gaps.last().map_or(0, |g| g.from)),
            limits: self.limits.len(),
            step: self.step,
            epoch,
            dark: look.theme == &charts::theme::DARK,
            focus,
            kept: (self.muted.clone(), self.dim.clone()),
            looks: (self.state, look.live, self.ids.len()),
        }
    }

    /// Calls `draw` with the frame; nothing before the first [`update`](Self::update).
    pub fn with_frame<T>(
        &self,
        look: &Look,
        size: (i32, i32),
        focus: Option<usize>,
        draw: impl FnOnce(&Frame) -> T,
    ) -> Option<T> {
        let (chart, axis) = (self.chart?, self.axis.as_ref()?);
        let lines: Vec<Line> = self
            .ids
            .iter()
            .zip(&self.names)
            .enumerate()
            .filter(|(i, _)| !is(&self.muted, *i))
            .filter_map(|(i, (id, name))| {
                let bright = focus.is_none_or(|f| f == i) && !is(&self.dim, i);
                Some(Line { columns: self.traces.get(id)?.columns(), hue: name.hue, bright })
            })
            .collect();
        let band: Vec<Band> = self.band.iter().map(|(_, b)| *b).collect();
        Some(draw(&Frame {
            chart,
            size,
            css: look.css,
            device: look.device,
            theme: look.theme,
            measures: look.measures,
            from: look.span.0,
            to: look.span.1,
            offset: look.offset,
            axis,
            step: self.step,
            interval: self.interval,
            lines: if chart == Chart::Band { &[] } else { &lines },
            band: &band,
            limits: &self.limits,
            gaps: &self.gaps,
            live: look.live,
        }))
    }

    /// The instant of data nearest to `t`.
    pub fn snap(&self, t: i64) -> Option<i64> {
        let near = self.ids.iter().filter_map(|i| self.traces.get(i)?.at(t).map(|c| c.t));
        near.min_by_key(|at| (at - t).abs())
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
        let columns = self.traces.get(&id)?.columns();
        columns[..columns.partition_point(|c| c.first_t <= to)].last()
    }

    /// The labels at the right edge.
    pub fn labels(&self, at: Option<i64>, to: i64, focus: Option<usize>) -> Vec<Label> {
        let Some(axis) = &self.axis else { return Vec::new() };
        let values = self.values(at, to);
        let label = |name: &str, value: f64, hue, strength, bright| Label {
            name: name.to_string(),
            value,
            text: axis.number(value),
            hue,
            strength,
            bright,
        };
        if self.chart != Some(Chart::Band) {
            let all = self.names.iter().zip(values).enumerate();
            return all
                .map(|(i, (n, v))| {
                    let name = if self.full_names { &n.full } else { &n.short };
                    let stands = is(&self.muted, i) || is(&self.dim, i);
                    label(name, v, n.hue, 1.0, focus.is_none_or(|f| f == i) && !stands)
                })
                .collect();
        }
        let mut sorted: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        [("max", 1.0, 0.35), ("median", 0.5, 1.0), ("min", 0.0, 0.35)]
            .into_iter()
            .map(|(name, share, strength)| label(name, quantile(&sorted, share), Hue::Ink, strength, true))
            .collect()
    }

    /// Its vertical axis; none before the first [`update`](Self::update).
    pub fn axis(&self) -> Option<&Axis> {
        self.axis.as_ref()
    }

    /// A number as this chart writes it.
    pub fn number(&self, v: f64) -> String {
        self.axis.as_ref().map_or_else(String::new, |a| a.number(v))
    }

    /// Newest column end of any series, ms.
    pub fn last(&self, to: i64) -> i64 {
        let ends = self.ids.iter().filter_map(|i| self.traces.get(i));
        ends.filter_map(|t| t.columns().iter().rev().find(|c| c.first_t <= to)).map(|c| c.t).max().unwrap_or(to)
    }

    /// The rows of the band from the last finished one on.
    fn spread(&mut self, from: i64) {
        // The last two columns of the time before may have grown.
        self.band.truncate(self.band.len().saturating_sub(2));
        let old = self.band.partition_point(|(_, b)| b.t < from).saturating_sub(1);
        self.band.drain(..old);
        let start = self.band.last().map_or(i64::MIN, |(slot, _)| slot + 1);
        let mut cells: Vec<(i64, &Column)> = Vec::new();
        for trace in self.ids.iter().filter_map(|i| self.traces.get(i)) {
            let columns = trace.columns();
            let first = columns.partition_point(|c| c.slot < start || c.last_t < from - self.step * 2);
            cells.extend(columns[first..].iter().map(|c| (c.slot, c)));
        }
        cells.sort_unstable_by_key(|(slot, _)| *slot);
        let mut means = Vec::new();
        for group in cells.chunk_by(|a, b| a.0 == b.0) {
            means.clear();
            means.extend(group.iter().map(|(_, c)| c.mean()));
            means.sort_unstable_by(f64::total_cmp);
            let min = group.iter().map(|(_, c)| c.min).fold(f64::INFINITY, f64::min);
            let max = group.iter().map(|(_, c)| c.max).fold(f64::NEG_INFINITY, f64::max);
            let values = [min, quantile(&means, 0.1), quantile(&means, 0.5), quantile(&means, 0.9), max];
            let joined = group.iter().any(|(_, c)| c.joined);
            self.band.push((group[0].0, Band { t: group[0].1.t, values, joined }));
        }
    }

    /// Spans in which no series has a sample.
    fn find_gaps(&mut self, look: &Look, wide: bool) {
        let (from, to) = look.span;
        let mut all: Option<Vec<(i64, i64)>> = None;
        for trace in self.ids.iter().filter_map(|i| self.traces.get(i)) {
            let columns = trace.within(from, to);
            let mut gaps: Vec<(i64, i64)> =
                columns.windows(2).filter(|w| !w[1].joined).map(|w| (w[0].last_t, w[1].first_t)).collect();
            let before = trace.columns().iter().rev().find(|c| c.last_t < from);
            if let (Some(first), Some(before)) = (columns.first().filter(|c| !c.joined), before) {
                gaps.insert(0, (before.last_t, first.first_t));
            }
            match columns.last().or(before) {
                Some(last) if to - last.last_t > self.interval * 2 => gaps.push((last.last_t, to)),
                _ => {}
            }
            all = Some(match all {
                None => gaps,
                Some(others) => overlap(&others, &gaps),
            });
        }
        let words = |a: i64, b: i64| match () {
            () if !wide => String::new(),
            () if b >= to && !look.frozen => format!("last sample {} ago", axis::duration(look.now - a)),
            () => format!("no data {}", axis::duration(b - a - self.interval)),
        };
        self.gaps =
            all.unwrap_or_default().into_iter().map(|(a, b)| Gap { from: a, to: b, text: words(a, b) }).collect();
    }
}

/// What a list says at a position; false beyond its end.
pub fn is(list: &[bool], i: usize) -> bool {
    list.get(i).copied().unwrap_or(false)
}

/// What two lists of spans, each in order, have in common.
fn overlap(a: &[(i64, i64)], b: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        let (from, to) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if from < to {
            out.push((from, to));
        }
        if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
    }
    out
}

/// Width of a column: 1 (each sample for itself) while samples are not much denser than pixels.
fn step(look: &Look, width: i32, interval: i64, chart: Chart) -> i64 {
    let plot = f64::from(width) / look.css - look.measures.left - look.measures.right;
    let pixels = (plot.max(60.0) as i64) / if chart == Chart::Band { 2 } else { 1 };
    let span = look.span.1 - look.span.0;
    if span / interval <= pixels * 2 { 1 } else { (span + pixels * interval - 1) / (pixels * interval) * interval }
}

/// Limits with the name alone as their text. Equal ones of several instances stand there once, without an instance.
fn limits(source: &Source, store: &Store, members: &Members, to: i64) -> Vec<Limit> {
    // They hold as long as nothing newer is known.
    let to = to.min(source.last_t().unwrap_or(to));
    let mut list: Vec<Limit> = Vec::new();
    for id in &members.limits {
        let Some(value) = reading::at(source, &store.catalog, *id, to) else { continue };
        let def = &source.defs[*id as usize];
        if value <= 0.0 {
            continue;
        }
        match list.iter_mut().find(|l| l.value == value) {
            // What the template says behind the instance.
            Some(same) => {
                let after = store.catalog.metric(def).and_then(|m| m.label.rsplit_once("} "));
                same.text = after.map_or_else(|| same.text.clone(), |(_, text)| text.to_string());
            }
            None => list.push(Limit { value, text: store.catalog.label(def) }),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_the_chart_is_one_of_all_its_series() {
        assert_eq!(overlap(&[(0, 10), (20, 30)], &[(5, 25)]), [(5, 10), (20, 25)]);
        assert_eq!(overlap(&[(0, 10)], &[]), []);
    }
}
