//! Opens recordings of Watchglass, W&B's transaction logs, event lines and CSV files, and our own exports. The server
//! that replays a file and the page on which a file is dropped use the same code. Nothing here uses a network.
//!
//! `log.rs` and `records.rs` read `run-*.wandb`, `lines.rs` reads JSON lines, `csv.rs` tables. Each fills a [`Raw`],
//! whose tags are spelled as in the file. `tags.rs` turns it into a [`Recorded`]. Damaged parts are skipped and named
//! in the notes. A value that could not be read is no sample.

mod csv;
mod lines;
mod log;
mod records;
mod steps;
mod sums;
mod tags;
mod text;
mod told;

use serde_json::Value;
use shared::catalog::Catalog;
use shared::recording::{Machine, Recording, TITLE, blocks, steps};
use shared::segment::SegmentError;
use shared::series::SeriesDef;
use shared::wire::{Source, SourceId};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use told::Told;

/// Largest number of samples that are taken from one file. Each needs 16 bytes while the file is read.
const MAX_SAMPLES: usize = 200_000_000;

/// The content of a foreign file, as series of the catalog.
#[derive(Debug)]
struct Recorded {
    /// The catalog to which the [`SeriesDef`]s refer.
    catalog: Catalog,
    /// The machines, or the writers of a shared run. There is at least one, and each has a sample.
    sources: Vec<RecordedSource>,
    /// Facts about the whole recording: name and text.
    about: Vec<(String, String)>,
    /// Omitted parts and the reasons, in sentences for the person who opened the file.
    notes: Vec<String>,
}

/// One machine of a foreign file.
#[derive(Debug)]
struct RecordedSource {
    /// Name of the host, the label or the run.
    name: String,
    /// Usual time between two samples of a series in ms, at least 1.
    interval: i64,
    /// Facts about the machine: name and text.
    facts: Vec<(String, String)>,
    /// Series with their samples: ms since the epoch, ascending, and a finite value.
    series: Vec<(SeriesDef, Vec<(i64, f64)>)>,
}

/// A part of a file that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Damage {
    /// Offset of the first byte of the part in the file.
    at: u64,
    /// Size of the part in bytes.
    bytes: u64,
}

/// Reason why a file could not be opened.
#[derive(Debug)]
pub enum ImportError {
    /// The file could not be read.
    Io(io::Error),
    /// The file is of no known kind, or has nothing of use. The sentence names the accepted kinds.
    Unknown(String),
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ImportError::Io(error) => write!(f, "{error}"),
            ImportError::Unknown(sentence) => f.write_str(sentence),
        }
    }
}
impl std::error::Error for ImportError {}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> Self {
        ImportError::Io(error)
    }
}

/// All file kinds that can be opened, for error messages.
const ACCEPTED: &str = "a recording of watchglass record, W&B's run-*.wandb, its wandb-events.jsonl, a CSV file of its system charts, or a CSV or JSON export of Watchglass";

/// Largest number of series that are taken from one file, as many as a source may have. No real run has more.
const MAX_SERIES: usize = 100_000;
/// Length in bytes of the longest tag; a longer one is left out. No path is as long.
const MAX_TAG_BYTES: usize = 4096;
/// Length in bytes of the longest tag that is made of the names in nested objects. The limit is low, because each name
/// may become part of many tags.
const MAX_NESTED_TAG_BYTES: usize = 256;

/// The samples of one spelling of a tag, in the order of the file.
#[derive(Debug)]
struct Series {
    /// Name of the source; empty for the machine of the run itself.
    source: String,
    tag: String,
    samples: Vec<(i64, f64)>,
}

/// The content of a file, with tags spelled as in the file.
#[derive(Debug, Default)]
struct Raw {
    series: Vec<Series>,
    /// Index in `series` by source and tag.
    places: HashMap<String, HashMap<String, usize>>,
    samples: usize,
    /// Number of samples that were left out: their tag is too long, or the file has too many series.
    left_out: u64,
    host: Option<String>,
    facts: Vec<(String, String)>,
    /// Version of the W&B that wrote the file: 0.31 is (0, 31). None if the file does not contain it.
    version: Option<(u32, u32)>,
    damages: Vec<Damage>,
    notes: Vec<String>,
}

