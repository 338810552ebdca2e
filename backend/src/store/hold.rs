//! Blocks that were sealed elsewhere: a recording that is replayed.

use super::{Block, Store};
use shared::column;
use shared::wire::SourceId;

impl Store {
    /// Puts finished blocks into a source, whose series are announced already. They are not subject to the limits as long
    /// as no tick is appended.
    pub fn hold(&mut self, source: SourceId, blocks: Vec<Block>) {
        let Some(kept) = self.sources.get_mut(usize::from(source)) else { return };
        for block in &blocks {
            let Ok(times) = block.read_times() else { continue };
            block.columns(0, |column| {
                if let Ok((id, bytes)) = column
                    && let Ok(Some(presence)) = column::presence(&bytes, times.len())
                {
                    kept.series.seen(id, times[presence.first], times[presence.last]);
                }
                true
            });
        }
        kept.put(blocks);
    }
}
