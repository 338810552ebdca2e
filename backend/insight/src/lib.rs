//! Findings from samples: the fault, its machine and device, its start, and its evidence.
//!
//! The crate is pure: it reads no clock and does no I/O, and the same samples give the same findings, byte by byte. So
//! a server, a replay, `watchglass findings FILE` and a file that is dropped on a page run the same code.

mod awaited;
mod awaited_sum;
mod away;
mod device;
mod disk;
mod ecc;
mod ended;
mod ending;
mod fabric;
mod filling;
mod finding;
mod group;
mod hang;
mod hold;
mod holder;
mod host;
mod idle;
mod key;
mod kin;
mod levels;
mod link;
mod logged;
mod lost;
mod memory;
mod next;
mod pace;
mod phase;
mod port;
pub mod recording;
mod recovery;
mod scene;
mod signal;
mod silent;
mod starvation;
mod straggler;
mod tenant;
mod throttle;
mod uneven;
mod unused;
mod words;

#[cfg(test)]
mod tests;

use finding::Ledger;
use group::Group;
use host::Host;
use levels::NEVER;
use scene::Scene;
use shared::catalog::Metric;
use shared::finding::{Finding, RuleState};
use shared::processes::ProcessTable;
use shared::series::SeriesId;
use std::collections::BTreeMap;

/// User settings: times and disabled rules; no thresholds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Seconds that GPUs are held without work before a finding.
    pub idle_after: i64,
    /// Seconds that a group waits in one kernel before a finding.
    pub hang_after: i64,
    /// Disabled kinds or rules, as `idle` or `hang.idle`.
    pub silence: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { idle_after: 15 * 60, hang_after: 60, silence: Vec::new() }
    }
}

/// A machine, by the number that its caller assigns.
pub type Source = u32;

/// A process of a known job, with its GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The machine.
    pub source: Source,
    /// PID on the machine.
    pub pid: u32,
    /// Indexes of its GPUs on the machine.
    pub gpus: Vec<u32>,
    /// Instance of the series that it logs, as `{rank="3",run="abc"}`; empty if unknown.
    pub logs: String,
}

/// GPUs that a scheduler reserved for a job on one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// The machine.
    pub source: Source,
    /// Their indexes on the machine.
    pub gpus: Vec<u32>,
}

/// A job across machines: its GPUs are one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its processes.
    pub ranks: Vec<Rank>,
    /// GPUs that are reserved for it, used or not.
    pub reserved: Vec<Reserved>,
    /// Its user; empty if unknown.
    pub owner: String,
}

/// All machines, by number.
pub(crate) type Hosts = BTreeMap<Source, Host>;

/// Time after the last sample in which missing samples are still judged, seconds.
const AFTERWARDS: i64 = 1000;
/// Interval of judging missing samples when no samples come, seconds.
const JUDGE_INTERVAL_S: i64 = 10;
/// Interval of noting which pods hold GPUs, seconds.
const PODS_INTERVAL_S: i64 = 10;
/// A clock that goes back by more than this resets all state, seconds.
const MAX_CLOCK_STEP_S: i64 = 120;

/// Checks whether a rule has its inputs on the current machines.
type Sees = fn(&Hosts) -> scene::Sight;

/// One detector: a file.
struct DetectorEntry {
    /// Its rules, each with the check of its inputs on the current machines.
    rules: &'static [(&'static str, Sees)],
    judge: fn(&mut Scene),
}

/// Order of evaluation: causes come before consequences.
static DETECTORS: &[&DetectorEntry] = &[
    &lost::DETECTOR,
    &silent::DETECTOR,
    &ecc::DETECTOR,
    &recovery::DETECTOR,
    &away::DETECTOR,
    &hang::DETECTOR,
    &throttle::DETECTOR,
    &link::DETECTOR,
    &port::DETECTOR,
    &fabric::DETECTOR,
    // Runs before detectors that would clear the state it reads.
    &ended::DETECTOR,
    &memory::DETECTOR,
    &tenant::DETECTOR,
    &straggler::DETECTOR,
    &uneven::DETECTOR,
    &starvation::DETECTOR,
    &idle::DETECTOR,
    &unused::DETECTOR,
    &disk::DETECTOR,
];

