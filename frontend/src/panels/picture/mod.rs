//! From the store to the frame of one panel: traces brought up to date, axis, gaps, limits, labels, words.
//!
//! [`look`] and [`rows`] are what the page and a person want, [`read`] what is read from a picture. [`gaps`] finds spans
//! without data and limits, [`spread`] makes a band of many series and finds those that stand out of it, [`states`] makes
//! bars of states.

mod gaps;
mod look;
#[cfg(test)]
mod moves;
mod read;
mod rows;
mod spread;
pub mod states;

pub use look::{Look, Sight, State};
pub use rows::{CHOICES, Order, Rows};

use super::names::{Name, names};
use crate::store::Store;
use crate::store::plan::HEAT;
use crate::store::presence::Presence;
use crate::store::source::{Members, Source};
use crate::store::trace::{self, Trace};
use charts::axis::{self, Axis};
use charts::reduce::Column;
use charts::{Chart, Frame, Gap, Heat, Hue, Lane, Limit, Line, order};
use shared::catalog::{self, Kind, Range};
use shared::segment::TIER_MS;
use shared::series::SeriesId;
use shared::unit::Unit;
use spread::Spread;
use std::collections::BTreeMap;

/// What is kept of a panel between two frames.
#[derive(Default)]
pub struct Picture {
    /// Names and colours.
    pub names: Vec<Name>,
    /// How the panel stands.
    pub state: State,
    /// Distinct instants in the window.
    pub samples: usize,
    /// Whether nothing was drawn.
    pub blank: bool,
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
    /// How the rows of a heat map stand.
    pub rows: Rows,
    full_names: bool,
    chart: Option<Chart>,
    axis: Option<Axis>,
    /// Start of the window, ms.
    from: i64,
    interval: i64,
    /// Time between the samples of the series that has the fewest, ms.
    cadence: i64,
    ids: Vec<SeriesId>,
    limits: Vec<Limit>,
    gaps: Vec<Gap>,
    traces: BTreeMap<SeriesId, Trace>,
    spread: Spread,
    /// By position: the series of a band that are drawn one by one, or the rows of a heat map.
    order: Vec<usize>,
    lanes: Vec<Lane>,
    /// Series that the lanes are made of, by lane.
    lane_ids: Vec<(catalog::Lane, Vec<SeriesId>)>,
    age: String,
    presence: Presence,
}

impl Picture {
    /// What describes the data, whether or not the panel is in view.
    pub fn measure(&mut self, source: Option<&Source>, id: &str, look: &Look) {
        let none = Members::default();
        let lines = &source.and_then(|s| s.charts.get(id.trim_end_matches(HEAT))).unwrap_or(&none).lines;
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
        self.from = from;
        let catalog = &store.catalog;
        let none = Members::default();
        let heat = id.ends_with(HEAT);
        let id = id.trim_end_matches(HEAT);
        let members = source.and_then(|s| s.charts.get(id)).unwrap_or(&none);
        let metric = members.lines.first().and_then(|i| source?.defs.get(*i as usize)).and_then(|d| catalog.metric(d));
        let chart = match metric {
            _ if heat => Chart::Heat,
            Some(m) if m.kind == Kind::State => Chart::Lanes,
            _ => Chart::for_series(members.lines.len()),
        };
        if self.ids != members.lines {
            self.ids = members.lines.clone();
            self.names = source.map(|s| names(catalog, &s.defs, &self.ids)).unwrap_or_default();
            self.spread = Spread::default();
        }
        // Where there is room, a wide chart names its series in full, and so does one that names a few of many.
        self.full_names = (wide || matches!(chart, Chart::Heat | Chart::Band)) && look.measures.right >= 70.0;
        self.interval = source.map_or(1000, |s| s.info.interval);
        let days = source.is_some_and(|s| s.in_days(look.span));
        self.step = match days {
            true => step(look, width, TIER_MS, chart).max(TIER_MS),
            false => step(look, width, self.interval, chart),
        };
        self.chart = Some(chart);
        if let Some(source) = source {
            self.lane_ids = states::lane_ids(source, catalog, id, &self.ids, chart);
            let all: Vec<SeriesId> =
                self.ids.iter().chain(self.lane_ids.iter().flat_map(|(_, ids)| ids)).copied().collect();
            if self.traces.len() > all.len() {
                self.traces.retain(|i, _| all.contains(i));
            }
            let mut anew = false;
            for id in all {
                let fits = |t: &Trace| t.is_of_days() == days && t.fits(self.step, from, source);
                if !self.traces.get(&id).is_some_and(fits) {
                    let new = if days { Trace::of_days } else { Trace::new };
                    self.traces.insert(id, new(id, self.step, from, source, catalog));
                    anew = true;
                }
                if let Some(trace) = self.traces.get_mut(&id) {
                    trace.feed(source, from, to);
                }
            }
            if anew {
                self.spread = Spread::default();
            }
            self.limits = gaps::limits(source, store, members, to);
        }
        let traces = std::mem::take(&mut self.traces);
        let all: Vec<(SeriesId, &Trace)> = self.ids.iter().filter_map(|id| Some((*id, traces.get(id)?))).collect();
        // Looked for once: series are many, and columns far apart in memory.
        let seen: Vec<&[Column]> = all.iter().map(|(_, t)| t.within(from, to)).collect();
        self.scale(metric, wide || heat, look, &seen);
        self.rank(look, &all, &seen);
        self.gaps = source.map_or_else(Vec::new, |s| self.find_gaps(s, look, wide, (&all, &seen)));
        self.traces = traces;
        self.find_states();
    }

