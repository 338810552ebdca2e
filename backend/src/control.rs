//! `control.sock`: access to the process that holds a data folder, for users who may open that folder. It is a socket
//! in one of our folders, open to its owner alone, and serves the same HTTP as the process does elsewhere. A server of
//! one machine also has `page.sock`, with the rights of the page only, and `run.sock` for datagrams that report runs.

use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum length of a socket's path on all systems, bytes.
const MAX_PATH_BYTES: usize = 107;

/// Purposes of a data folder's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderSocket {
    /// For commands, with the rights of the folder's owner.
    Control,
    /// For a server that was started to show this folder's page.
    Page,
}

/// Path of a data folder's socket: `watchglass/HASH.sock` or `HASH-page.sock` in the user's runtime folder, else
/// `control.sock` or `page.sock` in the data folder. None if the path is too long for a socket.
///
/// # Errors
/// The data folder cannot be found.
pub fn path(folder: &Path, socket: FolderSocket, runtime: Option<PathBuf>) -> io::Result<Option<PathBuf>> {
    match socket {
        FolderSocket::Control => place(folder, "control.sock", ".sock", runtime),
        FolderSocket::Page => place(folder, "page.sock", "-page.sock", runtime),
    }
}

/// Path of the socket for datagrams that report runs.
///
/// # Errors
/// The data folder cannot be found.
pub fn runs_path(folder: &Path, runtime: Option<PathBuf>) -> io::Result<Option<PathBuf>> {
    place(folder, "run.sock", "-run.sock", runtime)
}

fn place(folder: &Path, name: &str, ending: &str, runtime: Option<PathBuf>) -> io::Result<Option<PathBuf>> {
    let folder = folder.canonicalize()?;
    let path = match runtime.filter(|path| path.is_absolute() && path.is_dir()) {
        Some(runtime) => {
            let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
            runtime.join("watchglass").join(hex::encode(&hash[..8]) + ending)
        }
        None => folder.join(name),
    };
    Ok((path.as_os_str().len() <= MAX_PATH_BYTES).then_some(path))
}

/// The user's runtime folder, from `XDG_RUNTIME_DIR`.
pub fn runtime_folder() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
}

/// Possible paths of a data folder's socket: root also uses services that have no runtime folder.
pub fn places(folder: &Path, socket: FolderSocket) -> Vec<PathBuf> {
    all_places([runtime_folder(), login_folder(folder), None], |runtime| path(folder, socket, runtime))
}

/// Possible paths of the socket for datagrams that report runs.
pub fn runs_places(folder: &Path) -> Vec<PathBuf> {
    all_places([runtime_folder(), login_folder(folder), None], |runtime| runs_path(folder, runtime))
}

/// The runtime folder of a login of the owner of a data folder. Cron, schedulers and sudo start programs without the
/// variable that names it, and the server may have been started in a login.
#[cfg(unix)]
fn login_folder(folder: &Path) -> Option<PathBuf> {
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(folder).ok()?);
    Some(format!("/run/user/{owner}").into())
}

#[cfg(not(unix))]
fn login_folder(_: &Path) -> Option<PathBuf> {
    None
}

/// The different paths that these runtime folders give.
fn all_places(
    runtimes: [Option<PathBuf>; 3],
    path: impl Fn(Option<PathBuf>) -> io::Result<Option<PathBuf>>,
) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in runtimes.into_iter().filter_map(|runtime| path(runtime).ok().flatten()) {
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// Status and body of an HTTP/1.1 response that ends with its connection.
fn split(answer: &[u8]) -> Option<(u16, &[u8])> {
    let at = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..at]).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let chunked = head.to_ascii_lowercase().contains("\r\ntransfer-encoding:");
    (!chunked).then_some((status, &answer[at + 4..]))
}

#[cfg(unix)]
pub use unix::{Bound, ask, ask_rows, bind, bind_in_login, claim};

#[cfg(unix)]
mod unix {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;
    use tokio::net::UnixListener;

    /// Timeout of a response, and its maximum size, bytes.
    const TIMEOUT: Duration = Duration::from_secs(30);
    const MAX_ANSWER: u64 = 32 << 20;

