//! The WebSocket: opens, resumes, acknowledges, notices silence, tries again.
//!
//! An open socket proves nothing (a proxy answers before it has reached the server), so the page is live, and the
//! waiting time between attempts starts again, with the first sample.

use crate::browser::{now, performance, window};
use crate::state::{LinkState, Page, Received};
use crate::store::source::Source;
use leptos::prelude::*;
use shared::window::LONGEST_OF_SAMPLES;
use shared::wire::{self, CREDIT, HEARTBEAT_MS, PROTOCOL, PageMessage};
use std::time::Duration;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{BinaryType, MessageEvent, WebSocket};

/// First and longest waiting time between attempts, ms.
const WAIT_MS: (u32, u32) = (250, 4_000);
/// Silence after which a connection is dead: the server sends something at least every 5 s.
const SILENCE_MS: i64 = 12_000;
/// So much apart this machine's clocks are after a step or a sleep, ms.
const STEP_MS: f64 = 2_000.0;
/// A machine that sends seldom is silent after three of its intervals, any other after this, ms.
const QUIET_MS: i64 = 6_000;
/// An answer is given up for lost after this, ms: then what is missing is asked for again.
const ANSWER_MS: i64 = 30_000;
/// Attempts after which the page says that the server is gone: about a minute.
const ATTEMPTS: u32 = 18;

type Handlers = (Closure<dyn FnMut(MessageEvent)>, Closure<dyn FnMut()>);

/// One socket after the other.
#[derive(Default)]
struct Connection {
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

impl Connection {
    fn send(&self, message: &PageMessage) {
        if let Some(socket) = self.socket.as_ref().filter(|s| s.ready_state() == WebSocket::OPEN) {
            // A socket that is closing says so in its own event.
            let _ = socket.send_with_u8_array(&wire::encode(message));
        }
    }

    /// Asks the server. Of history it gives one answer at a time: what is asked meanwhile is dropped, and asked again
    /// when the answer has come.
    fn ask(&mut self, message: &PageMessage) {
        if matches!(message, PageMessage::History { .. } | PageMessage::Minutes { .. }) {
            if now() - self.asked <= ANSWER_MS {
                return;
            }
            self.asked = now();
        }
        self.send(message);
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
    let base = window().location().href().ok()?;
    let url = web_sys::Url::new_with_base("api/v1/live", &base).ok()?;
    url.set_search("");
    url.set_hash("");
    url.set_protocol(if url.protocol() == "https:" { "wss:" } else { "ws:" });
    Some(url.href())
}

/// The connection of the page; a copy is the same connection.
#[derive(Clone, Copy)]
pub struct Link {
    page: Page,
    inner: StoredValue<Connection, LocalStorage>,
}

impl Link {
    /// Connects, and keeps the connection for as long as the page stands.
    pub fn start(page: Page) -> Self {
        let link = Link { page, inner: StoredValue::new_local(Connection::default()) };
        Effect::new(move || {
            page.outbox.track();
            let all = std::mem::take(&mut *page.outbox.write_untracked());
            all.iter().for_each(|message| link.inner.write_value().ask(message));
        });
        Effect::new(move || {
            if page.over.get() {
                link.end();
            }
        });
        link.connect();
        set_interval(move || link.beat(), Duration::from_secs(1));
        link
    }

    /// Opens the connection, unless the page is hidden.
    fn connect(self) {
        let number = {
            let mut link = self.inner.write_value();
            link.close();
            link.waiting = false;
            if link.hidden || link.over {
                return;
            }
            (link.taken, link.told_of, link.heard, link.acked, link.asked) = (0, 0, now(), now(), 0);
            link.number += 1;
            link.number
        };
        let Some(socket) = address().and_then(|url| WebSocket::new(&url).ok()) else {
            return self.lost(number);
        };
        socket.set_binary_type(BinaryType::Arraybuffer);
        let opened = socket.clone();
        let on_open = Closure::once_into_js(move || {
            // A socket that is closing says so in its own event.
            let _ = opened.send_with_u8_array(&wire::encode(&self.opening()));
        });
        socket.set_onopen(Some(on_open.unchecked_ref()));
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            if let Ok(buffer) = event.data().dyn_into::<js_sys::ArrayBuffer>() {
                self.receive(&js_sys::Uint8Array::new(&buffer).to_vec(), number);
            }
        });
        let on_close = Closure::<dyn FnMut()>::new(move || self.lost(number));
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        let mut link = self.inner.write_value();
        link.socket = Some(socket);
        link.handlers = Some((on_message, on_close));
    }

