//! A hub and an agent whose disks fail: the power of either is cut, and the disk of either is full for a while.

use crate::power::shut_down;
use crate::{Plan, TortureResult};
use std::path::{Path, PathBuf};
use std::time::Instant;
use watchglass_tests::audit::Audit;
use watchglass_tests::fleet::{Fleet, Harm};
use watchglass_tests::ledger::Chance;
use watchglass_tests::mount::{Mount, fill};

/// The one of the two that is affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Hub,
    Agent,
}

/// All of these tortures, with a row each.
pub fn all(plan: &Plan) -> Vec<TortureResult> {
    let power = [(Side::Hub, "power cuts of a hub"), (Side::Agent, "power cuts of an agent")];
    let full = [(Side::Hub, "a full disk of a hub"), (Side::Agent, "a full disk of an agent")];
    let power = power.map(|(side, what)| (what, Mount::disk(256 << 20), side, cuts as fn(&Plan, &mut Pair) -> u32));
    let full = full.map(|(side, what)| (what, Mount::memory("8m"), side, fills as fn(&Plan, &mut Pair) -> u32));
    let mut rows = Vec::new();
    for (what, mount, side, work) in power.into_iter().chain(full) {
        eprintln!("{what}");
        rows.push(match mount {
            Ok(mount) => row(plan, what, side, mount, work),
            Err(why) => TortureResult::left_out(what, &why),
        });
    }
    rows
}

/// A hub and an agent, the folder of one of them on a disk of its own.
struct Pair {
    fleet: Fleet,
    mount: Mount,
    side: Side,
}

fn row(plan: &Plan, what: &str, side: Side, mount: Mount, work: fn(&Plan, &mut Pair) -> u32) -> TortureResult {
    let Ok(other) = tempfile::tempdir() else {
        return TortureResult::left_out(what, "no temporary folder can be made");
    };
    let on = |of: Side, name: &str| -> PathBuf {
        if of == side { mount.path().join(name) } else { other.path().join(name) }
    };
    let mut fleet = Fleet::hub_at(on(Side::Hub, "hub"), on(Side::Agent, "agent"));
    fleet.start_agent();
    fleet.grows("samples come");
    let mut pair = Pair { fleet, mount, side };
    let times = work(plan, &mut pair);
    let audit: Audit = pair.fleet.settle();
    // Both end before the disk is unmounted.
    drop(pair);
    TortureResult::new(what, times, times, &audit)
}

/// Cuts the power of one of the two at random moments.
fn cuts(plan: &Plan, pair: &mut Pair) -> u32 {
    let (mut chance, mut done) = (Chance::new(plan.seed), 0);
    while done < plan.cuts && (done == 0 || Instant::now() < plan.until) {
        pair.fleet.samples_on(chance.below(100));
        if chance.below(2) == 0 {
            pair.fleet.strike(Harm::Away);
        }
        shut_down(&pair.mount.path()).expect("the power can be cut");
        match pair.side {
            Side::Hub => pair.fleet.kill_hub(),
            Side::Agent => {
                pair.fleet.kill_agent();
                // Samples that the hub has and the agent lacks were lost by the power cut.
                pair.fleet.agent_forgets();
            }
        }
        pair.mount.unmount().and_then(|()| pair.mount.again()).expect("the disk is there again");
        match pair.side {
            Side::Hub => pair.fleet.start_hub(),
            Side::Agent => pair.fleet.start_agent(),
        }
        pair.fleet.grows("samples come again after a power cut");
        done += 1;
    }
    done
}

/// Fills the disk of one of the two: once while both run, and once more with a kill of the disk's owner.
fn fills(_: &Plan, pair: &mut Pair) -> u32 {
    let full = |pair: &Pair| -> PathBuf {
        let ballast = pair.mount.path().join("ballast");
        fill(&ballast).expect("the disk can be filled");
        ballast
    };
    let room = |ballast: &Path| std::fs::remove_file(ballast).expect("it is there");
    let ballast = full(pair);
    pair.fleet.samples_on(150);
    if pair.side == Side::Agent {
        pair.fleet.grows("ticks come from an agent whose disk is full");
        pair.fleet.agent_forgets();
    }
    room(&ballast);
    pair.fleet.grows("samples come while there is room");
    if pair.side == Side::Hub {
        let ballast = full(pair);
        pair.fleet.samples_on(50);
        pair.fleet.kill_hub();
        pair.fleet.samples_on(50);
        room(&ballast);
        pair.fleet.start_hub();
        pair.fleet.grows("samples come after a kill while the disk was full");
    }
    2
}
