//! Further interactions at the terminal: other spans, other machines, the mouse, the background color, the drawing.

use super::pty::{DOWN, LEFT_KEY, SMALL, in_shell, top};
use super::{RECORDING, output, served};
use charts::theme::{DARK, LIGHT};
use std::process::Command;
use vt100::Color;
use watchglass_tests::agent::{Agent, command};
use watchglass_tests::hub::Hub;
use watchglass_tests::server::watchglass;
use watchglass_tests::terminal::{Did, Terminal};
use watchglass_tests::waiting::until_so;

/// The terminal's query for its background color, and two answers.
const QUESTION: &str = "\u{1b}]11;?\u{7}";
const IS_LIGHT: &str = "\u{1b}]11;rgb:fafa/fafa/fafa\u{7}";
const IS_DARK: &str = "\u{1b}]11;rgb:0c0c/0c0c/0c0c\u{1b}\\";

#[test]
fn values_are_read_where_the_crosshair_stands() {
    let mut terminal = Terminal::start(top(&[RECORDING]), (200, 50));
    terminal.shows("Disk fullness");
    let value = |text: &str| {
        let line = text.lines().find(|line| line.contains("Sales")).unwrap_or_default().to_string();
        line.split_whitespace().last().unwrap_or_default().to_string()
    };
    terminal.until("the newest value", |text| value(text) == "-15.90");
    terminal.press("\u{1b}[H");
    terminal.shows("Shift ten");
    terminal.until("no value at the begin, where there was none", |text| value(text) != "-15.90");
    terminal.press("\u{1b}[F");
    terminal.until("the newest value", |text| value(text) == "-15.90");
    terminal.shows("│");
    terminal.press("\u{1b}");
    terminal.hides("Shift ten");
    terminal.press("q");
    terminal.ends();
}

#[test]
fn spans_are_chosen_moved_and_made_longer_by_keys() {
    let mut terminal = Terminal::start(top(&[RECORDING]), SMALL);
    terminal.shows("15:30:00 – 15:35:00");
    for (key, span) in [
        ("1", "15:34:00 – 15:35:00"),
        ("[", "15:33:30 – 15:34:30"),
        ("]", "15:34:00 – 15:35:00"),
        ("+", "15:34:30 – 15:35:00"),
        ("-", "15:34:00 – 15:35:00"),
    ] {
        terminal.press(key);
        terminal.shows(span);
    }
    terminal.press("z");
    terminal.hides("Processes");
    terminal.press("z");
    terminal.shows("Processes");
    terminal.press("q");
    terminal.ends();
}

#[test]
fn a_machine_of_a_hub_is_chosen_from_its_list() {
    let hub = Hub::start(["--no-local"]);
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    std::fs::write(&key, &hub.keys["data"]).expect("written");
    let _agents = ["node-1", "node-2"].map(|name| {
        let mut node = command(&hub.server.url, &hub.keys["join"], &folder.path().join(name));
        node.args(["--name", name, "--collectors", "cpu,memory"]);
        let agent = Agent::start(node);
        agent.says("connected to");
        agent
    });
    for name in ["node-1", "node-2"] {
        let one = ["--hub", &hub.server.url, "--key-file", key.to_str().expect("plain letters"), "--once", "--source"];
        until_so(name, || output(&[&one[..], &[name]].concat()).0 == Some(0));
    }
    let mut terminal =
        Terminal::start(top(&["--hub", &hub.server.url, "--key-file", key.to_str().expect("plain letters")]), SMALL);
    terminal.shows("GiB");
    terminal.press("g");
    terminal.until("both machines", |text| ["node-1  ", "node-2  "].iter().all(|name| text.contains(name)));
    let first = if terminal.text().starts_with("node-1") { "node-1" } else { "node-2" };
    let other = if first == "node-1" { "node-2" } else { "node-1" };
    let is_below = terminal.text().find(&format!("{first}  ")) < terminal.text().find(&format!("{other}  "));
    terminal.press(if is_below { DOWN } else { "\u{1b}[H" });
    terminal.press("\r");
    terminal.until("the other machine, with its values", |text| text.starts_with(other) && text.contains("GiB"));
    terminal.press("q");
    terminal.ends();
}

#[test]
fn the_ground_that_a_terminal_tells_decides_the_colors() {
    let server = served();
    let of = |answers: &str, args: &[&str], ground: &str| {
        let mut command = top(&[&["--url", &server.url][..], args].concat());
        command.env("COLORTERM", "truecolor").env("COLORFGBG", ground);
        let mut terminal = Terminal::start(command, SMALL);
        terminal.shows("Processes");
        terminal.press(answers);
        terminal
    };
    let has = |terminal: &Terminal, rgb: Color| terminal.has_color(|color| color == rgb);
    let [light, dark] = [LIGHT.text_3, DARK.text_3].map(|rgb| Color::Rgb(rgb.0, rgb.1, rgb.2));
    for (answers, args, ground, wanted, other) in [
        (IS_LIGHT, &[][..], "", light, dark),
        (IS_DARK, &[], "0;15", dark, light),
        ("", &[], "0;15", light, dark),
        ("", &[], "", dark, light),
        ("", &["--light"], "", light, dark),
        ("", &["--dark"], "0;15", dark, light),
    ] {
        let mut terminal = of(answers, args, ground);
        assert_eq!(terminal.began_with(QUESTION), args.is_empty(), "{args:?} {ground}");
        until_so("the colors of the ground", || has(&terminal, wanted) && !has(&terminal, other));
        terminal.press("q");
        terminal.ends();
    }
    // Keys around an answer are processed, including a lone Escape, and no letter of the answer is.
    let mut terminal = of(&format!("?{IS_LIGHT}\u{1b}"), &[], "");
    until_so("the colors of the ground", || has(&terminal, light) && !has(&terminal, dark));
    terminal.hides("Keys");
    terminal.press("/gpu");
    terminal.shows("Find: gpu_");
    terminal.press("\u{1b}");
    terminal.hides("Find");
    terminal.press("q");
    terminal.ends();
}

