//! The tooltip of the crosshair. Its place is set through the object model: the policy forbids style attributes.

use crate::browser;
use charts::Hue;
use leptos::html;
use leptos::prelude::*;
use std::time::Duration;

/// One series in the tooltip.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its colour.
    pub hue: Hue,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its value in the period that is compared with; empty when there is none.
    pub then: String,
}

/// What the tooltip says.
#[derive(Clone, Debug, PartialEq)]
pub struct Tip {
    /// The instant.
    pub when: String,
    /// The unit.
    pub unit: String,
    /// Largest first.
    pub rows: Vec<Row>,
    /// What is left out.
    pub rest: String,
    /// The chart that lies over this one, and its series.
    pub other: Option<(String, Vec<Row>)>,
    /// Place of the instant in the window, CSS pixels.
    pub place: (f64, f64),
    /// Whether it stays until it is let go.
    pub pinned: bool,
}

fn hue_class(hue: Hue) -> String {
    match hue {
        Hue::Ink => "hue-ink".into(),
        Hue::Of(i) => format!("hue-{}{}", i % 8, if hue.dashed() { " dashed" } else { "" }),
    }
}

/// The tooltip, where there is one to be seen.
#[component]
pub fn Tooltip(
    /// What it says.
    #[prop(into)]
    tip: Signal<Option<Tip>>,
) -> impl IntoView {
    let element = NodeRef::<html::Div>::new();
    Effect::new(move || {
        if let Some(place) = tip.with(|tip| tip.as_ref().map(|tip| tip.place)) {
            // Its size is known when what it says stands there, which other followers of the same value see to.
            queue_microtask(move || {
                if let Some(element) = element.get_untracked() {
                    put(&element, place);
                }
            });
        }
    });
    let class = move || if tip.with(|tip| tip.as_ref().is_some_and(|tip| tip.pinned)) { "tip pinned" } else { "tip" };
    view! {
        <div node_ref=element id="tip" class=class hidden=move || tip.with(Option::is_none)>
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

fn rows(rows: Vec<Row>) -> impl IntoView {
    let row = |row: Row| {
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

/// Beside an instant, on the screen.
fn put(element: &web_sys::Element, (x, y): (f64, f64)) {
    let rect = element.get_bounding_client_rect();
    let (width, height) = browser::viewport();
    let right = x + 14.0 + rect.width() > width - 8.0;
    let left = if right { (x - 14.0 - rect.width()).max(8.0) } else { x + 14.0 };
    let top = (y - rect.height() / 2.0).min(height - rect.height() - 8.0).max(52.0);
    browser::set_style(element, "left", &format!("{}px", left.round()));
    browser::set_style(element, "top", &format!("{}px", top.round()));
}

/// How long a reading waits for the next one: of keys that are held, the last is heard.
const PAUSE: Duration = Duration::from_millis(250);

/// The place where a screen reader hears what the tooltip says.
#[component]
pub fn Said(
    /// What is to be said; of what comes before long, the newest.
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
        set_timeout(say, PAUSE);
    });
    view! { <div id="said" class="away" role="status">{heard}</div> }
}
