//! The body of an answer, within its bounds.

use flate2::read::GzDecoder;
use std::fmt;
use std::io::{self, Read};
use ureq::http::{Response, header};
use ureq::{Body, Error};

/// How large a body may be.
#[derive(Clone, Copy, Debug)]
pub struct MaxBytes {
    /// As it is sent.
    pub sent: u64,
    /// After unpacking.
    pub unpacked: u64,
}

/// Why a body could not be read to its end.
#[derive(Debug)]
pub enum BodyError {
    /// It is larger than so many bytes as sent.
    TooLarge(u64),
    /// It is larger than so many bytes after unpacking.
    TooLargeUnpacked(u64),
    /// It is packed in this way, which was not asked for.
    Packed(String),
    /// It broke off before its end.
    BrokenOff,
    /// What it is packed with is not that, or it could not be read.
    Unreadable(io::Error),
    /// The connection was lost, or the time is over.
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

/// Reads a body to its end, unpacked if it came by gzip.
///
/// # Errors
/// Why there is no whole one.
pub fn read(response: Response<Body>, most: MaxBytes) -> Result<Vec<u8>, BodyError> {
    let encoding = response.headers().get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    let encoding = encoding.unwrap_or("").trim().to_ascii_lowercase();
    // One that says how long it is need not be read to be refused.
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

/// Ends with an error, not silently, when more than `left` bytes come.
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
