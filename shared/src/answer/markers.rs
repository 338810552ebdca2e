//! Answers about markers, Jupyter kernels, and runs of their cells.

use crate::json::{Number, Seconds};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};

/// `POST /api/v1/markers`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkersTaken {
    /// Markers that are stored now.
    pub taken: u64,
    /// Markers that were dropped: there were too many.
    pub dropped: u64,
}

/// `POST /api/v1/values`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValuesTaken {
    /// Values that are in the next tick.
    pub taken: u64,
    /// Values that were dropped: there were too many.
    pub dropped: u64,
}

/// `GET /api/v1/markers`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MarkerList {
    /// Machine by machine, the oldest first.
    pub markers: Vec<Marker>,
    /// Markers that were dropped on arrival: there were too many.
    pub dropped: u64,
}

/// Phase of a cell.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellPhase {
    /// It begins.
    Start,
    /// It has ended.
    End,
}

/// Reporter of a cell, other than its kernel.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkerBy {
    /// JupyterLab, from its kernel's answers.
    Lab,
}

/// A marker, as stored in the body of a record (the record has its time and machine) and as `GET /api/v1/markers`
/// returns it. Unknown values are left out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marker {
    /// Its time; only in answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t: Option<Seconds>,
    /// Name of its machine; only in answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `note`, `epoch`, `step`, `checkpoint`, `eval`, `cell` or `preempting`.
    pub kind: String,
    /// The kernel's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Id of the training job to which it belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Rank of that job that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// PID of the process that sent it, if that process belongs to no kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Name of that process's program, from the kernel of the operating system (`/proc/PID/comm`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Name of the user of that process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The person or key whose request to a hub it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<String>,
    /// Rises with each marker of a kernel; markers with the same number and time are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Its end, Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<f64>,
    /// Start or end, for a cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<CellPhase>,
    /// Reporter of a cell; None: its kernel itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<MarkerBy>,
    /// The cell's id in the notebook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The number in its brackets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Whether a cell ended without an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The name of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A line of the cell, if its user wants it stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Name given by the sender; markers with the same name are the same. In answers it is always set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// CPU time of the kernel since it began, seconds, read when the marker came; likewise the following fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Memory of the kernel, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Memory limit of the kernel and the processes that share it, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Cores that it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<f64>,
    /// Its time, milliseconds since the Unix epoch: that of its record.
    #[serde(skip)]
    pub begun: i64,
}

impl Marker {
    /// The same marker with an id, if it has only a number. A restarted kernel counts from 1 again, so the id includes
    /// the time, in milliseconds since the Unix epoch.
    pub fn stamped(mut self, t: Option<i64>) -> Marker {
        self.id = self.id.or_else(|| Some(format!("{}-{}", self.seq?, t.unwrap_or_default())));
        self
    }

    /// Owner of the marker: a kernel, a training job, or neither. Processes that are neither share one limit: a script that
    /// is started again and again must not get a new one each time.
    pub fn whose(&self) -> String {
        match (&self.kernel, &self.run) {
            (Some(kernel), _) => kernel.clone(),
            (None, Some(run)) => format!("run {run}"),
            (None, None) => String::new(),
        }
    }

    /// Key by which repeated markers are detected: two people may choose the same ID.
    pub fn key(&self) -> Option<u64> {
        let id = self.id.as_ref()?;
        let mut hasher = DefaultHasher::new();
        (id, &self.sent_by).hash(&mut hasher);
        Some(hasher.finish())
    }

    /// The cell in words: `[7]`.
    pub fn cell_name(&self) -> String {
        self.n.map_or_else(|| "[ ]".into(), |n| format!("[{n}]"))
    }
}

/// `GET /api/v1/kernels`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelList {
    /// Those that run, and the last that ended, machine by machine.
    pub kernels: Vec<KernelRow>,
    /// Running kernels that are not watched: there are too many.
    pub left_out: u64,
}

/// A Jupyter kernel as it was seen last.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRow {
    /// Name of its machine.
    pub source: String,
    /// Jupyter's id of it, a UUID.
    pub id: String,
    /// Number of its process.
    pub pid: u32,
    /// Path of the notebook when the kernel began, as Jupyter reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Seconds>,
    #[allow(missing_docs, reason = "see KernelPhase")]
    pub state: KernelPhase,
    /// When it was first missing; left out while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Seconds>,
    /// Its end, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// A warning, in a sentence: its memory is nearly full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Number of processes: its own and all below it.
    pub processes: u64,
    /// Their memory, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Memory used by them and all others that share the limit, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Memory limit: that of the cgroup, else the memory of the machine, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Cores that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Number>,
    /// The cell that runs now, if the kernel reports its cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<BusyCell>,
}

/// State of a kernel.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelPhase {
    /// It runs.
    #[default]
    Running,
    /// It has ended.
    Ended,
}

/// The cell that a kernel runs.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BusyCell {
    /// The cell's id in the notebook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The number in its brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// When it began.
    pub from: Seconds,
}

/// `GET /api/v1/cells`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellList {
    /// Newest first.
    pub cells: Vec<CellRow>,
}

/// One run of a cell.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellRow {
    /// Name of its machine.
    pub source: String,
    /// The kernel's id.
    pub kernel: String,
    /// The cell's id in the notebook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The number in its brackets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// When it began.
    pub from: Seconds,
    /// When it ended; left out while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Seconds>,
    /// Its duration, or its duration until now, seconds.
    pub seconds: Number,
    /// Whether it ended without an error; left out while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The name of its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A line of it, if its user wants it stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// CPU time that it used, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<Number>,
    /// Cores that it kept busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Number>,
    /// Cores that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores_of: Option<Number>,
    /// Memory of its kernel; left out if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<CellMemory>,
    /// GPUs that its kernel used; if unknown, the GPUs that were busy.
    pub gpus: Vec<CellGpu>,
    /// Summary of its work, in one line.
    pub line: String,
    /// A finding, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// Memory of the kernel of a cell, bytes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellMemory {
    /// Before the cell began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Maximum while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// After it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The peak may have been higher: there are few samples. Left out if there are enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// A GPU during a cell.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellGpu {
    /// Its number.
    pub gpu: u32,
    /// Memory in use before the cell began, by any process, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// Maximum while it ran, by any process, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// Memory in use after it ended, by any process, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Memory that it has, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Its mean use, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Time in which it was idle, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<f64>,
    /// Maximum memory of the kernel on it, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<u64>,
}
