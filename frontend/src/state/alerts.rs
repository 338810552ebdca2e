//! Alerts: what the server said of them last, and what charts draw of it.

use super::Page;
use leptos::prelude::*;
use shared::alert::Alert;
use std::rc::Rc;
use viewer::alerts::Alerted;

/// The alerts that are open, as the server said them last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The newest first.
    pub open: Vec<Alert>,
    /// How many fire, of all that may be seen here.
    pub firing: u64,
    /// Problems of the alert evaluation itself, in sentences.
    pub trouble: Vec<String>,
    /// False until the first answer.
    pub known: bool,
    /// True where the server refuses to tell.
    pub refused: bool,
}

impl Page {
    /// Takes in what the server said of the alerts that are open.
    pub fn set_alerts(self, new: Told) {
        if self.alerts.with_untracked(|old| *old != new) {
            self.alerts.set(new);
        }
    }

    /// Takes in what charts draw of alerts.
    pub fn set_alerted(self, new: Alerted) {
        if self.alerted.with_value(|old| **old != new) {
            self.alerted.set_value(Rc::new(new));
            self.redraw();
        }
    }
}
