//! What of the page is folded and hidden. It stands in the address, so that a link shows the same, and in the browser's
//! storage for each machine, so that the next visit shows the same.

use super::Page;
use crate::address::{self, View};
use crate::browser;
use crate::store::Changed;
use leptos::prelude::*;

/// Key in the browser's storage, before the name of the machine.
const KEY: &str = "watchglass-folds-";

/// The lists that are kept.
fn lists(view: &mut View) -> [&mut Vec<String>; 3] {
    [&mut view.hide, &mut view.open, &mut view.shut]
}

impl Page {
    /// The key of the shown machine; None before its name is known.
    fn fold_key(&self) -> Option<String> {
        let store = self.store.read_value();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        source.map(|source| KEY.to_string() + &source.info.name)
    }

    /// Keeps what is folded and hidden for the next visit. A browser that allows no storage forgets it.
    fn keep_folds(&self) {
        let text = lists(&mut self.view_now()).map(|list| list.join(",")).join(";");
        if let (Some(storage), Some(key)) = (browser::storage(), self.fold_key()) {
            let _ = storage.set_item(&key, &text);
        }
    }

    /// Takes what was kept at the last visit, as soon as the machine is known. An address that names any fold or hidden
    /// chart goes first.
    pub(super) fn recall_folds(self) {
        let new = self.plan.with_untracked(|plan| plan.sections.is_empty());
        if !new || self.view.with_untracked(|v| !(v.hide.is_empty() && v.open.is_empty() && v.shut.is_empty())) {
            return;
        }
        let kept = browser::storage().zip(self.fold_key()).and_then(|(s, key)| s.get_item(&key).ok().flatten());
        if let Some(kept) = kept.filter(|kept| kept.len() > 2) {
            self.change(|v| {
                for (list, kept) in lists(v).into_iter().zip(kept.split(';')) {
                    *list = address::ids(kept).collect();
                }
            });
        }
    }

    /// Whether a section is open, which at first is `at_first`.
    pub fn is_open(&self, section: &str, at_first: bool) -> bool {
        let has = |list: &[String]| list.iter().any(|id| id == section);
        self.view.with(|v| has(&v.open) || at_first && !has(&v.shut))
    }

    /// Folds or unfolds a section, which at first is `at_first`.
    pub fn fold(self, section: &str, at_first: bool, open: bool) {
        self.change(|v| {
            for (list, wanted) in [(&mut v.open, open && !at_first), (&mut v.shut, !open && at_first)] {
                list.retain(|id| id != section);
                if wanted {
                    list.push(section.to_string());
                }
            }
        });
        self.keep_folds();
    }

    /// Hides a chart, or brings all back for None.
    pub fn hide(self, chart: Option<String>) {
        self.step(|v| match chart {
            Some(chart) => v.hide.push(chart),
            None => v.hide.clear(),
        });
        self.replace_plan();
    }

    /// Has the plan made anew, because other charts are hidden.
    pub(super) fn replace_plan(self) {
        self.keep_folds();
        self.changed(Changed { plan: true, ..Changed::default() });
    }
}
