//! Measures training jobs: the cost of detecting 64 ranks, and the delay until a rank and its end are known. Also
//! measures the lists of a hub with 100,000 runs and with 10,000 running ranks.

use crate::cost::{cpu_of, thread_cpu};
use crate::table::Table;
use jobs::runs::RunRegistry;
use serde_json::Value;
use shared::run::{About, BEGIN_KIND, Begun, END_KIND, How, Over, Rank};
use shared::wire::Source;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stream::clock::{Clock, System};
use stream::live::Live;
use stream::store::{Limits, Store};
use watchglass_tests::server::{Server, watchglass};

/// Warm-up of servers before the measurement, and its duration.
const SETTLING: Duration = Duration::from_secs(45);
const MEASURED: Duration = Duration::from_secs(120);
/// Ranks of one launcher.
const RANKS: u32 = 64;
/// Number of runs in a list.
const RUNS: u32 = 100_000;
/// Running ranks, on machines of eight.
const LIVE_RANKS: u32 = 10_000;
/// Number of measured ends of ranks.
const ENDS: usize = 20;
/// Command whose output is kept, and the number of attempts, in turns with the peer.
const PRINTED: &str = "yes 'step 1200 loss 2.3125 grad_norm 0.731 tokens/s 18432.5 lr 0.0003' | head -c 100000000";
const PRINTINGS: usize = 3;
/// Interval at which a hub checks whether runs have ended, seconds.
const LOOK_SECONDS: f64 = 10.0;

/// Measures all figures of this file.
pub fn measure(table: &mut Table) {
    let row = "CPU of finding 64 ranks over an idle server, a minute";
    match detection() {
        Ok([with, without]) => {
            let on = format!("{with:.3} s and {without:.3} s, side by side for {} s", MEASURED.as_secs());
            table.at_most(row, with - without, "s", 0.002, "0.002 s", "", &on);
        }
        Err(why) => table.missing(row, "0.002 s", &why),
    }
    let rows = ["a rank is listed after", "its end is dated after"];
    match ends() {
        Ok((seen, ended)) => {
            let on = format!("median of {ENDS}; the server looks 1 s after it was told of a run, and every 5 s");
            table.at_most(rows[0], seen, "s", 5.0, "5 s", "", &on);
            table.at_most(rows[1], ended, "s", 0.1, "0.1 s", "", "kill -9 by us to the time in the run's record");
        }
        Err(why) => rows.into_iter().zip(["5 s", "0.1 s"]).for_each(|(row, goal)| table.missing(row, goal, &why)),
    }
    let (row, goal) = ("time of 100 MB that are printed with --logs, of that by script", "1.25 x");
    match printing() {
        Ok([ours, theirs]) => {
            let on = format!("median of {PRINTINGS} pairs in terminals alike; goal: 0.8 of its throughput");
            table.at_most(row, ours / theirs, "x", 1.25, goal, &format!("script {theirs:.2} s"), &on);
        }
        Err(why) => table.missing(row, goal, &why),
    }
    let (first, list) = lists(1, RUNS, true);
    let on = format!("a project out of {RUNS} runs of a machine; read from its records once in {first:.1} s");
    table.at_most("CPU of a list of 100,000 runs, filtered", list * 1_000.0, "ms", 100.0, "100 ms", "", &on);
    let (_, look) = lists(LIVE_RANKS / 8, LIVE_RANKS, false);
    let on = "1,250 machines of 8 ranks in 125 runs: one look at all of them each 10 s";
    table.at_most("10,000 ranks that run, of a core", look / LOOK_SECONDS * 100.0, "%", 1.0, "1 %", "", on);
}

/// A server with a folder of its own.
fn server(folder: &tempfile::TempDir) -> Server {
    let mut command = watchglass(["serve", "--port", "0", "--data-dir"]);
    command.arg(folder.path());
    Server::start_as_it_is(command)
}

/// A job that starts this many ranks, which sleep until it ends.
fn job(folder: &tempfile::TempDir, id: &str, ranks: u32) -> Result<Child, String> {
    let rank = |n: u32| format!("RANK={n} WORLD_SIZE={ranks} LOCAL_RANK={n} sleep 100000 & ");
    let script: String = (0..ranks).map(rank).collect::<String>() + "read end; kill $(jobs -p)";
    let mut command: Command = watchglass(["run", "--id", id, "--data-dir"]);
    command.arg(folder.path()).args(["--", "bash", "-c", &script]);
    command.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| format!("cannot start a job: {error}"))
}

fn end(mut job: Child) {
    if let Some(mut input) = job.stdin.take() {
        let _ = input.write_all(b"\n");
    }
    let _ = job.wait();
}

/// CPU seconds per minute of a server with a job of many ranks, and of one without.
fn detection() -> Result<[f64; 2], String> {
    let folders = [folder()?, folder()?];
    let servers = folders.each_ref().map(server);
    let job = job(&folders[0], "ranks", RANKS)?;
    until("its ranks", || (ranks(&servers[0], "ranks").len() == RANKS as usize).then_some(()))?;
    std::thread::sleep(SETTLING);
    let ids = servers.each_ref().map(|server| server.id().to_string());
    let (before, begun) = (ids.each_ref().map(|id| cpu_of(id)), Instant::now());
    std::thread::sleep(MEASURED);
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    let used = [0, 1].map(|at| cpu_of(&ids[at]).saturating_sub(before[at]).as_secs_f64() / minutes);
    end(job);
    Ok(used)
}

