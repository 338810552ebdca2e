//! One machine: its series, its sealed chunks, and the head of newest ticks.
//!
//! Ticks are ordered by their sequence numbers. Ticks in the head are read from it, older ones from the chunks. The
//! server merges its chunks by the hour, so an answer may contain ticks that the head or smaller chunks already have.
//! These copies are dropped when the whole answer has arrived. A tick that is in two chunks is read from the first.

use super::days::Days;
use super::spans::Spans;
use shared::catalog::{Catalog, Draw, Kind};
use shared::column;
use shared::series::{SeriesDef, SeriesId};
use shared::tick::{Applied, FrameError, TickState};
use shared::window::MAX_SAMPLES_SPAN_MS;
use shared::wire::{self, Check, Columns};
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ops::Range;

/// Number of ticks from which on the head is replaced: the page requests sealed columns for it.
pub const MAX_HEAD_TICKS: usize = 1800;

/// Bytes of sealed ticks above which those far from the viewed span are dropped: ten hours of 8 GPUs, or two hours of
/// 64. They are requested again when a person returns to them.
const MAX_HELD_BYTES: usize = 40 << 20;
/// The newest ticks, in ms, are kept regardless of their size.
const MIN_HELD_MS: i64 = 1_800_000;

/// A stretch of ticks in the form in which it arrived.
pub struct Chunk {
    /// Sequence of the last tick. A chunk has fewer ticks than sequence numbers if ticks were lost, and more if samples
    /// arrived late.
    pub last_seq: u64,
    /// Times of the ticks, ms since the epoch.
    pub times: Vec<i64>,
    /// Encoded columns by series.
    pub columns: BTreeMap<SeriesId, Vec<u8>>,
    /// Memory of times and values in bytes, once the chunk is complete.
    bytes: usize,
}

impl Chunk {
    /// Time of the first and the last tick, ms since the epoch.
    fn span(&self) -> (i64, i64) {
        (self.times.first().copied().unwrap_or(0), self.times.last().copied().unwrap_or(0))
    }

    /// The values of a series at each tick; None when it has no sample in the chunk.
    pub fn values(&self, series: SeriesId) -> Option<Vec<f64>> {
        column::decode(self.columns.get(&series)?, self.times.len()).ok()
    }

    /// Positions of the ticks to read from this chunk. Ticks up to sequence `before` were already read, and those from
    /// `head` on are in the head. `first` is the sequence of the chunk's first tick. If the numbers of ticks and
    /// sequences differ, times are compared.
    pub fn own(&self, first: u64, before: u64, head: Option<&Tick>) -> Range<usize> {
        let whole = self.last_seq - first + 1 == self.times.len() as u64;
        let skip = (before + 1).saturating_sub(first);
        let start = match whole {
            true => skip.min(self.times.len() as u64) as usize,
            false if before >= self.last_seq => self.times.len(),
            false => 0,
        };
        let end = match head {
            Some(head) if whole => (head.seq.saturating_sub(first)).min(self.times.len() as u64) as usize,
            Some(head) if head.seq <= self.last_seq => self.times.partition_point(|t| *t < head.t),
            _ => self.times.len(),
        };
        start..end.max(start)
    }
}

/// A tick of the head.
pub struct Tick {
    /// Sequence number of the tick.
    pub seq: u64,
    /// Time of the tick, ms since the epoch.
    pub t: i64,
    /// Values by series; NaN is absent.
    pub values: Vec<f64>,
}

/// The series of a chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    /// Series drawn as lines.
    pub lines: Vec<SeriesId>,
    /// Series drawn as limits.
    pub limits: Vec<SeriesId>,
}

