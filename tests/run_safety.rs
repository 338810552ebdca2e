//! Tests attacks of other users on a job of `watchglass run`, and that a server's end loses no record.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use watchglass_tests::cgroup::MemoryGroup;
use watchglass_tests::server::{Server, as_user, binary, watchglass};
use watchglass_tests::waiting::{until, until_so};

/// User id of servers and jobs besides root.
const SERVICE: u32 = 54_321;
const OTHER: u32 = 54_322;

fn text(path: &Path) -> &str {
    path.to_str().expect("plain letters")
}

/// Waits for a run that meets a condition.
fn listed(server: &Server, what: &str, so: impl Fn(&Value) -> bool) -> Value {
    until(what, || {
        let all: Value = serde_json::from_str(&server.get("/api/v1/runs", &[]).body).expect("JSON");
        all["runs"].as_array().expect("a list").iter().find(|run| so(run)).cloned()
    })
}

fn sentence(server: &Server, id: &str, sentence: &str) -> Value {
    listed(server, sentence, |run| run["id"] == id && run["sentence"] == sentence)
}

/// The command `watchglass run` with these arguments, for a user with this state folder.
fn job(state: &Path, socket: &Path, words: &[&str]) -> Command {
    let mut command = watchglass(["run"]);
    command.args(words).env_remove("WATCHGLASS_RUN_ID").env("WATCHGLASS_SOCKET", socket).env("XDG_STATE_HOME", state);
    command
}

fn waits(mut job: Command) -> Child {
    job.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

/// Ends a job that waits for its input, and returns its status.
fn goes_on(mut job: Child) -> Option<i32> {
    drop(job.stdin.take());
    job.wait().expect("it ended").code()
}

#[test]
fn how_a_job_ended_outlives_a_server_that_died_before_it_took_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, state) = (folder.path().join("data"), folder.path().join("state"));
    let serve = || {
        let mut command = watchglass(["--collectors", "cpu", "--port", "0", "--data-dir", text(&data)]);
        command.env("XDG_STATE_HOME", &state);
        Server::start_command(command)
    };
    let socket = data.join("run.sock");
    let start = |id: &str| waits(job(&state, &socket, &["--id", id, "--", "sh", "-c", "read x; exit 5"]));
    let server = serve();
    let [away, queued] = ["away", "queued"].map(start);
    for id in ["away", "queued"] {
        sentence(&server, id, "running");
    }
    // It is suspended with messages in its queue, and is killed.
    server.signal("STOP");
    assert_eq!(goes_on(queued), Some(5));
    server.end_by("KILL");
    // The server is away when the other job ends.
    assert_eq!(goes_on(away), Some(5));
    let server = serve();
    sentence(&server, "queued", "failed (exit 5)");
    sentence(&server, "away", "failed (exit 5)");
    until_so("what was kept is taken", || fs::read_dir(data.join("runs")).expect("a folder").count() == 0);
    // No server ever listened. A server of this user finds the record, wherever its own folder is.
    server.end();
    assert_eq!(goes_on(start("alone")), Some(5));
    let server = serve();
    sentence(&server, "alone", "failed (exit 5)");
    until_so("it is taken", || fs::read_dir(state.join("watchglass/runs")).expect("a folder").count() == 0);
    assert_eq!(server.end().code(), Some(0));
}

/// A folder that others may enter, with a folder of the service in it.
fn service_folder() -> (tempfile::TempDir, PathBuf) {
    let open = tempfile::tempdir_in("/tmp").expect("a folder");
    fs::set_permissions(open.path(), PermissionsExt::from_mode(0o755)).expect("opened");
    let data = open.path().join("data");
    fs::create_dir(&data).expect("made");
    fs::set_permissions(&data, PermissionsExt::from_mode(0o700)).expect("set");
    chown(&data, Some(SERVICE), Some(SERVICE)).expect("given");
    (open, data)
}

/// Owner and mode of a path, without following links.
fn owner(path: &Path) -> (u32, u32, u32) {
    let found = path.symlink_metadata().expect("it is there");
    (found.uid(), found.gid(), found.mode() & 0o7777)
}

