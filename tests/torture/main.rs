//! `cargo xtask torture`: checks that samples of a ledger that were seen once survive any end of a server.
//!
//! - kills: SIGKILL at random moments, also during the start ([`watchglass_tests::kills`]).
//! - a fleet: the connection of an agent is cut, its hub and it are killed, at random; each sample is at both, once
//!   ([`watchglass_tests::fleet`]).
//! - power cuts ([`power`]): a file system of our own stops with the current contents of its disk.
//! - a full disk ([`full`]): the live page goes on, and writing resumes by itself when there is space again.
//! - both faults with a hub and an agent, on either side ([`pair`]).
//! - a soak ([`soak`]): 12 h of a hub's own clock, after which its memory no longer grows.
//!
//! Power cuts and full disks need root, and report when it is missing; `--cuts 0` skips both. File systems are mounted
//! in a namespace of this process, so that they disappear with it, even when it is killed.

mod full;
mod pair;
mod power;
#[cfg(target_os = "linux")]
mod soak;

use std::process::ExitCode;
use std::time::{Duration, Instant};
use stream::clock::{Clock, System};
use watchglass_tests::audit::Audit;
use watchglass_tests::fleet::{Harmed, harms};
use watchglass_tests::kills::kills;
use watchglass_tests::ledger::Ledger;
use watchglass_tests::mount;

const USAGE: &str =
    "usage: cargo xtask torture [-- [--kills N] [--harms N] [--cuts N] [--soak HOURS] [--seed N] [--minutes N]]";

/// The settings of a run.
struct Plan {
    kills: u32,
    harms: u32,
    cuts: u32,
    /// Hours of a hub's clock.
    soak: u32,
    seed: u64,
    until: Instant,
}

fn plan() -> Option<Plan> {
    let (mut kills, mut harms, mut cuts, mut soak, mut minutes) = (200, 240, 5, 12, 15);
    let mut seed = System.wall().unsigned_abs();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let n: u64 = args.next()?.parse().ok()?;
        match arg.as_str() {
            "--kills" => kills = u32::try_from(n).ok()?,
            "--harms" => harms = u32::try_from(n).ok()?,
            "--cuts" => cuts = u32::try_from(n).ok()?,
            "--soak" => soak = u32::try_from(n).ok()?,
            "--seed" => seed = n,
            "--minutes" => minutes = n,
            _ => return None,
        }
    }
    Some(Plan { kills, harms, cuts, soak, seed, until: Instant::now() + Duration::from_secs(60 * minutes) })
}

fn main() -> ExitCode {
    let Some(plan) = plan() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // This comes before any thread starts. A namespace belongs to a thread, and the threads that it starts inherit it.
    let own = mount::own_namespace();
    eprintln!("--seed {} repeats this run", plan.seed);
    let mut rows = Vec::new();
    rows.extend((plan.kills > 0).then(|| killed(&plan)));
    rows.extend((plan.harms > 0).then(|| harmed(&plan)));
    #[cfg(target_os = "linux")]
    rows.extend((plan.soak > 0).then(|| soak::soak(&plan)));
    match own {
        Ok(()) if plan.cuts > 0 => {
            rows.extend([power::cuts(&plan), full::full(&plan)]);
            rows.extend(pair::all(&plan));
        }
        Ok(()) => {}
        Err(why) => rows.extend(
            ["power cuts", "a full disk", "disks of a hub and an agent"]
                .map(|what| TortureResult::left_out(what, &why)),
        ),
    }
    print(&rows);
    if rows.iter().all(TortureResult::passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn killed(plan: &Plan) -> TortureResult {
    let (Ok(folder), ledger) = (tempfile::tempdir(), Ledger::start()) else {
        return TortureResult::left_out("kills", "no temporary folder can be made");
    };
    eprintln!("{} kills", plan.kills);
    let (kills, audit) = kills(folder.path(), &ledger, plan.kills, plan.seed, plan.until);
    TortureResult::new("kills", kills, plan.kills, &audit)
}

fn harmed(plan: &Plan) -> TortureResult {
    eprintln!("{} harms to a hub and an agent", plan.harms);
    let until = plan.until + Duration::from_secs(1_800);
    let Harmed { times, kills, audit } = harms(plan.harms, plan.seed, until);
    TortureResult::new("a hub and an agent", times, plan.harms, &audit).add_remark(format!("{kills} kills"))
}

/// The result of one kind of torture.
pub struct TortureResult {
    what: String,
    times: u32,
    seen: usize,
    stored: usize,
    found: [usize; 3],
    /// Other remarks, and the reason of a failure.
    said: String,
    left_out: bool,
    failed: bool,
}

impl TortureResult {
    /// The result of `times` rounds out of `planned`.
    pub fn new(what: &str, times: u32, planned: u32, audit: &Audit) -> Self {
        let found = [audit.lost.len(), audit.doubled.len(), audit.wrong.len()];
        let said = if times < planned { format!("of {planned}: the time was up") } else { String::new() };
        let failed = !audit.sound() || (planned > 0 && audit.seen() == 0);
        TortureResult {
            what: what.into(),
            times,
            seen: audit.seen(),
            stored: audit.stored,
            found,
            said,
            left_out: false,
            failed,
        }
    }

    /// The result of a torture that cannot run here.
    pub fn left_out(what: &str, why: &str) -> Self {
        let mut row = TortureResult::new(what, 0, 0, &Audit::default());
        (row.said, row.left_out) = (format!("left out: {why}"), true);
        row
    }

    /// Adds a remark.
    pub fn add_remark(mut self, said: String) -> Self {
        self.said = [self.said, said].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join("; ");
        self
    }

    /// Marks the row as failed, with the reason.
    pub fn fail(mut self, why: String) -> Self {
        self.failed = true;
        self.add_remark(why)
    }

    fn passed(&self) -> bool {
        !self.failed
    }
}

#[allow(clippy::print_stdout, reason = "the table is what the command is for")]
fn print(rows: &[TortureResult]) {
    let width = rows.iter().map(|row| row.what.len()).max().unwrap_or(0);
    println!(
        "\n  {:width$}  {:>5}  {:>8}  {:>8}  {:>5}  {:>7}  {:>5}",
        "", "times", "seen", "stored", "lost", "doubled", "wrong"
    );
    for TortureResult { what, times, seen, stored, found: [lost, doubled, wrong], said, left_out, failed } in rows {
        let mark = match (failed, left_out) {
            (true, _) => "▲",
            (false, true) => "◌",
            (false, false) => "●",
        };
        println!(
            "{mark} {what:width$}  {times:>5}  {seen:>8}  {stored:>8}  {lost:>5}  {doubled:>7}  {wrong:>5}  {said}"
        );
    }
}
