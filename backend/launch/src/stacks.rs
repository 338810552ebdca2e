//! Stacks of the ranks of a hanging job, opt-in: py-spy takes them when the server of this machine requests it, and they
//! become lines of the job's recorded output, where secrets are redacted and only members read.
//!
//! Linux with `kernel.yama.ptrace_scope=1` lets a process read only its own descendants, and py-spy is a sibling of the
//! command. So the command names this process as one whose descendants may read it; see [`process`](super::process).

use super::keep::Keeper;
use super::lines::Assembler;
use super::peer::Server;
use super::process::parent;
use serde::Deserialize;
use shared::output::OutputStream;
use shared::run::{StackedRank, StacksAsked, StacksOf};
use shared::unit::size;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time of py-spy for one process.
const DUMP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum output of py-spy for one process, bytes.
const MAX_DUMP_BYTES: usize = 1 << 20;
/// Maximum time for all processes of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of requests in the life of a job, and minimum time between two.
const MAX_REQUESTS: usize = 16;
const REQUEST_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of processes of one request.
const MAX_PROCESSES: usize = 64;
/// Maximum number of frames of a stack that are stored, and length of the text of a frame, bytes.
const MAX_FRAMES: usize = 64;
const MAX_FRAME_BYTES: usize = 200;
/// Interval of registrations with the server: it may have restarted.
const REGISTRATION_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum length of one wait for a request.
const WAIT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum depth of a rank below the command.
const MAX_DEPTH: usize = 64;

/// The stacks of a job.
pub struct Stacks {
    /// Absolute path of py-spy.
    pub py_spy: PathBuf,
    /// Paths at which a server may listen, best first.
    pub sockets: Vec<PathBuf>,
    /// ID of the run.
    pub run: String,
    /// PID of the command.
    pub root: u32,
    /// Receives the lines.
    pub keeper: Keeper,
}

/// Checks that py-spy is a program that only root or this user can replace.
///
/// # Errors
/// A sentence: the problem, and the remedy.
pub fn check_tool(path: &Path) -> Result<(), String> {
    let at = path.display();
    if !path.is_absolute() {
        return Err(format!("insight.py_spy {at}: not an absolute path"));
    }
    let real = path.canonicalize();
    let real = real.map_err(|error| format!("insight.py_spy {at}: {error}; install it with `pip install py-spy`"))?;
    // SAFETY: the call cannot fail.
    let own = unsafe { libc::geteuid() };
    for part in real.ancestors() {
        let found = part.metadata().map_err(|error| format!("insight.py_spy {}: {error}", part.display()))?;
        // In a sticky folder, as /tmp, nobody can replace a file of others.
        let is_sticky = found.is_dir() && found.mode() & 0o1000 != 0;
        if ![0, own].contains(&found.uid()) || found.mode() & 0o022 != 0 && !is_sticky {
            let part = part.display();
            return Err(format!(
                "insight.py_spy {at}: other users can write to {part}; install it in a folder of root"
            ));
        }
    }
    match real.metadata() {
        Ok(found) if found.is_file() && found.mode() & 0o111 != 0 => Ok(()),
        _ => Err(format!("insight.py_spy {at}: not a program")),
    }
}

impl Stacks {
    /// Waits for requests of the server until the job ends, and answers each with lines. `now` returns milliseconds since
    /// the Unix epoch.
    pub fn serve(self, now: impl Fn() -> i64) {
        let mut assembler = Assembler::default();
        let mut last: Option<Instant> = None;
        let mut requests = 0;
        let message = serde_json::to_vec(&StacksOf { stacks: self.run.clone() }).unwrap_or_default();
        while requests < MAX_REQUESTS {
            let until = Instant::now() + REGISTRATION_INTERVAL;
            let server = Server::first(&self.sockets).filter(|server| server.send(&message).is_ok());
            let answer = server.and_then(|server| wait_for_answer(&server, until));
            let asked = answer.and_then(|text| serde_json::from_str::<StacksAsked>(&text).ok());
            match asked.filter(|_| last.is_none_or(|last| last.elapsed() >= REQUEST_INTERVAL)) {
                Some(asked) => {
                    requests += 1;
                    last = Some(Instant::now());
                    for line in self.lines(&asked.ranks) {
                        let line = format!("watchglass: {line}\n");
                        self.keeper.take(&mut assembler, OutputStream::Err, line.as_bytes(), now());
                    }
                }
                None => std::thread::sleep(until.saturating_duration_since(Instant::now())),
            }
        }
    }

