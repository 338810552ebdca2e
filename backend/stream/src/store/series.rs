//! The series of one source by id: those alive, those with history alone, and the free ids.
//!
//! A series is *alive* while it had a value within as many ticks as the head holds. A series that is not alive, and has
//! no stored data, is dropped. Its id is unused until the next cut, and can then be assigned to a new series. So no log
//! file and no page can mistake one series for the other.

use shared::series::{SeriesDef, SeriesId};
use std::collections::{HashMap, VecDeque};

/// Maximum number of series of one source that are alive or have history. Readers of logs reject ids from 2^20 on.
pub const MAX_STORED_SERIES: usize = 1_000_000;

/// The row of unused ids.
pub const NO_ROW: u16 = u16::MAX;

/// State of the series of a source.
#[derive(Default)]
pub struct Series {
    defs: Vec<SeriesDef>,
    ids: HashMap<SeriesDef, SeriesId>,
    /// Times of the first and last sample.
    spans: Vec<Option<(i64, i64)>>,
    /// Number of ticks at the newest value; 0 before the first value since the start.
    heard: Vec<u64>,
    /// The newest value, and its distance in ticks from the one before; 0 for the first since the start.
    latest: Vec<(f64, u32)>,
    /// Number of times that the id was dropped.
    generations: Vec<u32>,
    /// Ids for the series that come next, the lowest last.
    free: Vec<SeriesId>,
    /// Ids dropped at the newest cut.
    resting: Vec<SeriesId>,
    /// Redefined ids, and the newest tick then.
    renamed: VecDeque<(u64, SeriesId)>,
    /// `renamed` is complete for a reader that knew all ids at this tick.
    complete_from: u64,
    /// Number of alive series, and the number of ticks at that count.
    counted: Option<(u64, usize)>,
}

impl Series {
    /// By id; ids without a row are unused.
    pub fn defs(&self) -> &[SeriesDef] {
        &self.defs
    }

    /// The id of a known series.
    pub fn id(&self, def: &SeriesDef) -> Option<SeriesId> {
        self.ids.get(def).copied()
    }

    /// Number of times that each id was dropped. A holder of an id stores this number with it.
    pub fn generations(&self) -> &[u32] {
        &self.generations
    }

    /// Times of the first and last sample of a series.
    pub fn span(&self, id: SeriesId) -> Option<(i64, i64)> {
        *self.spans.get(id as usize)?
    }

    /// Whether one more series fits after `ticks`, with at most `most` alive. A series without a value in `idle` ticks
    /// is not alive.
    pub fn room(&mut self, ticks: u64, idle: u64, most: usize) -> bool {
        if self.free.is_empty() && self.defs.len() >= MAX_STORED_SERIES {
            return false;
        }
        // Counting is slow, so it is done at most once a tick.
        self.ids.len() < most || self.counted(ticks, idle) < most
    }

    fn counted(&mut self, ticks: u64, idle: u64) -> usize {
        if self.counted.is_none_or(|(at, _)| at != ticks) {
            self.counted = Some((ticks, self.alive(ticks, idle)));
        }
        self.counted.map_or(0, |(_, alive)| alive)
    }

    /// Number of alive series after `ticks`.
    pub fn alive(&self, ticks: u64, idle: u64) -> usize {
        self.heard.iter().filter(|heard| lives(**heard, ticks, idle)).count()
    }

    /// Number of series that are alive or have history.
    pub fn stored(&self) -> usize {
        self.ids.len()
    }

    /// Adds a series after the tick of sequence `seq`, and after `ticks`; returns its id, and whether the id is reused.
    pub fn add(&mut self, def: SeriesDef, seq: u64, ticks: u64) -> (SeriesId, bool) {
        let reused = self.free.pop();
        let id = reused.unwrap_or_else(|| self.extend());
        self.heard[id as usize] = ticks.max(1);
        self.name(id, def);
        if let Some((_, alive)) = &mut self.counted {
            *alive += 1;
        }
        if reused.is_some() {
            self.renamed.push_back((seq, id));
        }
        (id, reused.is_some())
    }

