//! Writes the lines of a job to files, on a thread of its own. It never blocks callers: lines that cannot be written in
//! time, or at all, are counted and dropped.

use super::folder::Folder;
use super::lines::{Assembler, Gate, text};
use parking_lot::{Condvar, Mutex, MutexGuard};
use shared::output::{ENDING, MAX_FILE_BYTES, MAX_RUN_BYTES, OutputLine, OutputStream, process_file};
use shared::redact::Redactor;
use shared::unit::size;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval of writes, counted from the first waiting line.
const WRITE_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum size of the queue of lines, bytes.
const MAX_WAITING_BYTES: usize = 1 << 20;

/// Queue size from which lines are written at once, bytes.
const MANY_BYTES: usize = 64 << 10;

/// Time after which a new file begins. Samples expire by the hour, and lines expire with them by the file.
const MAX_FILE_AGE: Duration = Duration::from_secs(3_600);

/// Bytes written between two checks of the total size.
const LOOK_BYTES: u64 = 1 << 20;

/// Free bytes on a disk that are left to other programs.
const LEFT_BYTES: u64 = 256 << 20;

/// Delay after a failure before the next attempt.
const RETRY: Duration = Duration::from_secs(10);

/// The queue of lines to be written.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Number of the last line.
    n: u64,
    /// Number of dropped lines between the last line in `bytes` and line `n`.
    lost: u64,
    /// Time of the first of them.
    lost_at: i64,
    gate: Gate,
    ended: bool,
    /// Reason of the first write failure, if any.
    failed: Option<String>,
}

/// Receives lines of a job, from each of its streams.
#[derive(Clone, Debug, Default)]
pub struct Keeper(Arc<(Mutex<Waiting>, Condvar)>);

impl Keeper {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.0.lock()
    }

    /// Adds bytes read from a stream at the time `now`, milliseconds since the Unix epoch.
    pub fn take(&self, assembler: &mut Assembler, stream: OutputStream, bytes: &[u8], now: i64) {
        assembler.take(bytes, |raw, cut, redactor| self.line(stream, (raw, cut), redactor, now));
    }

    /// Adds the last line, which has no line end.
    pub fn rest(&self, assembler: &mut Assembler, stream: OutputStream, now: i64) {
        if let Some((raw, cut, redactor)) = assembler.rest() {
            self.line(stream, (&raw, cut), redactor, now);
        }
    }

    fn line(&self, stream: OutputStream, (raw, cut): (&[u8], bool), redactor: &mut Redactor, now: i64) {
        let mut waiting = self.waiting();
        waiting.n += 1;
        if waiting.bytes.len() > MAX_WAITING_BYTES || !waiting.gate.lets(now, raw.len()) {
            if waiting.lost == 0 {
                waiting.lost_at = now;
            }
            redactor.skip(raw);
            return waiting.lost += 1;
        }
        let n = waiting.n;
        // The lock gives the lines of both streams one order.
        let (text, cut) = text(raw, cut, redactor);
        waiting.lost_row(n - 1);
        let was_empty = waiting.bytes.is_empty();
        waiting.row(&OutputLine { t: now, n, stream, text, cut, lost: 0 });
        if was_empty || waiting.bytes.len() >= MANY_BYTES {
            self.0.1.notify_one();
        }
    }

    /// Ends the writer after it has written the queue.
    pub fn end(&self) {
        self.waiting().ended = true;
        self.0.1.notify_one();
    }

    /// Reason of the first write failure, if any.
    pub fn failed(&self) -> Option<String> {
        self.waiting().failed.clone()
    }

    /// Writes until [`end`](Self::end), into files named by `stem` in the folder of a run below `logs`.
    pub fn write(&self, logs: Folder, run: &str, stem: &str) {
        let mut files = Files::new(logs, run, stem);
        loop {
            let (bytes, ended) = {
                let mut waiting = self.waiting();
                while waiting.bytes.is_empty() && !waiting.ended {
                    self.0.1.wait(&mut waiting);
                }
                let until = Instant::now() + WRITE_INTERVAL;
                while waiting.bytes.len() < MANY_BYTES && !waiting.ended {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    let _ = self.0.1.wait_for(&mut waiting, left);
                }
                let n = waiting.n;
                waiting.lost_row(n);
                (std::mem::take(&mut waiting.bytes), waiting.ended)
            };
            if let Err(why) = files.write(&bytes) {
                self.waiting().failed.get_or_insert(why);
            }
            if ended {
                return;
            }
        }
    }
}

