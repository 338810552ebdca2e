//! The page of alerts: its parts, and the links between them and the findings.

use super::channels::Channels;
use super::list::List;
use super::rules::Rules;
use super::silences::Silences;
use super::words;
use crate::access::Access;
use crate::address::{Route, Tab};
use crate::state::Page;
use crate::widgets::parts::{If, flag, text};
use leptos::prelude::*;

/// The links between findings, alerts, rules, deliveries and silences.
#[component]
pub fn Tabs() -> impl IntoView {
    let page = expect_context::<Page>();
    let access = expect_context::<Access>();
    let here = move || page.view.with(|view| (page.place() == Route::Alerts).then(|| Tab::from_name(&view.tab)));
    let firing = move || match page.alerts.with(|told| told.firing) {
        0 => String::new(),
        n => format!(" {n}"),
    };
    let open = move || match page.open_findings().len() {
        0 => String::new(),
        n => format!(" {n}"),
    };
    let mark = move |tab: Option<Tab>| text(move || if here() == tab { "page" } else { "false" });
    let tab = move |tab: Tab| {
        let label = move || match tab {
            Tab::Alerts => format!("Alerts{}", firing()),
            Tab::Rules => "Rules".into(),
            Tab::Deliveries => "Notifications".into(),
            Tab::Silences => "Silences".into(),
        };
        let to = text(move || page.address_of_alerts(tab, ""));
        let press = move |event: leptos::ev::MouseEvent| {
            let held = event.ctrl_key() || event.meta_key() || event.shift_key();
            if untrack(here).is_some() && !held {
                event.prevent_default();
                page.step(|view| {
                    (view.tab, view.alert) = (tab.name().to_string(), String::new());
                    (view.state, view.find) = Default::default();
                });
            }
        };
        let name = if tab == Tab::Alerts { "alerts" } else { tab.name() };
        // A viewer may not read the channels of a team.
        let may = flag(move || tab != Tab::Deliveries || words::may_write(access));
        view! { <If when=may><a href=to data-tab=name aria-current=mark(Some(tab)) on:click=press>{text(label)}</a></If> }
    };
    view! {
        <nav class="tabs" aria-label="Sections">
            <a href=text(move || page.address_of_finding(None)) data-tab="findings" aria-current=mark(None)>{text(move || format!("Findings{}", open()))}</a>
            {Tab::ALL.map(tab).into_iter().collect_view()}
        </nav>
    }
}

/// The page.
#[component]
pub fn AlertsPage() -> impl IntoView {
    let page = expect_context::<Page>();
    let tab = Memo::new(move |_| page.view.with(|view| Tab::from_name(&view.tab)));
    let chosen = text(move || {
        page.view.with(|view| Tab::from_name(&view.tab) == Tab::Alerts && !view.alert.is_empty()).to_string()
    });
    let part = move || match tab.get() {
        Tab::Alerts => view! { <List/> }.into_any(),
        Tab::Rules => view! { <Rules/> }.into_any(),
        Tab::Deliveries => view! { <Channels/> }.into_any(),
        Tab::Silences => view! { <Silences/> }.into_any(),
    };
    view! {
        <main id="page" class="fleet findings-page alerts-page" data-chosen=chosen>
            <header class="findings-head"><h2>"Alerts"</h2><Tabs/></header>
            {part}
        </main>
    }
}