/// A machine.
pub struct Source {
    /// Name, interval and facts of the machine.
    pub info: wire::Source,
    /// Series by id.
    pub defs: Vec<SeriesDef>,
    /// State of each check of the machine's collectors.
    pub checks: Vec<Check>,
    /// Charts by id, with their series.
    pub charts: BTreeMap<String, Members>,
    /// Sealed stretches by the sequence of their first tick.
    pub chunks: BTreeMap<u64, Chunk>,
    /// Newest ticks, oldest first, without holes.
    pub head: VecDeque<Tick>,
    /// Time of the newest sample of each series, ms since the epoch; 0 before the first.
    pub newest: Vec<i64>,
    /// Time between the last two samples of each series in ms; 0 before the second.
    pub spacing: Vec<i64>,
    /// Grows when older history arrives, so that reductions start again.
    pub epoch: u32,
    /// Spans for which the samples are complete.
    pub loaded: Spans,
    /// Whether the answer to the opening is complete.
    pub opened: bool,
    /// Days as minutes; empty until a window needs them.
    pub days: Days,
    /// Ticks after this time are not read, ms since the epoch. A recording sets it to its clock.
    pub until: i64,
    state: TickState,
    /// The parts of an answer that have arrived so far, by first and last sequence.
    arriving: BTreeMap<(u64, u64), Chunk>,
    ask_at: usize,
    /// The viewed span, ms since the epoch. Its samples are not dropped. Samples within half a day of it are dropped
    /// only if they are many.
    looked: (i64, i64),
}

impl Source {
    /// Makes a machine without series and ticks.
    pub fn new(info: wire::Source) -> Self {
        Source {
            info,
            defs: Vec::new(),
            checks: Vec::new(),
            charts: BTreeMap::default(),
            chunks: BTreeMap::default(),
            head: VecDeque::new(),
            newest: Vec::new(),
            spacing: Vec::new(),
            epoch: 0,
            loaded: Spans::default(),
            opened: false,
            days: Days::default(),
            until: i64::MAX,
            state: TickState::default(),
            arriving: BTreeMap::default(),
            ask_at: MAX_HEAD_TICKS,
            looked: (i64::MAX, i64::MIN),
        }
    }

    /// Adds series from id `first` on. Known series are skipped. A series that replaces another under its id first
    /// drops the values of the other.
    pub fn announce(&mut self, first: SeriesId, defs: Vec<SeriesDef>, catalog: &Catalog) {
        for (id, def) in (first..).zip(defs) {
            let metric = catalog.metric(&def);
            let steps = metric.map_or(0.0, |m| m.steps);
            match self.defs.get_mut(id as usize) {
                Some(known) if *known == def => continue,
                Some(known) => {
                    *known = def;
                    self.state.redefine(id, steps);
                    self.forget_series(id);
                }
                None => {
                    self.state.extend([steps]);
                    self.defs.push(def);
                }
            }
            if let Some(m) = metric.filter(|m| !m.chart.is_empty()) {
                let members = match m.draw {
                    Draw::Line => Some(&mut self.charts.entry(m.chart.clone()).or_default().lines),
                    Draw::Limit => Some(&mut self.charts.entry(m.chart.clone()).or_default().limits),
                    Draw::Hidden => None,
                };
                if let Some(list) = members {
                    list.push(id);
                }
            }
        }
        self.newest.resize(self.defs.len(), 0);
        self.spacing.resize(self.defs.len(), 0);
    }

    /// Drops all values of a series, and removes it from its charts.
    fn forget_series(&mut self, id: SeriesId) {
        for members in self.charts.values_mut() {
            members.lines.retain(|line| *line != id);
            members.limits.retain(|limit| *limit != id);
        }
        self.charts.retain(|_, members| !members.lines.is_empty() || !members.limits.is_empty());
        let at = id as usize;
        self.head.iter_mut().filter_map(|tick| tick.values.get_mut(at)).for_each(|v| *v = f64::NAN);
        for chunk in self.chunks.values_mut().chain(self.arriving.values_mut()) {
            chunk.columns.retain(|series, _| *series != id);
        }
        self.days.forget_series(id);
        for known in [&mut self.newest, &mut self.spacing] {
            known.get_mut(at).into_iter().for_each(|known| *known = 0);
        }
        self.epoch += 1;
    }

    /// Time in ms between two samples of a series: the interval of the source, or more for a series that is read
    /// seldom.
    pub fn cadence(&self, series: SeriesId) -> i64 {
        let seen = self.spacing.get(series as usize).copied().unwrap_or(0);
        if (1..=120_000).contains(&seen) { seen.max(self.info.interval) } else { self.info.interval }
    }

