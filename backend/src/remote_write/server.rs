//! The other server: one request, and the meaning of its response. `link.rs` detects lost connections.

use super::link::Link;
use super::message::WriteRequest;
use super::otlp;
use crate::config::{RemoteWrite, WriteFormat};
use client::http::{Response, Uri, header};
use client::{Body, Client, Limits, MaxBytes, bare};
use flate2::Compression;
use flate2::read::GzEncoder;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use stream::clock::Clock;

/// The idle timeout is longer than the time between any two requests.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(5), whole: Duration::from_secs(30), idle: Duration::from_secs(180) };
/// Maximum of a server's `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
/// Maximum size of a server's error text in ours, bytes.
const MAX_QUOTED_BYTES: usize = 300;
/// Maximum size that is read of the body of an error, bytes: a message of protobuf is read whole or not at all.
const MAX_ERROR_BYTES: u64 = 4 << 10;
/// Maximum size that is read of a success response's body, bytes.
const MAX_REST_BYTES: u64 = 64 << 10;
/// Maximum size of a response to a query, bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

/// The error of a request. Sentences have no full stop, and contain no header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// A permanent refusal.
    Refused(String),
    /// A temporary failure of the server, the network or the authentication.
    Later {
        /// The cause.
        reason: String,
        /// The server's `Retry-After`.
        wait: Option<Duration>,
    },
}

/// The server that is written to, and read from.
pub struct Server {
    writer: Client,
    /// A separate client, so that reads do not close the connection for writes.
    reader: Client,
    link: Link,
    settings: RemoteWrite,
    clock: Arc<dyn Clock>,
}

impl Server {
    /// The server of these settings; no connection is made yet.
    pub fn new(settings: RemoteWrite, clock: Arc<dyn Clock>) -> Self {
        Server { writer: Client::new(LIMITS), reader: Client::new(LIMITS), link: Link::default(), settings, clock }
    }

    /// The address for writes, without secrets.
    pub fn shown(&self) -> String {
        bare(&self.settings.url)
    }

    /// Whether there is an address for reads.
    pub fn reads(&self) -> bool {
        self.settings.read_url.is_some()
    }

    /// The bytes of a request in the format of this server.
    pub fn pack(&self, request: &WriteRequest) -> Vec<u8> {
        match self.settings.format {
            WriteFormat::RemoteWrite => request.pack(),
            WriteFormat::Otlp => gzip(&otlp::pack(request)),
        }
    }

    /// Writes one packed request; returns the number of values that the server rejected, and its reason.
    ///
    /// # Errors
    /// [`SendError`]: to be dropped, or to be repeated.
    pub fn write(&self, body: &[u8]) -> Result<(u64, String), SendError> {
        let uri: Uri = self.settings.url.parse().map_err(|_| SendError::Refused("its address is invalid".into()))?;
        let own: &[(&str, &str)] = match self.settings.format {
            WriteFormat::RemoteWrite => &[
                ("Content-Type", "application/x-protobuf"),
                ("Content-Encoding", "snappy"),
                ("X-Prometheus-Remote-Write-Version", "0.1.0"),
            ],
            WriteFormat::Otlp => &[("Content-Type", "application/x-protobuf"), ("Content-Encoding", "gzip")],
        };
        let sent = self.writer.post(&uri, own.iter().copied().chain(self.headers()), body);
        self.link.answered(self.writer.connections(), sent.as_ref().ok());
        match sent {
            Ok(response) => self.taken(response),
            Err(reason) => Err(SendError::Later { reason, wait: None }),
        }
    }

    fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Number of losses of the connection for writes: it broke, or a kept-alive connection was gone at the next
    /// request. Samples sent last over it may be lost, too, though they were taken.
    pub fn losses(&self) -> u64 {
        self.link.losses()
    }

    fn taken(&self, response: Response<Body>) -> Result<(u64, String), SendError> {
        let status = response.status();
        if status.is_success() {
            // A body that is read to its end keeps the connection for the next request.
            let mut body = Vec::new();
            let read = response.into_body().into_reader().take(MAX_REST_BYTES).read_to_end(&mut body);
            if read.is_ok_and(|read| read as u64 == MAX_REST_BYTES) {
                self.link.given_up();
            }
            return Ok(match self.settings.format {
                WriteFormat::RemoteWrite => (0, String::new()),
                WriteFormat::Otlp => {
                    let (rejected, reason) = otlp::rejected(&body);
                    (rejected, one_line(reason.as_bytes()))
                }
            });
        }
        // The rest of a long error is not read, which closes the connection from our side.
        self.link.given_up();
        // A proxy in front of a server reports that it is unreachable: it may have been killed.
        if matches!(status.as_u16(), 502..=504) {
            self.link.lost();
        }
        let wait = response.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok());
        let wait = wait.and_then(|text| self.wait(text)).map(|wait| wait.min(MAX_RETRY_AFTER));
        let to = response.headers().get(header::LOCATION).and_then(|v| v.to_str().ok()).map(bare).unwrap_or_default();
        let format = self.settings.format;
        let reason = match status.as_u16() {
            300..=399 => {
                format!("it redirects ({status}) to {to:?}, which is not followed: write that address if you trust it")
            }
            401 => "it returned 401, authentication required: check `headers`".into(),
            403 => "it returned 403, access denied: check `headers`".into(),
            404 => not_found(format).into(),
            code => match error_text(format, &body_of_error(response)) {
                words if words.is_empty() => format!("it returned {code}"),
                words => format!("it returned {code}: {words}"),
            },
        };
        Err(match is_for_later(format, status.as_u16()) {
            true => SendError::Later { reason, wait },
            false => SendError::Refused(reason),
        })
    }

    /// `Retry-After`: seconds, or a date.
    fn wait(&self, text: &str) -> Option<Duration> {
        if let Ok(seconds) = text.trim().parse() {
            return Some(Duration::from_secs(seconds));
        }
        let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(at.saturating_sub(Duration::from_millis(u64::try_from(self.clock.wall()).ok()?)))
    }

    /// Requests a path with parameters from the server for reads; returns the text of the response.
    ///
    /// # Errors
    /// The reason, a sentence without a full stop.
    pub fn read(&self, path: &str, parameters: &[(&str, String)]) -> Result<String, String> {
        let base = self.settings.read_url.as_deref().ok_or("no server to read from is configured")?;
        let uri: Uri = format!("{}{path}", base.trim_end_matches('/')).parse().map_err(|_| "its address is invalid")?;
        let response = self.reader.get(&uri, parameters, self.headers())?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(format!("it returned {status}: {}", one_line(&body_of_error(response))));
        }
        let most = MaxBytes { sent: MAX_ANSWER_BYTES, unpacked: MAX_ANSWER_BYTES };
        let bytes = client::read(response, most).map_err(|error| self.reader.told_of_body(&uri, error))?;
        String::from_utf8(bytes).map_err(|_| "its response is not UTF-8 text".into())
    }
}

