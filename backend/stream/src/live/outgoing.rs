//! Messages waiting to be sent to a page. Messages of history are read one by one, each after the one before was sent.

use super::hidden::HiddenSeries;
use super::minutes::Stretches;
use crate::store::{Block, Damages};
use bytes::Bytes;
use shared::column;
use shared::segment::Part;
use shared::wire::{self, ColumnBytes, Columns, ServerMessage, SourceId};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Maximum size of a message of history in bytes, unless one column is longer. A new tick waits for one such message:
/// less than a second at 1.6 Mbit/s.
const MAX_HISTORY_MESSAGE: usize = 128 << 10;

/// The next data for a page; [read](Outgoing::read) it.
pub enum Outgoing {
    /// A message that is ready.
    Message(Bytes),
    /// A sealed block of history, tick by tick.
    Block(BlockPart),
    /// Sealed blocks of history as one value a minute.
    Minutes(Box<Stretches>),
}

impl Outgoing {
    /// Whether reading it may block on a disk, or takes long.
    pub fn waits(&self) -> bool {
        match self {
            Outgoing::Message(_) => false,
            Outgoing::Block(part) => part.waits(),
            Outgoing::Minutes(_) => true,
        }
    }

    /// Its next message, and the rest, to be [put back](super::Viewer::put_back).
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

/// A sealed block to be sent to a page, from one of its columns on.
pub struct BlockPart {
    source: SourceId,
    block: Block,
    /// Number of its columns that were sent.
    sent: usize,
    damages: Arc<Damages>,
    /// Limits of the time shown, ms.
    within: Option<(i64, i64)>,
    hidden: HiddenSeries,
}

/// Range of shown ticks of a block, and their encoded times.
struct Cut {
    ticks: Range<usize>,
    times: Vec<u8>,
}

impl Cut {
    /// None if no tick is shown.
    fn new(times: &[u8], ticks: usize, (from, to): (i64, i64)) -> Option<Cut> {
        let all = column::decode_times(times, ticks).ok()?;
        let kept = all.partition_point(|t| *t < from)..all.partition_point(|t| *t <= to);
        (!kept.is_empty()).then(|| Cut { times: column::encode_times(&all[kept.clone()]), ticks: kept })
    }

    /// The same ticks of a column; nothing if it is damaged.
    fn column(&self, bytes: &[u8], ticks: usize) -> Vec<u8> {
        let values = column::decode(bytes, ticks).unwrap_or_default();
        column::encode(values.get(self.ticks.clone()).unwrap_or_default(), 0.0)
    }
}

impl BlockPart {
    /// A block of which no part was sent.
    pub(super) fn new(source: SourceId, block: Block, damages: Arc<Damages>) -> Self {
        BlockPart { source, block, sent: 0, damages, within: None, hidden: HiddenSeries::default() }
    }

    /// Restricted to these times.
    pub(super) fn within(self, within: Option<(i64, i64)>) -> Self {
        BlockPart { within, ..self }
    }

    /// Without these series.
    pub(super) fn without(self, hidden: HiddenSeries) -> Self {
        BlockPart { hidden, ..self }
    }

    /// Whether reading it may block on a disk, or takes long.
    fn waits(&self) -> bool {
        !self.block.at_hand()
    }

    /// Its next message, at most [`MAX_HISTORY_MESSAGE`] bytes or one column, and the rest. Damaged data is left out: a
    /// gap on the page.
    fn read(mut self) -> (Option<Bytes>, Option<BlockPart>) {
        let (block, damages) = (&self.block, &self.damages);
        let Some(times) = damages.checked(block, None, block.times()) else { return (None, None) };
        let cut = match self.within.map(|within| Cut::new(&times, block.ticks(), within)) {
            Some(None) => return (None, None),
            cut => cut.flatten(),
        };
        let (mut columns, mut size, mut whole) = (Vec::new(), times.len() + 64, true);
        block.columns(self.sent, |column| {
            match column {
                Ok((id, _)) if self.hidden.has(id) => self.sent += 1,
                Ok((id, bytes)) => {
                    let bytes = match &cut {
                        Some(cut) => Cow::Owned(cut.column(&bytes, block.ticks())),
                        None => bytes,
                    };
                    whole = columns.is_empty() || size + bytes.len() + 16 <= MAX_HISTORY_MESSAGE;
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
        // The sequences within a block have no gap.
        let seqs = match &cut {
            None => (block.first_seq(), block.last_seq()),
            Some(cut) => {
                let first = block.first_seq() + cut.ticks.start as u64;
                (first, first + cut.ticks.len() as u64 - 1)
            }
        };
        let message = wire::encode(&ServerMessage::Columns(Columns {
            source: self.source,
            first_seq: seqs.0,
            last_seq: seqs.1,
            ticks: cut.as_ref().map_or(block.ticks(), |cut| cut.ticks.len()) as u32,
            times: cut.map_or_else(|| times.into_owned(), |cut| cut.times),
            columns,
        }));
        (Some(message.into()), (!whole).then_some(self))
    }
}
