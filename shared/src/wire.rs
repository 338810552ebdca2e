//! The messages between server and page, and their bytes.
//!
//! Every WebSocket message is binary. Its first byte is the kind of the message: [`CONTROL`] a postcard-encoded
//! [`ServerMessage`] (or [`PageMessage`] the other way), [`TICKS`] the source as `u16` and then frames of
//! [`crate::tick`], each after its length as a varint, [`OVERVIEW`] likewise with a [`Grain`] as `u8` in place of the
//! source. Frames are encoded once and shared by all readers.
//!
//! Order after a page's [`PageMessage::Open`]: hello, catalog, the index of sources, and for each source that is opened
//! series, facts, checks, a keyframe of some ticks ago and the frames since then. After them come, as columns with a
//! history end for each source, the sealed blocks of the window and all unsealed data. So current values do not wait
//! for history over a slow link. Later answers have only sealed blocks. From there on, frames are sent as they are
//! made. A page that resumes gets hello and the missed frames, or [`ServerMessage::Resync`] and everything again.

use crate::catalog::fleet::Grain;
use crate::catalog::{Catalog, Chart, Metric};
use crate::connection_state::ConnectionState;
use crate::processes::{ProcessPast, ProcessTable};
use crate::record::Record;
use crate::run::RunLine;
use crate::series::SeriesDef;
use crate::varint::{put, take, take_array, take_slice};
use serde::{Deserialize, Serialize};

/// Increased with every change that an older page could not read; the page then shows a request to reload.
pub const PROTOCOL: u16 = 8;

/// First byte of a control message.
pub const CONTROL: u8 = 0;
/// First byte of a message of tick frames.
pub const TICKS: u8 = 1;
/// First byte of a message of an overview's frames.
pub const OVERVIEW: u8 = 2;

/// Maximum number of sources that a page may open at once.
pub const MAX_OPENED: usize = 8;

/// Maximum bytes in one message; longer histories are split.
pub const MAX_MESSAGE: usize = 512 * 1024;

/// The reason of [`ServerMessage::Goodbye`] when the server was requested to stop; the page then shows that it was
/// stopped.
pub const SERVER_ENDS: &str = "the server is shutting down";

/// Messages of ticks, overviews included, that a page may leave unacknowledged for each source and overview that it
/// follows; beyond it, the server stops sending and later resumes from the page's position.
pub const CREDIT: u32 = 8;

/// The server sends at least one message, and a page one acknowledgement or heartbeat, in this many milliseconds.
pub const HEARTBEAT_MS: u64 = 5_000;

/// The number of a source on this server.
pub type SourceId = u16;

/// Maximum number of sources of a stream and of a recording.
pub const MAX_SOURCES: usize = 10_000;

/// First message of every connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the server.
    pub protocol: u16,
    /// Version of the server.
    pub version: String,
    /// Random number of this run of the server; sequences of another run are not comparable.
    pub boot: u64,
    /// The server's wall clock, milliseconds since the Unix epoch.
    pub now: i64,
    /// Retention of history, milliseconds.
    pub retention: i64,
    /// The values are simulated; the page shows that.
    pub simulated: bool,
    /// Nothing here is live: all data was recorded in this span, and the page has its own clock.
    pub recorded: Option<Recorded>,
    /// The server has accounts: the page may request the session.
    pub accounts: bool,
}

/// A recording that is replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Its first tick, milliseconds since the Unix epoch.
    pub from: i64,
    /// Its last.
    pub to: i64,
    /// Its title; may be empty.
    pub title: String,
    /// Damaged or omitted parts, in sentences.
    pub notes: Vec<String>,
}

/// A machine that reports, in the server and in a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its number.
    pub id: SourceId,
    /// Its name in files, which never changes. The host name, or on a hub 26 letters.
    pub key: String,
    /// Its name for people: the fact [`NAME_FACT`], else the key.
    pub name: String,
    /// Time between its ticks, milliseconds.
    pub interval: i64,
    /// Constant facts: operating system, CPU model, cores, memory, GPUs, driver. Key and value, as text.
    pub facts: Vec<(String, String)>,
}

