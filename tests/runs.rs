//! Tests `watchglass run`: the job behaves as without it, and the list reports how it ended.
#![cfg(target_os = "linux")]

use fake_clock::FakeClock;
use serde_json::Value;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use watchglass_tests::cgroup::MemoryGroup;
use watchglass_tests::fleet::Fleet;
use watchglass_tests::server::{Server, ServerAnswer, as_user, ask_with, watchglass};
use watchglass_tests::terminal::Terminal;
use watchglass_tests::waiting::{until, until_so};

/// A server of a folder, and jobs that report to it.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a folder") }
    }

    fn data(&self) -> &str {
        self.folder.path().to_str().expect("plain letters")
    }

    fn server(&self) -> Server {
        Server::start(["--collectors", "cpu", "--data-dir", self.data()])
    }

    /// A server with a fake clock.
    fn server_by(&self, clock: &FakeClock) -> Server {
        let mut command = watchglass(["--collectors", "cpu", "--port", "0", "--data-dir", self.data()]);
        command.envs(clock.environment());
        Server::start_command(command)
    }

    /// The command `watchglass run` with these arguments.
    fn job(&self, words: &[&str]) -> Command {
        let mut command = watchglass(["run", "--data-dir", self.data()]);
        command.args(words).env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        command
    }

    /// Waits for a run that meets a condition.
    fn run(&self, server: &Server, id: &str, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        until(what, || {
            let all: Value = serde_json::from_str(&server.get("/api/v1/runs", &[]).body).expect("JSON");
            let runs = all["runs"].as_array().expect("a list").clone();
            runs.into_iter().find(|run| run["id"] == id && so(run))
        })
    }

    fn sentence(&self, server: &Server, id: &str, sentence: &str) -> Value {
        self.run(server, id, sentence, |run| run["sentence"] == sentence)
    }
}

/// The kernel's state of a process: `T` is stopped.
fn state_of(id: u32) -> char {
    let told = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it is there");
    told.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or_else(|| panic!("{told}"))
}

/// The only child of a process.
fn child_of(id: u32) -> u32 {
    until("a child", || {
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_ascii_whitespace().next().and_then(|id| id.parse().ok())
    })
}

fn kill(id: u32, signal: i32) {
    // SAFETY: it is a process of this test that was not waited for yet.
    assert_eq!(unsafe { libc::kill(id as libc::pid_t, signal) }, 0);
}

fn started(mut job: Command) -> Child {
    job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts")
}

#[test]
fn a_job_keeps_its_status_its_signal_and_its_streams_where_nobody_listens() {
    let bench = Bench::new();
    let status = |words: &[&str]| bench.job(words).output().expect("it ran").status;
    assert_eq!(status(&["--", "true"]).code(), Some(0));
    assert_eq!(status(&["--", "sh", "-c", "exit 3"]).code(), Some(3));
    assert_eq!(status(&["--", "sh", "-c", "kill -TERM $$"]).signal(), Some(libc::SIGTERM));
    // The reason stands beside the job's own output, not in it.
    let none = bench.job(&["--", "/no/such/program"]).output().expect("it ran");
    assert_eq!((none.status.code(), String::from_utf8_lossy(&none.stdout).as_ref()), (Some(127), ""));
    let why = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(why.starts_with("watchglass: /no/such/program cannot be run: ") && why.ends_with('\n'), "{why}");
    assert_eq!(status(&["--", "/"]).code(), Some(126));
    let said = bench.job(&["sh", "-c", "echo out; echo $WATCHGLASS_RUN_ID >&2; cat"]).stdin(Stdio::null()).output();
    let said = said.expect("it ran");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "out\n");
    let told = String::from_utf8_lossy(&said.stderr).into_owned();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines.iter().any(|line| line.contains("no watchglass listens on this machine")), "{told}");
    // No file can be written either, and the job still runs.
    let mut job = watchglass(["run", "--data-dir", "/dev/null/none", "--", "true"]);
    assert_eq!(job.output().expect("it ran").status.code(), Some(0));
}

#[test]
fn a_run_is_listed_with_its_names_and_how_it_ended() {
    let bench = Bench::new();
    let server = bench.server();
    let names = ["--name", "lr", "--project", "llm", "--tag", "a=b", "--id", "one"];
    let ended = bench.job(&[&names[..], &["--", "sh", "-c", "exit 3"]].concat()).output().expect("it ran");
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(3), &b""[..]), "who is told says nothing");
    let run = bench.sentence(&server, "one", "failed (exit 3)");
    assert_eq!((&run["name"], &run["project"], &run["tags"]["a"]), (&"lr".into(), &"llm".into(), &"b".into()));
    assert_eq!((&run["program"], &run["state"]), (&"sh".into(), &"failed".into()));
    let took = run["ended"].as_f64().expect("an end") - run["began"].as_f64().expect("a begin");
    assert!((0.0..60.0).contains(&took), "{took}");
    let listed = |words: &[&str]| {
        let words = [&["runs", "--data-dir", bench.data()], words].concat();
        let output = watchglass(words.iter().copied()).output().expect("it ran");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(listed(&[]).contains("■ failed (exit 3)"), "{}", listed(&[]));
    assert!(listed(&["--state", "crashed"]).contains("■ failed (exit 3)"), "one word means all ends by a fault");
    assert!(listed(&["--state", "failed"]).contains("one") && listed(&["--state", "timed_out"]).lines().count() == 1);
    assert!(listed(&["--state", "finished"]).lines().count() == 1 && listed(&["nothing"]).lines().count() == 1);
    assert!(listed(&["LR", "--project", "llm"]).contains("one"));
    assert!(listed(&["--group", "none"]).lines().count() == 1 && listed(&["--job-type", "none"]).lines().count() == 1);
    let wrong = server.get("/api/v1/runs?state=over", &[]);
    assert!(wrong.status == 400 && wrong.error().contains("states are running"), "{}", wrong.error());
    // A job that is ended by a signal from a user is canceled.
    let mut job = started(bench.job(&["--id", "two", "--", "sleep", "1000"]));
    bench.sentence(&server, "two", "running");
    kill(job.id(), libc::SIGTERM);
    assert_eq!(job.wait().expect("it ended").signal(), Some(libc::SIGTERM));
    bench.sentence(&server, "two", "cancelled (SIGTERM)");
}

/// Sends a signal to all of a process group.
fn kill_group(id: u32, signal: i32) {
    // SAFETY: it is the group of a process of this test that was not waited for yet.
    assert_eq!(unsafe { libc::kill(-(id as libc::pid_t), signal) }, 0);
}

#[test]
fn a_signal_that_all_of_a_group_get_reaches_the_job_once_and_any_other_is_passed_on() {
    use std::io::{BufRead, BufReader};
    let bench = Bench::new();
    let script = "trap 'echo term' TERM; trap 'echo cont' CONT; echo ready
                  while :; do sleep 1000 >/dev/null & wait; done";
    let start = |words: &[&str]| {
        let mut job = bench.job(&[&["--"][..], words, &["sh", "-c", script]].concat());
        let mut job = job.process_group(0).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let lines = BufReader::new(job.stdout.take().expect("a pipe")).lines();
        (job, lines.map(|line| line.expect("a line")))
    };
    let (mut job, mut lines) = start(&[]);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    // The arguments that `pkill -f` compares do not name the process beside the job.
    let id = job.id();
    let beside = until("the witness of signals", || {
        let all = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let mut all = all.split_ascii_whitespace().map(|child| format!("/proc/{child}"));
        all.find(|child| std::fs::read_to_string(format!("{child}/comm")).is_ok_and(|name| name == "wg-signals\n"))
    });
    until_so("no arguments", || {
        std::fs::read(format!("{beside}/cmdline")).is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    });
    until_so("no streams", || std::fs::read_dir(format!("{beside}/fd")).is_ok_and(|all| all.count() == 1));
    // The launcher gets the signal only when the job has long got it.
    kill(id, libc::SIGSTOP);
    until_so("it is stopped", || state_of(id) == 'T');
    kill_group(id, libc::SIGTERM);
    assert_eq!(lines.next().as_deref(), Some("term"));
    kill(id, libc::SIGCONT);
    assert_eq!(lines.next().as_deref(), Some("cont"), "SIGTERM comes before it, and is not passed on");
    kill(id, libc::SIGTERM);
    assert_eq!(lines.next().as_deref(), Some("term"), "the launcher alone got it");
    // `timeout` signals its child, and then the group. After the launcher has taken the first one, the second one is looked
    // for up to 0.2 s.
    let begin = std::time::Instant::now();
    kill(id, libc::SIGTERM);
    until_so("it is taken", || {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.lines().any(|line| line.strip_prefix("ShdPnd:").is_some_and(|mask| mask.trim() == "0000000000000000"))
    });
    kill_group(id, libc::SIGTERM);
    let is_in_time = begin.elapsed() < std::time::Duration::from_millis(100);
    kill(id, libc::SIGCONT);
    let said: Vec<String> = lines.by_ref().take_while(|line| line != "cont").collect();
    assert!(said == ["term"] || !is_in_time, "{said:?}");
    kill_group(id, libc::SIGKILL);
    job.wait().expect("it ended");
    // A job that has left the group is passed on what is sent there.
    let (mut job, mut lines) = start(&["setsid"]);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    kill_group(job.id(), libc::SIGTERM);
    assert_eq!(lines.next().as_deref(), Some("term"));
    kill_group(child_of(job.id()), libc::SIGKILL);
    job.wait().expect("it ended");
}

