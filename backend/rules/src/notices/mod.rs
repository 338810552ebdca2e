//! From changes of alerts to notices: what is held back, what belongs together, when it is told.

mod channel;
mod quiet;
mod text;

pub use quiet::Hours;
pub use text::{fold, value_of};

use crate::engine::{limit_of, unit_of};
use crate::{StateRow, Transition, What, id};
use channel::Channels;
use serde::{Deserialize, Serialize};
use shared::alert::{
    Acked, Alert, AlertSeverity, AlertState, Channel, MAX_NAMED, Notice, NoticeKind, Origin, Rule, Silence,
};
use shared::catalog::{Catalog, glob};
use shared::rule::{CRASHED, Condition, Nature, Op, duration};
use shared::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// A notice waits so long for others of its group; of a run's state so long, so that it can be sharpened. Milliseconds.
const WAIT_MS: i64 = 10_000;
const RUN_WAIT_MS: i64 = 5_000;

/// A group speaks again after so long, and after twice as long each time while it goes on, up to [`SPACING_MOST`].
const SPACING_LEAST: i64 = 60_000;
const SPACING_MOST: i64 = 600_000;

/// Without `repeat`: 4 h, milliseconds.
const REPEAT_MS: i64 = 4 * 3_600_000;

/// What fired so long ago is not told any more, milliseconds.
const LATE_MS: i64 = 600_000;

/// How soon it is looked again whether what is held back may be told, milliseconds.
const LOOK_MS: i64 = 10_000;

/// How often all that fires is sent to an Alertmanager, milliseconds.
const STANDING_MS: i64 = 60_000;

/// A group without members is forgotten after so long; one whose last notice may still wait later, since what comes then must
/// count on. Milliseconds.
const FORGET_MS: i64 = 3_600_000;
const FORGET_UNKNOWN_MS: i64 = 86_400_000;

/// How often it is looked which alerts may be forgotten, milliseconds.
const TIDY_MS: i64 = 60_000;

/// Of the built-in rules, what is less goes to no channel that is not named.
const DEFAULT_LEAST: AlertSeverity = AlertSeverity::Warning;

/// The kind of channels to which each alert is an incident of its own.
const PAGER: &str = "pagerduty";

/// The driver's number for a GPU that is gone.
const GPU_GONE: &str = "79";

/// What does not change with alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name of the team; empty in `serve`.
    pub team: String,
    /// Goes into the ids of notices, so that teams with channels of one name have none in common: the team's id.
    pub salt: String,
    /// Name of the host that tells.
    pub host: String,
    /// The page's address without a slash at its end; None where there is none.
    pub public_url: Option<String>,
    /// The most notices of a channel in 10 min; 20 unless set.
    pub storm: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Setup { team: String::new(), salt: String::new(), host: String::new(), public_url: None, storm: 20 }
    }
}

/// A notice for a channel. It is to be written in the transaction that writes the alerts.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// Name of the channel.
    pub channel: String,
    #[allow(missing_docs, reason = "see Notice")]
    pub notice: Notice,
}

struct Known {
    rule: Rule,
    nature: Nature,
    crash: bool,
    limit: String,
    unit: Unit,
    worse: Op,
    repeat: i64,
}

/// An alert, while somebody has to be told of it.
#[derive(Debug)]
struct Live {
    alert: Alert,
    silence: Option<String>,
    /// The groups in which it is.
    groups: Vec<GroupKey>,
}

/// What a group has told of an alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    told: bool,
    event: bool,
    /// It was put into a digest or a summary, and has not been told by itself.
    summed: bool,
    /// Which notice of the group named it last, and when that was made; 0: none.
    seq: u64,
    at: i64,
    /// That notice was given up.
    lost: bool,
}

/// Alerts that are told together to one channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Group {
    seq: u64,
    last: i64,
    spacing: i64,
    due: i64,
    members: BTreeMap<String, Member>,
    /// When its last notice was made, while nobody knows what became of it; 0: it is known.
    made: i64,
    /// It has something to say, and waits.
    waits: bool,
}

type GroupKey = (String, String);

/// Whose alerts an alert holds back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    /// Those of a machine.
    Source(String),
    /// Those of a run.
    Run(String),
    /// Those of a GPU: machine and number.
    Gpu(String, String),
}

