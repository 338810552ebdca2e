//! Evaluation of rules: samples and events come in, transitions of alerts go out.

mod compile;
mod facts;
mod group;
mod keep;
mod moved;
mod pace;
mod say;
mod series;
mod state;
mod window;

pub use facts::{CLASS_SETTLES_MS, GpuHoursUsed};
pub use say::{hour, hour_without_zone, limit_of, unit_of};

use crate::{Transition, What};
use compile::Compiled;
use facts::{Fact, RunFacts};
use group::Group;
use pace::Pace;
use serde::{Deserialize, Serialize};
use series::{absent, missing, sampled};
use shared::alert::{Alert, Rule};
use shared::catalog::{Catalog, Kind, fill};
use shared::finding::Finding;
use shared::rule::Condition;
use shared::series::SeriesDef;
use shared::unit::Unit;
use state::SubjectState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use window::Window;

/// Maximum number of subjects of a rule.
pub const MAX_OF_RULE: u32 = 10_000;

/// Maximum number of subjects of all rules together.
pub const MAX_SUBJECTS: usize = 200_000;

/// Ticks of a machine after a start that cannot fire an alert.
const SETTLING: u32 = 2;

/// Usual times between samples after which a subject without one is unknown; a step counts at most this many.
const STALE_INTERVALS: i64 = 3;

/// An instant event stays firing for this long, and ends unless it repeats within this time; milliseconds.
const EVENT_MS: i64 = 3_600_000;

/// Interval of predictions, milliseconds.
const PREDICT_MS: i64 = 60_000;

/// A prediction ends when the crossing lies beyond 1.25 times its time for this long, milliseconds.
const PREDICT_CLEAR_MS: u32 = 15 * 60_000;

/// Grace period after a start before a machine counts as lost, milliseconds.
const LOST_AFTER_START_MS: i64 = 120_000;

/// A machine silent for longer may have moved to another hub, milliseconds.
const SILENT_MS: i64 = 5_000;

/// An alert from before a start ends if its subject does not return within this time, milliseconds.
const ORPHAN_MS: i64 = 600_000;

/// Interval of storing counters of subjects that are about to fire, milliseconds.
const SWEEP_MS: i64 = 15_000;

/// Interval of storing windows, in sweeps; shorter ones fill again sooner.
const WINDOW_SWEEPS: u64 = 40;

/// A watched machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Id in the service; other methods use it.
    pub id: String,
    /// Display name: the `source` of labels.
    pub name: String,
    /// Milliseconds between its ticks.
    pub interval_ms: u32,
    /// Its own labels.
    pub labels: BTreeMap<String, String>,
}

/// All samples of a machine at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    /// Id of the machine.
    pub source: &'a str,
    /// Time of the machine, milliseconds since the Unix epoch.
    pub t: i64,
    /// Time of receipt, likewise.
    pub now: i64,
    /// The machine's clock was set before this tick.
    pub clock_step: bool,
    /// By number of the series; NaN is absent, as are values beyond the end.
    pub values: &'a [f64],
}

/// A row of the catalog.
#[derive(Debug, PartialEq, Eq)]
struct CatalogRow {
    template: String,
    title: String,
    unit: Unit,
    kind: Kind,
}

#[derive(Clone, Debug)]
struct Series {
    row: Arc<CatalogRow>,
    instance: Box<str>,
}

impl Series {
    fn tag(&self) -> String {
        fill(&self.row.template, &self.instance)
    }

    /// The GPU of the series.
    fn gpu(&self) -> Option<u32> {
        let own = self.row.template.strip_prefix("gpu.{i")?;
        let _ = own;
        self.instance.split('.').next()?.parse().ok()
    }
}

/// A series that a rule watches.
#[derive(Debug)]
struct Subject {
    rule: u32,
    series: u32,
    /// The series of the second condition; [`NONE`] where there is none.
    second: u32,
    dirty: bool,
    pace: Pace,
    state: SubjectState,
    more: Option<Box<More>>,
}

/// State that few subjects need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct More {
    first: Option<Window>,
    second: Option<Window>,
    /// Time of the last prediction.
    at: i64,
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Host {
    machine: Machine,
    series: Vec<Option<Series>>,
    subjects: Vec<Subject>,
    /// Series, group and position in it.
    members: Vec<(u32, u32, u32)>,
    /// Its groups, each once.
    groups: Vec<u32>,
    /// Series that no rule was matched against yet.
    fresh: Vec<u32>,
    rebuild: bool,
    gone: bool,
    t: i64,
    heard: i64,
    ticks: u32,
    /// Runs on it and their GPUs here; none: not known.
    runs: Vec<(String, Vec<u32>)>,
}

/// State of a subject of series while rules and series change, and across a start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct KeptSubject {
    state: SubjectState,
    more: Option<Box<More>>,
}

