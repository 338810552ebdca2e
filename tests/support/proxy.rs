//! A reverse proxy as notebook services have it. It serves us below a path prefix, removes the prefix, and changes
//! nothing else.

use parking_lot::Mutex;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Treatment of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// It passes the WebSocket on.
    Pass,
    /// It answers 403.
    Refuse,
    /// It never answers.
    Swallow,
    /// It forwards the request without the upgrade headers, as an HTTP/1.0 proxy does.
    Downgrade,
    /// It answers 502.
    Fail,
    /// It cuts the connection.
    Cut,
    /// It rejects the WebSocket, and buffers event streams as well.
    HoldEvents,
    /// It passes everything on under the server's own name in `Host`, as nginx does by default.
    OwnHost,
}

/// A proxy on a free port. Its threads end with the test program.
pub struct Proxy {
    /// The address at which the proxy listens.
    pub addr: SocketAddr,
    strays: Arc<Mutex<Vec<String>>>,
    sockets: Arc<Mutex<Sockets>>,
}

impl Proxy {
    /// Serves `upstream` below `prefix` (`/a/b`, without the last slash).
    pub fn start(prefix: &'static str, upstream: SocketAddr) -> Self {
        Self::with_sockets(prefix, upstream, Sockets::Pass)
    }

    /// Serves `upstream` below `prefix` with this treatment of WebSockets.
    pub fn with_sockets(prefix: &'static str, upstream: SocketAddr, sockets: Sockets) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let strays = Arc::new(Mutex::new(Vec::new()));
        let sockets = Arc::new(Mutex::new(sockets));
        let (seen, way) = (strays.clone(), sockets.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (seen, sockets) = (seen.clone(), *way.lock());
                // The browser notices a broken connection.
                std::thread::spawn(move || serve(client, prefix, upstream, &seen, sockets));
            }
        });
        Proxy { addr, strays, sockets }
    }

    /// Sets the treatment of WebSockets from now on.
    pub fn set(&self, sockets: Sockets) {
        *self.sockets.lock() = sockets;
    }

    /// Requested paths outside of the prefix.
    pub fn strays(&self) -> Vec<String> {
        self.strays.lock().clone()
    }
}

fn serve(
    mut client: TcpStream,
    prefix: &str,
    upstream: SocketAddr,
    strays: &Mutex<Vec<String>>,
    sockets: Sockets,
) -> io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.splitn(3, ' ');
    let (Some(method), Some(path), Some(rest)) = (words.next(), words.next(), words.next()) else {
        return Ok(());
    };
    // The path may lack its last slash, because such proxies do not redirect.
    let Some(inner) = path.strip_prefix(prefix).filter(|inner| inner.is_empty() || inner.starts_with(['/', '?']))
    else {
        strays.lock().push(path.to_string());
        return client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let slash = if inner.starts_with('/') { "" } else { "/" };
    let mut request = format!("{method} {slash}{inner} {rest}");
    let upgrade = request.to_ascii_lowercase().contains("\r\nupgrade: websocket");
    match sockets {
        Sockets::Cut if upgrade => return client.shutdown(Shutdown::Both),
        Sockets::Fail if upgrade => {
            return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        // It waits for the end of the answer, which never comes.
        Sockets::HoldEvents if request.to_ascii_lowercase().contains("\r\naccept: text/event-stream") => {
            return io::copy(&mut client, &mut io::sink()).map(|_| ());
        }
        Sockets::Refuse | Sockets::HoldEvents if upgrade => {
            return client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        // It ends when the browser closes the connection.
        Sockets::Swallow if upgrade => return io::copy(&mut client, &mut io::sink()).map(|_| ()),
        Sockets::Downgrade if upgrade => {
            let lines = request.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("upgrade:"));
            request = lines.collect::<Vec<_>>().join("\r\n");
        }
        Sockets::OwnHost => {
            let lines = request.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("host:"));
            let host = format!("\r\nHost: {upstream}\r\n");
            request = lines.collect::<Vec<_>>().join("\r\n").replacen("\r\n", &host, 1);
        }
        _ => {}
    }
    if !upgrade || sockets == Sockets::Downgrade {
        // Each connection carries one request, so that an answer ends with its connection and needs no parsing.
        let lines = request.split("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
        request = lines.collect::<Vec<_>>().join("\r\n").replacen("\r\n", "\r\nConnection: close\r\n", 1);
    }
    let mut server = TcpStream::connect(upstream)?;
    server.write_all(request.as_bytes())?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    io::copy(&mut server, &mut client)?;
    client.shutdown(Shutdown::Both)
}
