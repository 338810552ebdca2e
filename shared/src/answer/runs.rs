//! Answers about training jobs: the list of them, one with its charts, and the report of one.

use super::logs::LogRow;
use crate::failure::FailureClass;
use crate::finding::Finding;
use crate::json::{Number, Seconds};
use crate::note::SavedNote;
use crate::run::{About, Rank, RunEdited, RunReserved, RunState};
use crate::unit::Unit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `GET /api/v1/runs`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<ListedRun>,
    /// Id of the last run of the list, if there are more; `before=` with this id requests the next ones.
    pub next: Option<String>,
    /// Numbers of runs.
    #[serde(flatten)]
    pub totals: RunTotals,
}

/// Numbers of runs, listed or not.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTotals {
    /// Runs in the requested states.
    pub total: u64,
    /// Runs by name of their state, whichever states were requested.
    pub states: BTreeMap<String, u64>,
    /// Failed runs by name of the class of their failure, in the requested states and of whichever class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
}

/// A row of [`RunList`], and with its charts `GET /api/v1/runs/ID`: one object with the fields of its three parts. A
/// program may read each part by itself; the page does so, because it is lighter.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListedRun {
    /// Its state.
    #[serde(flatten)]
    pub row: RunRow,
    /// Its names.
    #[serde(flatten)]
    pub about: About,
    /// Its usage; in a list only if sums are requested.
    #[serde(flatten)]
    pub figures: RunFigures,
}

/// State of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: RunState,
    /// The state in words, with its cause.
    pub sentence: String,
    /// The first of its processes that failed; null while it runs, and if it finished.
    pub cause: Option<ListedCause>,
    /// The class of its failure; left out while it runs, and if it finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
    /// When it began.
    pub began: Seconds,
    /// When it ended; null while it runs.
    pub ended: Option<Seconds>,
    /// Names of its machines.
    pub hosts: Vec<String>,
    /// Processes that are ranks; 0 if none has a number.
    pub ranks: u64,
    /// Resources that a scheduler reserved for it; left out if none are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<RunReserved>,
    /// Its processes, first begun first. Left out of a list with sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<ListedProcess>>,
    /// Processes that are not listed: there are too many.
    pub further: u64,
    /// Its duration in seconds; only if its samples are gone, and in a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Number>,
    /// The mean use of its GPUs over its life, in columns of equal width, percent; only in a list with sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spark: Option<Vec<Option<Number>>>,
    /// Its charts; only if one run is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<RunCurves>,
    /// Its progress, from its markers; left out if none names a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<RunSteps>,
    /// Versions of the drivers of its machines, each once; only if one run is requested, or its samples are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drivers: Option<Vec<String>>,
    /// The last change of its names by a person; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<RunEdited>,
    /// The caller's rights to it; only if one run is requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<RunRights>,
}

/// The caller's rights to a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRights {
    /// Change its names.
    pub change: bool,
    /// Delete it.
    pub delete: bool,
}

/// The process of a run that failed before all others.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedCause {
    /// Its machine.
    pub source: String,
    /// Its number there.
    pub pid: u32,
    /// Its rank; null if it has none.
    pub rank: Option<u32>,
    /// When it ended.
    pub t: Seconds,
    /// Its end state.
    pub state: RunState,
    /// The same in words.
    pub sentence: String,
    /// The printed line that explains it best; only for readers of its output, and only for one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

/// A process of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedProcess {
    /// Its machine.
    pub source: String,
    /// Its number there.
    pub pid: u32,
    /// Its label in the run; null if there is none.
    pub label: Option<String>,
    /// When it began.
    pub began: Seconds,
    /// When it ended; null while it runs.
    pub ended: Option<Seconds>,
    /// Its end state; null while it runs.
    pub state: Option<RunState>,
    /// The same in words.
    pub sentence: Option<String>,
    /// Its exit status; null while it runs, and if a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it, as `SIGKILL`.
    pub signal: Option<String>,
    /// Its place among the processes of the run; null if it has none.
    pub rank: Option<Rank>,
}

