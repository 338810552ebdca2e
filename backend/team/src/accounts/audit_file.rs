//! The audit log as a file of JSON lines, for log collectors.
//!
//! Lines follow the rows of the database. So each committed row is written, in order, and unwritten ones wait there
//! instead of in memory. A full or hanging disk blocks only this file. After a kill the last lines may be duplicated;
//! their `id` shows it.

use super::{Accounts, Denied, log};
use records::{audit, meta};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Interval of the check for new rows.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Rows per write.
const ROWS: i64 = 500;
/// Key of the database for the number of the last written row.
const WRITTEN: &str = "audit_file";

/// The file of the audit log, and its figures.
#[derive(Debug)]
pub struct AuditFile {
    path: PathBuf,
    lines: AtomicU64,
    failures: AtomicU64,
    waiting: AtomicU64,
}

/// Figures of the audit log's file, for `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditFileFigures {
    /// Lines written since the start.
    pub lines: u64,
    /// Times that the file could not be written.
    pub failures: u64,
    /// Rows that are not written yet.
    pub waiting: u64,
}

/// Some lines, and the channel for the result of their write.
type Batch = (String, oneshot::Sender<io::Result<()>>);

impl AuditFile {
    /// The file at this path, which is created with the first row.
    pub fn new(path: PathBuf) -> Self {
        AuditFile { path, lines: AtomicU64::new(0), failures: AtomicU64::new(0), waiting: AtomicU64::new(0) }
    }

    /// Its figures.
    pub fn figures(&self) -> AuditFileFigures {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        AuditFileFigures { lines: load(&self.lines), failures: load(&self.failures), waiting: load(&self.waiting) }
    }
}

impl Accounts {
    /// Writes new rows of the audit log to a file, until `stop` becomes true.
    pub async fn keep_audit_file(&self, file: &AuditFile, mut stop: watch::Receiver<bool>) {
        let (batches, theirs) = mpsc::sync_channel::<Batch>(1);
        let (path, shown) = (file.path.clone(), file.path.display().to_string());
        // On a thread of its own: a hanging disk blocks nothing else.
        let write = move || theirs.iter().for_each(|(lines, done)| drop(done.send(append(&path, &lines))));
        if let Err(error) = std::thread::Builder::new().name("audit".into()).spawn(write) {
            return tracing::error!(%error, "cannot start the thread that writes the audit log's file");
        }
        let mut well = true;
        loop {
            let last = tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            loop {
                let written = self.write_some(file, &batches).await;
                match &written {
                    Ok(_) if !well => tracing::info!("the audit log's file {shown} is written again"),
                    Err(error) if well => {
                        tracing::error!(%error, "the audit log's file {shown} cannot be written; its rows wait in the database")
                    }
                    _ => {}
                }
                well = written.is_ok();
                file.failures.fetch_add(u64::from(!well), Ordering::Relaxed);
                if !matches!(written, Ok(rows) if rows == ROWS as usize) {
                    break;
                }
            }
            if last {
                return;
            }
        }
    }

    /// Writes the next rows; returns their number.
    async fn write_some(&self, file: &AuditFile, batches: &mpsc::SyncSender<Batch>) -> io::Result<usize> {
        let away = |denied: Denied| io::Error::other(denied.to_string());
        let (rows, waiting) = self.unwritten().await.map_err(away)?;
        file.waiting.store(waiting, Ordering::Relaxed);
        let Some(last) = rows.last().map(|row| row.id) else { return Ok(0) };
        let count = rows.len();
        let mut lines = String::new();
        for row in rows {
            lines.push_str(&serde_json::to_string(&log::to_entry(row))?);
            lines.push('\n');
        }
        let (done, written) = oneshot::channel();
        // The thread has no other work, and ends with this task.
        batches.try_send((lines, done)).map_err(|_| io::Error::other("the thread that writes it has ended"))?;
        written.await.map_err(|_| io::Error::other("the thread that writes it has ended"))??;
        file.lines.fetch_add(count as u64, Ordering::Relaxed);
        file.waiting.store(waiting.saturating_sub(count as u64), Ordering::Relaxed);
        self.now_written(last).await.map_err(away)?;
        Ok(count)
    }

    async fn unwritten(&self) -> Result<(Vec<audit::AuditRow>, u64), Denied> {
        let mut on = self.read().await?;
        let written = meta::get(&mut on, WRITTEN).await?.and_then(|id| id.parse().ok()).unwrap_or(0);
        let rows = audit::after(&mut on, written, ROWS).await?;
        let waiting = audit::count_after(&mut on, written).await?;
        Ok((rows, u64::try_from(waiting).unwrap_or(0)))
    }

    async fn now_written(&self, id: i64) -> Result<(), Denied> {
        let mut change = self.begin_note().await?;
        meta::put(&mut change, WRITTEN, &id.to_string()).await?;
        Ok(change.commit().await?)
    }
}

/// Appends lines to a plain file, which is created for its owner alone if missing. A partial write is undone.
fn append(path: &Path, lines: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    }
    // Opened for each write: log rotation moves the file away, and the next lines create another.
    let mut file = options.read(true).append(true).create(true).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let before = file.seek(SeekFrom::End(0))?;
    let begin = if ends_within_a_line(&mut file, before)? { "\n" } else { "" };
    let written = file.write_all(begin.as_bytes()).and_then(|()| file.write_all(lines.as_bytes()));
    if written.is_err() {
        // If even that fails, the next lines start on a line of their own.
        let _ = file.set_len(before);
    }
    written?;
    file.sync_data()
}

fn ends_within_a_line(file: &mut File, length: u64) -> io::Result<bool> {
    if length == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(length - 1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended_whole_and_to_a_plain_file_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.jsonl");
        append(&path, "{\"id\":1}\n").expect("written");
        append(&path, "{\"id\":2}\n").expect("written");
        // Another program, or a crash, left half a line.
        OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(b"{\"i")).expect("written");
        append(&path, "{\"id\":3}\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "{\"id\":1}\n{\"id\":2}\n{\"i\n{\"id\":3}\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o077, 0, "for its owner alone");
        }
        std::fs::rename(&path, folder.path().join("audit.1")).expect("moved away");
        append(&path, "{\"id\":4}\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("text"), "{\"id\":4}\n");
        assert!(append(folder.path(), "x\n").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        assert!(append(Path::new("/dev/full"), "x\n").is_err());
    }
}
