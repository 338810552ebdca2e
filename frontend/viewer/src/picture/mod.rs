//! Makes the frame of one panel from the store: updated traces, axis, gaps, limits, labels, texts.
//!
//! [`look`] and [`rows`] are the settings of the page and of a person; [`read`] returns the values of a picture.
//! [`gaps`] finds spans without data, and limits; [`states`] makes bars of states.

mod gaps;
mod look;
#[cfg(test)]
mod moves;
mod read;
mod rows;
pub mod states;

pub use look::{Look, PanelState, RedrawKey};
pub use rows::{CHOICES, Order, Rows};

use crate::names::{Name, names, peers};
use crate::spread::{self, Spread};
use crate::store::Store;
use crate::store::plan::HEAT_SUFFIX;
use crate::store::presence::Presence;
use crate::store::source::{Members, Source};
use crate::store::trace::{self, Trace};
use charts::axis::{self, Along, Axis};
use charts::reduce::Column;
use charts::{Chart, Frame, Gap, Heat, Hue, Lane, Limit, Line, Shape, Shows, order};
use shared::catalog::{self, Kind, Range};
use shared::segment::TIER_MS;
use shared::series::SeriesId;
use shared::unit::{Unit, duration, rough_duration};
use std::collections::BTreeMap;

/// Maximum number of columns that a panel keeps for zooming back: 2 MB.
const MAX_ASIDE_COLUMNS: usize = 24_000;
/// Longest name that a narrow chart writes in full, in characters.
const BRIEF: usize = 7;

/// The data of a panel, kept from one frame to the next.
#[derive(Default)]
pub struct Picture {
    /// Names and colors of the series.
    pub names: Vec<Name>,
    /// State of the data.
    pub state: PanelState,
    /// Number of distinct instants with a sample in the window.
    pub samples: usize,
    /// True when the window has no value to draw.
    pub blank: bool,
    /// Smallest, mean and largest value in the window, as text; empty when there are none.
    pub sums: [String; 3],
    /// Unit, and remarks on the axis.
    pub note: String,
    /// Time of the newest sample, ms since the epoch; 0 when there is none.
    pub newest: i64,
    /// Symbol of the unit of the numbers.
    pub unit: &'static str,
    /// Width of a column in ms; 1 if each sample is drawn separately.
    pub step: i64,
    /// By position: true for hidden series; only their names are shown. Empty when none is hidden.
    pub muted: Vec<bool>,
    /// By position: true for series that are drawn faint because others are highlighted. Empty when none is.
    pub dim: Vec<bool>,
    /// Order and values of the rows of a heat map.
    pub rows: Rows,
    full_names: bool,
    /// Plural noun for the series; see [`peers`].
    peers: Option<String>,
    /// Positions of the series with the color of outliers, the furthest from its peers first.
    odd: Vec<usize>,
    /// Positions of the series that the finding on the page is about; then only they are outliers.
    named: Vec<usize>,
    chart: Option<Chart>,
    axis: Option<Axis>,
    /// Start of the window, ms since the epoch.
    from: i64,
    interval: i64,
    /// Time in ms between the samples of the series that has the fewest.
    cadence: i64,
    ids: Vec<SeriesId>,
    limits: Vec<Limit>,
    gaps: Vec<Gap>,
    traces: BTreeMap<SeriesId, Trace>,
    /// Traces with columns of other widths, the newest last, because zooming in is often followed by zooming out.
    aside: Vec<BTreeMap<SeriesId, Trace>>,
    spread: Spread,
    /// Positions of the series that are drawn separately: the named ones of a band, or the rows of a heat map in order.
    order: Vec<usize>,
    lanes: Vec<Lane>,
    /// The lanes, and the series of each.
    lane_ids: Vec<(catalog::Lane, Vec<SeriesId>)>,
    age: String,
    presence: Presence,
}

