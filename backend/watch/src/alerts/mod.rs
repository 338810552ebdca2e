//! Alerts: rules, evaluation and notices.
//!
//! [`AlertRegistry`] is the interface for people and programs: rules, silences, channels and alerts, each with the
//! permissions of their team. Its rows are in the hub's database or in one of this machine alone.

mod channels;
mod check;
mod deliver;
mod found;
mod gather;
mod kept;
mod lease;
mod registry;
mod rules;
mod sealing;
mod sharing;
mod silences;
mod team;
mod watch;

pub use channels::OpenedChannel;
pub use check::StoredChecker;
pub use deliver::{Delivered, MAX_DONE, deliver};
pub use found::{AlertsAsked, alert_of, row_of};
pub use registry::{AlertFigures, AlertRegistry, AlertRegistryParts, OWN_FILE, PendingAlert, maker};
pub use sealing::{KEY_FILE, SealingKey};
pub use sharing::SharingHub;
pub use watch::{AlertSources, watch};
