//! The messages between an agent and its hub, and their bytes.
//!
//! The link is a WebSocket that the agent opens at [`LINK_PATH`], of the protocol [`PROTOCOL_NAME`]. Every message is
//! binary. Its first byte tells what follows: [`CONTROL`] a postcard-encoded [`AgentMessage`] (or [`HubMessage`] the other
//! way), [`TICKS`] frames of [`crate::tick`], each behind its length as a varint, [`FILL`] a [`FillPart`], [`RECORDS`]
//! records. One that is not known is skipped: additions within a version are new first bytes, and what is there never
//! changes.
//!
//! Order: hello, welcome; then rows, series that name them, a keyframe of the tick *before* the newest, the newest tick,
//! and from there on ticks as they come. What the hub lacks it asks for by [`HubMessage::Want`], one range at a time; the
//! answer comes between the ticks and never holds one up.
//!
//! Whoever decodes has bytes of a stranger: nothing here takes memory by a length that the bytes claim and do not have.

use crate::catalog::{Chart, Metric};
use crate::record::Record;
use crate::series::{SeriesDef, SeriesId};
use crate::varint::{put, take, take_slice};
use crate::wire::{BadMessage, Check, ColumnBytes};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The protocol, as `Sec-WebSocket-Protocol` names it.
pub const PROTOCOL_NAME: &str = "watchglass.agent.1";

/// Where the link is, below the hub's address; with an agent key.
pub const LINK_PATH: &str = "/api/v1/ingest";

/// Where an agent becomes a source, with a join token.
pub const ENROL_PATH: &str = "/api/v1/ingest/enrol";

/// First byte of a control message.
pub const CONTROL: u8 = 0;
/// First byte of a message of tick frames.
pub const TICKS: u8 = 1;
/// First byte of a part of an answer to [`HubMessage::Want`].
pub const FILL: u8 = 2;
/// First byte of a message of records.
pub const RECORDS: u8 = 3;

/// The most bytes in one message of either end. Rows, series and fills that are longer come in several.
pub const MAX_MESSAGE: usize = 512 << 10;

/// Messages of ticks and records that an agent may have sent without an [`HubMessage::Ack`]; then it holds its place, and
/// later sends several ticks in one.
pub const CREDIT: u32 = 8;

/// Each end sends something at least this often, milliseconds.
pub const HEARTBEAT_MS: u64 = 5_000;

/// A link on which nothing came for this long is over, milliseconds.
pub const SILENCE_MS: u64 = 15_000;

/// The most ranges in [`AgentHello::offers`]; of more, the oldest are offered joined.
pub const MAX_OFFERS: usize = 1_024;

/// The most ticks in one block of a fill: an hour at ten a second is 36,000.
pub const MAX_FILL_TICKS: u32 = 1 << 16;

/// Series ids of an agent are below this.
pub const MAX_SERIES_IDS: u32 = 1 << 17;

/// The most labels of a source.
pub const MAX_LABELS: usize = 32;
/// The longest key of a label, in bytes, of `[a-z0-9._/-]`.
pub const MAX_LABEL_KEY_BYTES: usize = 63;
/// The longest value of a label, in bytes.
pub const MAX_LABEL_VALUE_BYTES: usize = 256;
/// The most facts of a source.
pub const MAX_FACTS: usize = 64;
/// The longest key or value of a fact, in bytes.
pub const MAX_FACT_BYTES: usize = 256;
/// The longest name of a machine, in bytes, of letters, digits and `.-_`.
pub const MAX_NAME_BYTES: usize = 63;
/// The longest instance of a series, in bytes.
pub const MAX_INSTANCE_BYTES: usize = 1 << 10;
/// The longest title or help of a row or chart, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 10;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// A process table, answered by a [`crate::processes::ProcessTable`] in postcard.
    Processes {
        /// When, ms since the epoch: the largest users at that time. None: the newest table, whole.
        at: Option<i64>,
    },
    /// The report of `watchglass doctor`, answered by JSON.
    Doctor,
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

/// The bytes of a control message of either end.
pub fn encode<M: Serialize>(message: &M) -> Vec<u8> {
    behind(CONTROL, message)
}

/// The bytes of a message of tick frames, oldest first.
pub fn encode_ticks<'a>(frames: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = vec![TICKS];
    for frame in frames {
        put(&mut out, frame.len() as u64);
        out.extend(frame);
    }
    out
}

/// The bytes of a part of a fill.
pub fn encode_fill(part: &FillPart) -> Vec<u8> {
    behind(FILL, part)
}

/// The bytes of a message of records, rising by number.
pub fn encode_records(records: &[Record]) -> Vec<u8> {
    behind(RECORDS, &records)
}

fn behind<M: Serialize>(kind: u8, message: &M) -> Vec<u8> {
    postcard::to_extend(message, vec![kind]).expect("messages hold nothing that postcard refuses")
}

/// A message of an agent as its hub reads it.
#[derive(Debug, PartialEq)]
pub enum FromAgent<'a> {
    /// A control message.
    Control(AgentMessage),
    /// Tick frames, oldest first.
    Ticks(Frames<'a>),
    /// A part of a fill.
    Fill(FillPart),
    /// Records, rising by number.
    Records(Vec<Record>),
    /// Of a kind that is not known: it is skipped.
    Unknown,
}

