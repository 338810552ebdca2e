//! Tests `watchglass run`: the job has what it would have without it, and the list says how it ended.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use watchglass_tests::fleet::Fleet;
use watchglass_tests::server::{Server, watchglass};
use watchglass_tests::terminal::Terminal;
use watchglass_tests::waiting::until;

/// A server of a folder, and jobs that it is told of.
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

    /// `watchglass run` with these words.
    fn job(&self, words: &[&str]) -> Command {
        let mut command = watchglass(["run", "--data-dir", self.data()]);
        command.args(words).env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET");
        command
    }

    /// Waits for a run that is as it should be.
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

/// The one child of a process.
fn child_of(id: u32) -> u32 {
    until("a child", || {
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        children.split_ascii_whitespace().next().and_then(|id| id.parse().ok())
    })
}

fn kill(id: u32, signal: i32) {
    // SAFETY: it is a process of this test, which nobody else has waited for.
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
    assert_eq!(status(&["--", "/no/such/program"]).code(), Some(127));
    assert_eq!(status(&["--", "/"]).code(), Some(126));
    let said = bench.job(&["sh", "-c", "echo out; echo $WATCHGLASS_RUN_ID >&2; cat"]).stdin(Stdio::null()).output();
    let said = said.expect("it ran");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "out\n");
    let told = String::from_utf8_lossy(&said.stderr).into_owned();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines.iter().any(|line| line.contains("no watchglass listens on this machine")), "{told}");
    // Nothing can be written either: the job runs all the same.
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
    assert!(listed(&["--state", "finished"]).lines().count() == 1 && listed(&["nothing"]).lines().count() == 1);
    assert!(listed(&["LR", "--project", "llm"]).contains("one"));
    let wrong = server.get("/api/v1/runs?state=over", &[]);
    assert!(wrong.status == 400 && wrong.error().contains("known are running"), "{}", wrong.error());
    // Who asks a job to end cancels it.
    let mut job = started(bench.job(&["--id", "two", "--", "sleep", "1000"]));
    bench.sentence(&server, "two", "running");
    kill(job.id(), libc::SIGTERM);
    assert_eq!(job.wait().expect("it ended").signal(), Some(libc::SIGTERM));
    bench.sentence(&server, "two", "cancelled (SIGTERM)");
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
    // Kernels before 6.15 tell that it ended, and not how.
    let told = ["crashed (SIGTERM)", "ended, how is not known"];
    bench.run(&server, "left", "its end", |run| told.iter().any(|told| run["sentence"] == *told));
}

#[test]
fn runs_outlive_the_server_that_was_told_of_them() {
    let bench = Bench::new();
    // Nobody is there.
    bench.job(&["--id", "before", "--", "sh", "-c", "exit 5"]).output().expect("it ran");
    let server = bench.server();
    bench.sentence(&server, "before", "failed (exit 5)");
    assert_eq!(std::fs::read_dir(Path::new(bench.data()).join("runs")).expect("a folder").count(), 0);
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
    bench.sentence(&server, "alone", "ended, how is not known");
    bench.sentence(&server, "on", "running");
    kill(child_of(goes_on.id()), libc::SIGSEGV);
    goes_on.wait().expect("it ended");
    bench.sentence(&server, "on", "crashed (SIGSEGV)");
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
}

#[test]
fn a_terminal_is_the_jobs_own_and_its_keys_reach_the_job_once() {
    let bench = Bench::new();
    let script = "stty size; trap 'n=$((n+1)); echo got $n' INT; echo ready; while [ -z $n ]; do sleep 0.1; done; read line; echo \"read $line\"; exit 7";
    let mut job = bench.job(&["--", "sh", "-c", script]);
    // SAFETY: the call is safe between fork and exec. Who starts tests in the background may have it ignored, and what is
    // ignored when a shell starts stays so.
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

/// A folder of cgroups with a limit, which goes with this.
struct Group(std::path::PathBuf);

impl Group {
    fn new() -> Group {
        let name = format!("watchglass-test-{}", std::process::id());
        let one = Path::new("/sys/fs/cgroup/memory");
        let (folder, limit) = match one.is_dir() {
            true => (one.join(name), "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup").join(name), "memory.max"),
        };
        std::fs::create_dir(&folder).expect("root may make cgroups");
        std::fs::write(folder.join(limit), "67108864").expect("a limit");
        Group(folder)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
#[ignore = "needs root and a controller of memory, for a cgroup that is too small"]
fn with_cgroups_a_job_that_is_killed_for_memory_is_said_to_be() {
    let bench = Bench::new();
    let server = bench.server();
    let group = Group::new();
    let job = bench.job(&["--id", "large", "--", "tail", "/dev/zero"]);
    #[allow(clippy::disallowed_methods, reason = "a shell that enters a cgroup becomes the job")]
    let mut shell = Command::new("sh");
    let line = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
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
