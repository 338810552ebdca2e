//! Tests that a hub has its agent's samples, each once, regardless of faults of the connection and of either end.

use watchglass_tests::agent::Agent;
use watchglass_tests::fleet::{Fleet, Harm};
use watchglass_tests::server::watchglass;

#[test]
fn each_sample_of_an_agent_is_at_its_hub_once_though_the_link_is_cut_and_both_are_killed() {
    let mut fleet = Fleet::start();
    for harm in [Harm::Cut, Harm::KillHub, Harm::KillAgent, Harm::Away, Harm::CutAfter(3_000)] {
        fleet.harm(harm);
    }
    let audit = fleet.settle();
    assert!(audit.sound(), "lost {:?}, doubled {:?}, wrong {:?}", audit.lost, audit.doubled, audit.wrong);
    assert!(audit.stored > 50, "{} samples", audit.stored);
}

#[test]
fn two_hubs_of_an_agent_are_two_whole_copies_though_each_is_cut_off_for_a_while() {
    let mut one = Fleet::hub(&[]);
    let other = Fleet::hub_at(one.folder().join("other"), one.agent_folder().to_path_buf());
    let file = one.folder().join("agent.toml");
    let entry = |n: usize, fleet: &Fleet| {
        let key = one.folder().join(format!("key-{n}"));
        std::fs::write(&key, &fleet.key).expect("written");
        format!("[[hub]]\nurl = \"{}\"\nkey_file = \"{}\"\n", fleet.url, key.display())
    };
    std::fs::write(&file, entry(1, &one) + &entry(2, &other)).expect("written");
    let start = |fleet: &Fleet| {
        let mut command = watchglass(["agent", "--interval", "100ms", "--collectors", "openmetrics,cpu", "--config"]);
        command.arg(&file).args(["--openmetrics", &format!("books={}", fleet.ledger())]);
        command.arg("--data-dir").arg(fleet.agent_folder());
        Agent::start(command)
    };
    one.take_agent(start(&one));
    one.grows("the first has samples");
    other.grows("and the second");
    // Each hub is cut off once while the other goes on, and the agent is killed while it knows both.
    for cut in [&one, &other] {
        cut.cutter.close();
        let goes_on = if std::ptr::eq(cut, &one) { &other } else { &one };
        goes_on.grows("one that is cut off holds up no other");
        one.samples_on(20);
        cut.cutter.pass();
        cut.grows("it comes back");
    }
    one.kill_agent();
    one.take_agent(start(&one));
    one.grows("the first goes on");
    other.grows("and the second, too");
    let audit = one.settle();
    assert!(audit.sound() && audit.stored > 50, "{audit:?}");
    one.until("the second lacks nothing", || other.lacks().is_empty().then_some(()));
    // Each sample is compared bit by bit, as far as both have got.
    let (ours, theirs) = (one.stored(), other.stored());
    let newest = |all: &std::collections::BTreeMap<(i64, String), String>| all.keys().map(|(t, _)| *t).max();
    let end = newest(&ours).min(newest(&theirs)).expect("samples");
    let begin = |all: &std::collections::BTreeMap<(i64, String), String>| all.keys().map(|(t, _)| *t).min();
    assert_eq!(begin(&ours), begin(&theirs), "both have all from the first on");
    let up_to = |all: std::collections::BTreeMap<(i64, String), String>| -> Vec<_> {
        all.into_iter().filter(|((t, _), _)| *t < end).collect()
    };
    assert!(up_to(ours) == up_to(theirs), "the two differ");
}
