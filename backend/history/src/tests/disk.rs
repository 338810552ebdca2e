//! A disk that is full, fails, hangs, or loses power.

use super::owner::{Owner, close};
use crate::faults::{Fault, Faulty};
use crate::files::{Disk, Files};
use crate::{Folder, Found, Log, Options, Written, writer};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// If each of this many writes waited, a busy machine could not explain the time.
const MANY_WRITES: u32 = 100;

/// A folder with possible faults, and its log, which is synced after every write.
pub struct Rig {
    pub temp: TempDir,
    pub files: Faulty,
    pub log: Log,
}

impl Rig {
    pub fn new() -> Rig {
        let temp = TempDir::new().unwrap();
        let files = Faulty::new(Arc::new(Disk::new(temp.path())));
        let lock = files.lock().unwrap();
        let log = Log::start(Arc::new(files.clone()), lock, Default::default(), Duration::ZERO).unwrap();
        Rig { temp, files, log }
    }

    /// The data that another process finds now.
    pub fn found(&self) -> Found {
        Folder::read_only(self.temp.path()).unwrap()
    }

    /// Waits until everything is synced, or the log has failed.
    pub fn settle(&self) -> bool {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            // In this order: a job that left the queue is running, or done.
            let waiting = self.log.waiting();
            let health = self.log.health();
            let done = waiting == 0 && health.waiting_for.is_none() && health.unsynced_for.is_none();
            if health.failing.is_some() || done && health.file > 0 {
                return health.failing.is_none();
            }
            std::thread::yield_now();
        }
        panic!("neither synced nor failing: {:?}", self.log.health());
    }

    /// Retries as an owner does from time to time while the log is failing.
    pub fn retry(&self, owner: &mut Owner) -> bool {
        let before = self.log.health();
        let number = self.log.begin(owner.opening());
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            let health = self.log.health();
            if health.file == number && health.failing.is_none() {
                return true;
            }
            if health.file != number && health.failing.is_some() && health.failures > before.failures {
                return false;
            }
            std::thread::yield_now();
        }
        panic!("the new file was neither begun nor refused: {:?}", self.log.health());
    }
}

/// Sequences of written ticks, by source.
pub fn done(owner: &Owner, written: &[Written]) -> Vec<BTreeSet<u64>> {
    let n = owner.sources.len();
    let seqs = |source: usize| {
        let writes = written.iter().skip(source).step_by(n).zip(owner.sources[source].truth.keys());
        writes.filter(|(w, _)| **w == Written::Done).map(|(_, seq)| *seq).collect()
    };
    (0..n).map(seqs).collect()
}

pub fn includes(found: &[BTreeSet<u64>], wanted: &[BTreeSet<u64>]) -> bool {
    wanted.iter().zip(found).all(|(wanted, found)| wanted.is_subset(found))
}

#[test]
fn what_is_written_is_there_at_once_and_after_a_clean_end() {
    let (rig, mut owner) = (Rig::new(), Owner::new(2));
    rig.log.begin(owner.opening());
    let written = owner.write(&rig.log, 50);
    assert_eq!(written, [Written::Done; 100]);
    let found = rig.found();
    assert_eq!(owner.check(&found), owner.all());
    assert!(found.report.unclean, "not closed yet");
    assert!(rig.log.health().bytes > 1_000);
    let temp = rig.temp;
    assert!(close(rig.log));
    let found = Folder::read_only(temp.path()).unwrap();
    assert_eq!(owner.check(&found), owner.all());
    assert!(!found.report.unclean);
    assert_eq!((found.report.torn.len(), found.report.damages.len()), (0, 0));
}

#[test]
fn a_disk_that_is_full_at_any_write_loses_nothing_once_it_has_space() {
    let mut failed = 0;
    for n in 0..26 {
        let (rig, mut owner) = (Rig::new(), Owner::new(2));
        rig.files.fail(n, Fault::Full);
        rig.log.begin(owner.opening());
        let written = owner.write(&rig.log, 4);
        assert!(includes(&owner.check(&rig.found()), &done(&owner, &written)), "full at operation {n}");
        if rig.log.health().failing.is_some() {
            failed += 1;
            let now = Instant::now();
            for _ in 0..MANY_WRITES {
                assert_eq!(rig.log.write(owner.tick(0)), Written::Later);
            }
            assert!(now.elapsed() < writer::WRITE_TIMEOUT * MANY_WRITES / 2, "a failing log keeps nobody waiting");
            assert!(!rig.retry(&mut owner), "the disk is still full");
            assert!(rig.log.health().failing.unwrap().contains("No space left on device"));
            rig.files.heal();
            assert!(rig.retry(&mut owner));
        }
        rig.files.heal();
        assert!(owner.write(&rig.log, 3).iter().all(|w| *w == Written::Done));
        let temp = rig.temp;
        assert!(close(rig.log));
        let found = Folder::read_only(temp.path()).unwrap();
        assert_eq!(owner.check(&found), owner.all(), "full at operation {n}");
        assert_eq!((found.report.damages, found.report.torn), (vec![], vec![]), "what was torn was cut off");
    }
    assert!(failed > 8, "{failed}");
}

