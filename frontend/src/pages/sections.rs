//! The families of charts below the top, each in a section that folds, and the lines about missing metrics.

use super::runs::panel::Lanes;
use crate::browser;
use crate::panels::panel::PanelCard;
use crate::range;
use crate::state::{Dialog, Page};
use crate::store::plan::{Absent, Panel, Section};
use crate::store::reading;
use crate::tools::menu::Menu;
use crate::widgets::icons::Triangle;
use crate::widgets::parts::{If, flag};
use leptos::html;
use leptos::prelude::*;
use shared::unit::{Unit, number, rough_duration};
use shared::wire::CheckState;

/// A chart with its menu.
#[component]
pub fn ChartCard(
    /// The chart as the plan describes it.
    panel: Panel,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let (chart, title, own) = (panel.id.clone(), panel.title.clone(), panel.id.clone());
    let leads = flag(move || page.plan.with(|plan| plan.top.first().is_some_and(|first| first.id == own)));
    view! {
        <PanelCard
            panel
            menu=move || view! { <Menu chart=chart.clone() title=title.clone()/> }
            below=move || view! { <If when=leads><Lanes/></If> }
        />
    }
}

/// One family. Its charts exist only while the section is open.
#[component]
pub fn Family(
    /// The family as the plan had it when the section appeared; later changes are read from the plan.
    section: Section,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let Section { id, title, open: at_first, .. } = section;
    let here = StoredValue::new(id.clone());
    let open = Memo::new(move |_| here.with_value(|id| page.is_open(id, at_first)));
    let about = move |_| page.dialog.set(Some(Dialog::AboutSection(here.get_value())));
    let panels = Memo::new(move |_| {
        page.plan.with(|p| p.sections.iter().find(|s| s.id == id).map(|s| s.panels.clone()).unwrap_or_default())
    });
    let ids = move || panels.with(|all| all.iter().map(|p| p.id.as_str()).collect::<Vec<_>>().join(" "));
    let gist = move || if open.get() { String::new() } else { panels.with(|all| numbers(page, all)) };
    let details = NodeRef::<html::Details>::new();
    let toggled = move |_| {
        let now = details.get_untracked().is_some_and(|details| details.open());
        if now != open.get_untracked() {
            here.with_value(|id| page.fold(id, at_first, now));
        }
    };
    view! {
        <details node_ref=details class="fold" open=move || open.get() data-section=here.get_value() data-charts=ids on:toggle=toggled>
            <summary>
                <Triangle/>
                <span class="name">{title}</span>
                <span class="n">{move || panels.with(Vec::len)}</span>
                <span class="gist narrow-off">{gist}</span>
            </summary>
            <button class="about-this" data-do="about-section" on:click=about>"About this chart"</button>
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

/// Summary of a folded section: the newest value of each chart where each has a single series, else the titles of the
/// first charts.
fn numbers(page: Page, panels: &[Panel]) -> String {
    page.beat.track();
    let t = page.newest();
    let store = page.store.read_value();
    let Some(source) = page.view.with_untracked(|v| store.source(v.source.as_deref())) else { return names(panels) };
    let value = |panel: &Panel| {
        let [series] = source.charts.get(&panel.id)?.lines[..] else { return None };
        let unit = store.catalog.metric(source.defs.get(series as usize)?)?.unit;
        let value = reading::at(source, &store.catalog, series, t)?;
        let text = match unit {
            Unit::Seconds => rough_duration(value as i64 / 60 * 60_000),
            _ => number(value) + unit.base().symbol(),
        };
        Some(format!("{} {text}", panel.title))
    };
    // A scraped endpoint may bring a thousand charts.
    let all: Option<Vec<String>> = panels.iter().take(5).map(value).collect();
    let all = all.filter(|_| panels.len() < 5);
    all.map_or_else(|| names(panels), |all| all.join(", "))
}

/// The titles of the first four charts in one text.
fn names(list: &[Panel]) -> String {
    let more = if list.len() > 4 { ", …" } else { "" };
    let first: Vec<&str> = list.iter().take(4).map(|p| p.title.as_str()).collect();
    first.join(", ") + more
}

/// A line about a family of the top that is not available or has trouble: the reason and the remedy.
#[component]
pub fn AbsentLine(
    /// The family, with reason and remedy.
    absent: Absent,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let title = &absent.title;
    let head = match absent.state {
        CheckState::Hung => format!("{title} hangs:"),
        CheckState::Failed => format!("{title} fails:"),
        CheckState::Partial => format!("{title} incomplete:"),
        CheckState::Denied => format!("No permission to read {title}:"),
        _ => format!("No {title} here:"),
    };
    let (class, mark, shape) = match absent.is_trouble() {
        true => ("absent trouble", "shape is-warn", "▲"),
        false => ("absent", "shape is-unknown", "◌"),
    };
    let (words, said) = (absent.why(), absent.dismissal_key());
    let guide = (!absent.collector.is_empty()).then(|| format!("docs/start/collectors.html#{}", absent.collector));
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
            <span>
                <b>{head}</b>" "<span>{words}</span>" "
                {guide.map(|guide| view! { <a href=guide target="_blank">"Guide"</a> })}
            </span>
            <button data-do="dismiss-line" aria-label="Dismiss" title="Hide until the message changes" on:click=move |_| page.dismiss(&said)>"✕"</button>
        </article>
    }
}

/// Key in the browser's storage, set after the user has read the line about bands.
const BAND_READ_KEY: &str = "watchglass-band";

/// A line that explains how many series in one chart are drawn. Each user sees it once.
#[component]
pub fn ReadOnce() -> impl IntoView {
    let page = expect_context::<Page>();
    // Without browser storage, the line appears on each visit.
    let read = RwSignal::new(browser::storage().is_some_and(|s| s.get_item(BAND_READ_KEY).ok().flatten().is_some()));
    let many = Memo::new(move |_| page.plan.with(|p| p.many));
    let got_it = move |_| {
        read.set(true);
        // Without browser storage, the line returns on the next visit.
        let _ = browser::storage().map(|s| s.set_item(BAND_READ_KEY, "1"));
    };
    view! {
        <Show when=move || many.get().is_some() && !read.get()>
            <div class="absent once" tabindex="0">
                <span>
                    <b>{move || format!("{} lines are shown as a summary:", many.get().unwrap_or_default())}</b>
                    " median, 10–90 % band, minimum and maximum; outliers are named."
                </span>
                <button on:click=got_it>"Got it"</button>
            </div>
        </Show>
    }
}

/// A line with the number of hidden charts, and the button that shows them.
#[component]
pub fn Hidden() -> impl IntoView {
    let page = expect_context::<Page>();
    let hidden = Memo::new(move |_| page.plan.with(|p| p.hidden));
    view! {
        <Show when=move || hidden.get() != 0>
            <div class="absent hidden" tabindex="0">
                <span>
                    <b>{move || if hidden.get() == 1 { "1 chart is hidden".into() } else { format!("{} charts are hidden", hidden.get()) }}</b>
                </span>
                <button on:click=move |_| page.hide(None)>"Show"</button>
            </div>
        </Show>
    }
}

/// A line with the recording that is drawn under the live data, and the button that removes it.
#[component]
pub fn Compared() -> impl IntoView {
    let page = expect_context::<Page>();
    view! {
        <Show when=move || page.compared.with(Option::is_some)>
            <div class="absent compared" tabindex="0">
                <span>
                    "The faint lines are " <b>{page.compared}</b> ", overlaid on live data."
                </span>
                <button data-do="end-comparison" on:click=move |_| page.end_comparison()>"End"</button>
            </div>
        </Show>
    }
}

/// The list of all that is not available on this machine, with the reasons.
#[component]
pub fn Missing() -> impl IntoView {
    let page = expect_context::<Page>();
    let missing = Memo::new(move |_| page.plan.with(|p| p.missing.clone()));
    let reason = |absent: Absent| {
        let words = absent.why();
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

/// The number of missing metrics, in words.
fn not_here(missing: &[Absent]) -> String {
    let denied = match missing.iter().filter(|a| a.state == CheckState::Denied).count() {
        0 => String::new(),
        n => format!(" ({n} without permission)"),
    };
    format!("{} not available here{denied}: …", missing.len())
}
