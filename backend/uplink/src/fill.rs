//! Answers a hub's request for missing ticks: exactly the ticks of a range, as columns. Sealed blocks are sent as
//! stored; cut or unsealed ones are encoded again. A separate thread reads them, part by part, as the link takes them.

use super::identity::Shift;
use shared::agent::{FillPart, FillState, MAX_FILL_BYTES, MAX_FILL_TICKS};
use shared::column;
use shared::segment::Part;
use shared::series::{SeriesId, Steps};
use shared::wire::{ColumnBytes, SourceId};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stream::live::Live;
use stream::store::{Block, Damages, Unread};

/// A hub's request, in its sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Want {
    pub id: u32,
    pub first: u64,
    pub last: u64,
}

/// End of an answer, and the number of columns or whole blocks that are damaged on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub state: FillState,
    pub damaged: u32,
}

/// Receives the parts of an answer; returns false once they are no longer wanted.
pub(super) type Give<'a> = &'a mut dyn FnMut(FillPart) -> bool;

/// Approximate size of the columns in a part, bytes; the link adapts it to its throughput.
pub(super) type Size = Arc<AtomicUsize>;

/// A range of our own sequence numbers, and the offset to the hub's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Own {
    range: RangeInclusive<u64>,
    add: u64,
}

/// The ranges of our own numbers for a range of the hub's.
fn own(first: u64, last: u64, shifts: &[Shift]) -> Vec<Own> {
    let mut all: Vec<Own> = Vec::new();
    let mut put = |from: u64, to: u64, add: u64| {
        if from <= to {
            all.push(Own { range: from..=to, add });
        }
    };
    for shift in shifts {
        put(
            first.saturating_sub(shift.add).max(shift.first),
            last.saturating_sub(shift.add).min(shift.last),
            shift.add,
        );
    }
    // Ticks with other numbers in the hub do not exist there under ours.
    let mut at = first;
    let mut hidden: Vec<&Shift> = shifts.iter().filter(|shift| shift.last >= first && shift.first <= last).collect();
    hidden.sort_by_key(|shift| shift.first);
    for shift in hidden {
        if shift.first > at {
            put(at, shift.first - 1, 0);
        }
        at = at.max(shift.last.saturating_add(1));
    }
    put(at, last, 0);
    all.sort_by_key(|own| own.range.start() + own.add);
    all
}

/// Reads the requested ticks, and passes them on part by part; returns how it ended. Blocks while the disk or the
/// receiver does.
pub(super) fn answer(live: &Live, source: SourceId, want: Want, shifts: &[Shift], size: &Size, give: Give) -> Answered {
    answer_within(live, source, want, shifts, size, MAX_FILL_BYTES, give)
}

/// As above, with blocks of at most this many bytes.
pub(super) fn answer_within(
    live: &Live,
    source: SourceId,
    want: Want,
    shifts: &[Shift],
    size: &Size,
    most: usize,
    give: Give,
) -> Answered {
    let mut answer = FillAnswer { want, size, most, give, sent: false, damaged: BTreeSet::new() };
    for own in own(want.first, want.last, shifts) {
        let (blocks, steps, damages) = blocks(live, source, &own.range);
        for block in blocks {
            if !answer.block(&block, &own, &steps, &damages) {
                return answer.ended(FillState::Gone);
            }
        }
    }
    let state = if answer.sent { FillState::Whole } else { FillState::Gone };
    answer.ended(state)
}

/// The blocks that overlap a range, in order, with those made of unsealed ticks.
fn blocks(live: &Live, source: SourceId, range: &RangeInclusive<u64>) -> (Vec<Block>, Vec<Steps>, Arc<Damages>) {
    let (snapshot, steps, damages) = {
        let store = live.store();
        let steps = store.state(source).map(|state| state.steps().to_vec()).unwrap_or_default();
        (store.snapshot(source, i64::MIN, i64::MAX), steps, store.damages().clone())
    };
    let blocks = snapshot.map(|snapshot| snapshot.blocks_of(range)).unwrap_or_default();
    (blocks, steps, damages)
}

/// An answer in progress.
struct FillAnswer<'a> {
    want: Want,
    size: &'a Size,
    /// Maximum size of a block, bytes.
    most: usize,
    give: Give<'a>,
    sent: bool,
    /// A block may be sent in several pieces, each of which meets the same damage.
    damaged: BTreeSet<DamagedPlace>,
}

/// Maximum size of a column of `raw` bytes in a message: with its ID, its length, and its share of the message heads.
fn cost(raw: usize) -> usize {
    raw + raw / 32 + 16
}

/// Maximum size of a message head, bytes.
const HEAD: usize = 64;

/// A damaged place: the first sequence of its block, and the part of it.
type DamagedPlace = (u64, Part);

