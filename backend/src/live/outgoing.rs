//! Messages on their way to a page. Those of history are read one by one, each when the one before has gone.

use super::minutes::Stretches;
use crate::store::{Block, Damages};
use axum::body::Bytes;
use shared::segment::Part;
use shared::wire::{self, ColumnBytes, Columns, MAX_MESSAGE, ServerMessage, SourceId};
use std::sync::Arc;

/// What a page is to be sent next; [read](Outgoing::read) it.
pub enum Outgoing {
    /// A message that is ready.
    Message(Bytes),
    /// A sealed block of history, tick by tick.
    Block(BlockPart),
    /// Sealed blocks of history as one value a minute.
    Minutes(Box<Stretches>),
}

impl Outgoing {
    /// Whether reading it may have to wait for a disk, or takes long.
    pub fn waits(&self) -> bool {
        match self {
            Outgoing::Message(_) => false,
            Outgoing::Block(part) => part.waits(),
            Outgoing::Minutes(_) => true,
        }
    }

    /// The next message of it, and what is left, which is [put back](super::Viewer::put_back).
    pub fn read(self) -> (Option<Bytes>, Option<Outgoing>) {
        match self {
            Outgoing::Message(bytes) => (Some(bytes), None),
            Outgoing::Block(part) => {
                let (bytes, rest) = part.read();
                (bytes, rest.map(Outgoing::Block))
            }
            Outgoing::Minutes(stretches) => {
                let (bytes, rest) = stretches.read();
                (bytes, rest.map(|rest| Outgoing::Minutes(Box::new(rest))))
            }
        }
    }
}

/// A sealed block that is on its way to a page, from one of its columns on.
pub struct BlockPart {
    source: SourceId,
    block: Block,
    /// How many of its columns have been sent.
    sent: usize,
    damages: Arc<Damages>,
}

impl BlockPart {
    /// A block of which nothing has been sent.
    pub(super) fn new(source: SourceId, block: Block, damages: Arc<Damages>) -> Self {
        BlockPart { source, block, sent: 0, damages }
    }

    /// Whether reading it may have to wait for a disk.
    fn waits(&self) -> bool {
        !self.block.in_memory()
    }

    /// The next message of it, at most [`MAX_MESSAGE`] bytes or one column, and what is left. What is damaged is left out:
    /// a gap on the page.
    fn read(mut self) -> (Option<Bytes>, Option<BlockPart>) {
        let (block, damages) = (&self.block, &self.damages);
        let Some(times) = damages.checked(block, None, block.times()) else { return (None, None) };
        let (mut columns, mut size, mut whole) = (Vec::new(), times.len() + 64, true);
        block.columns(self.sent, |column| {
            match column {
                Ok((id, bytes)) => {
                    whole = columns.is_empty() || size + bytes.len() + 16 <= MAX_MESSAGE;
                    if !whole {
                        return false;
                    }
                    size += bytes.len() + 16;
                    columns.push((id, ColumnBytes(bytes.into_owned())));
                    self.sent += 1;
                }
                Err(part) => {
                    let id = match part {
                        Part::Column(id) | Part::Index(id) | Part::Tier(id) => Some(id),
                        Part::Times | Part::Records(_) => None,
                    };
                    damages.met(block, id);
                    self.sent += usize::from(matches!(part, Part::Column(_)));
                }
            }
            true
        });
        let message = wire::encode(&ServerMessage::Columns(Columns {
            source: self.source,
            first_seq: block.first_seq(),
            last_seq: block.last_seq(),
            ticks: block.ticks() as u32,
            times: times.into_owned(),
            columns,
        }));
        (Some(message.into()), (!whole).then_some(self))
    }
}
