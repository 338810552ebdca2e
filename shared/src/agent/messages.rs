//! What an agent and its hub say to each other.

use super::limits::MAX_FILL_TICKS;
use crate::catalog::{Chart, Metric};
use crate::output::LinesAsked;
use crate::series::{SeriesDef, SeriesId};
use crate::wire::{Check, ColumnBytes};
use serde::{Deserialize, Serialize};

/// The codes with which a hub ends a link, in [`HubMessage::Goodbye`] and as the WebSocket's close code.
pub mod close {
    /// The hub stops or starts again.
    pub const GOING: u16 = 1_001;
    /// Bytes that are no message, or a frame that does not follow the last; the agent begins anew.
    pub const FRAME_ERROR: u16 = 4_000;
    /// The key was ended.
    pub const REVOKED: u16 = 4_003;
    /// The hub does not know the source.
    pub const UNKNOWN: u16 = 4_004;
    /// The source has another key since.
    pub const REPLACED: u16 = 4_005;
    /// More than the hub takes of one source; the reason says of what.
    pub const LIMIT: u16 = 4_008;
    /// Another process has a link with this key.
    pub const IN_USE: u16 = 4_009;
}

/// A range of ticks that an agent can answer a [`HubMessage::Want`] from; between two there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Sequence of the first tick.
    pub first: u64,
    /// Sequence of the last; [`u64::MAX`] in the range to which ticks are added.
    pub last: u64,
    /// Time of the first tick, milliseconds since the Unix epoch by the agent's clock.
    pub from: i64,
    /// Time of the last; [`i64::MAX`] likewise.
    pub to: i64,
}

/// First message of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// Random number of the process.
    pub instance: u64,
    /// Random number of its data folder; of the process where it keeps nothing on disk.
    pub folder: u64,
    /// Hash of the kernel's boot id; none where it is not known.
    pub boot: Option<[u8; 32]>,
    /// Hash of the machine id; none where it is not known.
    pub machine: Option<[u8; 32]>,
    /// Host name.
    pub host: String,
    /// Version of the agent.
    pub version: String,
    /// When the process began, milliseconds since the Unix epoch by its clock.
    pub started: i64,
    /// Time between its ticks, milliseconds.
    pub interval: i64,
    /// What does not change of the machine: operating system, CPU model, GPUs. Key and value, as text.
    pub facts: Vec<(String, String)>,
    /// Labels that the agent found or was given.
    pub labels: Vec<(String, String)>,
    /// The agent's wall clock, milliseconds since the Unix epoch.
    pub now: i64,
    /// First sequence of this life of the source: ticks from there on were stamped by a clock whose steps are known.
    pub life: u64,
    /// Sequence of the newest tick; 0 where there is none yet.
    pub seq: u64,
    /// Number of the newest record; 0 where there is none.
    pub record: u64,
    /// How long it keeps what it sampled, milliseconds.
    pub retention: i64,
    /// It keeps nothing on disk: what the hub lacks is gone with the process.
    pub memory: bool,
    /// What it has, rising; at most [`MAX_OFFERS`].
    pub offers: Vec<Offer>,
}

/// How an answer to [`HubMessage::Want`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FillState {
    /// All that there is of the range was sent.
    Whole,
    /// There is nothing of the range, or it could not be read.
    Gone,
}

/// Why an agent ends its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ByeReason {
    /// It was told to stop.
    Stopping,
    /// It comes back at once.
    Restarting,
    /// It comes back as another version.
    Upgrading,
}

/// What a hub asks for on behalf of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// A process table, answered by a [`crate::processes::ProcessTable`] in postcard.
    Processes {
        /// When, ms since the epoch: the largest users at that time. None: the newest table, whole.
        at: Option<i64>,
    },
    /// The report of `watchglass doctor`, answered by JSON.
    Doctor,
    /// What a run printed, answered by a [`crate::output::LinesPart`] as JSON. It is a message of its own, so that an agent of
    /// before skips it; see [`super::encode_hub`].
    #[serde(skip)]
    Lines(Box<LinesAsked>),
}

