//! Training jobs, as received from the server. [`list`] is the list of them with its [`columns`], [`lanes`] those of a
//! fleet over time. [`side`] compares several, with the rows of [`differs`]. [`words`] has their texts.

pub mod columns;
pub mod differs;
pub mod lanes;
pub mod list;
mod read;
pub mod side;
pub mod words;

use crate::curves::CurveChart;
use shared::answer::runs::RunRights;
use shared::failure::FailureClass;
use shared::run::{RunReserved, RunState};

/// Resources that a run held and used; None if unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Number of distinct GPUs that it held.
    pub gpus: Option<f64>,
    /// GPU-hours held.
    pub gpu_hours: Option<f64>,
    /// Mean use of its GPUs while it was measured, percent.
    pub utilization: Option<f64>,
    /// Share of the measured time in which its GPUs were nearly idle, 0 to 1.
    pub idle: Option<f64>,
    /// Energy of its GPUs, kWh.
    pub energy_kwh: Option<f64>,
    /// Share of the held time that was measured, 0 to 1.
    pub coverage: Option<f64>,
    /// Peak memory in use on one of its GPUs, bytes.
    pub memory_peak: Option<f64>,
    /// Mean CPU time of its processes, cores.
    pub cores_mean: Option<f64>,
    /// Peak of the same, cores.
    pub cores_peak: Option<f64>,
    /// Peak memory of its processes, bytes.
    pub host_memory_peak: Option<f64>,
    /// Resources that a scheduler reserved for it; all absent if none are known.
    pub reserved: RunReserved,
    /// Cost of GPU-hours and energy, if the server has prices.
    pub cost: Option<f64>,
    /// Currency of the cost.
    pub currency: String,
    /// Whether a part of the energy is estimated as power times time.
    pub estimated: bool,
    /// Whether the assignment of GPUs is assumed, and not reported by the driver.
    pub assumed: bool,
}

/// A run in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its name, else its program, else its id.
    pub name: String,
    /// Its project; empty for none, as are the following fields.
    pub project: String,
    /// Its group.
    pub group: String,
    /// Its type.
    pub job_type: String,
    /// Its user.
    pub user: String,
    /// Its state.
    pub state: RunState,
    /// Its state as a sentence.
    pub sentence: String,
    /// The class of its failure, if it failed.
    pub failure: Option<FailureClass>,
    /// Start, ms since the epoch.
    pub began: i64,
    /// End, ms since the epoch; None while it runs.
    pub ended: Option<i64>,
    /// Names of its machines.
    pub hosts: Vec<String>,
    /// Its program.
    pub program: String,
    /// Names and values of tags.
    pub tags: Vec<(String, String)>,
    /// Models of its GPUs.
    pub gpu_models: Vec<String>,
    /// Number of its ranks; 0 if it reports none.
    pub ranks: usize,
    /// Resources that it held and used.
    pub figures: Figures,
    /// Use of its GPUs over its life, percent.
    pub spark: Vec<Option<f64>>,
}

/// A process of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Name of its machine.
    pub source: String,
    /// Its PID there.
    pub pid: u32,
    /// Its rank, if it has one.
    pub rank: Option<u32>,
    /// Label from its code; empty for none.
    pub label: String,
    /// The GPUs that it holds, as text.
    pub gpus: String,
    /// Its state.
    pub state: RunState,
    /// Its state as a sentence.
    pub sentence: String,
    /// Start, ms since the epoch.
    pub began: i64,
    /// End, ms since the epoch; None while it runs.
    pub ended: Option<i64>,
    /// Whether it is the first one that failed.
    pub is_cause: bool,
    /// Whether its launcher ended it after the first failure: a consequence, no crash of its own.
    pub is_ended_after: bool,
}

/// Time after the first failure within which a launcher kills processes that do not end on SIGTERM, ms. torchrun and
/// Slurm wait 30 s by default.
const LAUNCHER_KILLS_WITHIN_MS: i64 = 90_000;

impl Ranked {
    /// Whether its launcher ended it after a failure at `failed`, ms since the epoch: by SIGTERM, or soon after by
    /// SIGKILL.
    fn was_ended_after(&self, failed: i64) -> bool {
        let Some(late) = self.ended.map(|ended| ended - failed).filter(|late| *late >= 0) else { return false };
        let has = |signal: &str| self.sentence.contains(signal);
        self.state == RunState::Crashed && (has("SIGTERM") || has("SIGKILL") && late <= LAUNCHER_KILLS_WITHIN_MS)
    }

    /// Its state in words, and the glyph of its shape: an end by the launcher is no failure of the rank.
    pub fn describe(&self) -> (String, char) {
        let signal = self.sentence.find('(').map(|at| format!(" {}", &self.sentence[at..])).unwrap_or_default();
        match self.is_ended_after {
            true => (format!("ended after the failure{signal}"), RunState::Ended.shape()),
            false if self.sentence.is_empty() => (self.state.name().to_string(), self.state.shape()),
            false => (self.sentence.clone(), self.state.shape()),
        }
    }

