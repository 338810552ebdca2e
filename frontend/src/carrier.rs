//! Transports of the link: a WebSocket, or where a proxy blocks it an event stream, or polling. All three deliver the
//! same messages. The page sends its own messages by the socket, or by POST.

use crate::browser::window;
use crate::fetch::{self, Json};
use js_sys::{Array, ArrayBuffer, Uint8Array};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;
use web_sys::{AbortController, BinaryType, EventSource, MessageEvent, RequestInit, Response, WebSocket};

/// Path of the stream, relative to the page.
const LIVE: &str = "api/v1/live";
/// Key in the session storage for the transport that works.
const TRANSPORT_KEY: &str = "watchglass.rung";

/// Transports to the server, the best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A WebSocket.
    #[default]
    Socket,
    /// An event stream.
    Events,
    /// Answers to one request after the other.
    Polls,
}

impl Transport {
    /// The transport that this browser session last used.
    pub fn kept() -> Self {
        let kept =
            window().session_storage().ok().flatten().and_then(|kept| kept.get_item(TRANSPORT_KEY).ok().flatten());
        match kept.as_deref() {
            Some("events") => Transport::Events,
            Some("polls") => Transport::Polls,
            _ => Transport::Socket,
        }
    }

    /// Stores it for the browser session; a browser without storage tries again.
    pub fn keep(self) {
        let Some(storage) = window().session_storage().ok().flatten() else { return };
        let _ = match self {
            Transport::Socket => storage.remove_item(TRANSPORT_KEY),
            Transport::Events => storage.set_item(TRANSPORT_KEY, "events"),
            Transport::Polls => storage.set_item(TRANSPORT_KEY, "polls"),
        };
    }

    /// The next transport when this one delivers nothing; the last is followed by the first.
    pub fn next(self) -> Self {
        match self {
            Transport::Socket => Transport::Events,
            Transport::Events => Transport::Polls,
            Transport::Polls => Transport::Socket,
        }
    }

    /// Name of the transport; empty for a WebSocket.
    pub fn words(self) -> &'static str {
        match self {
            Transport::Socket => "",
            Transport::Events => "over server-sent events",
            Transport::Polls => "over polling",
        }
    }
}

/// Callbacks of a carrier; the browser's events call them.
#[derive(Clone)]
pub struct Hooks {
    /// It can send.
    pub opened: Rc<dyn Fn()>,
    /// It brought a message.
    pub message: Rc<dyn Fn(Vec<u8>)>,
    /// It has ended.
    pub lost: Rc<dyn Fn()>,
}

/// A connection to the server by one of the transports.
pub struct Carrier(Kind);

enum Kind {
    Socket { socket: WebSocket, _calls: [Call; 3] },
    Events { source: EventSource, mouth: Rc<Mouth>, _calls: [Call; 2] },
    Polls(Rc<Polls>),
}

/// A callback of the browser.
type Call = Closure<dyn FnMut(MessageEvent)>;

impl Carrier {
    /// Begins to connect. `share` is the id of a share link, which a signed-in user may view, too. Returns None when
    /// the browser refuses.
    pub fn open(transport: Transport, share: Option<String>, heard: Hooks) -> Option<Self> {
        let query = share.map(|id| format!("share={id}")).unwrap_or_default();
        match transport {
            Transport::Socket => socket(&query, heard),
            Transport::Events => events(query, heard),
            Transport::Polls => Some(Carrier(Kind::Polls(Polls::begin(query, heard)))),
        }
    }

    /// Sends a message. Messages that cannot be sent yet, or not any more, are lost with the connection.
    pub fn send(&self, message: &[u8]) {
        match &self.0 {
            // A socket that is closing reports it by its own event.
            Kind::Socket { socket, .. } if socket.ready_state() == WebSocket::OPEN => {
                drop(socket.send_with_u8_array(message))
            }
            Kind::Socket { .. } => {}
            Kind::Events { mouth, .. } => mouth.send_message(message),
            Kind::Polls(polls) => polls.mouth.send_message(message),
        }
    }

