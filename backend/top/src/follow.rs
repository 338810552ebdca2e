//! The event loop: processes inputs, sends requests, draws.

use crate::ground::TerminalEvent;
use crate::keys::{self, Effect};
use crate::model::{Delivery, Model};
use crate::palette::{Depth, Palette};
use crate::screen::{Screen, read};
use crate::{Form, Options, board, pointer, text};
use charts::axis::Zone;
use crossterm::event::{Event, KeyEventKind};
use shared::wire::PageMessage;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};
use system::local_time::offset;

/// Capacity of the input queue; senders block while it is full.
pub const MAX_WAITING: usize = 64;
/// Time in which inputs are collected before a redraw.
const GATHER_TIME: Duration = Duration::from_millis(15);
/// Timeout of the first picture.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// A rate needs two ticks. After this number of ticks a picture is complete if its requests were answered.
const ENOUGH_TICKS: u32 = 5;
/// Time after which a picture is complete even without answers.
const ENOUGH_WAIT: Duration = Duration::from_secs(15);
/// Columns of a line if the width is unknown.
const WIDTH: usize = 120;

/// An input of the loop.
#[derive(Debug)]
pub enum Input {
    /// A connection was made; we send the first message.
    Connected,
    /// A message of the stream.
    Message(Vec<u8>),
    /// The connection was lost, or cannot be made.
    Lost {
        /// The reason, as a sentence.
        why: String,
        /// Whether a reconnect is attempted.
        again: bool,
    },
    /// A part of this program failed; a sentence.
    Failed(String),
    /// A key, a new size, or an answer of the terminal.
    Terminal(TerminalEvent),
    /// The program is to end.
    End,
    /// The program is to be suspended.
    Suspend,
    /// The program continues, after others may have written to the terminal.
    Resumed,
}

/// A request to the connection.
#[derive(Debug)]
pub enum Wish {
    /// Send this message.
    Say(PageMessage),
    /// Reconnect.
    Reopen,
}

/// Sources of inputs, and the target of requests.
pub struct Ends {
    /// Queue for the thread that reads the terminal.
    pub terminal: SyncSender<Input>,
    /// All inputs.
    pub inputs: Receiver<Input>,
    /// Takes a request; returns false if it was dropped.
    pub wish: Box<dyn Fn(Wish) -> bool>,
}

/// Shows the picture until a person or a signal ends it.
///
/// # Errors
/// The reason why there is no picture, as a sentence.
pub fn run(options: &Options, palette: Palette, origin: &str, ends: Ends) -> Result<(), String> {
    let model = Model::new(options.source.clone(), origin.into());
    match options.form {
        Form::Screen => screen(model, options, palette, ends),
        Form::Once | Form::Json | Form::Plain(_) => lines(model, options.form, palette, &ends),
    }
}

/// Consequence of an input for the loop.
enum Turn {
    Draw,
    Idle,
    Do(Effect),
}

/// Sends a message. A message that is dropped is counted, and its request is repeated later.
fn send_message(model: &mut Model, message: PageMessage, wish: &dyn Fn(Wish) -> bool) {
    if !wish(Wish::Say(message)) {
        model.unsent();
    }
}

fn reopen(model: &mut Model, wish: &dyn Fn(Wish) -> bool) {
    if !wish(Wish::Reopen) {
        model.unsent();
    }
}

/// Processes an input.
fn deliver(model: &mut Model, input: Input, wish: &dyn Fn(Wish) -> bool) -> Result<Turn, String> {
    match input {
        Input::Connected => {
            let opened = model.open();
            send_message(model, opened, wish);
        }
        Input::Message(bytes) => match model.take(&bytes) {
            Ok((answers, new)) => {
                for answer in answers {
                    send_message(model, answer, wish);
                }
                return Ok(if new { Turn::Draw } else { Turn::Idle });
            }
            Err(why) if model.newest() == 0 => return Err(why),
            // Lost messages are sent again over the new connection.
            Err(why) => {
                model.delivery = Delivery::Lost(why);
                reopen(model, wish);
            }
        },
        Input::Failed(sentence) => model.failed = Some(sentence),
        Input::Lost { why, again } if again && model.newest() > 0 => model.delivery = Delivery::Lost(why),
        Input::Lost { why, .. } => return Err(why),
        Input::End => return Ok(Turn::Do(Effect::Quit)),
        Input::Suspend => return Ok(Turn::Do(Effect::Suspend)),
        Input::Terminal(TerminalEvent::Typed(Event::Key(key))) if key.kind != KeyEventKind::Release => {
            return Ok(Turn::Do(keys::press(model, key)));
        }
        Input::Terminal(TerminalEvent::Typed(Event::Mouse(mouse))) => {
            return Ok(Turn::Do(pointer::point(model, mouse)));
        }
        Input::Resumed | Input::Terminal(TerminalEvent::Ground(_) | TerminalEvent::Typed(Event::Resize(..))) => {}
        Input::Terminal(_) => return Ok(Turn::Idle),
    }
    Ok(Turn::Draw)
}

fn gone(error: io::Error) -> String {
    format!("the terminal cannot be used: {error}")
}

