//! Starting other programs.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A command to run, shown as it would be typed.
pub struct Cmd {
    inner: Command,
}

/// A command that starts `program`; a bare name is looked for on PATH.
pub fn cmd(program: impl AsRef<OsStr>) -> Cmd {
    #[allow(
        clippy::disallowed_methods,
        reason = "the ban keeps the product to one place that starts tools; this is the xtask's one place"
    )]
    let mut inner = Command::new(program);
    inner.stdin(Stdio::null());
    Cmd { inner }
}

/// The cargo that runs us, in the workspace's root.
pub fn cargo() -> Cmd {
    cmd(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())).dir(&crate::paths::root())
}

impl Cmd {
    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.inner.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.inner.args(args);
        self
    }

    /// Sets one environment variable.
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.inner.env(key, value);
        self
    }

    /// Sets environment variables.
    pub fn envs(mut self, vars: &[(String, String)]) -> Self {
        self.inner.envs(vars.iter().map(|(key, value)| (key, value)));
        self
    }

    /// Leaves one environment variable out.
    pub fn env_remove(mut self, key: &str) -> Self {
        self.inner.env_remove(key);
        self
    }

    /// Sets the working folder.
    pub fn dir(mut self, dir: &Path) -> Self {
        self.inner.current_dir(dir);
        self
    }

    /// Puts `dirs` in front of PATH.
    pub fn path_first(self, dirs: &[PathBuf]) -> Self {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let all = dirs.iter().cloned().chain(std::env::split_paths(&old));
        match std::env::join_paths(all) {
            Ok(joined) => self.env("PATH", joined),
            Err(_) => self, // a folder with a separator in its name cannot stand on PATH; the tool then says it is missing
        }
    }

    /// Runs it to its end; what it prints goes to our standard error, so that standard output stays clean.
    pub fn run(self) -> Result<(), String> {
        self.start()?.wait()
    }

    /// Runs it to its end with our standard output, for test runners.
    pub fn run_shown(self) -> Result<(), String> {
        self.started()?.wait()
    }

    /// Starts it beside what we do meanwhile; its output goes where that of [`Cmd::run`] does.
    pub fn start(mut self) -> Result<Running, String> {
        self.inner.stdout(std::io::stderr());
        self.started()
    }

    fn started(mut self) -> Result<Running, String> {
        let line = self.line();
        match self.inner.spawn() {
            Ok(child) => Ok(Running { line, child }),
            Err(error) => Err(format!("`{line}` could not be started: {error}")),
        }
    }

    /// What it prints on standard output when it succeeds; its errors are not shown.
    pub fn output(mut self) -> Result<String, String> {
        let line = self.line();
        let output =
            self.inner.stderr(Stdio::piped()).output().map_err(|e| format!("`{line}` could not be started: {e}"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`{line}` ended with {}: {}", output.status, errors.trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Becomes that program; comes back only with the reason why it could not.
    pub fn become_it(mut self) -> String {
        let line = self.line();
        self.inner.stdin(Stdio::inherit());
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            let error = self.inner.exec();
            format!("`{line}` could not be started: {error}")
        }
        #[cfg(not(unix))]
        match self.inner.status() {
            Ok(status) => std::process::exit(status.code().unwrap_or(1)),
            Err(error) => format!("`{line}` could not be started: {error}"),
        }
    }

    /// The command as it would be typed, without its environment.
    pub fn line(&self) -> String {
        let program = self.inner.get_program();
        // Which cargo it is nobody types.
        let typed = Path::new(program).file_stem().filter(|name| *name == "cargo").unwrap_or(program);
        let words = std::iter::once(typed).chain(self.inner.get_args());
        words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
    }
}

/// A program that runs. Where nobody waits for it any more, it is ended.
pub struct Running {
    line: String,
    child: Child,
}

impl Running {
    /// Waits for its end.
    pub fn wait(mut self) -> Result<(), String> {
        let line = &self.line;
        match self.child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{line}` ended with {status}")),
            Err(error) => Err(format!("`{line}` could not be waited for: {error}")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already where it was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What keeps cargo quiet, except at a terminal: there its bar shows that it goes on.
pub fn quiet_in_a_log() -> &'static [&'static str] {
    if std::io::stderr().is_terminal() { &[] } else { &["--quiet"] }
}

/// How many jobs a cargo gets that compiles beside another.
pub fn half_the_cores() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    (cores / 2).max(1).to_string()
}

/// The first file of that name on PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(&file)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::{cargo, cmd};

    #[test]
    fn a_command_is_shown_as_it_is_typed() {
        assert_eq!(cargo().args(["build", "--release"]).line(), "cargo build --release");
        assert_eq!(cmd("/usr/bin/rustc").arg("-vV").line(), "/usr/bin/rustc -vV");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_nobody_waits_for_is_ended() {
        let sleeps = cmd("sleep").arg("600").start().expect("it starts");
        let process = std::path::PathBuf::from(format!("/proc/{}", sleeps.child.id()));
        assert!(process.exists());
        drop(sleeps);
        assert!(!process.exists());
        let ends = cmd("false").start().expect("it starts").wait();
        assert!(ends.expect_err("it failed").starts_with("`false` ended with"));
    }
}
