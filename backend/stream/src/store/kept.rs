//! Data of one source in the store.

use super::instants::Instants;
use super::records::Records;
use super::series::Series;
use super::{Block, Frame, OpeningNow, QUARTER, Stretch};
use shared::series::{SeriesDef, SeriesId, Steps};
use shared::tick::TickState;
use shared::wire::{Check, Source};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One source.
pub(super) struct KeptSource {
    pub info: Arc<Source>,
    /// The value of [`Store::facts`](super::Store::facts) at its last change.
    pub facts: u64,
    pub series: Series,
    /// The rows used by its series, without those of the collectors.
    pub rows: BTreeSet<u16>,
    pub checks: Arc<Vec<Check>>,
    /// Number of checks, at the end of the list, that concern the server instead of a collector.
    pub of_server: usize,
    pub checks_version: u64,
    /// State after the tick encoded last, which may not be visible yet.
    pub encoder: TickState,
    /// State after the newest tick.
    pub state: TickState,
    /// State before the first frame of the head.
    base: TickState,
    /// In order of sequence.
    pub blocks: Vec<Block>,
    /// Bytes of the blocks in memory.
    pub memory: usize,
    /// Ticks in the blocks, without late samples.
    sealed_ticks: u64,
    /// Ticks appended since the start.
    pub ticks: u64,
    /// The lowest sequence that the next tick may have.
    pub first_of_life: u64,
    /// The lowest sequence of this life at its start.
    pub life: u64,
    /// Stretches cut off the head and not sealed yet, oldest first.
    cuts: Vec<Arc<Stretch>>,
    /// Stretches after which a page can still resume: that of the newest cut, and those unsealed at that cut.
    resumable: Vec<Arc<Stretch>>,
    /// The frames since the newest cut, oldest first.
    head: Vec<Arc<Frame>>,
    /// The earliest time in the head.
    head_from: i64,
    pub instants: Instants,
    pub records: Records,
    /// The clock was set at a tick that was left out, so the next one carries the mark.
    pub clock_step: bool,
    /// The newest tick was left out.
    pub set_back: bool,
    /// It was removed: it has no data, and no more is accepted.
    pub removed: bool,
    /// Some of its data was read back from the remote sample store, into blocks without sequences.
    pub recalled: bool,
}

impl KeptSource {
    pub fn new(info: Source, facts: u64) -> Self {
        KeptSource {
            info: Arc::new(info),
            facts,
            series: Series::default(),
            rows: BTreeSet::new(),
            checks: Arc::default(),
            of_server: 0,
            checks_version: 0,
            encoder: TickState::default(),
            state: TickState::default(),
            base: TickState::default(),
            blocks: Vec::new(),
            memory: 0,
            sealed_ticks: 0,
            ticks: 0,
            first_of_life: 0,
            life: 0,
            cuts: Vec::new(),
            resumable: Vec::new(),
            head: Vec::new(),
            head_from: i64::MAX,
            instants: Instants::default(),
            records: Records::default(),
            clock_step: false,
            set_back: false,
            removed: false,
            recalled: false,
        }
    }

    pub fn set_checks(&mut self, checks: Vec<Check>) {
        if *self.checks != checks {
            self.checks = Arc::new(checks);
            self.checks_version += 1;
        }
    }

    /// The sequence of the next tick without an assigned one.
    pub fn next_seq(&self) -> u64 {
        self.first_of_life.max(self.encoder.seq() + 1)
    }

    /// Number of ticks without a value after which a series is not alive any more: the ticks of a full head.
    pub fn max_idle_ticks(&self) -> u64 {
        (QUARTER / self.info.interval.max(1)).max(1) as u64
    }

    /// Steps per unit of a series; 0 if it is unknown.
    pub fn steps(&self, id: SeriesId) -> Steps {
        self.state.steps().get(id as usize).copied().unwrap_or(0.0)
    }

    pub fn announce(&mut self, def: SeriesDef, steps: Steps) -> SeriesId {
        let (id, reused) = self.series.add(def, self.state.seq(), self.ticks);
        if reused {
            // The series is absent in all states, and in the frames between them.
            for state in [&mut self.encoder, &mut self.state, &mut self.base] {
                state.redefine(id, steps);
            }
        } else {
            self.encoder.extend([steps]);
            self.state.extend([steps]);
        }
        id
    }

