//! Has rules watch what comes, writes what they find, and what people are told of it, in one transaction each second.

use super::book::{AlertBook, PendingAlert};
use super::deliver::Delivered;
use super::found::row_of;
use super::gather::Gather;
use super::silences::silence_of;
use crate::accounts::Denied;
use crate::calls::{Calls, TakenCall, ToldCall};
use crate::findings::FindingBook;
use crate::live::Live;
use crate::runs::RunBook;
use records::alerts::{AlertEvent, AlertFilter, AlertRow, KeptState};
use records::outbox::OutboxRow;
use records::{alerts, grants, outbox, silences, teams};
use rules::builtin::FROM_CODE;
use rules::{Codes, Due, Engine, Notices, Setup, StateRow, Tied, Transition, What, fold};
use shared::alert::{Acked, Alert, AlertState, Channel, Notice, NoticeKind, Rule, Silence};
use shared::alert_call::AlertCall;
use shared::scope::Scope;
use shared::wire::SourceId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Looks after which it is asked anew what people changed: other hubs change it, too.
const RELOAD_LOOKS: u64 = 5;

/// How long ago alerts ended of which it is looked at after a start whether that was told, milliseconds; and how many.
const ENDED_MS: i64 = 24 * 3_600_000;
const ENDED: i64 = 10_000;

/// Silences that are read, at most.
const SILENCES: i64 = 10_000;

/// Between the id of a rule that all teams have and a team's id: an alert is of one team, so that its id has to be.
const OF_TEAM: char = '@';

/// Letters of an id that tell an alert, and those that tell its team.
const ID_HALF: usize = 13;

/// What is watched, and where what is found goes.
pub struct Watching {
    #[allow(missing_docs, reason = "where samples come from")]
    pub live: Arc<Live>,
    /// Which jobs run.
    pub runs: Arc<RunBook>,
    /// What is wrong.
    pub findings: Arc<FindingBook>,
    /// What code says is wrong.
    pub calls: Arc<Calls>,
    /// Takes what is found.
    pub book: AlertBook,
    /// Several teams share the machines, each with those that it may see.
    pub has_teams: bool,
    /// The most notices of a channel in ten minutes.
    pub storm: usize,
}

/// The rules of one team, and how they stand.
pub(super) struct TeamWatch {
    /// None as long as there is no database.
    id: Option<String>,
    /// Its id, where other teams have the same rules.
    salt: Option<String>,
    pub(super) scope: Scope,
    pub(super) engine: Engine,
    /// What code says; none where nobody is to be told of it.
    codes: Option<Codes>,
    heard: Vec<Transition>,
    notices: Notices,
    /// Its sources, and which of their lists of series its rules know.
    pub(super) sources: HashMap<SourceId, u64>,
    /// Their keys by their names.
    pub(super) keys: BTreeMap<String, String>,
    /// It has not looked yet.
    pub(super) fresh: bool,
    rules: Vec<Rule>,
    channels: Vec<Channel>,
    silences: Vec<Silence>,
    /// What fires, as it was written last.
    firing: HashMap<String, Alert>,
    /// What is about to fire.
    pending: BTreeMap<String, Alert>,
}

/// What of the database a team's rules need.
struct Loaded {
    id: Option<String>,
    name: String,
    scope: Scope,
    rules: Vec<Rule>,
    channels: Vec<Channel>,
    silences: Vec<Silence>,
}

/// What is to be written: the newest of each alone, so that it is no more than there is.
#[derive(Default)]
struct Batch {
    alerts: BTreeMap<String, (usize, Alert)>,
    events: Vec<(usize, AlertEvent)>,
    states: BTreeMap<(usize, &'static str, String), Option<Vec<u8>>>,
    due: Vec<(usize, Due)>,
    held: BTreeMap<String, i64>,
    /// Events and notices for which there was no room while the database was away.
    left_out: u64,
}

/// Events, and notices, that wait for the database.
const MOST_WAITING: usize = 20_000;

/// Alerts that are about to fire and are shown.
const MOST_PENDING: usize = 1_000;

impl Batch {
    fn is_empty(&self) -> bool {
        self.alerts.is_empty()
            && self.events.is_empty()
            && self.states.is_empty()
            && self.due.is_empty()
            && self.held.is_empty()
    }

