//! Notes about the shown machine, and the draft of one.

use super::Page;
use charts::marks::CellMark;
use leptos::prelude::*;
use shared::note::SavedNote;

/// Letters of a note beside its mark in a chart.
const MAX_MARK_LETTERS: usize = 32;

/// A note that is being written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoteDraft {
    /// When it was, ms since the epoch.
    pub t: i64,
    /// When it was over; None for an instant.
    pub end: Option<i64>,
    /// Name of the machine.
    pub source: String,
    /// ID of the run; None for a note about the machine.
    pub run: Option<String>,
    /// The note that gets a new text; None for a new note.
    pub known: Option<SavedNote>,
}

impl NoteDraft {
    /// A new text of a note.
    pub fn from_note(note: &SavedNote) -> NoteDraft {
        NoteDraft { t: note.t.ms(), known: Some(note.clone()), ..NoteDraft::default() }
    }
}

/// The mark of a note in charts.
pub fn mark(note: &SavedNote) -> CellMark {
    let (from, title) = (note.t.ms(), note.title());
    let name = match title.char_indices().nth(MAX_MARK_LETTERS) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None => title.to_string(),
    };
    CellMark { from, to: note.end.map_or(from, |end| end.ms()), name, failed: false, strong: false, fault: false }
}

impl Page {
    /// Stores the server's response about notes.
    pub fn set_notes(self, notes: Vec<SavedNote>) {
        if self.notes.with_untracked(|now| *now != notes) {
            self.notes.set(notes);
            self.redraw();
        }
    }

    /// Begins a note at an instant, else about the shown span of a page that stands still, else about now. False where
    /// no note can be kept.
    pub fn write_note(self, at: Option<i64>) -> bool {
        let view = self.view_now();
        let is_open = self.note.with_untracked(Option::is_some);
        if is_open || self.is_recorded() || self.over.get_untracked() || view.share.is_some() {
            return false;
        }
        let (t, end) = match (at, view.frozen) {
            (Some(t), _) => (t, None),
            (None, Some((from, to))) => (from, Some(to)),
            (None, None) => (self.server_now(), None),
        };
        self.note.set(Some(NoteDraft { t, end, source: self.machine(), ..NoteDraft::default() }));
        true
    }
}