impl Raw {
    /// Adds a value. A number is a sample, and an object holds several tags. Everything else, like NaN and null, is
    /// skipped.
    fn put(&mut self, tag: &str, t: i64, value: &Value) {
        match value {
            Value::Number(number) => {
                if let Some(v) = number.as_f64() {
                    self.sample("", tag, t, v);
                }
            }
            Value::Object(parts) => {
                for (name, value) in parts {
                    match tag.len() + name.len() < MAX_NESTED_TAG_BYTES {
                        true => self.put(&format!("{tag}.{name}"), t, value),
                        false => self.left_out += 1,
                    }
                }
            }
            _ => {}
        }
    }

    fn sample(&mut self, source: &str, tag: &str, t: i64, v: f64) {
        if v.is_finite()
            && let Some(place) = self.place(source, tag)
        {
            self.add(place, t, v);
        }
    }

    /// The index of a series, which is added if needed; None when there are too many series, or when the name is too
    /// long.
    fn place(&mut self, source: &str, tag: &str) -> Option<usize> {
        if source.len().max(tag.len()) > MAX_TAG_BYTES {
            self.left_out += 1;
            return None;
        }
        steps::count(source.len() + tag.len());
        if let Some(place) = self.places.get(source).and_then(|tags| tags.get(tag)) {
            return Some(*place);
        }
        if self.series.len() >= MAX_SERIES {
            self.left_out += 1;
            return None;
        }
        let place = self.series.len();
        self.series.push(Series { source: source.into(), tag: tag.into(), samples: Vec::new() });
        self.places.entry(source.into()).or_default().insert(tag.into(), place);
        Some(place)
    }

    /// Adds a sample to the series at the index `place`.
    fn add(&mut self, place: usize, t: i64, v: f64) {
        if v.is_finite() && self.samples < MAX_SAMPLES {
            self.samples += 1;
            self.series[place].samples.push((t, v));
        }
    }

    fn fact(&mut self, name: &str, text: String) {
        if !text.is_empty() && !self.facts.iter().any(|(known, _)| known == name) {
            self.facts.push((name.into(), text));
        }
    }

    fn written_by(&mut self, version: &str) {
        let mut numbers = version.split('.').map(|n| n.parse::<u32>().ok());
        if let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) {
            self.version = Some((major, minor));
            self.fact("wandb", version.to_string());
        }
    }
}

/// A function that opens a file for reading. The caller chooses it, to reject files that are not plain on its system.
type Opener = fn(&Path) -> io::Result<File>;

/// Opens a file, or the folder of a W&B run. `catalog` is the table by which tags are understood.
///
/// # Errors
/// Returns [`ImportError`] when the file cannot be read, is of no known kind, or holds no sample of a known tag.
pub fn open(path: &Path, opener: Opener, catalog: Catalog) -> Result<Recording, ImportError> {
    let path = if path.is_dir() { in_folder(path)? } else { path.to_path_buf() };
    let mut bytes = Vec::new();
    opener(&path)?.read_to_end(&mut bytes)?;
    let mut raw = Raw::default();
    metadata(&path, opener, &mut raw);
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    opened(&bytes, &name, raw, catalog, &mut |_| {})
}

/// Opens the bytes of a file whose name is `name`. `tell` receives the share that was read, 0 to 1, about once per MiB.
///
/// # Errors
/// Returns the same errors as [`open`].
pub fn from_bytes(
    bytes: &[u8],
    name: &str,
    catalog: Catalog,
    tell: &mut dyn FnMut(f64),
) -> Result<Recording, ImportError> {
    opened(bytes, name, Raw::default(), catalog, tell)
}

/// Opens the bytes of a file. `name` is the title when the file has none; `raw` holds facts from files beside it. Notes
/// and errors are made safe for display, because their text may come from the file.
fn opened(
    bytes: &[u8],
    name: &str,
    raw: Raw,
    catalog: Catalog,
    tell: &mut dyn FnMut(f64),
) -> Result<Recording, ImportError> {
    match as_recording(bytes, name, raw, catalog, tell) {
        Ok(recording) => Ok(Recording { notes: text::all_safe(&recording.notes), ..recording }),
        Err(ImportError::Unknown(sentence)) => Err(ImportError::Unknown(text::safe(&sentence))),
        Err(error) => Err(error),
    }
}