/// The rules of one team, or of all, and the state of their subjects.
#[derive(Debug, Default)]
pub struct Engine {
    started: i64,
    /// The judging hub, where there are several: its id and its name.
    hub: Option<(String, String)>,
    /// Machines that came from another hub, by name, with the time.
    adopted: BTreeMap<String, i64>,
    /// Machines that announced their stop and have not connected again: their names then, by id.
    signed_off: BTreeMap<String, String>,
    rules: Vec<Compiled>,
    rows: HashMap<String, Arc<CatalogRow>>,
    hosts: Vec<Host>,
    by_id: HashMap<String, usize>,
    groups: Vec<Group>,
    /// Free positions in `groups`.
    free: Vec<u32>,
    group_of: HashMap<(u32, String), u32>,
    facts: BTreeMap<(String, String), Fact>,
    runs: BTreeMap<String, RunFacts>,
    findings: BTreeMap<String, Finding>,
    /// States of absent subjects, by rule and subject.
    kept: HashMap<(String, String), KeptSubject>,
    /// Alerts that fired before the start, by rule and subject.
    orphans: BTreeMap<(String, String), Alert>,
    subjects: usize,
    left: u64,
    out: Vec<Transition>,
    changed: BTreeMap<String, Option<Vec<u8>>>,
    swept: i64,
    sweeps: u64,
    /// Time up to which events had been evaluated before the start.
    before: Option<i64>,
    /// Runs whose rows may be deleted.
    forgotten: Vec<String>,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.rule)
    }
}

impl Engine {
    /// An empty engine. `now` is the time of the start, milliseconds since the Unix epoch.
    pub fn new(now: i64) -> Self {
        Engine { started: now, swept: now, ..Engine::default() }
    }

    /// Sets the rules. State is kept where rule and condition are unchanged. Returns the ids of invalid rules with the
    /// reason.
    pub fn set_rules(&mut self, rules: &[Rule], catalog: &Catalog, now: i64) -> Vec<(String, String)> {
        let mut wrong = Vec::new();
        let mut compiled = Vec::new();
        for rule in rules.iter().filter(|rule| rule.enabled) {
            match Compiled::new(rule, catalog) {
                Ok(rule) => compiled.push(rule),
                Err(why) => wrong.push((rule.id.clone(), why)),
            }
        }
        let stays: BTreeSet<String> = self
            .rules
            .iter()
            .filter(|old| compiled.iter().any(|new: &Compiled| new.rule.id == old.rule.id && new.is_same(old)))
            .map(|old| old.rule.id.clone())
            .collect();
        for host in 0..self.hosts.len() {
            self.release(host, |rule| stays.contains(&rule.rule.id), "the rule was changed");
            self.hosts[host].rebuild = true;
        }
        self.release_groups(|rule, _| stays.contains(&rule.rule.id));
        let known = |id: &str| compiled.iter().any(|c| c.rule.id == id);
        let gone: Vec<_> = self
            .facts
            .keys()
            .filter(|(id, _)| !known(id) || (!stays.contains(id) && self.rules.iter().any(|r| r.rule.id == *id)))
            .cloned()
            .collect();
        // Facts of a rule from before the start do not belong to a changed rule.
        let before = std::mem::replace(&mut self.rules, compiled);
        for key in gone {
            let was = before.iter().find(|old| old.rule.id == key.0).map(|old| &old.rule);
            self.drop_fact(&key, was, now, "the rule was changed");
        }
        self.subjects = 0;
        self.left = 0;
        self.put_runs_on_hosts();
        for host in 0..self.hosts.len() {
            if !self.hosts[host].gone {
                self.rebuild(host);
            }
        }
        self.judge_findings(now);
        wrong
    }

    /// Adds a machine, or changes its name or labels.
    pub fn source(&mut self, machine: &Machine) {
        if let Some(&at) = self.by_id.get(&machine.id) {
            let host = &mut self.hosts[at];
            if host.machine != *machine {
                host.machine = machine.clone();
                host.rebuild = true;
            }
            return;
        }
        self.by_id.insert(machine.id.clone(), self.hosts.len());
        self.hosts.push(Host { machine: machine.clone(), ..Host::default() });
        self.put_runs_on_hosts();
    }

    /// Defines a series, or gives its number another meaning.
    pub fn define(&mut self, source: &str, index: u32, series: &SeriesDef, catalog: &Catalog) {
        let (Some(&at), Some(metric)) = (self.by_id.get(source), catalog.metric(series)) else { return };
        let row = match self.rows.get(&metric.tag) {
            Some(row) if row.unit == metric.unit && row.kind == metric.kind => row.clone(),
            _ => {
                let row = CatalogRow {
                    template: metric.tag.clone(),
                    title: metric.title.clone(),
                    unit: metric.unit,
                    kind: metric.kind,
                };
                let row = Arc::new(row);
                self.rows.insert(metric.tag.clone(), row.clone());
                row
            }
        };
        let host = &mut self.hosts[at];
        let place = index as usize;
        if host.series.len() <= place {
            host.series.resize(place + 1, None);
        }
        let series = Series { row, instance: series.instance.as_str().into() };
        match &host.series[place] {
            Some(old) if *old.row == *series.row && old.instance == series.instance => {}
            Some(_) => {
                self.undefine(source, index);
                self.hosts[at].series[place] = Some(series);
                self.hosts[at].rebuild = true;
            }
            None => {
                host.series[place] = Some(series);
                host.fresh.push(index);
            }
        }
    }