impl Waiting {
    fn row(&mut self, line: &OutputLine) {
        if serde_json::to_writer(&mut self.bytes, line).is_ok() {
            self.bytes.push(b'\n');
        }
    }

    /// Adds a row with the number of lines dropped up to line `n`.
    fn lost_row(&mut self, n: u64) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.row(&OutputLine { t: self.lost_at, n, lost, ..OutputLine::default() });
        }
    }
}

/// The output files of one process.
struct Files {
    /// The folder of all runs, and the name of this run's folder.
    logs: Folder,
    run: String,
    stem: String,
    number: u32,
    /// The newest file, its bytes, and the time at which the next one begins.
    file: Option<(File, u64, Instant)>,
    /// Bytes written since the last check of the total size.
    unseen: u64,
    retry: Option<Instant>,
}

impl Files {
    fn new(logs: Folder, run: &str, stem: &str) -> Files {
        Files { logs, run: run.into(), stem: stem.into(), number: 0, file: None, unseen: 0, retry: None }
    }

    /// Writes rows. Rows that cannot be written are dropped; readers see that by the line numbers.
    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        if bytes.is_empty() || self.retry.is_some_and(|at| Instant::now() < at) {
            return Ok(());
        }
        let written = self.open().and_then(|()| {
            let Some((file, size, _)) = &mut self.file else { return Ok(()) };
            *size += bytes.len() as u64;
            self.unseen += bytes.len() as u64;
            file.write_all(bytes)
        });
        written.map_err(|error| {
            // The file may end in half a row, so the next row begins a new file.
            (self.file, self.retry) = (None, Some(Instant::now() + RETRY));
            format!("{} cannot be written: {error}", self.logs.path().join(&self.run).display())
        })
    }

    fn open(&mut self) -> io::Result<()> {
        let is_over = |(_, size, until): &(File, u64, Instant)| *size >= MAX_FILE_BYTES || Instant::now() >= *until;
        if self.file.as_ref().is_some_and(is_over) {
            self.file = None;
        }
        if self.file.is_some() && self.unseen < LOOK_BYTES {
            return Ok(());
        }
        let folder = self.logs.below(&self.run)?;
        self.unseen = 0;
        bound(&folder, MAX_RUN_BYTES - MAX_FILE_BYTES)?;
        if folder.free().is_some_and(|free| free < LEFT_BYTES) {
            return Err(io::Error::other(format!("fewer than {} are free", size(LEFT_BYTES))));
        }
        while self.file.is_none() {
            let name = format!("{}.{:04}.{ENDING}", self.stem, self.number);
            self.number += 1;
            match folder.new_file(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                file => self.file = Some((file?, 0, Instant::now() + MAX_FILE_AGE)),
            }
        }
        Ok(())
    }
}

