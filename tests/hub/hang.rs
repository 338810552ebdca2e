//! A hang of a job on machines of a hub, from the driver to the finding: the hub lets the agents ask NCCL, and its finding
//! names the rank that the others wait for.

use super::machine::Machine;
use crate::first_findings::{RunningJob, has_power};
use crate::hang_answers::{MAX_STEPS, NAMED_WITHIN, RANK_THAT_LACKS, RANKS, nccl, power, ranks, scenario, script};
use fake_clock::FakeClock;
use fake_nvml::Fake;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Instant;
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{free_port, watchglass};
use watchglass_tests::waiting::{MAX_WAIT, until, until_or};

/// A machine of the hub with its GPUs and its ranks of the job.
struct Node {
    name: String,
    folder: PathBuf,
    fake: Fake,
    _agent: Machine,
    job: Option<RunningJob>,
}

impl Node {
    fn start(hub: &Hub, clock: &FakeClock, folder: &Path, number: u64) -> Node {
        let (name, fake) = (format!("node-{number}"), Fake::new(&scenario(0, &[])));
        let config = folder.join(format!("{name}.toml"));
        let library = fake.library().to_str().expect("a plain path");
        std::fs::write(&config, format!("[collectors.nvidia]\nlibrary = {library:?}\n")).expect("a file");
        let folder = folder.join(&name);
        let mut command =
            Machine::command(hub, &name, ["--collectors", "cpu,processes,nvidia", "--interval", "5s", "--config"]);
        command.arg(&config).arg("--data-dir").arg(&folder).envs(clock.environment());
        let _agent = Machine::run(command);
        let node = Node { name, folder, fake, _agent, job: None };
        until("the agent is there", || node.folder.join("run.sock").exists().then_some(()));
        node
    }

    /// Starts the ranks of this machine. NCCL answers on the port.
    fn begin(&mut self, clock: &FakeClock, ranks: std::ops::Range<u64>, world: u64, port: u16) {
        let mut job = watchglass(["run", "--data-dir"]);
        job.arg(&self.folder).args(["--", "sh", "-c", &script(ranks)]).envs(clock.environment());
        // A launcher on several machines gives all of them the ID.
        job.env("WATCHGLASS_RUN_ID", "hung").env_remove("WATCHGLASS_SOCKET");
        job.env("WORLD_SIZE", world.to_string()).env("NCCL_RAS_ADDR", format!("localhost:{port}"));
        self.job = Some(RunningJob::start(job));
    }
}

/// The finding of a hub about a job whose ranks are on this many machines: NCCL answers on the last of them alone.
fn names_the_rank(machines: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = FakeClock::new(folder.path());
    let hub = Hub::start_with(clock.environment(), ["--no-local"]);
    let asked = |path: &str| -> Value {
        let answer = hub.send("GET", path, &[&hub.key("data")], "");
        serde_json::from_str(&answer.body).unwrap_or_default()
    };
    let mut nodes: Vec<Node> = (1..=machines).map(|number| Node::start(&hub, &clock, folder.path(), number)).collect();
    let world = RANKS * machines;
    for (at, node) in (0..).zip(&mut nodes) {
        let port = if at + 1 == machines { nccl() } else { free_port() };
        node.begin(&clock, RANKS * at..RANKS * (at + 1), world, port);
    }
    let hang = || asked("/api/v1/findings?kind=hang")["findings"].get(0).cloned();
    let mut pids: Vec<u64> = Vec::new();
    let found = (1..MAX_STEPS).any(|step| {
        for (at, node) in nodes.iter().enumerate() {
            let own = pids.chunks(RANKS as usize).nth(at).unwrap_or_default();
            node.fake.publish(&scenario(step, own));
        }
        clock.pass(5_000);
        for node in &nodes {
            let path = format!("/api/v1/query?tag=gpu.0.powerWatts&from=-30s&source={}", node.name);
            until("a sample of this step", || has_power(&asked(&path), power(step)).then_some(()));
        }
        if pids.is_empty() {
            let run = || asked("/api/v1/runs/hung");
            let its_ranks = || {
                ranks(&run(), world).or_else(|| {
                    clock.pass(1_000);
                    None
                })
            };
            pids = until_or(MAX_WAIT, its_ranks, || format!("its ranks: {} {}", asked("/api/v1/runs"), run()));
        }
        hang().is_some()
    });
    let begun = Instant::now();
    assert!(found, "{machines} machines: {}", asked("/api/v1/findings"));
    let said = || hang().and_then(|one| one["sentence"].as_str().map(String::from)).unwrap_or_default();
    until_or(NAMED_WITHIN, || said().contains(RANK_THAT_LACKS).then_some(()), said);
    assert!(begun.elapsed() < NAMED_WITHIN, "{machines} machines: {:?}", begun.elapsed());
    let hang = hang().expect("it is open");
    let places = [&hang["subject"], &hang["affects"]].into_iter().filter_map(Value::as_array).flatten();
    let mut names: Vec<&str> = places.filter_map(|place| place["source"].as_str()).collect();
    names.dedup();
    assert_eq!(names, nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), "{hang}");
}

#[test]
fn a_hub_names_the_rank_that_a_job_on_an_agents_machine_waits_for() {
    names_the_rank(1);
}

#[test]
fn a_hub_names_the_rank_that_a_job_across_two_machines_waits_for() {
    names_the_rank(2);
}