#[test]
fn a_job_within_a_run_is_of_that_run_and_the_first_to_fall_is_named() {
    let bench = Bench::new();
    let server = bench.server();
    let inner = bench.job(&["--", "sh", "-c", "kill -KILL $$"]);
    let mut words: Vec<String> = vec![inner.get_program().to_string_lossy().into_owned()];
    words.extend(inner.get_args().map(|word| word.to_string_lossy().replace("$$", r"\$\$")));
    let line = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" ");
    let script = format!("WATCHGLASS_LABEL=rank3 {line}; exit 1");
    let ended = bench.job(&["--id", "all", "--", "sh", "-c", &script]).output().expect("it ran");
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    let run = bench.run(&server, "all", "its end", |run| run["state"] == "failed");
    assert_eq!(run["processes"].as_array().map(Vec::len), Some(2), "{run}");
    let sentence = run["sentence"].as_str().expect("a sentence");
    assert!(sentence.starts_with("failed (exit 1); first rank3 on "), "{sentence}");
    assert!(sentence.ends_with(": crashed (SIGKILL)"), "{sentence}");
}

#[test]
fn the_kernel_tells_of_an_end_that_no_launcher_lived_to_tell() {
    let bench = Bench::new();
    let server = bench.server();
    let mut job = started(bench.job(&["--id", "left", "--", "sleep", "1000"]));
    let child = child_of(job.id());
    bench.sentence(&server, "left", "running");
    kill(job.id(), libc::SIGKILL);
    job.wait().expect("it ended");
    assert_eq!(bench.sentence(&server, "left", "running")["ended"], Value::Null, "the job goes on without it");
    kill(child, libc::SIGTERM);
    // Kernels before 6.15 report that it ended, but not how.
    let told = ["crashed (SIGTERM)", "ended for an unknown reason"];
    bench.run(&server, "left", "its end", |run| told.iter().any(|told| run["sentence"] == *told));
}

#[test]
fn runs_outlive_the_server_that_was_told_of_them() {
    let bench = Bench::new();
    // No server runs.
    bench.job(&["--id", "before", "--", "sh", "-c", "exit 5"]).output().expect("it ran");
    let server = bench.server();
    bench.sentence(&server, "before", "failed (exit 5)");
    let kept = Path::new(bench.data()).join("runs");
    until_so("what was kept is taken", || std::fs::read_dir(&kept).expect("a folder").count() == 0);
    let mut goes_on = started(bench.job(&["--id", "on", "--", "sleep", "1000"]));
    let mut meanwhile = started(bench.job(&["--id", "meanwhile", "--", "sleep", "1000"]));
    let mut alone = started(bench.job(&["--id", "alone", "--", "sleep", "1000"]));
    for id in ["on", "meanwhile", "alone"] {
        bench.sentence(&server, id, "running");
    }
    let orphan = child_of(alone.id());
    server.end_by("KILL");
    kill(meanwhile.id(), libc::SIGTERM);
    meanwhile.wait().expect("it ended");
    kill(alone.id(), libc::SIGKILL);
    alone.wait().expect("it ended");
    kill(orphan, libc::SIGKILL);
    until("the end of the job", || (!Path::new(&format!("/proc/{orphan}/stat")).exists()).then_some(()));
    let server = bench.server();
    bench.sentence(&server, "before", "failed (exit 5)");
    bench.sentence(&server, "meanwhile", "cancelled (SIGTERM)");
    bench.sentence(&server, "alone", "ended for an unknown reason");
    bench.sentence(&server, "on", "running");
    kill(child_of(goes_on.id()), libc::SIGSEGV);
    goes_on.wait().expect("it ended");
    bench.sentence(&server, "on", "crashed (SIGSEGV)");
}

