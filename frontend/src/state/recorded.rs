//! A recording in the place of a live machine: what is shown of it, and its clock.

use super::Page;
use crate::browser::window;
use crate::player::Player;
use crate::store::Store;
use crate::store::plan::Plan;
use leptos::prelude::*;
use shared::window::WINDOWS;
use shared::wire::Recorded;

impl Page {
    /// Whether a recording is shown.
    pub fn is_recorded(&self) -> bool {
        self.player.with_untracked(Option::is_some)
    }

    /// Shows a recording, whose machines the store has or is about to have.
    pub fn recorded(self, recorded: Recorded) {
        let length = recorded.to - recorded.from;
        let asked = window().location().search().unwrap_or_default();
        if !["?w=", "&w="].iter().any(|name| asked.contains(name)) {
            // As much of it as one window holds.
            let all = WINDOWS.iter().find(|w| w.ms >= length).unwrap_or(&WINDOWS[WINDOWS.len() - 1]);
            self.view.update(|v| v.window = all.ms);
        }
        self.player.set(Some(Player::new(recorded)));
        self.replan();
        self.redraw();
    }

    /// Does something with the clock of the recording, if one is shown.
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

    /// Forgets everything that is shown; what comes next is another machine's.
    pub fn begin_anew(self) {
        self.player.set(None);
        self.processes.set(None);
        self.plan.set(Plan::default());
        self.forget_steps();
        self.view.update(|v| (v.frozen, v.source) = (None, None));
        self.store.set_value(Store::default());
    }
}
