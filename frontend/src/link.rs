//! The WebSocket: opens, resumes, acknowledges, notices silence, tries again.
//!
//! An open socket proves nothing (a proxy answers before it has reached the server), so the page is live, and the
//! waiting time between attempts starts again, with the first sample.

use crate::page::{LinkState, Page, browser, now, performance};
use crate::store::Changed;
use crate::store::source::Source;
use leptos::prelude::*;
use shared::window::LONGEST_OF_SAMPLES;
use shared::wire::{self, CREDIT, HEARTBEAT_MS, PROTOCOL, PageMessage, Received, ServerMessage, SourceId};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{BinaryType, MessageEvent, WebSocket};

/// First and longest waiting time between attempts, ms.
const WAIT: (u32, u32) = (250, 4_000);
/// Silence after which a connection is dead: the server sends something at least every 5 s.
const SILENCE: i64 = 12_000;
/// So much apart this machine's clocks are after a step or a sleep, ms.
const STEP: f64 = 2_000.0;
/// The past comes in messages with less than this between them, ms.
const TOLD: i64 = 1_500;
/// A machine that sends seldom is silent after three of its intervals, any other after this, ms.
const QUIET: i64 = 6_000;
/// An answer is given up for lost after this, ms: then what is missing is asked for again.
const PATIENCE: i64 = 30_000;
/// Attempts after which the page says that the server is gone: about a minute.
const MANY: u32 = 18;

type Handlers = (Closure<dyn FnMut(MessageEvent)>, Closure<dyn FnMut()>);

/// The connection of the page.
#[derive(Default)]
pub struct Link {
    socket: Option<WebSocket>,
    /// Kept as long as the socket; of sockets before too, whose last events may still be on their way.
    handlers: Option<Handlers>,
    attempt: u32,
    number: u32,
    taken: u32,
    /// How many of those taken the server has been told of.
    told_of: u32,
    acked: i64,
    heard: i64,
    /// When ticks of the machine that is shown came last, ms.
    told: i64,
    /// When history was asked for that has not come; 0 when it has.
    asked: i64,
    hidden: bool,
    waiting: bool,
    anew: bool,
    /// A file is shown: there is nothing to ask a server for.
    over: bool,
    /// Both of this machine's clocks at the last beat, ms.
    clocks: (i64, f64),
}

impl Link {
    fn send(&self, message: &PageMessage) {
        if let Some(socket) = self.socket.as_ref().filter(|s| s.ready_state() == WebSocket::OPEN) {
            // A socket that is closing says so in its own event.
            let _ = socket.send_with_u8_array(&wire::encode(message));
        }
    }

    /// Whether a file is shown, and no server is asked any more.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether ticks are coming right now: while they are old ones the past is on its way, and nothing is late.
    pub fn is_told(&self) -> bool {
        now() - self.told < TOLD
    }

    /// Asks for what is answered once.
    pub fn ask(&self, message: &PageMessage) {
        self.send(message);
    }

    /// Asks for history, unless another answer is on its way: the server gives one at a time.
    pub fn history(&mut self, message: &PageMessage) {
        if now() - self.asked > PATIENCE {
            self.asked = now();
            self.send(message);
        }
    }

    fn ack(&mut self) {
        (self.acked, self.told_of) = (now(), self.taken);
        self.send(&PageMessage::Ack { messages: self.taken });
    }

    fn close(&mut self) {
        if let Some(socket) = self.socket.take() {
            socket.set_onopen(None);
            socket.set_onmessage(None);
            socket.set_onclose(None);
            // Refused only for a wrong code, and none is given.
            let _ = socket.close();
        }
    }
}

fn address() -> Option<String> {
    let base = browser().location().href().ok()?;
    let url = web_sys::Url::new_with_base("api/v1/live", &base).ok()?;
    url.set_search("");
    url.set_hash("");
    url.set_protocol(if url.protocol() == "https:" { "wss:" } else { "ws:" });
    Some(url.href())
}

