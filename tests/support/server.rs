//! The real binary. It is built, started on a free port of loopback, used over raw HTTP, and killed when dropped.

use crate::waiting::{MAX_WAIT, until_or, until_so, within};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Maximum time of a server for its end: five times the documented maximum of 3 seconds. It gives open connections 2 of
/// them, and on a loaded machine the rest is not enough for what is left.
const MAX_END: Duration = Duration::from_secs(15);

/// Path of the binary, which is built in the profile of the tests. `WATCHGLASS_BINARY` overrides it.
pub fn binary() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(path) = std::env::var_os("WATCHGLASS_BINARY") {
            return path.into();
        }
        let own = std::env::current_exe().expect("this program");
        let folder = own.ancestors().nth(2).expect("target/PROFILE/deps/NAME").to_path_buf();
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        // For the tests of another package, Cargo builds a package's library but not its binary. The binary has no
        // tests. With this argument its crates have the features that they have for tests, and are already built.
        let mut cargo = command(env!("CARGO"));
        let built = cargo.args(["build", "--quiet", "--package", "watchglass", "--bin", "watchglass", "--tests"]);
        let built = built.args(["--profile", profile]);
        let built = built.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo starts");
        assert!(built.success(), "the binary does not build");
        folder.join("watchglass")
    })
}

/// A command of a program. Its standard streams are the caller's.
#[allow(clippy::disallowed_methods, reason = "tests start the binary, and programs that use it")]
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Starts a program as another user; this needs root. That user may not enter the program's folder, since the build
/// folder is often below a private home. So the command names the program by our own descriptor, which stays open while
/// `start` runs.
#[cfg(target_os = "linux")]
pub fn as_user<T>(uid: u32, program: &Path, start: impl FnOnce(Command) -> T) -> T {
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    let file = std::fs::File::open(program).expect("a program");
    let mut command = command(format!("/proc/self/fd/{}", file.as_raw_fd()));
    command.current_dir("/").stdin(Stdio::null()).uid(uid);
    start(command)
}

/// A command of the binary with these arguments, without the caller's settings.
pub fn watchglass<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = command(binary());
    command.args(args).env_remove("WATCHGLASS_LOG").env_remove("SUDO_UID").stdin(Stdio::null());
    // Sockets are in the data folder then.
    command.env_remove("XDG_RUNTIME_DIR");
    // A test must not touch the caller's own history. /dev/null is not a folder.
    command.env("XDG_STATE_HOME", "/dev/null");
    command
}

/// A command of a shell that runs `line`, in which `"$@"` is the binary with its arguments.
#[cfg(unix)]
pub fn watchglass_by<'a>(line: &str, args: impl IntoIterator<Item = &'a str>) -> Command {
    let plain = watchglass(args);
    let mut shell = command("/bin/sh");
    shell.args(["-c", line, "sh"]).arg(plain.get_program()).args(plain.get_args()).stdin(Stdio::null());
    shell.env_remove("WATCHGLASS_LOG").env_remove("SUDO_UID").env("XDG_STATE_HOME", "/dev/null");
    shell
}

/// Runs the binary to its end.
pub fn run<'a>(args: impl IntoIterator<Item = &'a str>) -> Output {
    watchglass(args).output().expect("the binary starts")
}

/// A running server. It is killed when this is dropped.
pub struct Server {
    child: Child,
    /// The address in the first line of standard output.
    pub url: String,
    log: std::sync::Arc<Mutex<String>>,
}

