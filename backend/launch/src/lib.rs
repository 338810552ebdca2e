//! `watchglass run`: starts a command as it would have started, and tells the server of this machine when it began and how it
//! ended.
//!
//! It never harms the job. The command has its own terminal, files, environment and signals, and whoever started it gets its
//! status. Nobody listens, a disk is full, the server does not read: the command runs all the same.
//!
//! - [`process`]: the command, the signals that are passed on, and its end.
//! - [`relay`]: with `--logs`, what carries its output, and has [`keep`] keep the [`lines`] of it; [`pty`]: its terminal.
//! - [`memory`]: what the kernel killed for memory meanwhile.
//! - [`pod`]: the pod of Kubernetes that it is in.
//! - [`mark`]: a marker, told on the same socket.
//! - [`tell`]: the server's socket, and the file where there is no server.
//! - [`peer`]: sockets on which the kernel says who sent what; [`folder`]: folders in which others may have laid links.

#![cfg(unix)]

pub mod folder;
pub mod keep;
pub mod lines;
pub mod mark;
pub mod memory;
pub mod peer;
pub mod pod;
mod proc;
pub mod process;
pub mod pty;
pub mod relay;
pub mod tell;

use folder::Folder;
use memory::Watched;
use process::{Child, End};
use relay::{Relay, Streams};
use shared::run::{About, Begun, How, Over, RUN_ID, SOCKET, Told, check_id};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use tell::Teller;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// Id of the run, where it was given.
    pub id: Option<String>,
    /// Its names.
    pub about: About,
    /// Id of the job of Slurm that this is in.
    pub slurm: Option<String>,
    /// Where a server's socket may be, best first.
    pub sockets: Vec<PathBuf>,
    /// Folder for what nobody was there to be told; None where this user has none.
    pub untold: Option<PathBuf>,
    /// What it prints is kept, where a server says in which folder.
    pub logs: bool,
}

/// How the command ended, for whoever started it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// It was not started. The sentence says why; the status is that of a shell: 127 not found, 126 cannot be run.
    NotStarted(i32, String),
}

/// Starts the command, waits for its end and tells of both. `inherited` is the id of the run that the environment names,
/// `now` tells milliseconds since the Unix epoch, `complain` prints one line for the user.
pub fn run(
    job: Job,
    inherited: Option<String>,
    now: impl Fn() -> i64 + Copy + Send + 'static,
    complain: impl Fn(&str),
) -> Ended {
    let inherited = inherited.filter(|id| check_id(id).is_ok());
    let joined = job.id.is_none() && inherited.is_some();
    let id = job.id.or(inherited).unwrap_or_else(|| random_id(now()));
    let mut teller = Teller::new(job.sockets, job.untold);
    let mut environment = vec![(RUN_ID, OsString::from(&id))];
    if let Some(socket) = teller.socket() {
        environment.push((SOCKET, socket.as_os_str().to_owned()));
    }
    let mut memory = Watched::own();
    let folder = job.logs.then(|| teller.folder(&id));
    let kept = folder.map(|folder| folder.and_then(relay));
    // Where nobody listens that is said once, and what comes of it.
    let (kept, unkept) = match kept {
        Some(Ok(kept)) => (Some(kept), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    let (kept, streams) = match kept {
        Some((place, relay, streams)) => (Some((place, relay)), streams),
        None => (None, Streams::default()),
    };
    let child = match Child::start(&job.command, &environment, streams) {
        Ok(child) => child,
        Err(error) => {
            let program = job.command[0].to_string_lossy();
            let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            return Ended::NotStarted(status, format!("{program} cannot be run: {error}"));
        }
    };
    let program = Path::new(&job.command[0]).file_name().unwrap_or(&job.command[0]);
    let about = About { program: program.to_string_lossy().into_owned(), ..job.about };
    let (pid, start, namespace) = (child.pid(), process::started(child.pid()), process::namespace());
    let (slurm, pod) = (job.slurm, pod::of(pid));
    let begun = Begun { run: id, t: now(), pid, start, namespace, joined, slurm, pod, about, ..Begun::default() };
    // A server that does not answer holds up nothing of the job.
    let kept = kept.map(|((folder, run), mut relay)| {
        relay.begin(folder, (run, format!("{}-{pid}", begun.t)), now);
        relay
    });
    match (teller.tell(&Told::Begin(begun.clone())), unkept) {
        (Err(sentence), Some(_)) => complain(&format!("{sentence}; the output is not recorded")),
        (Err(sentence), None) => complain(&sentence),
        (Ok(said), why) => {
            said.iter().for_each(|said| complain(said));
            why.iter().for_each(|why| complain(&format!("the output is not recorded: {why}")));
            teller.deliver();
        }
    }
    let (end, asked) = child.wait(kept.as_ref(), || memory.look());
    let how = match end {
        End::Status(status) => How { exit: Some(status), ..How::default() },
        End::Signal(signal) => How { signal: Some(process::signal_name(signal)), ..How::default() },
    };
    let victim = (end == End::Signal(libc::SIGKILL)).then_some(pid);
    let memory = if end == End::Status(0) { None } else { memory.killed(victim) };
    let how = How { asked: asked.map(process::signal_name), memory, ..how };
    // A second line would stand in the job's own output: what could not be told at the end is kept as the begin was.
    let _ = teller.tell(&Told::End(Over { begun, t: now(), how }));
    if let Some(relay) = kept
        && let Some(why) = relay.end(|| child.give_signals_back())
    {
        complain(&format!("some output is not recorded: {why}"));
    }
    match end {
        End::Status(status) => Ended::Status(status),
        End::Signal(signal) => Ended::Signal(signal),
    }
}

/// What stands between a job and our streams, and the folder in which its lines are kept.
fn relay(place: (Folder, String)) -> Result<((Folder, String), Relay, Streams), String> {
    let (relay, streams) =
        Relay::new().map_err(|error| format!("the system provides no terminal and no pipe: {error}"))?;
    Ok((place, relay, streams))
}

/// Eight letters and digits, as W&B's ids are.
fn random_id(now: i64) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 8];
    let filled = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes);
    if filled.is_err() {
        // Without the system's generator an id is still the only one on this machine: its number and its instant.
        bytes = (u64::from(std::process::id()) << 40 ^ now as u64).to_le_bytes();
    }
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_plain_letters() {
        let (one, other) = (random_id(1), random_id(1));
        assert_eq!((check_id(&one), one.len()), (Ok(()), 8));
        assert_ne!(one, other);
    }
}
