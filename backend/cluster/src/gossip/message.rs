//! What is said of machines: words of one message each, in their order.

use serde::{Deserialize, Serialize};
use shared::finding::Dismissed;
use shared::wire::IndexEntry;
use stream::live::LinkFigures;

/// A machine's line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct MachineLine {
    /// Its number is the hub's own, as in the overview behind it.
    pub entry: IndexEntry,
    pub figures: LinkFigures,
    /// Number of its newest record.
    pub record: u64,
}

/// Asks the hub that holds a machine, by its key, for its records behind a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WantedRecords {
    pub key: String,
    pub behind: u64,
}

/// One message. New ones stand at the end: a hub of another version knows those before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum GossipMessage {
    /// A beat begins; of a whole one all is told anew until its end. Milliseconds to the next one.
    Begin { whole: bool, interval: u64 },
    /// Lines of machines that are new, or others than they were.
    Lines(Vec<MachineLine>),
    /// Another hub has these machines, by number.
    Left(Vec<u16>),
    /// A message of the overview, as a page gets it.
    Overview(Vec<u8>),
    /// Findings that were changed; JSON.
    Findings(Vec<String>),
    /// The ids of all that are open.
    Open(Vec<String>),
    /// The beat ends.
    End,
    /// What people said of findings of other hubs, by id, until those tell it; none: that it was taken back.
    Dismissed(Vec<(String, Option<Dismissed>)>),
}

impl GossipMessage {
    pub fn bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("texts, lists and numbers only")
    }

    /// None: a later version said it, or nobody did.
    pub fn read(bytes: &[u8]) -> Option<GossipMessage> {
        postcard::from_bytes(bytes).ok()
    }
}
