//! Tests of the client with a server that misbehaves in every way known from exporters and proxies.

use super::*;
use flate2::write::GzEncoder;
use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Serves each connection with a function until it is dropped.
pub(in super::super) struct Server {
    pub url: String,
    /// The request heads.
    pub seen: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub(in super::super) fn new(
        answer: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/metrics", listener.local_addr().expect("an address"));
        let (seen, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (heads, stopped, answer) = (seen.clone(), stop.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (heads, answer) = (heads.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &heads, &*answer));
            }
        });
        Server { url, seen, stop }
    }

    /// A server with the same response for every request.
    pub(in super::super) fn fixed(head: &str, body: impl Into<Vec<u8>>) -> Server {
        let (head, body) = (head.to_string(), body.into());
        Server::new(move |_, to| {
            write!(to, "HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len())?;
            to.write_all(&body)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let host = self.url.trim_start_matches("http://").trim_end_matches("/metrics");
        let _ = TcpStream::connect(host); // wakes it
    }
}

fn serve(
    mut stream: TcpStream,
    heads: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str, &mut TcpStream) -> std::io::Result<()>,
) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if lines.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        heads.lock().push(head.clone());
        answer(&head, &mut stream).ok()?;
    }
}

/// Longer than a loaded machine takes for a page.
const LONG_TIMEOUT: Duration = Duration::from_secs(20);

fn fetcher_within(url: &str, whole: Duration) -> Fetcher {
    let time = client::Limits { whole, ..FetchLimits::for_endpoint(true).time };
    let limits = FetchLimits { time, bytes: MaxBytes { sent: 1_000, unpacked: 4_000 } };
    Fetcher::new(address(url).expect("an address"), vec![("authorization".into(), "Bearer secret".into())], limits)
}

fn fetcher(url: &str) -> Fetcher {
    fetcher_within(url, LONG_TIMEOUT)
}

fn fetch(server: &Server) -> Result<Fetched, String> {
    fetch_within(server, LONG_TIMEOUT)
}

