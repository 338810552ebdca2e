//! Servers between an agent and its hub, besides Debian's programs: a server that answers an upgrade and then stays
//! silent, and a proxy that connects all requests to one address.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A listener on a free port with a thread for each connection. The threads end with the test program.
fn listen(serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(client));
        }
    });
    addr
}

fn head(client: &mut TcpStream) -> io::Result<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// A server that answers each upgrade and then sends nothing.
pub fn silent() -> SocketAddr {
    listen(|mut client| {
        head(&mut client)?;
        // The accepted key is the one of `upgrade`, as RFC 6455 requires: some proxies check it.
        let accepted =
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        client.write_all(format!("HTTP/1.1 101 Switching Protocols\r\n{accepted}\r\n\r\n").as_bytes())?;
        io::copy(&mut client, &mut io::sink()).map(drop)
    })
}

/// A server that answers every request with these bytes and closes the connection.
pub fn answering(answer: &'static str) -> SocketAddr {
    listen(move |mut client| {
        head(&mut client)?;
        client.write_all(answer.as_bytes())?;
        client.shutdown(Shutdown::Write)?;
        io::copy(&mut client, &mut io::sink()).map(drop)
    })
}

/// A proxy that connects to `to` for every requested host.
pub fn connecting(to: SocketAddr) -> SocketAddr {
    listen(move |mut client| {
        let asked = head(&mut client)?;
        if !asked.starts_with("CONNECT ") {
            return client.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n");
        }
        let mut server = TcpStream::connect(to)?;
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || {
            let _ = io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Write);
        });
        io::copy(&mut server, &mut client)?;
        client.shutdown(Shutdown::Both)
    })
}

/// Requests a WebSocket or a tunnel from a proxy by these lines, and then sends nothing until the connection is cut.
///
/// # Panics
/// Panics when the proxy rejects it, or the connection is not cut within two minutes.
pub fn idle_until_cut(proxy: SocketAddr, request: &str) {
    let mut stream = TcpStream::connect(proxy).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a limit");
    stream.write_all(format!("{request}\r\n\r\n").as_bytes()).expect("sent");
    let answer = head(&mut stream).expect("an answer");
    assert!(
        [" 101 ", " 200 "].iter().any(|status| answer.lines().next().is_some_and(|line| line.contains(status))),
        "{answer}"
    );
    match stream.read(&mut [0]) {
        Ok(0) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        other => panic!("it was not cut: {other:?}"),
    }
}

/// Header lines that request a WebSocket.
pub fn upgrade(path: &str) -> String {
    let lines = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13";
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
}
