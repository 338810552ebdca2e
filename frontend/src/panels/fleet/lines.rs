//! A chart with a line for each of a few machines: one row of the overview, from their samples.

use super::{Brush, follow};
use crate::browser::zone_of;
use crate::panels::board::layer::Layer;
use crate::state::{LinkState, Page};
use crate::store::Store;
use crate::store::source::Source;
use crate::store::trace::Trace;
use charts::reduce::{Column, Reducer};
use charts::{Chart, Frame, Hue, Line, axis};
use leptos::html;
use leptos::prelude::*;
use shared::catalog::Range;
use shared::catalog::fleet::FleetRow;
use shared::series::SeriesId;
use shared::unit::Unit;
use shared::wire::SourceId;
use std::collections::BTreeMap;

/// Approximate maximum number of columns of a chart.
const MAX_COLUMNS: i64 = 600;

/// Columns of each machine's series, kept between drawings.
type Traces = Vec<((SourceId, SeriesId), Trace)>;

/// A machine of the chart: its name, and its newest value as text.
pub type Newest = Vec<(String, String)>;

/// The chart. It writes the newest values into `newest`.
#[component]
pub fn HostLines(
    /// The metric that is drawn for each machine.
    row: &'static FleetRow,
    /// Names of the machines, in the order of their hues.
    #[prop(into)]
    names: Signal<Vec<String>>,
    /// The newest value of each machine.
    newest: RwSignal<Newest>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let canvas = NodeRef::<html::Canvas>::new();
    let mut traces = Traces::new();
    follow(page, canvas, move |layer, brush| {
        let values = paint(page, layer, brush, row, &names.get_untracked(), &mut traces);
        if newest.with_untracked(|known| *known != values) {
            newest.set(values);
        }
    });
    view! { <canvas node_ref=canvas aria-hidden="true"></canvas> }
}

/// The series of a machine for a row.
fn series(row: &FleetRow, source: &Source, store: &Store) -> Vec<SeriesId> {
    let of = |tag: &str| -> Vec<SeriesId> {
        let named = |id: &SeriesId| {
            let metric = source.defs.get(*id as usize).and_then(|def| store.catalog.metric(def));
            metric.is_some_and(|metric| metric.tag == tag)
        };
        (0..source.defs.len() as SeriesId).filter(named).collect()
    };
    row.of.iter().map(|metric| of(metric.tag)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Whether any of these machines reports the metric of a row; true before any of them has sent its metrics.
pub fn is_reported(page: Page, row: &FleetRow, names: &[String]) -> bool {
    page.plan.track();
    let store = page.store.read_value();
    let known: Vec<&Source> =
        store.sources.values().filter(|s| names.iter().any(|name| s.info.is_called(name))).collect();
    known.iter().all(|source| source.defs.is_empty())
        || known.iter().any(|source| !series(row, source, &store).is_empty())
}

/// One machine's line: the values of its series folded column by column.
fn line(
    row: &FleetRow,
    source: &Source,
    store: &Store,
    (from, to): (i64, i64),
    step: i64,
    traces: &mut Traces,
) -> Vec<Column> {
    let mut slots: BTreeMap<i64, (i64, Vec<f64>)> = BTreeMap::new();
    for id in series(row, source, store) {
        let key = (source.info.id, id);
        traces.retain(|(known, trace)| *known != key || (trace.is_of(step, false) && trace.fits(from, source)));
        if !traces.iter().any(|(known, _)| *known == key) {
            traces.push((key, Trace::new(id, step, from, source, &store.catalog)));
        }
        if let Some((_, trace)) = traces.iter_mut().find(|(known, _)| *known == key) {
            trace.feed(source, from, to);
            for column in trace.within(from, to) {
                slots.entry(column.slot).or_insert_with(|| (column.t, Vec::new())).1.push(column.mean());
            }
        }
    }
    let mut reducer = Reducer::new(step, (source.info.interval * 3 / 2).max(step * 3 / 2));
    for (t, values) in slots.into_values() {
        if let Some(value) = row.fold(values) {
            reducer.push(t, value);
        }
    }
    reducer.columns().to_vec()
}

fn paint(
    page: Page,
    layer: &mut Layer,
    brush: &Brush,
    row: &'static FleetRow,
    names: &[String],
    traces: &mut Traces,
) -> Newest {
    let store = page.store.read_value();
    let (window, frozen) = page.view.with_untracked(|v| (v.window, v.frozen));
    let sources: Vec<(&String, Option<&Source>)> =
        names.iter().map(|name| (name, store.sources.values().find(|s| s.info.is_called(name)))).collect();
    let newest_t = sources.iter().filter_map(|(_, source)| source.and_then(Source::last_t)).max();
    let now = page.server_now();
    let end = newest_t.filter(|t| now - t < 3_000).unwrap_or(now);
    let (from, to) = frozen.unwrap_or((end - window, end));
    let interval = sources.iter().filter_map(|(_, s)| s.map(|s| s.info.interval)).max().unwrap_or(1_000);
    let step = ((to - from) / MAX_COLUMNS / interval).max(1) * interval;
    let columns: Vec<Vec<Column>> = sources
        .iter()
        .map(|(_, source)| source.map_or_else(Vec::new, |s| line(row, s, &store, (from, to), step, traces)))
        .collect();
    let all = || columns.iter().flatten();
    let (lo, hi) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), c| (lo.min(c.min), hi.max(c.max)));
    let range = match row.unit {
        Unit::Percent => Range::PERCENT,
        Unit::Celsius => Range::Fit,
        _ => Range::FromZero,
    };
    let axis = axis::values(row.unit, range, lo, hi);
    let hue = |i: usize| if names.len() == 1 { Hue::Ink } else { Hue::Of((i % 8) as u8) };
    let lines: Vec<Line> =
        columns.iter().enumerate().map(|(i, columns)| Line { columns, hue: hue(i), bright: true }).collect();
    let mut measures = brush.measures;
    (measures.left, measures.right) = (46.0, 14.0);
    let frame = Frame {
        chart: Chart::for_series(names.len().min(8)),
        size: layer.units(),
        css: brush.css(),
        device: brush.device(),
        theme: brush.theme,
        measures,
        from,
        to,
        zone: zone_of(from, to),
        along: axis::Along::Time,
        axis: &axis,
        step,
        interval,
        lines: &lines,
        band: &[],
        heat: None,
        lanes: &[],
        limits: &[],
        gaps: &[],
        live: frozen.is_none() && page.state.get_untracked() == LinkState::Live,
        age: "",
    };
    // This backend never returns an error.
    layer.draw(Some(brush.theme), |area| drop(charts::draw(area, &frame)));
    let value = |columns: &Vec<Column>| match columns.last() {
        Some(last) if to - last.last_t <= interval * 3 => {
            let scale = row.unit.base().scale(last.last);
            format!("{} {}", scale.number(last.last), scale.symbol)
        }
        _ => "–".to_string(),
    };
    names.iter().cloned().zip(columns.iter().map(value)).collect()
}
