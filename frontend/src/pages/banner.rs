//! Messages about the server: it is away, or it cannot keep history. They lie over the page, so that nothing moves.

use crate::browser::offset;
use crate::recording;
use crate::state::{LinkState, Page};
use charts::axis;
use leptos::prelude::*;
use shared::connection_state::ConnectionState;
use shared::unit::rough_duration;
use shared::wire::SERVER_ENDS;
use viewer::flow::Flow;

/// Id of the server's check of its data folder.
const HISTORY_CHECK: &str = "history";
/// Id of a demo's check of its own pace.
const DEMO_CHECK: &str = "demo";
/// Ids of a hub's checks of the other hubs: of all of them, and of the one that has the machine's link.
const HUB_CHECKS: [&str; 2] = ["cluster", "relay"];
/// Begin of the message about a history in memory only.
const NOT_ON_DISK: &str = "Live, but not on disk.";

/// The banner, while there is a message.
#[component]
pub fn Banner() -> impl IntoView {
    let page = expect_context::<Page>();
    let said = Memo::new(move |_| banner_text(page));
    let dismiss = move |_| {
        if page.refused.with_untracked(|(_, why)| why.is_empty()) {
            said.get_untracked().iter().for_each(|(_, words)| page.dismiss(words));
        }
        page.refused.set(Default::default());
    };
    let astray = Memo::new(move |_| page.wrong.with(|w| !w.is_empty()) || unknown(page).is_some());
    view! {
        <Show when=move || said.with(Option::is_some)>
            <div class="banner" role="status">
                <span class="shape is-unknown">"◌"</span>
                // Another message is another element: a text that changes in its place moves, since the banner is
                // centered.
                <For
                    each=move || said.get()
                    key=|said| said.clone()
                    children=|(head, words)| view! { <span><b>{head}</b> " " <span>{words}</span></span> }
                />
                <Show when=move || astray.get()>
                    <button data-do="right" on:click=move |_| page.set_right()>"Go to live"</button>
                </Show>
                <Show when=move || said.with(|said| said.as_ref().is_some_and(|(head, _)| page.refused.with(|r| r.0 == *head) || *head == NOT_ON_DISK))>
                    <button data-do="dismiss-line" aria-label="Dismiss" on:click=dismiss>"✕"</button>
                </Show>
            </div>
        </Show>
    }
}

/// Progress of a file that is being opened, and the button that cancels it.
#[component]
pub fn OpeningBar() -> impl IntoView {
    let page = expect_context::<Page>();
    let name = Memo::new(move |_| page.opening.with(|file| file.as_ref().map(|file| file.name.clone())));
    let share = move || page.opening.with(|file| file.as_ref().map_or(1.0, |file| file.share));
    view! {
        <Show when=move || name.with(Option::is_some)>
            <div class="banner opening" role="group" aria-label="Opening a file">
                <span role="status">"Opening " <b>{name}</b></span>
                <progress aria-label="Progress" prop:value=share></progress>
                <span class="percent">{move || format!("{:.0} %", share() * 100.0)}</span>
                <button data-do="cancel-file" on:click=move |_| recording::cancel(page)>"Cancel"</button>
            </div>
        </Show>
    }
}

