//! Tests `watchglass demo` with the real binary: simulated machines over HTTP and the stream.

use fake_clock::FakeClock;
use serde_json::Value;
use std::time::{Duration, Instant};
use watchglass_tests::provider::now;
use watchglass_tests::server::{Server, run, watchglass};
use watchglass_tests::stream::Page;
use watchglass_tests::waiting::{MAX_WAIT, until, until_or, until_so, within};

const TENTHS: [&str; 5] = ["demo", "--interval", "100ms", "--retention", "5m"];

fn start(args: &[&'static str]) -> Server {
    Server::start(TENTHS.iter().copied().chain(args.iter().copied()))
}

fn json(server: &Server, path: &str) -> Value {
    let answer = server.get(path, &[]);
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    serde_json::from_str(&answer.body).expect("JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn eight_gpus_are_served_with_their_history_and_said_to_be_simulated() {
    let server = start(&["--gpus", "8"]);
    let sources = json(&server, "/api/v1/sources");
    let source = &list(&sources, "sources")[0];
    assert_eq!(source["name"], "demo-01");
    assert!(source["facts"]["simulated"].as_str().is_some_and(|fact| fact.contains("seed 1")), "{source}");
    assert!(source["facts"]["gpus"].as_str().is_some_and(|fact| fact.starts_with("8 × NVIDIA")), "{source}");

    let series = json(&server, "/api/v1/series?match=gpu.*.temp");
    assert_eq!(list(&series, "series").len(), 8);
    // The simulated past alone: a loaded machine may skip ticks of the live seconds.
    let to = source["last"].as_f64().expect("it has ticks") - 50.0;
    let power = json(&server, &format!("/api/v1/query?tag=gpu.3.powerWatts&from={}&to={to}", to - 200.0));
    let points = list(&power["series"][0], "points");
    assert!(points.len() >= 2_000, "{} points of 200 s", points.len());
    assert!(points.iter().all(|p| p[1].as_f64().is_some_and(|watts| (50.0..=710.0).contains(&watts))));

    let metrics = server.get("/metrics", &[]).body;
    assert!(metrics.contains("watchglass_gpu_power_watts") && metrics.contains("demo-01"), "{metrics}");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut page = Page::default();
        let mut connection = page.connect(server.addr(), 60_000).await;
        page.until(&mut connection, |page| page.newest("gpu.7.temp").is_some() && page.ticks.len() > 600).await;
        let (before, newest) = (page.ticks.len(), page.ticks.keys().next_back().copied());
        page.until(&mut connection, |page| page.ticks.len() >= before + 5).await;
        assert!(page.hello.as_ref().is_some_and(|hello| hello.simulated));
        assert!(page.whole() && page.repeated == 0 && page.resyncs == 0, "after {newest:?}");
    });
    // It says how much history there is.
    server.says("simulated; ");
}

#[test]
fn two_runs_of_one_seed_agree_at_the_same_instants() {
    let (one, two) = (start(&["--gpus=2", "--hosts=2", "--seed=7"]), start(&["--gpus=2", "--hosts=2", "--seed=7"]));
    let last = |server: &Server| json(server, "/api/v1/sources")["sources"][1]["last"].as_f64().expect("ticks");
    // Only the simulated past is compared: a loaded machine may skip ticks of the live seconds, which both report.
    let to = last(&one).min(last(&two)) - 100.0;
    // The tags have counters from the machine's start, and values that change every second.
    let path = format!(
        "/api/v1/query?tag=gpu.*.powerWatts&tag=gpu.*.energyJoules&tag=network.recv&tag=cpu.*.cpu_percent&from={}&to={to}",
        to - 100.0
    );
    let (a, b) = (json(&one, &path), json(&two, &path));
    assert!(list(&a, "series").len() >= 2 * (2 + 2 + 1 + 16));
    assert_eq!(a, b);
}

