//! Blocks sealed elsewhere: of a recording that is replayed, or late data of a hub.

use super::kept::KeptSource;
use super::{Block, Chunk, Store};
use shared::column;
use shared::wire::SourceId;
use std::sync::Arc;

impl Store {
    /// Adds finished blocks to a source whose series are registered already. The limits do not apply to them as long as
    /// no tick is appended.
    pub fn hold(&mut self, source: SourceId, blocks: Vec<Block>) {
        self.change(source, |kept| kept.hold(blocks));
    }

    /// Adds late blocks to a source: their ticks lie between, or before, the existing ones. Their series are registered
    /// already. They are dropped by age, and when memory is full, as all others.
    pub fn fill(&mut self, source: SourceId, chunks: &[Arc<Chunk>]) {
        let blocks: Vec<Block> = chunks.iter().map(|chunk| Block::Memory(chunk.clone())).collect();
        self.change(source, |kept| {
            blocks.iter().for_each(|block| {
                kept.instants.take_block(block);
                kept.replace_recalled(block.from(), block.to());
            });
        });
        self.hold(source, blocks);
    }

    /// Adds a block without sequences to a source that was read back from the remote sample store. It does not count as
    /// history of this server: it is not offered, not sent and not written. Data of the source itself replaces it.
    pub fn recall(&mut self, source: SourceId, chunk: Arc<Chunk>) {
        if let Some(kept) = self.sources.get_mut(usize::from(source)) {
            kept.recalled = true;
        }
        self.hold(source, vec![Block::Memory(chunk)]);
    }

    /// Drops what was [read back](Self::recall) of a source.
    pub fn forget_recalled(&mut self, source: SourceId) {
        self.change(source, |kept| kept.replace_recalled(i64::MIN, i64::MAX));
    }
}

impl KeptSource {
    /// Drops the blocks that were read back and reach into a span.
    pub fn replace_recalled(&mut self, from: i64, to: i64) {
        if self.recalled {
            self.remove(|block| block.late() && block.in_memory() && block.from() <= to && block.to() >= from);
        }
    }

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
