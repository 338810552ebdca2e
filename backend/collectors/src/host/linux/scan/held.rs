//! Cache of open files of processes, with a limit on their number. Opening and closing a file of /proc costs more than
//! reading it.

use crate::read::procfs::fill;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Divisor of the open-file limit of this program: a quarter is used.
const OPEN_FILES_SHARE: u64 = 4;
/// Maximum number of cached files.
const MAX_OPEN_FILES: usize = 1_000;

/// Number of files that may still be cached.
#[derive(Clone)]
pub(super) struct Room(Arc<AtomicUsize>);

impl Room {
    /// A limit of this number of files.
    pub fn new(files: usize) -> Self {
        Room(Arc::new(AtomicUsize::new(files)))
    }

    /// A limit from this program's share of the system's limit.
    pub fn by_limit() -> Self {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is a valid rlimit that the call fills.
        let asked = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
        let files =
            if asked == 0 { usize::try_from(limit.rlim_cur / OPEN_FILES_SHARE).unwrap_or(MAX_OPEN_FILES) } else { 0 };
        Room::new(files.min(MAX_OPEN_FILES))
    }

    /// Number of files left.
    #[cfg(test)]
    pub fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self) -> Option<OpenFileSlot> {
        let less = |left: usize| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok().map(|_| OpenFileSlot(self.0.clone()))
    }
}

/// The slot of one open file; returned on drop.
struct OpenFileSlot(Arc<AtomicUsize>);

impl Drop for OpenFileSlot {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A file of one process. After a reuse of the PID, reading the old file fails, and the file at the path is opened
/// again.
#[derive(Default)]
pub(super) struct Held(Option<(File, OpenFileSlot)>);

impl Held {
    /// Reads it into the buffer. Returns the number of bytes read; none if it cannot be read.
    pub fn read(&mut self, path: impl FnOnce() -> PathBuf, buffer: &mut Vec<u8>, room: &Room) -> Option<usize> {
        if let Some((file, _)) = &self.0 {
            match fill(file, buffer) {
                Ok(n) => return Some(n),
                Err(error) if is_refused(&error) => return None,
                Err(_) => self.0 = None,
            }
        }
        let file = File::open(path()).ok()?;
        let read = fill(&file, buffer);
        // A file that this user may open but not read is cached too, so that it is not reopened in every round.
        if read.is_ok() || read.as_ref().is_err_and(is_refused) {
            self.0 = room.take().map(|place| (file, place));
        }
        read.ok()
    }
}

fn is_refused(error: &Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_opened_once_and_again_when_it_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        let (room, mut buffer, mut held) = (Room::new(1), Vec::new(), Held::default());
        assert_eq!(held.read(|| path.clone(), &mut buffer, &room), None);
        std::fs::write(&path, "one").unwrap();
        assert_eq!(held.read(|| path.clone(), &mut buffer, &room), Some(3));
        std::fs::write(&path, "three").unwrap();
        assert_eq!(held.read(|| panic!("it is open"), &mut buffer, &room), Some(5));
        // Without a slot a file is read, but not cached.
        let mut second = Held::default();
        assert_eq!(second.read(|| path.clone(), &mut buffer, &room), Some(5));
        assert!(second.0.is_none());
        drop(held);
        assert_eq!(second.read(|| path.clone(), &mut buffer, &room), Some(5));
        assert!(second.0.is_some(), "there is room again");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a process that ends, in a test")]
    fn the_file_of_a_process_that_ended_is_not_read_as_anothers() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let path = PathBuf::from(format!("/proc/{}/stat", child.id()));
        let (room, mut buffer, mut held) = (Room::new(1), Vec::new(), Held::default());
        assert!(held.read(|| path.clone(), &mut buffer, &room).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        let own = PathBuf::from("/proc/self/stat");
        let n = held.read(|| own, &mut buffer, &room).unwrap();
        assert!(buffer[..n].starts_with(std::process::id().to_string().as_bytes()), "the path was opened anew");
    }
}
