//! A folder in which another user may have placed links. No link is followed in it. Root acts there with the rights of
//! the folder's owner.
//!
//! So no file has to be handed over to that user, and nothing is reached that the user cannot reach alone.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Modes of created folders and files: access for the owner only.
const FOLDER_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// User ID and group ID.
type Ids = (u32, u32);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    /// User whose rights are taken for operations in the folder; None for our own.
    acts_as: Option<Ids>,
}

/// A file in a folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FolderEntry {
    /// Modification time, seconds and nanoseconds since the Unix epoch.
    pub modified: (i64, i64),
    /// Size, bytes.
    pub size: u64,
    /// File name.
    pub name: String,
}

impl Folder {
    /// Opens a folder that a server of this user names. It must belong to that user, and nobody else may write to it.
    ///
    /// # Errors
    /// The path contains a link, the folder belongs to somebody else, or others may write to it. Or we have no right to
    /// act as its owner.
    #[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    pub fn of_server(path: &Path, server: u32) -> io::Result<Folder> {
        let fd = walk(path)?;
        let found = rustix::fs::fstat(&fd)?;
        if found.st_uid != server || (found.st_mode as u32) & 0o022 != 0 {
            return Err(io::Error::other("other users can write to it"));
        }
        Ok(Folder { fd, path: path.into(), acts_as: acting(server, found.st_gid)? })
    }

    /// Opens a folder that the user names, and creates it if it is missing.
    ///
    /// # Errors
    /// It cannot be created or opened.
    pub fn make(path: &Path) -> io::Result<Folder> {
        let make = || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        as_user(foreign(path), make)?;
        // Another user may have replaced it meanwhile. Then their rights apply.
        let acts_as = foreign(path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = as_user(acts_as, || Ok(rustix::fs::open(path, flags, Mode::empty())?))?;
        Ok(Folder { fd, path: path.into(), acts_as })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether operations in it use the rights of another user.
    pub fn is_of_another(&self) -> bool {
        self.acts_as.is_some()
    }

    /// Opens a subfolder, and creates it if it is missing.
    ///
    /// # Errors
    /// It cannot be created or opened; a link is not followed.
    pub fn below(&self, name: &str) -> io::Result<Folder> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = as_user(self.acts_as, || {
            match rustix::fs::mkdirat(&self.fd, name, FOLDER_MODE) {
                Err(error) if error != rustix::io::Errno::EXIST => return Err(error.into()),
                _ => {}
            }
            rustix::fs::openat(&self.fd, name, flags, Mode::empty()).map_err(|error| {
                match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
                        io::Error::other("it is a symbolic link, which is not followed")
                    }
                    _ => error.into(),
                }
            })
        })?;
        Ok(Folder { fd, path: self.path.join(name), acts_as: self.acts_as })
    }

    /// Creates a file that is opened for appending.
    ///
    /// # Errors
    /// It exists already, or cannot be created.
    pub fn new_file(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        as_user(self.acts_as, || Ok(File::from(rustix::fs::openat(&self.fd, name, flags, FILE_MODE)?)))
    }

    /// Writes a file atomically.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let part = format!("{name}.new");
        // Left behind by a process that was killed.
        let _ = self.remove(&part);
        let mut file = self.new_file(&part)?;
        let written = file.write_all(bytes).and_then(|()| self.rename(&part, name));
        written.inspect_err(|_| drop(self.remove(&part)))
    }

    /// Reads a file of at most `most` bytes, and returns its owner.
    ///
    /// # Errors
    /// It is no file, is longer, or cannot be read.
    pub fn read(&self, name: &str, most: usize) -> io::Result<(Vec<u8>, u32)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = as_user(self.acts_as, || Ok(File::from(rustix::fs::openat(&self.fd, name, flags, Mode::empty())?)))?;
        let (found, mut bytes) = (file.metadata()?, Vec::new());
        if !found.is_file() || file.take(most as u64 + 1).read_to_end(&mut bytes)? > most {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok((bytes, found.uid()))
    }

    /// Renames a file.
    ///
    /// # Errors
    /// It does not exist, or may not be renamed.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        as_user(self.acts_as, || Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// It does not exist, or may not be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        as_user(self.acts_as, || Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?))
    }

    /// The files whose names pass the filter, oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    #[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    pub fn files(&self, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<FolderEntry>> {
        let mut all = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().ok().filter(|name| wanted(name)) else { continue };
            let Ok(found) = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
                let modified = (found.st_mtime as i64, found.st_mtime_nsec as i64);
                all.push(FolderEntry { modified, size: found.st_size as u64, name: name.into() });
            }
        }
        all.sort();
        Ok(all)
    }

    /// Free bytes for us on its disk; None if the system does not report them.
    pub fn free(&self) -> Option<u64> {
        rustix::fs::fstatvfs(&self.fd).ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// Opens a folder by its path from `/`, and follows no link.
fn walk(path: &Path) -> io::Result<OwnedFd> {
    // A folder on the path may be searchable without being readable.
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut fd = rustix::fs::open("/", flags, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => fd = rustix::fs::openat(&fd, name, flags, Mode::empty())?,
            _ => return Err(io::Error::other("it is not a plain path")),
        }
    }
    Ok(fd)
}

