//! `GET /api/v1/*`: the catalog, the machines, the processes and the state of the server, as JSON.

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
pub(in crate::http) mod now;
mod older;
mod params;
pub(in crate::http) mod query;
pub(in crate::http) mod record;
pub(in crate::http) mod report;
pub(in crate::http) mod reports;
pub(in crate::http) mod runs;
pub(in crate::http) mod series;
mod submit;
pub(in crate::http) mod uplink;
pub(in crate::http) mod values;

pub(in crate::http) use self::named as named_sources;
pub(in crate::http) use answer::AnswerLimits;
pub use metrics::reference as counters;
pub(in crate::http) use params::{Params, parameters};
pub(in crate::http) use runs::run as listed_run;

use crate::export::fitting;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use ::fleet::ingest::NoAnswer;
use answer::{listed, stream};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode, Uri};
use serde::Serialize;
use shared::answer::series::{
    CheckList, CheckRow, MetricList, MetricRow, ProcessList, ProcessRow, SourceList, SourceRow,
};
use shared::catalog::Metric;
use shared::connection_state::ConnectionState;
use shared::json::{Number, Seconds};
use shared::processes::Process;
use shared::wire::{Check, IndexEntry, Source};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use stream::live::Live;

pub(in crate::http) async fn unknown(uri: Uri) -> Refusal {
    let known = "routes are api/v1/catalog, sources, fleet, series, query, figure, export, record, runs, findings, \
        changed, processes, kernels, markers, values, cells, notes, doctor, uplink and live";
    Refusal::new(StatusCode::NOT_FOUND, format!("there is no {}; {known}", uri.path()))
}

/// 404: the caller sees no such run.
pub(in crate::http) fn unknown_run(id: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("there is no run {id:?}; api/v1/runs lists them"))
}

/// Items of a list per chunk.
const ITEMS_AT_ONCE: usize = 100;

/// A response whose last field is a list, streamed; `head` has an empty one.
async fn list<T: Serialize>(
    limits: &AnswerLimits,
    head: &impl Serialize,
    items: impl FnMut() -> Option<Vec<T>> + Send + 'static,
) -> Result<Response<Body>, Refusal> {
    Ok(stream(limits.lists.take()?, "application/json", listed(head, items)).await)
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
        let one = |m: &Metric| MetricRow {
            tag: m.tag.clone(),
            aliases: m.aliases.clone(),
            title: m.title.clone(),
            help: m.help.clone(),
            unit: m.unit,
            kind: m.kind,
            range: m.range.into(),
            chart: m.chart.clone(),
            section: charts.get(&m.chart).cloned(),
        };
        Some(shown.map(one).collect())
    };
    list(&app.answers, &MetricList::default(), items).await
}

/// `?at=TIME`: the largest users of CPU and memory at that time; without it the newest table, complete.
/// `?source=NAME`: those of that machine, requested from its agent; without it those of the first machine that is read
/// here.
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
    let head = ProcessList { t: Seconds(table.t), total: table.total, whole: table.whole, processes: Vec::new() };
    let mut part = some(table.rows.len());
    let items = move || Some(table.rows[part()?].iter().map(|row| process(row, with_arguments)).collect());
    list(&app.answers, &head, items).await
}

/// The sources that a request names by `source=`; all without it.
pub(in crate::http) async fn named(app: &App, asker: &Asker, params: &Params) -> Result<Vec<Arc<Source>>, Refusal> {
    let names: Vec<String> = params.last("source").into_iter().map(str::to_string).collect();
    let names = asker.sources(app, names).await;
    fitting(&asker.reader(app).sources(), &names).map_err(no_source)
}

/// 404: the caller sees no source of this name. Sources of another team get the same error as unknown ones.
pub(in crate::http) fn no_source(refused: crate::export::Refused) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, refused.to_string())
}

fn process(p: &Process, with_arguments: bool) -> ProcessRow {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    ProcessRow {
        pid: p.pid,
        parent: p.parent,
        user: p.user.clone(),
        name: p.name.clone(),
        cpu: p.cpu.map(f64::from),
        rss: p.rss,
        threads: p.threads,
        watched: p.watched,
        read: p.read.map(f64::from),
        written: p.written.map(f64::from),
        args: text(&p.args).filter(|_| with_arguments),
        container: text(&p.container),
        gpu_memory: p.gpu_memory,
        gpu_share: p.gpu_share.map(f64::from),
        gpus: p.gpus.clone(),
        started: p.started.map(Seconds),
        state: p.state.map(String::from),
    }
}

pub(in crate::http) async fn sources(State(app): State<Arc<App>>, asker: Asker) -> Result<Response<Body>, Refusal> {
    let (index, live) = (asker.reader(&app).index(), app.live.clone());
    let mut part = some(index.len());
    let items = move || Some(index[part()?].iter().map(|entry| source(&live, entry)).collect());
    list(&app.answers, &SourceList::default(), items).await
}

/// A source, with the known state of its link.
fn source(live: &Live, entry: &IndexEntry) -> SourceRow {
    let texts = |all: &[(String, String)]| all.iter().cloned().collect::<BTreeMap<_, _>>();
    let figures = live.source(entry.id).figures();
    let (facts, last, series, retention) = {
        let store = live.store();
        let facts = store.source(entry.id).map(|(info, _)| texts(&info.facts)).unwrap_or_default();
        let last = store.state(entry.id).filter(|state| state.seq() > 0).map(|state| Seconds(state.t()));
        (facts, last, store.series_alive(entry.id), store.retention(entry.id).min(live.retention))
    };
    let ms = |ms: u64| Seconds(i64::try_from(ms).unwrap_or(i64::MAX));
    let (missing_s, fill_rate) = match entry.state {
        ConnectionState::Filling { missing, rate } => (Some(Seconds(missing)), Some(Number(rate))),
        _ => (None, None),
    };
    SourceRow {
        id: entry.id,
        key: entry.key.clone(),
        name: entry.name.clone(),
        interval: Seconds(entry.interval),
        facts,
        last,
        state: entry.state.as_str().into(),
        since: Seconds(entry.since),
        labels: texts(&entry.labels),
        series: series as u64,
        retention: Seconds(retention),
        why: entry.state.why().map(String::from),
        missing_s,
        fill_rate,
        behind_s: figures.behind_ms.map(ms),
        skew_s: figures.skew_ms.map(Seconds),
        version: figures.version,
        host: figures.host,
        refused: figures.refused.into_iter().collect(),
    }
}

/// Every family of every source once, with the source's name. `?source=NAME`: only that machine, requested from its
/// agent.
pub(in crate::http) async fn doctor(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let sources = named(&app, &asker, &params).await?;
    let asked = match (&app.hub, &sources[..], params.last("source")) {
        (Some(hub), [one], Some(_)) if hub.ingest.has_agent(one.id) => match hub.ingest.examine(one.id).await {
            // The last known report stays.
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
    list(&app.answers, &CheckList::default(), items).await
}

fn checks(name: &str, own: Vec<Check>) -> Vec<CheckRow> {
    let row = |check| CheckRow { check, source: name.into() };
    crate::doctor::complete(own).into_iter().map(row).collect()
}
