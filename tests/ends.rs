//! Tests events that end the server and events that do not: a log or an output without a reader, signals, limits,
//! hanging tools.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{ErrorKind, PipeReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use watchglass_tests::server::{Server, as_user, binary, free_port, run, watchglass, watchglass_by};
use watchglass_tests::waiting::until_so;

/// A full pipe, whose reader reads nothing while it is held.
fn stuck() -> (PipeReader, Stdio) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let set = |flags: libc::c_int| {
        // SAFETY: this is a plain system call on a descriptor that this function owns.
        assert_eq!(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, flags) }, 0);
    };
    set(libc::O_WRONLY | libc::O_NONBLOCK);
    let full = loop {
        if let Err(error) = (&writer).write_all(&[b'x'; 1 << 12]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    set(libc::O_WRONLY);
    (reader, writer.into())
}

fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").expect("Linux has it").into()
}

/// A pipe whose reader was closed.
fn broken() -> Stdio {
    std::io::pipe().expect("a pipe").1.into()
}

fn figure(server: &Server, name: &str) -> f64 {
    let page = server.get("/metrics", &[]).body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} is not in {page}"))
}

fn ticks(server: &Server) -> f64 {
    figure(server, "watchglass_self_ticks_total")
}

/// State and reason of a check; None when there is no such check.
fn check(server: &Server, id: &str) -> Option<(String, String)> {
    let all: serde_json::Value = serde_json::from_str(&server.get("/api/v1/doctor", &[]).body).expect("JSON");
    let own = all["checks"].as_array()?.iter().find(|check| check["id"] == id)?;
    Some((own["state"].as_str()?.to_string(), own["reason"].as_str()?.to_string()))
}

/// Checks that the server measures and stores, ends on request, and has stored samples.
#[track_caller]
fn works_on(server: Server, folder: &Path) {
    let before = ticks(&server);
    until_so("three more ticks", || ticks(&server) >= before + 3.0);
    assert_eq!(server.end().code(), Some(0));
    let stored = run(["export", "--data-dir", folder.to_str().expect("text"), "--tag", "memory*", "--format", "csv"]);
    let stored = String::from_utf8_lossy(&stored.stdout).lines().count();
    assert!(stored > 3, "{stored} lines are stored");
}

const QUICK: [&str; 6] = ["--port", "0", "--interval", "100ms", "--collectors", "memory"];

fn quick(folder: &Path) -> impl Iterator<Item = &str> {
    QUICK.into_iter().chain(["--data-dir", folder.to_str().expect("text")])
}

#[test]
fn a_log_that_cannot_be_written_costs_lines_and_no_values() {
    for (stderr, drops) in [(full_disk(), true), (broken(), true), (Stdio::null(), false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::start_logging(watchglass(quick(folder.path())), stderr);
        let dropped = || figure(&server, "watchglass_self_stderr_lines_dropped_total");
        if drops {
            until_so("lines are counted", || dropped() >= 1.0);
            until_so("the check", || check(&server, "log").is_some_and(|(state, _)| state == "failed"));
        } else {
            assert_eq!((dropped(), check(&server, "log")), (0.0, None));
        }
        works_on(server, folder.path());
    }
}

#[test]
fn standard_error_that_is_closed_becomes_no_other_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let command = watchglass_by("exec \"$@\" 2>&-", quick(folder.path()));
    let server = Server::start_logging(command, Stdio::null());
    let stderr = std::fs::read_link(format!("/proc/{}/fd/2", server.id())).expect("a link");
    assert_eq!(stderr, Path::new("/dev/null"));
    works_on(server, folder.path());
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (reader, stderr) = stuck();
    let server = Server::start_logging(watchglass(quick(folder.path())), stderr);
    until_so("the check", || check(&server, "log").is_some_and(|(state, _)| state == "hung"));
    works_on(server, folder.path());
    drop(reader);
}

#[test]
fn an_address_that_cannot_be_printed_stops_nothing() {
    let (reader, stuck) = stuck();
    let closed = watchglass_by("exec \"$@\" >&-", []);
    let cases: [(Command, Stdio); 4] =
        [(watchglass([]), stuck), (watchglass([]), full_disk()), (watchglass([]), broken()), (closed, Stdio::null())];
    for (command, stdout) in cases {
        let port = free_port();
        let server = Server::start_untold(command, port, stdout);
        assert_eq!(server.get("/healthz", &[]).status, 200);
        assert_eq!(server.end().code(), Some(0));
    }
    drop(reader);
}

#[test]
fn a_terminal_that_goes_ends_it_in_order_and_nohup_keeps_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let mut command = watchglass(quick(folder.path()));
    // The tests may run under nohup, which is inherited.
    let heed = || {
        // SAFETY: this is a plain system call, which is safe between fork and exec.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: the closure makes one system call, takes no lock and allocates nothing.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, heed) };
    let server = Server::start_logging(command, File::create(&log).expect("a file").into());
    assert_eq!(server.end_by("HUP").code(), Some(0));
    let said = std::fs::read_to_string(&log).expect("text");
    assert!(said.contains("SIGHUP: the terminal has closed"), "{said}");

    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start_as_it_is(watchglass_by("trap '' HUP; exec \"$@\"", quick(folder.path())));
    server.signal("HUP");
    works_on(server, folder.path());
}