/// Whom to tell, what was told, and what waits.
#[derive(Default)]
pub struct Notices {
    setup: Setup,
    rules: BTreeMap<String, Known>,
    channels: Channels,
    silences: Vec<Silence>,
    held_back: BTreeMap<String, u64>,
    alerts: BTreeMap<String, Live>,
    groups: BTreeMap<GroupKey, Group>,
    /// Alerts that hold back others, by whose.
    inhibitors: BTreeMap<Holds, BTreeSet<String>>,
    /// And where each stands among them.
    holders: BTreeMap<String, Holds>,
    held: BTreeMap<String, String>,
    dirty: BTreeSet<GroupKey>,
    /// Some alert is over, and may be forgotten.
    tidy: bool,
    /// When it was looked last which.
    tidied: i64,
}

const SEP: char = '\u{1f}';

impl Notices {
    /// Nothing is told yet.
    pub fn new(setup: Setup) -> Self {
        Notices { setup, ..Notices::default() }
    }

    /// The rules from now on.
    pub fn set_rules(&mut self, rules: &[Rule], catalog: &Catalog) {
        self.rules = rules
            .iter()
            .map(|rule| {
                let condition = shared::rule::parse(&rule.when, catalog).ok();
                let own = rule.repeat.as_deref().and_then(|text| duration(text).ok());
                let known = Known {
                    nature: condition.as_ref().map_or(Nature::Code, Condition::nature),
                    crash: matches!(&condition, Some(Condition::Run(states)) if states.iter().any(|s| CRASHED.contains(s))),
                    limit: condition.as_ref().map(limit_of).unwrap_or_default(),
                    unit: condition.as_ref().map_or(Unit::Count, unit_of),
                    worse: match &condition {
                        Some(Condition::Threshold(t)) => t.first.op,
                        _ => Op::Above,
                    },
                    repeat: own.map_or(REPEAT_MS, |seconds| i64::from(seconds) * 1000),
                    rule: rule.clone(),
                };
                (rule.id.clone(), known)
            })
            .collect();
        // A rule may mean something else now.
        let holders: Vec<_> = self.alerts.iter().map(|(id, live)| (id.clone(), self.holds(&live.alert))).collect();
        for (id, holds) in holders {
            self.put_holder(&id, holds);
        }
    }

    /// The channels from now on. Those whose quiet hours cannot be read, and why; they have none.
    pub fn set_channels(&mut self, channels: &[Channel]) -> Vec<(String, String)> {
        let wrong = self.channels.set(channels);
        let known = |name: &String| self.channels.knows(name);
        let gone: Vec<GroupKey> = self.groups.keys().filter(|(channel, _)| !known(channel)).cloned().collect();
        for key in gone {
            self.groups.remove(&key);
            self.dirty.insert(key);
        }
        wrong
    }

    /// The silences that hold or will.
    pub fn set_silences(&mut self, silences: &[Silence]) {
        self.silences = silences.to_vec();
    }

    /// Somebody takes an alert on: it is not repeated.
    pub fn ack(&mut self, alert: &str, by: Acked) {
        if let Some(live) = self.alerts.get_mut(alert) {
            live.alert.acked = Some(by);
        }
    }

    fn nature(&self, alert: &Alert) -> Nature {
        self.rules.get(&alert.rule).map_or(Nature::Code, |known| known.nature)
    }

    /// A change of an alert. `now` in milliseconds since the Unix epoch.
    pub fn hear(&mut self, transition: &Transition, now: i64) {
        let Transition { what, alert, event, .. } = transition;
        if matches!(what, What::Pending | What::Dropped) {
            return;
        }
        let before = self.alerts.get(&alert.id);
        let rises = before.is_some_and(|b| b.alert.severity < alert.severity);
        let is_known = before.is_some();
        let mut alert = alert.clone();
        if let Some(before) = before {
            alert.acked = before.alert.acked.clone();
        }
        let silence = before.and_then(|b| b.silence.clone());
        let (nature, id) = (self.nature(&alert), alert.id.clone());
        self.put_holder(&id, self.holds(&alert));
        let wait = if nature == Nature::Run { RUN_WAIT_MS } else { WAIT_MS };
        let fresh = (*what == What::Fired || rises) && alert.state == AlertState::Firing;
        // An agent that was away tells of what is over, or old; a run's state is always told.
        let late = fresh && !is_known && nature != Nature::Run && now - alert.fired.unwrap_or(now) >= LATE_MS;
        if late {
            self.held.insert(id, "it fired too long ago to be told".into());
            return;
        }
        let mut groups = self.alerts.get(&id).map(|live| live.groups.clone()).unwrap_or_default();
        if fresh {
            for channel in self.channels_of(&alert) {
                let key = (channel.clone(), self.group_of(&channel, &alert));
                let group = self.groups.entry(key.clone()).or_default();
                let member = Member { event: *event, ..Member::default() };
                group.members.insert(id.clone(), member);
                group.ask(now + wait);
                self.dirty.insert(key.clone());
                if !groups.contains(&key) {
                    groups.push(key);
                }
            }
        } else if alert.state == AlertState::Resolved {
            for key in &groups {
                if let Some(group) = self.groups.get_mut(key).filter(|g| g.members.contains_key(&id)) {
                    group.ask(now + wait);
                    self.dirty.insert(key.clone());
                }
            }
        }
        self.tidy |= alert.state == AlertState::Resolved;
        self.alerts.insert(id, Live { alert, silence, groups });
    }

