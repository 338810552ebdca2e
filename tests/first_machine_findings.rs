//! Findings of a first start about jobs and their machine: the same faults in a new folder and in memory, with the binary,
//! a driver that answers from a scenario, files in place of /proc and /sys, and a clock that runs faster.
//!
//! Faults of single GPUs are in [`super::first_findings`]. The fill level of a disk cannot be replaced below the binary, so
//! its rule is tested with a file that is imported.

#![cfg(target_os = "linux")]

use super::first_findings::{gpu, wait_for_power};
use fake_clock::FakeClock;
use fake_nvml::Fake;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use watchglass_tests::server::{Server, run, watchglass};

/// Time between two samples, ms.
const STEP_MS: i64 = 5_000;
/// GPUs of a job. Each job of the first machine begins so many steps after the one before: later than GPUs of one job do.
const MEMBERS: u64 = 4;
const BEGIN_STEPS: u64 = 15;
/// Processes of a job, and one of another program.
const FIRST_PID: u64 = 4_000_000;
const OTHER_PID: u64 = 4_000_100;
/// Steps without work at first, steps until the faults begin, and maximum number of steps.
const OFF_STEPS: u64 = 13;
const HEALTHY_STEPS: u64 = 130;
const MAX_STEPS: u64 = 330;

/// The fault of each job of the first machine, as the rule that must find it.
const JOBS: [&str; 4] = ["uneven", "straggler.waits", "slow_link.nvlink", "straggler.shared"];
/// The member of a job that has the fault.
const VICTIM: u64 = 1;
/// Rules that must find the faults of the second machine.
const OF_THE_MACHINE: [&str; 3] = ["host_memory", "slow_link.net", "slow_link.port"];

/// A member of a job that works, waits for another one in a part of each step, or is off.
fn member(number: u64, step: u64, begun: bool, work: f64) -> Value {
    // The power of the first GPU tells the step.
    let noise = if number == 0 { step } else { (step * 37 + number * 13) % 9 * 1_000 };
    if !begun {
        return gpu(number, (0, 0), 70_000 + if number == 0 { step } else { 0 });
    }
    // Kernels that wait for another member are busy, and need little power and no memory traffic.
    let milliwatts = (190_000.0 + 410_000.0 * work) as u64 + noise;
    gpu(number, (98, (45.0 * work).round() as u64), milliwatts)
}

/// The GPUs of the first machine: a job of four GPUs for each of [`JOBS`].
fn jobs(step: u64) -> String {
    let one = |number: u64| {
        let (job, member_of) = (number / MEMBERS, number % MEMBERS);
        let (begun, faulty) = (step >= OFF_STEPS + BEGIN_STEPS * job, step >= HEALTHY_STEPS);
        let rule = JOBS[job as usize];
        let waits = match rule {
            "straggler.waits" => faulty && member_of != VICTIM,
            "straggler.shared" => faulty,
            _ => false,
        };
        let mut gpu = member(number, step, begun, if waits { 0.75 } else { 1.0 });
        if rule == "uneven" && member_of == VICTIM {
            gpu["clocks"] = json!({ "graphics": 1_500, "sm": 1_500, "mem": 3_201 });
        }
        if rule == "slow_link.nvlink" {
            let steps = if member_of == VICTIM { step.min(HEALTHY_STEPS) } else { step };
            let sent = steps.saturating_sub(OFF_STEPS + BEGIN_STEPS * job) * (100 << 20);
            (gpu["nvlink_tx_kib"], gpu["nvlink_rx_kib"]) = (sent.into(), sent.into());
        }
        if rule == "straggler.shared" && begun {
            let process = |pid: u64, gib: u64| json!({ "pid": pid, "type": "C", "used_gpu_memory": gib << 30 });
            let mut processes = vec![process(FIRST_PID + member_of, 50)];
            processes.extend((faulty && member_of == VICTIM).then(|| process(OTHER_PID, 9)));
            gpu["processes"] = processes.into();
        }
        gpu
    };
    let gpus: Vec<Value> = (0..MEMBERS * JOBS.len() as u64).map(one).collect();
    json!({ "driver_version": "590.48.01", "gpus": gpus }).to_string()
}

