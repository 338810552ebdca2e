//! Runs a hub for hours of its own clock, which is faster than the real one. Its memory must stop growing once its
//! retention is full. Its load is agents that sample every second, jobs that begin and end, markers, alerts from code,
//! viewers that come and go, and requests.

use crate::{Plan, TortureResult};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use watchglass_tests::agent::{self, Agent};
use watchglass_tests::audit::Audit;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::hub::send;
use watchglass_tests::server::watchglass;
use watchglass_tests::stream::{Connection, Page};
use watchglass_tests::waiting::within;

const WHAT: &str = "a soak of a hub";

/// Agents of the hub.
const AGENTS: usize = 4;

/// Retention of the hub. Findings, alerts and ended runs are kept longer, on disk.
const RETENTION: (&str, u32) = ("1h", 60);

/// Minutes after which the retention is full.
const FULL_MINUTES: u32 = 2 * RETENTION.1;

/// Maximum slope that does not count as growth, KiB of anonymous memory per hour: the allocator's own.
const MAX_SLOPE: f64 = 512.0;

/// Maximum wait of the hub for its agents in each second. Missed samples do not matter here.
const MAX_SECOND: Duration = Duration::from_millis(60);

/// Soaks a hub for `plan.soak` hours of its clock.
pub fn soak(plan: &Plan) -> TortureResult {
    eprintln!("{WHAT}: {} h of its clock", plan.soak);
    let memory = Soak::start().run(plan.soak * 60);
    let row = TortureResult::new(WHAT, plan.soak, 0, &Audit::default());
    let Some(slope) = slope(&memory) else {
        return row.fail(format!("{} min are too few: it takes {FULL_MINUTES} until memory is full", memory.len()));
    };
    let (first, last) = (memory.values().next().copied(), memory.values().last().copied());
    let mib = |kib: Option<u64>| kib.unwrap_or_default() as f64 / 1024.0;
    let row = row.add_remark(format!(
        "anonymous memory {:.1} MiB at first, {:.1} MiB at last, {slope:+.0} KiB an hour after the first {} h",
        mib(first),
        mib(last),
        FULL_MINUTES / 60
    ));
    if slope > MAX_SLOPE { row.fail(format!("more than {MAX_SLOPE} KiB an hour")) } else { row }
}

struct Soak {
    fleet: Fleet,
    clock: fake_clock::FakeClock,
    agents: Vec<Agent>,
    runtime: tokio::runtime::Runtime,
    viewers: Vec<(Page, Connection)>,
}

impl Soak {
    fn start() -> Soak {
        let (fleet, clock) = Fleet::with_people_by_clock(&["--retention", RETENTION.0, "--interval", "1s"]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut soak = Soak { fleet, clock, agents: Vec::new(), runtime, viewers: Vec::new() };
        for n in 0..AGENTS {
            let mut command = agent::command(&soak.fleet.url, &soak.fleet.key, &soak.folder(n));
            command.args(["--interval", "1s", "--collectors", "openmetrics,cpu,memory,disk", "--name"]);
            command.arg(format!("node-{n}")).arg("--openmetrics").arg(format!("books={}", soak.fleet.ledger()));
            command.args(["--retention", RETENTION.0]).envs(soak.clock.environment());
            soak.agents.push(Agent::start(command));
        }
        soak
    }

    fn folder(&self, n: usize) -> PathBuf {
        self.fleet.folder().join(format!("agent-{n}"))
    }

    /// Anonymous memory of the hub in KiB, by minute.
    fn run(&mut self, minutes: u32) -> BTreeMap<u32, u64> {
        let mut memory = BTreeMap::new();
        for minute in 0..minutes {
            for second in 0..60 {
                self.second();
                if second % 20 == 0 {
                    self.ask(["/api/v1/runs", "/metrics", "/api/v1/findings"][second / 20]);
                }
            }
            self.happen(minute);
            memory.extend(anonymous(self.fleet.server().id()).map(|kib| (minute, kib)));
            if minute % 30 == 0 {
                eprintln!("  {minute} min: {:?} KiB", memory.get(&minute));
            }
        }
        memory
    }

    /// Advances one second, in which each agent usually scrapes once.
    fn second(&self) {
        let before = self.fleet.scrapes();
        self.clock.pass(1_000);
        within(MAX_SECOND, || (self.fleet.scrapes() >= before + AGENTS as u64).then_some(()));
    }

    fn ask(&self, path: &str) {
        let kind = if path == "/metrics" { "metrics" } else { "data" };
        let answer =
            send(self.fleet.server(), "GET", path, &[&format!("Authorization: Bearer {}", self.fleet.keys[kind])], "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }

    /// Additional load of a minute, besides the samples.
    fn happen(&mut self, minute: u32) {
        let folder = self.folder(minute as usize % AGENTS);
        let run = |mut command: Command, args: &[&str]| {
            command.args(args).arg("--data-dir").arg(&folder).envs(self.clock.environment());
            // A failing one is ignored: this measures the hub.
            drop(command.stdout(Stdio::null()).stderr(Stdio::null()).status());
        };
        if minute.is_multiple_of(5) {
            run(watchglass(["mark"]), &[&format!("minute {minute}")]);
        }
        // Their state outlives the samples, and is bounded by number.
        if minute.is_multiple_of(15) {
            run(watchglass(["alert"]), &[&format!("loss is NaN in minute {minute}")]);
            let mut job = watchglass(["run", "--name", &format!("job {minute}"), "--data-dir"]);
            job.arg(&folder).args(["--", "true"]).envs(self.clock.environment());
            drop(job.stdout(Stdio::null()).stderr(Stdio::null()).status());
        }
        if minute.is_multiple_of(5) {
            self.viewers.clear();
            let addr = self.fleet.server().addr();
            let key = Some(self.fleet.keys["data"].clone());
            let viewer = self.runtime.block_on(async {
                let mut page = Page::default();
                page.key = key;
                let mut connection = page.connect(addr, 60_000).await;
                for _ in 0..20 {
                    page.take(&mut connection).await;
                }
                (page, connection)
            });
            self.viewers.push(viewer);
        }
    }
}

/// Anonymous memory of a process, KiB: `RssAnon` of `/proc/PID/status`.
fn anonymous(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Slope in KiB per hour, by least squares, from the minute at which the retention is full.
fn slope(memory: &BTreeMap<u32, u64>) -> Option<f64> {
    let points: Vec<(f64, f64)> =
        memory.range(FULL_MINUTES..).map(|(minute, kib)| (f64::from(*minute) / 60.0, *kib as f64)).collect();
    let n = points.len() as f64;
    if points.len() < RETENTION.1 as usize {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let below: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    Some(above / below)
}