    /// Restores a series, or with none an unused id. That id is free if all files are `sound`: an unreadable file may
    /// still use it.
    pub fn restore(&mut self, def: Option<SeriesDef>, sound: bool) {
        let id = self.extend();
        match def {
            Some(def) => self.name(id, def),
            None if sound => self.resting.push(id),
            None => {}
        }
    }

    fn extend(&mut self) -> SeriesId {
        let id = self.defs.len() as SeriesId;
        self.defs.push(SeriesDef { metric: NO_ROW, instance: String::new() });
        self.spans.push(None);
        self.heard.push(0);
        self.latest.push((f64::NAN, 0));
        self.generations.push(0);
        id
    }

    fn name(&mut self, id: SeriesId, def: SeriesDef) {
        if def.metric != NO_ROW {
            self.ids.insert(def.clone(), id);
        }
        self.defs[id as usize] = def;
    }

    /// Notes samples of a series between these times.
    pub fn seen(&mut self, id: SeriesId, from: i64, to: i64) {
        if let Some(span) = self.spans.get_mut(id as usize) {
            // The clock may have been set back: earlier stamps stay within.
            *span = Some(span.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
        }
    }

    /// Notes a value of a series in the newest tick, which is number `ticks`.
    pub fn note_value(&mut self, id: SeriesId, t: i64, ticks: u64, value: f64) {
        self.seen(id, t, t);
        if let (Some(heard), Some(latest)) = (self.heard.get_mut(id as usize), self.latest.get_mut(id as usize)) {
            let gap = if *heard == 0 { 0 } else { ticks.saturating_sub(*heard) };
            *latest = (value, u32::try_from(gap).unwrap_or(u32::MAX));
            *heard = ticks;
        }
    }

    /// The newest value of a series after `ticks`, while it is current. It is current for twice the distance, in ticks,
    /// between it and the value before. So a series read less often than each tick keeps its value in between.
    pub fn current(&self, id: SeriesId, ticks: u64) -> Option<f64> {
        let (heard, (value, gap)) = (*self.heard.get(id as usize)?, *self.latest.get(id as usize)?);
        (heard > 0 && ticks.saturating_sub(heard) <= 2 * u64::from(gap.max(1))).then_some(value)
    }

    /// Drops series at a cut, after the tick of sequence `seq` and after `ticks`. A dropped series is not alive, ends
    /// before `oldest`, the time of the oldest stored tick, and has `left` return false. Ids dropped at the last cut
    /// become free.
    pub fn let_go(&mut self, (seq, ticks): (u64, u64), idle: u64, oldest: i64, left: impl Fn(SeriesId) -> bool) {
        self.free.append(&mut self.resting);
        // The last one stays: a log derives their number from it.
        for at in 0..self.defs.len().saturating_sub(1) {
            let id = at as SeriesId;
            let gone = self.defs[at].metric != NO_ROW
                && !lives(self.heard[at], ticks, idle)
                && self.spans[at].is_none_or(|(_, last)| last < oldest)
                && !left(id);
            if gone {
                let nothing = SeriesDef { metric: NO_ROW, instance: String::new() };
                self.ids.remove(&std::mem::replace(&mut self.defs[at], nothing));
                (self.spans[at], self.heard[at], self.latest[at]) = (None, 0, (f64::NAN, 0));
                self.generations[at] = self.generations[at].wrapping_add(1);
                self.resting.push(id);
                self.renamed.push_back((seq, id));
            }
        }
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Drops redefinitions up to this tick that no reader needs.
    pub fn forget_renamed(&mut self, seq: u64) {
        while self.renamed.front().is_some_and(|(at, _)| *at < seq) {
            self.renamed.pop_front();
        }
        self.complete_from = self.complete_from.max(seq);
    }

    /// Ids that may be redefined since a reader knew all at this tick, in order; none if that is not known any more.
    pub fn renamed(&self, since: u64) -> Option<Vec<SeriesId>> {
        if since < self.complete_from {
            return None;
        }
        let later = self.renamed.iter().rev().take_while(|(at, _)| *at >= since);
        let mut ids: Vec<SeriesId> = later.map(|(_, id)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        Some(ids)
    }
}

fn lives(heard: u64, ticks: u64, idle: u64) -> bool {
    heard > 0 && ticks.saturating_sub(heard) < idle
}
