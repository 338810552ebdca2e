//! The terminal itself: it is taken as a whole, and given back at every end, a panic among them.

use crate::ground::{AWAITED, Ear, Heard, QUESTION, Told};
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

/// Bytes that are written at once.
const WRITTEN: usize = 1 << 16;

/// Has the terminal tell clicks and the wheel, with places in decimal digits, or keep them.
const MOUSE: [&str; 2] = ["\u{1b}[?1006l\u{1b}[?1000l", "\u{1b}[?1000h\u{1b}[?1006h"];
/// An answer that comes later than this is not waited for at the end; a shell may get it then.
const LAST_WORD: Duration = Duration::from_millis(500);

/// A terminal that was taken.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    /// What it can show.
    pub palette: Palette,
    /// Whether it tells clicks and the wheel.
    mouse: bool,
    /// When it was asked for its ground, while there is no answer.
    asked: Option<Instant>,
}

impl Screen {
    /// Takes the terminal of standard output. `failed` is told, in a sentence, that another thread has panicked; it must not
    /// wait.
    ///
    /// # Errors
    /// It cannot be taken.
    pub fn take(palette: Palette, ask: bool, failed: impl Fn(String) + Send + Sync + 'static) -> io::Result<Self> {
        enter()?;
        give_back_on_panic(failed);
        let backend = CrosstermBackend::new(BufWriter::with_capacity(WRITTEN, io::stdout()));
        let mut screen = Screen { terminal: Terminal::new(backend)?, palette, mouse: false, asked: None };
        if ask {
            execute!(io::stdout(), Print(QUESTION))?;
            screen.asked = Some(Instant::now());
        }
        Ok(screen)
    }

    /// Has the terminal tell clicks and the wheel, or leaves the mouse to it.
    ///
    /// # Errors
    /// The terminal has gone.
    pub fn take_mouse(&mut self, mouse: bool) -> io::Result<()> {
        self.mouse = mouse;
        execute!(io::stdout(), Print(MOUSE[usize::from(mouse)]))
    }

    /// Whether it tells clicks and the wheel.
    pub fn has_mouse(&self) -> bool {
        self.mouse
    }

    /// A person chooses the other theme, which no answer changes.
    pub fn turn_theme(&mut self) {
        (self.palette.light, self.asked) = (!self.palette.light, None);
    }

    /// The terminal has answered.
    pub fn hear(&mut self, is_light: bool) {
        if self.asked.take().is_some() {
            self.palette.light = is_light;
        }
    }

    /// How long its answer is to be waited for before it is given back: a shell would take it for what was typed.
    pub fn awaits(&self) -> Option<Duration> {
        self.asked.and_then(|asked| LAST_WORD.checked_sub(asked.elapsed()))
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
        if self.mouse {
            self.take_mouse(true)?;
        }
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
    let _ = execute!(io::stdout(), Print(MOUSE[0]), Show, LeaveAlternateScreen);
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
    let why = why.and_then(|why| why.lines().next()).unwrap_or("no reason given");
    format!("a part of this program failed ({}): {why}; its values stop", thread.unwrap_or("a thread"))
}

/// Hands on what is pressed, new sizes and the answer of a terminal that was `asked`, until nobody takes it. It has a thread
/// of its own.
pub fn read(asked: bool, told: impl Fn(Told) -> bool) {
    let (mut ear, begin) = (Ear::default(), Instant::now());
    let mut listens = asked;
    loop {
        let silent = ear.patience().is_some_and(|patience| !matches!(crossterm::event::poll(patience), Ok(true)));
        let heard = match silent {
            true => Heard { typed: ear.silence(), is_light: None },
            false => match crossterm::event::read() {
                Ok(event) if listens => ear.hear(event, begin.elapsed() < AWAITED),
                Ok(event) => Heard { typed: vec![event], is_light: None },
                Err(_) => return,
            },
        };
        listens &= heard.is_light.is_none();
        let typed = heard.typed.into_iter().map(Told::Typed);
        if !typed.chain(heard.is_light.map(Told::Ground)).all(&told) {
            return;
        }
    }
}