    /// The stacks of these processes, those of few ranks first, and the reasons for those that could not be read.
    fn lines(&self, ranks: &[StackedRank]) -> Vec<String> {
        if let Err(why) = check_tool(&self.py_spy) {
            return vec![format!("no stacks: {why}")];
        }
        let until = Instant::now() + REQUEST_TIMEOUT;
        let mut read: Vec<(String, Result<Vec<String>, String>)> = Vec::new();
        for one in ranks.iter().filter(|one| is_below(one.pid, self.root)).take(MAX_PROCESSES) {
            let timeout = DUMP_TIMEOUT.min(until.saturating_duration_since(Instant::now()));
            let stack = if timeout.is_zero() { Err("no time was left".into()) } else { self.dump(one.pid, timeout) };
            read.push((one.rank.map_or_else(|| format!("process {}", one.pid), |rank| rank.to_string()), stack));
        }
        fold(read)
    }

    /// The main stack of a process: with native frames, else those of Python alone.
    fn dump(&self, pid: u32, timeout: Duration) -> Result<Vec<String>, String> {
        let pid = pid.to_string();
        let begun = Instant::now();
        let native = capture(&self.py_spy, &["dump", "--json", "--native", "--pid", &pid], timeout);
        let stack = native.and_then(|bytes| main_stack(&bytes, &pid));
        let left = timeout.saturating_sub(begun.elapsed());
        match stack {
            Err(_) if left > DUMP_TIMEOUT / 2 => capture(&self.py_spy, &["dump", "--json", "--pid", &pid], left)
                .and_then(|bytes| main_stack(&bytes, &pid)),
            stack => stack,
        }
    }
}

/// The next answer of a server, in short waits: a suspended machine then repeats its registration soon.
fn wait_for_answer(server: &Server, until: Instant) -> Option<String> {
    while Instant::now() < until {
        match server.answer(until.min(Instant::now() + WAIT_INTERVAL)) {
            Ok((text, _)) => return Some(text),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(_) => return None,
        }
    }
    None
}

/// Whether a process is this one, or a descendant of it.
fn is_below(pid: u32, root: u32) -> bool {
    std::iter::successors(Some(pid), |pid| parent(*pid)).take(MAX_DEPTH).any(|pid| pid == root)
}

/// Equal stacks once, with their ranks: those of the fewest ranks first, because they are what the others wait for.
fn fold(read: Vec<(String, Result<Vec<String>, String>)>) -> Vec<String> {
    let count = read.len();
    let (mut stacks, mut failed) =
        (BTreeMap::<Vec<String>, Vec<String>>::new(), BTreeMap::<String, Vec<String>>::new());
    for (rank, stack) in read {
        match stack {
            Ok(stack) => stacks.entry(stack).or_default().push(rank),
            Err(why) => failed.entry(why).or_default().push(rank),
        }
    }
    let mut stacks: Vec<(Vec<String>, Vec<String>)> = stacks.into_iter().map(|(stack, ranks)| (ranks, stack)).collect();
    stacks.sort_by_key(|(ranks, _)| ranks.len());
    let name = |ranks: &[String]| format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, ranks.join(", "));
    let mut lines = vec![match stacks.len() {
        0 => format!("no stacks of {count} ranks could be read"),
        1 => format!("stacks of {count} ranks at a hang: all equal"),
        different => format!("stacks of {count} ranks at a hang: {different} different, the rarest first"),
    }];
    for (ranks, stack) in stacks {
        lines.push(format!("{}:", name(&ranks)));
        lines.extend(stack.into_iter().map(|frame| format!("  {frame}")));
    }
    lines.extend(failed.into_iter().map(|(why, ranks)| format!("{}: {why}", name(&ranks))));
    lines
}

/// A thread in the output of py-spy.
#[derive(Deserialize)]
struct DumpedThread {
    #[serde(default)]
    thread_name: Option<String>,
    #[serde(default)]
    os_thread_id: Option<u64>,
    frames: Vec<DumpedFrame>,
}

