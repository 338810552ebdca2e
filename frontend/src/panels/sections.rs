//! Families of charts below the top, each under a line that folds, and the list of what is not available here.

use super::panel::PanelCard;
use crate::page::{browser, page};
use crate::range;
use crate::store::plan::{Absent, Section};
use crate::widgets::live::{each, when, words};
use leptos::prelude::*;
use shared::wire::CheckState;
use wasm_bindgen::JsCast;

/// The small triangle of a fold.
#[component]
pub fn Triangle() -> impl IntoView {
    view! { <svg class="tri" viewBox="0 0 10 10" aria-hidden="true"><path d="M3.5 2 6.5 5l-3 3"/></svg> }
}

/// One family. Its charts exist only while it is open.
#[component]
pub fn Fold(
    /// As planned when it appeared.
    section: Section,
) -> impl IntoView {
    let page = page();
    let open = RwSignal::new(section.open);
    let id = section.id.clone();
    let panels = Memo::new(move |_| {
        page.plan.with(|p| p.sections.iter().find(|s| s.id == id).map(|s| s.panels.clone()).unwrap_or_default())
    });
    let toggled = move |event: leptos::ev::Event| {
        let details = event.target().and_then(|t| t.dyn_into::<web_sys::HtmlDetailsElement>().ok());
        if let Some(details) = details {
            open.set(details.open());
        }
    };
    let names = move || {
        let list = panels.get();
        let more = if list.len() > 4 { ", …" } else { "" };
        let first: Vec<String> = list.into_iter().take(4).map(|p| p.title).collect();
        first.join(", ") + more
    };
    view! {
        <details
            class="fold"
            data-charts=words(move || panels.with(|p| p.iter().map(|p| p.id.as_str()).collect::<Vec<_>>().join(" ")))
            open=section.open on:toggle=toggled
        >
            <summary>
                <Triangle/>
                <span class="name">{section.title}</span>
                <span class="n">{words(move || panels.with(Vec::len).to_string())}</span>
                <span class="gist narrow-off">{words(move || if open.get() { String::new() } else { names() })}</span>
            </summary>
            <div class="more">
                {each(
                    move || if open.get() { panels.get() } else { Vec::new() },
                    |p| p.id.clone(),
                    |panel| view! { <PanelCard panel/> }.into_any(),
                )}
            </div>
        </details>
    }
}

/// The reason and what to do, as one line of text.
fn why(absent: &Absent) -> String {
    let (reason, remedy) = (absent.reason.trim_end(), absent.remedy.trim());
    let remedy = if remedy.is_empty() { "watchglass doctor says more" } else { remedy };
    match reason {
        "" => remedy.to_string(),
        _ if reason.ends_with('.') => format!("{reason} {remedy}"),
        _ => format!("{reason}; {remedy}"),
    }
}

/// A family of the top that is not here, or has trouble: one line with the reason and what to do.
#[component]
pub fn AbsentLine(
    /// Why and what to do.
    absent: Absent,
) -> impl IntoView {
    let page = page();
    let trouble = matches!(absent.state, CheckState::Hung | CheckState::Failed | CheckState::Partial);
    let head = match absent.state {
        CheckState::Hung => format!("{} hangs:", absent.title),
        CheckState::Failed => format!("{} fails:", absent.title),
        CheckState::Partial => format!("{} incomplete:", absent.title),
        CheckState::Denied => format!("{} may not be read:", absent.title),
        _ => format!("No {} here:", absent.title),
    };
    let (class, shape) = if trouble { ("shape is-warn", "▲") } else { ("shape is-unknown", "◌") };
    view! {
        <article class="absent" class:trouble=trouble tabindex="0" data-panel=absent.id data-window=words(move || page.view.with(|v| range::name(v.window))) data-samples="0" data-state="unsupported">
            <span class=class>{shape}</span>
            <span><b>{head}</b>" "{why(&absent)}</span>
        </article>
    }
}

/// Where the browser keeps that the line below has been read.
const READ: &str = "watchglass-band";

/// How many series in one chart are drawn, said once to each person.
#[component]
pub fn Once() -> impl IntoView {
    let page = page();
    let store = || browser().local_storage().ok().flatten();
    // Where nothing may be kept it is said each time.
    let read = RwSignal::new(store().is_some_and(|s| s.get_item(READ).ok().flatten().is_some()));
    let many = Memo::new(move |_| page.plan.with(|p| p.many).filter(|_| !read.get()));
    let done = move |_| {
        read.set(true);
        let _ = store().map(|s| s.set_item(READ, "1"));
    };
    view! {
        {when(move || many.get().is_some(), move || view! {
            <div class="absent once" tabindex="0">
                <span>
                    <b>{words(move || format!("{} lines would hide each other:", many.get().unwrap_or_default()))}</b>
                    " the line is their median, the shade the middle 80 %, the thin lines the extremes. Who stands out is drawn by name."
                </span>
                <button on:click=done>"Got it"</button>
            </div>
        }.into_any())}
    }
}

/// Everything that is not available here, and why.
#[component]
pub fn Missing() -> impl IntoView {
    let page = page();
    let missing = Memo::new(move |_| page.plan.with(|p| p.missing.clone()));
    let count = move || missing.with(Vec::len);
    let denied = move || match missing.with(|m| m.iter().filter(|a| a.state == CheckState::Denied).count()) {
        0 => String::new(),
        n => format!(" ({n} for want of a permission)"),
    };
    view! {
        {when(move || count() > 0, move || view! {
            <details class="fold why">
                <summary>
                    <Triangle/>
                    <span>{words(move || format!("Not available here: {}{}, because …", count(), denied()))}</span>
                </summary>
                <dl>
                    {each(
                        move || missing.get(),
                        |a| format!("{} {}", a.id, a.reason),
                        |a| view! { <dt>{a.title.clone()}</dt><dd>{why(&a)}</dd> }.into_any(),
                    )}
                </dl>
            </details>
        }.into_any())}
    }
}
