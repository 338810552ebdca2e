//! Requests for missing samples: one range at a time per source, a few sources at once, at a bounded rate.
//!
//! The parts of a block are assembled, and the whole block is checked before any of it is stored. A column that cannot
//! be decoded, an impossible time, or ticks that were not requested make it bad. A bad block is requested once more,
//! then skipped.

use super::coverage::{self, Hole, Span};
use parking_lot::Mutex;
use shared::agent::{FillPart, FillState, MAX_FILL_BYTES, Offer};
use shared::column;
use shared::series::SeriesId;
use shared::wire::ColumnBytes;
use std::sync::Arc;
use std::time::Duration;
use stream::store::Column;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Maximum number of sources that are fetched at once.
const MAX_FETCHED: usize = 8;
/// Maximum rate of all fills together, bytes per second.
const BYTES_A_SECOND: f64 = 20e6;
/// A fill that brings less than this within `SLOW_WITHIN` is aborted.
const SLOW_BYTES: u64 = 60 << 10;
const SLOW_WITHIN: Duration = Duration::from_secs(60);
/// History per request, milliseconds, and bounds of its number of ticks.
const WANT_MS: i64 = 3_600_000;
const WANT_TICKS: (i64, i64) = (60, 36_000);

/// Maximum number of bad blocks of one link, far above that of a month. After that nothing is requested over the link.
const MAX_BAD_BLOCKS: usize = 20_000;

/// Queue of the sources to fetch, and rate limit of bytes.
pub(super) struct Turns {
    turns: Arc<Semaphore>,
    /// Time from which the rate limit allows the next request.
    until: Mutex<Instant>,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { turns: Arc::new(Semaphore::new(MAX_FETCHED)), until: Mutex::new(Instant::now()) }
    }
}

impl Turns {
    /// Resolves when it is a source's turn; dropping the permit ends the turn.
    pub async fn take(&self) -> OwnedSemaphorePermit {
        let turn = self.turns.clone().acquire_owned().await;
        turn.expect("the turns are never closed")
    }

    /// Counts received bytes against the rate limit.
    pub fn came(&self, bytes: usize, now: Instant) {
        let mut until = self.until.lock();
        *until = (*until).max(now) + Duration::from_secs_f64(bytes as f64 / BYTES_A_SECOND);
    }

    /// Time until the rate limit allows the next request.
    pub fn wait(&self, now: Instant) -> Duration {
        self.until.lock().saturating_duration_since(now)
    }
}

/// An open request, and its progress.
struct Want {
    id: u32,
    span: Span,
    arrived: Vec<Span>,
    block: Option<FillBlock>,
    /// Bytes received since `since`.
    bytes: u64,
    since: Duration,
    /// Approximate length of the requested history, milliseconds.
    missing: i64,
}

/// A block of a fill, before it is checked.
#[derive(Debug, PartialEq)]
pub(super) struct FillBlock {
    pub first: u64,
    pub last: u64,
    pub clock_step: bool,
    times: Vec<u8>,
    columns: Vec<(SeriesId, ColumnBytes)>,
    bytes: usize,
}

/// A block whose every byte was checked.
pub(super) struct CheckedBlock {
    pub first: u64,
    pub last: u64,
    pub clock_step: bool,
    /// Times by the agent's clock, milliseconds since the Unix epoch.
    pub times: Vec<i64>,
    /// Columns by the agent's IDs.
    pub columns: Vec<(SeriesId, Column)>,
}

impl FillBlock {
    /// Decodes the whole block; None if it is damaged. This takes long: call it where it blocks nobody.
    pub fn check(self) -> Option<CheckedBlock> {
        let ticks = (self.last - self.first + 1) as usize;
        let times = column::decode_times(&self.times, ticks).ok()?;
        if !times.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let mut columns = Vec::with_capacity(self.columns.len());
        for (id, ColumnBytes(raw)) in self.columns {
            let values = column::decode(&raw, ticks).ok()?;
            let samples = values.iter().filter(|value| value.is_finite()).count() as u64;
            if samples > 0 {
                columns.push((id, Column { id, raw: raw.into_boxed_slice(), samples }));
            }
        }
        Some(CheckedBlock { first: self.first, last: self.last, clock_step: self.clock_step, times, columns })
    }
}

/// The agent sent data that was not requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unasked;

/// Fetch state of one source.
#[derive(Default)]
pub(super) struct Fetch {
    pub offers: Vec<Offer>,
    pub holes: Vec<Hole>,
    /// Ranges that did not arrive.
    pub absent: Vec<Span>,
    /// Ranges that arrived and were refused.
    refused: Vec<Span>,
    /// Ranges that were bad, or had columns without names, once.
    again: Vec<Span>,
    want: Option<Want>,
    last_id: u32,
    /// Start of the current fetch, and the history received since, milliseconds.
    began: Option<(Duration, i64)>,
}

impl Fetch {
    /// For an agent with these offers.
    pub fn new(offers: Vec<Offer>) -> Self {
        Fetch { offers, ..Fetch::default() }
    }