impl Server {
    /// Starts a server on a free port.
    pub fn start<'a>(args: impl IntoIterator<Item = &'a str>) -> Self {
        Self::start_on(0, args)
    }

    /// Starts a server on this port. Where another one follows on it, it is a [`free_port`]: while no server has the
    /// port, the system must not give it to a connection of another test.
    pub fn start_on<'a>(port: u16, args: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = watchglass(["--port"]);
        command.arg(port.to_string()).args(args);
        Self::start_command(command)
    }

    /// Starts a prepared command and waits for its address. It stores nothing on disk unless the command names a
    /// folder.
    pub fn start_command(mut command: Command) -> Self {
        if !command.get_args().any(|arg| arg == "--data-dir" || arg == "--memory") {
            command.arg("--memory");
        }
        Self::start_as_it_is(command)
    }

    /// Starts a prepared command without adding arguments, and waits for its address.
    pub fn start_as_it_is(command: Command) -> Self {
        Self::start_logging(command, Stdio::piped())
    }

    /// Starts a prepared command with another target for its log, and waits for its address.
    pub fn start_logging(mut command: Command, stderr: Stdio) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the binary starts");
        let log = std::sync::Arc::new(Mutex::new(String::new()));
        if let Some(mut from) = child.stderr.take().map(BufReader::new) {
            let theirs = log.clone();
            std::thread::spawn(move || {
                let mut line = String::new();
                while from.read_line(&mut line).is_ok_and(|n| n > 0) {
                    theirs.lock().push_str(&std::mem::take(&mut line));
                }
            });
        }
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (told, line) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let mut url = String::new();
            let read = stdout.read_line(&mut url);
            // The result is lost when the test has given up.
            let _ = told.send((read.map(|_| url), stdout.into_inner()));
        });
        let mut server = Server { child, url: String::new(), log };
        let (url, stdout) = line.recv_timeout(5 * MAX_WAIT).expect("it tells its address in time");
        server.child.stdout = Some(stdout);
        server.url = url.expect("the first line").trim_end().to_string();
        assert!(
            ["http", "unix:"].iter().any(|kind| server.url.starts_with(kind)),
            "no address: {:?}; {}",
            server.url,
            server.log()
        );
        server
    }

    /// Starts a server whose address cannot be read from its output, and waits until it answers on this port.
    pub fn start_untold(mut command: Command, port: u16, stdout: Stdio) -> Self {
        command.args(["--memory", "--port"]).arg(port.to_string());
        let child = command.stdout(stdout).stderr(Stdio::null()).spawn().expect("the binary starts");
        let mut server = Server { child, url: format!("http://127.0.0.1:{port}/"), log: Default::default() };
        let addr = server.addr();
        until_so("it listens", || {
            assert_eq!(server.child.try_wait().expect("a child"), None, "it has ended");
            TcpStream::connect(addr).is_ok()
        });
        server
    }

    /// A server with these arguments, shared by all tests of this program that only read from it. It ends with this
    /// program, even when that is killed.
    #[cfg(unix)]
    pub fn shared(args: &[&str]) -> &'static Self {
        static ALL: Mutex<BTreeMap<String, &OnceLock<Server>>> = Mutex::new(BTreeMap::new());
        let of_these = *ALL.lock().entry(args.join(" ")).or_insert_with(|| Box::leak(Box::default()));
        of_these.get_or_init(|| {
            // The shell ends the server when its own standard input, which this program holds, is closed. Ctrl-C in a
            // terminal must not reach the shell.
            let line = r#""$@" & read -r line; kill $!; wait"#;
            let mut command = watchglass_by(line, ["--port", "0"].into_iter().chain(args.iter().copied()));
            command.stdin(Stdio::piped()).env_remove("XDG_RUNTIME_DIR");
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            Self::start_command(command)
        })
    }

    /// The address at which the server listens.
    pub fn addr(&self) -> SocketAddr {
        let authority = self.url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
        authority.and_then(|text| text.parse().ok()).expect("an address in the first line")
    }

    /// The log of the server so far.
    pub fn log(&self) -> String {
        self.log.lock().clone()
    }

    /// Waits until this text is in the log: the server writes it with a thread, and another thread reads it here.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn says(&self, words: &str) {
        let says = || self.log().contains(words).then_some(());
        until_or(MAX_WAIT, says, || format!("it says {words:?}; it said:\n{}", self.log()));
    }

    /// Waits until a demo of several machines has its whole past. A slow machine makes a part of it after the start.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn wait_for_past(&self) {
        let sources = || self.get("/api/v1/sources", &[]).body;
        let is_whole = || (!sources().contains("\"filling\"")).then_some(());
        until_or(9 * MAX_WAIT, is_whole, || format!("the past is whole: {}", sources()));
    }

    /// Process id of the server.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether none of its threads is running or runnable.
    #[cfg(target_os = "linux")]
    pub fn rests(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).expect("it runs");
        // A thread may end in between.
        let all = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
        all.into_iter().all(|text| text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('R')))
    }

    /// Ends the server by SIGTERM, waits for it, and returns its status.
    ///
    /// # Panics
    /// Panics when the server has not ended after [`MAX_END`].
    pub fn end(self) -> std::process::ExitStatus {
        self.end_by("TERM")
    }

    /// Sends the server a signal, given by its name, such as `HUP`.
    pub fn signal(&self, name: &str) {
        let kill = command("kill").args(["-s", name, &self.child.id().to_string()]).status().expect("kill starts");
        assert!(kill.success());
    }

    /// Ends the server by a signal, given by its name, and returns its status.
    pub fn end_by(self, signal: &str) -> std::process::ExitStatus {
        self.signal(signal);
        self.wait(MAX_END)
    }

    /// Waits until a server that received a signal has ended, and returns its status.
    ///
    /// # Panics
    /// Panics when that takes longer than `most`.
    pub fn wait(mut self, most: Duration) -> std::process::ExitStatus {
        within(most, || self.child.try_wait().expect("a child"))
            .unwrap_or_else(|| panic!("it does not end in {most:?}"))
    }

    /// Sends a GET request with these header lines; `Host` is added when it is missing.
    pub fn get(&self, path: &str, headers: &[&str]) -> ServerAnswer {
        let named = headers.iter().any(|line| line.to_ascii_lowercase().starts_with("host:"));
        let host = if named { String::new() } else { format!("Host: {}\r\n", self.addr()) };
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        ask(self.addr(), &format!("GET {path} HTTP/1.1\r\n{host}{lines}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP answer.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerAnswer {
    /// Status code; 0 when the connection was closed without an answer.
    pub status: u16,
    /// Status line and header lines.
    pub head: String,
    /// Body, with its chunks joined.
    pub body: String,
}

impl ServerAnswer {
    /// Value of a header; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next().unwrap_or_default()
    }

    /// The `error` sentence of an answer, whose body must be JSON.
    #[track_caller]
    pub fn error(&self) -> String {
        let json: serde_json::Value = serde_json::from_str(&self.body).expect("errors are JSON");
        json["error"].as_str().expect("a sentence").to_string()
    }

    /// Parses the bytes of an answer.
    pub fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n");
        let (head, body) = end.map_or((bytes, &[][..]), |at| (&bytes[..at], &bytes[at + 4..]));
        let head = String::from_utf8_lossy(head).into_owned();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let mut answer = ServerAnswer { status, head, body: String::new() };
        let whole = if answer.header("transfer-encoding") == "chunked" { joined(body) } else { body.to_vec() };
        answer.body = String::from_utf8_lossy(&whole).into_owned();
        answer
    }
}

