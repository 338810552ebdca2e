//! `GET /api/v1/record`: a span of all machines as one file, which `watchglass replay` and any page open.

use super::answer::apart;
use super::params::Params;
use super::{App, error};
use crate::config::when;
use crate::recording::{Nothing, Recorder};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Recordings that are being made. Each holds a block of one machine.
static OPEN: Semaphore = Semaphore::const_new(2);

pub(super) async fn get(State(app): State<Arc<App>>, params: Params) -> Response<Body> {
    let now = app.hub.clock.wall();
    let (mut from, mut to) = (i64::MIN, now);
    for (key, value) in params.all() {
        let at = match key {
            "from" => &mut from,
            "to" => &mut to,
            other => return Params::unknown(other, "there are from and to"),
        };
        match when(value) {
            Ok(when) => *at = when.at(now),
            Err(why) => return error(StatusCode::BAD_REQUEST, format!("{key} {why}")),
        }
    }
    if from > to {
        return error(StatusCode::BAD_REQUEST, "from is later than to");
    }
    let Ok(open) = OPEN.try_acquire() else {
        return error(StatusCode::TOO_MANY_REQUESTS, "two recordings are being made; try again when one has ended");
    };
    let recorder = match Recorder::new(&app.hub.store(), from, to, app.hub.simulated) {
        Ok(recorder) => recorder,
        Err(Nothing) => {
            return error(
                StatusCode::NOT_FOUND,
                "nothing was stored between from and to; leave them out to record all",
            );
        }
    };
    // No thread is held while the reader is waited for: each piece is made when the one before has gone.
    let body = futures_util::stream::unfold(Some((recorder, open)), |state| async move {
        let (mut recorder, open) = state?;
        let made = apart(move || (recorder.piece(), recorder)).await;
        match made {
            Ok((Ok(Some(bytes)), recorder)) => Some((Ok(Bytes::from(bytes)), Some((recorder, open)))),
            Ok((Ok(None), _)) => None,
            Ok((Err(error), _)) => {
                tracing::error!(%error, "a recording broke off");
                Some((Err(error), None))
            }
            Err(_) => Some((Err(std::io::Error::other("the recording broke off; the log says why")), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers
        .insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"recording.watchglass\""));
    response
}
