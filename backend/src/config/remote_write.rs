//! `[remote_write]`: an additional receiver of samples. Values of headers are secret: no error and no print-out
//! repeats them.

use super::secret::{hidden, show_url};
use client::http::{HeaderName, HeaderValue, Uri};
use settings::kinds::Words;
use settings::{Fault, table};
use std::fmt;
use toml::Value;

table! {
    /// A server that takes Prometheus remote write. Its debug form tells no header's value.
    #[derive(Clone, PartialEq, Eq)]
    pub struct RemoteWrite, checked by RemoteWrite::check {
        /// Address that receives samples, http or https
        url: String = String::new(), text_shown(url, show_url), required like "\"http://127.0.0.1:8428/api/v1/write\"";
        /// Format of the requests: `remote_write`, or `otlp` for a collector of OpenTelemetry
        format: WriteFormat = WriteFormat::RemoteWrite, word(FORMATS);
        /// Base address of `/api/v1/query_range`, from which older history is read back
        read_url: Option<String> = None, text_shown(read_url, show_read_url), like "\"http://127.0.0.1:8428\"";
        /// Additional headers of requests to both; their values are never logged or printed
        headers: Vec<(String, String)> = Vec::new(), secret_map(header), like "{ Authorization = \"Bearer ...\" }";
    }
}

/// Formats of requests with samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteFormat {
    /// Prometheus remote write 1.0.
    RemoteWrite,
    /// OTLP over HTTP, as protobuf.
    Otlp,
}

const FORMATS: Words<WriteFormat> = &[("remote_write", WriteFormat::RemoteWrite), ("otlp", WriteFormat::Otlp)];

impl RemoteWrite {
    fn check(&self) -> Result<(), Fault> {
        match self.format == WriteFormat::Otlp && self.read_url.is_some() {
            true => Err(Fault::new("read_url", "a collector of OpenTelemetry stores nothing; leave it out")),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for RemoteWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteWrite({})", RemoteWrite::TABLE.print(self))
    }
}

fn url(text: &str) -> Result<String, String> {
    address(text, "http://127.0.0.1:8428/api/v1/write")
}

fn read_url(text: &str) -> Result<String, String> {
    address(text, "http://127.0.0.1:8428")
}

fn show_read_url(url: &Option<String>) -> Option<Value> {
    url.as_deref().map(|url| hidden(url).into())
}

fn header(name: &str, value: &str) -> Result<(), String> {
    match HeaderName::from_bytes(name.as_bytes()).is_err() || HeaderValue::from_str(value).is_err() {
        true => Err(format!("the header {name:?} is invalid; write a name and one line of visible text")),
        false => Ok(()),
    }
}

fn address(url: &str, example: &str) -> Result<String, String> {
    let uri: Option<Uri> = url.parse().ok();
    match uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?))) {
        Some(("http" | "https", authority)) if authority.as_str().contains('@') => {
            Err("it has a user or password in it; send them as a header: headers = { Authorization = \"Basic ...\" }"
                .into())
        }
        Some(("http" | "https", _)) => Ok(url.into()),
        _ => Err(format!("it is not an address; write it like {example}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RemoteWrite, String> {
        RemoteWrite::TABLE.read_text(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_is_named_by_its_address() {
        let all = "url = \"https://a/w?k=1\"\nread_url = \"http://b\"\nheaders = { Authorization = \"Bearer s3cret\" }";
        let remote = read(all).expect("all keys");
        assert_eq!((remote.url.as_str(), remote.read_url.as_deref()), ("https://a/w?k=1", Some("http://b")));
        assert_eq!(remote.headers, [("Authorization".to_string(), "Bearer s3cret".to_string())]);
        let shown = format!("{remote:?}");
        assert!(shown.contains("Authorization") && !shown.contains("s3cret") && !shown.contains("k=1"), "{shown}");
        assert_eq!(read("url = \"http://a/w\"").map(|r| (r.read_url, r.headers)), Ok((None, Vec::new())));
    }

    #[test]
    fn what_cannot_be_is_said_without_secrets() {
        for (text, why) in [
            ("url = \"127.0.0.1:8428\"", "write it like http://127.0.0.1:8428/api/v1/write"),
            ("url = \"ftp://a/\"", "not an address"),
            ("url = \"http://u:s3cret@a/w\"", "send them as a header"),
            ("url = \"http://a/w\"\nread_url = \"b\"", "read_url: it is not an address"),
            ("url = \"http://a/w\"\nheaders = { \"a b\" = \"s3cret\" }", "the header \"a b\""),
            ("url = \"http://a/w\"\nheaders = { a = \"s3cret\\n\" }", "one line"),
            ("url = \"http://a/w\"\nformat = \"otlp\"\nread_url = \"http://b\"", "stores nothing"),
            ("url = \"http://a/w\"\nformat = \"json\"", "otlp"),
            ("read_url = \"http://b\"", "url: it is missing; write url = "),
            ("url = \"http://a/w\"\nurls = 1", "unknown key `urls`; did you mean url?"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(why) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}
