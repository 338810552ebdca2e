//! Machines that move between hubs. The state of a machine's subjects moves with it: nothing ends, nothing begins, and
//! the alerts stay the same.

use super::facts::{Fact, RunFacts};
use super::keep::{RowKey, row_of};
use super::series::from_alert;
use super::state::SubjectState;
use super::{Engine, Host, KeptSubject};
use crate::StateRow;
use shared::alert::{Alert, AlertState};
use shared::rule::Condition;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a subject is of a machine of this name.
fn is_of(subject: &str, name: &str) -> bool {
    subject.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// The run that a subject may belong to: groups are named `run ID`, other subjects of a run have its id alone.
fn run_of(subject: &str) -> &str {
    subject.strip_prefix("run ").unwrap_or(subject)
}

impl Engine {
    /// Sets up judging with several hubs. The hub of a run's first machine judges the run. Subjects of a hub itself
    /// contain the hub's id, and their sentences its display name.
    pub fn share(&mut self, hub: &str, name: &str) {
        self.hub = Some((hub.to_string(), name.to_string()));
    }

    /// Whether a run is judged here.
    pub(super) fn judges(&self, run: &RunFacts) -> bool {
        let here = |name: &String| self.hosts.iter().any(|host| !host.gone && host.machine.name == *name);
        self.hub.is_none() || run.hosts.keys().next().is_none_or(here)
    }

    pub(super) fn judges_run(&self, run: &str) -> bool {
        self.hub.is_none() || self.runs.get(run).is_none_or(|run| self.judges(run))
    }

    /// Whether the condition of a rule is about runs, so that it belongs to no single machine.
    fn is_of_runs(&self, rule: &str) -> bool {
        let is = |of: &Condition| matches!(of, Condition::Run(_) | Condition::RunLonger(_) | Condition::RunSilent(_));
        self.rules.iter().any(|known| known.rule.id == rule && is(&known.condition))
    }

    /// Whether a row of the engine's state is of a machine of this name.
    pub fn is_row_of(key: &str, name: &str) -> bool {
        key.split(super::keep::SEP).nth(2).is_some_and(|subject| is_of(subject, name))
    }

    /// Releases a machine to another hub: its alerts do not end, and the other hub owns its rows.
    pub fn release_source(&mut self, source: &str) {
        let Some(at) = self.by_id.remove(source) else { return };
        self.signed_off.remove(source);
        let name = self.hosts[at].machine.name.clone();
        for subject in std::mem::take(&mut self.hosts[at].subjects) {
            self.drop_subject(subject.rule as usize);
        }
        self.leave_groups(at);
        let empty: Vec<(u32, String)> = self
            .group_of
            .iter()
            .filter(|(_, group)| self.groups[**group as usize].is_empty())
            .map(|(key, _)| key.clone())
            .collect();
        for key in empty {
            let Some(group) = self.group_of.remove(&key) else { continue };
            let own = &mut self.groups[group as usize];
            (own.state, own.dirty) = (SubjectState::default(), false);
            self.drop_subject(key.0 as usize);
            self.free.push(group);
        }
        self.hosts[at] = Host { gone: true, ..Host::default() };
        let others: BTreeSet<String> =
            self.runs.iter().filter(|(_, run)| !self.judges(run)).map(|(id, _)| id.clone()).collect();
        let gone: Vec<_> = self
            .facts
            .iter()
            .filter(|((rule, subject), fact)| match self.is_of_runs(rule) {
                true => others.contains(subject),
                false => fact.labels.get("source") == Some(&name),
            })
            .map(|(key, _)| key.clone())
            .collect();
        gone.iter().for_each(|key| drop(self.facts.remove(key)));
        let first = |place: Option<&shared::finding::Place>| place.is_some_and(|place| place.source == name);
        self.findings.retain(|_, finding| !first(finding.subject.first()));
        self.orphans.retain(|(_, subject), alert| {
            alert.labels.get("source") != Some(&name) && !others.contains(run_of(subject))
        });
        self.kept.retain(|(_, subject), _| !is_of(subject, &name) && !others.contains(run_of(subject)));
        self.adopted.remove(&name);
    }

    fn drop_subject(&mut self, rule: usize) {
        self.rules[rule].subjects = self.rules[rule].subjects.saturating_sub(1);
        self.subjects = self.subjects.saturating_sub(1);
    }

    /// Takes over machines of these names, with all rows that other hubs stored and all firing alerts. To be called
    /// before anything else about these machines. `now` in milliseconds since the Unix epoch.
    pub fn adopt(&mut self, names: &BTreeSet<String>, rows: &[StateRow], alerts: &[Alert], now: i64) {
        self.adopted.extend(names.iter().map(|name| (name.clone(), now)));
        let of = |subject: &str| {
            // A name may be a prefix of another, so names are matched at the ends of words.
            let mut ends = subject.match_indices(' ').map(|(at, _)| at).chain([subject.len()]);
            ends.any(|end| names.contains(&subject[..end]))
        };
        let read: Vec<(RowKey, &[u8])> = rows.iter().filter_map(row_of).collect();
        let mut runs: BTreeMap<String, RunFacts> = BTreeMap::new();
        for (key, bytes) in &read {
            if let RowKey::Time = key
                && self.before.is_none()
            {
                self.before = postcard::from_bytes(bytes).ok();
            }
            if let RowKey::Run(id) = key
                && let Ok(run) = postcard::from_bytes::<RunFacts>(bytes)
            {
                runs.insert(id.clone(), run);
            }
        }
        let moves = |run: &RunFacts| run.hosts.keys().next().is_some_and(|first| names.contains(first));
        // The run is in the state that the previous hub saw last: later changes are reported here.
        self.runs.retain(|id, run| !moves(run) || runs.contains_key(id));
        let own: BTreeSet<String> = runs.iter().filter(|(_, run)| moves(run)).map(|(id, _)| id.clone()).collect();
        self.runs.extend(runs.into_iter().filter(|(id, _)| own.contains(id)));
        let of_own_run = |subject: &str| own.contains(run_of(subject));
        for (key, bytes) in read {
            match key {
                RowKey::Subject(rule, subject) if of(&subject) || of_own_run(&subject) => {
                    if let Ok(kept) = postcard::from_bytes::<KeptSubject>(bytes) {
                        self.kept.insert((rule, subject), kept);
                    }
                }
                RowKey::Fact(rule, subject) => {
                    let Ok(fact) = postcard::from_bytes::<Fact>(bytes) else { continue };
                    let mine = match self.is_of_runs(&rule) {
                        true => own.contains(&subject),
                        false => fact.labels.get("source").is_some_and(|name| names.contains(name)),
                    };
                    if mine {
                        self.facts.entry((rule, subject)).or_insert(fact);
                    }
                }
                RowKey::SignedOff(id, name) if names.contains(&name) => {
                    self.signed_off.insert(id, name);
                }
                _ => {}
            }
        }
        for alert in alerts.iter().filter(|alert| alert.state == AlertState::Firing) {
            let mine = match self.is_of_runs(&alert.rule) {
                true => of_own_run(&alert.subject),
                false => {
                    alert.labels.get("source").is_some_and(|name| names.contains(name)) || of_own_run(&alert.subject)
                }
            };
            if mine {
                self.take_open(alert);
            }
        }
        self.put_runs_on_hosts();
        self.hosts.iter_mut().filter(|host| !host.gone).for_each(|host| host.rebuild = true);
    }

    /// Restores a firing alert from its own row, whatever the row of its state contains.
    pub(super) fn take_open(&mut self, alert: &Alert) {
        let key = (alert.rule.clone(), alert.subject.clone());
        if self.facts.contains_key(&key) {
            return;
        }
        // The alert's own row is authoritative: the state may be a second older.
        let kept = self.kept.entry(key.clone()).or_insert_with(|| from_alert(alert));
        if !kept.state.fires() {
            *kept = from_alert(alert);
        }
        self.orphans.insert(key, alert.clone());
    }

    /// Extends the grace period of silent machines after a time without information on their moves. They may have moved
    /// to another hub, and are lost no sooner than after a start. `now` in milliseconds since the Unix epoch.
    pub fn excuse_silent(&mut self, now: i64) {
        for host in self.hosts.iter_mut().filter(|host| !host.gone && now - host.heard > super::SILENT_MS) {
            host.heard = 0;
            self.adopted.insert(host.machine.name.clone(), now);
        }
    }

    /// Start of judging a machine here, milliseconds since the Unix epoch.
    pub(super) fn judged_since(&self, name: &str) -> i64 {
        self.adopted.get(name).copied().unwrap_or(self.started)
    }
}