    fn channels_of(&self, alert: &Alert) -> Vec<String> {
        let Some(known) = self.rules.get(&alert.rule) else { return self.channels.defaults() };
        let built_in = known.rule.origin == Origin::BuiltIn;
        match &known.rule.to {
            Some(to) => to.iter().filter(|name| self.channels.knows(name)).cloned().collect(),
            None if built_in && alert.severity < DEFAULT_LEAST => Vec::new(),
            None => self.channels.defaults(),
        }
    }

    /// What is told together: alerts of a rule and a run, or of a rule and a group of machines.
    fn group_of(&self, channel: &str, alert: &Alert) -> String {
        if self.channels.is_kind(channel, PAGER) {
            return alert.id.clone();
        }
        let label = |key: &str| alert.labels.get(key).map_or("", String::as_str);
        match label("run") {
            "" => format!("{}/{}", alert.rule, label("group")),
            run => format!("{}/run {run}", alert.rule),
        }
    }

    /// Whose alerts that alert holds back; None: nobody's.
    fn holds(&self, alert: &Alert) -> Option<Holds> {
        if alert.state != AlertState::Firing {
            return None;
        }
        let label = |key: &str| alert.labels.get(key).cloned();
        match self.nature(alert) {
            Nature::SourceLost => label("source").map(Holds::Source),
            Nature::Run if self.rules.get(&alert.rule).is_some_and(|k| k.crash) => label("run").map(Holds::Run),
            Nature::Xid if alert.labels.get("xid").is_some_and(|x| x == GPU_GONE) => {
                Some(Holds::Gpu(label("source")?, label("gpu")?))
            }
            _ => None,
        }
    }

    fn put_holder(&mut self, id: &str, holds: Option<Holds>) {
        if self.holders.get(id) == holds.as_ref() {
            return;
        }
        if let Some(before) = self.holders.remove(id)
            && let Some(ids) = self.inhibitors.get_mut(&before)
        {
            ids.remove(id);
            if ids.is_empty() {
                self.inhibitors.remove(&before);
            }
        }
        if let Some(holds) = holds {
            self.inhibitors.entry(holds.clone()).or_default().insert(id.to_string());
            self.holders.insert(id.to_string(), holds);
        }
    }

    /// What holds an alert back.
    fn inhibitor(&self, alert: &Alert) -> Option<&Alert> {
        let label = |key: &str| alert.labels.get(key).cloned();
        let nature = self.nature(alert);
        let all = match nature {
            Nature::SourceLost | Nature::Run | Nature::Code => return None,
            _ => [
                label("source").map(Holds::Source),
                label("run").map(Holds::Run).filter(|_| matches!(nature, Nature::Missing | Nature::Idle)),
                label("source").zip(label("gpu")).map(|(s, g)| Holds::Gpu(s, g)).filter(|_| nature == Nature::Missing),
            ],
        };
        let ids = all.iter().flatten().filter_map(|whose| self.inhibitors.get(whose)).flatten();
        ids.filter_map(|id| self.alerts.get(id)).map(|live| &live.alert).find(|other| other.id != alert.id)
    }

    /// Why nobody is told of an alert now; None: nothing holds it back.
    fn holds_back(&self, alert: &Alert, now: i64) -> Option<(String, Option<String>)> {
        if let Some(inhibitor) = self.inhibitor(alert) {
            return Some((format!("held back: {}", inhibitor.sentence), None));
        }
        let silence = self.silences.iter().find(|s| s.from * 1000 <= now && now < s.to * 1000 && silences(s, alert))?;
        let by = if silence.by.is_empty() { String::new() } else { format!(" by {}", silence.by) };
        let until = crate::engine::hour(silence.to * 1000, now);
        Some((format!("silenced{by} until {until}"), Some(silence.id.clone())))
    }