fn own_uid() -> u32 {
    // SAFETY: the call cannot fail.
    unsafe { libc::geteuid() }
}

/// User whose rights are to be taken in a folder that belongs to this user.
fn acting(uid: u32, gid: u32) -> io::Result<Option<Ids>> {
    match own_uid() {
        own if own == uid => Ok(None),
        0 => Ok(Some((uid, gid))),
        _ => Err(io::Error::other("it belongs to another user")),
    }
}

/// The first owner other than root of any part of a path, as given or as resolved. None unless we are root.
fn foreign(path: &Path) -> Option<Ids> {
    if own_uid() != 0 {
        return None;
    }
    let found = |path: &Path| [path.symlink_metadata(), path.metadata()].into_iter().flatten().collect::<Vec<_>>();
    let of = |path: &Path| {
        let mut parts: Vec<&Path> = path.ancestors().filter(|part| !part.as_os_str().is_empty()).collect();
        parts.reverse();
        parts.into_iter().flat_map(found).find(|found| found.uid() != 0).map(|found| (found.uid(), found.gid()))
    };
    // Links placed by root may lead through a folder of another user.
    let there = path.ancestors().find_map(|part| part.canonicalize().ok());
    of(path).or_else(|| there.as_deref().and_then(of))
}

/// Runs `act` with the file access rights of a user. Only this thread has them.
fn as_user<T>(user: Option<Ids>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some((uid, gid)) = user else { return act() };
    let _rights = Rights::take(uid, gid)?;
    act()
}

/// File access rights of another user, until drop.
struct Rights {
    #[cfg(target_os = "linux")]
    before: Ids,
}

