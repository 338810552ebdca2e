//! Output of the jobs of this machine, read from the files that their launchers write; see [`shared::output`]. Records
//! and summaries do not include it, because everybody who may see a run receives those.

use crate::failure::{Failure, classify};
use shared::output::{ENDING, FOLDER, LAST_LINES, OutputLine, OutputStream, plain, process_file};
use shared::run::{How, Run, RunProcess, check_id};
use shared::wire::SourceId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Folder in the data folder for data of ended runs.
pub(super) const ENDED: &str = "ended-runs";

/// Maximum length of a row that is read from a file, bytes.
const MAX_ROW_BYTES: usize = 64 << 10;

/// Bytes that are read first from the end of a file; four times as many whenever they have too few lines.
const TAIL_BYTES: u64 = 256 << 10;

/// Maximum number of files of a run that are read.
const MAX_FILES: usize = 10_000;

/// Lines are kept this much longer than the retention, as samples are.
const SLACK_MS: i64 = 3_600_000;

/// Maximum length of a quoted line, bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// A line of a process of a run, or a number of lost lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedRow {
    /// Start of the process, milliseconds since the Unix epoch, and its PID: they identify it in the run.
    pub process: (i64, u32),
    /// The line; if its `lost` is not 0, that many lines are missing there.
    pub line: OutputLine,
}

/// Location of the lines.
#[derive(Clone, Debug)]
struct OutputPlace {
    folder: PathBuf,
    /// Folder with the last lines of ended runs.
    ended: PathBuf,
    source: SourceId,
}

/// The output files of this machine.
#[derive(Debug, Default)]
pub struct RunLogs(Option<OutputPlace>);

/// Filter of rows.
pub type Keeps<'a> = &'a (dyn Fn(&PrintedRow) -> bool + Sync);

impl RunLogs {
    /// The files of this source, in a data folder.
    pub fn open(folder: &Path, source: SourceId) -> Self {
        RunLogs(Some(OutputPlace { folder: folder.join(FOLDER), ended: folder.join(ENDED), source }))
    }

    /// The source whose output is stored here.
    pub fn source(&self) -> Option<SourceId> {
        self.0.as_ref().map(|place| place.source)
    }

    /// The newest lines of a run between two times, milliseconds since the Unix epoch, at most `limit`, in order. The
    /// stored last lines are used if the files have gone. It reads the disk.
    pub fn newest(&self, run: &str, (from, to): (i64, i64), limit: usize, keeps: Keeps) -> Vec<PrintedRow> {
        let Some(place) = &self.0 else { return Vec::new() };
        let within = |row: &PrintedRow| (from..=to).contains(&row.line.t) && (row.line.lost > 0 || keeps(row));
        let processes = processes(&place.folder, run);
        let mut rows: Vec<PrintedRow> = Vec::new();
        for (process, files) in &processes {
            rows.extend(newest_of(*process, files, from, limit, &within));
        }
        if processes.is_empty() {
            rows = last_lines(&place.ended, run);
            rows.retain(within);
        }
        rows.sort_by_key(|row| (row.line.t, row.process, row.line.n));
        rows.split_off(rows.len().saturating_sub(limit))
    }

    /// The lines of a run between two times, in order, read on demand. Only lines whose numbers are above the mark of
    /// their process are returned.
    pub(super) fn behind(&self, run: &str, span: (i64, i64), marks: &BTreeMap<(i64, u32), u64>) -> AllRows {
        let Some(place) = &self.0 else { return AllRows::default() };
        let processes = processes(&place.folder, run);
        let mut kept = if processes.is_empty() { last_lines(&place.ended, run) } else { Vec::new() };
        let mark = |process: &(i64, u32)| marks.get(process).copied().unwrap_or_default();
        kept.retain(|row| row.line.n > mark(&row.process));
        let of_files = processes.into_iter().map(|(process, files)| {
            let mark = mark(&process);
            Of::Files(Box::new(Reading::behind(process, files, mark)))
        });
        let of_kept = (!kept.is_empty()).then(|| Of::Kept(kept.into_iter()));
        AllRows { parts: of_files.chain(of_kept).map(|part| (part, None)).collect(), span, begun: false }
    }

