//! Messages about machines, in the order in which they are sent.

use serde::{Deserialize, Serialize};
use shared::finding::Dismissed;
use shared::wire::IndexEntry;
use stream::live::LinkFigures;

/// A machine's index entry and figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct MachineLine {
    /// Its number is that of the sending hub, as in the overview that follows.
    pub entry: IndexEntry,
    pub figures: LinkFigures,
    /// Number of the machine's newest record.
    pub record: u64,
}

/// Request to the holder of a machine (by key) for its records after a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WantedRecords {
    pub key: String,
    pub behind: u64,
}

/// One message. New variants are appended: a hub of another version knows those before them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum GossipMessage {
    /// A beat begins. A whole one repeats everything until its end. `interval` is the time to the next beat,
    /// milliseconds.
    Begin { whole: bool, interval: u64 },
    /// Entries of machines that are new or have changed.
    Lines(Vec<MachineLine>),
    /// Machines, by number, that another hub holds now.
    Left(Vec<u16>),
    /// An overview message, as a page gets it.
    Overview(Vec<u8>),
    /// Findings that have changed; JSON.
    Findings(Vec<String>),
    /// The IDs of all open findings.
    Open(Vec<String>),
    /// The beat ends.
    End,
    /// Users' decisions on findings of other hubs, by ID, until those hubs report them; None: taken back.
    Dismissed(Vec<(String, Option<Dismissed>)>),
}

impl GossipMessage {
    pub fn bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("texts, lists and numbers only")
    }

    /// None: the sender has a later version, or the bytes are no message.
    pub fn read(bytes: &[u8]) -> Option<GossipMessage> {
        postcard::from_bytes(bytes).ok()
    }
}
