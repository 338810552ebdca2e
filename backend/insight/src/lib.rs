//! Findings from samples: what is wrong, on which machine and device, since when, and how it is known.
//!
//! The crate is pure: it reads no clock and does no I/O, and the same samples give the same findings, byte by byte. So a
//! server, a replay, `watchglass findings FILE` and a file that is dropped on a page run the same code.

mod awaited;
mod awaited_sum;
mod away;
mod device;
mod disk;
mod ecc;
mod ended;
mod ending;
mod filling;
mod finding;
mod group;
mod hang;
mod hold;
mod host;
mod idle;
mod key;
mod kin;
mod levels;
mod link;
mod lost;
mod memory;
mod pace;
mod phase;
mod port;
pub mod recording;
mod scene;
mod signal;
mod silent;
mod starvation;
mod straggler;
mod tenant;
mod throttle;
mod uneven;
mod words;

#[cfg(test)]
mod tests;

use finding::Ledger;
use group::Group;
use host::Host;
use scene::Scene;
use shared::catalog::Metric;
use shared::finding::{Finding, RuleState};
use shared::processes::ProcessTable;
use shared::series::SeriesId;
use std::collections::BTreeMap;

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

/// All machines, by number.
pub(crate) type Hosts = BTreeMap<Source, Host>;

/// How long after the last sample it is still looked at what does not come, seconds.
const AFTERWARDS: i64 = 1000;
/// Between samples it is looked at what does not come every so many seconds.
const BETWEEN: i64 = 10;
/// A clock that goes back by more seconds begins anew.
const BACK: i64 = 120;

/// What a rule can see on the machines that are here.
type Sees = fn(&Hosts) -> scene::Sight;

/// One detector: a file.
struct Entry {
    /// Its rules, and what each can see on the machines that are here.
    rules: &'static [(&'static str, Sees)],
    judge: fn(&mut Scene),
}

/// In the order in which they are asked: causes come before consequences.
static DETECTORS: &[&Entry] = &[
    &lost::DETECTOR,
    &silent::DETECTOR,
    &ecc::DETECTOR,
    &away::DETECTOR,
    &hang::DETECTOR,
    &throttle::DETECTOR,
    &link::DETECTOR,
    &port::DETECTOR,
    // Before what would forget that it was told.
    &ended::DETECTOR,
    &memory::DETECTOR,
    &tenant::DETECTOR,
    &straggler::DETECTOR,
    &uneven::DETECTOR,
    &starvation::DETECTOR,
    &idle::DETECTOR,
    &disk::DETECTOR,
];

/// All machines that are looked at together.
#[derive(Debug, Default)]
pub struct Insight {
    settings: Settings,
    hosts: Hosts,
    groups: Vec<Group>,
    next_group: u64,
    jobs: Vec<Job>,
    ledger: Ledger,
    follow: bool,
    /// The newest second that was judged, and the newest with data; none yet.
    judged: Option<i64>,
    last_data: i64,
    /// Groups are put together anew at most every few seconds.
    regrouped: i64,
    stale: bool,
    /// Written by calls between two judgments.
    pending: Vec<Finding>,
}

impl Insight {
    /// Nothing is known yet.
    pub fn new(settings: Settings) -> Self {
        Insight { settings, ..Insight::default() }
    }

    /// A machine that is there, with its name as people know it and its sampling interval, milliseconds. The same again
    /// renames it.
    pub fn source(&mut self, source: Source, name: &str, interval_ms: i64) {
        self.hosts
            .entry(source)
            .and_modify(|host| host.rename(name, interval_ms))
            .or_insert_with(|| Host::new(name, interval_ms));
    }

    /// A machine that is no longer there: it was removed, and so is all that is known of it.
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

    /// Whether samples of such a series are looked at: others need not be read.
    pub fn reads(metric: &Metric, instance: &str) -> bool {
        signal::place_of(metric, instance).is_some()
    }

