//! Kills a server on a data folder repeatedly while it scrapes a ledger.

use crate::audit::Audit;
use crate::ledger::{Chance, Ledger};
use crate::server::{Server, watchglass};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Times between ticks. Each life gets a random one.
const INTERVALS: [&str; 4] = ["100ms", "100ms", "250ms", "1s"];

/// Seconds of data that are read while the server lives. This is longer than a life, so it includes data read from
/// disk.
const WINDOW: u64 = 10;

/// The command of a server that scrapes a ledger and keeps its history in a folder.
pub fn keeping(folder: &Path, ledger: &Ledger, interval: &str) -> Command {
    let mut command = watchglass(["--port", "0", "--collectors", "openmetrics,cpu", "--interval", interval]);
    command.arg("--openmetrics").arg(format!("books={}", ledger.url)).arg("--data-dir").arg(folder);
    command
}

/// Kills a server `number` times by SIGKILL, at moments that depend on `seed`. One time in six it is killed before it
/// is ready. After each start, all samples that were ever seen are compared with the current ones. The loop ends early
/// at `until`. Returns the number of kills.
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
        // Each scrape has three samples. On a loaded machine few come within a life, and it goes on for them.
        let wanted = |audit: &Audit| audit.seen() < 3 * kill as usize && Instant::now() < until;
        while begin.elapsed() < life || wanted(&audit) {
            audit.read_last(&server, WINDOW);
        }
        drop(server); // This kills the server by SIGKILL.
    }
    let server = Server::start_as_it_is(keeping(folder, ledger, "1s"));
    audit.settle(&server, ledger, i64::MAX);
    (number, audit)
}

/// Kills a server while it starts.
fn early(mut command: Command, after: Duration) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary starts");
    std::thread::sleep(after);
    child.kill().expect("it is ours");
    child.wait().expect("it was killed");
}
