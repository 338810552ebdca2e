//! The segments of a folder: their names, how one is written, and what is found at the start.

use crate::files::{Content, Files};
use shared::segment::{Contents, Damage, ReadAt, Reader, SegmentError, Writer};
use std::fmt;
use std::io;
use std::sync::Arc;

/// How long a segment's span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What was cut off at a quarter of an hour.
    Quarter,
    /// The quarters of an hour, merged.
    Hour,
}

/// The name of a segment: `q-<start>-<serial>.seg` or `h-<start>-<serial>.seg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Quarter or hour.
    pub kind: Kind,
    /// Start of the quarter or hour by the clock, seconds since the epoch.
    pub start: i64,
    /// Higher than that of every segment before it, so that a clock that went back overwrites nothing.
    pub serial: u64,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Quarter => 'q',
            Kind::Hour => 'h',
        };
        write!(f, "{kind}-{}-{}.seg", self.start, self.serial)
    }
}

impl Name {
    /// The parts of a file's name; none when it is no segment's.
    pub fn parse(text: &str) -> Option<Name> {
        let (kind, rest) = text.strip_suffix(".seg")?.split_at_checked(2)?;
        let kind = match kind {
            "q-" => Kind::Quarter,
            "h-" => Kind::Hour,
            _ => return None,
        };
        let (start, serial) = rest.rsplit_once('-')?;
        let name = Name { kind, start: start.parse().ok()?, serial: serial.parse().ok()? };
        (name.to_string() == text).then_some(name)
    }
}

/// An open segment. It stays readable after it was merged or expired, as long as somebody holds it.
pub struct Segment {
    name: Name,
    reader: Reader<File>,
}

impl Segment {
    /// Its name.
    pub fn name(&self) -> Name {
        self.name
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        todo!()
    }

    /// What reads it.
    pub fn reader(&self) -> &Reader<File> {
        &self.reader
    }

    /// What is in it.
    pub fn contents(&self) -> &Contents {
        self.reader.contents()
    }

    /// Time of its newest tick, ms; `i64::MIN` without any.
    pub fn to(&self) -> i64 {
        self.contents().blocks.iter().map(|b| b.to).max().unwrap_or(i64::MIN)
    }
}

/// A file of the folder, as a segment's reader wants it.
pub struct File {
    content: Arc<dyn Content>,
    size: u64,
}

impl ReadAt for File {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.content.read_at(offset, len)
    }
}

/// What [`open`] found.
#[derive(Default)]
pub struct Found {
    /// Sound segments by serial, those apart that an hour stands for.
    pub segments: Vec<Arc<Segment>>,
    /// Files that were not opened, with the reason. They are left as they are.
    pub refused: Vec<(String, SegmentError)>,
    /// Files that an hour stands for, and temporary ones: to [`remove`] by who has the lock.
    pub leftovers: Vec<String>,
}

/// Opens all segments of a folder and changes nothing.
///
/// # Errors
/// The folder cannot be listed.
pub fn open(files: &dyn Files) -> io::Result<Found> {
    todo!()
}

/// Removes files; one that is gone already is no error.
///
/// # Errors
/// As the system says; the others are removed all the same.
pub fn remove<'a>(files: &dyn Files, names: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    todo!()
}

/// Writes a segment: a temporary file, synced, renamed, the folder synced. `fill` writes the blocks and returns the
/// contents. After an error there is no file.
///
/// # Errors
/// As the system says, or what `fill` said.
pub fn write(
    files: &dyn Files,
    name: Name,
    fill: impl FnOnce(&mut Writer<Out>) -> io::Result<Contents>,
) -> io::Result<Arc<Segment>> {
    todo!()
}

/// The file that [`write`] writes.
pub struct Out {
}

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        todo!()
    }

    fn flush(&mut self) -> io::Result<()> {
        todo!()
    }
}

/// Damage of a segment with the file's name, for logs and counts.
pub fn describe(segment: &Segment, damage: &Damage) -> String {
    format!("{}: {damage}", segment.name)
}
