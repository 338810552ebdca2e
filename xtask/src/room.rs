//! Room on the disks that builds write to: looked at before minutes are spent, and where something failed.

use crate::exec::cmd;
use crate::paths;
use std::path::{Path, PathBuf};

/// What a first run writes at most into one folder, in MB.
const FIRST_RUN: u64 = 3000;
/// Less than this, in MB, and a build fails for that reason.
const FULL: u64 = 100;

/// A warning where a first run may not have room.
pub fn warning() -> Option<String> {
    let (folder, free) = least()?;
    (free < FIRST_RUN).then(|| format!("{}, and a first run may write {FIRST_RUN}; {}", says(&folder, free), help()))
}

/// What may be behind a failure: a disk that is full.
pub fn full() -> Option<String> {
    let (folder, free) = least()?;
    (free < FULL).then(|| format!("{}; {}", says(&folder, free), help()))
}

fn says(folder: &Path, free: u64) -> String {
    format!("only {free} MB are free at {}", folder.display())
}

fn help() -> &'static str {
    "make room, or choose folders on a larger disk: XDG_CACHE_HOME for tools, CARGO_TARGET_DIR for builds"
}

/// The folder with the least room, and how much that is in MB; nothing where `df` cannot say.
fn least() -> Option<(PathBuf, u64)> {
    let folders = [Some(paths::target()), paths::cache().ok(), Some(std::env::temp_dir())];
    let free = |folder: PathBuf| {
        // The folder itself may not be there yet.
        let there = folder.ancestors().find(|path| path.is_dir())?;
        let mb = free(&cmd("df").arg("-Pk").arg(there).output().ok()?)?;
        Some((folder, mb))
    };
    folders.into_iter().flatten().filter_map(free).min_by_key(|(_, mb)| *mb)
}

/// The fourth column of the second line of `df -Pk`, from KiB into MB.
fn free(df: &str) -> Option<u64> {
    let kib: u64 = df.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kib * 1024 / 1_000_000) // df counts in units of 1024 bytes
}

#[cfg(test)]
mod tests {
    use super::free;

    #[test]
    fn df_is_read_by_its_columns() {
        let text = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n\
                    /dev/vda         263174212 32505856  63963136      34% /\n";
        assert_eq!(free(text), Some(65_498));
        assert_eq!(free("df: /x: No such file or directory\n"), None);
    }
}
