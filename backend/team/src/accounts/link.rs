//! The hub's side of an agent's connection: the owner of the key, and the records of its source.

use super::attempts::Limit;
use super::key::KeyKind;
use super::labels::{labels_of, parsed};
use super::watchers::KeyHolder;
use super::{Accounts, Denied, Network};
use records::keys::Key;
use records::{eras, sources};
use shared::agent::close;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum lengths of data reported by a machine, bytes: host, platform, version, facts.
const MAX_REPORTED_BYTES: [usize; 4] = [255, 256, 64, 65_536];

/// Machine of an agent's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The id of its source, 26 letters.
    pub source: String,
    /// Its name.
    pub name: String,
    /// Labels of the join key and of admins.
    pub labels: BTreeMap<String, String>,
    /// Its team's id.
    pub team: String,
    /// The id of its key.
    pub key: String,
    /// It is removed for good after an hour offline.
    pub ephemeral: bool,
    since: u64,
}

/// Reason why a connection is refused or closed. Its text is one sentence for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkDenied {
    /// Not a key; sent before the upgrade, as 401.
    NoKey,
    /// An admin has ended the machine's key.
    Revoked,
    /// The machine's source was removed.
    Unknown,
    /// The machine has enrolled again, and has another key.
    Replaced,
    /// Too many invalid keys came from this network.
    Throttled {
        /// Time until the next attempt.
        retry_after: Duration,
    },
    /// The database cannot be used.
    Unavailable,
}

impl LinkDenied {
    /// The WebSocket close code of the connection; none for a refusal before the upgrade.
    pub fn close_code(&self) -> Option<u16> {
        match self {
            LinkDenied::Revoked => Some(close::REVOKED),
            LinkDenied::Unknown => Some(close::UNKNOWN),
            LinkDenied::Replaced => Some(close::REPLACED),
            LinkDenied::NoKey | LinkDenied::Throttled { .. } | LinkDenied::Unavailable => None,
        }
    }
}

impl fmt::Display for LinkDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkDenied::NoKey => f.write_str("this is not an agent key of this hub; join with a join key"),
            LinkDenied::Revoked => f.write_str("an admin of the hub revoked this machine"),
            LinkDenied::Unknown => f.write_str("this machine was removed from the hub; join again"),
            LinkDenied::Replaced => f.write_str("this machine has joined again and has another key now"),
            LinkDenied::Throttled { .. } => f.write_str("too many wrong keys from this network; retry in a minute"),
            LinkDenied::Unavailable => f.write_str("the database of the hub is unavailable"),
        }
    }
}

impl std::error::Error for LinkDenied {}

impl From<Denied> for LinkDenied {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Throttled { retry_after } => LinkDenied::Throttled { retry_after },
            _ => LinkDenied::Unavailable,
        }
    }
}

/// Data that a machine reports about itself. Absent values stay unchanged, and values that are too long are not stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Its host name.
    pub host: Option<String>,
    /// Operating system and processor.
    pub platform: Option<String>,
    /// Version of its agent.
    pub version: Option<String>,
    /// Other facts; JSON.
    pub facts: Option<String>,
}

/// A correction of a source's timestamps from a sequence on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// The first sequence.
    pub first: u64,
    /// Correction added to timestamps, milliseconds.
    pub shift_ms: i64,
    /// Lead of its clock, milliseconds.
    pub skew_ms: i64,
    /// Round trip of that measurement, milliseconds.
    pub rtt_ms: i64,
}

/// Reason why a connection is not allowed, by the row of its key; none while it is.
pub(super) fn ended(key: Option<&Key>) -> Option<LinkDenied> {
    let Some(key) = key else { return Some(LinkDenied::Unknown) };
    key.ended?;
    Some(match key.why.as_deref() {
        Some("replaced") => LinkDenied::Replaced,
        Some("removed") => LinkDenied::Unknown,
        _ => LinkDenied::Revoked,
    })
}

impl Accounts {
    /// The machine of an agent's key.
    ///
    /// # Errors
    /// [`LinkDenied`]; for an ended key it is one of three reasons.
    pub async fn agent(&self, text: &str, network: &Network) -> Result<Identity, LinkDenied> {
        let since = self.0.links.now();
        let Some(key) = self.proven(text, &[KeyKind::Agent]).await? else {
            self.attempt(&[(Limit::Key, network.text())])?;
            return Err(LinkDenied::NoKey);
        };
        if let Some(why) = ended(Some(&key)) {
            return Err(why);
        }
        let id = key.source.clone().ok_or(LinkDenied::Unknown)?;
        let mut on = self.read().await?;
        let source = sources::get(&mut on, &id).await.map_err(Denied::from)?.ok_or(LinkDenied::Unknown)?;
        drop(on);
        self.mark_used(&key, network).await;
        Ok(Identity {
            labels: labels_of(&source),
            source: source.id,
            name: source.name,
            team: source.team,
            key: key.id,
            ephemeral: source.ephemeral,
            since,
        })
    }

