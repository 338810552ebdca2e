//! When rules fire, and who is told what. Time, samples and events are handed in: no clock, no file, no socket.
//!
//! - [`Engine`]: is fed samples and events, and yields [`Transition`]s of alerts.
//! - [`Notices`]: makes [`Due`] notices of transitions: inhibited, silenced, grouped, repeated, held by quiet hours.
//! - [`Codes`]: folds alerts that code tells.
//! - [`Checker`]: what a rule would have done with samples that are stored.
//! - [`builtin`]: the rules that come with Watchglass.
//! - [`prometheus`]: rules of Prometheus as ours, and ours as its.
//!
//! The service calls, in one transaction of its database: `engine.take()`, `notices.hear(&transition, now)` for each,
//! `notices.poll(now)`, and writes the alerts, [`Engine::changed_rows`], [`Notices::changed_rows`] and the due notices. Ids
//! are deterministic, so that what is written twice after a crash is one row.

pub mod builtin;
mod check;
mod code;
mod engine;
mod id;
mod notices;
pub mod prometheus;

pub use check::Checker;
pub use code::{Codes, Tied};
pub use engine::{Engine, MAX_OF_RULE, MAX_SUBJECTS, Machine, Tick};
pub use id::of as id_of;
pub use notices::{Due, Hours, Notices, Person, STANDING, Setup, fold};

use serde::{Deserialize, Serialize};
use shared::alert::Alert;

/// What happened to an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Its condition began to hold.
    Pending,
    /// It fires.
    Fired,
    /// It fires on: its severity, sentence or count is another, or nothing is heard of it, or it is again.
    Changed,
    /// It is over.
    Ended,
    /// It was pending and will not fire: its row goes.
    Dropped,
}

/// A change of an alert, with the whole alert as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    #[allow(missing_docs, reason = "see What")]
    pub what: What,
    /// As it is now.
    pub alert: Alert,
    /// It is an instant: nobody is told of its end, and it is not repeated.
    pub event: bool,
    /// It fires so often that people are told once, and then no more until it stood still.
    pub flapping: bool,
}

/// A part of the state, for a row of a database: it is written as it is, and given back after a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRow {
    /// Unique within the engine or the notices.
    pub key: String,
    /// What stands there; None: the row goes.
    pub bytes: Option<Vec<u8>>,
}
