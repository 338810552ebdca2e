//! Files that are read in every tick: they stay open and are read again in place, and numbers are parsed without
//! allocation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PAGE_BYTES: usize = 4096;
/// A shorter piece of a file of short records was the last one.
const LAST_BELOW: usize = PAGE_BYTES / 2;

/// Maximum size. No file that is read in every tick comes near it, so a larger file is not the expected one.
const MAX_FILE_BYTES: usize = 16 << 20;

/// A file that stays open and is read repeatedly from its beginning: opening costs more than most reads.
#[derive(Debug)]
pub(crate) struct HotFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
    /// A piece shorter than this was the last one.
    last_below: usize,
}

impl HotFile {
    /// A file that is opened at its first reading.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        HotFile { path: path.into(), file: None, buffer: Vec::new(), last_below: LAST_BELOW }
    }

    /// Same for a file whose records may be longer than half a page, as those of NFS in `mountstats`. It is read up to
    /// its end.
    pub fn of_long_records(path: impl Into<PathBuf>) -> Self {
        HotFile { last_below: 1, ..Self::new(path) }
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
        let last_below = self.last_below;
        let read = |file: &File, buffer: &mut Vec<u8>| pieces(|room, at| file.read_at(room, at), buffer, last_below);
        let kept = self.file.take().and_then(|file| Some((read(&file, &mut self.buffer).ok()?, file)));
        let (n, file) = match kept {
            Some(kept) => kept,
            None => {
                let file = File::open(&self.path)?;
                (read(&file, &mut self.buffer)?, file)
            }
        };
        self.file = Some(file);
        Ok(&self.buffer[..n])
    }
}

/// Reads the file from its beginning. Returns the number of bytes read.
///
/// The kernel returns a generated file in pieces of at most a page that end between two records. A piece ends early only
/// if the next record does not fit. So a piece of less than half a page was the last one, and the read that would only
/// return "end of file" is skipped. (Records of these files are lines far shorter than half a page, or the whole file.)
pub(crate) fn fill(file: &File, buffer: &mut Vec<u8>) -> io::Result<usize> {
    pieces(|room, at| file.read_at(room, at), buffer, LAST_BELOW)
}

/// Reads pieces one after the other: `read` fills the room with the bytes from an offset on. Returns the number of bytes.
fn pieces(
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    buffer: &mut Vec<u8>,
    last_below: usize,
) -> io::Result<usize> {
    let mut n = 0;
    loop {
        if buffer.len() - n < PAGE_BYTES {
            if buffer.len() > MAX_FILE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "larger than 16 MiB"));
            }
            buffer.resize((2 * buffer.len()).max(2 * PAGE_BYTES), 0);
        }
        match read(&mut buffer[n..], n as u64) {
            Ok(got) => {
                n += got;
                if got < last_below {
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

    /// Reads records as the kernel hands them out: as many whole ones as a page has room for, at least one.
    fn read_records(records: &[String], last_below: usize) -> String {
        let text = records.concat();
        let ends: Vec<usize> = records
            .iter()
            .scan(0, |end, record| {
                *end += record.len();
                Some(*end)
            })
            .collect();
        let read = |room: &mut [u8], at: u64| {
            let at = at as usize;
            let fits = ends.iter().copied().filter(|end| *end > at && *end <= at + PAGE_BYTES).max();
            let end = fits.or(ends.iter().copied().find(|end| *end > at)).unwrap_or(at).min(at + room.len());
            room[..end - at].copy_from_slice(&text.as_bytes()[at..end]);
            Ok(end - at)
        };
        let mut buffer = Vec::new();
        let n = pieces(read, &mut buffer, last_below).unwrap();
        String::from_utf8(buffer[..n].to_vec()).unwrap()
    }

    #[test]
    fn a_record_of_more_than_half_a_page_does_not_end_the_file() {
        let short: Vec<String> = (0..30).map(|n| format!("device {n:<32} with fstype tmpfs\n")).collect();
        let long = "device nfs\n".to_string() + &"OPERATION: 1 1 0 44 24 0 0 0 0\n".repeat(110);
        assert!(short.concat().len() < PAGE_BYTES / 2 && long.len() > PAGE_BYTES / 2);
        let (once, thrice) = (vec![long.clone()], vec![long.repeat(3)]);
        let records = [short.clone(), once, short.clone(), thrice, short.clone()].concat();
        assert_eq!(read_records(&records, 1), records.concat());
        let lines = vec![short; 10].concat();
        assert_eq!(read_records(&lines, LAST_BELOW), lines.concat());
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
