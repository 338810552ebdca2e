//! The small line of a fleet's tile.

use super::{Brush, follow};
use crate::panels::board::layer::Layer;
use crate::state::Page;
use crate::store::fleet::{HISTORY_MS, Instant};
use charts::value::{self, Spark};
use leptos::html;
use leptos::prelude::*;

/// The last minutes of a total of all machines, from the store.
#[component]
pub fn FleetSpark(
    /// The total to draw.
    of: fn(&Instant) -> f64,
    /// Value at the upper edge; NaN for a little more than the largest.
    #[prop(into)]
    hi: Signal<f64>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let canvas = NodeRef::<html::Canvas>::new();
    follow(page, canvas, move |layer, brush| paint(page, layer, brush, of, hi.get_untracked()));
    view! { <canvas node_ref=canvas aria-hidden="true"></canvas> }
}

fn paint(page: Page, layer: &mut Layer, brush: &Brush, of: fn(&Instant) -> f64, hi: f64) {
    let points: Vec<(i64, f64)> =
        page.store.with_value(|store| store.fleet.history.iter().map(|instant| (instant.t, of(instant))).collect());
    let most = points.iter().map(|p| p.1).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let end = points.last().map_or(0, |p| p.0);
    let spark = Spark {
        size: layer.units(),
        css: brush.css(),
        line: brush.measures.line,
        theme: brush.theme,
        span: (end - HISTORY_MS, end),
        points: &points,
        hi: if hi.is_finite() { hi.max(most) } else { most * 1.1 },
    };
    // This backend never returns an error.
    layer.draw(Some(brush.theme), |area| drop(value::draw(area, &spark)));
}
