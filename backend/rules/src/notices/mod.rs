//! From transitions of alerts to notices: suppression, grouping, and timing.

mod channel;
mod inhibit;
mod keep;
mod quiet;
mod sums;
mod text;

pub use quiet::Hours;
pub use text::{STANDING, fold_all};

use crate::engine::{limit_of, unit_of};
use crate::{Transition, What, id};
use channel::Channels;
use inhibit::Holds;
use serde::{Deserialize, Serialize};
use shared::address::written;
use shared::alert::{
    Acked, Alert, AlertSeverity, AlertState, Channel, MAX_NAMED, Notice, NoticeKind, Origin, Rule, Silence,
};
use shared::catalog::Catalog;
use shared::rule::{Condition, Nature, Op, duration};
use shared::run::RunState;
use shared::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};

/// A notice waits this long for others of its group. A notice about a run's state waits `RUN_WAIT_MS`, so that the
/// state can become more precise. Milliseconds.
const WAIT_MS: i64 = 10_000;
const RUN_WAIT_MS: i64 = 5_000;

/// Minimum time between notices of a group. It doubles each time while the group is active, up to [`SPACING_MOST`].
const SPACING_LEAST: i64 = 60_000;
const SPACING_MOST: i64 = 600_000;

/// Default of `repeat`: 4 h, milliseconds.
const REPEAT_MS: i64 = 4 * 3_600_000;

/// An alert that fired this long ago is not notified any more, milliseconds.
const LATE_MS: i64 = 600_000;

/// Interval of checking suppressed alerts again, milliseconds.
const LOOK_MS: i64 = 10_000;

/// A group without members is dropped after this time. One whose last notice may still be queued is dropped later,
/// since further notices must continue its count. Milliseconds.
const FORGET_MS: i64 = 3_600_000;
const FORGET_UNKNOWN_MS: i64 = 86_400_000;

/// Interval of checking which alerts may be dropped, milliseconds.
const TIDY_MS: i64 = 60_000;

/// Built-in rules below this severity notify only channels that they name.
const DEFAULT_LEAST: AlertSeverity = AlertSeverity::Warning;

/// Kind of the channels where each alert is an incident of its own.
const PAGER: &str = "pagerduty";

/// Seconds of charts before the start of an alert.
const LEAD_SECONDS: i64 = 60;

/// Longest span of charts in a page's address, in seconds.
const MAX_SPAN_SECONDS: i64 = 12 * 3_600;

/// Configuration, independent of alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Name of the team; empty in `serve`.
    pub team: String,
    /// Part of the ids of notices: the team's id. It separates channels with the same name in different teams.
    pub salt: String,
    /// Name of the sending host.
    pub host: String,
    /// URL of the page without a trailing slash; None where there is none.
    pub public_url: Option<String>,
    /// Maximum number of notices of a channel in 10 min; default 20.
    pub storm: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Setup { team: String::new(), salt: String::new(), host: String::new(), public_url: None, storm: 20 }
    }
}

/// A notice for a channel, to be written in the transaction that writes the alerts.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// Name of the channel.
    pub channel: String,
    #[allow(missing_docs, reason = "see Notice")]
    pub notice: Notice,
}

/// A person who is notified of their own runs only: no rule of a team applies to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// Name of the channel that reaches them. It is never a team's default channel.
    pub channel: String,
    /// Users on machines whose runs belong to them.
    pub logins: BTreeSet<String>,
    /// Whether they are notified of runs that finished.
    pub finished: bool,
    /// Whether they are notified of runs that crashed.
    pub crashed: bool,
}

struct KnownRule {
    rule: Rule,
    nature: Nature,
    crash: bool,
    finish: bool,
    limit: String,
    unit: Unit,
    worse: Op,
    repeat: i64,
}

/// An alert that may still need a notice.
#[derive(Debug)]
struct Live {
    alert: Alert,
    silence: Option<String>,
    /// Its groups.
    groups: Vec<GroupKey>,
}

