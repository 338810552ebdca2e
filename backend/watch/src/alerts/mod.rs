//! Alerts: what is watched, what was found, who is told.
//!
//! [`AlertBook`] is what people and programs ask and change: rules, silences, channels and alerts, each with the rights of
//! their team, over the hub's database or over one of this machine's own.

mod book;
mod channels;
mod check;
mod deliver;
mod found;
mod gather;
mod kept;
mod lease;
mod rules;
mod sealing;
mod sharing;
mod silences;
mod team;
mod watch;

pub use book::{AlertBook, AlertBookAbout, AlertFigures, OWN_FILE, PendingAlert, maker};
pub use channels::OpenedChannel;
pub use check::StoredChecker;
pub use deliver::{Delivered, MAX_DONE, deliver};
pub use found::{AlertsAsked, alert_of, row_of};
pub use sealing::{KEY_FILE, SealingKey};
pub use sharing::SharingHub;
pub use watch::{AlertSources, watch};
