//! Subjects that are series: their list, and the effect of a sample on each.

use super::compile::Compiled;
use super::pace::Pace;
use super::state::{Phase, Step, SubjectState};
use super::window::Window;
use super::{
    Engine, Host, KeptSubject, MAX_OF_RULE, MAX_SUBJECTS, More, NONE, PREDICT_CLEAR_MS, PREDICT_MS, STALE_INTERVALS,
    Series, Subject, Tick,
};
use crate::What;
use shared::alert::Alert;
use shared::catalog::job::{self, ValueSender};
use shared::rule::{By, Condition, Function, Threshold, Value};
use std::collections::BTreeMap;

/// Minimum time range of a prediction, seconds.
const PREDICT_LEAST: u32 = 3600;

/// A prediction looks back this fraction of the time that it looks ahead.
const PREDICT_PART: u32 = 8;

/// Applies a sample of a subject whose rule fires on missing samples.
pub fn missing(subject: &mut Subject, value: Option<f64>, t: i64, dt: u32, hold: u32) -> Option<What> {
    if value.is_some() {
        subject.state.seen = t;
    } else if subject.state.seen == 0 {
        return None;
    }
    let holds = value.is_none();
    subject.state.step(Step { t, dt, holds, clears: !holds, hold: hold * 1000, clear: 0 })
}

/// Applies a missing sample: after three times the usual time the subject is unknown.
pub fn absent(subject: &mut Subject, t: i64, interval: i64) -> Option<What> {
    unknown(&mut subject.state, t, subject.pace.usual_of(interval))
}

pub fn unknown(state: &mut SubjectState, t: i64, interval: i64) -> Option<What> {
    if state.seen == 0 || state.unknown != 0 || t - state.seen <= STALE_INTERVALS * interval {
        return None;
    }
    state.unknown = state.seen;
    (state.fires() && !state.flaps()).then_some(What::Changed)
}

/// Applies a sample.
pub fn sampled(subject: &mut Subject, rule: &Compiled, raw: f64, tick: &Tick, dt: u32, settled: bool) -> Option<What> {
    match (&rule.threshold, &rule.condition) {
        (Some(threshold), _) => {
            let first = measured(&threshold.first.value, subject, |more| &mut more.first, tick.t, raw)?;
            let second = match &threshold.and {
                None => None,
                Some(and) => {
                    let raw = tick.values.get(subject.second as usize).copied().filter(|v| v.is_finite())?;
                    Some(measured(&and.value, subject, |more| &mut more.second, tick.t, raw)?)
                }
            };
            if settled { weigh(&mut subject.state, threshold, first, second, tick.t, dt) } else { None }
        }
        (None, Condition::Reaches { limit, within, .. }) => reaches(subject, raw, (*limit, *within), tick, settled),
        (None, Condition::Increases { .. }) => increases(&mut subject.state, raw, tick.t, dt, settled),
        _ => None,
    }
}

/// The value of a sample; None until its window is full, or if its mean is 0.
fn measured(
    value: &Value,
    subject: &mut Subject,
    window: impl FnOnce(&mut More) -> &mut Option<Window>,
    t: i64,
    raw: f64,
) -> Option<f64> {
    let of = |subject: &mut Subject, function, seconds| {
        pushed(window(subject.more.get_or_insert_default()), function, seconds, t, raw)
    };
    match value {
        Value::In(function, _, seconds) => Some(of(subject, *function, *seconds)? * value.factor()),
        Value::OfMean(_, seconds) => {
            let mean = of(subject, Function::Mean, *seconds)?;
            (mean != 0.0).then(|| raw / mean)
        }
        _ => Some(raw),
    }
}

fn pushed(window: &mut Option<Window>, function: Function, seconds: u32, t: i64, raw: f64) -> Option<f64> {
    let window = window.get_or_insert_with(|| Window::new(function, seconds));
    window.push(t, raw);
    window.value()
}

