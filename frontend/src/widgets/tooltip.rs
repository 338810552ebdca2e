//! The tooltip of the crosshair. Its place is set through the object model: the policy forbids style attributes.

use super::dom;
use charts::Hue;
use leptos::prelude::set_timeout;
use leptos::tachys::html::InertElement;
use std::cell::RefCell;
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

/// The tooltip, and the place where a screen reader hears what it says.
pub fn tooltip() -> [InertElement; 2] {
    ["<div id=tip class=tip hidden></div>", "<div id=said class=away role=status></div>"].map(InertElement::new)
}

fn hue_class(hue: Hue) -> String {
    match hue {
        Hue::Ink => "hue-ink".into(),
        Hue::Of(i) => format!("hue-{}{}", i % 8, if hue.dashed() { " dashed" } else { "" }),
    }
}

/// Shows it, or hides it.
pub fn show(tip: Option<&Tip>) {
    let Some(element) = dom::by_id("tip") else { return };
    dom::set_hidden(&element, tip.is_none());
    let Some(tip) = tip else { return };
    element.set_class_name(if tip.pinned { "tip pinned" } else { "tip" });
    element.set_text_content(None);
    let head = dom::add(&element, "div", "when", "");
    dom::add(&head, "span", "", &tip.when);
    dom::add(&head, "span", "u", &tip.unit);
    rows(&element, &tip.rows);
    if !tip.rest.is_empty() {
        dom::add(&element, "div", "rest", &tip.rest);
    }
    if let Some((title, others)) = &tip.other {
        dom::add(&element, "div", "rest", title);
        rows(&element, others);
    }
    let (x, y) = tip.place;
    let rect = element.get_bounding_client_rect();
    let (width, height) = dom::viewport();
    let right = x + 14.0 + rect.width() > width - 8.0;
    let left = if right { (x - 14.0 - rect.width()).max(8.0) } else { x + 14.0 };
    let top = (y - rect.height() / 2.0).min(height - rect.height() - 8.0).max(52.0);
    dom::set_style(&element, "left", &format!("{}px", left.round() as i32));
    dom::set_style(&element, "top", &format!("{}px", top.round() as i32));
}

fn rows(parent: &web_sys::Element, rows: &[Row]) {
    for row in rows {
        let line = dom::add(parent, "div", "row", "");
        // No text from outside goes this way.
        line.set_inner_html(&format!(
            r#"<svg viewBox="0 0 14 8" class="{}"><path d="M0 4h14"/></svg>"#,
            hue_class(row.hue)
        ));
        dom::add(&line, "span", "", &row.name);
        dom::add(&line, "b", "", &row.value);
        if !row.then.is_empty() {
            dom::add(&line, "i", "", &row.then);
        }
    }
}

/// How long a reading waits for the next one: of keys that are held, the last is heard.
const PAUSE: Duration = Duration::from_millis(250);

thread_local! {
    /// What is said next; none when nothing waits.
    static NEXT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Says it to a screen reader, unless something newer is to be said before long.
pub fn say(text: String) {
    if NEXT.replace(Some(text)).is_none() {
        set_timeout(
            || {
                if let (Some(element), Some(text)) = (dom::by_id("said"), NEXT.take()) {
                    element.set_text_content(Some(&text));
                }
            },
            PAUSE,
        );
    }
}