/// The fact with the display name of a source, if that is not its key.
pub const NAME_FACT: &str = "name";

impl Source {
    /// A source with the name from its facts.
    pub fn new(id: SourceId, key: String, interval: i64, facts: Vec<(String, String)>) -> Self {
        let mut source = Source { id, name: key.clone(), key, interval, facts: Vec::new() };
        source.set_facts(facts);
        source
    }

    /// Replaces its facts, and with them its name.
    pub fn set_facts(&mut self, facts: Vec<(String, String)>) {
        let name = facts.iter().find(|(word, _)| word == NAME_FACT).map(|(_, name)| name);
        self.name.clone_from(name.unwrap_or(&self.key));
        self.facts = facts;
    }

    /// Its line of the index.
    pub fn entry(&self, state: ConnectionState, since: i64, labels: Vec<(String, String)>) -> IndexEntry {
        let (key, name) = (self.key.clone(), self.name.clone());
        IndexEntry { id: self.id, key, name, interval: self.interval, state, since, labels }
    }

    /// Whether a text names this source: its name or its key.
    pub fn is_called(&self, text: &str) -> bool {
        self.name == text || self.key == text
    }
}

/// A line of the index of sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// Its number.
    pub id: SourceId,
    /// [`Source::key`].
    pub key: String,
    /// [`Source::name`].
    pub name: String,
    /// Time between its ticks, milliseconds.
    pub interval: i64,
    /// Its connection state.
    pub state: ConnectionState,
    /// Since when, milliseconds since the Unix epoch; for a late source the time of its last tick.
    pub since: i64,
    /// Keys and values for grouping and filtering, rising by key.
    pub labels: Vec<(String, String)>,
}

/// A cell of an overview.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The source; None for a cell that is free until another source takes it.
    pub source: Option<SourceId>,
    /// The GPU of the source; empty if the cell is a whole source.
    pub instance: String,
}

/// Result of a collector's check, for the page's "not available here" and for doctor.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name of the check: the collector's.
    pub id: String,
    /// Its state.
    pub state: CheckState,
    /// Paths, libraries and addresses that were tried.
    pub tried: Vec<String>,
    /// The result, in words.
    pub found: String,
    /// Reason why it is missing, one sentence; empty if it is available.
    pub reason: String,
    /// Remedy, as a command or a setting if there is one.
    pub remedy: String,
}

/// States of a collector.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// Not here; `reason` has the cause. Normal for most accelerators.
    Absent,
    /// Opened, no result yet.
    Starting,
    /// Works.
    Ok,
    /// Works, but some readings fail.
    Partial,
    /// Present, but this user may not read it.
    Denied,
    /// Present and failing.
    Failed,
    /// Has not answered within its deadline.
    Hung,
}

/// Sealed columns of one stretch of ticks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Columns {
    /// Number of the source.
    pub source: SourceId,
    /// Sequence of the first tick.
    pub first_seq: u64,
    /// Sequence of the last; sequences rise by one from tick to tick unless some between them were lost or never
    /// assigned.
    pub last_seq: u64,
    /// Number of ticks.
    pub ticks: u32,
    /// [`crate::column::encode_times`].
    #[serde(with = "serde_bytes")]
    pub times: Vec<u8>,
    /// Series and [`crate::column::encode`]; series without a sample in the stretch are left out. A stretch that is too
    /// large for one message is split into several with the same `first_seq`.
    pub columns: Vec<(u32, ColumnBytes)>,
}

/// The bytes of one column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnBytes(#[serde(with = "serde_bytes")] pub Vec<u8>);

/// A stretch of history as minutes: for windows of days, in which single samples are not visible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Minutes {
    /// Number of the source.
    pub source: SourceId,
    /// Sequence of the first tick in the minutes.
    pub first_seq: u64,
    /// Sequence of the last.
    pub last_seq: u64,
    /// Time of the first tick, ms.
    pub from: i64,
    /// Time of the last.
    pub to: i64,
    /// Series and [`crate::segment::tier`]; for a counter, the minutes of its rate per second. A stretch that is too
    /// large for one message is split into several with the same sequences.
    pub columns: Vec<(u32, ColumnBytes)>,
}

