//! Rows that the rules of teams read and write: all of a team in one transaction.

use super::found::{alert_of, row_of};
use super::lease::TellingLease;
use super::registry::AlertRegistry;
use super::rules::rule_of;
use super::silences::silence_of;
use super::team::{Earlier, HomeUse, Loaded, PERSON, TeamBatch, TeamWatch, of_team, plain, shown_rule};
use records::accounts::Tells;
use records::alerts::{AlertEvent, AlertFilter, AlertRow, KeptState, NOTIFIED_STATE};
use records::channels::OWN_KIND;
use records::outbox::OutboxRow;
use records::teams::Member;
use records::{Change, accounts, alerts, channels, grants, outbox, silences, sources, teams};
use ring::digest::{SHA256, digest};
use rules::{Person, StateRow, fold_all};
use shared::alert::{Alert, AlertState, Channel, Delivery, Notice, NoticeKind, Rule};
use shared::scope::Scope;
use std::collections::{BTreeMap, BTreeSet};
use team::accounts::{Denied, gpu_hours_limit, logins};

/// Age of ended alerts whose notices are checked after a start, milliseconds; and their maximum number.
const ENDED_MS: i64 = 24 * 3_600_000;
const ENDED: i64 = 10_000;

/// Maximum number of silences read.
const SILENCES: i64 = 10_000;

/// Maximum bytes of an event's text, of a subject, and of the key of a state that is stored unhashed.
const WORDS: usize = 2_000;
const SUBJECT: usize = 1_000;
const KEY: usize = 300;

/// Input for the rules of all teams; for a server without a database, of its one team.
pub(super) async fn load(registry: &AlertRegistry, has_teams: bool) -> Result<Vec<Loaded>, Denied> {
    let fixed = registry.0.about.fixed.clone();
    let Some(records) = registry.there().await? else {
        let (name, scope) = (String::new(), Scope::All);
        let (rules, channels, people) = (fixed, Vec::new(), Vec::new());
        let (silences, home) = (Vec::new(), HomeUse::default());
        return Ok(vec![Loaded { id: None, name, scope, rules, channels, people, silences, home }]);
    };
    let channels = registry.all_channels().await?;
    let mut on = records.read().await?;
    let silent = silences::list(&mut on, None, registry.now(), SILENCES).await?;
    let made = records::rules::list(&mut on, None).await?;
    let tells = accounts::tells(&mut on, None).await?;
    let said = if tells.is_empty() { BTreeMap::new() } else { logins::list_logins(&mut on, None).await? };
    let homes = if has_teams { sources::homes(&mut on).await? } else { Vec::new() };
    let mut all = Vec::new();
    for team in teams::all(&mut on).await? {
        let scope = match has_teams {
            true => {
                let granted = grants::list(&mut on, &team.id).await?;
                Scope::only([team.id.clone()], granted.into_iter().map(|source| source.id))
            }
            false => Scope::All,
        };
        let members = if tells.is_empty() { Vec::new() } else { teams::members(&mut on, &team.id).await? };
        let told = tells.iter().filter(|one| one.email.is_some() && registry.0.about.mail);
        let told: Vec<(&Tells, &Member)> =
            told.filter_map(|one| Some((one, members.iter().find(|member| member.id == one.id)?))).collect();
        let own = made.iter().filter(|row| row.team == team.id);
        let own = own.filter_map(|row| Some(to_its_maker(rule_of(row)?, row.owner.as_deref())));
        let fixed = fixed.iter().cloned().map(|rule| if has_teams { of_team(rule, &team.id) } else { rule });
        let silences = silent.iter().filter(|row| row.team == team.id).cloned().filter_map(silence_of);
        // A channel that cannot be decrypted now still exists: its notices wait.
        let channels = channels.iter().filter(|channel| channel.team == team.id);
        all.push(Loaded {
            rules: own.chain(fixed).collect(),
            channels: channels
                .map(|channel| channel.shown.clone())
                .chain(told.iter().map(|one| way_to(one.0)))
                .collect(),
            people: told.iter().map(|(tells, member)| person(tells, member, said.get(&tells.id))).collect(),
            silences: silences.collect(),
            home: HomeUse {
                limit: gpu_hours_limit(&team),
                machines: homes.iter().filter(|(_, home)| *home == team.id).map(|(id, _)| id.clone()).collect(),
            },
            scope,
            name: if has_teams { team.name } else { String::new() },
            id: Some(team.id),
        });
    }
    Ok(all)
}

