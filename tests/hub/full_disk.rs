//! A hub whose disk is full: it starts, accepts samples, reports the fault, and changes accounts again once there is
//! space.

use std::path::Path;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::mount::{Mount, fill, own_namespace};
use watchglass_tests::server::watchglass;
use watchglass_tests::waiting::until_so;

/// A fleet whose hub has a disk of its own, on which only this thread can free space.
fn fleet() -> (Fleet, Mount) {
    own_namespace().expect("root may mount");
    let mount = Mount::memory("16m").expect("mounted");
    let own = tempfile::tempdir().expect("a folder");
    let mut fleet = Fleet::with_people_at(own, mount.path().join("hub"), mount.path().with_file_name("agent"));
    fleet.start_agent();
    shows_more(&fleet, "the hub has samples of the agent");
    (fleet, mount)
}

/// Waits until the hub shows more samples than now.
fn shows_more(fleet: &Fleet, what: &str) {
    let newest = || fleet.shown().keys().map(|(t, _)| *t).max();
    let before = newest();
    fleet.until(what, || (newest() > before).then_some(()));
}

/// Creates a key at the hub of this folder; an error with the command's output when it cannot.
fn add_key(folder: &Path, name: &str) -> Result<(), String> {
    let mut command = watchglass(["key", "add", name, "--scope", "data:read", "--data-dir"]);
    let output = command.arg(folder).output().expect("the binary starts");
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// No account changes while the disk is full, and the fault is reported. All goes on once there is space.
fn goes_on_after(fleet: &mut Fleet, ballast: &Path, round: usize) {
    for write in 0..3 {
        let said = add_key(fleet.hub_folder(), &format!("full-{round}-{write}")).expect_err("there is no room");
        assert!(said.contains("full") && said.contains("free space"), "{said}");
    }
    shows_more(fleet, "samples come while the disk is full");
    std::fs::remove_file(ballast).expect("room is made");
    until_so("a key can be made", || add_key(fleet.hub_folder(), &format!("room-{round}")).is_ok());
    shows_more(fleet, "samples come on");
}

#[test]
#[ignore = "needs root, to mount a disk"]
fn with_root_a_disk_that_was_full_for_a_moment_leaves_the_database_unharmed() {
    let (mut fleet, mount) = fleet();
    let ballast = mount.path().join("ballast");
    for round in 0..3 {
        fill(&ballast).expect("filled");
        goes_on_after(&mut fleet, &ballast, round);
    }
}

#[test]
#[ignore = "needs root, to mount a disk"]
fn with_root_a_hub_starts_on_a_full_disk_and_takes_samples() {
    let (mut fleet, mount) = fleet();
    let ballast = mount.path().join("ballast");
    let known = fleet.machines().len();
    for round in 0..2 {
        fill(&ballast).expect("filled");
        fleet.kill_hub();
        // Space of files that the killed hub held open is free now.
        fill(&mount.path().join(format!("more-{round}"))).expect("filled");
        fleet.start_hub();
        assert_eq!(fleet.server().get("/healthz", &[]).status, 200);
        assert_eq!(fleet.machines().len(), known, "its machines are known");
        std::fs::remove_file(mount.path().join(format!("more-{round}"))).expect("a little room is made");
        fill(&mount.path().join(format!("more-{round}"))).expect("and taken");
        goes_on_after(&mut fleet, &ballast, round);
        std::fs::remove_file(mount.path().join(format!("more-{round}"))).expect("room is made");
    }
    // In order, without any lost data.
    fleet.kill_hub();
    fleet.start_hub();
    let keys = fleet.administer(&["key", "list"]);
    assert!(keys.contains("room-0") && keys.contains("room-1") && !keys.contains("full-"), "{keys}");
}
