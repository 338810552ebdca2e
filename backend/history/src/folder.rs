//! The data folder: its lock, and its data at the start.

use crate::calls::{Calls, Noted};
use crate::files::{Content, Disk, Files, Lock, LockError, Shared};
use crate::found::{Damage, Found};
use crate::indexes::Indexes;
use crate::log;
use crate::replay::Replay;
use crate::segments;
use crate::writer::{self, Log};
use shared::segment::SegmentError;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Use of the folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// A power cut loses at most a second of data, not five.
    pub durable: bool,
}

/// A data folder that this process has locked. Another may lock it once this and its [`Log`] are dropped.
pub struct Folder {
    files: Arc<dyn Files>,
    calls: Arc<Calls>,
    options: Options,
    serial: AtomicU64,
    logs: BTreeMap<u64, u64>,
    indexes: Arc<Indexes>,
    /// Held by the log too, whose threads may outlive the folder.
    lock: Arc<dyn Lock>,
}

/// Reason why a folder was not opened. Nothing in it was changed.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has locked it.
    Locked {
        /// Its id, if known.
        pid: Option<u32>,
        /// Its machine or container, if it is another one.
        host: Option<String>,
    },
    /// Others may write to it, and could redirect us with their files and links.
    Shared(Shared),
    /// A file of a later version.
    Newer {
        /// Its name.
        file: String,
        /// The version of its format.
        version: u16,
    },
    /// An error of the system.
    Io {
        /// The operation.
        what: &'static str,
        /// Its error.
        error: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Locked { pid: Some(pid), host: Some(host) } => {
                write!(f, "process {pid} of the machine or container {host} is using it")
            }
            OpenError::Locked { pid: Some(pid), host: None } => write!(f, "process {pid} is using it"),
            OpenError::Locked { pid: None, .. } => f.write_str("another process is using it"),
            OpenError::Shared(Shared::Link { uid }) => write!(f, "another user owns the link (uid {uid})"),
            OpenError::Shared(Shared::Mode { mode, .. }) => write!(f, "other users may write to it (mode {mode:04o})"),
            OpenError::Newer { file, version } => {
                write!(f, "a newer version of Watchglass wrote {file} (format {version}); nothing was changed")
            }
            OpenError::Io { what, error } => write!(f, "cannot {what}: {error}"),
        }
    }
}
impl std::error::Error for OpenError {}

impl Folder {
    /// Locks a folder, which is created if missing, and reads its data. If another process has locked it, returns at
    /// once.
    ///
    /// # Errors
    /// [`OpenError`]; then no byte was changed.
    pub fn open(path: &Path, options: Options) -> Result<(Folder, Found), OpenError> {
        let disk = Disk::new(path);
        disk.make().map_err(io("create the folder"))?;
        if let Some(shared) = disk.shared().map_err(io("read the folder's properties"))? {
            return Err(OpenError::Shared(shared));
        }
        Self::open_with(Arc::new(disk), options)
    }

