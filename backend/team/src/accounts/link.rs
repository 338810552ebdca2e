//! What the hub's end of an agent's link asks: whose key it is, and what is kept of its source.

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

/// The longest that is kept of what a machine tells, bytes: host, platform, version, facts.
const TOLD: [usize; 4] = [255, 256, 64, 65_536];

/// Which machine an agent's key speaks for.
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
    /// It is gone for good when it has been away for an hour.
    pub ephemeral: bool,
    since: u64,
}

/// Why a link may not be, or not any longer. Its text is one sentence for the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkDenied {
    /// This is no key; told before the upgrade, as 401.
    NoKey,
    /// An admin has ended the machine's key.
    Revoked,
    /// The machine's source was removed.
    Unknown,
    /// The machine has joined anew, and has another key.
    Replaced,
    /// Too many keys that are none came from this network.
    Throttled {
        /// When to try again.
        retry_after: Duration,
    },
    /// The database cannot be used.
    Unavailable,
}

impl LinkDenied {
    /// The code by which the link closes; none where there is no upgrade.
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

/// What a machine tells of itself; what is absent stays as it was, and what is too long is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Its host name.
    pub host: Option<String>,
    /// Operating system and processor.
    pub platform: Option<String>,
    /// Version of its agent.
    pub version: Option<String>,
    /// What else it tells; JSON.
    pub facts: Option<String>,
}

/// From a sequence on, the stamps of a source are corrected by so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// The first sequence.
    pub first: u64,
    /// What is added to stamps, milliseconds.
    pub shift_ms: i64,
    /// How far its clock was ahead, milliseconds.
    pub skew_ms: i64,
    /// Round trip of that measurement, milliseconds.
    pub rtt_ms: i64,
}

/// Why a link may not be, by the row of its key; none while it may.
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
    /// The machine that an agent's key speaks for.
    ///
    /// # Errors
    /// [`LinkDenied`]; a key that was ended is told which of three things happened to it.
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

    /// What gets the reason when the link has to close. It is held for as long as the link lives, and no longer: by that a
    /// machine that joins anew is told from one that still runs.
    pub fn watch_agent(&self, identity: &Identity) -> watch::Receiver<Option<LinkDenied>> {
        let holder = KeyHolder { own: identity.key.clone(), of: identity.source.clone(), since: identity.since };
        // One that cannot be judged tries again, and is judged then.
        self.0.links.watch(&holder, LinkDenied::Unavailable)
    }

    /// A machine was heard, and told this of itself. Call it when its link begins and ends, and at most once a minute.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn heard(&self, source: &str, heard: &Heard) -> Result<(), Denied> {
        let texts = [&heard.host, &heard.platform, &heard.version, &heard.facts];
        let mut kept = [None; 4];
        for ((kept, text), most) in kept.iter_mut().zip(texts).zip(TOLD) {
            *kept = text.as_deref().filter(|text| text.len() <= most);
        }
        let [host, platform, version, facts] = kept;
        let told = sources::Told { host, platform, version, facts };
        let mut change = self.begin_note().await?;
        sources::heard(&mut change, source, self.now(), told).await?;
        Ok(change.commit().await?)
    }

    /// How a source's clock was corrected so far, by sequence.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn eras(&self, source: &str) -> Result<Vec<Era>, Denied> {
        let rows = eras::of(&mut *self.read().await?, source).await?;
        let mut eras: Vec<Era> = rows
            .into_iter()
            .map(|row| Era { first: row.first as u64, shift_ms: row.shift, skew_ms: row.skew, rtt_ms: row.rtt })
            .collect();
        eras.sort_unstable_by_key(|era| era.first);
        Ok(eras)
    }

    /// Writes down how a source's clock is corrected from a sequence on, so that a tick that comes twice gets one stamp.
    ///
    /// # Errors
    /// [`Denied::Unavailable`], also when the source was removed.
    pub async fn put_era(&self, source: &str, era: &Era) -> Result<(), Denied> {
        let row = eras::Era { first: era.first as i64, shift: era.shift_ms, skew: era.skew_ms, rtt: era.rtt_ms };
        let mut change = self.begin_note().await?;
        eras::put(&mut change, source, &row).await?;
        Ok(change.commit().await?)
    }

    /// Ids of the sources that were removed: nothing of them is kept.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn removed(&self) -> Result<Vec<String>, Denied> {
        Ok(eras::removed(&mut *self.read().await?).await?)
    }

    /// Id and name of each machine, and the labels that its join key or an admin gave it.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn called(&self) -> Result<Vec<(String, String, BTreeMap<String, String>)>, Denied> {
        let all = sources::called(&mut *self.read().await?).await?;
        Ok(all.into_iter().map(|(id, name, labels)| (id, name, parsed(&labels))).collect())
    }

    /// Id and name of each that may send, or could, and when it was heard of last, or joined: milliseconds since the Unix
    /// epoch. The former is written seldom, and not at all by a hub that was killed soon after the machine had joined.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn admitted(&self) -> Result<Vec<(String, String, i64)>, Denied> {
        let all = sources::of(&mut *self.read().await?, None).await?.into_iter();
        let admitted = all.filter(|source| source.state != "pending");
        let named = |source: sources::Source| (source.id, source.name, source.last_seen.unwrap_or(source.first_seen));
        Ok(admitted.map(named).collect())
    }

    /// Ids of the machines that joined for a while only and were away for an hour: they come back no more.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn ended(&self) -> Result<Vec<String>, Denied> {
        Ok(sources::ended(&mut *self.read().await?, self.now() - super::HOUR).await?)
    }

    /// The sequences of a source that were removed, first and last; they do not come back.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn erased(&self, source: &str) -> Result<Vec<(u64, u64)>, Denied> {
        let rows = eras::erased(&mut *self.read().await?, source).await?;
        Ok(rows.into_iter().map(|(first, last)| (first as u64, last as u64)).collect())
    }
}
