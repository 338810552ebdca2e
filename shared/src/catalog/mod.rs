//! The one table of metrics, and the layout of the page that is built from it.
//!
//! The W&B vocabulary is here, a file per family. Our own rows are at the top of the collector that produces them. A
//! collector's entry names its slices of rows, and the table joins them all; no other list of metrics exists. Order in
//! a slice is order on screen.
//!
//! Rows are written as [`MetricDef`] (static, so that collectors name a row by a constant) and travel as [`Metric`].

mod charts;
mod check;
mod layout;
mod markdown;
mod tag;

pub mod apple;
pub mod cpu;
pub mod disk;
pub mod fleet;
pub mod gpu;
pub mod gpu_amd;
pub mod gpu_health;
pub mod gpu_parts;
pub mod gpu_pods;
pub mod gpu_process;
pub mod gpu_profile;
pub mod infiniband;
pub mod ipu;
pub mod jetson;
pub mod job;
pub mod kernel;
pub mod link;
pub mod memory;
pub mod monitor;
pub mod mount;
pub mod network;
pub mod openmetrics;
pub mod power;
pub mod process;
pub mod prometheus;
pub mod tpu;
pub mod trainium;
pub mod wandb;

pub use check::faults;
pub use layout::{Chart, Fold, Lane, LaneState, Layout, Note, Section, Tile, base_chart};
pub use markdown::metrics_markdown;
pub(crate) use tag::split;
pub use tag::{LABEL, ResolvedTag, TagError, fill, glob, label_text, labels, rank};

use crate::series::{SeriesDef, Steps};
use crate::unit::Unit;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Kind of a metric's values.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A reading that goes up and down.
    Gauge,
    /// A total that only grows; a decrease is a reset. Drawn as a rate.
    Counter,
    /// One of a few states; drawn as lanes.
    State,
}

/// The vertical axis of a metric's chart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Range {
    /// From the first to the second number, or further if a value exceeds them.
    Fixed(f64, f64),
    /// From zero to the largest value.
    FromZero,
    /// Around the values; the page chooses the start of the axis.
    Fit,
}

impl Range {
    /// 0 to 100.
    pub const PERCENT: Range = Range::Fixed(0.0, 100.0);
}

/// Form of a metric on its chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Draw {
    /// As lines, one a series.
    Line,
    /// As a dashed, labeled limit: a fact, not an alarm.
    Limit,
    /// Not at all: it is in the API and the exports only.
    Hidden,
}

/// One row of the table as it is written in the source. Build it with [`MetricDef::gauge`] and the methods after it.
#[derive(Clone, Copy, Debug)]
pub struct MetricDef {
    /// Tag with at most one placeholder: `{i}` is a number, any other name for free text.
    pub tag: &'static str,
    /// Other spellings, each with the same placeholder, or `text => instance` for a spelling that means one instance.
    pub aliases: &'static [&'static str],
    /// Short name, sentence case.
    pub title: &'static str,
    /// Name of a line on the chart, with the tag's placeholder where the instance stands.
    pub label: &'static str,
    /// Full sentences: meaning, formula and source.
    pub help: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Gauge, counter or state.
    pub kind: Kind,
    /// Axis.
    pub range: Range,
    /// Id of the chart that draws it.
    pub chart: &'static str,
    /// Its form on the chart.
    pub draw: Draw,
    /// Integer steps per unit in which values are stored; see [`Steps`].
    pub steps: Steps,
}

impl MetricDef {
    const fn new(tag: &'static str, unit: Unit, kind: Kind, steps: Steps) -> Self {
        MetricDef {
            tag,
            aliases: &[],
            title: "",
            label: "",
            help: "",
            unit,
            kind,
            range: match unit {
                Unit::Percent => Range::PERCENT,
                Unit::Celsius | Unit::Megahertz => Range::Fit,
                _ => Range::FromZero,
            },
            chart: "",
            draw: Draw::Line,
            steps,
        }
    }

    /// A reading. Percentages that we compute are rounded to 0.01; change that with [`steps`](Self::steps).
    pub const fn gauge(tag: &'static str, unit: Unit) -> Self {
        let steps = match unit {
            Unit::Percent => 100.0,
            Unit::Count | Unit::Bytes | Unit::Microseconds => 1.0,
            _ => 0.0,
        };
        Self::new(tag, unit, Kind::Gauge, steps)
    }

    /// A total that only grows.
    pub const fn counter(tag: &'static str, unit: Unit) -> Self {
        Self::new(tag, unit, Kind::Counter, 1.0)
    }

    /// One of a few states, or a set of bits.
    pub const fn state(tag: &'static str) -> Self {
        Self::new(tag, Unit::State, Kind::State, 1.0)
    }

    /// The tag of an instance.
    pub fn tag_of(&self, instance: &str) -> String {
        tag::fill(self.tag, instance)
    }

    /// Sets the title.
    pub const fn title(mut self, title: &'static str) -> Self {
        self.title = title;
        self
    }

