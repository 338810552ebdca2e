//! Cuts: a new log file, a segment of the data in the one before, and its removal one cut later.

use super::disk::{Rig, done, includes};
use super::owner::{Owner, close};
use crate::faults::Fault;
use crate::segments::{Kind, Name};
use std::collections::BTreeSet;

/// Writes three quarters of four ticks, with a cut after each. If the process dies, it continues unaware. Returns the
/// written ticks, and with `wait` the synced ones.
fn three_quarters(rig: &Rig, owner: &mut Owner, wait: bool) -> Vec<BTreeSet<u64>> {
    rig.log.begin(owner.opening());
    let (mut written, mut synced, mut sealed) = (Vec::new(), vec![BTreeSet::new(); 2], 0);
    for quarter in 0..3 {
        for _ in 0..4 {
            written.extend(owner.write(&rig.log, 1));
            if wait && rig.settle() {
                synced = owner.all();
            }
        }
        let name = Name { kind: Kind::Quarter, start: quarter * 900, serial: quarter as u64 };
        let through = quarter as u64 + 1;
        let segment = owner.seal(&rig.files, name, through);
        assert_eq!(rig.log.begin(owner.opening()), through + 1);
        if segment.is_ok() {
            rig.log.remove_through(sealed);
            sealed = through;
        }
    }
    if wait { synced } else { done(owner, &written) }
}

#[test]
fn logs_that_are_in_segments_go_one_cut_later() {
    let (rig, mut owner) = (Rig::new(), Owner::new(2));
    three_quarters(&rig, &mut owner, true);
    let temp = rig.temp;
    assert!(close(rig.log));
    let found = crate::Folder::read_only(temp.path()).unwrap();
    assert_eq!(owner.check(&found), owner.all());
    assert_eq!((found.segments.len(), found.log, found.report.ticks), (3, 4, 0));
    assert!(found.sources.iter().all(|s| s.spans.is_empty() && s.last_seq() == 12));
    assert!(!temp.path().join("log-2").exists() && temp.path().join("log-3").exists());
}

#[test]
fn a_newest_segment_that_is_damaged_is_made_up_for_by_the_log() {
    let (rig, mut owner) = (Rig::new(), Owner::new(2));
    three_quarters(&rig, &mut owner, true);
    std::fs::write(rig.temp.path().join("q-1800-2.seg"), b"nothing of it is left").unwrap();
    let found = rig.found();
    assert_eq!(owner.check(&found), owner.all());
    assert_eq!(found.report.damages[0].file, "q-1800-2.seg");
    assert_eq!((found.segments.len(), found.report.ticks), (2, 8));
}

#[test]
fn a_process_killed_at_any_step_of_a_cut_loses_nothing_and_doubles_nothing() {
    let mut n = 0;
    loop {
        let (rig, mut owner) = (Rig::new(), Owner::new(2));
        (owner.gaps, owner.records) = (n % 2 == 1, true);
        rig.files.fail(n, Fault::Kill);
        let done = three_quarters(&rig, &mut owner, false);
        let found = rig.found();
        assert!(includes(&owner.check(&found), &done), "killed at operation {n}: {:?}", rig.files.operations());
        let records = owner.check_records(&found);
        assert!(includes(&records, &owner.records_of(&done)), "killed at operation {n}: {:?}", rig.files.operations());
        assert_eq!((found.report.damages, found.report.missing_ticks), (vec![], 0), "killed at operation {n}");
        if !rig.files.is_dead() {
            break;
        }
        n += 1;
    }
    assert!(n > 40, "{n}");
}

#[test]
fn a_power_cut_at_any_step_of_a_cut_loses_nothing_that_was_synced() {
    let mut n = 0;
    loop {
        let (rig, mut owner) = (Rig::new(), Owner::new(2));
        (owner.gaps, owner.records) = (n % 2 == 1, true);
        rig.files.fail(n, Fault::PowerCut);
        let synced = three_quarters(&rig, &mut owner, true);
        let found = rig.found();
        assert!(includes(&owner.check(&found), &synced), "power cut at operation {n}: {:?}", rig.files.operations());
        let records = owner.check_records(&found);
        assert!(includes(&records, &owner.records_of(&synced)), "power cut at {n}: {:?}", rig.files.operations());
        if !rig.files.is_dead() {
            break;
        }
        n += 1;
    }
    assert!(n > 60, "{n}");
}
