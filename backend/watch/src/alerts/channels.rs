//! Channels: queries, creation, changes and tests. Secrets of a channel are sealed before they are written. They never
//! leave the server except to their target.

use super::registry::{AlertRegistry, maker, missing, scoped};
use super::rules::OWN_CHANNELS;
use super::sealing::SealingKey;
use notify::Settings;
use records::channels::{self, ChannelRow};
use records::outbox::{self, ChannelFigures, OutboxRow};
use records::{Connection, teams};
use rules::Hours;
use serde::{Deserialize, Serialize};
use shared::alert::{
    AlertSeverity, Channel, ChannelInput, Channels, Delivery, Notice, NoticeKind, Quiet, Sent, Tested,
};
use shared::role::{KeyScope, Role};
use std::collections::HashMap;
use std::time::Duration;
use team::accounts::{Denied, Principal, random_id};
use tokio::time::{Instant, sleep};

/// Name of the table for sealed texts.
const TABLE: &str = "channels";

/// Maximum number of channels of a team.
const MAX_CHANNELS: i64 = 100;

/// Periods of counted deliveries and of shown ones, milliseconds.
const COUNTED_PERIOD_MS: i64 = 7 * 86_400_000;
const SHOWN_PERIOD_MS: i64 = 86_400_000;
const SHOWN_MOST: i64 = 100;

/// Time between two tests of a channel, milliseconds.
const TEST_EVERY: i64 = 10_000;

/// Timeout of a test.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
const TEST_LOOK: Duration = Duration::from_millis(100);

/// Error for a missing key.
const KEY_MISSING: &str =
    "the key is missing: restore secret.key in the data folder, or enter this channel's secrets again";

/// The non-secret settings of a channel.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Open {
    quiet: Vec<Quiet>,
    zone: Option<String>,
}

/// A channel with everything needed to send to it.
#[derive(Clone, Debug)]
pub struct OpenedChannel {
    /// Its team's id.
    pub team: String,
    /// In the form of the API, without figures of deliveries.
    pub shown: Channel,
    /// Its whole input; or the reason why it cannot be used, in a sentence.
    pub input: Result<ChannelInput, String>,
}

fn shown(row: &ChannelRow) -> Channel {
    let open: Open = serde_json::from_str(&row.settings).unwrap_or_default();
    Channel {
        id: row.id.clone(),
        name: row.name.clone(),
        kind: row.kind.clone(),
        target: row.target.clone(),
        quiet: open.quiet,
        zone: open.zone,
        is_default: row.is_default,
        delivery: Delivery { state: "none".into(), ..Delivery::default() },
    }
}

/// The whole input of a channel, if the key opens it.
fn opened(row: &ChannelRow, key: &Result<Option<SealingKey>, String>) -> Result<ChannelInput, String> {
    let key = key.as_ref().map_err(Clone::clone)?.as_ref().ok_or(KEY_MISSING)?;
    let sealed = row.sealed.as_deref().ok_or(KEY_MISSING)?;
    let text = key.open((TABLE, &row.id), sealed).ok_or("this channel is encrypted with another secret.key")?;
    let input = serde_json::from_slice::<ChannelInput>(&text);
    let input = input.map_err(|_| "another version wrote this channel; save it again")?;
    Ok(ChannelInput { name: row.name.clone(), ..input })
}

fn taken(error: records::Error, name: &str) -> Denied {
    match error.is_taken() {
        true => Denied::Conflict(format!("there is already a channel {name:?}; choose another name")),
        false => error.into(),
    }
}

/// State of a delivery, in a word.
fn sent_state(row: &OutboxRow) -> &'static str {
    match row.state.as_str() {
        "sent" => "sent",
        "failed" => "failed",
        "folded" => "folded",
        _ if row.tried.is_some() => "retrying",
        _ => "waiting",
    }
}

