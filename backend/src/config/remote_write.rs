//! `[remote_write]`: the server that samples are also sent to. Values of headers are secret: no error and no print-out
//! repeats them.

use super::file_error::{FileError, deserialized};
use super::option::{Field, OptionKind};
use super::written::Takes;
use client::http::{HeaderName, HeaderValue, Uri};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use toml::de::DeValue;
use toml::{Spanned, Table, Value};

/// A server that takes Prometheus remote write. Its debug form tells no header's value.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Raw")]
pub struct RemoteWrite {
    /// Where samples are sent, http or https.
    pub url: String,
    /// The server that answers `/api/v1/query_range` below this address; none: nothing is read back.
    pub read_url: Option<String>,
    /// Headers that are sent along to both; their values are secret.
    pub headers: Vec<(String, String)>,
}

/// The table `[remote_write]`, which no flag can say.
pub struct RemoteWrites<C: 'static> {
    /// Where it is kept.
    pub field: Field<C, Option<RemoteWrite>>,
}

impl<C> OptionKind<C> for RemoteWrites<C> {
    fn takes(&self) -> Takes {
        Takes::One
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("url", "Where samples are sent, http or https"),
            (
                "read_url",
                "The address below which `/api/v1/query_range` is, to read back what is older than our own history",
            ),
            ("headers", "Headers that are sent along to both; their values are never logged and never printed"),
        ]
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Err("this key belongs in the configuration file".into())
    }

    fn set(&self, _: &mut C, _: &[String]) -> Result<(), String> {
        OptionKind::<C>::check(self, "")
    }

    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        *(self.field.at)(at) = Some(deserialized(value)?);
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        (self.field.get)(of).as_ref().map(print)
    }
}

impl fmt::Debug for RemoteWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteWrite({})", print(self))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    url: String,
    read_url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl TryFrom<Raw> for RemoteWrite {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        address("url", &raw.url, "http://127.0.0.1:8428/api/v1/write")?;
        if let Some(url) = &raw.read_url {
            address("read_url", url, "http://127.0.0.1:8428")?;
        }
        for (name, value) in &raw.headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() || HeaderValue::from_str(value).is_err() {
                return Err(format!("the header {name:?} is invalid; write a name and one line of visible text"));
            }
        }
        Ok(RemoteWrite { url: raw.url, read_url: raw.read_url, headers: raw.headers.into_iter().collect() })
    }
}

fn address(key: &str, url: &str, example: &str) -> Result<(), String> {
    let uri: Option<Uri> = url.parse().ok();
    match uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?))) {
        Some(("http" | "https", authority)) if authority.as_str().contains('@') => Err(format!(
            "`{key}` contains a user or password; send them as a header: headers = {{ Authorization = \"Basic ...\" \
            }}"
        )),
        Some(("http" | "https", _)) => Ok(()),
        _ => Err(format!("`{key}` is not an address; write it like {example}")),
    }
}

/// The section as it stands in a file, secrets as `***`.
fn print(remote: &RemoteWrite) -> Value {
    let shown = |url: &str| match url.split_once('?') {
        Some((url, _)) => format!("{url}?***"),
        None => url.into(),
    };
    let mut own = Table::new();
    own.insert("url".into(), shown(&remote.url).into());
    if let Some(url) = &remote.read_url {
        own.insert("read_url".into(), shown(url).into());
    }
    if !remote.headers.is_empty() {
        let hidden = remote.headers.iter().map(|(name, _)| (name.clone(), "***".into()));
        own.insert("headers".into(), Value::Table(hidden.collect()));
    }
    Value::Table(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RemoteWrite, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_string())
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
            ("url = \"http://a/w\"\nread_url = \"b\"", "`read_url` is not an address"),
            ("url = \"http://a/w\"\nheaders = { \"a b\" = \"s3cret\" }", "the header \"a b\""),
            ("url = \"http://a/w\"\nheaders = { a = \"s3cret\\n\" }", "one line"),
            ("read_url = \"http://b\"", "missing field `url`"),
            ("url = \"http://a/w\"\nurls = 1", "unknown field `urls`"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(why) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}