    /// Restores a series from disk; none restores an unused id.
    pub fn restore(&mut self, def: Option<SeriesDef>, steps: Steps, sound: bool) {
        self.series.restore(def, sound);
        self.encoder.extend([steps]);
        self.state.extend([steps]);
    }

    /// Continues after ticks known from elsewhere.
    pub fn begin_after(&mut self, state: TickState) {
        (self.encoder, self.base, self.state) = (state.clone(), state.clone(), state);
    }

    /// Appends a frame that follows the newest; returns its number of samples.
    pub fn push(&mut self, frame: Frame) -> u64 {
        self.state.apply(frame.bytes()).expect("a tick is pushed before the next one is encoded");
        self.ticks += 1;
        let (t, mut samples) = (frame.t, 0);
        for (id, v) in (0..).zip(self.state.values()).filter(|(_, v)| v.is_finite()) {
            samples += 1;
            self.series.note_value(id, t, self.ticks, *v);
        }
        self.instants.take(t);
        self.head_from = self.head_from.min(t);
        self.head.push(Arc::new(frame));
        samples
    }

    /// Cuts the head; returns it, and the stretches after which no page can resume any more.
    pub fn cut(&mut self) -> Option<(Arc<Stretch>, Vec<Arc<Stretch>>)> {
        if self.head.is_empty() {
            return None;
        }
        let stretch = Arc::new(Stretch::new(&self.base, self.state.steps(), std::mem::take(&mut self.head)));
        self.cuts.push(stretch.clone());
        // Only the unsealed ones of the older stretches stay: a page that opens now gets them frame by frame.
        let outdated = std::mem::replace(&mut self.resumable, self.cuts.clone());
        self.base = self.state.clone();
        self.head_from = i64::MAX;
        self.let_go();
        Some((stretch, outdated))
    }

    /// Whether there was no tick since the newest cut.
    pub fn is_cut(&self) -> bool {
        self.head.is_empty()
    }

    /// The frames after a sequence, oldest first; none if the first of them is not in memory any more.
    pub fn after(&self, seq: u64) -> Option<Vec<Arc<Frame>>> {
        let parts = self.resumable.iter().map(|stretch| &stretch.frames).chain([&self.head]);
        // The usual case: all are in the head.
        let parts = parts.filter(|part| part.last().is_some_and(|last| last.seq > seq));
        let behind = |part: &Vec<Arc<Frame>>| part[part.partition_point(|frame| frame.seq <= seq)..].to_vec();
        let frames: Vec<Arc<Frame>> = parts.flat_map(behind).collect();
        frames.first().is_some_and(|first| first.before == seq).then_some(frames)
    }

    /// Drops data about ticks that are not stored any more.
    fn let_go(&mut self) {
        let Some(oldest) = self.oldest() else { return };
        self.instants.forget(oldest);
        let (seq, idle, values) = (self.state.seq(), self.max_idle_ticks(), self.state.values());
        self.series.let_go((seq, self.ticks), idle, oldest, |id| values[id as usize].is_finite());
        // A reader behind the oldest frame gets everything again.
        let first = self.resumable.iter().flat_map(|stretch| &stretch.frames).chain(&self.head).next();
        self.series.forget_renamed(first.map_or(seq, |frame| frame.before));
    }

    pub fn sealed(&mut self, stretch: &Arc<Stretch>, blocks: Vec<Block>) {
        self.cuts.retain(|cut| !Arc::ptr_eq(cut, stretch));
        self.put(blocks);
    }

    /// Inserts blocks in order.
    pub fn put(&mut self, blocks: Vec<Block>) {
        if self.removed {
            return;
        }
        self.blocks.extend(blocks);
        self.blocks.sort_by_key(Block::first_seq);
        self.count_blocks();
    }

    /// Removes the blocks for which `gone` returns true.
    pub fn remove(&mut self, gone: impl Fn(&Block) -> bool) {
        self.blocks.retain(|block| !gone(block));
        self.count_blocks();
    }