    /// Looks whether an alert is held back, and remembers it.
    fn judge(&mut self, id: &str, now: i64) -> bool {
        let Some(live) = self.alerts.get(id) else { return true };
        let why = self.holds_back(&live.alert, now);
        let (text, silence) = why.map_or((String::new(), None), |(text, silence)| (text, silence));
        let held = !text.is_empty();
        let Some(live) = self.alerts.get_mut(id) else { return true };
        if live.alert.held != text {
            live.alert.held.clone_from(&text);
            self.held.insert(id.to_string(), text);
        }
        if silence.is_some() && live.silence != silence {
            *self.held_back.entry(silence.clone().unwrap_or_default()).or_default() += 1;
            live.silence = silence;
        }
        held
    }

    /// Alerts for which the reason that nobody is told is another now; empty: there is none. Since it was asked last.
    pub fn held(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.held).into_iter().collect()
    }

    /// How many further alerts each silence held back, since it was asked last.
    pub fn held_back(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.held_back).into_iter().collect()
    }

    /// The notices that are due.
    pub fn poll(&mut self, now: i64) -> Vec<Due> {
        let mut out = Vec::new();
        let due: Vec<GroupKey> = self.groups.iter().filter(|(_, g)| g.due <= now).map(|(key, _)| key.clone()).collect();
        for key in due {
            if self.channels.is_kind(&key.0, "alertmanager") {
                if let Some(group) = self.groups.get_mut(&key) {
                    group.due = i64::MAX;
                }
                continue;
            }
            if let Some(notice) = self.speak(&key, now) {
                self.channels.count(&key.0, now);
                out.push(Due { channel: key.0.clone(), notice });
            }
            self.dirty.insert(key);
        }
        out.extend(self.sum_up(now));
        out.extend(self.standing(now));
        if (0..TIDY_MS).contains(&(now - self.tidied)) {
            return out;
        }
        self.tidied = now;
        self.forget_groups(now);
        if self.tidy {
            let wanted: BTreeSet<&String> = self.groups.values().flat_map(|g| g.members.keys()).collect();
            let waits = |id: &String| self.channels.waits_for(id);
            self.alerts.retain(|id, live| live.alert.state == AlertState::Firing || wanted.contains(id) || waits(id));
            self.tidy = self.alerts.values().any(|live| live.alert.state == AlertState::Resolved);
        }
        out
    }

    /// Groups that have nobody any more.
    fn forget_groups(&mut self, now: i64) {
        let dirty = &mut self.dirty;
        self.groups.retain(|key, group| {
            let after = if group.made == 0 { FORGET_MS } else { FORGET_UNKNOWN_MS };
            let stays = !group.members.is_empty() || now - group.last <= after;
            if !stays {
                dirty.insert(key.clone());
            }
            stays
        });
    }

    /// What a group has to say now.
    fn speak(&mut self, key: &GroupKey, now: i64) -> Option<Notice> {
        let ids: Vec<(String, Member)> = self.groups.get(key)?.members.iter().map(|(id, m)| (id.clone(), *m)).collect();
        let quiet = self.channels.quiet_until(&key.0, now);
        // There an end closes what keeps people awake: it neither waits nor is it one too many.
        let pages = self.channels.is_kind(&key.0, PAGER);
        let (mut fires, mut over, mut stands, mut waits) = (Vec::new(), Vec::new(), Vec::new(), false);
        let mut gone = Vec::new();
        for (id, member) in &ids {
            let Some(live) = self.alerts.get(id) else {
                gone.push(id.clone());
                continue;
            };
            let ended = live.alert.state == AlertState::Resolved;
            let known = self.rules.get(&live.alert.rule);
            let tells_end = known.is_none_or(|k| k.rule.resolved) && !member.event && !member.lost;
            let passes = self.passes(&live.alert);
            if ended && member.told {
                gone.push(id.clone());
                if !tells_end || member.summed {
                    continue;
                }
                match quiet.filter(|_| !passes && !pages) {
                    Some(end) => self.channels.wait(&key.0, id, end),
                    None => over.push(id.clone()),
                }
                continue;
            }
            if self.judge(id, now) {
                if ended {
                    gone.push(id.clone());
                }
                waits = true;
                continue;
            }
            if member.told {
                stands.push(id.clone());
            } else if let Some(end) = quiet.filter(|_| !passes) {
                self.channels.wait(&key.0, id, end);
                if ended {
                    gone.push(id.clone());
                }
                self.mark(key, id, true);
                // The summary speaks for it.
                if let Some(group) = self.groups.get_mut(key) {
                    group.last = now;
                }
            } else {
                if ended {
                    gone.push(id.clone());
                }
                fires.push(id.clone());
            }
        }
        let group = self.groups.get(key)?;
        let repeat = self.repeat_of(&stands, group, quiet.is_some(), now);
        let speaks = !fires.is_empty() || !over.is_empty() || repeat;
        let mut notice = None;
        let closes = pages && !over.is_empty();
        if speaks && !closes && self.channels.storms(&key.0, now, self.setup.storm) {
            // A digest will have it.
            for id in fires.iter().chain(&over) {
                self.channels.sum(&key.0, id);
                self.mark(key, id, true);
            }
            if let Some(group) = self.groups.get_mut(key) {
                group.said(now);
            }
        } else if speaks {
            for id in &fires {
                self.mark(key, id, false);
            }
            let mut all: Vec<String> = fires;
            all.extend(over);
            if repeat {
                let heard =
                    |id: &&String| quiet.is_none() || self.alerts.get(*id).is_some_and(|live| self.passes(&live.alert));
                all.extend(stands.iter().filter(heard).cloned());
            }
            notice = self.notice(key, &all, !stands.is_empty(), now);
        }
        let group = self.groups.get_mut(key)?;
        for id in gone {
            group.members.remove(&id);
        }
        let open: Vec<String> = group.members.keys().cloned().collect();
        let repeats = open.iter().filter_map(|id| self.alerts.get(id)).any(|l| l.alert.acked.is_none());
        let every = open
            .first()
            .and_then(|id| self.alerts.get(id))
            .and_then(|l| self.rules.get(&l.alert.rule))
            .map_or(REPEAT_MS, |k| k.repeat);
        let group = self.groups.get(key)?;
        let passes = group.members.iter().filter(|(_, m)| !m.event).filter_map(|(id, _)| self.alerts.get(id));
        let passes = passes.into_iter().any(|l| l.alert.acked.is_none() && self.passes(&l.alert));
        let group = self.groups.get_mut(key)?;
        group.waits = false;
        group.due = match (waits, quiet) {
            (true, _) => now + LOOK_MS,
            // What passes quiet hours is repeated in them.
            (false, Some(end)) if passes => (end * 1000).min((group.last + every).max(now + LOOK_MS)),
            (false, Some(end)) if !open.is_empty() => end * 1000,
            _ if repeats && group.last != 0 => (group.last + every).max(now + LOOK_MS),
            _ if repeats => now + LOOK_MS,
            _ => i64::MAX,
        };
        notice
    }

    /// Whether quiet hours do not hold it.
    fn passes(&self, alert: &Alert) -> bool {
        alert.severity == AlertSeverity::Critical || self.rules.get(&alert.rule).is_some_and(|k| !k.rule.quiet)
    }

    /// Whether what stands is told again.
    fn repeat_of(&self, stands: &[String], group: &Group, quiet: bool, now: i64) -> bool {
        stands.iter().filter_map(|id| Some((id, self.alerts.get(id)?))).any(|(id, live)| {
            let every = self.rules.get(&live.alert.rule).map_or(REPEAT_MS, |k| k.repeat);
            let event = group.members.get(id).is_some_and(|m| m.event);
            let waits = event || live.alert.acked.is_some() || (quiet && !self.passes(&live.alert));
            !waits && group.last != 0 && now - group.last >= every
        })
    }

    fn mark(&mut self, key: &GroupKey, id: &str, summed: bool) {
        if let Some(member) = self.groups.get_mut(key).and_then(|g| g.members.get_mut(id)) {
            (member.told, member.summed) = (true, summed);
        }
    }

    fn link(&self, page: &str) -> Option<String> {
        self.setup.public_url.as_ref().map(|url| format!("{}/?page=alerts{page}", url.trim_end_matches('/')))
    }

    /// The notice of these alerts of a group.
    fn notice(&mut self, key: &GroupKey, ids: &[String], stands: bool, now: i64) -> Option<Notice> {
        let mut alerts: Vec<&Alert> = ids.iter().filter_map(|id| self.alerts.get(id)).map(|l| &l.alert).collect();
        let first = *alerts.first()?;
        let known = self.rules.get(&first.rule);
        let worse = known.map_or(Op::Above, |k| k.worse);
        alerts.sort_by(|a, b| worst_first(a, b, worse));
        let over = alerts.iter().all(|a| a.state == AlertState::Resolved) && !stands;
        let link = match alerts[..] {
            [one] => self.link(&format!("&alert={}", one.id)),
            _ => self.link(""),
        };
        let plain = Rule { name: first.name.clone(), ..Rule::default() };
        let rule = known.map_or(&plain, |k| &k.rule);
        let limit = known.map_or(("", Unit::Count), |k| (k.limit.as_str(), k.unit));
        let (title, note) = text::title_and_note(rule, &alerts, limit, link.as_deref());
        let note = match (&note[..], &alerts[..]) {
            ("", [one]) => one.text.clone(),
            _ => note,
        };
        let severity = alerts.iter().map(|a| a.severity).max().unwrap_or_default();
        let mut notice = Notice {
            id: String::new(),
            kind: if over { NoticeKind::Resolved } else { NoticeKind::Firing },
            group: key.1.clone(),
            seq: 0,
            severity,
            rule: rule.name.clone(),
            title,
            note,
            more: alerts.len().saturating_sub(MAX_NAMED) as u64,
            alerts: alerts.into_iter().take(MAX_NAMED).cloned().collect(),
            counts: Vec::new(),
            link,
            help: rule.link.clone(),
            team: self.setup.team.clone(),
            host: self.setup.host.clone(),
            at: now / 1000,
        };
        let group = self.groups.get_mut(key)?;
        group.said(now);
        group.seq += 1;
        group.made = now;
        for id in ids {
            if let Some(member) = group.members.get_mut(id) {
                (member.seq, member.at, member.lost) = (group.seq, now, false);
            }
        }
        notice.seq = group.seq;
        notice.id = self.setup.id_of((&key.0, &key.1), notice.seq, now);
        Some(notice)
    }

    /// Digests of storms, and summaries of quiet hours.
    fn sum_up(&mut self, now: i64) -> Vec<Due> {
        let mut out = Vec::new();
        for (channel, why, ids) in self.channels.due(now, self.setup.storm) {
            let alerts: Vec<&Alert> = ids.iter().filter_map(|id| self.alerts.get(id)).map(|l| &l.alert).collect();
            if alerts.is_empty() {
                continue;
            }
            let mut alerts = alerts;
            alerts.sort_by(|a, b| worst_first(a, b, Op::Above));
            let stand = alerts.iter().filter(|a| a.state == AlertState::Firing).count();
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            alerts.iter().for_each(|a| *counts.entry(a.name.clone()).or_default() += 1);
            let all = match alerts.len() {
                1 => "1 alert".to_string(),
                n => format!("{n} alerts"),
            };
            if why == channel::Sum::Quiet {
                // It is told now, and so will be its end.
                for (key, group) in self.groups.iter_mut().filter(|((name, _), _)| *name == channel) {
                    for member in
                        ids.iter().filter_map(|id| Some(std::mem::take(&mut group.members.get_mut(id)?.summed)))
                    {
                        if member {
                            self.dirty.insert(key.clone());
                        }
                    }
                }
            }
            let seq = self.channels.next_seq(&channel);
            let group = "digest".to_string();
            out.push(Due {
                notice: Notice {
                    id: self.setup.id_of((&channel, &group), seq, now),
                    kind: NoticeKind::Digest,
                    seq,
                    severity: alerts.iter().map(|a| a.severity).max().unwrap_or_default(),
                    rule: String::new(),
                    title: format!("{}: {all}, {stand} still firing", why.words()),
                    note: String::new(),
                    more: alerts.len().saturating_sub(why.named()) as u64,
                    alerts: alerts.into_iter().take(why.named()).cloned().collect(),
                    counts: counts.into_iter().collect(),
                    link: self.link(""),
                    help: None,
                    team: self.setup.team.clone(),
                    host: self.setup.host.clone(),
                    at: now / 1000,
                    group,
                },
                channel,
            });
        }
        out
    }

    /// All that fires, for channels that group and repeat by themselves.
    fn standing(&mut self, now: i64) -> Vec<Due> {
        let mut out = Vec::new();
        for channel in self.channels.standing(now, STANDING_MS) {
            let mut alerts = Vec::new();
            let mut over = Vec::new();
            for (key, group) in self.groups.iter().filter(|(key, _)| key.0 == channel) {
                for id in group.members.keys() {
                    let Some(live) = self.alerts.get(id) else { continue };
                    if live.alert.state == AlertState::Resolved {
                        over.push((key.clone(), id.clone()));
                    }
                    let inhibited = self.holds_back(&live.alert, now).is_some_and(|(_, silence)| silence.is_none());
                    if !inhibited {
                        alerts.push(live.alert.clone());
                    }
                }
            }
            for part in parts(alerts) {
                let seq = self.channels.next_seq(&channel);
                let fires = part.iter().any(|a| a.state == AlertState::Firing);
                let group = text::STANDING.to_string();
                out.push(Due {
                    notice: Notice {
                        id: self.setup.id_of((&channel, &group), seq, now),
                        kind: if fires { NoticeKind::Firing } else { NoticeKind::Resolved },
                        seq,
                        severity: part.iter().map(|a| a.severity).max().unwrap_or_default(),
                        rule: String::new(),
                        title: format!("{} alerts", part.len()),
                        note: String::new(),
                        alerts: part,
                        more: 0,
                        counts: Vec::new(),
                        link: self.link(""),
                        help: None,
                        team: self.setup.team.clone(),
                        host: self.setup.host.clone(),
                        at: now / 1000,
                        group,
                    },
                    channel: channel.clone(),
                });
            }
            for (key, id) in over {
                if let Some(group) = self.groups.get_mut(&key) {
                    group.members.remove(&id);
                    self.dirty.insert(key);
                }
            }
        }
        out
    }

    /// When [`poll`](Self::poll) has something to do next, milliseconds since the Unix epoch; None: not before it hears.
    pub fn next_due(&self) -> Option<i64> {
        let groups = self.groups.values().map(|g| g.due).filter(|due| *due != i64::MAX);
        groups.chain(self.channels.next_due()).min()
    }

    /// A notice was taken, or given up: then its end is not told either.
    pub fn outcome(&mut self, channel: &str, notice: &str, taken: bool) {
        let of = self.groups.iter_mut().filter(|((name, _), _)| name == channel);
        for (key, group) in of {
            let id = |seq: u64, at: i64| self.setup.id_of((&key.0, &key.1), seq, at);
            if group.made != 0 && id(group.seq, group.made) == notice {
                group.made = 0;
                self.dirty.insert(key.clone());
            }
            // An older one may be known only after a newer one was made; few differ.
            let made: BTreeSet<(u64, i64)> =
                group.members.values().filter(|m| m.seq > 0).map(|m| (m.seq, m.at)).collect();
            let Some(of) = made.into_iter().find(|(seq, at)| id(*seq, *at) == notice) else { continue };
            for member in group.members.values_mut().filter(|m| (m.seq, m.at) == of) {
                member.lost = !taken;
            }
            self.dirty.insert(key.clone());
        }
    }

    /// Parts of the state that changed since it was asked last.
    pub fn changed_rows(&mut self) -> Vec<StateRow> {
        let mut rows: Vec<StateRow> = Vec::new();
        for key in std::mem::take(&mut self.dirty) {
            let group = self.groups.get(&key);
            let bytes = group.filter(|g| g.seq > 0 || !g.members.is_empty()).and_then(|g| postcard::to_stdvec(g).ok());
            rows.push(StateRow { key: format!("g{SEP}{}{SEP}{}", key.0, key.1), bytes });
        }
        for (name, bytes) in self.channels.changed() {
            rows.push(StateRow { key: format!("c{SEP}{name}"), bytes: Some(bytes) });
        }
        rows
    }

    /// After a start, once rules and channels are set: all rows that stand, and all alerts that fire or that ended in the
    /// last 24 h. What fires and was in nobody's row is told as if it were new.
    pub fn restore(&mut self, rows: &[StateRow], alerts: &[Alert], now: i64) {
        for row in rows {
            let (Some(bytes), Some((sort, rest))) = (&row.bytes, row.key.split_once(SEP)) else { continue };
            match (sort, rest.split_once(SEP)) {
                ("g", Some((channel, group))) => {
                    if let Ok(read) = postcard::from_bytes::<Group>(bytes) {
                        self.groups.insert((channel.to_string(), group.to_string()), read);
                    }
                }
                ("c", None) => self.channels.restore(rest, bytes),
                _ => {}
            }
        }
        let mut of: BTreeMap<String, Vec<GroupKey>> = BTreeMap::new();
        for (key, group) in &self.groups {
            group.members.keys().for_each(|id| of.entry(id.clone()).or_default().push(key.clone()));
        }
        for alert in alerts {
            let groups = of.remove(&alert.id).unwrap_or_default();
            let known = !groups.is_empty() || self.channels.waits_for(&alert.id);
            if known {
                self.alerts.insert(alert.id.clone(), Live { alert: alert.clone(), silence: None, groups });
            }
            if alert.state == AlertState::Firing {
                // The same words again hold back what they held back; what was told stays told.
                let event =
                    self.rules.get(&alert.rule).is_some_and(|k| k.nature == Nature::Run || k.nature == Nature::Xid);
                let what = if known { What::Changed } else { What::Fired };
                self.hear(&Transition { what, alert: alert.clone(), event, flapping: false }, now);
            }
        }
        for (key, group) in &mut self.groups {
            let before = group.members.len();
            group.members.retain(|id, _| self.alerts.contains_key(id));
            if before != group.members.len() {
                self.dirty.insert(key.clone());
            }
        }
    }
}