#[test]
fn a_scheduler_says_why_a_job_ended() {
    let bench = Bench::new();
    let tool = bench.folder.path().join("scontrol");
    std::fs::write(&tool, "").expect("written");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
    // A job that scontrol does not know any more is still in Slurm's accounting.
    let forgets =
        "#!/bin/sh\n[ \"$3\" = GONE ] && { echo 'slurm_load_jobs error: Invalid job id specified'; exit 1; }\n";
    std::fs::write(
        &tool,
        format!("{forgets}echo \"JobId=1 JobState=TIMEOUT\n\nJobId=$3 JobName=x\n   JobState=$3 Reason=None\"\n"),
    )
    .expect("written");
    let kept = bench.folder.path().join("sacct");
    let row = "GONE|CANCELLED by 1000|2020-01-01T00:00:00|Unknown";
    std::fs::write(&kept, format!("#!/bin/sh\n[ \"$8\" = GONE ] && echo '{row}'\n")).expect("written");
    std::fs::set_permissions(&kept, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a program");
    let config = bench.folder.path().join("watchglass.toml");
    std::fs::write(&config, format!("[runs]\nscontrol = {tool:?}\n")).expect("written");
    let config = config.to_str().expect("plain letters");
    let server = Server::start(["--collectors", "cpu", "--data-dir", bench.data(), "--config", config]);
    let job = |id: &str, script: &str| {
        let mut job = bench.job(&["--id", id, "--", "sh", "-c", script]);
        job.env("SLURM_JOB_ID", id).output().expect("it ran");
    };
    let words = ["PREEMPTED", "TIMEOUT", "NODE_FAIL", "CANCELLED", "OUT_OF_MEMORY", "FAILED", "GONE"];
    words.iter().for_each(|word| job(word, "kill -TERM $$"));
    job("COMPLETED", "exit 0");
    for (id, state, sentence) in [
        ("PREEMPTED", "preempted", "preempted (Slurm: PREEMPTED)"),
        ("TIMEOUT", "timed_out", "out of time (Slurm: TIMEOUT)"),
        ("NODE_FAIL", "node_failed", "node failed (Slurm: NODE_FAIL)"),
        ("CANCELLED", "cancelled", "cancelled (Slurm: CANCELLED)"),
        ("OUT_OF_MEMORY", "out_of_memory", "out of memory (Slurm: OUT_OF_MEMORY)"),
        ("FAILED", "crashed", "crashed (SIGTERM)"),
        ("GONE", "cancelled", "cancelled (Slurm: CANCELLED)"),
        ("COMPLETED", "finished", "finished"),
    ] {
        assert_eq!(bench.sentence(&server, id, sentence)["state"], state);
    }
}

#[test]
fn a_job_that_is_stopped_is_suspended_and_one_that_says_so_is_preempted() {
    let bench = Bench::new();
    let server = bench.server();
    let mut job = started(bench.job(&["--id", "paused", "--", "sleep", "1000"]));
    let child = child_of(job.id());
    bench.sentence(&server, "paused", "running");
    kill(child, libc::SIGSTOP);
    assert_eq!(bench.sentence(&server, "paused", "suspended")["state"], "suspended");
    kill(child, libc::SIGCONT);
    bench.sentence(&server, "paused", "running");
    kill(child, libc::SIGKILL);
    job.wait().expect("it ended");
    bench.sentence(&server, "paused", "crashed (SIGKILL)");
    let own = watchglass(["mark"]);
    let script = format!("{} mark 'room for others' --kind preempting; exit 0", own.get_program().to_string_lossy());
    bench.job(&["--id", "makes-room", "--", "sh", "-c", &script]).output().expect("it ran");
    assert_eq!(bench.sentence(&server, "makes-room", "preempted (reported by the job)")["state"], "preempted");
}

#[test]
fn where_ranks_are_not_looked_for_a_run_is_the_process_that_was_told_of() {
    let bench = Bench::new();
    let config = bench.folder.path().join("watchglass.toml");
    std::fs::write(&config, "[runs]\ndetect = \"off\"\n").expect("written");
    let config = config.to_str().expect("plain letters");
    let server = Server::start(["--collectors", "cpu", "--data-dir", bench.data(), "--config", config]);
    let script = "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 sleep 1000 & wait";
    let mut job = started(bench.job(&["--id", "alone", "--", "sh", "-c", script]));
    let child = child_of(job.id());
    bench.sentence(&server, "alone", "running");
    kill(child, libc::SIGSTOP);
    // A check for a stopped process would have searched for ranks by then.
    let run = bench.sentence(&server, "alone", "suspended");
    assert_eq!(run["processes"].as_array().map(Vec::len), Some(1), "{run}");
    assert!(run["processes"][0]["rank"].is_null(), "{run}");
    kill(child_of(child), libc::SIGKILL);
    kill(child, libc::SIGKILL);
    job.wait().expect("it ended");
}

#[test]
#[ignore = "needs root, to be another user"]
fn with_root_jobs_of_other_users_are_told_of_and_nobody_speaks_for_another() {
    const OTHER: u32 = 54321;
    let bench = Bench::new();
    let open = tempfile::tempdir_in("/tmp").expect("a folder that others may enter");
    std::fs::set_permissions(open.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("opened");
    let (socket, config) = (open.path().join("run.sock"), bench.folder.path().join("watchglass.toml"));
    let settings = format!("[runs]\nsocket = \"{}\"\nsocket_mode = \"0666\"\n", socket.display());
    std::fs::write(&config, settings).expect("written");
    let config = config.to_str().expect("plain letters");
    let server = Server::start(["--collectors", "cpu", "--data-dir", bench.data(), "--config", config]);
    let by_other = |words: &[&str]| {
        as_user(OTHER, watchglass_tests::server::binary(), |mut command| {
            command.env_remove("WATCHGLASS_RUN_ID").env("WATCHGLASS_SOCKET", &socket).env("HOME", open.path());
            command.args(words).output().expect("it ran")
        })
    };
    let failed = by_other(&["run", "--id", "of-other", "--", "sh", "-c", "exit 3"]);
    assert_eq!(failed.status.code(), Some(3), "{failed:?}");
    let run = bench.sentence(&server, "of-other", "failed (exit 3)");
    assert_eq!(run["user"], OTHER.to_string(), "as the kernel says: {run}");
    let mut job = started(bench.job(&["--id", "of-root", "--config", config, "--", "sleep", "1000"]));
    bench.sentence(&server, "of-root", "running");
    // It tries to join a run of root, to alert for one, and to have its output kept. All of that is denied.
    let joined = by_other(&["run", "--id", "of-root", "--logs", "--", "sh", "-c", "echo printed; exit 4"]);
    assert_eq!((joined.status.code(), joined.stdout.as_slice()), (Some(4), &b"printed\n"[..]), "its job runs");
    let said = String::from_utf8_lossy(&joined.stderr).into_owned();
    assert!(said.contains("this server does not record the output of other users' jobs"), "{said}");
    // Nor by its environment, as far as that can be read.
    let script = "WATCHGLASS_RUN_ID=of-root RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 sleep 1000 & wait";
    let mut named = as_user(OTHER, watchglass_tests::server::binary(), |mut command| {
        command.env_remove("WATCHGLASS_RUN_ID").env("WATCHGLASS_SOCKET", &socket).env("HOME", open.path());
        command.args(["run", "--id", "named", "--", "sh", "-c", script]);
        started(command)
    });
    let ranked =
        |run: &Value| run["processes"].as_array().is_some_and(|all| all.iter().any(|one| !one["rank"].is_null()));
    bench.run(&server, "named", "the rank is of the run below which it stands", ranked);
    kill(child_of(child_of(named.id())), libc::SIGKILL);
    named.wait().expect("it ended");
    let alerted = by_other(&["alert", "of root", "--run", "of-root"]);
    assert_eq!(alerted.status.code(), Some(1), "{alerted:?}");
    assert!(String::from_utf8_lossy(&alerted.stderr).contains("no such run on this machine"), "{alerted:?}");
    // It waits for less than a second, and a loaded machine may take longer.
    until_so("one of the machine is taken", || by_other(&["alert", "of the machine"]).status.success());
    // Messages that were sent before have arrived by then.
    by_other(&["run", "--id", "last", "--", "true"]);
    bench.sentence(&server, "last", "finished");
    let run = bench.sentence(&server, "of-root", "running");
    assert_eq!((&run["user"], run["processes"].as_array().map(Vec::len)), (&"root".into(), Some(1)), "{run}");
    kill(child_of(job.id()), libc::SIGKILL);
    job.wait().expect("it ended");
}

#[test]
fn a_run_is_renamed_and_deleted_by_the_owner_and_its_late_report_changes_nothing() {
    let bench = Bench::new();
    let server = bench.server();
    let command = |words: &[&str]| {
        let output = watchglass([words, &["--data-dir", bench.data()]].concat()).output().expect("it ran");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let mut job = started(bench.job(&["--id", "one", "--name", "first", "--", "sleep", "1000"]));
    bench.sentence(&server, "one", "running");
    let (status, said) = command(&["runs", "edit", "one", "--name", "lr 3e-4", "--tag", "lr=3e-4", "--group", "sweep"]);
    assert_eq!((status, said.trim()), (Some(0), "one has been changed."), "{said}");
    let (status, said) = command(&["runs", "edit", "one", "--notes", "a\u{7}b"]);
    assert!(status == Some(2) && said.contains("--notes"), "{said}");
    let (status, said) = command(&["runs", "edit", "one"]);
    assert!(status == Some(2) && said.contains("the change is empty"), "{said}");
    let (status, said) = command(&["runs", "edit", "none", "--name", "x"]);
    assert!(status != Some(0) && said.contains("none"), "{said}");
    let named = |run: &Value| (&run["name"] == "lr 3e-4") && run["tags"]["lr"] == "3e-4" && run["group"] == "sweep";
    bench.run(&server, "one", "its new names", named);
    let (status, said) = command(&["erase", "--run", "one"]);
    assert!(status != Some(0) && said.contains("has not ended"), "{said}");
    // Its end is reported only after the next start.
    server.end_by("KILL");
    kill(job.id(), libc::SIGTERM);
    job.wait().expect("it ended");
    let server = bench.server();
    let run = bench.sentence(&server, "one", "cancelled (SIGTERM)");
    assert!(named(&run), "the names outlive the server: {run}");
    assert_eq!(command(&["erase", "--run", "one"]).0, Some(0));
    let listed = |server: &Server| server.get("/api/v1/runs", &[]).body;
    assert!(!listed(&server).contains("\"one\""), "{}", listed(&server));
    server.end_by("KILL");
    let server = bench.server();
    bench.job(&["--id", "two", "--", "true"]).output().expect("it ran");
    bench.sentence(&server, "two", "finished");
    assert!(!listed(&server).contains("\"one\""), "{}", listed(&server));
    // The ID stays that of the deleted run: the job gets one of its own.
    let said = bench.job(&["--id", "one", "--", "true"]).output().expect("it ran").stderr;
    let said = String::from_utf8_lossy(&said).into_owned();
    let (_, own) = said.split_once("a run has the ID one already; this one is ").expect("the ID of the job");
    let again = bench.sentence(&server, own.trim(), "finished");
    assert_eq!((&again["processes"].as_array().map(Vec::len), &again["name"]), (&Some(1), &Value::Null), "{again}");
}

/// Reports by a request.
fn post_report(server: &Server, path: &str, body: &Value) -> ServerAnswer {
    let (host, body) = (server.addr(), body.to_string());
    let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n");
    ask_with(host, &format!("{head}Content-Length: {}\r\n", body.len()), &body)
}

#[test]
fn a_launcher_without_our_binary_tells_of_its_run_by_requests() {
    use serde_json::json;
    let bench = Bench::new();
    let own = tempfile::tempdir().expect("a folder");
    let clock = FakeClock::new(own.path());
    let server = bench.server_by(&clock);
    let begun = post_report(&server, "/api/v1/runs", &json!({ "name": "lr", "project": "llm", "tags": { "a": "b" } }));
    assert_eq!(begun.status, 201, "{}", begun.body);
    let id = serde_json::from_str::<Value>(&begun.body).expect("JSON")["id"].as_str().expect("an id").to_string();
    let run = bench.sentence(&server, &id, "running (as reported)");
    assert_eq!((&run["name"], &run["tags"]["a"], &run["state"]), (&"lr".into(), &"b".into(), &"running".into()));
    let silent = json!({ "id": "silent" });
    let statuses = [0, 1].map(|_| post_report(&server, "/api/v1/runs", &silent).status);
    assert_eq!(statuses, [201, 200], "once more it is the same");
    let event = |id: &str, body: Value| {
        let answer = post_report(&server, &format!("/api/v1/runs/{id}/events"), &body);
        (answer.status, if answer.status == 200 { String::new() } else { answer.error() })
    };
    assert_eq!(event(&id, json!({ "event": "heartbeat" })).0, 200);
    assert!(event(&id, json!({ "event": "end" })).1.contains("one of exit, signal and state"));
    assert_eq!(event(&id, json!({ "event": "end", "exit": 3 })).0, 200);
    assert_eq!(bench.sentence(&server, &id, "failed (exit 3, by report)")["state"], "failed");
    let (status, why) = event(&id, json!({ "event": "heartbeat" }));
    assert!(status == 404 && why.contains("POST api/v1/runs"), "{why}");
    let wrong = post_report(&server, "/api/v1/runs", &json!({ "id": "../x" }));
    assert!(wrong.status == 400 && wrong.error().contains("letters, digits"), "{}", wrong.error());
    // The kernel is the source for a run with processes here, and no request is.
    let mut job = started(bench.job(&["--id", "own", "--", "sleep", "1000"]));
    bench.sentence(&server, "own", "running");
    assert_eq!(post_report(&server, "/api/v1/runs", &json!({ "id": "own" })).status, 409);
    assert_eq!(event("own", json!({ "event": "end", "exit": 0 })).0, 404);
    kill(job.id(), libc::SIGTERM);
    job.wait().expect("it ended");
    // A minute of silence is not an end, and the next heartbeat clears it. A restarted server continues the run.
    clock.pass(61_000);
    until_so("it is not reporting", || server.get("/api/v1/runs", &[]).body.contains("its launcher is not reporting"));
    assert_eq!(event("silent", json!({ "event": "heartbeat" })).0, 200);
    bench.sentence(&server, "silent", "running (as reported)");
    server.end_by("KILL");
    let server = bench.server_by(&clock);
    bench.sentence(&server, "silent", "running (as reported)");
    let end = json!({ "event": "end", "signal": "SIGKILL" });
    assert_eq!(post_report(&server, "/api/v1/runs/silent/events", &end).status, 200);
    bench.sentence(&server, "silent", "crashed (SIGKILL, by report)");
    let nowhere = Server::start(["--collectors", "cpu"]);
    assert_eq!(post_report(&nowhere, "/api/v1/runs", &silent).status, 409, "nothing is kept there");
}

#[test]
fn the_silence_of_an_agent_is_no_end_of_its_jobs() {
    let (mut fleet, clock) = Fleet::by_clock();
    fleet.start_agent();
    fleet.grows("the hub has samples of the agent");
    let agent = fleet.agent_folder().to_str().expect("plain letters").to_string();
    let mut job = watchglass(["run", "--data-dir", &agent, "--id", "goes-on", "--", "sleep", "1000"]);
    job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
    let mut job = started(job);
    let child = child_of(job.id());
    let listed = |fleet: &Fleet, words: &str| {
        let is_so = |line: &str| line.starts_with("goes-on") && line.contains(words);
        fleet.until(words, || fleet.administer(&["runs"]).lines().any(is_so).then_some(()));
    };
    listed(&fleet, "running");
    fleet.lose_agent();
    // A machine is reported as silent after a minute.
    clock.pass(61_000);
    listed(&fleet, "is not reporting");
    fleet.start_agent();
    listed(&fleet, "running");
    kill(child, libc::SIGKILL);
    job.wait().expect("it ended");
    listed(&fleet, "crashed (SIGKILL)");
}

#[test]
fn an_id_that_a_run_has_already_makes_another_run_and_says_so() {
    let bench = Bench::new();
    let server = bench.server();
    let first = started(bench.job(&["--id", "twice", "--", "sleep", "1000"]));
    bench.sentence(&server, "twice", "running");
    let second = bench.job(&["--id", "twice", "--", "sh", "-c", "echo $WATCHGLASS_RUN_ID; exit 3"]).output();
    let second = second.expect("it ran");
    let id = String::from_utf8_lossy(&second.stdout).trim().to_string();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&format!("a run has the ID twice already; this one is {id}")), "{said}");
    assert!(id.starts_with("twice-"), "{id}");
    bench.sentence(&server, &id, "failed (exit 3)");
    bench.sentence(&server, "twice", "running");
    kill(first.id(), libc::SIGTERM);
    let mut first = first;
    first.wait().expect("it ended");
    bench.sentence(&server, "twice", "cancelled (SIGTERM)");
    // Also after the first has ended. A process that names the run in its environment joins it as before.
    let third = bench.job(&["--id", "twice", "--", "true"]).output().expect("it ran");
    assert!(String::from_utf8_lossy(&third.stderr).contains("a run has the ID twice already"));
}

#[test]
fn the_tasks_that_srun_starts_are_one_run_without_an_outer_one() {
    let bench = Bench::new();
    let server = bench.server();
    let task = |number: &str, script: &str| {
        let mut job = bench.job(&["--", "sh", "-c", script]);
        job.envs([("SLURM_JOB_ID", "42"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "2"), ("SLURM_PROCID", number)]);
        job
    };
    // A further task may begin before the first one.
    let mut second = started(task("1", "exec sleep 1000"));
    bench.run(&server, "slurm-42-0", "the second task", |run| {
        run["processes"].as_array().is_some_and(|all| all.len() == 1)
    });
    let mut first = started(task("0", "exec sleep 1000"));
    let ranks = |run: &Value| -> Vec<u64> {
        let all = run["processes"].as_array().into_iter().flatten();
        let mut ranks: Vec<u64> = all.filter_map(|one| one["rank"]["rank"].as_u64()).collect();
        ranks.sort_unstable();
        ranks
    };
    let run = bench.run(&server, "slurm-42-0", "both as ranks", |run| ranks(run) == [0, 1]);
    assert_eq!(run["state"], "running", "{run}");
    kill(child_of(second.id()), libc::SIGKILL);
    second.wait().expect("it ended");
    kill(child_of(first.id()), libc::SIGTERM);
    first.wait().expect("it ended");
    let run = bench.run(&server, "slurm-42-0", "its end", |run| run["ended"].is_number());
    assert_eq!((&run["state"], &run["cause"]["rank"]), (&"crashed".into(), &1.into()), "{run}");
    // One task alone is a run like any other.
    let mut alone = bench.job(&["--", "sh", "-c", "echo $WATCHGLASS_RUN_ID"]);
    alone.envs([("SLURM_JOB_ID", "43"), ("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "1"), ("SLURM_PROCID", "0")]);
    let id = alone.output().expect("it ran").stdout;
    assert!(!id.starts_with(b"slurm-"), "{}", String::from_utf8_lossy(&id));
}

#[test]
fn a_run_shows_what_slurm_reserved_beside_what_it_used() {
    let bench = Bench::new();
    let server = Server::start(["--collectors", "cpu,processes", "--data-dir", bench.data()]);
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    let mut job = bench.job(&["--id", "asked", "--", "sh", "-c", "while :; do :; done"]);
    let (start, end) = ((now - 600).to_string(), (now + 3_000).to_string());
    job.envs([("SLURM_JOB_ID", "42"), ("SLURM_JOB_GPUS", "0,1"), ("SLURM_CPUS_ON_NODE", "4")]);
    job.envs([("SLURM_MEM_PER_NODE", "2048"), ("SLURM_JOB_START_TIME", &start), ("SLURM_JOB_END_TIME", &end)]);
    let mut job = started(job);
    let run = until("its use", || {
        let run: Value = serde_json::from_str(&server.get("/api/v1/runs/asked", &[]).body).ok()?;
        let is_used =
            run["cores_peak"].as_f64().is_some_and(|cores| cores > 0.05) && run["memory_peak_bytes"].is_number();
        is_used.then_some(run)
    });
    let reserved = &run["reserved"];
    assert_eq!((&reserved["by"], &reserved["gpus"], &reserved["cores"]), (&"slurm".into(), &2.into(), &4.into()));
    assert_eq!((&reserved["memory_bytes"], &reserved["limit_seconds"]), (&(2_u64 << 30).into(), &3_600.into()));
    assert!(reserved["used_seconds"].as_f64().is_some_and(|used| (600.0..1_200.0).contains(&used)), "{run}");
    let memory = run["memory_peak_bytes"].as_f64().expect("a number");
    assert!(memory > 100_000.0 && memory < 50e6, "the memory of a shell: {memory}");
    assert!(run["gpus"].is_null(), "no process holds one: {run}");
    let report = server.get("/api/v1/runs/asked/report", &[]).body;
    for said in ["of 4 reserved on average", "of 2 GiB reserved at most", "of 1 h used", "2 reserved</td>"] {
        assert!(report.contains(said), "{said}: {report}");
    }
    // A run counts in the usage of GPUs although it never held one.
    let usage = watchglass(["usage", "--by", "run", "--data-dir", bench.data()]).output().expect("it ran");
    let usage = String::from_utf8_lossy(&usage.stdout).into_owned();
    assert!(usage.contains("RESERVED") && usage.contains("asked"), "{usage}");
    let usage: Value = serde_json::from_str(&server.get("/api/v1/usage/runs?by=run", &[]).body).expect("JSON");
    assert!(usage["rows"][0]["reserved_gpu_hours"].as_f64().is_some_and(|hours| hours > 0.0), "{usage}");
    assert_eq!((&usage["rows"][0]["gpu_hours"], &usage["rows"][0]["partial"]), (&0.into(), &false.into()), "{usage}");
    kill(child_of(job.id()), libc::SIGKILL);
    job.wait().expect("it ended");
}

#[test]
fn a_run_is_a_question_about_its_time_its_machines_and_its_gpus() {
    let bench = Bench::new();
    let server = bench.server();
    let samples = || -> Vec<Value> {
        let answer = server.get("/api/v1/query?run=asked&tag=system.cpu_percent", &[]);
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        answer["series"][0]["points"].as_array().cloned().unwrap_or_default()
    };
    // It goes on until there is a sample of its time, however late that is.
    let mut job = bench.job(&["--id", "asked", "--name", "lr", "--", "sh", "-c", "read line; exit 0"]);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    until_so("a sample", || samples().len() > 1);
    drop(job.stdin.take());
    job.wait().expect("it ended");
    let run = bench.sentence(&server, "asked", "finished");
    let (began, ended) = (run["began"].as_f64().expect("a begin"), run["ended"].as_f64().expect("an end"));
    until_so("the first sample after its end", || {
        let sources = server.get("/api/v1/sources", &[]).body;
        let sources: Value = serde_json::from_str(&sources).expect("JSON");
        sources["sources"][0]["last"].as_f64().is_some_and(|last| last > ended)
    });
    let points = samples();
    let times: Vec<f64> = points.iter().map(|point| point[0].as_f64().expect("a time")).collect();
    assert!(times.iter().all(|t| (began..=ended).contains(t)), "{times:?} of {began} to {ended}");
    let csv = server.get("/api/v1/export?run=asked&tag=system.cpu_percent", &[]);
    assert_eq!((csv.status, csv.body.lines().count()), (200, points.len() + 1));
    let none = server.get("/api/v1/query?run=nobody&tag=cpu", &[]);
    assert!(none.status == 404 && none.error().contains("api/v1/runs lists"), "{}", none.error());
    let page = || server.get("/metrics", &[]).body;
    assert!(!page().contains("watchglass_run_info"), "it has ended");
    let mut job = started(bench.job(&["--id", "runs-now", "--name", "a \"b\"", "--", "sleep", "1000"]));
    let row = "watchglass_run_info{run=\"runs-now\",state=\"running\",name=\"a \\\"b\\\"\",user=\"";
    until("its row", || page().lines().any(|line| line.starts_with(row) && line.ends_with("\"} 1")).then_some(()));
    kill(job.id(), libc::SIGTERM);
    job.wait().expect("it ended");
    until("no row", || (!page().contains("watchglass_run_info")).then_some(()));
}

#[test]
fn a_run_has_a_report_also_when_its_samples_have_gone() {
    let bench = Bench::new();
    let own = tempfile::tempdir().expect("a folder");
    let clock = FakeClock::new(own.path());
    let server = bench.server_by(&clock);
    // It goes on until there are samples of its time, however late they are.
    let words = ["--id", "told", "--name", "a<b", "--", "sh", "-c", "sleep 3; read line; exit 3"];
    let begin = std::time::Instant::now();
    let mut job = bench.job(&words);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    until_so("samples", || {
        let answer = server.get("/api/v1/query?run=told&tag=system.cpu_percent", &[]);
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        answer["series"][0]["points"].as_array().is_some_and(|points| points.len() > 1)
    });
    drop(job.stdin.take());
    job.wait().expect("it ended");
    bench.sentence(&server, "told", "failed (exit 3)");
    let report = |server: &Server| {
        until("a report with its curves", || {
            let answer = server.get("/api/v1/runs/told/report", &[]);
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer.body.contains("<svg").then_some(answer.body)
        })
    };
    let html = report(&server);
    assert!(
        html.contains("failed (exit 3)") && html.contains("<h1>a&lt;b</h1>") && !html.contains("<script"),
        "{html}"
    );
    let json: Value =
        serde_json::from_str(&server.get("/api/v1/runs/told/report?format=json", &[]).body).expect("JSON");
    assert_eq!(
        (&json["id"], &json["state"], &json["sentence"]),
        (&"told".into(), &"failed".into(), &"failed (exit 3)".into())
    );
    assert!(json["curves"].as_array().is_some_and(|curves| !curves.is_empty()), "{json}");
    let most = begin.elapsed().as_secs_f64() + 1.0;
    assert!((3.0..most).contains(&json["seconds"].as_f64().expect("a time")), "{json}");
    let none = server.get("/api/v1/runs/nobody/report", &[]);
    assert!(none.status == 404 && none.error().contains("api/v1/runs lists"), "{}", none.error());
    let printed = |json: bool| {
        let mut command = watchglass(["runs", "--data-dir", bench.data(), "report", "told"]);
        command.args(json.then_some("--json"));
        String::from_utf8_lossy(&command.output().expect("it ran").stdout).into_owned()
    };
    assert!(printed(false).starts_with("<!doctype html>") && printed(true).contains("\"curves\""));
    let kept = Path::new(bench.data()).join("ended-runs");
    // A run that has just ended is not settled yet.
    clock.pass(30_000);
    until_so("a summary is kept", || kept.join("told.json").exists());
    server.end_by("KILL");
    for entry in std::fs::read_dir(bench.data()).expect("a folder").flatten().filter(|entry| entry.path() != kept) {
        let path = entry.path();
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }.expect("removed");
    }
    let server = bench.server_by(&clock);
    bench.sentence(&server, "told", "failed (exit 3)");
    assert!(report(&server).contains("failed (exit 3)"));
}

#[test]
fn a_marker_is_of_the_run_that_the_kernel_names() {
    let bench = Bench::new();
    let mark = |words: &[&str]| {
        let mut command = watchglass(["mark", "--data-dir", bench.data()]);
        command.args(words).env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        let output = command.output().expect("it ran");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, line) = mark(&["epoch 1"]);
    assert_eq!((status, line.lines().count()), (Some(0), 1), "a script goes on: {line}");
    assert!(line.contains("no watchglass listens on this machine"), "{line}");
    let server = bench.server();
    assert_eq!(mark(&["epoch 2", "--kind", "epoch"]), (Some(0), String::new()));
    assert_eq!(mark(&["x", "--kind", "over"]).0, Some(2));
    assert_eq!(mark(&["by hand", "--run", "other", "--step", "9"]), (Some(0), String::new()));
    // From within a job, by the command, and by one datagram without a library. The run that the sender claims is
    // ignored.
    let own = watchglass(["mark"]);
    let program = own.get_program().to_string_lossy();
    let datagram = "import os, socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); \
                    s.sendto(b'from python', os.environ['WATCHGLASS_SOCKET']); sys.stdin.read()";
    let script = format!(
        "WATCHGLASS_RUN_ID=another {program} mark 'epoch 3' --step 1200; {program} mark 'epoch 4' --step 1300; \
         exec python3 -c \"{datagram}\""
    );
    let mut job = bench.job(&["--id", "marked", "--", "sh", "-c", &script]);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let markers = |query: &str| {
        let all: Value = serde_json::from_str(&server.get(query, &[]).body).expect("JSON");
        all["markers"].as_array().expect("a list").clone()
    };
    let own = until("its markers", || {
        let own = markers("/api/v1/markers?run=marked");
        (own.len() == 3).then_some(own)
    });
    let texts: Vec<&Value> = own.iter().map(|one| &one["text"]).collect();
    assert_eq!(texts, ["epoch 3", "epoch 4", "from python"]);
    assert_eq!((&own[0]["step"], &own[0]["kind"]), (&1200.into(), &"note".into()));
    assert_eq!(markers("/api/v1/markers?run=other")[0]["step"], 9);
    assert_eq!(markers("/api/v1/markers?kind=epoch")[0]["run"], Value::Null, "outside of a run it is the machine's");
    drop(job.stdin.take());
    assert!(job.wait().expect("it ended").success());
}

/// All files below a folder that contain these bytes.
fn files_with(folder: &Path, part: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files_with(&path, part)),
            false => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                if bytes.windows(part.len()).any(|bytes| bytes == part.as_bytes()) {
                    found.push(path);
                }
            }
        }
    }
    found
}