    /// Sends a request to the process that holds a data folder: `path` without its first slash, and `body` in JSON.
    /// Returns status and body of the response; none without a listener.
    ///
    /// # Errors
    /// It does not respond, or not in HTTP.
    pub fn ask(folder: &Path, method: &str, path: &str, body: Option<&str>) -> io::Result<Option<(u16, Vec<u8>)>> {
        let Some(mut stream) =
            places(folder, FolderSocket::Control).iter().find_map(|path| UnixStream::connect(path).ok())
        else {
            return Ok(None);
        };
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let body = body.unwrap_or_default();
        // In one write: a body that the server leaves unread after its response would truncate that response.
        let request = format!(
            "{method} /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(MAX_ANSWER).read_to_end(&mut answer)?;
        let (status, body) = split(&answer).ok_or_else(|| io::Error::other("the response is not HTTP"))?;
        Ok(Some((status, body.to_vec())))
    }

    /// As [`ask`], for a response of any length: each of its lines is passed on, with the status, as it arrives.
    ///
    /// # Errors
    /// As [`ask`].
    pub fn ask_rows(folder: &Path, path: &str, row: &mut dyn FnMut(u16, &str)) -> io::Result<Option<u16>> {
        let Some(mut stream) =
            places(folder, FolderSocket::Control).iter().find_map(|path| UnixStream::connect(path).ok())
        else {
            return Ok(None);
        };
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        // In version 1.0 a response ends with its connection and has no chunks.
        stream.write_all(format!("GET /{path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())?;
        let mut answer = BufReader::new(stream);
        let mut line = Vec::new();
        let mut next = |answer: &mut BufReader<UnixStream>| {
            line.clear();
            answer.take(MAX_ANSWER).read_until(b'\n', &mut line)?;
            let text = String::from_utf8_lossy(&line);
            Ok::<_, io::Error>((!line.is_empty()).then(|| text.trim_end_matches(['\r', '\n']).to_string()))
        };
        let first = next(&mut answer)?.unwrap_or_default();
        let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("the response is not HTTP"))?;
        while next(&mut answer)?.is_some_and(|line| !line.is_empty()) {}
        while let Some(line) = next(&mut answer)? {
            row(status, &line);
        }
        Ok(Some(status))
    }

    /// Interval of the checks whether the file of a socket is still there.
    const CHECK_INTERVAL: Duration = Duration::from_secs(10);

    /// A bound socket; dropping it removes its file.
    #[derive(Debug)]
    pub struct Bound {
        /// The listener.
        pub listener: UnixListener,
        path: PathBuf,
        /// Whether it is in a runtime folder, which is removed with the last login of its user.
        is_of_login: bool,
    }

    impl Bound {
        /// Returns once its file is gone and can be made again: the session manager removes the runtime folder after the
        /// last logout, and makes a new one at the next login. A server that was started by nohup lives on.
        pub async fn is_lost(&self) {
            if !self.is_of_login {
                return std::future::pending().await;
            }
            loop {
                tokio::time::sleep(CHECK_INTERVAL).await;
                if is_lost(&self.path) {
                    return;
                }
            }
        }

        /// Listens anew at its path.
        ///
        /// # Errors
        /// The folder or the socket cannot be made.
        pub fn renew(&mut self) -> io::Result<()> {
            self.listener = listen(&self.path)?;
            Ok(())
        }
    }

    /// Whether a socket and its folder are gone from a runtime folder that is there.
    pub(super) fn is_lost(path: &Path) -> bool {
        let runtime = path.parent().and_then(Path::parent);
        path.symlink_metadata().is_err() && runtime.is_some_and(Path::is_dir)
    }

    impl Drop for Bound {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Listens on a configured socket. A stale one without a listener is replaced.
    ///
    /// # Errors
    /// A sentence: the obstacle and the remedy.
    pub fn claim(path: &Path) -> Result<Bound, String> {
        let at = path.display();
        if path.as_os_str().len() > MAX_PATH_BYTES {
            return Err(format!("--unix {at}: a socket's path has at most {MAX_PATH_BYTES} bytes; name a shorter one"));
        }
        match path.symlink_metadata() {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(format!("--unix {at}: the file there is not a socket; name another path"));
            }
            Ok(_) => match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(format!("--unix {at}: {error}; remove it, or name another path")),
                Ok(_) => {
                    return Err(format!("--unix {at}: a program listens there; stop it, or name another path"));
                }
            },
            Err(_) => {}
        }
        bind(path).map_err(|error| format!("--unix {at}: {error}; name a path in a folder of yours"))
    }

    /// Listens on a socket of a data folder that this process owns; an existing file is a leftover of an earlier
    /// process.
    ///
    /// # Errors
    /// The folder or the socket cannot be made.
    pub fn bind(path: &Path) -> io::Result<Bound> {
        Ok(Bound { listener: listen(path)?, path: path.into(), is_of_login: false })
    }

    /// The same in a runtime folder, which may be removed and made anew meanwhile.
    ///
    /// # Errors
    /// As [`bind`].
    pub fn bind_in_login(path: &Path) -> io::Result<Bound> {
        let mut bound = bind(path)?;
        bound.is_of_login = true;
        Ok(bound)
    }

    fn listen(path: &Path) -> io::Result<UnixListener> {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        system::socket_file::open_to(path, 0o600, None).inspect_err(|_| drop(std::fs::remove_file(path)))?;
        Ok(listener)
    }
}

/// No such socket on this system.
#[cfg(not(unix))]
#[derive(Debug)]
pub struct Bound;

/// Nothing listens on such a socket on this system.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn ask(_: &Path, _: &str, _: &str, _: Option<&str>) -> io::Result<Option<(u16, Vec<u8>)>> {
    Ok(None)
}

