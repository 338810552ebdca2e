//! Folded and hidden parts of the page, and the charts on top. They are stored in the address, so that a link shows the
//! same, and in the browser's storage for each machine, for the next visit.

use super::Page;
use crate::address::{self, View};
use crate::browser;
use crate::card::{self, Card};
use crate::store::Changed;
use leptos::prelude::*;
use shared::series::SeriesId;

/// Key in the browser's storage, before the name of the machine.
const KEY: &str = "watchglass-folds-";

/// Key in the browser's storage of the layouts: a line each, of name, tab and lists.
const LAYOUTS_KEY: &str = "watchglass-layouts";
/// Maximum number of stored layouts.
const MAX_LAYOUTS: usize = 24;

/// The stored lists.
fn lists(view: &mut View) -> [&mut Vec<String>; 5] {
    [&mut view.hide, &mut view.open, &mut view.shut, &mut view.front, &mut view.cards]
}

impl Page {
    /// The key of the shown machine; None before its name is known.
    fn fold_key(&self) -> Option<String> {
        let store = self.store.read_value();
        let source = self.view.with_untracked(|v| store.source(v.source.as_deref()));
        source.map(|source| KEY.to_string() + &source.info.name)
    }

    /// Stores folded and hidden parts for the next visit. A browser without storage loses them.
    fn keep_folds(&self) {
        let text = lists(&mut self.view_now()).map(|list| list.join(",")).join(";");
        if let (Some(storage), Some(key)) = (browser::storage(), self.fold_key()) {
            let _ = storage.set_item(&key, &text);
        }
    }

    /// Restores the folds of the last visit, as soon as the machine is known. An address with any fold or hidden chart
    /// has priority.
    pub(super) fn recall_folds(self) {
        let new = self.plan.with_untracked(|plan| plan.sections.is_empty());
        if !new || lists(&mut self.view_now()).iter().any(|list| !list.is_empty()) {
            return;
        }
        let kept = browser::storage().zip(self.fold_key()).and_then(|(s, key)| s.get_item(&key).ok().flatten());
        if let Some(kept) = kept.filter(|kept| kept.len() > 3) {
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

    /// Moves a chart on top by `by` places, toward the front where negative; a chart below moves to the top. 0 returns
    /// it to its own place.
    pub fn put(self, chart: &str, by: i32) {
        let top: Vec<String> = self.plan.with_untracked(|p| p.top.iter().map(|panel| panel.id.clone()).collect());
        let at = top.iter().position(|id| id == chart);
        self.step(|v| match (by, at) {
            (0, _) => v.front.retain(|id| id != chart),
            (_, None) => v.front.insert(0, chart.to_string()),
            (_, Some(at)) => {
                // All charts before it keep their places.
                let to = at.saturating_add_signed(by as isize).min(top.len() - 1);
                let mut order = top;
                let chart = order.remove(at);
                order.insert(to, chart);
                let kept = v.front.iter().filter_map(|id| order.iter().position(|other| other == id)).max();
                order.truncate(kept.unwrap_or(0).max(to).max(if by > 0 { at } else { 0 }) + 1);
                v.front = order;
            }
        });
        self.replace_plan();
    }

    /// Adds series of the shown machine to the card of this name; None makes a new card. Returns the name of the card.
    ///
    /// # Errors
    /// A sentence: the series do not fit the card.
    pub fn add_to_card(self, card: Option<&str>, series: &[SeriesId]) -> Result<String, String> {
        let view = self.view_now();
        let mut cards = card::cards(&view.cards);
        let mut own = match card {
            Some(name) => cards.iter().find(|known| known.name == name).cloned().unwrap_or_default(),
            None => Card { name: card::free_name(&cards, card::NEW_NAME), tags: Vec::new() },
        };
        let has_two_units = {
            let store = self.store.read_value();
            let source = store.source(view.source.as_deref()).ok_or("There is no machine.")?;
            own.add(&store, source, series)?
        };
        let name = own.name.clone();
        match cards.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = own,
            None => cards.push(own),
        }
        self.step(|v| {
            v.cards = cards.iter().map(Card::text).collect();
            let own = cards.iter().find(|card| card.name == name).map(|card| (card.id(), card.over()));
            v.over.retain(|pair| own.as_ref() != Some(pair));
            v.over.extend(own.filter(|_| has_two_units));
        });
        self.replace_plan();
        Ok(name)
    }

    /// Renames the card with this chart, or removes it for None. A name that another card has gets a number.
    pub fn change_card(self, chart: &str, name: Option<&str>) {
        let mut cards = card::cards(&self.view_now().cards);
        let Some(at) = cards.iter().position(|card| card.id() == chart) else { return };
        let old = cards.remove(at);
        let new = name.filter(|name| !name.trim().is_empty());
        let new = new.map(|name| Card { name: card::free_name(&cards, name), tags: old.tags.clone() });
        cards.extend(new.clone());
        self.step(|v| {
            v.cards = cards.iter().map(Card::text).collect();
            let (id, over) = (old.id(), old.over());
            let has_over = v.over.contains(&(id.clone(), over));
            v.over.retain(|(on, _)| *on != id);
            match new {
                Some(new) => {
                    v.over.extend(has_over.then(|| (new.id(), new.over())));
                    v.front.iter_mut().filter(|front| **front == id).for_each(|front| *front = new.id());
                }
                None => v.front.retain(|front| *front != id),
            }
        });
        self.replace_plan();
    }

    /// The layouts that this browser keeps, as name and query.
    pub fn layouts(&self) -> Vec<(String, String)> {
        let kept = browser::storage().and_then(|s| s.get_item(LAYOUTS_KEY).ok().flatten()).unwrap_or_default();
        let line = |line: &str| line.split_once('\t').map(|(name, query)| (name.to_string(), query.to_string()));
        kept.lines().filter_map(line).take(MAX_LAYOUTS).collect()
    }

    /// Stores the folded and hidden parts and the charts on top as a layout of this name, or deletes the layout if
    /// `keep` is false. Returns false without browser storage, for an empty name, or for too many layouts.
    pub fn keep_layout(self, name: &str, keep: bool) -> bool {
        let plain = name.replace(|c: char| c.is_control(), " ");
        let name: String = plain.trim().chars().take(address::MAX_NAME_CHARS).collect();
        let mut all = self.layouts();
        all.retain(|(other, _)| *other != name);
        if name.is_empty() || keep && all.len() >= MAX_LAYOUTS {
            return false;
        }
        if keep {
            let query = lists(&mut self.view_now()).map(|list| list.join(",")).join(";");
            all.push((name.clone(), query));
        }
        let text: String = all.iter().map(|(name, query)| format!("{name}\t{query}\n")).collect();
        let kept = browser::storage().is_some_and(|s| s.set_item(LAYOUTS_KEY, &text).is_ok());
        self.change(|v| v.layout = if keep { Some(name) } else { v.layout.take().filter(|other| *other != name) });
        kept
    }

    /// Shows a layout, or the default page for None.
    pub fn show_layout(self, layout: Option<(String, String)>) {
        self.step(|v| {
            let (name, query) = layout.unzip();
            let query = query.unwrap_or_default();
            let mut parts = query.split(';');
            for list in lists(v) {
                *list = address::ids(parts.next().unwrap_or_default()).collect();
            }
            v.layout = name;
        });
        self.replace_plan();
    }

    /// Rebuilds the plan, because other charts are hidden.
    pub(super) fn replace_plan(self) {
        self.keep_folds();
        self.changed(Changed { plan: true, ..Changed::default() });
    }
}