    fn bound(&mut self) {
        let excess = self.events.len().saturating_sub(MOST_WAITING);
        self.events.drain(..excess);
        let notices = self.due.len().saturating_sub(MOST_WAITING);
        self.due.drain(..notices);
        self.left_out += (excess + notices) as u64;
    }
}

/// Watches until `stop` becomes true.
pub async fn watch(watching: Watching, mut done: mpsc::Receiver<Delivered>, mut stop: watch::Receiver<bool>) {
    let Watching { live, runs, findings, calls, book, has_teams, storm } = watching;
    let (mut told, mut answers) = (calls.listen(), Vec::new());
    let mut changed = book.changed();
    changed.mark_changed();
    let mut gather = Gather::new(live.clone(), runs, findings);
    let (mut all, mut batch): (Vec<TeamWatch>, Batch) = (Vec::new(), Batch::default());
    let mut away: Option<String> = None;
    let mut looks: u64 = 0;
    let mut due = tokio::time::interval(PERIOD);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let now = live.clock.wall();
        looks += 1;
        if changed.has_changed().unwrap_or(false) || looks.is_multiple_of(RELOAD_LOOKS) || away.is_some() {
            changed.mark_unchanged();
            match load(&book, has_teams).await {
                Ok(loaded) => {
                    away = None;
                    match take_in(&live, &book, (loaded, has_teams, storm), all, now).await {
                        Ok(known) => all = known,
                        Err((known, error)) => (all, away) = (known, Some(error.to_string())),
                    }
                }
                Err(error) => away = Some(error.to_string()),
            }
        }
        while let Ok(delivered) = done.try_recv() {
            all.iter_mut().for_each(|team| team.outcome(&delivered));
        }
        while let Ok(ToldCall { source, call, answer }) = told.try_recv() {
            if let Some(taken) = gather.told(&mut all, source, &call, now) {
                answers.push((answer, taken));
            }
        }
        let failing = live.store().figures().is_some_and(|figures| figures.failing > 0);
        let looked = tokio::task::spawn_blocking(move || {
            gather.look(&mut all, failing.then_some("history is not being written"));
            for (at, team) in all.iter_mut().enumerate() {
                team.collect(at, now, &mut batch);
            }
            (gather, all, batch)
        });
        match looked.await {
            Ok(back) => (gather, all, batch) = back,
            Err(_) => return tracing::error!("rules watch nothing any more: a look failed"),
        }
        if !batch.is_empty() {
            match write(&book, &mut all, &batch, now).await {
                Ok(mail) => {
                    batch = Batch { left_out: batch.left_out, ..Batch::default() };
                    for (answer, taken) in answers.drain(..) {
                        let _: Result<(), TakenCall> = answer.send(taken); // Who asked may not wait any more.
                    }
                    if mail {
                        book.has_mail();
                    }
                }
                Err(error) => {
                    if away.replace(error.to_string()).is_none() {
                        tracing::error!(%error, "alerts wait in memory: the database does not take them");
                    }
                    batch.bound();
                    // Who asked is told that it is not known whether it is kept.
                    answers.clear();
                }
            }
        }
        book.set_pending(all.iter().flat_map(TeamWatch::about_to_fire).take(MOST_PENDING).collect());
        book.count(|figures| {
            figures.firing = all.iter().map(|team| team.firing.len() as u64).sum();
            figures.pending = all.iter().map(|team| team.pending.len() as u64).sum();
            figures.subjects = all.iter().map(|team| team.engine.subjects() as u64).sum();
            figures.left_out = batch.left_out;
        });
        book.set_troubles(troubles(&all, away.as_deref(), batch.left_out));
    }
}