#[test]
#[ignore = "needs root, to be another user"]
fn with_root_a_job_of_root_gives_nothing_of_roots_to_the_user_of_the_server() {
    let (open, data) = service_folder();
    let server = as_user(SERVICE, binary(), |mut command| {
        command.args(["--collectors", "cpu", "--port", "0", "--data-dir", text(&data)]);
        command.env_remove("XDG_RUNTIME_DIR").env("XDG_STATE_HOME", "/dev/null");
        Server::start_command(command)
    });
    let secret = open.path().join("secret");
    fs::create_dir(&secret).expect("made");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o700)).expect("set");
    fs::write(secret.join("program"), "roots own").expect("written");
    let large = secret.join("large");
    fs::File::create(&large).and_then(|file| file.set_len(300 << 20)).expect("made");
    let before = [&secret, &secret.join("program"), &large].map(|path| owner(path));
    let run = |id: &str, data: &Path| {
        let words = ["run", "--data-dir", text(data), "--logs", "--id", id, "--", "echo", "printed"];
        let mut job = watchglass(words);
        job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        job.output().expect("it ran")
    };
    // The service places a link where root is to write.
    let logs = data.join("run-logs");
    fs::create_dir(&logs).expect("made");
    fs::set_permissions(&logs, PermissionsExt::from_mode(0o700)).expect("set");
    chown(&logs, Some(SERVICE), Some(SERVICE)).expect("given");
    symlink(&secret, logs.join("linked")).expect("a link");
    let linked = run("linked", &data);
    assert_eq!((linked.status.code(), linked.stdout.as_slice()), (Some(0), &b"printed\n"[..]));
    let said = String::from_utf8_lossy(&linked.stderr).into_owned();
    assert!(said.contains("it is a symbolic link"), "{said}");
    assert_eq!([&secret, &secret.join("program"), &large].map(|path| owner(path)), before);
    assert_eq!(fs::read_dir(&secret).expect("there").count(), 2, "nothing is made and nothing removed");
    // Without a link its lines belong to the service, as those of its own jobs.
    let plain = run("plain", &data);
    assert_eq!((plain.status.code(), plain.stderr.as_slice()), (Some(0), &b""[..]));
    assert_eq!(owner(&logs.join("plain")), (SERVICE, SERVICE, 0o700));
    let files: Vec<PathBuf> =
        fs::read_dir(logs.join("plain")).expect("there").flatten().map(|file| file.path()).collect();
    assert_eq!(files.iter().map(|file| owner(file)).collect::<Vec<_>>(), [(SERVICE, SERVICE, 0o600)]);
    until_so("its lines", || server.get("/api/v1/runs/plain/logs", &[]).body.contains("printed"));
    // Nor when no server listens, and root itself records the end.
    server.end_by("KILL");
    let runs = data.join("runs");
    fs::remove_dir_all(&runs).expect("removed");
    symlink(&secret, &runs).expect("a link");
    assert_eq!(run("away", &data).status.code(), Some(0));
    assert_eq!([&secret, &secret.join("program"), &large].map(|path| owner(path)), before);
    assert_eq!(fs::read_dir(&secret).expect("there").count(), 2);
}

#[test]
#[ignore = "needs root, to be another user"]
fn with_root_an_id_that_another_user_took_takes_no_run_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = tempfile::tempdir_in("/tmp").expect("a folder that others may enter");
    fs::set_permissions(open.path(), PermissionsExt::from_mode(0o755)).expect("opened");
    let (socket, config) = (open.path().join("run.sock"), folder.path().join("watchglass.toml"));
    fs::write(&config, format!("[runs]\nsocket = {socket:?}\nsocket_mode = \"0666\"\n")).expect("written");
    let data = folder.path().join("data");
    let server = Server::start(["--collectors", "cpu", "--data-dir", text(&data), "--config", text(&config)]);
    // Each user tries to stop and end the other's jobs by their ids, which can be guessed.
    let run_by = |uid: u32, status: &str| {
        let script = format!("exit {status}");
        as_user(uid, binary(), |mut command| {
            command.env_remove("WATCHGLASS_RUN_ID").env("WATCHGLASS_SOCKET", &socket).env("HOME", open.path());
            command.args(["run", "--id", "tomorrow", "--", "sh", "-c", &script]).output().expect("it ran")
        })
    };
    assert_eq!(run_by(OTHER, "0").status.code(), Some(0));
    sentence(&server, "tomorrow", "finished");
    for (uid, status) in [(0, "3"), (SERVICE, "4")] {
        let own = run_by(uid, status);
        assert_eq!(own.status.code(), status.parse().ok());
        let said = String::from_utf8_lossy(&own.stderr).into_owned();
        assert!(said.contains("another user has a run tomorrow; this one is listed as tomorrow-"), "{said}");
        let failed = format!("failed (exit {status})");
        let run = listed(&server, &failed, |run| run["sentence"] == failed.as_str());
        assert!(said.contains(run["id"].as_str().expect("an id")), "{said} {run}");
        assert_eq!(run["processes"].as_array().map(Vec::len), Some(1), "{run}");
    }
    let first = sentence(&server, "tomorrow", "finished");
    assert_eq!((&first["user"], first["processes"].as_array().map(Vec::len)), (&OTHER.to_string().into(), Some(1)));
}

#[test]
#[ignore = "needs root and a controller of memory, for a cgroup that two jobs share"]
fn with_cgroups_another_jobs_end_for_memory_is_not_taken_for_ones_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let server = Server::start(["--collectors", "cpu", "--data-dir", text(&data)]);
    let group = MemoryGroup::new("shared", 256 << 20);
    let within = |id: &str, words: &[&str]| {
        let job = job(folder.path(), &data.join("run.sock"), &[&["--id", id, "--"], words].concat());
        #[allow(clippy::disallowed_methods, reason = "a shell that enters a cgroup becomes the job")]
        let mut shell = Command::new("sh");
        let line = format!("echo $$ > {}; exec \"$@\"", group.entrance().display());
        shell.args(["-c", &line, "sh"]).arg(job.get_program()).args(job.get_args());
        shell.envs(job.get_envs().filter_map(|(name, value)| Some((name, value?)))).env_remove("WATCHGLASS_RUN_ID");
        shell
    };
    let killed = waits(within("killed", &["sh", "-c", "read x; kill -KILL $$"]));
    let failed = waits(within("failed", &["sh", "-c", "read x; exit 1"]));
    for id in ["killed", "failed"] {
        sentence(&server, id, "running");
    }
    let large = within("large", &["tail", "/dev/zero"]).output().expect("it ran");
    assert_eq!(large.status.signal(), Some(libc::SIGKILL), "{large:?}");
    listed(&server, "out of memory", |run| run["id"] == "large" && run["state"] == "out_of_memory");
    goes_on(killed);
    sentence(&server, "killed", "crashed (SIGKILL)");
    assert_eq!(goes_on(failed), Some(1));
    sentence(&server, "failed", "failed (exit 1)");
}