    /// Sets the chart, and the name of a line on it.
    pub const fn on(mut self, chart: &'static str, label: &'static str) -> Self {
        self.chart = chart;
        self.label = label;
        self
    }

    /// Sets the help.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    /// Sets other spellings.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Sets the axis.
    pub const fn range(mut self, range: Range) -> Self {
        self.range = range;
        self
    }

    /// Draws it as a limit, or not at all.
    pub const fn draw(mut self, draw: Draw) -> Self {
        self.draw = draw;
        self
    }

    /// A computed value, rounded to the row's steps: further digits are noise, but would be stored. Values that a
    /// device reports are not rounded.
    pub fn rounded(&self, computed: f64) -> f64 {
        crate::series::quantize(computed, self.steps)
    }

    /// Sets the steps per unit in which values are stored: values on a step cost least. 0: no steps.
    pub const fn steps(mut self, steps: Steps) -> Self {
        self.steps = steps;
        self
    }
}

/// One row of the table as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// See [`MetricDef::tag`]; likewise for the other fields.
    pub tag: String,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub aliases: Vec<String>,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub title: String,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub label: String,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub help: String,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub unit: Unit,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub kind: Kind,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub range: Range,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub chart: String,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub draw: Draw,
    #[allow(missing_docs, reason = "see MetricDef")]
    pub steps: Steps,
}

impl From<&MetricDef> for Metric {
    fn from(def: &MetricDef) -> Self {
        Metric {
            tag: def.tag.into(),
            aliases: def.aliases.iter().map(|&a| a.into()).collect(),
            title: def.title.into(),
            label: if def.label.is_empty() { def.title.into() } else { def.label.into() },
            help: def.help.into(),
            unit: def.unit,
            kind: def.kind,
            range: def.range,
            chart: def.chart.into(),
            draw: def.draw,
            steps: def.steps,
        }
    }
}

impl Metric {
    /// Placeholder for a row that is not shown: no tag is empty, so no text finds it.
    pub fn nothing() -> Self {
        const NOTHING: MetricDef = MetricDef::gauge("", Unit::Count).draw(Draw::Hidden);
        Metric::from(&NOTHING)
    }

    /// Whether the other row is the same row: samples of both have the same tag, kind and unit.
    pub fn is_row_of(&self, other: &Metric) -> bool {
        (&self.tag, self.kind, self.unit) == (&other.tag, other.kind, other.unit)
    }
}

/// The table and the layout: all metadata of metrics on the server and on a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalog {
    /// Rows; a metric's id is its position.
    pub metrics: Vec<Metric>,
    /// Charts, sections, tiles, in order.
    pub layout: Layout,
}

