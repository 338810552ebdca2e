//! The W&B run that a process writes to, by its open file `.../run-ID.wandb`. A job that names its run in code has no
//! variable for it in its environment.

use std::os::unix::ffi::OsStrExt;

/// Maximum number of open files of a process that are read.
const MAX_FILES: usize = 1024;

/// Maximum number of children that are examined: W&B's own service is among the first.
const MAX_CHILDREN: usize = 16;

/// Origin and values of the run's ID for a process with these children: one of them has W&B's file open. Files of other
/// users are not visible.
pub(super) fn key_of(pid: u32, children: &[u32]) -> Option<(&'static str, String)> {
    let children = children.iter().copied().take(MAX_CHILDREN);
    std::iter::once(pid).chain(children).find_map(open_run).map(|id| ("wandb", id))
}

fn open_run(pid: u32) -> Option<String> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    files.flatten().take(MAX_FILES).find_map(|file| id_of(std::fs::read_link(file.path()).ok()?.as_os_str().as_bytes()))
}

/// The ID in the name of a W&B file, if W&B would generate such an ID.
fn id_of(path: &[u8]) -> Option<String> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let id = name.strip_prefix(b"run-")?.strip_suffix(b".wandb")?;
    let fits = (1..=128).contains(&id.len()) && id.iter().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(b));
    fits.then(|| String::from_utf8_lossy(id).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_has_the_id() {
        assert_eq!(id_of(b"/a/wandb/run-20260101_000000-abc123/run-abc123.wandb").as_deref(), Some("abc123"));
        for other in
            [&b"/a/run-.wandb"[..], b"/a/run-a b.wandb", b"socket:[5]", b"/a/run-abc.wandb.part", b"/a/x-abc.wandb"]
        {
            assert_eq!(id_of(other), None);
        }
    }
}