    /// True while a socket waits for the answer to its opening.
    pub fn is_opening(&self) -> bool {
        matches!(&self.0, Kind::Socket { socket, .. } if socket.ready_state() == WebSocket::CONNECTING)
    }

    /// Closes it; no callback is called afterwards. It must be kept until another one is closed: late events may still
    /// call it.
    pub fn close(&self) {
        match &self.0 {
            Kind::Socket { socket, .. } => {
                socket.set_onopen(None);
                socket.set_onmessage(None);
                socket.set_onclose(None);
                // Closing fails only for an invalid code, and none is given.
                let _ = socket.close();
            }
            Kind::Events { source, mouth, .. } => {
                source.set_onmessage(None);
                source.set_onerror(None);
                source.close();
                mouth.closed.set(true);
            }
            Kind::Polls(polls) => {
                polls.mouth.closed.set(true);
                polls.abort.iter().for_each(AbortController::abort);
            }
        }
    }
}

/// The address of the stream with its query.
fn path(below: &str, share: &str, asked: &str) -> String {
    let query = [share, asked].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("&");
    format!("{LIVE}{below}{}{query}", if query.is_empty() { "" } else { "?" })
}

fn callback(run: impl FnMut(MessageEvent) + 'static) -> Call {
    Closure::new(run)
}

fn socket(query: &str, heard: Hooks) -> Option<Carrier> {
    let base = window().location().href().ok()?;
    let url = web_sys::Url::new_with_base(LIVE, &base).ok()?;
    url.set_search(query);
    url.set_hash("");
    url.set_protocol(if url.protocol() == "https:" { "wss:" } else { "ws:" });
    let socket = WebSocket::new(&url.href()).ok()?;
    socket.set_binary_type(BinaryType::Arraybuffer);
    let Hooks { opened, message, lost } = heard;
    let opened = callback(move |_| opened());
    let message = callback(move |event| {
        if let Ok(buffer) = event.data().dyn_into::<ArrayBuffer>() {
            message(Uint8Array::new(&buffer).to_vec());
        }
    });
    let lost = callback(move |_| lost());
    socket.set_onopen(Some(opened.as_ref().unchecked_ref()));
    socket.set_onmessage(Some(message.as_ref().unchecked_ref()));
    socket.set_onclose(Some(lost.as_ref().unchecked_ref()));
    Some(Carrier(Kind::Socket { socket, _calls: [opened, message, lost] }))
}

fn events(query: String, heard: Hooks) -> Option<Carrier> {
    let source = EventSource::new(&path("", &query, "")).ok()?;
    let Hooks { opened, message, lost } = heard;
    let mouth = Rc::new(Mouth::new(query, lost.clone()));
    let own = mouth.clone();
    let message = callback(move |event| {
        let text = event.data().as_string().and_then(|text| window().atob(&text).ok()).unwrap_or_default();
        let bytes: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
        match own.begin(&bytes) {
            true => opened(),
            false => message(bytes),
        }
    });
    // An event source would reconnect by itself as a new viewer, which the page does not know.
    let lost = callback(move |_| lost());
    source.set_onmessage(Some(message.as_ref().unchecked_ref()));
    source.set_onerror(Some(lost.as_ref().unchecked_ref()));
    Some(Carrier(Kind::Events { source, mouth, _calls: [message, lost] }))
}

/// Sender of the page's messages without a socket: all queued messages in order, in one POST.
struct Mouth {
    /// The viewer's id; empty until it is known.
    id: RefCell<String>,
    query: String,
    waiting: RefCell<Vec<Vec<u8>>>,
    busy: Cell<bool>,
    closed: Cell<bool>,
    lost: Rc<dyn Fn()>,
}

impl Mouth {
    fn new(query: String, lost: Rc<dyn Fn()>) -> Self {
        let (busy, closed) = (Cell::new(false), Cell::new(false));
        Mouth { id: RefCell::default(), query, waiting: RefCell::default(), busy, closed, lost }
    }

