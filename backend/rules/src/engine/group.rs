//! Subjects that are groups: the series of a machine, a run or a GPU together.

use super::compile::Compiled;
use super::pace::Pace;
use super::series::{unknown, weigh};
use super::state::SubjectState;
use super::{Engine, KeptSubject, MAX_OF_RULE, MAX_SUBJECTS, NONE, STALE_INTERVALS, Series};
use crate::What;
use shared::rule::{Across, By, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum time between evaluations of a group, milliseconds. The ticks of a run with a thousand machines are spread
/// over the second.
const LEAST_MS: i64 = 900;

#[derive(Debug)]
struct Member {
    host: u32,
    t: i64,
    value: f64,
    pace: Pace,
}

#[derive(Debug)]
pub struct Group {
    pub rule: u32,
    pub key: String,
    /// Display name.
    pub place: String,
    pub labels: BTreeMap<String, String>,
    pub state: SubjectState,
    pub dirty: bool,
    members: Vec<Member>,
    t: i64,
}

impl Group {
    pub fn set_value(&mut self, slot: u32, t: i64, value: f64) {
        if let Some(member) = self.members.get_mut(slot as usize) {
            if member.t != 0 && t > member.t {
                member.pace.note(t - member.t);
            }
            (member.t, member.value) = (t, value);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.members.iter().all(|m| m.host == NONE)
    }

    fn value(&self, over: Across, interval: i64) -> Option<f64> {
        let is_fresh = |m: &&Member| (self.t - m.t).abs() <= STALE_INTERVALS * m.pace.usual_of(interval);
        let fresh = self.members.iter().filter(|m| m.host != NONE && m.t != 0).filter(is_fresh);
        let (mut n, mut sum, mut low, mut high, mut holding) = (0u32, 0.0, f64::INFINITY, f64::NEG_INFINITY, 0u32);
        for member in fresh {
            n += 1;
            sum += member.value;
            low = member.value.min(low);
            high = member.value.max(high);
            if let Across::Share(op, limit) = over {
                holding += u32::from(op.holds(member.value, limit));
            }
        }
        (n > 0).then(|| match over {
            Across::Mean => sum / f64::from(n),
            Across::Min => low,
            Across::Max => high,
            Across::Spread => high - low,
            Across::Share(..) => f64::from(holding) * 100.0 / f64::from(n),
        })
    }
}

impl Engine {
    #[allow(clippy::too_many_arguments, reason = "each says where the series belongs")]
    pub(super) fn join_group(
        &mut self,
        at: usize,
        index: u32,
        of: usize,
        by: By,
        key: &str,
        place: &str,
        series: &Series,
    ) {
        let known = self.group_of.get(&(of as u32, key.to_string())).copied();
        let group = match known {
            Some(group) => group,
            None => {
                if self.rules[of].subjects >= MAX_OF_RULE || self.subjects >= MAX_SUBJECTS {
                    self.rules[of].left += 1;
                    self.left += 1;
                    return;
                }
                let mut labels = self.labels(&self.hosts[at], series);
                labels.insert(
                    "tag".into(),
                    self.rules[of].threshold.as_ref().map(|t| t.first.value.tag().text()).unwrap_or_default(),
                );
                if by != By::Gpu {
                    labels.remove("gpu");
                }
                if by == By::Run {
                    let run = key.strip_prefix("run ").unwrap_or(key);
                    labels = self.runs.get(run).map(|r| r.labels.clone()).unwrap_or_default();
                }
                let id = (self.rules[of].rule.id.clone(), key.to_string());
                let state = self.claim(&id).state;
                self.rules[of].subjects += 1;
                self.subjects += 1;
                let fresh = Group {
                    rule: of as u32,
                    key: key.to_string(),
                    place: place.to_string(),
                    labels,
                    state,
                    dirty: false,
                    members: Vec::new(),
                    t: 0,
                };
                let group = match self.free.pop() {
                    Some(free) => {
                        self.groups[free as usize] = fresh;
                        free
                    }
                    None => {
                        self.groups.push(fresh);
                        self.groups.len() as u32 - 1
                    }
                };
                self.group_of.insert((of as u32, key.to_string()), group);
                group
            }
        };
        let members = &mut self.groups[group as usize].members;
        let member = Member { host: at as u32, t: 0, value: 0.0, pace: Pace::default() };
        let slot = match members.iter().position(|m| m.host == NONE) {
            Some(free) => {
                members[free] = member;
                free
            }
            None => {
                members.push(member);
                members.len() - 1
            }
        };
        let host = &mut self.hosts[at];
        host.members.push((index, group, slot as u32));
        if !host.groups.contains(&group) {
            host.groups.push(group);
        }
    }

    /// Removes a machine's series from their groups.
    pub(super) fn leave_groups(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        host.groups.clear();
        for (_, group, slot) in std::mem::take(&mut host.members) {
            if let Some(member) = self.groups.get_mut(group as usize).and_then(|g| g.members.get_mut(slot as usize)) {
                member.host = NONE;
            }
        }
    }

    /// Ends groups without series.
    pub(super) fn end_empty_groups(&mut self, t: i64) {
        let empty: Vec<(u32, String)> = self
            .group_of
            .iter()
            .filter(|(_, g)| self.groups[**g as usize].is_empty())
            .map(|(key, _)| key.clone())
            .collect();
        for key in empty {
            let Some(group) = self.group_of.remove(&key) else { continue };
            self.end_group(group as usize, t, "its series have ended");
            self.free.push(group);
        }
    }

    fn end_group(&mut self, group: usize, t: i64, why: &str) {
        let of = self.groups[group].rule as usize;
        if let Some(what) = self.groups[group].state.gone() {
            let mut transition = self.of_group(&self.groups[group], what);
            transition.alert.ended = Some(t.max(transition.alert.began));
            transition.alert.sentence += &format!("; {why}");
            self.out.push(transition);
        }
        let key = (self.rules[of].rule.id.clone(), self.groups[group].key.clone());
        let is_own = key.1.strip_prefix("run ").is_none_or(|run| self.judges_run(run));
        (self.groups[group].state, self.groups[group].dirty) = (SubjectState::default(), false);
        self.rules[of].subjects = self.rules[of].subjects.saturating_sub(1);
        self.subjects = self.subjects.saturating_sub(1);
        if is_own {
            self.forget(&key);
        }
    }

    /// Removes all groups; the states of those that stay are kept.
    pub(super) fn release_groups(&mut self, stays: impl Fn(&Compiled, &Group) -> bool) {
        self.group_of.clear();
        for at in 0..self.groups.len() {
            let group = &self.groups[at];
            if group.is_empty() && group.state.gone().is_none() {
                continue;
            }
            let rule = &self.rules[group.rule as usize];
            if stays(rule, group) {
                let key = (rule.rule.id.clone(), group.key.clone());
                self.kept.insert(key, KeptSubject { state: group.state.clone(), more: None });
                let of = group.rule as usize;
                self.rules[of].subjects = self.rules[of].subjects.saturating_sub(1);
                self.subjects = self.subjects.saturating_sub(1);
            } else {
                let t = group.t;
                self.end_group(at, t, "the rule was changed");
            }
        }
        self.groups.clear();
        self.free.clear();
        for host in &mut self.hosts {
            host.members.clear();
            host.groups.clear();
        }
    }

    /// Evaluates the groups of a machine that has ticked.
    pub(super) fn tick_groups(&mut self, at: usize, t: i64, interval: i64) {
        let elsewhere: BTreeSet<String> = match &self.hub {
            Some(_) => {
                let runs = self.hosts[at].runs.iter().filter(|(run, _)| !self.judges_run(run));
                runs.map(|(run, _)| format!("run {run}")).collect()
            }
            None => BTreeSet::new(),
        };
        for i in 0..self.hosts[at].groups.len() {
            let which = self.hosts[at].groups[i] as usize;
            let group = &mut self.groups[which];
            let passed = t - group.t;
            // A tick slightly older than the last one comes from a machine whose clock is behind, not from a clock that
            // was set.
            if group.t != 0 && (-STALE_INTERVALS * interval..LEAST_MS.min(interval * 9 / 10)).contains(&passed) {
                continue;
            }
            let dt = if passed <= 0 || group.t == 0 { interval } else { passed.min(STALE_INTERVALS * interval) } as u32;
            group.t = t;
            let Some(threshold) = &self.rules[group.rule as usize].threshold else { continue };
            let Value::Over(over, by, _) = threshold.first.value else { continue };
            // The hub of the run's first machine judges it.
            if by == By::Run && !elsewhere.is_empty() && elsewhere.contains(&group.key) {
                continue;
            }
            let what = match group.value(over, interval) {
                None => unknown(&mut group.state, t, interval),
                Some(value) => {
                    let found = group.state.unknown != 0;
                    (group.state.unknown, group.state.seen) = (0, t);
                    let what = weigh(&mut group.state, threshold, value, None, t, dt);
                    what.or((found && group.state.fires() && !group.state.flaps()).then_some(What::Changed))
                }
            };
            if let Some(what) = what {
                group.dirty = true;
                let transition = self.of_group(&self.groups[which], what);
                self.out.push(transition);
                if what == What::Ended {
                    self.groups[which].state.forget_flaps();
                }
            }
        }
    }
}
