//! Polls the firing alerts while the page is visible and its data come from a server. On the page of one machine it
//! also polls the alerts and limits of the charts.

use super::words;
use crate::access::Access;
use crate::address::Route;
use crate::pages::poll::{PollAnswer, poll};
use crate::range;
use crate::state::{OpenAlerts, Page};
use leptos::prelude::*;
use shared::alert::{Alert, Alerts, Rule, Rules};
use shared::finding::Severity;
use viewer::alerts::{Alerted, bars, limits};

/// Seconds between two polls of alerts, and of rules.
const REFRESH_SECONDS: u32 = 5;
const RULES_SECONDS: u32 = 60;

/// Whether a server can be polled: not for a file, and not for a share link, which shows only charts.
fn is_served(page: Page) -> bool {
    !page.over.get() && page.view.with(|view| view.share.is_none()) && page.player.with(Option::is_none)
}

/// Starts the polling, which lasts as long as the page.
pub fn follow(page: Page, access: Access) {
    let open = move || is_served(page).then(|| "api/v1/alerts?state=firing".to_string());
    poll(page, access, REFRESH_SECONDS, open, move |polled| match polled {
        PollAnswer::Told(body) => {
            let Ok(Alerts { alerts, firing, trouble, .. }) = body.read() else { return };
            page.set_alerts(OpenAlerts { firing, trouble, open: words::in_zone(alerts), known: true, refused: false });
        }
        PollAnswer::Refused => page.set_alerts(OpenAlerts { refused: true, ..OpenAlerts::default() }),
        PollAnswer::Failed(_) => {}
    });
    let (alerts, rules) = (RwSignal::new(Vec::new()), RwSignal::new(Vec::<Rule>::new()));
    let machine = move || {
        page.plan.track();
        let named = Some(page.machine()).filter(|name| !name.is_empty());
        named.filter(|_| is_served(page) && page.place() == Route::Host)
    };
    let lanes = move || {
        let machine = String::from(js_sys::encode_uri_component(&machine()?));
        let (frozen, window) = page.view.with(|view| (view.frozen, view.window));
        let span = match frozen {
            Some((from, to)) => format!("from={}&to={}", range::seconds(from), range::seconds(to)),
            None => format!("from=-{}s", window / 1_000),
        };
        Some(format!("api/v1/alerts?source={machine}&{span}"))
    };
    poll(page, access, REFRESH_SECONDS, lanes, move |polled| {
        if let PollAnswer::Told(body) = polled
            && let Ok(told) = body.read::<Alerts>()
        {
            alerts.set(told.alerts);
        }
    });
    let watching = move || machine().map(|_| "api/v1/rules".to_string());
    poll(page, access, RULES_SECONDS, watching, move |polled| {
        if let PollAnswer::Told(body) = polled
            && let Ok(told) = body.read::<Rules>()
        {
            rules.set(told.rules.into_iter().map(|row| row.rule).collect());
        }
    });
    Effect::new(move || {
        page.plan.track();
        let machine = page.machine();
        let limits = page.store.with_value(|store| rules.with(|rules| limits(rules, &machine, &store.catalog)));
        // An alert that a finding's lane already shows is not drawn again.
        let drawn: Vec<String> = page.findings.with(|found| {
            let with_lanes = found.all.iter().filter(|one| one.severity > Severity::Note);
            with_lanes.map(|one| one.id.clone()).collect()
        });
        let own = alerts.with(|alerts: &Vec<Alert>| {
            let others = alerts.iter().filter(|one| !drawn.contains(&one.subject));
            bars(&others.cloned().collect::<Vec<_>>())
        });
        page.set_alerted(Alerted { bars: own, limits });
    });
}