    fn opening(self) -> PageMessage {
        let page = self.page;
        let anew = std::mem::take(&mut self.inner.write_value().anew);
        let resume = if anew { None } else { page.store.read_value().places() };
        let (from, to) = page.span();
        let window = match (page.server_now() - from).max(to - from) {
            // Days come as minutes, and what lies far back by itself.
            far if far > LONGEST_OF_SAMPLES => 3_600_000,
            near => near + 5_000,
        };
        let source = page.view.with_untracked(|view| view.source.clone());
        PageMessage::Open { protocol: PROTOCOL, window, resume, source }
    }

    fn receive(self, bytes: &[u8], number: u32) {
        if self.inner.read_value().number != number {
            return;
        }
        self.inner.write_value().heard = now();
        let received = self.page.receive(bytes);
        let mut link = self.inner.write_value();
        if self.page.state.get_untracked() == LinkState::Live {
            link.attempt = 0;
        }
        match received {
            Received::Control => {}
            Received::Ticks => {
                link.taken += 1;
                // Before the server holds ticks back, and seldom: each costs it as much as a tick.
                if link.taken - link.told_of >= CREDIT / 2 {
                    link.ack();
                }
            }
            Received::Answered => link.asked = 0,
            Received::Broken => {
                link.anew = true;
                link.close();
                drop(link);
                self.lost(number);
            }
        }
    }

    fn lost(self, number: u32) {
        let (wait, many) = {
            let mut link = self.inner.write_value();
            if link.number != number || link.waiting || link.hidden || link.over {
                return;
            }
            link.close();
            link.waiting = true;
            let step = WAIT_MS.0.checked_shl(link.attempt.min(8)).unwrap_or(WAIT_MS.1).min(WAIT_MS.1);
            link.attempt += 1;
            (f64::from(step) * (0.75 + js_sys::Math::random() * 0.5), link.attempt > ATTEMPTS)
        };
        let state = match self.page.state.get_untracked() {
            _ if many => LinkState::Lost,
            LinkState::Connecting => LinkState::Connecting,
            LinkState::Lost => LinkState::Lost,
            _ => LinkState::Reconnecting,
        };
        self.page.state.set(state);
        self.page.redraw();
        let again = move || {
            if self.inner.read_value().waiting {
                self.connect();
            }
        };
        set_timeout(again, Duration::from_millis(wait as u64));
    }

    /// Ends the connection for good: a file is shown in its place.
    fn end(self) {
        let mut link = self.inner.write_value();
        (link.over, link.waiting) = (true, false);
        link.close();
    }

    /// Whether this machine's clock was set, or it slept, since the last beat: then one of its clocks went on without the
    /// other, and what was known of the server's clock and of the connection is worth nothing.
    fn stepped(self) -> bool {
        let clocks = (now(), performance());
        let before = std::mem::replace(&mut self.inner.write_value().clocks, clocks);
        let apart = (clocks.0 - before.0) as f64 - (clocks.1 - before.1);
        before.0 > 0 && apart.abs() > STEP_MS
    }

    /// Once a second: heartbeat, silence, and a new picture when ticks stay away.
    fn beat(self) {
        let (silent, number) = {
            let mut link = self.inner.write_value();
            if now() - link.acked > HEARTBEAT_MS as i64 - 1_500 {
                link.ack();
            }
            (link.socket.is_some() && now() - link.heard > SILENCE_MS, link.number)
        };
        if silent {
            self.lost(number);
        } else if self.stepped() {
            self.connect();
        }
        let page = self.page;
        listen_for_machine(page);
        page.beat.update(|n| *n = n.wrapping_add(1));
        let late = |s: &Source| s.last_t().is_none_or(|t| page.server_now() - t > s.info.interval * 2);
        if of_source(page, late).unwrap_or(true) {
            page.redraw();
        }
    }

    /// The page was hidden or is seen again: hidden it asks for nothing, and comes back from where it left off.
    pub fn set_hidden(self, hidden: bool) {
        {
            let mut link = self.inner.write_value();
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
        self.connect();
    }
}

/// Something about the machine that is shown; none while there is no machine.
fn of_source<T>(page: Page, read: impl FnOnce(&Source) -> T) -> Option<T> {
    let store = page.store.read_value();
    page.view.with_untracked(|v| store.source(v.source.as_deref())).map(read)
}

/// Whether the machine that is shown has sent nothing for a while, though the server is there.
fn listen_for_machine(page: Page) {
    let late = |s: &Source| s.last_t().is_some_and(|t| page.server_now() - t > (s.info.interval * 3).max(QUIET_MS));
    let live = page.state.get_untracked() == LinkState::Live && !page.is_recorded();
    let silent = of_source(page, late).unwrap_or(false) && live && !page.is_told();
    if page.silent.get_untracked() != silent {
        page.silent.set(silent);
    }
}
