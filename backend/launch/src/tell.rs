//! Reports to the server of this machine over a datagram socket, with acknowledgment. Without an acknowledgment the
//! report is saved to a file.

use super::folder::Folder;
use super::peer::Server;
use shared::run::{KEPT_ENDINGS, Kept, LogsOf, MAX_MESSAGE_BYTES, NewId, TellAnswer, Told, check_id};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout of a server's answer. While all ranks of a job start, a machine may be so busy that a second is not enough.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum number of saved reports that are delivered, and the timeout for all of them.
const MAX_DELIVERED: usize = 100;
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// Name of root in a file that belongs to another user, in that user's folder.
const ROOT: &str = "root";

/// Reports one run.
pub struct Teller {
    sockets: Vec<PathBuf>,
    spool: Option<PathBuf>,
    /// Folder from which the server that answered reads saved reports.
    of_server: Option<Folder>,
    /// Folder of the saved report of this run.
    kept: Option<Folder>,
}

/// Answer of a server to a report.
enum Answered {
    Taken(TellAnswer, Option<u32>),
    Refused(String),
    Silent,
    Nobody,
}

impl Teller {
    /// Reports to the first of these sockets that has a listener, or saves reports below `spool`.
    pub fn new(sockets: Vec<PathBuf>, spool: Option<PathBuf>) -> Teller {
        Teller { sockets, spool, of_server: None, kept: None }
    }

    /// The first socket that has a listener, for messages of the command itself.
    pub fn socket(&self) -> Option<PathBuf> {
        Server::first(&self.sockets).map(|server| server.path)
    }

    /// Requests the server's folder for output of jobs, and the server's ID of a run. Waits at most three
    /// seconds.
    ///
    /// # Errors
    /// No server listens or answers, or it records no output, or not for us; the sentence is the reason.
    pub fn folder(&self, run: &str) -> Result<(Folder, String), String> {
        let asked = serde_json::to_vec(&LogsOf { logs: run.into() }).unwrap_or_default();
        let Some(server) = self.sent(&asked) else { return Err("no watchglass listens on this machine".into()) };
        let answer = server.answer(Instant::now() + ANSWER_TIMEOUT);
        let (answer, user) = answer.map_err(|_| "the server does not respond".to_string())?;
        let (answer, run) = match answer.split_once('\n').filter(|(_, run)| check_id(run).is_ok()) {
            Some((folder, run)) => (folder.to_string(), run.to_string()),
            None => (answer, run.to_string()),
        };
        let folder = Path::new(&answer);
        if !folder.is_absolute() {
            // The answer of a server that does not support this request.
            let is_unknown = answer.starts_with("this is no marker");
            return Err(if is_unknown { "the server records no output".into() } else { answer });
        }
        if !folder.is_dir() {
            return Err(format!("{answer} is not visible to this process"));
        }
        let user = user.ok_or("this system does not identify the server's user")?;
        if is_open(&server.path, user) {
            let place = server.path.display();
            return Err(format!(
                "other users can write to the folder of {place}; use a socket in a folder of the server"
            ));
        }
        let folder = Folder::of_server(folder, user).map_err(|error| format!("{answer} is not used: {error}"))?;
        Ok((folder, run))
    }

    /// The ID for a new run with this one: another one if a run on this machine has it, ended or not. Without a server
    /// that answers within three seconds, the ID stays.
    pub fn new_id(&self, id: &str) -> String {
        let asked = serde_json::to_vec(&NewId { new: id.into() }).unwrap_or_default();
        let answer = self.sent(&asked).and_then(|server| server.answer(Instant::now() + ANSWER_TIMEOUT).ok());
        answer.map(|(answer, _)| answer).filter(|answer| check_id(answer).is_ok()).unwrap_or_else(|| id.into())
    }

    /// Sends a message to the first server that accepts it.
    fn sent(&self, message: &[u8]) -> Option<Server> {
        let sent = |path: &PathBuf| Server::at(path).and_then(|server| server.send(message).map(|()| server)).ok();
        self.sockets.iter().find_map(sent)
    }