type BannerText = Option<(&'static str, String)>;

/// The message about a machine that the address names and the server does not know; None for a known one.
fn unknown(page: Page) -> BannerText {
    page.plan.track();
    let store = page.store.read_value();
    let shown = page.view.with(|v| store.source(v.source.as_deref())).map(|s| s.info.name.clone())?;
    let asked = page.view.with(|v| v.source.clone()).filter(|asked| *asked != shown)?;
    Some(("The address is invalid:", format!("there is no machine “{asked}” here, this is {shown}.")))
}

/// The message about a machine that sends no samples for a known reason. It shows a time and not an age, so that a
/// screen reader reads it once and not each second.
fn away(page: Page) -> BannerText {
    let (state, since) = page.connection_state()?;
    let since = axis::clock(since + offset(since), true);
    match state {
        ConnectionState::Live | ConnectionState::Late | ConnectionState::Filling { .. } => None,
        ConnectionState::Unreachable => Some((
            "The machine is lost:",
            format!("it disconnected at {since}. It stores its samples and sends them after it reconnects."),
        )),
        ConnectionState::Stopped(why) => Some(("The machine was stopped:", format!("at {since}, {why}."))),
        ConnectionState::Refused(why) => Some(("The machine was rejected:", format!("{}.", why.trim_end_matches('.')))),
        ConnectionState::Ended => Some(("The machine has ended:", "it will not return; its history is here.".into())),
    }
}

/// The message about a hub that is partitioned from the others: the state of its machines is unknown here.
fn apart(page: Page) -> BannerText {
    page.plan.with(|plan| {
        let check = plan.missing.iter().find(|missing| HUB_CHECKS.contains(&missing.id.as_str()))?;
        Some(("The machine may be live on another hub:", format!("{}.", check.reason.trim_end_matches('.'))))
    })
}

/// The message about a demo that does not keep its interval.
fn behind(page: Page) -> BannerText {
    page.plan.with(|plan| {
        let check = plan.missing.iter().find(|missing| missing.id == DEMO_CHECK)?;
        Some(("The demo is behind:", format!("{}. To do: {}.", check.reason, check.remedy)))
    })
}

fn banner_text(page: Page) -> BannerText {
    let is_silent = page.flow.get() == Flow::Silent;
    match page.state.get() {
        _ if page.refused.with(|(_, why)| !why.is_empty()) => Some(page.refused.get()),
        LinkState::Connecting | LinkState::Reconnecting | LinkState::Lost if !page.blocked.get().is_empty() => {
            Some(("No live data:", page.blocked.get().into()))
        }
        LinkState::Reconnecting | LinkState::Lost if page.goodbye.with(|why| why == SERVER_ENDS) => {
            Some(("The server was stopped, nothing is lost:", "charts resume when the server is back.".into()))
        }
        // Any other reason of the close, such as a page of another version.
        LinkState::Reconnecting | LinkState::Lost if page.goodbye.with(|why| !why.is_empty()) => Some((
            "The server closed the connection:",
            format!("{}.", page.goodbye.with(|why| why.trim_end_matches('.').to_string())),
        )),
        LinkState::Reconnecting => {
            let kept = page.store.read_value().hello.as_ref().map_or(43_200_000, |h| h.retention);
            Some(("Reconnecting, nothing is lost:", format!("the server keeps {} of history.", rough_duration(kept))))
        }
        LinkState::Lost => Some(("The server does not respond.", "History is kept; the page retries.".into())),
        _ if page.wrong.with(|w| !w.is_empty()) => Some(("The address is invalid:", format!("{}.", page.wrong.get()))),
        _ if unknown(page).is_none() && behind(page).is_some() => behind(page),
        _ if is_silent && unknown(page).is_none() && apart(page).is_some() => apart(page),
        _ if is_silent && unknown(page).is_none() && away(page).is_some() => away(page),
        _ if is_silent && unknown(page).is_none() => {
            let store = page.store.read_value();
            let last = page.view.with(|v| store.source(v.source.as_deref()))?.last_t()?;
            // A time is shown and not an age: a screen reader then reads it once and not each second. The charts show
            // the age.
            let since = axis::clock(last + offset(last), true);
            let words = format!("no samples since {since}. History is kept; charts resume by themselves.");
            Some(("No data:", words))
        }
        _ => unknown(page).or_else(|| {
            page.plan.with(|plan| {
                let history = plan.missing.iter().find(|missing| missing.id == HISTORY_CHECK)?;
                let mut reason = history.reason.clone();
                if let Some(first) = reason.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                let words = format!("{reason}. To do: {}.", history.remedy);
                (!page.is_dismissed(&words)).then_some((NOT_ON_DISK, words))
            })
        }),
    }
}
