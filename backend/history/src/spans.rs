//! The ticks of one source, combined from the records of several files.
//!
//! Files overlap: one that was started after a failure repeats part of the one before. Ticks may be missing: then there
//! are several spans. A tick is identified by its sequence and taken once.

use crate::found::{LoggedTick, TickSpan};
use shared::series::Steps;
use shared::tick::{Applied, TickState, follows, sequence};

/// The spans of a source over all files read so far.
#[derive(Default)]
pub(crate) struct Spans {
    /// Blocks in segments.
    sealed: Vec<Range>,
    spans: Vec<Growing>,
    /// The highest sequence so far, readable or not.
    last: u64,
    /// The newest readable tick: sequence and time.
    newest: (u64, i64),
}

/// Ticks with adjacent sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    first: u64,
    last: u64,
    /// There are no ticks for the sequences between the tick before and the first.
    after_gap: bool,
}

impl Range {
    fn holds(&self, seq: u64) -> bool {
        (self.first..=self.last).contains(&seq)
    }
}

/// A longer gap is not a loss. A life of the source began at a number of its own, and its first tick, which has the
/// mark, is unreadable. A million ticks of a second are twelve days.
const MAX_MISSING_TICKS: u64 = 1_000_000;

struct Growing {
    base: TickState,
    ticks: Vec<LoggedTick>,
    /// By series: whether it has a value in any of the ticks.
    present: Vec<bool>,
    /// Sequences of the ticks, ascending.
    ranges: Vec<Range>,
    /// State after the last frame; none while it is the state of a reader.
    end: Option<TickState>,
    /// Steps of all series in the frames; 0 also for those that no file has defined yet.
    steps: Vec<Steps>,
}

impl Growing {
    /// Whether a file with these steps of series can continue the span.
    fn fits(&self, steps: &[Steps]) -> bool {
        self.steps.iter().zip(steps).all(|(a, b)| a == b || *a == 0.0 || *b == 0.0)
    }

    /// Adds the definitions of a file that continues the span.
    fn learn(&mut self, steps: &[Steps]) {
        self.steps.resize(self.steps.len().max(steps.len()), 0.0);
        for (known, told) in self.steps.iter_mut().zip(steps).filter(|(_, told)| **told != 0.0) {
            *known = *told;
        }
    }

    fn finish(mut self) -> TickSpan {
        let n = self.base.steps().len();
        if self.steps[..n] == *self.base.steps() {
            self.base.extend(self.steps.split_off(n));
        } else {
            // A value without steps is a raw float in a frame, which is valid with any steps.
            let keyframe = self.base.keyframe();
            self.base = TickState::default();
            self.base.extend(self.steps);
            self.base.apply(&keyframe).expect("a keyframe of the same series");
        }
        TickSpan { base: self.base, ticks: self.ticks, present: self.present }
    }

    fn holds(&self, seq: u64) -> bool {
        self.ranges.iter().rev().any(|range| range.holds(seq))
    }

    /// Appends a tick; `state` is the one after it.
    fn push(&mut self, frame: &[u8], before: u64, clock_step: bool, state: &TickState) {
        let seq = state.seq();
        match self.ranges.last_mut() {
            Some(range) if before == range.last && seq == before + 1 => range.last = seq,
            _ => self.ranges.push(Range { first: seq, last: seq, after_gap: seq > before + 1 }),
        }
        self.present.resize(self.present.len().max(state.values().len()), false);
        self.present.iter_mut().zip(state.values()).for_each(|(present, v)| *present |= v.is_finite());
        self.ticks.push(LoggedTick { seq, before, t: state.t(), clock_step, frame: frame.to_vec() });
    }
}

/// State of reading one file.
pub(crate) struct Reading {
    steps: Vec<Steps>,
    /// None until a keyframe.
    state: Option<TickState>,
    /// The span that ends with this state.
    joined: Option<usize>,
}

/// Result of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// A tick that no other file had.
    New,
    /// A known tick.
    Known,
    /// A record before it is missing, so that its values are unknown.
    Lost,
    /// It has a valid checksum and is no matching frame: a fault of the writer.
    Misfit,
}

impl Reading {
    /// State before the first record of a file with these steps of series.
    pub(crate) fn new(steps: Vec<Steps>) -> Self {
        Reading { steps, state: None, joined: None }
    }
}

impl Spans {
    /// Adds ticks of a block in a segment; logs may still have them.
    pub(crate) fn seal(&mut self, first: u64, last: u64, after_gap: bool, to: i64) {
        self.sealed.push(Range { first, last, after_gap });
        self.meet(last);
        self.newest = self.newest.max((last, to));
    }

    fn meet(&mut self, seq: u64) {
        self.last = self.last.max(seq);
    }

    fn seen(&self, seq: u64) -> bool {
        self.spans.iter().rev().any(|span| span.holds(seq)) || self.sealed.iter().rev().any(|range| range.holds(seq))
    }

