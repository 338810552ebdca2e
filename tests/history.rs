//! Tests history on disk with the real binary: samples that were seen once survive any end of the server.

use backend::config::RemoteWrite;
use backend::remote_write::RemoteWriter;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;
use watchglass_tests::kills::{keeping, kills};
use watchglass_tests::ledger::Ledger;
use watchglass_tests::receiver::{Receiver, ReceiverAnswer};
use watchglass_tests::server::{Server, newest_log, watchglass};
#[cfg(target_os = "linux")]
use watchglass_tests::server::{as_user, binary};
use watchglass_tests::stage::Stage;
use watchglass_tests::waiting::{MAX_WAIT, until};

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

fn start(folder: &Path, ledger: &Ledger) -> Server {
    Server::start_as_it_is(keeping(folder, ledger, "100ms"))
}

/// All values of the ledger in the export, by tag and time.
fn visible(server: &Server) -> BTreeMap<(String, String), f64> {
    let answer = server.get("/api/v1/export?format=csv&tag=openmetrics.books.*&from=0", &[]);
    if answer.status == 404 {
        return BTreeMap::new(); // Before the first scrape the tags of the endpoint are unknown.
    }
    assert_eq!(answer.status, 200, "{}", answer.body);
    let mut all = BTreeMap::new();
    // A tag with labels is quoted, but none here contains a comma.
    for line in answer.body.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let [time, _, tag, value] = cells[..] else { panic!("{line}") };
        let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(all.insert((tag.into(), time.into()), value), None, "one instant, two samples: {line}");
    }
    all
}

fn check(server: &Server, id: &str) -> Option<Value> {
    let doctor: Value = serde_json::from_str(&server.get("/api/v1/doctor", &[]).body).expect("JSON");
    doctor["checks"].as_array()?.iter().find(|check| check["id"] == id).cloned()
}

#[test]
fn twenty_kills_lose_double_and_change_nothing_that_was_seen() {
    let (folder, ledger) = (folder(), Ledger::start());
    // Each life takes about a second, and much longer on a loaded machine.
    let (kills, audit) = kills(folder.path(), &ledger, 20, 20_261_121, Instant::now() + 20 * MAX_WAIT);
    assert!(audit.sound(), "{audit:?}");
    assert!(kills == 20 && audit.seen() > 50, "{} samples were seen in {kills} lives", audit.seen());
}

#[test]
fn a_server_that_was_ended_in_order_goes_on_where_it_was() {
    let (folder, ledger) = (folder(), Ledger::start());
    let server = start(folder.path(), &ledger);
    let before = until("three scrapes", || Some(visible(&server)).filter(|seen| seen.len() >= 6));
    let status = server.end();
    assert_eq!(status.code(), Some(0));
    let server = start(folder.path(), &ledger);
    let after = visible(&server);
    assert!(before.iter().all(|(place, value)| after.get(place) == Some(value)), "{before:?} {after:?}");
    let checks = until("the history is checked", || check(&server, "history"));
    assert_eq!(checks["state"], "ok", "{checks}");
    let figure = |name: &str| {
        let metrics = server.get("/metrics", &[]).body;
        metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())
    };
    // Some figures are absent until the archive has run.
    assert_eq!(until("the last end", || figure("watchglass_self_unclean_start ")), 0.0);
    until("the log has bytes", || figure("watchglass_self_log_bytes ").filter(|bytes| *bytes > 0.0));
}

