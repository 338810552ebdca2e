//! The file operations of the history, so that tests can replace the real folder by a failing one.
//!
//! Names are plain file names within the one folder. Nothing is ever overwritten: a file is created, grows at its end,
//! is renamed, is removed.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of files.
pub trait Files: Send + Sync {
    /// Names of all files, in no order.
    ///
    /// # Errors
    /// The folder cannot be read. This and all other calls return the error of the system.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Opens a file to read it. It stays readable after it was renamed or removed.
    ///
    /// # Errors
    /// `NotFound` if it does not exist.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Content>>;
    /// Creates a file that only its owner may read.
    ///
    /// # Errors
    /// `AlreadyExists` if there is a file of that name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Append>>;
    /// Renames a file; a file of the new name is replaced.
    ///
    /// # Errors
    /// That of the system; then both are unchanged.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound` if it does not exist.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns once new, changed and removed names survive a power cut.
    ///
    /// # Errors
    /// That of the system.
    fn sync_folder(&self) -> io::Result<()>;
    /// Bytes that this user may still write.
    ///
    /// # Errors
    /// That of the system.
    fn free(&self) -> io::Result<u64>;
    /// Locks the folder for this process until the result is dropped.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process, or another opening in this one, holds the lock.
    fn lock(&self) -> Result<Arc<dyn Lock>, LockError>;
}

/// A lock on a folder.
pub trait Lock: Send + Sync {
    /// Writes the id of this process to the lock file, for people. No byte was changed before.
    fn sign(&self);
}

/// Reason why a folder was not locked.
#[derive(Debug)]
pub enum LockError {
    /// Another holds the lock.
    Held {
        /// Its process, if it wrote its id.
        pid: Option<u32>,
        /// Its machine or container, if it is another one than ours: folders may be shared.
        host: Option<String>,
    },
    /// The lock file cannot be created or locked.
    Io(io::Error),
}

/// The content of a file, readable at any offset and concurrently.
pub trait Content: Send + Sync {
    /// Its bytes.
    ///
    /// # Errors
    /// That of the system.
    fn size(&self) -> io::Result<u64>;
    /// Exactly `len` bytes from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before; else that of the system.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;
}

/// A file that grows at its end. One thread writes, another may sync meanwhile.
pub trait Append: Send + Sync {
    /// Writes all of these bytes at the end.
    ///
    /// # Errors
    /// That of the system; some of the bytes may have been written.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Returns once all appended data survives a power cut.
    ///
    /// # Errors
    /// That of the system; then any part of the data appended since the last sync may be lost.
    fn sync(&self) -> io::Result<()>;
    /// Cuts the file to this length.
    ///
    /// # Errors
    /// That of the system.
    fn truncate(&self, len: u64) -> io::Result<()>;
}

/// Name of the lock file. It contains the id of the process that holds the folder and the name of its machine, but only
/// the lock on it counts.
pub const LOCK: &str = "lock";

/// Maximum bytes of it that are read.
const MAX_LOCK_BYTES: u64 = 512;

/// A folder of the machine.
#[derive(Clone, Debug)]
pub struct Disk {
    path: PathBuf,
}

impl Disk {
    /// The folder at this path; nothing is created yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Disk { path: path.into() }
    }

    /// Creates the folder, and those above it, for this user alone, unless it exists.
    ///
    /// # Errors
    /// That of the system.
    pub fn make(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.path)
    }

    /// Whether others could put files or links into the folder. They could by its mode, in which an access list
    /// replaces the group's rights, or as the owner of a link to it. A sticky bit does not prevent adding files.
    ///
    /// A user who may change a folder above it could redirect us. This is not checked: all files created here are new,
    /// private, and follow no link.
    ///
    /// # Errors
    /// That of the system.
    #[cfg(unix)]
    pub fn shared(&self) -> io::Result<Option<Shared>> {
        use std::os::unix::fs::MetadataExt;
        let (named, folder) = (self.path.symlink_metadata()?, self.path.metadata()?);
        // SAFETY: the call takes nothing and cannot fail.
        let own = unsafe { libc::geteuid() };
        if named.is_symlink() && ![own, 0].contains(&named.uid()) {
            return Ok(Some(Shared::Link { uid: named.uid() }));
        }
        let open = folder.mode() & 0o022 != 0;
        let ours = folder.uid() == own && folder.mode() & 0o1000 == 0;
        Ok(open.then_some(Shared::Mode { mode: folder.mode() & 0o7777, ours }))
    }

    /// Whether others could put files into the folder: unknown on this system.
    ///
    /// # Errors
    /// None here.
    #[cfg(not(unix))]
    pub fn shared(&self) -> io::Result<Option<Shared>> {
        Ok(None)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Reason why a folder is not private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// It is reached by a link of another user.
    Link {
        /// Id of that user.
        uid: u32,
    },
    /// Its group or all users may write to it.
    Mode {
        /// Its mode.
        mode: u32,
        /// It belongs to this user and is not shared like /tmp, so that the mode can be fixed.
        ours: bool,
    },
}

