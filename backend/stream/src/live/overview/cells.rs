//! The cells of an overview, and the source or GPU of each.

use super::MAX_GPU_CELLS;
use shared::wire::{Cell, SourceId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The cells in order of number.
#[derive(Default)]
pub struct Cells {
    /// Each with the version of its last change.
    all: Vec<(u64, Cell)>,
    known: HashMap<Cell, usize>,
    /// Unused cells, and those that became unused in this beat. The latter are reused only at the next beat, so that a
    /// frame reports them as empty first.
    free: Vec<usize>,
    resting: Vec<usize>,
    /// Cells that changed their source or GPU in this beat.
    renamed: Vec<usize>,
    left_out: HashSet<Cell>,
    version: u64,
}

impl Cells {
    /// Starts a beat.
    pub fn begin(&mut self) {
        self.renamed.clear();
        self.free.append(&mut self.resting);
    }

    /// The number of a cell, assigned at the first request; none if the maximum is reached.
    pub fn cell_of(&mut self, source: SourceId, instance: &str) -> Option<usize> {
        let cell = Cell { source: Some(source), instance: instance.to_string() };
        if let Some(at) = self.known.get(&cell) {
            return Some(*at);
        }
        let limited = !instance.is_empty() && self.all.len() >= MAX_GPU_CELLS;
        let at = match self.free.pop() {
            Some(free) => free,
            None if limited => {
                self.version += u64::from(self.left_out.insert(cell));
                return None;
            }
            None => {
                self.all.push((0, Cell { source: None, instance: String::new() }));
                self.all.len() - 1
            }
        };
        self.version += 1;
        self.left_out.remove(&cell);
        self.all[at] = (self.version, cell.clone());
        self.known.insert(cell, at);
        self.renamed.push(at);
        Some(at)
    }

    /// Marks a cell as unused.
    pub fn let_go(&mut self, at: usize) {
        let Some((version, cell)) = self.all.get_mut(at).filter(|(_, cell)| cell.source.is_some()) else { return };
        self.version += 1;
        *version = self.version;
        let gone = std::mem::replace(cell, Cell { source: None, instance: String::new() });
        self.known.remove(&gone);
        self.resting.push(at);
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Cells that changed their source or GPU since this beat began.
    pub fn renamed(&self) -> impl Iterator<Item = usize> + '_ {
        self.renamed.iter().copied()
    }

    /// Incremented with each change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A copy for readers.
    pub fn shown(&self) -> Arc<Vec<(u64, Cell)>> {
        Arc::new(self.all.clone())
    }

    /// Number of cells left out for lack of room.
    pub fn left_out(&self) -> u32 {
        self.left_out.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_taken_by_another_only_at_the_beat_after_it_was_let_go() {
        let mut cells = Cells::default();
        assert_eq!((cells.cell_of(1, "0"), cells.cell_of(1, "1"), cells.cell_of(1, "0")), (Some(0), Some(1), Some(0)));
        cells.begin();
        cells.let_go(0);
        cells.let_go(0);
        assert_eq!(cells.cell_of(2, "0"), Some(2));
        assert_eq!(cells.renamed().collect::<Vec<_>>(), [2]);
        cells.begin();
        assert_eq!(cells.cell_of(3, "0"), Some(0));
        assert_eq!(cells.renamed().collect::<Vec<_>>(), [0]);
        assert_eq!(cells.len(), 3);
    }

    #[test]
    fn gpus_beyond_the_most_are_counted_and_sources_have_no_bound_of_their_own() {
        let mut cells = Cells::default();
        (0..MAX_GPU_CELLS).for_each(|n| assert!(cells.cell_of(0, &n.to_string()).is_some()));
        assert_eq!((cells.cell_of(1, "0"), cells.cell_of(1, "0"), cells.cell_of(1, "1")), (None, None, None));
        assert_eq!(cells.left_out(), 2);
        assert!(cells.cell_of(1, "").is_some());
        cells.let_go(5);
        cells.begin();
        assert_eq!((cells.cell_of(1, "0"), cells.left_out()), (Some(5), 1));
    }
}