impl Catalog {
    /// The table of these rows, in order, with the layout of the page.
    pub fn new<'a>(rows: impl IntoIterator<Item = &'a MetricDef>) -> Self {
        Catalog { metrics: rows.into_iter().map(Metric::from).collect(), layout: layout::layout() }
    }

    /// Adds a row that is found at run time, with its chart if no chart has that id. Returns the position of the row;
    /// None if the table is full. A row with the same tag, kind and unit is reused.
    pub fn add(&mut self, metric: Metric, chart: Chart) -> Option<u16> {
        self.position_of(&metric).or_else(|| self.push(metric, chart))
    }

    /// Appends a row, with its chart if no chart has that id. Returns its position; None if the table is full.
    pub fn push(&mut self, metric: Metric, chart: Chart) -> Option<u16> {
        let position = u16::try_from(self.metrics.len()).ok()?;
        if !self.layout.charts.iter().any(|c| c.id == chart.id) {
            self.layout.charts.push(chart);
        }
        self.metrics.push(metric);
        Some(position)
    }

    /// Replaces a row that no series uses any more. A chart is removed with its last row.
    pub fn replace(&mut self, position: u16, metric: Metric, chart: Chart) {
        let Some(place) = self.metrics.get_mut(usize::from(position)) else { return };
        let old = std::mem::replace(place, metric);
        if !self.metrics.iter().any(|m| m.chart == old.chart) {
            self.layout.charts.retain(|c| c.id != old.chart);
        }
        if !self.layout.charts.iter().any(|c| c.id == chart.id) {
            self.layout.charts.push(chart);
        }
    }

    /// The rows from position `first` on, at most `most`, with their charts. Rows that are not `shown` are replaced by
    /// [nothing](Metric::nothing).
    pub fn part(&self, first: usize, most: usize, shown: impl Fn(usize) -> bool) -> (Vec<Metric>, Vec<Chart>) {
        let some = (first..).zip(self.metrics.iter().skip(first)).take(most);
        let metrics: Vec<Metric> =
            some.map(|(at, row)| if shown(at) { row.clone() } else { Metric::nothing() }).collect();
        let ids: HashSet<&str> = metrics.iter().map(|m| m.chart.as_str()).collect();
        let charts = self.layout.charts.iter().filter(|c| ids.contains(c.id.as_str())).cloned().collect();
        (metrics, charts)
    }

    /// The table with [nothing](Metric::nothing) in the place of the rows that are not `shown`, and without their
    /// charts.
    pub fn without(&self, shown: impl Fn(usize) -> bool) -> Catalog {
        let (metrics, charts) = self.part(0, self.metrics.len(), &shown);
        let all = (0..).zip(&self.metrics);
        let hidden: HashSet<&str> = all.filter(|(at, _)| !shown(*at)).map(|(_, row)| row.chart.as_str()).collect();
        let drawn: HashSet<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
        let mut layout = self.layout.clone();
        layout.charts.retain(|chart| drawn.contains(&chart.id[..]) || !hidden.contains(&chart.id[..]));
        Catalog { metrics, layout }
    }

    /// Adds the rows and charts of a [`part`](Self::part). Rows replace existing ones at their positions; existing
    /// charts are skipped.
    pub fn extend(&mut self, first: usize, metrics: Vec<Metric>, charts: Vec<Chart>) {
        let known: HashSet<String> = self.layout.charts.iter().map(|c| c.id.clone()).collect();
        self.layout.charts.extend(charts.into_iter().filter(|c| !known.contains(&c.id)));
        for (at, metric) in (first..).zip(metrics) {
            match at.cmp(&self.metrics.len()) {
                std::cmp::Ordering::Less => self.metrics[at] = metric,
                std::cmp::Ordering::Equal => self.metrics.push(metric),
                std::cmp::Ordering::Greater => return,
            }
        }
    }

    /// Position of the first row with this tag template; a collector's row comes first.
    pub fn position(&self, tag: &str) -> Option<u16> {
        self.metrics.iter().position(|m| m.tag == tag).map(|i| i as u16)
    }

    /// Position of the same row. Two machines may use one tag for different things: then each has its own row.
    pub fn position_of(&self, row: &Metric) -> Option<u16> {
        self.metrics.iter().position(|m| m.is_row_of(row)).map(|i| i as u16)
    }

    /// The row of a series.
    pub fn metric(&self, series: &SeriesDef) -> Option<&Metric> {
        self.metrics.get(usize::from(series.metric))
    }

    /// The tag of a series; empty for a series of another table.
    pub fn tag(&self, series: &SeriesDef) -> String {
        self.metric(series).map(|m| tag::fill(&m.tag, &series.instance)).unwrap_or_default()
    }

    /// The name of a series' line on its chart; the title if its label is empty.
    pub fn label(&self, series: &SeriesDef) -> String {
        let Some(metric) = self.metric(series) else { return String::new() };
        if let Some(label) = tag::label(&metric.tag, &series.instance) {
            return tag::rank(label).map_or_else(|| label.to_string(), |rank| format!("rank {rank}"));
        }
        if metric.label == job::LABELS && metric.tag.starts_with(job::PREFIX) {
            return job::line(&metric.title, &series.instance);
        }
        let label = tag::fill(&metric.label, &series.instance);
        if label.is_empty() { metric.title.clone() } else { label }
    }

    /// Metric and instance of a tag, in any known spelling.
    ///
    /// # Errors
    /// [`TagError`] with the nearest tag when the catalog cannot have it.
    pub fn find(&self, text: &str) -> Result<ResolvedTag, TagError> {
        tag::find(&self.metrics, text)
    }

    /// The same without a search for the nearest tag: for files with many unknown tags.
    pub fn known(&self, text: &str) -> Option<ResolvedTag> {
        tag::known(&self.metrics, text)
    }
}

/// The W&B vocabulary: every family in order on screen. Collectors refer to the slices that they produce.
pub const VOCABULARY: &[&[&MetricDef]] = &[
    gpu::ROWS,
    gpu::MORE,
    gpu_health::ROWS,
    gpu_profile::ROWS,
    gpu_profile::PCIE,
    gpu_process::ROWS,
    gpu_parts::ROWS,
    gpu_pods::ROWS,
    gpu_amd::ROWS,
    gpu::AMD,
    gpu::INTEL,
    gpu::APPLE,
    gpu::DCGM,
    ipu::ROWS,
    tpu::DEVICE,
    tpu::LIBRARY,
    tpu::DISTRIBUTIONS,
    trainium::ROWS,
    cpu::ROWS,
    cpu::KERNEL_ROWS,
    cpu::TABLE_ROWS,
    cpu::PRESSURE_ROWS,
    memory::ROWS,
    memory::KERNEL_ROWS,
    disk::ROWS,
    disk::USAGE_ROWS,
    mount::ROWS,
    network::ROWS,
    infiniband::ROWS,
    apple::ROWS,
    jetson::ROWS,
    power::ROWS,
    kernel::ROWS,
    job::ROWS,
    process::ROWS,
    process::KERNEL_ROWS,
    process::RANK_ROWS,
    process::WANDB_ROWS,
    openmetrics::ROWS,
    wandb::ROWS,
];
