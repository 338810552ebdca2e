//! Files that are read in every tick: they stay open and are read again in place, and numbers are parsed without
//! allocation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PAGE_BYTES: usize = 4096;

/// Maximum size. No file that is read in every tick comes near it, so a larger file is not the expected one.
const MAX_FILE_BYTES: usize = 16 << 20;

/// A file that stays open and is read repeatedly from its beginning: opening costs more than most reads.
#[derive(Debug)]
pub(crate) struct HotFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl HotFile {
    /// A file that is opened at its first reading.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        HotFile { path: path.into(), file: None, buffer: Vec::new() }
    }

    /// A file that is readable now.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let mut hot = Self::new(path);
        hot.read()?;
        Ok(hot)
    }

    /// The path of the file, used also to reopen it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its whole content. After an error it is reopened, so that a replaced file is found again.
    ///
    /// # Errors
    /// It can neither be read nor reopened and read.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let kept = self.file.take().and_then(|file| Some((fill(&file, &mut self.buffer).ok()?, file)));
        let (n, file) = match kept {
            Some(read) => read,
            None => {
                let file = File::open(&self.path)?;
                (fill(&file, &mut self.buffer)?, file)
            }
        };
        self.file = Some(file);
        Ok(&self.buffer[..n])
    }
}

/// Reads the file from its beginning. Returns the number of bytes read.
///
/// The kernel returns a generated file in pieces of at most a page that end between two lines. A piece ends early only
/// if the next line does not fit. So a piece of less than half a page was the last one, and the read that would only
/// return "end of file" is skipped. (Lines of these files are far shorter than half a page.)
pub(crate) fn fill(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut n = 0;
    loop {
        if buffer.len() - n < PAGE_BYTES {
            if buffer.len() > MAX_FILE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "larger than 16 MiB"));
            }
            buffer.resize((2 * buffer.len()).max(2 * PAGE_BYTES), 0);
        }
        match file.read_at(&mut buffer[n..], n as u64) {
            Ok(got) => {
                n += got;
                if got < PAGE_BYTES / 2 {
                    return Ok(n);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The lines of a text, without their ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| b == b'\n')
}

/// The fields between blanks.
pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ' || b == b'\t').filter(|field| !field.is_empty())
}

/// A whole number: digits only. None for anything else, and for numbers above 64 bits.
pub(crate) fn number(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |n, &digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 { None } else { n.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// A finite decimal number.
pub(crate) fn decimal(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok().filter(|x: &f64| x.is_finite())
}

/// The text without blanks and line ends around it.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_is_read_anew_in_place_and_after_it_came_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        let mut hot = HotFile::new(&path);
        assert_eq!(hot.read().unwrap_err().kind(), io::ErrorKind::NotFound);
        for size in [10, 2_000, 5_000, 100_000, 3] {
            let text: String = "0123456789".chars().cycle().take(size).collect();
            std::fs::write(&path, &text).unwrap();
            assert_eq!(hot.read().unwrap(), text.as_bytes(), "{size}");
        }
    }

    #[test]
    fn the_kernels_pieces_make_the_whole_file() {
        // This file is longer than a page if a process has libraries.
        for path in ["/proc/self/maps", "/proc/stat", "/proc/cpuinfo", "/proc/vmstat"] {
            let Ok(mut hot) = HotFile::open(path) else { continue };
            let names = |text: &[u8]| lines(text).filter_map(|l| fields(l).next().map(<[u8]>::to_vec)).count();
            // Other tests start threads, which allocate memory. So only a reading without a change meanwhile is
            // compared.
            let whole = || names(&std::fs::read(path).unwrap());
            let still = (0..1_000).find_map(|_| {
                let (before, own, after) = (whole(), names(hot.read().unwrap()), whole());
                (before == after).then_some((own, after))
            });
            let (own, whole) = still.expect("it stands still now and then");
            assert_eq!(own, whole, "{path}");
        }
    }

    #[test]
    fn numbers_are_digits_only() {
        for (field, value) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("0x1", None),
            ("12a", None),
        ] {
            assert_eq!(number(field.as_bytes()), value, "{field}");
        }
        assert_eq!(decimal(b"nan"), None);
        assert_eq!(decimal(b"12.50"), Some(12.5));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text: Vec<u8>) {
            for line in lines(&text) {
                for field in fields(line) {
                    let _ = (number(field), decimal(field), trim(field));
                }
            }
        }

        #[test]
        fn every_number_comes_back(n: u64) {
            prop_assert_eq!(number(n.to_string().as_bytes()), Some(n));
        }
    }
}