async fn load(book: &AlertBook, has_teams: bool) -> Result<Vec<Loaded>, Denied> {
    let fixed = book.0.about.fixed.clone();
    let Some(records) = book.there().await? else {
        let own = Loaded {
            id: None,
            name: String::new(),
            scope: Scope::All,
            rules: fixed,
            channels: Vec::new(),
            silences: Vec::new(),
        };
        return Ok(vec![own]);
    };
    let channels = book.all_channels().await?;
    let mut on = records.read().await?;
    let silent = silences::of(&mut on, None, book.now(), SILENCES).await?;
    let made = records::rules::of(&mut on, None).await?;
    let mut all = Vec::new();
    for team in teams::all(&mut on).await? {
        let scope = match has_teams {
            true => {
                let granted = grants::of(&mut on, &team.id).await?;
                Scope::only([team.id.clone()], granted.into_iter().map(|source| source.id))
            }
            false => Scope::All,
        };
        let own = made.iter().filter(|row| row.team == team.id).filter_map(super::rules::rule_of);
        let fixed = fixed.iter().cloned().map(|rule| match has_teams {
            true => Rule { id: format!("{}{OF_TEAM}{}", rule.id, team.id), ..rule },
            false => rule,
        });
        let silences = silent.iter().filter(|row| row.team == team.id).cloned().filter_map(silence_of);
        let channels = channels.iter().filter(|channel| channel.team == team.id && channel.input.is_ok());
        all.push(Loaded {
            rules: own.chain(fixed).collect(),
            channels: channels.map(|channel| channel.shown.clone()).collect(),
            silences: silences.collect(),
            scope,
            name: if has_teams { team.name } else { String::new() },
            id: Some(team.id),
        });
    }
    Ok(all)
}

/// Gives the teams what is loaded; one that is new begins where an earlier life ended.
async fn take_in(
    live: &Live,
    book: &AlertBook,
    (loaded, has_teams, storm): (Vec<Loaded>, bool, usize),
    mut known: Vec<TeamWatch>,
    now: i64,
) -> Result<Vec<TeamWatch>, (Vec<TeamWatch>, Denied)> {
    let mut all = Vec::new();
    let mut restored: Option<Restored> = None;
    for one in loaded {
        let same = |team: &TeamWatch| team.id == one.id || (!has_teams && team.id.is_none());
        let mut team = match known.iter().position(same) {
            Some(at) => known.swap_remove(at),
            None => {
                let about = &book.0.about;
                let setup = Setup {
                    team: one.name.clone(),
                    host: about.host.clone(),
                    public_url: about.public_url.as_ref().map(|url| url.trim_end_matches('/').into()),
                    storm,
                };
                TeamWatch::new(setup, now)
            }
        };
        let first = team.fresh && team.rules.is_empty();
        team.salt = one.id.clone().filter(|_| has_teams);
        team.id = one.id;
        team.scope = one.scope;
        let earlier = match &team.id {
            Some(id) if first => {
                if restored.is_none() {
                    match Restored::read(book, now).await {
                        Ok(read) => restored = Some(read),
                        Err(error) => {
                            all.append(&mut known);
                            return Err((all, error));
                        }
                    }
                }
                restored.as_ref().map(|restored| restored.of(id))
            }
            _ => None,
        };
        let from_code = one.rules.iter().any(|rule| rule.enabled && shown_rule(&rule.id) == FROM_CODE);
        if from_code != team.codes.is_some() {
            team.codes = from_code.then(Codes::default);
        }
        if let Some(earlier) = &earlier {
            let of_code = |alert: &&Alert| shown_rule(&alert.rule) == FROM_CODE;
            let open: Vec<Alert> = earlier.open.iter().filter(|alert| !of_code(alert)).cloned().collect();
            team.engine.restore(&earlier.engine, &open);
            if let Some(codes) = &mut team.codes {
                codes.restore(&earlier.codes);
            }
        }
        if team.rules != one.rules {
            let catalog = live.store().catalog().clone();
            for (id, why) in team.engine.set_rules(&one.rules, &catalog, now) {
                tracing::warn!(rule = id, "a rule does not watch: {why}");
            }
            team.notices.set_rules(&one.rules, &catalog);
            team.rules = one.rules;
        }
        if team.channels != one.channels {
            for (channel, why) in team.notices.set_channels(&one.channels) {
                tracing::warn!(channel, "a channel has no quiet hours: {why}");
            }
            team.channels = one.channels;
        }
        if team.silences != one.silences {
            team.notices.set_silences(&one.silences);
            team.silences = one.silences;
        }
        if let Some(Earlier { notices, open, ended, .. }) = earlier {
            let all: Vec<Alert> = open.iter().chain(&ended).cloned().collect();
            team.notices.restore(&notices, &all, now);
            team.firing = open.into_iter().map(|alert| (alert.id.clone(), alert)).collect();
        }
        team.acked(book).await;
        all.push(team);
    }
    Ok(all)
}

