//! Requests to the HTTP API of a server elsewhere, with a key.

use client::{Client, Limits, MaxBytes};
use shared::secret::Secret;
use std::io::{self, BufRead, Read};
use std::time::Duration;
use uplink::settings::{HubEntry, KeyFrom};

/// Timeout of a response, and its maximum size, bytes.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER: u64 = 32 << 20;
/// Maximum size of a key file or line, bytes, with surrounding whitespace.
pub const MAX_KEY_BYTES: u64 = 1 << 10;

/// A server, and the key for it.
pub struct Remote {
    client: Client,
    base: String,
    bearer: Option<Secret>,
}

/// Reads a key; `stdin_use` is the other use of standard input, if it has one.
///
/// # Errors
/// It cannot be read: a sentence without a full stop.
pub fn key(from: &KeyFrom, stdin_use: Option<&str>) -> Result<Secret, String> {
    let mut text = String::new();
    match (from, stdin_use) {
        (KeyFrom::Given(key), _) => text += key,
        (KeyFrom::Stdin, Some(other)) => {
            return Err(format!("standard input is {other} here; write --key-file FILE"));
        }
        (KeyFrom::Stdin, None) => {
            let read = io::stdin().lock().take(MAX_KEY_BYTES).read_line(&mut text);
            read.map_err(|error| format!("the key cannot be read: {error}"))?;
        }
        (KeyFrom::File(path), _) => {
            let read = system::file::open(path).and_then(|file| file.take(MAX_KEY_BYTES).read_to_string(&mut text));
            read.map_err(|error| format!("the key in {} cannot be read: {error}", path.display()))?;
        }
    }
    Ok(Secret::new(text.trim()))
}

impl Remote {
    /// The server of an entry, without a connection yet.
    ///
    /// # Errors
    /// The entry has settings that only agents have: a sentence without a full stop.
    pub fn new(entry: &HubEntry, key: Option<&Secret>) -> Result<Remote, String> {
        if entry.ca.is_some() || entry.pin.is_some() {
            return Err("--ca and --pin apply to agents only; this command trusts the system's CA certificates \
                (SSL_CERT_FILE adds to them)"
                .into());
        }
        let limits = Limits { connect: Duration::from_secs(10), whole: TIMEOUT, idle: Duration::from_secs(1) };
        let bearer = key.map(|key| Secret::new(format!("Bearer {}", key.reveal())));
        Ok(Remote { client: Client::new(limits), base: entry.url().to_string(), bearer })
    }

    /// Status and body of the response to a request; `path` has no slash in front, and `body` is JSON.
    ///
    /// # Errors
    /// The reason why there is no response, a sentence without a full stop that names the server.
    pub fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Result<(u16, Vec<u8>), String> {
        let base = &self.base;
        let uri = format!("{base}/{path}").parse().map_err(|_| format!("{base} is not the address of a hub"))?;
        let bearer = self.bearer.iter().map(|bearer| ("authorization", bearer.reveal()));
        let headers = bearer.chain([("content-type", "application/json")]);
        let failed = |error: String| format!("{base}: {error}");
        let answer = self.client.send(method, &uri, headers, body).map_err(failed)?;
        let status = answer.status().as_u16();
        let max = MaxBytes { sent: MAX_ANSWER, unpacked: MAX_ANSWER };
        let body = client::read(answer, max).map_err(|error| failed(self.client.told_of_body(&uri, error)))?;
        Ok((status, body))
    }
}
