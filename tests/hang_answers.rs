//! A hang, from the driver to the finding: NCCL names the rank that the others wait for, and py-spy takes the stacks of
//! the ranks of a job that offers them.

#![cfg(target_os = "linux")]

use super::first_findings::{RunningJob, gpu, wait_for_power};
use fake_clock::FakeClock;
use fake_nvml::Fake;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use watchglass_tests::server::{Server, command, watchglass};
use watchglass_tests::waiting::{until, until_or};

/// Number of ranks of a machine, each with a GPU.
pub const RANKS: u64 = 3;
/// Steps of 5 s in which the GPUs are off, and then work; and the maximum number of steps.
const OFF_STEPS: u64 = 12;
const WORK_STEPS: u64 = 72;
pub const MAX_STEPS: u64 = 240;
/// Maximum time from the finding to the named rank. It takes some seconds, and on a loaded machine five times as long.
pub const NAMED_WITHIN: Duration = Duration::from_secs(60);

/// An answer of NCCL 2.27: rank 1 is behind.
const ANSWER: &str = "\
Errors
======

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  2 ranks have launched up to operation 81231
  1 ranks have launched up to operation 81230
  Rank 1 -- GPU 1 managed by process 4711 on node 10.0.0.2
";

/// Words of the finding from this answer.
pub const RANK_THAT_LACKS: &str =
    "NCCL: rank 1 (process 4711 on 10.0.0.2) has issued 81,230 of 81,231 operations, communicator 27a079b828ff1a75";

/// Starts a server that answers as NCCL does; returns its port.
pub fn nccl() -> u16 {
    nccl_of(ANSWER.to_string())
}

fn nccl_of(status: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let asked = BufReader::new(stream.try_clone().expect("a socket"));
            for line in asked.lines().map_while(Result::ok) {
                let answer = match line.as_str() {
                    "CLIENT PROTOCOL 2" => "SERVER PROTOCOL 2\n",
                    "TIMEOUT 2" => "OK\n",
                    "VERBOSE STATUS" => &status,
                    _ => "ERROR: unknown command\n",
                };
                if stream.write_all(answer.as_bytes()).is_err() || answer == status {
                    break;
                }
            }
        }
    });
    port
}

/// A program in place of py-spy. It notes its arguments. Rank 1 reads data, and the others wait for it.
fn py_spy(folder: &Path) -> String {
    let path = folder.join("py-spy");
    let calls = folder.join("calls");
    let frames = |name: &str| {
        format!(
            r#"[{{\"thread_name\":\"MainThread\",\"frames\":[{{\"name\":\"{name}\",\"short_filename\":\"train.py\",\"line\":7}},{{\"name\":\"main\",\"short_filename\":\"train.py\",\"line\":90}}]}}]"#
        )
    };
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> {}\nrank=$(tr '\\0' '\\n' < /proc/$5/environ | sed -n 's/^RANK=//p')\n\
         if [ \"$rank\" = 1 ]; then echo \"{}\"; else echo \"{}\"; fi\n",
        calls.display(),
        frames("read token=hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567"),
        frames("all_reduce"),
    );
    std::fs::write(&path, script).expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
    path.to_str().expect("a plain path").into()
}

/// A GPU at a step with its rank's process. Its job hangs after some minutes of work, or works on.
fn one(number: u64, step: u64, pid: Option<&u64>, hangs: bool) -> Value {
    let (utilization, activity, milliwatts) = match step {
        ..OFF_STEPS => (0, 0, 70_000),
        // Kernels that wait for another rank are busy, and need little power.
        WORK_STEPS.. if hangs => (100, 0, 190_000),
        _ => (98, 45, 600_000 + (step * 37 + number * 13) % 9 * 1_000),
    };
    let mut gpu = gpu(number, (utilization, activity), milliwatts + if number == 0 { step } else { 0 });
    if let Some(pid) = pid {
        gpu["processes"] = json!([{ "pid": pid, "type": "C", "used_gpu_memory": 60_u64 << 30 }]);
    }
    gpu
}

/// The GPUs at a step, each with its rank's process.
pub fn scenario(step: u64, pids: &[u64]) -> String {
    of_gpus((0..RANKS).map(|number| one(number, step, pids.get(number as usize), true)).collect())
}

fn of_gpus(gpus: Vec<Value>) -> String {
    json!({ "driver_version": "590.48.01", "gpus": gpus }).to_string()
}

/// The power of the first GPU at a step, watts.
pub fn power(step: u64) -> f64 {
    let gpus: Value = serde_json::from_str(&scenario(step, &[])).expect("JSON");
    gpus["gpus"][0]["power_mw"].as_f64().expect("a number") / 1_000.0
}

fn asked(server: &Server, path: &str) -> Value {
    serde_json::from_str(&server.get(path, &[]).body).expect("JSON")
}

/// PIDs of all ranks of a run, by rank.
pub fn ranks(run: &Value, count: u64) -> Option<Vec<u64>> {
    let mut ranks: Vec<(u64, u64)> = run["processes"]
        .as_array()?
        .iter()
        .filter_map(|one| Some((one["rank"]["rank"].as_u64()?, one["pid"].as_u64()?)))
        .collect();
    ranks.sort_unstable();
    (ranks.len() as u64 == count).then(|| ranks.into_iter().map(|(_, pid)| pid).collect())
}

/// The shell script of a job that starts these ranks and waits for them.
pub fn script(ranks: std::ops::Range<u64>) -> String {
    let one = |(local, rank): (usize, u64)| format!("RANK={rank} LOCAL_RANK={local} sleep 900000 & all=\"$all $!\"; ");
    let starts: String = ranks.enumerate().map(one).collect();
    format!("trap 'kill $all' TERM; {starts} wait")
}

