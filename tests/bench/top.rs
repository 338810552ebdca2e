//! Measures `watchglass top` beside htop and btop, each in a pseudo-terminal of its own.

use crate::cost::server;
use crate::table::Table;
use std::ffi::OsStr;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use watchglass_tests::terminal::Terminal;

/// Minimum number of processes on this machine during the measurement.
const PROCESSES: usize = 500;
/// Duration of the measurement of each program, after a warm-up of the same length.
const MEASURED_TIME: Duration = Duration::from_secs(30);
const WARM_UP_TIME: Duration = Duration::from_secs(5);
/// Maximum wait for the first picture.
const MAX_FIRST: Duration = Duration::from_secs(20);

/// Cost of a program in a terminal of 120 x 40.
struct Cost {
    /// Time from its start to the first text on the screen, ms.
    picture: f64,
    /// Time from its start to the first values, ms.
    first: f64,
    /// CPU seconds per minute.
    cpu: f64,
    /// Resident memory, MiB.
    memory: f64,
    /// Bytes per second that it writes.
    bytes: f64,
}

/// Measures all rows.
pub fn measure(table: &mut Table) {
    let own = match server() {
        Ok(own) => own,
        Err(why) => return table.missing("top", "", &why),
    };
    let mut sleeping = sleepers();
    let peers: Vec<(&str, Result<Cost, String>)> =
        [("htop", "Tasks"), ("btop", "cpu")].map(|(name, word)| (name, peer(name, word))).into();
    let told = |figure: fn(&Cost) -> f64, unit: &str| {
        let one = |(name, cost): &(&str, Result<Cost, String>)| match cost {
            Ok(cost) => format!("{name} {} {unit}", shared::unit::number(figure(cost))),
            Err(why) => format!("{name}: {why}"),
        };
        peers.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let on = "120 x 40 cells, 30 s, this machine with 500 processes";
    let gpus = "120 x 40 cells, 30 s, a simulated machine of 8 GPUs, made in the same process";
    for (what, args, on) in [("top", &["top", "--memory"][..], on), ("top --demo 8", &["top", "--demo", "8"], gpus)] {
        let mut command = command(&own);
        command.args(args);
        let cost = match cost(command, "Memory") {
            Ok(cost) => cost,
            Err(why) => {
                table.missing(what, "", &why);
                continue;
            }
        };
        let beside = |figure, unit| if what == "top" { told(figure, unit) } else { String::new() };
        let mut row = |words: &str, figure: f64, unit, most, goal, peer: String| {
            table.at_most(&format!("{what}: {words}"), figure, unit, most, goal, &peer, on);
        };
        row("CPU a minute", cost.cpu, "s", 0.3, "0.3 s", beside(|c| c.cpu, "s"));
        row("RSS", cost.memory, "MiB", 30.0, "30 MB", beside(|c| c.memory, "MiB"));
        row("start to first picture", cost.picture, "ms", 50.0, "50 ms", beside(|c| c.picture, "ms"));
        row("start to first values", cost.first, "ms", f64::INFINITY, "", beside(|c| c.first, "ms"));
        row("bytes to the terminal a second", cost.bytes, "B", f64::INFINITY, "", beside(|c| c.bytes, "B"));
    }
    table.missing("nvitop", "", "it begins with NVIDIA's library, which a machine without a GPU does not have");
    for child in &mut sleeping {
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[allow(clippy::disallowed_methods, reason = "the bench starts what it measures")]
fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    on_a_terminal(&mut command);
    command
}

fn on_a_terminal(command: &mut Command) {
    command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("COLORTERM");
}

fn sleepers() -> Vec<Child> {
    let running = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let running = running.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit()).count();
    (running..PROCESSES).filter_map(|_| command("sleep").arg("600").spawn().ok()).collect()
}

/// A program on PATH at one picture per second.
fn peer(name: &str, word: &str) -> Result<Cost, String> {
    let mut command =
        watchglass_tests::programs::found(name).ok_or("not on PATH; `cargo xtask bench` fetches Debian's")?;
    on_a_terminal(&mut command);
    // Neither reads nor writes the user's settings.
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    command.env("HOME", folder.path()).env("XDG_CONFIG_HOME", folder.path());
    if name == "htop" {
        command.args(["-d", "10"]);
    } else {
        let settings = folder.path().join("btop");
        let written = std::fs::create_dir_all(&settings)
            .and_then(|()| std::fs::write(settings.join("btop.conf"), "update_ms = 1000\n"));
        written.map_err(|error| error.to_string())?;
    }
    cost(command, word)
}

fn cost(command: Command, word: &str) -> Result<Cost, String> {
    let begin = Instant::now();
    let terminal = Terminal::start(command, (120, 40));
    let mut picture = None;
    loop {
        let text = terminal.text();
        if picture.is_none() && !text.trim().is_empty() {
            picture = Some(begin.elapsed());
        }
        if text.contains(word) {
            break;
        }
        if begin.elapsed() > MAX_FIRST {
            return Err(format!("no picture: {}", text.lines().next().unwrap_or_default()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let first = begin.elapsed().as_secs_f64() * 1e3;
    let process = terminal.id().to_string();
    std::thread::sleep(WARM_UP_TIME);
    let (cpu, bytes) = (used(&process), terminal.bytes());
    std::thread::sleep(MEASURED_TIME);
    let (after, written) = (used(&process), terminal.bytes());
    if after < cpu {
        return Err("it ended early".into());
    }
    let minutes = MEASURED_TIME.as_secs_f64() / 60.0;
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    Ok(Cost {
        picture: picture.map_or(first, |picture| picture.as_secs_f64() * 1e3),
        first,
        cpu: (after - cpu) / minutes,
        memory: kib.map(|kib: f64| kib / 1024.0).ok_or("its memory cannot be read")?, // kB of /proc are 1024 bytes
        bytes: (written - bytes) as f64 / MEASURED_TIME.as_secs_f64(),
    })
}

/// CPU seconds of a process so far, including ended threads; zero when there is no such process.
fn used(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The process name before may contain any character. After it, user time is the 12th field and system time the
    // next.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    // SAFETY: the call reads a system constant.
    let second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    ticks / second.max(1) as f64
}
