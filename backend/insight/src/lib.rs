//! Findings from samples: what is wrong, on which machine and device, since when, and how it is known.
//!
//! The crate is pure: it reads no clock and does no I/O, and the same samples give the same findings, byte by byte. So a
//! server, a replay, `watchglass findings FILE` and a file that is dropped on a page run the same code.

pub mod recording;

use shared::catalog::Metric;
use shared::finding::{Finding, RuleState};
use shared::processes::ProcessTable;
use shared::series::SeriesId;

/// What people may set: times, and what is off; no thresholds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long GPUs are held without work before it is told, seconds.
    pub idle_after: i64,
    /// How long a group waits in one kernel before it is told, seconds.
    pub hang_after: i64,
    /// Kinds or rules that are not told, as `idle` or `hang.idle`.
    pub silence: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { idle_after: 15 * 60, hang_after: 60, silence: Vec::new() }
    }
}

/// A machine, by the number that its caller gives it.
pub type Source = u32;

/// A process of a job that is known, with the GPUs that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The machine.
    pub source: Source,
    /// Number of the process there.
    pub pid: u32,
    /// Numbers of its GPUs there.
    pub gpus: Vec<u32>,
}

/// A job that runs over machines: its GPUs are one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its processes.
    pub ranks: Vec<Rank>,
}

/// All machines that are looked at together.
#[derive(Debug, Default)]
pub struct Insight {}

impl Insight {
    /// Nothing is known yet.
    pub fn new(_settings: Settings) -> Self {
        Insight {}
    }

    /// A machine that is there, with its name as people know it and its sampling interval, milliseconds. The same again
    /// renames it.
    pub fn source(&mut self, _source: Source, _name: &str, _interval_ms: i64) {}

    /// A machine that is no longer there: it was removed, and so is all that is known of it.
    pub fn remove(&mut self, _source: Source) {}

    /// What a series of a machine is, before its first sample. The same number again is another series from now on.
    pub fn series(&mut self, _source: Source, _id: SeriesId, _metric: &Metric, _instance: &str) {}

    /// A tick of a machine: the samples that it has, at `t`, milliseconds since the Unix epoch. Series that it does not
    /// name were absent. Ticks of one machine come in order; those of several may come in any order within a second.
    pub fn tick(&mut self, _source: Source, _t: i64, _samples: impl IntoIterator<Item = (SeriesId, f64)>) {}

    /// The process table of a machine, each time that there is a newer one.
    pub fn processes(&mut self, _source: Source, _table: &ProcessTable) {}

    /// The jobs that run now, all of them; from then on those that are not named have ended.
    pub fn jobs(&mut self, _jobs: &[Job]) {}

    /// The machine has said goodbye at `t` (milliseconds): its silence from then on is no loss.
    pub fn goodbye(&mut self, _source: Source, _t: i64) {}

    /// A hub follows the machines: one that falls silent is lost. Alone, or in a file, silence is the end.
    pub fn follow(&mut self, _on: bool) {}

    /// What a collector of a machine said of a device that it can no longer read, as `GPU is lost`, at `t` (milliseconds).
    pub fn said(&mut self, _source: Source, _t: i64, _collector: &str, _reason: &str) {}

    /// Looks at everything up to `now`, milliseconds since the Unix epoch, second by second of data, and hands out each
    /// finding that was raised, changed or ended, in that order in time. What is later than `now` waits for the next call.
    pub fn judge(&mut self, _now: i64, _out: &mut Vec<Finding>) {}

    /// The findings that are open, the most severe first, then causes before consequences, then the oldest.
    pub fn open(&self) -> Vec<&Finding> {
        Vec::new()
    }

    /// Findings that were left out because there were too many.
    pub fn left_out(&self) -> u64 {
        0
    }

    /// What each rule can see on the machines that are here, in the order of the rules.
    pub fn rules(&self) -> Vec<RuleState> {
        Vec::new()
    }
}
