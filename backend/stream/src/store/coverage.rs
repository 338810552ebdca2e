//! Sequences of a source: the start of a life, and the ticks that are here.

use super::{Block, Store};
use shared::wire::SourceId;

/// 2020-01-01, milliseconds since the Unix epoch.
const EPOCH: i64 = 1_577_836_800_000;

/// The first sequence of a life that begins at this time, milliseconds since the Unix epoch: tenths of seconds since
/// 2020. Lost ticks have lower sequences, whether a power cut lost them, they were never logged, or their folder was
/// wiped. So no sequence is reused.
pub fn first_number(now: i64) -> u64 {
    (now.saturating_sub(EPOCH) / 100).max(1) as u64
}

/// A range of ticks without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Sequence of the first.
    pub first: u64,
    /// Sequence of the last.
    pub last: u64,
    /// Time of the first, milliseconds since the Unix epoch.
    pub from: i64,
    /// Time of the last.
    pub to: i64,
}

impl Store {
    /// Begins a life of a source that is stored on disk. Its ticks and records are numbered above all stored ones, and
    /// at least from [`first_number`] at `now` on, milliseconds since the Unix epoch.
    pub fn begin_life(&mut self, source: SourceId, now: i64) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            kept.first_of_life = first_number(now);
            kept.life = kept.next_seq();
            kept.records.begin_life(now);
        }
    }

    /// The first sequence of this life of a source; 0 if none was begun.
    pub fn life(&self, source: SourceId) -> u64 {
        self.kept(source).map_or(0, |kept| kept.life)
    }

    /// Whether a source has had a tick since the start. Otherwise its newest tick was found on the disk, and
    /// [`state`](Self::state) has none of its values.
    pub fn has_ticked(&self, source: SourceId) -> bool {
        self.kept(source).is_some_and(|kept| kept.ticks > 0)
    }

    /// The next tick of a source gets a sequence above this one.
    pub fn go_on_above(&mut self, source: SourceId, seq: u64) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            kept.first_of_life = kept.first_of_life.max(seq.saturating_add(1));
        }
    }

    /// Number of ticks of a source after a sequence; gaps do not count.
    pub fn ticks_after(&self, source: SourceId, seq: u64) -> u64 {
        let Some(kept) = self.kept(source) else { return 0 };
        let sealed = kept.blocks.iter().filter(|block| block.last_seq() > seq);
        let sealed: u64 = sealed.map(|block| block.last_seq() - seq.max(block.first_seq() - 1)).sum();
        sealed + kept.unsealed_frames().filter(|frame| frame.seq > seq).count() as u64
    }

    /// First and last sequences of the readable ticks of a source, ascending and not adjacent. They are computed from
    /// the data itself, so no stored state can disagree. A damaged block is left out once the damage is found.
    pub fn coverage(&self, source: SourceId) -> Vec<(u64, u64)> {
        self.runs(source).into_iter().map(|run| (run.first, run.last)).collect()
    }

    /// The first block with a tick after a sequence.
    pub fn block_behind(&self, source: SourceId, seq: u64) -> Option<Block> {
        let behind = |block: &&Block| !block.late() && block.last_seq() > seq;
        self.kept(source)?.blocks.iter().filter(behind).min_by_key(|block| block.first_seq()).cloned()
    }

    /// Whether any tick between two sequences, both included, can be read here. Called for each late block.
    pub fn holds_any(&self, source: SourceId, (first, last): (u64, u64)) -> bool {
        let Some(kept) = self.kept(source) else { return false };
        let reaches = |block: &Block| !block.late() && block.first_seq() <= last && block.last_seq() >= first;
        kept.blocks.iter().any(|block| reaches(block) && !self.damages.contains_block(block))
            || kept.any_unsealed(first, last)
    }

    /// [`coverage`](Self::coverage) with the times of its ends.
    pub fn runs(&self, source: SourceId) -> Vec<Run> {
        self.runs_of(source, |block| !self.damages.contains_block(block))
    }

    /// [`runs`](Self::runs) including damaged blocks, whose sound parts can be read.
    pub fn runs_with_damaged(&self, source: SourceId) -> Vec<Run> {
        self.runs_of(source, |_| true)
    }

    fn runs_of(&self, source: SourceId, counts: impl Fn(&Block) -> bool) -> Vec<Run> {
        let Some(kept) = self.kept(source) else { return Vec::new() };
        let sound = kept.blocks.iter().filter(|block| !block.late() && counts(block));
        let of_block = |b: &Block| Run { first: b.first_seq(), last: b.last_seq(), from: b.from(), to: b.to() };
        let mut runs: Vec<Run> = sound.map(of_block).collect();
        runs.extend(kept.unsealed_frames().map(|f| Run { first: f.seq, last: f.seq, from: f.t, to: f.t }));
        runs.sort_unstable_by_key(|run| (run.first, run.last));
        let mut joined: Vec<Run> = Vec::new();
        for run in runs {
            match joined.last_mut() {
                Some(before) if run.first <= before.last + 1 => {
                    // The clock may have been set back between the two.
                    let to = if run.last > before.last { run.to } else { before.to };
                    (before.last, before.to) = (run.last.max(before.last), to);
                }
                _ => joined.push(run),
            }
        }
        joined
    }
}