/// What an earlier life had written.
struct Restored {
    states: Vec<KeptState>,
    alerts: Vec<(Option<String>, Alert)>,
}

/// Likewise, of one team.
struct Earlier {
    engine: Vec<StateRow>,
    codes: Vec<StateRow>,
    notices: Vec<StateRow>,
    open: Vec<Alert>,
    ended: Vec<Alert>,
}

impl Restored {
    async fn read(book: &AlertBook, now: i64) -> Result<Restored, Denied> {
        let Some(records) = book.there().await? else { return Ok(Restored { states: Vec::new(), alerts: Vec::new() }) };
        let mut on = records.read().await?;
        let states = alerts::states(&mut on).await?;
        let resolved =
            AlertFilter { state: Some("resolved".into()), from: Some(now - ENDED_MS), ..AlertFilter::default() };
        let ended = alerts::newest(&mut on, &resolved, ENDED).await?;
        let of = |row: AlertRow| {
            let team = row.team.clone();
            super::found::alert_of(row).map(|alert| (team, alert))
        };
        let all = alerts::open(&mut on).await?.into_iter().chain(ended);
        Ok(Restored { states, alerts: all.filter_map(of).collect() })
    }

    fn of(&self, team: &str) -> Earlier {
        let rows = |part: &str| -> Vec<StateRow> {
            let prefix = state_key(team, part, "");
            let own = self.states.iter().filter_map(|state| {
                Some(StateRow { key: state.key.strip_prefix(&prefix)?.into(), bytes: Some(state.body.clone()) })
            });
            own.collect()
        };
        let own = self.alerts.iter().filter(|(of, _)| of.as_deref() == Some(team)).map(|(_, alert)| alert.clone());
        let (ended, open) = own.partition(|alert| alert.state == AlertState::Resolved);
        Earlier { engine: rows(ENGINE), codes: rows(CODES), notices: rows(NOTICES), open, ended }
    }
}

/// Whose state it is, under which key.
fn state_key(team: &str, part: &str, key: &str) -> String {
    format!("{team}/{part}/{key}")
}

