//! Families of charts below the top, each under a line that folds, and the list of what is not available here.

use super::panel::panel_card;
use crate::page::{Page, browser, page};
use crate::range;
use crate::signal::Signal;
use crate::store::plan::{Absent, Panel, Section};
use crate::widgets::{dom, live};
use shared::wire::CheckState;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlDetailsElement};

const FOLD: &str = "<details class=fold>\
    <summary>\
        <svg class=tri viewBox='0 0 10 10' aria-hidden=true><path d='M3.5 2 6.5 5l-3 3'/></svg>\
        <span class=name></span><span class=n></span><span class='gist narrow-off'></span>\
    </summary>\
    <div class=more><slot></slot></div>\
</details>";

/// Whether a fold is open, and hears of it from now on.
pub fn opened(fold: &Element) -> &'static Signal<bool> {
    let details: HtmlDetailsElement = fold.clone().unchecked_into();
    let open = Signal::kept(details.open());
    live::hear(fold, "toggle", move |_| open.set(details.open()));
    open
}

/// One family, as planned when it appeared. Its charts exist only while it is open.
pub fn fold(section: Section) -> Element {
    let (page, fold) = (page(), live::made(FOLD));
    if section.open {
        dom::set(&fold, "open", "");
    }
    let part = |selector: &str| dom::find(&fold, selector);
    part(".name").set_text_content(Some(&section.title));
    let (open, panels) = (opened(&fold), Signal::kept(Vec::<Panel>::new()));
    live::follow(move || {
        let of = |s: &&Section| s.id == section.id;
        panels.set(page.plan.with(|p| p.sections.iter().find(of).map(|s| s.panels.clone()).unwrap_or_default()));
    });
    live::attribute(&fold, "data-charts", move || {
        panels.with(|all| all.iter().map(|p| p.id.as_str()).collect::<Vec<_>>().join(" "))
    });
    live::text(&part(".n"), move || panels.with(Vec::len).to_string());
    live::text(&part(".gist"), move || if open.get() { String::new() } else { names(panels.get()) });
    let shown = move || if open.get() { panels.get() } else { Vec::new() };
    live::each(&part("slot"), shown, |p| p.id.clone(), panel_card);
    fold
}

/// The first of them in words.
fn names(list: Vec<Panel>) -> String {
    let more = if list.len() > 4 { ", …" } else { "" };
    let first: Vec<String> = list.into_iter().take(4).map(|p| p.title).collect();
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
pub fn absent_line(absent: Absent) -> Element {
    let page = page();
    let title = &absent.title;
    let (trouble, head) = match absent.state {
        CheckState::Hung => (true, format!("{title} hangs:")),
        CheckState::Failed => (true, format!("{title} fails:")),
        CheckState::Partial => (true, format!("{title} incomplete:")),
        CheckState::Denied => (false, format!("{title} may not be read:")),
        _ => (false, format!("No {title} here:")),
    };
    let line = live::made(
        "<article class=absent tabindex=0 data-samples=0 data-state=unsupported><span></span><span><b></b> <span></span></span></article>",
    );
    let (class, shape) = if trouble { ("shape is-warn", "▲") } else { ("shape is-unknown", "◌") };
    if trouble {
        line.set_class_name("absent trouble");
    }
    dom::set(&line, "data-panel", &absent.id);
    live::attribute(&line, "data-window", move || page.view.with(|v| range::name(v.window)));
    let mark = dom::find(&line, "span");
    mark.set_class_name(class);
    mark.set_text_content(Some(shape));
    dom::find(&line, "b").set_text_content(Some(&head));
    dom::find(&line, "b + span").set_text_content(Some(&why(&absent)));
    line
}

/// Where the browser keeps that the line below has been read.
const READ: &str = "watchglass-band";

const ONCE: &str = "<div class='absent once' tabindex=0>\
    <span>\
        <b></b> the line is their median, the shade the middle 80 %, the thin lines the extremes. Who stands out is drawn by name.\
    </span>\
    <button>Got it</button>\
</div>";

/// How many series in one chart are drawn, said once to each person.
pub fn once(slot: &Element) {
    let store = || browser().local_storage().ok().flatten();
    // Where nothing may be kept it is said each time.
    let read = Signal::kept(store().is_some_and(|s| s.get_item(READ).ok().flatten().is_some()));
    let page = page();
    live::when(
        slot,
        move || many(page).is_some() && !read.get(),
        move || {
            let line = live::made(ONCE);
            let words = move || format!("{} lines would hide each other:", many(page).unwrap_or_default());
            live::text(&dom::find(&line, "b"), words);
            live::hear(&dom::find(&line, "button"), "click", move |_| {
                read.set(true);
                let _ = store().map(|s| s.set_item(READ, "1"));
            });
            line
        },
    );
}

/// How many series are in the largest chart that is drawn as a spread.
fn many(page: Page) -> Option<usize> {
    page.plan.with(|p| p.many)
}

const MISSING: &str = "<details class='fold why'>\
    <summary><svg class=tri viewBox='0 0 10 10' aria-hidden=true><path d='M3.5 2 6.5 5l-3 3'/></svg><span></span></summary>\
    <dl></dl>\
</details>";

/// Everything that is not available here, and why.
pub fn missing(slot: &Element) {
    let page = page();
    live::when(
        slot,
        move || page.plan.with(|p| !p.missing.is_empty()),
        move || {
            let fold = live::made(MISSING);
            live::text(&dom::find(&fold, "span"), move || page.plan.with(|p| not_here(&p.missing)));
            let reasons = dom::find(&fold, "dl");
            live::follow(move || {
                reasons.set_text_content(None);
                for absent in page.plan.with(|p| p.missing.clone()) {
                    dom::add(&reasons, "dt", "", &absent.title);
                    dom::add(&reasons, "dd", "", &why(&absent));
                }
            });
            fold
        },
    );
}

/// How much is not here, in words.
fn not_here(missing: &[Absent]) -> String {
    let denied = match missing.iter().filter(|a| a.state == CheckState::Denied).count() {
        0 => String::new(),
        n => format!(" ({n} for want of a permission)"),
    };
    format!("{} not available here{denied}, because …", missing.len())
}
