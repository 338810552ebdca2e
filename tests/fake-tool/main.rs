//! Plays the file `<own name>.play` beside it, one step in each line:
//!
//! - `print FILE`, `errors FILE`: writes a file of the tool's folder to standard output or standard error
//! - `line TEXT`, `half TEXT`: writes a line to standard output, with or without its end
//! - `say TEXT`: writes a line to standard error
//! - `flood BYTES`, `fill BYTES`: writes this number of bytes to standard output, as many lines or as one line
//! - `wait MS`: sleeps; `exit STATUS`: ends; `die`: ends by a signal; `again`: begins with the first step again
//! - `ignore`: makes SIGTERM have no effect from here on
//! - `grandchild MS`: starts a process that holds the pipes open for this time; `escape MS`: one outside of the group

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn main() -> io::Result<()> {
    let mut args = std::env::args_os();
    let own = PathBuf::from(args.next().unwrap_or_default());
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    if let ["--hold", millis] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        wait(millis);
        return Ok(());
    }
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(own.with_extension("log"))?;
    writeln!(log, "{}", args.join(" "))?;
    let play = std::fs::read_to_string(format!("{}.play", own.display()))?;
    while play_once(&own, &play)? {}
    Ok(())
}

fn number(text: &str) -> usize {
    text.parse().expect("a step's number")
}

fn wait(millis: &str) {
    std::thread::sleep(Duration::from_millis(number(millis) as u64));
}

/// Plays all steps. Returns true when they are to be repeated.
fn play_once(own: &Path, play: &str) -> io::Result<bool> {
    let mut out = io::stdout();
    let file = |name: &str| std::fs::read(own.with_file_name(name));
    for step in play.lines() {
        let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
        match verb {
            "print" => out.write_all(&file(rest)?)?,
            "errors" => io::stderr().write_all(&file(rest)?)?,
            "line" => writeln!(out, "{rest}")?,
            "half" => write!(out, "{rest}")?,
            "say" => writeln!(io::stderr(), "{rest}")?,
            "flood" => repeat(&mut out, b"0123456789abcdef\n", number(rest))?,
            "fill" => {
                repeat(&mut out, b"0123456789abcdef", number(rest))?;
                writeln!(out)?;
            }
            "wait" => wait(rest),
            "exit" => std::process::exit(number(rest) as i32),
            "die" => std::process::abort(),
            "again" => return Ok(true),
            "ignore" => ignore(),
            "grandchild" => leave(own, rest, false)?,
            "escape" => leave(own, rest, true)?,
            _ => panic!("unknown step {step:?}"),
        }
        out.flush()?;
    }
    Ok(false)
}

fn repeat(out: &mut impl Write, piece: &[u8], bytes: usize) -> io::Result<()> {
    let block = piece.repeat(4096);
    let mut left = bytes;
    while left > 0 {
        let n = left.min(block.len());
        out.write_all(&block[..n])?;
        left -= n;
    }
    Ok(())
}

#[cfg(unix)]
fn ignore() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

#[cfg(not(unix))]
fn ignore() {}

#[allow(clippy::disallowed_methods, clippy::zombie_processes, reason = "an orphan is what the test is about")]
fn leave(own: &Path, millis: &str, escape: bool) -> io::Result<()> {
    let mut command = std::process::Command::new(own);
    command.args(["--hold", millis]);
    #[cfg(unix)]
    if escape {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
    }
    let child = command.spawn()?;
    std::fs::write(own.with_extension("grandchild"), child.id().to_string())?;
    let _ = escape;
    Ok(())
}