#[test]
fn ranks_are_found_by_themselves_and_which_fell_first_is_said() {
    const CANARY: &str = "canary-of-the-environment";
    let bench = Bench::new();
    let server = Server::start(["--collectors", "cpu,processes", "--data-dir", bench.data()]);
    // A launcher like torchrun: when a rank fails it ends the others, and itself with a plain status.
    let rank = |n: u32| {
        let world = "WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none MASTER_ADDR=localhost MASTER_PORT=29500";
        let canaries =
            ["HF_TOKEN", "WANDB_API_KEY", "WATCHGLASS_KEY", "SLURM_JWT", "AWS_SECRET_ACCESS_KEY", "PET_TOKEN"];
        let canaries = canaries.map(|name| format!("{name}={CANARY}")).join(" ");
        format!("RANK={n} LOCAL_RANK={n} CUDA_VISIBLE_DEVICES=4,6 {world} {canaries} WANDB_TAGS=a,b sleep 1000 &")
    };
    let script = format!("{} first=$!; {} wait $!; kill $first; wait; exit 1", rank(0), rank(1));
    let mut job = started(bench.job(&["--id", "ranks", "--", "sh", "-c", &script]));
    let ranks = |run: &Value| {
        let all = run["processes"].as_array().expect("a list").iter();
        let mut ranks: Vec<(Value, u32)> = all
            .filter(|one| !one["rank"].is_null())
            .map(|one| (one["rank"].clone(), one["pid"].as_u64().expect("a number") as u32))
            .collect();
        ranks.sort_by_key(|(rank, _)| rank["rank"].as_u64());
        ranks
    };
    let run = bench.run(&server, "ranks", "its ranks", |run| ranks(run).len() == 2);
    assert_eq!(run["processes"].as_array().map(Vec::len), Some(3), "{run}");
    let found = ranks(&run);
    let of = |n: u32, gpu: u32| {
        serde_json::json!({
            "rank": n, "launcher": "torch", "world": 2, "local": n, "gpus": [gpu], "assumed": true,
        })
    };
    assert_eq!((&found[0].0, &found[1].0), (&of(0, 4), &of(1, 6)));
    // Each has a line on the charts of processes, whose label joins it with its run.
    until("series of each rank", || {
        let told = server.get("/api/v1/query?run=ranks", &[]).body;
        let has = |tag: &str| (0..2).all(|n| told.contains(&format!("\"{tag}/l:rank_{n}\"")));
        (has("cpu") && has("proc.memory.rssMB") && has("proc.cpu.threads")).then_some(())
    });
    // The page of the run draws them, because no GPU of the ranks is measured.
    until("lines of its ranks", || {
        let run: Value = serde_json::from_str(&server.get("/api/v1/runs/ranks", &[]).body).expect("JSON");
        let all = run["curves"]["measures"].as_array().cloned().unwrap_or_default();
        let lines = |id: &str| {
            let of = all.iter().find(|one| one["id"] == id).and_then(|one| one["lines"].as_array());
            of.map_or(0, Vec::len)
        };
        (lines("rank_cpu") == 2 && lines("rank_memory") == 2).then_some(())
    });
    let metrics = server.get("/metrics", &[]).body;
    assert!(metrics.contains("watchglass_run_info{run=\"ranks\",state=\"running\""), "{metrics}");
    let joined = |line: &str| line.starts_with("watchglass_rank_run{") && line.ends_with("rank=\"1\",run=\"ranks\"} 1");
    assert!(metrics.lines().any(joined), "{metrics}");
    let wire = ["runs/ranks", "processes", "doctor", "live?format=json", "runs/ranks/report", "export?tag=*"];
    for asked in wire {
        let told = server.get(&format!("/api/v1/{asked}"), &[]).body;
        assert!(!told.contains(CANARY) && told.len() > 20, "{asked}: {told}");
    }
    kill(found[1].1, libc::SIGKILL);
    assert_eq!(job.wait().expect("it ended").code(), Some(1));
    let over = |run: &Value| run["state"] == "failed" && !ranks(run).is_empty();
    let all_over = |run: &Value| {
        over(run) && run["processes"].as_array().is_some_and(|all| all.iter().all(|one| !one["ended"].is_null()))
    };
    let run = bench.run(&server, "ranks", "its end", all_over);
    let sentence = run["sentence"].as_str().expect("a sentence");
    // Kernels before 6.15 report that a rank ended, but not how.
    let signals: Vec<&Value> = run["processes"].as_array().expect("a list").iter().map(|one| &one["signal"]).collect();
    match signals.contains(&&"SIGKILL".into()) {
        true => {
            assert!(sentence.starts_with("failed (exit 1); first rank 1 on "), "{sentence}");
            assert!(sentence.ends_with(": crashed (SIGKILL)"), "{sentence}");
        }
        false => assert_eq!((sentence, signals), ("failed (exit 1)", vec![&Value::Null; 3])),
    }
    // From their environment only the variables in the table are stored, in memory or on disk.
    assert!(!run.to_string().contains(CANARY) && run.to_string().contains("torch"));
    assert!(!server.log().contains(CANARY), "{}", server.log());
    server.end_by("TERM");
    assert_eq!(files_with(Path::new(bench.data()), CANARY), [] as [std::path::PathBuf; 0]);
    assert!(!files_with(Path::new(bench.data()), "run.begin").is_empty(), "records can be searched");
}