/// Tick frames of a message, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames<'a>(&'a [u8]);

impl<'a> Iterator for Frames<'a> {
    type Item = Result<&'a [u8], BadMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let len = take(&mut self.0).and_then(|len| usize::try_from(len).ok());
        let frame = len.and_then(|len| take_slice(&mut self.0, len));
        if frame.is_none() {
            self.0 = &[];
        }
        Some(frame.ok_or(BadMessage))
    }
}

/// Reads a message of an agent.
///
/// # Errors
/// [`BadMessage`] when the bytes are none, or more than [`MAX_MESSAGE`].
pub fn decode_agent(bytes: &[u8]) -> Result<FromAgent<'_>, BadMessage> {
    let (kind, rest) = split(bytes)?;
    match kind {
        CONTROL => read(rest).map(FromAgent::Control),
        TICKS => Ok(FromAgent::Ticks(Frames(rest))),
        FILL => read(rest).map(FromAgent::Fill),
        RECORDS => read(rest).map(FromAgent::Records),
        _ => Ok(FromAgent::Unknown),
    }
}

/// Reads a message of a hub; none where it is of a kind that is not known, and skipped.
///
/// # Errors
/// [`BadMessage`] when the bytes are none, or more than [`MAX_MESSAGE`].
pub fn decode_hub(bytes: &[u8]) -> Result<Option<HubMessage>, BadMessage> {
    let (kind, rest) = split(bytes)?;
    if kind == CONTROL { read(rest).map(Some) } else { Ok(None) }
}

fn split(bytes: &[u8]) -> Result<(u8, &[u8]), BadMessage> {
    if bytes.len() > MAX_MESSAGE {
        return Err(BadMessage);
    }
    bytes.split_first().map(|(kind, rest)| (*kind, rest)).ok_or(BadMessage)
}

/// Bytes that go on behind the message are none of this protocol.
fn read<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, BadMessage> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(BadMessage),
    }
}

/// Whether a key and a value can be a label.
pub fn is_label(key: &str, value: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._/-".contains(&b);
    !key.is_empty()
        && key.len() <= MAX_LABEL_KEY_BYTES
        && key.bytes().all(letter)
        && value.len() <= MAX_LABEL_VALUE_BYTES
        && is_text(value)
}

/// Whether a text can be the name of a machine.
pub fn is_name(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b".-_".contains(&b);
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(letter)
}

