//! Messages that the user has dismissed. They stay dismissed in this browser while their text is the same.

use super::Page;
use crate::browser;
use leptos::prelude::*;

/// Key in the browser's storage: a message a line.
const KEY: &str = "watchglass-dismissed";
/// Maximum number of stored messages; the oldest are dropped first.
const MAX_KEPT: usize = 50;
/// Most characters of a message that are compared.
const MAX_CHARS: usize = 200;

/// The messages that were dismissed at earlier visits.
pub(super) fn kept() -> Vec<String> {
    let kept = browser::storage().and_then(|s| s.get_item(KEY).ok().flatten()).unwrap_or_default();
    kept.lines().map(str::to_string).collect()
}

fn short(said: &str) -> String {
    said.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect()
}

impl Page {
    /// Whether a message with this text was dismissed.
    pub fn is_dismissed(&self, said: &str) -> bool {
        self.dismissed.with(|all| all.contains(&short(said)))
    }

    /// Dismisses a message. A browser that allows no storage shows it again at the next visit.
    pub fn dismiss(self, said: &str) {
        self.dismissed.update(|all| {
            all.push(short(said));
            all.drain(..all.len().saturating_sub(MAX_KEPT));
        });
        let _ = browser::storage().map(|s| s.set_item(KEY, &self.dismissed.get_untracked().join("\n")));
    }
}
