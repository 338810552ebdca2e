//! Browser history: each choice of the user is an entry, so that Back, Forward and a reload work as expected.
//!
//! An entry is the address of a view. A continuous change (a drag, a wheel, a held key) changes the newest entry; after
//! [`begin_step`](Page::begin_step) the next change makes a new one. The browser keeps a number with each entry: the
//! number of entries of this page before it, so that one step back never leaves the page.

use super::Page;
use crate::address;
use crate::browser::{now, window};
use crate::store::plan::Plan;
use leptos::prelude::*;
use std::time::Duration;
use wasm_bindgen::JsValue;

/// Number of writes of the address without a pause. A write takes longer than a chart, and browsers refuse pages that
/// write it too often.
const MAX_ADDRESS_WRITES: i64 = 8;
/// After that, the address may be written once in this time, in ms.
const ADDRESS_WRITE_INTERVAL_MS: i64 = 200;
/// Entries of one era; the number of an entry is its era times this, and its depth.
const ERA: f64 = 1e6;

/// State of the browser's history.
pub struct Steps {
    /// True when the next change makes a new entry.
    begins: bool,
    /// Number of entries of this page and era before the present one.
    depth: f64,
    /// Increases when other data are shown: earlier entries refer to data that are gone.
    era: f64,
    /// When the writes were counted last, ms since the epoch.
    at: i64,
    /// Remaining writes of the address without a pause.
    left: i64,
    /// True while a write waits for its time.
    waiting: bool,
}

impl Steps {
    /// The steps of a page that is loaded; it may have been loaded before at this entry.
    pub fn begin() -> Self {
        let (era, depth) = present();
        Steps { begins: false, depth, era, at: now(), left: MAX_ADDRESS_WRITES, waiting: false }
    }

    /// Whether the address may be written right now.
    fn may_write(&mut self) -> bool {
        let more = (now() - self.at) / ADDRESS_WRITE_INTERVAL_MS;
        self.left = (self.left + more).min(MAX_ADDRESS_WRITES);
        self.at += more * ADDRESS_WRITE_INTERVAL_MS;
        self.left > 0
    }
}

/// Era and depth of the entry that the browser is at.
fn present() -> (f64, f64) {
    let number = window().history().and_then(|history| history.state()).ok().and_then(|state| state.as_f64());
    number.map_or((0.0, 0.0), |n| ((n / ERA).floor(), n % ERA))
}

impl Page {
    /// Makes the next change a new step. Call it once for a choice, and at the start of a gesture.
    pub fn begin_step(self) {
        self.steps.write_value().begins = true;
    }

    /// Lets the address follow a change: at once, during a long drag a few times a second.
    pub(super) fn follow_address(self) {
        let may = self.steps.write_value().may_write();
        if may {
            self.write_address();
        } else if !std::mem::replace(&mut self.steps.write_value().waiting, true) {
            set_timeout(move || self.write_address(), Duration::from_millis(ADDRESS_WRITE_INTERVAL_MS as u64));
        }
    }

    /// The query of an address that shows this view. All pages to which a share link leads are seen by it.
    pub fn query(&self, view: &address::View) -> String {
        let params = web_sys::UrlSearchParams::new().expect("empty search parameters");
        let share = view.share.clone().or_else(|| self.view.with_untracked(|own| own.share.clone()));
        for (name, value) in address::write(&address::View { share, ..view.clone() }) {
            params.append(name, &value);
        }
        format!("?{}", String::from(params.to_string()))
    }

    /// Writes the view into the address.
    pub fn write_address(self) {
        let query = self.query(&self.view.get_untracked());
        let Ok(history) = window().history() else { return };
        let same = window().location().search().is_ok_and(|present| present == query);
        let steps = &mut *self.steps.write_value();
        (steps.waiting, steps.left) = (false, steps.left - 1);
        if std::mem::take(&mut steps.begins) && !same {
            steps.depth += 1.0;
            let state = JsValue::from_f64(steps.era * ERA + steps.depth);
            if history.push_state_with_url(&state, "", Some(&query)).is_err() {
                // A sandboxed frame refuses it. The view is still correct, but there is no step back.
                steps.depth -= 1.0;
            }
        } else {
            let state = JsValue::from_f64(steps.era * ERA + steps.depth);
            let _ = history.replace_state_with_url(&state, "", Some(&query));
        }
    }

    /// Goes one step back; before the first step the page returns to live.
    pub fn step_back(self) {
        let back = self.steps.with_value(|steps| steps.depth > 0.0);
        if !back || window().history().and_then(|history| history.back()).is_err() {
            self.go_live();
        }
    }

    /// Shows the view of the entry that the browser went to. Theme and folds stay: they are settings of the reader.
    pub fn arrive(self) {
        let (era, depth) = present();
        {
            let steps = &mut *self.steps.write_value();
            if era != steps.era {
                // The data of the entry are gone. The shown view stays, and the address follows it.
                (steps.depth, steps.begins) = (0.0, false);
            } else {
                (steps.depth, steps.begins) = (depth, false);
            }
        }
        if era != self.steps.with_value(|steps| steps.era) {
            return self.write_address();
        }
        let (view, wrong) = Self::read_address();
        let before = self.view.get_untracked();
        // A file has all of its machines.
        if view.source != before.source && !self.over.get_untracked() {
            // The page reloads for another machine; if the browser refuses, the user can still do it.
            let _ = window().location().reload();
            return;
        }
        self.wrong.set(wrong.join("; "));
        self.look_at(view);
    }

    /// Shows another view of the same data. Theme and folds stay.
    pub(super) fn look_at(self, view: address::View) {
        let before = self.view.get_untracked();
        self.hover.set_value(None);
        if view.source != before.source {
            // The panels of the machine before leave the page first, because they keep what they drew.
            self.plan.set(Plan::default());
        }
        let (theme, open, shut) = (before.theme, before.open, before.shut);
        self.view.set(address::View { theme, open, shut, ..view });
        self.replace_plan();
        self.fit();
        self.load();
        self.redraw();
    }

    /// Drops the steps back, because other data are shown.
    pub(super) fn forget_steps(self) {
        let steps = &mut *self.steps.write_value();
        (steps.era, steps.depth, steps.begins) = (steps.era + 1.0, 0.0, false);
    }
}
