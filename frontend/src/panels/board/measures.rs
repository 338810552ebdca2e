//! Lengths and the font's family, as the stylesheet has them at this width.

use crate::page::browser;
use charts::Measures;

/// Reads them.
pub fn measures() -> (Measures, String) {
    let root = browser().document().and_then(|d| d.document_element());
    let style = root.and_then(|r| browser().get_computed_style(&r).ok().flatten());
    let text = |name: &str| {
        style.as_ref().and_then(|s| s.get_property_value(name).ok()).map(|v| v.trim().to_string()).unwrap_or_default()
    };
    // The browser's parser: it knows `12px`, and ours would weigh ten kilobytes.
    let number = |name: &str, otherwise: f64| {
        let value = js_sys::parse_float(&text(name));
        if value.is_finite() { value } else { otherwise }
    };
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
