//! Tests files that a user names and that others might have prepared. A write follows no link and does not block at a
//! pipe, and neither does a read. A truncated file yields its remaining part.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use watchglass_tests::server::{Server, newest_log, run};
use watchglass_tests::waiting::{until, until_so};

const TABLE: &str = "time,source,tag,value\n1714566896,h,gpu.0.temp,63\n1714566911,h,gpu.0.temp,64\n";

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn fifo(path: &Path) {
    let path = std::ffi::CString::new(text(path)).expect("no zero byte");
    // SAFETY: `path` ends with a zero byte.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }, 0);
}

/// A folder with the mode of /tmp.
fn sticky() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let common = folder.path().join("common");
    fs::create_dir(&common).expect("a folder");
    fs::set_permissions(&common, Permissions::from_mode(0o1777)).expect("its mode");
    (folder, common)
}

#[test]
fn nothing_that_is_written_follows_a_link_or_waits_at_a_pipe() {
    let (folder, common) = sticky();
    let at = |name: &str| folder.path().join(name);
    let (mine, table, data) = (at("mine"), at("table.csv"), at("data"));
    fs::write(&mine, "mine").expect("written");
    fs::write(&table, TABLE).expect("written");
    fs::create_dir(&data).expect("a folder");
    symlink(&mine, common.join("to-mine")).expect("linked");
    symlink(at("nothing"), common.join("to-nothing")).expect("linked");
    fifo(&common.join("pipe"));
    let live = Server::start(["demo", "--gpus", "1", "--retention", "20m"]);
    let port = live.addr().port().to_string();
    let stored = text(&data);
    for name in ["to-mine", "to-nothing", "pipe"] {
        let out = common.join(name);
        let out = text(&out);
        for args in [
            vec!["export", "--data-dir", stored, "--tag", "*", "--format", "csv", "--output", out],
            vec!["record", out, "--port", &port, "--from", "-1m"],
            vec!["import", text(&table), "--output", out],
            vec!["doctor", "--memory", "--collectors", "cpu", "--bundle", out],
        ] {
            let refused = run(args.iter().copied());
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(1), "{args:?}: {said}");
            assert!(said.contains(out) && said.contains("; name "), "{args:?}: {said}");
        }
    }
    assert_eq!(fs::read(&mine).expect("read"), b"mine");
    assert!(!at("nothing").exists());
    assert_eq!(fs::read_dir(&common).expect("listed").count(), 3, "nothing is left beside them");
}

#[test]
fn standard_output_has_a_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = folder.path().join("table.csv");
    fs::write(&table, TABLE).expect("written");
    for name in ["-", "/dev/stdout"] {
        let made = run(["import", text(&table), "--output", name]);
        assert!(made.status.success() && made.stdout.starts_with(b"WGseg"), "{name}");
        assert_eq!(String::from_utf8_lossy(&made.stderr), "", "{name}");
    }
}

#[test]
fn nothing_that_is_read_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe.toml");
    fifo(&pipe);
    let run_folder = folder.path().join("run");
    fs::create_dir(&run_folder).expect("a folder");
    fifo(&run_folder.join("wandb-metadata.json"));
    fs::write(run_folder.join("wandb-events.jsonl"), "{\"_timestamp\":1714566896,\"system.gpu.0.temp\":1}\n")
        .expect("written");
    for (args, status) in [
        (["replay", text(&pipe)], 1),
        (["import", text(&pipe)], 1),
        (["import", "/dev/zero"], 1),
        (["--config", text(&pipe)], 2),
        (["--config", "/dev/zero"], 2),
    ] {
        let refused = run(args);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains(args[1]) && said.contains("it is a pipe, a socket or a device"), "{args:?}: {said}");
    }
    let made = run(["import", text(&run_folder), "--output", "-"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn a_data_folder_that_others_may_write_to_has_status_4_and_the_remedy() {
    let (_folder, common) = sticky();
    let own = common.join("own");
    fs::create_dir(&own).expect("a folder");
    fs::set_permissions(&own, Permissions::from_mode(0o770)).expect("its mode");
    let chmod = format!("chmod go-w {}\"", own.display());
    let below = format!("--data-dir {}/watchglass", common.display());
    for (data, remedy) in [(&own, &chmod), (&common, &below)] {
        let refused = run(["--port", "0", "--data-dir", text(data)]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(4), 0), "{said}");
        assert!(said.contains("other users may write to it") && said.contains(remedy), "{said}");
    }
    assert_eq!(fs::read_dir(&own).expect("listed").count(), 0);
    // The remedies work.
    fs::set_permissions(&own, Permissions::from_mode(0o750)).expect("its mode");
    for data in [&own, &common.join("watchglass")] {
        drop(Server::start(["--collectors", "cpu", "--data-dir", text(data)]));
    }
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, mine) = (folder.path().join("data"), folder.path().join("mine"));
    fs::create_dir(&data).expect("a folder");
    fs::write(&mine, "mine").expect("written");
    symlink(&mine, data.join("lock")).expect("linked");
    let refused = run(["--port", "0", "--data-dir", text(&data)]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains("lock is a link or not a plain file; remove it"), "{said}");
    assert_eq!(fs::read(&mine).expect("read"), b"mine");
}

