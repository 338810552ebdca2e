//! Answers about the machines themselves: a row of the overview over time, and the state of the links to hubs.

use crate::json::{Number, Seconds};
use crate::unit::Unit;
use crate::wire::SourceId;
use serde::{Deserialize, Serialize};

/// `GET /api/v1/fleet`: one row of the fleet's overview, of every machine.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetColumns {
    /// Id of the row.
    pub row: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Start of the first column.
    pub from: Seconds,
    /// Width of a column.
    pub step: Seconds,
    /// Number of columns.
    pub count: u64,
    /// False if only sealed data was read, because there are many machines: it ends up to half an hour ago.
    pub whole: bool,
    /// Machines, by name.
    pub sources: Vec<FleetMachine>,
}

/// A machine in [`FleetColumns`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetMachine {
    /// Its number on this server.
    pub id: SourceId,
    /// Its key, which never changes.
    pub key: String,
    /// Its name.
    pub name: String,
    /// A value for each column, null if there is none.
    pub values: Vec<Option<Number>>,
    /// Reason why another hub's data of it is unknown, in a sentence; left out if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

/// `GET /api/v1/uplink`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UplinkList {
    /// Version of this program.
    pub version: String,
    /// The hubs that this machine sends to.
    pub hubs: Vec<UplinkRow>,
}

/// The link to a hub. Unknown values are left out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UplinkRow {
    /// Address of the hub.
    pub hub: String,
    /// Host of a scraped endpoint that the link is for; absent for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// State of the link: `starting`, `pending`, `live`, `away` or `refused`.
    pub state: String,
    /// Reason, a sentence without a full stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Since when.
    pub since: Seconds,
    /// Name of the machine on the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id that the hub gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Span of local data that was not sent to the hub yet, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_s: Option<Seconds>,
    /// Span of local data that the hub has not confirmed yet, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_s: Option<Seconds>,
    /// Links that were made.
    pub links: u64,
    /// Failed attempts to make a link.
    pub failures: u64,
    /// Ticks that were sent.
    pub ticks: u64,
    /// Ticks that were left out.
    pub skipped: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Ranges of ticks that the hub requested.
    pub fills: u64,
    /// Bytes of them.
    pub fill_bytes: u64,
}
