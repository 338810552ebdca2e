//! The data folder at the start: its path, and the errors when it cannot be used.

use crate::config::Config;
use history::files::{Disk as LockedDisk, Files, LockError, Shared};
use history::retain::Limits;
use history::{Folder, Found, OpenError, Options};
use std::io;
use std::path::{Path, PathBuf};
use stream::archive::Disk;
#[cfg(unix)]
use system::user;

/// A data folder that this process owns, and its stored history.
pub struct Data {
    path: PathBuf,
    folder: Folder,
    found: Found,
}

impl Data {
    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The history that was read when the folder was opened.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Passes the folder to the archive, which writes to it from now on.
    pub fn keep(self, config: &Config) -> Disk {
        let limits = Limits { retention: config.retention.as_millis() as i64, bytes: config.retention_bytes };
        Disk::new(self.path, self.folder, self.found, limits)
    }
}

/// Whether a Watchglass runs with this folder.
pub fn is_held(folder: &Path) -> bool {
    matches!(LockedDisk::new(folder).lock(), Err(LockError::Held { .. }))
}

/// Opens the data folder of a configuration, and creates it if it is missing; none with `--memory`.
///
/// # Errors
/// The fault and its remedies, for standard error; the exit status is 4.
pub fn open(config: &Config) -> Result<Option<Data>, String> {
    if config.memory {
        return Ok(None);
    }
    let ways_out = "choose another folder with --data-dir DIR, or store nothing on disk with --memory";
    let Some(path) = &config.data_dir else {
        return Err(format!("HOME is not set, so there is no folder for the history; {ways_out}"));
    };
    #[cfg(unix)]
    raise_file_limit();
    match Folder::open(path, Options { durable: config.durable }) {
        Ok((folder, found)) => {
            log_found(path, &found);
            Ok(Some(Data { path: path.clone(), folder, found }))
        }
        Err(error @ OpenError::Locked { .. }) => {
            Err(format!("the data folder {} cannot be used: {error}.\nStop that process, {ways_out}.", path.display()))
        }
        Err(error) => {
            let mend = match &error {
                OpenError::Io { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => foreign(path),
                OpenError::Shared(Shared::Mode { ours: true, .. }) => {
                    Some(format!("Restrict it with \"chmod go-w {}\"", path.display()))
                }
                // A folder of another user, or a shared one such as /tmp, keeps its mode.
                OpenError::Shared(Shared::Mode { .. }) => Some(format!(
                    "Name a folder in it, which is created for you alone, as --data-dir {}",
                    path.join("watchglass").display()
                )),
                _ => None,
            };
            let mend = mend.unwrap_or_else(|| "Correct that".into());
            Err(format!("the data folder {} cannot be used: {error}.\n{mend}, {ways_out}.", path.display()))
        }
    }
}

/// Another user that owns the folder or its content, with a remedy; the usual cause is an earlier start with sudo.
/// None if everything is our own.
#[cfg(unix)]
fn foreign(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let own = user::own_uid();
    let owner = |path: &Path| std::fs::metadata(path).ok().map(|found| found.uid()).filter(|uid| *uid != own);
    // If the folder does not exist or is not visible, the nearest one above it decides.
    let there = path.ancestors().find(|path| path.symlink_metadata().is_ok())?;
    let inside = || std::fs::read_dir(path).ok()?.flatten().find_map(|entry| owner(&entry.path()));
    let uid = owner(there).or_else(inside)?;
    let named =
        |uid: u32| user::name_of(uid).map_or_else(|| format!("uid {uid}"), |name| format!("{name} (uid {uid})"));
    // A folder that does not exist has no owner to change, so the sentence explains how to make it.
    let (whole, give) = match there == path {
        true => ("It or what is in it", format!("change the owner with \"sudo chown -R {own}")),
        false => ("The folder above it", format!("create yours with \"sudo install -d -o {own}")),
    };
    Some(format!(
        "{whole} belongs to {}, and you are {}: start Watchglass as that user, {give} {}\"",
        named(uid),
        named(own),
        path.display(),
    ))
}

#[cfg(not(unix))]
fn foreign(_: &Path) -> Option<String> {
    None
}

/// Requested limit of open files. A segment is one file, and ten years of segments are 87,600.
#[cfg(unix)]
const MAX_OPEN_FILES: libc::rlim_t = 1 << 17;

/// Raises the limit of open files as far as this user may. Many systems begin with 1,024, which is six weeks of
/// history. If the limit stays too low, opening a file reports it.
#[cfg(unix)]
fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit that the call fills.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 || limit.rlim_cur >= MAX_OPEN_FILES {
        return;
    }
    limit.rlim_cur = limit.rlim_max.min(MAX_OPEN_FILES);
    // SAFETY: `limit` is a valid rlimit.
    let _ = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}

/// Logs the stored history of the folder.
fn log_found(path: &Path, found: &Found) {
    let report = &found.report;
    let (segments, sources, ticks) = (found.segments.len(), found.sources.len(), report.ticks);
    tracing::info!(segments, sources, ticks, "history is in {}", path.display());
    if report.unclean && ticks > 0 {
        tracing::info!("the run before was not ended in order; its ticks were read from the log");
    }
    for (file, offset) in &report.torn {
        let means = "after a crash no recorded sample is missing; a truncated file ends here";
        tracing::info!("{file} ends in the middle of a record, at byte {offset}: {means}");
    }
}