/// A body as gzip, which every collector takes. As it is, one of 20,000 samples is larger than the 1 MiB that nginx lets
/// through by itself, and a 413 drops it.
fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    GzEncoder::new(plain, Compression::fast()).read_to_end(&mut packed).expect("memory fails nobody");
    packed
}

/// Whether a request that got this status is repeated. A collector of OpenTelemetry returns 500 for samples that it will
/// never take, and its protocol forbids to repeat them: <https://opentelemetry.io/docs/specs/otlp/#failures-1>.
fn is_for_later(format: WriteFormat, status: u16) -> bool {
    match status {
        429 | 502..=504 => true,
        500..=599 => format == WriteFormat::RemoteWrite,
        // They are not about the samples: the settings or the server will be fixed.
        300..=399 | 401 | 403 | 404 | 407 => true,
        _ => false,
    }
}

/// The sentence about an address that is not there. OpenTelemetry's own settings often have the base alone.
fn not_found(format: WriteFormat) -> &'static str {
    match format {
        WriteFormat::RemoteWrite => "it returned 404, not found: check `url`",
        WriteFormat::Otlp => "it returned 404, not found: check `url`, which ends with /v1/metrics for most collectors",
    }
}

/// The beginning of the body of an error.
fn body_of_error(response: Response<Body>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Bytes before a read error are still useful.
    let _ = response.into_body().into_reader().take(MAX_ERROR_BYTES).read_to_end(&mut bytes);
    bytes
}

/// A server's error text, which a collector of OpenTelemetry wraps into a message.
fn error_text(format: WriteFormat, body: &[u8]) -> String {
    let reason = if format == WriteFormat::Otlp { otlp::reason_of(body) } else { None };
    one_line(reason.as_deref().map_or(body, str::as_bytes))
}

/// The beginning of a text, on one line.
fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_QUOTED_BYTES)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote_write::message::{Label, Sample, TimeSeries};

    #[test]
    fn a_large_request_to_a_collector_fits_through_a_proxy() {
        let label = |name: &str, value: String| Label { name: name.into(), value };
        let series = |n: usize| TimeSeries {
            labels: vec![
                label("__name__", "watchglass_gpu_utilization_ratio".into()),
                label("gpu", n.to_string()),
                label("source", "node-1".into()),
            ],
            samples: (0..15)
                .map(|t| Sample { value: ((n * 37 + t * 11) % 101) as f64 / 100.0, timestamp: 1_000 * t as i64 })
                .collect(),
        };
        // 20,000 samples, as many as a request has.
        let plain = otlp::pack(&WriteRequest { timeseries: (0..1_334).map(series).collect() });
        assert!(plain.len() > 1 << 20, "{} bytes", plain.len());
        let packed = gzip(&plain);
        assert!(packed.len() < 1 << 19 && packed.starts_with(&[0x1f, 0x8b]), "{} bytes", packed.len());
    }

    #[test]
    fn the_error_of_a_collector_is_told_in_its_words() {
        // google.rpc.Status with code 3, as a collector returns it.
        let status = b"\x08\x03\x12\x07too old";
        assert_eq!(error_text(WriteFormat::Otlp, status), "too old");
        assert_eq!(error_text(WriteFormat::Otlp, b"no healthy\n upstream"), "no healthy upstream");
        assert_eq!(error_text(WriteFormat::RemoteWrite, b"out of order"), "out of order");
        assert_eq!(error_text(WriteFormat::Otlp, "x".repeat(4_000).as_bytes()).len(), MAX_QUOTED_BYTES);
        assert!(not_found(WriteFormat::Otlp).contains("/v1/metrics"));
    }

    #[test]
    fn what_a_collector_will_never_take_is_not_repeated_for_hours() {
        for status in [429, 502, 503, 504, 301, 401, 403, 404, 407] {
            assert!(
                is_for_later(WriteFormat::Otlp, status) && is_for_later(WriteFormat::RemoteWrite, status),
                "{status}"
            );
        }
        for status in [500, 501, 507] {
            assert!(!is_for_later(WriteFormat::Otlp, status), "{status}: the protocol says so");
            assert!(is_for_later(WriteFormat::RemoteWrite, status), "{status}: so does the other one");
        }
        for status in [400, 408, 413, 422] {
            assert!(
                !is_for_later(WriteFormat::Otlp, status) && !is_for_later(WriteFormat::RemoteWrite, status),
                "{status}"
            );
        }
    }
}
