//! The command `watchglass top`: in a real pseudo-terminal, and as lines.

use serde_json::Value;
use watchglass_tests::agent::{Agent, command};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::{Server, run, watchglass};
use watchglass_tests::waiting::{until, until_so};

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/first-wave/recording.watchglass");

fn served() -> Server {
    Server::start(["demo", "--gpus", "8", "--retention", "10m"])
}

fn output(args: &[&str]) -> (Option<i32>, String, String) {
    let output = run(["top"].iter().chain(args).copied());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn one_picture_of_a_server_is_lines_or_an_object() {
    let server = served();
    // Tables of processes are made right after the start.
    let (status, lines, error) = until("a picture with processes", || {
        let told = output(&["--url", &server.url, "--once", "--ascii"]);
        (told.0 != Some(0) || told.1.contains("python")).then_some(told)
    });
    assert_eq!(status, Some(0), "{error}");
    assert!(lines.is_ascii() && lines.contains("GPU utilization"), "{lines}");
    assert_eq!(lines.lines().filter(|line| line.starts_with("GPU 7 ")).count(), 1, "{lines}");
    let (status, object, error) = output(&["--url", &server.url, "--once", "--json"]);
    let object: Value = serde_json::from_str(&object).expect("an object");
    assert_eq!((status, object["simulated"].as_bool()), (Some(0), Some(true)), "{error}");
    assert!(object["values"].as_object().is_some_and(|values| values.len() > 50), "{object}");
    // Standard output is not a terminal: it prints one picture and ends.
    let (status, lines, error) = output(&["--url", &server.url]);
    assert!(status == Some(0) && lines.contains("GPU utilization"), "{lines}{error}");
    // An address of this machine may lack its scheme.
    let bare = format!("localhost:{}", server.addr().port());
    let (status, lines, error) = output(&["--url", &bare, "--once"]);
    assert!(status == Some(0) && lines.contains("GPU utilization"), "{lines}{error}");
    let (status, _, error) = output(&["--url", "watch.example.org", "--once"]);
    assert!(status == Some(2) && error.contains("write it like http://localhost:7171"), "{error}");
    let (status, _, error) = output(&["--url", &server.url, "--source", "nobody", "--once"]);
    assert!(status == Some(1) && error.contains("there is no machine \"nobody\""), "{error}");
}

#[test]
fn a_recording_is_shown_and_what_is_not_there_is_told_in_a_sentence() {
    let (status, lines, error) = output(&[RECORDING, "--once"]);
    assert!(status == Some(0) && lines.contains("CPU"), "{lines}{error}");
    let (status, _, error) = output(&["/no/such.watchglass"]);
    assert!(status == Some(1) && error.contains("/no/such.watchglass cannot be opened"), "{error}");
    let (status, _, error) = output(&["--url", "http://127.0.0.1:1", "--once"]);
    assert!(status == Some(1) && error.contains("connection refused"), "{error}");
    let (status, _, error) = output(&["--url", "http://127.0.0.1:1", "--demo", "8"]);
    assert!(status == Some(2) && error.contains("cannot be used with"), "{error}");
}

#[test]
fn a_machine_is_measured_without_a_server_a_port_and_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let none = folder.path().join("none");
    let none = none.to_str().expect("plain letters");
    let (status, lines, error) = output(&["--once", "--collectors", "cpu,memory", "--data-dir", none]);
    assert!(status == Some(0) && lines.contains("Memory"), "{lines}{error}");
    assert_eq!(folder.path().read_dir().expect("a folder").count(), 0, "something was written");
}

