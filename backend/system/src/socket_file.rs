//! Mode and group of a socket in a folder to which others may write: files that they put in its place keep their own.

use std::io;
use std::path::Path;

/// Sets the mode, and the group if one is given, of a socket that this process has created at a path.
///
/// # Errors
/// Something else is at the path, or the system denies it.
#[cfg(target_os = "linux")]
pub fn open_to(path: &Path, mode: u32, group: Option<u32>) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)?;
    let found = file.metadata()?;
    // SAFETY: the call cannot fail.
    if !found.file_type().is_socket() || found.uid() != unsafe { libc::geteuid() } {
        return Err(io::Error::other(
            "another file has replaced it; name a path in a folder that only you can write to",
        ));
    }
    if let Some(group) = group {
        // SAFETY: the empty path refers to the open file, and ends with a zero byte.
        let set =
            unsafe { libc::fchownat(file.as_raw_fd(), c"".as_ptr(), libc::uid_t::MAX, group, libc::AT_EMPTY_PATH) };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    std::fs::set_permissions(format!("/proc/self/fd/{}", file.as_raw_fd()), PermissionsExt::from_mode(mode))
}

/// Likewise.
///
/// # Errors
/// The system denies it.
#[cfg(all(unix, not(target_os = "linux")))]
pub fn open_to(path: &Path, mode: u32, group: Option<u32>) -> io::Result<()> {
    std::os::unix::fs::lchown(path, None, group)?;
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

/// Creates the folder of a socket, which others may enter if `mode` allows it. An existing folder is unchanged.
///
/// # Errors
/// It cannot be created.
#[cfg(unix)]
pub fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
    if folder.exists() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(above)?;
    }
    std::fs::DirBuilder::new().mode(0o700).create(folder)?;
    // Independent of this program's umask, and safe against a replaced folder.
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let made = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(folder)?;
    // SAFETY: the call cannot fail.
    match made.metadata()?.uid() == unsafe { libc::geteuid() } {
        true => made.set_permissions(PermissionsExt::from_mode(mode)),
        false => Err(io::Error::other("another file has replaced it")),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn what_is_put_in_the_place_of_a_socket_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(at(name)).expect("there").permissions().mode() & 0o777;
        let _socket = UnixDatagram::bind(at("run.sock")).expect("a socket");
        open_to(&at("run.sock"), 0o666, None).expect("set");
        assert_eq!(mode("run.sock"), 0o666);
        fs::write(at("secret"), "x").expect("written");
        fs::set_permissions(at("secret"), PermissionsExt::from_mode(0o600)).expect("set");
        symlink(at("secret"), at("link")).expect("a link");
        symlink(at("run.sock"), at("to-socket")).expect("a link");
        for name in ["secret", "link", "to-socket", "none"] {
            assert!(open_to(&at(name), 0o666, None).is_err(), "{name}");
        }
        assert_eq!(mode("secret"), 0o600);
    }

    #[test]
    fn the_folder_of_a_socket_is_made_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let (new, link) = (folder.path().join("a/b"), folder.path().join("link"));
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        make_folder(&new, 0o755).expect("made");
        assert_eq!((mode(&new), mode(&folder.path().join("a"))), (0o755, 0o700));
        make_folder(&folder.path().join("a"), 0o755).expect("it is there");
        assert_eq!(mode(&folder.path().join("a")), 0o700);
        symlink(folder.path().join("none"), &link).expect("a link");
        assert!(make_folder(&link, 0o755).is_err());
    }
}
