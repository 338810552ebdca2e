//! The rules of one team, and their state.

use super::deliver::Delivered;
use super::registry::PendingAlert;
use super::rules::OWN_CHANNELS;
use jobs::code_alerts::TakenCall;
use records::alerts::AlertEvent;
use rules::builtin::FROM_CODE;
use rules::{Codes, Due, Engine, Notices, Person, Setup, StateRow, Tied, Transition, What};
use shared::alert::{Acked, Alert, AlertState, Channel, Rule, Silence};
use shared::alert_call::AlertCall;
use shared::catalog::Catalog;
use shared::scope::Scope;
use shared::wire::SourceId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Separator between the id of a rule of all teams and a team's id: an alert belongs to one team, and so does its
/// rule's id.
const OF_TEAM: char = '@';

/// Number of letters of an id for the alert, and for its team.
const ID_HALF: usize = 13;

/// Maximum number of events, and of notices, that wait for the database.
const MOST_WAITING: usize = 20_000;

/// First letter in the name of a personal channel, before the account's id: no channel of a team has a control
/// character.
pub(super) const PERSON: char = '\u{1f}';

/// The parts of a team's stored state.
pub(super) const ENGINE: &str = "engine";
pub(super) const CODES: &str = "codes";
pub(super) const NOTICES: &str = "notices";
pub(super) const CALLS: &str = "calls";

/// The rules of one team, and their state.
pub(super) struct TeamWatch {
    /// None without a database.
    pub id: Option<String>,
    /// Its id, if other teams have the same rules.
    salt: Option<String>,
    pub scope: Scope,
    /// Its scope was changed since the last check.
    pub rescoped: bool,
    pub engine: Engine,
    /// State of calls from code; none if nobody gets notices of them.
    pub codes: Option<Codes>,
    heard: Vec<Transition>,
    pub notices: Notices,
    setup: Setup,
    /// Its sources, each with the version of its list of series that the rules know.
    pub sources: HashMap<SourceId, u64>,
    /// Their keys, by name.
    pub keys: BTreeMap<String, String>,
    /// The last processed record of calls from code, by key of the source.
    pub calls: BTreeMap<String, u64>,
    /// There was no check yet.
    pub fresh: bool,
    /// Whether this hub makes notices for it.
    pub tells: bool,
    pub home: HomeUse,
    pub rules: Vec<Rule>,
    /// The rows that its rules use.
    catalog: Arc<Catalog>,
    /// The channels of its notices, including personal ones.
    pub channels: Vec<Channel>,
    people: Vec<Person>,
    silences: Vec<Silence>,
    /// Firing alerts, as they were written last.
    pub firing: HashMap<String, Alert>,
    /// Alerts about to fire.
    pub pending: BTreeMap<String, Alert>,
    /// Data that is not written yet.
    pub batch: TeamBatch,
}

/// Machines whose runs count for a team, and the limit of their GPU-hours in a month. None: no limit.
#[derive(Clone, Debug, Default)]
pub(super) struct HomeUse {
    pub limit: Option<u64>,
    /// Ids of its machines.
    pub machines: Vec<String>,
}

/// Data from the database for a team's rules.
pub(super) struct Loaded {
    pub id: Option<String>,
    pub name: String,
    pub scope: Scope,
    pub rules: Vec<Rule>,
    pub channels: Vec<Channel>,
    pub people: Vec<Person>,
    pub silences: Vec<Silence>,
    pub home: HomeUse,
}

/// State of a team stored by an earlier run of the server.
pub(super) struct Earlier {
    pub rows: Vec<(String, StateRow)>,
    pub open: Vec<Alert>,
    pub ended: Vec<Alert>,
}

/// Data to be written: only the newest state of each, so that its size is bounded.
#[derive(Default)]
pub(super) struct TeamBatch {
    pub alerts: BTreeMap<String, Alert>,
    pub events: Vec<AlertEvent>,
    pub states: BTreeMap<(&'static str, String), Option<Vec<u8>>>,
    pub due: Vec<Due>,
    /// Number of alerts suppressed by silences, and reasons why alerts have no notices.
    pub held: BTreeMap<String, i64>,
    pub whys: BTreeMap<String, String>,
    /// Processed alerts of other hubs: id, state, time when they were written.
    pub heard: Vec<(String, String, i64)>,
    /// Number of checks in which the database was reachable and refused it.
    pub refused: u32,
    /// Events and notices dropped because the queue was full while the database was unreachable, or because the
    /// database refused them.
    pub left_out: u64,
}

impl TeamBatch {
    pub fn is_empty(&self) -> bool {
        self.is_state_alone() && self.states.is_empty()
    }