impl TeamWatch {
    fn new(setup: Setup, now: i64) -> Self {
        TeamWatch {
            id: None,
            salt: None,
            scope: Scope::nothing(),
            engine: Engine::new(now),
            codes: None,
            heard: Vec::new(),
            notices: Notices::new(setup),
            sources: HashMap::new(),
            keys: BTreeMap::new(),
            fresh: true,
            rules: Vec::new(),
            channels: Vec::new(),
            silences: Vec::new(),
            firing: HashMap::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Notes who took which alerts on.
    async fn acked(&mut self, book: &AlertBook) {
        let Ok(Some(records)) = book.there().await else { return };
        let Ok(mut on) = records.read().await else { return };
        let Ok(acked) = alerts::acked(&mut on).await else { return };
        for (id, by, at) in acked {
            if let Some(alert) = self.firing.get_mut(&id).filter(|alert| alert.acked.is_none()) {
                let acked = Acked { by, at: at / 1_000 };
                self.notices.ack(&id, acked.clone());
                alert.acked = Some(acked);
            }
        }
    }

    /// Takes what code says of a machine that it may see.
    pub(super) fn told(&mut self, call: &AlertCall, tied: &Tied, now: i64) -> Option<TakenCall> {
        let codes = self.codes.as_mut()?;
        let (taken, heard) = codes.take(call, tied, now);
        self.heard.extend(heard.into_iter().map(|transition| of_team(transition, self.salt.as_deref())));
        Some(taken).map(|taken| TakenCall {
            id: shown_id(&taken.id, self.salt.as_deref()),
            began: call.t,
            count: taken.count,
            new: taken.count <= call.count,
        })
    }

    /// What changed since the look before, and who is told.
    fn collect(&mut self, at: usize, now: i64, batch: &mut Batch) {
        self.engine.poll(now);
        let mut heard = std::mem::take(&mut self.heard);
        heard.extend(self.engine.take());
        if let Some(codes) = &mut self.codes {
            let over = codes.poll(now).into_iter().map(|transition| of_team(transition, self.salt.as_deref()));
            heard.extend(over);
            let rows = codes.changed_rows();
            batch.states.extend(rows.into_iter().map(|row| ((at, CODES, row.key), row.bytes)));
        }
        for transition in heard {
            self.notices.hear(&transition, now);
            self.note(at, transition, now, batch);
        }
        for due in self.notices.poll(now) {
            batch.due.push((at, due));
        }
        self.note_held(at, batch);
        let states = |part: &'static str, rows: Vec<StateRow>| {
            rows.into_iter().map(move |row| ((at, part, row.key), row.bytes)).collect::<Vec<_>>()
        };
        batch.states.extend(states(ENGINE, self.engine.changed_rows()));
        batch.states.extend(states(NOTICES, self.notices.changed_rows()));
    }

    fn note(&mut self, at: usize, transition: Transition, now: i64, batch: &mut Batch) {
        let Transition { what, mut alert, flapping, .. } = transition;
        match what {
            What::Pending => return drop(self.pending.insert(alert.id.clone(), alert)),
            What::Dropped => return drop(self.pending.remove(&alert.id)),
            What::Fired | What::Changed | What::Ended => drop(self.pending.remove(&alert.id)),
        }
        if let Some(known) = self.firing.get(&alert.id) {
            alert.acked.clone_from(&known.acked);
            alert.held.clone_from(&known.held);
        }
        let kind = match what {
            What::Fired if flapping => "flapping",
            What::Fired => "firing",
            What::Ended => "resolved",
            What::Pending | What::Dropped | What::Changed => "",
        };
        if !kind.is_empty() {
            let event = AlertEvent {
                alert: alert.id.clone(),
                t: now,
                kind: kind.into(),
                who: String::new(),
                words: alert.sentence.clone(),
            };
            batch.events.push((at, event));
        }
        match alert.state {
            AlertState::Resolved => drop(self.firing.remove(&alert.id)),
            AlertState::Pending | AlertState::Firing => drop(self.firing.insert(alert.id.clone(), alert.clone())),
        }
        batch.alerts.insert(alert.id.clone(), (at, alert));
    }

    fn about_to_fire(&self) -> impl Iterator<Item = PendingAlert> {
        self.pending.values().map(|alert| {
            let source = alert.labels.get("source").and_then(|name| self.keys.get(name)).cloned();
            PendingAlert { team: self.id.clone(), source, alert: plain(alert.clone()) }
        })
    }

    /// Notes of which alerts nobody is told, and why, and how many each silence held back.
    fn note_held(&mut self, at: usize, batch: &mut Batch) {
        for (id, why) in self.notices.held() {
            if let Some(alert) = self.firing.get_mut(&id).filter(|alert| alert.held != why) {
                alert.held = why;
                batch.alerts.insert(id, (at, alert.clone()));
            }
        }
        for (silence, more) in self.notices.held_back() {
            *batch.held.entry(silence).or_default() += i64::try_from(more).unwrap_or(i64::MAX);
        }
    }

    /// A notice of one of its channels is done.
    fn outcome(&mut self, done: &Delivered) {
        if let Some(channel) = self.channels.iter().find(|channel| channel.id == done.channel) {
            self.notices.outcome(&channel.name, &done.notice, done.taken);
        }
    }
}

const ENGINE: &str = "engine";
const CODES: &str = "codes";
const NOTICES: &str = "notices";

/// Writes it, all or nothing; whether there is something to send now.
async fn write(book: &AlertBook, all: &mut [TeamWatch], batch: &Batch, now: i64) -> Result<bool, Denied> {
    let mut change = book.made().await?.change().await?;
    book.tidy(&mut change).await?;
    if let [team] = all
        && team.id.is_none()
    {
        // It has been made just now.
        team.id = teams::all(&mut change).await?.into_iter().next().map(|team| team.id);
    }
    let team_of = |at: usize| all.get(at).and_then(|team| Some((team, team.id.clone()?)));
    for (at, alert) in batch.alerts.values() {
        let Some((team, id)) = team_of(*at) else { continue };
        let source = alert.labels.get("source").and_then(|name| team.keys.get(name));
        let alert = plain(alert.clone());
        alerts::put(&mut change, &row_of(&alert, Some(&id), source.map(String::as_str), now)).await?;
    }
    for (_, event) in &batch.events {
        alerts::happened(&mut change, event).await?;
    }
    for ((at, part, key), body) in &batch.states {
        let Some((_, id)) = team_of(*at) else { continue };
        let key = state_key(&id, part, key);
        match body {
            Some(body) => alerts::keep_state(&mut change, &KeptState { key, body: body.clone(), updated: now }).await?,
            None => alerts::drop_state(&mut change, &key).await?,
        }
    }
    for (id, more) in &batch.held {
        silences::held(&mut change, id, *more).await?;
    }
    let mut mail = false;
    for (at, due) in &batch.due {
        let Some((team, _)) = team_of(*at) else { continue };
        if let Some(channel) = team.channels.iter().find(|channel| channel.name == due.channel) {
            post(&mut change, &channel.id, &due.notice, now).await?;
            mail = true;
        }
    }
    change.commit().await?;
    Ok(mail)
}

/// Puts a notice into the outbox. What waits there of its group becomes one with it, so that a receiver that was away for
/// hours gets one message.
async fn post(change: &mut records::Change, channel: &str, notice: &Notice, now: i64) -> Result<(), Denied> {
    let waiting = outbox::waiting(change, channel, &notice.group, now).await?;
    let tried = waiting.iter().filter(|old| old.tries > 0 && old.id != notice.id);
    let tried = tried.filter_map(|old| serde_json::from_str::<Notice>(&old.body).ok());
    let mut notice = tried.fold(notice.clone(), |notice, old| fold(&old, &notice));
    notice.alerts = notice.alerts.into_iter().map(plain).collect();
    let seq = i64::try_from(notice.seq).unwrap_or(i64::MAX);
    // The message that was tried in vain is not sent on its own any more; when it may be tried again counts for this one.
    let next = waiting.iter().filter(|old| old.tries > 0).map(|old| old.next).max().unwrap_or(now).max(now);
    let row = OutboxRow {
        id: notice.id.clone(),
        channel: channel.into(),
        group_key: notice.group.clone(),
        seq,
        kind: kind(notice.kind).into(),
        title: notice.title.clone(),
        body: serde_json::to_string(&notice).expect("texts, lists and finite numbers only"),
        made: now,
        state: "waiting".into(),
        tries: 0,
        next,
        lease: None,
        holder: None,
        tried: None,
        words: String::new(),
    };
    outbox::add(change, &row).await?;
    if waiting.iter().any(|old| old.tries > 0) {
        outbox::fold(change, (channel, &notice.group), seq, now).await?;
    }
    Ok(())
}

fn kind(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::Firing => "firing",
        NoticeKind::Resolved => "resolved",
        NoticeKind::Digest => "digest",
        NoticeKind::Test => "test",
    }
}

