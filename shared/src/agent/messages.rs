//! Messages between an agent and its hub.

use super::limits::MAX_FILL_TICKS;
use crate::catalog::{Chart, Metric};
use crate::output::LinesAsked;
use crate::series::{SeriesDef, SeriesId};
use crate::wire::{Check, ColumnBytes};
use serde::{Deserialize, Serialize};

/// The codes with which a hub ends a link, in [`HubMessage::Goodbye`] and as the WebSocket's close code.
pub mod close {
    /// The hub stops or restarts.
    pub const GOING: u16 = 1_001;
    /// Invalid bytes, or a frame that does not follow the previous one; the agent starts over.
    pub const FRAME_ERROR: u16 = 4_000;
    /// The key was revoked.
    pub const REVOKED: u16 = 4_003;
    /// The hub does not know the source.
    pub const UNKNOWN: u16 = 4_004;
    /// The key of the source was replaced.
    pub const REPLACED: u16 = 4_005;
    /// The source exceeds a limit of the hub; the reason names the limit.
    pub const LIMIT: u16 = 4_008;
    /// Another process has a link with this key.
    pub const IN_USE: u16 = 4_009;
}

/// A range of ticks from which an agent can answer a [`HubMessage::Want`]. There are no ticks between two ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Sequence of the first tick.
    pub first: u64,
    /// Sequence of the last tick; [`u64::MAX`] in the range that still grows.
    pub last: u64,
    /// Time of the first tick, milliseconds since the Unix epoch by the agent's clock.
    pub from: i64,
    /// Time of the last tick; [`i64::MAX`] in the range that still grows.
    pub to: i64,
}

/// First message of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// Random number of the process.
    pub instance: u64,
    /// Random number of its data folder, or of the process if it keeps nothing on disk.
    pub folder: u64,
    /// Hash of the kernel's boot id; None if unknown.
    pub boot: Option<[u8; 32]>,
    /// Hash of the machine id; None if unknown.
    pub machine: Option<[u8; 32]>,
    /// Host name.
    pub host: String,
    /// Version of the agent.
    pub version: String,
    /// Start of the process, milliseconds since the Unix epoch by its clock.
    pub started: i64,
    /// Time between its ticks, milliseconds.
    pub interval: i64,
    /// Constant facts of the machine: operating system, CPU model, GPUs. Key and value, as text.
    pub facts: Vec<(String, String)>,
    /// Labels that were detected or configured.
    pub labels: Vec<(String, String)>,
    /// The agent's wall clock, milliseconds since the Unix epoch.
    pub now: i64,
    /// First sequence of this life of the source. Clock steps are known for all ticks from there on.
    pub life: u64,
    /// Sequence of the newest tick; 0 if there is none yet.
    pub seq: u64,
    /// Number of the newest record; 0 if there is none.
    pub record: u64,
    /// Retention of samples on the agent, milliseconds.
    pub retention: i64,
    /// It keeps nothing on disk: ticks that the hub lacks are lost when the process ends.
    pub memory: bool,
    /// Ranges of ticks that it has, ascending; at most [`MAX_OFFERS`].
    pub offers: Vec<Offer>,
}

/// Result of an answer to [`HubMessage::Want`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FillState {
    /// All ticks that exist in the range were sent.
    Whole,
    /// No tick of the range exists, or the range could not be read.
    Gone,
}

/// Reason why an agent ends its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ByeReason {
    /// It stops on request.
    Stopping,
    /// It restarts.
    Restarting,
    /// It restarts as another version.
    Upgrading,
}

/// Data that a hub requests on behalf of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// A process table, answered by a [`crate::processes::ProcessTable`] in postcard.
    Processes {
        /// Time in ms since the epoch: the largest users at that time. None: the whole newest table.
        at: Option<i64>,
    },
    /// The report of `watchglass doctor`, answered by JSON.
    Doctor,
    /// Output of a run, answered by a [`crate::output::LinesPart`] as JSON. It is a separate message, so that older
    /// agents skip it; see [`super::encode_hub`].
    #[serde(skip)]
    Lines(Box<LinesAsked>),
    /// The ranks for which the job that holds these GPUs waits, answered by a [`crate::nccl::NcclReport`] as JSON, or by
    /// nothing. It is a separate message, too.
    #[serde(skip)]
    Nccl {
        /// Numbers of the GPUs; empty: unknown.
        gpus: Vec<u32>,
    },
    /// A request for the stacks of the jobs that hold these GPUs, answered by the IDs of the runs that offer them, as JSON,
    /// or by nothing. The stacks become output of those runs. It is a separate message, too.
    #[serde(skip)]
    Stacks {
        /// Numbers of the GPUs; empty: all jobs.
        gpus: Vec<u32>,
    },
    /// A [`crate::submission::Submission`] as JSON, answered by a [`crate::submission::SubmissionResult`] as JSON. It is a
    /// separate message, as [`Question::Lines`] is.
    #[serde(skip)]
    Submission {
        /// Milliseconds by which the agent's clock is behind that of the submission.
        shift: i64,
        /// The submission.
        json: Vec<u8>,
    },
}