    /// Sequence of the newest tick; None before the first.
    pub fn last_seq(&self) -> Option<u64> {
        self.head.back().map(|t| t.seq).or_else(|| self.chunks.values().map(|c| c.last_seq).max())
    }

    /// Time of the newest tick, ms since the epoch; None before the first.
    pub fn last_t(&self) -> Option<i64> {
        let sealed = || self.chunks.last_key_value().and_then(|(_, c)| c.times.last().copied());
        self.head.back().map(|t| t.t).or_else(sealed)
    }

    /// Time of the oldest stored tick, ms since the epoch; None before the first.
    pub fn first_t(&self) -> Option<i64> {
        let sealed = self.chunks.first_key_value().and_then(|(_, c)| c.times.first().copied());
        sealed.or_else(|| self.head.front().map(|t| t.t))
    }

    /// Time of the machine's first measurement, if it is between two instants and the server has nothing older; ms
    /// since the epoch.
    pub fn begins_within(&self, from: i64, to: i64) -> Option<i64> {
        let first = self.first_t().filter(|first| (from + 1..=to).contains(first))?;
        self.has_all(from, first, (from, to)).then_some(first)
    }

    /// Applies a frame of the stream; true when it was a tick. An error means that frames are missing or invalid.
    pub fn apply(&mut self, frame: &[u8]) -> Result<bool, FrameError> {
        match self.state.apply(frame)? {
            Applied::Keyframe => Ok(false),
            Applied::Tick { .. } => {
                let (t, seq) = (self.state.t(), self.state.seq());
                for (i, v) in self.state.values().iter().enumerate() {
                    if v.is_finite() {
                        if self.newest[i] > 0 {
                            self.spacing[i] = t - self.newest[i];
                        }
                        self.newest[i] = t;
                    }
                }
                self.head.push_back(Tick { seq, t, values: self.state.values().to_vec() });
                Ok(true)
            }
        }
    }

    /// Adds a part of an answer. Several messages may contain the columns of one stretch. The stretch is used once the
    /// answer is complete.
    pub fn keep(&mut self, message: Columns) {
        let Ok(times) = column::decode_times(&message.times, message.ticks as usize) else { return };
        let Some(&last) = times.last() else { return };
        let (first_seq, last_seq) = (message.first_seq, message.last_seq);
        if first_seq == 0 || last_seq < first_seq {
            return;
        }
        for (id, _) in &message.columns {
            if let Some(newest) = self.newest.get_mut(*id as usize) {
                *newest = (*newest).max(last);
            }
        }
        let begun = || Chunk { last_seq, times, columns: BTreeMap::default(), bytes: 0 };
        let chunk = self.arriving.entry((first_seq, last_seq)).or_insert_with(begun);
        chunk.columns.extend(message.columns.into_iter().map(|(id, bytes)| (id, bytes.0)));
    }

    /// Marks the span from `from` to `to` (ms since the epoch) as complete. Returns true when that was not known, or when
    /// its stretches contained new ticks.
    pub fn history_end(&mut self, from: i64, to: i64) -> bool {
        let new = self.loaded.missing((from, to)).is_some();
        self.loaded.add((from, to));
        let mut older = false;
        for ((first, last), mut chunk) in std::mem::take(&mut self.arriving) {
            older |= !self.holds(first, last);
            if self.chunks.range(..=first).any(|(_, held)| held.last_seq > last) {
                // The ticks are part of a stored hour.
                continue;
            }
            self.chunks.retain(|from, held| *from < first || held.last_seq > last);
            chunk.bytes = chunk.times.len() * size_of::<i64>() + chunk.columns.values().map(Vec::len).sum::<usize>();
            self.chunks.insert(first, chunk);
        }
        let sealed = self.chunks.values().map(|c| c.last_seq).max().unwrap_or(0);
        // The newest tick stays, so that the head always has the position in the stream.
        while self.head.len() > 1 && self.head.front().is_some_and(|t| t.seq <= sealed) {
            self.head.pop_front();
        }
        self.ask_at = MAX_HEAD_TICKS.max(self.head.len() + 300);
        self.epoch += u32::from(older);
        self.learn_spacing();
        older || new
    }