    /// Leaves the span that ends with the reader's state, because the reader continues elsewhere.
    fn leave(&mut self, reading: &mut Reading) {
        if let Some(joined) = reading.joined.take() {
            self.spans[joined].end.clone_from(&reading.state);
        }
    }

    /// Joins a span that ends with the reader's state.
    fn join(&mut self, reading: &mut Reading) {
        let Some(state) = reading.state.as_ref().filter(|_| reading.joined.is_none()) else { return };
        let goes_on =
            |span: &Growing| span.end.as_ref().is_some_and(|end| same(end, state)) && span.fits(&reading.steps);
        reading.joined = self.spans.iter().rposition(goes_on);
        if let Some(joined) = reading.joined {
            self.spans[joined].end = None;
            self.spans[joined].learn(&reading.steps);
        }
    }

    /// Applies a keyframe of a file.
    pub(crate) fn keyframe(&mut self, reading: &mut Reading, frame: &[u8]) -> Placed {
        let mut state = TickState::default();
        state.extend(reading.steps.iter().copied());
        if state.apply(frame) != Ok(Applied::Keyframe) {
            return Placed::Misfit;
        }
        self.meet(state.seq());
        if reading.state.as_ref().is_some_and(|now| same(now, &state)) {
            return Placed::Known;
        }
        self.leave(reading);
        reading.state = Some(state);
        self.join(reading);
        Placed::Known
    }

    /// Applies a tick of a file.
    pub(crate) fn tick(&mut self, reading: &mut Reading, frame: &[u8]) -> Placed {
        let (Some(seq), Some(after)) = (sequence(frame), follows(frame)) else { return Placed::Misfit };
        self.meet(seq);
        let seen = self.seen(seq);
        let unplaced = if seen { Placed::Known } else { Placed::Lost };
        let Some(now) = reading.state.as_ref() else { return unplaced };
        if seq <= now.seq() {
            return unplaced;
        }
        if after != now.seq() {
            self.leave(reading);
            reading.state = None;
            return unplaced;
        }
        if seen {
            self.leave(reading);
        } else if reading.joined.is_none() {
            let base = now.clone();
            self.spans.push(Growing {
                base,
                ticks: Vec::new(),
                present: Vec::new(),
                ranges: Vec::new(),
                end: None,
                steps: reading.steps.clone(),
            });
            reading.joined = Some(self.spans.len() - 1);
        }
        let applied = reading.state.as_mut().map(|state| (state.apply(frame), state));
        let Some((Ok(Applied::Tick { clock_step, .. }), state)) = applied else {
            // The state may be half changed: nothing can continue from it.
            (reading.state, reading.joined) = (None, None);
            self.spans.retain(|span| !span.ticks.is_empty());
            return Placed::Misfit;
        };
        match reading.joined {
            Some(joined) => self.spans[joined].push(frame, after, clock_step, state),
            None => self.join(reading),
        }
        if seen { Placed::Known } else { Placed::New }
    }

    /// Ends a file after its last record.
    pub(crate) fn end(&mut self, mut reading: Reading) {
        self.leave(&mut reading);
        self.newest = self.newest.max(reading.state.map_or((0, 0), |state| (state.seq(), state.t())));
    }

    /// Ticks that are in no file although later ones are known, also those of a log that was cut off without a trace.
    pub(crate) fn missing(&self) -> u64 {
        let spans = self.spans.iter().flat_map(|span| &span.ranges);
        let mut ranges: Vec<Range> = self.sealed.iter().chain(spans).copied().filter(|r| r.first <= r.last).collect();
        ranges.sort_unstable();
        let Some(&Range { first, .. }) = ranges.first() else { return 0 };
        let hole = |ticks: u64| if ticks <= MAX_MISSING_TICKS { ticks } else { 0 };
        let (end, missing) = ranges.into_iter().fold((first, 0), |(end, missing), range| {
            let before = if range.after_gap { 0 } else { hole(range.first.saturating_sub(end.saturating_add(1))) };
            (end.max(range.last), missing + before)
        });
        missing + hole(self.last.saturating_sub(end))
    }

    /// The spans in order of their sequences, and the state that the source continues from.
    pub(crate) fn finish(mut self) -> (Vec<TickSpan>, TickState) {
        let ends = self.spans.iter().filter_map(|span| span.end.as_ref()).map(|end| (end.seq(), end.t()));
        let (_, t) = ends.fold(self.newest, Ord::max);
        self.spans.sort_by_key(|span| span.base.seq());
        (self.spans.into_iter().map(Growing::finish).collect(), TickState::after(self.last, t))
    }
}

/// Whether frames mean the same after both states. One may have more series, which are absent in it.
fn same(a: &TickState, b: &TickState) -> bool {
    let n = a.values().len().min(b.values().len());
    let absent = |values: &[f64]| values[n..].iter().all(|v| v.is_nan());
    let equal = |(x, y): (&f64, &f64)| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    (a.seq(), a.t()) == (b.seq(), b.t())
        && a.values().iter().zip(b.values()).all(equal)
        && absent(a.values())
        && absent(b.values())
}
