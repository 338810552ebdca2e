//! `GET /api/v1/uplink`: state of the links to hubs.

use crate::http::{App, json};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use shared::answer::fleet::{UplinkList, UplinkRow};
use shared::json::Seconds;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use stream::live::{Live, UplinkState};

pub(in crate::http) async fn get(State(app): State<Arc<App>>) -> Response<Body> {
    let hubs = app.live.uplinks().iter().map(|link| one(&app.live, link)).collect();
    json(StatusCode::OK, &UplinkList { version: env!("CARGO_PKG_VERSION").into(), hubs })
}

/// A link; unknown values are absent.
fn one(live: &Live, link: &UplinkState) -> UplinkRow {
    let (status, lag, counts) = (link.status(), live.lag(link), &link.counts);
    UplinkRow {
        hub: link.hub.clone(),
        host: link.host.clone(),
        state: status.word.into(),
        why: status.why,
        since: Seconds(status.since),
        name: status.name,
        source: status.source,
        behind_s: lag.unsent.map(Seconds),
        missing_s: lag.unconfirmed.map(Seconds),
        links: counts.links.load(Relaxed),
        failures: counts.failures.load(Relaxed),
        ticks: counts.ticks.load(Relaxed),
        skipped: counts.skipped.load(Relaxed),
        bytes: counts.bytes.load(Relaxed),
        fills: counts.fills.load(Relaxed),
        fill_bytes: counts.fill_bytes.load(Relaxed),
    }
}
