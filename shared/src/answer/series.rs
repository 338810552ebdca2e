//! Answers about metrics, machines, series, processes and checks, and about differences between spans.

use crate::catalog::{Kind, Range};
use crate::finding::Change;
use crate::json::{Number, Seconds};
use crate::unit::Unit;
use crate::wire::{Check, SourceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `GET /api/v1/changed`: series that differ between a span and the one before.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangedList {
    /// Start of the span.
    pub from: Seconds,
    /// Its end.
    pub to: Seconds,
    /// Start of the span before it, which ends at `from`.
    pub before: Seconds,
    /// Number of series that differ.
    pub total: u64,
    /// Those that moved most, as a multiple of their usual spread, first; at most 100.
    pub changed: Vec<Change>,
}

/// `GET /api/v1/now`: the figures on top of the page of a machine, as texts.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NowFigures {
    /// Name of the machine.
    pub source: String,
    /// Time of its newest sample; none before the first.
    pub t: Option<Seconds>,
    /// At most four, in the order of the page; none while the machine has no samples.
    pub tiles: Vec<NowTile>,
}

/// One figure of [`NowFigures`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NowTile {
    /// Id of the tile.
    pub id: String,
    /// Its title, as `GPU utilization`.
    pub title: String,
    /// Text beside the title, as `8 GPUs`; empty without one.
    pub corner: String,
    /// The number, in the unit of `symbol`; a dash if there is no value.
    pub number: String,
    /// Its unit, or its total, as `of 640 GiB`.
    pub symbol: String,
    /// The line below the number.
    pub note: String,
}

/// `GET /api/v1/catalog`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricList {
    /// In the order of the catalog.
    pub metrics: Vec<MetricRow>,
}

/// A row of the catalog; see [`MetricDef`](crate::catalog::MetricDef).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricRow {
    /// Its tag, as `gpu.{i}.temp`.
    pub tag: String,
    /// Its aliases in queries.
    pub aliases: Vec<String>,
    /// Its title.
    pub title: String,
    /// Its description, in a sentence.
    pub help: String,
    /// Unit of its values.
    pub unit: Unit,
    #[allow(missing_docs, reason = "see Kind")]
    pub kind: Kind,
    #[allow(missing_docs, reason = "see AxisRange")]
    pub range: AxisRange,
    /// Id of the chart that shows it.
    pub chart: String,
    /// Id of the section of that chart; null for a chart that no page has.
    pub section: Option<String>,
}

/// The range of a chart's axis.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AxisRange {
    /// From one value to another.
    Fixed(f64, f64),
    /// By the values.
    Free(FreeRange),
}

/// A range that follows the values.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreeRange {
    /// From zero to the largest.
    FromZero,
    /// From the least to the largest.
    Fit,
}

impl From<Range> for AxisRange {
    fn from(range: Range) -> Self {
        match range {
            Range::Fixed(from, to) => AxisRange::Fixed(from, to),
            Range::FromZero => AxisRange::Free(FreeRange::FromZero),
            Range::Fit => AxisRange::Free(FreeRange::Fit),
        }
    }
}

/// `GET /api/v1/doctor`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckList {
    /// Every family of every machine once.
    pub checks: Vec<CheckRow>,
}

/// A check of a collector of a machine.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRow {
    #[allow(missing_docs, reason = "see Check")]
    #[serde(flatten)]
    pub check: Check,
    /// Name of its machine.
    pub source: String,
}

/// `GET /api/v1/series`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesList {
    /// In the order of machines.
    pub series: Vec<SeriesRow>,
}

/// A series.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesRow {
    /// Its tag, as `gpu.0.temp`.
    pub tag: String,
    /// Name of its machine.
    pub source: String,
    /// Tag of its row in the catalog, as `gpu.{i}.temp`.
    pub metric: String,
    /// Known facts of its instance, by label.
    pub labels: BTreeMap<String, String>,
    /// Unit of its values.
    pub unit: Unit,
    #[allow(missing_docs, reason = "see Kind")]
    pub kind: Kind,
    /// When it had its first value.
    pub first: Seconds,
    /// When it had its last.
    pub last: Seconds,
}

