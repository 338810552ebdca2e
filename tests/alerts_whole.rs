//! Tests alerts end to end, from a sample or a call to the receiver's request: kills, outages, restarts, changes of the
//! clock.
#![cfg(target_os = "linux")]

use fake_clock::FakeClock;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::hooks::{Hooks, Reply, Request};
use watchglass_tests::server::{Server, ask_with, watchglass};
use watchglass_tests::waiting::{until, until_so};

/// Rules that fire at once, each in its own group.
const RULES: usize = 5;

/// Webhook secret by which the receiver authenticates us.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Almost the wait of a notice for others of its group, s.
const GATHERED_S: usize = 9;
/// Longer than the lease of a notice in flight, and than the allowed silence of a machine, ms.
const MINUTE: i64 = 61_000;
/// Longer than the pause between two attempts, ms.
const HALF_HOUR: i64 = 1_800_000;

/// A server of a folder, and a receiver of its notices. Time passes only where a test moves the clock, while no notice
/// is in flight.
struct Whole {
    folder: tempfile::TempDir,
    hooks: Hooks,
    clock: FakeClock,
    /// Interval between two samples.
    interval: &'static str,
}

impl Whole {
    fn new(interval: &'static str) -> Whole {
        let (folder, hooks) = (tempfile::tempdir().expect("a folder"), Hooks::start());
        // Built-in rules are off, because they would report the time without samples.
        let off: String = rules::builtin::TABLE.iter().map(|row| format!("{} = false\n", row.id)).collect();
        let config = format!("[alerts]\nallow_targets = [{:?}]\n[rules_builtin]\n{off}", hooks.target());
        std::fs::write(folder.path().join("watchglass.toml"), config).expect("written");
        let clock = FakeClock::new(folder.path());
        Whole { folder, hooks, clock, interval }
    }

    fn server(&self) -> Server {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let (config, data) = (path("watchglass.toml"), path("data"));
        let mut command = watchglass(["--collectors", "cpu", "--interval", self.interval, "--port", "0"]);
        command.args(["--config", &config, "--data-dir", &data]);
        command.envs(self.clock.environment());
        Server::start_command(command)
    }

    /// The channel to the receiver.
    fn channel(&self, server: &Server) {
        let address = self.hooks.url("/hook");
        made(server, "channels", &json!({ "name": "hook", "kind": "webhook", "address": address, "secret": SECRET }));
    }

    /// Makes all rules fire. The channel is created before, because the channels of an alert are chosen when it fires.
    fn begin(&self, server: &Server) {
        self.channel(server);
        (0..RULES).for_each(|n| made_rule(server, &format!("always {n}"), "system.load1 >= 0"));
        all_fire(server);
    }

    /// Advances one second, and waits for a sample: a missing one would be an alert.
    fn step(&self, server: &Server) {
        let ticks = figure(server, "self_ticks_total");
        self.clock.pass(1_000);
        until_so("samples come", || figure(server, "self_ticks_total") > ticks);
    }

    /// Advances the clock until a notice has almost finished its wait for others of its group. The rest passes in real
    /// time: while a notice is in flight, the clock must not jump.
    fn gather(&self, server: &Server) {
        let came = self.hooks.came().len();
        (0..GATHERED_S).take_while(|_| self.hooks.came().len() == came).for_each(|_| self.step(server));
    }

    /// Makes a rule, and waits until it fires: by then all earlier samples have been evaluated.
    fn fires(&self, server: &Server, name: &str) {
        made_rule(server, name, "system.load1 >= 0");
        until_so("it fires", || {
            self.step(server);
            states(server, name) == ["firing"]
        });
    }

    /// Makes one more rule fire, and waits for its notice: earlier notices have been delivered by then.
    fn tells_of_one_more(&self, server: &Server) {
        // The first may fire by a sample from before the jump, which is too old for a notice.
        ["first", "second"].iter().for_each(|name| self.fires(server, name));
        self.gather(server);
        self.hooks.wait_for("it is told of one more", |request| request.text().contains("second"));
    }

