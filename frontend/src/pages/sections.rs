//! Families of charts below the top, each under a line that folds, and the lines about what is not available here.

use crate::browser;
use crate::panels::panel::PanelCard;
use crate::range;
use crate::state::Page;
use crate::store::plan::{Absent, Panel, Section};
use crate::tools::menu::Menu;
use crate::widgets::icons::Triangle;
use leptos::html;
use leptos::prelude::*;
use shared::wire::CheckState;

/// A chart with its menu.
#[component]
pub fn ChartCard(
    /// What it shows.
    panel: Panel,
) -> impl IntoView {
    let (chart, title) = (panel.id.clone(), panel.title.clone());
    view! { <PanelCard panel menu=move || view! { <Menu chart=chart.clone() title=title.clone()/> }/> }
}

/// One family. Its charts exist only while it is open.
#[component]
pub fn Family(
    /// As it was planned when it appeared.
    section: Section,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let Section { id, title, open: at_first, .. } = section;
    let open = RwSignal::new(at_first);
    let panels = Memo::new(move |_| {
        page.plan.with(|p| p.sections.iter().find(|s| s.id == id).map(|s| s.panels.clone()).unwrap_or_default())
    });
    let ids = move || panels.with(|all| all.iter().map(|p| p.id.as_str()).collect::<Vec<_>>().join(" "));
    let gist = move || if open.get() { String::new() } else { panels.with(|all| names(all)) };
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| open.set(details.get_untracked().is_some_and(|details| details.open()));
    view! {
        <details node_ref=details class="fold" open=at_first data-charts=ids on:toggle=toggled>
            <summary>
                <Triangle/>
                <span class="name">{title}</span>
                <span class="n">{move || panels.with(Vec::len)}</span>
                <span class="gist narrow-off">{gist}</span>
            </summary>
            <div class="more">
                <For
                    each=move || if open.get() { panels.get() } else { Vec::new() }
                    key=|panel| panel.id.clone()
                    children=|panel| view! { <ChartCard panel/> }
                />
            </div>
        </details>
    }
}

/// The first of them in words.
fn names(list: &[Panel]) -> String {
    let more = if list.len() > 4 { ", …" } else { "" };
    let first: Vec<&str> = list.iter().take(4).map(|p| p.title.as_str()).collect();
    first.join(", ") + more
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
    /// What is not here.
    absent: Absent,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let title = &absent.title;
    let (trouble, head) = match absent.state {
        CheckState::Hung => (true, format!("{title} hangs:")),
        CheckState::Failed => (true, format!("{title} fails:")),
        CheckState::Partial => (true, format!("{title} incomplete:")),
        CheckState::Denied => (false, format!("{title} may not be read:")),
        _ => (false, format!("No {title} here:")),
    };
    let (class, mark, shape) = match trouble {
        true => ("absent trouble", "shape is-warn", "▲"),
        false => ("absent", "shape is-unknown", "◌"),
    };
    let words = why(&absent);
    view! {
        <article
            class=class
            tabindex="0"
            data-panel=absent.id
            data-samples="0"
            data-state="unsupported"
            data-window=move || page.view.with(|v| range::name(v.window))
        >
            <span class=mark>{shape}</span>
            <span><b>{head}</b>" "<span>{words}</span></span>
        </article>
    }
}

/// Where the browser keeps that the line below has been read.
const READ: &str = "watchglass-band";

/// How many series in one chart are drawn, said once to each person.
#[component]
pub fn ReadOnce() -> impl IntoView {
    let page = expect_context::<Page>();
    // Where nothing may be kept it is said each time.
    let read = RwSignal::new(browser::storage().is_some_and(|s| s.get_item(READ).ok().flatten().is_some()));
    let many = Memo::new(move |_| page.plan.with(|p| p.many));
    let got_it = move |_| {
        read.set(true);
        // Where nothing may be kept it is said again.
        let _ = browser::storage().map(|s| s.set_item(READ, "1"));
    };
    view! {
        <Show when=move || many.get().is_some() && !read.get()>
            <div class="absent once" tabindex="0">
                <span>
                    <b>{move || format!("{} lines would hide each other:", many.get().unwrap_or_default())}</b>
                    " the line is their median, the shade the middle 80 %, the thin lines the extremes. Who stands out is drawn by name."
                </span>
                <button on:click=got_it>"Got it"</button>
            </div>
        </Show>
    }
}

/// Everything that is not available here, and why.
#[component]
pub fn Missing() -> impl IntoView {
    let page = expect_context::<Page>();
    let missing = Memo::new(move |_| page.plan.with(|p| p.missing.clone()));
    let reason = |absent: Absent| {
        let words = why(&absent);
        view! { <dt>{absent.title}</dt><dd>{words}</dd> }
    };
    view! {
        <Show when=move || missing.with(|all| !all.is_empty())>
            <details class="fold why">
                <summary><Triangle/><span>{move || missing.with(|all| not_here(all))}</span></summary>
                <dl>{move || missing.get().into_iter().map(reason).collect_view()}</dl>
            </details>
        </Show>
    }
}

/// How much is not here, in words.
fn not_here(missing: &[Absent]) -> String {
    let denied = match missing.iter().filter(|a| a.state == CheckState::Denied).count() {
        0 => String::new(),
        n => format!(" ({n} for want of a permission)"),
    };
    format!("{} not available here{denied}, because …", missing.len())
}