#[test]
fn a_terminal_without_colors_is_not_asked() {
    let server = served();
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "xterm"), ("TERM", "linux")] {
        let mut command = top(&["--url", &server.url]);
        command.env(name, value);
        let mut terminal = Terminal::start(command, SMALL);
        terminal.shows("Processes");
        assert!(!terminal.began_with("\u{1b}]11"), "{name}={value}");
        terminal.press("q");
        terminal.ends();
    }
}

#[test]
fn the_mouse_is_the_terminals_until_it_is_wanted() {
    let server = served();
    let mut terminal = Terminal::start(top(&["--url", &server.url]), SMALL);
    terminal.shows("python3");
    assert!(!terminal.has_mouse());
    terminal.press("m");
    terminal.shows("mouse enabled: click selects");
    assert!(terminal.has_mouse());
    // Column 10 of row 20, counted from one.
    terminal.press("\u{1b}[<0;10;20M");
    terminal.shows("↑↓ processes");
    terminal.press("\u{1b}[<65;10;20M");
    terminal.hides("↑↓ processes");
    terminal.press("m");
    terminal.shows("it selects text");
    assert!(!terminal.has_mouse());
    terminal.press("q");
    terminal.ends();
    let mut terminal = Terminal::start(in_shell(&top(&["--url", &server.url, "--mouse"])), SMALL);
    terminal.shows("python3");
    assert!(terminal.has_mouse());
    terminal.press("\u{1a}");
    until_so("a shell has its mouse", || !terminal.has_mouse());
    // A line that comes before the shell reads is the program's, for which it has no meaning.
    until_so("it is taken again", || {
        terminal.press("\n");
        terminal.has_mouse()
    });
    terminal.press("q");
    terminal.ends();
}

#[test]
fn only_what_changed_is_drawn() {
    let mut terminal = Terminal::start(top(&[RECORDING]), (200, 50));
    terminal.shows("Disk fullness");
    terminal.press("p");
    terminal.hides("Disk fullness");
    terminal.press("p");
    terminal.shows("Disk fullness");
    // All drawing after this comes after the whole picture.
    terminal.press("/seen");
    terminal.shows("Find: seen");
    terminal.press("\u{1b}");
    terminal.hides("Find: ");
    let whole = terminal.bytes();
    // A step of the crosshair redraws two columns of each chart and some values.
    for _ in 0..10 {
        terminal.press(LEFT_KEY);
    }
    terminal.press("/done");
    terminal.shows("Find: done");
    let steps = terminal.bytes() - whole;
    assert!(whole > 4_000 && steps < whole * 10 / 4, "{steps} bytes for ten steps, {whole} for the pictures before");
    let before = terminal.bytes();
    terminal.press(&"\u{1b}[1;5P".repeat(100)); // a key without a meaning
    terminal.press("x");
    terminal.shows("Find: donex");
    assert!(terminal.bytes() - before < 2_000, "{} bytes for nothing", terminal.bytes() - before);
    terminal.press("\u{3}");
    terminal.ends();
}

/// A program that takes over the terminal and fails: this test, started by the next one on a terminal.
#[test]
#[ignore = "it is to fail on a terminal"]
#[should_panic = "the picture cannot be drawn"]
fn with_terminal_a_picture_fails() {
    let dark = top::palette::Palette::from_env(&|_| None, true);
    let mut screen = top::screen::Screen::take(dark, false, drop).expect("a terminal");
    screen.take_mouse(true).expect("a terminal");
    screen.draw(|_, _| panic!("the picture cannot be drawn")).expect("never");
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_told() {
    #[allow(clippy::disallowed_methods, reason = "it starts itself")]
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["--ignored", "--exact", "top::looks::with_terminal_a_picture_fails", "--nocapture"]);
    // A long backtrace would scroll the panic message off the screen.
    command.env("RUST_BACKTRACE", "0");
    let mut terminal = Terminal::start(command, SMALL);
    assert_eq!(terminal.did(), Did::Exit(0));
    // The report of the test, which fails on purpose, may have overwritten the rest of the line.
    terminal.shows("panicked at");
    until_so("the terminal is given back", || terminal.is_plain() && !terminal.has_mouse());
}

#[test]
#[ignore = "needs tmux"]
fn with_tmux_it_is_drawn_folded_and_ended() {
    let server = served();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let socket = socket.to_str().expect("plain letters");
    let tmux = |args: &[&str]| {
        let output =
            watchglass_tests::programs::run("tmux", &[&["-u", "-S", socket, "-f", "/dev/null"], args].concat(), "");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let own = watchglass(["top", "--url", &server.url]);
    let program = own.get_program().to_str().expect("plain letters");
    let mut start =
        vec!["new-session", "-d", "-e", "LC_ALL=C.UTF-8", "-e", "NO_COLOR=", "-x", "80", "-y", "24", program];
    start.extend(own.get_args().map(|arg| arg.to_str().expect("plain letters")));
    assert!(tmux(&start).0, "a session");
    let shows = |words: &str| until_so(words, || tmux(&["capture-pane", "-p"]).1.contains(words));
    let press = |key: &str| assert!(tmux(&["send-keys", key]).0);
    // The key selects the first process, so one must exist.
    shows("python3");
    press("e");
    shows("▾ torchrun");
    press("Left");
    shows("▸ ");
    press("Escape");
    press("?");
    shows("suspend; fg resumes");
    press("q");
    until_so("the session ends", || !tmux(&["has-session"]).0);
}