/// From the server to a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// First.
    Hello(Hello),
    /// The table and the layout.
    Catalog(Catalog),
    /// All sources that the page may see; a missing one is gone. A very long list is cut here, and the rest is sent as
    /// [`ServerMessage::Changed`].
    Sources(Vec<IndexEntry>),
    /// Series of a source from id `first` on, always sent before the first frame that contains them. A known id with a
    /// new definition is another series: all values under its id must be dropped.
    Series {
        /// Number of the source.
        source: SourceId,
        /// Id of the first.
        first: u32,
        /// In order of id.
        defs: Vec<SeriesDef>,
    },
    /// States of the collectors of a source; sent again after a change.
    Checks {
        /// Number of the source.
        source: SourceId,
        /// One a collector.
        checks: Vec<Check>,
    },
    /// A stretch of history.
    Columns(Columns),
    /// Sealed history of this span is complete. History is sent newest first, so that a page can draw each stretch as
    /// soon as it is there.
    HistoryEnd {
        /// Number of the source.
        source: SourceId,
        /// Start of the span, ms.
        from: i64,
        /// Its end, ms; [`i64::MAX`] if everything that follows has been or will be sent.
        to: i64,
        /// Whether earlier history follows. If not, everything requested by a [`PageMessage::History`], or by the
        /// opening, has been sent.
        more: bool,
    },
    /// The page's position is not in memory any more: it drops its series and frames, and everything is sent again.
    Resync,
    /// Nothing new, still here.
    Heartbeat {
        /// The server's wall clock, ms.
        now: i64,
    },
    /// Reason why the server closes the connection, in words for the person at the page.
    Goodbye {
        /// One sentence.
        reason: String,
    },
    /// Answers [`PageMessage::Processes`]; `t` is 0 when there is no table.
    Processes(ProcessTable),
    /// Rows that were added to the table at run time, from position `first` on; always sent before the series that use
    /// them. A row may replace another that no series uses any more. Rows of the collectors are sent a second time,
    /// with the help that the greeting leaves out.
    Rows {
        /// Position of the first.
        first: u32,
        /// In order of position.
        metrics: Vec<Metric>,
        /// Their charts, including known ones.
        charts: Vec<Chart>,
    },
    /// A stretch of history as minutes.
    Minutes(Minutes),
    /// Everything requested by a [`PageMessage::Minutes`] has been sent.
    MinutesEnd {
        /// Number of the source.
        source: SourceId,
        /// Start of the requested span, ms.
        from: i64,
        /// Its end, ms.
        to: i64,
    },
    /// Records of a source, rising by number, in order with its ticks.
    Records {
        /// Number of the source.
        source: SourceId,
        /// Records that the page has not received yet.
        records: Vec<Record>,
    },
    /// New or changed lines of the index.
    Changed(Vec<IndexEntry>),
    /// Constant facts of a source that the page has opened; sent again after a change.
    Facts {
        /// Number of the source.
        source: SourceId,
        /// Key and value, as text.
        facts: Vec<(String, String)>,
    },
    /// Older samples of a source arrived after the page received this span: the page requests it again.
    Refilled {
        /// Number of the source.
        source: SourceId,
        /// Start of the span, ms.
        from: i64,
        /// Its end, ms.
        to: i64,
    },
    /// Cells of an overview from number `first` on, always sent before the first frame that contains them. With `first`
    /// 0, all known cells must be dropped, and a keyframe follows. The series of row `r` in cell `c` is `c * rows + r`,
    /// where the rows are [`crate::catalog::fleet::rows`] of the grain.
    Cells {
        /// The overview.
        grain: Grain,
        /// Number of the first.
        first: u32,
        /// In order of number.
        cells: Vec<Cell>,
        /// Number of cells over the maximum of an overview.
        left_out: u32,
        /// Time between frames, ms.
        interval: i64,
    },
    /// Answers [`PageMessage::Past`].
    Past(ProcessPast),
    /// Answers [`PageMessage::Runs`], newest first.
    Runs(Vec<RunLine>),
}

