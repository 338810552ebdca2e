//! Sends the notices of the outbox: at least once, in the order of their group, with the same id in each try.

use super::registry::AlertRegistry;
use notify::{Attempt, GIVE_UP_AFTER, Outcome, Road, Sender, Settings};
use records::accounts;
use records::channels::OWN_KIND;
use records::outbox::{self, OutboxRow};
use ring::rand::{SecureRandom, SystemRandom};
use shared::alert::{ChannelInput, Notice};
use std::sync::Arc;
use std::time::Duration;
use stream::clock::Clock;
use team::accounts::{Denied, random_id};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Lease of a notice, milliseconds: longer than a try takes.
const LEASE_MS: i64 = 60_000;

/// Maximum number of concurrent tries: of one channel, and of all.
const AT_ONCE: (i64, usize) = (4, 16);

/// Delay of the next try if the channel is unusable as it is.
const UNUSABLE: Duration = Duration::from_secs(60);

/// Interval of checks for notices without a signal.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Time for running tries to finish at the end.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of results that the watcher has not received yet.
pub const MAX_DONE: usize = 1_024;

/// Result of a finished notice.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// The channel's id.
    pub channel: String,
    /// The notice's id.
    pub notice: String,
    /// Whether it was accepted; otherwise it was given up.
    pub taken: bool,
}

