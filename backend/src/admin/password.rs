//! A password for an account: from a file, from standard input, or typed twice without being shown. Never from an
//! argument or the environment, which others can read.

use super::failed::AdminFailed;
use shared::secret::Secret;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;

/// Maximum size of a line, bytes.
const MAX_LINE_BYTES: u64 = 8_192;

/// Reads a password.
///
/// # Errors
/// The file cannot be read, or there is no terminal for a prompt.
pub(super) fn read(file: Option<&Path>, person: &str) -> Result<Secret, AdminFailed> {
    match file {
        Some(path) if path == Path::new("-") => first_line(io::stdin().lock(), "standard input"),
        Some(path) => {
            let failed = |error: io::Error| AdminFailed::usage(format!("{} cannot be read: {error}", path.display()));
            first_line(BufReader::new(File::open(path).map_err(failed)?), &path.display().to_string())
        }
        None if io::stdin().is_terminal() => typed(person),
        None => Err(AdminFailed::usage(
            "there is no terminal to prompt for the password; use --password-file FILE, or - for standard input",
        )),
    }
}

fn first_line(from: impl BufRead, name: &str) -> Result<Secret, AdminFailed> {
    let mut line = String::new();
    from.take(MAX_LINE_BYTES)
        .read_line(&mut line)
        .map_err(|error| AdminFailed::usage(format!("{name} cannot be read: {error}")))?;
    let line = line.trim_end_matches(['\n', '\r']);
    if line.is_empty() { Err(AdminFailed::usage(format!("{name} has no password"))) } else { Ok(Secret::new(line)) }
}

fn typed(person: &str) -> Result<Secret, AdminFailed> {
    let first = ask(&format!("Password of {person}, at least 12 bytes: "))?;
    match first == ask("Repeat the password: ")? {
        true => Ok(first),
        false => Err(AdminFailed::usage("the two passwords differ; try again")),
    }
}

fn ask(question: &str) -> Result<Secret, AdminFailed> {
    let failed = |error: io::Error| AdminFailed::new(format!("the prompt for the password failed: {error}"));
    let mut out = io::stderr();
    out.write_all(question.as_bytes()).and_then(|()| out.flush()).map_err(failed)?;
    let hidden = Hidden::new().map_err(failed)?;
    let mut line = String::new();
    io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut line).map_err(failed)?;
    drop(hidden);
    let _ = out.write_all(b"\n");
    match line.trim_end_matches(['\n', '\r']) {
        "" => Err(AdminFailed::usage("no password was given")),
        // Ctrl-C must not end the program while echo is off, or it would stay off.
        line if line.contains('\u{3}') => Err(AdminFailed::new("nothing was changed")),
        line => Ok(Secret::new(line)),
    }
}

/// Turns off the echo of the terminal until it is dropped.
#[cfg(unix)]
struct Hidden(libc::termios);

#[cfg(unix)]
impl Hidden {
    fn new() -> io::Result<Self> {
        // SAFETY: all bits zero are a valid termios, which the call fills.
        let mut before: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: `before` is a valid termios for the call to fill.
        if unsafe { libc::tcgetattr(libc::STDIN_FILENO, &mut before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut silent = before;
        silent.c_lflag &= !(libc::ECHO | libc::ISIG);
        // SAFETY: `silent` is a valid termios.
        match unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSAFLUSH, &silent) } {
            0 => Ok(Hidden(before)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        // SAFETY: it is the earlier state of the terminal.
        unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSAFLUSH, &self.0) };
    }
}

#[cfg(not(unix))]
struct Hidden;

#[cfg(not(unix))]
impl Hidden {
    fn new() -> io::Result<Self> {
        Err(io::Error::other("this system cannot hide typed text; use --password-file FILE"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_the_password_in_its_first_line() {
        let folder = tempfile::tempdir().expect("made");
        let file = folder.path().join("password");
        for (text, password) in
            [("kiwi lamp\n", Some("kiwi lamp")), (" a b \r\nnext", Some(" a b ")), ("\n", None), ("", None)]
        {
            std::fs::write(&file, text).expect("written");
            let read = read(Some(&file), "mara");
            assert_eq!(read.as_ref().ok().map(Secret::reveal), password, "{text:?}");
        }
        let error = read(Some(&folder.path().join("none")), "mara").expect_err("no file");
        assert_eq!(error.status(), 2);
    }
}
