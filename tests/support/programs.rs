//! Debian's own programs, where they are on PATH: `cargo xtask test` puts them there. A test that needs one which is not
//! there says so and passes.

use crate::patience::PATIENCE;
use crate::server::{Answer, ask, command};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

/// A program on PATH. None, said on standard error, when it is not there.
pub fn find(name: &str) -> Option<PathBuf> {
    let found = std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: {name} is not on PATH; `cargo xtask test` fetches Debian's");
    }
    found
}

/// Runs a program to its end with this standard input, such as `promtool check metrics`. None when it is not there.
pub fn run(name: &str, args: &[&str], input: &str) -> Option<Output> {
    let mut command = command(find(name)?);
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // On its own thread: it may print before it has read everything. That it reads no further is its answer.
    std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    Some(child.wait_with_output().expect("it ends"))
}

/// A running server. Dropped, it is ended.
pub struct Program {
    child: Child,
    /// Where it listens.
    pub addr: SocketAddr,
}

impl Program {
    /// Starts it with the arguments for an address on a free port, and waits until it listens there; None when it is not
    /// there.
    ///
    /// # Panics
    /// When it is there and does not listen in time.
    pub fn start(name: &str, args: impl Fn(SocketAddr) -> Vec<String>) -> Option<Program> {
        // They take no port 0 that they would tell of.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        Self::start_at(free, name, args)
    }

    /// Starts it at an address that an earlier one has left.
    ///
    /// # Panics
    /// When it is there and does not listen in time.
    pub fn start_at(addr: SocketAddr, name: &str, args: impl Fn(SocketAddr) -> Vec<String>) -> Option<Program> {
        let mut command = command(find(name)?);
        command.args(args(addr)).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let program = Program { child: command.spawn().expect("it starts"), addr };
        let begin = Instant::now();
        while TcpStream::connect(addr).is_err() {
            assert!(begin.elapsed() < PATIENCE, "{name} does not listen at {addr}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(program)
    }

    /// What it answers to GET.
    pub fn get(&self, path: &str) -> Answer {
        ask(self.addr, &format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Either fails only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Debian's node_exporter.
pub fn node_exporter() -> Option<Program> {
    Program::start("prometheus-node-exporter", |addr| vec![format!("--web.listen-address={addr}")])
}