/// Joins the chunks of a body. A truncated body ends where it was truncated.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = chunks.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&chunks[..at]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else { break };
        let rest = &chunks[at + 2..];
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        chunks = rest.get(size + 2..).unwrap_or_default();
    }
    body
}

/// Sends the first lines of a request with `Connection: close`, and reads the answer. For an upgrade it reads only the
/// answer to the upgrade.
///
/// # Panics
/// Panics when nothing listens, or the answer does not end in time.
#[track_caller]
pub fn ask(addr: SocketAddr, lines: &str) -> ServerAnswer {
    ask_with(addr, lines, "")
}

/// Sends a request like [`ask`] with a body, whose length is in the lines.
///
/// # Panics
/// Panics as [`ask`] does.
#[track_caller]
pub fn ask_with(addr: SocketAddr, lines: &str, body: &str) -> ServerAnswer {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(MAX_WAIT)).expect("a time limit");
    let upgrade = lines.to_ascii_lowercase().contains("\r\nupgrade:");
    let end = if upgrade { "" } else { "Connection: close\r\n" };
    stream.write_all(format!("{lines}{end}\r\n{body}").as_bytes()).expect("a request");
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while !(upgrade && whole(&bytes)) {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&part[..n]),
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                // A connection that is rejected at accept may end in a reset. The bytes before it count.
                ErrorKind::ConnectionReset if !bytes.is_empty() => break,
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    panic!("no end of the answer in {MAX_WAIT:?}, {} bytes of it: {lines}", bytes.len())
                }
                _ => panic!("no answer: {error}: {lines}"),
            },
        }
    }
    ServerAnswer::read(&bytes)
}

/// Sends a request whose answer is not read. The small receive buffer holds little of it.
///
/// # Panics
/// Panics when nothing listens.
#[track_caller]
pub fn ask_unread(addr: SocketAddr, path: &str) -> TcpStream {
    ask_unread_with(addr, path, &[])
}

/// Sends a request like [`ask_unread`] with these header lines.
///
/// # Panics
/// Panics when nothing listens.
#[track_caller]
pub fn ask_unread_with(addr: SocketAddr, path: &str, headers: &[&str]) -> TcpStream {
    let connect = async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        socket.connect(addr).await?.into_std()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut stream = runtime.block_on(connect).expect("it listens");
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\n{lines}\r\n").as_bytes()).expect("sent");
    stream
}

/// Whether an answer is complete: a head alone, or a body of the length in its header.
fn whole(bytes: &[u8]) -> bool {
    let Some(head) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else { return false };
    let length = ServerAnswer::read(bytes).header("content-length").parse().unwrap_or(0);
    bytes.len() >= head + 4 + length
}

/// The file in a data folder to which ticks are appended. Each quarter of an hour a new one begins, and the one before
/// is sealed.
pub fn newest_log(folder: &Path) -> Option<PathBuf> {
    let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix("log-")?.parse::<u64>().ok();
    let paths = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter_map(|path| Some((number(&path)?, path))).max().map(|(_, path)| path)
}

/// A free port, for programs that do not accept port 0, and for servers that follow on a port. It lies below the range
/// that systems use for port 0 and for connections, so no other test gets it meanwhile.
///
/// # Panics
/// Panics when all of them are taken.
pub fn free_port() -> u16 {
    const PORTS: std::ops::Range<u16> = 20_000..32_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Two test programs begin at different ports.
    let begin = std::process::id() as usize * 97;
    let mut tries = PORTS.map(|_| begin + usize::from(NEXT.fetch_add(1, Ordering::Relaxed)));
    let port = tries.find_map(|at| {
        let port = PORTS.start + (at % PORTS.len()) as u16;
        TcpListener::bind(("127.0.0.1", port)).is_ok().then_some(port)
    });
    port.expect("a free port")
}
