//! The tooltip of the crosshair. Scripts set its place, because the page's policy forbids style attributes.

use crate::browser;
use charts::Hue;
use leptos::html;
use leptos::prelude::*;
use std::time::Duration;

/// One series in the tooltip.
#[derive(Clone, Debug, PartialEq)]
pub struct TipRow {
    /// Color of the series.
    pub hue: Hue,
    /// Name of the series.
    pub name: String,
    /// Value of the series, as text.
    pub value: String,
    /// Value in the earlier period that is compared with, as text; empty when there is none.
    pub then: String,
}

/// The content of the tooltip.
#[derive(Clone, Debug, PartialEq)]
pub struct Tip {
    /// The instant, as text.
    pub when: String,
    /// Symbol of the unit.
    pub unit: String,
    /// Rows in the order in which they are shown.
    pub rows: Vec<TipRow>,
    /// Text about the series that are left out; empty when there are none.
    pub rest: String,
    /// Title and rows of the chart that is drawn over this one.
    pub other: Option<(String, Vec<TipRow>)>,
    /// Place of the instant in the window in CSS pixels.
    pub place: (f64, f64),
    /// True when the tooltip stays until it is unpinned.
    pub pinned: bool,
}

fn hue_class(hue: Hue) -> String {
    match hue {
        Hue::Ink => "hue-ink".into(),
        Hue::Odd(n) => format!("hue-odd{}", if n > 0 { " dashed" } else { "" }),
        Hue::Of(i) => format!("hue-{}{}", i % 8, if hue.dashed() { " dashed" } else { "" }),
    }
}

/// The tooltip; hidden while there is nothing to show.
#[component]
pub fn Tooltip(
    /// The content of the tooltip; None hides it.
    #[prop(into)]
    tip: Signal<Option<Tip>>,
) -> impl IntoView {
    let element = NodeRef::<html::Div>::new();
    Effect::new(move || {
        if let Some(place) = tip.with(|tip| tip.as_ref().map(|tip| tip.place)) {
            // The size of the element is known only after other effects of this signal have updated its content.
            queue_microtask(move || {
                if let Some(element) = element.get_untracked() {
                    put(&element, place);
                }
            });
        }
    });
    let class = move || if tip.with(|tip| tip.as_ref().is_some_and(|tip| tip.pinned)) { "tip pinned" } else { "tip" };
    view! {
        <div
            node_ref=element
            id="tip"
            class=class
            role="region"
            aria-label="Values at the crosshair"
            hidden=move || tip.with(Option::is_none)
        >
            {move || tip.get().map(words)}
        </div>
    }
}

fn words(tip: Tip) -> impl IntoView {
    let other = tip.other.map(|(title, all)| view! { <div class="rest">{title}</div>{rows(all)} });
    let rest = (!tip.rest.is_empty()).then(|| view! { <div class="rest">{tip.rest}</div> });
    view! {
        <div class="when"><span>{tip.when}</span><span class="u">{tip.unit}</span></div>
        {rows(tip.rows)}
        {rest}
        {other}
    }
}

fn rows(rows: Vec<TipRow>) -> impl IntoView {
    let row = |row: TipRow| {
        view! {
            <div class="row">
                <svg viewBox="0 0 14 8" class=hue_class(row.hue)><path d="M0 4h14"/></svg>
                <span>{row.name}</span>
                <b>{row.value}</b>
                {(!row.then.is_empty()).then(|| view! { <i>{row.then}</i> })}
            </div>
        }
    };
    rows.into_iter().map(row).collect_view()
}

/// Places the tooltip beside an instant, within the window.
fn put(element: &web_sys::Element, (x, y): (f64, f64)) {
    let rect = element.get_bounding_client_rect();
    let (width, height) = browser::viewport();
    let right = x + 14.0 + rect.width() > width - 8.0;
    let left = if right { (x - 14.0 - rect.width()).max(8.0) } else { x + 14.0 };
    let top = (y - rect.height() / 2.0).min(height - rect.height() - 8.0).max(52.0);
    // A shift needs no layout of the page.
    browser::set_style(element, "transform", &format!("translate({}px,{}px)", left.round(), top.round()));
}

/// Delay of an announcement. While a key is held, only the last text is announced.
const ANNOUNCE_DELAY: Duration = Duration::from_millis(250);

/// The live region that announces the tooltip to screen readers.
#[component]
pub fn Said(
    /// The announcement for screen readers. When several arrive in a short time, the newest is announced.
    #[prop(into)]
    said: Signal<String>,
) -> impl IntoView {
    let (heard, waiting) = (RwSignal::new(String::new()), StoredValue::new(false));
    Effect::new(move || {
        if said.with(String::is_empty) || std::mem::replace(&mut *waiting.write_value(), true) {
            return;
        }
        let say = move || {
            waiting.set_value(false);
            heard.set(said.get_untracked());
        };
        set_timeout(say, ANNOUNCE_DELAY);
    });
    view! { <div id="said" class="away" role="status">{heard}</div> }
}