    /// Stores the last lines of each process of a run, and of each rank that a launcher names, as long as the run is
    /// stored.
    pub(super) fn keep_last(&self, run: &Run, source: &str) -> io::Result<()> {
        let Some(place) = &self.0 else { return Ok(()) };
        let ranks = Ranks::from_run(run, source);
        let mut rows: BTreeMap<_, Vec<PrintedRow>> = BTreeMap::new();
        for (process, files) in processes(&place.folder, run.machine_id()) {
            // Ranks of a launcher write in turn: the last lines of some are far before those of others.
            let many = LAST_LINES * (1 + ranks.numbers.len());
            for row in newest_of(process, &files, i64::MIN, many, &|_| true) {
                let own = rows.entry((process, ranks.of_row(&row))).or_default();
                own.push(row);
                if own.len() > LAST_LINES {
                    own.remove(0);
                }
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let mut rows: Vec<PrintedRow> = rows.into_values().flatten().collect();
        rows.sort_by_key(|row| (row.line.t, row.process, row.line.n));
        fs::create_dir_all(&place.ended)?;
        let path = last_file(&place.ended, run.machine_id());
        let new = path.with_extension("new-lines");
        let mut file = private(&new)?;
        for PrintedRow { process, line } in rows {
            serde_json::to_writer(&mut file, &(process.0, process.1, line)).map_err(io::Error::other)?;
            file.write_all(b"\n")?;
        }
        fs::rename(new, path)
    }

    /// Removes the lines of processes of a run, by the ID that machines use, that began until `last`, milliseconds since
    /// the Unix epoch.
    pub fn remove(&self, run: &str, last: i64) {
        let Some(place) = &self.0 else { return };
        let old = processes(&place.folder, run).into_iter().filter(|((began, _), _)| *began <= last);
        for path in old.flat_map(|(_, files)| files).chain([last_file(&place.ended, run)]).filter(|path| path.exists())
        {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, "{} cannot be removed", path.display());
            }
        }
    }

    /// Removes lines that are older than the retention of samples at `now`, both in milliseconds; and the oldest if
    /// there are more than `most` bytes.
    pub(super) fn expire(&self, (now, retention): (i64, i64), most: u64) {
        let Some(place) = &self.0 else { return };
        let oldest =
            SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(now - retention - SLACK_MS).unwrap_or(0));
        let mut files = Vec::new();
        // A link is no folder of a run.
        let runs = fs::read_dir(&place.folder).into_iter().flatten().flatten();
        let runs = runs.filter(|entry| entry.file_type().is_ok_and(|found| found.is_dir()));
        for run in runs.map(|entry| entry.path()) {
            let mut left = 0;
            for entry in fs::read_dir(&run).into_iter().flatten().flatten() {
                if entry.file_name().to_str().and_then(process_file).is_none() {
                    left += 1;
                    continue;
                }
                let Some((found, written)) =
                    entry.metadata().ok().and_then(|found| Some((found.len(), found.modified().ok()?)))
                else {
                    continue;
                };
                match written < oldest {
                    true => _ = fs::remove_file(entry.path()),
                    false => files.push((written, found, entry.path())),
                }
                left += usize::from(written >= oldest);
            }
            // A launcher may be about to write there.
            let is_old = run.metadata().and_then(|found| found.modified()).is_ok_and(|touched| touched < oldest);
            if left == 0 && is_old {
                let _ = fs::remove_dir(&run);
            }
        }
        files.sort();
        let mut all: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if all <= most {
                break;
            }
            let _ = fs::remove_file(path);
            all -= bytes;
        }
    }
}

/// Creates a file for our user alone.
fn private(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create(true).truncate(true).open(path)
}

/// Path of the last lines of an ended run.
pub(super) fn last_file(ended: &Path, run: &str) -> PathBuf {
    ended.join(format!("{run}.{ENDING}"))
}

