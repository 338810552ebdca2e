//! The series that a rule watches, as lines, read from the stored samples.

use crate::browser::document;
use crate::fetch;
use crate::state::{LinkState, Page};
use crate::store::Store;
use charts::Limit;
use charts::axis::Along;
use leptos::prelude::*;
use shared::answer::series::{QueriedBucket, QueryAnswer};
use shared::catalog::{Kind, glob};
use shared::series::SeriesDef;
use std::sync::Arc;
use viewer::alerts::metric;
use viewer::curves::{Curve, CurveChart};

/// Columns of a chart.
const POINTS: i64 = 240;
/// Seconds between two polls while the page is live.
const REFRESH_SECONDS: u32 = 15;
/// Maximum number of machines in one request.
const MAX_MACHINES: usize = 16;

/// A request for series.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The tag; `*` matches each instance.
    pub tag: String,
    /// A pattern of names of machines.
    pub source: String,
    /// True where the highest of all is drawn as one line, false for the lowest; None for all lines.
    pub most: Option<bool>,
    /// A fixed span, ms since the epoch; else the length in ms of a span that ends now.
    pub span: Result<(i64, i64), i64>,
    /// Values with a dashed line, in the base unit.
    pub limits: Vec<(f64, String)>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnSeries {
    /// The title of the metric.
    pub title: String,
    /// The lines.
    pub chart: Arc<CurveChart>,
    /// Number of series.
    pub series: usize,
    /// Number of matching machines, where not all of them were requested.
    pub machines: Option<usize>,
}

/// The machines of a pattern: those to request, and their total number.
fn machines(store: &Store, pattern: &str) -> (Vec<String>, usize) {
    let all: Vec<String> = store
        .index
        .iter()
        .map(|entry| entry.name.clone())
        .filter(|name| pattern.is_empty() || glob(pattern, name))
        .collect();
    let count = all.len();
    (all.into_iter().take(MAX_MACHINES).collect(), count)
}

fn chart(
    store: &Store,
    wanted: &Wanted,
    answer: &QueryAnswer,
    (from, to): (i64, i64),
    step: i64,
) -> Option<DrawnSeries> {
    let position = metric(&store.catalog, &wanted.tag)?;
    let metric = store.catalog.metrics.get(usize::from(position))?;
    let rate = metric.kind == Kind::Counter;
    let unit = if rate { metric.unit.per_second() } else { metric.unit.base() };
    let columns = ((to - from) / step + 1).max(1) as usize;
    let which = |bucket: &QueriedBucket| match wanted.most {
        Some(true) => bucket.max.0,
        Some(false) => bucket.min.0,
        None => bucket.mean.0,
    };
    let (mut curves, mut series) = (Vec::<Curve>::new(), 0);
    for one in &answer.series {
        let (tag, source) = (&one.tag, one.source.clone());
        if !wanted.source.is_empty() && !glob(&wanted.source, &source) {
            continue;
        }
        series += 1;
        if curves.is_empty() || wanted.most.is_none() {
            let instance = store.catalog.known(tag).map(|found| found.instance).unwrap_or_default();
            let label = store.catalog.label(&SeriesDef { metric: position, instance });
            let name = match wanted.most {
                Some(true) => "highest".into(),
                Some(false) => "lowest".into(),
                None if label.is_empty() => source,
                None => label,
            };
            curves.push(Curve { name, values: vec![None; columns] });
        }
        let Some(curve) = curves.last_mut() else { continue };
        for bucket in &one.buckets {
            let column = (bucket.t.ms() - from).div_euclid(step);
            let value = which(bucket) * metric.unit.to_base();
            if let Some(place) = usize::try_from(column).ok().and_then(|column| curve.values.get_mut(column)) {
                *place = Some(match (*place, wanted.most) {
                    (Some(before), Some(true)) => before.max(value),
                    (Some(before), Some(false)) => before.min(value),
                    _ => value,
                });
            }
        }
    }
    // With one series alone it has its own name.
    if let ([only], 1, Some(_)) = (&mut curves[..], series, wanted.most) {
        only.name = answer.series.first().map(|one| one.source.clone()).unwrap_or_default();
    }
    let limits = wanted.limits.iter().map(|(value, text)| Limit { value: *value, text: text.clone() }).collect();
    let range = metric.range;
    let chart = CurveChart {
        unit,
        range,
        along: Along::Time,
        from,
        to,
        step,
        curves,
        subjects: Vec::new(),
        limits,
        reach: Vec::new(),
    };
    Some(DrawnSeries { title: metric.title.clone(), chart: Arc::new(chart), series, machines: None })
}

/// Requests the series, and polls them while the span ends now, as long as the calling component exists.
pub fn follow(page: Page, wanted: Memo<Option<Wanted>>) -> RwSignal<Option<DrawnSeries>> {
    let drawn = RwSignal::new(None::<DrawnSeries>);
    let asked = StoredValue::new((None::<Wanted>, 0u32, 0u32));
    Effect::new(move || {
        page.beat.track();
        page.fleet.track();
        page.plan.track();
        let Some(now) = wanted.get().filter(|_| !page.over.get()) else { return };
        let same = asked.with_value(|(before, ..)| before.as_ref() == Some(&now));
        let late = asked.with_value(|(_, since, _)| *since >= REFRESH_SECONDS);
        let due = !same || (late && now.span.is_err() && page.state.get() == LinkState::Live);
        if !due || document().hidden() {
            return asked.update_value(|(_, since, _)| *since += 1);
        }
        let (from, to) = now.span.unwrap_or_else(|length| {
            let end = page.server_now();
            (end - length, end)
        });
        let step = ((to - from) / POINTS / 1_000 * 1_000).max(1_000);
        let from = from.div_euclid(step) * step;
        let known = page.store.with_value(|store| {
            let position = metric(&store.catalog, &now.tag)?;
            let rate = store.catalog.metrics.get(usize::from(position))?.kind == Kind::Counter;
            Some((rate, machines(store, &now.source)))
        });
        // The catalog and the machines may not have arrived yet.
        let Some((rate, (names, count))) = known.filter(|(_, (names, _))| !names.is_empty()) else { return };
        let encode = |text: &str| String::from(js_sys::encode_uri_component(text));
        let sources: String = names.iter().map(|name| format!("&source={}", encode(name))).collect();
        let path = format!(
            "api/v1/query?tag={}{sources}&from={}&to={}&step={}s{}",
            encode(&now.tag),
            from / 1_000,
            to / 1_000,
            step / 1_000,
            if rate { "&fn=rate" } else { "" }
        );
        let turn = asked.with_value(|(.., turn)| turn + 1);
        asked.set_value((Some(now.clone()), 0, turn));
        let machines = (count > names.len()).then_some(count);
        fetch::ask("GET", &path, None, move |answer| {
            // The page may be closed by now, or the request outdated.
            if asked.try_with_value(|(.., last)| *last == turn) != Some(true) {
                return;
            }
            let read = answer.read::<QueryAnswer>();
            let made =
                read.ok().and_then(|read| page.store.with_value(|store| chart(store, &now, &read, (from, to), step)));
            drawn.set(made.map(|made| DrawnSeries { machines, ..made }));
        });
    });
    drawn
}