/// Usage of a run. Unknown values are left out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// Different GPUs that it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u64>,
    /// GPUs that it held, times the hours for which it held them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<Number>,
    /// Mean use of its GPUs while it was measured, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_utilization: Option<Number>,
    /// Share of the measured time in which they were busy for less than 5 %, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_share: Option<Number>,
    /// Energy of its GPUs, kWh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_kwh: Option<Number>,
    /// Share of its duration that has samples, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Number>,
    /// Maximum memory in use on one of its GPUs, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory_peak_bytes: Option<Number>,
    /// Mean CPU time of its processes, cores; only for one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_mean: Option<Number>,
    /// Maximum CPU time of its processes in one column of a chart, cores; only for one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_peak: Option<Number>,
    /// Maximum memory of its processes in one column of a chart, bytes; only for one run. A page that several processes
    /// share counts for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<Number>,
    /// Models of its GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_models: Vec<String>,
    /// Cost of its GPU-hours and their energy, if the configuration has prices for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Number>,
    /// Currency of the cost, such as `EUR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// A part of the energy is estimated as power times time; left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub energy_estimated: bool,
    /// Its GPUs are those assigned to it, without confirmation by the driver. Left out if the driver confirmed them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpus_assumed: bool,
}

/// Progress of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSteps {
    /// The newest step that a marker names.
    pub step: u64,
    /// Steps a second; null if there are too few markers.
    pub per_second: Option<Number>,
}

/// The charts of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCurves {
    /// Start of the lines.
    pub from: Seconds,
    /// Width of a column.
    pub step: Seconds,
    /// A chart for each measure that has a value.
    pub measures: Vec<RunMeasure>,
    /// Ranks without a line: there are too many.
    pub left_out: u64,
    /// The charts were stored when it ended, because its samples are gone. Left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// One chart of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMeasure {
    /// Its id: `gpu`, `gpu_memory`, `gpu_memory_share`, `gpu_power`, `gpu_clock`, `gpu_temp`, `rank_cpu`, `rank_memory`,
    /// `cpu`, `memory` or `steps`; for a value that the job logs, its tag without labels, as `job.loss`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Aggregation of the GPUs of a rank: `mean`, `sum` or `max`.
    pub of_gpus: String,
    /// A line for each rank, in the order of machines and ranks; for measures of a machine, a line for each machine.
    pub lines: Vec<MeasureLine>,
}

/// One line of a chart of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureLine {
    /// Name of its machine.
    pub source: String,
    /// Its rank; null for measures of a machine.
    pub rank: Option<u32>,
    /// Label of its rank; null if there is none.
    pub label: Option<String>,
    /// A value for each column, null if there is none.
    pub values: Vec<Option<Number>>,
}

/// `GET /api/v1/runs/ID/report?format=json`: one run, also if its samples are gone.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run, as it is listed.
    #[serde(flatten)]
    pub run: ListedRun,
    /// The newest step that a marker names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Steps a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_per_second: Option<Number>,
    /// Width of a point of a curve.
    pub step_seconds: Seconds,
    /// When the report was made.
    pub made: Seconds,
    /// The last lines that it printed; only for readers of its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogRow>,
    /// Findings on its machines in that time; the newest.
    pub findings: Vec<Finding>,
    /// Markers of the job; the newest.
    pub markers: Vec<ReportMark>,
    /// Notes of people about it; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SavedNote>,
    /// A curve for each measure with samples.
    pub curves: Vec<ReportCurve>,
}

/// A curve of a report.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportCurve {
    /// Tag of its row in the catalog.
    pub tag: String,
    /// Number of its series.
    pub series: u32,
    /// Values of a point: `t`, `min`, `max`, `mean`.
    pub columns: [String; 4],
    /// For each step with samples: its start, then minimum, maximum and mean of the average of the series, in the unit
    /// of the tag.
    pub points: Vec<(Seconds, f64, f64, f64)>,
}

/// A marker in a report.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportMark {
    /// When.
    pub t: Seconds,
    /// Its kind.
    pub kind: String,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The training step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Rank that sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Name of its machine.
    pub source: String,
}