/// Nothing listens on such a socket on this system.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn ask_rows(_: &Path, _: &str, _: &mut dyn FnMut(u16, &str)) -> io::Result<Option<u16>> {
    Ok(None)
}

/// There is no such socket on this system.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn claim(_: &Path) -> Result<Bound, String> {
    Err("--unix: this system has no Unix sockets; leave it out".into())
}

/// There is no such socket on this system.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn bind(_: &Path) -> io::Result<Bound> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There is no such socket on this system.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn bind_in_login(_: &Path) -> io::Result<Bound> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_data_folder_has_its_own_socket() {
        let (one, two, runtime) = (tempfile::tempdir(), tempfile::tempdir(), tempfile::tempdir());
        let (one, two, runtime) = (one.expect("made"), two.expect("made"), runtime.expect("made"));
        let of = |folder: &Path, runtime: Option<PathBuf>| {
            path(folder, FolderSocket::Control, runtime).expect("there").expect("short")
        };
        assert_eq!(of(one.path(), None), one.path().canonicalize().expect("there").join("control.sock"));
        let (a, b) = (of(one.path(), Some(runtime.path().into())), of(two.path(), Some(runtime.path().into())));
        assert!(a != b && a.starts_with(runtime.path().join("watchglass")), "{a:?} {b:?}");
        let page = path(one.path(), FolderSocket::Page, Some(runtime.path().into())).expect("there");
        assert!(page.is_some_and(|page| page != a && page.starts_with(runtime.path())), "each has its own name");
        assert_eq!(of(&one.path().join("."), Some(runtime.path().into())), a, "however it is written");
        assert_eq!(of(one.path(), Some("relative".into())), of(one.path(), None));
        let deep = one.path().join("d".repeat(100));
        std::fs::create_dir(&deep).expect("made");
        assert_eq!(path(&deep, FolderSocket::Control, None).expect("there"), None);
        assert!(path(Path::new("/no/such/folder"), FolderSocket::Page, None).is_err());
        let all = |runtimes| all_places(runtimes, |runtime| path(one.path(), FolderSocket::Control, runtime));
        let (login, own) = (Some(runtime.path().to_path_buf()), of(one.path(), None));
        assert_eq!(all([None, login.clone(), None]), [own.clone(), a.clone()], "cron sets no variable");
        assert_eq!(all([login.clone(), login, None]), [a, own]);
    }

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let answer = b"HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\n\r\n{\"error\":\"x\"}";
        assert_eq!(split(answer), Some((403, &b"{\"error\":\"x\"}"[..])));
        assert!(split(b"SSH-2.0\r\n\r\n").is_none());
        assert!(split(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n").is_none());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_socket_whose_runtime_folder_went_with_the_last_login_comes_back_with_the_next() {
        let folder = tempfile::tempdir().expect("made");
        let runtime = folder.path().join("1000");
        let at = runtime.join("watchglass").join("control.sock");
        std::fs::create_dir(&runtime).expect("made");
        let mut bound = bind_in_login(&at).expect("bound");
        assert!(!unix::is_lost(&at), "it is there");
        std::fs::remove_dir_all(&runtime).expect("removed");
        assert!(!unix::is_lost(&at), "nobody is logged in");
        std::fs::create_dir(&runtime).expect("made");
        assert!(unix::is_lost(&at));
        bound.renew().expect("bound again");
        tokio::net::UnixStream::connect(&at).await.expect("it listens");
        assert!(!unix::is_lost(&at));
        drop(bound);
        assert!(!at.exists());
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
        let claimed = claim(&at).expect_err("somebody listens");
        assert!(claimed.contains("a program listens there; stop it"), "{claimed}");
        drop(second);
        assert!(!at.exists());
        std::mem::forget(claim(&at).expect("bound"));
        // Here the end of the runtime is the end of the process: a leaked socket still has its listener.
        assert!(claim(&at).is_err());
        std::fs::remove_file(&at).expect("removed");
        drop(std::os::unix::net::UnixListener::bind(&at).expect("bound"));
        drop(claim(&at).expect("nobody listens on what was left"));
        std::fs::write(&at, "mine").expect("written");
        assert!(claim(&at).expect_err("no socket").contains("is not a socket"));
        assert_eq!(std::fs::read(&at).expect("there"), b"mine");
        let long = claim(&folder.path().join("s".repeat(200))).expect_err("too long");
        assert!(long.contains("at most 107 bytes"), "{long}");
    }
}