/// Whether a text holds nothing that a terminal or a browser could take for a command: no control characters, and none
/// that turns the direction of writing.
pub fn is_text(text: &str) -> bool {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.chars().any(|c| c.is_control() || turns(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::cpu;
    use proptest::prelude::*;

    fn hello() -> AgentHello {
        AgentHello {
            instance: u64::MAX,
            folder: 7,
            boot: Some([1; 32]),
            machine: None,
            host: "gpu-7".into(),
            version: "0.1.0".into(),
            started: 1_700_000_000_000,
            interval: 1_000,
            facts: vec![("os.type".into(), "linux".into())],
            labels: vec![("tier".into(), "gpu".into())],
            now: 1_700_000_001_000,
            life: 5,
            seq: 9,
            record: 0,
            retention: 43_200_000,
            memory: false,
            offers: vec![Offer { first: 5, last: u64::MAX, from: 1, to: i64::MAX }],
        }
    }

    fn fill() -> FillPart {
        FillPart {
            id: 3,
            first: 10,
            last: 12,
            clock_step: true,
            more: false,
            times: vec![1, 2, 3],
            columns: vec![(4, ColumnBytes(vec![5; 40])), (9, ColumnBytes(Vec::new()))],
        }
    }

    fn of_agent() -> Vec<AgentMessage> {
        vec![
            AgentMessage::Hello(Box::new(hello())),
            AgentMessage::Rows { rows: vec![(300, cpu::ROWS[0].into())], charts: Vec::new() },
            AgentMessage::Series { defs: vec![(7, SeriesDef { metric: 300, instance: "0".into() })] },
            AgentMessage::Checks(Vec::new()),
            AgentMessage::Facts { host: "a".into(), facts: Vec::new(), labels: Vec::new() },
            AgentMessage::Clock { id: 2, sent: -1, arrived: Some(4) },
            AgentMessage::Answer { id: 1, bytes: vec![0; 300] },
            AgentMessage::FillEnd { id: 3, state: FillState::Gone },
            AgentMessage::Bye(ByeReason::Upgrading),
            AgentMessage::Heartbeat,
        ]
    }

    fn of_hub() -> Vec<HubMessage> {
        vec![
            HubMessage::Welcome(Welcome {
                version: "0.1.0".into(),
                name: "node-7".into(),
                now: 1,
                holds: 2,
                record: 3,
                spread: 4,
                max_series: 20_000,
                max_rows: 2_000,
            }),
            HubMessage::Clock { id: 1, sent: 2, received: 3, answered: 4 },
            HubMessage::Want { id: 1, first: 2, last: u64::MAX },
            HubMessage::Ack { messages: 3, seq: 4, record: 5 },
            HubMessage::Ask { id: 9, what: Question::Processes { at: Some(-5) } },
            HubMessage::Ask { id: 10, what: Question::Doctor },
            HubMessage::Heartbeat,
            HubMessage::Goodbye { code: close::IN_USE, reason: "in use".into(), wait: 60_000 },
        ]
    }

    #[test]
    fn messages_come_back_and_none_that_is_cut_or_longer() {
        let control = of_agent().into_iter().map(|m| (encode(&m), FromAgent::Control(m)));
        let record = Record { n: 4, t: 5, kind: "marker".into(), body: vec![1; 9] };
        let others = [
            (encode_fill(&fill()), FromAgent::Fill(fill())),
            (encode_records(std::slice::from_ref(&record)), FromAgent::Records(vec![record])),
        ];
        for (mut bytes, message) in control.chain(others) {
            assert_eq!(decode_agent(&bytes).as_ref(), Ok(&message));
            for cut in 0..bytes.len() {
                assert_eq!(decode_agent(&bytes[..cut]), Err(BadMessage), "{cut} bytes of {message:?}");
            }
            bytes.push(0);
            assert_eq!(decode_agent(&bytes), Err(BadMessage), "one byte behind {message:?}");
        }
        for message in of_hub() {
            let mut bytes = encode(&message);
            assert_eq!(decode_hub(&bytes).as_ref(), Ok(&Some(message.clone())));
            for cut in 0..bytes.len() {
                assert_eq!(decode_hub(&bytes[..cut]), Err(BadMessage));
            }
            bytes.push(0);
            assert_eq!(decode_hub(&bytes), Err(BadMessage));
        }
    }

    #[test]
    fn what_another_version_adds_is_skipped() {
        assert_eq!(decode_agent(&[9, 1, 2]), Ok(FromAgent::Unknown));
        assert_eq!(decode_hub(&[9, 1, 2]), Ok(None));
    }

    #[test]
    fn frames_are_read_one_by_one_and_a_length_beyond_the_end_is_refused() {
        let frames = |bytes: &[u8]| match decode_agent(bytes) {
            Ok(FromAgent::Ticks(frames)) => frames.map(|frame| frame.map(<[u8]>::to_vec)).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let bytes = encode_ticks([&b"one"[..], &b""[..], &b"three"[..]]);
        assert_eq!(frames(&bytes), [Ok(b"one".to_vec()), Ok(Vec::new()), Ok(b"three".to_vec())]);
        for hostile in [&[TICKS, 200][..], &[TICKS, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0]] {
            assert_eq!(frames(hostile), [Err(BadMessage)]);
        }
        assert_eq!(frames(&[TICKS]), []);
    }

    #[test]
    fn lengths_that_the_bytes_do_not_have_are_refused_before_memory_is_taken() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        // Hello is variant 0, rows 1, series 2, checks 3, answer 6.
        for variant in [1, 2, 3] {
            assert_eq!(decode_agent(&[&[CONTROL, variant][..], &huge].concat()), Err(BadMessage));
        }
        assert_eq!(decode_agent(&[&[CONTROL, 6, 1][..], &huge].concat()), Err(BadMessage));
        assert_eq!(decode_agent(&[&[RECORDS][..], &huge].concat()), Err(BadMessage));
        assert_eq!(decode_agent(&[&[FILL, 1, 1, 1, 0, 0][..], &huge].concat()), Err(BadMessage));
        assert_eq!(decode_agent(&vec![TICKS; MAX_MESSAGE + 1]), Err(BadMessage));
        assert_eq!(decode_hub(&vec![CONTROL; MAX_MESSAGE + 1]), Err(BadMessage));
    }

    #[test]
    fn the_ticks_of_a_block_are_bounded() {
        assert_eq!(fill().ticks(), Some(3));
        for (first, last) in [(2, 1), (0, u64::MAX), (1, u64::from(MAX_FILL_TICKS) + 1)] {
            assert_eq!(FillPart { first, last, ..fill() }.ticks(), None);
        }
    }

    #[test]
    fn text_names_and_labels_hold_no_control_characters() {
        assert!(is_text("Überlast 90 %") && !is_text("a\u{1b}[2J") && !is_text("a\nb") && !is_text("\u{202e}gpj.exe"));
        assert!(is_name("gpu-7.rack_2") && !is_name("") && !is_name("a b") && !is_name(&"n".repeat(64)));
        assert!(is_label("k8s.node/name", "A 100") && !is_label("Tier", "x") && !is_label("", "x"));
        assert!(!is_label("tier", &"x".repeat(257)) && !is_label("tier", "\t"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read_but_never_panic(kind in 0u8..4, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let bytes = [&[kind][..], &bytes].concat();
            if let Ok(FromAgent::Ticks(frames)) = decode_agent(&bytes) {
                frames.for_each(|frame| { let _ = frame; });
            }
            let _ = decode_hub(&bytes);
        }
    }
}
