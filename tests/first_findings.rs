//! Findings of a first start: the same faults in a new folder and in memory, with the binary, a driver that answers from
//! a scenario, and a clock that runs faster. Both servers watch the same GPUs.
//!
//! Each fault begins after some minutes of work, so nothing is known of the machine from before. Faults of the simulated
//! fleets of `watchglass demo` are in [`super::findings`], silent machines of a hub in [`super::hub`], and faults of jobs,
//! memory, network and ports in [`super::first_machine_findings`].

#![cfg(target_os = "linux")]

use fake_clock::FakeClock;
use fake_nvml::Fake;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use watchglass_tests::server::{Server, watchglass};
use watchglass_tests::waiting::until;

/// Time between two samples, ms.
const STEP_MS: i64 = 5_000;
/// Steps of work before the faults begin, and maximum number of steps.
const HEALTHY_STEPS: u64 = 30;
const MAX_STEPS: u64 = 240;

/// The fault of each GPU by its number, with the rule that must find it.
const FAULTS: [(&str, &str); 14] = [
    ("", ""),
    ("xid", "xid"),
    ("uncorrected", "ecc.uncorrected"),
    ("corrected", "ecc.corrected"),
    ("recovery", "recovery"),
    ("fabric", "fabric"),
    ("hot", "throttle.heat"),
    ("limited", "throttle.power"),
    ("narrow", "slow_link.pcie"),
    ("lost", "lost_gpu"),
    ("unused", "unused"),
    ("unused", "unused"),
    ("filling", "gpu_memory"),
    ("idle", "idle"),
];

/// A GPU with these utilizations of its cores and its memory, percent, and this power, milliwatts.
pub fn gpu(number: u64, (cores, memory): (u64, u64), milliwatts: u64) -> Value {
    json!({
        "uuid": format!("GPU-{number}"), "name": "NVIDIA H200", "pci_bus_id": format!("00000000:{number:02x}:00.0"),
        "memory": { "total": 80_u64 << 30, "used": 60_u64 << 30 }, "utilization": { "gpu": cores, "memory": memory },
        "temperature": 66, "power_mw": milliwatts, "power_limit_mw": 700_000,
        "clocks": { "graphics": 1_755, "sm": 1_755, "mem": 3_201 },
        "ecc_volatile_dram": { "corrected": 0, "uncorrected": 0 },
        "pcie": { "gen": 5, "width": 16, "max_gen": 5, "max_width": 16, "speed": 32_000, "replays": 0 },
        "throttle_reasons": 0, "performance_state": 0, "recovery_action": 0, "fabric": { "state": 3 },
    })
}

/// Waits until a server has read this power of the first GPU, watts.
pub fn wait_for_power(server: &Server, watts: f64) {
    until("a sample of this step", || {
        let answer = server.get("/api/v1/query?tag=gpu.0.powerWatts&from=-30s", &[]).body;
        has_power(&serde_json::from_str(&answer).ok()?, watts).then_some(())
    });
}

/// Whether the samples of an answer have this power. Their times may have the same digits, so values are compared.
pub fn has_power(answer: &Value, watts: f64) -> bool {
    let points = answer["series"][0]["points"].as_array().into_iter().flatten();
    // Powers of two steps differ by a milliwatt at least.
    points.filter_map(|point| point[1].as_f64()).any(|own| (own - watts).abs() < 4e-4)
}

/// A GPU that works, with its fault at this step.
fn faulty(number: u64, step: u64) -> Value {
    let kind = FAULTS[number as usize].0;
    // The power of the first GPU tells the step.
    let power = 600_000 + if number == 0 { step } else { (step * 37 + number * 13) % 9 * 1_000 };
    let mut gpu = match kind {
        "unused" | "idle" => gpu(number, (0, 0), 70_000),
        _ => gpu(number, (98, 45), power),
    };
    let changes = match (kind, step.checked_sub(HEALTHY_STEPS)) {
        ("unused", _) => json!({ "memory": { "total": 80_u64 << 30, "used": 200 << 20 } }),
        (_, None) => json!({}),
        ("filling", Some(passed)) => {
            // From three quarters to full in five minutes.
            let permille = (750 + 4 * passed).min(990);
            json!({ "memory": { "total": 80_u64 << 30, "used": (80_u64 << 30) / 1_000 * permille } })
        }
        ("uncorrected", _) => json!({ "ecc_volatile_dram": { "corrected": 0, "uncorrected": 1 } }),
        ("corrected", Some(passed)) => json!({ "ecc_volatile_dram": { "corrected": passed * 3, "uncorrected": 0 } }),
        ("recovery", _) => json!({ "recovery_action": 1 }),
        ("fabric", _) => json!({ "fabric": { "state": 2 } }),
        ("hot", _) => json!({
            "throttle_reasons": 32 | 64, "temperature": 90, "clocks": { "graphics": 1_050, "sm": 1_050, "mem": 3_201 },
        }),
        ("limited", _) => json!({ "throttle_reasons": 4, "power_limit_mw": 400_000, "power_mw": 398_000 }),
        ("narrow", _) => json!({
            "pcie": { "gen": 5, "width": 8, "max_gen": 5, "max_width": 16, "speed": 32_000, "replays": 0 },
        }),
        _ => json!({}),
    };
    for (name, value) in changes.as_object().expect("an object") {
        gpu[name.as_str()] = value.clone();
    }
    gpu
}

