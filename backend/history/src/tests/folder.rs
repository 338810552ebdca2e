//! The lock of the folder, and refused folders.

use super::owner::{Owner, close};
use crate::{Folder, OpenError, Options, Written, log};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A locked folder is refused at once, without waiting for its release.
const WAIT: Duration = Duration::from_secs(10);
const CHILD: &str = "WATCHGLASS_TEST_FOLDER";

fn open(path: &Path) -> Result<(Folder, crate::Found), OpenError> {
    Folder::open(path, Options::default())
}

/// Contents of all files of a folder, and their modification times.
fn bytes(path: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let files = std::fs::read_dir(path).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let changed = entry.metadata().unwrap().modified().unwrap();
        (entry.file_name().into_string().unwrap(), (std::fs::read(entry.path()).unwrap(), changed))
    });
    files.collect()
}

#[test]
fn a_history_goes_on_over_restarts() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("made/when needed");
    let mut owner = Owner::new(2);
    for round in 0..4u64 {
        let (folder, found) = open(&path).unwrap();
        assert_eq!(owner.check(&found), owner.all());
        assert_eq!(found.log, round);
        assert_eq!(found.report.unclean, round == 3, "round {round}");
        assert!(found.sources.iter().all(|s| s.spans.len() == 1 && s.last_seq() == round * 10));
        let log = folder.log().unwrap();
        owner.cut();
        assert_eq!(log.begin(owner.opening()), round + 1);
        assert_eq!(owner.write(&log, 10), [Written::Done; 20]);
        if round == 2 {
            // As after a kill: the threads are left running, and the lock with them.
            std::fs::copy(path.join("log-3"), temp.path().join("log-3")).unwrap();
            close(log);
            drop(folder);
            std::fs::rename(temp.path().join("log-3"), path.join("log-3")).unwrap();
        } else {
            assert!(close(log));
        }
    }
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read() {
    use std::os::unix::fs::PermissionsExt;
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let (folder, _) = open(&path).unwrap();
    let log = folder.log().unwrap();
    log.begin(Owner::new(1).opening());
    close(log);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!((mode(&path.join("log-1")), mode(&path.join("lock"))), (0o600, 0o600));
}

#[test]
fn the_second_is_told_who_has_it() {
    let temp = TempDir::new().unwrap();
    let first = open(temp.path()).unwrap();
    let now = Instant::now();
    match open(temp.path()) {
        Err(OpenError::Locked { pid, host }) => assert_eq!((pid, host), (Some(std::process::id()), None)),
        _ => panic!("two have the folder"),
    }
    assert!(now.elapsed() < WAIT);
    drop(first);
    open(temp.path()).unwrap();
}

/// Not a test: the other process of the next one.
#[test]
#[ignore = "is run by the next test, as another process"]
fn holds_the_folder() {
    let path = std::env::var_os(CHILD).expect("a folder");
    let _held = open(Path::new(&path)).unwrap();
    println!("held");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_process_has_nothing() {
    let temp = TempDir::new().unwrap();
    #[allow(clippy::disallowed_methods, reason = "this test itself, as another process that is killed")]
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::folder::holds_the_folder", "--ignored", "--nocapture"])
        .env(CHILD, temp.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("held")));
    let pid = child.id();
    assert!(matches!(open(temp.path()), Err(OpenError::Locked { pid: Some(p), .. }) if p == pid));
    child.kill().unwrap();
    child.wait().unwrap();
    let stale = std::fs::read_to_string(temp.path().join("lock")).unwrap();
    assert_eq!(stale.lines().next(), Some(&*pid.to_string()), "a stale lock file");
    let now = Instant::now();
    open(temp.path()).unwrap();
    assert!(now.elapsed() < WAIT);
}