#[test]
fn a_second_server_on_the_same_folder_leaves_at_once_and_says_why() {
    let (folder, ledger) = (folder(), Ledger::start());
    let server = start(folder.path(), &ledger);
    let path = folder.path().to_str().expect("text");
    let begin = Instant::now();
    let second = watchglass(["--port", "0", "--data-dir", path]).output().expect("it starts");
    // A loaded machine takes a part of this time. A server that waited for the folder would wait forever.
    assert!(begin.elapsed() < MAX_WAIT, "{:?}", begin.elapsed());
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!((second.status.code(), &second.stdout[..]), (Some(4), &b""[..]), "{words}");
    for word in [path, &server.id().to_string(), "--data-dir", "--memory"] {
        assert!(words.contains(word), "{word} is missing: {words}");
    }
    // The first server is unaffected. After it is killed, its lock does not block the next one.
    let before = until("a scrape", || Some(visible(&server)).filter(|seen| !seen.is_empty()));
    drop(server);
    let after = visible(&start(folder.path(), &ledger));
    assert!(before.keys().all(|place| after.contains_key(place)));
}

#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "a shell that lowers the limit becomes the binary")]
#[test]
fn months_of_segments_may_be_open_though_the_system_gives_few_files_unasked() {
    let (folder, ledger) = (folder(), Ledger::start());
    let ours = keeping(folder.path(), &ledger, "100ms");
    let mut few = std::process::Command::new("sh");
    few.args(["-c", "ulimit -S -n 256 && exec \"$0\" \"$@\""]).arg(ours.get_program()).args(ours.get_args());
    let server = Server::start_as_it_is(few);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id())).expect("its limits");
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("a line");
    let mut files = files.split_whitespace().map(|n| n.parse::<u64>().expect("a number"));
    let (soft, hard) = (files.next().expect("soft"), files.next().expect("hard"));
    assert_eq!(soft, hard.min(1 << 17), "{limits}");
}

#[test]
fn a_folder_that_cannot_be_made_is_status_4_and_a_sentence() {
    let folder = folder();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").expect("a file");
    let below = file.join("data");
    let run = watchglass(["--port", "0", "--data-dir", below.to_str().expect("text")]).output().expect("it starts");
    let words = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(4), "{words}");
    assert!(words.contains("cannot create the folder") && words.contains("--memory"), "{words}");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs root, to be another user"]
fn with_root_a_folder_of_another_user_is_status_4_with_whose_it_is_and_what_to_do() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let refused = |data: &Path, remedy: &str| {
        let run = as_user(54321, binary(), |mut server| {
            server.args(["--port", "0", "--data-dir"]).arg(data).output().expect("it starts")
        });
        let words = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(4), "{words}");
        for word in ["root (uid 0)", "uid 54321", remedy, "--data-dir"] {
            assert!(words.contains(word), "{word} is missing: {words}");
        }
    };
    let folder = folder();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("own folder");
    // There are three folders: one of root, one below a folder of root, and an own one with files that root's server
    // has written.
    for (name, mode, owner) in [("closed", Some(0o700), 0), ("new", None, 0), ("own", Some(0o700), 54321)] {
        let data = folder.path().join(name);
        if let Some(mode) = mode {
            std::fs::create_dir(&data).expect("a folder");
            std::fs::write(data.join("lock"), "").expect("a file");
            std::fs::set_permissions(data.join("lock"), PermissionsExt::from_mode(0o600)).expect("own file");
            std::fs::set_permissions(&data, PermissionsExt::from_mode(mode)).expect("own folder");
            chown(&data, Some(owner), None).expect("given");
        }
        let remedy = if mode.is_some() { "sudo chown -R 54321 " } else { "sudo install -d -o 54321 " };
        refused(&data, &format!("{remedy}{}", data.display()));
    }
}

#[test]
fn in_memory_nothing_is_written() {
    let (folder, ledger) = (folder(), Ledger::start());
    let mut command = watchglass(["--port", "0", "--interval", "100ms", "--memory"]);
    command.args(["--openmetrics", &format!("books={}", ledger.url)]);
    command.env("XDG_STATE_HOME", folder.path()).env("HOME", folder.path()).current_dir(folder.path());
    let server = Server::start_as_it_is(command);
    until("three scrapes", || Some(visible(&server)).filter(|seen| seen.len() >= 6));
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

#[test]
fn without_a_flag_history_is_in_the_state_folder() {
    let folder = folder();
    let mut command = watchglass(["--port", "0", "--interval", "100ms", "--collectors", "cpu"]);
    command.env("XDG_STATE_HOME", folder.path());
    let server = Server::start_as_it_is(command);
    let long = |log: &PathBuf| std::fs::metadata(log).is_ok_and(|file| file.len() > 1_000);
    let log = until("the log grows", || newest_log(&folder.path().join("watchglass")).filter(long));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&folder.path().join("watchglass")), mode(&log)), (0o700, 0o600), "for its owner alone");
    }
    drop(server);
}

