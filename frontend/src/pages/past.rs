//! One process over time: CPU and memory as two lines over the span of the page.

use crate::browser::offset;
use crate::state::Page;
use charts::axis;
use leptos::prelude::*;
use shared::unit::{Unit, number};

/// Width and height of the drawing, in its own units.
const SIZE: (f64, f64) = (1000.0, 56.0);
/// A pause that is longer than so many usual ones is drawn as a gap.
const GAP: f64 = 3.5;

/// A line through points (ms, value) as the path of an SVG; `most` is the upper edge.
fn path(points: &[(i64, f64)], (from, to): (i64, i64), most: f64) -> String {
    let mut pauses: Vec<i64> = points.windows(2).map(|two| two[1].0 - two[0].0).collect();
    pauses.sort_unstable();
    let gap = pauses.get(pauses.len() / 2).map_or(0, |usual| (*usual as f64 * GAP) as i64);
    let mut before = i64::MIN / 2;
    let mut text = String::new();
    for (t, v) in points {
        let x = (t - from) as f64 / (to - from).max(1) as f64 * SIZE.0;
        let y = SIZE.1 - 2.0 - v / most.max(f64::MIN_POSITIVE) * (SIZE.1 - 4.0);
        let begins = t - before > gap;
        text += &format!("{}{x:.1} {y:.1}", if begins { "M" } else { "L" });
        if begins {
            // A single point is seen as a dot.
            text += &format!("l.5 0M{x:.1} {y:.1}");
        }
        before = *t;
    }
    text
}

/// The drawing of the process that was asked for, over this span (ms since the epoch).
#[component]
pub fn Past(
    /// Its number.
    pid: u32,
    /// What was asked for.
    span: (i64, i64),
) -> impl IntoView {
    let page = expect_context::<Page>();
    let clock = |t: i64| axis::clock(t + offset(t), true);
    let line = move |title: &'static str, unit: &'static str, points: Vec<(i64, f64)>| {
        let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
        let newest = points.last().map_or(0.0, |p| p.1);
        let words = format!("{title}: last {} {unit}, most {} {unit}", number(newest), number(most));
        view! {
            <figure>
                <figcaption>{title}" "<span>"last "<b>{number(newest)}</b>", most "<b>{number(most)}</b>" "{unit}</span></figcaption>
                <svg viewBox="0 0 1000 56" preserveAspectRatio="none" role="img" aria-label=words>
                    <path d=path(&points, span, most) vector-effect="non-scaling-stroke"/>
                </svg>
            </figure>
        }
    };
    move || {
        let past = page.past.get().filter(|past| past.pid == pid)?;
        if past.points.is_empty() {
            let words =
                "It was never among the eight busiest or the eight largest in this span: of the past these are kept.";
            return Some(view! { <p>{words}</p> }.into_any());
        }
        let cpu = past.points.iter().filter_map(|p| Some((p.0, f64::from(p.1?)))).collect();
        let memory = past.points.iter().map(|p| (p.0, p.2 as f64 / Unit::Mebibytes.to_base())).collect();
        Some(
            view! {
                {line("CPU", "% of a core", cpu)}
                {line("Memory", "MiB", memory)}
                <p>{format!("{} to {}, while it was among the eight busiest or the eight largest", clock(span.0), clock(span.1))}</p>
            }
            .into_any(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn a_pause_is_a_gap() {
        let line = path(&[(0, 0.0), (5_000, 10.0), (10_000, 10.0), (60_000, 10.0)], (0, 100_000), 10.0);
        assert_eq!(line, "M0.0 54.0l.5 0M0.0 54.0L50.0 2.0L100.0 2.0M600.0 2.0l.5 0M600.0 2.0");
        assert_eq!(path(&[(50_000, 5.0)], (0, 100_000), 10.0), "M500.0 28.0l.5 0M500.0 28.0");
    }
}
