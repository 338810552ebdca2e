//! A program in a pseudo-terminal of its own, and the content of its screen.

use crate::waiting::{MAX_WAIT, until_or, until_so};
use parking_lot::{Mutex, MutexGuard};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use vt100::Parser;

/// Columns and rows.
pub type Cells = (u16, u16);

/// State of the terminal: its screen, the number of bytes it received, and the first of them.
struct Shown {
    parser: Parser,
    bytes: usize,
    first: Vec<u8>,
}

/// Maximum number of first bytes that are kept.
const MAX_FIRST_BYTES: usize = 256;

/// A program and its terminal. The program is killed when this is dropped.
pub struct Terminal {
    child: Child,
    master: File,
    shown: Arc<Mutex<Shown>>,
    ended: bool,
}

/// State change of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// It was stopped, as by Ctrl-Z.
    Stop,
    /// It ended with this status.
    Exit(i32),
    /// A signal ended it.
    Die(i32),
}

fn size((columns, rows): Cells) -> libc::winsize {
    libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn side(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells).expect("a terminal has cells")
}

impl Terminal {
    /// Starts a command on a terminal of this size. The terminal answers no queries.
    ///
    /// # Panics
    /// Panics when the system grants no pseudo-terminal, or the program does not start.
    pub fn start(mut command: Command, cells: Cells) -> Self {
        let (mut master, mut slave, at) = (0, 0, size(cells));
        let name = std::ptr::null_mut::<libc::c_char>();
        // SAFETY: the pointers are to live values, which the call fills or reads, or null where it allows that.
        let opened = unsafe { libc::openpty(&mut master, &mut slave, name, std::ptr::null(), &at) };
        assert_eq!(opened, 0, "no pseudo-terminal");
        // SAFETY: both descriptors were just opened and have no other owner.
        let (master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
        for end in [&master, &slave] {
            // Programs that other tests start meanwhile must not hold the terminal open.
            // SAFETY: the descriptor is open.
            unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: between fork and exec two system calls are made, which allocate nothing.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().expect("the program starts");
        drop((command, slave));
        let parser = Parser::new(side(cells.1), side(cells.0), 0);
        let shown = Arc::new(Mutex::new(Shown { parser, bytes: 0, first: Vec::new() }));
        let (theirs, mut from) = (shown.clone(), master.try_clone().expect("a descriptor"));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The read fails when the last descriptor of the program is closed.
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                let mut shown = theirs.lock();
                shown.parser.process(&bytes[..n]);
                shown.bytes += n;
                let room = MAX_FIRST_BYTES.saturating_sub(shown.first.len());
                shown.first.extend(&bytes[..n.min(room)]);
            }
        });
        Terminal { child, master, shown, ended: false }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock()
    }

    /// The text of the screen, one line per row.
    pub fn text(&self) -> String {
        self.shown().parser.screen().contents()
    }

    /// Bytes that the program has written so far.
    pub fn bytes(&self) -> usize {
        self.shown().bytes
    }

    /// Whether this text was among the first bytes that the program wrote.
    pub fn began_with(&self, text: &str) -> bool {
        self.shown().first.windows(text.len()).any(|bytes| bytes == text.as_bytes())
    }

    /// Whether the program has requested mouse events.
    pub fn has_mouse(&self) -> bool {
        self.shown().parser.screen().mouse_protocol_mode() != vt100::MouseProtocolMode::None
    }

    /// Process id of the program.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether any cell has a color that matches.
    pub fn has_color(&self, is: impl Fn(vt100::Color) -> bool) -> bool {
        let shown = self.shown();
        let screen = shown.parser.screen();
        let (rows, columns) = screen.size();
        let mut cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
        cells.any(|(row, column)| screen.cell(row, column).is_some_and(|cell| is(cell.fgcolor())))
    }

    /// Waits until the screen meets a condition.
    ///
    /// # Panics
    /// Panics when it does not in time, with the text of the screen.
    #[track_caller]
    pub fn until(&self, what: &str, so: impl Fn(&str) -> bool) {
        let shows = || so(&self.text()).then_some(());
        until_or(2 * MAX_WAIT, shows, || format!("on the screen {what}:\n{}", self.text()));
    }

    /// Waits until this text is on the screen.
    ///
    /// # Panics
    /// Panics as [`Terminal::until`] does.
    #[track_caller]
    pub fn shows(&self, words: &str) {
        self.until(words, |text| text.contains(words));
    }

    /// Waits until this text is gone from the screen.
    ///
    /// # Panics
    /// Panics as [`Terminal::until`] does.
    #[track_caller]
    pub fn hides(&self, words: &str) {
        self.until(&format!("no {words}"), |text| !text.contains(words));
    }

    /// Presses keys, as the terminal sends them.
    ///
    /// # Panics
    /// Panics when the terminal is closed.
    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("the terminal takes it");
    }

    /// Gives the terminal another size.
    ///
    /// # Panics
    /// Panics when the terminal is closed.
    pub fn resize(&self, cells: Cells) {
        self.shown().parser.screen_mut().set_size(side(cells.1), side(cells.0));
        let at = size(cells);
        // SAFETY: the descriptor is open, and the pointer is to a live winsize.
        let set = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &at) };
        assert_eq!(set, 0, "the terminal takes its size");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the process is our child and was not waited for yet.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }

    /// Whether the terminal is as a shell leaves it: it echoes, reads lines, and shows its main screen and its cursor.
    pub fn is_plain(&self) -> bool {
        // SAFETY: all-zero bytes are a valid termios, a structure of integers.
        let mut mode: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open, and the call fills `mode`.
        let known = unsafe { libc::tcgetattr(self.master.as_raw_fd(), &mut mode) } == 0;
        let shown = self.shown();
        let screen = shown.parser.screen();
        let lines = libc::ECHO | libc::ICANON;
        known && mode.c_lflag & lines == lines && !screen.alternate_screen() && !screen.hide_cursor()
    }

    /// Waits until the program stops or ends.
    ///
    /// # Panics
    /// Panics when it does neither in time.
    #[track_caller]
    pub fn did(&mut self) -> Did {
        let id = self.child.id() as libc::pid_t;
        let status = crate::waiting::until("it stops or ends", || {
            let mut status = 0;
            // SAFETY: the process is our child, and the call fills `status`.
            let found = unsafe { libc::waitpid(id, &mut status, libc::WNOHANG | libc::WUNTRACED) };
            (found > 0).then_some(status)
        });
        self.ended = !libc::WIFSTOPPED(status);
        match status {
            _ if libc::WIFSTOPPED(status) => Did::Stop,
            _ if libc::WIFEXITED(status) => Did::Exit(libc::WEXITSTATUS(status)),
            _ => Did::Die(libc::WTERMSIG(status)),
        }
    }

    /// Waits for a successful end that restores the terminal.
    ///
    /// # Panics
    /// Panics when it does not end in time, fails, or leaves the terminal changed.
    #[track_caller]
    pub fn ends(mut self) {
        let did = self.did();
        assert_eq!(did, Did::Exit(0), "{}", self.text());
        until_so("the terminal is given back", || self.is_plain());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}