/// Two ranks as torchrun starts them, which meet at an address that is valid on all machines. Returns their launcher
/// and their process ids.
fn job_at_an_address() -> (Child, Vec<u32>) {
    let world =
        "WORLD_SIZE=2 TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 MASTER_ADDR=node-1 MASTER_PORT=29500";
    let rank = |n: u32| format!("RANK={n} LOCAL_RANK={n} {world} sleep 1000 &");
    #[allow(clippy::disallowed_methods, reason = "jobs are shells")]
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{} {} wait", rank(0), rank(1))]);
    let launcher = started(command);
    let id = launcher.id();
    let ranks = until("two ranks", || {
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        let ranks: Vec<u32> = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        (ranks.len() == 2 && ranks.iter().all(|pid| name(pid) == "sleep\n")).then_some(ranks)
    });
    (launcher, ranks)
}

#[test]
fn the_next_job_at_an_address_is_another_run() {
    let bench = Bench::new();
    let mut known: Vec<Value> = Vec::new();
    for jobs in 1..=2 {
        let (mut launcher, ranks) = job_at_an_address();
        let gpu = |(n, pid): (usize, &u32)| {
            let process = serde_json::json!({"pid": pid, "type": "C", "used_gpu_memory": 4096});
            serde_json::json!({"uuid": format!("GPU-{n}"), "name": "Test", "utilization": {"gpu": 5, "memory": 0}, "processes": [process]})
        };
        let gpus: Vec<Value> = ranks.iter().enumerate().map(gpu).collect();
        let scenario = serde_json::json!({"driver_version": "590.48.01", "gpm_min_ms": 0, "gpus": gpus});
        let fake = fake_nvml::Fake::new(&scenario.to_string());
        let config = bench.folder.path().join("watchglass.toml");
        let library = fake.library().display().to_string();
        std::fs::write(&config, format!("[collectors.nvidia]\nlibrary = {library:?}\n")).expect("a file");
        let config = config.to_str().expect("plain letters");
        let server = Server::start(["--collectors", "cpu,nvidia", "--config", config, "--data-dir", bench.data()]);
        // Newest first.
        let listed = || -> Vec<Value> {
            let all: Value = serde_json::from_str(&server.get("/api/v1/runs", &[]).body).expect("JSON");
            let runs = all["runs"].as_array().expect("a list").iter();
            runs.filter(|run| run["id"].as_str().is_some_and(|id| id.starts_with("ddp-node-1-29500")))
                .cloned()
                .collect()
        };
        let processes = |run: &Value| run["processes"].as_array().map_or(0, Vec::len);
        let runs = until("the job is listed with both ranks", || {
            let runs = listed();
            (runs.len() == jobs && processes(&runs[0]) == 2).then_some(runs)
        });
        assert_eq!(runs[0]["state"], "running", "{runs:?}");
        ranks.iter().for_each(|pid| kill(*pid, libc::SIGTERM));
        launcher.wait().expect("it ended");
        let runs = until("its end", || Some(listed()).filter(|runs| !runs[0]["ended"].is_null()));
        // The record of the job before is unchanged.
        assert_eq!(runs[1..], known[..]);
        assert_eq!((runs.len(), processes(&runs[0])), (jobs, 2), "{runs:?}");
        known = runs;
        server.end_by("TERM");
    }
}

