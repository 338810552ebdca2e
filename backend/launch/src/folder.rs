//! A folder in which another user may have laid links. None is followed in it, and root acts there with the rights of the user
//! whose folder it is: nothing has to be given to that user, and nothing can be reached that they could not reach themselves.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Modes of what is made: for its owner alone.
const FOLDER_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A user and their group.
type Ids = (u32, u32);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    /// Whose rights are taken for what is done in it; None where they are ours.
    acts_as: Option<Ids>,
}

/// A file of a folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// When it was written, seconds and nanoseconds since the Unix epoch.
    pub modified: (i64, i64),
    /// Its bytes.
    pub size: u64,
    /// Its name.
    pub name: String,
}

impl Folder {
    /// Opens a folder that a server of this user names, which must be theirs alone.
    ///
    /// # Errors
    /// It is reached by a link, or belongs to somebody else, or others may write to it; or we have no right to act there.
    #[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    pub fn of_server(path: &Path, server: u32) -> io::Result<Folder> {
        let fd = walk(path)?;
        let found = rustix::fs::fstat(&fd)?;
        if found.st_uid != server || (found.st_mode as u32) & 0o022 != 0 {
            return Err(io::Error::other("other users can write to it"));
        }
        Ok(Folder { fd, path: path.into(), acts_as: acting(server, found.st_gid)? })
    }

    /// Opens a folder that the user names, and makes it where it is not there.
    ///
    /// # Errors
    /// It cannot be made or opened.
    pub fn make(path: &Path) -> io::Result<Folder> {
        let make = || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        as_user(foreign(path), make)?;
        // Somebody may have put something else there meanwhile, which is theirs then.
        let acts_as = foreign(path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = as_user(acts_as, || Ok(rustix::fs::open(path, flags, Mode::empty())?))?;
        Ok(Folder { fd, path: path.into(), acts_as })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is done in it is done as another user.
    pub fn is_of_another(&self) -> bool {
        self.acts_as.is_some()
    }

    /// Opens a folder in it, which is made where it is not there.
    ///
    /// # Errors
    /// It cannot be made or opened; a link is not followed.
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

    /// Makes a file, which is written behind its end.
    ///
    /// # Errors
    /// It is there, or cannot be made.
    pub fn new_file(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        as_user(self.acts_as, || Ok(File::from(rustix::fs::openat(&self.fd, name, flags, FILE_MODE)?)))
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let part = format!("{name}.new");
        // That of one who was killed.
        let _ = self.remove(&part);
        let mut file = self.new_file(&part)?;
        let written = file.write_all(bytes).and_then(|()| self.rename(&part, name));
        written.inspect_err(|_| drop(self.remove(&part)))
    }

    /// Reads a file of at most so many bytes, with its user.
    ///
    /// # Errors
    /// It is none, or longer, or cannot be read.
    pub fn read(&self, name: &str, most: usize) -> io::Result<(Vec<u8>, u32)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = as_user(self.acts_as, || Ok(File::from(rustix::fs::openat(&self.fd, name, flags, Mode::empty())?)))?;
        let (found, mut bytes) = (file.metadata()?, Vec::new());
        if !found.is_file() || file.take(most as u64 + 1).read_to_end(&mut bytes)? > most {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok((bytes, found.uid()))
    }

    /// Gives a file another name.
    ///
    /// # Errors
    /// It is not there, or may not be renamed.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        as_user(self.acts_as, || Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// It is not there, or may not be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        as_user(self.acts_as, || Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?))
    }

    /// The files whose names are such as is asked for, the oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    #[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
    pub fn files(&self, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<Entry>> {
        let mut all = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().ok().filter(|name| wanted(name)) else { continue };
            let Ok(found) = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
                let modified = (found.st_mtime as i64, found.st_mtime_nsec as i64);
                all.push(Entry { modified, size: found.st_size as u64, name: name.into() });
            }
        }
        all.sort();
        Ok(all)
    }

    /// Bytes that are free for us on its disk; None where that is not told.
    pub fn free(&self) -> Option<u64> {
        rustix::fs::fstatvfs(&self.fd).ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// Opens a folder by its path from / on, and follows no link.
fn walk(path: &Path) -> io::Result<OwnedFd> {
    // A folder may be passed that may not be read.
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

/// Whose rights are to be taken where a folder belongs to this user.
fn acting(uid: u32, gid: u32) -> io::Result<Option<Ids>> {
    match own_uid() {
        own if own == uid => Ok(None),
        0 => Ok(Some((uid, gid))),
        _ => Err(io::Error::other("it belongs to another user")),
    }
}

/// The first user other than root to whom a part of a path belongs, as it is named or as it is found. None unless we are root.
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
    // Links that root has laid may lead through a folder of somebody else.
    let there = path.ancestors().find_map(|part| part.canonicalize().ok());
    of(path).or_else(|| there.as_deref().and_then(of))
}

/// Does something with the rights of a user on files, which are those of this thread alone.
fn as_user<T>(user: Option<Ids>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some((uid, gid)) = user else { return act() };
    let _rights = Rights::take(uid, gid)?;
    act()
}

/// The rights of another user, until it is dropped.
struct Rights {
    #[cfg(target_os = "linux")]
    before: Ids,
}

#[cfg(target_os = "linux")]
impl Rights {
    fn take(uid: u32, gid: u32) -> io::Result<Rights> {
        // SAFETY: the calls change and tell numbers of this thread. One that is no user's changes nothing.
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
        // SAFETY: the numbers are those that this thread had.
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
        // A folder of root's: neither by a link, nor where it stands itself, is it given away or written to.
        let secret = path.join("secret");
        fs::create_dir(&secret).expect("made");
        fs::set_permissions(&secret, PermissionsExt::from_mode(0o700)).expect("set");
        symlink(&secret, theirs.join("link")).expect("a link");
        assert!(Folder::of_server(&theirs, OTHER).expect("theirs").below("link").is_err());
        assert!(Folder::make(&theirs.join("link")).is_err(), "they could not open it either");
        assert!(Folder::make(&theirs.join("link/new")).is_err());
        assert_eq!((owner(&secret), fs::read_dir(&secret).expect("there").count()), ((0, 0), 0));
        // Behind it all is as before.
        fs::write(secret.join("by root"), "x").expect("root is root again");
    }
}