    /// Takes the first message, which is the id; false when that is known.
    fn begin(&self, message: &[u8]) -> bool {
        let new = self.id.borrow().is_empty();
        if new {
            *self.id.borrow_mut() = String::from_utf8_lossy(message).into_owned();
        }
        new
    }

    fn send_message(self: &Rc<Self>, message: &[u8]) {
        self.waiting.borrow_mut().push(message.to_vec());
        self.flush();
    }

    fn flush(self: &Rc<Self>) {
        if self.closed.get() || self.busy.get() || self.id.borrow().is_empty() || self.waiting.borrow().is_empty() {
            return;
        }
        self.busy.set(true);
        let waiting = self.waiting.take();
        let bytes = |message: &Vec<u8>| message.iter().map(|byte| JsValue::from(*byte)).collect::<Array>();
        let messages: JsValue = waiting.iter().map(bytes).collect::<Array>().into();
        let (mouth, id) = (self.clone(), self.id.borrow().clone());
        fetch::ask(
            "POST",
            &path(&format!("/{id}"), &self.query, ""),
            Some(Json::object([("messages", messages)])),
            move |answer| {
                mouth.busy.set(false);
                match (mouth.closed.get(), answer.is_ok()) {
                    (true, _) => {}
                    (false, true) => mouth.flush(),
                    (false, false) => (mouth.lost)(),
                }
            },
        );
    }
}

/// A page that polls.
struct Polls {
    mouth: Rc<Mouth>,
    heard: Hooks,
    /// Number of bytes read from the stream.
    place: Cell<u64>,
    /// The begin of a message whose rest has not arrived.
    rest: RefCell<Vec<u8>>,
    abort: Option<AbortController>,
}

impl Polls {
    fn begin(query: String, heard: Hooks) -> Rc<Self> {
        let mouth = Rc::new(Mouth::new(query, heard.lost.clone()));
        let abort = AbortController::new().ok();
        let polls = Rc::new(Polls { mouth, heard, place: Cell::default(), rest: RefCell::default(), abort });
        polls.poll();
        polls
    }

    /// Requests the next part, and continues when it has arrived.
    fn poll(self: &Rc<Self>) {
        let id = self.mouth.id.borrow().clone();
        let cursor = if id.is_empty() { String::new() } else { format!("{id}.{}", self.place.get()) };
        let init = RequestInit::new();
        init.set_signal(self.abort.as_ref().map(AbortController::signal).as_ref());
        let asked = window().fetch_with_str_and_init(&path("", &self.mouth.query, &format!("cursor={cursor}")), &init);
        let (own, lost) = (self.clone(), self.clone());
        let answered = Closure::once_into_js(move |answer: JsValue| {
            let whole = answer.dyn_into::<Response>().ok().filter(Response::ok).and_then(|a| a.array_buffer().ok());
            let Some(whole) = whole else { return own.fail() };
            let broken = own.clone();
            let read = Closure::once_into_js(move |body: JsValue| own.take(&Uint8Array::new(&body).to_vec()));
            fetch::then(&whole, &read, &Closure::once_into_js(move |_: JsValue| broken.fail()));
        });
        fetch::then(&asked, &answered, &Closure::once_into_js(move |_: JsValue| lost.fail()));
    }

    fn fail(&self) {
        if !self.mouth.closed.get() {
            (self.heard.lost)();
        }
    }

    /// Reads the bytes of a response: messages, each after its length.
    fn take(self: &Rc<Self>, bytes: &[u8]) {
        self.place.set(self.place.get() + bytes.len() as u64);
        self.rest.borrow_mut().extend_from_slice(bytes);
        loop {
            if self.mouth.closed.get() {
                return;
            }
            let message = {
                let mut rest = self.rest.borrow_mut();
                let length = rest.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize);
                let Some(end) = length.map(|length| length + 4).filter(|end| *end <= rest.len()) else { break };
                let after = rest.split_off(end);
                std::mem::replace(&mut *rest, after).split_off(4)
            };
            match self.mouth.begin(&message) {
                true => (self.heard.opened)(),
                false => (self.heard.message)(message),
            }
        }
        self.poll();
    }
}
