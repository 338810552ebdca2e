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

use shared::alert::{Checked, Rule};
use stream::live::Reader;

/// What tries a rule over what is stored.
pub trait RuleChecker: Send + Sync {
    /// What the rule would have done between two times, milliseconds since the Unix epoch, for what the reader sees. It takes
    /// up to a second and holds the thread.
    ///
    /// # Errors
    /// In a sentence: the rule cannot be tried over what is stored.
    fn check(&self, reader: &Reader, rule: &Rule, span: (i64, i64)) -> Result<Checked, String>;
}
