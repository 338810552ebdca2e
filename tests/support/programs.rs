//! Programs from Debian's packages that are on PATH; `cargo xtask test` puts them there. A test that needs a missing
//! one is counted as ignored.

use crate::server::{ServerAnswer, ask, command, free_port};
use crate::waiting::until_so;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A command of a program that must be on PATH.
fn program(name: &str) -> Command {
    found(name).unwrap_or_else(|| panic!("{name} is not on PATH; `cargo xtask test` fetches Debian's"))
}

/// A command of a program; None when it is not on PATH. A program that was unpacked with its libraries finds them
/// there.
pub fn found(name: &str) -> Option<Command> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())?;
    let mut command = command(&path);
    // Some libraries of a package are in `usr/lib`, some in `lib`.
    let roots = path.ancestors().skip(2).take(2).map(|root| root.join("lib"));
    let folders = roots.filter_map(|lib| std::fs::read_dir(lib).ok()).flatten().flatten();
    let libraries: Vec<PathBuf> =
        folders.map(|folder| folder.path()).filter(|path| path.to_string_lossy().ends_with("-linux-gnu")).collect();
    if let Some(paths) = std::env::join_paths(libraries).ok().filter(|paths| !paths.is_empty()) {
        command.env("LD_LIBRARY_PATH", paths);
    }
    // A Python program finds its modules in the same way.
    let modules = path.ancestors().nth(2).map(|root| root.join("lib").join("python3").join("dist-packages"));
    if let Some(modules) = modules.filter(|modules| modules.is_dir()) {
        command.env("PYTHONPATH", modules);
    }
    Some(command)
}

/// Runs a program to its end with this standard input, such as `promtool check metrics`.
///
/// # Panics
/// Panics when it is missing.
pub fn run(name: &str, args: &[&str], input: &str) -> Output {
    let mut command = program(name);
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // Another thread writes, because the program may print before it has read everything. A program that stops reading
    // is not an error.
    std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    child.wait_with_output().expect("it ends")
}

/// A running server. It is killed when this is dropped.
pub struct Program {
    child: Child,
    /// The address at which the server listens.
    pub addr: SocketAddr,
}

impl Program {
    /// An address on a free port, for servers that do not report the port they get for port 0.
    pub fn free() -> SocketAddr {
        ([127, 0, 0, 1], free_port()).into()
    }

    /// Starts it with the arguments for an address on a free port, and waits until it listens there.
    ///
    /// # Panics
    /// Panics when it is missing, or does not listen in time.
    pub fn start(name: &str, args: impl Fn(SocketAddr) -> Vec<String>) -> Program {
        Self::start_at(Self::free(), name, args)
    }

    /// Starts a server at an address that an earlier one has left.
    ///
    /// # Panics
    /// Panics when it is missing, or does not listen in time.
    pub fn start_at(addr: SocketAddr, name: &str, args: impl Fn(SocketAddr) -> Vec<String>) -> Program {
        let mut command = program(name);
        command.args(args(addr));
        Self::run(command, addr, name)
    }

    /// Starts a server that keeps its data in a folder.
    ///
    /// # Panics
    /// Panics when it is missing, or does not listen in time.
    pub fn start_in(folder: &Path, addr: SocketAddr, name: &str, args: &[&str]) -> Program {
        let mut command = program(name);
        command.args(args).env("HOME", folder).env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder);
        Self::run(command, addr, name)
    }

    fn run(mut command: Command, addr: SocketAddr, name: &str) -> Program {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = Program { child: command.spawn().expect("it starts"), addr };
        until_so(&format!("{name} listens at {addr}"), || {
            let ended = program.child.try_wait().expect("a child");
            assert!(ended.is_none(), "{name} does not listen at {addr}: {ended:?}");
            TcpStream::connect(addr).is_ok()
        });
        program
    }

    /// Ends it by SIGTERM, and waits until it has ended.
    ///
    /// # Panics
    /// Panics when it does not end in time.
    #[cfg(unix)]
    pub fn end(mut self) {
        let id = self.id().to_string();
        assert!(command(Path::new("kill")).args(["-TERM", &id]).status().expect("it starts").success());
        until_so("it ends", || self.child.try_wait().expect("a child").is_some());
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The answer to a GET request.
    pub fn get(&self, path: &str) -> ServerAnswer {
        ask(self.addr, &format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both calls fail only when the program has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Debian's node_exporter.
pub fn node_exporter() -> Program {
    Program::start("prometheus-node-exporter", |addr| vec![format!("--web.listen-address={addr}")])
}