    /// Derives the sample spacing from chunks, for series of which the head has at most one sample.
    fn learn_spacing(&mut self) {
        for id in 0..self.spacing.len() {
            let series = id as SeriesId;
            let Some(chunk) = self.chunks.values().rev().find(|c| c.columns.contains_key(&series)) else { continue };
            if self.spacing[id] > 0 {
                continue;
            }
            let begin = self.head.front().map_or(i64::MAX, |tick| tick.t);
            let values = chunk.values(series).unwrap_or_default();
            let held = chunk.times.iter().zip(values).filter(|(t, v)| **t < begin && v.is_finite()).map(|(t, _)| *t);
            let of = |tick: &Tick| tick.values.get(id).is_some_and(|v| v.is_finite()).then_some(tick.t);
            let times: Vec<i64> = held.chain(self.head.iter().filter_map(of)).collect();
            if let [.., before, last] = times[..] {
                (self.newest[id], self.spacing[id]) = (last, last - before);
            }
        }
    }

    /// True when every tick from sequence `first` to `last` is stored, in chunks or in the head.
    fn holds(&self, first: u64, last: u64) -> bool {
        let mut next = first;
        for (from, chunk) in self.chunks.iter() {
            if *from <= next {
                next = next.max(chunk.last_seq + 1);
            }
        }
        next > last || self.head.front().is_some_and(|t| t.seq <= next)
    }

    /// The span of the head when sealed columns should replace it, else None; ms since the epoch.
    pub fn hand_back(&mut self) -> Option<(i64, i64)> {
        if self.head.len() < self.ask_at {
            return None;
        }
        self.ask_at = self.head.len() + 300;
        Some((self.head.front()?.t, self.head.back()?.t))
    }

    /// The span of samples to request, so that `spans` (the present view) are complete; None if they are.
    pub fn ask(&mut self, spans: &[(i64, i64)]) -> Option<(i64, i64)> {
        let from = spans.iter().map(|s| s.0).min()?;
        let to = spans.iter().map(|s| s.1).max()?;
        self.looked = (from, to);
        if !self.opened {
            return None; // The first answer is still on its way.
        }
        spans.iter().find_map(|span| self.loaded.missing(*span))
    }

    /// The span of minutes to request, so that all from `from` on are available; None if they are. `newest` is the time
    /// of the newest tick.
    pub fn ask_days(&mut self, from: i64, newest: i64) -> Option<(i64, i64)> {
        if self.opened { self.days.ask(from, newest) } else { None }
    }

    /// True when a span is so long that it is drawn from minutes, and there are minutes.
    pub fn in_days(&self, (from, to): (i64, i64)) -> bool {
        to - from > MAX_SAMPLES_SPAN_MS && !self.days.is_empty()
    }

    /// True when all server data between two instants (ms since the epoch) are stored, in the form in which `span` is
    /// drawn.
    pub fn has_all(&self, from: i64, to: i64, span: (i64, i64)) -> bool {
        if self.in_days(span) { self.days.has_from(from) } else { self.loaded.missing((from, to)).is_none() }
    }

    /// Drops samples older than `keep` ms, or than half a day if that is less, except near the viewed spans. If the
    /// stored data are large, the oldest outside of the view are dropped. Drops minutes older than `keep` and an hour.
    pub fn forget(&mut self, keep: i64) {
        self.forget_beyond(keep, MAX_HELD_BYTES);
    }

    /// Does the same with another limit for the stored data, in bytes.
    pub(super) fn forget_beyond(&mut self, keep: i64, most: usize) {
        let Some(last) = self.last_t() else { return };
        let (from, to) = self.looked;
        let around = |ms: i64| (from.saturating_sub(ms), to.saturating_add(ms));
        // Samples within half a day are kept, so that a person can move around.
        self.drop_before(last - keep.min(MAX_SAMPLES_SPAN_MS) - 900_000, around(MAX_SAMPLES_SPAN_MS));
        let mut held: usize = self.chunks.values().map(|c| c.bytes).sum();
        let old = self.chunks.values().take_while(|c| {
            let many = held > most && c.span().1 < last - MIN_HELD_MS;
            held -= c.bytes;
            many
        });
        if let Some((_, end)) = old.last().map(Chunk::span) {
            // Changes are computed from the previous span, so that stays.
            self.drop_before(end + 1, around(to.saturating_sub(from)));
        }
        self.days.forget(last - keep - 3_600_000);
    }

