//! Answers about the audit log and usage, as JSON. Times are whole seconds since the Unix epoch.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `GET /api/v1/audit`. Filters: `?team=`, `from=`, `to=`, `who=`, `action=` (its prefix), `object=`, `before=ID`,
/// `limit=` (at most 1,000, default 200).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLog {
    /// The newest first.
    pub entries: Vec<AuditEntry>,
    /// Older entries exist; request them with `before=` and the last id.
    pub more: bool,
    /// Failed sign-ins that were not recorded since the hub's start, because their network had too many; shown to
    /// admins of the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<u64>,
}

/// One change, or one attempt. Lines of the file that `[audit] file` names have the same form.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditEntry {
    /// Its number, which rises.
    pub id: i64,
    /// When.
    pub t: i64,
    /// Actor as text: it outlives the account.
    pub who: String,
    /// Credential: a session, a key's id, the command line.
    pub by: String,
    /// Network address of the actor; after 30 days only the network.
    pub network: String,
    /// Action, such as `key.add`.
    pub action: String,
    /// Team, by id.
    pub team: Option<String>,
    /// Object of the action.
    pub object: String,
    /// Previous value.
    pub before: Option<String>,
    /// New value.
    pub after: Option<String>,
    /// `ok`, or the reason of the failure.
    pub result: String,
}

/// `GET /api/v1/usage`. Filters: `?team=`, `from=` and `to=` (days), `by=day`, `source` or `key`; `format=csv` for
/// tables.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// By day, then by team and subject.
    pub usage: Vec<UsageRow>,
    /// Rows of the whole hub that were dropped since its start: its database was unreachable for too long.
    #[serde(default)]
    pub left_out: u64,
}

/// Usage of one team on one day, in total or by machine or key.
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
    /// Its current name; its id if it is gone.
    pub name: String,
    /// Measures: `samples`, `bytes_in`, `bytes_disk`, `series`, `late`, `dropped`, `viewers_peak`, `viewer_hours`,
    /// `bytes_out`, `queries`. Unknown values are absent.
    pub values: BTreeMap<String, f64>,
}