#[test]
fn a_hub_lists_the_runs_of_its_agents_also_those_of_while_it_was_away() {
    let mut fleet = Fleet::start();
    let agent = fleet.agent_folder().to_str().expect("plain letters").to_string();
    let job = |id: &str| {
        let mut command = watchglass(["run", "--data-dir", &agent, "--id", id, "--", "sh", "-c", "exit 3"]);
        command.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        let output = command.output().expect("it ran");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(3), &b""[..]), "the agent is told");
    };
    let listed = |fleet: &Fleet, id: &str| {
        until(id, || {
            let all = fleet.administer(&["runs"]);
            all.lines().any(|line| line.starts_with(id) && line.ends_with("failed (exit 3)")).then_some(())
        });
    };
    job("linked");
    listed(&fleet, "linked");
    fleet.kill_hub();
    job("away");
    fleet.start_hub();
    listed(&fleet, "away");
    listed(&fleet, "linked");
    // A deleted run does not come back with the next start, nor with later records of its agent.
    fleet.administer(&["erase", "--run", "linked"]);
    let is_there = |fleet: &Fleet| fleet.administer(&["runs"]).lines().any(|line| line.starts_with("linked"));
    assert!(!is_there(&fleet));
    fleet.kill_hub();
    job("third");
    fleet.start_hub();
    listed(&fleet, "third");
    listed(&fleet, "away");
    assert!(!is_there(&fleet));
}

#[test]
fn a_terminal_is_the_jobs_own_and_its_keys_reach_the_job_once() {
    let bench = Bench::new();
    let script = "stty size; trap 'n=$((n+1)); echo got $n' INT; echo ready; while [ -z $n ]; do sleep 0.1; done; read line; echo \"read $line\"; exit 7";
    let mut job = bench.job(&["--", "sh", "-c", script]);
    // SAFETY: the call is safe between fork and exec. Tests that run in the background may have the signal ignored, and
    // a shell keeps signals ignored that were ignored at its start.
    unsafe {
        job.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut terminal = Terminal::start(job, (81, 23));
    terminal.shows("23 81");
    terminal.shows("ready");
    terminal.press("\x03");
    terminal.shows("got 1");
    terminal.press("words\r");
    terminal.shows("read words");
    assert!(!terminal.text().contains("got 2"), "{}", terminal.text());
    assert_eq!(terminal.did(), watchglass_tests::terminal::Did::Exit(7));
}

#[test]
#[ignore = "needs root and a controller of memory, for a cgroup that is too small"]
fn with_cgroups_a_job_that_is_killed_for_memory_is_said_to_be() {
    let bench = Bench::new();
    let server = bench.server();
    let group = MemoryGroup::new("job", 64 << 20);
    let job = bench.job(&["--id", "large", "--", "tail", "/dev/zero"]);
    #[allow(clippy::disallowed_methods, reason = "a shell that enters a cgroup becomes the job")]
    let mut shell = Command::new("sh");
    let line = format!("echo $$ > {}; exec \"$@\"", group.entrance().display());
    shell.args(["-c", &line, "sh"]).arg(job.get_program()).args(job.get_args());
    let ended = shell.output().expect("it ran");
    assert_eq!(ended.status.signal(), Some(libc::SIGKILL), "{}", String::from_utf8_lossy(&ended.stderr));
    let run = bench.run(&server, "large", "its end", |run| run["state"] == "out_of_memory");
    let sentence = run["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.starts_with("out of memory: the kernel killed a process at 6") && sentence.ends_with("of 64 MiB"),
        "{sentence}"
    );
}

impl Bench {
    /// The lines of a run, from the server.
    fn lines(&self, server: &Server, id: &str) -> Vec<Value> {
        let answer = server.get(&format!("/api/v1/runs/{id}/logs"), &[]);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect()
    }

    /// Waits until this text is among them.
    fn prints(&self, server: &Server, id: &str, text: &str) -> Vec<Value> {
        until(text, || {
            let answer = server.get(&format!("/api/v1/runs/{id}/logs"), &[]);
            answer.body.contains(text).then(|| self.lines(server, id))
        })
    }
}

fn texts<'a>(lines: &'a [Value], stream: &str) -> Vec<&'a str> {
    lines.iter().filter(|line| line["stream"] == stream).map(|line| line["text"].as_str().expect("a text")).collect()
}