/// Replaces the channel "me" of a rule by the personal channel of its creator.
fn to_its_maker(mut rule: Rule, owner: Option<&str>) -> Rule {
    for name in rule.to.iter_mut().flatten().filter(|name| *name == "me") {
        if let Some(owner) = owner {
            *name = format!("{PERSON}{owner}");
        }
    }
    rule
}

/// The personal channel of an account, in the form of a channel of the team.
fn way_to(tells: &Tells) -> Channel {
    Channel {
        id: tells.id.clone(),
        name: format!("{PERSON}{}", tells.id),
        kind: OWN_KIND.into(),
        target: String::new(),
        quiet: Vec::new(),
        zone: None,
        is_default: false,
        delivery: Delivery::default(),
    }
}

/// A person's settings for notices about their runs: their logins are set by an admin of the team and by identity
/// providers.
fn person(tells: &Tells, member: &Member, said: Option<&BTreeSet<String>>) -> Person {
    let mut logins: BTreeSet<String> = serde_json::from_str(&member.logins).unwrap_or_default();
    logins.extend(said.into_iter().flatten().cloned());
    let (finished, crashed) = (tells.tell_finished, tells.tell_crashed);
    Person { channel: format!("{PERSON}{}", tells.id), logins, finished, crashed }
}

/// Acknowledgments: the alert, the account, and the time.
pub(super) async fn acked(registry: &AlertRegistry) -> Result<Vec<(String, String, i64)>, Denied> {
    match registry.there().await? {
        Some(records) => Ok(alerts::acked(&mut *records.read().await?).await?),
        None => Ok(Vec::new()),
    }
}

/// State stored by an earlier run of the server.
pub(super) struct Restored {
    rows: Vec<(String, String, StateRow)>,
    alerts: Vec<(Option<String>, Alert)>,
}

impl Restored {
    pub async fn read(registry: &AlertRegistry, now: i64) -> Result<Restored, Denied> {
        let Some(records) = registry.there().await? else {
            return Ok(Restored { rows: Vec::new(), alerts: Vec::new() });
        };
        let mut on = records.read().await?;
        let row = |state: KeptState| {
            let mut parts = state.key.splitn(3, '/');
            let (team, part) = (parts.next()?.to_string(), parts.next()?.to_string());
            let (key, bytes) = serde_json::from_slice::<(String, Vec<u8>)>(&state.body).ok()?;
            Some((team, part, StateRow { key, bytes: Some(bytes) }))
        };
        let rows = alerts::states(&mut on).await?.into_iter().filter_map(row).collect();
        let (state, from) = (Some("resolved".into()), Some(now - ENDED_MS));
        let ended = alerts::newest(&mut on, &AlertFilter { state, from, ..AlertFilter::default() }, ENDED).await?;
        let of = |row: AlertRow| {
            let team = row.team.clone();
            alert_of(row).map(|alert| (team, alert))
        };
        let all = alerts::open(&mut on).await?.into_iter().chain(ended);
        Ok(Restored { rows, alerts: all.filter_map(of).collect() })
    }

    pub fn earlier_of(&self, team: &str) -> Earlier {
        let rows = self.rows.iter().filter(|(of, ..)| of == team).map(|(_, part, row)| (part.clone(), row.clone()));
        let own = self.alerts.iter().filter(|(of, _)| of.as_deref() == Some(team)).map(|(_, alert)| alert.clone());
        let (ended, open) = own.partition(|alert| alert.state == AlertState::Resolved);
        Earlier { rows: rows.collect(), open, ended }
    }
}

/// Key of a state: team, part and key. A long key is replaced by its SHA-256, since machines choose the names of their
/// metrics.
fn state_key(team: &str, part: &str, key: &str) -> String {
    if key.len() <= KEY {
        return format!("{team}/{part}/{key}");
    }
    format!("{team}/{part}/#{}", hex::encode(digest(&SHA256, key.as_bytes())))
}