    /// Whether it contains only state, which nobody would miss.
    pub fn is_state_alone(&self) -> bool {
        self.alerts.is_empty()
            && self.events.is_empty()
            && self.due.is_empty()
            && self.held.is_empty()
            && self.whys.is_empty()
            && self.heard.is_empty()
    }

    /// Another hub makes the notices of new alerts.
    pub fn stop_telling(&mut self) {
        self.states.retain(|(part, _), _| *part != NOTICES);
        self.due.clear();
        self.held.clear();
        self.whys.clear();
        self.heard.clear();
    }

    /// Drops the state of a machine that another hub evaluates: that hub writes it.
    pub fn forget_source(&mut self, id: &str, name: &str) {
        let gone: Vec<String> = self
            .alerts
            .values()
            .filter(|one| one.labels.get("source").is_some_and(|of| of == name))
            .map(|one| one.id.clone())
            .collect();
        self.alerts.retain(|alert, _| !gone.contains(alert));
        self.events.retain(|event| !gone.contains(&event.alert));
        self.states.retain(|(part, key), _| match *part {
            ENGINE => !Engine::is_row_of(key, name),
            CALLS => key != id,
            _ => true,
        });
    }

    pub fn bound(&mut self) {
        let excess = self.events.len().saturating_sub(MOST_WAITING);
        self.events.drain(..excess);
        let notices = self.due.len().saturating_sub(MOST_WAITING);
        self.due.drain(..notices);
        self.left_out += (excess + notices) as u64;
    }

    /// Empties it: it was written, or is dropped for good.
    pub fn clear(&mut self, lost: bool) {
        let more = if lost { (self.alerts.len() + self.due.len()) as u64 } else { 0 };
        *self = TeamBatch { left_out: self.left_out + more, ..TeamBatch::default() };
    }
}

/// The displayed id of a rule.
pub(super) fn shown_rule(id: &str) -> &str {
    id.split(OF_TEAM).next().unwrap_or_default()
}

/// A rule of all teams, for one team.
pub(super) fn of_team(rule: Rule, team: &str) -> Rule {
    Rule { id: format!("{}{OF_TEAM}{team}", rule.id), ..rule }
}

/// An alert with the displayed id of its rule.
pub(super) fn plain(mut alert: Alert) -> Alert {
    alert.rule = shown_rule(&alert.rule).to_string();
    alert
}

impl TeamWatch {
    pub fn new(setup: Setup, now: i64) -> Self {
        TeamWatch {
            id: None,
            salt: None,
            scope: Scope::nothing(),
            rescoped: true,
            engine: Engine::new(now),
            codes: None,
            heard: Vec::new(),
            notices: Notices::new(setup.clone()),
            setup,
            sources: HashMap::new(),
            keys: BTreeMap::new(),
            calls: BTreeMap::new(),
            fresh: true,
            tells: true,
            home: HomeUse::default(),
            rules: Vec::new(),
            catalog: Arc::default(),
            channels: Vec::new(),
            people: Vec::new(),
            silences: Vec::new(),
            firing: HashMap::new(),
            pending: BTreeMap::new(),
            batch: TeamBatch::default(),
        }
    }

    /// Whether there was neither a check nor a rule so far.
    pub fn is_first(&self) -> bool {
        self.fresh && self.rules.is_empty()
    }

    /// Applies changes by people; before the first check also the state stored by an earlier run of the server.
    pub fn take_in(
        &mut self,
        loaded: Loaded,
        has_teams: bool,
        earlier: Option<Earlier>,
        catalog: &Arc<Catalog>,
        now: i64,
    ) {
        self.catalog = catalog.clone();
        self.salt = loaded.id.clone().filter(|_| has_teams);
        self.id = loaded.id;
        self.home = loaded.home;
        self.rescoped |= self.scope != loaded.scope;
        self.scope = loaded.scope;
        let from_code = loaded.rules.iter().any(|rule| rule.enabled && shown_rule(&rule.id) == FROM_CODE);
        if from_code != self.codes.is_some() {
            if let Some(mut codes) = self.codes.take() {
                let over: Vec<Transition> = codes.end_all(now).into_iter().map(|one| self.of_code(one)).collect();
                self.heard.extend(over);
                let rows = codes.changed_rows().into_iter();
                self.batch.states.extend(rows.map(|row| ((CODES, row.key), row.bytes)));
            }
            self.codes = from_code.then(Codes::default);
        }
        let earlier = earlier.map(|earlier| earlier.with_ids_of(&loaded.rules));
        if let Some(earlier) = &earlier {
            // Alerts from code end by their own time, if calls from code are processed.
            let others = |alert: &&Alert| self.codes.is_none() || shown_rule(&alert.rule) != FROM_CODE;
            let open: Vec<Alert> = earlier.open.iter().filter(others).cloned().collect();
            self.engine.restore(&earlier.part(ENGINE), &open);
            if let Some(codes) = &mut self.codes {
                codes.restore(&earlier.part(CODES));
            }
            self.take_calls(&earlier.part(CALLS), |_| true);
        }
        if self.rules != loaded.rules {
            for (id, why) in self.engine.set_rules(&loaded.rules, catalog, now) {
                tracing::warn!(rule = id, "a rule does not watch: {why}");
            }
            self.notices.set_rules(&loaded.rules, catalog);
            self.rules = loaded.rules;
        }
        if self.channels != loaded.channels {
            for (channel, why) in self.notices.set_channels(&loaded.channels) {
                tracing::warn!(channel, "a channel has no quiet hours: {why}");
            }
            self.channels = loaded.channels;
        }
        if self.people != loaded.people {
            self.notices.set_people(&loaded.people);
            self.people = loaded.people;
        }
        if self.silences != loaded.silences {
            self.notices.set_silences(&loaded.silences);
            self.silences = loaded.silences;
        }
        if let Some(earlier) = earlier {
            self.restore_notices(&earlier, now);
            self.firing = earlier.open.into_iter().map(|alert| (alert.id.clone(), alert)).collect();
        }
    }

