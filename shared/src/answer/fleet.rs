//! Answers about the machines themselves: a row of the overview over time, and how the links to hubs do.

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
    /// Begin of the first column.
    pub from: Seconds,
    /// Width of a column.
    pub step: Seconds,
    /// Number of columns.
    pub count: u64,
    /// False where, because there are many machines, only what is sealed was read: it ends up to half an hour ago.
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
    /// A value for each column, null where there is none.
    pub values: Vec<Option<Number>>,
    /// Why it is not known what another hub has of it, in a sentence; left out where that is known.
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

/// The link to a hub. What is not known yet is left out.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UplinkRow {
    /// Address of the hub.
    pub hub: String,
    /// How the link stands: `starting`, `pending`, `live`, `away` or `refused`.
    pub state: String,
    /// Why, a sentence without a full stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Since when.
    pub since: Seconds,
    /// What the hub calls this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id that the hub gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How long the hub has not been sent what is here, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_s: Option<Seconds>,
    /// How long the hub has not confirmed what is here, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_s: Option<Seconds>,
    /// Links that were made.
    pub links: u64,
    /// Links that could not be made.
    pub failures: u64,
    /// Ticks that were sent.
    pub ticks: u64,
    /// Ticks that were left out.
    pub skipped: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Ranges of ticks that the hub asked for.
    pub fills: u64,
    /// Bytes of them.
    pub fill_bytes: u64,
}
