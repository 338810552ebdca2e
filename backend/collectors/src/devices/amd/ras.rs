//! Errors that ECC found, by block: the files in `ras` of amdgpu.

use super::accelerator::BlockErrors;
use crate::read::sysfs::names;
use std::path::Path;

/// Maximum number of blocks; a GPU has about twenty.
const MAX_BLOCKS: usize = 64;

/// Errors of the memory.
pub(super) fn memory(device: &Path) -> Option<BlockErrors> {
    read(device, "umc_err_count", "umc").or_else(|| read(device, "aca_umc", "umc"))
}

/// Errors of each block that counts any, sorted by name. Newer accelerators have `aca_gfx` in the place of
/// `gfx_err_count`.
pub(super) fn blocks(device: &Path) -> Vec<BlockErrors> {
    let files = names(&device.join("ras"));
    let block = |file: &str| -> Option<String> {
        let name = file.strip_suffix("_err_count").or_else(|| file.strip_prefix("aca_"))?;
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_').then(|| name.to_string())
    };
    let mut blocks: Vec<BlockErrors> =
        files.iter().filter_map(|file| read(device, file, &block(file)?)).take(MAX_BLOCKS).collect();
    blocks.sort_by(|a, b| a.block.cmp(&b.block));
    blocks.dedup_by(|a, b| a.block == b.block);
    blocks
}

fn read(device: &Path, file: &str, block: &str) -> Option<BlockErrors> {
    let text = std::fs::read_to_string(device.join("ras").join(file)).ok()?;
    Some(BlockErrors {
        block: block.to_string(),
        corrected: count(&text, "ce:"),
        uncorrected: count(&text, "ue:"),
        deferred: count(&text, "de:"),
    })
}

/// The number after a word in lines like `ce: 3`.
fn count(text: &str, word: &str) -> Option<f64> {
    let line = text.split_inclusive('\n').find_map(|line| line.strip_prefix(word)?.strip_suffix('\n'))?;
    line.trim().parse::<u64>().ok().map(|count| count as f64)
}
