//! The messages between an agent and its hub, and their bytes.
//!
//! The link is a WebSocket that the agent opens at `/api/v1/ingest`, of the protocol [`PROTOCOL_NAME`]. Every message is
//! binary. Its first byte is the kind of the message: [`CONTROL`] a postcard-encoded [`AgentMessage`] (or
//! [`HubMessage`] the other way), [`TICKS`] frames of [`crate::tick`], each after its length as a varint, [`FILL`] a
//! [`FillPart`], [`RECORDS`] records, [`DAMAGE`] a [`FillDamage`]. Unknown kinds are skipped. Additions within a
//! version are new first bytes, and existing messages never change.
//!
//! Order: hello, welcome; then rows, series that name them, a keyframe of the tick *before* the newest, the newest
//! tick, and from there on ticks as they come. An agent that has not sampled since its start sends a keyframe of the
//! newest tick alone: the values of that tick are only on its disk. The hub requests missing ticks by
//! [`HubMessage::Want`], one range at a time. The answer is sent between the ticks and never delays one.
//!
//! The decoder reads untrusted bytes: it never allocates by a claimed length that the bytes do not have.

mod limits;
mod messages;
#[cfg(test)]
mod tests;

pub use limits::*;
pub use messages::*;

use crate::record::Record;
use crate::varint::{put, take, take_slice};
use crate::wire::BadMessage;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Name of the protocol in `Sec-WebSocket-Protocol`.
pub const PROTOCOL_NAME: &str = "watchglass.agent.1";

/// First byte of a control message.
pub const CONTROL: u8 = 0;
/// First byte of a message of tick frames.
pub const TICKS: u8 = 1;
/// First byte of a part of an answer to [`HubMessage::Want`].
pub const FILL: u8 = 2;
/// First byte of a message of records.
pub const RECORDS: u8 = 3;

/// First byte of a request for the output of a run.
pub const LINES: u8 = 4;

/// First byte of a [`FillDamage`].
pub const DAMAGE: u8 = 5;

/// First byte of a [`Submission`](crate::submission::Submission).
pub const SUBMISSION: u8 = 7;

/// First byte of a request for stacks.
pub const STACKS: u8 = 8;

/// First byte of a request for the answer of NCCL. 6 was one about all jobs of a machine, and is skipped.
pub const NCCL: u8 = 9;

/// The bytes of a message of a hub.
pub fn encode_hub(message: &HubMessage) -> Vec<u8> {
    match message {
        HubMessage::Ask { id, what: Question::Lines(asked) } => behind(LINES, &(id, asked)),
        HubMessage::Ask { id, what: Question::Nccl { gpus } } => behind(NCCL, &(id, gpus)),
        HubMessage::Ask { id, what: Question::Stacks { gpus } } => behind(STACKS, &(id, gpus)),
        HubMessage::Ask { id, what: Question::Submission { shift, json } } => behind(SUBMISSION, &(id, shift, json)),
        message => encode(message),
    }
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

/// The bytes of the missing parts of a fill.
pub fn encode_damage(damage: &FillDamage) -> Vec<u8> {
    behind(DAMAGE, damage)
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
    /// Missing parts of a fill.
    Damage(FillDamage),
    /// Records, rising by number.
    Records(Vec<Record>),
    /// A message of an unknown kind; it is skipped.
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
/// [`BadMessage`] when the bytes are invalid, or more than [`MAX_MESSAGE`].
pub fn decode_agent(bytes: &[u8]) -> Result<FromAgent<'_>, BadMessage> {
    let (kind, rest) = split(bytes)?;
    match kind {
        CONTROL => read(rest).map(FromAgent::Control),
        TICKS => Ok(FromAgent::Ticks(Frames(rest))),
        FILL => read(rest).map(FromAgent::Fill),
        RECORDS => read(rest).map(FromAgent::Records),
        DAMAGE => read(rest).map(FromAgent::Damage),
        _ => Ok(FromAgent::Unknown),
    }
}

/// Reads a message of a hub; None if its kind is unknown, and it is skipped.
///
/// # Errors
/// [`BadMessage`] when the bytes are invalid, or more than [`MAX_MESSAGE`].
pub fn decode_hub(bytes: &[u8]) -> Result<Option<HubMessage>, BadMessage> {
    let (kind, rest) = split(bytes)?;
    match kind {
        CONTROL => read(rest).map(Some),
        LINES => read(rest).map(|(id, asked)| Some(HubMessage::Ask { id, what: Question::Lines(asked) })),
        NCCL => read(rest).map(|(id, gpus)| Some(HubMessage::Ask { id, what: Question::Nccl { gpus } })),
        STACKS => read(rest).map(|(id, gpus)| Some(HubMessage::Ask { id, what: Question::Stacks { gpus } })),
        SUBMISSION => {
            read(rest).map(|(id, shift, json)| Some(HubMessage::Ask { id, what: Question::Submission { shift, json } }))
        }
        _ => Ok(None),
    }
}

fn split(bytes: &[u8]) -> Result<(u8, &[u8]), BadMessage> {
    if bytes.len() > MAX_MESSAGE {
        return Err(BadMessage);
    }
    bytes.split_first().map(|(kind, rest)| (*kind, rest)).ok_or(BadMessage)
}

/// Rejects trailing bytes after the message.
fn read<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, BadMessage> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(BadMessage),
    }
}