/// All machines that are judged together.
#[derive(Debug, Default)]
pub struct Insight {
    settings: Settings,
    hosts: Hosts,
    groups: Vec<Group>,
    next_group: u64,
    jobs: Vec<Job>,
    ledger: Ledger,
    follow: bool,
    /// Newest judged second, and newest second with data; None: none yet.
    judged: Option<i64>,
    last_data: i64,
    /// Groups are rebuilt at most every few seconds.
    regrouped: i64,
    /// Second at which the holders of GPUs were last noted.
    reserved: i64,
    stale: bool,
    /// Changes made by calls between two judgments.
    pending: Vec<Finding>,
}

impl Insight {
    /// Empty state.
    pub fn new(settings: Settings) -> Self {
        Insight { settings, ..Insight::default() }
    }

    /// Adds a machine, with its display name and its sampling interval, milliseconds. A second call renames it.
    pub fn source(&mut self, source: Source, name: &str, interval_ms: i64) {
        self.hosts
            .entry(source)
            .and_modify(|host| host.rename(name, interval_ms))
            .or_insert_with(|| Host::new(name, interval_ms));
    }

    /// Removes a machine and all its state.
    pub fn remove(&mut self, source: Source) {
        if self.hosts.remove(&source).is_some() {
            self.ledger.end_source(self.judged.unwrap_or_default(), source);
            self.ledger.hand_out(self.judged.unwrap_or_default(), &mut self.pending);
            for group in &mut self.groups {
                group.members.retain(|(own, _)| *own != source);
            }
            self.groups.retain(|group| !group.members.is_empty());
            self.stale = true;
        }
    }

    /// Whether any rule reads such a series: others can be skipped.
    pub fn reads(metric: &Metric, instance: &str) -> bool {
        signal::place_of(metric, instance).is_some()
    }

