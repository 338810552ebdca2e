//! `GET /api/v1/*`: the table, the machines, the processes and how things stand, as JSON.

pub(in crate::http) mod answer;
pub(in crate::http) mod calls;
pub(in crate::http) mod changed;
pub(in crate::http) mod figure;
pub(in crate::http) mod findings;
pub(in crate::http) mod fleet;
mod gpus;
mod health;
mod holes;
pub(in crate::http) mod logs;
pub(in crate::http) mod markers;
pub(in crate::http) mod metrics;
mod older;
mod params;
pub(in crate::http) mod query;
pub(in crate::http) mod record;
pub(in crate::http) mod report;
pub(in crate::http) mod reports;
pub(in crate::http) mod runs;
pub(in crate::http) mod series;
pub(in crate::http) mod uplink;

pub(in crate::http) use answer::AnswerLimits;
pub use metrics::reference as counters;
pub(in crate::http) use params::Params;

use crate::export::fitting;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use crate::ingest::NoAnswer;
use answer::{listed, stream};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, Uri};
use serde_json::{Map, Value, json as object};
use shared::catalog::{self, Metric};
use shared::processes::Process;
use shared::standing::Standing;
use shared::wire::{Check, IndexEntry, Source};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use stream::live::Live;

/// A number as JSON: integers without a fraction; absent is for the caller to leave out.
pub(in crate::http) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}

/// Milliseconds as Unix seconds with at most three decimals.
pub(in crate::http) fn seconds(ms: i64) -> Value {
    if ms % 1000 == 0 { Value::from(ms / 1000) } else { Value::from(ms as f64 / 1000.0) }
}

pub(in crate::http) async fn unknown(uri: Uri) -> Refusal {
    let known = "routes are api/v1/catalog, sources, fleet, series, query, figure, export, record, runs, findings, \
        changed, processes, kernels, markers, cells, doctor, uplink and live";
    Refusal::new(StatusCode::NOT_FOUND, format!("there is no {}; {known}", uri.path()))
}

/// 404: there is no such run for who asks.
fn unknown_run(id: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("there is no run {id:?}; api/v1/runs lists them"))
}

fn range(range: catalog::Range) -> Value {
    match range {
        catalog::Range::Fixed(from, to) => object!([from, to]),
        catalog::Range::FromZero => object!("from_zero"),
        catalog::Range::Fit => object!("fit"),
    }
}

/// Items of a list that are made at once.
const ITEMS_AT_ONCE: usize = 100;

/// A list behind what it begins with, streamed.
async fn list(
    limits: &AnswerLimits,
    begin: String,
    items: impl FnMut() -> Option<Vec<Value>> + Send + 'static,
) -> Result<Response<Body>, Refusal> {
    Ok(stream(limits.lists.take()?, "application/json", listed(begin, items)).await)
}

/// Parts of `0..all` one after another, [`ITEMS_AT_ONCE`] at a time.
fn some(all: usize) -> impl FnMut() -> Option<Range<usize>> {
    let mut next = 0;
    move || {
        let part = next..all.min(next + ITEMS_AT_ONCE);
        next = part.end;
        (!part.is_empty()).then_some(part)
    }
}

pub(in crate::http) async fn catalog(State(app): State<Arc<App>>, asker: Asker) -> Result<Response<Body>, Refusal> {
    let catalog = asker.reader(&app).catalog();
    let charts: HashMap<String, String> =
        catalog.layout.charts.iter().map(|chart| (chart.id.clone(), chart.section.clone())).collect();
    let mut part = some(catalog.metrics.len());
    let items = move || {
        let shown = catalog.metrics[part()?].iter().filter(|metric| !metric.tag.is_empty());
        let one = |m: &Metric| {
            object!({
                "tag": m.tag, "aliases": m.aliases, "title": m.title, "help": m.help, "unit": m.unit.name(),
                "kind": m.kind, "range": range(m.range), "chart": m.chart, "section": charts.get(&m.chart),
            })
        };
        Some(shown.map(one).collect())
    };
    list(&app.answers, "{\"metrics\":[".into(), items).await
}

/// `?at=TIME`: the largest users of CPU and memory at that time; without it the newest table, whole. `?source=NAME`: those
/// of that machine, whose agent is asked; without it of the first that is read here.
pub(in crate::http) async fn processes(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let at = params.instant("at", app.live.clock.wall())?;
    let sources = named(&app, &asker, &params).await?;
    let here = |source: &&Arc<Source>| app.live.source(source.id).processes.newest().is_some();
    let Some(source) = sources.iter().find(here).or(sources.first().filter(|_| sources.len() == 1)) else {
        let (status, sentence) = match app.hub.is_some() && sources.len() > 1 {
            true => (StatusCode::BAD_REQUEST, "the machine is missing: name it with source=NAME"),
            false => (
                StatusCode::SERVICE_UNAVAILABLE,
                "there is no process table yet; the first one follows within seconds if this system has one",
            ),
        };
        return Err(Refusal::new(status, sentence));
    };
    let table = app.processes(source.id, at).await?;
    let with_arguments = asker.sees_arguments(&app, &source.key).await;
    let (t, total, whole) = (seconds(table.t), table.total, table.whole);
    let mut part = some(table.rows.len());
    let items = move || Some(table.rows[part()?].iter().map(|row| process(row, with_arguments)).collect());
    list(&app.answers, format!("{{\"t\":{t},\"total\":{total},\"whole\":{whole},\"processes\":["), items).await
}

