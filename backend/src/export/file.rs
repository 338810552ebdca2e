//! A file that comes into being whole: written under another name beside it, synced, then renamed. A device or a pipe is
//! written to as it stands.
//!
//! That other name is `NAME.PID.part`, and its file is locked while somebody writes it: what a killed process left is
//! told by its lock, not by its number, which another machine or container may have given too.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is being written. Dropped before [`finish`](Self::finish), it is gone.
pub struct Whole {
    /// None once it is finished.
    file: Option<BufWriter<File>>,
    /// Its name until then; none for a device or a pipe.
    part: Option<PathBuf>,
    path: PathBuf,
}

impl Whole {
    /// Begins the file that is to stand at `path`; what stands there now stays until [`finish`](Self::finish).
    ///
    /// # Errors
    /// The folder cannot be written to, or `path` is one.
    pub fn create(path: &Path) -> io::Result<Whole> {
        match std::fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // A file that took its name would remove the device.
            Ok(there) if !there.is_file() => {
                let file = OpenOptions::new().write(true).open(path)?;
                return Ok(Whole { file: Some(BufWriter::new(file)), part: None, path: path.into() });
            }
            _ => {}
        }
        // A link stays, and leads to the new file.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
        let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
        sweep(&path, name);
        let mut part = name.to_os_string();
        part.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(part);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        // Where a file system has no locks, no part is taken for left behind.
        let _ = file.try_lock();
        Ok(Whole { file: Some(BufWriter::new(file)), part: Some(part), path })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// It could not be written to its end, synced or renamed; nothing stands at `path` that did not before.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let written = file.into_inner().map_err(|error| error.into_error());
        let Some(part) = &self.part else { return written.map(drop) };
        // Its lock is held until it has its name.
        let finished = written.and_then(|file| file.sync_all().and_then(|()| std::fs::rename(part, &self.path)));
        finished.inspect_err(|_| drop(std::fs::remove_file(part))) // The first error is the one to tell.
    }
}

/// Removes the parts of this file that killed processes left behind.
fn sweep(path: &Path, name: &OsStr) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_part(&entry.file_name(), name)) {
        let path = entry.path();
        let left = entry.file_type().is_ok_and(|kind| kind.is_file())
            && File::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if left {
            let _ = std::fs::remove_file(path); // It only takes room.
        }
    }
}

/// Whether this is `NAME.PID.part`.
fn is_part(file: &OsStr, name: &OsStr) -> bool {
    let rest = file.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
    let pid = rest.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(b".part"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let (Some(_), Some(part)) = (self.file.take(), &self.part) {
            let _ = std::fs::remove_file(part); // Nobody is left to be told.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.csv");
        std::fs::write(&path, "before").expect("written");
        let mut half = Whole::create(&path).expect("created");
        half.write_all(b"half").expect("written");
        drop(half);
        assert_eq!(std::fs::read(&path).expect("read"), b"before");
        let mut whole = Whole::create(&path).expect("created");
        whole.write_all(b"whole").expect("written");
        whole.finish().expect("finished");
        assert_eq!(std::fs::read(&path).expect("read"), b"whole");
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 1, "nothing else is left");
        assert!(Whole::create(&folder.path().join("none").join("out")).is_err());
        assert!(Whole::create(folder.path()).is_err(), "a folder is no file");
    }

    #[test]
    fn what_a_killed_process_left_goes_with_the_next_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for left in ["out.csv.1.part", "out.csv.4294967295.part"] {
            std::fs::write(at(left), "half").expect("written");
        }
        let others = ["out.csv", "out.csv.part", "out.csv.x1.part", "other.csv.1.part", "out.csv.1.part.txt"];
        others.iter().for_each(|name| std::fs::write(at(name), "whole").expect("written"));
        let busy = File::create(at("out.csv.7.part")).expect("created");
        busy.lock().expect("locked");
        Whole::create(&at("out.csv")).expect("created").finish().expect("finished");
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        let mut kept = [&others[..], &["out.csv.7.part"]].concat();
        kept.sort_unstable();
        assert_eq!(names, kept);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_and_a_link_stay_what_they_are() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "before").expect("written");
        for (link, to) in [("to-file", at("file")), ("to-device", "/dev/null".into())] {
            symlink(to, at(link)).expect("linked");
            let mut whole = Whole::create(&at(link)).expect("created");
            whole.write_all(b"after").expect("written");
            whole.finish().expect("finished");
            assert!(at(link).is_symlink(), "{link}");
        }
        assert_eq!(std::fs::read(at("file")).expect("read"), b"after");
        assert_eq!(std::fs::read(at("to-device")).expect("read"), b"");
    }
}
