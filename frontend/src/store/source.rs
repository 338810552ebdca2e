//! One machine: its series, its sealed chunks and the head of newest ticks.
//!
//! Sequences order everything. What the head holds is read from the head, older ticks from the chunks; when a chunk
//! arrives for ticks that the head holds, the head gives them up once the whole answer is there.

use shared::catalog::{Catalog, Draw, Kind};
use shared::column;
use shared::series::{SeriesDef, SeriesId};
use shared::tick::{Applied, FrameError, TickState};
use shared::wire::{self, Check, Columns};
use std::collections::{BTreeMap, VecDeque};

/// A longer head is handed back: the page asks for sealed columns in its place.
pub const LONG_HEAD: usize = 1800;

/// A stretch of ticks as it came.
pub struct Chunk {
    /// Times of its ticks, ms.
    pub times: Vec<i64>,
    /// Encoded columns by series, in order.
    pub columns: BTreeMap<SeriesId, Vec<u8>>,
}

impl Chunk {
    /// The values of a series; none when it has no sample here.
    pub fn values(&self, series: SeriesId) -> Option<Vec<f64>> {
        column::decode(self.columns.get(&series)?, self.times.len()).ok()
    }
}

/// A tick of the head.
pub struct Tick {
    /// Sequence.
    pub seq: u64,
    /// Time, ms.
    pub t: i64,
    /// Values by series; NaN is absent.
    pub values: Vec<f64>,
}

/// What a chart is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    /// Series drawn as lines.
    pub lines: Vec<SeriesId>,
    /// Series drawn as limits.
    pub limits: Vec<SeriesId>,
}

/// A machine.
pub struct Source {
    /// Name, interval, facts.
    pub info: wire::Source,
    /// Series by id.
    pub defs: Vec<SeriesDef>,
    /// How its collectors stand.
    pub checks: Vec<Check>,
    /// Charts and their series.
    pub charts: BTreeMap<String, Members>,
    /// Sealed stretches by the sequence of their first tick.
    pub chunks: BTreeMap<u64, Chunk>,
    /// Newest ticks, oldest first, without holes.
    pub head: VecDeque<Tick>,
    /// Time of the newest sample of each series, ms; 0 before the first.
    pub newest: Vec<i64>,
    /// Distance between its last two samples, ms; 0 before the second.
    pub spacing: Vec<i64>,
    /// Grows when older history arrives, so that reductions begin anew.
    pub epoch: u32,
    /// Sealed history is complete from here on, ms.
    pub loaded_from: i64,
    state: TickState,
    older: bool,
    ask_at: usize,
}

impl Source {
    /// A machine of which nothing else is known yet.
    pub fn new(info: wire::Source) -> Self {
        Source {
            info,
            defs: Vec::new(),
            checks: Vec::new(),
            charts: BTreeMap::new(),
            chunks: BTreeMap::new(),
            head: VecDeque::new(),
            newest: Vec::new(),
            spacing: Vec::new(),
            epoch: 0,
            loaded_from: i64::MAX,
            state: TickState::default(),
            older: false,
            ask_at: LONG_HEAD,
        }
    }

    /// Takes further series in; those that are known already are skipped.
    pub fn announce(&mut self, first: SeriesId, defs: Vec<SeriesDef>, catalog: &Catalog) {
        let known = self.defs.len();
        for def in defs.into_iter().skip(known.saturating_sub(first as usize)) {
            let id = self.defs.len() as SeriesId;
            let metric = catalog.metric(&def);
            self.state.extend([metric.map_or(0.0, |m| m.steps)]);
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
            self.defs.push(def);
        }
        self.newest.resize(self.defs.len(), 0);
        self.spacing.resize(self.defs.len(), 0);
    }

    /// Time between two samples of a series, ms: the source's interval, or more for what is read seldom.
    pub fn cadence(&self, series: SeriesId) -> i64 {
        let seen = self.spacing.get(series as usize).copied().unwrap_or(0);
        if (1..=120_000).contains(&seen) { seen.max(self.info.interval) } else { self.info.interval }
    }

    /// Sequence of the newest tick.
    pub fn last_seq(&self) -> Option<u64> {
        self.head
            .back()
            .map(|t| t.seq)
            .or_else(|| self.chunks.last_key_value().map(|(s, c)| s + c.times.len() as u64 - 1))
    }