fn screen(model: Model, options: &Options, palette: Palette, ends: Ends) -> Result<(), String> {
    let (to, failed) = (ends.terminal.clone(), ends.terminal.clone());
    // A thread that panics must not block. If the queue is full, the loop is running, and missing values show the
    // failure.
    let failed = move |why| drop(failed.try_send(Input::Failed(why)));
    let (ask, mouse) = (options.ask, options.mouse);
    let mut screen = Screen::take(palette, ask, failed).map_err(gone)?;
    if mouse {
        screen.take_mouse(true).map_err(gone)?;
    }
    let read = move || read(ask, |told| to.send(Input::Terminal(told)).is_ok());
    let reader = std::thread::Builder::new().name("keys".into()).spawn(read);
    reader.map_err(|error| format!("the system does not allow another thread: {error}"))?;
    let ended = show(&mut screen, model, &ends);
    while let Some(patience) = screen.awaits() {
        match ends.inputs.recv_timeout(patience) {
            Ok(Input::Terminal(TerminalEvent::Ground(is_light))) => screen.apply_ground(is_light),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    ended
}

fn show(screen: &mut Screen, mut model: Model, ends: &Ends) -> Result<(), String> {
    loop {
        let zone = Zone::from_span(model.span(), offset);
        screen.draw_model(&mut model, zone).map_err(gone)?;
        let mut due: Option<Instant> = None;
        // Messages that come together are drawn together.
        loop {
            let next = match due {
                None => ends.inputs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(at) => ends.inputs.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            let input = match next {
                Ok(input) => input,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err("the connection has ended".into()),
            };
            let resumed = matches!(input, Input::Resumed);
            let pressed = matches!(input, Input::Terminal(_));
            if let Input::Terminal(TerminalEvent::Ground(is_light)) = input {
                screen.apply_ground(is_light);
            }
            let gather = Instant::now() + if pressed { Duration::ZERO } else { GATHER_TIME };
            match deliver(&mut model, input, &*ends.wish)? {
                Turn::Idle | Turn::Do(Effect::Nothing) => continue,
                Turn::Draw => {}
                Turn::Do(Effect::Quit) => return Ok(()),
                Turn::Do(Effect::Suspend) => screen.suspend().map_err(gone)?,
                Turn::Do(Effect::Reopen) => reopen(&mut model, &*ends.wish),
                Turn::Do(Effect::Theme) => screen.turn_theme(),
                Turn::Do(Effect::Mouse) => {
                    screen.take_mouse(!screen.has_mouse()).map_err(gone)?;
                    model.view.note = match screen.has_mouse() {
                        true => "mouse enabled: click selects, wheel scrolls; M disables it".into(),
                        false => "mouse disabled: it selects text in the terminal".into(),
                    };
                }
                Turn::Do(Effect::Draw) => {
                    for question in model.questions() {
                        send_message(&mut model, question, &*ends.wish);
                    }
                }
            }
            if resumed {
                screen.anew().map_err(gone)?;
            }
            due = Some(due.map_or(gather, |at| at.min(gather)));
        }
    }
}

impl Screen {
    fn draw_model(&mut self, model: &mut Model, zone: Zone) -> io::Result<()> {
        let palette = self.palette;
        self.draw(|area, buffer| board::draw(model, palette, zone, area, buffer))
    }
}

/// Whether one picture is complete, after this number of ticks and this time.
pub(crate) fn whole(model: &Model, ticks: u32, waited: Duration) -> bool {
    let long = model.shown().is_some_and(|source| source.last_t().zip(source.first_t()).is_some_and(|(a, b)| a > b));
    let told = match model.is_recording() {
        true => model.answered,
        false => {
            let answered = model.answered && model.runs.is_some() || waited >= ENOUGH_WAIT;
            answered && (ticks >= ENOUGH_TICKS || model.processes.rows.iter().any(|row| row.cpu.is_some()))
        }
    };
    model.newest() > 0 && told && (long || model.is_recording())
}

fn lines(mut model: Model, form: Form, palette: Palette, ends: &Ends) -> Result<(), String> {
    let palette = Palette { depth: Depth::None, ..palette };
    let started = Instant::now();
    let (mut ticks, mut next) = (0, started);
    let every = if let Form::Plain(every) = form { Some(every) } else { None };
    let width = crossterm::terminal::size().map_or(WIDTH, |(columns, _)| usize::from(columns).max(40));
    let late = || format!("no data within {} s", MAX_WAIT.as_secs());
    loop {
        let ready = whole(&model, ticks, started.elapsed());
        let until = if ready { next } else { started + MAX_WAIT };
        match ends.inputs.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(input) => {
                ticks +=
                    u32::from(matches!(&input, Input::Message(bytes) if bytes.first() == Some(&shared::wire::TICKS)));
                if let Turn::Do(Effect::Quit) = deliver(&mut model, input, &*ends.wish)? {
                    return Ok(());
                }
                if !whole(&model, ticks, started.elapsed()) || Instant::now() < next {
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) if ready => {}
            Err(RecvTimeoutError::Timeout) => return Err(late()),
            Err(RecvTimeoutError::Disconnected) => return Err("the connection has ended".into()),
        }
        let text = match form {
            Form::Json => text::json_line(&mut model),
            _ => {
                let local = offset(model.span().1);
                text::lines(&mut model, palette, local, width, 10)
            }
        };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            other => other.map_err(|error| format!("standard output cannot be written: {error}"))?,
        }
        let Some(every) = every else { return Ok(()) };
        next = Instant::now() + every;
    }
}
