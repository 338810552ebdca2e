//! The real agent: its start, its output, and its end. It is killed when dropped.

use crate::server::watchglass;
use crate::waiting::{MAX_WAIT, until_or};
use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

/// Variables that name a proxy on the way. The caller's values must not affect a test.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"];

/// A running agent.
pub struct Agent {
    child: Child,
    said: Arc<Mutex<String>>,
}

/// Command of an agent that reports to a hub and keeps its history in a folder.
pub fn command(hub: &str, key: &str, folder: &Path) -> Command {
    let mut command = watchglass(["agent", "--hub", hub, "--key", key, "--data-dir"]);
    command.arg(folder);
    for name in PROXIES {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    command
}

impl Agent {
    /// Starts a prepared command.
    pub fn start(mut command: Command) -> Agent {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let said = Arc::new(Mutex::new(String::new()));
        collect_output(child.stdout.take().expect("a pipe"), &said);
        collect_output(child.stderr.take().expect("a pipe"), &said);
        Agent { child, said }
    }

    /// Output so far, on standard output and standard error.
    pub fn output(&self) -> String {
        self.said.lock().clone()
    }

    /// Waits until this text is in the output.
    ///
    /// # Panics
    /// Panics when that takes too long.
    #[track_caller]
    pub fn says(&self, words: &str) {
        let says = || self.output().contains(words).then_some(());
        until_or(3 * MAX_WAIT, says, || format!("it says {words:?}; it said:\n{}", self.output()));
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end and returns its status.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("it is ours")
    }
}

fn collect_output(from: impl Read + Send + 'static, said: &Arc<Mutex<String>>) {
    let said = said.clone();
    std::thread::spawn(move || {
        let (mut from, mut line) = (BufReader::new(from), String::new());
        while from.read_line(&mut line).is_ok_and(|n| n > 0) {
            said.lock().push_str(&std::mem::take(&mut line));
        }
    });
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both calls fail only when the agent has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