/// A frame in it, innermost first.
#[derive(Deserialize)]
struct DumpedFrame {
    name: String,
    #[serde(default)]
    short_filename: Option<String>,
    #[serde(default)]
    filename: String,
    #[serde(default)]
    line: i64,
}

/// The frames of the main thread, innermost first: `get (queue.py:171)`.
fn main_stack(bytes: &[u8], pid: &str) -> Result<Vec<String>, String> {
    let threads: Vec<DumpedThread> =
        serde_json::from_slice(bytes).map_err(|_| "py-spy printed no stacks".to_string())?;
    let is_main = |one: &&DumpedThread| {
        one.thread_name.as_deref() == Some("MainThread") || one.os_thread_id.is_some_and(|id| id.to_string() == pid)
    };
    let main = threads.iter().find(is_main).or(threads.last()).ok_or("it has no thread of Python")?;
    // Addresses without a name differ between processes.
    let named = main.frames.iter().filter(|frame| !frame.name.starts_with("0x"));
    Ok(named.take(MAX_FRAMES).map(frame_text).collect())
}

fn frame_text(frame: &DumpedFrame) -> String {
    let file = frame.short_filename.as_deref().unwrap_or(&frame.filename);
    let mut text = match frame.line {
        ..=0 => format!("{} ({file})", frame.name),
        line => format!("{} ({file}:{line})", frame.name),
    };
    text.retain(|c| !c.is_control());
    text.truncate(text.floor_char_boundary(MAX_FRAME_BYTES));
    text
}

/// The output of a program that ends within a time; it is killed if it takes longer, or prints more than
/// [`MAX_DUMP_BYTES`].
fn capture(program: &Path, args: &[&str], timeout: Duration) -> Result<Vec<u8>, String> {
    #[expect(clippy::disallowed_methods, reason = "its path is checked, and the launcher has no runtime")]
    let mut starting = Command::new(program);
    starting.args(args).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = starting.spawn().map_err(|error| format!("py-spy cannot be started: {error}"))?;
    let process = pidfd(child.id());
    let output = child.stdout.take().map(OwnedFd::from).map(File::from);
    let read = output.map_or_else(|| Err("py-spy has no output".into()), |output| read_all(output, timeout));
    match &process {
        // SAFETY: the descriptor is that of this process alone, whether or not it has been reaped.
        Ok(process) => unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), libc::SIGKILL, 0, 0);
        },
        // Before Linux 5.3 there is no such descriptor. A program that takes too long is still there.
        // SAFETY: the call takes numbers.
        Err(_) if read.is_err() => unsafe {
            libc::kill(child.id() as libc::pid_t, libc::SIGKILL);
        },
        Err(_) => {}
    }
    // The launcher may have reaped it already.
    let _ = child.wait();
    let bytes = read?;
    if bytes.is_empty() {
        Err("py-spy could not read it (kernel.yama.ptrace_scope may forbid it)".into())
    } else {
        Ok(bytes)
    }
}

fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers, and gives a new descriptor or an error.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Reads to the end, for at most this time.
fn read_all(mut from: File, timeout: Duration) -> Result<Vec<u8>, String> {
    let until = Instant::now() + timeout;
    let (mut all, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("py-spy took more than {} s", timeout.as_secs()));
        }
        let mut entry = libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the entry is valid for the whole call.
        if unsafe { libc::poll(&raw mut entry, 1, left.as_millis().max(1) as i32) } <= 0 {
            continue;
        }
        match from.read(&mut part) {
            Ok(0) => return Ok(all),
            Ok(read) => all.extend(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("the output of py-spy cannot be read: {error}")),
        }
        if all.len() > MAX_DUMP_BYTES {
            return Err(format!("py-spy printed more than {}", size(MAX_DUMP_BYTES as u64)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A program with this script. Another process writes it: one that another test starts just now would have the file
    /// open for a moment, and a file that somebody writes cannot be run.
    fn tool(folder: &Path, script: &str) -> PathBuf {
        let (path, text) = (folder.join("py-spy"), folder.join("text"));
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("a file");
        #[allow(clippy::disallowed_methods, reason = "a copy that no process of this one has open")]
        let copied = Command::new("cp").arg(&text).arg(&path).status().expect("cp");
        assert!(copied.success());
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
        path
    }

    fn rank(rank: u32, frames: &[&str]) -> (String, Result<Vec<String>, String>) {
        (rank.to_string(), Ok(frames.iter().map(|frame| (*frame).into()).collect()))
    }

    #[test]
    fn equal_stacks_are_listed_once_and_the_odd_one_first() {
        let waits = ["poll (libc.so.6)", "all_reduce (comm.py:90)"];
        let all =
            vec![rank(0, &waits), rank(1, &["read (data.py:7)"]), rank(2, &waits), ("3".into(), Err("gone".into()))];
        assert_eq!(
            fold(all),
            [
                "stacks of 4 ranks at a hang: 2 different, the rarest first",
                "rank 1:",
                "  read (data.py:7)",
                "ranks 0, 2:",
                "  poll (libc.so.6)",
                "  all_reduce (comm.py:90)",
                "rank 3: gone",
            ]
        );
        assert_eq!(fold(vec![rank(0, &waits), rank(1, &waits)])[0], "stacks of 2 ranks at a hang: all equal");
        assert_eq!(
            fold(vec![("0".into(), Err("gone".into()))]),
            ["no stacks of 1 ranks could be read", "rank 0: gone"]
        );
    }

    #[test]
    fn the_main_thread_of_what_py_spy_prints_is_the_stack() {
        let printed = r#"[{"pid":7,"thread_name":"loader","os_thread_id":9,"frames":[{"name":"sleep","filename":"/x/a.py","line":1}]},
            {"pid":7,"thread_name":"MainThread","os_thread_id":7,"owns_gil":false,"frames":[
                {"name":"0x7fb308ca71f5","filename":"/lib/libc.so.6","short_filename":"libc.so.6","line":0},
                {"name":"sem_wait","filename":"/lib/libc.so.6","short_filename":"libc.so.6","line":0},
                {"name":"get\u001b[31m","filename":"/usr/lib/queue.py","module":null,"short_filename":"queue.py","line":171}]}]"#;
        let stack = main_stack(printed.as_bytes(), "7").expect("stacks");
        assert_eq!(stack, ["sem_wait (libc.so.6)", "get[31m (queue.py:171)"]);
        for lie in ["", "[]", "{}", "[{\"frames\":3}]", "[[[["] {
            assert!(main_stack(lie.as_bytes(), "7").is_err(), "{lie}");
        }
    }

    #[test]
    fn a_tool_that_hangs_floods_or_fails_ends_in_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = |script: &str| capture(&tool(folder.path(), script), &["dump", "--pid", "7"], Duration::from_secs(2));
        assert_eq!(run("echo \"$* $HOME\"").expect("output"), b"dump --pid 7 \n", "it gets no environment");
        let begun = Instant::now();
        assert_eq!(run("exec sleep 1000").expect_err("it hangs"), "py-spy took more than 2 s");
        assert!(run("yes 0123456789012345678901234567890123456789").is_err());
        assert!(run("exit 3").expect_err("it fails").contains("ptrace_scope"));
        assert!(begun.elapsed() < Duration::from_secs(30), "each is ended");
    }

    #[test]
    fn a_tool_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = tool(folder.path(), "true");
        let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
        assert_eq!(check_tool(&path), Ok(()));
        for (which, mode, before) in [(path.as_path(), 0o775, 0o755), (folder.path(), 0o777, 0o700)] {
            set(which, mode);
            let why = check_tool(&path).expect_err("others can replace it");
            assert!(why.contains("other users can write to"), "{why}");
            set(which, before);
        }
        set(&path, 0o644);
        assert!(check_tool(&path).expect_err("nobody can run it").ends_with("not a program"));
        assert!(check_tool(Path::new("py-spy")).expect_err("a name").ends_with("not an absolute path"));
        assert!(check_tool(Path::new("/no/such/py-spy")).expect_err("nothing").contains("pip install py-spy"));
    }

    #[test]
    fn only_processes_of_the_job_are_read() {
        let own = std::process::id();
        let parent = parent(own).expect("a parent");
        assert!(is_below(own, own) && is_below(own, parent) && !is_below(parent, own));
    }
}
