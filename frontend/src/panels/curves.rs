//! A chart of lines that the server made, on a canvas: see [`viewer::curves`].

use super::fleet::{Brush, follow};
use crate::browser::zone_of;
use crate::panels::board::layer::Layer;
use crate::state::Page;
use charts::axis::Zone;
use charts::labels::Label;
use charts::marks::CellMark;
use charts::over::EdgeLabels;
use charts::reduce::Column;
use charts::{Chart, Frame, Hue, Line, Measures};
use leptos::ev::PointerEvent;
use leptos::html;
use leptos::prelude::*;
use std::sync::Arc;
use viewer::curves::{CurveChart, MAX_HUES, Prepared};

/// The chart. `at` is the instant that all charts beside it show, in ms as the chart counts them; None for the newest.
#[component]
pub fn Curves(
    /// The content of the chart.
    #[prop(into)]
    chart: Signal<Arc<CurveChart>>,
    /// The marks of events.
    #[prop(into)]
    marks: Signal<Arc<Vec<CellMark>>>,
    /// The crosshair of all charts of the page.
    at: RwSignal<Option<i64>>,
    /// Label for screen readers.
    #[prop(into)]
    label: Signal<String>,
    /// Left, top, right and bottom of the plot in CSS pixels of the canvas, for elements over it.
    #[prop(optional)]
    edges: Option<RwSignal<[f64; 4]>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let canvas = NodeRef::<html::Canvas>::new();
    let prepared = StoredValue::new_local(None::<Prepared>);
    // The plot in the CSS pixels of the canvas.
    let plot = StoredValue::new((0.0, 0.0));
    Effect::new(move || {
        let made = chart.with(|chart| chart.prepared());
        prepared.set_value(Some(made));
        marks.track();
        at.track();
        page.redraw();
    });
    follow(page, canvas, move |layer, brush| {
        let now = at.get_untracked();
        let drawn = prepared.with_value(|made| {
            let made = made.as_ref()?;
            Some(
                chart
                    .with_untracked(|chart| marks.with_untracked(|marks| paint(layer, brush, chart, made, marks, now))),
            )
        });
        let [left, top, right, bottom] = drawn.unwrap_or_default();
        plot.set_value((left, right));
        if let Some(edges) = edges.filter(|edges| edges.get_untracked() != [left, top, right, bottom]) {
            edges.set([left, top, right, bottom]);
        }
    });
    let moved = move |event: PointerEvent| {
        let Some(element) = canvas.get_untracked() else { return };
        let rect = element.get_bounding_client_rect();
        let (left, right) = plot.get_value();
        let share = (f64::from(event.client_x()) - rect.left() - left) / (right - left).max(1.0);
        let (from, to) = chart.with_untracked(|chart| (chart.from, chart.to));
        let t = from + (share * (to - from) as f64) as i64;
        at.set((0.0..=1.0).contains(&share).then_some(t));
    };
    view! {
        <canvas
            node_ref=canvas
            role="img"
            aria-label=label
            on:pointermove=moved
            on:pointerdown=moved
            on:pointerleave=move |_| at.set(None)
        ></canvas>
    }
}

/// Draws all, and returns left, top, right and bottom of the plot in CSS pixels.
fn paint(
    layer: &mut Layer,
    brush: &Brush,
    chart: &CurveChart,
    made: &Prepared,
    marks: &[CellMark],
    at: Option<i64>,
) -> [f64; 4] {
    let all = || made.columns.iter().flatten();
    let axis = chart.axis();
    let drawn = || made.columns.iter().zip(&made.hues).enumerate().filter_map(|(i, (c, hue))| Some((i, c, (*hue)?)));
    let lines: Vec<Line> = drawn().map(|(_, columns, hue)| Line { columns, hue, bright: true }).collect();
    // A band is drawn as of many, however few its lines are.
    let least = if made.band.is_empty() { 0 } else { MAX_HUES + 1 };
    let kind = Chart::for_series(lines.len().max(least));
    let frame = Frame {
        chart: kind,
        size: layer.units(),
        css: brush.css(),
        device: brush.device(),
        theme: brush.theme,
        measures: Measures { left: brush.measures.left.max(46.0), ..brush.measures },
        from: chart.from,
        to: chart.to,
        zone: if chart.from == 0 { Zone::UTC } else { zone_of(chart.from, chart.to) },
        along: chart.along,
        axis: &axis,
        step: chart.step,
        interval: chart.step,
        lines: &lines,
        band: &made.band,
        heat: None,
        lanes: &[],
        limits: &chart.limits,
        gaps: &[],
        live: false,
        age: "",
    };
    let newest = all().map(|c| c.t).max().unwrap_or(chart.to);
    let then = at.unwrap_or(newest);
    let of = |columns: &[Column]| {
        let near = columns.iter().min_by_key(|c| (c.t - then).abs());
        near.filter(|c| (c.t - then).abs() <= chart.step * 3 / 2).map_or(f64::NAN, Column::mean)
    };
    let said = |name: String, value: f64, hue| Label {
        name,
        value,
        text: if value.is_finite() { axis.number(value) } else { "–".into() },
        hue,
        bright: true,
    };
    let mut labels: Vec<Label> =
        drawn().map(|(i, columns, hue)| said(chart.curves[i].name.clone(), of(columns), hue)).collect();
    if !made.band.is_empty() {
        let near = made.band.iter().min_by_key(|b| (b.t - then).abs());
        let peers = if chart.subjects.is_empty() { "median" } else { "others" };
        labels.insert(0, said(peers.into(), near.map_or(f64::NAN, |b| b.values[2]), Hue::Ink));
    }
    // This backend never returns an error.
    layer.draw(Some(brush.theme), |area| {
        drop(charts::marks::draw(area, &frame, marks));
        drop(charts::draw(area, &frame));
        let said = EdgeLabels { labels: &labels, unit: axis.scale.symbol, joined_as: Some("lines"), before: &[] };
        drop(charts::over::draw(area, &frame, at, newest, said));
    });
    let plot = frame.plot();
    [plot.left, plot.top, plot.right, plot.bottom].map(|edge| f64::from(edge) / brush.css())
}