/// From an agent to its hub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AgentMessage {
    /// First.
    Hello(Box<AgentHello>),
    /// Rows of the agent's table by position, sent before the series that refer to them. A known position is replaced.
    Rows {
        /// Position and row.
        rows: Vec<(u16, Metric)>,
        /// Their charts.
        charts: Vec<Chart>,
    },
    /// Series by the agent's id, sent before the first frame or fill that contains them. A known id with a new
    /// definition loses the old one, and has no value at first. Ids without a definition have no meaning.
    Series {
        /// Id and definition; the metric is a position in the agent's table.
        defs: Vec<(SeriesId, SeriesDef)>,
    },
    /// Collector checks that have changed.
    Checks(Vec<Check>),
    /// Host name, facts and labels, if they have changed since the hello.
    Facts {
        /// Host name.
        host: String,
        /// As in [`AgentHello::facts`].
        facts: Vec<(String, String)>,
        /// As in [`AgentHello::labels`].
        labels: Vec<(String, String)>,
    },
    /// Requests the hub's time: eight times after the welcome, each when the previous answer has arrived, then once a
    /// minute.
    Clock {
        /// Rises by one from 1 on.
        id: u32,
        /// The agent's clock now, ms since the epoch.
        sent: i64,
        /// The agent's clock when the previous answer arrived; None before the first, and if no answer arrived.
        arrived: Option<i64>,
    },
    /// Answers [`HubMessage::Ask`].
    Answer {
        /// Id of the question.
        id: u32,
        /// Content of the answer; empty if the agent cannot answer.
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
    },
    /// All ticks requested by a [`HubMessage::Want`] have been sent.
    FillEnd {
        /// Id of the want.
        id: u32,
        /// Its result.
        state: FillState,
    },
    /// Last message of a process that shuts down cleanly.
    Bye(ByeReason),
    /// Nothing new, still here.
    Heartbeat,
}

/// A block of ticks that the hub requested, or a part of its columns. A block that is too large for one message is
/// split into several with the same head; all but the last set `more`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FillPart {
    /// Id of the want.
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
    /// Ticks of the block; None if its ends are in the wrong order or too far apart.
    pub fn ticks(&self) -> Option<usize> {
        let ticks = self.last.checked_sub(self.first)?.checked_add(1)?;
        (ticks <= u64::from(MAX_FILL_TICKS)).then_some(ticks as usize)
    }
}

/// Parts missing from an answer to a [`HubMessage::Want`], because the agent's disk is damaged. If there are any, it is
/// sent before the answer's [`AgentMessage::FillEnd`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillDamage {
    /// Id of the want.
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
    /// Sequence of the newest tick that the hub has of the source; 0: none. New ticks continue above it.
    pub holds: u64,
    /// Number of the newest record that the hub has; later records are sent, in order.
    pub record: u64,
    /// Maximum delay between the close of a tick and its sending, milliseconds, so that agents do not all send at once.
    pub spread: u32,
    /// Maximum number of series of a source.
    pub max_series: u32,
    /// Maximum number of rows of its own that a source may have.
    pub max_rows: u32,
}

/// From a hub to an agent. A hub can send only these messages; none holds a path or a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HubMessage {
    /// First.
    Welcome(Welcome),
    /// Answers [`AgentMessage::Clock`].
    Clock {
        /// Id of the question.
        id: u32,
        /// Copied from the question.
        sent: i64,
        /// The hub's clock when the question arrived, ms since the epoch.
        received: i64,
        /// The hub's clock when this was sent.
        answered: i64,
    },
    /// Requests the ticks of a range, one range at a time.
    Want {
        /// Rises by one from 1 on.
        id: u32,
        /// Sequence of the first.
        first: u64,
        /// Sequence of the last.
        last: u64,
    },
    /// Progress of the hub.
    Ack {
        /// Total number of messages of ticks and records received since the welcome.
        messages: u32,
        /// All ticks through this one are in the hub's log. It does not advance while the hub's disk fails.
        seq: u64,
        /// Likewise for the number of a record.
        record: u64,
    },
    /// Requests data that the agent shows on its own page.
    Ask {
        /// Rises by one from 1 on.
        id: u32,
        /// The requested data.
        what: Question,
    },
    /// Nothing new, still here.
    Heartbeat,
    /// Reason for the end of the link; nothing follows.
    Goodbye {
        /// One of [`close`].
        code: u16,
        /// One sentence.
        reason: String,
        /// Minimum delay before the agent reconnects, ms.
        wait: u32,
    },
}
