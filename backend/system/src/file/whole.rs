//! A file that appears only when complete: it is written under another name beside it, synced, then renamed.
//!
//! The other name is `NAME.PID.part`, and its file is locked while it is written. The leftover of a killed process is
//! detected by its lock, not by its PID, which another machine or container may have used too. Neither name is followed
//! if it is a link: in a folder that others may write to, such as /tmp, a link would lead to a file of their choice.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is being written. If it is dropped before [`finish`](Self::finish), the file is removed.
pub struct Whole {
    /// None once it is finished.
    out: Option<Out>,
    path: PathBuf,
}

enum Out {
    /// A file, and its name until it is finished.
    Part(BufWriter<File>, PathBuf),
    Stdout(io::Stdout),
}

/// Numbers that are tried for the other name: some of them may be in use.
const MAX_NUMBERS: u32 = 100;

/// Whether a path means standard output: `-`, or the system's name for it.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new("/dev/stdout")
}

impl Whole {
    /// Starts the file for `path`, with the permissions that the umask allows. An existing file stays until
    /// [`finish`](Self::finish). `-` and `/dev/stdout` are standard output, which is written to directly.
    ///
    /// # Errors
    /// The folder cannot be written to, or `path` is a folder, a link, a pipe, a socket or a device.
    pub fn create(path: &Path) -> io::Result<Whole> {
        if is_stdout(path) {
            return Ok(Whole { out: Some(Out::Stdout(io::stdout())), path: path.into() });
        }
        match std::fs::symlink_metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if there.is_symlink() => {
                let to = std::fs::read_link(path).unwrap_or_default();
                let sentence = format!("it is a link to {}; name the file itself, or another one", to.display());
                return Err(io::Error::other(sentence));
            }
            Ok(there) if !there.is_file() => {
                let sentence = "it is a pipe, a socket or a device; name a new file, or - for standard output";
                return Err(io::Error::other(sentence));
            }
            _ => {}
        }
        let name = path.file_name().ok_or_else(|| io::Error::other("it is not the name of a file"))?;
        sweep(path, name);
        let (file, part) = part(path, name)?;
        // On a file system without locks, no part is treated as a leftover.
        let _ = file.try_lock();
        Ok(Whole { out: Some(Out::Part(BufWriter::new(file), part)), path: path.into() })
    }

    /// Gives the file its name. A link that was put there meanwhile is replaced, not followed.
    ///
    /// # Errors
    /// It could not be written to its end, synced or renamed; `path` is unchanged.
    pub fn finish(mut self) -> io::Result<()> {
        match self.out.take() {
            Some(Out::Part(file, part)) => {
                let written = file.into_inner().map_err(|error| error.into_error());
                // The lock is held until the file has its name.
                let finished =
                    written.and_then(|file| file.sync_all().and_then(|()| std::fs::rename(&part, &self.path)));
                finished.inspect_err(|_| drop(std::fs::remove_file(&part))) // The first error is the one to report.
            }
            Some(Out::Stdout(mut out)) => out.flush(),
            None => Ok(()),
        }
    }
}

/// Creates a file beside `path`, and never opens an existing one: if a name is in use, even by a link, the next one is
/// tried.
fn part(path: &Path, name: &OsStr) -> io::Result<(File, PathBuf)> {
    let mut taken = io::ErrorKind::AlreadyExists.into();
    for number in (0..MAX_NUMBERS).map(|n| std::process::id().wrapping_add(n)) {
        let mut part = name.to_os_string();
        part.push(format!(".{number}.part"));
        let part = path.with_file_name(part);
        match OpenOptions::new().write(true).create_new(true).open(&part) {
            Ok(file) => return Ok((file, part)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// Removes the parts of this file that killed processes left behind.
fn sweep(path: &Path, name: &OsStr) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| is_part(&entry.file_name(), name)) {
        let path = entry.path();
        let left = entry.file_type().is_ok_and(|kind| kind.is_file())
            && super::open(&path).is_ok_and(|file| file.try_lock().is_ok());
        if left {
            let _ = std::fs::remove_file(path); // It only uses space.
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
        match &mut self.out {
            Some(Out::Part(file, _)) => file.write(bytes),
            Some(Out::Stdout(out)) => out.write(bytes),
            None => Ok(0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Some(Out::Part(file, _)) => file.flush(),
            Some(Out::Stdout(out)) => out.flush(),
            None => Ok(()),
        }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(Out::Part(_, part)) = self.out.take() {
            let _ = std::fs::remove_file(part); // Nobody is left to receive the error.
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
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

    /// A named pipe.
    #[cfg(unix)]
    pub fn fifo(path: &Path) {
        let path = std::ffi::CString::new(path.to_str().expect("text")).expect("no zero byte");
        // SAFETY: `path` ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    }

    #[cfg(unix)]
    #[test]
    fn neither_a_link_nor_a_pipe_nor_a_device_is_written_to() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "before").expect("written");
        fifo(&at("pipe"));
        for (link, to) in [("to-file", at("file")), ("to-nothing", at("nothing")), ("to-null", "/dev/null".into())] {
            symlink(to, at(link)).expect("linked");
        }
        for name in ["to-file", "to-nothing", "to-null", "pipe"] {
            let refused = Whole::create(&at(name)).err().expect("refused").to_string();
            assert!(refused.contains("; name "), "{refused}");
        }
        assert!(Whole::create(Path::new("/dev/null")).is_err());
        assert_eq!(std::fs::read(at("file")).expect("read"), b"before");
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 5, "nothing was made");
    }

    #[cfg(unix)]
    #[test]
    fn links_that_wait_at_either_name_are_not_followed() {
        use std::os::unix::fs::{MetadataExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("mine"), "before").expect("written");
        let first = format!("out.csv.{}.part", std::process::id());
        symlink(at("mine"), at(&first)).expect("linked");
        symlink(at("nothing"), at(&format!("out.csv.{}.part", std::process::id().wrapping_add(1)))).expect("linked");
        let mut whole = Whole::create(&at("out.csv")).expect("under the next name");
        whole.write_all(b"after").expect("written");
        // The link appears during the write.
        symlink(at("mine"), at("out.csv")).expect("linked");
        whole.finish().expect("finished");
        assert!(at("out.csv").symlink_metadata().expect("there").is_file());
        assert_eq!(std::fs::read(at("out.csv")).expect("read"), b"after");
        assert_eq!(std::fs::read(at("mine")).expect("read"), b"before");
        assert!(!at("nothing").exists() && at(&first).is_symlink());
        std::fs::write(at("plain"), "").expect("written");
        let mode = |name: &str| at(name).metadata().expect("there").mode();
        assert_eq!(mode("out.csv"), mode("plain"), "the umask decides");
    }
}
