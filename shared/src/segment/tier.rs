//! The buckets of a column.
use crate::rollup::Bucket;
use crate::series::Steps;
/// Encodes.
pub fn encode(buckets: &[Bucket], steps: Steps) -> Vec<u8> {
    todo!()
}