fn last_lines(ended: &Path, run: &str) -> Vec<PrintedRow> {
    if check_id(run).is_err() {
        return Vec::new();
    }
    let text = fs::read(last_file(ended, run)).unwrap_or_default();
    let rows = text.split(|byte| *byte == b'\n').filter_map(|row| serde_json::from_slice(row).ok());
    rows.map(|(began, pid, line)| PrintedRow { process: (began, pid), line }).collect()
}

/// The files of a run, by process, each in order.
fn processes(folder: &Path, run: &str) -> BTreeMap<(i64, u32), Vec<PathBuf>> {
    let mut found: BTreeMap<(i64, u32), BTreeMap<u32, PathBuf>> = BTreeMap::new();
    let entries = match check_id(run) {
        Ok(()) => fs::read_dir(folder.join(run)).into_iter().flatten().flatten(),
        Err(_) => return BTreeMap::new(),
    };
    for path in entries.map(|entry| entry.path()).take(MAX_FILES) {
        if let Some((process, number)) = path.file_name().and_then(|name| process_file(name.to_str()?)) {
            found.entry(process).or_default().insert(number, path);
        }
    }
    found.into_iter().map(|(process, files)| (process, files.into_values().collect())).collect()
}

/// Returns the gap before a line, from its number and that of the line before.
fn gap(last: &mut Option<u64>, line: &OutputLine) -> Option<OutputLine> {
    let before = if line.lost > 0 { line.n } else { line.n.saturating_sub(1) };
    let missing = last.map_or(0, |last| before.saturating_sub(last));
    *last = Some(line.n);
    (missing > 0).then(|| OutputLine { t: line.t, n: before, lost: missing, ..OutputLine::default() })
}

/// The newest matching rows of a process.
fn newest_of(
    process: (i64, u32),
    files: &[PathBuf],
    from: i64,
    limit: usize,
    wanted: &dyn Fn(&PrintedRow) -> bool,
) -> Vec<PrintedRow> {
    let mut parts: Vec<Vec<PrintedRow>> = Vec::new();
    let mut count = 0;
    for path in files.iter().rev() {
        let Ok(mut file) = File::open(path) else { continue };
        let size = file.metadata().map_or(0, |found| found.len());
        let mut length = TAIL_BYTES;
        let (rows, is_older) = loop {
            let begin = size.saturating_sub(length);
            let mut bytes = Vec::new();
            let read =
                file.seek(SeekFrom::Start(begin)).and_then(|_| (&mut file).take(size - begin).read_to_end(&mut bytes));
            if read.is_err() {
                break (Vec::new(), false);
            }
            // The first row in a block is complete only if the block starts at the begin of the file.
            let first = if begin == 0 {
                0
            } else {
                bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1)
            };
            let lines = bytes[first..].split_inclusive(|byte| *byte == b'\n').filter(|row| row.ends_with(b"\n"));
            let mut last = None;
            let (mut rows, mut oldest) = (Vec::new(), i64::MAX);
            for line in lines.filter_map(|row| serde_json::from_slice::<OutputLine>(row).ok()) {
                oldest = oldest.min(line.t);
                let row = |line| PrintedRow { process, line };
                let lost = gap(&mut last, &line).map(row);
                let own = (line.lost == 0).then(|| row(line));
                rows.extend(lost.into_iter().chain(own).filter(wanted));
            }
            if begin == 0 || rows.len() + count >= limit || oldest < from {
                break (rows, oldest < from);
            }
            length *= 4;
        };
        count += rows.len();
        parts.push(rows);
        if count >= limit || is_older {
            break;
        }
    }
    let mut all: Vec<PrintedRow> = parts.into_iter().rev().flatten().collect();
    all.split_off(all.len().saturating_sub(limit))
}

/// Reader of all rows of a process, from its first file on.
struct Reading {
    process: (i64, u32),
    files: std::vec::IntoIter<PathBuf>,
    file: Option<BufReader<File>>,
    last: Option<u64>,
    waiting: Option<PrintedRow>,
    mark: u64,
}

/// Number of the first line of a file.
fn first_number(path: &Path) -> Option<u64> {
    let mut bytes = Vec::new();
    BufReader::new(File::open(path).ok()?.take(MAX_ROW_BYTES as u64)).read_until(b'\n', &mut bytes).ok()?;
    serde_json::from_slice::<OutputLine>(&bytes).ok().map(|line| line.n)
}