    /// Drops the stretches that end before `limit` and are outside of a span; times are ms since the epoch.
    fn drop_before(&mut self, limit: i64, (from, to): (i64, i64)) {
        let outside = |c: &Chunk| {
            let (first, end) = c.span();
            end < limit && (end < from || first > to)
        };
        if self.chunks.values().any(outside) {
            self.chunks.retain(|_, c| !outside(c));
            self.loaded.keep([(from, to), (limit, i64::MAX)]);
        }
    }

    /// Calls `each` with time and value of every tick after sequence `after`, oldest first. Values are as sampled; NaN
    /// is absent. Returns the last sequence that was read, from which the next call can continue. Chunks outside of the
    /// span are not decoded. The head is read to its end, and so are chunks after which the clock was set back.
    pub fn samples(&self, series: SeriesId, after: u64, span: (i64, i64), mut each: impl FnMut(i64, f64)) -> u64 {
        self.runs(series, after, span, &mut |times, values| times.iter().zip(values).for_each(|(t, v)| each(*t, *v)))
    }

    /// Does the same as [`samples`](Self::samples), with many ticks in one call of `each`.
    pub fn runs(
        &self,
        series: SeriesId,
        after: u64,
        (from, to): (i64, i64),
        each: &mut dyn FnMut(&[i64], &[f64]),
    ) -> u64 {
        let mut last = after;
        let head = self.head.front();
        let mut chunks = self.chunks.iter();
        while let Some((first, chunk)) = chunks.next() {
            let own = chunk.own(*first, last, head);
            let start = own.start.max(chunk.times.partition_point(|t| *t < from));
            let whole = chunk.last_seq - first + 1 == chunk.times.len() as u64;
            let mut reached = chunk.times.partition_point(|t| *t <= to);
            let back = || {
                let mut begins = chunks.clone().filter_map(|(_, c)| c.times.first().copied()).chain(head.map(|t| t.t));
                begins.any(|t| t <= to)
            };
            // If the numbers of ticks and sequences differ, reading cannot stop in the middle of a chunk.
            if reached < chunk.times.len() && (reached > 0 && !whole || back()) {
                reached = chunk.times.len();
            }
            reached = reached.min(chunk.times.partition_point(|t| *t <= self.until));
            let end = own.end.min(reached);
            let newest = if reached < chunk.times.len() { (first + reached as u64).max(1) - 1 } else { chunk.last_seq };
            last = last.max(newest.min(head.map_or(u64::MAX, |t| t.seq - 1)));
            if start < end {
                let values = chunk.values(series).unwrap_or_else(|| vec![f64::NAN; chunk.times.len()]);
                each(&chunk.times[start..end], &values[start..end]);
            }
            if reached < chunk.times.len() {
                return last;
            }
        }
        // Sequences of the head may have gaps.
        let skip = self.head.partition_point(|tick| tick.seq <= after);
        for tick in self.head.iter().skip(skip) {
            if tick.t >= from {
                each(&[tick.t], &[tick.values.get(series as usize).copied().unwrap_or(f64::NAN)]);
            }
            last = tick.seq;
        }
        last
    }

