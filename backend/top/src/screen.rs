//! The terminal: it is taken over, and restored at every end, including a panic.

use crate::ground::{AWAITED, Ear, Heard, QUESTION, TerminalEvent};
use crate::palette::Palette;
use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::style::Print;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use std::io::{self, BufWriter, Stdout, Write};
use std::time::{Duration, Instant};

/// Size of the write buffer, bytes.
const WRITE_BUFFER: usize = 1 << 16;

/// Escape sequences that disable and enable mouse reports, with positions in decimal digits.
const MOUSE: [&str; 2] = ["\u{1b}[?1006l\u{1b}[?1000l", "\u{1b}[?1000h\u{1b}[?1006h"];
/// Timeout at the end for an answer of the terminal. A later answer may reach the shell.
const LAST_WORD: Duration = Duration::from_millis(500);

/// The terminal while we use it.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// Its capabilities.
    pub palette: Palette,
    /// Whether mouse events are reported.
    mouse: bool,
    /// Time of the background query, while it is unanswered.
    asked: Option<Instant>,
}

impl Screen {
    /// Takes over the terminal of standard output. `failed` is called with a sentence if another thread panics; it must
    /// not block.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn take(palette: Palette, ask: bool, failed: impl Fn(String) + Send + Sync + 'static) -> io::Result<Self> {
        enter()?;
        give_back_on_panic(failed);
        let backend = CrosstermBackend::new(BufWriter::with_capacity(WRITE_BUFFER, io::stdout()));
        let mut screen = Screen { terminal: Terminal::new(backend)?, palette, mouse: false, asked: None };
        if ask {
            execute!(io::stdout(), Print(QUESTION))?;
            screen.asked = Some(Instant::now());
        }
        Ok(screen)
    }

    /// Enables or disables mouse reports.
    ///
    /// # Errors
    /// The terminal has closed.
    pub fn take_mouse(&mut self, mouse: bool) -> io::Result<()> {
        self.mouse = mouse;
        execute!(io::stdout(), Print(MOUSE[usize::from(mouse)]))
    }

    /// Whether mouse events are reported.
    pub fn has_mouse(&self) -> bool {
        self.mouse
    }

    /// Switches to the other theme. A later answer to the query does not change it.
    pub fn turn_theme(&mut self) {
        (self.palette.light, self.asked) = (!self.palette.light, None);
    }

    /// Applies the answer to the background query.
    pub fn apply_ground(&mut self, is_light: bool) {
        if self.asked.take().is_some() {
            self.palette.light = is_light;
        }
    }

    /// Remaining time to wait for the answer before the terminal is restored. A shell would read it as typed text.
    pub fn awaits(&self) -> Option<Duration> {
        self.asked.and_then(|asked| LAST_WORD.checked_sub(asked.elapsed()))
    }

    /// Draws, and writes the changed cells.
    ///
    /// # Errors
    /// The terminal has closed.
    pub fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame.area(), frame.buffer_mut())).map(drop)
    }

    /// Redraws everything, because other programs may have written to the terminal.
    ///
    /// # Errors
    /// The terminal has closed.
    pub fn anew(&mut self) -> io::Result<()> {
        enter()?;
        if self.mouse {
            self.take_mouse(true)?;
        }
        // Not `clear`: it queries the cursor position, and the thread that reads keys would take the answer.
        let area = self.terminal.size()?.into();
        self.terminal.resize(area)
    }

    /// Restores the terminal and stops the program until it is continued. Without a shell that could continue it, it goes
    /// on at once.
    ///
    /// # Errors
    /// The terminal has closed.
    pub fn suspend(&mut self) -> io::Result<()> {
        leave();
        #[cfg(unix)]
        stop_group();
        self.anew()
    }
}

/// Stops this process and its whole group, as a shell expects of a job. The kernel ignores this signal, but not SIGSTOP, if
/// no process of the session could continue the group, as after `ssh -t HOST watchglass top`.
#[cfg(unix)]
fn stop_group() {
    // SAFETY: all-zero bytes are valid values of the structure, which is integers and a function that may be none: no
    // flags, no blocked signals, and the default action.
    let (default, mut before): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    // SAFETY: the structures live for the calls. The signal reaches this thread, the first of the process, before the call
    // that sends it returns; the action of before is then set again.
    unsafe {
        if libc::sigaction(libc::SIGTSTP, &default, &mut before) == 0 {
            libc::kill(0, libc::SIGTSTP);
            libc::sigaction(libc::SIGTSTP, &before, std::ptr::null_mut());
        }
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

/// Errors are ignored, because the terminal has closed then.
fn leave() {
    let _ = execute!(io::stdout(), Print(MOUSE[0]), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
    let _ = io::stdout().flush();
}

/// A panic of the drawing thread restores the terminal before it is printed. A panic of another thread, such as a
/// collector, would be printed over the picture, so it is passed to `failed`.
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

/// Sentence for a panic of another thread.
pub(crate) fn sentence(thread: Option<&str>, why: Option<&str>) -> String {
    let why = why.and_then(|why| why.lines().next()).unwrap_or("no reason given");
    format!("a part of this program failed ({}): {why}; its values stop", thread.unwrap_or("a thread"))
}

/// Passes on keys, sizes and the answer to the background query (if `asked`) until `told` returns false. It needs a
/// thread of its own.
pub fn read(asked: bool, told: impl Fn(TerminalEvent) -> bool) {
    let (mut ear, begin) = (Ear::default(), Instant::now());
    let mut listens = asked;
    loop {
        let silent = ear.patience().is_some_and(|patience| !matches!(crossterm::event::poll(patience), Ok(true)));
        let heard = match silent {
            true => Heard { typed: ear.silence(), is_light: None },
            false => match crossterm::event::read() {
                Ok(event) if listens => ear.handle(event, begin.elapsed() < AWAITED),
                Ok(event) => Heard { typed: vec![event], is_light: None },
                Err(_) => return,
            },
        };
        listens &= heard.is_light.is_none();
        let typed = heard.typed.into_iter().map(TerminalEvent::Typed);
        if !typed.chain(heard.is_light.map(TerminalEvent::Ground)).all(&told) {
            return;
        }
    }
}
