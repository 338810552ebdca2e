//! Sequences of a source: where a life of it begins, and which of its ticks are here.

use super::{Block, Store};
use shared::wire::SourceId;

/// 2020-01-01, milliseconds since the Unix epoch.
const EPOCH: i64 = 1_577_836_800_000;

/// The number with which a life begins at this time, milliseconds since the Unix epoch: tenths of seconds since 2020. Ticks
/// that a power cut took, were never logged, or lay in a folder that was wiped have lower ones, so that no number is given
/// twice.
pub fn first_number(now: i64) -> u64 {
    (now.saturating_sub(EPOCH) / 100).max(1) as u64
}

impl Store {
    /// Begins a life of a source that is kept on disk: its ticks and records go on above all that are stored, and not below
    /// [`first_number`] at `now`, milliseconds since the Unix epoch.
    pub fn begin_life(&mut self, source: SourceId, now: i64) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            kept.first_of_life = first_number(now);
            kept.records.begin_life(now);
        }
    }

    /// How many ticks of a source there are behind a sequence; gaps are none.
    pub fn ticks_after(&self, source: SourceId, seq: u64) -> u64 {
        let Some(kept) = self.kept(source) else { return 0 };
        let sealed = kept.blocks.iter().filter(|block| block.last_seq() > seq);
        let sealed: u64 = sealed.map(|block| block.last_seq() - seq.max(block.first_seq() - 1)).sum();
        sealed + kept.unsealed_frames().filter(|frame| frame.seq > seq).count() as u64
    }

    /// First and last sequences of the ticks of a source that can be read here, rising, none next to another. It is found
    /// out by looking at what there is: nothing that is written down can disagree with it. A block leaves it once something
    /// of it turns out to be damaged.
    pub fn coverage(&self, source: SourceId) -> Vec<(u64, u64)> {
        let Some(kept) = self.kept(source) else { return Vec::new() };
        let sound = kept.blocks.iter().filter(|block| !block.late() && !self.damages.of(block));
        let mut ranges: Vec<(u64, u64)> = sound.map(|block: &Block| (block.first_seq(), block.last_seq())).collect();
        ranges.extend(kept.unsealed_frames().map(|frame| (frame.seq, frame.seq)));
        ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        joined
    }
}
