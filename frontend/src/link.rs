//! The link of the page: it opens, resumes, acknowledges ticks, notices silence and reconnects, by a WebSocket or
//! another transport: see [`crate::carrier`].
//!
//! An open socket proves nothing, because a proxy may answer before it has reached the server. So the page counts as
//! live, and the back-off starts again, with the first sample.

use crate::browser::{now, performance, window};
use crate::carrier::{Carrier, Hooks, Transport};
use crate::state::{LinkState, Page, Received};
use crate::store::source::Source;
use leptos::prelude::*;
use shared::window::MAX_SAMPLES_SPAN_MS;
use shared::wire::{self, CREDIT, HEARTBEAT_MS, PROTOCOL, PageMessage, ServerMessage};
use std::rc::Rc;
use std::time::Duration;
use viewer::flow::{Arrived, Flow, flow};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

/// Shortest and longest back-off between two attempts to connect, in ms.
const RECONNECT_MS: (u32, u32) = (250, 4_000);
/// Silence in ms after which a connection is dead. The server sends something at least every 5 s.
const DEAD_AFTER_MS: i64 = 12_000;
/// When this machine's two clocks differ by more than this many ms, a clock was set or the machine slept.
const CLOCK_STEP_MS: f64 = 2_000.0;
/// Timeout of a history request, in ms; it may then be sent again.
const ANSWER_TIMEOUT_MS: i64 = 30_000;
/// Number of failed attempts after which the page reports the server as lost; they take about a minute.
const MAX_ATTEMPTS: u32 = 18;

/// Time without a message after which a connection may be blocked, in ms. A blocked connection is closed one second
/// later.
const BLOCKED_AFTER_MS: i64 = 3_000;
/// The same of one that follows a connection which was blocked.
const AGAIN_BLOCKED_AFTER_MS: i64 = 2_000;
/// Timeout of a connection after the server has answered a request beside it, as a multiple of the time of that answer,
/// and its minimum and maximum in ms. A connection that is only slow, or waits for a busy page, is not blocked.
const CONNECT_TIMEOUT_FACTOR: i64 = 4;
const PATIENCE_MS: (i64, i64) = (500, 6_000);
/// Number of WebSockets without a message, while the server responds, before the next transport is tried. Other
/// transports are tried once.
const BLOCKED_SOCKETS: u32 = 2;
/// Interval of WebSocket retries while the page is live by another transport, in ms.
const PROBE_MS: i64 = 300_000;
/// Message when the server or a proxy refuses the WebSocket.
const REFUSED: &str = "the server responds, but refuses WebSockets. A proxy, a firewall or an extension of the \
    browser must allow ws connections to api/v1/live. The page retries.";
/// Message when the opening of the WebSocket times out.
const SWALLOWED: &str = "the server responds, but WebSockets time out. A proxy must pass the headers Upgrade and \
    Connection for api/v1/live. The page retries.";
/// Message when the WebSocket opens and delivers nothing.
const OPENED_ONLY: &str = "the WebSocket opens, but no messages arrive: a proxy buffers them. The page retries.";

/// Message when the transports without WebSocket deliver nothing either.
const NEITHER: &str = "the server responds, but a proxy blocks WebSockets and all other streams. The page retries.";

/// The state of the connection. It has one carrier after another.
#[derive(Default)]
struct Connection {
    carrier: Option<Carrier>,
    /// The one before. It stays until the next one is closed, since late events may still call it.
    closed: Option<Carrier>,
    /// The present transport, and its number of successive connections without a message while the server responds.
    transport: Transport,
    blocked: u32,
    /// A socket that is tried beside another transport, and the time of the last try.
    probe: Option<Carrier>,
    probed: i64,
    attempt: u32,
    number: u32,
    taken: u32,
    /// Number of messages with ticks in the last acknowledgment.
    told_of: u32,
    acked: i64,
    heard: i64,
    /// Time of the open history request, ms since the epoch; 0 without one.
    asked: i64,
    hidden: bool,
    waiting: bool,
    anew: bool,
    /// True when the newest socket has opened.
    opened: bool,
    /// True when the newest socket was checked for a blocked transport.
    looked: bool,
    /// True when it has brought something.
    brought: bool,
    /// Timeout after an answer that arrived beside it, in ms.
    patience: i64,
    /// True when a file is shown, so that no server is needed.
    over: bool,
    /// True while the user must sign in first.
    shut: bool,
    /// The wall clock (ms since the epoch) and the fine clock (ms) of this machine at the last beat.
    clocks: (i64, f64),
}

