//! Small lines without axes.

use leptos::prelude::*;

/// Breadth and height of a small line, in its own units.
const SPARK: (f64, f64) = (120.0, 22.0);

/// The path of a small line, and that of its ground; values up to `most`.
pub fn paths(values: &[Option<f64>], most: f64) -> (String, String) {
    let (wide, high) = SPARK;
    let step = wide / values.len().saturating_sub(1).max(1) as f64;
    let y = |v: f64| high - 1.0 - (v / most.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * (high - 3.0);
    let (mut line, mut ground, mut begun) = (String::new(), String::new(), None);
    let end = |ground: &mut String, begun: &mut Option<f64>, x: f64| {
        if let Some(first) = begun.take() {
            *ground += &format!("L{x:.1} {high}L{first:.1} {high}Z");
        }
    };
    for (i, value) in values.iter().enumerate() {
        let x = i as f64 * step;
        let Some(value) = value else {
            end(&mut ground, &mut begun, x - step);
            continue;
        };
        let point = format!("{}{x:.1} {:.1}", if begun.is_some() { 'L' } else { 'M' }, y(*value));
        // A value alone is a dot.
        line += &point;
        line += if begun.is_none() { "h.1" } else { "" };
        ground += &point;
        begun.get_or_insert(x);
    }
    end(&mut ground, &mut begun, wide);
    (line, ground)
}

/// A small line.
#[component]
pub fn Small(
    /// Its values.
    values: Vec<Option<f64>>,
    /// The value at its upper edge.
    most: f64,
) -> impl IntoView {
    let (line, ground) = paths(&values, most);
    view! {
        <svg class="small" viewBox=format!("0 0 {} {}", SPARK.0, SPARK.1) preserveAspectRatio="none" aria-hidden="true">
            <path class="ground" d=ground/>
            <path class="line" d=line/>
        </svg>
    }
}
