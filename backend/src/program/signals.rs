//! Signals: those that shut a server down, and those that are ignored.

/// The reason of a shutdown.
pub struct Asked {
    /// The signal.
    pub name: &'static str,
    /// Its meaning, for the log.
    pub meaning: &'static str,
    /// Whether it was requested: an exhausted limit is a failure.
    pub wanted: bool,
}

const fn wanted(name: &'static str) -> Asked {
    Asked { name, meaning: "ending", wanted: true }
}

/// A limit on the size of files must not end the program: the write fails, as on a full disk, and is reported as such.
pub fn keep_from_ending() {
    #[cfg(unix)]
    // SAFETY: ignoring a signal installs no handler; no other thread runs yet.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// The program that started this one.
#[derive(Clone, Copy, Debug)]
pub struct Parent(#[cfg(unix)] libc::pid_t);

impl Parent {
    /// The current parent.
    pub fn now() -> Self {
        Parent(
            #[cfg(unix)]
            // SAFETY: the call reads a number and cannot fail.
            unsafe {
                libc::getppid()
            },
        )
    }

    /// Resolves within a second of its end, after which this process has another parent; never on a system that does
    /// not report it. The kernel's own signal is sent at the end of the parent's *thread*, which may come much sooner.
    async fn gone(self) {
        #[cfg(unix)]
        while Self::now().0 == self.0 {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        #[cfg(not(unix))]
        std::future::pending().await
    }
}

/// Resolves when the program must end: on a signal, or at the end of the parent, if one is given.
pub async fn ending(parent: Option<Parent>) -> Asked {
    let gone = async {
        match parent {
            Some(parent) => parent.gone().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        asked = asked_to_end() => asked,
        () = gone => Asked { name: "parent", meaning: "the parent process has ended: exiting", wanted: true },
    }
}

/// Resolves on a signal that requests the end.
#[cfg(unix)]
async fn asked_to_end() -> Asked {
    use tokio::signal::unix::SignalKind;
    // A program started by nohup must outlive the terminal.
    let stays = is_ignored(libc::SIGHUP);
    tokio::select! {
        () = received(SignalKind::interrupt()) => wanted("SIGINT"),
        () = received(SignalKind::terminate()) => wanted("SIGTERM"),
        () = received(SignalKind::hangup()), if !stays => {
            Asked { meaning: "the terminal has closed: exiting", ..wanted("SIGHUP") }
        }
        () = received(SignalKind::from_raw(libc::SIGXCPU)) => {
            Asked { name: "SIGXCPU", meaning: "the CPU time limit (ulimit -t) is reached: exiting", wanted: false }
        }
    }
}

/// Resolves when the signal arrives; never if it cannot be awaited.
#[cfg(unix)]
async fn received(kind: tokio::signal::unix::SignalKind) {
    match tokio::signal::unix::signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(unix)]
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: all-zero bytes are a valid sigaction, a structure of integers and a function that may be none.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is a live sigaction that the call fills; nothing is changed.
    unsafe { libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN }
}

/// Resolves on a request to end.
#[cfg(not(unix))]
async fn asked_to_end() -> Asked {
    let _ = tokio::signal::ctrl_c().await;
    wanted("Ctrl-C")
}