    /// Reports, and waits at most three seconds for the acknowledgment. A server that does not answer counts as absent.
    /// Returns a sentence if the run is listed under another ID.
    ///
    /// # Errors
    /// No server accepted it; the sentence has the consequence.
    pub fn tell(&mut self, told: &Told) -> Result<Option<String>, String> {
        let message = serde_json::to_vec(told).map_err(|error| format!("the run cannot be reported: {error}"))?;
        let nobody = match self.sent(&message).map_or(Answered::Nobody, |server| answered(&server)) {
            Answered::Taken(answer, user) => {
                let folder = answer.folder.map(PathBuf::from).zip(user);
                self.of_server = folder.and_then(|(folder, user)| Folder::of_server(&folder, user).ok());
                if let Some(kept) = self.kept.take() {
                    let _ = kept.remove(&name(told));
                }
                let run = &told.begun().run;
                return Ok(answer.listed.map(|id| format!("another user has a run {run}; this one is listed as {id}")));
            }
            Answered::Refused(sentence) => return Err(format!("{sentence}; this run is not listed")),
            Answered::Silent => "the server does not respond",
            Answered::Nobody => "no watchglass listens on this machine",
        };
        match self.keep(told) {
            Ok(()) => Err(format!("{nobody}; this run is listed once a server of yours starts")),
            Err(None) => Err(format!("{nobody}, and HOME is not set, so this run cannot be saved; it is not listed")),
            Err(Some(why)) => Err(format!("{nobody}, and {why}; this run is not listed")),
        }
    }

    /// Saves a report in place of the one before: the newest report of a run contains the content of earlier ones.
    /// The error is the reason, or None if there is no folder for it.
    fn keep(&mut self, told: &Told) -> Result<(), Option<String>> {
        let before = [self.kept.take(), self.of_server.take()].into_iter().flatten().map(Ok);
        let own = self.spool.iter().map(|path| Folder::make(path).map_err(|error| (path.clone(), error)));
        let mut failed = None;
        for folder in before.chain(own) {
            let written = folder.and_then(|folder| {
                let mut kept = Kept { machine: machine(), told: told.clone() };
                if folder.is_of_another() {
                    kept.told.set_user(ROOT);
                }
                let bytes = serde_json::to_vec(&kept).unwrap_or_default();
                match folder.write(&name(told), &bytes) {
                    Ok(()) => Ok(folder),
                    Err(error) => Err((folder.path().to_path_buf(), error)),
                }
            });
            match written {
                Ok(folder) => {
                    self.kept = Some(folder);
                    return Ok(());
                }
                Err((path, error)) => failed = Some(format!("{} cannot be written: {error}", path.display())),
            }
        }
        Err(failed)
    }

    /// Delivers saved reports of earlier runs on this machine. It begins none after a second.
    pub fn deliver(&self) {
        let Some(path) = self.spool.as_ref().filter(|path| path.is_dir()) else { return };
        // A server reads its own folder by itself.
        if self.of_server.as_ref().is_some_and(|folder| is_same(folder.path(), path)) {
            return;
        }
        let Ok(folder) = Folder::make(path) else { return };
        let (until, here) = (Instant::now() + DELIVERY_TIMEOUT, machine());
        let files = folder.files(|name| KEPT_ENDINGS.iter().any(|ending| name.ends_with(ending))).unwrap_or_default();
        for name in files.into_iter().map(|file| file.name).take(MAX_DELIVERED) {
            if folder.is_of_another() || Instant::now() >= until {
                return;
            }
            let Ok(Kept { machine, .. }) = read(&folder, &name) else { continue };
            if !is_this(&machine, &here) {
                continue;
            }
            // Its launcher may write a newer report meanwhile. That has the old name, so it is not removed.
            let sending = name.trim_end_matches(KEPT_ENDINGS[0]).trim_end_matches(KEPT_ENDINGS[1]);
            let sending = format!("{sending}{}", KEPT_ENDINGS[1]);
            let _ = folder.rename(&name, &sending);
            let Ok(Kept { told, .. }) = read(&folder, &sending) else { continue };
            let message = serde_json::to_vec(&told).unwrap_or_default();
            let Some(server) = self.sent(&message) else { return };
            match answered(&server) {
                Answered::Taken(..) => _ = folder.remove(&sending),
                Answered::Refused(_) => {}
                Answered::Silent | Answered::Nobody => return,
            }
        }
    }
}

/// Reads a server's answer to a report.
fn answered(server: &Server) -> Answered {
    let Ok((answer, user)) = server.answer(Instant::now() + ANSWER_TIMEOUT) else { return Answered::Silent };
    match serde_json::from_str(&answer) {
        Ok(answer @ TellAnswer { taken: true, .. }) => Answered::Taken(answer, user),
        Ok(_) => Answered::Silent,
        Err(_) => Answered::Refused(answer),
    }
}

/// Name of the file for a process of a run.
fn name(told: &Told) -> String {
    let begun = told.begun();
    format!("{}-{}{}", begun.run, begun.pid, KEPT_ENDINGS[0])
}

