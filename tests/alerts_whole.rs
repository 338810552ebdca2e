//! Tests alerts as a whole, from a sample or a call to what a receiver gets: kills, outages, restarts, clocks that are set.
#![cfg(target_os = "linux")]

use fake_clock::FakeClock;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::hooks::{Hooks, Reply, Request};
use watchglass_tests::server::{Server, ask_with, watchglass};
use watchglass_tests::waiting::until;

/// Rules that fire at once, each a group of its own.
const RULES: usize = 5;

/// By what the receiver knows us.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A server of a folder with rules, and a receiver that it tells.
struct Whole {
    folder: tempfile::TempDir,
    hooks: Hooks,
    clock: FakeClock,
}

impl Whole {
    fn new(rules: &str) -> Whole {
        let (folder, hooks) = (tempfile::tempdir().expect("a folder"), Hooks::start());
        let config = format!("[alerts]\nallow_targets = [{:?}]\n{rules}", hooks.target());
        std::fs::write(folder.path().join("watchglass.toml"), config).expect("written");
        let clock = FakeClock::new(folder.path());
        Whole { folder, hooks, clock }
    }

    /// One whose rules all fire at once.
    fn firing() -> Whole {
        let rule =
            |n| format!("[[rules]]\nname = \"always {n}\"\nseverity = \"critical\"\nwhen = \"system.load1 >= 0\"\n");
        Whole::new(&(0..RULES).map(rule).collect::<String>())
    }

    fn server(&self) -> Server {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let (config, data) = (path("watchglass.toml"), path("data"));
        let mut command = watchglass(["--collectors", "cpu", "--port", "0", "--config", &config, "--data-dir", &data]);
        command.envs(self.clock.environment());
        Server::start_command(command)
    }

    /// The channel to the receiver.
    fn channel(&self, server: &Server) {
        let body = json!({ "name": "hook", "kind": "webhook", "address": self.hooks.url("/hook"), "secret": SECRET })
            .to_string();
        let (addr, length) = (server.addr(), body.len());
        let lines = format!(
            "POST /api/v1/channels HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n"
        );
        let answer = ask_with(addr, &lines, &body);
        assert!(answer.status == 200 || answer.status == 201, "{}", answer.body);
    }

    /// What came of our rules: how often, by rule and id.
    fn told(&self) -> BTreeMap<(usize, String), usize> {
        let mut told = BTreeMap::new();
        for request in self.hooks.came() {
            if let Some(rule) = (0..RULES).find(|n| is_of(&request, *n)) {
                *told.entry((rule, request.header("webhook-id").to_string())).or_default() += 1;
            }
        }
        told
    }
}

fn is_of(request: &Request, rule: usize) -> bool {
    request.text().contains(&format!("always {rule}"))
}

/// The alerts of our rules that a server has, by state.
fn states(server: &Server) -> Vec<String> {
    let all: Value = serde_json::from_str(&server.get("/api/v1/alerts", &[]).body).expect("JSON");
    let ours = all["alerts"].as_array().expect("a list").iter();
    let ours = ours.filter(|alert| alert["name"].as_str().is_some_and(|name| name.starts_with("always")));
    ours.filter_map(|alert| alert["state"].as_str().map(String::from)).collect()
}

fn all_fire(server: &Server) {
    until("all rules fire", || {
        (states(server).iter().filter(|state| *state == "firing").count() == RULES).then_some(())
    });
}

#[test]
fn a_kill_between_send_and_mark_repeats_one_message_and_loses_none() {
    let whole = Whole::firing();
    whole.hooks.answers(Reply::Hang);
    let server = whole.server();
    whole.channel(&server);
    until("a notice is under way", || (!whole.told().is_empty()).then_some(()));
    server.end_by("KILL");
    whole.hooks.answers(Reply::Status(200));
    // What was under way is in nobody's hands a minute later.
    whole.clock.set_ahead(61_000);
    let server = whole.server();
    let told = until("each rule is told of", || {
        let told = whole.told();
        (0..RULES).all(|n| told.keys().any(|(rule, _)| *rule == n)).then_some(told)
    });
    // What was under way came once more, by the same id, and everything else once.
    assert!(told.iter().all(|((_, id), times)| !id.is_empty() && *times <= 2), "{told:?}");
    std::thread::sleep(Duration::from_secs(15));
    let after = whole.told();
    assert!(after.values().all(|times| *times <= 2) && after.len() == RULES, "{after:?}");
    all_fire(&server);
}

#[test]
fn an_outage_of_three_hours_ends_in_one_message_a_group() {
    let whole = Whole::firing();
    whole.hooks.refuses(true);
    let server = whole.server();
    whole.channel(&server);
    all_fire(&server);
    for half_hour in 1..=6 {
        std::thread::sleep(Duration::from_secs(3));
        whole.clock.set_ahead(half_hour * 1_800_000);
    }
    assert!(whole.told().is_empty(), "nothing was taken");
    whole.hooks.refuses(false);
    until("each rule is told of", || (whole.told().len() >= RULES).then_some(()));
    std::thread::sleep(Duration::from_secs(15));
    let told = whole.told();
    assert!(told.len() == RULES && told.values().all(|times| *times == 1), "{told:?}");
}

#[test]
fn a_clock_that_is_set_fires_nothing() {
    let slow = "[[rules]]\nname = \"always slow\"\nwhen = \"system.load1 >= 0 for 30m\"\n";
    let whole = Whole::new(slow);
    let server = whole.server();
    whole.channel(&server);
    until("it is pending", || states(&server).contains(&"pending".to_string()).then_some(()));
    for ahead in [3_600_000, -3_600_000, 7_200_000] {
        whole.clock.set_ahead(ahead);
        std::thread::sleep(Duration::from_secs(5));
        assert!(states(&server).iter().all(|state| state == "pending"), "{:?}", states(&server));
    }
    assert!(whole.hooks.came().iter().all(|request| !request.text().contains("always slow")));
}

#[test]
fn a_hub_that_starts_again_calls_no_machine_lost() {
    let mut fleet = Fleet::start();
    fleet.grows("samples come");
    fleet.kill_hub();
    // Longer than a machine may be silent.
    std::thread::sleep(Duration::from_secs(70));
    fleet.start_hub();
    fleet.grows("samples come again");
    std::thread::sleep(Duration::from_secs(30));
    let all = fleet.administer(&["alerts", "history"]);
    assert!(!all.contains("was last heard"), "{all}");
    // One that is silent while the hub is there is lost.
    fleet.kill_agent();
    fleet.until("the machine is lost", || {
        fleet.administer(&["alerts", "list"]).contains("was last heard").then_some(())
    });
}