#[test]
fn a_lost_gpu_ends_and_its_check_says_why() {
    let began = now() as f64;
    let server = start(&["--gpus", "4", "--hosts", "2", "--fail", "lost"]);
    let series = json(&server, "/api/v1/series?match=gpu.*.temp");
    let last = |s: &&Value| s["last"].as_f64().expect("a time");
    let newest = list(&series, "series").iter().map(|s| last(&s)).fold(0.0, f64::max);
    let ended: Vec<&Value> = list(&series, "series").iter().filter(|s| last(s) < newest - 170.0).collect();
    assert_eq!(list(&series, "series").len(), 8);
    assert_eq!((ended.len(), &ended[0]["source"]), (1, &Value::from("demo-01")), "{series}");
    assert!(last(&ended[0]) > began - 200.0, "about three minutes before the start: {series}");
    let checks = json(&server, "/api/v1/doctor");
    let nvidia: Vec<&Value> = list(&checks, "checks").iter().filter(|c| c["id"] == "nvidia").collect();
    assert!(nvidia.iter().any(|c| c["state"] == "partial" && c["reason"].as_str().is_some_and(|r| r.contains("bus"))));
}

#[test]
fn machines_whose_links_fail_are_late_lost_stopped_and_filling() {
    let server = start(&["--gpus", "1", "--hosts", "6", "--fail", "links"]);
    let states = || -> Vec<String> {
        let sources = json(&server, "/api/v1/sources");
        let all = list(&sources, "sources").iter();
        all.map(|source| source["state"].as_str().unwrap_or_default().to_owned()).collect()
    };
    // Lateness is detected when no tick comes. On a loaded machine others are late, too, for a moment.
    let wanted = ["live", "late", "unreachable", "stopped", "filling", "live"];
    until_or(MAX_WAIT, || (states() == wanted).then_some(()), || format!("{:?}", states()));
    let sources = json(&server, "/api/v1/sources");
    let last = |n: usize| list(&sources, "sources")[n]["last"].as_f64().expect("samples");
    assert!((1..4).all(|n| last(n) < last(0) - 170.0), "{sources}");
    assert!(last(4) > last(0) - 60.0, "what comes live is there");
}

