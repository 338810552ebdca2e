//! A receiver of notices on loopback. It keeps the requests, and answers as a test wants.

use crate::waiting::until;
use parking_lot::{Mutex, MutexGuard};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum size of a stored body, bytes. A notice is far smaller.
const MAX_BODY_BYTES: usize = 4 << 20;

/// Treatment of a request. It is stored in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Answers with this status and an empty body.
    Status(u16),
    /// Answers with this status, these header lines (`retry-after: 3`) and this body.
    With(u16, Vec<String>, String),
    /// Answers 307 to this address, which no sender may follow.
    Redirect(String),
    /// Reads the request and never answers.
    Hang,
    /// Reads the request and resets the connection.
    Reset,
    /// Resets the connection before anything is read. Such a request is not stored.
    Refuse,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    /// HTTP method, such as `POST`.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Headers in their order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Raw body.
    pub body: Vec<u8>,
    /// Time at which the request was complete.
    pub at: Instant,
}

impl Request {
    /// The value of a header; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// Panics when it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        let said = || String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", said()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

type HookAnswer = Box<dyn Fn(&Request, usize) -> Reply + Send>;

struct HookState {
    came: Vec<Request>,
    answer: HookAnswer,
    refuses: bool,
}

/// A receiver on a free port of loopback. Its threads end with the test program.
#[derive(Clone)]
pub struct Hooks {
    /// Address on which it listens.
    pub addr: SocketAddr,
    state: Arc<Mutex<HookState>>,
}

impl Hooks {
    /// Starts a receiver that answers 200 to everything until this is changed.
    ///
    /// # Panics
    /// Panics without a free port.
    pub fn start() -> Hooks {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let state = HookState { came: Vec::new(), answer: Box::new(|_, _| Reply::Status(200)), refuses: false };
        let hooks = Hooks { addr, state: Arc::new(Mutex::new(state)) };
        let theirs = hooks.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let hooks = theirs.clone();
                // The sender detects a broken connection.
                std::thread::spawn(move || hooks.serve(client));
            }
        });
        hooks
    }

    /// The address of a path on it: `http://127.0.0.1:PORT/hook`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// `127.0.0.1:PORT`, the form of `[alerts] allow_targets`.
    pub fn target(&self) -> String {
        self.addr.to_string()
    }

    /// Sets the reply from now on.
    pub fn answers(&self, reply: Reply) {
        self.answers_by(move |_, _| reply.clone());
    }

    /// Sets a function that gives the reply to a request, from the request and its number (from 0).
    pub fn answers_by(&self, answer: impl Fn(&Request, usize) -> Reply + Send + 'static) {
        self.lock().answer = Box::new(answer);
    }

    /// Makes the receiver unreachable, or reachable again.
    pub fn refuses(&self, refuses: bool) {
        self.lock().refuses = refuses;
    }

    /// The requests so far.
    pub fn came(&self) -> Vec<Request> {
        self.lock().came.clone()
    }

    /// Waits for a request that matches.
    ///
    /// # Panics
    /// Panics when none comes.
    pub fn wait_for(&self, what: &str, fits: impl Fn(&Request) -> bool) -> Request {
        until(what, || self.lock().came.iter().find(|request| fits(request)).cloned())
    }

    /// Removes the stored requests.
    pub fn forget(&self) {
        self.lock().came.clear();
    }

    fn lock(&self) -> MutexGuard<'_, HookState> {
        self.state.lock()
    }

    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let mut from = BufReader::new(client.try_clone()?);
        loop {
            if self.lock().refuses {
                return reset(client);
            }
            let Some(request) = read(&mut from)? else { return Ok(()) };
            let reply = {
                let mut state = self.lock();
                let reply = (state.answer)(&request, state.came.len());
                if reply != Reply::Refuse {
                    state.came.push(request);
                }
                reply
            };
            match reply {
                Reply::Status(code) => write!(client, "HTTP/1.1 {code} So\r\ncontent-length: 0\r\n\r\n")?,
                Reply::With(code, headers, body) => {
                    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
                    let length = body.len();
                    write!(client, "HTTP/1.1 {code} So\r\ncontent-length: {length}\r\n{headers}\r\n{body}")?;
                }
                Reply::Redirect(to) => {
                    write!(client, "HTTP/1.1 307 So\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")?;
                }
                Reply::Hang => std::thread::sleep(Duration::from_secs(3600)),
                Reply::Reset | Reply::Refuse => return reset(client),
            }
        }
    }
}

/// Closes the connection by a reset (RST) in place of FIN.
fn reset(client: TcpStream) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let (value, length) = ((&raw const linger).cast(), size_of::<libc::linger>() as libc::socklen_t);
    // SAFETY: the value is valid for the call and passed with its length.
    let set = unsafe { libc::setsockopt(client.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, length) };
    drop(client);
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn read(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_ascii_whitespace().map(String::from);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut headers, mut length) = (Vec::new(), 0usize);
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.trim_end().split_once(':') {
            let (name, value) = (name.to_ascii_lowercase(), value.trim().to_string());
            if name == "content-length" {
                length = value.parse().map_err(io::Error::other)?;
            }
            headers.push((name, value));
        }
    }
    if length > MAX_BODY_BYTES {
        return Err(io::Error::other("a body without end"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(Request { method, path, headers, body, at: Instant::now() }))
}
