//! Blocks that were sealed elsewhere: a recording that is replayed, or what came late to a hub.

use super::kept::Kept;
use super::{Block, Chunk, Store};
use shared::column;
use shared::wire::SourceId;
use std::sync::Arc;

impl Store {
    /// Puts finished blocks into a source, whose series are announced already. They are not subject to the limits as long
    /// as no tick is appended.
    pub fn hold(&mut self, source: SourceId, blocks: Vec<Block>) {
        self.change(source, |kept| kept.hold(blocks));
    }

    /// Puts blocks into a source whose ticks came late: they lie between, or before, those that are here. Their series are
    /// announced already. They are dropped by age, and where memory is full, as all others.
    pub fn fill(&mut self, source: SourceId, chunks: &[Arc<Chunk>]) {
        let blocks: Vec<Block> = chunks.iter().map(|chunk| Block::Memory(chunk.clone())).collect();
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            blocks.iter().for_each(|block| kept.instants.take_block(block));
        }
        self.hold(source, blocks);
    }
}

impl Kept {
    fn hold(&mut self, blocks: Vec<Block>) {
        for block in &blocks {
            let Ok(times) = block.read_times() else { continue };
            block.columns(0, |column| {
                if let Ok((id, bytes)) = column
                    && let Ok(Some(presence)) = column::presence(&bytes, times.len())
                {
                    self.series.seen(id, times[presence.first], times[presence.last]);
                }
                true
            });
        }
        self.put(blocks);
    }
}