/// Compares values with a threshold.
pub fn weigh(
    state: &mut SubjectState,
    of: &Threshold,
    first: f64,
    second: Option<f64>,
    t: i64,
    dt: u32,
) -> Option<What> {
    let also = match (&of.and, second) {
        (Some(and), Some(second)) => and.holds(second),
        _ => true,
    };
    let holds = of.first.holds(first) && also;
    if state.phase == Phase::Ok && !holds {
        state.value = first;
        return if state.flaps.is_some() { step(state, of, (first, second), t, dt, holds) } else { None };
    }
    if state.phase == Phase::Ok || of.first.op.is_worse(first, state.worst) {
        state.worst = first;
    }
    state.value = first;
    step(state, of, (first, second), t, dt, holds)
}

fn step(
    state: &mut SubjectState,
    of: &Threshold,
    (first, second): (f64, Option<f64>),
    t: i64,
    dt: u32,
    holds: bool,
) -> Option<What> {
    let clears = of.clears(first, second);
    state.step(Step { t, dt, holds, clears, hold: of.hold * 1000, clear: of.clear() * 1000 })
}

fn reaches(subject: &mut Subject, raw: f64, (limit, within): (f64, u32), tick: &Tick, settled: bool) -> Option<What> {
    let more = subject.more.get_or_insert_default();
    let window =
        more.first.get_or_insert_with(|| Window::new(Function::Mean, (within / PREDICT_PART).max(PREDICT_LEAST)));
    window.push(tick.t, raw);
    let since = tick.t - more.at;
    if !settled || (0..PREDICT_MS).contains(&since) {
        return None;
    }
    let dt = if more.at == 0 || since < 0 { PREDICT_MS } else { since.min(STALE_INTERVALS * PREDICT_MS) };
    more.at = tick.t;
    let left = window.reaches(limit);
    let state = &mut subject.state;
    let holds = left.is_some_and(|left| left <= f64::from(within));
    let clears = left.is_none_or(|left| left > 1.25 * f64::from(within));
    state.value = raw;
    // The worst value is the soonest crossing, reported as a time; `value` is the newest sample.
    state.worst = left.map_or(0.0, |left| tick.t as f64 / 1000.0 + left);
    state.step(Step { t: tick.t, dt: dt as u32, holds, clears, hold: 0, clear: PREDICT_CLEAR_MS })
}

fn increases(state: &mut SubjectState, raw: f64, t: i64, dt: u32, settled: bool) -> Option<What> {
    // The state has no flag for the first sample; these values are 0 before it.
    let known = state.worst != 0.0 || state.value != 0.0 || state.held == NONE;
    let up = raw - state.value;
    state.value = raw;
    if !known || !settled {
        state.held = NONE;
        return None;
    }
    if state.held == NONE {
        state.held = 0;
    }
    if up > 0.0 {
        state.worst = if state.phase == Phase::Ok { up } else { state.worst + up };
    }
    let clear = super::EVENT_MS as u32;
    let what = state.step(Step { t, dt, holds: up > 0.0, clears: up <= 0.0, hold: 0, clear });
    if state.phase == Phase::Ok {
        state.held = NONE;
    }
    what
}

impl Engine {
    /// Labels of a series: its machine's, its own, and those of its run.
    pub(super) fn labels(&self, host: &Host, series: &Series) -> BTreeMap<String, String> {
        let mut labels = host.machine.labels.clone();
        let gpu = series.gpu();
        let mut runs =
            host.runs.iter().filter(|(_, gpus)| gpu.is_none_or(|gpu| gpus.is_empty() || gpus.contains(&gpu)));
        if let (Some((run, _)), None) = (runs.next(), runs.next()) {
            labels.extend(self.runs.get(run).map(|r| r.labels.clone()).unwrap_or_default());
        }
        if job::is_labeled(&series.row.template) {
            let (sender, _) = ValueSender::from_instance(&series.instance);
            if let Some(run) = sender.run {
                labels.extend(self.runs.get(&run).map(|run| run.labels.clone()).unwrap_or_default());
                labels.insert("run".into(), run);
            }
            labels.extend(sender.rank.map(|rank| ("rank".into(), rank.to_string())));
        }
        labels.insert("source".into(), host.machine.name.clone());
        labels.insert("tag".into(), series.tag());
        if let Some(gpu) = gpu {
            labels.insert("gpu".into(), gpu.to_string());
        }
        labels
    }

