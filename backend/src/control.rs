//! `control.sock`: the road to the process that has a data folder, for who may open that folder. It is a socket in a folder
//! of ours, open to its owner alone.

use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// The longest path of a socket that every system takes, bytes.
const LONGEST: usize = 107;

/// Where the socket of a data folder is: `watchglass/HASH.sock` in the user's folder for such things, else `control.sock` in
/// the data folder. None where the path is too long for a socket.
///
/// # Errors
/// The data folder cannot be found.
pub fn path(folder: &Path, runtime: Option<PathBuf>) -> io::Result<Option<PathBuf>> {
    let folder = folder.canonicalize()?;
    let path = match runtime.filter(|path| path.is_absolute() && path.is_dir()) {
        Some(runtime) => {
            let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
            let name: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            runtime.join("watchglass").join(format!("{name}.sock"))
        }
        None => folder.join("control.sock"),
    };
    Ok((path.as_os_str().len() <= LONGEST).then_some(path))
}

/// The user's folder for sockets, which the environment names.
pub fn runtime_folder() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
}

#[cfg(unix)]
pub use unix::{Bound, bind};

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    use tokio::net::UnixListener;

    /// A socket that is listened on; its file goes with it.
    #[derive(Debug)]
    pub struct Bound {
        /// What accepts.
        pub listener: UnixListener,
        path: PathBuf,
    }

    impl Drop for Bound {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Listens on the socket of a data folder that this process has to itself: what lies there was left by one that ended.
    ///
    /// # Errors
    /// The folder cannot be made, or the socket cannot.
    pub fn bind(path: &Path) -> io::Result<Bound> {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let bound = Bound { listener, path: path.into() };
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
        Ok(bound)
    }
}

/// No such socket on this system.
#[cfg(not(unix))]
#[derive(Debug)]
pub struct Bound;

/// There is no such socket on this system.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn bind(_: &Path) -> io::Result<Bound> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_data_folder_has_its_own_socket() {
        let (one, two, runtime) = (tempfile::tempdir(), tempfile::tempdir(), tempfile::tempdir());
        let (one, two, runtime) = (one.expect("made"), two.expect("made"), runtime.expect("made"));
        let of = |folder: &Path, runtime: Option<PathBuf>| path(folder, runtime).expect("there").expect("short");
        assert_eq!(of(one.path(), None), one.path().canonicalize().expect("there").join("control.sock"));
        let (a, b) = (of(one.path(), Some(runtime.path().into())), of(two.path(), Some(runtime.path().into())));
        assert!(a != b && a.starts_with(runtime.path().join("watchglass")), "{a:?} {b:?}");
        assert_eq!(of(&one.path().join("."), Some(runtime.path().into())), a, "however it is written");
        assert_eq!(of(one.path(), Some("relative".into())), of(one.path(), None));
        let deep = one.path().join("d".repeat(100));
        std::fs::create_dir(&deep).expect("made");
        assert_eq!(path(&deep, None).expect("there"), None);
        assert!(path(Path::new("/no/such/folder"), None).is_err());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_socket_is_its_owners_alone_and_one_that_was_left_is_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("made");
        let at = folder.path().join("watchglass").join("control.sock");
        let first = bind(&at).expect("bound");
        std::mem::forget(first);
        let second = bind(&at).expect("bound again");
        assert_eq!(at.metadata().expect("there").permissions().mode() & 0o777, 0o600);
        tokio::net::UnixStream::connect(&at).await.expect("it listens");
        drop(second);
        assert!(!at.exists());
    }
}