/// A terminal whose job can be interrupted, regardless of how the tests were started.
fn on_terminal(mut job: Command, cells: (u16, u16)) -> Terminal {
    // SAFETY: the calls are safe between fork and exec.
    unsafe {
        job.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    Terminal::start(job, cells)
}

#[test]
fn with_its_output_kept_a_job_has_a_terminal_as_it_would_have() {
    let bench = Bench::new();
    let server = bench.server();
    let script = "test -t 0 && test -t 1 && test -t 2 && echo all terminals; stty size; printf '\\033[31mred\\033[0m\\n'; \
                  trap 'stty size' WINCH; trap 'n=$((n+1)); echo got $n' INT; echo ready >&2; \
                  while [ -z $n ]; do sleep 0.1; done; read line; echo \"read $line\"; exit 7";
    let mut terminal = on_terminal(bench.job(&["--logs", "--id", "tty", "--", "sh", "-c", script]), (81, 23));
    terminal.shows("all terminals");
    terminal.shows("23 81");
    terminal.shows("ready");
    assert!(terminal.has_color(|color| color == vt100::Color::Idx(1)), "colors pass");
    terminal.resize((99, 31));
    terminal.shows("31 99");
    terminal.press("\x03");
    terminal.shows("got 1");
    terminal.press("words\r");
    terminal.shows("read words");
    assert!(!terminal.text().contains("got 2"), "{}", terminal.text());
    assert_eq!(terminal.did(), watchglass_tests::terminal::Did::Exit(7));
    assert!(terminal.is_plain(), "the terminal is given back");
    let lines = bench.prints(&server, "tty", "read words");
    let kept = texts(&lines, "tty");
    assert!(kept.contains(&"\u{1b}[31mred\u{1b}[0m") && kept.contains(&"ready"), "{kept:?}");
    assert_eq!(bench.sentence(&server, "tty", "cancelled (SIGINT), then exit 7")["state"], "cancelled");
}

#[test]
fn a_job_whose_output_is_kept_is_stopped_and_ended_as_it_would_be() {
    use watchglass_tests::terminal::Did;
    let bench = Bench::new();
    let server = bench.server();
    let script = "echo begun; while :; do sleep 0.1; n=$((n+1)); echo tick $n; done";
    let job = |id: &str| {
        let job = on_terminal(bench.job(&["--logs", "--id", id, "--", "sh", "-c", script]), (80, 24));
        job.shows("tick");
        job
    };
    let mut stopped = job("stopped");
    stopped.press("\x1a");
    assert_eq!(stopped.did(), Did::Stop);
    until_so("a plain terminal", || stopped.is_plain());
    // The process that keeps the output is between the two.
    let own = child_of(child_of(stopped.id()));
    until_so("the job is stopped, too", || state_of(own) == 'T');
    stopped.signal(libc::SIGCONT);
    until_so("the job goes on", || state_of(own) != 'T');
    // More than the output in flight when it was stopped.
    let last =
        |text: &str| text.lines().filter_map(|line| line.strip_prefix("tick ")?.trim().parse::<u32>().ok()).max();
    let before = last(&stopped.text());
    stopped.until("it goes on", |text| last(text) > before.map(|n| n + 2));
    assert!(!stopped.is_plain(), "its keys are the job's again");
    stopped.signal(libc::SIGTERM);
    assert_eq!(stopped.did(), Did::Die(libc::SIGTERM));
    assert!(stopped.is_plain());
    bench.sentence(&server, "stopped", "cancelled (SIGTERM)");
    // The process that keeps the output is killed: the job's terminal is gone, and ours is plain.
    let mut killed = job("killed");
    bench.prints(&server, "killed", "tick 1");
    killed.signal(libc::SIGKILL);
    assert_eq!(killed.did(), Did::Die(libc::SIGKILL));
    until_so("a plain terminal", || killed.is_plain());
    bench.run(&server, "killed", "its end", |run| !run["ended"].is_null());
    assert!(texts(&bench.prints(&server, "killed", "tick 1"), "tty").contains(&"begun"));
    // A missing program has the exit status of a shell.
    let mut none = on_terminal(bench.job(&["--logs", "--", "/no/such/program"]), (80, 24));
    assert_eq!(none.did(), Did::Exit(127));
}

#[test]
fn streams_that_are_pipes_stay_apart_and_every_byte_arrives() {
    let bench = Bench::new();
    let server = bench.server();
    let script =
        "test -t 1 || test -t 2 || echo no terminal; echo error >&2; printf 'half\\r\\0\\377 line'; cat >&2; exit 3";
    let mut job = bench.job(&["--logs", "--id", "pipes", "--", "sh", "-c", script]);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::io::Write::write_all(&mut job.stdin.take().expect("a pipe"), b"given").expect("it reads");
    let ended = job.wait_with_output().expect("it ended");
    assert_eq!(ended.status.code(), Some(3));
    assert_eq!(
        (ended.stdout.as_slice(), ended.stderr.as_slice()),
        (&b"no terminal\nhalf\r\0\xff line"[..], &b"error\ngiven"[..])
    );
    let lines = bench.prints(&server, "pipes", "given");
    assert_eq!(
        (texts(&lines, "out"), texts(&lines, "err")),
        (vec!["no terminal", "\u{fffd} line"], vec!["error", "given"])
    );
    // A reader that closes its end ends the job, as a pipe does.
    let own = bench.job(&["--logs", "--id", "head", "--", "yes"]);
    let words: Vec<String> = std::iter::once(own.get_program())
        .chain(own.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    #[allow(clippy::disallowed_methods, reason = "a shell makes the pipe")]
    let head = Command::new("sh").args(["-c", "\"$@\" | head -n 3", "sh"]).args(&words).output().expect("it ran");
    assert_eq!(head.stdout, b"y\ny\ny\n");
    bench.run(&server, "head", "its end", |run| !run["ended"].is_null());
    // A daemon that holds the streams open does not block us.
    let begin = std::time::Instant::now();
    let mut job = bench.job(&["--logs", "--id", "daemon", "--", "sh", "-c", "sleep 90 & echo left; exit 0"]);
    let mut ended = job.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    assert_eq!(ended.wait().expect("it ended").code(), Some(0));
    assert!(begin.elapsed() < std::time::Duration::from_secs(45), "{:?}", begin.elapsed());
    bench.prints(&server, "daemon", "left");
}

#[test]
fn more_than_ten_thousand_lines_a_second_are_counted_and_all_arrive() {
    let bench = Bench::new();
    let server = bench.server();
    let output = bench.job(&["--logs", "--id", "flood", "--", "seq", "400000"]).output().expect("it ran");
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 400_000, "the output itself is whole");
    let run = bench.sentence(&server, "flood", "finished");
    let seconds = run["ended"].as_f64().expect("an end") - run["began"].as_f64().expect("a begin");
    let lines = bench.prints(&server, "flood", "lost");
    let lost: u64 = lines.iter().filter_map(|line| line["lost"].as_u64()).sum();
    let kept = lines.iter().filter(|line| line["text"].is_string()).count() as u64;
    assert_eq!(kept + lost, 400_000, "what is not kept is counted");
    assert!(kept as f64 <= 10_000.0 * (seconds + 2.0), "{kept} in {seconds} s");
}

#[test]
fn lines_outlive_the_server_and_without_one_the_job_runs_and_one_line_says_so() {
    let bench = Bench::new();
    let alone = bench.job(&["--logs", "--", "sh", "-c", "echo out; exit 4"]).output().expect("it ran");
    assert_eq!((alone.status.code(), alone.stdout.as_slice()), (Some(4), &b"out\n"[..]));
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert!(said.lines().count() == 1 && said.ends_with("the output is not recorded\n"), "{said}");
    let server = bench.server();
    let script = "echo before; read line; echo after $line; exit 1";
    let mut job = bench.job(&["--logs", "--id", "long", "--", "sh", "-c", script]);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    bench.prints(&server, "long", "before");
    server.end_by("KILL");
    std::io::Write::write_all(&mut job.stdin.take().expect("a pipe"), b"the kill\n").expect("it reads");
    assert_eq!(job.wait().expect("it ended").code(), Some(1));
    let server = bench.server();
    let lines = bench.prints(&server, "long", "after the kill");
    assert_eq!(texts(&lines, "out"), ["before", "after the kill"]);
    // A folder that cannot be created is reported, without any other effect.
    let logs = bench.folder.path().join("run-logs");
    std::fs::remove_dir_all(&logs).expect("removed");
    std::fs::write(&logs, "a file").expect("written");
    let full = bench.job(&["--logs", "--", "sh", "-c", "echo out; exit 5"]).output().expect("it ran");
    assert_eq!((full.status.code(), full.stdout.as_slice()), (Some(5), &b"out\n"[..]));
    let said = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(said.lines().count() == 1 && said.contains("the output is not recorded"), "{said}");
}

#[test]
fn lines_are_chosen_by_the_label_of_their_process() {
    let bench = Bench::new();
    let server = bench.server();
    let inner = |label: &str| {
        let inner = bench.job(&["--logs", "--label", label, "--", "echo", &format!("of {label}")]);
        let words = std::iter::once(inner.get_program()).chain(inner.get_args());
        words.map(|word| format!("'{}'", word.to_string_lossy())).collect::<Vec<_>>().join(" ")
    };
    let script = format!("{}; {}", inner("rank0"), inner("loader"));
    assert!(bench.job(&["--id", "both", "--", "sh", "-c", &script]).status().expect("it ran").success());
    bench.prints(&server, "both", "of rank0");
    bench.prints(&server, "both", "of loader");
    let one = server.get("/api/v1/runs/both/logs?label=loader&format=text", &[]);
    assert_eq!((one.status, one.body.as_str()), (200, "of loader\n"));
    let last = server.get("/api/v1/runs/both/logs?label=rank0&format=text&limit=5", &[]);
    assert_eq!((last.status, last.body.as_str()), (200, "of rank0\n"));
    let none = server.get("/api/v1/runs/both/logs?label=rank1", &[]);
    assert!(none.status == 404 && none.error().contains("labels are loader, rank0"), "{}", none.error());
    assert_eq!(server.get("/api/v1/runs/both/logs?label=rank0&rank=0", &[]).status, 400);
    let logs = |words: &[&str]| {
        let mut command = watchglass(["logs", "--data-dir", bench.data(), "both"]);
        let output = command.args(words).output().expect("it ran");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(logs(&["--label", "loader"]), (Some(0), "of loader\n".into()));
    assert_eq!(logs(&["--label", "loader", "--rank", "0"]).0, Some(2));
}

#[test]
fn the_command_prints_what_is_asked_for_and_follows() {
    let bench = Bench::new();
    let server = bench.server();
    let script = "echo one; echo two >&2; echo three; read line; echo $line; exit 0";
    let mut job = bench.job(&["--logs", "--id", "asked", "--", "sh", "-c", script]);
    let mut job = job.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    // The two streams are two pipes, and one may be late.
    bench.prints(&server, "asked", "three");
    bench.prints(&server, "asked", "two");
    let logs = |words: &[&str]| {
        let mut command = watchglass(["logs", "--data-dir", bench.data(), "asked"]);
        let output = command.args(words).output().expect("it ran");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&logs(&[]).1), ["one", "three", "two"]);
    assert_eq!(logs(&["--stream", "err"]), (Some(0), "two\n".into()));
    assert_eq!(logs(&["--grep", "THR"]), (Some(0), "three\n".into()));
    assert_eq!(logs(&["--rank", "3"]), (Some(0), String::new()));
    assert_eq!(logs(&["--stream", "out", "--last", "1"]), (Some(0), "three\n".into()));
    let row: Value = serde_json::from_str(&logs(&["--json", "--grep", "two"]).1).expect("a row");
    assert_eq!((&row["stream"], &row["text"]), (&"err".into(), &"two".into()));
    assert_eq!(logs(&["--stream", "stdout"]).0, Some(2));
    let mut follow = watchglass(["logs", "--data-dir", bench.data(), "asked", "--follow"]);
    let followed = bench.folder.path().join("followed");
    let into = std::fs::File::create(&followed).expect("a file");
    let follow = follow.stdout(into).stderr(Stdio::piped()).spawn().expect("it starts");
    let followed = || std::fs::read_to_string(&followed).expect("a file");
    until_so("what was printed before", || sorted(&followed()) == ["one", "three", "two"]);
    std::io::Write::write_all(&mut job.stdin.take().expect("a pipe"), b"four\n").expect("it reads");
    assert!(job.wait().expect("it ended").success());
    let ended = follow.wait_with_output().expect("it ended with the job");
    assert_eq!(sorted(&followed()), ["four", "one", "three", "two"], "{}", String::from_utf8_lossy(&ended.stderr));
    let none = watchglass(["logs", "--data-dir", bench.data(), "nobody"]).output().expect("it ran");
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("there is no run"));
    let report = server.get("/api/v1/runs/asked/report", &[]).body;
    assert!(report.contains("Last lines") && report.contains(" four\n"), "{report}");
}