#[test]
fn one_instant_has_one_value_wherever_it_is_asked_for() {
    let stage = Stage::with_past(1);
    let receiver = Receiver::start(|_| ReceiverAnswer::Take);
    let settings = RemoteWrite { url: receiver.url(), read_url: None, headers: Vec::new(), ..RemoteWrite::default() };
    let remote = RemoteWriter::start(stage.live(), settings, None);
    let (newest, values) = stage.live().store().newest(0).expect("it has measured");
    let sent = || receiver.samples().values().map(|own| own.len()).max().unwrap_or(0);
    until("all of it is sent", || (sent() == 400).then_some(()));
    // The clock is set back twice, by half a minute and by 400 ms. Some timestamps are new, and others are repeated.
    let others: Vec<f64> = values.iter().map(|_| 1.0).collect();
    let append = |t: i64| stage.live().append(0, t, t % 1_000 == 0, &others).is_some();
    for second in 0..30 {
        let t = newest - 30_000 + second * 1_000;
        assert!(append(t - 400) && !append(t) && !append(t - 400));
    }
    let repeated = stage.live().store().counts().refused_again;
    assert_eq!(repeated, 60 * others.len() as u64);
    let metrics = stage.get("/metrics").body;
    assert!(metrics.contains(&format!("\nwatchglass_self_refused_again_total {repeated}\n")), "{metrics}");
    // The first measurement counts: 50 to 70 at whole seconds, and 1 between them.
    let check = |what: &str, samples: Vec<(i64, f64)>| {
        assert_eq!(samples.len(), 430, "{what}");
        let times: std::collections::BTreeSet<i64> = samples.iter().map(|(t, _)| *t).collect();
        assert_eq!(times.len(), 430, "{what}: no instant twice");
        assert!(samples.iter().all(|(t, v)| (*v == 1.0) == (t % 1_000 != 0)), "{what}: {samples:?}");
    };
    let ms = |seconds: f64| (seconds * 1e3).round() as i64;
    let tag = "tag=cpu.7.cpu_percent&from=0&to=4000000000";
    for round in ["in the head", "sealed"] {
        let query: Value = serde_json::from_str(&stage.get(&format!("/api/v1/query?{tag}")).body).expect("JSON");
        let points = query["series"][0]["points"].as_array().expect("points").iter();
        check(round, points.filter_map(|p| Some((ms(p[0].as_f64()?), p[1].as_f64()?))).collect());
        let csv = stage.get(&format!("/api/v1/export?format=openmetrics&{tag}")).body;
        let lines = csv.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let (rest, time) = line.rsplit_once(' ')?;
            Some((ms(time.parse().ok()?), rest.rsplit_once(' ')?.1.parse::<f64>().ok()? * 100.0))
        });
        check(round, lines.collect());
        let whole = stage.live().store().snapshot(0, i64::MIN, i64::MAX).expect("a source");
        let counted: u32 = whole.buckets(&[7], 60_000, false)[0].iter().map(|bucket| bucket.count).sum();
        assert_eq!(counted, 430, "{round}");
        stage.live().store().seal(0);
    }
    until("what is new is sent", || (sent() == 430).then_some(()));
    for own in receiver.samples().values() {
        assert!(own.len() == 430 && own.values().all(|values| values.len() == 1), "none twice");
    }
    assert_eq!(remote.counts.dropped.load(std::sync::atomic::Ordering::Relaxed), 0);
}
