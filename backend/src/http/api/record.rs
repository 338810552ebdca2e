//! `GET /api/v1/record`: a span of all machines as one file, which `watchglass replay` and any page open.

use super::params::Params;
use crate::http::admit::Asker;
use crate::http::{App, Refusal};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use std::sync::Arc;
use stream::recording::{Nothing, Recorder};

pub(in crate::http) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    params: Params,
) -> Result<Response<Body>, Refusal> {
    let now = app.live.clock.wall();
    let from = params.instant("from", now)?.unwrap_or(i64::MIN);
    let to = params.instant("to", now)?.unwrap_or(now);
    if from > to {
        return Err(Refusal::bad("from is later than to"));
    }
    asker.takes(&app, "data.record", "all machines", (from, to)).await?;
    let slot = app.answers.recordings.take()?;
    let sources = asker.reader(&app).sources();
    let recorder = Recorder::new(&app.live.store(), &sources, from, to, app.live.provenance.simulated);
    let recorder = match recorder {
        Ok(recorder) => recorder.seen_by(&asker.scope),
        Err(Nothing) => {
            let sentence = "there is no data between from and to; leave them out to record everything";
            return Err(Refusal::new(StatusCode::NOT_FOUND, sentence));
        }
    };
    // No thread is held while the client reads: each chunk is made after the one before was sent.
    let body = futures_util::stream::unfold(Some((recorder, slot)), |state| async move {
        let (mut recorder, slot) = state?;
        let made = slot.blocking(move || (recorder.piece(), recorder)).await;
        match made {
            Ok((Ok(Some(bytes)), recorder)) => Some((Ok(Bytes::from(bytes)), Some((recorder, slot)))),
            Ok((Ok(None), _)) => None,
            Ok((Err(error), _)) => {
                tracing::error!(%error, "a recording broke off");
                Some((Err(error), None))
            }
            Err(_) => Some((Err(std::io::Error::other("the recording was aborted; see the log")), None)),
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    // The page names the file, as all files that it saves.
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    Ok(response)
}
