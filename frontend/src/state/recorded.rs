//! A recording in place of a live machine: what is shown of it, and its clock.

use super::Page;
use crate::browser::window;
use crate::player::Player;
use crate::store::Store;
use crate::store::plan::Plan;
use leptos::prelude::*;
use shared::window::WINDOWS;
use shared::wire::Recorded;

impl Page {
    /// True while a recording is shown.
    pub fn is_recorded(&self) -> bool {
        self.player.with_untracked(Option::is_some)
    }

    /// Shows a recording. The store has its machines or will get them.
    pub fn recorded(self, recorded: Recorded) {
        let length = recorded.to - recorded.from;
        let asked = window().location().search().unwrap_or_default();
        if !["?w=", "&w="].iter().any(|name| asked.contains(name)) {
            // The window is the shortest that holds the whole recording, or else the longest.
            let all = WINDOWS.iter().find(|w| w.ms >= length).unwrap_or(&WINDOWS[WINDOWS.len() - 1]);
            self.view.update(|v| v.window = all.ms);
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
        self.processes.set(None);
        self.plan.set(Plan::default());
        self.forget_steps();
        self.view.update(|v| (v.frozen, v.source) = (None, None));
        self.store.set_value(Store::default());
    }
}