    /// True when no clock was set back, so that later sequences have later times.
    pub fn in_order(&self) -> bool {
        let ends = |c: &Chunk| c.times.first().copied().zip(c.times.last().copied());
        let head = self.head.front().map(|t| (t.t, i64::MAX));
        let all: Vec<(i64, i64)> = self.chunks.values().filter_map(ends).chain(head).collect();
        // Chunks may share ticks with each other and with the head.
        all.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1)
    }

    /// Time of the last stored sample of a series before `t`; ms since the epoch.
    pub fn last_before(&self, series: SeriesId, t: i64) -> Option<i64> {
        let here = |tick: &&Tick| tick.t < t && tick.values.get(series as usize).is_some_and(|v| v.is_finite());
        let mut found = self.head.iter().rev().find(here).map(|tick| tick.t);
        for chunk in self.chunks.values().rev().filter(|c| c.times.first().is_some_and(|first| *first < t)) {
            if found.is_some_and(|at| chunk.times.last().is_none_or(|last| *last <= at)) {
                break;
            }
            let before = chunk.times.partition_point(|at| *at < t);
            let values = chunk.values(series).unwrap_or_default();
            let place = values.iter().take(before).rposition(|v| v.is_finite());
            found = found.max(place.map(|i| chunk.times[i]));
        }
        found
    }

    /// True when the series is a counter, which is drawn as a rate.
    pub fn is_counter(&self, series: SeriesId, catalog: &Catalog) -> bool {
        self.defs.get(series as usize).and_then(|d| catalog.metric(d)).is_some_and(|m| m.kind == Kind::Counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUARTER: i64 = 900;

    /// Two hours of ticks at 1 Hz in quarters of an hour, from the instant 0 on.
    fn two_hours() -> Source {
        let mut source = Source::new(wire::Source::new(0, "here".into(), 1000, Vec::new()));
        for quarter in 0..8 {
            let times: Vec<i64> = (quarter * QUARTER..(quarter + 1) * QUARTER).map(|s| s * 1_000).collect();
            source.keep(Columns {
                source: 0,
                first_seq: (quarter * QUARTER) as u64 + 1,
                last_seq: ((quarter + 1) * QUARTER) as u64,
                ticks: QUARTER as u32,
                times: column::encode_times(&times),
                columns: Vec::new(),
            });
        }
        source.history_end(0, i64::MAX);
        source.opened = true;
        source
    }

    #[test]
    fn how_often_a_series_is_read_is_learned_from_what_was_before_the_head() {
        let mut source = two_hours();
        source.defs = vec![SeriesDef { metric: 0, instance: String::new() }; 2];
        (source.newest, source.spacing) = (vec![0; 2], vec![0; 2]);
        source.state.extend([1.0; 2]);
        let seldom: Vec<f64> = (0..QUARTER).map(|s| if s % 60 == 0 { 1.0 } else { f64::NAN }).collect();
        let times: Vec<i64> = (8 * QUARTER..9 * QUARTER).map(|s| s * 1_000).collect();
        source.keep(Columns {
            source: 0,
            first_seq: 8 * QUARTER as u64 + 1,
            last_seq: 9 * QUARTER as u64,
            ticks: QUARTER as u32,
            times: column::encode_times(&times),
            columns: vec![(0, wire::ColumnBytes(column::encode(&seldom, 1.0)))],
        });
        let mut server = TickState::after(9 * QUARTER as u64, 9 * QUARTER * 1_000 - 1_000);
        server.extend([1.0; 2]);
        source.apply(&server.keyframe()).expect("a keyframe");
        source.apply(&server.encode(9 * QUARTER * 1_000, false, &[f64::NAN, 3.0])).expect("a tick");
        source.history_end(0, i64::MAX);
        assert_eq!((source.newest[0], source.cadence(0)), ((9 * QUARTER - 60) * 1_000, 60_000));
        assert_eq!(source.cadence(1), 1_000, "of this one nothing is known");
    }

    #[test]
    fn where_much_is_held_what_nobody_looks_at_goes_first_and_is_asked_for_again() {
        let most = 2 * QUARTER as usize * size_of::<i64>();
        let begins = |source: &Source| source.chunks.values().map(|c| c.span().0 / 1_000 / QUARTER).collect::<Vec<_>>();
        let mut source = two_hours();
        source.forget_beyond(MAX_SAMPLES_SPAN_MS, usize::MAX);
        assert_eq!(source.chunks.len(), 8);
        assert_eq!(source.ask(&[(6_900_000, 7_200_000)]), None);
        source.forget_beyond(MAX_SAMPLES_SPAN_MS, most);
        assert_eq!(begins(&source), [5, 6, 7], "the last half hour is held");
        assert_eq!(source.ask(&[(1_000_000, 7_200_000)]), Some((1_000_000, 4_499_000)));
        let mut source = two_hours();
        source.ask(&[(1_000_000, 1_300_000)]);
        source.forget_beyond(MAX_SAMPLES_SPAN_MS, most);
        assert_eq!(begins(&source), [0, 1, 5, 6, 7], "what is looked at stays, and as much beside it");
        assert_eq!(source.ask(&[(1_000_000, 1_300_000)]), None);
    }
}
