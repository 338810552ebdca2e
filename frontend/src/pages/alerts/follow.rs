//! Asks for what fires again and again, while somebody looks at the page and its data come from a server; on the page of one
//! machine also for what its charts show of it.

use crate::access::{Access, Gate};
use crate::address::Route;
use crate::browser::document;
use crate::fetch::{self, Json};
use crate::range;
use crate::state::{LinkState, Page, Told};
use leptos::prelude::*;
use shared::alert::{Alert, Alerts, Rule, Rules};
use shared::finding::Severity;
use viewer::alerts::{Alerted, bars, limits};

/// Seconds between two questions for what fires, and for rules.
const REFRESH_SECONDS: u32 = 5;
const RULES_SECONDS: u32 = 60;

/// What was asked last.
#[derive(Clone, Debug, Default)]
struct Asked {
    path: String,
    /// Seconds since then.
    since: u32,
    /// How often something was changed until then.
    changes: u32,
    /// Rises with each question: an answer to an older one comes too late.
    turn: u32,
    /// The server does not tell, as one that is older, or by a share link.
    refused: bool,
}

/// Asks for a path each so many seconds, and when somebody changed something, as long as the component that calls this is
/// there. While there is no path, nothing is asked.
pub fn poll(
    page: Page,
    access: Access,
    every: u32,
    path: impl Fn() -> Option<String> + 'static,
    take: impl Fn(&Json) + Clone + 'static,
) {
    let asked = StoredValue::new(Asked::default());
    Effect::new(move || {
        page.beat.track();
        let changes = page.alert_changes.get();
        let Some(path) = path() else { return };
        // Before the first data it is not known who may ask; a server that is away is not asked.
        let open = page.state.get() == LinkState::Live && access.gate.get() == Gate::Open;
        let last = asked.get_value();
        let due = last.path != path || last.changes != changes || last.since >= every;
        if last.refused || !open || !due || document().hidden() {
            return asked.update_value(|asked| asked.since += 1);
        }
        let turn = last.turn + 1;
        asked.set_value(Asked { path: path.clone(), turn, changes, ..Asked::default() });
        let take = take.clone();
        fetch::ask("GET", &path, None, move |answer| {
            // The component may have gone.
            if asked.try_with_value(|asked| asked.turn == turn) != Some(true) {
                return;
            }
            match answer.status {
                200 => take(&answer.body),
                403 | 404 => asked.update_value(|asked| asked.refused = true),
                _ => {} // It is asked again.
            }
        });
    });
}

/// Whether there is a server that can be asked: not of a file, and not by a share link, which shows charts alone.
fn is_served(page: Page) -> bool {
    !page.over.get() && page.view.with(|view| view.share.is_none()) && page.player.with(Option::is_none)
}

/// Begins to ask, as long as the page is there.
pub fn follow(page: Page, access: Access) {
    let open = move || is_served(page).then(|| "api/v1/alerts?state=firing".to_string());
    poll(page, access, REFRESH_SECONDS, open, move |body| {
        let Ok(told) = body.read::<Alerts>() else { return };
        page.set_alerts(Told { firing: told.firing, trouble: told.trouble, open: told.alerts, known: true });
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
    poll(page, access, REFRESH_SECONDS, lanes, move |body| {
        if let Ok(told) = body.read::<Alerts>() {
            alerts.set(told.alerts);
        }
    });
    let watching = move || machine().map(|_| "api/v1/rules".to_string());
    poll(page, access, RULES_SECONDS, watching, move |body| {
        if let Ok(told) = body.read::<Rules>() {
            rules.set(told.rules.into_iter().map(|row| row.rule).collect());
        }
    });
    Effect::new(move || {
        page.plan.track();
        let machine = page.machine();
        let limits = page.store.with_value(|store| rules.with(|rules| limits(rules, &machine, &store.catalog)));
        // What a finding's lane shows is not shown once more.
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
