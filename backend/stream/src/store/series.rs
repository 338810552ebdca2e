//! The series of one source by id: those that are alive, those of which only history is left, and the ids that are free.
//!
//! A series is *alive* while it had a value within as many ticks as the head holds. One that is not, and of which nothing
//! is kept any more, is let go: its id stands for nothing until the next cut, so that no log file and no page can take one
//! series for the other, and then for the next series that comes.

use shared::series::{SeriesDef, SeriesId};
use std::collections::{HashMap, VecDeque};

/// Series of one source that are alive or have history. What reads logs believes no id from 2^20 on.
pub const MAX_STORED_SERIES: usize = 1_000_000;

/// The row of ids that stand for nothing.
pub const NO_ROW: u16 = u16::MAX;

/// What is known of the series of a source.
#[derive(Default)]
pub struct Series {
    defs: Vec<SeriesDef>,
    ids: HashMap<SeriesDef, SeriesId>,
    /// Times of the first and last sample.
    spans: Vec<Option<(i64, i64)>>,
    /// How many ticks there had been at the newest one with a value; 0 before the first since the start.
    heard: Vec<u64>,
    /// The newest value, and how many ticks it came after the one before; 0 for the first since the start.
    latest: Vec<(f64, u32)>,
    /// How often the id was let go.
    generations: Vec<u32>,
    /// Ids for the series that come next, the lowest last.
    free: Vec<SeriesId>,
    /// Let go at the newest cut.
    resting: Vec<SeriesId>,
    /// Ids that mean something else than they did, and the newest tick then.
    renamed: VecDeque<(u64, SeriesId)>,
    /// `renamed` is complete for who knew all ids at this tick.
    complete_from: u64,
    /// How many were alive after so many ticks.
    counted: Option<(u64, usize)>,
}

impl Series {
    /// By id; those of no row stand for nothing.
    pub fn defs(&self) -> &[SeriesDef] {
        &self.defs
    }

    /// The id of a series that is known.
    pub fn id(&self, def: &SeriesDef) -> Option<SeriesId> {
        self.ids.get(def).copied()
    }

    /// How often each id was let go: who holds an id holds this number with it.
    pub fn generations(&self) -> &[u32] {
        &self.generations
    }

    /// Times between which the samples of a series lie.
    pub fn span(&self, id: SeriesId) -> Option<(i64, i64)> {
        *self.spans.get(id as usize)?
    }

    /// Whether one more finds room after so many `ticks` beside at most `most` that are alive; one that lacks `idle` of them
    /// is not.
    pub fn room(&mut self, ticks: u64, idle: u64, most: usize) -> bool {
        if self.free.is_empty() && self.defs.len() >= MAX_STORED_SERIES {
            return false;
        }
        // Counting takes long, so it is done at most once a tick.
        self.ids.len() < most || self.counted(ticks, idle) < most
    }

    fn counted(&mut self, ticks: u64, idle: u64) -> usize {
        if self.counted.is_none_or(|(at, _)| at != ticks) {
            self.counted = Some((ticks, self.alive(ticks, idle)));
        }
        self.counted.map_or(0, |(_, alive)| alive)
    }

    /// How many are alive after so many `ticks`.
    pub fn alive(&self, ticks: u64, idle: u64) -> usize {
        self.heard.iter().filter(|heard| lives(**heard, ticks, idle)).count()
    }

    /// How many are alive or have history.
    pub fn stored(&self) -> usize {
        self.ids.len()
    }

    /// Adds one after the tick of sequence `seq`, and after so many `ticks`; its id, and whether that stood for another
    /// before.
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

    /// Adds one that was found, or with none an id that stands for nothing, which is free where all files are `sound`: one
    /// that cannot be read may know it.
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

    /// A series has samples somewhere between these times.
    pub fn seen(&mut self, id: SeriesId, from: i64, to: i64) {
        if let Some(span) = self.spans.get_mut(id as usize) {
            // The clock may have been set back: what it stamped before stays within.
            *span = Some(span.map_or((from, to), |(first, last)| (first.min(from), last.max(to))));
        }
    }

    /// A series has a value in the newest tick, which is the last of so many `ticks`.
    pub fn hear(&mut self, id: SeriesId, t: i64, ticks: u64, value: f64) {
        self.seen(id, t, t);
        if let (Some(heard), Some(latest)) = (self.heard.get_mut(id as usize), self.latest.get_mut(id as usize)) {
            let gap = if *heard == 0 { 0 } else { ticks.saturating_sub(*heard) };
            *latest = (value, u32::try_from(gap).unwrap_or(u32::MAX));
            *heard = ticks;
        }
    }

    /// The newest value of a series after so many `ticks`. It is current until twice as many ticks have come as lay before
    /// it: one that is read less often than there are ticks keeps its value in between.
    pub fn current(&self, id: SeriesId, ticks: u64) -> Option<f64> {
        let (heard, (value, gap)) = (*self.heard.get(id as usize)?, *self.latest.get(id as usize)?);
        (heard > 0 && ticks.saturating_sub(heard) <= 2 * u64::from(gap.max(1))).then_some(value)
    }

    /// At a cut, after the tick of sequence `seq` and so many `ticks`: lets those go that are not alive, end before `oldest`, the time of the oldest tick that is kept, and of
    /// which nothing is left elsewhere, as `left` tells. Those of the cut before are free from now on.
    pub fn let_go(&mut self, (seq, ticks): (u64, u64), idle: u64, oldest: i64, left: impl Fn(SeriesId) -> bool) {
        self.free.append(&mut self.resting);
        // The last one stays: a log says by it how many there are.
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

    /// Forgets what nobody needs that stands at this tick or behind it.
    pub fn forget_renamed(&mut self, seq: u64) {
        while self.renamed.front().is_some_and(|(at, _)| *at < seq) {
            self.renamed.pop_front();
        }
        self.complete_from = self.complete_from.max(seq);
    }

    /// Ids that may mean something else than they did to who knew all at this tick, in order; none where that is not known
    /// any more.
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
