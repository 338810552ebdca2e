//! The body of an answer, within its size limits.

use flate2::read::GzDecoder;
use std::fmt;
use std::io::{self, Read};
use ureq::http::{Response, header};
use ureq::{Body, Error};

/// Maximum size of a body.
#[derive(Clone, Copy, Debug)]
pub struct MaxBytes {
    /// As sent, bytes.
    pub sent: u64,
    /// After decompression, bytes.
    pub unpacked: u64,
}

/// Reason why a body could not be read to its end.
#[derive(Debug)]
pub enum BodyError {
    /// It is larger than this many bytes as sent.
    TooLarge(u64),
    /// It is larger than this many bytes after decompression.
    TooLargeUnpacked(u64),
    /// It has this content encoding, which was not requested.
    Packed(String),
    /// It ended too early.
    BrokenOff,
    /// Its data does not match its encoding, or it could not be read.
    Unreadable(io::Error),
    /// The connection was lost, or the time limit is over.
    Lost(Error),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::TooLarge(most) => write!(f, "the body is larger than {} MiB", most >> 20),
            BodyError::TooLargeUnpacked(most) => write!(f, "the unpacked body is larger than {} MiB", most >> 20),
            BodyError::Packed(with) => write!(f, "the body has the encoding {with:?}; only gzip was requested"),
            BodyError::BrokenOff => f.write_str("the connection closed before the end of the body"),
            BodyError::Unreadable(error) => write!(f, "the body could not be read to its end: {error}"),
            BodyError::Lost(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BodyError {}

/// Reads a body to its end, and decompresses gzip.
///
/// # Errors
/// The reason why it is incomplete.
pub fn read(response: Response<Body>, most: MaxBytes) -> Result<Vec<u8>, BodyError> {
    let encoding = response.headers().get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let encoding = encoding.unwrap_or("").trim().to_ascii_lowercase();
    // A body whose declared length is too large is rejected without reading it.
    if response.body().content_length().is_some_and(|length| length > most.sent) {
        return Err(BodyError::TooLarge(most.sent));
    }
    let body = Capped { inner: response.into_body().into_reader(), left: most.sent };
    let mut bytes = Vec::new();
    let read = match encoding.as_str() {
        "" | "identity" => body.take(most.unpacked + 1).read_to_end(&mut bytes),
        "gzip" | "x-gzip" => GzDecoder::new(body).take(most.unpacked + 1).read_to_end(&mut bytes),
        _ => return Err(BodyError::Packed(encoding)),
    };
    read.map_err(|error| broken(error, most))?;
    if bytes.len() as u64 > most.unpacked {
        return Err(BodyError::TooLargeUnpacked(most.unpacked));
    }
    Ok(bytes)
}

fn broken(error: io::Error, most: MaxBytes) -> BodyError {
    if error.get_ref().is_some_and(|inner| inner.is::<BeyondCap>()) {
        return BodyError::TooLarge(most.sent);
    }
    match Error::from(error) {
        Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => BodyError::BrokenOff,
        Error::Io(error) => BodyError::Unreadable(error),
        other => BodyError::Lost(other),
    }
}

/// Ends with an error, not silently, after more than `left` bytes.
struct Capped<R> {
    inner: R,
    left: u64,
}

#[derive(Debug)]
struct BeyondCap;

impl fmt::Display for BeyondCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body exceeds its limit")
    }
}

impl std::error::Error for BeyondCap {}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(into)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| io::Error::other(BeyondCap))?;
        Ok(n)
    }
}