impl Reading {
    /// Reads the rows after a number; the number of the first line shows how many are missing before it.
    fn behind(process: (i64, u32), mut files: Vec<PathBuf>, mark: u64) -> Reading {
        let is_behind = |path: &PathBuf| first_number(path).is_some_and(|first| first > mark + 1);
        // The line is in the file before the first one that begins after it.
        let at = if mark == 0 { 0 } else { files.partition_point(|path| !is_behind(path)).saturating_sub(1) };
        Reading { process, files: files.split_off(at).into_iter(), file: None, last: Some(mark), waiting: None, mark }
    }
}

impl Iterator for Reading {
    type Item = PrintedRow;

    fn next(&mut self) -> Option<PrintedRow> {
        if let Some(row) = self.waiting.take() {
            return Some(row);
        }
        let mut bytes = Vec::new();
        loop {
            let Some(file) = &mut self.file else {
                // A file that was removed meanwhile is skipped.
                self.file = File::open(self.files.next()?).ok().map(BufReader::new);
                continue;
            };
            bytes.clear();
            let read = file.take(MAX_ROW_BYTES as u64).read_until(b'\n', &mut bytes);
            if read.map_or(0, |read| read) == 0 {
                self.file = None;
                continue;
            }
            let Ok(line) = serde_json::from_slice::<OutputLine>(&bytes) else { continue };
            if line.n <= self.mark {
                continue;
            }
            let process = self.process;
            let lost = gap(&mut self.last, &line).map(|line| PrintedRow { process, line });
            let own = (line.lost == 0).then_some(PrintedRow { process, line });
            match (lost, own) {
                (Some(lost), own) => {
                    self.waiting = own;
                    return Some(lost);
                }
                (None, Some(own)) => return Some(own),
                (None, None) => {}
            }
        }
    }
}

enum Of {
    Files(Box<Reading>),
    Kept(std::vec::IntoIter<PrintedRow>),
}

/// All rows of a run, from `RunLogs::behind`.
#[derive(Default)]
pub struct AllRows {
    parts: Vec<(Of, Option<PrintedRow>)>,
    span: (i64, i64),
    begun: bool,
}

impl Iterator for AllRows {
    type Item = PrintedRow;

    fn next(&mut self) -> Option<PrintedRow> {
        let (from, to) = self.span;
        let fill = |(of, next): &mut (Of, Option<PrintedRow>)| {
            let within = |row: &PrintedRow| (from..=to).contains(&row.line.t);
            *next = match of {
                Of::Files(reading) => reading.find(within),
                Of::Kept(rows) => rows.find(within),
            };
        };
        if !std::mem::replace(&mut self.begun, true) {
            self.parts.iter_mut().for_each(fill);
        }
        let time = |(_, next): &(Of, Option<PrintedRow>)| next.as_ref().map(|row| row.line.t);
        let at =
            (0..self.parts.len()).filter(|at| self.parts[*at].1.is_some()).min_by_key(|at| time(&self.parts[*at]))?;
        let row = self.parts[at].1.take();
        fill(&mut self.parts[at]);
        row
    }
}

/// Finds the rank that wrote a line: that of its process, or the one in the prefix of a launcher of several ranks.
#[derive(Debug, Default)]
pub struct Ranks {
    processes: BTreeMap<(i64, u32), (Option<u32>, Option<String>)>,
    /// Ranks of the run, and those of this machine by their local numbers.
    numbers: BTreeSet<u32>,
    locals: BTreeMap<u32, u32>,
}

impl Ranks {
    /// The ranks of a run on the machine of this name.
    pub fn from_run(run: &Run, source: &str) -> Ranks {
        let here = || run.processes.iter().filter(|one| one.source == source);
        let known =
            |one: &RunProcess| ((one.began, one.pid), (one.rank.as_ref().map(|rank| rank.rank), one.label.clone()));
        let ranks = || here().filter_map(|one| one.rank.as_ref());
        Ranks {
            processes: here().map(known).collect(),
            numbers: run.processes.iter().filter_map(|one| one.rank.as_ref()).map(|rank| rank.rank).collect(),
            locals: ranks().filter_map(|rank| Some((rank.local?, rank.rank))).collect(),
        }
    }