fn fetch_within(server: &Server, whole: Duration) -> Result<Fetched, String> {
    let result = fetcher_within(&server.url, whole).fetch().map_err(|failure| failure.0);
    if let Err(reason) = &result {
        assert!(!reason.contains("secret"), "{reason}");
    }
    result
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

#[test]
fn a_page_comes_with_its_format_and_headers_are_sent() {
    let server = Server::fixed("200 OK\r\ncontent-type: application/openmetrics-text; version=1.0.0", "a 1\n# EOF\n");
    assert_eq!(fetch(&server), Ok(Fetched { text: "a 1\n# EOF\n".into(), open: true }));
    let seen = server.seen.lock().join("").to_ascii_lowercase();
    for part in [
        "get /metrics http/1.1",
        "authorization: bearer secret",
        "accept-encoding: gzip",
        "application/openmetrics-text",
    ] {
        assert!(seen.contains(part), "{part} is not in {seen}");
    }
    let server = Server::fixed("200 OK\r\ncontent-type: text/plain; version=0.0.4", "a 1\n");
    assert_eq!(fetch(&server), Ok(Fetched { text: "a 1\n".into(), open: false }));
}

#[test]
fn one_connection_serves_many_scrapes() {
    let ports = Arc::new(Mutex::new(std::collections::HashSet::new()));
    let seen = ports.clone();
    let server = Server::new(move |_, to| {
        seen.lock().insert(to.peer_addr()?.port());
        to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na 1\n")
    });
    let fetcher = fetcher(&server.url);
    for _ in 0..5 {
        assert_eq!(fetcher.fetch().expect("a page").text, "a 1\n");
    }
    assert_eq!(ports.lock().len(), 1);
}

#[test]
fn packed_pages_are_unpacked_and_a_bomb_is_not() {
    let head = "200 OK\r\ncontent-encoding: gzip";
    assert_eq!(fetch(&Server::fixed(head, gzip(&b"a 1\n".repeat(500)))).expect("a page").text.len(), 2_000);
    let bomb = gzip(&b"a 1\n".repeat(20_000));
    assert!(bomb.len() < 1_000);
    assert!(fetch(&Server::fixed(head, bomb)).expect_err("too much").starts_with("the unpacked body is larger"));
    let cut = gzip(&b"a 1\n".repeat(500));
    assert_eq!(
        fetch(&Server::fixed(head, &cut[..cut.len() - 9])),
        Err("the connection closed before the end of the body".into())
    );
    assert!(fetch(&Server::fixed(head, "a 1\n")).is_err());
    assert!(fetch(&Server::fixed("200 OK\r\ncontent-encoding: br", "x")).expect_err("unknown").contains("\"br\""));
}

#[test]
fn a_page_without_end_is_left() {
    let whole = fetch(&Server::fixed("200 OK", vec![b'\n'; 1_000])).expect("just fits");
    assert_eq!(whole.text.len(), 1_000);
    assert!(
        fetch(&Server::fixed("200 OK", vec![b'\n'; 1_001])).expect_err("too long").starts_with("the body is larger")
    );
    let endless = Server::new(|_, to| {
        write!(to, "HTTP/1.1 200 OK\r\n\r\n")?;
        loop {
            to.write_all(b"a 1\n")?;
        }
    });
    assert!(fetch(&endless).expect_err("endless").starts_with("the body is larger"));
}

#[test]
fn a_page_that_breaks_off_is_not_taken() {
    for head in ["content-length: 100\r\n\r\na 1\n", "transfer-encoding: chunked\r\n\r\n4\r\na 1\n\r\n"] {
        let server = Server::new(move |_, to| {
            write!(to, "HTTP/1.1 200 OK\r\n{head}")?;
            to.shutdown(std::net::Shutdown::Both)
        });
        let reason = fetch(&server).expect_err("cut");
        assert!(reason.contains("before the end") || reason.contains("disconnected"), "{reason}");
    }
}

#[test]
fn what_is_slow_costs_its_time_limit_only() {
    let pause = || std::thread::sleep(Duration::from_millis(20));
    let head = Server::new(move |_, to| {
        for byte in b"HTTP/1.1 200 OK\r\nx-".iter().chain(std::iter::repeat(&b'y')) {
            to.write_all(&[*byte])?;
            pause();
        }
        Ok(())
    });
    let body = Server::new(move |_, to| {
        write!(to, "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n")?;
        loop {
            to.write_all(b"\n")?;
            pause();
        }
    });
    let silent = Server::new(|_, to| {
        let mut end = [0];
        to.read(&mut end).map(|_| ())
    });
    // Each of them continues forever, or for far longer.
    for server in [head, body, silent] {
        let limit = Duration::from_millis(400);
        assert_eq!(fetch_within(&server, limit), Err("the response timed out after 0.4 s".into()));
    }
}

#[test]
fn answers_that_are_no_page_say_why() {
    for (head, body, part) in [
        ("500 Internal Server Error", "a 1\n", "it returned 500"),
        ("401 Unauthorized", "", "the endpoint's `headers`"),
        ("403 Forbidden", "", "it returned 403"),
        ("404 Not Found", "", "check the path"),
        ("204 No Content", "", "it returned 204"),
        ("200 OK\r\ncontent-type: text/html; charset=utf-8", "<html>Sign in</html>", "check for a login"),
        ("200 OK", "\u{fffd}", ""),
    ] {
        match fetch(&Server::fixed(head, body)) {
            Err(reason) => assert!(!part.is_empty() && reason.contains(part), "{head}: {reason}"),
            Ok(_) => assert!(part.is_empty(), "{head}"),
        }
    }
    assert_eq!(fetch(&Server::fixed("200 OK", vec![0xff, 0xfe])), Err("it is not UTF-8 text".into()));
    assert!(fetch(&Server::new(|_, to| to.write_all(b"SSH-2.0-x\r\n"))).is_err());
}

#[test]
fn a_redirect_is_followed_on_the_same_server_only() {
    let here = Server::new(|head, to| match head.starts_with("GET /metrics ") {
        true => to.write_all(b"HTTP/1.1 308 Permanent Redirect\r\nlocation: /new?a=b\r\ncontent-length: 0\r\n\r\n"),
        false => to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na 1\n"),
    });
    assert_eq!(fetch(&here).expect("a page").text, "a 1\n");

    let other = Server::fixed("200 OK", "stolen 1\n");
    let (to, host) = (other.url.clone(), other.url.replace("127.0.0.1", "localhost"));
    for location in [to, host, "//other.example/".into(), "ftp://127.0.0.1/".into(), String::new(), "é".into()] {
        let answer = format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let reason = fetch(&Server::new(move |_, to| to.write_all(answer.as_bytes()))).expect_err("another server");
        assert!(reason.contains("not followed"), "{location}: {reason}");
    }
    assert_eq!(other.seen.lock().len(), 0);

    let round =
        Server::new(|_, to| to.write_all(b"HTTP/1.1 302 Found\r\nlocation: /metrics\r\ncontent-length: 0\r\n\r\n"));
    assert_eq!(fetch(&round), Err("it redirects more than 3 times".into()));
    assert_eq!(round.seen.lock().len(), 4);
}

#[test]
fn where_nobody_listens_is_said() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    let failure = fetcher(&format!("http://{free}/metrics")).fetch().expect_err("nobody");
    assert_eq!(failure.0, "connection refused: check that the exporter runs");
}

#[test]
fn addresses_are_checked() {
    for url in ["localhost:9100", "ftp://a/b", "http://", "/metrics", "http://me:pw@a/metrics", "http://a b/"] {
        let error = address(url).expect_err(url);
        assert!(error.contains("write it like") && !error.contains("pw"), "{error}");
    }
}