    /// Continues with notices where an earlier run of the server, or another hub, stopped.
    pub fn restore_notices(&mut self, earlier: &Earlier, now: i64) {
        self.notices = Notices::new(self.setup.clone());
        self.notices.set_rules(&self.rules, &self.catalog);
        // Their faults were reported before.
        let _ = self.notices.set_channels(&self.channels);
        self.notices.set_silences(&self.silences);
        let all: Vec<Alert> = earlier.open.iter().chain(&earlier.ended).cloned().collect();
        self.notices.restore(&earlier.part(NOTICES), &all, now);
    }

    /// Restores the last processed record of calls from code, for machines for which `own` returns true, by their keys.
    pub fn take_calls(&mut self, rows: &[StateRow], own: impl Fn(&str) -> bool) {
        let read = |row: &StateRow| Some((row.key.clone(), u64::from_le_bytes(row.bytes.clone()?.try_into().ok()?)));
        self.calls.extend(rows.iter().filter(|row| own(&row.key)).filter_map(read));
    }

    /// Whether alerts of a rule are single events.
    pub fn is_event(&self, rule: &str) -> bool {
        let found = self.rules.iter().find(|known| known.id == rule);
        found
            .and_then(|rule| shared::rule::parse(&rule.when, &self.catalog).ok())
            .is_none_or(|condition| condition.is_event())
    }

    /// Applies acknowledgments: the alert, the account, and the time, milliseconds since the Unix epoch.
    pub fn acked(&mut self, all: &[(String, String, i64)]) {
        for (id, by, at) in all {
            let acked = Acked { by: by.clone(), at: at / 1_000 };
            self.notices.ack(id, acked.clone());
            if let Some(alert) = self.firing.get_mut(id) {
                alert.acked = Some(acked);
            }
        }
    }

    /// Processes a call from code on a machine that the team sees.
    pub fn take_call(&mut self, call: &AlertCall, tied: &Tied, now: i64) -> Option<TakenCall> {
        let (taken, heard) = self.codes.as_mut()?.take(call, tied, now);
        let (id, new) = (self.alert_id(&taken.id), taken.count <= call.count);
        let heard: Vec<Transition> = heard.into_iter().map(|one| self.of_code(one)).collect();
        self.heard.extend(heard);
        Some(TakenCall { id, began: call.t, count: taken.count, new })
    }

    /// Ends the alerts from code of a run that has ended.
    pub fn run_ended(&mut self, run: &str, now: i64) {
        let ended = self.codes.as_mut().map(|codes| codes.run_ended(run, now)).unwrap_or_default();
        let ended: Vec<Transition> = ended.into_iter().map(|one| self.of_code(one)).collect();
        self.heard.extend(ended);
    }

    /// The id of an alert from code, which differs between teams.
    fn alert_id(&self, id: &str) -> String {
        match &self.salt {
            Some(team) => id.chars().take(ID_HALF).chain(team.chars().take(ID_HALF)).collect(),
            None => id.into(),
        }
    }

    /// An alert from code, for this team.
    fn of_code(&self, mut transition: Transition) -> Transition {
        let alert = &mut transition.alert;
        alert.id = self.alert_id(&alert.id);
        if let Some(team) = &self.salt {
            alert.rule = format!("{}{OF_TEAM}{team}", alert.rule);
        }
        transition
    }