impl Group {
    /// It has something to say at `wanted`; what it waits with already comes no later for it.
    fn ask(&mut self, wanted: i64) {
        let due = if self.last == 0 { wanted } else { wanted.max(self.last + self.spacing) };
        self.due = if self.waits { self.due.min(due) } else { due };
        self.waits = true;
    }

    fn said(&mut self, now: i64) {
        let goes_on = self.last != 0 && now - self.last <= SPACING_MOST + LOOK_MS;
        self.spacing = if goes_on { (self.spacing * 2).clamp(SPACING_LEAST, SPACING_MOST) } else { SPACING_LEAST };
        self.last = now;
    }
}

fn worst_first(a: &Alert, b: &Alert, op: Op) -> std::cmp::Ordering {
    let fires = |x: &Alert| x.state == AlertState::Resolved;
    let by_value = match (a.worst, b.worst) {
        (Some(x), Some(y)) if op.is_worse(x, y) => std::cmp::Ordering::Less,
        (Some(x), Some(y)) if op.is_worse(y, x) => std::cmp::Ordering::Greater,
        _ => std::cmp::Ordering::Equal,
    };
    fires(a)
        .cmp(&fires(b))
        .then(b.severity.cmp(&a.severity))
        .then(by_value)
        .then(a.fired.cmp(&b.fired))
        .then(a.id.cmp(&b.id))
}

