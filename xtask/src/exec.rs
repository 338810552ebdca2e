//! Starts other programs.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A command to run. It can be shown as a person would type it.
pub struct Cmd {
    inner: Command,
}

/// A command that starts `program`; a bare name is searched on PATH.
pub fn cmd(program: impl AsRef<OsStr>) -> Cmd {
    #[allow(
        clippy::disallowed_methods,
        reason = "the ban keeps the product to one place that starts tools; this is the xtask's one place"
    )]
    let mut inner = Command::new(program);
    inner.stdin(Stdio::null());
    Cmd { inner }
}

/// The cargo that runs xtask, in the root of the workspace.
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

    /// Removes one environment variable.
    pub fn env_remove(mut self, key: &str) -> Self {
        self.inner.env_remove(key);
        self
    }

    /// Passes our standard input on, for a program that asks for a password.
    pub fn with_input(mut self) -> Self {
        self.inner.stdin(Stdio::inherit());
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
            // A folder with a separator in its name cannot be on PATH. The tool then reports the missing program.
            Err(_) => self,
        }
    }

    /// Runs the command to its end. Its output goes to our standard error, so that standard output stays clean.
    pub fn run(self) -> Result<(), String> {
        self.start()?.wait()
    }

    /// Runs the command to its end with our standard output, for test runners.
    pub fn run_shown(self) -> Result<(), String> {
        self.started()?.wait()
    }

    /// Runs the command to its end with our standard output, and gives each line of its standard output to `read`, too.
    pub fn run_read(mut self, mut read: impl FnMut(&str)) -> Result<(), String> {
        self.inner.stdout(Stdio::piped());
        let mut running = self.started()?;
        if let Some(output) = running.child.stdout.take() {
            for line in BufReader::new(output).split(b'\n') {
                let line = line.map_err(|e| format!("the output of `{}` could not be read: {e}", running.line))?;
                let line = String::from_utf8_lossy(&line);
                // A closed standard output does not end the tests.
                let _ = writeln!(std::io::stdout(), "{line}");
                read(&line);
            }
        }
        running.wait()
    }

    /// Starts the command and returns at once. Its output goes to our standard error.
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

    /// Runs the command and returns its standard output. Its standard error appears only in the error when it fails.
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

    /// Replaces xtask by the command. It returns only on failure, with the reason.
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

    /// The command as a person would type it, without its environment.
    pub fn line(&self) -> String {
        let program = self.inner.get_program();
        // A person does not type the path of cargo.
        let typed = Path::new(program).file_stem().filter(|name| *name == "cargo").unwrap_or(program);
        let words = std::iter::once(typed).chain(self.inner.get_args());
        words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
    }
}

/// A running program. It is killed when this value is dropped.
pub struct Running {
    line: String,
    child: Child,
}

impl Running {
    /// Waits for the end of the program; an error when it failed.
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
        // This does nothing when the program has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The flag that makes cargo quiet. At a terminal there is none, because cargo's progress bar is useful there.
pub fn quiet_in_a_log() -> &'static [&'static str] {
    if std::io::stderr().is_terminal() { &[] } else { &["--quiet"] }
}

/// The first file with this name on PATH.
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