    /// Whether there are missing ticks that are not requested yet.
    pub fn is_due(&self) -> bool {
        self.want.is_none() && !self.holes.is_empty() && self.again.len() + self.refused.len() < MAX_BAD_BLOCKS
    }

    /// Whether an answer is awaited.
    pub fn is_open(&self) -> bool {
        self.want.is_some()
    }

    /// Whether an answer to the request of this number is awaited.
    pub fn is_open_as(&self, id: u32) -> bool {
        self.want.as_ref().is_some_and(|want| want.id == id)
    }

    /// Makes the next request: its number and range.
    pub fn ask(&mut self, wall: i64, steady: Duration, interval: i64) -> Option<(u32, Span)> {
        let most = (WANT_MS / interval.max(1)).clamp(WANT_TICKS.0, WANT_TICKS.1) as u64;
        let span = coverage::next(&self.holes, wall, most).filter(|_| self.want.is_none())?;
        self.last_id += 1;
        self.began.get_or_insert((steady, 0));
        let missing = (span.1 - span.0 + 1) as i64 * interval;
        self.want =
            Some(Want { id: self.last_id, span, arrived: Vec::new(), block: None, bytes: 0, since: steady, missing });
        Some((self.last_id, span))
    }

    /// Whether the requested data arrives too slowly.
    pub fn is_slow(&mut self, now: Duration) -> bool {
        let Some(want) = &mut self.want else { return false };
        if now.saturating_sub(want.since) < SLOW_WITHIN {
            return false;
        }
        want.since = now;
        std::mem::take(&mut want.bytes) < SLOW_BYTES
    }

