//! The answer about a hub as a whole, as JSON. Times are whole seconds since the Unix epoch.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `GET /api/v1/hub`, for its admins.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AboutHub {
    /// Its version.
    pub version: String,
    /// The address that people and agents use.
    pub url: String,
    /// Kind of the database: `sqlite` or `postgresql`.
    pub database: String,
    /// Bytes of the database; absent if unknown.
    pub database_bytes: Option<u64>,
    /// When its database was copied last by `watchglass backup`; absent: never, or longer ago than the retention of the
    /// audit log.
    pub backup: Option<i64>,
    /// Accounts.
    pub accounts: u64,
    /// Teams.
    pub teams: u64,
    /// Machines that joined, the hub's own included.
    pub machines: u64,
    /// Agents that are linked now.
    pub links: u64,
    /// Links and keys that were rejected since the start before a machine was known, by reason: `key`, `handshake` (too
    /// many in one second), `link`. Reasons without any are left out.
    pub turned_away: BTreeMap<String, u64>,
    /// Principals in the authentication cache, which is valid until something changes.
    pub judged: u64,
    /// Principals that were evicted since the start because there were too many.
    pub judged_dropped: u64,
    /// The file of the audit log, if there is one.
    pub audit_file: Option<AuditFile>,
}

/// State of the audit log's file.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditFile {
    /// Lines written since the start.
    pub lines: u64,
    /// Times that it could not be written.
    pub failures: u64,
    /// Rows that are not written to it yet.
    pub waiting: u64,
}
