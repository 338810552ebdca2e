//! Debian's PostgreSQL for one test, in a folder of its own. It is reached by a socket in that folder, or by TCP on
//! loopback. It requires a password, sorts texts by a language unless a test changes that, and does not fsync.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Its only user.
const USER: &str = "watchglass";
const PASSWORD: &str = "correct horse";

const SETTINGS: &str = "fsync = off\nshared_buffers = 16MB\nmax_connections = 40\n";
/// Default port.
const PORT: u16 = 5432;
/// Rules for TCP clients: nobody may connect without TLS.
const TLS_ALONE: &str = "local all all scram-sha-256\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
/// Number of ports that are tried.
const PORTS: usize = 5;

/// User id under which it runs when we are root, because it refuses to run as root.
const NOBODY: u32 = 65_534;

/// A running PostgreSQL. It ends when this is dropped.
pub struct Postgresql {
    folder: TempDir,
    programs: PathBuf,
    /// The port of its sockets.
    port: u16,
}

impl Postgresql {
    /// Creates a server and starts it.
    ///
    /// # Panics
    /// Panics when it is not on PATH or does not start.
    pub fn start() -> Postgresql {
        let own = Self::make();
        own.settings("listen_addresses = ''\n");
        own.start_again();
        own
    }

    /// Starts a server that can also be reached at `localhost` by TCP, only with TLS. `sign` writes chain and key into
    /// its folder and returns their paths.
    ///
    /// # Panics
    /// Panics as [`start`](Self::start) does.
    pub fn start_tls(sign: impl FnOnce(&Path) -> (PathBuf, PathBuf)) -> Postgresql {
        let mut own = Self::make();
        let (chain, key) = sign(own.folder.path());
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("closed to others");
        own.give(&[&chain, &key]);
        std::fs::write(own.data().join("pg_hba.conf"), TLS_ALONE).expect("written");
        let tls = format!("ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n", chain.display(), key.display());
        // It does not accept port 0. A port that was free a moment ago may be taken by now.
        let started = (0..PORTS).any(|_| {
            own.port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
            own.settings(&format!("listen_addresses = '127.0.0.1'\nport = {}\n{tls}", own.port));
            own.tries(&mut own.starting()).is_ok()
        });
        assert!(started, "it starts on none of {PORTS} ports");
        own
    }

    /// Creates a server without starting it.
    fn make() -> Postgresql {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&path).chain(["/usr/lib/postgresql/15/bin".into()]);
        let needed = ["initdb", "pg_ctl", "postgres", "psql"];
        let programs = folders.find(|folder| needed.iter().all(|name| folder.join(name).is_file()));
        let programs = programs.expect("initdb is not on PATH; `cargo xtask test` fetches Debian's");
        let own = Postgresql { folder: tempfile::tempdir().expect("a folder"), programs, port: PORT };
        let password = own.password_file();
        std::fs::write(&password, PASSWORD).expect("written");
        own.give(&[own.folder.path(), &password]);
        let sorted = ["--locale=C", "--locale-provider=icu", "--icu-locale=en-US", "--encoding=UTF8", "--no-sync"];
        own.run(
            own.program("initdb")
                .args(sorted)
                .args(["-A", "scram-sha-256", "-U", USER, "-D"])
                .arg(own.data())
                .args(["--pwfile", password.to_str().expect("plain")]),
        );
        own
    }

    /// Gives files to the user under which it runs.
    fn give(&self, paths: &[&Path]) {
        for path in paths.iter().filter(|_| is_root()) {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("given away");
        }
    }

    fn settings(&self, more: &str) {
        let settings = format!("{SETTINGS}unix_socket_directories = '{}'\n{more}", self.folder.path().display());
        std::fs::write(self.data().join("postgresql.auto.conf"), settings).expect("written");
    }

    fn starting(&self) -> Command {
        let mut command = self.program("pg_ctl");
        command.args(["start", "-w", "-t", "120", "-l"]).arg(self.log()).arg("-D").arg(self.data());
        command
    }

    /// Starts it after a stop.
    ///
    /// # Panics
    /// Panics when it does not start.
    pub fn start_again(&self) {
        self.run(&mut self.starting());
    }

    /// Stops it and cuts off its clients.
    ///
    /// # Panics
    /// Panics when it does not stop.
    pub fn stop(&self) {
        self.run(self.program("pg_ctl").args(["stop", "-w", "-t", "120", "-m", "immediate", "-D"]).arg(self.data()));
    }

    /// Creates an empty database and returns its URL.
    ///
    /// # Panics
    /// Panics when it cannot be created.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(name)
    }

    /// The URL of a database, by socket.
    pub fn url(&self, name: &str) -> String {
        format!("postgres://{USER}@{}/{name}", self.folder.path().display().to_string().replace('/', "%2F"))
    }

    /// The URL of a database, by TCP.
    pub fn tcp_url(&self, name: &str) -> String {
        format!("postgres://{USER}@localhost:{}/{name}", self.port)
    }

    /// Runs SQL in a database and returns the rows without a frame.
    ///
    /// # Panics
    /// Panics when it fails.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let mut command = self.program("psql");
        command.args(["-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", USER, "-d", database, "-c", sql, "-h"]);
        let output = command
            .arg(self.folder.path())
            .args(["-p", &self.port.to_string()])
            .env("PGPASSWORD", PASSWORD)
            .output()
            .expect("psql starts");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_string()
    }

    /// The password of its user.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Path of a file with the password.
    pub fn password_file(&self) -> PathBuf {
        self.folder.path().join("password")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// A command of PostgreSQL, run as a user that is not root, with the libraries unpacked beside it.
    #[allow(clippy::disallowed_methods)] // a test starts its own programs
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".into()]);
            if !self.programs.starts_with("/usr") {
                // It is unpacked in a folder of root's that other users may not read.
                command.args(["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]);
            }
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        let beside = self.programs.ancestors().find(|folder| folder.ends_with("lib"));
        let folders = beside.and_then(|lib| std::fs::read_dir(lib).ok()).into_iter().flatten().flatten();
        let libraries: Vec<PathBuf> =
            folders.map(|folder| folder.path()).filter(|path| path.to_string_lossy().ends_with("-linux-gnu")).collect();
        if let Some(paths) = std::env::join_paths(libraries).ok().filter(|paths| !paths.is_empty()) {
            command.env("LD_LIBRARY_PATH", paths);
        }
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    fn run(&self, command: &mut Command) {
        self.tries(command).unwrap_or_else(|why| panic!("{command:?}: {why}"));
    }

    /// Runs a command, and returns its output when it fails. Its children keep no pipe of ours.
    fn tries(&self, command: &mut Command) -> Result<(), String> {
        let said = self.folder.path().join("said");
        let file = std::fs::File::create(&said).expect("made");
        let copy = file.try_clone().expect("a second handle");
        let status = command.stdout(file).stderr(copy).status().expect("it starts");
        let told = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        if status.success() { Ok(()) } else { Err(format!("{}\n{}", told(&said), told(&self.log()))) }
    }
}

impl Drop for Postgresql {
    fn drop(&mut self) {
        let mut stop = self.program("pg_ctl");
        stop.args(["stop", "-w", "-t", "120", "-m", "immediate", "-D"]).arg(self.data());
        // It prints an error when it is already stopped.
        let _ = stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Whether we are root.
fn is_root() -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("ourselves")) == 0
}