impl Setup {
    /// The id of a channel's and group's notice that was made then: a channel that was removed and is made again counts
    /// from 1 again.
    fn id_of(&self, (channel, group): (&str, &str), seq: u64, now: i64) -> String {
        id::of(&["notice", &self.salt, channel, group, &seq.to_string(), &now.to_string()])
    }
}

/// Alerts in parts that are small enough for one message each.
fn parts(alerts: Vec<Alert>) -> Vec<Vec<Alert>> {
    let mut parts: Vec<Vec<Alert>> = Vec::new();
    let mut bytes = 0;
    for alert in alerts {
        let own = text::bytes_of(&alert);
        match parts.last_mut() {
            Some(part) if bytes + own <= text::STANDING_BYTES => part.push(alert),
            _ => {
                bytes = 0;
                parts.push(vec![alert]);
            }
        }
        bytes += own;
    }
    parts
}

/// Whether a silence means that alert.
pub fn silences(silence: &Silence, alert: &Alert) -> bool {
    !silence.matches.is_empty()
        && silence.matches.iter().all(|(key, pattern)| match key.as_str() {
            // Of a team's rule the team stands behind it.
            "rule" => glob(pattern, &alert.name) || alert.rule.split('@').next() == Some(pattern),
            "severity" => glob(pattern, alert.severity.word()),
            "subject" => glob(pattern, &alert.subject),
            "title" => glob(pattern, &alert.sentence) || alert.labels.get("title").is_some_and(|t| glob(pattern, t)),
            key => alert.labels.get(key).is_some_and(|value| glob(pattern, value)),
        })
}

#[cfg(test)]
mod tests;
