//! Training jobs, as the server says them. [`list`] is the list of them with its [`columns`], [`lanes`] those of a fleet over
//! time; [`side`] is several beside each other, with what [`differs`]. [`words`] is how they are said.

pub mod columns;
pub mod differs;
pub mod lanes;
pub mod list;
mod read;
pub mod side;
pub mod words;

use crate::curves::CurveChart;
use shared::run::RunState;

/// What a run held and used; None is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Number of different GPUs that it held.
    pub gpus: Option<f64>,
    /// GPUs times the hours that it held them.
    pub gpu_hours: Option<f64>,
    /// Mean use of its GPUs while it was measured, percent.
    pub utilization: Option<f64>,
    /// Share of the measured time in which its GPUs hardly worked, 0 to 1.
    pub idle: Option<f64>,
    /// Energy of its GPUs, kWh.
    pub energy_kwh: Option<f64>,
    /// Share of the held time that was measured, 0 to 1.
    pub coverage: Option<f64>,
    /// The most memory in use on one of its GPUs, bytes.
    pub memory_peak: Option<f64>,
    /// What GPU-hours and energy cost, where the server has prices.
    pub cost: Option<f64>,
    /// In what the cost is.
    pub currency: String,
    /// A part of the energy is power times time.
    pub estimated: bool,
    /// Which GPUs it holds is not the driver's word.
    pub assumed: bool,
}

/// A run, as it is listed.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its name, else its program, else its id.
    pub name: String,
    /// Its project; empty for none, like the others that follow.
    pub project: String,
    /// Its group.
    pub group: String,
    /// Its type.
    pub job_type: String,
    /// Whose it is.
    pub user: String,
    /// How it stands.
    pub state: RunState,
    /// The same in a sentence.
    pub sentence: String,
    /// Its begin, ms since the epoch.
    pub began: i64,
    /// Its end, ms since the epoch; None while it runs.
    pub ended: Option<i64>,
    /// Names of its machines.
    pub hosts: Vec<String>,
    /// What it runs.
    pub program: String,
    /// Names and values, each as one text.
    pub tags: Vec<(String, String)>,
    /// What its GPUs are called.
    pub gpu_models: Vec<String>,
    /// Number of its ranks; 0 where it tells none.
    pub ranks: usize,
    /// What it held and used.
    pub figures: Figures,
    /// Use of its GPUs over its life, percent.
    pub spark: Vec<Option<f64>>,
}

/// A process of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Name of its machine.
    pub source: String,
    /// Its number there.
    pub pid: u32,
    /// Its rank, where it has one.
    pub rank: Option<u32>,
    /// What its code calls it; empty for nothing.
    pub label: String,
    /// The GPUs that it holds, as text.
    pub gpus: String,
    /// How it stands.
    pub state: RunState,
    /// The same in a sentence.
    pub sentence: String,
    /// Its begin, ms since the epoch.
    pub began: i64,
    /// Its end, ms since the epoch; None while it runs.
    pub ended: Option<i64>,
    /// It is the first that ended badly.
    pub is_cause: bool,
}

/// One chart of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How the GPUs of a rank are one line; empty for what is a machine's.
    pub of_gpus: String,
    /// Its lines.
    pub chart: CurveChart,
}

/// All of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// The run, as it is listed.
    pub run: Listed,
    /// Its processes.
    pub processes: Vec<Ranked>,
    /// The line that says best why it ended, for who may read what it printed.
    pub words: Option<String>,
    /// Versions of the drivers of its machines.
    pub drivers: Vec<String>,
    /// Its curves are those that were kept when it ended: its samples have gone.
    pub is_kept: bool,
    /// The newest step that a marker names.
    pub step: Option<f64>,
    /// Steps a second.
    pub per_second: Option<f64>,
    /// Processes that are not in the list, and ranks without a line.
    pub left_out: usize,
    /// Its charts.
    pub measures: Vec<Measured>,
}

/// Id of the chart of steps, which are a job's and no rank's.
pub const STEPS: &str = "steps";

impl Listed {
    /// How long it lasted, or lasts at `now`, ms.
    pub fn lasted(&self, now: i64) -> i64 {
        (self.ended.unwrap_or(now) - self.began).max(0)
    }
}

impl Ranked {
    /// What it is called in its run.
    pub fn name(&self) -> String {
        match (self.rank, self.label.is_empty()) {
            (_, false) => self.label.clone(),
            (Some(rank), true) => format!("rank {rank}"),
            (None, true) => format!("process {}", self.pid),
        }
    }
}
