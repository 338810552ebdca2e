//! Enrollment of a machine at a hub: the bodies of `POST /api/v1/ingest/enrol`, as JSON of at most 16 KiB.
//!
//! Hashes are SHA-256 as 64 hexadecimal digits, made on the machine: their inputs never leave it.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Data that a machine sends about itself when it joins by a join key.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnrolRequest {
    /// 128 random bits as 32 hexadecimal digits, the same for each attempt: a retry is not another machine.
    pub request: String,
    /// Its configured name; None: its host name up to the first dot.
    pub name: Option<String>,
    /// Hash of its machine id; None if it has none.
    pub machine: Option<String>,
    /// Hashes of the addresses of its physical links, at most 64.
    pub links: Vec<String>,
    /// Its host name.
    pub host: String,
    /// Whether it is a container.
    pub container: bool,
    /// Operating system and processor.
    pub platform: Option<String>,
    /// Version of the agent.
    pub version: Option<String>,
}

/// The answer to a machine that requests to join.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EnrolAnswer {
    /// It has joined: 201.
    Enrolled(Enrolled),
    /// An admin has to approve it: 202.
    Pending {
        /// True.
        pending: bool,
    },
}

/// A machine has joined: 201. One that an admin has to confirm first gets 202, and retries with the same request.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolled {
    /// The id of its source, which never changes.
    pub source: String,
    /// Its name on the hub.
    pub name: String,
    /// Its key, `wg_a_...`, shown only this once.
    pub key: Secret,
    /// Labels that the hub assigns to it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}