/// A text cut to this number of bytes.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Writes the pending rows of a team, all or nothing; returns whether there are notices to send. If another hub holds
/// the lease, no notices are written.
pub(super) async fn write(
    registry: &AlertRegistry,
    team: &mut TeamWatch,
    lease: Option<&TellingLease>,
    now: i64,
) -> Result<bool, Denied> {
    let records = registry.made().await?;
    // Alerts do not affect authorization.
    let mut change = if lease.is_some() { records.note().await? } else { records.change().await? };
    if let Some(lease) = lease.filter(|_| team.tells)
        && !lease.take(&mut change, now).await?
    {
        team.stop_telling();
    }
    registry.tidy(&mut change).await?;
    if team.id.is_none() {
        // The database was created just now, with its one team.
        team.id = teams::all(&mut change).await?.into_iter().next().map(|team| team.id);
    }
    let Some(id) = team.id.clone() else { return Err(Denied::Unavailable) };
    let TeamBatch { alerts: changed, events, states, due, held, whys, heard, .. } = &team.batch;
    for alert in changed.values() {
        let source = team.source_of(alert).map(String::as_str);
        let mut row = row_of(&plain(alert.clone()), Some(&id), source, now);
        row.subject = cut(&row.subject, SUBJECT).into();
        row.heard = if team.tells { NOTIFIED_STATE } else { 0 };
        alerts::put(&mut change, &row).await?;
    }
    for event in events {
        let words = cut(&event.words, WORDS).into();
        alerts::happened(&mut change, &AlertEvent { words, ..event.clone() }).await?;
    }
    for ((part, key), body) in states {
        let row = state_key(&id, part, key);
        match body {
            Some(body) => {
                let body = serde_json::to_vec(&(key, body)).expect("texts and numbers only");
                alerts::keep_state(&mut change, &KeptState { key: row, body, updated: now }).await?;
            }
            None => alerts::drop_state(&mut change, &row).await?,
        }
    }
    for (id, state, updated) in heard {
        alerts::set_heard(&mut change, id, state, *updated).await?;
    }
    for (id, why) in whys {
        alerts::set_held(&mut change, id, cut(why, WORDS)).await?;
    }
    for (id, more) in held {
        silences::held(&mut change, id, *more).await?;
    }
    let mut mail = false;
    for one in due {
        if let Some(channel) = team.channels.iter().find(|channel| channel.name == one.channel) {
            let mut notice = one.notice.clone();
            if channel.kind == OWN_KIND {
                channels::have_own(&mut change, &channel.id, &id, now).await?;
                notice.id = own_id(&channel.id, &notice).unwrap_or(notice.id);
            }
            post(&mut change, &channel.id, &notice, now).await?;
            mail = true;
        }
    }
    change.commit().await?;
    Ok(mail)
}

/// The id of a notice to a person about the end of a run. It is the same in each of their teams that see it, so that
/// the notice is sent once.
fn own_id(account: &str, notice: &Notice) -> Option<String> {
    let [alert] = &notice.alerts[..] else { return None };
    alert.labels.get("run")?;
    let began = alert.began.to_string();
    Some(rules::id_of(&["own", account, shown_rule(&alert.rule), &alert.subject, &began, kind(notice.kind)]))
}

/// Puts a notice into the outbox. While the channel is down, waiting notices of its group are merged into it, so that a
/// receiver that was down for hours gets one message.
async fn post(change: &mut Change, channel: &str, notice: &Notice, now: i64) -> Result<(), Denied> {
    let mut waiting = outbox::waiting(change, channel, &notice.group, now).await?;
    waiting.retain(|old| old.id != notice.id);
    let is_down = waiting.iter().any(|old| old.tries > 0);
    let older = waiting.iter().rev().filter(|_| is_down);
    let older = older.filter_map(|old| serde_json::from_str::<Notice>(&old.body).ok());
    let mut notice = fold_all(notice, older);
    notice.alerts = notice.alerts.into_iter().map(plain).collect();
    let seq = i64::try_from(notice.seq).unwrap_or(i64::MAX);
    // The backoff of failed notices applies to this one.
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
    if is_down {
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