    /// Time of the newest tick, ms.
    pub fn last_t(&self) -> Option<i64> {
        let sealed = || self.chunks.last_key_value().and_then(|(_, c)| c.times.last().copied());
        self.head.back().map(|t| t.t).or_else(sealed)
    }

    /// Time of the oldest tick held, ms.
    pub fn first_t(&self) -> Option<i64> {
        let sealed = self.chunks.first_key_value().and_then(|(_, c)| c.times.first().copied());
        sealed.or_else(|| self.head.front().map(|t| t.t))
    }

    /// Applies a frame; true when it was a tick.
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

    /// Keeps a stretch of history; several messages may bring the columns of one stretch.
    pub fn keep(&mut self, message: Columns) {
        let ticks = message.ticks as usize;
        let Ok(times) = column::decode_times(&message.times, ticks) else { return };
        let Some(&last) = times.last() else { return };
        let end = message.first_seq + ticks as u64;
        let covered = self.head.front().is_some_and(|t| t.seq < end) || self.chunks.contains_key(&message.first_seq);
        self.older |= !covered;
        for (id, _) in &message.columns {
            if let Some(newest) = self.newest.get_mut(*id as usize) {
                *newest = (*newest).max(last);
            }
        }
        let chunk = self.chunks.entry(message.first_seq).or_insert_with(|| Chunk { times, columns: BTreeMap::new() });
        chunk.columns.extend(message.columns.into_iter().map(|(id, bytes)| (id, bytes.0)));
    }

    /// An answer is complete; true when it brought something that is older than what was held.
    pub fn history_end(&mut self, from: i64) -> bool {
        self.loaded_from = self.loaded_from.min(from);
        let sealed = self.chunks.last_key_value().map_or(0, |(s, c)| s + c.times.len() as u64);
        // The newest tick stays, so that the head always knows where the stream stands.
        while self.head.len() > 1 && self.head.front().is_some_and(|t| t.seq < sealed) {
            self.head.pop_front();
        }
        self.ask_at = LONG_HEAD.max(self.head.len() + 300);
        let older = std::mem::take(&mut self.older);
        self.epoch += u32::from(older);
        older
    }

    /// The span of the head for which sealed columns should be asked now.
    pub fn hand_back(&mut self) -> Option<(i64, i64)> {
        if self.head.len() < self.ask_at {
            return None;
        }
        self.ask_at = self.head.len() + 300;
        Some((self.head.front()?.t, self.head.back()?.t))
    }

    /// Drops chunks that are older than `keep` ms, and one more is kept for the line that reaches into view.
    pub fn forget(&mut self, keep: i64) {
        let Some(limit) = self.last_t().map(|t| t - keep - 900_000) else { return };
        while self.chunks.first_key_value().is_some_and(|(_, c)| c.times.last().is_some_and(|t| *t < limit)) {
            self.chunks.pop_first();
        }
    }

    /// Calls `each` with time and value (as sampled; NaN is absent) of every tick after sequence `after` whose time is
    /// at least `from`, oldest first. Answers with the sequence of the newest tick.
    pub fn samples(&self, series: SeriesId, after: u64, from: i64, mut each: impl FnMut(i64, f64)) -> u64 {
        let head = self.head.front().map_or(u64::MAX, |t| t.seq);
        let mut last = after;
        for (first, chunk) in &self.chunks {
            let ticks = (chunk.times.len() as u64).min(head.saturating_sub(*first)) as usize;
            let skip = (after + 1).saturating_sub(*first) as usize;
            let start = skip.max(chunk.times.partition_point(|t| *t < from));
            last = last.max((first + ticks as u64).saturating_sub(1));
            if start >= ticks {
                continue;
            }
            let values = chunk.values(series);
            for i in start..ticks {
                each(chunk.times[i], values.as_ref().map_or(f64::NAN, |v| v[i]));
            }
        }
        let skip = if head == u64::MAX { 0 } else { (after + 1).saturating_sub(head) as usize };
        for tick in self.head.iter().skip(skip) {
            if tick.t >= from {
                each(tick.t, tick.values.get(series as usize).copied().unwrap_or(f64::NAN));
            }
            last = tick.seq;
        }
        last
    }

    /// Whether a metric's values are drawn as a rate.
    pub fn is_counter(&self, series: SeriesId, catalog: &Catalog) -> bool {
        self.defs.get(series as usize).and_then(|d| catalog.metric(d)).is_some_and(|m| m.kind == Kind::Counter)
    }
}
