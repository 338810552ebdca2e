//! The few things that history asks of a folder, so that tests can put a failing one in the real one's place.
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
    /// The folder cannot be read. This and all other calls hand on what the system says.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Opens a file to read it. It stays readable after it was renamed or removed.
    ///
    /// # Errors
    /// `NotFound` where it is gone.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Content>>;
    /// Creates a file that only its owner may read.
    ///
    /// # Errors
    /// `AlreadyExists` where there is one of that name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Append>>;
    /// Gives a file another name; one of that name goes.
    ///
    /// # Errors
    /// As the system says; then both are as they were.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound` where there is none.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns once names that were given and taken survive a power cut.
    ///
    /// # Errors
    /// As the system says.
    fn sync_folder(&self) -> io::Result<()>;
    /// Bytes that this user may still write.
    ///
    /// # Errors
    /// As the system says.
    fn free(&self) -> io::Result<u64>;
    /// Takes the folder for this process until what is returned is dropped.
    ///
    /// # Errors
    /// [`LockError::Held`] where another process, or another opening in this one, has it.
    fn lock(&self) -> Result<Arc<dyn Lock>, LockError>;
}

/// A folder that is taken.
pub trait Lock: Send + Sync {
    /// Writes down which process has it, for people. Until then no byte was changed.
    fn sign(&self);
}

/// Why a folder was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Another has it.
    Held {
        /// Its process, where it wrote that down.
        pid: Option<u32>,
    },
    /// The lock file cannot be made or locked.
    Io(io::Error),
}

/// What is in a file, readable at any place by many at once.
pub trait Content: Send + Sync {
    /// Its bytes.
    ///
    /// # Errors
    /// As the system says.
    fn size(&self) -> io::Result<u64>;
    /// Exactly `len` bytes from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` where the file ends before; else as the system says.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;
}

/// A file that grows at its end. One writes, another may sync meanwhile.
pub trait Append: Send + Sync {
    /// Writes all of these bytes at the end.
    ///
    /// # Errors
    /// As the system says; some of the bytes may have been written.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Returns once all that was appended survives a power cut.
    ///
    /// # Errors
    /// As the system says; then any part of what was appended since the last sync may be lost.
    fn sync(&self) -> io::Result<()>;
    /// Cuts the file to this length.
    ///
    /// # Errors
    /// As the system says.
    fn truncate(&self, len: u64) -> io::Result<()>;
}

/// Name of the lock file. It holds the number of the process that has the folder; it is the lock on it that counts.
pub const LOCK: &str = "lock";

/// A folder of the machine.
#[derive(Clone, Debug)]
pub struct Disk {
    path: PathBuf,
}

impl Disk {
    /// The folder at this path; nothing is made yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Disk { path: path.into() }
    }

    /// Makes the folder, and those above it, for this user alone, unless it is there.
    ///
    /// # Errors
    /// As the system says.
    pub fn make(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.path)
    }

    /// Whether others could put files or links of theirs into the folder: by its mode, which an access list shows in
    /// the place of the group's rights, or as the owner of a link that leads to it. A sticky bit keeps nobody from
    /// adding. Who may change a folder above it may lead us elsewhere; that is not looked at, since what we then make
    /// there is new, ours alone, and follows no link.
    ///
    /// # Errors
    /// As the system says.
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

    /// Whether others could put files into the folder: not known on this system.
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

/// Why a folder is not ours alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// It is reached by a link of another user.
    Link {
        /// Id of that user.
        uid: u32,
    },
    /// Its group or everybody may write to it.
    Mode {
        /// Its mode.
        mode: u32,
        /// It belongs to this user and is no common place as /tmp is, so that the mode can be mended.
        ours: bool,
    },
}

/// A file of our own: made for its owner alone, never reached by a link, and not waited for should it be a pipe.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file that is there.
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
        // A name that is no text is none of ours.
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
        // Windows cannot open a folder as a file; its file system keeps names in a journal of its own.
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
                let read = file.take(32).read_to_string(&mut text);
                Err(LockError::Held { pid: read.ok().and_then(|_| text.trim().parse().ok()) })
            }
            Err(TryLockError::Error(e)) => Err(LockError::Io(e)),
        }
    }
}

struct Held {
    file: File,
}

impl Lock for Held {
    fn sign(&self) {
        // A full disk must not keep us from taking the folder: then it is not known who has it.
        let _ = self.file.set_len(0).and_then(|()| writeln!(&self.file, "{}", std::process::id()));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Where nobody has signed there is nothing to take back: a folder of a newer version stays as it is.
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
        // Before much memory is taken: a damaged length must not ask for more than there is.
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
    // The standard library does not tell; a full disk is then met by its error.
    Ok(u64::MAX)
}
