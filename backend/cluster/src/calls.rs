//! Requests from one hub to another by its ID, and announcements to all. Messages are postcard; an unknown kind has no
//! answer.

use super::Cluster;
use super::relay::Telling;
use fleet::ingest::{LinkProcess, NoAnswer};
use serde::{Deserialize, Serialize};
use shared::agent::Question;
use shared::wire::SourceId;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use stream::live::{Holder, RowColumns};

/// Subject of the announcements about links.
pub(super) const HELD_SUBJECT: &str = "held";
/// Maximum time for another hub's answer about a link that is to yield: it asks the agent for 5 s.
pub(super) const YIELD_TIMEOUT: Duration = Duration::from_secs(7);
/// Maximum time for an agent's answer through another hub: that takes 10 s at most.
pub(super) const ASK_TIMEOUT: Duration = Duration::from_secs(12);
/// Maximum time for another hub to start a relay.
const RELAY_TIMEOUT: Duration = Duration::from_secs(3);

/// Subject of the requests to a hub.
pub(super) fn subject_of(hub: &str) -> String {
    format!("hub.{hub}")
}

/// Announcement: from now on this hub holds the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Announced {
    pub source: String,
    pub hub: String,
    pub since: i64,
}

impl Announced {
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}

/// A request to a hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Call {
    /// A process of this source has connected to another hub.
    Yield { source: String, process: LinkProcess },
    /// Send all samples of a source over the pipe of this name.
    Relay { source: String, pipe: String },
    /// Forward a question to the agent of a source.
    Ask {
        source: String,
        #[serde(with = "question")]
        what: Question,
    },
    /// One row of the overview over time, of these sources.
    Columns { columns: RowColumns, sources: Vec<String> },
}

/// The answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum CallReply {
    /// The link has ended.
    Free,
    /// This process has the link, and answers.
    InUse(LinkProcess),
    /// The relay has started.
    Telling,
    /// This hub does not hold that source.
    NotHere,
    /// The limit of concurrent relays is reached.
    Busy,
    /// The agent's answer, and the correction to add to its timestamps, milliseconds.
    Said(Vec<u8>, i64),
    /// The agent gave no answer.
    Silent(NoAnswer),
    /// The values of each source; None for a source that the hub does not hold.
    Columns(Vec<Option<Vec<Option<f64>>>>),
}

/// Questions in the form that agents receive: some kinds are messages of their own, which postcard does not write inside
/// another message.
mod question {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use shared::agent::{HubMessage, Question, decode_hub, encode_hub};

    pub fn serialize<S: Serializer>(what: &Question, serializer: S) -> Result<S::Ok, S::Error> {
        encode_hub(&HubMessage::Ask { id: 0, what: what.clone() }).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Question, D::Error> {
        match decode_hub(&Vec::<u8>::deserialize(deserializer)?) {
            Ok(Some(HubMessage::Ask { what, .. })) => Ok(what),
            _ => Err(D::Error::custom("no question")),
        }
    }
}

pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).unwrap_or_default()
}

pub(super) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    postcard::take_from_bytes(bytes).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

impl Cluster {
    /// Requests a relay of a source from the hub that holds it.
    pub(super) async fn ask_to_tell(&self, hub: &str, source: &str, pipe: &str) -> Result<(), String> {
        let call = Call::Relay { source: source.into(), pipe: pipe.into() };
        match self.others.call(hub, &call, RELAY_TIMEOUT).await {
            Ok(CallReply::Telling) => Ok(()),
            Ok(CallReply::Busy) => Err("the hub that holds this machine's link is overloaded".into()),
            Ok(_) => Err("the hub no longer holds this machine's link".into()),
            Err(why) => Err(why.to_string()),
        }
    }

    /// The answer to a call of another hub.
    pub(super) async fn answer(self: &Arc<Self>, call: Call) -> CallReply {
        self.counts.calls.fetch_add(1, Relaxed);
        match call {
            Call::Yield { source, process } => match self.ingest.yields(&source, &process).await {
                Ok(()) => CallReply::Free,
                Err(process) => CallReply::InUse(process),
            },
            Call::Relay { source, pipe } => match self.held_here(&source) {
                Some(id) => match self.tell(id, &pipe).await {
                    Telling::Begun => CallReply::Telling,
                    Telling::Busy => CallReply::Busy,
                },
                None => CallReply::NotHere,
            },
            Call::Ask { source, what } => match self.held_here(&source) {
                // The hub's own machine and those of its endpoints have no agent.
                Some(id) if self.others.is_own(&source, Some(id)) => {
                    let (live, runs) = (self.others.live.clone(), self.runs.clone());
                    let read = tokio::task::spawn_blocking(move || uplink::answer(&live, id, &runs, what)).await;
                    CallReply::Said(read.unwrap_or_default(), 0)
                }
                Some(id) => match self.ingest.ask_agent(id, what).await {
                    Ok((bytes, shift)) => CallReply::Said(bytes, shift),
                    Err(why) => CallReply::Silent(why),
                },
                None => CallReply::NotHere,
            },
            Call::Columns { columns, sources } => self.read_columns(columns, sources).await,
        }
    }

    pub(super) fn held_here(&self, source: &str) -> Option<SourceId> {
        let id = self.others.live.store().named(source)?;
        (self.others.live.holder(id) == Holder::Here).then_some(id)
    }
}
