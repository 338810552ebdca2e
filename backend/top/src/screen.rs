//! The terminal itself: it is taken as a whole, and given back at every end, a panic among them.

use crate::palette::Palette;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableFocusChange, Event};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::mpsc::SyncSender;

/// Bytes that are written at once.
const WRITTEN: usize = 1 << 16;

/// A terminal that was taken.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// What it can show.
    pub palette: Palette,
}

impl Screen {
    /// Takes the terminal of standard output. `failed` is told, in a sentence, that another thread has panicked; it must not
    /// wait.
    ///
    /// # Errors
    /// It cannot be taken.
    pub fn take(palette: Palette, failed: impl Fn(String) + Send + Sync + 'static) -> io::Result<Self> {
        enter()?;
        give_back_on_panic(failed);
        let backend = CrosstermBackend::new(BufWriter::with_capacity(WRITTEN, io::stdout()));
        Ok(Screen { terminal: Terminal::new(backend)?, palette })
    }

    /// Draws, and writes what is other than before.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame.area(), frame.buffer_mut())).map(drop)
    }

    /// All of it is to be written anew: what stands there is not what we wrote.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn anew(&mut self) -> io::Result<()> {
        enter()?;
        // Not `clear`: it asks the terminal where its cursor is, and the thread of the keys would take the answer.
        let area = self.terminal.size()?.into();
        self.terminal.resize(area)
    }

    /// Gives the terminal back and stops the program until it is told to go on.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn suspend(&mut self) -> io::Result<()> {
        leave();
        #[cfg(unix)]
        // SAFETY: the signal stops this process, all of its group as a shell's job is; nothing is handed over.
        unsafe {
            libc::kill(0, libc::SIGSTOP);
        }
        self.anew()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// Where it fails there is no terminal any more.
fn leave() {
    let _ = execute!(io::stdout(), DisableFocusChange, Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
    let _ = io::stdout().flush();
}

/// A panic of the thread that draws gives the terminal back before it is told. One of another thread, such as a collector,
/// would be written over the picture, and is handed over.
fn give_back_on_panic(failed: impl Fn(String) + Send + Sync + 'static) {
    let own = std::thread::current().id();
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == own {
            leave();
            told(panic);
        } else {
            failed(sentence(std::thread::current().name(), panic.payload_as_str()));
        }
    }));
}

/// What is said of a panic of another thread.
pub(crate) fn sentence(thread: Option<&str>, why: Option<&str>) -> String {
    let why = why.and_then(|why| why.lines().next()).unwrap_or("no reason was given");
    format!("a part of this program failed ({}): {why}; its values stop", thread.unwrap_or("a thread"))
}

/// Hands on what is pressed, and new sizes, until nobody takes it. It has a thread of its own.
pub fn read<T: From<Event>>(to: &SyncSender<T>) {
    while let Ok(event) = crossterm::event::read() {
        if to.send(event.into()).is_err() {
            return;
        }
    }
}

/// Local time minus UTC at an instant (ms since the epoch), ms; 0 where the system does not say.
pub fn offset(t: i64) -> i64 {
    #[cfg(unix)]
    {
        // SAFETY: all-zero bytes are a valid tm, a structure of integers and a pointer that may be null.
        let mut tm: libc::tm = unsafe { std::mem::zeroed() };
        let seconds = (t / 1000) as libc::time_t;
        // SAFETY: both pointers are to live values of their types; the call fills the second.
        let known = unsafe { !libc::localtime_r(&raw const seconds, &raw mut tm).is_null() };
        if known {
            return tm.tm_gmtoff as i64 * 1000;
        }
    }
    let _ = t;
    0
}