fn as_recording(
    bytes: &[u8],
    name: &str,
    raw: Raw,
    catalog: Catalog,
    tell: &mut dyn FnMut(f64),
) -> Result<Recording, ImportError> {
    let mut recording = match Recording::open(bytes) {
        Ok(recording) if recording.span().is_some() => recording,
        Ok(recording) => {
            let why = recording.notes.join("; ");
            return Err(ImportError::Unknown(format!("the recording holds no sample that can be read: {why}")));
        }
        Err(SegmentError::NotASegment) => recording(imported(Told::new(bytes, tell), name, raw, catalog)?),
        Err(error @ SegmentError::Newer { .. }) => return Err(ImportError::Unknown(error.to_string())),
        Err(error) => {
            let text = format!("{error}, and so is what would say what is in it; what can be opened is {ACCEPTED}");
            return Err(ImportError::Unknown(text));
        }
    };
    if !recording.about.iter().any(|(fact, _)| fact == TITLE) {
        recording.about.insert(0, (TITLE.to_string(), name.to_string()));
    }
    Ok(recording)
}

/// Reads a foreign file. `name` is used for a machine that the file does not name.
fn imported(file: impl BufRead, name: &str, mut raw: Raw, catalog: Catalog) -> Result<Recorded, ImportError> {
    read(file, &mut raw)?;
    let name = Path::new(name).file_stem().map_or_else(|| "recorded".into(), |stem| stem.to_string_lossy());
    tags::assemble(raw, &name, catalog)
}

/// Turns the content of a foreign file into a recording.
fn recording(recorded: Recorded) -> Recording {
    let Recorded { catalog, sources, about, notes } = recorded;
    let machine = |(number, source): (usize, RecordedSource)| {
        let (series, samples): (Vec<SeriesDef>, Vec<Vec<(i64, f64)>>) = source.series.into_iter().unzip();
        let id = number as SourceId;
        let blocks = blocks(id, 1, &samples, &steps(&catalog, &series));
        let info = Source::new(id, source.name, source.interval, source.facts);
        Machine { info, series, blocks, records: Vec::new() }
    };
    let machines = sources.into_iter().enumerate().map(machine).collect();
    Recording { catalog, machines, about, notes }
}

fn read(mut file: impl BufRead, raw: &mut Raw) -> Result<(), ImportError> {
    let head = file.fill_buf()?;
    if head.starts_with(log::MAGIC) {
        raw.damages = log::records(file, |record| records::take(raw, record))?;
        return Ok(());
    }
    let first = head.iter().find(|b| !b.is_ascii_whitespace() && !matches!(b, 0xef | 0xbb | 0xbf));
    match first {
        Some(b'{') => lines::read(file, raw),
        // Text without control characters may be a table.
        Some(_) if head.iter().take(512).all(|b| *b >= b' ' || b.is_ascii_whitespace()) => csv::read(file, raw),
        Some(_) => {
            Err(ImportError::Unknown(format!("this is no file of a known kind; what can be opened is {ACCEPTED}")))
        }
        None => Err(ImportError::Unknown(format!("the file is empty; what can be opened is {ACCEPTED}"))),
    }
}

/// The file to read in the folder of a run.
fn in_folder(folder: &Path) -> Result<PathBuf, ImportError> {
    let mut logs: Vec<PathBuf> = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "wandb"))
        .collect();
    logs.sort();
    let lines = [folder.join("files/wandb-events.jsonl"), folder.join("wandb-events.jsonl")];
    logs.into_iter().chain(lines).find(|p| p.is_file()).ok_or_else(|| {
        ImportError::Unknown(format!(
            "there is neither a run-*.wandb nor a wandb-events.jsonl in {}; name the folder of one run, wandb/run-...",
            folder.display()
        ))
    })
}

/// Reads the metadata that W&B wrote beside the file, if they are there.
fn metadata(path: &Path, opener: Opener, raw: &mut Raw) {
    let Some(folder) = path.parent() else { return };
    let text = ["wandb-metadata.json", "files/wandb-metadata.json"].into_iter().find_map(|name| {
        let mut text = String::new();
        opener(&folder.join(name)).ok()?.take(1 << 20).read_to_string(&mut text).ok()?;
        Some(text)
    });
    let Some(Value::Object(all)) = text.and_then(|text| serde_json::from_str(&text).ok()) else { return };
    let text = |name: &str| match all.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    raw.host = Some(text("host")).filter(|host| !host.is_empty());
    for (name, key) in
        [("os", "os"), ("python", "python"), ("cores", "cpu_count"), ("gpu", "gpu"), ("gpus", "gpu_count")]
    {
        raw.fact(name, text(key));
    }
}

#[cfg(test)]
mod tests;