#[test]
fn a_fleet_of_4096_is_served_and_one_more_is_refused() {
    let begun = Instant::now();
    let server = Server::start(["demo", "--gpus", "64", "--hosts", "64", "--retention", "2m", "--interval", "60s"]);
    let sources = json(&server, "/api/v1/sources");
    assert_eq!(list(&sources, "sources").len(), 64);
    assert!(list(&sources, "sources").iter().all(|s| s["last"].is_number()));
    println!("4,096 GPUs were served {:.1} s after the start", begun.elapsed().as_secs_f64());
    drop(server);

    let output = run(["demo", "--hosts", "17", "--gpus", "241"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("makes 4097 GPUs") && text.contains("--gpus 240 or fewer"), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn it_goes_on_at_the_second() {
    let server = Server::start(["demo", "--gpus", "1", "--retention", "2m"]);
    let last = |server: &Server| json(server, "/api/v1/sources")["sources"][0]["last"].as_f64().expect("ticks");
    let first = last(&server);
    until_so("three ticks", || last(&server) >= first + 3.0);
    assert_eq!(last(&server).fract(), 0.0);
}

#[test]
fn a_page_is_sent_the_machine_that_it_shows_and_no_other() {
    let server = start(&["--gpus=2", "--hosts=3"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for (name, number) in [(None, 0), (Some("demo-03"), 2), (Some("no such machine"), 0)] {
            let mut page = Page::default();
            page.source = name.map(str::to_string);
            let mut connection = page.connect(server.addr(), 60_000).await;
            page.until(&mut connection, |page| page.newest("gpu.1.temp").is_some()).await;
            let before = page.ticks.len();
            page.until(&mut connection, |page| page.ticks.len() >= before + 3).await;
            assert_eq!(page.heard.iter().copied().collect::<Vec<_>>(), [number], "{name:?}");
        }
    });
}

/// A fleet of two racks at the default interval.
const TWO_RACKS: [&str; 7] = ["demo", "--gpus", "1", "--hosts", "9", "--retention", "2h"];

/// The simulation of a fleet's past takes some CPU seconds in the test profile.
const SIMULATED_WITHIN: Duration = MAX_WAIT.saturating_mul(9);

/// Waits until the history of all machines is complete.
fn whole(server: &Server) {
    let whole = within(SIMULATED_WITHIN, || {
        let sources = json(server, "/api/v1/sources");
        list(&sources, "sources").iter().all(|source| source["state"] == "live").then_some(())
    });
    assert!(whole.is_some(), "the history is not whole: {}", server.log());
}

#[test]
fn a_fleet_begins_with_its_history_and_a_run_of_each_rack() {
    let server = Server::start(TWO_RACKS);
    whole(&server);
    // Each step ends in the past: one that has just begun has no value yet.
    let fleet = json(&server, "/api/v1/fleet?row=gpu&from=-110m&to=-1m&step=10m");
    let values = fleet.to_string();
    assert!(values.contains("demo-09") && !values.contains("null"), "{values}");
    // Each chart of each machine has its line over any time, including charts of rates.
    for (from, to) in [("-115m", "-114m"), ("-30m", "-25m")] {
        for tag in ["gpu.0.gpu", "cpu.0.cpu_percent", "network.recv"] {
            let path = format!("/api/v1/query?source=demo-09&tag={tag}&from={from}&to={to}");
            let answer = json(&server, &path);
            let points = list(&list(&answer, "series")[0], "points").len();
            assert!(points >= 59, "{path}: {points} points");
        }
    }
    let ranks = |run: &Value| -> Vec<u64> {
        let all = list(run, "processes").iter();
        let mut ranks: Vec<u64> = all.filter_map(|process| process["rank"]["rank"].as_u64()).collect();
        ranks.sort_unstable();
        ranks
    };
    let runs = || json(&server, "/api/v1/runs");
    let sizes = || {
        let runs = runs();
        let running = list(&runs, "runs").iter().filter(|run| run["state"] == "running");
        let mut sizes: Vec<Vec<u64>> = running.map(ranks).collect();
        sizes.sort_by_key(Vec::len);
        sizes
    };
    let wanted = [(0..1_u64).collect::<Vec<_>>(), (0..8_u64).collect()];
    until_or(MAX_WAIT, || (sizes() == wanted).then_some(()), || format!("a run of each rack: {}", runs()));
    let findings = json(&server, "/api/v1/findings");
    assert_eq!(list(&findings, "findings"), &Vec::<Value>::new(), "nothing is wrong in it");
}

#[test]
fn a_fault_of_a_fleet_is_found_on_its_machine_after_the_healthy_stretch_before_it() {
    for (fail, rule) in [
        ("lost", "lost_gpu"),
        ("hang", "hang.spin"),
        ("throttle", "throttle.heat"),
        ("ecc", "ecc.uncorrected"),
        ("straggler", "straggler.slow"),
        ("starvation", "starvation"),
        ("idle", "hang.idle"),
    ] {
        let server = Server::start(TWO_RACKS.iter().copied().chain(["--fail", fail]));
        let find = || {
            let answer = json(&server, "/api/v1/findings");
            list(&answer, "findings")
                .iter()
                .find(|one| one["rule"].as_str().is_some_and(|r| r.starts_with(rule)))
                .cloned()
        };
        let found = within(SIMULATED_WITHIN, find).unwrap_or_else(|| panic!("{fail}: {}", server.log()));
        let subject = &found["subject"][0];
        assert_eq!(subject["source"], "demo-01", "{fail}: {found}");
        let facts = json(&server, "/api/v1/sources")["sources"][0]["facts"]["simulated"].to_string();
        if let Some(gpu) = facts.split("on GPU ").nth(1).and_then(|rest| rest.split(' ').next()) {
            assert_eq!(subject["gpus"].to_string(), format!("[{gpu}]"), "{fail}: {found}");
        }
        assert!(!found.to_string().contains("demo-09"), "{fail}: the other rack has another job: {found}");
    }
}

#[test]
fn a_demo_that_does_not_keep_its_interval_says_so_until_it_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = FakeClock::new(folder.path());
    let mut command = watchglass(["demo", "--gpus", "1", "--retention", "5m", "--port", "0"]);
    command.envs(clock.environment());
    let server = Server::start_command(command);
    let dropped = || {
        let metrics = server.get("/metrics", &[]).body;
        let line = metrics.lines().find_map(|line| line.strip_prefix("watchglass_demo_ticks_dropped_total "));
        line.and_then(|count| count.parse::<f64>().ok()).expect("it is counted")
    };
    let check = || {
        let checks = json(&server, "/api/v1/doctor");
        list(&checks, "checks").iter().find(|check| check["id"] == "demo").cloned()
    };
    let ticks = || json(&server, "/api/v1/sources")["sources"][0]["last"].as_f64().expect("ticks");
    let first = ticks();
    until_so("it has ticked", || ticks() > first);
    assert!(server.get("/metrics", &[]).body.contains("watchglass_demo_behind_seconds "));
    let before = dropped();
    // For half a minute it makes no progress.
    clock.pass(30_000);
    let said = until("it says so", || check().filter(|check| check["state"] == "partial"));
    let reason = said["reason"].as_str().expect("a sentence");
    assert!(
        reason.starts_with("this machine is too slow to simulate 1 machine with 1 GPU each every 1s: "),
        "{reason}"
    );
    assert!(reason.contains(" ticks of the last ") && reason.ends_with(" were dropped"), "{reason}");
    assert!(dropped() >= before + 28.0, "{} after {before}", dropped());
    server.says("the demo is behind: this machine is too slow");
    // A minute in which it keeps its interval. The clock passes in steps that drop no tick.
    until_so("it is well again", || {
        clock.pass(900);
        check().is_some_and(|check| check["state"] == "ok")
    });
}

#[test]
fn a_demo_keeps_nothing_on_disk_and_starts_again_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let file = folder.path().join("demo.toml");
    for text in [format!("data_dir = {data:?}\n"), format!("data_dir = {data:?}\nmemory = true\n")] {
        std::fs::write(&file, text).expect("it can be written");
        let config = file.to_str().expect("plain letters");
        for _ in 0..2 {
            let server =
                Server::start(["demo", "--gpus", "1", "--hosts", "2", "--retention", "10m", "--config", config]);
            whole(&server);
            let runs = json(&server, "/api/v1/runs");
            assert!(list(&runs, "runs").iter().any(|run| run["state"] == "running"), "{runs}");
            assert!(!data.exists(), "nothing is written");
        }
    }
}

#[test]
fn gpu_time_has_the_hours_of_the_runs_by_project_and_day_and_as_csv() {
    let server = Server::start(TWO_RACKS);
    whole(&server);
    let time = |by: &str| json(&server, &format!("/api/v1/usage/runs?by={by}&from=-1d"));
    until_so("a run held GPUs", || time("run")["total"]["gpu_hours"].as_f64().is_some_and(|hours| hours > 0.0));
    let (by_run, by_project) = (time("run"), time("project"));
    let first = &list(&by_run, "rows")[0];
    let id = first["of"].as_str().expect("an ID");
    let run = json(&server, &format!("/api/v1/runs/{id}"));
    let hours = |value: &Value| value["gpu_hours"].as_f64().expect("a number");
    // The run may go on between the two requests.
    let apart = (hours(&run) - hours(first)).abs();
    assert!(apart <= 8.0 * 60.0 / 3_600.0, "{first} {run}");
    assert!(first["energy_kwh"].as_f64().is_some_and(|kwh| kwh > 0.0), "{first}");
    assert!(hours(first) >= first["idle_gpu_hours"].as_f64().expect("a number"), "{first}");
    assert!(first["cost"].is_null() && by_run["currency"].is_null(), "there are no prices");
    let projects = list(&by_project, "rows").iter().map(hours).sum::<f64>();
    assert!((projects - hours(&by_project["total"])).abs() < 1e-6, "{by_project}");
    let csv = server.get("/api/v1/usage/runs?by=run&from=-1d&format=csv", &[]);
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert!(csv.body.starts_with("run,name,runs,gpu_hours,") && csv.body.contains(id), "{}", csv.body);
}