#[cfg(target_os = "linux")]
impl Rights {
    fn take(uid: u32, gid: u32) -> io::Result<Rights> {
        // SAFETY: the calls set and return IDs of this thread. An invalid ID changes nothing.
        let (before, now) = unsafe {
            let group = libc::setfsgid(gid) as u32;
            let user = libc::setfsuid(uid) as u32;
            ((user, group), (libc::setfsuid(u32::MAX) as u32, libc::setfsgid(u32::MAX) as u32))
        };
        let rights = Rights { before };
        match now == (uid, gid) {
            true => Ok(rights),
            false => Err(io::Error::other("this process may not act as its owner")),
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Rights {
    fn drop(&mut self) {
        // SAFETY: the IDs are the ones that this thread had before.
        unsafe {
            libc::setfsuid(self.before.0);
            libc::setfsgid(self.before.1);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Rights {
    fn take(_: u32, _: u32) -> io::Result<Rights> {
        Err(io::Error::other("it belongs to another user"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().canonicalize().expect("there");
        (folder, path)
    }

    #[test]
    fn a_folder_of_a_server_is_theirs_alone_and_reached_by_no_link() {
        let (_held, path) = folder();
        let logs = path.join("logs");
        fs::create_dir(&logs).expect("made");
        fs::set_permissions(&logs, PermissionsExt::from_mode(0o700)).expect("set");
        assert!(Folder::of_server(&logs, own_uid()).is_ok());
        assert!(Folder::of_server(&logs, own_uid() + 1).is_err(), "another user's");
        assert!(Folder::of_server(&logs.join("../logs"), own_uid()).is_err());
        symlink(&path, path.join("link")).expect("a link");
        assert!(Folder::of_server(&path.join("link/logs"), own_uid()).is_err(), "a link on the way");
        symlink(&logs, path.join("to-logs")).expect("a link");
        assert!(Folder::of_server(&path.join("to-logs"), own_uid()).is_err(), "a link at the end");
        fs::set_permissions(&logs, PermissionsExt::from_mode(0o770)).expect("set");
        assert!(Folder::of_server(&logs, own_uid()).is_err(), "its group may write");
    }

    #[test]
    fn no_link_is_followed_in_it() {
        let (_held, path) = folder();
        let own = Folder::make(&path.join("a/b")).expect("made");
        fs::create_dir(path.join("secret")).expect("made");
        symlink(path.join("secret"), own.path().join("run")).expect("a link");
        let why = own.below("run").expect_err("a link");
        assert!(why.to_string().contains("it is a symbolic link"), "{why}");
        fs::write(path.join("file"), "kept").expect("written");
        for name in ["new", "whole", "whole.new"] {
            symlink(path.join("file"), own.path().join(name)).expect("a link");
        }
        assert!(own.new_file("new").is_err() && own.read("new", 100).is_err());
        own.write("whole", b"other").expect("it replaces the link");
        assert_eq!(fs::read(path.join("file")).expect("there"), b"kept");
        assert_eq!(own.read("whole", 5).expect("there"), (b"other".to_vec(), own_uid()));
        assert!(own.read("whole", 4).is_err());
        let names: Vec<String> = own.files(|_| true).expect("read").into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["whole"], "links are no files");
        own.below("dir").expect("made").new_file("x").expect("made");
        assert_eq!(fs::metadata(own.path().join("dir")).expect("there").mode() & 0o777, 0o700);
    }

    /// Another user, in whose folder root acts.
    #[cfg(target_os = "linux")]
    const OTHER: u32 = 54_321;

    #[cfg(target_os = "linux")]
    #[test]
    #[ignore = "needs root, to act as another user"]
    fn with_root_the_rights_of_the_owner_are_all_there_are() {
        let (_held, path) = folder();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("set");
        let theirs = path.join("theirs");
        fs::create_dir(&theirs).expect("made");
        fs::set_permissions(&theirs, PermissionsExt::from_mode(0o700)).expect("set");
        std::os::unix::fs::chown(&theirs, Some(OTHER), Some(OTHER)).expect("given");
        let owner = |path: &Path| fs::symlink_metadata(path).map(|found| (found.uid(), found.gid())).expect("there");
        for (folder, run) in [
            (Folder::of_server(&theirs, OTHER).expect("theirs"), "one"),
            (Folder::make(&theirs).expect("theirs"), "two"),
            (Folder::make(&theirs.join("deep/er")).expect("made"), "three"),
        ] {
            let run = folder.below(run).expect("made");
            run.new_file("file").expect("made");
            assert_eq!(owner(run.path()), (OTHER, OTHER));
            assert_eq!(owner(&run.path().join("file")), (OTHER, OTHER));
        }
        // A folder of root is neither handed over nor written to, through a link or directly.
        let secret = path.join("secret");
        fs::create_dir(&secret).expect("made");
        fs::set_permissions(&secret, PermissionsExt::from_mode(0o700)).expect("set");
        symlink(&secret, theirs.join("link")).expect("a link");
        assert!(Folder::of_server(&theirs, OTHER).expect("theirs").below("link").is_err());
        assert!(Folder::make(&theirs.join("link")).is_err(), "they could not open it either");
        assert!(Folder::make(&theirs.join("link/new")).is_err());
        assert_eq!((owner(&secret), fs::read_dir(&secret).expect("there").count()), ((0, 0), 0));
        // After the call all is as before.
        fs::write(secret.join("by root"), "x").expect("root is root again");
    }
}