#[test]
fn a_limit_of_cpu_time_is_a_failure_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let server = Server::start_logging(watchglass(quick(folder.path())), File::create(&log).expect("a file").into());
    assert_eq!(server.end_by("XCPU").code(), Some(1));
    let said = std::fs::read_to_string(&log).expect("text");
    assert!(said.contains("SIGXCPU: the CPU time limit (ulimit -t)"), "{said}");
}

#[test]
fn a_limit_on_the_size_of_files_is_a_disk_that_takes_no_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start_as_it_is(watchglass_by("ulimit -f 16; exec \"$@\"", quick(folder.path())));
    until_so("the check", || check(&server, "history").is_some_and(|(state, _)| state == "failed"));
    let (_, reason) = check(&server, "history").expect("a check");
    assert!(reason.contains("File too large"), "{reason}");
    let before = ticks(&server);
    until_so("more ticks", || ticks(&server) >= before + 3.0);
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn where_no_thread_is_granted_a_sentence_says_so() {
    let start = |mut command: Command| {
        let limit = || {
            let one = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
            // SAFETY: this is a plain system call with a live structure, which is safe between fork and exec.
            match unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &one) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        // SAFETY: the closure makes one system call, takes no lock and allocates nothing.
        unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, limit) };
        command.args(["--memory", "--port", "0"]).output().expect("it starts")
    };
    // The limit does not apply to root. SAFETY: this is a plain system call without arguments, which cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let output = if root { as_user(64_321, binary(), start) } else { start(watchglass([])) };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.contains("panicked")), (Some(1), false), "{said}");
    assert!(said.contains("ulimit -u"), "{said}");
}

#[test]
fn nothing_that_a_tool_started_outlives_the_server() {
    for signal in ["TERM", "KILL"] {
        let (tools, folder) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let tool = fake_tool::place(tools.path(), "nvidia-smi", "grandchild 600000\nwait 600000");
        let config = folder.path().join("w.toml");
        let command = format!("[collectors.nvidia]\nlibrary = \"/nowhere/nvml.so\"\ncommand = {tool:?}\n");
        std::fs::write(&config, command).expect("a file");
        let config = config.to_str().expect("text");
        let server = Server::start(["--collectors", "nvidia", "--config", config]);
        // The tool's argument is its own path. No other command line contains the tool's folder.
        let running = || running(tools.path());
        until_so("the tool and what it started run", || running() == 2);
        match signal {
            "TERM" => assert_eq!(server.end().code(), Some(0)),
            _ => drop(server),
        }
        until_so(signal, || running() == 0);
    }
}

/// Number of processes whose command line contains a folder.
fn running(folder: &Path) -> usize {
    let all = std::fs::read_dir("/proc").expect("it is there").flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let folder = folder.to_str().expect("text");
    lines.filter(|line| String::from_utf8_lossy(line).contains(folder)).count()
}

#[test]
fn a_demo_tells_its_address_when_it_answers() {
    let begin = Instant::now();
    let server = Server::start(["demo", "--gpus", "32", "--retention", "1h"]);
    let told = begin.elapsed();
    assert_eq!(server.get("/healthz", &[]).status, 200);
    let answered = begin.elapsed() - told;
    assert!(answered < told, "told after {told:?}, answered {answered:?} later");
}

#[test]
fn an_error_that_cannot_be_written_keeps_its_status() {
    for stderr in [full_disk(), broken()] {
        assert_eq!(watchglass(["--prot"]).stderr(stderr).status().expect("it starts").code(), Some(2));
    }
    for (stdout, code) in [(full_disk(), 1), (broken(), 0)] {
        let output = watchglass(["--print-config"]).stdout(stdout).output().expect("it starts");
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(output.stderr.is_empty(), code == 0);
    }
}

#[test]
fn nothing_that_is_repeated_acts_on_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let named = folder.path().join("a\u{1b}]0;name\u{7}.toml");
    std::fs::write(&named, "host\u{202e}s = 1").expect("a file");
    let named = named.to_str().expect("text");
    for args in [
        &["--interval", "\u{1b}[31mred"][..],
        &["--\u{1b}[2Jport", "1"],
        &["\u{9b}2J"],
        &["--config", named],
        &["--config", "/no\u{1b}[2Jwhere"],
        &["replay", "/no\u{1b}[2Jwhere"],
        &["export", "--tag", "\u{1b}[2J", "--format", "csv", "--data-dir", "/no\u{1b}[2Jwhere"],
        &["record", "--data-dir", "/no\u{1b}[2Jwhere", "--port", "9", "/no\u{1b}[2Jwhere/x"],
        &["--data-dir", "/proc/\u{1b}[2J", "--port", "0"],
    ] {
        let output = run(args.iter().copied());
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!output.status.success() && !said.is_empty(), "{args:?}: {said}");
        let acts = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        assert!(!said.contains(acts), "{args:?}: {said:?}");
    }
}
