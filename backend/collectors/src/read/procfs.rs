//! Files that are read at every tick: kept open and read again in place, and their numbers parsed without allocation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PAGE_BYTES: usize = 4096;

/// No file that we read at every tick comes near this; beyond it the file is not what we think it is.
const MAX_FILE_BYTES: usize = 16 << 20;

/// A file that is kept open and read from its beginning again and again: an open costs more than most reads.
#[derive(Debug)]
pub(crate) struct HotFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl HotFile {
    /// A file that is opened when it is first read.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        HotFile { path: path.into(), file: None, buffer: Vec::new() }
    }

    /// A file that can be read now.
    ///
    /// # Errors
    /// When it cannot.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let mut hot = Self::new(path);
        hot.read()?;
        Ok(hot)
    }

    /// The path that the file is opened by, also when it has come back.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its whole content. After an error it is opened anew, so that a file that was replaced is found again.
    ///
    /// # Errors
    /// When it can neither be read nor opened and read.
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

/// Reads the file from its beginning; answers how many bytes of the buffer hold it.
///
/// The kernel hands out a generated file in pieces of at most a page that end between two lines, and a piece ends early
/// only when the next line does not fit. So a piece of less than half a page was the last, and the read that would only
/// say "end of file" is spared. (Lines of the files read here are far shorter than half a page.)
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

/// What stands between blanks.
pub(crate) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b' ' || b == b'\t').filter(|field| !field.is_empty())
}

/// A whole number: digits only. Anything else, and what does not fit 64 bits, is no number.
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
        // This file is longer than a page wherever there are processes with libraries.
        for path in ["/proc/self/maps", "/proc/stat", "/proc/cpuinfo", "/proc/vmstat"] {
            let Ok(mut hot) = HotFile::open(path) else { continue };
            let names = |text: &[u8]| lines(text).filter_map(|l| fields(l).next().map(<[u8]>::to_vec)).count();
            // Other tests start threads, which have memory of their own: what stood still meanwhile is compared.
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