fn read(folder: &Folder, name: &str) -> Result<Kept, ()> {
    let (bytes, _) = folder.read(name, MAX_MESSAGE_BYTES).map_err(drop)?;
    serde_json::from_slice(&bytes).map_err(drop)
}

/// This machine, in the form of [`Kept`]: host name and boot ID.
pub fn machine() -> [Option<String>; 2] {
    let read = |path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id"].map(read)
}

/// Whether this is the same machine. One of both must match: the host name changes in containers, and the boot ID with
/// each boot.
pub fn is_this(machine: &[Option<String>; 2], here: &[Option<String>; 2]) -> bool {
    machine.iter().zip(here).any(|(one, here)| one == here)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let ids = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    ids(one).is_some_and(|one| Some(one) == ids(other))
}

/// Whether users other than the server's could have placed a socket in its folder. It matters only to root, because
/// others use only their own folders.
fn is_open(socket: &Path, server: u32) -> bool {
    // SAFETY: the call cannot fail.
    let own = unsafe { libc::geteuid() };
    let is_closed = |folder: std::fs::Metadata| [0, server].contains(&folder.uid()) && folder.mode() & 0o022 == 0;
    server != own && !socket.parent().and_then(|folder| folder.metadata().ok()).is_some_and(is_closed)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use shared::run::{Begun, How, Over};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixDatagram;
    use std::thread::JoinHandle;

    fn begun() -> Begun {
        Begun { run: "abc".into(), t: 1, pid: 7, ..Begun::default() }
    }

    fn end() -> Told {
        Told::End(Over { begun: begun(), t: 9, how: How { exit: Some(5), ..How::default() } })
    }

    /// Runs a server with these answers. Returns the reports that it received.
    fn serve(server: &UnixDatagram, answers: &[&str]) -> JoinHandle<Vec<Told>> {
        let server = server.try_clone().expect("a socket");
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).into()).collect();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            let answer = |answer: String| {
                let (read, from) = server.recv_from(&mut bytes).expect("a message");
                server.send_to_addr(answer.as_bytes(), &from).expect("it waits");
                serde_json::from_slice(&bytes[..read]).expect("JSON")
            };
            answers.into_iter().map(answer).collect()
        })
    }

    fn kept(folder: &Path) -> Vec<(String, Told)> {
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut all: Vec<(String, Told)> = files
            .map(|file| {
                let kept: Kept = serde_json::from_slice(&fs::read(file.path()).expect("a file")).expect("JSON");
                (file.file_name().into_string().expect("text"), kept.told)
            })
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    const TAKEN: &str = r#"{"taken":true}"#;

    #[test]
    fn who_listens_is_told_and_nothing_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (none, path) = (folder.path().join("none"), folder.path().join("run.sock"));
        let server = UnixDatagram::bind(&path).expect("a socket");
        let mut teller = Teller::new(vec![none, path.clone()], Some(folder.path().join("runs")));
        assert_eq!(teller.socket(), Some(path));
        let told = Told::Begin(begun());
        let served = serve(&server, &[TAKEN, r#"{"taken":true,"listed":"abc-2"}"#, "the process 7 is another user's"]);
        assert_eq!(teller.tell(&told), Ok(None));
        assert_eq!(teller.tell(&told), Ok(Some("another user has a run abc; this one is listed as abc-2".into())));
        let refused = teller.tell(&told).expect_err("refused");
        assert_eq!(refused, "the process 7 is another user's; this run is not listed");
        assert_eq!(served.join().expect("no panic"), [told.clone(), told.clone(), told]);
        assert!(!folder.path().join("runs").exists());
    }

    #[test]
    fn a_server_that_does_not_read_is_not_waited_for_and_the_run_is_kept_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.sock");
        let _deaf = UnixDatagram::bind(&path).expect("a socket");
        let filler = UnixDatagram::unbound().expect("a socket");
        filler.set_nonblocking(true).expect("a socket");
        while filler.send_to(b"x", &path).is_ok() {}
        let runs = folder.path().join("state/runs");
        let mut teller = Teller::new(vec![path], Some(runs.clone()));
        let full = teller.tell(&Told::Begin(begun())).expect_err("a full socket");
        assert!(full.contains("listed once"), "{full}");
        assert!(teller.tell(&end()).is_err());
        assert_eq!(kept(&runs), [("abc-7.json".into(), end())], "the end has what the begin said");
    }

    #[test]
    fn what_the_server_had_not_taken_when_it_died_is_kept_where_it_looks() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().canonicalize().expect("there").join("server/runs");
        fs::create_dir_all(&own).expect("made");
        fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).expect("set");
        let (path, state) = (folder.path().join("run.sock"), folder.path().join("state"));
        let server = UnixDatagram::bind(&path).expect("a socket");
        let mut teller = Teller::new(vec![path.clone()], Some(state.clone()));
        let answer = format!(r#"{{"taken":true,"folder":{own:?}}}"#);
        let served = serve(&server, &[&answer]);
        assert_eq!(teller.tell(&Told::Begin(begun())), Ok(None));
        served.join().expect("no panic");
        // The server is killed with the end report in its queue.
        assert!(teller.tell(&end()).is_err_and(|why| why.contains("the server does not respond")));
        assert_eq!((kept(&own), kept(&state)), (vec![("abc-7.json".into(), end())], Vec::new()));
        // A server that answers again gets everything.
        let mut bytes = [0; 4096];
        server.recv(&mut bytes).expect("what nobody answered");
        let served = serve(&server, &[TAKEN]);
        assert_eq!(teller.tell(&end()), Ok(None));
        served.join().expect("no panic");
        assert_eq!(kept(&own), []);
        // If the server's folder is gone, or is not its own, our own folder is used.
        let served = serve(&server, &[&answer]);
        assert_eq!(teller.tell(&Told::Begin(begun())), Ok(None));
        served.join().expect("no panic");
        fs::remove_dir(&own).expect("removed");
        drop(server);
        fs::remove_file(&path).expect("removed");
        assert!(teller.tell(&end()).is_err());
        assert_eq!(kept(&state), [("abc-7.json".into(), end())]);
    }

    #[test]
    fn what_was_kept_is_told_to_the_next_server_that_takes_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, state) = (folder.path().join("run.sock"), folder.path().join("state"));
        assert!(Teller::new(Vec::new(), Some(state.clone())).tell(&end()).is_err());
        let elsewhere = Kept { machine: [Some("other".into()), Some("boot".into())], told: Told::Begin(begun()) };
        fs::write(state.join("far-1.json"), serde_json::to_vec(&elsewhere).expect("JSON")).expect("written");
        let teller = Teller::new(vec![path.clone()], Some(state.clone()));
        teller.deliver();
        assert_eq!(kept(&state).len(), 2, "nobody is there");
        let server = UnixDatagram::bind(&path).expect("a socket");
        let served = serve(&server, &[TAKEN]);
        teller.deliver();
        assert_eq!(served.join().expect("no panic"), [end()]);
        assert_eq!(kept(&state), [("far-1.json".into(), Told::Begin(begun()))], "it is another machine's");
    }

    #[test]
    fn a_folder_for_output_is_asked_for_and_not_waited_for_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let (none, path) = (folder.path().join("none"), folder.path().join("run.sock"));
        let teller = Teller::new(vec![none, path.clone()], None);
        let why = || teller.folder("abc").expect_err("none");
        assert!(why().contains("no watchglass listens"));
        let server = UnixDatagram::bind(&path).expect("a socket");
        assert!(why().contains("does not respond"));
        let own = folder.path().canonicalize().expect("there").join("logs");
        fs::create_dir(&own).expect("made");
        fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).expect("set");
        let own = own.to_str().expect("plain letters").to_string();
        let answers = ["", "\nabc-2"].map(|id| format!("{own}{id}"));
        let answers = answers
            .into_iter()
            .chain(["/no/such/folder", "this is no marker; a text", "it has none", "/tmp"].map(Into::into));
        let serve = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            server.recv(&mut bytes).expect("what nobody answered");
            for answer in answers {
                let (read, from) = server.recv_from(&mut bytes).expect("a question");
                assert_eq!(&bytes[..read], br#"{"logs":"abc"}"#);
                server.send_to_addr(answer.as_bytes(), &from).expect("it waits");
            }
        });
        for id in ["abc", "abc-2"] {
            let (folder, run) = teller.folder("abc").expect("a folder");
            assert_eq!((folder.path(), run.as_str()), (Path::new(&own), id));
        }
        assert!(why().contains("is not visible to this process"));
        assert!(why().contains("records no output"));
        assert_eq!(why(), "it has none");
        assert!(why().contains("other users can write to it"), "everybody may write there");
        serve.join().expect("no panic");
    }

    #[test]
    fn without_a_folder_that_is_said() {
        let mut teller = Teller::new(Vec::new(), None);
        assert!(teller.tell(&Told::Begin(begun())).unwrap_err().contains("HOME is not set"));
        let mut teller = Teller::new(Vec::new(), Some("/dev/null/runs".into()));
        assert!(teller.tell(&Told::Begin(begun())).unwrap_err().contains("cannot be written"));
    }
}
