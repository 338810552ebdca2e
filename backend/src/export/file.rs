//! A file that comes into being whole: written under another name beside it, synced, then renamed.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is being written. Dropped before [`finish`](Self::finish), it is gone.
pub struct Whole {
    /// None once it is finished.
    file: Option<BufWriter<File>>,
    part: PathBuf,
    path: PathBuf,
}

impl Whole {
    /// Begins the file that is to stand at `path`; what stands there now stays until [`finish`](Self::finish).
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn create(path: &Path) -> io::Result<Whole> {
        let name = path.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
        let mut part = name.to_os_string();
        part.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(part);
        let file = OpenOptions::new().write(true).create_new(true).open(&part)?;
        Ok(Whole { file: Some(BufWriter::new(file)), part, path: path.to_path_buf() })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// It could not be written to its end, synced or renamed; nothing stands at `path` that did not before.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            let finished = file.into_inner().map_err(|error| error.into_error()).and_then(|file| file.sync_all());
            if let Err(error) = finished.and_then(|()| std::fs::rename(&self.part, &self.path)) {
                let _ = std::fs::remove_file(&self.part); // The first error is the one to tell.
                return Err(error);
            }
        }
        Ok(())
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
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.part); // Nobody is left to be told.
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
    }
}
