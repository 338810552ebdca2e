//! Answers about training jobs: the list of them, one with its charts, and the report of one.

use super::logs::LogRow;
use crate::finding::Finding;
use crate::json::{Number, Seconds};
use crate::run::{About, Rank, RunState};
use crate::unit::Unit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `GET /api/v1/runs`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunList {
    /// Newest first.
    pub runs: Vec<ListedRun>,
    /// Id of the last run of the list, where there are more: with `before=` it asks for the next ones.
    pub next: Option<String>,
    /// How many there are.
    #[serde(flatten)]
    pub totals: RunTotals,
}

/// How many runs there are, listed or not.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTotals {
    /// Of the states that were asked for.
    pub total: u64,
    /// Of each state, by its name, whatever states were asked for.
    pub states: BTreeMap<String, u64>,
}

/// A row of [`RunList`], and with its charts `GET /api/v1/runs/ID`: one object with the fields of its three parts. A program
/// may read each part of the object by itself; so the page does, which is lighter.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ListedRun {
    /// How it stands.
    #[serde(flatten)]
    pub row: RunRow,
    /// Its names.
    #[serde(flatten)]
    pub about: About,
    /// What it held and used; in a list only where sums are asked for.
    #[serde(flatten)]
    pub figures: RunFigures,
}

/// How a run stands.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// How it stands.
    pub state: RunState,
    /// The state in words, with its cause.
    pub sentence: String,
    /// The first of its processes that ended badly; null while it runs, and for one that finished.
    pub cause: Option<ListedCause>,
    /// When it began.
    pub began: Seconds,
    /// When it ended; null while it runs.
    pub ended: Option<Seconds>,
    /// Names of its machines.
    pub hosts: Vec<String>,
    /// Processes that are ranks; 0 where none has a number.
    pub ranks: u64,
    /// Its processes, first begun first. Left out of a list with sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<ListedProcess>>,
    /// Processes that are in no list: there are too many.
    pub further: u64,
    /// How long it ran, seconds; only where its samples have gone, and in a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Number>,
    /// The mean use of its GPUs over its life, in columns of equal width, percent; only in a list with sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spark: Option<Vec<Option<Number>>>,
    /// Its charts; only where one run is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<RunCurves>,
    /// How far it came, by its markers; left out where none names a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<RunSteps>,
    /// Versions of the drivers of its machines, each once; only where one run is asked for, or its samples have gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drivers: Option<Vec<String>>,
}

/// The process of a run that ended badly before all others.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedCause {
    /// Its machine.
    pub source: String,
    /// Its number there.
    pub pid: u32,
    /// Its rank; null where it has none.
    pub rank: Option<u32>,
    /// When it ended.
    pub t: Seconds,
    /// How it ended.
    pub state: RunState,
    /// The same in words.
    pub sentence: String,
    /// The line that it printed which says best why; only for those who may read what it printed, and only of one run.
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
    /// What it is called in its run; null for nothing.
    pub label: Option<String>,
    /// When it began.
    pub began: Seconds,
    /// When it ended; null while it runs.
    pub ended: Option<Seconds>,
    /// How it ended; null while it runs.
    pub state: Option<RunState>,
    /// The same in words.
    pub sentence: Option<String>,
    /// Its exit status; null while it runs, and where a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it, as `SIGKILL`.
    pub signal: Option<String>,
    /// Its place among the processes of the run; null where it has none.
    pub rank: Option<Rank>,
}

/// What a run held and used. What is not known is left out.
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
    /// Share of its time of which there are samples, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Number>,
    /// The most memory in use on one of its GPUs, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory_peak_bytes: Option<Number>,
    /// What its GPUs are called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_models: Vec<String>,
    /// What its GPU-hours and their energy cost, where the configuration has prices for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Number>,
    /// What the cost is in, as `EUR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// A part of the energy is power times time; left out where it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub energy_estimated: bool,
    /// Its GPUs are those that it was told to use: the driver has not said that it does. Left out where it has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gpus_assumed: bool,
}

/// How far a run came.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSteps {
    /// The newest step that a marker names.
    pub step: u64,
    /// Steps a second; null where there are too few markers.
    pub per_second: Option<Number>,
}

/// The charts of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunCurves {
    /// Where the lines begin.
    pub from: Seconds,
    /// Width of a column.
    pub step: Seconds,
    /// A chart for each measure that has a value.
    pub measures: Vec<RunMeasure>,
    /// Ranks that have no line: there are too many.
    pub left_out: u64,
    /// They are what was kept when it ended: its samples have gone. Left out where they have not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
}

/// One chart of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunMeasure {
    /// Its id: `gpu`, `gpu_memory`, `gpu_memory_share`, `gpu_power`, `gpu_clock`, `gpu_temp`, `cpu`, `memory` or `steps`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Unit of the values.
    pub unit: Unit,
    /// How the GPUs of a rank are one line: `mean`, `sum` or `max`.
    pub of_gpus: String,
    /// A line for each rank, in the order of machines and ranks; of what is a machine's a line for each machine.
    pub lines: Vec<MeasureLine>,
}

/// One line of a chart of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureLine {
    /// Name of its machine.
    pub source: String,
    /// Its rank; null for what is a machine's.
    pub rank: Option<u32>,
    /// What its rank is called; null for nothing.
    pub label: Option<String>,
    /// A value for each column, null where there is none.
    pub values: Vec<Option<Number>>,
}

/// `GET /api/v1/runs/ID/report?format=json`: one run, also when its samples have gone.
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
    /// The last lines that it printed; only for those who may read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogRow>,
    /// What was wrong with its machines meanwhile; the newest.
    pub findings: Vec<Finding>,
    /// What the job marked; the newest.
    pub markers: Vec<ReportMark>,
    /// A curve for each measure with samples.
    pub curves: Vec<ReportCurve>,
}

/// A curve of a report.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportCurve {
    /// Tag of its row in the catalog.
    pub tag: String,
    /// How many series it is of.
    pub series: u32,
    /// What stands in a point: `t`, `min`, `max`, `mean`.
    pub columns: [String; 4],
    /// Of each step with samples: its begin, and least, largest and mean of what the series had on average in it, in the unit
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
    /// What it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The training step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Which rank sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Name of its machine.
    pub source: String,
}