    fn count_blocks(&mut self) {
        self.memory = self.blocks.iter().map(Block::bytes).sum();
        self.sealed_ticks = self.blocks.iter().filter(|b| !b.late()).map(|b| b.ticks() as u64).sum();
    }

    /// The state before the first unsealed tick.
    pub fn base_of_unsealed(&self) -> &TickState {
        self.cuts.first().map_or(&self.base, |cut| &cut.base)
    }

    /// The unsealed frames, oldest first.
    pub fn unsealed_frames(&self) -> impl Iterator<Item = &Arc<Frame>> {
        self.cuts.iter().flat_map(|cut| &cut.frames).chain(&self.head)
    }

    /// Whether a tick between two sequences, both included, is unsealed.
    pub fn any_unsealed(&self, first: u64, last: u64) -> bool {
        let mut parts = self.cuts.iter().map(|cut| &cut.frames).chain([&self.head]);
        parts.any(|part| {
            part.get(part.partition_point(|frame| frame.seq < first)).is_some_and(|frame| frame.seq <= last)
        })
    }

    /// The unsealed stretches that reach `from` or later, oldest first.
    pub fn unsealed(&self, from: i64) -> Vec<Arc<Stretch>> {
        let mut all = self.cuts.clone();
        if self.head.iter().any(|f| f.t >= from) {
            all.push(Arc::new(Stretch::new(&self.base, self.state.steps(), self.head.clone())));
        }
        all
    }

    /// Start of a reader that gets the newest `ticks` first. Its position is in the head, whose series are all known.
    pub fn opening_now(&self, from: i64, ticks: usize) -> OpeningNow {
        let (before, _) = self.head.split_at(self.head.len().saturating_sub(ticks));
        OpeningNow {
            seq: before.last().map_or(self.base.seq(), |last| last.seq),
            blocks: self.blocks.iter().filter(|block| block.to() >= from).cloned().collect(),
            cuts: self.cuts.clone(),
            before: Stretch::new(&self.base, self.state.steps(), before.to_vec()),
        }
    }

    /// Whether it has no data.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.cuts.is_empty() && self.head.is_empty()
    }

    /// Time of the oldest tick: the smallest time, because the clock may have stepped back after the first tick.
    pub fn oldest(&self) -> Option<i64> {
        let cuts = self.cuts.iter().flat_map(|cut| &cut.frames).map(|f| f.t);
        self.blocks
            .iter()
            .map(Block::from)
            .chain(cuts)
            .min()
            .into_iter()
            .chain((!self.head.is_empty()).then_some(self.head_from))
            .min()
    }

    /// Drops blocks in memory by age. If the clock was ahead when they were stamped, drops them by the number of later
    /// ticks.
    pub fn drop_old(&mut self, now: i64, retention: i64) {
        let before = now.saturating_sub(retention);
        self.records.drop_old(before);
        let most = (retention / self.info.interval.max(1)) as u64;
        // Sequences cannot give the number of later ticks: they may have gaps.
        let unsealed = self.head.len() + self.cuts.iter().map(|cut| cut.frames.len()).sum::<usize>();
        let newer = self.sealed_ticks + unsealed as u64;
        let is_old = |b: &Block, after: u64| b.in_memory() && (b.to() < before || !b.late() && after > most);
        let ticks = |b: &Block| if b.late() { 0 } else { b.ticks() as u64 };
        // The usual case: the first block is young. Called at each tick.
        if self.blocks.first().is_none_or(|first| !is_old(first, newer - ticks(first))) {
            return;
        }
        let mut after = newer;
        self.blocks.retain(|b| {
            after -= ticks(b);
            !is_old(b, after)
        });
        self.count_blocks();
    }

    /// Removes all data, for good. Data held by readers is dropped with them.
    pub fn remove_all(&mut self) {
        self.removed = true;
        self.base = self.state.clone();
        self.head_from = i64::MAX;
        (self.cuts, self.resumable, self.head) = Default::default();
        self.instants = Instants::default();
        self.records.clear();
        self.remove(|_| true);
    }

    /// Drops the oldest block that is in memory.
    pub fn drop_oldest_in_memory(&mut self) {
        if let Some(at) = self.blocks.iter().position(Block::in_memory) {
            self.blocks.remove(at);
            self.count_blocks();
        }
    }
}
