//! What the page says while the server is away, or cannot keep history. It lies over the page, so that nothing moves.

use super::live::{when, words};
use crate::page::{LinkState, page};
use charts::axis;
use leptos::prelude::*;

/// The server's check of its data folder.
const HISTORY: &str = "history";

/// The banner.
#[component]
pub fn Banner() -> impl IntoView {
    let page = page();
    // A machine that the address names and the server does not know.
    let unknown = Memo::new(move |_| {
        page.plan.track();
        let store = page.store.borrow();
        let shown = page.view.with(|v| store.source(v.source.as_deref())).map(|s| s.info.name.clone())?;
        let asked = page.view.with(|v| v.source.clone()).filter(|asked| *asked != shown)?;
        Some(("The address is not understood:", format!("there is no machine {asked} here, this is {shown}.")))
    });
    let astray = move || page.wrong.with(|w| !w.is_empty()) || unknown.get().is_some();
    let said = move || match page.state.get() {
        _ if page.refused.with(|why| !why.is_empty()) => Some(("Not opened:", page.refused.get())),
        LinkState::Reconnecting => {
            let kept = page.store.borrow().hello.as_ref().map_or(43_200_000, |h| h.retention);
            Some(("Reconnecting, nothing lost:", format!("the server keeps {}.", axis::duration(kept))))
        }
        LinkState::Lost => {
            Some(("The server does not answer.", "The page keeps what it has and goes on trying.".into()))
        }
        _ if page.wrong.with(|w| !w.is_empty()) => {
            Some(("The address is not understood:", format!("{}.", page.wrong.get())))
        }
        _ if unknown.get().is_some() => unknown.get(),
        _ if page.silent.get() => {
            page.beat.track();
            let store = page.store.borrow();
            let source = page.view.with(|v| store.source(v.source.as_deref()))?;
            let since = axis::duration(page.server_now() - source.last_t()?);
            let words =
                format!("last sample {since} ago. What it sent stays, and the page goes on with its next sample.");
            Some(("The machine is silent:", words))
        }
        _ => page.plan.with(|plan| {
            let history = plan.missing.iter().find(|missing| missing.id == HISTORY)?;
            let mut reason = history.reason.clone();
            if let Some(first) = reason.get_mut(..1) {
                first.make_ascii_uppercase();
            }
            Some(("Live, but not on disk.", format!("{reason}. To do: {}.", history.remedy)))
        }),
    };
    view! {
        {when(move || said().is_some(), move || view! {
            <div class="banner" role="status">
                <span class="shape is-unknown">"◌"</span>
                <span><b>{words(move || said().map_or("", |w| w.0).to_string())}</b>" "{words(move || said().map_or_else(String::new, |w| w.1))}</span>
                {when(astray, move || {
                    view! { <button data-do="right" on:click=move |_| page.set_right()>"Show what is live"</button> }.into_any()
                })}
                <span class="end">{words(move || page.goodbye.get())}</span>
            </div>
        }.into_any())}
    }
}
