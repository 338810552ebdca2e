//! The answers about who did what and what was used, as JSON. Times are whole seconds since the Unix epoch.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `GET /api/v1/audit`: `?team=`, `from=`, `to=`, `who=`, `action=` (its begin), `object=`, `before=ID`, `limit=` (1,000 at
/// most, 200 unless said) choose.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLog {
    /// The newest first.
    pub entries: Vec<AuditEntry>,
    /// There are older ones; ask for them with `before=` and the last id.
    pub more: bool,
    /// Sign-ins that failed and were not written down since the hub's start, because too many of their network were; told to
    /// admins of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<u64>,
}

/// One change, or one attempt. A line of the file that `[audit] file` names is one, too.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditEntry {
    /// Its number, which rises.
    pub id: i64,
    /// When.
    pub t: i64,
    /// Who, as text: it outlives the account.
    pub who: String,
    /// By what: a session, a key's id, the command line.
    pub by: String,
    /// From where; after 30 days the network alone.
    pub network: String,
    /// What was done, such as `key.add`.
    pub action: String,
    /// In which team, by id.
    pub team: Option<String>,
    /// To what.
    pub object: String,
    /// What it was.
    pub before: Option<String>,
    /// What it is.
    pub after: Option<String>,
    /// `ok`, or why not.
    pub result: String,
}

/// `GET /api/v1/usage`: `?team=`, `from=` and `to=` (days), `by=day`, `source` or `key` choose; `format=csv` for tables.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// By day, then by team and subject.
    pub usage: Vec<UsageRow>,
    /// Rows of the whole hub that were left out since its start: its database was away for too long.
    #[serde(default)]
    pub left_out: u64,
}

/// What was used on one day by one team, in all or by one machine or key.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageRow {
    /// The day in UTC, `2026-11-22`.
    pub day: String,
    /// The team's name.
    pub team: String,
    /// `day`, `source` or `key`.
    pub kind: String,
    /// Id of the source or key; empty for `day`.
    pub subject: String,
    /// Its name now; its id where it is gone.
    pub name: String,
    /// What was measured: `samples`, `bytes_in`, `bytes_disk`, `series`, `late`, `dropped`, `viewers_peak`, `viewer_hours`,
    /// `bytes_out`, `queries`. What is not known is absent.
    pub values: BTreeMap<String, f64>,
}