    /// Likewise, with files of a test.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(files: Arc<dyn Files>, options: Options) -> Result<(Folder, Found), OpenError> {
        let lock = files.lock().map_err(|e| match e {
            LockError::Held { pid, host } => OpenError::Locked { pid, host },
            LockError::Io(error) => OpenError::Io { what: "lock the folder", error },
        })?;
        let calls = Arc::<Calls>::default();
        let files: Arc<dyn Files> = Arc::new(Noted::new(files, calls.clone()));
        let indexes = Arc::<Indexes>::default();
        let (found, read) = read(&*files, &indexes)?;
        lock.sign();
        segments::remove(&*files, read.leftovers.iter().map(String::as_str)).map_err(io("remove a leftover file"))?;
        let serial = AtomicU64::new(read.serial + 1);
        Ok((Folder { files, calls, options, serial, logs: read.logs, indexes, lock }, found))
    }

    /// Reads a folder that another process may be writing to, without a change. Its newest record may be cut off.
    ///
    /// # Errors
    /// [`OpenError::Newer`] and [`OpenError::Io`].
    pub fn read_only(path: &Path) -> Result<Found, OpenError> {
        let (disk, indexes) = (Disk::new(path), Arc::default());
        // Data merged or removed meanwhile is in another file by then.
        for _ in 0..5 {
            let before = disk.list().map_err(io("read the folder"))?;
            let found = read(&disk, &indexes);
            if matches!(&found, Err(OpenError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound) {
                continue;
            }
            let after = disk.list().map_err(io("read the folder"))?;
            if before.iter().all(|name| after.contains(name)) {
                return found.map(|(found, _)| found);
            }
        }
        read(&disk, &indexes).map(|(found, _)| found)
    }

    /// Starts the log; call it once. Nothing is written before its [`begin`](Log::begin).
    ///
    /// # Errors
    /// No thread can be started.
    pub fn log(&self) -> io::Result<Log> {
        // The documented limits are 1 s and 5 s: a tenth is left for the sync itself.
        let every = Duration::from_millis(if self.options.durable { 900 } else { 4_500 });
        Log::start(self.files.clone(), self.lock.clone(), self.logs.clone(), every)
    }

    /// Calls to its disk that have not returned, including those of the log.
    pub fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// Its files, for [`segments::write`], [`crate::compaction::merge`] and [`segments::remove`].
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// The cache of its segments' indexes, for the same.
    pub fn indexes(&self) -> &Arc<Indexes> {
        &self.indexes
    }

    /// A serial number for a new segment, above all earlier ones.
    pub fn serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }
}

fn io(what: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |error| OpenError::Io { what, error }
}

/// Data that only the holder of the lock needs.
struct Read {
    leftovers: Vec<String>,
    /// The highest one in use.
    serial: u64,
    /// Lengths of log files by number.
    logs: BTreeMap<u64, u64>,
}

/// Reads a folder without changing it.
fn read(files: &dyn Files, indexes: &Arc<Indexes>) -> Result<(Found, Read), OpenError> {
    let names = files.list().map_err(io("read the folder"))?;
    let mut logs: BTreeMap<u64, Arc<dyn Content>> = BTreeMap::new();
    for name in &names {
        let Some(number) = writer::number(name) else { continue };
        let file = files.open(name).map_err(io("open a log file"))?;
        let head = file.read_at(0, log::HEADER_BYTES).unwrap_or_default();
        if let Some(version) = log::version(&head).filter(|v| *v > log::VERSION) {
            return Err(OpenError::Newer { file: name.clone(), version });
        }
        logs.insert(number, file);
    }
    let opened = segments::open(files, indexes).map_err(io("read the folder"))?;
    let mut replay = Replay::default();
    for (file, error) in opened.refused {
        match error {
            SegmentError::Newer { version } => return Err(OpenError::Newer { file, version }),
            error => replay.report.damages.push(Damage { file, offset: 0, what: error.to_string() }),
        }
    }
    // Data in sound segments need not be read again. If one is damaged, the log may still have its ticks.
    let sealed = opened.segments.iter().map(|s| s.contents().log_through).max().unwrap_or(0);
    let sealed = if replay.report.damages.is_empty() { sealed } else { 0 };
    opened.segments.into_iter().for_each(|segment| replay.segment(segment));
    let last = logs.keys().next_back().copied().unwrap_or(0);
    let mut sizes = BTreeMap::new();
    for (number, file) in logs {
        let size = file.size().map_err(io("read a log file"))?;
        sizes.insert(number, size);
        if number > sealed || number == last {
            replay.file(&writer::name(number), &*file, size);
        }
    }
    let serial = names.iter().filter_map(|name| segments::Name::parse(name)).map(|name| name.serial).max();
    let mut found = replay.finish();
    found.log = last;
    Ok((found, Read { leftovers: opened.leftovers, serial: serial.unwrap_or(0), logs: sizes }))
}