impl Picture {
    /// Updates the state and the number of samples. This is done for panels out of view too.
    pub fn measure(&mut self, source: Option<&Source>, id: &str, look: &Look) {
        let none = Members::default();
        let lines = &source.and_then(|s| s.charts.get(id.trim_end_matches(HEAT_SUFFIX))).unwrap_or(&none).lines;
        let Some(source) = source else { return };
        self.samples = self.presence.count(source, lines, look.span.0, look.span.1);
        self.newest = lines.iter().filter_map(|i| source.newest.get(*i as usize)).copied().max().unwrap_or(0);
        let cadence = lines.iter().map(|i| source.cadence(*i)).max().unwrap_or(source.info.interval);
        self.cadence = cadence;
        self.state = match self.samples {
            0 => PanelState::Empty,
            // The quarter of an interval is the time that a tick may need to be closed and sent.
            _ if look.now - self.newest <= cadence * 2 + cadence / 4 => PanelState::Live,
            _ => PanelState::Stale,
        };
    }

    /// Updates everything for drawing on a canvas of `width` units; `wide` panels name their series in full.
    pub fn update(&mut self, store: &Store, source: Option<&Source>, id: &str, wide: bool, look: &Look, width: i32) {
        let (from, to) = look.span;
        self.from = from;
        let catalog = &store.catalog;
        let none = Members::default();
        let heat = id.ends_with(HEAT_SUFFIX);
        let id = id.trim_end_matches(HEAT_SUFFIX);
        let members = source.and_then(|s| s.charts.get(id)).unwrap_or(&none);
        let metric = members.lines.first().and_then(|i| source?.defs.get(*i as usize)).and_then(|d| catalog.metric(d));
        let states = metric.is_some_and(|m| m.kind == Kind::State);
        let chart = Chart::new(Shape { series: members.lines.len(), states, map: heat });
        if self.ids != members.lines {
            self.ids = members.lines.clone();
            self.names = source.map(|s| names(catalog, &s.defs, &self.ids)).unwrap_or_default();
            self.peers = peers(&self.names);
            self.odd.clear();
            self.aside.clear();
            self.spread = Spread::default();
        }
        // A chart with enough room names its series in full in three cases. It is wide, it names a few of many series,
        // or the names are as short as "GPU 7".
        let brief = self.names.iter().all(|name| name.full.chars().count() <= BRIEF);
        self.full_names = (wide || brief || chart.traits().shows.median()) && look.measures.right >= 70.0;
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
            let mut anew = self.change_step(days);
            if self.traces.len() > all.len() {
                self.traces.retain(|i, _| all.contains(i));
            }
            for id in all {
                let fits = |t: &Trace| t.is_of(self.step, days) && t.fits(from, source);
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
            let def = |id: &SeriesId| {
                let def = source.defs.get(*id as usize)?;
                Some((catalog.metric(def)?.tag.as_str(), def.instance.as_str()))
            };
            self.named = look.subjects.among(self.ids.iter().map(|id| def(id).unwrap_or_default()));
        }
        let traces = std::mem::take(&mut self.traces);
        let all: Vec<(SeriesId, &Trace)> = self.ids.iter().filter_map(|id| Some((*id, traces.get(id)?))).collect();
        // The columns are searched once, because series are many and columns are far apart in memory.
        let seen: Vec<&[Column]> = all.iter().map(|(_, t)| t.within(from, to)).collect();
        self.scale(metric, wide || heat, look, &seen);
        self.watched(look, source);
        self.rank(look, &all, &seen);
        self.gaps = source.map_or_else(Vec::new, |s| self.find_gaps(s, look, wide, (&all, &seen)));
        self.traces = traces;
        self.find_states();
        if wide && !matches!(self.shows(), Some(Shows::States | Shows::Rows)) {
            self.lanes.extend(states::fault_lane(&look.marks, look.span));
            self.lanes.extend(states::alert_lanes(&look.alerts.bars, look.span));
        }
    }

