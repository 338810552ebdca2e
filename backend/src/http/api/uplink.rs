//! `GET /api/v1/uplink`: how the links to hubs do.

use super::seconds;
use crate::http::{App, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use serde_json::{Value, json as object};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use stream::live::{Live, UplinkState};

pub(in crate::http) async fn get(State(app): State<Arc<App>>) -> Response<Body> {
    let hubs: Vec<Value> = app.live.uplinks().iter().map(|link| one(&app.live, link)).collect();
    json(StatusCode::OK, &object!({ "version": env!("CARGO_PKG_VERSION"), "hubs": hubs }))
}

/// A link; what is not known yet is left out.
fn one(live: &Live, link: &UplinkState) -> Value {
    let (standing, lag, counts) = (link.standing(), live.lag(link), &link.counts);
    let mut one = object!({
        "hub": link.hub, "state": standing.word, "why": standing.why, "since": seconds(standing.since),
        "name": standing.name, "source": standing.source,
        "behind_s": lag.unsent.map(seconds), "missing_s": lag.unconfirmed.map(seconds),
        "links": counts.links.load(Relaxed), "failures": counts.failures.load(Relaxed),
        "ticks": counts.ticks.load(Relaxed), "skipped": counts.skipped.load(Relaxed),
        "bytes": counts.bytes.load(Relaxed), "fills": counts.fills.load(Relaxed),
        "fill_bytes": counts.fill_bytes.load(Relaxed),
    });
    one.as_object_mut().expect("made above").retain(|_, value| !value.is_null());
    one
}
