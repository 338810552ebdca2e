//! The segments of a folder: their names, writing one, and finding them at the start.

use crate::files::{Append, Content, Files};
use crate::indexes::Indexes;
use shared::segment::{Contents, Damage, Dictionaries, ReadAt, Reader, SegmentError, Writer};
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Length of a segment's span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data cut at a quarter of an hour.
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
    /// Higher than that of every segment before it, so that after a clock was set back nothing is overwritten.
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
    /// Parses a file's name; none when it is no segment's.
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

/// An open segment. It stays readable after it was merged or expired, as long as it is held.
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
        self.reader.size()
    }

    /// Its reader.
    pub fn reader(&self) -> &Reader<File> {
        &self.reader
    }

    /// Its contents.
    pub fn contents(&self) -> &Contents {
        self.reader.contents()
    }

    /// Time of its newest tick or record, ms; `i64::MIN` without any.
    pub fn to(&self) -> i64 {
        let Contents { blocks, records, .. } = self.contents();
        blocks.iter().map(|b| b.to).chain(records.iter().map(|r| r.to)).max().unwrap_or(i64::MIN)
    }
}

/// A file of the folder, as input of a segment's reader.
pub struct File {
    content: Arc<dyn Content>,
    size: u64,
    indexes: Arc<Indexes>,
    /// Its number in the cache.
    number: u64,
}

impl ReadAt for File {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.content.read_at(offset, len)
    }

    fn read_index(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.indexes.get((self.number, offset), len, || self.content.read_at(offset, len))
    }
}

/// Result of [`open`].
#[derive(Default)]
pub struct FoundSegments {
    /// Sound segments by serial, without those replaced by an hour.
    pub segments: Vec<Arc<Segment>>,
    /// Files that were not opened, with the reason. They are left unchanged.
    pub refused: Vec<(String, SegmentError)>,
    /// Files replaced by an hour, and temporary ones: the holder of the lock has to [`remove`] them.
    pub leftovers: Vec<String>,
}

/// Opens all segments of a folder, which share `indexes`, without changing it.
///
/// # Errors
/// The folder cannot be listed.
pub fn open(files: &dyn Files, indexes: &Arc<Indexes>) -> io::Result<FoundSegments> {
    let mut names: Vec<Name> = Vec::new();
    let mut found = FoundSegments::default();
    for text in files.list()? {
        match Name::parse(&text) {
            Some(name) => names.push(name),
            None if text.strip_suffix(TEMPORARY).is_some_and(|text| Name::parse(text).is_some()) => {
                found.leftovers.push(text);
            }
            None => {}
        }
    }
    // Newest first, so that the files that a segment replaces are known before they are met.
    names.sort_unstable_by_key(|name| std::cmp::Reverse(name.serial));
    let known = &mut Dictionaries::default();
    let mut replaced: HashSet<String> = HashSet::new();
    for name in names {
        let text = name.to_string();
        if replaced.contains(&text) {
            found.leftovers.push(text);
            continue;
        }
        match Segment::open(files, indexes, &text, name, known) {
            Ok(segment) => {
                let stands_for = &segment.contents().replaces;
                // A merge that failed at its last step and could not be undone was repeated.
                if stands_for.iter().any(|old| replaced.contains(old)) {
                    found.leftovers.push(text);
                    continue;
                }
                replaced.extend(stands_for.iter().cloned());
                found.segments.push(Arc::new(segment));
            }
            // A concurrent merge has put it into a newer one; a reader without the lock tries again.
            Err(OpenFailed::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(OpenFailed::Io(error)) => found.refused.push((text, SegmentError::Read(error.to_string()))),
            Err(OpenFailed::Segment(error)) => found.refused.push((text, error)),
        }
    }
    found.segments.reverse();
    Ok(found)
}

enum OpenFailed {
    Io(io::Error),
    Segment(SegmentError),
}

impl Segment {
    fn open(
        files: &dyn Files,
        indexes: &Arc<Indexes>,
        file: &str,
        name: Name,
        known: &mut Dictionaries,
    ) -> Result<Segment, OpenFailed> {
        let content = files.open(file).map_err(OpenFailed::Io)?;
        let size = content.size().map_err(OpenFailed::Io)?;
        let file = File { content, size, number: indexes.number(), indexes: indexes.clone() };
        let reader = Reader::open_with(file, known).map_err(OpenFailed::Segment)?;
        Ok(Segment { name, reader })
    }
}

impl From<OpenFailed> for io::Error {
    fn from(failed: OpenFailed) -> Self {
        match failed {
            OpenFailed::Io(error) => error,
            OpenFailed::Segment(error) => io::Error::other(error),
        }
    }
}

/// Removes files; a missing one is no error.
///
/// # Errors
/// That of the system; the others are removed all the same.
pub fn remove<'a>(files: &dyn Files, names: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    let mut result = Ok(());
    for name in names {
        match files.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => result = Err(error),
            _ => {}
        }
    }
    result
}

/// Suffix of an incomplete segment.
const TEMPORARY: &str = ".tmp";

/// Writes a segment: a temporary file, synced, renamed, the folder synced. `fill` writes the blocks and returns the
/// contents. After an error there is no such file, unless the folder cannot be written at all. A remaining one is
/// recognized later by the sequences in it.
///
/// # Errors
/// That of the system, or of `fill`.
pub fn write(
    files: &dyn Files,
    indexes: &Arc<Indexes>,
    name: Name,
    fill: impl FnOnce(&mut Writer<Out>) -> io::Result<Contents>,
) -> io::Result<Arc<Segment>> {
    let text = name.to_string();
    let temporary = format!("{text}{TEMPORARY}");
    let file = files.create(&temporary)?;
    let written = (|| {
        let mut writer = Writer::begin(Out { file, held: Vec::new() })?;
        let contents = fill(&mut writer)?;
        writer.finish(&contents)?.file.sync()?;
        // Opened before it is renamed: a file that cannot be read back does not count as written.
        let opened = Segment::open(files, indexes, &temporary, name, &mut Dictionaries::default())?;
        files.rename(&temporary, &text)?;
        files.sync_folder()?;
        Ok(Arc::new(opened))
    })();
    if written.is_err() {
        // The first error is returned; a remaining file is removed at the next start.
        let _ = remove(files, [temporary.as_str(), text.as_str()]);
    }
    written
}

/// Bytes per call of the system.
const WRITE_BYTES: usize = 64 * 1024;

/// The file that [`write`] writes.
pub struct Out {
    file: Arc<dyn Append>,
    held: Vec<u8>,
}

impl io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend(bytes);
        if self.held.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.append(&self.held)?;
        self.held.clear();
        Ok(())
    }
}

/// Damage of a segment with the file's name, for logs and counts.
pub fn describe(segment: &Segment, damage: &Damage) -> String {
    format!("{}: {damage}", segment.name)
}