/// Options for private files: created for the owner alone, never opened through a link, without blocking on a pipe.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens an existing file.
fn plain(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let strange = || io::Error::other(format!("{} is a link or not a plain file; remove it", path.display()));
    let file = options.open(path).map_err(|error| match path.symlink_metadata() {
        Ok(there) if !there.is_file() => strange(),
        _ => error,
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(strange()) }
}

impl Files for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        // A name that is no UTF-8 is none of ours.
        let names = std::fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Content>> {
        Ok(Arc::new(plain(private().read(true), &self.at(name))?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Append>> {
        Ok(Arc::new(private().append(true).create_new(true).open(self.at(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.at(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        // Windows cannot open a folder as a file; its file system journals names itself.
        if cfg!(unix) { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }

    fn free(&self) -> io::Result<u64> {
        free(&self.path)
    }

    fn lock(&self) -> Result<Arc<dyn Lock>, LockError> {
        let mut options = private();
        options.read(true).write(true).create(true).truncate(false);
        let file = plain(&options, &self.at(LOCK)).map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => Ok(Arc::new(Held { file })),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.take(MAX_LOCK_BYTES).read_to_string(&mut text); // Then the holder is unknown.
                Err(holder(&text, &host_name()))
            }
            Err(TryLockError::Error(e)) => Err(LockError::Io(e)),
        }
    }
}

/// The holder, as its lock file names it; `here` is the name of this machine.
fn holder(text: &str, here: &str) -> LockError {
    let mut lines = text.lines().map(str::trim);
    let pid = lines.next().and_then(|pid| pid.parse().ok());
    let host = lines.next().filter(|host| !host.is_empty() && !here.is_empty() && *host != here);
    LockError::Held { pid, host: host.map(String::from) }
}

/// The name of this machine or container; empty if the system does not tell it.
#[cfg(unix)]
fn host_name() -> String {
    let mut bytes = [0_u8; 256];
    // SAFETY: the pointer and the length are those of `bytes`, whose last byte stays zero.
    let told = unsafe { libc::gethostname(bytes.as_mut_ptr().cast(), bytes.len() - 1) };
    let name = bytes.split(|byte| *byte == 0).next().filter(|_| told == 0).unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

struct Held {
    file: File,
}

impl Lock for Held {
    fn sign(&self) {
        // A full disk must not prevent the lock: then the holder's process is unknown.
        let text = format!("{}\n{}\n", std::process::id(), host_name());
        let _ = self.file.set_len(0).and_then(|()| (&self.file).write_all(text.as_bytes()));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Without an id there is nothing to remove: a folder of a newer version stays unchanged.
        if self.file.stream_position().is_ok_and(|at| at > 0) {
            let _ = self.file.set_len(0);
        }
    }
}

impl Content for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        // Checked before a large allocation: a damaged length must not request more than the file has.
        let much = len > 1 << 20;
        if much && offset.checked_add(len as u64).is_none_or(|end| end > self.size().unwrap_or(0)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; len];
        #[cfg(unix)]
        std::os::unix::fs::FileExt::read_exact_at(self, &mut bytes, offset)?;
        #[cfg(windows)]
        {
            let mut filled = 0;
            while filled < len {
                match std::os::windows::fs::FileExt::seek_read(self, &mut bytes[filled..], offset + filled as u64)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    n => filled += n,
                }
            }
        }
        Ok(bytes)
    }
}

impl Append for File {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&mut &*self).write_all(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        (&mut &*self).seek(SeekFrom::End(0)).map(drop)
    }
}

#[cfg(unix)]
fn free(path: &Path) -> io::Result<u64> {
    let path = std::ffi::CString::new(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))?;
    let mut stat = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` ends with a zero byte and `stat` has room for what the call fills.
    if unsafe { libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled `stat`.
    let stat = unsafe { stat.assume_init() };
    #[allow(clippy::unnecessary_cast, reason = "the fields are narrower on other systems")]
    Ok((stat.f_bavail as u64).saturating_mul(stat.f_frsize as u64))
}

#[cfg(not(unix))]
fn free(_: &Path) -> io::Result<u64> {
    // The standard library has no such call; a full disk then shows by its error.
    Ok(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_on_another_machine_is_named_with_it() {
        let of = |text: &str| match holder(text, "node-1") {
            LockError::Held { pid, host } => (pid, host),
            LockError::Io(error) => panic!("{error}"),
        };
        assert_eq!(of("7\nnode-2\n"), (Some(7), Some("node-2".into())));
        assert_eq!(of("7\nnode-1\n"), (Some(7), None));
        assert_eq!(of("7\n"), (Some(7), None), "an earlier version");
        assert_eq!(of(""), (None, None));
    }
}
