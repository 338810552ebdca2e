//! Reads a segment.
use super::{BlockEntry, ColumnEntry, Contents, Damage, Dictionaries, ReadAt, SegmentError};
use crate::rollup::Bucket;
use crate::series::SeriesId;

/// An open segment. Only its directory is in memory; everything else is read when asked for.
#[derive(Debug)]
pub struct Reader<R> {
    bytes: R,
    contents: Contents,
    complete: bool,
}

impl<R: ReadAt> Reader<R> {
    /// Opens a segment.
    ///
    /// # Errors
    /// [`SegmentError`]
    pub fn open(bytes: R) -> Result<Self, SegmentError> {
        Self::open_with(bytes, &mut Dictionaries::default())
    }

    /// Likewise, one of several: what is equal in them is kept once.
    pub fn open_with(bytes: R, known: &mut Dictionaries) -> Result<Self, SegmentError> {
        todo!()
    }

    /// Opens what is left of a recording that was cut off or has no sound directory: its blocks up to the first damaged one.
    pub fn rescue(bytes: R) -> Result<Self, SegmentError> {
        todo!()
    }

    /// False when the end was missing and what came before it was [rescued](Self::rescue).
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// What is in it.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Times of a block's ticks.
    pub fn times(&self, block: usize) -> Result<Vec<i64>, Damage> {
        todo!()
    }

    /// Likewise as [`crate::column::encode_times`] made them.
    pub fn times_bytes(&self, block: usize) -> Result<Vec<u8>, Damage> {
        todo!()
    }

    /// All columns of a block, by id, and which parts of the index are damaged. To read many columns: then
    /// [`read`](Self::read) each.
    pub fn entries(&self, block: usize) -> (Vec<ColumnEntry>, Vec<Damage>) {
        todo!()
    }

    /// The column of a series: none without a sample in the block.
    pub fn entry(&self, block: usize, id: SeriesId) -> Result<Option<ColumnEntry>, Damage> {
        todo!()
    }

    /// The bytes of a column, as [`crate::column::encode`] made them.
    pub fn read(&self, block: usize, entry: &ColumnEntry) -> Result<Vec<u8>, Damage> {
        todo!()
    }

    /// The bytes of the column of a series: none without a sample in the block.
    pub fn column(&self, block: usize, id: SeriesId) -> Result<Option<Vec<u8>>, Damage> {
        todo!()
    }

    /// Times of a series' first and last sample in a block.
    pub fn span(&self, block: usize, id: SeriesId) -> Result<Option<(i64, i64)>, Damage> {
        todo!()
    }

    /// The values of a series at the block's ticks, NaN where absent; none without a sample.
    pub fn values(&self, block: usize, id: SeriesId) -> Result<Option<Vec<f64>>, Damage> {
        todo!()
    }

    /// The 60-s buckets of a series in a block. `last` is NaN in those that come from a tier; where there is no tier or it is damaged they
    /// are made of the column.
    pub fn tier(&self, block: usize, id: SeriesId) -> Result<Option<Vec<Bucket>>, Damage> {
        todo!()
    }

    /// Reads everything and tells what is damaged.
    pub fn verify(&self) -> Vec<Damage> {
        todo!()
    }

    fn block(&self, block: usize) -> Option<&BlockEntry> {
        self.contents.blocks.get(block)
    }
}
