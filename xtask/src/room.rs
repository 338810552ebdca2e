//! Checks the free space of the disks to which builds write: before minutes are spent, and after a failure.

use crate::exec::cmd;
use crate::paths;
use std::path::{Path, PathBuf};

/// Maximum number of MB that a first run writes into one folder.
const FIRST_RUN: u64 = 3000;
/// With less free space than this, in MB, a build fails for that reason.
const FULL_MB: u64 = 100;

/// A warning when there may not be enough space for a first run.
pub fn warning() -> Option<String> {
    let (folder, free) = least()?;
    (free < FIRST_RUN).then(|| format!("{}, and a first run may write {FIRST_RUN}; {}", says(&folder, free), help()))
}

/// A possible reason of a failure: a full disk.
pub fn full() -> Option<String> {
    let (folder, free) = least()?;
    (free < FULL_MB).then(|| format!("{}; {}", says(&folder, free), help()))
}

fn says(folder: &Path, free: u64) -> String {
    format!("only {free} MB are free at {}", folder.display())
}

fn help() -> &'static str {
    "make room, or choose folders on a larger disk: XDG_CACHE_HOME for tools, CARGO_TARGET_DIR for builds"
}

/// The folder with the least free space, and that space in MB; None when `df` gives no answer.
fn least() -> Option<(PathBuf, u64)> {
    let folders = [Some(paths::target()), paths::cache().ok(), Some(std::env::temp_dir())];
    let free = |folder: PathBuf| {
        // The folder itself may not exist yet.
        let there = folder.ancestors().find(|path| path.is_dir())?;
        let mb = free(&cmd("df").arg("-Pk").arg(there).output().ok()?)?;
        Some((folder, mb))
    };
    folders.into_iter().flatten().filter_map(free).min_by_key(|(_, mb)| *mb)
}

/// The fourth column in the second line of `df -Pk`, converted from KiB to MB.
fn free(df: &str) -> Option<u64> {
    let kib: u64 = df.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    Some(kib * 1024 / 1_000_000) // The unit of df is 1024 bytes.
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
