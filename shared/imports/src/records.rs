//! The parts of W&B's records that are read, by their field numbers: readings of the machine, facts about the run, and
//! the version of W&B. All other fields are ignored.

use super::Raw;
use prost::Message;
use serde_json::Value;

#[derive(Clone, PartialEq, Message)]
pub struct Record {
    #[prost(message, optional, tag = "7")]
    pub stats: Option<Stats>,
    #[prost(message, optional, tag = "17")]
    pub run: Option<Run>,
    #[prost(message, optional, tag = "21")]
    pub header: Option<Header>,
}

/// Readings of the machine at one instant.
#[derive(Clone, PartialEq, Message)]
pub struct Stats {
    #[prost(message, optional, tag = "2")]
    pub timestamp: Option<Time>,
    #[prost(message, repeated, tag = "3")]
    pub items: Vec<Item>,
}

/// One reading; the value is JSON.
#[derive(Clone, PartialEq, Message)]
pub struct Item {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "16")]
    pub value: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Time {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Run {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "3")]
    pub project: String,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(string, tag = "13")]
    pub host: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Header {
    #[prost(message, optional, tag = "1")]
    pub version: Option<Version>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Version {
    #[prost(string, tag = "1")]
    pub producer: String,
}

/// The end of the year 9999 in Unix seconds. A later time counts as damage.
const MAX_UNIX_SECONDS: i64 = 253_402_300_799;

impl Time {
    fn ms(&self) -> Option<i64> {
        let fits = (0..=MAX_UNIX_SECONDS).contains(&self.seconds) && (0..1_000_000_000).contains(&self.nanos);
        fits.then(|| self.seconds * 1000 + i64::from(self.nanos) / 1_000_000)
    }
}

/// Adds a record; false if it cannot be decoded.
pub fn take(raw: &mut Raw, bytes: &[u8]) -> bool {
    let Ok(record) = Record::decode(bytes) else { return false };
    if let Some(version) = record.header.and_then(|h| h.version) {
        raw.written_by(&version.producer);
    }
    if let Some(run) = record.run {
        raw.host = Some(run.host).filter(|host| !host.is_empty()).or(raw.host.take());
        for (name, value) in [("run", run.name), ("run id", run.id), ("project", run.project)] {
            raw.fact(name, value);
        }
    }
    let Some(stats) = record.stats else { return true };
    let Some(t) = stats.timestamp.and_then(|t| t.ms()) else { return false };
    for item in stats.items {
        // NaN and Infinity, which W&B 0.15 to 0.30 wrote, are no JSON, so they give no sample.
        if let Ok(value) = serde_json::from_str::<Value>(&item.value) {
            raw.put(&item.key, t, &value);
        }
    }
    true
}
