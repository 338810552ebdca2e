//! A silent machine is a finding, also after a restart of the hub, until the machine is removed.

use serde_json::Value;
use watchglass_tests::fleet::Fleet;

/// The findings about the silent machine.
fn silent(fleet: &Fleet, query: &str) -> Vec<Value> {
    let key = format!("Authorization: Bearer {}", fleet.keys["data"]);
    let answer = fleet.server().get(&format!("/api/v1/findings?kind=host_lost&source=node-7{query}"), &[&key]);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer: Value = serde_json::from_str(&answer.body).expect("JSON");
    answer["findings"].as_array().expect("a list").clone()
}

#[test]
fn a_machine_that_falls_silent_is_told_of_until_it_comes_back_or_is_removed() {
    let mut fleet = Fleet::with_people();
    fleet.key = fleet.join_line(&["--uses", "1"]);
    fleet.agent_args = ["--name", "node-7"].map(String::from).to_vec();
    fleet.start_agent();
    fleet.grows("samples come");
    // Only a machine that was present for some time is missed.
    fleet.samples_on(50);
    fleet.grows("samples come on");
    fleet.kill_agent();
    let told = fleet.until("it is told", || silent(&fleet, "&active=1").pop());
    let sentence = told["sentence"].as_str().expect("a sentence");
    assert!(sentence.starts_with("node-7 has not reported since"), "{sentence}");
    assert_eq!(told["severity"], "critical");
    fleet.kill_hub();
    fleet.start_hub();
    let is_kept = || silent(&fleet, "").first().is_some_and(|one| one["id"] == told["id"]);
    fleet.until("what was found is kept", || is_kept().then_some(()));
    fleet.start_agent();
    fleet.until("it is over", || silent(&fleet, "&active=1").is_empty().then_some(()));
    let over = silent(&fleet, "");
    assert_eq!((over.len(), &over[0]["id"]), (1, &told["id"]), "{over:?}");
    assert!(over[0]["until"].is_i64());
    fleet.administer(&["agents", "remove", "node-7"]);
    fleet.until("nothing of it is told any more", || silent(&fleet, "").is_empty().then_some(()));
}