/// All GPUs at a step.
fn scenario(step: u64) -> String {
    let gpus: Vec<Value> = (0..FAULTS.len() as u64).map(|number| faulty(number, step)).collect();
    let lost = FAULTS.iter().position(|(fault, _)| *fault == "lost").map(|number| format!("GPU-{number}"));
    let faults = if step >= HEALTHY_STEPS { json!([{ "gpu": lost, "code": 15 }]) } else { json!([]) };
    let xids = if step == HEALTHY_STEPS { json!([{ "gpu": "GPU-1", "xid": 119 }]) } else { json!([]) };
    json!({ "driver_version": "590.48.01", "gpus": gpus, "faults": faults, "xids": xids }).to_string()
}

/// A job, of `watchglass run` for example, which ends with the test.
pub struct RunningJob(Child);

impl RunningJob {
    /// Starts it without output.
    pub fn start(mut job: Command) -> RunningJob {
        RunningJob(job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        // SAFETY: it is a process of this test that was not waited for yet. It passes the signal to its job.
        unsafe { libc::kill(self.0.id() as libc::pid_t, libc::SIGTERM) };
        let _ = self.0.wait();
    }
}

/// A server, and the rules that it has found so far.
struct Watching {
    what: &'static str,
    server: Server,
    expected: BTreeSet<String>,
    found: BTreeSet<String>,
}

impl Watching {
    /// Waits until the server has read this step, and notes its findings.
    fn follow(&mut self, step: u64) {
        wait_for_power(&self.server, (600_000 + step) as f64 / 1_000.0);
        let answer: Value = serde_json::from_str(&self.server.get("/api/v1/findings", &[]).body).expect("JSON");
        for one in answer["findings"].as_array().into_iter().flatten() {
            let rule = one["rule"].as_str().expect("a rule").to_string();
            // The collector lacks the values of the lost GPU.
            if rule != "collector_silent" {
                let expected = FAULTS.iter().position(|(_, of)| *of == rule);
                let expected = expected.unwrap_or_else(|| panic!("{}: none of this kind is wrong: {one}", self.what));
                let gpus = one["subject"][0]["gpus"].as_array().expect("numbers");
                assert_eq!(gpus[0], expected, "{}: {one}", self.what);
            }
            if rule == "unused" {
                let said = one["sentence"].as_str().expect("a text");
                assert!(said.starts_with("GPUs 10, 11 are reserved for run held of"), "{}: {said}", self.what);
                assert!(one["next"].as_str().is_some_and(|next| next.contains("End the job")), "{one}");
            }
            self.found.insert(rule);
        }
    }
}

#[test]
fn each_fault_of_a_gpu_is_found_after_a_first_start_in_a_folder_and_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_string();
    let (clock, fake) = (FakeClock::new(folder.path()), Fake::new(&scenario(0)));
    let mut servers: Vec<Watching> = Vec::new();
    let mut jobs = Vec::new();
    for (what, kept) in
        [("a new folder", vec!["--data-dir".into(), path("data")]), ("in memory", vec!["--memory".into()])]
    {
        let (socket, config) = (path(&format!("{}.sock", servers.len())), path(&format!("{}.toml", servers.len())));
        // A server in memory records no runs, so it knows of no reserved GPUs.
        let knows_runs = what != "in memory";
        let rules =
            FAULTS.iter().map(|(_, rule)| *rule).filter(|rule| !rule.is_empty() && (knows_runs || *rule != "unused"));
        let expected = rules.chain(["collector_silent"]).map(String::from).collect();
        let library = fake.library().to_str().expect("a plain path");
        let text = format!(
            "[collectors.nvidia]\nlibrary = {library:?}\n[runs]\nsocket = {socket:?}\n[insight]\nidle_after = \"1m\"\n"
        );
        std::fs::write(&config, text).expect("a file");
        let mut command =
            watchglass(["--collectors", "cpu,nvidia", "--interval", "5s", "--port", "0", "--config", &config]);
        command.args(&kept).envs(clock.environment());
        servers.push(Watching { what, server: Server::start_command(command), expected, found: BTreeSet::new() });
        // A job that holds two GPUs and uses none.
        let mut job = watchglass(["run", "--id", "held", "--", "sleep", "1000"]);
        job.env_remove("WATCHGLASS_RUN_ID").env("WATCHGLASS_SOCKET", &socket);
        job.envs([("SLURM_JOB_ID", "42"), ("SLURM_JOB_GPUS", "10,11")]);
        jobs.push(RunningJob::start(job));
    }
    for step in 1..MAX_STEPS {
        fake.publish(&scenario(step));
        clock.pass(STEP_MS);
        servers.iter_mut().for_each(|one| one.follow(step));
        if servers.iter().all(|one| one.found == one.expected) {
            break;
        }
    }
    for one in &servers {
        assert_eq!(one.found, one.expected, "{}", one.what);
    }
}