#[cfg(unix)]
#[test]
fn the_server_of_a_folder_is_found_by_its_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("plain letters");
    let _server = Server::start(["--data-dir", path, "--collectors", "cpu"]);
    let socket = folder.path().join("control.sock");
    for origin in [["--unix", socket.to_str().expect("plain letters")], ["--data-dir", path]] {
        let (status, object, error) = output(&[origin[0], origin[1], "--once", "--json"]);
        let object: Value = serde_json::from_str(&object).expect("an object");
        let values = object["values"].as_object().expect("values");
        // If it collected by itself, all collectors would have values.
        let only_cpu = values.keys().any(|tag| tag.contains("cpu")) && !values.keys().any(|tag| tag.contains("memory"));
        assert!(status == Some(0) && only_cpu, "{object}{error}");
    }
    let (status, _, error) = output(&["--unix", "/no/such.sock", "--once"]);
    assert!(status == Some(1) && error.contains("/no/such.sock"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_runs_of_a_machine_are_shown_while_they_run_and_how_they_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("plain letters");
    let server = Server::start(["--data-dir", path, "--collectors", "cpu,process"]);
    let once = || output(&["--url", &server.url, "--once", "--ascii"]).1;
    let job = |script: &str| {
        let mut job =
            watchglass(["run", "--data-dir", path, "--id", "job", "--name", "lr-3e-4", "--", "sh", "-c", script]);
        job.env_remove("WATCHGLASS_RUN_ID").env_remove("WATCHGLASS_SOCKET").stdin(std::process::Stdio::piped());
        job.spawn().expect("it starts")
    };
    assert!(!once().contains("lr-3e-4"));
    let mut running = job("read line; exit 3");
    let line = |of: &str| of.lines().find(|line| line.contains(" lr-3e-4 ")).unwrap_or_default().to_string();
    until_so("a run", || line(&once()).starts_with("* ") && line(&once()).ends_with("  running"));
    drop(running.stdin.take());
    assert_eq!(running.wait().expect("it ended").code(), Some(3));
    until_so("its end", || line(&once()).starts_with("# ") && line(&once()).contains("  failed (exit 3)  "));
    let object: Value =
        serde_json::from_str(&output(&["--url", &server.url, "--once", "--json"]).1).expect("an object");
    let run = &object["runs"][0];
    assert_eq!((&run["id"], &run["name"], &run["state"]), (&"job".into(), &"lr-3e-4".into(), &"failed".into()));
    assert!(run["gpu_hours"].is_null() && run["ended"].as_f64() > run["began"].as_f64(), "{run}");
}

#[test]
fn a_machine_of_a_hub_is_shown_to_who_has_a_key() {
    let hub = Hub::start(["--no-local"]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut node = command(&hub.server.url, &hub.keys["join"], &folder.path().join("data"));
    node.args(["--name", "node-9", "--collectors", "cpu,memory"]);
    let agent = Agent::start(node);
    agent.says("connected to");
    let (key, wrong) = (folder.path().join("key"), folder.path().join("wrong"));
    std::fs::write(&key, format!("{}\n", hub.keys["data"])).expect("written");
    std::fs::write(&wrong, "nobody").expect("written");
    let (key, wrong) = (key.to_str().expect("plain letters"), wrong.to_str().expect("plain letters"));
    let one = ["--hub", &hub.server.url, "--source", "node-9", "--once", "--key-file"];
    until_so("the machine on the hub", || {
        let (status, lines, _) = output(&[&one[..], &[key]].concat());
        status == Some(0) && lines.starts_with("node-9,") && lines.contains("Memory")
    });
    let (status, _, error) = output(&[&one[..], &[wrong]].concat());
    assert!(status == Some(1) && !error.contains("nobody"), "{error}");
    let (status, _, error) = output(&["--url", &hub.server.url, "--once"]);
    assert!(status == Some(1) && error.contains("--key-file FILE"), "{error}");
}

#[cfg(target_os = "linux")]
mod looks;

#[cfg(target_os = "linux")]
mod pty {
    use super::*;
    use std::process::Command;
    use vt100::Color;
    use watchglass_tests::terminal::{Did, Terminal};

    /// Keys, as the terminal sends them.
    pub const LEFT_KEY: &str = "\u{1b}[D";
    pub const RIGHT: &str = "\u{1b}[C";
    pub const DOWN: &str = "\u{1b}[B";
    pub const SMALL: (u16, u16) = (80, 24);

    /// The command, for a terminal with 256 colors and UTF-8, without the caller's settings.
    pub fn top(args: &[&str]) -> Command {
        let mut command = watchglass(["top"].iter().chain(args).copied());
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
        for name in ["NO_COLOR", "COLORTERM", "COLORFGBG"] {
            command.env_remove(name);
        }
        command
    }

    /// Compares the screen of a recording with the reference picture, which was reviewed.
    #[track_caller]
    fn golden(cells: (u16, u16)) {
        let path = format!("{}/top/{}x{}.txt", env!("CARGO_MANIFEST_DIR"), cells.0, cells.1);
        let mut terminal = Terminal::start(top(&[RECORDING]), cells);
        let lines = |text: &str| text.lines().map(|line| line.trim_end().to_string() + "\n").collect::<String>();
        if std::env::var_os("UPDATE").is_some_and(|v| v == "1") {
            let (mut last, mut looks) = (String::new(), 0);
            until_so("a picture that stays", || {
                let text = terminal.text();
                looks = if text == last && text.contains("Processes") { looks + 1 } else { 0 };
                last = text;
                looks > 100
            });
            std::fs::write(&path, lines(&terminal.text())).expect("written");
        }
        let wanted = std::fs::read_to_string(&path).expect("UPDATE=1 cargo test -p watchglass-tests top writes it");
        terminal.until(&format!("the picture of {path}:\n{wanted}"), |text| lines(text) == wanted);
        terminal.press("q");
        terminal.ends();
    }

    #[test]
    fn a_recording_looks_as_it_did_on_a_small_terminal() {
        golden(SMALL);
    }

    #[test]
    fn a_recording_looks_as_it_did_on_a_large_terminal() {
        golden((200, 50));
    }

    #[test]
    fn a_person_looks_asks_for_help_freezes_searches_and_ends() {
        let server = served();
        let mut terminal = Terminal::start(top(&["--url", &server.url]), SMALL);
        // Before the first sample there is no time to freeze.
        terminal.shows("live 5m");
        terminal.shows("Processes");
        terminal.shows("GPU 7");
        assert!(!terminal.is_plain(), "it takes keys one by one");
        terminal.press("?");
        terminal.shows("suspend; fg resumes");
        terminal.press(&"j".repeat(40));
        terminal.shows("PgUp PgDn");
        terminal.press("\u{1b}");
        terminal.hides("PgUp PgDn");
        terminal.press(" ");
        terminal.shows("frozen");
        terminal.press(" ");
        terminal.hides("frozen");
        terminal.press("1");
        terminal.shows("live 1m");
        terminal.press("/python");
        terminal.shows("Find: python");
        terminal.press("\r");
        terminal.shows("with python");
        terminal.press("g");
        terminal.shows("Machines");
        terminal.press("\u{1b}");
        // When a key and a resize arrive together, crossterm reports the key only with the next event.
        terminal.hides("Machines");
        terminal.resize((120, 40));
        terminal.until("a line as wide as the terminal", |text| text.lines().any(|line| line.chars().count() > 100));
        terminal.resize((38, 8));
        terminal.shows("is too small");
        terminal.resize(SMALL);
        terminal.shows("Processes");
        until_so("it takes keys", || {
            terminal.press("2");
            terminal.text().contains("live 5m")
        });
        terminal.press("q");
        terminal.ends();
    }

    #[test]
    fn processes_are_sorted_and_stand_as_a_tree() {
        let server = served();
        let mut terminal = Terminal::start(top(&["--url", &server.url]), (160, 50));
        terminal.shows("python3");
        terminal.press("p");
        terminal.shows("CPU %↓");
        terminal.press("s");
        terminal.hides("CPU %↓");
        terminal.press("pe");
        terminal.shows("▾ torchrun");
        terminal.press(LEFT_KEY);
        terminal.shows("▸ ");
        terminal.press(&format!("{RIGHT}{DOWN}{LEFT_KEY}"));
        terminal.shows("▸ torchrun (");
        terminal.press("F");
        terminal.shows("▾ torchrun");
        terminal.press("u");
        terminal.shows(", of ");
        terminal.press("q");
        terminal.ends();
    }

    #[test]
    fn a_signal_that_ends_it_gives_the_terminal_back() {
        let server = served();
        for signal in [libc::SIGTERM, libc::SIGINT] {
            let terminal = Terminal::start(top(&["--url", &server.url]), SMALL);
            terminal.shows("Processes");
            terminal.signal(signal);
            terminal.ends();
        }
    }

    /// The command as a job of a shell, which continues it after a line. Jobs have groups of their own, as those of a
    /// person's shell.
    pub fn in_shell(own: &Command) -> Command {
        #[allow(clippy::disallowed_methods, reason = "a shell that suspends and continues the program")]
        let mut shell = Command::new("sh");
        shell.args(["-c", "set -m; \"$@\"; read line; fg; exit 0", "sh"]).arg(own.get_program()).args(own.get_args());
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    }

    #[test]
    fn it_is_suspended_with_a_plain_terminal_and_comes_back_with_its_picture() {
        let server = served();
        let mut terminal = Terminal::start(in_shell(&top(&["--url", &server.url])), SMALL);
        terminal.shows("Processes");
        terminal.press("\u{1a}");
        until_so("a terminal that a shell can use", || terminal.is_plain());
        // A line that comes before the shell reads is the program's, for which it has no meaning.
        until_so("keys are taken one by one", || {
            terminal.press("\n");
            !terminal.is_plain()
        });
        terminal.shows("Processes");
        terminal.press("?");
        terminal.shows("suspend; fg resumes");
        terminal.press("q");
        terminal.ends();
    }

    #[test]
    fn without_a_shell_that_could_continue_it_nothing_suspends_it() {
        let server = served();
        let mut terminal = Terminal::start(top(&["--url", &server.url]), SMALL);
        terminal.shows("Processes");
        terminal.press("\u{1a}");
        terminal.press("?");
        terminal.shows("suspend; fg resumes");
        terminal.press("q");
        terminal.ends();
    }

    #[test]
    fn each_terminal_gets_the_colors_and_signs_that_it_has() {
        let server = served();
        let url = ["--url", &server.url];
        let of = |vars: &[(&str, &str)], args: &[&str]| {
            let mut command = top(&[&url[..], args].concat());
            command.envs(vars.iter().copied());
            Terminal::start(command, SMALL)
        };
        let is_rgb = |color| matches!(color, Color::Rgb(..));
        let is_indexed = |color| matches!(color, Color::Idx(_));
        let whole = of(&[("COLORTERM", "truecolor")], &[]);
        let (cube, none) = (of(&[], &[]), of(&[("NO_COLOR", "1")], &[]));
        let (few, ascii) = (of(&[("TERM", "xterm")], &[]), of(&[], &["--ascii"]));
        for terminal in [&whole, &cube, &none, &few, &ascii] {
            terminal.shows("Processes");
            terminal.shows("GPU 7");
        }
        until_so("24 bits", || whole.has_color(is_rgb));
        until_so("256 colors", || cube.has_color(|color| matches!(color, Color::Idx(16..))));
        assert!(!cube.has_color(is_rgb) && !few.has_color(is_rgb));
        until_so("16 colors", || few.has_color(is_indexed));
        assert!(!few.has_color(|color| matches!(color, Color::Idx(16..))));
        assert!(!none.has_color(|color| color != Color::Default), "no color is wanted");
        assert!(ascii.text().is_ascii(), "{}", ascii.text());
    }

    #[test]
    fn a_dumb_terminal_and_a_reader_of_lines_get_plain_lines() {
        let server = served();
        let mut dumb = top(&["--url", &server.url]);
        dumb.env("TERM", "dumb");
        let dumb = Terminal::start(dumb, (120, 200));
        dumb.shows("GPU 7");
        assert!(dumb.text().is_ascii(), "{}", dumb.text());
        dumb.ends();
        let plain = Terminal::start(top(&["--url", &server.url, "--plain=1s"]), (120, 200));
        plain.until("a second table", |text| text.matches("\nGPU 7 ").count() >= 2);
        plain.signal(libc::SIGTERM);
        plain.ends();
    }

    #[test]
    fn what_cannot_be_had_is_told_on_a_plain_terminal() {
        let mut terminal = Terminal::start(top(&["--url", "http://127.0.0.1:1"]), SMALL);
        terminal.shows("connection refused");
        assert_eq!(terminal.did(), Did::Exit(1));
        until_so("the terminal is given back", || terminal.is_plain());
    }
}
