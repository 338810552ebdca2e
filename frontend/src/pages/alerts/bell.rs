//! The bell in the bar: the number of open findings and of alerts about something else, and the list of both. Also the
//! announcements of alerts for screen readers, and the browser's own notifications.

use super::words;
use crate::access::Access;
use crate::address::Tab;
use crate::browser::{self, document, now, storage};
use crate::pages::findings::words as found_words;
use crate::state::Page;
use crate::store::fleet::words::count;
use crate::widgets::icons;
use crate::widgets::parts::{Each, If, flag, text};
use js_sys::{Function, Reflect};
use leptos::ev;
use leptos::prelude::*;
use shared::alert::Alert;
use shared::finding::Finding;
use viewer::alerts::{AlertStand, Filter, announced, news, shape, sorted};
use wasm_bindgen::{JsCast, JsValue};

/// Alerts that the bell lists.
const MAX_LISTED: usize = 8;
/// Least time between two announcements, ms.
const ANNOUNCE_MS: i64 = 5_000;
/// Key in the browser's storage while notifications are off here.
const QUIET_KEY: &str = "watchglass.quiet";

/// The open findings and alerts, in words: `Open: 1 finding, 2 alerts`.
fn open_words(findings: usize, alerts: usize) -> String {
    let part = |n: usize, one, many| (n > 0).then(|| count(n, one, many));
    let parts = [part(findings, "finding", "findings"), part(alerts, "alert", "alerts")];
    let said = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if said.is_empty() { "Nothing is open".into() } else { format!("Open: {said}") }
}

/// The bell with its list; empty where neither findings nor alerts are known.
#[component]
pub fn Bell() -> impl IntoView {
    let page = expect_context::<Page>();
    let has_alerts = flag(move || page.alerts.with(|told| told.known));
    let known = flag(move || has_alerts.get() || page.findings.with(|findings| findings.known));
    let found = Memo::new(move |_| page.open_findings());
    let listed = Memo::new(move |_| {
        let about = |one: &Alert| page.findings.with(|findings| findings.is_about_one(one));
        page.alerts.with(|told| {
            let (open, _) = sorted(&told.open, &Filter::default());
            let shown = open.into_iter().filter(|one| AlertStand::from_alert(one) < AlertStand::Pending && !about(one));
            shown.take(MAX_LISTED).cloned().collect::<Vec<_>>()
        })
    });
    let counts = Memo::new(move |_| (found.with(Vec::len), page.firing_beside_findings()));
    let label = text(move || counts.with(|(findings, alerts)| open_words(*findings, *alerts)));
    let number = text(move || match counts.get() {
        (0, 0) => String::new(),
        (findings, alerts) => (findings + alerts).to_string(),
    });
    let keys = Signal::derive(move || listed.with(|all| all.iter().map(|one| one.id.clone()).collect::<Vec<_>>()));
    let row = Callback::new(move |id: String| view! { <Line id listed/> }.into_any());
    let trouble = text(move || page.alerts.with(|told| told.trouble.join(" ")));
    let all = text(move || page.address_of_alerts(Tab::Alerts, ""));
    let findings = text(move || page.address_of_finding(None));
    let rules = text(move || page.address_of_alerts(Tab::Rules, ""));
    // A click elsewhere, and Escape, close it.
    let close = |target: Option<web_sys::Element>| {
        for bell in browser::all("details.bell[open]") {
            if !target.as_ref().is_some_and(|target| bell.contains(Some(target))) {
                // The attribute's name is valid.
                let _ = bell.remove_attribute("open");
            }
        }
    };
    let clicks = window_event_listener(ev::click, move |event| {
        close(event.target().and_then(|target| target.dyn_into().ok()));
    });
    let keys_pressed = window_event_listener(ev::keydown, move |event| {
        if event.key() == "Escape" {
            close(None);
        }
    });
    on_cleanup(move || {
        clicks.remove();
        keys_pressed.remove();
    });
    view! {
            // Its place is reserved, so that nothing moves at the first response.
            <details class="bell" data-known=move || known.get().to_string()>
                <summary class="icon" aria-label=label title=label>
                    <icons::Bell/>
                    <b class="count" aria-hidden="true">{number}</b>
                </summary>
                <div>
                    <p class="wrong">{trouble}</p>
                    <If when=flag(move || found.with(Vec::is_empty) && listed.with(Vec::is_empty))>
                        <p class="calm"><span class="shape is-ok" aria-hidden="true">"●"</span>" Nothing is open."</p>
                    </If>
                    {move || found.get().into_iter().take(MAX_LISTED).map(|one| finding(page, one)).collect_view()}
                    <Each keys row/>
                    <p class="ways">
                        <a href=findings data-do="findings">"All findings"</a>
                        <If when=has_alerts>
                            <a href=all>"All alerts"</a>
                            <a href=rules>"Rules"</a>
                        </If>
                    </p>
                </div>
            </details>
    }
}

/// A finding in the list of the bell.
fn finding(page: Page, one: Finding) -> impl IntoView {
    let (shape, (head, rest)) = (found_words::shape_of(&one), found_words::split_sentence(&one));
    let to = page.address_of_finding(Some(one.id.clone()));
    let id = one.id.clone();
    let below = text(move || {
        page.beat.track();
        found_words::below(&one, page.server_now())
    });
    view! {
        <a class="finding" href=to data-finding=id>
            <span class=shape.0 aria-hidden="true">{shape.1}</span>
            <span class="words"><span class="sentence"><b>{head}</b>" "{rest}</span><span class="below">{below}</span></span>
        </a>
    }
}