    /// Removes a series for good: its alerts end.
    pub fn undefine(&mut self, source: &str, index: u32) {
        let Some(&at) = self.by_id.get(source) else { return };
        let host = &mut self.hosts[at];
        if host.series.get(index as usize).is_none_or(Option::is_none) {
            return;
        }
        let (ended, stays): (Vec<_>, Vec<_>) =
            std::mem::take(&mut host.subjects).into_iter().partition(|s| s.series == index);
        host.subjects = stays;
        host.rebuild = true;
        let t = host.t;
        for subject in ended {
            self.end_subject(at, subject, t, "its series has ended");
        }
        self.hosts[at].series[index as usize] = None;
    }

    /// Removes a machine for good.
    pub fn remove_source(&mut self, source: &str, now: i64) {
        let Some(at) = self.by_id.remove(source) else { return };
        self.forget_sign_off(source);
        for subject in std::mem::take(&mut self.hosts[at].subjects) {
            self.end_subject(at, subject, now, "its machine was removed");
        }
        let name = self.hosts[at].machine.name.clone();
        let facts: Vec<_> =
            self.facts.iter().filter(|(_, f)| f.labels.get("source") == Some(&name)).map(|(k, _)| k.clone()).collect();
        for key in facts {
            self.end_fact(&key, now, "its machine was removed");
        }
        self.leave_groups(at);
        self.end_empty_groups(now);
        self.hosts[at] = Host { gone: true, ..Host::default() };
    }

    /// Applies a tick of a machine. Only series named by rules are touched.
    pub fn tick(&mut self, tick: &Tick) {
        let Some(&at) = self.by_id.get(tick.source) else { return };
        // A connection may be shorter than the time between two looks at how machines are connected.
        self.forget_sign_off(tick.source);
        if self.hosts[at].rebuild {
            self.rebuild(at);
        } else if !self.hosts[at].fresh.is_empty() {
            let fresh = std::mem::take(&mut self.hosts[at].fresh);
            self.attach(at, &fresh);
        }
        let host = &mut self.hosts[at];
        let interval = i64::from(host.machine.interval_ms.max(1));
        let first = host.t == 0;
        let passed = tick.t - host.t;
        if passed == 0 && !first {
            return;
        }
        let is_set = |passed: i64| tick.clock_step || passed <= 0;
        let dt = if is_set(passed) { interval } else { passed.min(STALE_INTERVALS * interval) } as u32;
        (host.t, host.heard) = (tick.t, host.heard.max(tick.now));
        host.ticks = host.ticks.saturating_add(1);
        let settled = host.ticks > SETTLING;
        let rules = &self.rules;
        let mut moved: Vec<(usize, What)> = Vec::new();
        for (i, subject) in host.subjects.iter_mut().enumerate() {
            let rule = &rules[subject.rule as usize];
            let value = tick.values.get(subject.series as usize).copied().filter(|v| v.is_finite());
            let what = match (value, &rule.condition) {
                (value, Condition::Missing { hold, .. }) => {
                    missing(subject, value, tick.t, if settled { dt } else { 0 }, *hold)
                }
                (None, _) => absent(subject, tick.t, interval),
                (Some(value), _) => {
                    let since = tick.t - subject.state.seen;
                    let step = match subject.state.seen == 0 || is_set(since) {
                        true => interval as u32,
                        false => subject.pace.count(since, interval),
                    };
                    let found = subject.state.unknown != 0;
                    subject.state.unknown = 0;
                    subject.state.seen = tick.t;
                    let what = sampled(subject, rule, value, tick, step, settled);
                    what.or((found && subject.state.fires() && !subject.state.flaps()).then_some(What::Changed))
                }
            };
            if let Some(what) = what {
                subject.dirty = true;
                moved.push((i, what));
            }
        }
        for (series, group, slot) in &host.members {
            if let Some(value) = tick.values.get(*series as usize).copied().filter(|v| v.is_finite()) {
                self.groups[*group as usize].set_value(*slot, tick.t, value);
            }
        }
        for (i, what) in moved {
            let host = &self.hosts[at];
            let transition = self.of_series(host, &host.subjects[i], what);
            self.out.push(transition);
            if what == What::Ended {
                self.hosts[at].subjects[i].state.forget_flaps();
            }
        }
        if settled {
            self.tick_groups(at, tick.t, interval);
        }
    }
}

#[cfg(test)]
mod tests;
