//! The evidence of a finding as charts: the devices concerned against their peers, around the onset. [`Sketch`] is the
//! first of them as a small line, for the sentence that leads a page.

use super::words;
use crate::browser::document;
use crate::fetch;
use crate::state::{LinkState, Page};
use crate::store::{Store, difference};
use crate::widgets::parts::{If, flag, text};
use crate::widgets::spark::paths;
use charts::Limit;
use charts::axis::Along;
use charts::order;
use leptos::prelude::*;
use shared::answer::series::{QueriedSeries, QueryAnswer};
use shared::catalog::{Kind, Range};
use shared::finding::Finding;
use shared::series::SeriesDef;
use shared::unit::Unit;
use std::sync::Arc;
use viewer::curves::{Curve, CurveChart};
use viewer::findings::evidence::{MAX_SUBJECTS, Subjects, instance, machines, sides, two_lines};

/// Seconds between two polls while it is open.
const REFRESH_SECONDS: u32 = 5;
/// Columns of a chart, and of a small line.
const POINTS: i64 = 240;
const SMALL_POINTS: i64 = 60;
/// Most charts of one finding.
const MAX_CHARTS: usize = 4;

/// The chart of one tag.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The tag with its placeholder.
    pub tag: String,
    /// The title of the metric.
    pub title: String,
    /// The lines.
    pub chart: Arc<CurveChart>,
}

/// A requested tag, and the drawing of its values.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    tag: String,
    title: String,
    /// The label of a line, with a place for its instance.
    position: u16,
    unit: Unit,
    /// Factor from the values to the unit.
    factor: f64,
    range: Range,
    path: String,
}

/// The requested tags, at most `most`, each once, in the order of the evidence. State metrics have no lines.
fn wanted(store: &Store, finding: &Finding, most: usize, (span, step): ((i64, i64), i64)) -> Vec<Wanted> {
    let encode = |text: &str| String::from(js_sys::encode_uri_component(text));
    let sources: String = machines(finding).iter().map(|name| format!("&source={}", encode(name))).collect();
    let mut found: Vec<Wanted> = Vec::new();
    // Evidence without a value has text and no chart.
    for evidence in finding.evidence.iter().filter(|evidence| evidence.value.is_some()) {
        let Some(position) = store.catalog.position(&evidence.tag) else { continue };
        let metric = &store.catalog.metrics[usize::from(position)];
        if metric.kind == Kind::State || found.iter().any(|one| one.tag == evidence.tag) || found.len() == most {
            continue;
        }
        let rate = metric.kind == Kind::Counter;
        let pattern = sides(&metric.tag).map_or(metric.tag.clone(), |(before, after)| format!("{before}*{after}"));
        let (from, to) = span;
        let path = format!(
            "api/v1/query?tag={}{sources}&from={}&to={}&step={}s{}",
            encode(&pattern),
            from / 1_000,
            to / 1_000,
            step / 1_000,
            if rate { "&fn=rate" } else { "" }
        );
        found.push(Wanted {
            tag: metric.tag.clone(),
            title: metric.title.clone(),
            position,
            unit: if rate { metric.unit.per_second() } else { metric.unit.base() },
            factor: metric.unit.to_base(),
            range: metric.range,
            path,
        });
    }
    found
}

/// One line of a chart: its machine and instance, and a value for each column in the base unit.
struct Drawn {
    source: String,
    instance: String,
    values: Vec<Option<f64>>,
}

/// Number of columns of a chart.
fn count(((from, to), step): ((i64, i64), i64)) -> usize {
    ((to - from) / step + 1).max(1) as usize
}

/// The lines of a response of the server.
fn answered(wanted: &Wanted, answer: QueryAnswer, shape: ((i64, i64), i64)) -> Vec<Drawn> {
    let ((from, _), step) = shape;
    let line = |series: QueriedSeries| {
        let mut values = vec![None; count(shape)];
        for bucket in series.buckets {
            let column = (bucket.t.ms() - from).div_euclid(step);
            if let Some(value) = usize::try_from(column).ok().and_then(|column| values.get_mut(column)) {
                *value = Some(bucket.mean.0 * wanted.factor);
            }
        }
        let instance = instance(&wanted.tag, &series.tag).to_string();
        Drawn { source: series.source, instance, values }
    };
    answer.series.into_iter().map(line).collect()
}

