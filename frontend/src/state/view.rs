//! Changes of what is shown, the way back, and the address that follows.

use super::Page;
use crate::address::{self, View};
use crate::browser::{now, window};
use crate::range::{self, SHORTEST};
use leptos::prelude::*;
use shared::window::{self, LONGEST_OF_SAMPLES, Window};
use std::time::Duration;
use wasm_bindgen::JsValue;

/// Writings of the address without a pause, and the time in which one more is allowed, ms: a browser counts how often.
const WRITES: i64 = 20;
const WRITE_EVERY_MS: i64 = 200;
/// Steps back that are kept.
const STEPS: usize = 50;

/// Window, and the span that stands still.
type Shown = (i64, Option<(i64, i64)>);

/// Windows and spans that were left, newest last.
#[derive(Default)]
pub struct Back(Vec<Shown>);

/// How often the address may be written.
pub struct Writes {
    /// When it was counted last, ms.
    at: i64,
    /// How often it may be written without a pause.
    left: i64,
    /// Whether one is waiting for its time.
    waiting: bool,
}

impl Writes {
    /// As many as there are.
    pub fn begin() -> Self {
        Writes { at: now(), left: WRITES, waiting: false }
    }

    /// Whether one more may be written right now.
    fn may(&mut self) -> bool {
        let more = (now() - self.at) / WRITE_EVERY_MS;
        self.left = (self.left + more).min(WRITES);
        self.at += more * WRITE_EVERY_MS;
        self.left > 0
    }
}

impl Page {
    /// Changes the view. The address follows at once, in a long drag a few times a second.
    pub fn change(self, change: impl FnOnce(&mut View)) {
        self.view.update(change);
        let may = self.writes.write_value().may();
        if may {
            self.write_address();
        } else if !std::mem::replace(&mut self.writes.write_value().waiting, true) {
            set_timeout(move || self.write_address(), Duration::from_millis(WRITE_EVERY_MS as u64));
        }
        self.load();
        self.redraw();
    }

    /// Writes what is seen into the address.
    pub fn write_address(self) {
        self.writes.update_value(|w| (w.waiting, w.left) = (false, w.left - 1));
        let params = web_sys::UrlSearchParams::new().expect("empty search parameters");
        for (name, value) in address::write(&self.view.get_untracked()) {
            params.append(name, &value);
        }
        let query = format!("?{}", String::from(params.to_string()));
        // Refused in a sandboxed frame; the view is right all the same.
        if let Ok(history) = window().history() {
            let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&query));
        }
    }

    /// The longest window, ms: as far as history goes back.
    pub fn longest(&self) -> i64 {
        if self.is_recorded() {
            return LONGEST_OF_SAMPLES;
        }
        range::longest(self.store.read_value().hello.as_ref().map_or(0, |h| h.retention))
    }

    /// The windows to choose from.
    pub fn windows(&self) -> impl Iterator<Item = Window> + use<> {
        window::choices(self.longest())
    }

    /// Shows no more than there can be, and says so.
    pub fn fit(self) {
        let longest = self.longest();
        let asked = self.view.with_untracked(|v| v.window);
        if asked > longest {
            self.wrong.set(format!("w={}: history is kept for {}", range::name(asked), range::name(longest)));
            self.view.update(|v| v.window = longest);
        }
    }

    fn shown(&self) -> Shown {
        self.view.with_untracked(|v| (v.window, v.frozen))
    }

    /// Keeps what is shown, for a step back.
    pub fn remember(self) {
        let shown = self.shown();
        let back = &mut self.back.write_value().0;
        if back.last() != Some(&shown) {
            if back.len() == STEPS {
                back.remove(0);
            }
            back.push(shown);
        }
    }

    /// Forgets the way back.
    pub(super) fn forget_steps(self) {
        self.back.write_value().0.clear();
    }

    /// Goes one step back; without one it goes on live.
    pub fn step_back(self) {
        let shown = self.shown();
        let before = {
            let back = &mut self.back.write_value().0;
            std::iter::from_fn(|| back.pop()).find(|b| *b != shown)
        };
        match before {
            Some((window, frozen)) => self.change(|v| (v.window, v.frozen) = (window, frozen)),
            None => self.go_live(),
        }
    }

    /// Shows a window of so many ms; a frozen span keeps its end.
    pub fn choose(self, window: i64) {
        self.remember();
        self.change(|v| {
            v.window = window;
            v.frozen = v.frozen.map(|(_, to)| (to - window, to));
        });
    }

    /// Stands still at a span, as far as it can be shown: 5 s to the longest window, not ahead of now.
    pub fn show(self, from: i64, to: i64) {
        let length = (to - from).clamp(SHORTEST, self.longest());
        let middle = from + (to - from) / 2;
        let end = (middle - length / 2 + length).min(self.newest().max(length));
        self.change(|v| v.frozen = Some((end - length, end)));
    }

    /// Makes the span so many times as long; the instant `at` stays where it is. A live view that is taken by its right
    /// end stays live.
    pub fn zoom(self, at: i64, factor: f64) {
        let (from, to) = self.span();
        let length = ((to - from) as f64 * factor) as i64;
        let length = length.clamp(SHORTEST, self.longest());
        let share = (at - from) as f64 / (to - from) as f64;
        if share > 0.9 && self.view.with_untracked(|v| v.frozen.is_none()) {
            self.change(|v| v.window = (length + 500) / 1000 * 1000);
        } else {
            let start = at - (length as f64 * share) as i64;
            self.show(start, start + length);
        }
    }

    /// Moves the span by so many ms.
    pub fn pan(self, by: i64) {
        let (from, to) = self.span();
        self.remember();
        self.show(from + by, to + by);
    }

    /// Shows another machine. The page begins anew with it: nothing that is drawn stays.
    pub fn show_source(self, name: String) {
        self.change(|v| v.source = Some(name));
        self.write_address();
        // The address says the machine already; where reloading is refused a person can still do it.
        let _ = window().location().reload();
    }

    /// Stands still, or goes on.
    pub fn toggle_frozen(self) {
        if self.view.with_untracked(|v| v.frozen.is_some()) {
            self.go_live();
        } else {
            let span = self.span();
            self.remember();
            self.change(|v| v.frozen = Some(span));
        }
    }

    /// Goes on; nothing is pointed at any more.
    pub fn go_live(self) {
        self.hover.set_value(None);
        self.forget_steps();
        self.change(|v| v.frozen = None);
    }

    /// Back to what the page shows of itself, and an address that says so.
    pub fn set_right(self) {
        self.wrong.set(String::new());
        self.change(|v| v.source = None);
        self.go_live();
    }
}