/// Sends until `stop` becomes true; `done` receives each finished notice.
pub async fn deliver(
    registry: AlertRegistry,
    road: Road,
    clock: Arc<dyn Clock>,
    done: mpsc::Sender<Delivered>,
    mut stop: watch::Receiver<bool>,
) {
    let (road, holder) = (Arc::new(road), random_id());
    let mut mail = registry.mail();
    let mut tries = JoinSet::new();
    let mut said = false;
    loop {
        mail.mark_unchanged();
        while tries.len() < AT_ONCE.1 {
            match lease(&registry, &holder, clock.wall()).await {
                Ok(Some(row)) => {
                    said = false;
                    let one = Try {
                        registry: registry.clone(),
                        road: road.clone(),
                        clock: clock.clone(),
                        done: done.clone(),
                    };
                    tries.spawn(one.deliver_row(row, holder.clone()));
                }
                Ok(None) => break,
                Err(_) if std::mem::replace(&mut said, true) => break,
                Err(error) => {
                    tracing::error!(%error, "notices wait: the database of rules and alerts does not answer");
                    break;
                }
            }
        }
        let oldest = oldest(&registry).await;
        registry.count(|figures| figures.oldest = oldest);
        tokio::select! {
            Ok(()) = mail.changed() => {}
            Some(_) = tries.join_next() => {}
            () = tokio::time::sleep(CHECK_INTERVAL) => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    // A try that is cut off here is repeated, with the same id.
    let _ = tokio::time::timeout(CLOSING_TIMEOUT, async { while tries.join_next().await.is_some() {} }).await;
}

/// Time when the oldest waiting notice was written; also None if it cannot be read.
async fn oldest(registry: &AlertRegistry) -> Option<i64> {
    let records = registry.there().await.ok()??;
    outbox::oldest(&mut *records.read().await.ok()?).await.ok()?
}

async fn lease(registry: &AlertRegistry, holder: &str, now: i64) -> Result<Option<OutboxRow>, Denied> {
    let Some(records) = registry.there().await? else { return Ok(None) };
    let mut change = records.change().await?;
    let row = outbox::lease(&mut change, holder, (now, now + LEASE_MS), AT_ONCE.0).await?;
    if row.is_some() {
        change.commit().await?;
    }
    Ok(row)
}

struct Try {
    registry: AlertRegistry,
    road: Arc<Road>,
    clock: Arc<dyn Clock>,
    done: mpsc::Sender<Delivered>,
}

impl Try {
    async fn deliver_row(self, row: OutboxRow, holder: String) {
        let outcome = match self.settings(&row.channel).await {
            // The channel may be repaired before the notice expires.
            Ok(Err(sentence)) => Outcome::Again { after: UNUSABLE, sentence },
            Ok(Ok(settings)) => self.send(settings, &row).await,
            // The lease expires, and the notice is tried again.
            Err(error) => return tracing::error!(%error, "a notice waits: its channel cannot be read"),
        };
        let now = self.clock.wall();
        let outcome = match outcome {
            Outcome::Again { after, sentence } if now - row.made >= GIVE_UP_AFTER.as_millis() as i64 => {
                tracing::warn!(channel = row.channel, after = ?after, "a notice was given up after 24 h: {sentence}");
                Outcome::GivenUp { sentence: format!("given up after 24 h: {sentence}") }
            }
            outcome => outcome,
        };
        self.registry.count(|figures| match &outcome {
            Outcome::Done { .. } => figures.taken += 1,
            Outcome::Again { .. } => figures.tried += 1,
            Outcome::GivenUp { .. } => figures.given_up += 1,
        });
        let sentence = outcome.sentence().to_string();
        let noted = self.note(&row, &holder, &outcome, now).await;
        if let Err(error) = noted {
            // The lease expires, and the notice is sent again: twice rather than never.
            return tracing::error!(%error, "it could not be noted how a notice went: {sentence}");
        }
        let taken = match outcome {
            Outcome::Done { .. } => true,
            Outcome::GivenUp { .. } => false,
            Outcome::Again { .. } => return,
        };
        let told = Delivered { channel: row.channel, notice: row.id, taken };
        let _ = self.done.send(told).await; // The receiver may have ended.
    }

    /// The present channel; or the reason why it cannot be used, in a sentence.
    async fn settings(&self, channel: &str) -> Result<Result<Settings, String>, Denied> {
        let all = self.registry.all_channels().await?;
        let own = all.into_iter().find(|one| one.shown.id == channel);
        let about = &self.registry.0.about;
        Ok(match own.map(|one| one.input) {
            Some(input) => input.and_then(|input| Settings::check(&input, &about.allowed, about.mail)),
            None => self.own_way(channel).await?,
        })
    }

    /// The channel to an account, by its e-mail address; or the reason for having none, in a sentence.
    async fn own_way(&self, account: &str) -> Result<Result<Settings, String>, Denied> {
        let records = self.registry.made().await?;
        let tells = accounts::tells(&mut *records.read().await?, Some(account)).await?.pop();
        let Some(email) = tells.and_then(|tells| tells.email) else {
            return Ok(Err("the channel was removed, or the account's e-mail address is not verified".into()));
        };
        let input =
            ChannelInput { name: OWN_KIND.into(), kind: "email".into(), to: vec![email], ..ChannelInput::default() };
        let about = &self.registry.0.about;
        Ok(Settings::check(&input, &about.allowed, about.mail))
    }

    async fn send(&self, settings: Settings, row: &OutboxRow) -> Outcome {
        let notice: Notice = match serde_json::from_str(&row.body) {
            Ok(notice) => notice,
            Err(error) => return Outcome::GivenUp { sentence: format!("the notification cannot be read: {error}") },
        };
        let attempt = Attempt {
            now: self.clock.wall() / 1_000,
            tries: u32::try_from(row.tries).unwrap_or(u32::MAX),
            random: random(),
        };
        let road = self.road.clone();
        let sent = tokio::task::spawn_blocking(move || match Sender::new(&road) {
            Ok(mut sender) => sender.send(&settings, &notice, attempt),
            Err(why) => Outcome::GivenUp { sentence: why },
        });
        sent.await.unwrap_or_else(|_| Outcome::GivenUp { sentence: "sending failed; see the log".into() })
    }

    async fn note(&self, row: &OutboxRow, holder: &str, outcome: &Outcome, now: i64) -> Result<(), Denied> {
        let mut change = self.registry.made().await?.change().await?;
        let (own, words) = ((row.id.as_str(), holder), outcome.sentence());
        match outcome {
            Outcome::Done { .. } => {
                // Alerts for an Alertmanager are sent each minute: only the newest notice matters.
                if row.group_key == rules::STANDING {
                    outbox::forget_done(&mut change, (&row.channel, &row.group_key), row.seq).await?;
                }
                outbox::finish(&mut change, own, "sent", words, now).await?
            }
            Outcome::GivenUp { .. } => outbox::finish(&mut change, own, "failed", words, now).await?,
            Outcome::Again { after, .. } => {
                let next = now + i64::try_from(after.as_millis()).unwrap_or(i64::MAX / 2);
                outbox::again(&mut change, own, next, words, now).await?
            }
        };
        Ok(change.commit().await?)
    }
}

/// A random number, 0 to 1.
fn random() -> f64 {
    let mut bytes = [0; 4];
    SystemRandom::new().fill(&mut bytes).expect("the system always has random bytes once it has started");
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}