    pub(super) fn subject_of(host: &Host, series: &Series) -> String {
        format!("{} {}", host.machine.name, series.tag())
    }

    /// Its earlier state, if any.
    pub(super) fn claim(&mut self, key: &(String, String)) -> KeptSubject {
        let orphan = self.orphans.remove(key);
        self.kept.remove(key).unwrap_or_else(|| orphan.as_ref().map(from_alert).unwrap_or_default())
    }

    /// Matches new series of a machine against the rules.
    pub(super) fn attach(&mut self, at: usize, fresh: &[u32]) {
        let joins = |series: &Series| {
            self.rules
                .iter()
                .filter_map(|r| r.threshold.as_ref()?.and.as_ref())
                .any(|and| and.value.tag().fits(&series.row.template, &series.instance))
        };
        let second = |i: &u32| self.hosts[at].series[*i as usize].as_ref().is_some_and(joins);
        if fresh.len() < self.hosts[at].series.len() && fresh.iter().any(second) {
            return self.rebuild(at);
        }
        for &index in fresh {
            let Some(series) = self.hosts[at].series.get(index as usize).cloned().flatten() else { continue };
            for rule in 0..self.rules.len() {
                if self.rules[rule].watches(&series) {
                    self.watch(at, index, &series, rule);
                }
            }
        }
    }

    fn watch(&mut self, at: usize, index: u32, series: &Series, of: usize) {
        let host = &self.hosts[at];
        let rule = &self.rules[of];
        if !rule.on.is_empty() && !rule.admits(&self.labels(host, series)) {
            return;
        }
        if let Some(by) = rule.by() {
            return self.join(at, index, series, of, by);
        }
        if rule.subjects >= MAX_OF_RULE || self.subjects >= MAX_SUBJECTS {
            self.rules[of].left += 1;
            self.left += 1;
            return;
        }
        let second = match rule.threshold.as_ref().and_then(|t| t.and.as_ref()) {
            None => NONE,
            Some(and) => {
                let tag = and.value.tag();
                let fits = |other: &Series| {
                    tag.fits(&other.row.template, &other.instance)
                        && (other.instance == series.instance
                            || other.instance.is_empty()
                            || series.instance.is_empty())
                };
                let found = host.series.iter().position(|other| other.as_ref().is_some_and(fits));
                found.map_or(NONE, |at| at as u32)
            }
        };
        let kept = if self.kept.is_empty() && self.orphans.is_empty() {
            KeptSubject::default()
        } else {
            let key = (rule.rule.id.clone(), Self::subject_of(host, series));
            self.claim(&key)
        };
        self.rules[of].subjects += 1;
        self.subjects += 1;
        let (state, more) = (kept.state, kept.more);
        let subject =
            Subject { rule: of as u32, series: index, second, dirty: false, pace: Pace::default(), state, more };
        self.hosts[at].subjects.push(subject);
    }

    /// Rebuilds the subjects of a machine; states stay.
    pub(super) fn rebuild(&mut self, at: usize) {
        let mut before = Vec::new();
        for subject in std::mem::take(&mut self.hosts[at].subjects) {
            before.push(self.keep(at, subject));
        }
        self.leave_groups(at);
        let host = &mut self.hosts[at];
        host.rebuild = false;
        host.fresh.clear();
        let all: Vec<u32> = (0..host.series.len() as u32).collect();
        self.attach(at, &all);
        let t = self.hosts[at].t;
        for (key, rule, told) in before {
            if self.kept.remove(&key).is_some() {
                if let Some((what, mut alert)) = told {
                    (alert.ended, alert.state) = (Some(t.max(alert.began)), shared::alert::AlertState::Resolved);
                    alert.sentence += "; it is no longer watched";
                    self.tell(rule, what, alert, false);
                }
                self.forget(&key);
            }
        }
        self.end_empty_groups(t);
    }