/// Notification state of an alert in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Member {
    told: bool,
    event: bool,
    /// It is part of a digest or a summary, and has had no notice of its own.
    summed: bool,
    /// Number of the group's last notice that named it, and the time of that notice; 0: none.
    seq: u64,
    at: i64,
    /// That notice was dropped.
    lost: bool,
}

/// The members of a group by their pending report.
#[derive(Debug, Default)]
struct Sorted {
    /// Not reported yet.
    fires: Vec<String>,
    /// Ended after their firing was reported.
    over: Vec<String>,
    /// Reported earlier and still firing.
    stands: Vec<String>,
    /// Leaving the group.
    gone: Vec<String>,
    /// At least one is suppressed.
    waits: bool,
}

/// Alerts that are notified together on one channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Group {
    seq: u64,
    last: i64,
    spacing: i64,
    due: i64,
    members: BTreeMap<String, Member>,
    /// Time of its last notice while its outcome is unknown; 0: the outcome is known.
    made: i64,
    /// It has a pending notice.
    waits: bool,
}

type GroupKey = (String, String);

/// Routing state: recipients, sent notices, and queued notices.
#[derive(Default)]
pub struct Notices {
    setup: Setup,
    rules: BTreeMap<String, KnownRule>,
    channels: Channels,
    people: Vec<Person>,
    silences: Vec<Silence>,
    held_back: BTreeMap<String, u64>,
    alerts: BTreeMap<String, Live>,
    groups: BTreeMap<GroupKey, Group>,
    /// Inhibiting alerts, by scope.
    inhibitors: BTreeMap<Holds, BTreeSet<String>>,
    /// Scope of each inhibiting alert.
    holders: BTreeMap<String, Holds>,
    held: BTreeMap<String, String>,
    dirty: BTreeSet<GroupKey>,
    /// An alert has ended and may be dropped.
    tidy: bool,
    /// Time of the last check for such alerts.
    tidied: i64,
    /// Time of the last poll.
    polled: i64,
}

const SEP: char = '\u{1f}';

impl Notices {
    /// Empty state.
    pub fn new(setup: Setup) -> Self {
        Notices { setup, ..Notices::default() }
    }