    /// What a series of a machine is, before its first sample. The same number again is another series from now on.
    pub fn series(&mut self, source: Source, id: SeriesId, metric: &Metric, instance: &str) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.series(id, metric, instance);
        }
    }

    /// A tick of a machine: the samples that it has, at `t`, milliseconds since the Unix epoch. Series that it does not
    /// name were absent. Ticks of one machine come in order; those of several may come in any order within a second. One
    /// that comes after its second was judged counts as of the next.
    pub fn tick(&mut self, source: Source, t: i64, samples: impl IntoIterator<Item = (SeriesId, f64)>) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.tick(t, samples);
        }
    }

    /// The process table of a machine, each time that there is a newer one.
    pub fn processes(&mut self, source: Source, table: &ProcessTable) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.table(table);
        }
    }

    /// The jobs that run now, all of them; from then on those that are not named have ended.
    pub fn jobs(&mut self, jobs: &[Job]) {
        if self.jobs != jobs {
            self.jobs = jobs.to_vec();
            self.stale = true;
        }
    }

    /// The machine has said goodbye at `t` (milliseconds): its silence from then on is no loss.
    pub fn goodbye(&mut self, source: Source, t: i64) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.goodbye = Some(t.div_euclid(1000));
        }
    }

    /// A hub follows the machines: one that falls silent is lost. Alone, or in a file, silence is the end.
    pub fn follow(&mut self, on: bool) {
        self.follow = on;
    }

    /// What a collector of a machine said of a device that it can no longer read, as `GPU is lost`, at `t` (milliseconds).
    pub fn said(&mut self, source: Source, t: i64, _collector: &str, reason: &str) {
        if let Some(host) = self.hosts.get_mut(&source) {
            host.say(t.div_euclid(1000), reason);
        }
    }

    /// Looks at everything up to `now`, milliseconds since the Unix epoch, second by second of data, and hands out each
    /// finding that was raised, changed or ended, in that order in time. What is later than `now`, and the second that is
    /// not over, wait for the next call.
    pub fn judge(&mut self, now: i64, out: &mut Vec<Finding>) {
        out.append(&mut self.pending);
        let limit = now.div_euclid(1000) - 1;
        if self.judged.is_some_and(|judged| limit < judged - BACK) {
            self.begin_anew(limit);
        }
        while let Some(second) = self.next(limit) {
            self.look(second);
            self.ledger.hand_out(second, out);
        }
    }

    /// The next second to look at: one with data, or one in which something may be missing.
    fn next(&self, limit: i64) -> Option<i64> {
        let first = self.judged.map_or(i64::MIN, |judged| judged + 1);
        let data = self.hosts.values().filter_map(Host::next).min().map(|second| second.max(first));
        let between = self.judged.map(|judged| (judged.div_euclid(BETWEEN) + 1) * BETWEEN);
        let between = between.filter(|second| *second <= self.last_data + AFTERWARDS);
        data.into_iter().chain(between).min().filter(|second| *second <= limit)
    }

    fn look(&mut self, now: i64) {
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
            (self.stale, self.regrouped) = (false, now);
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

    /// The clock went back: what was learned by it is of no use.
    fn begin_anew(&mut self, limit: i64) {
        let sources: Vec<Source> = self.hosts.keys().copied().collect();
        for source in sources {
            self.ledger.end_source(limit, source);
        }
        self.hosts.values_mut().for_each(Host::begin_anew);
        self.groups.clear();
        (self.judged, self.last_data, self.regrouped, self.stale) = (None, limit, limit - 5, true);
    }

    /// The findings that are open, the most severe first, then causes before consequences, then the oldest.
    pub fn open(&self) -> Vec<&Finding> {
        self.ledger.open()
    }

    /// Findings that were left out because there were too many.
    pub fn left_out(&self) -> u64 {
        self.ledger.left_out
    }

    /// What each rule can see on the machines that are here, in the order of the rules.
    pub fn rules(&self) -> Vec<RuleState> {
        let rules = DETECTORS.iter().flat_map(|detector| detector.rules);
        let state = |&(rule, sight): &(&str, Sees)| {
            let (state, words) = sight(&self.hosts);
            RuleState { rule: rule.into(), state, words }
        };
        rules.map(state).collect()
    }
}