#[test]
fn a_newer_format_is_refused_and_no_byte_is_touched() {
    let temp = TempDir::new().unwrap();
    drop(open(temp.path()).unwrap());
    let mut newer = Vec::new();
    log::put_header(&mut newer);
    newer[8] += 1;
    let crc = shared::crc32c::crc32c(&newer[..12]);
    newer[12..16].copy_from_slice(&crc.to_le_bytes());
    newer.extend(b"what we cannot know");
    std::fs::write(temp.path().join("log-7"), &newer).unwrap();
    std::fs::write(temp.path().join("q-0-1.seg.tmp"), b"half").unwrap();
    let before = bytes(temp.path());
    for result in [open(temp.path()).map(drop), Folder::read_only(temp.path()).map(drop)] {
        match result {
            Err(OpenError::Newer { file, version }) => {
                assert_eq!((file.as_str(), version), ("log-7", log::VERSION + 1))
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bytes(temp.path()), before);
}

#[test]
fn what_was_half_written_is_removed_and_what_is_not_ours_stays() {
    let temp = TempDir::new().unwrap();
    std::fs::write(temp.path().join("q-900-3.seg.tmp"), b"half").unwrap();
    std::fs::write(temp.path().join("notes.txt"), b"mine").unwrap();
    std::fs::write(temp.path().join("log-old"), b"mine").unwrap();
    let (_folder, found) = open(temp.path()).unwrap();
    let mut names: Vec<String> = bytes(temp.path()).into_keys().collect();
    names.sort();
    assert_eq!(names, ["lock", "log-old", "notes.txt"]);
    assert_eq!(found.report, Default::default());
}

#[test]
fn a_damaged_segment_is_named_and_kept() {
    let temp = TempDir::new().unwrap();
    std::fs::write(temp.path().join("q-900-3.seg"), b"no segment at all").unwrap();
    let (folder, found) = open(temp.path()).unwrap();
    assert_eq!(found.report.damages[0].file, "q-900-3.seg");
    assert!(temp.path().join("q-900-3.seg").exists());
    assert_eq!(folder.serial(), 4, "its number is not given again");
}

#[test]
fn a_folder_that_cannot_be_is_an_error_in_words() {
    let temp = TempDir::new().unwrap();
    std::fs::write(temp.path().join("file"), b"").unwrap();
    let error = open(&temp.path().join("file")).err().unwrap().to_string();
    assert!(error.starts_with("cannot create the folder: "), "{error}");
    let error = Folder::read_only(&temp.path().join("none")).err().unwrap().to_string();
    assert!(error.starts_with("cannot read the folder: "), "{error}");
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_may_write_to_is_refused_and_no_byte_is_touched() {
    use crate::files::Shared;
    use std::os::unix::fs::{PermissionsExt, symlink};
    let temp = TempDir::new().unwrap();
    let data = temp.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for (mode, ours) in [(0o770, Some(true)), (0o707, Some(true)), (0o1777, Some(false)), (0o755, None), (0o700, None)]
    {
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).unwrap();
        match (open(&data), ours) {
            (Err(OpenError::Shared(shared)), Some(ours)) => {
                assert_eq!(shared, Shared::Mode { mode, ours });
                assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
            }
            (opened, None) => drop(opened.unwrap()),
            (opened, _) => panic!("{mode:o}: {:?}", opened.err()),
        }
    }
    // A link of the same user is accepted.
    symlink(&data, temp.path().join("link")).unwrap();
    open(&temp.path().join("link")).unwrap();
}

#[cfg(unix)]
#[test]
fn no_name_of_ours_is_followed_to_a_file_elsewhere_or_waited_for() {
    use std::os::unix::fs::symlink;
    let temp = TempDir::new().unwrap();
    let (data, mine) = (temp.path().join("data"), temp.path().join("mine"));
    std::fs::create_dir(&data).unwrap();
    std::fs::write(&mine, "4711, and more").unwrap();
    let pipe = temp.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: `name` ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    for name in ["lock", "log-3"] {
        for target in [&mine, &temp.path().join("nothing"), &pipe] {
            symlink(target, data.join(name)).unwrap();
            let error = open(&data).err().unwrap().to_string();
            assert!(error.ends_with(&format!("{name} is a link or not a plain file; remove it")), "{error}");
            std::fs::remove_file(data.join(name)).unwrap();
        }
        std::fs::rename(&pipe, data.join(name)).unwrap();
        assert!(open(&data).is_err());
        std::fs::rename(data.join(name), &pipe).unwrap();
    }
    assert_eq!(std::fs::read(&mine).unwrap(), b"4711, and more");
    assert!(!temp.path().join("nothing").exists());
    open(&data).unwrap();
}