    /// Axis, sums, and what stands beside the title.
    fn scale(&mut self, metric: Option<&catalog::Metric>, lead: bool, look: &Look, seen: &[&[Column]]) {
        let unit = metric.map_or(Unit::Count, trace::unit);
        let range = metric.map_or(Range::FromZero, |m| m.range);
        let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut sum, mut count) = (0.0, 0u64);
        for (_, columns) in seen.iter().enumerate().filter(|(i, _)| !is(&self.muted, *i)) {
            for c in *columns {
                (lo, hi) = (if c.min < lo { c.min } else { lo }, if c.max > hi { c.max } else { hi });
                (sum, count) = (sum + c.sum, count + u64::from(c.count));
            }
        }
        let top = self.limits.iter().map(|l| l.value).fold(hi, f64::max);
        let axis = axis::values(unit, range, lo, if count > 0 { top } else { f64::NAN });
        self.unit = axis.scale.symbol;
        let word = |v: f64| axis.number(v);
        self.blank = count == 0;
        let summed = count > 0 && self.chart != Some(Chart::Lanes);
        self.sums = if summed { [word(lo), word(sum / count as f64), word(hi)] } else { Default::default() };
        let cut = if axis.cut && self.chart != Some(Chart::Heat) {
            format!("axis from {}", axis.round(axis.lo))
        } else {
            String::new()
        };
        let many = match self.chart {
            Some(Chart::Band) => format!("median, p10–p90 of {}", self.ids.len()),
            _ => String::new(),
        };
        // How often is said once on top, and where it is another interval.
        let lead = lead || self.cadence > self.interval;
        let every = match () {
            () if !lead || count == 0 => String::new(),
            () if self.step > 1 => format!("means of {}", axis::duration(self.step)),
            () if self.cadence < 1000 => format!("every {} ms", self.cadence),
            () => format!("every {}", axis::duration(self.cadence)),
        };
        let all = [self.unit, &cut, &many, &every];
        self.note = all.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", ");
        let age = (look.now - self.newest).max(0);
        self.age = match () {
            // What is stale says so in the title.
            () if !lead || self.state != State::Live || look.frozen => String::new(),
            () if age < 9_950 => format!("{} s ago", shared::unit::number((age as f64 / 100.0).round() / 10.0)),
            () => format!("{} ago", axis::duration(age)),
        };
        for limit in &mut self.limits {
            limit.text = format!("{} {} {}", limit.text, axis.round(limit.value), axis.scale.symbol);
        }
        self.axis = Some(axis);
    }

    /// The spread of many series, and those of them that are drawn one by one.
    fn rank(&mut self, look: &Look, all: &[(SeriesId, &Trace)], seen: &[&[Column]]) {
        if !matches!(self.chart, Some(Chart::Band | Chart::Heat)) {
            self.order = (0..self.ids.len()).collect();
            return;
        }
        let (from, to) = look.span;
        let series: Vec<&[Column]> = all.iter().map(|(_, t)| t.columns()).collect();
        // A little more than is seen, so that lines come in and go out.
        let beyond = self.width() * 2;
        self.spread.show(&series, (from - beyond).div_euclid(self.step)..(to + beyond).div_euclid(self.step) + 1);
        let span = self.axis.as_ref().map_or(1.0, |a| a.hi - a.lo);
        if self.chart == Some(Chart::Heat) && self.rows.order == Order::Index {
            self.order = (0..self.ids.len()).filter(|i| !is(&self.muted, *i)).collect();
            return;
        }
        let stands: Vec<spread::Stand> = seen.iter().map(|c| spread::stand(c, &self.spread.band, span)).collect();
        if self.chart == Some(Chart::Band) {
            self.order = spread::outliers(&stands);
            // Those that a person follows stand there too.
            let follows = self.dim.contains(&true);
            let followed = (0..self.dim.len()).filter(|i| follows && !self.dim[*i] && !self.order.contains(i));
            self.order = self.order.iter().copied().chain(followed).take(8).collect();
            return;
        }
        let rank = |s: &spread::Stand| match self.rows.order {
            Order::Index => 0,
            Order::Mean => order::key(s.mean),
            Order::Distance => order::key(-s.distance),
        };
        self.order = order::by(stands.iter().map(rank)).into_iter().filter(|i| !is(&self.muted, *i)).collect();
    }

    /// Series that are drawn one by one, with their colours: in a band no two have the same.
    fn drawn(&self) -> Vec<(usize, Hue)> {
        let mut list: Vec<(usize, Hue)> = Vec::new();
        for &i in &self.order {
            let mut hue = self.names[i].hue;
            if let (Some(Chart::Band), Hue::Of(mut h)) = (self.chart, hue) {
                while list.len() < 8 && list.iter().any(|(_, other)| *other == Hue::Of(h % 8)) {
                    h += 1;
                }
                hue = Hue::Of(h % 8);
            }
            list.push((i, hue));
        }
        list
    }

    /// What a drawing on a canvas of that size would look like.
    pub fn sight(&self, look: &Look, size: (i32, i32), focus: Option<usize>, epoch: u32) -> Sight {
        let (from, to) = look.span;
        let quarter = ((to - from) / (look.pixels(size.0) as i64) / 4).max(1);
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
            rows: (self.rows, self.order.clone()),
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
        let drawn = if chart == Chart::Lanes { Vec::new() } else { self.drawn() };
        let lines: Vec<Line> = drawn
            .into_iter()
            .filter(|(i, _)| !is(&self.muted, *i))
            .filter_map(|(i, hue)| {
                let bright = focus.is_none_or(|f| f == i) && !is(&self.dim, i);
                Some(Line { columns: self.traces.get(&self.ids[i])?.columns(), hue, bright })
            })
            .collect();
        let rows: Vec<&str> = self.order.iter().map(|i| self.names[*i].short.as_str()).collect();
        let (from, to) = look.drawn(size.0);
        let heat = (chart == Chart::Heat).then_some(Heat { names: &rows, values: self.rows.values });
        Some(draw(&Frame {
            chart,
            size,
            css: look.css,
            device: look.device,
            theme: look.theme,
            measures: look.measures,
            from,
            to,
            offset: look.offset,
            axis,
            step: self.step,
            interval: self.interval,
            lines: &lines,
            band: &self.spread.band,
            heat,
            lanes: &self.lanes,
            limits: &self.limits,
            gaps: &self.gaps,
            live: look.live,
            age: &self.age,
        }))
    }

    /// Spans without data, and the words along them.
    fn find_gaps(
        &self,
        source: &Source,
        look: &Look,
        wide: bool,
        traces: (&[(SeriesId, &Trace)], &[&[Column]]),
    ) -> Vec<Gap> {
        let to = look.span.1;
        let words = |a: i64, b: i64| match () {
            () if !wide => String::new(),
            () if b >= to && !look.frozen => format!("last sample {} ago", axis::duration(look.now - a)),
            () => format!("no data {}", axis::duration(b - a - self.interval)),
        };
        let found = gaps::find(source, traces, look.span, self.cadence.max(self.interval));
        found.into_iter().map(|(a, b)| Gap { from: a, to: b, text: words(a, b) }).collect()
    }
}

/// What a list says at a position; false beyond its end.
pub fn is(list: &[bool], i: usize) -> bool {
    list.get(i).copied().unwrap_or(false)
}

/// Width of a column: 1 (each sample for itself) while samples are not much denser than pixels.
fn step(look: &Look, width: i32, interval: i64, chart: Chart) -> i64 {
    let plot = f64::from(width) / look.css - look.measures.left - look.measures.right;
    let pixels = (plot.max(60.0) as i64) / if matches!(chart, Chart::Band | Chart::Heat) { 2 } else { 1 };
    let span = look.span.1 - look.span.0;
    if span / interval <= pixels * 2 { 1 } else { (span + pixels * interval - 1) / (pixels * interval) * interval }
}