    /// Sets the rules.
    pub fn set_rules(&mut self, rules: &[Rule], catalog: &Catalog) {
        self.rules = rules
            .iter()
            .map(|rule| {
                let condition = shared::rule::parse(&rule.when, catalog).ok();
                let tells = |of: &dyn Fn(&RunState) -> bool| matches!(&condition, Some(Condition::Run(states)) if states.iter().any(of));
                let own = rule.repeat.as_deref().and_then(|text| duration(text).ok());
                let known = KnownRule {
                    nature: condition.as_ref().map_or(Nature::Code, Condition::nature),
                    crash: tells(&|state| state.is_crash()),
                    finish: tells(&|state| *state == RunState::Finished),
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
        // A rule may have changed its meaning.
        let holders: Vec<_> = self.alerts.iter().map(|(id, live)| (id.clone(), self.holds(&live.alert))).collect();
        for (id, holds) in holders {
            self.put_holder(&id, holds);
        }
    }

    /// Sets the channels. Returns those with invalid quiet hours, and the reason; they have none.
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

    /// Sets the people who are notified of their own runs.
    pub fn set_people(&mut self, people: &[Person]) {
        self.people = people.to_vec();
    }

    /// Sets the current and future silences.
    pub fn set_silences(&mut self, silences: &[Silence]) {
        self.silences = silences.to_vec();
    }

    /// Records that a user acknowledged an alert: it is not repeated.
    pub fn ack(&mut self, alert: &str, by: Acked) {
        if let Some(live) = self.alerts.get_mut(alert) {
            live.alert.acked = Some(by);
        }
    }

    fn nature(&self, alert: &Alert) -> Nature {
        self.rules.get(&alert.rule).map_or(Nature::Code, |known| known.nature)
    }

    /// Applies a transition of an alert. `now` in milliseconds since the Unix epoch.
    pub fn apply(&mut self, transition: &Transition, now: i64) {
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
        // A reconnected agent also reports old or ended conditions. A run's state is always notified.
        let late = fresh && !is_known && nature != Nature::Run && now - alert.fired.unwrap_or(now) >= LATE_MS;
        if late {
            self.held.insert(id, "it fired too long ago to be sent".into());
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
        let mut all = match &known.rule.to {
            Some(to) => to.iter().filter(|name| self.channels.knows(name)).cloned().collect(),
            None if built_in && alert.severity < DEFAULT_LEAST => Vec::new(),
            None => self.channels.defaults(),
        };
        let user = alert.labels.get("user").filter(|_| built_in);
        let own = self.people.iter().filter(|one| {
            (one.finished && known.finish || one.crashed && known.crash)
                && user.is_some_and(|user| one.logins.contains(user))
                && self.channels.knows(&one.channel)
        });
        all.extend(own.map(|one| one.channel.clone()));
        all
    }

    /// Grouping key: alerts of a rule and a run, or of a rule and a group of machines.
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

    /// The due notices.
    pub fn poll(&mut self, now: i64) -> Vec<Due> {
        let mut out = Vec::new();
        self.follow_clock(now);
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

    /// After a clock was set back, times of the state would be in the future, and nothing would be notified until then:
    /// all of them go back with it.
    fn follow_clock(&mut self, now: i64) {
        let by = self.polled - now;
        self.polled = now;
        if by <= 0 {
            return;
        }
        for (key, group) in &mut self.groups {
            group.go_back(by);
            self.dirty.insert(key.clone());
        }
        self.channels.go_back(by);
    }

    /// Drops groups without members.
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

    /// The members of a group by their pending report. Those queued until the end of quiet hours are marked.
    fn sorted(&mut self, key: &GroupKey, quiet: Option<i64>, pages: bool, now: i64) -> Option<Sorted> {
        let ids: Vec<(String, Member)> = self.groups.get(key)?.members.iter().map(|(id, m)| (id.clone(), *m)).collect();
        let mut sorted = Sorted::default();
        for (id, member) in &ids {
            let Some(live) = self.alerts.get(id) else {
                sorted.gone.push(id.clone());
                continue;
            };
            let ended = live.alert.state == AlertState::Resolved;
            let known = self.rules.get(&live.alert.rule);
            let tells_end = known.is_none_or(|k| k.rule.resolved) && !member.event && !member.lost;
            let passes = self.passes(&live.alert);
            if ended && member.told {
                sorted.gone.push(id.clone());
                if !tells_end || member.summed {
                    continue;
                }
                match quiet.filter(|_| !passes && !pages) {
                    Some(end) => self.channels.wait(&key.0, id, end),
                    None => sorted.over.push(id.clone()),
                }
                continue;
            }
            if self.judge(id, now) {
                if ended {
                    sorted.gone.push(id.clone());
                }
                sorted.waits = true;
                continue;
            }
            if member.told {
                sorted.stands.push(id.clone());
            } else if let Some(end) = quiet.filter(|_| !passes) {
                self.channels.wait(&key.0, id, end);
                if ended {
                    sorted.gone.push(id.clone());
                }
                self.mark(key, id, true);
                // The summary covers it.
                if let Some(group) = self.groups.get_mut(key) {
                    group.last = now;
                }
            } else {
                if ended {
                    sorted.gone.push(id.clone());
                }
                sorted.fires.push(id.clone());
            }
        }
        Some(sorted)
    }

    /// Plans the next evaluation of a group. `waits`: one of its alerts is suppressed now. `quiet`: end of the quiet
    /// hours.
    fn plan(&mut self, key: &GroupKey, waits: bool, quiet: Option<i64>, now: i64) -> Option<()> {
        let group = self.groups.get(key)?;
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
            // Alerts that pass quiet hours are repeated in them.
            (false, Some(end)) if passes => (end * 1000).min((group.last + every).max(now + LOOK_MS)),
            (false, Some(end)) if !open.is_empty() => end * 1000,
            _ if repeats && group.last != 0 => (group.last + every).max(now + LOOK_MS),
            _ if repeats => now + LOOK_MS,
            _ => i64::MAX,
        };
        Some(())
    }

    /// The notice that a group sends now.
    fn speak(&mut self, key: &GroupKey, now: i64) -> Option<Notice> {
        let quiet = self.channels.quiet_until(&key.0, now);
        // On a pager an end closes the incident, so it is neither delayed nor counted for a storm.
        let pages = self.channels.is_kind(&key.0, PAGER);
        let Sorted { fires, over, stands, gone, waits } = self.sorted(key, quiet, pages, now)?;
        let group = self.groups.get(key)?;
        let repeat = self.repeat_of(&stands, group, quiet.is_some(), now);
        let speaks = !fires.is_empty() || !over.is_empty() || repeat;
        let mut notice = None;
        let closes = pages && !over.is_empty();
        if speaks && !closes && self.channels.storms(&key.0, now, self.setup.storm) {
            // A digest will contain it.
            for id in fires.iter().chain(&over) {
                self.channels.sum(&key.0, id);
                self.mark(key, id, true);
            }
            if let Some(group) = self.groups.get_mut(key) {
                group.widen_spacing(now);
            }
        } else if speaks {
            for id in &fires {
                self.mark(key, id, false);
            }
            let is_news = !fires.is_empty();
            let mut all: Vec<String> = fires;
            all.extend(over);
            if repeat {
                let heard =
                    |id: &&String| quiet.is_none() || self.alerts.get(*id).is_some_and(|live| self.passes(&live.alert));
                all.extend(stands.iter().filter(heard).cloned());
            }
            notice = self.notice(key, &all, (is_news, !stands.is_empty()), now);
        }
        let group = self.groups.get_mut(key)?;
        for id in gone {
            group.members.remove(&id);
        }
        self.plan(key, waits, quiet, now)?;
        notice
    }

    /// Whether an alert passes quiet hours.
    fn passes(&self, alert: &Alert) -> bool {
        alert.severity == AlertSeverity::Critical || self.rules.get(&alert.rule).is_some_and(|k| !k.rule.quiet)
    }

    /// Whether alerts that still fire are notified again.
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

    /// Address of the run of an alert, with the lines of its rank highlighted, or of the charts of its machine from a
    /// minute before it on. An alert about a series is about its machine.
    fn charts(&self, alert: &Alert, now: i64) -> Option<String> {
        let of = |name: &str| alert.labels.get(name).filter(|value| !value.is_empty()).map(String::as_str);
        let rank = of("rank").map(|rank| format!("rank {rank}"));
        let pin = rank.iter().map(|name| ("pin", name.as_str()));
        let run = of("run").map(|id| written([("page", "run"), ("run", id)].into_iter().chain(pin)));
        let machine = of("source").map(|name| {
            let to = alert.ended.unwrap_or(now).max(alert.began) / 1000;
            let from = (alert.began / 1000 - LEAD_SECONDS).max(to - MAX_SPAN_SECONDS);
            written([("source", name), ("from", &from.to_string()), ("to", &to.to_string())])
        });
        let query = if of("tag").is_some() { machine.or(run) } else { run.or(machine) }?;
        Some(format!("{}/?{query}", self.setup.public_url.as_ref()?.trim_end_matches('/')))
    }

    /// The notice about these alerts of a group. `is_news`: one of them was in no notice before, although it may have
    /// ended already. `stands`: others of the group still fire.
    fn notice(&mut self, key: &GroupKey, ids: &[String], (is_news, stands): (bool, bool), now: i64) -> Option<Notice> {
        let mut alerts: Vec<&Alert> = ids.iter().filter_map(|id| self.alerts.get(id)).map(|l| &l.alert).collect();
        let first = *alerts.first()?;
        let known = self.rules.get(&first.rule);
        let worse = known.map_or(Op::Above, |k| k.worse);
        alerts.sort_by(|a, b| worst_first(a, b, worse));
        let over = alerts.iter().all(|a| a.state == AlertState::Resolved) && !stands && !is_news;
        let link = match alerts[..] {
            [one] => self.link(&format!("&alert={}", one.id)),
            _ => self.link(""),
        };
        let charts = Some(&alerts[..]).filter(|all| all.len() == 1).and_then(|all| self.charts(all[0], now));
        let plain = Rule { name: first.name.clone(), ..Rule::default() };
        let rule = known.map_or(&plain, |k| &k.rule);
        let limit = known.map_or(("", Unit::Count), |k| (k.limit.as_str(), k.unit));
        let (title, note) = text::title_and_note(rule, &alerts, is_news, (limit, link.as_deref()));
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
            charts,
            help: rule.link.clone(),
            team: self.setup.team.clone(),
            host: self.setup.host.clone(),
            at: now / 1000,
        };
        let group = self.groups.get_mut(key)?;
        group.widen_spacing(now);
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

    /// Time of the next work for [`poll`](Self::poll), milliseconds since the Unix epoch; None: none before the next
    /// transition.
    pub fn next_due(&self) -> Option<i64> {
        let groups = self.groups.values().map(|g| g.due).filter(|due| *due != i64::MAX);
        groups.chain(self.channels.next_due()).min()
    }

    /// Records that a notice was delivered or dropped. After a drop, its end is not notified either.
    pub fn outcome(&mut self, channel: &str, notice: &str, taken: bool) {
        let of = self.groups.iter_mut().filter(|((name, _), _)| name == channel);
        for (key, group) in of {
            let id = |seq: u64, at: i64| self.setup.id_of((&key.0, &key.1), seq, at);
            if group.made != 0 && id(group.seq, group.made) == notice {
                group.made = 0;
                self.dirty.insert(key.clone());
            }
            // The outcome of an older notice may arrive after a newer one was made; few differ.
            let made: BTreeSet<(u64, i64)> =
                group.members.values().filter(|m| m.seq > 0).map(|m| (m.seq, m.at)).collect();
            let Some(of) = made.into_iter().find(|(seq, at)| id(*seq, *at) == notice) else { continue };
            for member in group.members.values_mut().filter(|m| (m.seq, m.at) == of) {
                member.lost = !taken;
            }
            self.dirty.insert(key.clone());
        }
    }
}

impl Group {
    /// Requests a notice at `wanted`. A pending notice is never delayed by it.
    fn ask(&mut self, wanted: i64) {
        let due = if self.last == 0 { wanted } else { wanted.max(self.last + self.spacing) };
        self.due = if self.waits { self.due.min(due) } else { due };
        self.waits = true;
    }

    /// Moves its times before a clock that was set back by this much; the times of notices are part of their ids, and
    /// stay.
    fn go_back(&mut self, by: i64) {
        if self.last != 0 {
            self.last -= by;
        }
        if self.due != i64::MAX {
            self.due -= by;
        }
    }

    fn widen_spacing(&mut self, now: i64) {
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
    /// The id of a notice of a channel and group made at `now`. The time is needed because a channel that is removed
    /// and created again counts from 1 again.
    fn id_of(&self, (channel, group): (&str, &str), seq: u64, now: i64) -> String {
        id::from_parts(&["notice", &self.salt, channel, group, &seq.to_string(), &now.to_string()])
    }
}

#[cfg(test)]
mod tests;