/// Opens the connection, unless the page is hidden.
pub fn connect(page: Page) {
    {
        let mut link = page.link.borrow_mut();
        link.close();
        link.waiting = false;
        if link.hidden || link.over {
            return;
        }
        (link.taken, link.told_of, link.heard, link.acked, link.asked) = (0, 0, now(), now(), 0);
        link.number += 1;
    }
    let number = page.link.borrow().number;
    let Some(socket) = address().and_then(|url| WebSocket::new(&url).ok()) else {
        return lost(page, number);
    };
    socket.set_binary_type(BinaryType::Arraybuffer);
    let opened = socket.clone();
    let on_open = Closure::once_into_js(move || {
        let message = open(page);
        // A socket that is closing says so in its own event.
        let _ = opened.send_with_u8_array(&wire::encode(&message));
    });
    socket.set_onopen(Some(on_open.unchecked_ref()));
    let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
        if let Ok(buffer) = event.data().dyn_into::<js_sys::ArrayBuffer>() {
            receive(page, &js_sys::Uint8Array::new(&buffer).to_vec(), number);
        }
    });
    let on_close = Closure::<dyn FnMut()>::new(move || lost(page, number));
    socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
    socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
    let mut link = page.link.borrow_mut();
    link.socket = Some(socket);
    link.handlers = Some((on_message, on_close));
}

fn open(page: Page) -> PageMessage {
    let resume = if std::mem::take(&mut page.link.borrow_mut().anew) { None } else { page.store.borrow().places() };
    let (from, to) = page.span();
    let window = match (page.server_now() - from).max(to - from) {
        // Days come as minutes, and what lies far back by itself.
        far if far > LONGEST_OF_SAMPLES => 3_600_000,
        near => near + 5_000,
    };
    let source = page.view.with_untracked(|view| view.source.clone());
    PageMessage::Open { protocol: PROTOCOL, window, resume, source }
}

fn receive(page: Page, bytes: &[u8], number: u32) {
    if page.link.borrow().number != number {
        return;
    }
    page.link.borrow_mut().heard = now();
    take(page, bytes);
}

/// Takes in a message of the server, or of what reads a file in its place.
pub fn take(page: Page, bytes: &[u8]) {
    match wire::decode_server(bytes) {
        Ok(Received::Ticks(source, frames)) => {
            let applied = page.store.borrow_mut().ticks(source, &frames);
            let shown = {
                let store = page.store.borrow();
                page.view.with_untracked(|v| store.source(v.source.as_deref()).is_some_and(|s| s.info.id == source))
            };
            {
                let mut link = page.link.borrow_mut();
                link.taken += 1;
                if shown {
                    link.told = now();
                }
                // Before the server holds ticks back, and seldom: each costs it as much as a tick.
                if link.taken - link.told_of >= CREDIT / 2 {
                    link.ack();
                }
            }
            match applied {
                Ok(true) => sampled(page, source),
                Ok(false) => {}
                Err(_) => anew(page),
            }
        }
        Ok(Received::Control(message)) => control(page, message),
        Err(_) => anew(page),
    }
}

fn sampled(page: Page, source: SourceId) {
    if page.state.get_untracked() != LinkState::Live {
        live(page);
        // What was asked for while the connection was away.
        page.load();
    }
    page.link.borrow_mut().attempt = 0;
    let back = page.store.borrow_mut().sources.get_mut(&source).and_then(|s| s.hand_back());
    if let Some((from, to)) = back {
        page.link.borrow_mut().history(&PageMessage::History { source, from, to });
        // Where nothing moves the view, once in a while.
        page.load();
    }
    page.changed(Changed { ticks: true, ..Changed::default() });
}

/// The server has shown that it is there.
fn live(page: Page) {
    page.link.borrow_mut().attempt = 0;
    page.goodbye.set(String::new());
    page.state.set(LinkState::Live);
}

fn control(page: Page, message: ServerMessage) {
    if let ServerMessage::Processes(table) = message {
        return page.processes.set(Some(table));
    }
    match &message {
        ServerMessage::Hello(hello) => {
            page.ahead.set(hello.now - now());
            let known = page.player.with_untracked(|p| p.as_ref().map(|p| p.recorded.clone()));
            if let Some(recorded) = hello.recorded.clone().filter(|recorded| known.as_ref() != Some(recorded)) {
                page.recorded(recorded);
            }
            if hello.protocol != PROTOCOL {
                page.goodbye.set(format!("The server is now version {}: reload the page.", hello.version));
                page.state.set(LinkState::Lost);
            }
        }
        ServerMessage::Heartbeat { now: theirs } => {
            page.ahead.set(theirs - now());
            // The server is there though no tick comes: what it keeps of the machine is to be seen.
            let any = |page: Page| {
                let store = page.store.borrow();
                page.view.with_untracked(|v| store.source(v.source.as_deref()).is_some_and(|s| s.last_t().is_some()))
            };
            if page.state.get_untracked() != LinkState::Live && any(page) {
                live(page);
            }
        }
        ServerMessage::Goodbye { reason } => page.goodbye.set(reason.clone()),
        _ => {}
    }
    let ended = matches!(message, ServerMessage::HistoryEnd { .. } | ServerMessage::MinutesEnd { .. });
    let hello = matches!(message, ServerMessage::Hello(_));
    let changed = page.store.borrow_mut().take(message);
    page.changed(changed);
    if ended && page.player.with_untracked(Option::is_some) {
        // Of a recording there is history alone.
        live(page);
    }
    if hello {
        page.fit();
    }
    if ended {
        page.link.borrow_mut().asked = 0;
        page.load();
    }
}