/// The sources that a question names by `source=`; all, where it names none.
async fn named(app: &App, asker: &Asker, params: &Params) -> Result<Vec<Arc<Source>>, Refusal> {
    let names: Vec<String> = params.last("source").into_iter().map(str::to_string).collect();
    let names = asker.sources(app, names).await;
    fitting(&asker.reader(app).sources(), &names).map_err(no_source)
}

/// 404: no source that who asks sees is called so. One of another team is answered like one that was never there.
pub(in crate::http) fn no_source(refused: crate::export::Refused) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, refused.to_string())
}

fn process(p: &Process, with_arguments: bool) -> Value {
    let mut row = object!({
        "pid": p.pid, "parent": p.parent, "user": p.user, "name": p.name, "cpu": p.cpu, "rss": p.rss,
        "threads": p.threads, "watched": p.watched, "read": p.read, "written": p.written,
        "args": Some(&p.args).filter(|args| with_arguments && !args.is_empty()),
        "container": Some(&p.container).filter(|c| !c.is_empty()), "gpu_memory": p.gpu_memory, "gpu_share": p.gpu_share,
    });
    // What could not be read is left out.
    row.as_object_mut().expect("made above").retain(|_, value| !value.is_null());
    row
}

pub(in crate::http) async fn sources(State(app): State<Arc<App>>, asker: Asker) -> Result<Response<Body>, Refusal> {
    let (index, live) = (asker.reader(&app).index(), app.live.clone());
    let mut part = some(index.len());
    let items = move || Some(index[part()?].iter().map(|entry| source(&live, entry)).collect());
    list(&app.answers, "{\"sources\":[".into(), items).await
}

/// A source; of its link what is known.
fn source(live: &Live, entry: &IndexEntry) -> Value {
    let texts = |all: &[(String, String)]| -> Map<String, Value> {
        all.iter().map(|(word, text)| (word.clone(), Value::from(text.as_str()))).collect()
    };
    let figures = live.source(entry.id).figures();
    let (facts, last, series, retention) = {
        let store = live.store();
        let facts = store.source(entry.id).map(|(info, _)| texts(&info.facts));
        let last = store.state(entry.id).filter(|state| state.seq() > 0).map(|state| seconds(state.t()));
        (facts, last, store.series_alive(entry.id), store.retention(entry.id).min(live.retention))
    };
    let mut one = object!({
        "id": entry.id, "key": entry.key, "name": entry.name, "interval": seconds(entry.interval), "facts": facts,
        "last": last, "state": entry.state.word(), "since": seconds(entry.since), "labels": texts(&entry.labels),
        "series": series, "retention": seconds(retention),
    });
    let ms = |ms: u64| seconds(i64::try_from(ms).unwrap_or(i64::MAX));
    let refused = || figures.refused.iter().map(|(cause, count)| (cause.clone(), Value::from(*count)));
    let filling = match entry.state {
        Standing::Filling { missing, rate } => Some((seconds(missing), number(rate))),
        _ => None,
    };
    let known = [
        ("why", entry.state.why().map(Value::from)),
        ("missing_s", filling.clone().map(|(missing, _)| missing)),
        ("fill_rate", filling.map(|(_, rate)| rate)),
        ("behind_s", figures.behind_ms.map(ms)),
        ("skew_s", figures.skew_ms.map(seconds)),
        ("version", figures.version.map(Value::from)),
        ("host", figures.host.map(Value::from)),
        ("refused", (!figures.refused.is_empty()).then(|| Value::Object(refused().collect()))),
    ];
    let fields = one.as_object_mut().expect("made above");
    fields.extend(known.into_iter().filter_map(|(word, value)| Some((word.to_string(), value?))));
    one
}

/// Every family of every source once, with the source's name. `?source=NAME`: of that machine, whose agent is asked.
pub(in crate::http) async fn doctor(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let sources = named(&app, &asker, &params).await?;
    let asked = match (&app.hub, &sources[..], params.last("source")) {
        (Some(hub), [one], Some(_)) if hub.ingest.has_agent(one.id) => match hub.ingest.examine(one.id).await {
            // What it said last stays.
            Err(NoAnswer::Unlinked) => None,
            told => Some(told?),
        },
        _ => None,
    };
    let (mut sources, mut asked, live) = (sources.into_iter(), asked, app.live.clone());
    let items = move || {
        let source = sources.next()?;
        let own = asked.take().unwrap_or_else(|| live.store().checks(source.id).0.to_vec());
        Some(checks(&source.name, own))
    };
    list(&app.answers, "{\"checks\":[".into(), items).await
}

fn checks(name: &str, own: Vec<Check>) -> Vec<Value> {
    let all = crate::doctor::complete(own).into_iter().map(|check| {
        let mut check = serde_json::to_value(check).expect("a check is text and lists of it");
        check["source"] = Value::from(name);
        check
    });
    all.collect()
}
