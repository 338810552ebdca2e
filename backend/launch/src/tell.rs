//! The server of this machine, which is told on a socket for datagrams; a file where nobody is there.

use super::named_socket;
use shared::run::{LogsOf, MAX_MARKER_BYTES, Told};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long is waited for the answer of a server, before the job begins.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a message is sent to a socket whose queue is full, and how long is waited between: 0.2 s in all.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Tells of one run.
pub struct Teller {
    sockets: Vec<PathBuf>,
    untold: Option<PathBuf>,
}

impl Teller {
    /// Tells whoever listens on the first of these sockets; else writes below `untold`.
    pub fn new(sockets: Vec<PathBuf>, untold: Option<PathBuf>) -> Teller {
        Teller { sockets, untold }
    }

    /// The first socket on which somebody listens, for the command's own messages.
    pub fn socket(&self) -> Option<&Path> {
        let listens = |path: &&PathBuf| UnixDatagram::unbound().and_then(|socket| socket.connect(path)).is_ok();
        self.sockets.iter().find(listens).map(PathBuf::as_path)
    }

    /// The folder in which a server keeps what jobs print. It is waited for a second.
    ///
    /// # Errors
    /// Nobody listens, or answers, or the server keeps none; the sentence says which.
    pub fn folder(&self, run: &str) -> Result<PathBuf, String> {
        let asked = serde_json::to_vec(&LogsOf { logs: run.into() }).unwrap_or_default();
        let failed = |error: io::Error| format!("this system grants no socket: {error}");
        let socket = named_socket(ANSWER_TIMEOUT).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        if !self.sockets.iter().any(|path| socket.send_to(&asked, path).is_ok()) {
            return Err("no watchglass listens on this machine".into());
        }
        socket.set_nonblocking(false).map_err(failed)?;
        let mut answer = [0; MAX_MARKER_BYTES];
        let read = socket.recv(&mut answer).map_err(|_| "the server does not answer".to_string())?;
        let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
        match Path::new(&answer) {
            folder if folder.is_absolute() && folder.is_dir() => Ok(folder.into()),
            folder if folder.is_absolute() => Err(format!("{answer} is not seen from here")),
            // What a server says that knows of no such question.
            _ if answer.starts_with("this is no marker") => Err("the server keeps no output".into()),
            _ => Err(answer),
        }
    }

    /// Tells. It hardly waits: a server that does not read is as one that is not there.
    ///
    /// # Errors
    /// Nobody was told; the sentence says what comes of it.
    pub fn tell(&self, told: &Told) -> Result<(), String> {
        let message = serde_json::to_vec(told).map_err(|error| format!("the run cannot be told of: {error}"))?;
        if self.sockets.iter().any(|path| send(path, &message).is_ok()) {
            return Ok(());
        }
        let nobody = "no watchglass listens on this machine";
        let Some(folder) = &self.untold else {
            return Err(format!("{nobody}, and there is no HOME to write to: this run will not be listed"));
        };
        match keep(folder, told, &message) {
            Ok(()) => Err(format!("{nobody}; this run is listed once one of yours starts")),
            Err(error) => {
                Err(format!("{nobody}, and {} cannot be written: {error}; it will not be listed", folder.display()))
            }
        }
    }
}

fn send(path: &Path, message: &[u8]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    // The queue of a socket holds some ten messages, and a job of many ranks begins them at once.
    for _ in 0..TRIES {
        match socket.send_to(message, path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(BETWEEN_TRIES),
            other => return other.map(drop),
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Writes what nobody was told: the newest message of a run, which has what the one before said.
fn keep(folder: &Path, told: &Told, message: &[u8]) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let begun = match told {
        Told::Begin(begun) => begun,
        Told::End(over) => &over.begun,
    };
    let name = format!("{}-{}", begun.run, begun.pid);
    let (path, new) = (folder.join(format!("{name}.json")), folder.join(format!("{name}.new")));
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(message)?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::{Begun, How, Over};

    fn begun() -> Begun {
        Begun { run: "abc".into(), t: 1, pid: 7, ..Begun::default() }
    }

    #[test]
    fn who_listens_is_told_and_nothing_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (none, path) = (folder.path().join("none"), folder.path().join("run.sock"));
        let server = UnixDatagram::bind(&path).expect("a socket");
        let teller = Teller::new(vec![none, path.clone()], Some(folder.path().join("runs")));
        assert_eq!(teller.socket(), Some(path.as_path()));
        let told = Told::Begin(begun());
        assert_eq!(teller.tell(&told), Ok(()));
        let mut bytes = [0; 4096];
        let read = server.recv(&mut bytes).expect("a message");
        assert_eq!(serde_json::from_slice::<Told>(&bytes[..read]).expect("JSON"), told);
        assert!(!folder.path().join("runs").exists());
    }

    #[test]
    fn a_server_that_does_not_read_is_not_waited_for_and_the_run_is_kept_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sock");
        let _deaf = UnixDatagram::bind(&path).expect("a socket");
        let runs = folder.path().join("state/runs");
        let teller = Teller::new(vec![path], Some(runs.clone()));
        let full = (0..100_000).find_map(|_| teller.tell(&Told::Begin(begun())).err()).expect("a full socket");
        assert!(full.contains("listed once"), "{full}");
        let end = Told::End(Over { begun: begun(), t: 9, how: How::default() });
        assert!(teller.tell(&end).is_err());
        let kept = fs::read(runs.join("abc-7.json")).expect("the file");
        assert_eq!(serde_json::from_slice::<Told>(&kept).expect("JSON"), end, "the end has what the begin said");
        assert_eq!(fs::read_dir(&runs).expect("a folder").count(), 1);
    }

    #[test]
    fn a_folder_for_output_is_asked_for_and_not_waited_for_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let (none, path) = (folder.path().join("none"), folder.path().join("run.sock"));
        let teller = Teller::new(vec![none, path.clone()], None);
        assert!(teller.folder("abc").is_err_and(|why| why.contains("no watchglass listens")));
        let server = UnixDatagram::bind(&path).expect("a socket");
        assert!(teller.folder("abc").is_err_and(|why| why.contains("does not answer")));
        let own = folder.path().to_str().expect("plain letters").to_string();
        let serve = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            server.recv(&mut bytes).expect("what nobody answered");
            for answer in [own.as_str(), "/no/such/folder", "this is no marker; a text", "it has no folder"] {
                let (read, from) = server.recv_from(&mut bytes).expect("a question");
                assert_eq!(&bytes[..read], br#"{"logs":"abc"}"#);
                server.send_to_addr(answer.as_bytes(), &from).expect("it waits");
            }
        });
        assert_eq!(teller.folder("abc").as_deref(), Ok(folder.path()));
        assert!(teller.folder("abc").is_err_and(|why| why.contains("is not seen from here")));
        assert!(teller.folder("abc").is_err_and(|why| why.contains("keeps no output")));
        assert!(teller.folder("abc").is_err_and(|why| why == "it has no folder"));
        serve.join().expect("no panic");
    }

    #[test]
    fn without_a_folder_that_is_said() {
        let teller = Teller::new(Vec::new(), None);
        assert!(teller.tell(&Told::Begin(begun())).unwrap_err().contains("no HOME"));
        let teller = Teller::new(Vec::new(), Some("/dev/null/runs".into()));
        assert!(teller.tell(&Told::Begin(begun())).unwrap_err().contains("cannot be written"));
    }
}