    /// Defines a series of a machine, before its first sample. A repeated number replaces the series.
    pub fn series(&mut self, source: Source, id: SeriesId, metric: &Metric, instance: &str) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.series(id, metric, instance);
        }
    }

    /// Adds a tick of a machine: its samples at `t`, milliseconds since the Unix epoch. Series without a sample are
    /// absent. Ticks of one machine come in order; those of several may come in any order within a second. A tick that
    /// comes after its second was judged counts for the next one.
    pub fn tick(&mut self, source: Source, t: i64, samples: impl IntoIterator<Item = (SeriesId, f64)>) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.tick(t, samples);
        }
    }

    /// Updates the process table of a machine, for each newer one.
    pub fn processes(&mut self, source: Source, table: &ProcessTable) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.table(table);
        }
    }

    /// Sets all running jobs; jobs missing from the list have ended.
    pub fn jobs(&mut self, jobs: &[Job]) {
        if self.jobs != jobs {
            self.jobs = jobs.to_vec();
            self.stale = true;
        }
    }

    /// Records the goodbye of a machine at `t` (milliseconds): its later silence is no loss.
    pub fn goodbye(&mut self, source: Source, t: i64) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.goodbye = Some(t.div_euclid(1000));
        }
    }

    /// Sets whether a hub follows the machines: then a silent one is lost. Otherwise, and in a file, silence is the
    /// end.
    pub fn follow(&mut self, on: bool) {
        self.follow = on;
    }

    /// Replaces the reason of a collector for what it cannot read, as `GPU 2 is lost: no response`, at `t`
    /// (milliseconds). An empty reason: it reads everything.
    pub fn record_reason(&mut self, source: Source, t: i64, collector: &str, reason: &str) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.record_reason(t.div_euclid(1000), collector, reason);
        }
    }

    /// Judges everything up to `now`, milliseconds since the Unix epoch, second by second of data. Appends each finding
    /// that was raised, changed or ended, in order of time. Later samples, and the current second, wait for the next
    /// call.
    pub fn judge(&mut self, now: i64, out: &mut Vec<Finding>) {
        out.append(&mut self.pending);
        let limit = now.div_euclid(1000) - 1;
        if self.judged.is_some_and(|judged| limit < judged - MAX_CLOCK_STEP_S) {
            self.begin_anew(limit);
        }
        while let Some(second) = self.next(limit) {
            self.judge_second(second);
            self.ledger.hand_out(second, out);
        }
    }

    /// The next second to judge: one with data, or one in which samples may be missing.
    fn next(&self, limit: i64) -> Option<i64> {
        let first = self.judged.map_or(i64::MIN, |judged| judged + 1);
        let data = self.hosts.values().filter_map(Host::next).min().map(|second| second.max(first));
        let between = self.judged.map(|judged| (judged.div_euclid(JUDGE_INTERVAL_S) + 1) * JUDGE_INTERVAL_S);
        let between = between.filter(|second| *second <= self.last_data + AFTERWARDS);
        data.into_iter().chain(between).min().filter(|second| *second <= limit)
    }

    fn judge_second(&mut self, now: i64) {
        let mut any = false;
        for host in self.hosts.values_mut() {
            any |= host.take(now);
            self.stale |= std::mem::take(&mut host.changed);
        }
        if any {
            self.last_data = now;
        }
        self.judged = Some(now);
        if self.stale && now - self.regrouped >= 5 {
            let gone = group::regroup(&mut self.groups, &mut self.next_group, &mut self.hosts, &self.jobs, now);
            gone.into_iter().for_each(|group| self.ledger.end_group(now, group));
            logged::assign(&mut self.hosts, &self.jobs);
            (self.stale, self.regrouped, self.reserved) = (false, now, NEVER);
        }
        let has_pods = || self.hosts.values().any(Host::has_pods);
        if self.reserved == NEVER || (now - self.reserved >= PODS_INTERVAL_S && has_pods()) {
            unused::reserve(&mut self.hosts, &self.jobs);
            self.reserved = now;
        }
        for group in &mut self.groups {
            group.step_phase(&self.hosts, now);
        }
        let mut scene = Scene {
            now,
            hosts: &mut self.hosts,
            groups: &mut self.groups,
            ledger: &mut self.ledger,
            settings: &self.settings,
            follow: self.follow,
        };
        for detector in DETECTORS {
            (detector.judge)(&mut scene);
        }
    }

    /// Resets the state after the clock went back.
    fn begin_anew(&mut self, limit: i64) {
        let sources: Vec<Source> = self.hosts.keys().copied().collect();
        for source in sources {
            self.ledger.end_source(limit, source);
        }
        self.hosts.values_mut().for_each(Host::begin_anew);
        self.groups.clear();
        (self.judged, self.last_data, self.regrouped, self.stale) = (None, limit, limit - 5, true);
        self.reserved = NEVER;
    }

    /// Open findings: the most severe first, then causes before consequences, then the oldest.
    pub fn open(&self) -> Vec<&Finding> {
        self.ledger.open()
    }

    /// Number of findings dropped over the limits.
    pub fn left_out(&self) -> u64 {
        self.ledger.left_out
    }

    /// State of the inputs of each rule on the current machines, in the order of the rules.
    pub fn rules(&self) -> Vec<RuleState> {
        let rules = DETECTORS.iter().flat_map(|detector| detector.rules);
        let state = |&(rule, sight): &(&str, Sees)| {
            let (state, words) = sight(&self.hosts);
            RuleState { rule: rule.into(), state, words }
        };
        rules.map(state).collect()
    }
}
