//! Exports of a chart: a picture as PNG or SVG, its samples as CSV, and a link to the view.

use super::csv;
use crate::browser::{self, offset, window};
use crate::panels::board::Board;
use crate::range;
use crate::state::Page;
use crate::store::fleet::words as of_machines;
use crate::store::plan::HEAT_SUFFIX;
use charts::axis;
use leptos::either::Either;
use leptos::prelude::*;
use shared::catalog::Kind;
use std::time::Duration;
use viewer::take::{file_name, tags};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, BlobPropertyBag, Element};

/// Time that the browser has to read a file that the page gave it.
const OBJECT_URL_LIFETIME: Duration = Duration::from_secs(60);

/// The machine and the span in words, in local time.
pub fn words(page: Page) -> String {
    let (from, to) = page.span();
    let (a, b) = (from + offset(from), to + offset(to));
    let day = |local: i64| axis::date(local.div_euclid(86_400_000));
    let until = if day(a) == day(b) { String::new() } else { day(b) + " " };
    format!("{}, {} {}–{until}{}", page.machine(), day(a), axis::clock(a, true), axis::clock(b, true))
}

/// Title of the printed page: its machines, and the time.
pub fn title(page: Page) -> String {
    if untrack(|| page.is_of_one_machine()) {
        return words(page);
    }
    let now = page.server_now();
    let local = now + offset(now);
    let (day, clock) = (axis::date(local.div_euclid(86_400_000)), axis::clock(local, true));
    match page.machines.get_untracked() {
        Some(hosts) => format!("{}, {day} {clock}", of_machines::count(hosts, "machine", "machines")),
        None => format!("{day} {clock}"),
    }
}

/// The name of a file for a chart, with the end of the span in the reader's zone; `kind` is its extension.
fn file(page: Page, chart: &str, kind: &str) -> String {
    let end = page.span().1;
    file_name(&[&page.machine(), chart, &shared::date::text(end + offset(end))], kind)
}

/// Saves a picture of a chart. Returns the result in words.
pub fn picture(board: Board, chart: &str, svg: bool) -> String {
    let Some(mut layer) = board.poster(chart, &words(board.page), svg) else {
        return "There is nothing to draw yet.".into();
    };
    let name = file(board.page, chart, if svg { "svg" } else { "png" });
    let saved = format!("Saved {name}");
    if let Some(text) = layer.written() {
        save_text(&js_sys::Array::of1(&text.into()), "image/svg+xml", &name);
    } else {
        let made = Closure::once_into_js(move |blob: Option<Blob>| {
            if let Some(blob) = blob {
                save(&blob, &name);
            }
        });
        if layer.canvas.to_blob(made.unchecked_ref()).is_err() {
            return "The browser created no picture.".into();
        }
    }
    saved
}

fn save_text(parts: &js_sys::Array, mime: &str, name: &str) {
    let kind = BlobPropertyBag::new();
    kind.set_type(mime);
    if let Ok(blob) = Blob::new_with_str_sequence_and_options(parts, &kind) {
        save(&blob, name);
    }
}

fn save(blob: &Blob, name: &str) {
    let Ok(url) = web_sys::Url::create_object_url_with_blob(blob) else { return };
    browser::save(&url, name);
    set_timeout(move || drop(web_sys::Url::revoke_object_url(&url)), OBJECT_URL_LIFETIME);
}

/// A button for all samples of a chart in the span as CSV. The server streams them; for a recording the page writes
/// them.
#[component]
pub fn CsvOffer(
    /// Id of the chart.
    chart: String,
    /// The result of the last action, in words.
    did: RwSignal<String>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    match (!page.is_recorded()).then(|| address(page, &chart)).flatten() {
        Some(address) => {
            let name = file(page, &chart, "csv");
            let said = format!("Saving {name}");
            Either::Left(
                view! { <a href=address download=name title="All samples of the span" on:click=move |_| did.set(said.clone())>"CSV"</a> },
            )
        }
        None => {
            let save = {
                let chart = chart.clone();
                move |_| did.set(save_csv(page, &chart))
            };
            Either::Right(view! {
                <button title="All samples of the span" data-do="csv" data-chart=chart on:click=save>"CSV"</button>
            })
        }
    }
}

/// Saves the samples of a recorded chart, in the format of the server's export. Returns the result in words.
fn save_csv(page: Page, chart: &str) -> String {
    let view = page.view_now();
    let store = page.store.read_value();
    let members = store.source(view.source.as_deref());
    let members = members.and_then(|source| Some((source, source.charts.get(chart.trim_end_matches(HEAT_SUFFIX))?)));
    let Some((source, members)) = members else { return "There are no samples yet.".into() };
    let parts = js_sys::Array::of1(&"time,source,tag,value\n".into());
    for id in &members.lines {
        parts.push(&csv::lines(source, &store.catalog, *id, page.span()).into());
    }
    let name = file(page, chart, "csv");
    save_text(&parts, "text/csv", &name);
    format!("Saved {name}")
}

/// The address of the server's export with all samples of a chart in the span; None while there is no source.
fn address(page: Page, chart: &str) -> Option<String> {
    let view = page.view_now();
    let store = page.store.read_value();
    let source = store.source(view.source.as_deref())?;
    let members = source.charts.get(chart.trim_end_matches(HEAT_SUFFIX))?;
    let defs = || members.lines.iter().filter_map(|id| source.defs.get(*id as usize));
    let (from, to) = page.span();
    let params = web_sys::UrlSearchParams::new().ok()?;
    params.append("format", "csv");
    params.append("source", &source.info.name);
    params.append("from", &range::seconds(from));
    params.append("to", &range::seconds(to));
    if defs().filter_map(|d| store.catalog.metric(d)).any(|m| m.kind == Kind::Counter) {
        // Counters are exported as they are drawn.
        params.append("fn", "rate");
    }
    for tag in tags(&store.catalog, defs()) {
        params.append("tag", &tag);
    }
    if let Some(link) = &view.share {
        // A browser may hold several share links.
        params.append("share", link);
    }
    Some(format!("api/v1/export?{}", String::from(params.to_string())))
}

/// Copies a link to the view: with `live` it follows new samples, otherwise it shows the present span. Returns the
/// result in words.
pub fn link(page: Page, near: &Element, live: bool) -> String {
    let mut view = page.view_now();
    view.frozen = (!live).then(|| page.span());
    let address = window().location().href().unwrap_or_default();
    let bare = address.split(['?', '#']).next().unwrap_or_default();
    let address = format!("{bare}{}", page.query(&view));
    match browser::copy(&address, near) {
        true if live => "Live link copied".into(),
        true => "Link copied".into(),
        false => format!("Copying was blocked by the browser. {address}"),
    }
}