fn delivery(last: Option<&OutboxRow>, figures: Option<&ChannelFigures>) -> Delivery {
    let count = |of: fn(&ChannelFigures) -> i64| figures.map_or(0, |figures| u64::try_from(of(figures)).unwrap_or(0));
    let state = match last.map(sent_state) {
        None => "none",
        Some("sent" | "folded") => "ok",
        Some("failed") => "failed",
        Some(_) => "retrying",
    };
    Delivery {
        state: state.into(),
        words: last.map(|row| row.words.clone()).unwrap_or_default(),
        at: last.and_then(|row| row.tried).map(|at| at / 1_000),
        waiting: count(|figures| figures.waiting),
        oldest: figures.and_then(|figures| figures.oldest).map(|at| at / 1_000),
        sent: count(|figures| figures.sent),
        lost: count(|figures| figures.failed),
    }
}

impl AlertRegistry {
    /// All channels of all teams, decrypted.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn all_channels(&self) -> Result<Vec<OpenedChannel>, Denied> {
        let Some(records) = self.there().await? else { return Ok(Vec::new()) };
        let rows = channels::list(&mut *records.read().await?, None).await?;
        let key = self.key().await;
        let open = |row: ChannelRow| OpenedChannel { shown: shown(&row), input: opened(&row, &key), team: row.team };
        Ok(rows.into_iter().map(open).collect())
    }

    /// The channels of the teams with at least the role of a member, and the notices of the last day.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn channels(&self, by: &Principal, team: Option<&str>) -> Result<Channels, Denied> {
        let Some(records) = self.there().await? else { return Ok(Channels::default()) };
        let key = self.key().await;
        let mut on = records.read().await?;
        let now = self.now();
        let figures: HashMap<String, ChannelFigures> = outbox::figures(&mut on, now - COUNTED_PERIOD_MS)
            .await?
            .into_iter()
            .map(|one| (one.channel.clone(), one))
            .collect();
        let last: HashMap<String, OutboxRow> =
            outbox::last_tried(&mut on).await?.into_iter().map(|one| (one.channel.clone(), one)).collect();
        let (mut all, mut sent) = (Vec::new(), Vec::new());
        for team in self.teams(&mut on, by, team, Role::Member).await? {
            let rows = channels::list(&mut on, Some(&team.id)).await?;
            let names: HashMap<&str, &str> = rows.iter().map(|row| (row.id.as_str(), row.name.as_str())).collect();
            for row in outbox::newest(&mut on, &team.id, now - SHOWN_PERIOD_MS, SHOWN_MOST).await? {
                sent.push(Sent {
                    channel: names.get(row.channel.as_str()).copied().unwrap_or_default().into(),
                    at: row.made / 1_000,
                    state: sent_state(&row).into(),
                    id: row.id,
                    title: row.title,
                    words: row.words,
                });
            }
            for row in &rows {
                let mut delivery = delivery(last.get(&row.id), figures.get(&row.id));
                if let Err(why) = opened(row, &key) {
                    (delivery.state, delivery.words) = ("failed".into(), why);
                }
                all.push(Channel { delivery, ..shown(row) });
            }
        }
        sent.sort_by_key(|one| std::cmp::Reverse(one.at));
        sent.truncate(SHOWN_MOST as usize);
        Ok(Channels { channels: all, sent })
    }

    /// Creates a channel.
    ///
    /// # Errors
    /// [`Denied`]: the principal is no admin of the team, the channel is invalid, its name is taken, or there are too
    /// many.
    pub async fn add_channel(
        &self,
        by: &Principal,
        team: Option<&str>,
        wanted: &ChannelInput,
    ) -> Result<Channel, Denied> {
        self.may_make(by)?;
        let mut change = self.begin().await?;
        let team = self.team(&mut change, by, team, Role::Admin).await?;
        if channels::count(&mut change, &team.id).await? >= MAX_CHANNELS {
            return Err(Denied::Conflict(format!("a team has at most {MAX_CHANNELS} channels; remove one first")));
        }
        let row = self.sealed(random_id(), (&team.id, maker(by)), wanted).await?;
        channels::add(&mut change, &row).await.map_err(|error| taken(error, &row.name))?;
        let after = Some(format!("{} {}", row.kind, row.target));
        self.audit(&mut change, by, ("channel.add", &row.team), &row.name, (None, after)).await?;
        change.commit().await?;
        self.has_changed();
        Ok(shown(&row))
    }

    /// Changes a channel, by its id or name. An omitted secret stays, if kind and hosts stay.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn change_channel(&self, by: &Principal, word: &str, wanted: &ChannelInput) -> Result<Channel, Denied> {
        self.may_make(by)?;
        let mut change = self.begin().await?;
        let old = self.own_channel(&mut change, by, word).await?;
        let wanted = match opened(&old, &self.key().await) {
            Ok(before) => notify::merged(&before, wanted.clone()).map_err(Denied::Invalid)?,
            // A channel that cannot be decrypted is replaced as a whole.
            Err(_) => wanted.clone(),
        };
        let row = self.sealed(old.id.clone(), (&old.team, old.maker.clone()), &wanted).await?;
        channels::set(&mut change, &row).await.map_err(|error| taken(error, &row.name))?;
        let (before, after) = (format!("{} {}", old.kind, old.target), format!("{} {}", row.kind, row.target));
        self.audit(&mut change, by, ("channel.change", &row.team), &row.name, (Some(before), Some(after))).await?;
        change.commit().await?;
        self.has_changed();
        Ok(shown(&row))
    }

    /// Removes a channel, by its id or name, with its waiting notices.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn remove_channel(&self, by: &Principal, word: &str) -> Result<(), Denied> {
        self.may_make(by)?;
        let mut change = self.begin().await?;
        let old = self.own_channel(&mut change, by, word).await?;
        channels::remove(&mut change, &old.id).await?;
        let before = Some(format!("{} {}", old.kind, old.target));
        self.audit(&mut change, by, ("channel.remove", &old.team), &old.name, (before, None)).await?;
        change.commit().await?;
        self.has_changed();
        Ok(())
    }

    /// Sends a test to a channel, by its id or name, through the same queue as every notice, and waits for its result.
    ///
    /// # Errors
    /// [`Denied`]: it is for admins of the team, and one each 10 s.
    pub async fn test_channel(&self, by: &Principal, word: &str) -> Result<Tested, Denied> {
        scoped(by, KeyScope::TeamAdmin)?;
        if self.there().await?.is_none() {
            return Err(Denied::Unknown);
        }
        let mut change = self.begin().await?;
        let row = self.own_channel(&mut change, by, word).await?;
        if let Err(sentence) = opened(&row, &self.key().await) {
            return Ok(Tested { ok: false, sentence });
        }
        let now = self.now();
        if !channels::test(&mut change, &row.id, now, now - TEST_EVERY).await? {
            return Err(Denied::Throttled { retry_after: Duration::from_millis(TEST_EVERY.unsigned_abs()) });
        }
        let id = random_id();
        let group = format!("test {id}");
        let notice = self.test_notice(&mut change, by, &id, (&group, &row)).await?;
        let mail = OutboxRow {
            id: id.clone(),
            channel: row.id.clone(),
            group_key: group,
            seq: 1,
            kind: "test".into(),
            title: notice.title.clone(),
            body: serde_json::to_string(&notice).expect("texts, lists and numbers only"),
            made: now,
            state: "waiting".into(),
            tries: 0,
            next: now,
            lease: None,
            holder: None,
            tried: None,
            words: String::new(),
        };
        outbox::add(&mut change, &mail).await?;
        self.audit(&mut change, by, ("channel.test", &row.team), &row.name, (None, None)).await?;
        change.commit().await?;
        self.has_mail();
        self.outcome(&id).await
    }

    async fn test_notice(
        &self,
        on: &mut Connection,
        by: &Principal,
        id: &str,
        (group, row): (&str, &ChannelRow),
    ) -> Result<Notice, Denied> {
        let about = &self.0.about;
        let team = match about.names_teams {
            true => teams::find(on, &row.team).await?.map(|team| team.name).unwrap_or_default(),
            false => String::new(),
        };
        Ok(Notice {
            id: id.into(),
            kind: NoticeKind::Test,
            group: group.into(),
            seq: 1,
            severity: AlertSeverity::Info,
            rule: String::new(),
            title: format!("Test of the channel {}", row.name),
            note: format!("{} sent this test of the notifications. No alert is firing.", maker(by)),
            alerts: Vec::new(),
            more: 0,
            counts: Vec::new(),
            link: about.public_url.as_ref().map(|url| format!("{url}?page=alerts")),
            charts: None,
            help: None,
            team,
            host: about.host.clone(),
            at: self.now() / 1_000,
        })
    }

    /// Result of a test, which has a single try.
    async fn outcome(&self, id: &str) -> Result<Tested, Denied> {
        let begun = Instant::now();
        loop {
            sleep(TEST_LOOK).await;
            let records = self.made().await?;
            let row = outbox::get(&mut *records.read().await?, id).await?.ok_or(Denied::Unknown)?;
            let over = begun.elapsed() >= TEST_TIMEOUT;
            if row.tried.is_none() && row.state == "waiting" && !over {
                continue;
            }
            if row.state == "waiting" {
                let mut change = records.note().await?;
                outbox::give_up(&mut change, id).await?;
                change.commit().await?;
            }
            let sentence = match row.tried {
                None => format!("no result within {} s", TEST_TIMEOUT.as_secs()),
                Some(_) => row.words,
            };
            return Ok(Tested { ok: row.state == "sent", sentence });
        }
    }

    /// Changes of channels need a fresh sign-in.
    fn may_make(&self, by: &Principal) -> Result<(), Denied> {
        scoped(by, KeyScope::TeamAdmin)?;
        match by.is_fresh(self.now()) {
            true => Ok(()),
            false => Err(Denied::Again),
        }
    }

    /// A channel that the principal may change, by its id, or by its name if only one of their teams has it.
    async fn own_channel(&self, on: &mut Connection, by: &Principal, word: &str) -> Result<ChannelRow, Denied> {
        let row = match channels::get(on, word).await? {
            Some(row) => Some(row).filter(|row| by.role_in(&row.team).is_some()),
            None => {
                let mut named = Vec::new();
                for team in self.teams(on, by, None, Role::Viewer).await? {
                    let rows = channels::list(on, Some(&team.id)).await?;
                    named.extend(rows.into_iter().filter(|row| row.name == word));
                }
                if named.len() > 1 {
                    return Err(Denied::Invalid(format!("several of your teams have a channel {word:?}; use its ID")));
                }
                named.pop()
            }
        };
        let row = row.ok_or(Denied::Unknown)?;
        if by.may(&row.team, Role::Admin) { Ok(row) } else { Err(missing(Role::Admin)) }
    }

    /// The row of a channel, after validation.
    async fn sealed(
        &self,
        id: String,
        (team, maker): (&str, String),
        wanted: &ChannelInput,
    ) -> Result<ChannelRow, Denied> {
        let about = &self.0.about;
        let settings = Settings::check(wanted, &about.allowed, about.mail).map_err(Denied::Invalid)?;
        Hours::new(&wanted.quiet, wanted.zone.as_deref()).map_err(Denied::Invalid)?;
        if OWN_CHANNELS.contains(&settings.name()) {
            return Err(Denied::Conflict(format!("{:?} is there already, without being made", settings.name())));
        }
        let key = self.made_key().await.map_err(|why| {
            tracing::error!("the key of channels: {why}");
            Denied::Unavailable
        })?;
        let whole = serde_json::to_vec(wanted).expect("texts and lists only");
        let open = Open { quiet: wanted.quiet.clone(), zone: wanted.zone.clone() };
        Ok(ChannelRow {
            sealed: Some(key.seal((TABLE, &id), &whole)),
            id,
            team: team.into(),
            maker,
            name: settings.name().into(),
            kind: settings.kind().into(),
            target: settings.target(),
            settings: serde_json::to_string(&open).expect("texts and lists only"),
            is_default: wanted.is_default,
            tested: None,
            updated: self.now(),
        })
    }
}