    /// Switches to the traces of the present step, and keeps those of the previous step for a while. Returns false if
    /// the step did not change.
    fn change_step(&mut self, days: bool) -> bool {
        let step = self.step;
        let now = move |traces: &BTreeMap<SeriesId, Trace>| traces.values().next().is_none_or(|t| t.is_of(step, days));
        if now(&self.traces) {
            return false;
        }
        let known = self.aside.iter().position(now).map(|i| self.aside.remove(i)).unwrap_or_default();
        self.aside.push(std::mem::replace(&mut self.traces, known));
        let all = |aside: &[BTreeMap<SeriesId, Trace>]| -> usize {
            aside.iter().flat_map(|traces| traces.values()).map(|t| t.columns().len()).sum()
        };
        while all(&self.aside) > MAX_ASIDE_COLUMNS {
            self.aside.remove(0);
        }
        true
    }

    /// Makes the axis, the sums and the note beside the title.
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
        let mut axis = axis::values(unit, range, lo, if count > 0 { top } else { f64::NAN });
        if count == 0 {
            // Tick numbers on an empty chart would suggest that it is measured, and would jump at the first sample.
            axis.ticks.clear();
        }
        self.unit = axis.scale.symbol;
        let word = |v: f64| axis.number(v);
        self.blank = count == 0;
        let summed = count > 0 && self.shows() != Some(Shows::States);
        self.sums = if summed { [word(lo), word(sum / count as f64), word(hi)] } else { Default::default() };
        let cut = if axis.cut && self.shows() != Some(Shows::Rows) {
            format!("axis from {}", axis.round(axis.lo))
        } else {
            String::new()
        };
        let many = self.chart.map(|chart| (chart.traits().note)(self.ids.len())).unwrap_or_default();
        // The interval is shown in wide charts and heat maps, and in each chart that has another one.
        let lead = lead || self.cadence > self.interval;
        let every = match () {
            () if !lead || count == 0 => String::new(),
            () if self.step > 1 => format!("means of {}", duration(self.step)),
            () if self.cadence < 1000 => format!("every {} ms", self.cadence),
            () => format!("every {}", duration(self.cadence)),
        };
        let all = [self.unit, &cut, &many, &every];
        self.note = all.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", ");
        let age = (look.now - self.newest).max(0);
        self.age = match () {
            // For stale data, the title says how old they are.
            () if !lead || self.state != PanelState::Live || look.frozen => String::new(),
            () if age < 9_950 => format!("{} s ago", shared::unit::number((age as f64 / 100.0).round() / 10.0)),
            () => format!("{} ago", rough_duration(age)),
        };
        for limit in &mut self.limits {
            limit.text = format!("{} {} {}", limit.text, axis.round(limit.value), axis.scale.symbol);
        }
        self.axis = Some(axis);
    }

    /// Adds the limits of the rules for these series that are within the axis. They must not flatten the lines.
    fn watched(&mut self, look: &Look, source: Option<&Source>) {
        let (Some(source), Some(axis)) = (source, &self.axis) else { return };
        let drawn =
            |metric: u16| self.ids.iter().any(|id| source.defs.get(*id as usize).is_some_and(|d| d.metric == metric));
        let own = look.alerts.limits.iter().filter(|(metric, value, _)| {
            (axis.lo..=axis.hi).contains(value) && !axis.ticks.is_empty() && drawn(*metric)
        });
        let limit = |value: f64, name: &str| {
            let text = format!("{name} {} {}", axis.round(value), axis.scale.symbol);
            Limit { value, text }
        };
        let made: Vec<Limit> = own.map(|(_, value, name)| limit(*value, name)).collect();
        self.limits.extend(made);
    }

    /// Makes the spread of many series, and finds those that are drawn separately.
    fn rank(&mut self, look: &Look, all: &[(SeriesId, &Trace)], seen: &[&[Column]]) {
        let spread = self.shows().is_some_and(Shows::median);
        if !spread {
            self.order = (0..self.ids.len()).collect();
        }
        if !spread && (self.peers.is_none() || self.shows() == Some(Shows::States)) {
            self.odd.clone_from(&self.named);
            return;
        }
        let (from, to) = look.span;
        let series: Vec<&[Column]> = all.iter().map(|(_, t)| t.columns()).collect();
        // The spread covers a little more than the span, so that lines begin and end outside of the plot.
        let beyond = self.width() * 2;
        self.spread.show(&series, (from - beyond).div_euclid(self.step)..(to + beyond).div_euclid(self.step) + 1);
        let span = self.axis.as_ref().map_or(1.0, |a| a.hi - a.lo);
        let stands: Vec<spread::Stand> = seen
            .iter()
            .enumerate()
            // A line keeps its color for a while only in a live view. A moved view does not depend on the past.
            .map(|(i, c)| spread::stand(c, &self.spread.band, span, !spread && look.live && self.odd.contains(&i)))
            .collect();
        let outliers = spread::outliers(&stands);
        if self.shows() == Some(Shows::Outliers) {
            // The series that a person highlighted are drawn too.
            let follows = self.dim.contains(&true);
            let followed = (0..self.dim.len()).filter(|i| follows && !self.dim[*i]);
            self.order.clear();
            for i in self.named.iter().chain(&outliers).copied().chain(followed) {
                if self.order.len() < 8 && !self.order.contains(&i) {
                    self.order.push(i);
                }
            }
        }
        // One color means one thing: while a finding names a device, no other line has it.
        self.odd = if self.named.is_empty() { outliers } else { self.named.clone() };
        match self.shows() {
            Some(Shows::Rows) if self.rows.order == Order::Index => {
                self.order = (0..self.ids.len()).filter(|i| !is(&self.muted, *i)).collect();
            }
            Some(Shows::Rows) => self.order = self.in_rows(&stands),
            _ => {}
        }
    }

    /// The rows of a heat map in the order that a person chose.
    fn in_rows(&self, stands: &[spread::Stand]) -> Vec<usize> {
        let rank = |s: &spread::Stand| match self.rows.order {
            Order::Index => 0,
            Order::Mean => order::key(s.mean),
            Order::Distance => order::key(-s.distance),
        };
        order::by(stands.iter().map(rank)).into_iter().filter(|i| !is(&self.muted, *i)).collect()
    }

    /// Positions and colors of the series that are drawn separately. In a band all colors differ.
    fn drawn(&self) -> Vec<(usize, Hue)> {
        let mut list: Vec<(usize, Hue)> = Vec::new();
        for &i in &self.order {
            let mut hue = self.hue(i);
            if let (Some(Shows::Outliers), Hue::Of(mut h)) = (self.shows(), hue) {
                while list.len() < 8 && list.iter().any(|(_, other)| *other == Hue::Of(h % 8)) {
                    h += 1;
                }
                hue = Hue::Of(h % 8);
            }
            list.push((i, hue));
        }
        list
    }

    /// Color of a series by position. A series that differs from its peers has one color everywhere.
    pub fn hue(&self, i: usize) -> Hue {
        match self.odd.iter().position(|odd| *odd == i) {
            Some(n) => Hue::Odd(n as u8),
            None => self.names[i].hue,
        }
    }

    /// Plural noun for the series, such as `GPUs`; None if they are not alike.
    pub fn peers(&self) -> Option<&str> {
        self.peers.as_deref()
    }

    /// The series that the chart shows one by one; none before the first [`update`](Self::update).
    fn shows(&self) -> Option<Shows> {
        self.chart.map(|chart| chart.traits().shows)
    }

    /// The key of a drawing on a canvas of `size` units. `epoch` is the source's count of arrivals of older history.
    pub fn redraw_key(&self, look: &Look, size: (i32, i32), focus: Option<usize>, epoch: u32) -> RedrawKey {
        let (from, to) = look.span;
        let quarter = ((to - from) / (look.pixels(size.0) as i64) / 4).max(1);
        RedrawKey {
            edges: (to.div_euclid(quarter), to - from),
            size,
            axis: self.axis.as_ref().map(|a| (a.lo, a.hi)),
            sums: self.sums.clone(),
            gaps: (self.gaps.len(), self.gaps.last().map_or(0, |g| g.from)),
            limits: self.limits.len(),
            step: self.step,
            epoch,
            ground: look.theme.card,
            focus,
            kept: (self.muted.clone(), self.dim.clone()),
            looks: (self.state, look.live, self.ids.len()),
            marks: look.marks.clone(),
            alerts: look.alerts.clone(),
            rows: (self.rows, self.order.clone(), self.odd.clone()),
        }
    }

    /// Calls `draw` with the frame and returns its result; None before the first [`update`](Self::update).
    pub fn with_frame<T>(
        &self,
        look: &Look,
        size: (i32, i32),
        focus: Option<usize>,
        draw: impl FnOnce(&Frame) -> T,
    ) -> Option<T> {
        let (chart, axis) = (self.chart?, self.axis.as_ref()?);
        let drawn = if self.shows() == Some(Shows::States) { Vec::new() } else { self.drawn() };
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
        let heat = (self.shows() == Some(Shows::Rows)).then_some(Heat { names: &rows, values: self.rows.values });
        Some(draw(&Frame {
            chart,
            size,
            css: look.css,
            device: look.device,
            theme: look.theme,
            measures: look.measures,
            from,
            to,
            zone: look.zone,
            along: Along::Time,
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

    /// Finds the spans without data, and makes the texts in them.
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
            () if b >= to && !look.frozen => format!("last sample {} ago", rough_duration(look.now - a)),
            () => format!("no data {}", rough_duration(b - a - self.interval)),
        };
        let cadence = self.cadence.max(self.interval);
        let before = gaps::before(source, traces, look.span, cadence).map(|(from, to)| {
            let text = if wide { "no history" } else { "" };
            Gap { from, to, text: text.into() }
        });
        let found = gaps::find(source, traces, look.span, cadence);
        before.into_iter().chain(found.into_iter().map(|(a, b)| Gap { from: a, to: b, text: words(a, b) })).collect()
    }
}

/// The entry of a list at a position; false beyond its end.
pub fn is(list: &[bool], i: usize) -> bool {
    list.get(i).copied().unwrap_or(false)
}

/// Width of a column in ms; 1 (each sample separately) while there are at most two samples per pixel. Otherwise a
/// column is 0.7 to 1.5 pixels wide, and above three samples their number is a power of two. So a small zoom usually
/// keeps the columns, and samples need not be read again.
fn step(look: &Look, width: i32, interval: i64, chart: Chart) -> i64 {
    let plot = f64::from(width) / look.css - look.measures.left - look.measures.right;
    let pixels = (plot.max(60.0) as i64) / chart.traits().column_px;
    let span = look.span.1 - look.span.0;
    let samples = (span + pixels * interval - 1) / (pixels * interval);
    match samples {
        _ if span / interval <= pixels * 2 => 1,
        ..4 => samples * interval,
        _ => interval * (samples as u64 * 3 / 4).next_power_of_two().max(4) as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_is_zoomed_a_little_keeps_its_columns() {
        let look = |span: i64| Look {
            theme: &charts::theme::DARK,
            measures: charts::Measures { left: 40.0, right: 100.0, ..Default::default() },
            css: 4.0,
            device: 4.0,
            span: (0, span),
            zone: charts::axis::Zone::UTC,
            now: span,
            live: false,
            frozen: true,
            marks: Default::default(),
            alerts: Default::default(),
            subjects: Default::default(),
        };
        let width = |span: i64| step(&look(span), 640 * 4, 1_000, Chart::Line);
        // 500 pixels, and a second between samples.
        assert_eq!([1_000_000, 1_001_000, 1_600_000].map(width), [1, 3_000, 4_000]);
        let widths: Vec<i64> = (0..16).map(|k| width((43_200_000.0 * 0.8f64.powi(k)) as i64)).collect();
        assert!(widths.chunk_by(|a, b| a == b).count() <= 7, "{widths:?}");
        for span in (2_000_000..90_000_000).step_by(77_777) {
            let pixels = width(span) as f64 / (span as f64 / 500.0);
            assert!((0.66..=1.5).contains(&pixels), "{span}: a column of {pixels} pixels");
        }
    }
}
