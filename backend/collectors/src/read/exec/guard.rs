//! Kills running tools after the end of this program, for whatever reason it ended. A shell knows their process groups
//! and waits for the end of our pipe. The kernel's own mechanism ends the tool, but not its descendants.
//!
//! The shell is started with the first tool, and ends with us.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};

/// Receives `+ GROUP` and `- GROUP`; at the end of input it kills the remaining groups.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=
while read -r word group; do
    case $word in
    +) groups="$groups $group" ;;
    -)  rest=
        for other in $groups; do [ "$other" = "$group" ] || rest="$rest $other"; done
        groups=$rest ;;
    esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
"#;

static GUARD: Mutex<Guard> = Mutex::new(Guard { shell: None, groups: BTreeSet::new() });

struct Guard {
    /// None before the first tool, and on systems without a shell.
    shell: Option<Child>,
    /// The groups to kill.
    groups: BTreeSet<u32>,
}

/// Makes the new process announce its own group before it becomes the tool, because we may end before we can. If it
/// does not become the tool, call [`renew`].
pub(super) fn announce(command: &mut Command) {
    let mut guard = lock();
    if guard.shell.is_none() {
        guard.renew();
    }
    let pipe = guard.shell.as_ref().and_then(|shell| shell.stdin.as_ref()?.as_fd().try_clone_to_owned().ok());
    let Some(pipe) = pipe else { return };
    let announce = move || {
        let mut line = *b"+           \n";
        let mut rest = std::process::id();
        for place in (2..12).rev() {
            line[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        // After a failed start of another tool that shell is gone; a write to its closed pipe must not end this tool.
        // The standard library has already set the signal to its default, as tools expect.
        // SAFETY: plain system calls with a live buffer, on a descriptor that this closure owns.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::write(pipe.as_raw_fd(), line.as_ptr().cast(), line.len());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
        Ok(()) // After a failed write, `watch` sends it again.
    };
    // SAFETY: the closure makes plain system calls, takes no lock and allocates nothing.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, announce) };
}

/// Adds a running tool, by its process group.
pub(super) fn watch(group: u32) {
    let mut guard = lock();
    guard.groups.insert(group);
    if !guard.tell(&format!("+ {group}\n")) {
        guard.renew();
    }
}

/// Replaces the shell, because an announced process became no tool and its PID may be reused.
pub(super) fn renew() {
    lock().renew();
}

/// Removes a group that was killed.
pub(super) fn forget(group: u32) {
    let mut guard = lock();
    guard.groups.remove(&group);
    guard.tell(&format!("- {group}\n"));
}

fn lock() -> MutexGuard<'static, Guard> {
    GUARD.lock()
}

impl Guard {
    /// Sends a line to the shell. Returns false if there is none; a shell that does not read is dropped.
    fn tell(&mut self, words: &str) -> bool {
        let Some(shell) = &mut self.shell else { return false };
        if shell.stdin.as_mut().is_some_and(|pipe| pipe.write_all(words.as_bytes()).is_ok()) {
            return true;
        }
        self.let_go();
        false
    }

    /// Starts a new shell with the present groups.
    fn renew(&mut self) {
        self.let_go();
        self.shell = start();
        let all: String = self.groups.iter().map(|group| format!("+ {group}\n")).collect();
        self.tell(&all);
    }

    fn let_go(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            // Killed first: at the end of its pipe it would kill the running tools.
            let _ = shell.kill().and_then(|()| shell.wait());
        }
    }
}

/// Starts the shell. None if there is none; the tools themselves still end with us.
#[allow(clippy::disallowed_methods, reason = "beside the tools that it guards")]
fn start() -> Option<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT]).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Its own group, because signals of the terminal are for us.
    let shell = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().ok()?;
    let pipe = shell.stdin.as_ref()?.as_raw_fd();
    // A stopped shell reads nothing, and must not block a tool's reading.
    // SAFETY: a plain system call on a descriptor that `shell` owns.
    unsafe { libc::fcntl(pipe, libc::F_SETFL, libc::O_NONBLOCK | libc::O_WRONLY) };
    Some(shell)
}

#[cfg(test)]
mod tests {
    #[test]
    #[allow(clippy::disallowed_methods, reason = "as a tool is started")]
    fn a_tool_outlives_the_shell_that_it_was_announced_to() {
        let mut command = std::process::Command::new("/bin/true");
        super::announce(&mut command);
        super::renew();
        let mut child = command.spawn().unwrap();
        let status = child.wait().unwrap();
        super::renew(); // Its PID may be reused.
        assert!(status.success(), "{status}");
    }
}