/// Times and columns of some ticks of a block.
struct Piece {
    times: Vec<u8>,
    columns: Vec<(SeriesId, ColumnBytes)>,
}

/// Reason why there is no piece.
enum NoPiece {
    /// It exceeds the maximum that a hub accepts as one block.
    TooLarge,
    /// The times cannot be read.
    Unread,
}

impl FillAnswer<'_> {
    fn ended(self, state: FillState) -> Answered {
        Answered { state, damaged: u32::try_from(self.damaged.len()).unwrap_or(u32::MAX) }
    }

    /// Sends the part of a block in a range, as one block, or as several of fewer ticks if a hub would not accept it.
    /// Returns false once no more is wanted. Damaged data is skipped.
    fn block(&mut self, block: &Block, own: &Own, steps: &[Steps], damages: &Damages) -> bool {
        let (mut first, last) = (block.first_seq().max(*own.range.start()), block.last_seq().min(*own.range.end()));
        let mut most = u64::from(MAX_FILL_TICKS);
        while first <= last {
            let end = last.min(first + most - 1);
            match piece(block, (first, end), steps, (damages, &mut self.damaged), self.most) {
                // A single tick always fits: a hub accepts fewer series than that.
                Err(NoPiece::TooLarge) if end > first => most = (end - first).div_ceil(2),
                Err(_) => first = end + 1,
                Ok(piece) => {
                    if !self.piece(piece, block, (first, end), own.add) {
                        return false;
                    }
                    first = end + 1;
                }
            }
        }
        true
    }

    /// Sends a piece in parts; false once no more is wanted.
    fn piece(&mut self, piece: Piece, block: &Block, (first, last): (u64, u64), add: u64) -> bool {
        let part = |times: Vec<u8>, columns: Vec<(SeriesId, ColumnBytes)>, more: bool| FillPart {
            id: self.want.id,
            first: first + add,
            last: last + add,
            clock_step: block.clock_step() && first == block.first_seq(),
            more,
            times,
            columns,
        };
        let (mut times, mut columns, mut bytes) = (Some(piece.times), Vec::new(), 0);
        for (id, ColumnBytes(raw)) in piece.columns {
            if bytes > 0 && bytes + raw.len() > self.size.load(Ordering::Relaxed) {
                let part = part(times.take().unwrap_or_default(), std::mem::take(&mut columns), true);
                if !(self.give)(part) {
                    return false;
                }
                bytes = 0;
            }
            bytes += raw.len() + 8;
            columns.push((id, ColumnBytes(raw)));
        }
        self.sent = true;
        let last = part(times.take().unwrap_or_default(), columns, false);
        (self.give)(last)
    }
}

/// Reads the ticks of a block between two sequences, at most this many bytes of them. Damaged data is skipped.
fn piece(
    block: &Block,
    (first, last): (u64, u64),
    steps: &[Steps],
    (damages, damaged): (&Damages, &mut BTreeSet<DamagedPlace>),
    most: usize,
) -> Result<Piece, NoPiece> {
    let mut met = |part| {
        let series = if let Part::Column(id) = part { Some(id) } else { None };
        damages.met(block, series);
        damaged.insert((block.first_seq(), part));
    };
    let whole = (first, last) == (block.first_seq(), block.last_seq());
    let ticks = (first - block.first_seq()) as usize..(last - block.first_seq()) as usize + 1;
    let times = match whole {
        true => block.times().map(|bytes| bytes.into_owned()),
        false => block.read_times().map(|times| column::encode_times(&times[ticks.clone()])),
    };
    let times = times.inspect_err(|_| met(Part::Times)).map_err(|_| NoPiece::Unread)?;
    let (mut columns, mut bytes) = (Vec::new(), times.len() + HEAD);
    block.columns(0, |column| {
        let (id, raw) = match column {
            Ok((id, raw)) => (id, raw),
            Err(part) => {
                met(part);
                return true;
            }
        };
        let steps = steps.get(id as usize).copied().unwrap_or(0.0);
        let cut = cut(&raw, whole, block.ticks(), &ticks, steps);
        let Some(raw) = cut.inspect_err(|_| met(Part::Column(id))).ok().flatten() else { return true };
        bytes += cost(raw.len());
        columns.push((id, ColumnBytes(raw)));
        bytes <= most
    });
    if bytes > most { Err(NoPiece::TooLarge) } else { Ok(Piece { times, columns }) }
}

/// The ticks of a column; None if it has no sample among them.
fn cut(
    raw: &[u8],
    whole: bool,
    all: usize,
    ticks: &std::ops::Range<usize>,
    steps: Steps,
) -> Result<Option<Vec<u8>>, Unread> {
    if whole {
        return Ok(Some(raw.to_vec()));
    }
    let values = column::decode(raw, all)?;
    let part = &values[ticks.clone()];
    Ok(part.iter().any(|value| value.is_finite()).then(|| column::encode(part, steps)))
}
