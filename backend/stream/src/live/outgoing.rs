//! Messages on their way to a page. Those of history are read one by one, each when the one before has gone.

use super::hidden::HiddenSeries;
use super::minutes::Stretches;
use crate::store::{Block, Damages};
use bytes::Bytes;
use shared::column;
use shared::segment::Part;
use shared::wire::{self, ColumnBytes, Columns, MAX_MESSAGE, ServerMessage, SourceId};
use std::borrow::Cow;
use std::ops::Range;
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
    /// The times that alone are shown, ms.
    within: Option<(i64, i64)>,
    hidden: HiddenSeries,
}

/// Which ticks of a block are shown, and their times as they are sent.
struct Cut {
    ticks: Range<usize>,
    times: Vec<u8>,
}

impl Cut {
    /// None where no tick is shown.
    fn new(times: &[u8], ticks: usize, (from, to): (i64, i64)) -> Option<Cut> {
        let all = column::decode_times(times, ticks).ok()?;
        let kept = all.partition_point(|t| *t < from)..all.partition_point(|t| *t <= to);
        (!kept.is_empty()).then(|| Cut { times: column::encode_times(&all[kept.clone()]), ticks: kept })
    }

    /// The same ticks of a column; nothing of what is damaged.
    fn column(&self, bytes: &[u8], ticks: usize) -> Vec<u8> {
        let values = column::decode(bytes, ticks).unwrap_or_default();
        column::encode(values.get(self.ticks.clone()).unwrap_or_default(), 0.0)
    }
}

impl BlockPart {
    /// A block of which nothing has been sent.
    pub(super) fn new(source: SourceId, block: Block, damages: Arc<Damages>) -> Self {
        BlockPart { source, block, sent: 0, damages, within: None, hidden: HiddenSeries::default() }
    }

    /// Of which these times alone are shown.
    pub(super) fn within(self, within: Option<(i64, i64)>) -> Self {
        BlockPart { within, ..self }
    }

    /// Without these series.
    pub(super) fn without(self, hidden: HiddenSeries) -> Self {
        BlockPart { hidden, ..self }
    }

    /// Whether reading it may have to wait for a disk, or takes long.
    fn waits(&self) -> bool {
        !self.block.at_hand()
    }

    /// The next message of it, at most [`MAX_MESSAGE`] bytes or one column, and what is left. What is damaged is left out:
    /// a gap on the page.
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
        // The ticks of a block have sequences without a gap.
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
