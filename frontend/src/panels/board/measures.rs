//! Measures and font family as the stylesheet defines them for the current width of the page.

use crate::browser::{document, window};
use charts::Measures;

/// Reads the measures in CSS pixels and the CSS font family.
pub fn measures() -> (Measures, String) {
    let style = document().document_element().and_then(|r| window().get_computed_style(&r).ok().flatten());
    let text = |name: &str| {
        style.as_ref().and_then(|s| s.get_property_value(name).ok()).map(|v| v.trim().to_string()).unwrap_or_default()
    };
    let number = |name: &str, otherwise: f64| text(name).trim_end_matches("px").parse().unwrap_or(otherwise);
    let d = Measures::default();
    let measures = Measures {
        text: number("--t-axis", d.text),
        left: number("--gutter-l", d.left),
        right: number("--gutter-r", d.right),
        line: number("--line", d.line),
    };
    let family = text("--font");
    (measures, if family.is_empty() { "sans-serif".into() } else { family })
}
