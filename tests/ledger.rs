//! Tests that a hub has what its agent sampled, each sample once, whatever becomes of the link and of either end.

use watchglass_tests::fleet::{Fleet, Harm};

#[test]
fn each_sample_of_an_agent_is_at_its_hub_once_though_the_link_is_cut_and_both_are_killed() {
    let mut fleet = Fleet::start();
    for harm in [Harm::Cut, Harm::KillHub, Harm::KillAgent, Harm::Away, Harm::CutAfter(3_000)] {
        fleet.harm(harm);
    }
    let audit = fleet.settle();
    assert!(audit.sound(), "lost {:?}, doubled {:?}, wrong {:?}", audit.lost, audit.doubled, audit.wrong);
    assert!(audit.stored > 100, "{} samples", audit.stored);
}
