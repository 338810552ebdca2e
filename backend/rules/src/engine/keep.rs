//! Stored state of the engine, read after a start.

use super::facts::{Fact, RunFacts};
use super::state::Phase;
use super::{Engine, KeptSubject, MAX_OF_RULE, MAX_SUBJECTS};
use crate::{StateRow, Transition};
use serde::Serialize;
use shared::alert::{Alert, AlertState};

/// Separates the parts of a row's key. No rule, tag or run contains it.
pub(super) const SEP: char = '\u{1f}';

fn row_key(sort: char, rule: &str, subject: &str) -> String {
    format!("{sort}{SEP}{rule}{SEP}{subject}")
}

/// Meaning of a row.
pub(super) enum RowKey {
    /// A rule and a subject of series.
    Subject(String, String),
    /// A rule and a subject without series.
    Fact(String, String),
    /// A run.
    Run(String),
    /// A machine that signed off: its id and its name then.
    SignedOff(String, String),
    /// Time up to which events have been evaluated.
    Time,
}

/// Meaning and content of a row; None: it is empty, or of a later version.
pub(super) fn row_of(row: &StateRow) -> Option<(RowKey, &[u8])> {
    let (sort, rest) = row.key.split_once(SEP)?;
    let (rule, subject) = rest.split_once(SEP).unwrap_or((rest, ""));
    let (rule, subject) = (rule.to_string(), subject.to_string());
    let key = match sort {
        "s" => RowKey::Subject(rule, subject),
        "f" => RowKey::Fact(rule, subject),
        "r" => RowKey::Run(rule),
        "o" => RowKey::SignedOff(rule, subject),
        "t" => RowKey::Time,
        _ => return None,
    };
    Some((key, row.bytes.as_deref()?))
}

fn bytes(value: &impl Serialize) -> Option<Vec<u8>> {
    postcard::to_stdvec(value).ok()
}

impl Engine {
    /// Transitions of alerts since the last call, in order.
    pub fn take(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.out)
    }

    /// Parts of the state that changed since the last call.
    pub fn changed_rows(&mut self) -> Vec<StateRow> {
        for at in 0..self.hosts.len() {
            for i in 0..self.hosts[at].subjects.len() {
                if !std::mem::take(&mut self.hosts[at].subjects[i].dirty) {
                    continue;
                }
                let host = &self.hosts[at];
                let subject = &host.subjects[i];
                let Some(series) = &host.series[subject.series as usize] else { continue };
                let key = row_key('s', &self.rules[subject.rule as usize].rule.id, &Self::subject_of(host, series));
                let idle = subject.state.phase == Phase::Ok && subject.state.flaps.is_none() && subject.more.is_none();
                let kept = KeptSubject { state: subject.state.clone(), more: subject.more.clone() };
                self.changed.insert(key, if idle { None } else { bytes(&kept) });
            }
        }
        for group in self.groups.iter_mut().filter(|g| g.dirty) {
            group.dirty = false;
            let key = row_key('s', &self.rules[group.rule as usize].rule.id, &group.key);
            let idle = group.state.phase == Phase::Ok && group.state.flaps.is_none();
            let kept = KeptSubject { state: group.state.clone(), more: None };
            self.changed.insert(key, if idle { None } else { bytes(&kept) });
        }
        std::mem::take(&mut self.changed).into_iter().map(|(key, bytes)| StateRow { key, bytes }).collect()
    }

    /// Restores all current rows from [`changed_rows`](Self::changed_rows), and all firing alerts. To be called before
    /// rules are set and before any other call.
    pub fn restore(&mut self, rows: &[StateRow], alerts: &[Alert]) {
        for (key, bytes) in rows.iter().filter_map(row_of) {
            match key {
                RowKey::Subject(rule, subject) => {
                    if let Ok(kept) = postcard::from_bytes::<KeptSubject>(bytes) {
                        self.kept.insert((rule, subject), kept);
                    }
                }
                RowKey::Fact(rule, subject) => {
                    if let Ok(fact) = postcard::from_bytes::<Fact>(bytes) {
                        self.facts.insert((rule, subject), fact);
                    }
                }
                RowKey::Run(run) => {
                    if let Ok(facts) = postcard::from_bytes::<RunFacts>(bytes) {
                        self.runs.insert(run, facts);
                    }
                }
                RowKey::SignedOff(id, name) => {
                    self.signed_off.insert(id, name);
                }
                RowKey::Time => {
                    if let Ok(t) = postcard::from_bytes::<i64>(bytes) {
                        self.before = Some(t);
                    }
                }
            }
        }
        alerts.iter().filter(|alert| alert.state == AlertState::Firing).for_each(|alert| self.take_open(alert));
        self.put_runs_on_hosts();
        self.hosts.iter_mut().filter(|h| !h.gone).for_each(|h| h.rebuild = true);
    }

    /// Time up to which events were evaluated before the start; the start where none is stored.
    pub(super) fn horizon(&self) -> i64 {
        self.before.unwrap_or(self.started).min(self.started)
    }

    pub(super) fn save_fact(&mut self, key: &(String, String)) {
        let bytes = self.facts.get(key).and_then(bytes);
        self.changed.insert(row_key('f', &key.0, &key.1), bytes);
    }

    /// Stores that a machine signed off under this name, or that it signed on again.
    pub(super) fn save_sign_off(&mut self, id: &str, name: &str, is_off: bool) {
        self.changed.insert(row_key('o', id, name), is_off.then(Vec::new));
    }

    /// Stores a run if this hub judges it.
    pub(super) fn save_run(&mut self, run: &str) {
        if !self.judges_run(run) {
            return;
        }
        let bytes = self.runs.get(run).and_then(bytes);
        self.changed.insert(row_key('r', run, ""), bytes);
    }

    /// Deletes the row of a subject.
    pub(super) fn forget(&mut self, key: &(String, String)) {
        self.changed.insert(row_key('s', &key.0, &key.1), None);
    }

    /// Stores running counters periodically, and windows less often.
    pub(super) fn sweep(&mut self, windows: bool, now: i64) {
        for subject in self.hosts.iter_mut().flat_map(|h| h.subjects.iter_mut()) {
            let counts = matches!(subject.state.phase, Phase::Pending | Phase::Clearing);
            subject.dirty |= counts || (windows && subject.more.is_some());
        }
        for group in &mut self.groups {
            group.dirty |= matches!(group.state.phase, Phase::Pending | Phase::Clearing);
        }
        self.changed.insert(row_key('t', "", ""), bytes(&now));
        let over: Vec<String> = self.stale_runs();
        for run in over {
            self.changed.insert(row_key('r', &run, ""), None);
        }
    }

    fn stale_runs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.forgotten)
    }

    /// Faults that hinder rules, in sentences, by rule id; an empty id means all rules.
    pub fn trouble(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for rule in self.rules.iter().filter(|r| r.left > 0) {
            let sentence =
                format!("{} series exceed the limit of the rule; it watches the first {MAX_OF_RULE}", rule.left);
            all.push((rule.rule.id.clone(), sentence));
        }
        if self.subjects >= MAX_SUBJECTS {
            all.push((
                String::new(),
                format!("all rules together watch at most {MAX_SUBJECTS} subjects; {} more are not watched", self.left),
            ));
        }
        all
    }

    /// Number of subjects.
    pub fn subjects(&self) -> usize {
        self.subjects
    }
}
