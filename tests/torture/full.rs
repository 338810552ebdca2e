//! Fills the disk: live data go on, the check reports the fault, and writing resumes by itself when there is space
//! again.

use crate::{Plan, TortureResult};
use std::time::{Duration, Instant};
use watchglass_tests::audit::Audit;
use watchglass_tests::kills::keeping;
use watchglass_tests::ledger::Ledger;
use watchglass_tests::mount::{Mount, fill};
use watchglass_tests::server::Server;

const WHAT: &str = "a full disk";

/// Maximum time until writing resumes after there is space again.
const PROMISED: Duration = Duration::from_secs(30);

/// Time for which the disk stays full. It is longer than the server's retry interval.
const FULL_TIME: Duration = Duration::from_secs(15);

/// Fills the disk under a server, and frees it again.
pub fn full(_: &Plan) -> TortureResult {
    let mount = match Mount::memory("8m") {
        Ok(mount) => mount,
        Err(why) => return TortureResult::left_out(WHAT, &why),
    };
    eprintln!("{WHAT}");
    let (mut audit, ledger) = (Audit::default(), Ledger::start());
    match once(&mount, &ledger, &mut audit) {
        Ok(took) => {
            let said = format!(
                "written again {:.1} s after there was room, of {} s promised",
                took.as_secs_f64(),
                PROMISED.as_secs()
            );
            TortureResult::new(WHAT, 1, 1, &audit).add_remark(said)
        }
        Err(why) => TortureResult::new(WHAT, 1, 1, &audit).fail(why),
    }
}

fn once(mount: &Mount, ledger: &Ledger, audit: &mut Audit) -> Result<Duration, String> {
    let folder = mount.path().join("data");
    let start = || Server::start_as_it_is(keeping(&folder, ledger, "100ms"));
    let server = start();
    within("history is written at the start", Duration::from_secs(20), || {
        audit.read_last(&server, 60);
        audit.seen() > 10 && state(&server) == "ok"
    })?;
    let ballast = mount.path().join("ballast");
    fill(&ballast).map_err(|e| format!("the disk cannot be filled: {e}"))?;
    within("the full disk is told", Duration::from_secs(20), || state(&server) == "failed")?;
    let (begin, before) = (Instant::now(), audit.newest());
    while begin.elapsed() < FULL_TIME {
        audit.read_last(&server, 60);
    }
    let live = audit.newest().unwrap_or(0) - before.unwrap_or(0);
    if live < FULL_TIME.as_millis() as i64 * 9 / 10 {
        return Err(format!("while the disk was full, {live} ms of {} ms were shown", FULL_TIME.as_millis()));
    }
    std::fs::remove_file(&ballast).map_err(|e| e.to_string())?;
    let took = within("it is written again", PROMISED, || {
        audit.read_last(&server, 60);
        state(&server) == "ok"
    })?;
    audit.read_last(&server, 60);
    drop(server);
    audit.settle(&start(), ledger, i64::MAX);
    Ok(took)
}

/// State of the check of history, as the server names it.
fn state(server: &Server) -> String {
    let doctor: serde_json::Value = serde_json::from_str(&server.get("/api/v1/doctor", &[]).body).unwrap_or_default();
    let checks = doctor["checks"].as_array().into_iter().flatten();
    let state = checks.filter(|check| check["id"] == "history").find_map(|check| check["state"].as_str());
    state.unwrap_or_default().to_string()
}

/// Calls `ask` until it returns true, and returns the time that this took. After `limit` the error names `what`.
fn within(what: &str, limit: Duration, mut ask: impl FnMut() -> bool) -> Result<Duration, String> {
    let begin = Instant::now();
    while !ask() {
        if begin.elapsed() > limit {
            return Err(format!("not within {} s: {what}", limit.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(begin.elapsed())
}