/// The bytes made no sense, or a tick is missing: everything is asked for anew.
fn anew(page: Page) {
    page.link.borrow_mut().anew = true;
    page.store.borrow_mut().take(ServerMessage::Resync);
    let number = page.link.borrow().number;
    page.link.borrow_mut().close();
    lost(page, number);
}

fn lost(page: Page, number: u32) {
    let wait = {
        let mut link = page.link.borrow_mut();
        if link.number != number || link.waiting || link.hidden || link.over {
            return;
        }
        link.close();
        link.waiting = true;
        let step = WAIT.0.checked_shl(link.attempt.min(8)).unwrap_or(WAIT.1).min(WAIT.1);
        link.attempt += 1;
        f64::from(step) * (0.75 + js_sys::Math::random() * 0.5)
    };
    let many = page.link.borrow().attempt > MANY;
    let state = match page.state.get_untracked() {
        _ if many => LinkState::Lost,
        LinkState::Connecting => LinkState::Connecting,
        LinkState::Lost => LinkState::Lost,
        _ => LinkState::Reconnecting,
    };
    page.state.set(state);
    page.redraw();
    set_timeout(
        move || {
            if page.link.borrow().waiting {
                connect(page);
            }
        },
        std::time::Duration::from_millis(wait as u64),
    );
}

/// Ends the connection for good: a file is shown in its place.
pub fn end(page: Page) {
    {
        let mut link = page.link.borrow_mut();
        (link.over, link.waiting) = (true, false);
        link.close();
    }
    page.goodbye.set(String::new());
    page.state.set(LinkState::Live);
}

/// Whether this machine's clock was set, or it slept, since the last beat: then one of its clocks went on without the
/// other, and what was known of the server's clock and of the connection is worth nothing.
fn stepped(page: Page) -> bool {
    let clocks = (now(), performance());
    let before = std::mem::replace(&mut page.link.borrow_mut().clocks, clocks);
    let apart = (clocks.0 - before.0) as f64 - (clocks.1 - before.1);
    before.0 > 0 && apart.abs() > STEP
}

/// Whether the machine that is shown has sent nothing for a while, though the server is there.
fn listen_for(page: Page) {
    let quiet = {
        let store = page.store.borrow();
        let source = page.view.with_untracked(|v| store.source(v.source.as_deref()));
        let late = |s: &Source| Some(page.server_now() - s.last_t()? > (s.info.interval * 3).max(QUIET));
        source.and_then(late).unwrap_or(false)
    };
    let live = page.state.get_untracked() == LinkState::Live && page.player.with_untracked(Option::is_none);
    let silent = quiet && live && !page.link.borrow().is_told();
    if page.silent.get_untracked() != silent {
        page.silent.set(silent);
    }
}

/// Once a second: heartbeat, silence, and a new picture when ticks stay away.
pub fn beat(page: Page) {
    let (silent, number) = {
        let mut link = page.link.borrow_mut();
        if now() - link.acked > HEARTBEAT_MS as i64 - 1_500 {
            link.ack();
        }
        (link.socket.is_some() && now() - link.heard > SILENCE, link.number)
    };
    if silent {
        lost(page, number);
    } else if stepped(page) {
        connect(page);
    }
    listen_for(page);
    page.beat.update(|n| *n = n.wrapping_add(1));
    let late = {
        let store = page.store.borrow();
        let view = page.view.get_untracked();
        let source = store.source(view.source.as_deref());
        source.is_none_or(|s| s.last_t().is_none_or(|t| page.server_now() - t > s.info.interval * 2))
    };
    if late {
        page.redraw();
    }
}

/// The page was hidden or is seen again: hidden it asks for nothing, and comes back from where it left off.
pub fn set_hidden(page: Page, hidden: bool) {
    {
        let mut link = page.link.borrow_mut();
        if link.hidden == hidden {
            return;
        }
        link.hidden = hidden;
        if hidden {
            link.close();
            link.waiting = false;
            return;
        }
    }
    connect(page);
}