#[test]
fn a_recording_cut_at_sixty_percent_shows_what_is_whole_and_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, cut) = (folder.path().join("whole.watchglass"), folder.path().join("cut.watchglass"));
    let live = Server::start(["demo", "--gpus", "4", "--retention", "20m"]);
    let made = run(["record", text(&whole), "--port", &live.addr().port().to_string(), "--from", "-10m"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let bytes = fs::read(&whole).expect("read");
    fs::write(&cut, &bytes[..bytes.len() * 6 / 10]).expect("written");
    let all = |server: &Server| server.get("/api/v1/query?tag=*&from=0", &[]).body;
    let points = |text: &str| {
        let answer: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let series = answer["series"].as_array().expect("series").clone();
        let filled = series.into_iter().filter(|s| s["points"].as_array().is_some_and(|points| !points.is_empty()));
        filled
            .flat_map(|s| {
                s["points"].as_array().expect("points").iter().map(|p| format!("{} {p}", s["tag"])).collect::<Vec<_>>()
            })
            .collect::<std::collections::BTreeSet<_>>()
    };
    let expected = points(&all(&Server::start(["replay", text(&whole)])));
    let replayed = Server::start(["replay", text(&cut)]);
    let found = points(&all(&replayed));
    assert!(found.len() > expected.len() / 10 && found.len() < expected.len(), "{} of {}", found.len(), expected.len());
    assert!(found.is_subset(&expected), "{:?}", found.difference(&expected).next());
    until_so("it is said", || replayed.log().contains("the end of the file is missing: later samples are lost"));
    assert!(!replayed.log().contains("damaged"), "{}", replayed.log());
    fs::write(&cut, &bytes[..bytes.len() / 50]).expect("written");
    let refused = run(["replay", text(&cut)]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(!said.contains("later samples are lost") && !said.contains("the rest is sound"), "{said}");
}

#[test]
fn a_cut_log_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let start = || Server::start(["--interval", "100ms", "--collectors", "cpu", "--data-dir", text(&data)]);
    // The figure is absent until the archive has run.
    let figure = |server: &Server, name: &str| {
        let body = server.get("/metrics", &[]).body;
        body.lines().find_map(|line| line.strip_prefix(&format!("watchglass_self_{name} "))).map(String::from)
    };
    let newest = || newest_log(&data);
    let long = |log: PathBuf| fs::metadata(&log).is_ok_and(|file| file.len() > 3_000).then_some(log);
    let log = until("a log that grew until its server was killed", || {
        let server = start();
        until_so("the log grows", || newest().and_then(long).is_some());
        until_so("the archive has looked", || figure(&server, "log_cut_files").is_some_and(|n| n == "0"));
        drop(server); // Dropping a server kills it by SIGKILL.
        newest().and_then(long)
    });
    let mut bytes = fs::read(&log).expect("the log");
    bytes.truncate(bytes.len() * 6 / 10);
    // The file is truncated in the middle of a record, after the two bytes with which each record begins.
    let record = bytes.windows(2).rposition(|two| two == [0xff, 0xd7]).expect("a record");
    fs::write(&log, &bytes[..record + 5]).expect("cut");
    let again = start();
    until_so("the cut is counted", || figure(&again, "log_cut_files").is_some_and(|n| n == "1"));
    assert_eq!(figure(&again, "history_missing_ticks").as_deref(), Some("0"), "what came after is gone, too");
}