/// Removes the oldest line files of a folder until their sum is at most `most` bytes. Other files are not touched.
///
/// # Errors
/// The folder cannot be read.
pub fn bound(folder: &Folder, most: u64) -> io::Result<()> {
    let files = folder.files(|name| process_file(name).is_some())?;
    let mut all: u64 = files.iter().map(|file| file.size).sum();
    for file in files {
        if all <= most {
            break;
        }
        // Another launcher of the run may have removed it.
        let _ = folder.remove(&file.name);
        all = all.saturating_sub(file.size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::output::MAX_LINES_A_SECOND;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

    fn rows(folder: &Path) -> Vec<OutputLine> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path()).collect();
        files.sort();
        let text: String = files.iter().map(|path| fs::read_to_string(path).expect("a file")).collect();
        text.lines().map(|row| serde_json::from_str(row).expect("a row")).collect()
    }

    #[test]
    fn lines_are_written_with_their_numbers_and_what_is_left_out_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let (keeper, own) = (Keeper::default(), folder.path().join("run"));
        let (mut out, mut err) = (Assembler::default(), Assembler::default());
        keeper.take(&mut out, OutputStream::Out, b"one\npassword: x\nha", 1_000);
        keeper.take(&mut err, OutputStream::Err, b"two\n", 1_001);
        let many = "y\n".repeat(MAX_LINES_A_SECOND as usize + 5);
        keeper.take(&mut err, OutputStream::Err, many.as_bytes(), 2_000);
        keeper.rest(&mut out, OutputStream::Out, 3_000);
        keeper.end();
        keeper.write(Folder::make(folder.path()).expect("a folder"), "run", "1-7");
        let rows = rows(&own);
        assert_eq!(keeper.failed(), None);
        let first: Vec<(i64, u64, &str, &str)> =
            rows[..3].iter().map(|row| (row.t, row.n, row.stream.name(), row.text.as_str())).collect();
        assert_eq!(first, [(1_000, 1, "out", "one"), (1_000, 2, "out", "password: …"), (1_001, 3, "err", "two")]);
        let [.., lost, last] = &rows[..] else { panic!("rows") };
        assert_eq!((lost.lost, lost.n, lost.t), (5, 3 + MAX_LINES_A_SECOND + 5, 2_000));
        assert_eq!((last.n, last.text.as_str()), (lost.n + 1, "ha"));
        assert_eq!(rows.len() as u64, 3 + MAX_LINES_A_SECOND + 2);
        let mode = fs::metadata(own.join("1-7.0000.jsonl")).expect("a file").mode();
        assert_eq!((mode & 0o777, fs::metadata(&own).expect("a folder").mode() & 0o777), (0o600, 0o700));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_said_once_and_holds_nobody_up() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("run"), "a file").expect("written");
        let keeper = Keeper::default();
        keeper.take(&mut Assembler::default(), OutputStream::Out, b"one\n", 1_000);
        keeper.end();
        keeper.write(Folder::make(folder.path()).expect("a folder"), "run", "1-7");
        assert!(keeper.failed().is_some_and(|why| why.contains("cannot be written")));
        // No writer runs, so the queue reaches its bound.
        let keeper = Keeper::default();
        let line = [&[b'x'; 1_000][..], b"\n"].concat();
        (0..5_000).for_each(|t| keeper.take(&mut Assembler::default(), OutputStream::Out, &line, t * 10));
        let waiting = keeper.waiting();
        assert!(waiting.bytes.len() < MAX_WAITING_BYTES + 2_000 && waiting.lost > 3_000, "{}", waiting.lost);
    }

    #[test]
    fn files_are_bounded_and_the_oldest_go_and_none_but_our_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let ours = ["1-7.0000.jsonl", "1-7.0001.jsonl", "2-7.0000.jsonl"];
        // Not files of ours, and older than those: a bound over all files would remove them first.
        let others = ["large", "x.jsonl", "1-7.jsonl", "1-7.x.jsonl", "1-7.0000.jsonl.old", "-1-7-.0.jsonl"];
        for (name, age) in ours.into_iter().zip([30, 20, 10]).chain(others.map(|name| (name, 90))) {
            let file = File::create(path(name)).expect("a file");
            file.set_len(100).expect("its length");
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - age)).expect("its time");
        }
        let open = || Folder::make(folder.path()).expect("a folder");
        bound(&open(), 250).expect("read");
        assert_eq!(ours.map(|name| path(name).exists()), [false, true, true]);
        bound(&open(), 0).expect("read");
        assert_eq!(ours.map(|name| path(name).exists()), [false; 3]);
        assert_eq!(others.map(|name| path(name).exists()), [true; 6]);
        // A new file follows when the last one is full or an hour old.
        let mut files = Files::new(open(), "run", "1-7");
        for size in [0, MAX_FILE_BYTES, 0] {
            files.write(b"{}\n").expect("written");
            files.file.as_mut().expect("open").1 += size;
        }
        let (file, ..) = files.file.take().expect("open");
        files.file = Some((file, 0, Instant::now()));
        files.write(b"{}\n").expect("written");
        assert_eq!(fs::read_dir(path("run")).expect("there").count(), 3);
    }
}
