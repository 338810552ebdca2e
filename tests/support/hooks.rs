//! A receiver of notices on loopback: keeps what is asked of it, and answers as a test wants.

use crate::waiting::until;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The largest body that is kept, bytes: a notice is far smaller.
const MAX_BODY_BYTES: usize = 4 << 20;

/// What is done with a request. It is kept in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Answers with this status and an empty body.
    Status(u16),
    /// Answers with this status, these header lines (`retry-after: 3`) and this body.
    With(u16, Vec<String>, String),
    /// Answers 307 to this address: nobody should follow.
    Redirect(String),
    /// Reads it and never answers.
    Hang,
    /// Reads it and resets the connection.
    Reset,
    /// Resets the connection before anything is read; that is not kept.
    Refuse,
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Request {
    /// As `POST`.
    pub method: String,
    /// With its query.
    pub path: String,
    /// In their order, names in small letters.
    pub headers: Vec<(String, String)>,
    /// As it came.
    pub body: Vec<u8>,
    /// When it was whole.
    pub at: Instant,
}

impl Request {
    /// The value of a header; empty where it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// Panics when it is none.
    pub fn json(&self) -> serde_json::Value {
        let said = || String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", said()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

type Answer = Box<dyn Fn(&Request, usize) -> Reply + Send>;

struct State {
    came: Vec<Request>,
    answer: Answer,
    refuses: bool,
}

/// A receiver on a free port of loopback; its threads end with the test program.
#[derive(Clone)]
pub struct Hooks {
    /// Where it listens.
    pub addr: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Hooks {
    /// One that answers 200 to everything, until it is told otherwise.
    ///
    /// # Panics
    /// Panics without a free port.
    pub fn start() -> Hooks {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let state = State { came: Vec::new(), answer: Box::new(|_, _| Reply::Status(200)), refuses: false };
        let hooks = Hooks { addr, state: Arc::new(Mutex::new(state)) };
        let theirs = hooks.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let hooks = theirs.clone();
                // Who sends notices a connection that breaks.
                std::thread::spawn(move || hooks.serve(client));
            }
        });
        hooks
    }

    /// The address of a path on it: `http://127.0.0.1:PORT/hook`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// `127.0.0.1:PORT`, as `[alerts] allow_targets` wants it.
    pub fn target(&self) -> String {
        self.addr.to_string()
    }

    /// Answers so from now on.
    pub fn answers(&self, reply: Reply) {
        self.answers_by(move |_, _| reply.clone());
    }

    /// Answers as this says of a request and its number, from 0.
    pub fn answers_by(&self, answer: impl Fn(&Request, usize) -> Reply + Send + 'static) {
        self.lock().answer = Box::new(answer);
    }

    /// Is as if it were not there, or is there again.
    pub fn refuses(&self, refuses: bool) {
        self.lock().refuses = refuses;
    }

    /// The requests so far.
    pub fn came(&self) -> Vec<Request> {
        self.lock().came.clone()
    }

    /// Waits for a request that fits.
    ///
    /// # Panics
    /// Panics when none comes.
    pub fn wait_for(&self, what: &str, fits: impl Fn(&Request) -> bool) -> Request {
        until(what, || self.lock().came.iter().find(|request| fits(request)).cloned())
    }

    /// Forgets what came.
    pub fn forget(&self) {
        self.lock().came.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while it is held")
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

/// Ends the connection by a reset in place of its end.
fn reset(client: TcpStream) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let (value, length) = ((&raw const linger).cast(), size_of::<libc::linger>() as libc::socklen_t);
    // SAFETY: the value is whole for the call, with its length.
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
