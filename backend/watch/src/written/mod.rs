//! Texts of people: changes of runs, notes, and saved views of a server alone. Rows are where those of alerts are: in the database of a hub, in a file of a
//! server alone, or in memory.

mod notes;
mod runs;
mod submissions;
mod views;

pub use notes::{NoteSubject, WantedNotes};
pub use runs::follow_run_edits;

use crate::alerts::AlertRegistry;

/// Changes of runs, notes about runs and machines, and saved views. Cheap to clone.
#[derive(Clone)]
pub struct WrittenRegistry(AlertRegistry);

impl WrittenRegistry {
    /// That beside the alerts of a server.
    pub fn beside(alerts: &AlertRegistry) -> Self {
        WrittenRegistry(alerts.clone())
    }

    /// Whether machines belong to teams.
    fn has_teams(&self) -> bool {
        self.0.0.about.names_teams
    }
}

#[cfg(test)]
mod tests;
