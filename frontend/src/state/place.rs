//! The shown page, and the addresses of others.

use super::Page;
use crate::address::{Route, Tab, View};
use crate::browser::window;
use leptos::prelude::*;
use shared::catalog::fleet::Grain;
use shared::connection_state::ConnectionState;
use shared::wire::{MAX_OPENED, PageMessage};

/// A fleet of so few machines is shown as their charts, in place of a map.
pub const FEW_MACHINES: usize = 4;

impl Page {
    /// The page that is shown: the one that the address names; else that of the named machine, of the only one, or of
    /// the fleet. While the machines are unknown, it is the page of one.
    pub fn place(&self) -> Route {
        let (place, named) = self.view.with(|v| (v.place, v.source.is_some()));
        place.unwrap_or_else(|| match self.machines.get() {
            _ if named || self.player.with(Option::is_some) => Route::Host,
            None | Some(1) => Route::Host,
            Some(_) => Route::Fleet,
        })
    }

    /// Whether one machine is shown.
    pub fn is_of_one_machine(&self) -> bool {
        self.place() == Route::Host
    }

    /// State of the shown machine, and its begin in ms since the epoch; None before the server has reported it.
    pub fn connection_state(&self) -> Option<(ConnectionState, i64)> {
        self.fleet.track();
        self.plan.track();
        let store = self.store.read_value();
        let shown = self.view.with(|view| store.source(view.source.as_deref())).map(|source| &source.info.name)?;
        store.index.iter().find(|entry| entry.name == *shown).map(|entry| (entry.state.clone(), entry.since))
    }

    /// The machines whose streams are requested, by name: `""` stands for the first.
    pub fn followed(&self) -> Vec<String> {
        let view = self.view_now();
        match untrack(|| self.place()) {
            Route::Host => vec![view.source.unwrap_or_default()],
            Route::Compare => view.source.into_iter().chain(view.with).take(MAX_OPENED).collect(),
            Route::Fleet => {
                let store = self.store.read_value();
                match store.index.len() {
                    0..=FEW_MACHINES => store.index.iter().map(|entry| entry.key.clone()).collect(),
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Requests after the opening message: the overviews that the page shows.
    pub fn overviews(&self) -> Vec<PageMessage> {
        match untrack(|| self.place()) {
            Route::Host | Route::Compare => Vec::new(),
            Route::Fleet | Route::Machines => {
                Grain::ALL.into_iter().map(|grain| PageMessage::Overview { grain, on: true }).collect()
            }
            // The other pages receive one overview, so that they see that the link is alive.
            _ => vec![PageMessage::Overview { grain: Grain::Sources, on: true }],
        }
    }

    /// The address of another page, with this theme and window. It is relative, so that a path before it stays.
    pub fn address_of(&self, place: Option<Route>, machines: &[String]) -> String {
        let view = self.view_now();
        let other = View {
            window: view.window,
            theme: view.theme,
            share: view.share,
            // The team is used only on the team pages.
            team: view.team.filter(|_| place.is_some_and(|place| !place.draws() || place == Route::Alerts)),
            place,
            source: machines.first().cloned(),
            with: machines.iter().skip(1).cloned().collect(),
            ..View::default()
        };
        self.query(&other)
    }

    /// True on the page of one machine.
    pub fn is_host(&self) -> bool {
        untrack(|| self.place()) == Route::Host
    }

    /// Compares the machines that are ticked; false where there are not two to eight.
    pub fn compare_ticked(&self) -> bool {
        let ticked = self.ticked.get_untracked();
        let enough = (2..=MAX_OPENED).contains(&ticked.len());
        if enough {
            self.go_to(Some(Route::Compare), &ticked);
        }
        enough
    }

    /// Goes to the page of all machines.
    pub fn go_to_fleet(&self) {
        self.go_to(Some(Route::Fleet), &[]);
    }

    /// The address of the page of runs: one alone, or several beside each other.
    pub fn address_of_runs(&self, runs: &[String]) -> String {
        let view = self.view_now();
        let place = Some(Route::Run);
        self.query(&View { window: view.window, theme: view.theme, place, runs: runs.to_vec(), ..View::default() })
    }

    /// The address of the page of a run, with the line of this name highlighted, as `rank 3`.
    pub fn address_of_run(&self, run: String, line: Option<String>) -> String {
        let View { window, theme, .. } = self.view_now();
        let pin = line.into_iter().collect();
        self.query(&View { window, theme, place: Some(Route::Run), runs: vec![run], pin, ..View::default() })
    }

    /// The address of the page of findings, with this one chosen; None for the first of them.
    pub fn address_of_finding(&self, id: Option<String>) -> String {
        let View { window, theme, .. } = self.view_now();
        self.query(&View { window, theme, place: Some(Route::Findings), finding: id, ..View::default() })
    }

    /// Goes to the page of findings, with that one chosen that leads this page.
    pub fn go_to_findings(self) {
        self.open(&self.address_of_finding(self.lead().map(|finding| finding.id)));
    }

    /// Goes to an address of this page, without a reload where a file is shown.
    pub fn open(self, to: &str) {
        if !self.go_within(to) {
            // The user can use the link where the browser refuses this call.
            let _ = window().location().assign(to);
        }
    }

    /// Goes to another page without loading it where a file is shown, which would be lost; `query` is the address.
    /// False where none is shown, or where that page is not about it.
    pub fn go_within(self, query: &str) -> bool {
        let (view, _) = Self::read_query(query);
        let goes = self.over.get_untracked() && matches!(view.place, None | Some(Route::Host | Route::Findings));
        if goes {
            self.begin_step();
            self.look_at(view);
            self.write_address();
        }
        goes
    }

    /// The address of a part of the page of alerts, with this alert or draft of a rule; empty for none.
    pub fn address_of_alerts(&self, tab: Tab, alert: &str) -> String {
        let View { window, theme, team, .. } = self.view_now();
        let (tab, alert) = (tab.name().to_string(), alert.to_string());
        self.query(&View { window, theme, team, place: Some(Route::Alerts), tab, alert, ..View::default() })
    }

    /// The address of a rule that is written from this draft.
    pub fn address_of_draft(&self, draft: &str) -> String {
        self.address_of_alerts(Tab::Rules, draft)
    }

    /// Goes to the page of alerts. False where a file is shown, which would be lost.
    pub fn go_to_alerts(&self) -> bool {
        let goes = !self.over.get_untracked();
        if goes {
            // The user can use the link where the browser refuses this call.
            let _ = window().location().assign(&self.address_of_alerts(Tab::Alerts, ""));
        }
        goes
    }

    /// Goes to the list of runs.
    pub fn go_to_runs(&self) {
        self.go_to(Some(Route::Runs), &[]);
    }

    /// Opens the page of the people of a hub.
    pub fn go_to_people(&self) {
        self.go_to(Some(Route::Team), &[]);
    }

    /// Goes to another page: it is loaded, so that nothing of this one stays. A file would be lost, and stays.
    pub fn go_to(&self, place: Option<Route>, machines: &[String]) {
        let to = self.address_of(place, machines);
        if !self.go_within(&to) && !self.over.get_untracked() {
            // The user can use the link where the browser refuses this call.
            let _ = window().location().assign(&to);
        }
    }
}