/// Seconds until a rank is listed, and until its end has a time; medians.
fn ends() -> Result<(f64, f64), String> {
    let folder = folder()?;
    let server = server(&folder);
    let (mut seen, mut dated) = (Vec::new(), Vec::new());
    for at in 0..ENDS {
        let id = format!("run-{at}");
        let begun = Instant::now();
        let job = job(&folder, &id, 1)?;
        let pid = until("a rank", || ranks(&server, &id).first().map(|(pid, _)| *pid))?;
        seen.push(begun.elapsed().as_secs_f64());
        let killed = System.wall() as f64 / 1_000.0;
        // SAFETY: it is a process of our own job.
        unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
        let ended =
            until("its end", || ranks(&server, &id).into_iter().find_map(|(own, end)| end.filter(|_| own == pid)))?;
        dated.push((ended - killed).max(0.0));
        end(job);
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Ok((median(seen), median(dated)))
}

/// Seconds until a job has printed all its output: with its output kept, and by `script`.
#[allow(clippy::disallowed_methods, reason = "terminals, each of which ends with what runs in it")]
fn printing() -> Result<[f64; 2], String> {
    let folder = folder()?;
    let server = server(&folder);
    let binary = watchglass([]).get_program().to_string_lossy().into_owned();
    let data = folder.path().display();
    let ours = format!("{binary} run --logs --data-dir {data} -- sh -c \"{PRINTED}\"");
    let theirs = format!("script --quiet --command \"{PRINTED}\" /dev/null");
    // Both write to a terminal of the same kind, which is read as fast as possible.
    let time = |command: &str| {
        let mut outer = Command::new("script");
        outer
            .args(["--quiet", "--return", "--command", command, "/dev/null"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        outer.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        let begun = Instant::now();
        let status = outer.status().map_err(|error| format!("script: {error}"))?;
        let ended = status.success().then(|| begun.elapsed().as_secs_f64());
        ended.ok_or_else(|| format!("it failed: {command}"))
    };
    let mut pairs = Vec::new();
    for _ in 0..PRINTINGS {
        pairs.push([time(&ours)?, time(&theirs)?]);
    }
    drop(server);
    pairs.sort_by(|a, b| (a[0] / a[1]).total_cmp(&(b[0] / b[1])));
    Ok(pairs[PRINTINGS / 2])
}

/// Process ids of the ranks of a run, and the end of each in seconds since the Unix epoch.
fn ranks(server: &Server, id: &str) -> Vec<(u64, Option<f64>)> {
    let told = server.get(&format!("/api/v1/runs/{id}"), &[]).body;
    let told: Value = serde_json::from_str(&told).unwrap_or_default();
    let ranked = told["processes"].as_array().into_iter().flatten().filter(|one| !one["rank"].is_null());
    ranked.filter_map(|one| Some((one["pid"].as_u64()?, one["ended"].as_f64()))).collect()
}

fn folder() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| error.to_string())
}

/// Polls for up to a minute.
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> Result<T, String> {
    let begun = Instant::now();
    loop {
        match look() {
            Some(found) => return Ok(found),
            None if begun.elapsed() > Duration::from_secs(60) => return Err(format!("not within a minute: {what}")),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// CPU seconds of the first list of a hub, which reads the records, and of a later filtered one.
fn lists(machines: u32, processes: u32, are_over: bool) -> (f64, f64) {
    let now = System.wall();
    let mut store = Store::new(Arc::new(collectors::catalog()), Limits { retention: 86_400_000, bytes: usize::MAX });
    for machine in 0..machines {
        store.add_source(format!("node-{machine}"), 1_000, Vec::new());
    }
    let live = Live::new(store, Arc::new(System), 1, 86_400_000);
    let sources: Vec<Arc<Source>> = live.store().sources().to_vec();
    for n in 0..processes {
        let source = &sources[(n % machines) as usize];
        let run = if are_over { n } else { n % machines / 10 };
        let about = About {
            name: Some(format!("run {run}")),
            project: Some(format!("project-{}", run % 100)),
            program: "python".into(),
            ..About::default()
        };
        let rank = Some(Rank { rank: n, launcher: "torch".into(), gpus: vec![n % 8], ..Rank::default() });
        let begun = Begun {
            run: format!("run-{run}"),
            t: now - 3_600_000 + i64::from(n),
            pid: n + 1,
            rank,
            about,
            ..Begun::default()
        };
        let record = |kind: &str, body: Vec<u8>| live.append_record(source.id, begun.t, kind, body).map(drop);
        record(BEGIN_KIND, serde_json::to_vec(&begun).expect("texts and numbers")).expect("a record");
        if are_over {
            let over = Over { begun: begun.clone(), t: begun.t + 1_000, how: How { exit: Some(0), ..How::default() } };
            record(END_KIND, serde_json::to_vec(&over).expect("texts and numbers")).expect("a record");
        }
    }
    let registry = RunRegistry::default();
    let list = || {
        let begun = thread_cpu();
        let all = registry.newest_first(&live, &sources, (0, now));
        let own = all.filter(|run| !are_over || run.about.project.as_deref() == Some("project-7")).count();
        assert!(own > 0, "runs are listed");
        thread_cpu().saturating_sub(begun).as_secs_f64()
    };
    let first = list();
    // The second list fills the caches that later ones use.
    list();
    let mut later: Vec<f64> = (0..9).map(|_| list()).collect();
    later.sort_by(f64::total_cmp);
    (first, later[4])
}