impl Connection {
    fn send(&self, message: &PageMessage) {
        if let Some(carrier) = &self.carrier {
            carrier.send(&wire::encode(message));
        }
    }

    /// Sends a request to the server. Only one history request is open at a time: further ones are dropped, and the
    /// page repeats them after the answer.
    fn ask(&mut self, message: &PageMessage) {
        if matches!(message, PageMessage::History { .. } | PageMessage::Minutes { .. }) {
            if now() - self.asked <= ANSWER_TIMEOUT_MS {
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

    /// Holds no socket and waits for none.
    fn rest(&mut self) {
        self.close();
        (self.waiting, self.blocked) = (false, 0);
    }

    fn close(&mut self) {
        for carrier in [self.carrier.take(), self.probe.take()].into_iter().flatten() {
            carrier.close();
            self.closed = Some(carrier);
        }
    }

    /// Uses this transport from now on.
    fn step(&mut self, transport: Transport) {
        (self.transport, self.blocked, self.attempt, self.probed) = (transport, 0, 1, now());
        transport.keep();
    }
}

/// The connection of the page; copies share it.
#[derive(Clone, Copy)]
pub struct Link {
    page: Page,
    inner: StoredValue<Connection, LocalStorage>,
}

impl Link {
    /// Connects, and keeps the connection open as long as the page exists.
    pub fn start(page: Page) -> Self {
        let begun = Connection { transport: Transport::kept(), probed: now(), ..Connection::default() };
        let link = Link { page, inner: StoredValue::new_local(begun) };
        Effect::new(move || {
            page.outbox.track();
            let all = std::mem::take(&mut *page.outbox.write_untracked());
            all.iter().for_each(|message| link.inner.write_value().ask(message));
        });
        Effect::new(move || {
            let over = page.over.get();
            if over {
                link.end();
            } else if std::mem::take(&mut link.inner.write_value().over) {
                link.inner.write_value().anew = true;
                link.connect();
            }
        });
        Effect::new(move |before: Option<bool>| {
            let shut = page.shut.get();
            link.inner.write_value().shut = shut;
            match before {
                Some(true) if !shut => {
                    // A connection refused before the sign-in does not prove that the transport is blocked.
                    link.inner.write_value().step(Transport::Socket);
                    link.connect();
                }
                _ if shut => link.inner.write_value().rest(),
                _ => {}
            }
            shut
        });
        // Another page follows other machines.
        let follows = Memo::new(move |_| {
            page.machines.track();
            (page.place(), page.followed())
        });
        Effect::new(move |before: Option<()>| {
            // A memo without a reader is not notified.
            follows.with(|_| ());
            // A file has all of its machines, and no new samples arrive.
            if before.is_some() && !page.over.get_untracked() {
                // The samples received for another page have gaps for this one.
                page.store.write_value().take(ServerMessage::Resync);
                link.inner.write_value().anew = true;
                link.connect();
            }
        });
        link.connect();
        set_interval(move || link.beat(), Duration::from_secs(1));
        link
    }

    /// Opens a new socket, unless the page is hidden or shows a file.
    fn connect(self) {
        let number = {
            let mut link = self.inner.write_value();
            link.close();
            link.waiting = false;
            if link.hidden || link.over || link.shut {
                return;
            }
            (link.taken, link.told_of, link.heard, link.acked, link.asked) = (0, 0, now(), now(), 0);
            (link.opened, link.looked, link.brought) = (false, false, false);
            link.number += 1;
            link.number
        };
        let heard = Hooks {
            opened: Rc::new(move || {
                self.inner.write_value().opened = true;
                let opening = self.opening();
                let link = self.inner.read_value();
                link.send(&opening);
                self.page.overviews().iter().for_each(|overview| link.send(overview));
            }),
            message: Rc::new(move |bytes| self.receive(&bytes, number)),
            lost: Rc::new(move || self.lost(number)),
        };
        let (share, transport) = (self.share(), self.inner.with_value(|link| link.transport));
        match Carrier::open(transport, share, heard) {
            Some(carrier) => self.inner.write_value().carrier = Some(carrier),
            None => self.lost(number),
        }
    }

    fn share(self) -> Option<String> {
        self.page.view.with_untracked(|v| v.share.clone())
    }

    /// Tries a socket beside the transport that works. The server sends a message at least every 5 s, so any message
    /// proves that sockets pass again.
    fn probe(self) {
        self.inner.write_value().probed = now();
        let passes = move || {
            if self.inner.read_value().probe.is_some() {
                self.inner.write_value().step(Transport::Socket);
                self.connect();
            }
        };
        let heard = Hooks { opened: Rc::new(|| {}), message: Rc::new(move |_| passes()), lost: Rc::new(|| {}) };
        let probe = Carrier::open(Transport::Socket, self.share(), heard);
        let before = std::mem::replace(&mut self.inner.write_value().probe, probe);
        before.iter().for_each(Carrier::close);
    }

    fn opening(self) -> PageMessage {
        let page = self.page;
        let anew = std::mem::take(&mut self.inner.write_value().anew);
        let resume = if anew { None } else { page.store.write_value().resume() };
        let (from, to) = page.span();
        let window = match (page.server_now() - from).max(to - from) {
            // Spans of days are drawn from minutes, and older history is requested separately, so an hour is enough
            // here.
            far if far > MAX_SAMPLES_SPAN_MS => 3_600_000,
            near => near + 5_000,
        };
        PageMessage::Open { protocol: PROTOCOL, window, resume, sources: page.followed() }
    }

    fn receive(self, bytes: &[u8], number: u32) {
        if self.inner.read_value().number != number {
            return;
        }
        {
            let mut link = self.inner.write_value();
            (link.heard, link.looked, link.brought, link.blocked, link.patience) = (now(), true, true, 0, 0);
        }
        let way = self.inner.with_value(|link| link.transport.words());
        if self.page.way.with_untracked(|known| *known != way) {
            self.page.way.set(way);
        }
        self.page.blocked.set("");
        let received = self.page.receive(bytes);
        let mut link = self.inner.write_value();
        if self.page.state.get_untracked() == LinkState::Live {
            link.attempt = 0;
        }
        match received {
            Received::Control => {}
            Received::Ticks => {
                link.taken += 1;
                // This is sent before the server holds ticks back, and rarely, because each acknowledgment costs the
                // server as much as a tick.
                if link.taken - link.told_of >= CREDIT / 2 {
                    link.ack();
                }
            }
            Received::Answered => link.asked = 0,
            Received::Broken => {
                link.anew = true;
                link.close();
                drop(link);
                return self.lost(number);
            }
        }
        drop(link);
        self.note_flow();
    }

    fn lost(self, number: u32) {
        self.probe_server(number);
        let (wait, many) = {
            let mut link = self.inner.write_value();
            if link.number != number || link.waiting || link.hidden || link.over || link.shut {
                return;
            }
            // An unreachable server does not refuse, but the browser reports both alike.
            let new = self.page.state.get_untracked() == LinkState::Connecting;
            if !link.opened && (new || self.page.accounts.get_untracked()) {
                self.page.turned_away.update(|n| *n += 1);
            }
            link.close();
            link.waiting = true;
            let step = RECONNECT_MS.0.checked_shl(link.attempt.min(8)).unwrap_or(RECONNECT_MS.1).min(RECONNECT_MS.1);
            link.attempt += 1;
            (f64::from(step) * (0.75 + js_sys::Math::random() * 0.5), link.attempt > MAX_ATTEMPTS)
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

    /// Finds out, once for each socket that brought no message, whether the server can be reached without a socket, and
    /// then reports the blocked transport.
    fn probe_server(self, number: u32) {
        let opened = {
            let mut link = self.inner.write_value();
            if link.number != number || link.hidden || std::mem::replace(&mut link.looked, true) {
                return;
            }
            (link.opened, link.carrier.as_ref().is_some_and(Carrier::is_opening))
        };
        let words = match opened {
            _ if self.inner.with_value(|link| link.transport != Transport::Socket) => NEITHER,
            // A server that restarts refuses one socket, too.
            (false, false) if self.inner.with_value(|link| link.attempt == 0) => return,
            (true, _) => OPENED_ONLY,
            (false, true) => SWALLOWED,
            (false, false) => REFUSED,
        };
        let (page, begun) = (self.page, now());
        let answered = Closure::once(move |answer: JsValue| {
            if !answer.unchecked_into::<web_sys::Response>().ok() {
                return;
            }
            let patience = ((now() - begun) * CONNECT_TIMEOUT_FACTOR).clamp(PATIENCE_MS.0, PATIENCE_MS.1);
            self.inner.write_value().patience = patience;
            // Messages that arrived meanwhile are handled first.
            let judge = move || {
                let brought = self.inner.with_value(|link| link.number != number || link.brought);
                if !brought && page.state.get_untracked() != LinkState::Live {
                    page.blocked.set(words);
                    self.step_down(number);
                }
            };
            set_timeout(judge, Duration::from_millis(patience as u64));
        });
        // If this fails too, the server is unreachable, and the page shows that.
        let failed = Closure::once(move |_: JsValue| page.blocked.set(""));
        let _ = window().fetch_with_str("healthz").then2(&answered, &failed);
        answered.forget();
        failed.forget();
    }

    /// Uses the next transport where the present one is blocked: the server responds, but a connection delivered
    /// nothing.
    fn step_down(self, number: u32) {
        {
            let mut link = self.inner.write_value();
            // A connection that was replaced, hidden, ended, or waits for a sign-in is not judged.
            if link.number != number || link.shut || link.hidden || link.over {
                return;
            }
            link.blocked += 1;
            if link.transport == Transport::Socket && link.blocked < BLOCKED_SOCKETS {
                return;
            }
            let next = link.transport.next();
            link.step(next);
        }
        self.connect();
    }

    /// Ends the connection for good, because a file is shown in its place.
    fn end(self) {
        let mut link = self.inner.write_value();
        (link.over, link.waiting) = (true, false);
        link.close();
    }

    /// True when this machine's clock was set, or the machine slept, since the last beat: one of its clocks then went
    /// on without the other. The estimate of the server's clock and the connection are then invalid.
    fn stepped(self) -> bool {
        let clocks = (now(), performance());
        let before = std::mem::replace(&mut self.inner.write_value().clocks, clocks);
        let apart = (clocks.0 - before.0) as f64 - (clocks.1 - before.1);
        before.0 > 0 && apart.abs() > CLOCK_STEP_MS
    }

    /// Runs once a second: sends a heartbeat, notices silence, and redraws the page when ticks are missing.
    fn beat(self) {
        let (silent, number) = {
            let mut link = self.inner.write_value();
            if now() - link.acked > HEARTBEAT_MS as i64 - 1_500 {
                link.ack();
            }
            // A connection without any message, while the server responds, ends after the shorter timeout.
            let blocked = link.blocked > 0 && now() - link.heard > BLOCKED_AFTER_MS + link.patience + 1_000;
            (link.carrier.is_some() && (blocked || now() - link.heard > DEAD_AFTER_MS), link.number)
        };
        let quiet = |link: &Connection| {
            let again = link.blocked > 0 || link.transport != Transport::Socket;
            let after = if again { AGAIN_BLOCKED_AFTER_MS } else { BLOCKED_AFTER_MS };
            link.carrier.is_some() && now() - link.heard > after
        };
        if self.inner.with_value(quiet) {
            self.probe_server(number);
        }
        let due = |link: &Connection| {
            link.transport != Transport::Socket && link.carrier.is_some() && now() - link.probed > PROBE_MS
        };
        if silent {
            self.lost(number);
        } else if self.stepped() {
            self.connect();
        } else if self.inner.with_value(due) {
            self.probe();
        }
        let page = self.page;
        self.note_flow();
        page.beat.update(|n| *n = n.wrapping_add(1));
        let late = |s: &Source| s.last_t().is_none_or(|t| page.server_now() - t > s.info.interval * 2);
        if of_source(page, late).unwrap_or(true) {
            page.redraw();
        }
    }

    /// Records how the samples of the shown machine arrive, and whether their history is being loaded.
    fn note_flow(self) {
        let page = self.page;
        let asks = self.inner.with_value(|link| link.asked > 0 && now() - link.asked <= ANSWER_TIMEOUT_MS);
        let (now, idle, span) = (page.server_now(), page.idle.get_value(), page.span());
        let live = page.state.get_untracked() == LinkState::Live && !page.is_recorded() && page.is_of_one_machine();
        let seen = of_source(page, |source| {
            let (last, interval, opened) = (source.last_t(), source.info.interval, source.opened);
            let whole = source.has_all(span.0, span.1, span);
            (flow(Arrived { now, last, interval, opened, asks, idle }), !opened || (asks && !whole))
        });
        let (flow, loading) = seen.filter(|_| live).unwrap_or((Flow::Live, false));
        if page.flow.get_untracked() != flow {
            page.flow.set(flow);
        }
        if page.loading.get_untracked() != loading {
            page.loading.set(loading);
        }
    }

    /// The page was hidden or is visible again. A hidden page has no connection; a visible one resumes where it
    /// stopped.
    pub fn set_hidden(self, hidden: bool) {
        {
            let mut link = self.inner.write_value();
            if link.hidden == hidden {
                return;
            }
            link.hidden = hidden;
            if hidden {
                link.rest();
                return;
            }
        }
        self.connect();
    }
}

/// Reads something of the machine that is shown; None while there is no machine.
fn of_source<T>(page: Page, read: impl FnOnce(&Source) -> T) -> Option<T> {
    let store = page.store.read_value();
    page.view.with_untracked(|v| store.source(v.source.as_deref())).map(read)
}
