//! Alerts: what is watched, what was found, who is told.
//!
//! [`AlertBook`] is what people and programs ask and change: rules, silences, channels and alerts, each with the rights of
//! their team, over the hub's database or over one of this machine's own.

mod book;
mod channels;
mod found;
mod rules;
mod sealing;
mod silences;

pub use book::{AlertBook, AlertBookAbout};
pub use channels::OpenedChannel;
pub use found::{AlertsAsked, alert_of, row_of};
pub use sealing::{KEY_FILE, SealingKey};