#[test]
fn one_failed_operation_loses_nothing_once_a_file_is_begun() {
    for n in 0..26 {
        let (rig, mut owner) = (Rig::new(), Owner::new(2));
        rig.files.fail(n, Fault::Io);
        rig.log.begin(owner.opening());
        let written = owner.write(&rig.log, 4);
        let sound = rig.settle();
        assert!(includes(&owner.check(&rig.found()), &done(&owner, &written)), "operation {n}");
        if !sound {
            assert!(rig.retry(&mut owner));
        }
        owner.cut();
        rig.log.begin(owner.opening());
        owner.write(&rig.log, 2);
        assert!(rig.settle() || rig.retry(&mut owner));
        let temp = rig.temp;
        close(rig.log);
        let found = Folder::read_only(temp.path()).unwrap();
        assert!(includes(&owner.check(&found), &[(5..=6).collect(), (5..=6).collect()]), "operation {n}");
    }
}

#[test]
fn a_process_killed_at_any_operation_loses_nothing_that_was_done() {
    for n in 0..40 {
        let (rig, mut owner) = (Rig::new(), Owner::new(2));
        rig.files.fail(n, Fault::Kill);
        let first = rig.log.begin(owner.opening());
        let mut written = owner.write(&rig.log, 4);
        // A new file replaces all, and the one before is removed.
        rig.log.begin(owner.opening());
        written.extend(owner.write(&rig.log, 1));
        rig.log.remove_through(first);
        written.extend(owner.write(&rig.log, 3));
        let found = rig.found();
        assert!(includes(&owner.check(&found), &done(&owner, &written)), "killed at operation {n}: {:?}", found.report);
        assert!(found.report.unclean || found.log == 0);
        assert_eq!(found.report.damages, []);
    }
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_that_was_synced() {
    for n in 0..40 {
        let (rig, mut owner) = (Rig::new(), Owner::new(2));
        rig.files.fail(n, Fault::PowerCut);
        let first = rig.log.begin(owner.opening());
        let mut synced = vec![BTreeSet::new(); 2];
        for i in 0..8 {
            if i == 4 {
                // At once: unsynced data of the file before still has to be synced.
                rig.log.begin(owner.opening());
                if rig.settle() && rig.log.health().file > first {
                    rig.log.remove_through(first);
                }
            }
            owner.write(&rig.log, 1);
            if rig.settle() {
                synced = owner.all();
            }
        }
        assert!(
            includes(&owner.check(&rig.found()), &synced),
            "power cut at operation {n}: {:?}",
            rig.files.operations()
        );
    }
}

#[test]
fn a_disk_that_hangs_keeps_nobody_waiting_and_loses_nothing() {
    let (rig, mut owner) = (Rig::new(), Owner::new(1));
    rig.log.begin(owner.opening());
    assert_eq!(owner.write(&rig.log, 1), [Written::Done]);
    assert!(rig.settle());
    rig.files.fail(0, Fault::Hang);
    assert_eq!(rig.log.write(owner.tick(0)), Written::Later);
    let now = Instant::now();
    for _ in 0..MANY_WRITES {
        assert_eq!(rig.log.write(owner.tick(0)), Written::Later);
    }
    assert!(now.elapsed() < writer::WRITE_TIMEOUT * MANY_WRITES / 2, "only the first waits");
    let end = now + Duration::from_secs(20);
    // The log's thread may have started later than the first write waited for it.
    while rig.log.health().waiting_for.is_none_or(|waited| waited < writer::WRITE_TIMEOUT) {
        assert!(Instant::now() < end, "{:?}", rig.log.health());
        std::thread::yield_now();
    }
    assert_eq!(rig.log.health().failing, None, "what is queued will be written");
    rig.files.heal();
    let temp = rig.temp;
    assert!(close(rig.log));
    let found = Folder::read_only(temp.path()).unwrap();
    assert_eq!(owner.check(&found), owner.all());
}

#[test]
fn what_waits_for_a_hanging_disk_is_bounded() {
    let (rig, mut owner) = (Rig::new(), Owner::new(1));
    rig.log.begin(owner.opening());
    assert!(rig.settle());
    rig.files.fail(0, Fault::Hang);
    let mut records = Vec::new();
    crate::log::put(&mut records, &crate::log::Entry::Keyframe { source: 0, frame: &[0; 1 << 20] });
    for _ in 0..writer::MAX_QUEUED_BYTES / records.len() + 2 {
        rig.log.write(records.clone());
    }
    let health = rig.log.health();
    assert!(health.failing.unwrap().contains("does not respond"));
    assert!(health.dropped > 0);
    for _ in 0..100 {
        // Each replaces the one before, which is still queued.
        rig.log.begin(records.clone());
    }
    assert!(rig.log.waiting() < 2 * writer::MAX_QUEUED_BYTES);
    owner.tick(0);
    rig.files.heal();
    assert!(rig.retry(&mut owner));
    assert_eq!(owner.check(&rig.found()), owner.all());
}

#[test]
fn closing_gives_up_on_a_disk_that_hangs() {
    let (rig, mut owner) = (Rig::new(), Owner::new(1));
    rig.log.begin(owner.opening());
    assert!(rig.settle());
    rig.files.fail(0, Fault::Hang);
    rig.log.write(owner.tick(0));
    let now = Instant::now();
    assert!(!rig.log.close());
    assert!(now.elapsed() < writer::CLOSE_TIMEOUT * 5);
    let held = Folder::open(rig.temp.path(), Options::default());
    assert!(matches!(held, Err(crate::OpenError::Locked { .. })), "who may still write has the folder");
    rig.files.heal();
}