#[component]
fn Line(id: String, listed: Memo<Vec<Alert>>) -> impl IntoView {
    let page = expect_context::<Page>();
    let to = page.address_of_alerts(Tab::Alerts, &id);
    let own = StoredValue::new(id.clone());
    let of = move |read: fn(&Alert, i64) -> String| {
        text(move || {
            page.beat.track();
            let found = listed.with(|all| all.iter().find(|one| own.with_value(|id| one.id == *id)).cloned());
            found.map(|one| read(&one, page.server_now())).unwrap_or_default()
        })
    };
    view! {
        <a class="finding" href=to data-alert=id>
            <span class=of(|one, _| shape(one.severity, AlertStand::from_alert(one)).0.into()) aria-hidden="true">{of(|one, _| shape(one.severity, AlertStand::from_alert(one)).1.into())}</span>
            <span class="words"><span class="sentence">{of(|one, _| one.sentence.clone())}</span><span class="below">{of(words::below)}</span></span>
        </a>
    }
}

/// The browser's constructor of notifications; None where it has none, as without TLS.
fn notification() -> Option<Function> {
    Reflect::get(&browser::window(), &"Notification".into()).ok()?.dyn_into().ok()
}

/// Whether this browser shows notifications: `granted`, `denied`, `default` before the user has decided; empty where it
/// cannot.
pub fn permission() -> String {
    let is_secure = Reflect::get(&browser::window(), &"isSecureContext".into()).is_ok_and(|is| is.is_truthy());
    let said = notification().filter(|_| is_secure).and_then(|of| Reflect::get(&of, &"permission".into()).ok());
    said.and_then(|said| said.as_string()).unwrap_or_default()
}

/// Whether notifications are off in this browser.
pub fn is_quiet() -> bool {
    storage().and_then(|storage| storage.get_item(QUIET_KEY).ok().flatten()).is_some()
}

/// Switches notifications off or on here.
pub fn set_quiet(quiet: bool) {
    if let Some(storage) = storage() {
        // Without storage they stay as they are.
        let _ = if quiet { storage.set_item(QUIET_KEY, "1") } else { storage.remove_item(QUIET_KEY) };
    }
}

/// Requests the permission by the browser's own dialog; `done` is called after the decision.
pub fn ask(done: impl Fn() + Clone + 'static) {
    let Some(of) = notification() else { return };
    let asked = Reflect::get(&of, &"requestPermission".into()).ok().and_then(|f| f.dyn_into::<Function>().ok());
    let promise = asked.and_then(|ask| ask.call0(&of).ok()).and_then(|said| said.dyn_into::<js_sys::Promise>().ok());
    if let Some(promise) = promise {
        let (answered, failed) = (done.clone(), done);
        let answered = wasm_bindgen::closure::Closure::once_into_js(move |_: JsValue| answered());
        let failed = wasm_bindgen::closure::Closure::once_into_js(move |_: JsValue| failed());
        crate::fetch::then(&promise, &answered, &failed);
    }
}

/// Shows one notification; nothing leaves this computer.
fn show(title: &str, body: &str, tag: &str) {
    if permission() != "granted" || is_quiet() {
        return;
    }
    let options = crate::fetch::Json::object([("body", body.into()), ("tag", tag.into())]);
    if let Some(of) = notification() {
        // A phone's browser has the permission and refuses the constructor.
        let _ = Reflect::construct(&of, &js_sys::Array::of2(&title.into(), &options));
    }
}

/// Announcements for screen readers, at most one in five seconds, and the notifications of the browser.
#[component]
pub fn Announced() -> impl IntoView {
    let page = expect_context::<Page>();
    let _ = expect_context::<Access>();
    let said = RwSignal::new(String::new());
    // Ids of those that were open before, and since the last announcement; None before the first answer.
    let before = StoredValue::new(None::<Vec<String>>);
    let last = StoredValue::new(0i64);
    Effect::new(move || {
        page.beat.track();
        let told = page.alerts.get();
        if let Some(root) = document().document_element() {
            browser::set(&root, "data-alerts", &told.firing.to_string());
        }
        if !told.known || now() - last.get_value() < ANNOUNCE_MS {
            return;
        }
        let open: Vec<String> = told
            .open
            .iter()
            .filter(|one| AlertStand::from_alert(one) == AlertStand::Firing)
            .map(|one| one.id.clone())
            .collect();
        let Some(old) = before.get_value() else { return before.set_value(Some(open)) };
        let new = news(&old, &told.open);
        let ended = old.iter().filter(|id| !open.contains(id)).count();
        let text = announced(&new, ended);
        if text.is_empty() {
            return;
        }
        if let Some(worst) = new.iter().max_by_key(|one| one.severity) {
            show(&text, &worst.name, &worst.id);
        }
        said.set(text);
        last.set_value(now());
        before.set_value(Some(open));
    });
    view! { <div id="rung" class="away" role="status" aria-live="polite">{said}</div> }
}
