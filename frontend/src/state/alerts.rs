//! Alerts: the server's last response, and their marks in charts.

use super::Page;
use leptos::prelude::*;
use shared::alert::Alert;
use std::rc::Rc;
use viewer::alerts::Alerted;

/// The open alerts of the server's last response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenAlerts {
    /// The newest first.
    pub open: Vec<Alert>,
    /// Number of firing alerts among all visible ones.
    pub firing: u64,
    /// Problems of the alert evaluation itself, in sentences.
    pub trouble: Vec<String>,
    /// False until the first answer.
    pub known: bool,
    /// True where the server refuses the request.
    pub refused: bool,
}

impl Page {
    /// Stores the server's response about open alerts.
    pub fn set_alerts(self, new: OpenAlerts) {
        if self.alerts.with_untracked(|old| *old != new) {
            self.alerts.set(new);
        }
    }

    /// Stores the alerts as charts draw them.
    pub fn set_alerted(self, new: Alerted) {
        if self.alerted.with_value(|old| **old != new) {
            self.alerted.set_value(Rc::new(new));
            self.redraw();
        }
    }
}
