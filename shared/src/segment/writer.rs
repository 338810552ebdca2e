//! Writes a segment, block by block.
use super::Contents;
use crate::series::{SeriesId, Steps};
use std::io::{self, Write};

/// The ticks of a new block.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Position in [`Contents::sources`].
    pub source: u16,
    /// Sequence of the first tick; 0 for late samples.
    pub first_seq: u64,
    /// Sequence of the last tick; 0 for late samples.
    pub last_seq: u64,
    /// Times, ms, each above the one before; at most [`crate::column::MAX_TICKS`].
    pub times: &'a [i64],
    /// The clock was set just before it.
    pub clock_step: bool,
}

/// A column of a new block.
#[derive(Clone, Debug, PartialEq)]
pub struct NewColumn {
    /// Its series.
    pub id: SeriesId,
    /// [`crate::column::encode`], one value a tick.
    pub raw: Vec<u8>,
    /// [`super::tier::encode`]; none in a quarter.
    pub tier: Option<Vec<u8>>,
}

impl NewColumn {
    /// A column with its tier where that is worth its bytes (a constant has none).
    pub fn with_tier(id: SeriesId, times: &[i64], values: &[f64], steps: Steps) -> NewColumn {
        todo!()
    }
}

/// A segment that is being written. In memory is one block, compressed.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Begins a segment.
    pub fn begin(out: W) -> io::Result<Self> {
        todo!()
    }

    /// Writes what is known of the contents ahead of the blocks, for a recording that may be cut off. Its series may be
    /// more than will have samples; its blocks are ignored.
    pub fn opening(&mut self, contents: &Contents) -> io::Result<()> {
        todo!()
    }

    /// Writes a block. Columns come rising by id; those without a sample are left out. A block without ticks is not written.
    ///
    /// # Errors
    /// What the system said; `InvalidInput` when times or ids do not rise.
    pub fn block(&mut self, run: Run<'_>, columns: impl IntoIterator<Item = NewColumn>) -> io::Result<()> {
        todo!()
    }

    /// Writes the directory, twice, and ends the segment. Version and blocks of `contents` are ignored: the writer knows.
    ///
    /// # Errors
    /// What the system said; `InvalidInput` when a block names a source that `contents` lacks.
    pub fn finish(self, contents: &Contents) -> io::Result<W> {
        todo!()
    }
}