/// Position at which a page stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// [`Hello::boot`] of the run that it followed.
    pub boot: u64,
    /// Number of rows of the table that it knows.
    pub rows: u32,
    /// For each source, the last sequence that it has and the number of series that it knows.
    pub places: Vec<(SourceId, u64, u32)>,
}

/// From a page to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageMessage {
    /// First message of a page.
    Open {
        /// [`PROTOCOL`] of the page.
        protocol: u16,
        /// Length of history requested at once, ms back from now.
        window: i64,
        /// The last position, after a break.
        resume: Option<Resume>,
        /// Names or keys of the shown machines, at most [`MAX_OPENED`]: only their streams are sent. A text without a
        /// matching machine, such as an empty one, selects the first machine. Without any text no machine is followed.
        sources: Vec<String>,
    },
    /// Requests sealed history of a span; answered by columns and a history end.
    History {
        /// Number of the source.
        source: SourceId,
        /// Start, ms.
        from: i64,
        /// End, ms.
        to: i64,
    },
    /// Total tick messages received since the opening. Sent at least every [`HEARTBEAT_MS`].
    Ack {
        /// Number of messages.
        messages: u32,
    },
    /// Requests the process table.
    Processes {
        /// Time in ms since the epoch: the largest users at that time. None: the whole newest table.
        at: Option<i64>,
    },
    /// Requests the minutes of a span; answered by [`ServerMessage::Minutes`] and an end.
    Minutes {
        /// Number of the source.
        source: SourceId,
        /// Start, ms.
        from: i64,
        /// End, ms.
        to: i64,
    },
    /// Starts or stops an overview: [`ServerMessage::Cells`], a keyframe, and frames as they come.
    Overview {
        /// The overview.
        grain: Grain,
        /// Whether it is requested from now on.
        on: bool,
    },
    /// Requests a process over time; answered by [`ServerMessage::Past`].
    Past {
        /// Its PID.
        pid: u32,
        /// Its name: PIDs are reused.
        name: String,
        /// Start, ms.
        from: i64,
        /// End, ms.
        to: i64,
    },
    /// Requests the runs of the first followed source: current ones, and those that ended a moment ago.
    Runs,
}

/// Error of invalid bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMessage;

impl std::fmt::Display for BadMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a message of this protocol")
    }
}
impl std::error::Error for BadMessage {}

/// The bytes of a control message.
pub fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    postcard::to_extend(message, vec![CONTROL]).expect("messages hold nothing that postcard refuses")
}

/// Records of a source as messages, none of which is much longer than [`MAX_MESSAGE`]; no message without records.
pub fn record_messages(source: SourceId, records: Vec<Record>) -> Vec<ServerMessage> {
    let mut messages: Vec<ServerMessage> = Vec::new();
    let mut size = 0;
    for record in records {
        size += record.size();
        match messages.last_mut() {
            Some(ServerMessage::Records { records, .. }) if size <= MAX_MESSAGE => records.push(record),
            _ => {
                size = record.size();
                messages.push(ServerMessage::Records { source, records: vec![record] });
            }
        }
    }
    messages
}

/// The bytes of a message of tick frames.
pub fn encode_ticks<'a>(source: SourceId, frames: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let [low, high] = source.to_le_bytes();
    with_frames(vec![TICKS, low, high], frames)
}

/// The bytes of a message of an overview's frames.
pub fn encode_overview<'a>(grain: Grain, frames: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    with_frames(vec![OVERVIEW, grain as u8], frames)
}

fn with_frames<'a>(mut out: Vec<u8>, frames: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    for frame in frames {
        put(&mut out, frame.len() as u64);
        out.extend(frame);
    }
    out
}