/// From an agent to its hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AgentMessage {
    /// First.
    Hello(Box<AgentHello>),
    /// Rows of the agent's table by position; ahead of the series that name them. One that is known is replaced.
    Rows {
        /// Position and row.
        rows: Vec<(u16, Metric)>,
        /// Their charts.
        charts: Vec<Chart>,
    },
    /// Series by the agent's id; ahead of the first frame or fill that speaks of them. One that is known as another is not
    /// that any more, and is absent. Ids that are not told stand for nothing.
    Series {
        /// Id, and what it is; the metric is a position in the agent's table.
        defs: Vec<(SeriesId, SeriesDef)>,
    },
    /// How the collectors stand, where that has changed.
    Checks(Vec<Check>),
    /// Host name, facts and labels, where they have changed since the hello.
    Facts {
        /// Host name.
        host: String,
        /// As in [`AgentHello::facts`].
        facts: Vec<(String, String)>,
        /// As in [`AgentHello::labels`].
        labels: Vec<(String, String)>,
    },
    /// Asks for the hub's time: eight times after the welcome, each as the answer came, then once a minute.
    Clock {
        /// Rises by one from 1 on.
        id: u32,
        /// The agent's clock now, ms since the epoch.
        sent: i64,
        /// The agent's clock when the answer to the question before arrived; none before the first, and where it did not.
        arrived: Option<i64>,
    },
    /// Answers [`HubMessage::Ask`].
    Answer {
        /// The question's.
        id: u32,
        /// What it said; empty where it cannot be told.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// Everything asked for by a [`HubMessage::Want`] has been sent.
    FillEnd {
        /// The want's.
        id: u32,
        /// How it ended.
        state: FillState,
    },
    /// The last message of a process that ends in order.
    Bye(ByeReason),
    /// Nothing new, still here.
    Heartbeat,
}

/// A block of ticks that the hub asked for, or a part of its columns: one that is too large for a message comes in several
/// with the same head, of which all but the last say that there is more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FillPart {
    /// The want's.
    pub id: u32,
    /// Sequence of the first tick.
    pub first: u64,
    /// Sequence of the last. A block has every sequence between them, so it has `last - first + 1` ticks.
    pub last: u64,
    /// The wall clock was set just before the first tick.
    pub clock_step: bool,
    /// More columns of this block follow in the next message.
    pub more: bool,
    /// [`crate::column::encode_times`], in the first part of a block; empty in the others.
    #[serde(with = "serde_bytes")]
    pub times: Vec<u8>,
    /// Series by the agent's id, rising, and [`crate::column::encode`]; those without a sample are left out.
    pub columns: Vec<(SeriesId, ColumnBytes)>,
}

impl FillPart {
    /// Ticks of the block; none where the ends are in the wrong order or too far apart.
    pub fn ticks(&self) -> Option<usize> {
        let ticks = self.last.checked_sub(self.first)?.checked_add(1)?;
        (ticks <= u64::from(MAX_FILL_TICKS)).then_some(ticks as usize)
    }
}

/// What an answer to a [`HubMessage::Want`] lacks since the agent's disk is damaged. It comes before the answer's
/// [`AgentMessage::FillEnd`], where there is any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillDamage {
    /// The want's.
    pub id: u32,
    /// Columns of a block, or whole blocks, that could not be read.
    pub places: u32,
}

/// First message of a hub, after the agent's hello.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Version of the hub.
    pub version: String,
    /// The source's name on the hub.
    pub name: String,
    /// The hub's wall clock, milliseconds since the Unix epoch.
    pub now: i64,
    /// Sequence of the newest tick that the hub has of the source; 0: none. New ticks go on above it.
    pub holds: u64,
    /// Number of the newest record that the hub has; those behind it are sent, in order.
    pub record: u64,
    /// The agent waits up to so many milliseconds after a tick closes before it sends it, so that not all send at once.
    pub spread: u32,
    /// Series of a source that the hub takes.
    pub max_series: u32,
    /// Rows of its own that a source may have.
    pub max_rows: u32,
}

/// From a hub to an agent. A hub can say these things and nothing else; none holds a path or a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HubMessage {
    /// First.
    Welcome(Welcome),
    /// Answers [`AgentMessage::Clock`].
    Clock {
        /// The question's.
        id: u32,
        /// As the question had it.
        sent: i64,
        /// The hub's clock when the question arrived, ms since the epoch.
        received: i64,
        /// The hub's clock when this was sent.
        answered: i64,
    },
    /// Asks for the ticks of a range, one range at a time.
    Want {
        /// Rises by one from 1 on.
        id: u32,
        /// Sequence of the first.
        first: u64,
        /// Sequence of the last.
        last: u64,
    },
    /// How far the hub is.
    Ack {
        /// Messages of ticks and of records taken in since the welcome, all together.
        messages: u32,
        /// Through this tick all that was sent is in the hub's log. It stands still while the hub's disk fails.
        seq: u64,
        /// Likewise the number of a record.
        record: u64,
    },
    /// Asks for what the agent shows its own page.
    Ask {
        /// Rises by one from 1 on.
        id: u32,
        /// For what.
        what: Question,
    },
    /// Nothing new, still here.
    Heartbeat,
    /// Why the link ends; nothing follows.
    Goodbye {
        /// One of [`close`].
        code: u16,
        /// One sentence.
        reason: String,
        /// How long the agent waits at least before it comes back, ms.
        wait: u32,
    },
}
