//! Values of one process of a kernel, beside its `stat` file.

use crate::read::procfs::{fields, fill, lines, number};
use std::fs::File;
use std::path::Path;

/// Maximum number of open files checked per process.
const MAX_FILES: usize = 4_096;
/// Prefixes of device files of GPUs.
const DEVICES: [&str; 4] = ["/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel/"];

/// Proportional set size of a process including swap, bytes. None if the system does not report it.
pub(super) fn proportional(proc: &Path, pid: u32) -> Option<u64> {
    let mut buffer = Vec::new();
    let file = File::open(proc.join(pid.to_string()).join("smaps_rollup")).ok()?;
    let n = fill(&file, &mut buffer).ok()?;
    proportional_in(&buffer[..n])
}

fn proportional_in(text: &[u8]) -> Option<u64> {
    let value = |word: &[u8]| {
        let line = lines(text).find_map(|line| line.strip_prefix(word))?;
        number(fields(line).next()?)?.checked_mul(1 << 10)
    };
    value(b"Pss:")?.checked_add(value(b"SwapPss:").unwrap_or_default())
}

/// Whether a process has a GPU's device file open. The driver's PIDs may belong to another namespace: a process without
/// such a file is not the one that the driver means.
pub(super) fn has_gpu_open(proc: &Path, pid: u32) -> bool {
    let Ok(files) = std::fs::read_dir(proc.join(pid.to_string()).join("fd")) else { return false };
    let device = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok();
        target.is_some_and(|path| path.to_str().is_some_and(|path| DEVICES.iter().any(|begin| path.starts_with(begin))))
    };
    files.take(MAX_FILES).flatten().any(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_is_added_and_what_is_not_said_is_absent() {
        let text = b"55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss:   100 kB\nPss_Dirty: 7 kB\nSwap: 50 kB\nSwapPss:  20 kB\n";
        assert_eq!(proportional_in(text), Some(120 << 10));
        assert_eq!(proportional_in(b"Pss: 100 kB\n"), Some(100 << 10));
        assert_eq!(proportional_in(b"Rss: 100 kB\n"), None);
        assert_eq!(proportional_in(b"Pss: many kB\n"), None);
    }
}