fn take_frames<'a>(rest: &mut &'a [u8]) -> Result<Vec<&'a [u8]>, BadMessage> {
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let len = take(rest).ok_or(BadMessage)?;
        let len = usize::try_from(len).map_err(|_| BadMessage)?;
        frames.push(take_slice(rest, len).ok_or(BadMessage)?);
    }
    Ok(frames)
}

/// A message as a page reads it.
#[derive(Clone, Debug, PartialEq)]
pub enum Received<'a> {
    /// A control message.
    Control(ServerMessage),
    /// Tick frames of a source, oldest first.
    Ticks(SourceId, Vec<&'a [u8]>),
    /// Frames of an overview, oldest first.
    Overview(Grain, Vec<&'a [u8]>),
}

/// Reads a message of the server.
///
/// # Errors
/// [`BadMessage`] when the bytes are invalid.
pub fn decode_server(bytes: &[u8]) -> Result<Received<'_>, BadMessage> {
    match bytes.split_first().ok_or(BadMessage)? {
        (&CONTROL, rest) => postcard::from_bytes(rest).map(Received::Control).map_err(|_| BadMessage),
        (&TICKS, mut rest) => {
            let rest = &mut rest;
            let source = u16::from_le_bytes(take_array(rest).ok_or(BadMessage)?);
            Ok(Received::Ticks(source, take_frames(rest)?))
        }
        (&OVERVIEW, mut rest) => {
            let rest = &mut rest;
            let [grain] = take_array(rest).ok_or(BadMessage)?;
            let grain = Grain::ALL.into_iter().find(|known| *known as u8 == grain).ok_or(BadMessage)?;
            Ok(Received::Overview(grain, take_frames(rest)?))
        }
        _ => Err(BadMessage),
    }
}

/// Reads a message of a page.
///
/// # Errors
/// [`BadMessage`] when the bytes are invalid.
pub fn decode_page(bytes: &[u8]) -> Result<PageMessage, BadMessage> {
    match bytes.split_first() {
        Some((&CONTROL, rest)) => postcard::from_bytes(rest).map_err(|_| BadMessage),
        _ => Err(BadMessage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_messages_come_back() {
        let message = ServerMessage::Columns(Columns {
            source: 0,
            first_seq: 7,
            last_seq: 8,
            ticks: 2,
            times: vec![1, 2],
            columns: vec![(3, ColumnBytes(vec![4, 5, 6]))],
        });
        let bytes = encode(&message);
        assert_eq!(decode_server(&bytes), Ok(Received::Control(message)));
        let open =
            PageMessage::Open { protocol: PROTOCOL, window: 300_000, resume: None, sources: vec![String::new()] };
        assert_eq!(decode_page(&encode(&open)), Ok(open));
    }

    #[test]
    fn several_ticks_travel_in_one_message() {
        let bytes = encode_ticks(2, [&b"one"[..], &b""[..], &b"three"[..]]);
        assert_eq!(decode_server(&bytes), Ok(Received::Ticks(2, vec![b"one", b"", b"three"])));
        for grain in Grain::ALL {
            let bytes = encode_overview(grain, [&b"one"[..], &b"two"[..]]);
            assert_eq!(decode_server(&bytes), Ok(Received::Overview(grain, vec![b"one", b"two"])));
        }
        assert_eq!(decode_server(&[OVERVIEW, 9]), Err(BadMessage));
    }

    #[test]
    fn a_source_is_called_by_the_fact_of_its_name_or_else_by_its_key() {
        let named = |facts: &[(&str, &str)]| {
            let facts = facts.iter().map(|(word, text)| ((*word).to_string(), (*text).to_string())).collect();
            Source::new(3, "aaaabbbb".into(), 1_000, facts)
        };
        assert_eq!(named(&[("os", "Linux")]).name, "aaaabbbb");
        let source = named(&[("os", "Linux"), (NAME_FACT, "node-7")]);
        assert_eq!((source.name.as_str(), source.key.as_str()), ("node-7", "aaaabbbb"));
        assert!(source.is_called("node-7") && source.is_called("aaaabbbb") && !source.is_called("node-8"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_server(&bytes);
            let _ = decode_page(&bytes);
        }
    }
}