#[test]
fn a_hang_names_the_rank_and_takes_the_stacks_that_the_job_offers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_string();
    let (clock, fake) = (FakeClock::new(folder.path()), Fake::new(&scenario(0, &[])));
    let (config, data) = (path("watchglass.toml"), path("data"));
    let (library, tool) = (fake.library().to_str().expect("a plain path"), py_spy(folder.path()));
    let text = format!("[collectors.nvidia]\nlibrary = {library:?}\n[insight]\npy_spy = {tool:?}\n");
    std::fs::write(&config, text).expect("a file");
    let mut command =
        watchglass(["--collectors", "cpu,processes,nvidia", "--interval", "5s", "--port", "0", "--config", &config]);
    command.args(["--data-dir", &data]).envs(clock.environment());
    let server = Server::start_command(command);
    let mut job = watchglass(["run", "--data-dir", &data, "--config", &config, "--id", "hung", "--logs", "--stacks"]);
    job.args(["--", "sh", "-c", &script(0..RANKS)]).envs(clock.environment());
    job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
    job.env("WORLD_SIZE", RANKS.to_string()).env("NCCL_RAS_ADDR", format!("localhost:{}", nccl()));
    let _job = RunningJob::start(job);
    let mut pids: Vec<u64> = Vec::new();
    let hang = || asked(&server, "/api/v1/findings?kind=hang")["findings"].get(0).cloned();
    let found = (1..MAX_STEPS).any(|step| {
        fake.publish(&scenario(step, &pids));
        clock.pass(5_000);
        wait_for_power(&server, power(step));
        if pids.is_empty() {
            pids = until("its ranks", || {
                ranks(&asked(&server, "/api/v1/runs/hung"), RANKS).or_else(|| {
                    clock.pass(1_000);
                    None
                })
            });
        }
        hang().is_some()
    });
    let begun = Instant::now();
    assert!(found, "{}", asked(&server, "/api/v1/findings"));
    let said = || hang().and_then(|one| one["sentence"].as_str().map(String::from)).unwrap_or_default();
    until_or(NAMED_WITHIN, || said().contains(RANK_THAT_LACKS).then_some(()), said);
    assert!(begun.elapsed() < NAMED_WITHIN, "{:?}", begun.elapsed());
    let place = "the stacks of its ranks are in the output of run hung";
    until_or(NAMED_WITHIN, || said().contains(place).then_some(()), said);
    let logs = || server.get("/api/v1/runs/hung/logs", &[]).body;
    let printed = until("its stacks", || Some(logs()).filter(|logs| logs.contains("ranks 0, 2:")));
    let lines: Vec<String> = printed
        .lines()
        .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["text"].as_str()?.to_string()))
        .collect();
    assert_eq!(
        lines[..3],
        [
            "watchglass: stacks of 3 ranks at a hang: 2 different, the rarest first",
            "watchglass: rank 1:",
            "watchglass:   read token=… (train.py:7)",
        ],
        "{printed}"
    );
    assert!(
        lines.contains(&"watchglass:   all_reduce (train.py:7)".into()) && !printed.contains("hf_aBc"),
        "{printed}"
    );
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("it was called");
    assert_eq!(calls.lines().count() as u64, RANKS, "once for each rank: {calls}");
}

/// Starts the ranks of a job without a launcher. NCCL answers on the port. Returns the job and the PIDs of its ranks.
fn start_ranks(port: u16) -> (RunningJob, Vec<u64>) {
    let mut job = command("sh");
    job.args(["-c", &script(0..RANKS)]).env("NCCL_RAS_ADDR", format!("localhost:{port}"));
    let job = RunningJob::start(job);
    let children = format!("/proc/{0}/task/{0}/children", job.pid());
    let pids = until("its ranks", || {
        let pids: Vec<u64> =
            std::fs::read_to_string(&children).ok()?.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        (pids.len() as u64 == RANKS).then_some(pids)
    });
    (job, pids)
}

#[test]
fn of_two_jobs_the_one_that_hangs_is_asked_also_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = FakeClock::new(folder.path());
    let (hung, works) =
        (start_ranks(nccl()), start_ranks(nccl_of(ANSWER.replace("Rank 1 -- GPU 1", "Rank 2 -- GPU 2"))));
    let at = |step: u64| {
        let first = hung.1.iter().enumerate().map(|(at, pid)| one(at as u64, step, Some(pid), true));
        // The second job began later.
        let late = step.saturating_sub(2 * OFF_STEPS);
        let second = works.1.iter().enumerate().map(|(at, pid)| one(RANKS + at as u64, late, Some(pid), false));
        of_gpus(first.chain(second).collect())
    };
    let fake = Fake::new(&at(0));
    let config = folder.path().join("watchglass.toml").to_str().expect("a plain path").to_string();
    let library = fake.library().to_str().expect("a plain path");
    std::fs::write(&config, format!("[collectors.nvidia]\nlibrary = {library:?}\n")).expect("a file");
    let mut command =
        watchglass(["--collectors", "cpu,processes,nvidia", "--interval", "5s", "--port", "0", "--config", &config]);
    command.arg("--memory").envs(clock.environment());
    let server = Server::start_command(command);
    let hang = || asked(&server, "/api/v1/findings?kind=hang")["findings"].get(0).cloned();
    let found = (1..MAX_STEPS).any(|step| {
        fake.publish(&at(step));
        clock.pass(5_000);
        wait_for_power(&server, power(step));
        hang().is_some()
    });
    assert!(found, "{}", asked(&server, "/api/v1/findings"));
    let said = || hang().and_then(|one| one["sentence"].as_str().map(String::from)).unwrap_or_default();
    until_or(NAMED_WITHIN, || said().contains(RANK_THAT_LACKS).then_some(()), said);
}