    /// The state by which it is colored.
    pub fn shown_state(&self) -> RunState {
        if self.is_ended_after { RunState::Ended } else { self.state }
    }
}

/// One chart of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Aggregation of a rank's GPUs into one line; empty for measures of a machine.
    pub of_gpus: String,
    /// Its lines.
    pub chart: CurveChart,
}

/// All of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// The run as in the list.
    pub run: Listed,
    /// Its processes.
    pub processes: Vec<Ranked>,
    /// The output line that best explains the end, for users who may read the output.
    pub words: Option<String>,
    /// Versions of the drivers of its machines.
    pub drivers: Vec<String>,
    /// Whether its curves are those stored at its end, because its samples have expired.
    pub is_kept: bool,
    /// The newest step reported by a marker.
    pub step: Option<f64>,
    /// Steps per second.
    pub per_second: Option<f64>,
    /// Number of processes missing in the list, and of ranks without a line.
    pub left_out: usize,
    /// Its charts.
    pub measures: Vec<Measured>,
    /// Its own name; empty for none.
    pub given_name: String,
    /// Notes of people; empty for none.
    pub notes: String,
    /// Version of its names, which rises with each change; 0 if nobody has changed them.
    pub version: u64,
    /// The viewer's rights to it.
    pub may: RunRights,
}

/// Id of the chart of steps, which belong to a job and not to a rank.
pub const STEPS: &str = "steps";

/// Time after the end of a run in which more is told about it, in ms: its last output, the rank that fell first, and the
/// class of a failure, which is read from the output.
const SETTLES_MS: i64 = 60_000;

/// Whether nothing new is expected at `now` of a run that ended then, ms since the epoch.
fn is_settled(ended: Option<i64>, now: i64) -> bool {
    ended.is_some_and(|ended| now - ended > SETTLES_MS)
}

impl Listed {
    /// The class of its failure in words; empty if it did not fail.
    pub fn failure_words(&self) -> &'static str {
        self.failure.map_or("", FailureClass::words)
    }

    /// Whether it ended so long before `now` (ms since the epoch) that nothing new is expected of it.
    pub fn is_settled(&self, now: i64) -> bool {
        is_settled(self.ended, now)
    }

    /// Duration, in total or until `now`, ms.
    pub fn lasted(&self, now: i64) -> i64 {
        (self.ended.unwrap_or(now) - self.began).max(0)
    }
}

impl Ranked {
    /// Its name within its run.
    pub fn name(&self) -> String {
        match (self.rank, self.label.is_empty()) {
            (_, false) => self.label.clone(),
            (Some(rank), true) => format!("rank {rank}"),
            (None, true) => format!("process {}", self.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_followed_for_a_minute_after_its_end() {
        assert!(!is_settled(None, 1_000_000), "it runs");
        assert!(!is_settled(Some(1_000_000), 1_002_000) && !is_settled(Some(1_000_000), 1_060_000));
        assert!(is_settled(Some(1_000_000), 1_060_001));
    }

    #[test]
    fn a_rank_that_its_launcher_ended_after_the_failure_has_not_crashed() {
        let rank = |state: RunState, sentence: &str, ended: Option<i64>| Ranked {
            source: "node-1".into(),
            pid: 1,
            rank: Some(0),
            label: String::new(),
            gpus: String::new(),
            state,
            sentence: sentence.into(),
            began: 0,
            ended,
            is_cause: false,
            is_ended_after: false,
        };
        let crashed = |sentence: &str, ended| rank(RunState::Crashed, sentence, Some(ended)).was_ended_after(10_000);
        assert!(crashed("crashed (SIGTERM)", 10_000) && crashed("crashed (SIGKILL)", 41_000));
        assert!(!crashed("crashed (SIGTERM)", 9_999), "it fell before");
        assert!(!crashed("crashed (SIGSEGV)", 11_000) && !crashed("crashed (SIGKILL)", 200_000));
        assert!(!rank(RunState::OutOfMemory, "out of memory (SIGKILL)", Some(11_000)).was_ended_after(10_000));
        assert!(!rank(RunState::Running, "", None).was_ended_after(10_000));
        let mut one = rank(RunState::Crashed, "crashed (SIGTERM)", Some(11_000));
        assert_eq!((one.describe().0.as_str(), one.shown_state()), ("crashed (SIGTERM)", RunState::Crashed));
        one.is_ended_after = true;
        assert_eq!(one.describe(), ("ended after the failure (SIGTERM)".into(), '◌'));
        assert_eq!(one.shown_state(), RunState::Ended);
    }
}
