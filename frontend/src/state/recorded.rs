//! A recording in place of a live machine, with its clock, or below a live machine for comparison.

use super::{Findings, LinkState, Page};
use crate::browser::{offset, window};
use crate::player::Player;
use crate::range::MIN_WINDOW_MS;
use crate::store::Store;
use crate::store::plan::Plan;
use leptos::prelude::*;
use shared::window::MAX_SAMPLES_SPAN_MS;
use shared::wire::Recorded;

/// A recording that is drawn under the live data.
pub struct Beside {
    /// Its machines.
    pub store: Store,
    /// The instant of its clock, ms since the epoch; it is drawn at the present time.
    pub at: i64,
    /// Shift of the recording against the shown data, in ms.
    pub shift: i64,
}

impl Page {
    /// Draws the shown recording under the live machine, and reconnects to its server.
    pub fn compare_with_live(self) {
        let Some(player) = self.player.get_untracked() else { return };
        let store = std::mem::take(&mut *self.store.write_value());
        self.begin_anew();
        self.beside.set_value(Some(Beside { store, at: player.t, shift: 0 }));
        let clock = charts::axis::moment(player.t + offset(player.t));
        self.compared.set(Some(format!("{} of {clock}", player.recorded.title)));
        self.state.set(LinkState::Connecting);
        self.over.set(false);
        self.write_address();
    }

    /// Removes the recording under the live machine.
    pub fn end_comparison(self) {
        self.beside.set_value(None);
        self.compared.set(None);
        self.redraw();
    }

    /// True while a recording is shown.
    pub fn is_recorded(&self) -> bool {
        self.player.with_untracked(Option::is_some)
    }

    /// Shows a recording. The store has its machines or will get them.
    pub fn recorded(self, recorded: Recorded) {
        let length = recorded.to - recorded.from;
        let asked = window().location().search().unwrap_or_default();
        if !["?w=", "&w="].iter().any(|name| asked.contains(name)) {
            // The window is exactly the whole recording.
            let whole = (length + 999) / 1_000 * 1_000;
            self.view.update(|v| v.window = whole.clamp(MIN_WINDOW_MS, MAX_SAMPLES_SPAN_MS));
        }
        self.player.set(Some(Player::new(recorded)));
        self.replan();
        self.redraw();
    }

    /// Changes the clock of the recording; nothing happens when none is shown.
    pub fn play(self, change: impl FnOnce(&mut Player)) {
        if self.is_recorded() {
            self.player.update(|p| {
                if let Some(p) = p {
                    change(p);
                }
            });
            self.load();
            self.redraw();
        }
    }

    /// Forgets everything that is shown, because the data of another machine follow.
    pub fn begin_anew(self) {
        self.player.set(None);
        self.end_comparison();
        self.processes.set(None);
        self.plan.set(Plan::default());
        self.file_findings.set(Vec::new());
        self.set_findings(Findings::default());
        self.forget_steps();
        self.view.update(|v| (v.frozen, v.source, v.finding) = (None, None, None));
        self.store.set_value(Store::default());
    }
}