    /// Takes a part of a fill; returns the block that it completes.
    ///
    /// # Errors
    /// [`Unasked`].
    pub fn part(&mut self, part: FillPart, size: usize) -> Result<Option<FillBlock>, Unasked> {
        let want = self.want.as_mut().filter(|want| want.id == part.id).ok_or(Unasked)?;
        want.bytes += size as u64;
        part.ticks().ok_or(Unasked)?;
        let within = part.first >= want.span.0 && part.last <= want.span.1;
        if !within || want.arrived.last().is_some_and(|(_, last)| *last >= part.first) {
            return Err(Unasked);
        }
        let block = match want.block.take() {
            Some(mut block) => {
                if (block.first, block.last) != (part.first, part.last) || !part.times.is_empty() {
                    return Err(Unasked);
                }
                block.bytes += size;
                block.columns.extend(part.columns);
                block
            }
            None => FillBlock {
                first: part.first,
                last: part.last,
                clock_step: part.clock_step,
                times: part.times,
                columns: part.columns,
                bytes: size,
            },
        };
        if block.bytes > MAX_FILL_BYTES || !block.columns.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Unasked);
        }
        if part.more {
            want.block = Some(block);
            return Ok(None);
        }
        want.arrived.push((block.first, block.last));
        Ok(Some(block))
    }

    /// Whether to request the ticks of a discarded block once more; false if they were already requested again.
    pub fn asks_again(&mut self, span: Span) -> bool {
        let is_new = !self.again.contains(&span);
        if is_new {
            self.again.push(span);
        }
        is_new
    }

    /// The ticks of a block could not be stored. Those of a `bad` one are requested once more.
    pub fn refused(&mut self, span: Span, bad: bool) {
        if !(bad && self.asks_again(span)) {
            coverage::add(&mut self.refused, span);
        }
    }

    /// Ranges that are not requested any more: they did not arrive, or were refused.
    pub fn tried(&self) -> Vec<Span> {
        let mut tried = self.refused.clone();
        self.absent.iter().for_each(|span| coverage::add(&mut tried, *span));
        tried
    }

    /// The answer has ended.
    ///
    /// # Errors
    /// [`Unasked`].
    pub fn end(&mut self, id: u32, state: FillState) -> Result<(), Unasked> {
        let want = self.want.take().filter(|want| want.id == id).ok_or(Unasked)?;
        if want.block.is_some() || state == FillState::Gone && !want.arrived.is_empty() {
            return Err(Unasked);
        }
        // An agent that did not send a tick does not have it.
        for span in coverage::subtract(want.span, &want.arrived) {
            coverage::add(&mut self.absent, span);
        }
        if let Some((_, came)) = &mut self.began {
            *came += want.missing;
        }
        Ok(())
    }

    /// Seconds of history received per second; 0 until it is known. It is reset once nothing is missing.
    pub fn rate(&mut self, now: Duration) -> f64 {
        if self.holes.is_empty() && self.want.is_none() {
            self.began = None;
        }
        let rate = |(since, came): (Duration, i64)| {
            let seconds = now.saturating_sub(since).as_secs_f64();
            if seconds > 0.0 { came as f64 / 1_000.0 / seconds } else { 0.0 }
        };
        self.began.map_or(0.0, rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch() -> Fetch {
        let mut fetch = Fetch::new(Vec::new());
        fetch.holes = vec![Hole { first: 10, last: 19, from: 0, to: 9_000 }];
        assert_eq!(fetch.ask(i64::MAX / 2, Duration::ZERO, 1_000), Some((1, (10, 19))));
        fetch
    }

    fn part(first: u64, last: u64) -> FillPart {
        let times: Vec<i64> = (first..=last).map(|seq| seq as i64 * 1_000).collect();
        let values: Vec<f64> = times.iter().map(|t| *t as f64).collect();
        FillPart {
            id: 1,
            first,
            last,
            clock_step: false,
            more: false,
            times: column::encode_times(&times),
            columns: vec![(3, ColumnBytes(column::encode(&values, 1.0)))],
        }
    }

    #[test]
    fn blocks_come_in_parts_and_what_does_not_come_is_not_asked_for_again() {
        let mut fetch = fetch();
        assert_eq!(fetch.ask(0, Duration::ZERO, 1_000), None, "one at a time");
        let more = FillPart { more: true, ..part(10, 12) };
        assert_eq!(fetch.part(more, 100), Ok(None));
        let rest =
            FillPart { times: Vec::new(), columns: vec![(9, part(10, 12).columns[0].1.clone())], ..part(10, 12) };
        let block = fetch.part(rest, 100).ok().flatten().expect("the block is whole");
        let checked = block.check().expect("it is sound");
        assert_eq!(checked.times, [10_000, 11_000, 12_000]);
        assert_eq!(
            checked.columns.iter().map(|(id, column)| (*id, column.samples)).collect::<Vec<_>>(),
            [(3, 3), (9, 3)]
        );
        assert!(fetch.part(part(15, 16), 100).is_ok_and(|block| block.is_some()));
        assert_eq!(fetch.end(1, FillState::Whole), Ok(()));
        assert_eq!((&fetch.absent, fetch.tried()), (&vec![(13, 14), (17, 19)], vec![(13, 14), (17, 19)]));
    }

    #[test]
    fn what_was_not_asked_for_is_none_of_it() {
        let other = FillPart { id: 2, ..part(10, 12) };
        let ids = FillPart {
            columns: vec![part(10, 12).columns[0].clone(), part(10, 12).columns[0].clone()],
            ..part(10, 12)
        };
        for bad in [other, ids, part(9, 12), part(18, 20), FillPart { first: 12, last: 10, ..part(10, 12) }] {
            assert_eq!(fetch().part(bad, 100), Err(Unasked));
        }
        let mut twice = fetch();
        assert!(twice.part(part(10, 12), 100).is_ok());
        assert_eq!(twice.part(part(10, 12), 100), Err(Unasked));
        assert_eq!(fetch().part(part(10, 12), MAX_FILL_BYTES + 1), Err(Unasked), "a block has a bound");
        assert_eq!(fetch().end(7, FillState::Whole), Err(Unasked));
        assert_eq!(Fetch::default().end(0, FillState::Whole), Err(Unasked));
    }

    #[test]
    fn damaged_blocks_are_no_blocks_and_are_asked_for_once_more() {
        let mut fetch = fetch();
        let mut bad = part(10, 12);
        bad.columns[0].1.0[0] = 0xff;
        let block = fetch.part(bad, 100).ok().flatten().expect("it is whole");
        assert!(block.check().is_none());
        let falling = FillPart { times: column::encode_times(&[5, 4]), ..part(14, 15) };
        assert!(fetch.part(falling, 100).ok().flatten().expect("it is whole").check().is_none());
        fetch.refused((10, 12), true);
        assert_eq!(fetch.tried(), []);
        fetch.refused((10, 12), true);
        assert_eq!(fetch.tried(), [(10, 12)]);
    }

    #[test]
    fn an_agent_whose_blocks_are_bad_again_and_again_is_not_asked_for_more() {
        let mut fetch = Fetch { holes: vec![Hole { first: 1, last: 100, from: 0, to: 99_000 }], ..Fetch::default() };
        fetch.again = (1..MAX_BAD_BLOCKS as u64).map(|seq| (2 * seq, 2 * seq)).collect();
        assert!(fetch.is_due());
        fetch.refused((1, 1), true);
        assert!(!fetch.is_due());
    }

    #[test]
    fn a_fill_that_brings_next_to_nothing_for_a_minute_is_slow() {
        let mut fetch = fetch();
        assert!(!fetch.is_slow(Duration::from_secs(59)));
        assert!(fetch.is_slow(Duration::from_secs(60)));
        assert!(fetch.part(part(10, 12), 100 << 10).is_ok());
        assert!(!fetch.is_slow(Duration::from_secs(120)));
        assert!(!Fetch::default().is_slow(Duration::from_secs(500)));
    }

    #[test]
    fn bytes_are_made_up_for_by_time() {
        let turns = Turns::default();
        let now = Instant::now() + Duration::from_secs(9);
        turns.came(40_000_000, now);
        assert_eq!(turns.wait(now + Duration::from_secs(1)), Duration::from_secs(1));
        assert_eq!(turns.wait(now + Duration::from_secs(3)), Duration::ZERO);
    }
}
