//! `GET /api/v1/figure`: a static picture of series, in SVG.

use super::answer::history_slot;
use super::params::Params;
use super::query::{asked, refusal};
use crate::export::{Selection, Wanted, select};
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use crate::svg_chart::{self, Paper, SvgChart};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use charts::axis;
use shared::catalog::Kind;
use shared::rollup::Bucket;
use shared::series::SeriesDef;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stream::live::Reader;
use viewer::names::names;

/// Default, minimum and maximum size, pixels.
const WIDTH: (u32, u32, u32) = (720, 240, 4_096);
const HEIGHT: (u32, u32, u32) = (316, 120, 2_048);
/// Maximum number of series of one figure.
const MAX_SERIES: usize = 1_024;

pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Response<Body>> {
    let ask = asked(&app, &asker, &params).await?;
    let paper = paper(&params)?;
    let slot = history_slot(&app, &asker)?;
    let reader = asker.reader(&app);
    let theirs = reader.clone();
    let selection = slot.blocking(move || select(&theirs, ask)).await?.map_err(refusal)?;
    let drawn = move || figure(&reader, &selection, paper).map(|figure| svg_chart::draw(&figure, paper));
    let mut response = Response::new(Body::from(slot.blocking(drawn).await??));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml"));
    Ok(response)
}

fn paper(params: &Params) -> Result<Paper, Refusal> {
    let pixels = |name: &str, (usual, least, most): (u32, u32, u32)| match params.last(name).map(str::parse::<u32>) {
        None => Ok(usual),
        Some(Ok(px)) if (least..=most).contains(&px) => Ok(px),
        Some(_) => Err(Refusal::bad(format!("{name} is a number of pixels from {least} to {most}"))),
    };
    let is_light = match params.last("theme") {
        None | Some("light") => true,
        Some("dark") => false,
        Some(other) => return Err(Refusal::bad(format!("theme is light or dark, not {other:?}"))),
    };
    Ok(Paper { size: (pixels("width", WIDTH)?, pixels("height", HEIGHT)?), is_light })
}

/// Reads the drawn series. All have one metric's unit, and a counter is drawn as its rate per second.
fn figure(reader: &Reader, selection: &Selection, paper: Paper) -> Result<SvgChart, Refusal> {
    let (ask, catalog, wanted) = (&selection.ask, &selection.catalog, &selection.wanted);
    let metric = |one: &Wanted| &catalog.metrics[usize::from(one.def.metric)];
    let Some(first) = wanted.first().map(metric) else {
        let why = "no series of this tag has samples in this span; check the tag, or use another span";
        return Err(Refusal::bad(why));
    };
    if wanted.len() > MAX_SERIES {
        return Err(Refusal::bad(format!("{} series are more than {MAX_SERIES}; select fewer", wanted.len())));
    }
    let kinds: BTreeSet<&str> = wanted.iter().map(|one| metric(one).unit.base().name()).collect();
    if kinds.len() > 1 || wanted.iter().any(|one| metric(one).kind != first.kind) {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        return Err(Refusal::bad(format!(
            "a figure has one axis, and these series are {}; select one tag",
            kinds.join(", ")
        )));
    }
    let is_counter = first.kind == Kind::Counter || ask.rate;
    let sources = reader.sources();
    let interval = sources.iter().filter(|s| wanted.iter().any(|one| one.source == s.id)).map(|s| s.interval).max();
    let interval = interval.unwrap_or(1_000).max(1);
    let step = ask.step.unwrap_or(0).max((ask.to - ask.from) / paper.columns()).max(interval);

    let mut by_source: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    wanted.iter().enumerate().for_each(|(at, one)| by_source.entry(one.source).or_default().push(at));
    let mut buckets: Vec<Vec<Bucket>> = vec![Vec::new(); wanted.len()];
    for (source, own) in by_source {
        let snapshot = reader.live().store().snapshot(source, ask.from, ask.to);
        let Some(snapshot) = snapshot else { continue };
        let ids: Vec<_> = own.iter().map(|at| wanted[*at].id).collect();
        for (at, read) in own.into_iter().zip(snapshot.buckets(&ids, step, is_counter)) {
            buckets[at] = if is_counter { rates(&read) } else { read };
        }
    }

    let defs: Vec<SeriesDef> = wanted.iter().map(|one| one.def.clone()).collect();
    let hosts: BTreeSet<&str> = wanted.iter().map(|one| &*one.host).collect();
    let named = names(catalog, &defs, &(0..defs.len() as u32).collect::<Vec<_>>());
    let several = hosts.len() > 1;
    let series = named.into_iter().zip(wanted).zip(buckets).map(|((name, one), buckets)| {
        let name_of = if several { format!("{} {}", one.host, name.full) } else { name.full };
        (name_of, name.hue, buckets)
    });
    let titles: BTreeSet<&str> = wanted.iter().map(|one| metric(one).title.as_str()).collect();
    let hosts = if hosts.len() > 3 {
        format!("{} machines", hosts.len())
    } else {
        hosts.into_iter().collect::<Vec<_>>().join(", ")
    };
    let (day, clock) = (axis::date(ask.from.div_euclid(86_400_000)), |t| axis::clock(t, true));
    Ok(SvgChart {
        title: titles.into_iter().collect::<Vec<_>>().join(", "),
        words: format!("{hosts}, {day} {}–{} UTC", clock(ask.from), clock(ask.to)),
        unit: if is_counter { first.unit.per_second() } else { first.unit },
        range: first.range,
        span: (ask.from, ask.to),
        interval,
        step,
        series: series.collect(),
    })
}

/// Rate of a counter per second between two steps; none if it fell, which is a reset.
fn rates(buckets: &[Bucket]) -> Vec<Bucket> {
    let rate = |pair: &[Bucket]| {
        let (gained, seconds) = (pair[1].last - pair[0].last, (pair[1].t - pair[0].t) as f64 / 1_000.0);
        let rate = gained / seconds;
        (gained >= 0.0).then_some(Bucket { t: pair[1].t, min: rate, max: rate, mean: rate, last: rate, count: 1 })
    };
    buckets.windows(2).filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_falls_has_no_rate_there() {
        let at = |t: i64, last: f64| Bucket { t: t * 1_000, min: last, max: last, mean: last, last, count: 1 };
        let rates = rates(&[at(0, 10.0), at(2, 30.0), at(3, 5.0), at(4, 6.0)]);
        assert_eq!(rates.iter().map(|r| (r.t, r.mean)).collect::<Vec<_>>(), [(2_000, 10.0), (4_000, 1.0)]);
    }
}
