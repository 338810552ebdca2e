//! Changes of the view: its window, its span, its machine.

use super::{Page, Sheet};
use crate::address::View;
use crate::browser::{offset, window};
use crate::range::{self, Asked, MIN_WINDOW_MS};
use charts::axis;
use leptos::prelude::*;
use shared::window::{self, MAX_SAMPLES_SPAN_MS, Window};

impl Page {
    /// Changes the view within the present step, or as the first change of a step that was [begun](Self::begin_step).
    pub fn change(self, change: impl FnOnce(&mut View)) {
        self.view.update(change);
        self.follow_address();
        self.load();
        self.redraw();
    }

    /// Changes the view by a choice of its own: one step of the browser's history.
    pub fn step(self, change: impl FnOnce(&mut View)) {
        self.begin_step();
        self.change(change);
    }

    /// State of a machine's page for screen readers: the span, the comparison, the list beside the charts. It has only
    /// parts that a key changes and nothing else announces. Empty for other pages.
    pub fn whereabouts(&self) -> String {
        if !self.is_host() {
            return String::new();
        }
        let clock = |t: i64| axis::moment(t + offset(t));
        let (mut said, compares) = self.view.with_untracked(|view| {
            let span = match view.frozen {
                Some((from, to)) => format!("{} to {}", clock(from), clock(to)),
                None => format!("live, the last {}", range::name(view.window)),
            };
            (span, view.versus.is_some())
        });
        if compares {
            said += ", compared with an earlier span";
        }
        match self.sheet.get_untracked() {
            Some(Sheet::Changed) => said + ", what changed is listed beside the charts",
            Some(Sheet::Differs) => said + ", outliers are listed beside the charts",
            None => said,
        }
    }

    /// The longest window in ms: the retention, within limits.
    pub fn longest(&self) -> i64 {
        if self.is_recorded() {
            return MAX_SAMPLES_SPAN_MS;
        }
        range::longest(self.store.read_value().hello.as_ref().map_or(0, |h| h.retention))
    }

    /// The windows to choose from.
    pub fn windows(&self) -> impl Iterator<Item = Window> + use<> {
        window::choices(self.longest())
    }

    /// Limits the window to the length of history, and reports that on the page.
    pub fn fit(self) {
        let longest = self.longest();
        let asked = self.view.with_untracked(|v| v.window);
        if asked > longest {
            self.wrong.set(format!("w={}: history is kept for {}", range::name(asked), range::name(longest)));
            self.view.update(|v| v.window = longest);
        }
    }

    /// Shows a window of `window` ms; a frozen span keeps its end.
    pub fn choose(self, window: i64) {
        self.begin_step();
        self.change(|v| {
            v.window = window;
            v.frozen = v.frozen.map(|(_, to)| (to - window, to));
        });
    }

    /// Shows the span that the user requested.
    pub fn go(self, asked: Asked) {
        self.begin_step();
        match asked {
            Asked::Last(ms) => self.change(|v| (v.window, v.frozen) = (ms, None)),
            Asked::Span(from, to) => self.show(from, to),
            Asked::At(t) => {
                let half = self.view.with_untracked(|v| v.window) / 2;
                self.show(t - half, t + half);
            }
        }
    }

    /// Freezes the page at a span (ms since the epoch). It is limited to 5 s up to the longest window, and ends at the
    /// newest tick or before.
    pub fn show(self, from: i64, to: i64) {
        let length = (to - from).clamp(MIN_WINDOW_MS, self.longest());
        let middle = from + (to - from) / 2;
        let end = (middle - length / 2 + length).min(self.newest().max(length));
        self.change(|v| v.frozen = Some((end - length, end)));
    }

    /// Multiplies the length of the span by `factor`; the instant `at` keeps its place. A live view that is zoomed near
    /// its right edge stays live.
    pub fn zoom(self, at: i64, factor: f64) {
        let (from, to) = self.span();
        let length = ((to - from) as f64 * factor) as i64;
        let length = length.clamp(MIN_WINDOW_MS, self.longest());
        let share = (at - from) as f64 / (to - from) as f64;
        if share > 0.9 && self.view.with_untracked(|v| v.frozen.is_none()) {
            self.change(|v| v.window = (length + 500) / 1000 * 1000);
        } else {
            let start = at - (length as f64 * share) as i64;
            self.show(start, start + length);
        }
    }

    /// Moves the span by `by` ms.
    pub fn pan(self, by: i64) {
        let (from, to) = self.span();
        self.begin_step();
        self.show(from + by, to + by);
    }

    /// Shows another machine. The page is loaded again, so that nothing drawn stays. A file has all of its machines, and
    /// would be lost.
    pub fn show_source(self, name: String) {
        let view = View { source: Some(name.clone()), ..self.view_now() };
        if self.go_within(&self.query(&view)) {
            return;
        }
        self.step(|v| v.source = Some(name));
        self.write_address();
        // The address already names the machine. The user can reload the page where the browser refuses this call.
        let _ = window().location().reload();
    }

    /// The name of the machine that is shown; empty while there is none.
    pub fn machine(self) -> String {
        let source = self.view.with_untracked(|v| v.source.clone());
        self.store.read_value().source(source.as_deref()).map_or_else(String::new, |s| s.info.name.clone())
    }

    /// Freezes the page, or returns to live.
    pub fn toggle_frozen(self) {
        if self.view.with_untracked(|v| v.frozen.is_some()) {
            self.go_live();
        } else {
            let span = self.span();
            self.begin_step();
            self.change(|v| v.frozen = Some(span));
        }
    }

    /// Returns to live, and removes the crosshair from all charts.
    pub fn go_live(self) {
        self.hover.set_value(None);
        if self.view.with_untracked(|v| v.frozen.is_some()) {
            self.begin_step();
        }
        self.change(|v| v.frozen = None);
    }

    /// Removes the machine and the error from the address, and returns to live.
    pub fn set_right(self) {
        self.wrong.set(String::new());
        self.change(|v| v.source = None);
        self.go_live();
    }
}