#[test]
fn the_end_of_a_run_reaches_the_hub_though_the_agent_stops_at_once() {
    let mut fleet = Fleet::start();
    let folder = fleet.agent_folder().to_path_buf();
    let listed = |fleet: &Fleet| fleet.administer(&["runs", "--json"]);
    for (n, id) in ["first", "second", "third"].into_iter().enumerate() {
        if n > 0 {
            fleet.start_agent();
            fleet.until("it is connected", || (fleet.machines()[0].state == "live").then_some(()));
        }
        let mut job = watchglass(["run", "--id", id, "--data-dir"]);
        job.arg(&folder).args(["--", "sh", "-c", "read line; exit 5"]).env_remove("WATCHGLASS_RUN_ID");
        let mut job = job.env_remove("WATCHGLASS_SOCKET").stdin(Stdio::piped()).spawn().expect("it starts");
        fleet.until("the hub lists it", || listed(&fleet).contains(id).then_some(()));
        drop(job.stdin.take());
        assert_eq!(job.wait().expect("it ended").code(), Some(5));
        fleet.stop_agent();
        let all: Value = serde_json::from_str(&listed(&fleet)).expect("JSON");
        let run = all["runs"].as_array().expect("a list").iter().find(|run| run["id"] == id).expect("it is listed");
        assert_eq!((&run["state"], &run["sentence"]), (&"failed".into(), &"failed (exit 5)".into()), "{run}");
    }
}

#[test]
fn an_inner_run_is_no_rank_beside_its_job() {
    let bench = Bench::new();
    let server = Server::start(["--collectors", "cpu,processes", "--data-dir", bench.data()]);
    let inner = format!("{} run --data-dir {} --", watchglass_tests::server::binary().display(), bench.data());
    let rank = |n: u32| format!("RANK={n} LOCAL_RANK={n} WORLD_SIZE=4 {inner} sleep 1000 &");
    let script = format!("{} wait", (0..4).map(rank).collect::<String>());
    let mut job = started(bench.job(&["--id", "nested", "--", "sh", "-c", &script]));
    let ranks = |run: &Value| -> Vec<u64> {
        let all = run["processes"].as_array().expect("a list").iter();
        let mut ranks: Vec<u64> = all.filter_map(|one| one["rank"]["rank"].as_u64()).collect();
        ranks.sort_unstable();
        ranks
    };
    let run = bench.run(&server, "nested", "its ranks", |run| ranks(run).len() >= 4);
    let all = run["processes"].as_array().expect("a list").iter();
    all.filter(|one| !one["rank"].is_null())
        .for_each(|one| kill(one["pid"].as_u64().expect("a number") as u32, libc::SIGTERM));
    assert_eq!(ranks(&run), [0, 1, 2, 3], "{run}");
    job.wait().expect("it ended");
}

#[test]
fn a_failure_has_a_class_by_which_runs_are_listed_counted_and_reported() {
    let bench = Bench::new();
    let server = bench.server();
    let full = "echo 'saving step 40'; echo 'OSError: [Errno 28] No space left on device' >&2; exit 1";
    for (id, script, logs) in [("full", full, true), ("unread", full, false), ("fine", "exit 0", true)] {
        let words: Vec<&str> = [&["--logs"][..usize::from(logs)], &["--id", id, "--", "sh", "-c", script]].concat();
        bench.job(&words).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it ran");
    }
    bench.run(&server, "full", "its class", |run| run["failure"] == "disk_full");
    // Without its output, nothing names a cause; and a run that finished has no failure.
    bench.run(&server, "unread", "its end", |run| run["failure"] == "unknown");
    bench.run(&server, "fine", "its end", |run| run["state"] == "finished" && run.get("failure").is_none());
    let get = |path: &str| -> Value { serde_json::from_str(&server.get(path, &[]).body).expect("JSON") };
    let listed = get("/api/v1/runs?failure=disk_full,out_of_gpu_memory");
    assert_eq!((&listed["total"], &listed["runs"][0]["id"]), (&1.into(), &"full".into()), "{listed}");
    assert_eq!(listed["failures"], serde_json::json!({ "disk_full": 1, "unknown": 1 }));
    assert_eq!(server.get("/api/v1/runs?failure=full", &[]).status, 400);
    let said = "OSError: [Errno 28] No space left on device";
    assert_eq!(get("/api/v1/runs/full")["cause"]["line"], said);
    assert_eq!(get("/api/v1/runs/full/report?format=json")["failure"], "disk_full");
    let report = server.get("/api/v1/runs/full/report", &[]).body;
    assert!(report.contains("Failure: disk full") && report.contains(said), "{report}");
    let runs = |words: &[&str]| {
        let output = watchglass(["runs", "--data-dir", bench.data()]).args(words).output().expect("it ran");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (status, table) = runs(&["--failure", "disk_full"]);
    assert!(status == Some(0) && table.contains("disk full") && !table.contains("unread"), "{table}");
    assert_eq!(runs(&["--failure", "full"]).0, Some(2));
}