    /// The rank that wrote a row.
    pub fn of_row(&self, row: &PrintedRow) -> Option<u32> {
        let own = self.processes.get(&row.process).and_then(|(rank, _)| *rank);
        let named = prefix(&row.line.text).and_then(|(kind, number, _)| match kind {
            Prefix::Rank => self.numbers.get(&number).copied(),
            Prefix::Local => self.locals.get(&number).copied(),
        });
        named.or(own)
    }

    /// Label of the process that wrote a row.
    pub fn label(&self, row: &PrintedRow) -> Option<&str> {
        self.processes.get(&row.process).and_then(|(_, label)| label.as_deref())
    }
}

enum Prefix {
    /// `[rank3]:` of PyTorch, `3: ` of srun.
    Rank,
    /// `[default3]:` of torchrun, by the number on the machine.
    Local,
}

/// A launcher's prefix of a line, and the rest of the line.
fn prefix(text: &str) -> Option<(Prefix, u32, &str)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if let Some(inner) = text.strip_prefix('[') {
        let (name, rest) = inner.split_once("]:")?;
        let at = name.find(|c: char| c.is_ascii_digit())?;
        let kind = match &name[..at] {
            "rank" => Prefix::Rank,
            role if role.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => Prefix::Local,
            _ => return None,
        };
        // Frames of tracebacks keep their indentation.
        return Some((kind, name[at..].parse().ok()?, rest.strip_prefix(' ').unwrap_or(rest)));
    }
    let bare = text.trim_start_matches(' ');
    let (number, rest) = bare.split_at(digits(bare));
    Some((Prefix::Rank, number.parse().ok()?, rest.strip_prefix(": ")?))
}

/// A line without its launcher's prefix.
pub fn bare(text: &str) -> &str {
    prefix(text).map_or(text, |(.., rest)| rest)
}

/// The class of a failure, and the index of the line that names it, from the last lines of a process.
pub(super) fn read_failure<'a>(how: &How, lines: impl Iterator<Item = &'a OutputLine>) -> Option<Failure> {
    let texts: Vec<String> = lines.map(|line| plain(&line.text)).collect();
    classify(how, &texts.iter().map(|text| bare(text)).collect::<Vec<_>>())
}

/// The line among the last ones of a rank that best explains its end: the one that names the class of its failure, else
/// the last that names an error, else the last with a text.
pub fn last_words(how: &How, rows: &[PrintedRow]) -> Option<String> {
    let lines: Vec<&OutputLine> = rows.iter().map(|row| &row.line).filter(|line| line.lost == 0).collect();
    let named = read_failure(how, lines.iter().copied()).and_then(|failure| failure.line);
    let texts: Vec<String> = lines.iter().map(|line| bare(&plain(&line.text)).trim().to_string()).collect();
    let tells = |text: &&String| {
        let first = text.split([':', ' ', '(']).next().unwrap_or_default();
        let is_name = first.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
        is_name && (first.ends_with("Error") || first.ends_with("Exception"))
            || ["CUDA", "NCCL", "fatal", "panicked"].iter().any(|word| text.contains(word))
    };
    let mut filled = texts.iter().rev().filter(|text| !text.is_empty());
    let said = named.and_then(|at| texts.get(at));
    let mut line = said.or_else(|| filled.clone().find(tells)).or_else(|| filled.next())?.clone();
    let end = (0..=line.len().min(MAX_QUOTED_BYTES)).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    line.truncate(end);
    Some(line)
}

/// Whether a row contains a text, case ignored, and is from a stream.
pub fn fits(row: &PrintedRow, stream: Option<OutputStream>, text: Option<&str>) -> bool {
    stream.is_none_or(|stream| row.line.stream == stream)
        && text.is_none_or(|text| plain(&row.line.text).to_lowercase().contains(text))
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
