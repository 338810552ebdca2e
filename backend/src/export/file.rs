//! A file that comes into being whole: written under another name beside it, synced, then renamed. A device or a pipe is
//! written to as it stands.

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
        let mut part = name.to_os_string();
        part.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(part);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
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
        let finished = written.and_then(|file| file.sync_all()).and_then(|()| std::fs::rename(part, &self.path));
        finished.inspect_err(|_| drop(std::fs::remove_file(part))) // The first error is the one to tell.
    }
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
