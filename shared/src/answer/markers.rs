//! Answers about what was marked, and about Jupyter kernels and runs of their cells.

use crate::json::{Number, Seconds};
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hash, Hasher};

/// `POST /api/v1/markers`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkersTaken {
    /// Markers that are kept now.
    pub taken: u64,
    /// Markers that were left out: too many came.
    pub dropped: u64,
}

/// `GET /api/v1/markers`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MarkerList {
    /// Machine by machine, the oldest first.
    pub markers: Vec<Marker>,
    /// Markers that were left out when they came: too many came.
    pub dropped: u64,
}

/// Whether a cell begins or ends.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellPhase {
    /// It begins.
    Start,
    /// It has ended.
    End,
}

/// Who tells of a cell in place of its kernel.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkerBy {
    /// JupyterLab, by what its kernel answers.
    Lab,
}

/// A marker: as it is kept, in the body of a record, which has its time and its machine itself, and as `GET /api/v1/markers`
/// answers. What is not known is left out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marker {
    /// When it was; in answers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub t: Option<Seconds>,
    /// Name of its machine; in answers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// `note`, `epoch`, `step`, `checkpoint`, `eval`, `cell` or `preempting`.
    pub kind: String,
    /// The kernel's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Id of the training job that it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Which rank of that job sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// Rises with each marker of a kernel; the same number and time again is the same marker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// When it was over, Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<f64>,
    /// Of a cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<CellPhase>,
    /// Who tells of a cell; nobody is its kernel itself.
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
    /// A line of the cell, where its user wants it kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// A name that who sends it gives it; the same again is the same marker. In answers it has one always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// CPU time of the kernel since it began, seconds, read when the marker came; likewise what follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// What the kernel held, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// What it and its like may hold, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Cores that it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<f64>,
    /// When it was, milliseconds since the Unix epoch: that of its record.
    #[serde(skip)]
    pub begun: i64,
}

impl Marker {
    /// The same with an id, where it has none but a number: a kernel that is started again counts from 1 anew, so the time, in
    /// milliseconds since the Unix epoch, belongs to the number.
    pub fn stamped(mut self, t: Option<i64>) -> Marker {
        self.id = self.id.or_else(|| Some(format!("{}-{}", self.seq?, t.unwrap_or_default())));
        self
    }

    /// Of whose markers it is one: of a kernel's, of a training job's, or of those of nobody.
    pub fn whose(&self) -> String {
        match (&self.kernel, &self.run) {
            (Some(kernel), _) => kernel.clone(),
            (None, Some(run)) => format!("run {run}"),
            (None, None) => String::new(),
        }
    }

    /// By what it is told whether it came before.
    pub fn key(&self) -> Option<u64> {
        let id = self.id.as_ref()?;
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
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
    /// Kernels that run and are not watched: there are too many.
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
    /// Path of the notebook when the kernel began, as Jupyter told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Seconds>,
    #[allow(missing_docs, reason = "see KernelStanding")]
    pub state: KernelStanding,
    /// When it was missed first; left out while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Seconds>,
    /// How it ended, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// What there is to warn of, in a sentence: its memory is nearly full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Its process and all below it.
    pub processes: u64,
    /// What they hold, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// What they and all others that share the limit use, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// What may be used: the cgroup's limit, else the memory of the machine, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Cores that it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Number>,
    /// The cell that runs now, where the kernel tells of its cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<BusyCell>,
}

/// Whether a kernel is there.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelStanding {
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
    /// How long it took, or has taken by now, seconds.
    pub seconds: Number,
    /// Whether it ended well; left out while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// The name of its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A line of it, where its user wants it kept.
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
    /// What its kernel held; left out where nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<CellMemory>,
    /// GPUs that its kernel was on; where that is not known those that worked.
    pub gpus: Vec<CellGpu>,
    /// What it did, in one line.
    pub line: String,
    /// What is worth a look, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// What the kernel of a cell held, bytes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellMemory {
    /// Before the cell began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// The most meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// When it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// What it may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The peak may have been higher: there are few samples. Left out where there are enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// A GPU during a cell.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellGpu {
    /// Its number.
    pub gpu: u32,
    /// Memory in use before the cell began, by whomever, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    /// The most meanwhile, by whomever, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<u64>,
    /// When it had ended, by whomever, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Memory that it has, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Its mean use, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// How long it waited, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<f64>,
    /// What the kernel held of it at most, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<u64>,
}