/// `GET /api/v1/processes`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessList {
    /// When the table was read.
    pub t: Seconds,
    /// Processes on the machine, including those without a row.
    pub total: u32,
    /// False when only the largest users of CPU and memory of that instant are kept.
    pub whole: bool,
    /// Busiest first, then largest.
    pub processes: Vec<ProcessRow>,
}

/// A process. Values that cannot be read are left out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessRow {
    /// Its number.
    pub pid: u32,
    /// Its parent's number.
    pub parent: u32,
    /// Name of its user, or the user's number if it has no name.
    pub user: String,
    /// Its name in the kernel, at most 15 bytes.
    pub name: String,
    /// CPU since the table before, percent of one core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    /// Resident set, bytes.
    pub rss: u64,
    /// Threads.
    pub threads: u32,
    /// It is in the watched tree.
    pub watched: bool,
    /// Read from disks, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<f64>,
    /// Written to disks, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<f64>,
    /// Its arguments with secrets redacted, for readers who may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<String>,
    /// First twelve digits of its container's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Memory that it holds on GPUs, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory: Option<u64>,
    /// Share of a GPU's multiprocessors that it used, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_share: Option<f64>,
    /// Numbers of the GPUs that it uses, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Seconds>,
    /// State letter of the kernel: R runs, S sleeps, D waits for a disk or a driver, T is stopped, Z has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// `GET /api/v1/sources`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceList {
    /// By name.
    pub sources: Vec<SourceRow>,
}

/// A machine that reports, and the state of its link.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceRow {
    /// Its number on this server.
    pub id: SourceId,
    /// Its key, which never changes.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Time from one tick to the next.
    pub interval: Seconds,
    /// Facts that it reports, such as `os` and `gpu`.
    pub facts: BTreeMap<String, String>,
    /// Time of its newest tick; null if it has none.
    pub last: Option<Seconds>,
    /// Its state, one of [`WORDS`](crate::connection_state::ConnectionState::WORDS).
    pub state: String,
    /// Since when.
    pub since: Seconds,
    /// Labels of its join key and of admins.
    pub labels: BTreeMap<String, String>,
    /// Series that have values now.
    pub series: u64,
    /// Retention of its samples.
    pub retention: Seconds,
    /// Reason for the state in words, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Missing part of its history, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_s: Option<Seconds>,
    /// Seconds of its history that arrive per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_rate: Option<Number>,
    /// Delay between the stamp and the arrival of its newest tick, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_s: Option<Seconds>,
    /// Lead of its clock over ours, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew_s: Option<Seconds>,
    /// Version of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its host name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Amount of its data that was dropped or delayed, by cause; left out if there is none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
}

/// `GET /api/v1/query`: stored samples.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryAnswer {
    /// Start of the span.
    pub from: Seconds,
    /// Its end.
    pub to: Seconds,
    /// `rate` if the increase of counters per second was requested; left out if not.
    #[serde(default, rename = "fn", skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Spans whose samples are still being fetched; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<(Seconds, Seconds)>,
    /// Those that have a sample in the span, in the order of machines.
    pub series: Vec<QueriedSeries>,
}

/// Why `GET /api/v1/query` is refused with 413: the answer would be too large.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooLarge {
    /// One sentence that says what to do.
    pub error: String,
    /// Series that fit the request.
    pub series: u64,
    /// Values that the answer would hold, about.
    pub samples: i64,
    /// Values that an answer may hold.
    pub limit: i64,
    /// A step with which it would fit, seconds.
    pub step: i64,
}

/// A series of a [`QueryAnswer`]. It has `points`, or `buckets` if a step was requested.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueriedSeries {
    /// Its tag, as `gpu.0.temp`.
    pub tag: String,
    /// Name of its machine.
    pub source: String,
    /// Unit of its values.
    pub unit: Unit,
    #[allow(missing_docs, reason = "see Kind")]
    pub kind: Kind,
    /// Time and value of each sample, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(Seconds, Number)>,
    /// Steps with samples, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<QueriedBucket>,
}

/// The samples of a step.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueriedBucket {
    /// Its start.
    pub t: Seconds,
    /// The least value.
    pub min: Number,
    /// The largest.
    pub max: Number,
    /// The mean.
    pub mean: Number,
    /// The last.
    pub last: Number,
    /// Number of samples.
    pub count: u32,
}