/// The same lines out of the samples of a file.
fn read(store: &Store, finding: &Finding, wanted: &Wanted, shape: ((i64, i64), i64)) -> Vec<Drawn> {
    let ((from, to), step) = shape;
    let metric = &store.catalog.metrics[usize::from(wanted.position)];
    let mut lines = Vec::new();
    for name in machines(finding) {
        let Some(source) = store.sources.values().find(|source| source.info.is_called(&name)) else { continue };
        let days = source.in_days((from, to));
        for (id, def) in (0..).zip(&source.defs).filter(|(_, def)| def.metric == wanted.position) {
            let mut sums = vec![(0.0, 0_u32); count(shape)];
            difference::read(source, &store.catalog, id, metric, (from, to), days, |t, v| {
                let sum = &mut sums[((t - from) / step) as usize];
                *sum = (sum.0 + v, sum.1 + 1);
            });
            let mean = |(sum, n): (f64, u32)| (n > 0).then(|| sum / f64::from(n));
            let values = sums.into_iter().map(mean).collect();
            lines.push(Drawn { source: name.clone(), instance: def.instance.clone(), values });
        }
    }
    lines
}

/// The chart of lines; None without any samples.
fn piece(
    store: &Store,
    finding: &Finding,
    wanted: &Wanted,
    lines: Vec<Drawn>,
    (span, step): ((i64, i64), i64),
) -> Option<Piece> {
    let (from, to) = span;
    let several = machines(finding).len() > 1;
    let (mut curves, mut subjects) = (Vec::new(), Vec::new());
    for Drawn { source, instance, values } in lines {
        if values.iter().all(Option::is_none) {
            continue;
        }
        if Subjects::from_finding(finding, &source).has(&wanted.tag, &instance) {
            subjects.push(curves.len());
        }
        let is_one = instance.is_empty();
        let label = store.catalog.label(&SeriesDef { metric: wanted.position, instance });
        let name = match (several, is_one) {
            (true, true) => source,
            (true, false) => format!("{label} of {source}"),
            (false, _) => label,
        };
        curves.push(Curve { name, values });
    }
    if curves.is_empty() {
        return None;
    }
    if subjects.len() > MAX_SUBJECTS || subjects.len() == curves.len() {
        subjects.clear();
    }
    // The usual level under load, where the evidence has it for exactly one device.
    let mut levels = finding.evidence.iter().filter(|e| e.tag == wanted.tag).filter_map(|e| e.level);
    let level = levels.next().filter(|_| levels.next().is_none()).map(|level| level * wanted.factor);
    let limits = level.map(|value| Limit { value, text: String::new() }).into_iter().collect();
    let (unit, range) = (wanted.unit, wanted.range);
    let chart = Arc::new(CurveChart {
        unit,
        range,
        along: Along::Time,
        from,
        to,
        step,
        curves,
        subjects,
        limits,
        reach: Vec::new(),
    });
    Some(Piece { tag: wanted.tag.clone(), title: wanted.title.clone(), chart })
}

/// The span of a finding in whole columns, and the width of one in ms.
fn columns(finding: &Finding, now: i64, points: i64) -> ((i64, i64), i64) {
    let (from, to) = words::span(finding, now);
    let step = ((to - from) / points + 999) / 1_000 * 1_000;
    let step = step.max(1_000);
    ((from.div_euclid(step) * step, to), step)
}