/// The GPUs of the second machine: all are slower while its network sends again.
fn slower_together(step: u64) -> String {
    let work = if step >= HEALTHY_STEPS { 0.8 } else { 1.0 };
    let gpus: Vec<Value> = (0..2).map(|number| member(number, step, step >= OFF_STEPS, work)).collect();
    json!({ "driver_version": "590.48.01", "gpus": gpus }).to_string()
}

/// Files in place of /proc and /sys. Programs keep them open, so they are written in place, always as long.
struct Root {
    files: BTreeMap<&'static str, File>,
}

impl Root {
    fn new(folder: &Path) -> Root {
        // The processes that the driver reports are of this machine, which sees its first namespace.
        fs::create_dir_all(folder.join("proc/1/ns")).expect("it can be made");
        symlink("pid:[4026531836]", folder.join("proc/1/ns/pid")).expect("it can be made");
        for pid in (0..MEMBERS).map(|member| FIRST_PID + member).chain([OTHER_PID]) {
            fs::create_dir_all(folder.join(format!("proc/{pid}"))).expect("it can be made");
        }
        let files = Root::texts(0).into_iter().map(|(name, text)| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
            fs::write(&path, text).expect("it can be written");
            (name, File::options().write(true).open(&path).expect("it is there"))
        });
        Root { files: files.collect() }
    }

    fn write(&self, step: u64) {
        for (name, text) in Root::texts(step) {
            self.files[name].write_all_at(text.as_bytes(), 0).expect("it can be written");
        }
    }

    /// The files at a step. From the fault on, memory fills, segments are sent again, and the port has half of its rate.
    fn texts(step: u64) -> Vec<(&'static str, String)> {
        let passed = step.saturating_sub(HEALTHY_STEPS);
        // GiB of 64 in use: 26, then one more each 20 s.
        let used = (26 * 1024 + passed * 256).min(63 * 1024) * 1024;
        let total: u64 = 64 << 20;
        let free = total - used;
        let meminfo = format!(
            "MemTotal:       {total:>8} kB\nMemFree:        {free:>8} kB\nMemAvailable:   {free:>8} kB\n\
             Buffers:               0 kB\nCached:                0 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n"
        );
        let (bytes, segments) = (step * 1_000_000, step + passed * 5 * 900);
        let dev = format!(
            "Inter-|   Receive                                                |  Transmit\n\
              face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n\
             {:>6}: {bytes:>12} 0 0 0 0 0 0 0 {bytes:>12} 0 0 0 0 0 0 0\n",
            "eth0"
        );
        let snmp = format!(
            "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs \
             OutSegs RetransSegs InErrs OutRsts InCsumErrors\nTcp: 1 200 120000 -1 1 1 1 1 1 1 1 {segments:>12} 0 0 0\n"
        );
        let rate = if passed > 0 { "200 Gb/sec (2X NDR)\n" } else { "400 Gb/sec (4X NDR)\n" };
        vec![
            ("proc/meminfo", meminfo),
            ("proc/net/dev", dev),
            ("proc/net/snmp", snmp),
            ("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n".into()),
            ("sys/class/infiniband/mlx5_0/ports/1/rate", rate.into()),
            ("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", format!("{bytes:>12}\n")),
            ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", format!("{bytes:>12}\n")),
        ]
    }
}

/// A server, and the rules that it has found so far.
struct Watching {
    what: String,
    server: Server,
    expected: BTreeSet<&'static str>,
    found: BTreeSet<String>,
}

impl Watching {
    /// Waits until the server has read this power of the first GPU, mW, and notes its findings.
    fn follow(&mut self, milliwatts: u64) {
        wait_for_power(&self.server, milliwatts as f64 / 1_000.0);
        let answer: Value = serde_json::from_str(&self.server.get("/api/v1/findings", &[]).body).expect("JSON");
        for one in answer["findings"].as_array().into_iter().flatten() {
            let rule = one["rule"].as_str().expect("a rule").to_string();
            let wrong = || format!("{}: nothing of {rule} is wrong: {one}", self.what);
            assert!(
                self.expected.contains(rule.as_str()),
                "{} {}",
                wrong(),
                self.server.get("/api/v1/doctor", &[]).body
            );
            if let Some(job) = JOBS.iter().position(|of| *of == rule) {
                let gpus = &one["subject"][0]["gpus"];
                assert_eq!(*gpus, json!([job as u64 * MEMBERS + VICTIM]), "{}: {one}", self.what);
            }
            if rule == "slow_link.port" {
                assert_eq!(one["device"], "mlx5_0/1", "{one}");
            }
            assert!(!one["evidence"].as_array().expect("a list").is_empty(), "{one}");
            self.found.insert(rule);
        }
    }

