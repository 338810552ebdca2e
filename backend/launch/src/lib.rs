//! `watchglass run`: starts a command unchanged, and reports its start and end to the server of this machine.
//!
//! It never harms the job. The command has its own terminal, files, environment and signals, and the caller gets its
//! exit status. The command also runs if no server listens, the disk is full or the server does not read.
//!
//! - [`process`]: the command, the signals that are passed on, and its end; `witness`: signals that it got itself.
//! - [`relay`]: with `--logs`, copies its output, and [`keep`] stores the [`lines`] of it; [`pty`]: its terminal.
//! - `stacks`: with `--stacks`, the stacks of its ranks when the server suspects a hang.
//! - [`memory`]: processes that the kernel killed because of memory meanwhile.
//! - [`pod`]: its Kubernetes pod; [`reserved`]: the part of the machine that a scheduler reserved for it.
//! - [`mark`]: a marker, sent on the same socket.
//! - [`tell`]: the server's socket, and the file used without a server.
//! - [`peer`]: sockets on which the kernel identifies senders; [`folder`]: folders in which others may have placed
//!   links.

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
pub mod reserved;
pub mod slurm;
#[cfg(target_os = "linux")]
pub mod stacks;
pub mod tell;
#[cfg(target_os = "linux")]
mod witness;

use folder::Folder;
use memory::Watched;
use process::{Child, End};
use relay::{Relay, Streams};
use shared::run::{About, Begun, How, Over, RUN_ID, Reserved, SOCKET, Told, check_id};
use slurm::Step;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use system::cgroup;
use tell::Teller;

/// The job to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program and its arguments; never empty.
    pub command: Vec<OsString>,
    /// ID of the run, if given.
    pub id: Option<String>,
    /// Its names and labels.
    pub about: About,
    /// ID of the Slurm job that we are in.
    pub slurm: Option<String>,
    /// The step of Slurm whose task we are, if it has several.
    pub step: Option<Step>,
    /// The part of this machine that Slurm reserved for us.
    pub reserved: Option<Reserved>,
    /// Paths at which a server may listen, best first.
    pub sockets: Vec<PathBuf>,
    /// Folder for reports that no server received; None if this user has none.
    pub spool: Option<PathBuf>,
    /// Whether its output is recorded, in the folder that a server names.
    pub logs: bool,
    /// Path of py-spy if it takes the stacks of the ranks at a hang.
    pub stacks: Option<PathBuf>,
}

/// Result of the command, for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ended with this exit status.
    Status(i32),
    /// It was ended by this signal.
    Signal(i32),
    /// It was not started. The sentence is the reason; the status is that of a shell: 127 not found, 126 cannot be run.
    NotStarted(i32, String),
}

/// Starts the command, waits for its end and reports both. `inherited` is the run ID from the environment. `now`
/// returns milliseconds since the Unix epoch. `complain` prints one line for the user.
pub fn run(
    job: Job,
    inherited: Option<String>,
    now: impl Fn() -> i64 + Copy + Send + 'static,
    complain: impl Fn(&str),
) -> Ended {
    let inherited = inherited.filter(|id| check_id(id).is_ok());
    let mut teller = Teller::new(job.sockets.clone(), job.spool);
    let (id, joined) = run_of((job.id, inherited, job.step), &teller, now(), &complain);
    let mut environment = vec![(RUN_ID, OsString::from(&id))];
    if let Some(socket) = teller.socket() {
        environment.push((SOCKET, socket.as_os_str().to_owned()));
    }
    let mut memory = Watched::own();
    let folder = job.logs.then(|| teller.folder(&id));
    let kept = folder.map(|folder| folder.and_then(relay));
    // Without a server, the user gets one message with the consequence.
    let (kept, unkept) = match kept {
        Some(Ok(kept)) => (Some(kept), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    let (kept, streams) = match kept {
        Some((place, relay, streams)) => (Some((place, relay)), streams),
        None => (None, Streams::default()),
    };
    let child = match Child::start(&job.command, &environment, streams, job.stacks.is_some()) {
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
    let (slurm, pod) = (job.slurm, pod::read_pod(pid));
    // Only the server can translate the UUIDs of GPUs in a pod to numbers.
    let of_pod = || reserved::by_kubernetes(pid, Vec::new(), Path::new(cgroup::TREE));
    let reserved = job.reserved.or_else(|| pod.as_ref().and_then(|_| of_pod()));
    let begun =
        Begun { run: id, t: now(), pid, start, namespace, joined, slurm, reserved, pod, about, ..Begun::default() };
    // The relay starts before the report, so a server that does not answer never delays the job.
    let kept = kept.map(|((folder, run), mut relay)| {
        relay.begin(folder, (run, format!("{}-{pid}", begun.t)), now);
        offer_stacks((job.stacks, job.sockets), &begun, &relay, now);
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
    let (end, asked) = child.wait(kept.as_ref(), || memory.poll());
    let how = match end {
        End::Status(status) => How { exit: Some(status), ..How::default() },
        End::Signal(signal) => How { signal: Some(process::signal_name(signal)), ..How::default() },
    };
    let victim = (end == End::Signal(libc::SIGKILL)).then_some(pid);
    let memory = if end == End::Status(0) { None } else { memory.killed(victim) };
    let how = How { asked: asked.map(process::signal_name), memory, ..how };
    // No second message, because it would stand in the job's own output. An end that no server received is saved as the
    // start was.
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

/// Offers the stacks of a run to the server until the job ends, if it has a path of py-spy.
fn offer_stacks(
    (py_spy, sockets): (Option<PathBuf>, Vec<PathBuf>),
    begun: &Begun,
    relay: &Relay,
    now: impl Fn() -> i64 + Send + 'static,
) {
    #[cfg(target_os = "linux")]
    if let Some(py_spy) = py_spy {
        let (run, root, keeper) = (begun.run.clone(), begun.pid, relay.keeper());
        let stacks = stacks::Stacks { py_spy, sockets, run, root, keeper };
        // If this thread cannot start, the job has no stacks but everything else.
        let _ = std::thread::Builder::new().name("stacks".into()).spawn(move || stacks.serve(now));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (py_spy, sockets, begun, relay, now);
}

/// The ID of the run, and whether it joins one that another process begins: from the given ID, the run ID of the
/// environment, and the step of Slurm.
fn run_of(
    known: (Option<String>, Option<String>, Option<Step>),
    teller: &Teller,
    now: i64,
    complain: impl Fn(&str),
) -> (String, bool) {
    match known {
        (None, Some(outer), _) => (outer, true),
        // All tasks of a step have the same arguments, so an ID means the run of all.
        (given, _, Some(step)) => (given.unwrap_or(step.run), !step.is_first),
        (Some(given), _, None) => {
            let id = teller.new_id(&given);
            if id != given {
                complain(&format!("a run has the ID {given} already; this one is {id}"));
            }
            (id, false)
        }
        (None, None, None) => (random_id(now), false),
    }
}

/// Builds the relay between the job and our streams, with the folder for its lines.
fn relay(place: (Folder, String)) -> Result<((Folder, String), Relay, Streams), String> {
    let (relay, streams) =
        Relay::new().map_err(|error| format!("the system provides no terminal and no pipe: {error}"))?;
    Ok((place, relay, streams))
}

/// Eight letters and digits, the form of W&B run IDs.
fn random_id(now: i64) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 8];
    let filled = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes);
    if filled.is_err() {
        // Without the system's random generator, process ID and time still make the ID unique on this machine.
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