    /// A receiver of the reason when the connection has to close. The caller holds it exactly as long as the
    /// connection: this distinguishes a machine that enrolls again from one that is still connected.
    pub fn watch_agent(&self, identity: &Identity) -> watch::Receiver<Option<LinkDenied>> {
        let holder = KeyHolder { own: identity.key.clone(), of: identity.source.clone(), since: identity.since };
        // A connection that cannot be authorized retries, and is checked then.
        self.0.links.watch(&holder, LinkDenied::Unavailable)
    }

    /// Stores data that a machine reported about itself. Called when its connection begins and ends, and at most once a
    /// minute.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn store_report(&self, source: &str, heard: &Heard) -> Result<(), Denied> {
        let texts = [&heard.host, &heard.platform, &heard.version, &heard.facts];
        let mut kept = [None; 4];
        for ((kept, text), most) in kept.iter_mut().zip(texts).zip(MAX_REPORTED_BYTES) {
            *kept = text.as_deref().filter(|text| text.len() <= most);
        }
        let [host, platform, version, facts] = kept;
        let told = sources::ReportedFacts { host, platform, version, facts };
        let mut change = self.begin_note().await?;
        sources::record_reception(&mut change, source, self.now(), told).await?;
        Ok(change.commit().await?)
    }

    /// The corrections of a source's clock so far, by sequence.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn eras(&self, source: &str) -> Result<Vec<Era>, Denied> {
        let rows = eras::list(&mut *self.read().await?, source).await?;
        let mut eras: Vec<Era> = rows
            .into_iter()
            .map(|row| Era { first: row.first as u64, shift_ms: row.shift, skew_ms: row.skew, rtt_ms: row.rtt })
            .collect();
        eras.sort_unstable_by_key(|era| era.first);
        Ok(eras)
    }

    /// Stores a correction of a source's clock from a sequence on, so that a repeated tick gets the same timestamp.
    ///
    /// # Errors
    /// [`Denied::Unavailable`], also when the source was removed.
    pub async fn put_era(&self, source: &str, era: &Era) -> Result<(), Denied> {
        let row = eras::Era { first: era.first as i64, shift: era.shift_ms, skew: era.skew_ms, rtt: era.rtt_ms };
        let mut change = self.begin_note().await?;
        eras::put(&mut change, source, &row).await?;
        Ok(change.commit().await?)
    }

    /// Ids of removed sources: none of their data is stored.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn removed(&self) -> Result<Vec<String>, Denied> {
        Ok(eras::removed(&mut *self.read().await?).await?)
    }

    /// Id and name of each machine, and the labels from its join key or an admin.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn called(&self) -> Result<Vec<(String, String, BTreeMap<String, String>)>, Denied> {
        let all = sources::called(&mut *self.read().await?).await?;
        Ok(all.into_iter().map(|(id, name, labels)| (id, name, parsed(&labels))).collect())
    }

    /// Id and name of each machine that may send, or could, and its last contact or its enrollment, milliseconds since
    /// the Unix epoch. The last contact is written rarely. It is missing if the hub was killed soon after the
    /// enrollment.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn admitted(&self) -> Result<Vec<(String, String, i64)>, Denied> {
        let all = sources::list(&mut *self.read().await?, None).await?.into_iter();
        let admitted = all.filter(|source| source.state != "pending");
        let named = |source: sources::Source| (source.id, source.name, source.last_seen.unwrap_or(source.first_seen));
        Ok(admitted.map(named).collect())
    }

    /// Ids of ephemeral machines that were offline for an hour: they do not return.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn ended(&self) -> Result<Vec<String>, Denied> {
        Ok(sources::ended(&mut *self.read().await?, self.now() - super::HOUR).await?)
    }

    /// The deleted sequences of a source, first and last; they are not accepted again.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn erased(&self, source: &str) -> Result<Vec<(u64, u64)>, Denied> {
        let rows = eras::erased(&mut *self.read().await?, source).await?;
        Ok(rows.into_iter().map(|(first, last)| (first as u64, last as u64)).collect())
    }
}