    /// Number of notices for our rules, by rule and id.
    fn count_notices(&self) -> BTreeMap<(usize, String), usize> {
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

/// Creates an object by a POST request to `api/v1/{what}`, and expects success.
#[track_caller]
fn made(server: &Server, what: &str, body: &Value) {
    let (addr, body) = (server.addr(), body.to_string());
    let lines = format!(
        "POST /api/v1/{what} HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    let answer = ask_with(addr, &lines, &body);
    assert!(answer.status == 200 || answer.status == 201, "{}", answer.body);
}

fn made_rule(server: &Server, name: &str, when: &str) {
    made(server, "rules", &json!({ "name": name, "severity": "critical", "when": when }));
}

/// The states of a server's alerts whose rule names begin with `name`.
fn states(server: &Server, name: &str) -> Vec<String> {
    let all: Value = serde_json::from_str(&server.get("/api/v1/alerts", &[]).body).expect("JSON");
    let ours = all["alerts"].as_array().expect("a list").iter();
    let ours = ours.filter(|alert| alert["name"].as_str().is_some_and(|own| own.starts_with(name)));
    ours.filter_map(|alert| alert["state"].as_str().map(String::from)).collect()
}

fn all_fire(server: &Server) {
    until_so("all rules fire", || states(server, "always").iter().filter(|state| *state == "firing").count() == RULES);
}

/// A value of a server's own metrics.
#[track_caller]
fn figure(server: &Server, name: &str) -> f64 {
    let all = server.get("/metrics", &[]).body;
    let value = |line: &str| line.strip_prefix("watchglass_")?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    all.lines().find_map(value).unwrap_or_else(|| panic!("no {name} in {all}"))
}

/// Number of failed deliveries to the receiver so far.
fn failed(server: &Server) -> usize {
    figure(server, "alerts_notices_total{cause=\"retried\"}") as usize
}

#[test]
fn a_kill_between_send_and_mark_repeats_one_message_and_loses_none() {
    let whole = Whole::new("100ms");
    whole.hooks.answers(Reply::Hang);
    let server = whole.server();
    whole.begin(&server);
    whole.gather(&server);
    until_so("a notice is under way", || !whole.count_notices().is_empty());
    server.end_by("KILL");
    whole.hooks.answers(Reply::Status(200));
    // Notices in flight lose their lease after a minute.
    whole.clock.pass(MINUTE);
    let server = whole.server();
    let told = until("each rule is told of", || {
        let told = whole.count_notices();
        (0..RULES).all(|n| told.keys().any(|(rule, _)| *rule == n)).then_some(told)
    });
    // A notice in flight was repeated with the same id, and all others came once.
    assert!(told.iter().all(|((_, id), times)| !id.is_empty() && *times <= 2), "{told:?}");
    // A notice in flight would lose its lease in that minute.
    let taken = || figure(&server, "alerts_notices_total{cause=\"delivered\"}");
    until_so("nothing is under way", || {
        taken() >= RULES as f64 && figure(&server, "alerts_outbox_oldest_seconds") == 0.0
    });
    whole.clock.pass(MINUTE);
    whole.tells_of_one_more(&server);
    let after = whole.count_notices();
    assert!(after.values().all(|times| *times <= 2) && after.len() == RULES, "{after:?}");
    all_fire(&server);
}

#[test]
fn an_outage_of_three_hours_ends_in_one_message_a_group() {
    let whole = Whole::new("100ms");
    whole.hooks.refuses(true);
    let server = whole.server();
    whole.begin(&server);
    whole.gather(&server);
    until_so("all are tried", || failed(&server) >= RULES);
    for _ in 0..6 {
        let before = failed(&server);
        whole.clock.pass(HALF_HOUR);
        until_so("all are tried again", || failed(&server) >= before + RULES);
    }
    assert!(whole.count_notices().is_empty(), "nothing was taken");
    // The pause before the next attempt is a minute by now: no notice is in flight.
    whole.hooks.refuses(false);
    whole.clock.pass(HALF_HOUR);
    until_so("each rule is told of", || whole.count_notices().len() >= RULES);
    whole.tells_of_one_more(&server);
    let told = whole.count_notices();
    assert!(told.len() == RULES && told.values().all(|times| *times == 1), "{told:?}");
}

#[test]
fn a_clock_that_is_set_fires_nothing() {
    let whole = Whole::new("1s");
    let server = whole.server();
    whole.channel(&server);
    made_rule(&server, "always slow", "system.load1 >= 0 for 30m");
    // An alert that has just become pending is not shown.
    whole.gather(&server);
    until_so("it is pending", || states(&server, "always") == ["pending"]);
    for ahead in [3_600_000, -3_600_000, 7_200_000] {
        whole.clock.set_ahead(ahead);
        whole.fires(&server, &format!("at {ahead}"));
        assert_eq!(states(&server, "always"), ["pending"], "{ahead} ms");
    }
    whole.tells_of_one_more(&server);
    assert!(whole.hooks.came().iter().all(|request| !request.text().contains("always slow")));
}

/// Time of the newest sample of a hub's only machine, s since the Unix epoch.
fn newest(fleet: &Fleet, key: &str) -> Option<f64> {
    let told: Value = serde_json::from_str(&fleet.server().get("/api/v1/sources", &[key]).body).expect("JSON");
    told["sources"][0]["last"].as_f64()
}

#[test]
fn a_hub_that_starts_again_calls_no_machine_lost() {
    let (mut fleet, clock) = Fleet::by_clock();
    let key = fleet.administer(&["key", "add", "reader", "--scope", "data:read"]);
    let key = format!("Authorization: Bearer {}", key.trim());
    fleet.start_agent();
    fleet.until("samples come", || newest(&fleet, &key));
    fleet.kill_hub();
    // Longer than the allowed silence of a machine.
    clock.pass(MINUTE);
    fleet.start_hub();
    // The hub now runs for longer than its grace period for missing machines. Each step is shorter than the allowed
    // silence of a connection.
    let mut last = fleet.until("samples come again", || newest(&fleet, &key));
    for _ in 0..13 {
        clock.pass(10_000);
        let later = || newest(&fleet, &key).filter(|newest| *newest >= last + 10.0);
        last = fleet.until("samples come", later);
    }
    let all = |fleet: &Fleet| fleet.administer(&["alerts", "history"]);
    assert!(!all(&fleet).contains("no data from"), "{}", all(&fleet));
    // A machine that is silent while the hub runs is lost.
    fleet.lose_agent();
    fleet.until("the machine is lost", || {
        clock.pass(10_000);
        fleet.administer(&["alerts", "list"]).contains("no data from").then_some(())
    });
    assert_eq!(all(&fleet).matches("no data from").count(), 1, "not before: {}", all(&fleet));
}

#[test]
fn a_machine_that_was_stopped_is_not_called_lost() {
    let (mut fleet, clock) = Fleet::by_clock();
    let key = fleet.administer(&["key", "add", "reader", "--scope", "data:read"]);
    let key = format!("Authorization: Bearer {}", key.trim());
    fleet.start_agent();
    fleet.until("samples come", || newest(&fleet, &key));
    let all = |fleet: &Fleet| fleet.administer(&["alerts", "history"]);
    let wait = |fleet: &Fleet| {
        // Longer than the allowed silence of a machine, after a start too.
        for _ in 0..5 {
            clock.pass(MINUTE);
            let now = fleet.server().get("/metrics", &[&key]).status;
            assert_ne!(now, 0);
        }
    };
    fleet.stop_agent();
    wait(&fleet);
    assert!(!all(&fleet).contains("no data from"), "{}", all(&fleet));
    fleet.kill_hub();
    fleet.start_hub();
    wait(&fleet);
    assert!(!all(&fleet).contains("no data from"), "{}", all(&fleet));
    // Back again, it is missing when it falls silent.
    fleet.start_agent();
    let last = fleet.until("samples", || newest(&fleet, &key));
    fleet.until("samples come again", || newest(&fleet, &key).filter(|newest| *newest > last));
    fleet.lose_agent();
    fleet.until("the machine is lost", || {
        clock.pass(10_000);
        fleet.administer(&["alerts", "list"]).contains("no data from").then_some(())
    });
    assert_eq!(all(&fleet).matches("no data from").count(), 1, "{}", all(&fleet));
}