    /// Removes a subject and keeps its state for its successor.
    fn keep(&mut self, at: usize, subject: Subject) -> ((String, String), usize, Option<(What, Alert)>) {
        let of = subject.rule as usize;
        let host = &self.hosts[at];
        let told = subject.state.gone().map(|what| {
            // The sentence is unchanged.
            let words = if what == What::Ended { What::Changed } else { what };
            (what, self.of_series(host, &subject, words).alert)
        });
        let name = host.series[subject.series as usize].as_ref().map(|s| Self::subject_of(host, s)).unwrap_or_default();
        let rule = &mut self.rules[of];
        rule.subjects = rule.subjects.saturating_sub(1);
        self.subjects = self.subjects.saturating_sub(1);
        let key = (rule.rule.id.clone(), name);
        self.kept.insert(key.clone(), KeptSubject { state: subject.state, more: subject.more });
        (key, of, told)
    }

    /// Removes all subjects of a machine. Those of rules that stay are kept, others end.
    pub(super) fn release(&mut self, at: usize, stays: impl Fn(&Compiled) -> bool, why: &str) {
        let t = self.hosts[at].t;
        for subject in std::mem::take(&mut self.hosts[at].subjects) {
            if stays(&self.rules[subject.rule as usize]) {
                self.keep(at, subject);
            } else {
                self.end_subject(at, subject, t, why);
            }
        }
    }

    pub(super) fn end_subject(&mut self, at: usize, subject: Subject, t: i64, why: &str) {
        let of = subject.rule as usize;
        self.rules[of].subjects = self.rules[of].subjects.saturating_sub(1);
        self.subjects = self.subjects.saturating_sub(1);
        let host = &self.hosts[at];
        let transition = subject.state.gone().map(|what| (what, self.of_series(host, &subject, what)));
        if let Some(series) = &host.series[subject.series as usize] {
            let key = (self.rules[of].rule.id.clone(), Self::subject_of(host, series));
            self.forget(&key);
        }
        if let Some((what, mut transition)) = transition {
            transition.alert.ended = Some(t.max(transition.alert.began));
            if what == What::Ended {
                transition.alert.sentence = format!("{}; {why}", transition.alert.sentence);
            }
            self.out.push(transition);
        }
    }
}

/// The state of a subject with this alert.
pub fn from_alert(alert: &Alert) -> KeptSubject {
    let state = SubjectState {
        phase: Phase::Firing,
        began: alert.began,
        fired: alert.fired.unwrap_or(alert.began),
        value: alert.value.unwrap_or(0.0),
        worst: alert.worst.unwrap_or(0.0),
        unknown: alert.unknown_since.unwrap_or(0),
        ..SubjectState::default()
    };
    KeptSubject { state, more: None }
}

/// Membership of series in groups.
impl Engine {
    fn join(&mut self, at: usize, index: u32, series: &Series, of: usize, by: By) {
        let host = &self.hosts[at];
        let name = &host.machine.name;
        let keys: Vec<(String, String)> = match by {
            By::Source => vec![(name.clone(), name.clone())],
            By::Gpu => {
                series.gpu().map(|gpu| (format!("{name} gpu {gpu}"), format!("{name} GPU {gpu}"))).into_iter().collect()
            }
            By::Run => {
                let gpu = series.gpu();
                let mine = |gpus: &Vec<u32>| gpu.is_none_or(|gpu| gpus.is_empty() || gpus.contains(&gpu));
                let runs = host.runs.iter().filter(|(_, gpus)| mine(gpus));
                runs.map(|(run, _)| (format!("run {run}"), self.run_name(run))).collect()
            }
        };
        for (key, place) in keys {
            self.join_group(at, index, of, by, &key, &place, series);
        }
    }
}
