//! What the page says while the server is away, or cannot keep history. It lies over the page, so that nothing moves.

use super::{dom, live};
use crate::page::{LinkState, Page, offset, page};
use charts::axis;
use leptos::tachys::html::InertElement;
use web_sys::Element;

/// The server's check of its data folder.
const HISTORY: &str = "history";

const BANNER: &str = "<div class=banner role=status>\
    <span class='shape is-unknown'>◌</span>\
    <span><b></b> <span></span></span>\
    <slot></slot>\
    <span class=end></span>\
</div>";

/// Its place.
pub fn banner() -> InertElement {
    live::standing("<slot id=banner></slot>", "#banner", |slot| {
        let page = page();
        live::when(slot, move || said(page).is_some(), said_here);
    })
}

fn said_here() -> Element {
    let (page, banner) = (page(), live::made(BANNER));
    live::text(&dom::find(&banner, "b"), move || said(page).map_or("", |w| w.0).to_string());
    live::text(&dom::find(&banner, "b + span"), move || said(page).map_or_else(String::new, |w| w.1));
    let astray = move || page.wrong.with(|w| !w.is_empty()) || unknown(page).is_some();
    live::when(&dom::find(&banner, "slot"), astray, || live::made("<button data-do=right>Show what is live</button>"));
    live::text(&dom::find(&banner, ".end"), move || page.goodbye.get());
    banner
}

type Said = Option<(&'static str, String)>;

/// A machine that the address names and the server does not know.
fn unknown(page: Page) -> Said {
    page.plan.track();
    let store = page.store.borrow();
    let shown = page.view.with(|v| store.source(v.source.as_deref())).map(|s| s.info.name.clone())?;
    let asked = page.view.with(|v| v.source.clone()).filter(|asked| *asked != shown)?;
    Some(("The address is not understood:", format!("there is no machine “{asked}” here, this is {shown}.")))
}

fn said(page: Page) -> Said {
    match page.state.get() {
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
        _ if page.silent.get() && unknown(page).is_none() => {
            let store = page.store.borrow();
            let last = page.view.with(|v| store.source(v.source.as_deref()))?.last_t()?;
            // A time, not an age: what is read out changes once, not each second. The charts say how old they are.
            let since = axis::clock(last + offset(last), true);
            let words =
                format!("its last sample is of {since}. What it sent stays, and the page goes on with its next one.");
            Some(("The machine is silent:", words))
        }
        _ => unknown(page).or_else(|| {
            page.plan.with(|plan| {
                let history = plan.missing.iter().find(|missing| missing.id == HISTORY)?;
                let mut reason = history.reason.clone();
                if let Some(first) = reason.get_mut(..1) {
                    first.make_ascii_uppercase();
                }
                Some(("Live, but not on disk.", format!("{reason}. To do: {}.", history.remedy)))
            })
        }),
    }
}