/// The id of a rule as people know it.
fn shown_rule(id: &str) -> &str {
    id.split(OF_TEAM).next().unwrap_or_default()
}

/// The id of an alert from code, which is another for each team that is told.
fn shown_id(id: &str, team: Option<&str>) -> String {
    match team {
        Some(team) => id.chars().take(ID_HALF).chain(team.chars().take(ID_HALF)).collect(),
        None => id.into(),
    }
}

/// An alert from code as one of a team.
fn of_team(mut transition: Transition, team: Option<&str>) -> Transition {
    let alert = &mut transition.alert;
    alert.id = shown_id(&alert.id, team);
    if let Some(team) = team {
        alert.rule = format!("{}{OF_TEAM}{team}", alert.rule);
    }
    transition
}

/// An alert with the id of its rule as people know it.
fn plain(mut alert: Alert) -> Alert {
    alert.rule = shown_rule(&alert.rule).to_string();
    alert
}

/// What hinders rules, by their ids, in sentences; of the whole under an empty one.
fn troubles(all: &[TeamWatch], away: Option<&str>, left_out: u64) -> BTreeMap<String, Vec<String>> {
    let mut troubles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (rule, sentence) in all.iter().flat_map(|team| team.engine.trouble()) {
        let rule = shown_rule(&rule).to_string();
        let known = troubles.entry(rule).or_default();
        if !known.contains(&sentence) {
            known.push(sentence);
        }
    }
    if let Some(why) = away {
        let sentence = format!("alerts are kept in memory and told late: {why}");
        troubles.entry(String::new()).or_default().push(sentence);
    }
    if left_out > 0 {
        let sentence = format!("{left_out} notices and events had no room while the database was away");
        troubles.entry(String::new()).or_default().push(sentence);
    }
    troubles
}