    fn is_done(&self) -> bool {
        self.found.iter().map(String::as_str).eq(self.expected.iter().copied())
    }
}

/// The power of the first GPU of a scenario, mW.
fn power_of(scenario: &str) -> u64 {
    let scenario: Value = serde_json::from_str(scenario).expect("JSON");
    scenario["gpus"][0]["power_mw"].as_u64().expect("a number")
}

#[test]
fn each_fault_of_a_job_and_of_its_machine_is_found_after_a_first_start_in_a_folder_and_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a plain path").to_string();
    let clock = FakeClock::new(folder.path());
    type Make = fn(u64) -> String;
    let machines: [(&str, Make, &[&'static str]); 2] =
        [("jobs", jobs, &JOBS), ("machine", slower_together, &OF_THE_MACHINE)];
    let roots = machines.map(|(name, ..)| Root::new(&folder.path().join(format!("{name}-root"))));
    let fakes: Vec<Fake> = machines.iter().map(|(_, make, _)| Fake::new(&make(0))).collect();
    let mut servers: Vec<(usize, Watching)> = Vec::new();
    for (at, (name, _, rules)) in machines.iter().enumerate() {
        let (config, library) = (path(name), fakes[at].library().to_str().expect("a plain path"));
        fs::write(&config, format!("[collectors.nvidia]\nlibrary = {library:?}\n")).expect("a file");
        for kept in [vec!["--data-dir".into(), path(&format!("{name}-data"))], vec!["--memory".into()]] {
            let what = format!("{name} {kept:?}");
            let collectors = "memory,network,infiniband,nvidia";
            let mut command =
                watchglass(["--collectors", collectors, "--interval", "5s", "--port", "0", "--config", &config]);
            command.args(["--root", &path(&format!("{name}-root"))]).args(&kept).envs(clock.environment());
            let expected = rules.iter().copied().collect();
            let server = Server::start_command(command);
            servers.push((at, Watching { what, server, expected, found: BTreeSet::new() }));
        }
    }
    for step in 1..MAX_STEPS {
        // Only the second machine has a fault of its own.
        roots[1].write(step);
        let scenarios: Vec<String> = machines.iter().map(|(_, make, _)| make(step)).collect();
        fakes.iter().zip(&scenarios).for_each(|(fake, scenario)| fake.publish(scenario));
        clock.pass(STEP_MS);
        servers.iter_mut().for_each(|(at, one)| one.follow(power_of(&scenarios[*at])));
        if servers.iter().all(|(_, one)| one.is_done()) {
            break;
        }
    }
    for (_, one) in &servers {
        assert!(one.is_done(), "{}: {:?} of {:?}", one.what, one.found, one.expected);
    }
}

#[test]
fn a_disk_that_fills_is_found_in_a_file_that_is_imported() {
    let folder = tempfile::tempdir().expect("a folder");
    let (events, file) = (folder.path().join("wandb-events.jsonl"), folder.path().join("filled.watchglass"));
    // From 85 % to full in 100 minutes, and nothing on another volume.
    let line = |minute: u64| {
        let full = 85.0 + 0.15 * minute as f64;
        let t = 1_790_000_000 + 60 * minute;
        format!(
            "{}\n",
            json!({ "_timestamp": t, "system.disk./data.usagePercent": full, "system.disk./.usagePercent": 40.0 })
        )
    };
    fs::write(&events, (0..90).map(line).collect::<String>()).expect("a file");
    let text = |path: &Path| path.to_str().expect("a plain path").to_string();
    let imported = run(["import", &text(&events), "--output", &text(&file)]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let listed = run(["findings", &text(&file), "--json"]);
    let answer: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let all = answer["findings"].as_array().expect("a list");
    assert_eq!(all.iter().map(|one| &one["rule"]).collect::<Vec<_>>(), ["disk_full"], "{answer}");
    assert_eq!((&all[0]["device"], &all[0]["severity"]), (&json!("/data"), &json!("warning")), "{answer}");
}
