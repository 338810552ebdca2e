//! Kills the tools that run when this program has ended, however it ended: a shell that knows their process groups and waits
//! for the end of the pipe that we hold. The kernel's own way takes the tool along, but nothing that the tool has started.
//!
//! It is started with the first tool, and ends with us.

use std::collections::BTreeSet;
use std::io::Write;
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

/// A tool runs, at the head of a process group.
pub(super) fn watch(group: u32) {
    let mut guard = lock();
    guard.groups.insert(group);
    if guard.tell(&format!("+ {group}\n")) {
        return;
    }
    guard.shell = start();
    let all: String = guard.groups.iter().map(|group| format!("+ {group}\n")).collect();
    guard.tell(&all);
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
        // Killed first: with its pipe closed it would kill the tools that run.
        let _ = shell.kill().and_then(|()| shell.wait());
        self.shell = None;
        false
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
    let pipe = std::os::fd::AsRawFd::as_raw_fd(shell.stdin.as_ref()?);
    // A shell that somebody has stopped reads nothing, and must not hold up a tool's reading.
    // SAFETY: a plain system call on a descriptor that `shell` owns.
    unsafe { libc::fcntl(pipe, libc::F_SETFL, libc::O_NONBLOCK | libc::O_WRONLY) };
    Some(shell)
}
