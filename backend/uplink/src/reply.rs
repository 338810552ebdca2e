//! Minimal HTTP/1.1 requests and responses, for the requests outside of the WebSocket.

use api::Operation;
use std::time::Duration;
use stream::clock::{Clock, System};

/// The value of `Authorization` for a key.
pub(super) fn authorization(key: &str) -> String {
    format!("Bearer {key}")
}

/// Error text for a redirect, which is never followed: it could send the key to another server.
pub(super) fn moved(to: &str) -> String {
    let to: String = to.chars().filter(|c| !c.is_control()).take(200).collect();
    // The requested path below the base begins with this, for both join and link.
    let to = to.split(Operation::LinkAgent.path()).next().unwrap_or_default();
    format!("the hub redirects to {to}; write that address")
}

/// `Retry-After` in seconds or as a date.
pub(super) fn pause(value: &str) -> Option<Duration> {
    let seconds = value.trim().parse().ok().map(Duration::from_secs);
    seconds.or_else(|| {
        let at = httpdate::parse_http_date(value.trim()).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(at.saturating_sub(Duration::from_millis(System.wall().max(0) as u64)))
    })
}

/// An HTTP/1.1 response on a connection that ends with it.
pub(super) struct Reply {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn read(bytes: &[u8]) -> Option<Reply> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        words.next().filter(|version| version.starts_with("HTTP/1."))?;
        let status = words.next()?.parse().ok()?;
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_string()));
        let mut answer = Reply { status, headers: headers.collect(), body: bytes[end + 4..].to_vec() };
        if answer.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            answer.body = unchunked(&answer.body)?;
        }
        Some(answer)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Decodes a chunked body; None if it is malformed.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = bytes.windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[..line]).ok()?.split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        bytes = &bytes[line + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend(bytes.get(..size)?);
        bytes = bytes.get(size.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_or_in_chunks_and_others_are_none() {
        let plain =
            Reply::read(b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\n\r\n{\"error\":\"x\"}").expect("an answer");
        assert_eq!(
            (plain.status, plain.header("retry-after"), &plain.body[..]),
            (429, Some("7"), &b"{\"error\":\"x\"}"[..])
        );
        let chunks =
            b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4;x\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n";
        assert_eq!(Reply::read(chunks).expect("an answer").body, b"{\"a\":1}");
        for bytes in [&b""[..], b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 x\r\n\r\n", b"HTTP/1.1 200\r\n"] {
            assert!(Reply::read(bytes).is_none());
        }
        for chunks in [&b"ffffffffffffffff\r\nab"[..], b"zz\r\n", b"5\r\nab\r\n"] {
            assert_eq!(unchunked(chunks), None);
        }
    }

    #[test]
    fn a_redirect_is_told_and_a_pause_is_read() {
        assert_eq!(moved("https://b/x/api/v1/ingest/enrol"), "the hub redirects to https://b/x; write that address");
        assert_eq!(moved("https://b/api/v1/ingest"), "the hub redirects to https://b; write that address");
        assert_eq!(pause(" 12 "), Some(Duration::from_secs(12)));
        assert_eq!(pause("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(pause("soon"), None);
    }
}
