//! A server on a data folder that is killed again and again while it scrapes a ledger.

use crate::audit::Audit;
use crate::ledger::{Chance, Ledger};
use crate::server::{Server, watchglass};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time between ticks, of one life or another.
const INTERVALS: [&str; 4] = ["100ms", "100ms", "250ms", "1s"];

/// What is looked at while it lives, seconds: longer than a life, and what its start read from the disk.
const WINDOW: u64 = 10;

/// A server, not started yet, that scrapes a ledger and keeps what it got in a folder.
pub fn keeping(folder: &Path, ledger: &Ledger, interval: &str) -> Command {
    let mut command = watchglass(["--port", "0", "--collectors", "openmetrics,cpu", "--interval", interval]);
    command.arg("--openmetrics").arg(format!("books={}", ledger.url)).arg("--data-dir").arg(folder);
    command
}

/// Kills a server so many times (SIGKILL), at moments that `seed` names; one time in six before it is ready. What was ever
/// seen is compared after each start with what is there. `until` ends it early.
pub fn kills(folder: &Path, ledger: &Ledger, number: u32, seed: u64, until: Instant) -> (u32, Audit) {
    let (mut audit, mut chance) = (Audit::default(), Chance::new(seed));
    for kill in 0..number {
        if Instant::now() >= until {
            return (kill, audit);
        }
        let interval = INTERVALS[chance.below(INTERVALS.len() as u64) as usize];
        let command = keeping(folder, ledger, interval);
        if chance.below(6) == 0 {
            early(command, Duration::from_micros(chance.below(60_000)));
            continue;
        }
        let server = Server::start_as_it_is(command);
        let (begin, life) = (Instant::now(), Duration::from_millis(50 + chance.below(950)));
        audit.settle(&server, ledger, i64::MAX);
        while begin.elapsed() < life {
            audit.look(&server, WINDOW);
        }
        drop(server); // SIGKILL
    }
    let server = Server::start_as_it_is(keeping(folder, ledger, "1s"));
    audit.settle(&server, ledger, i64::MAX);
    (number, audit)
}

/// Kills one while it starts.
fn early(mut command: Command, after: Duration) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    std::thread::sleep(after);
    child.kill().expect("it is ours");
    child.wait().expect("it was killed");
}
