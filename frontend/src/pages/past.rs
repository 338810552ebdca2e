//! One process over time: CPU and memory as two lines over the span of the page.

use crate::browser::offset;
use crate::state::Page;
use charts::axis;
use leptos::prelude::*;
use shared::unit::{Unit, number};
use viewer::past::path;

/// The drawing of the requested process, over this span (ms since the epoch).
#[component]
pub fn Past(
    /// Its number.
    pid: u32,
    /// The requested span.
    span: (i64, i64),
) -> impl IntoView {
    let page = expect_context::<Page>();
    let clock = |t: i64| axis::clock(t + offset(t), true);
    let line = move |title: &'static str, unit: &'static str, points: Vec<(i64, f64)>| {
        let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
        let newest = points.last().map_or(0.0, |p| p.1);
        let words = format!("{title}: last {} {unit}, maximum {} {unit}", number(newest), number(most));
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
            let words = "No history: only the top 8 processes by CPU and by memory are recorded.";
            return Some(view! { <p>{words}</p> }.into_any());
        }
        let cpu = past.points.iter().filter_map(|p| Some((p.0, f64::from(p.1?)))).collect();
        let memory = past.points.iter().map(|p| (p.0, p.2 as f64 / Unit::Mebibytes.to_base())).collect();
        Some(
            view! {
                {line("CPU", "% of a core", cpu)}
                {line("Memory", "MiB", memory)}
                <p>{format!("{} to {}, while it was in the top 8 by CPU or memory", clock(span.0), clock(span.1))}</p>
            }
            .into_any(),
        )
    }
}
