//! Kills the tools that run when this program has ended, however it ended: a shell that knows their process groups and waits
//! for the end of the pipe that we hold. The kernel's own way takes the tool along, but nothing that the tool has started.
//!
//! It is started with the first tool, and ends with us.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `+ GROUP` and `- GROUP` come in; at the end what is left is killed.
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
    /// None before the first tool, and where there is no shell.
    shell: Option<Child>,
    /// What it was told to kill.
    groups: BTreeSet<u32>,
}

/// Has the process that this starts say by itself, before it is the tool, that its group is to be killed: we may be gone
/// before we could. Where it does not become the tool, [`renew`].
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
        // Where another tool's start has failed since, that shell is gone, and its pipe must not end this tool. The standard
        // library has set the signal to its default already, as tools expect it.
        // SAFETY: plain system calls with a live buffer, on a descriptor that this closure owns.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::write(pipe.as_raw_fd(), line.as_ptr().cast(), line.len());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
        Ok(()) // What was not written, `watch` writes.
    };
    // SAFETY: the closure makes plain system calls, takes no lock and allocates nothing.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, announce) };
}

/// A tool runs, at the head of a process group.
pub(super) fn watch(group: u32) {
    let mut guard = lock();
    guard.groups.insert(group);
    if !guard.tell(&format!("+ {group}\n")) {
        guard.renew();
    }
}

/// What was announced has become no tool: its number may be another's some day.
pub(super) fn renew() {
    lock().renew();
}

/// It has been killed.
pub(super) fn forget(group: u32) {
    let mut guard = lock();
    guard.groups.remove(&group);
    guard.tell(&format!("- {group}\n"));
}

fn lock() -> MutexGuard<'static, Guard> {
    GUARD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    /// False when there is no shell that listens; one that has stopped to is let go.
    fn tell(&mut self, words: &str) -> bool {
        let Some(shell) = &mut self.shell else { return false };
        if shell.stdin.as_mut().is_some_and(|pipe| pipe.write_all(words.as_bytes()).is_ok()) {
            return true;
        }
        self.let_go();
        false
    }

    /// A shell that knows the groups of now.
    fn renew(&mut self) {
        self.let_go();
        self.shell = start();
        let all: String = self.groups.iter().map(|group| format!("+ {group}\n")).collect();
        self.tell(&all);
    }

    fn let_go(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            // Killed first: with its pipe closed it would kill the tools that run.
            let _ = shell.kill().and_then(|()| shell.wait());
        }
    }
}

/// Starts the shell. None where there is none: the tools themselves die with us all the same.
#[allow(clippy::disallowed_methods, reason = "beside the tools that it guards")]
fn start() -> Option<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT]).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // The terminal's signals are for us.
    let shell = std::os::unix::process::CommandExt::process_group(&mut command, 0).spawn().ok()?;
    let pipe = shell.stdin.as_ref()?.as_raw_fd();
    // A shell that somebody has stopped reads nothing, and must not hold up a tool's reading.
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
        super::renew(); // Its number may be another's.
        assert!(status.success(), "{status}");
    }
}
