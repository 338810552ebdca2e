//! Parts that all pages of runs have: words, shapes and small lines.

use super::read::{Figures, Listed};
use leptos::prelude::*;
use shared::run::RunState;
use shared::unit::{Unit, number};

/// The class of the shape of a state.
pub fn shape(state: RunState) -> &'static str {
    match state {
        RunState::Running | RunState::Suspended | RunState::Finished => "shape is-ok",
        RunState::Failed | RunState::Crashed | RunState::OutOfMemory | RunState::TimedOut | RunState::NodeFailed => {
            "shape is-bad"
        }
        _ => "shape is-unknown",
    }
}

/// The state as a word: `out of memory`.
pub fn word(state: RunState) -> String {
    state.name().replace('_', " ")
}

/// A sentence with a large first letter.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A number with its unit; a dash where there is none.
pub fn figure(value: Option<f64>, unit: &str) -> String {
    match value {
        Some(value) if unit.is_empty() => number(value),
        Some(value) => format!("{} {unit}", number(value)),
        None => "–".into(),
    }
}

/// A share, 0 to 1, in percent.
pub fn percent(share: Option<f64>) -> String {
    figure(share.map(|share| (share * 1_000.0).round() / 10.0), "%")
}

/// Energy in a unit that fits it.
pub fn energy(figures: &Figures) -> (String, &'static str) {
    match figures.energy_kwh {
        Some(kwh) if kwh < 1.0 => (number(kwh * 1_000.0), "Wh"),
        Some(kwh) => (number(kwh), "kWh"),
        None => ("–".into(), ""),
    }
}

/// A size in bytes.
pub fn size(bytes: Option<f64>) -> String {
    let Some(bytes) = bytes else { return "–".into() };
    let scale = Unit::Bytes.scale(bytes);
    format!("{} {}", scale.number(bytes), scale.symbol)
}

/// How many ranks on how many machines.
pub fn where_it_ran(run: &Listed) -> String {
    let hosts = match &run.hosts[..] {
        [] => String::new(),
        [one] => format!(" on {one}"),
        [one, other] => format!(" on {one} and {other}"),
        [first, .., last] => format!(" on {} machines, {first} to {last}", run.hosts.len()),
    };
    match run.ranks {
        0 => hosts.trim_start().to_string(),
        1 => format!("1 rank{hosts}"),
        n => format!("{n} ranks{hosts}"),
    }
}

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