    /// Collects the changes since the last check, and their notices.
    pub fn collect(&mut self, now: i64) {
        self.engine.poll(now);
        let over = self.codes.as_mut().map(|codes| codes.poll(now)).unwrap_or_default();
        let over: Vec<Transition> = over.into_iter().map(|one| self.of_code(one)).collect();
        let mut heard = std::mem::take(&mut self.heard);
        heard.extend(self.engine.take());
        heard.extend(over);
        for transition in heard {
            if self.tells {
                self.notices.apply(&transition, now);
            }
            self.note(transition, now);
        }
        if self.tells {
            let due = self.notices.poll(now);
            self.batch.due.extend(due);
            self.note_held();
        }
        let codes = self.codes.as_mut().map(Codes::changed_rows).unwrap_or_default();
        let notices = if self.tells { self.notices.changed_rows() } else { Vec::new() };
        for (part, rows) in [(ENGINE, self.engine.changed_rows()), (NOTICES, notices), (CODES, codes)] {
            self.batch.states.extend(rows.into_iter().map(|row| ((part, row.key), row.bytes)));
        }
    }

    fn note(&mut self, transition: Transition, now: i64) {
        let Transition { what, mut alert, flapping, .. } = transition;
        match what {
            What::Pending => return drop(self.pending.insert(alert.id.clone(), alert)),
            What::Dropped => return drop(self.pending.remove(&alert.id)),
            What::Fired | What::Changed | What::Ended => drop(self.pending.remove(&alert.id)),
        }
        if let Some(known) = self.firing.get(&alert.id) {
            alert.acked.clone_from(&known.acked);
        }
        let kind = match what {
            What::Fired if flapping => "flapping",
            What::Fired => "firing",
            What::Ended => "resolved",
            What::Pending | What::Dropped | What::Changed => "",
        };
        if !kind.is_empty() {
            let (alert, kind, words) = (alert.id.clone(), kind.into(), alert.sentence.clone());
            self.batch.events.push(AlertEvent { alert, t: now, kind, who: String::new(), words });
        }
        match alert.state {
            AlertState::Resolved => drop(self.firing.remove(&alert.id)),
            AlertState::Pending | AlertState::Firing => drop(self.firing.insert(alert.id.clone(), alert.clone())),
        }
        self.batch.alerts.insert(alert.id.clone(), alert);
    }

    /// Stores the reasons why alerts have no notices, and the number suppressed by each silence.
    fn note_held(&mut self) {
        self.batch.whys.extend(self.notices.held());
        for (silence, more) in self.notices.held_back() {
            *self.batch.held.entry(silence).or_default() += i64::try_from(more).unwrap_or(i64::MAX);
        }
    }

    /// Handles the result of a notice of one of its channels.
    pub fn outcome(&mut self, done: &Delivered) {
        if let Some(channel) = self.channels.iter().find(|channel| channel.id == done.channel) {
            self.notices.outcome(&channel.name, &done.notice, done.taken);
        }
    }

    /// The id of an alert's machine.
    pub fn source_of(&self, alert: &Alert) -> Option<&String> {
        alert.labels.get("source").and_then(|name| self.keys.get(name))
    }

    pub fn about_to_fire(&self) -> impl Iterator<Item = PendingAlert> {
        let one = |alert: &Alert| PendingAlert {
            team: self.id.clone(),
            source: self.source_of(alert).cloned(),
            alert: plain(alert.clone()),
        };
        self.pending.values().map(one)
    }

    /// Problems of its rules, by their ids, in sentences.
    pub fn troubles(&self) -> Vec<(String, String)> {
        let mut all = self.engine.trouble();
        for rule in self.rules.iter().filter(|rule| rule.enabled) {
            let known = |name: &&String| {
                OWN_CHANNELS.contains(&name.as_str())
                    || name.starts_with(PERSON)
                    || self.channels.iter().any(|channel| channel.name == **name)
            };
            for name in rule.to.iter().flatten().filter(|name| !known(name)) {
                all.push((rule.id.clone(), format!("there is no channel {name:?}: notifications to it are lost")));
            }
        }
        all
    }
}

impl Earlier {
    /// Likewise, with the ids of these rules.
    pub fn with_ids_of(mut self, rules: &[Rule]) -> Self {
        let ids: HashMap<&str, &str> = rules.iter().map(|rule| (shown_rule(&rule.id), rule.id.as_str())).collect();
        for alert in self.open.iter_mut().chain(&mut self.ended) {
            if let Some(id) = ids.get(alert.rule.as_str()) {
                alert.rule = (*id).to_string();
            }
        }
        self
    }

    pub fn part(&self, part: &str) -> Vec<StateRow> {
        self.rows.iter().filter(|(of, _)| of == part).map(|(_, row)| row.clone()).collect()
    }
}