/// Polls the evidence of a finding as long as the calling component exists. For a file it reads the samples in the
/// page.
pub fn follow(page: Page, finding: Signal<Option<Finding>>, small: bool) -> RwSignal<Vec<Piece>> {
    let pieces = RwSignal::new(Vec::<Piece>::new());
    let (most, points) = if small { (1, SMALL_POINTS) } else { (MAX_CHARTS, POINTS) };
    // Key of the last read from a file.
    let held = StoredValue::new(None);
    // The id and end of the requested finding, and the seconds since then.
    let asked = StoredValue::new((None::<(String, Option<i64>)>, 0u32));
    let turn = StoredValue::new(0u32);
    Effect::new(move || {
        page.beat.track();
        page.fleet.track();
        page.plan.track();
        let Some(one) = finding.get() else { return };
        // A file has no server to request from: it is read again when more of it is loaded, or its clock has moved.
        if page.over.get() {
            page.history.track();
            let shape = columns(&one, page.newest(), points);
            page.store.with_value(|store| {
                let here: Vec<_> = store.sources.values().map(|source| (source.first_t(), source.last_t())).collect();
                let now = Some((one.id.clone(), one.until, shape, here, store.catalog.metrics.len()));
                if held.with_value(|held| *held == now) {
                    return;
                }
                held.set_value(now);
                let of = |wanted: &Wanted| piece(store, &one, wanted, read(store, &one, wanted, shape), shape);
                pieces.set(wanted(store, &one, most, shape).iter().filter_map(of).collect());
            });
            return;
        }
        let now = Some((one.id.clone(), one.until));
        let same = asked.with_value(|(id, _)| *id == now);
        let live = page.state.get() == LinkState::Live && one.until.is_none();
        let due = !same || (live && asked.with_value(|(_, since)| *since >= REFRESH_SECONDS));
        if !due || document().hidden() {
            return asked.update_value(|(_, since)| *since += 1);
        }
        let shape = columns(&one, page.newest(), points);
        let list = page.store.with_value(|store| wanted(store, &one, most, shape));
        if list.is_empty() {
            // The catalog may not have arrived yet.
            return;
        }
        if !same {
            pieces.set(Vec::new());
        }
        asked.set_value((now, 0));
        let mine = turn.with_value(|turn| turn + 1);
        turn.set_value(mine);
        for wanted in list {
            let (one, list) = (one.clone(), wanted.clone());
            fetch::ask("GET", &wanted.path, None, move |answer| {
                // The page may be closed by now, or another finding shown.
                if turn.try_with_value(|turn| *turn == mine) != Some(true) {
                    return;
                }
                let Ok(read) = answer.read() else { return };
                let lines = answered(&list, read, shape);
                let made = page.store.with_value(|store| piece(store, &one, &list, lines, shape));
                let Some(new) = made else { return };
                let place = |tag: &str| one.evidence.iter().position(|e| e.tag == tag);
                pieces.update(|pieces| {
                    pieces.retain(|old| old.tag != new.tag);
                    pieces.push(new);
                    order::sort_by_key(pieces, |piece| place(&piece.tag));
                });
            });
        }
    });
    pieces
}

/// The first evidence as a small line, with the newest values of both sides.
#[component]
pub fn Sketch(
    /// The finding.
    finding: Signal<Option<Finding>>,
) -> impl IntoView {
    let page = expect_context::<Page>();
    let pieces = follow(page, finding, true);
    let piece = Memo::new(move |_| pieces.with(|pieces| pieces.first().cloned()));
    let drawn = move || {
        let piece = piece.get()?;
        let chart = &piece.chart;
        // If all devices are concerned, they are one line, against the usual level.
        let alone = chart.subjects.is_empty();
        let (own, peers) = match two_lines(chart) {
            (_, all) if alone => (all, Vec::new()),
            both => both,
        };
        let usual = chart.limits.first().map(|limit| limit.value).filter(|_| alone);
        let all = || own.iter().chain(&peers).flatten().chain(&usual);
        let (lo, hi) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(*v), hi.max(*v)));
        // A line that hardly moves is flat.
        let lo = if chart.range == Range::Fit { lo - (hi - lo) * 0.1 } else { lo.min(0.0) };
        let scale = chart.unit.scale(hi);
        let moved = |values: &[Option<f64>]| -> String {
            let values: Vec<Option<f64>> = values.iter().map(|v| v.map(|v| v - lo)).collect();
            paths(&values, hi - lo).0
        };
        let newest = |values: &[Option<f64>]| {
            values.iter().rev().flatten().next().map_or_else(|| "–".to_string(), |v| scale.number(*v))
        };
        let subject = match &chart.subjects[..] {
            [] => "now".to_string(),
            [one] => chart.curves[*one].name.split(" of ").next().unwrap_or_default().to_string(),
            several => format!("{} of them", several.len()),
        };
        let symbol = if scale.symbol.is_empty() { String::new() } else { format!(", {}", scale.symbol) };
        let others = match usual {
            Some(usual) => Some(("usually", scale.number(usual))),
            None => (!alone).then(|| ("others", newest(&peers))),
        };
        Some(view! {
            <svg viewBox="0 0 120 22" preserveAspectRatio="none" aria-hidden="true">
                <path class="peers" d=moved(&peers)/>
                <path class="own" d=moved(&own)/>
            </svg>
            <div class="sides">
                <p class="u">{piece.title.clone()}{symbol}</p>
                <p><i class="own"></i>{subject}" "<b>{newest(&own)}</b></p>
                {others.map(|(word, value)| view! { <p><i></i>{word}" "<b>{value}</b></p> })}
            </div>
        })
    };
    view! { <div class="sketch" data-tag=text(move || piece.with(|p| p.as_ref().map(|p| p.tag.clone()).unwrap_or_default()))><If when=flag(move || piece.with(Option::is_some))>{drawn}</If></div> }
}
