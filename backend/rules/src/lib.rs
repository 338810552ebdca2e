//! Evaluation of rules and routing of notifications. Time, samples and events are arguments: no clock, no file, no
//! socket.
//!
//! - [`Engine`]: takes samples and events, and returns [`Transition`]s of alerts.
//! - [`Notices`]: turns transitions into [`Due`] notices: inhibited, silenced, grouped, repeated, held by quiet hours.
//! - [`Codes`]: merges alerts from code.
//! - [`Checker`]: tests a rule against stored samples.
//! - [`builtin`]: the rules that come with Watchglass.
//! - [`prometheus`]: import and export of Prometheus rules.
//!
//! The service calls, in one transaction of its database: `engine.take()`, `notices.apply(&transition, now)` for each,
//! `notices.poll(now)`. It then writes the alerts, [`Engine::changed_rows`], [`Notices::changed_rows`] and the due
//! notices. Ids are deterministic, so a write repeated after a crash is one row.

pub mod builtin;
mod check;
mod code;
mod engine;
mod id;
mod notices;
pub mod prometheus;

pub use check::Checker;
pub use code::{Codes, Tied};
pub use engine::{CLASS_SETTLES_MS, Engine, GpuHoursUsed, MAX_OF_RULE, MAX_SUBJECTS, Machine, Tick};
pub use id::from_parts as id_of;
pub use notices::{Due, Hours, Notices, Person, STANDING, Setup, fold_all};

use serde::{Deserialize, Serialize};
use shared::alert::Alert;

/// Kind of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Its condition began to hold.
    Pending,
    /// It fires.
    Fired,
    /// It still fires: its severity, sentence or count has changed, or its samples stopped or returned.
    Changed,
    /// It has ended.
    Ended,
    /// It was pending and will not fire: its row is deleted.
    Dropped,
}

/// A transition of an alert, with the whole alert in its current state.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    #[allow(missing_docs, reason = "see What")]
    pub what: What,
    /// Current state.
    pub alert: Alert,
    /// It is an instant event: its end is not notified, and it is not repeated.
    pub event: bool,
    /// It flaps: people are notified once, then not again until it is stable.
    pub flapping: bool,
}

/// A part of the state, stored as a row of a database and restored after a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRow {
    /// Unique within the engine or the notices.
    pub key: String,
    /// Content; None: the row is deleted.
    pub bytes: Option<Vec<u8>>,
}
