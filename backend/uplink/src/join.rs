//! Join: a POST over the same connection path as the link, which exchanges a join key for the key of one machine.

use super::reply::{Reply, authorization, moved, pause};
use super::road::{Road, RoadEnd, STEP_TIMEOUT, Stage, no_web_server};
use crate::settings::HubUrl;
use api::Operation;
use shared::enrol::{EnrolRequest, Enrolled};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Maximum size of a response, bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// A hub's response.
pub(super) enum Joining {
    /// The machine is a source of the hub.
    Joined(Enrolled),
    /// An admin must approve the machine first.
    Pending,
    /// The hub refuses the machine: the status, a sentence, and the pause before a retry.
    Refused {
        /// HTTP status.
        status: u16,
        /// The hub's sentence.
        why: String,
        /// The pause that it requests.
        wait: Option<Duration>,
    },
}

/// Requests to become a source.
///
/// # Errors
/// The connection failed before a response.
pub(super) async fn join(road: &Road, url: &HubUrl, key: &str, request: &EnrolRequest) -> Result<Joining, RoadEnd> {
    let lost = |why: String| RoadEnd::new(Stage::Upgrade, why);
    let body = serde_json::to_vec(request).map_err(|error| lost(error.to_string()))?;
    let path = format!("{}{}", url.base.trim_end_matches('/'), Operation::EnrollAgent.path());
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: watchglass/{}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n",
        url.authority(),
        env!("CARGO_PKG_VERSION"),
        body.len(),
    );
    head += &format!("Authorization: {}\r\n\r\n", authorization(key));
    let mut wire = road.connect(url, &mut Vec::new()).await?;
    let asked = async {
        wire.write_all(&[head.as_bytes(), &body].concat()).await?;
        wire.flush().await?;
        let mut answer = Vec::new();
        // A peer that closes TLS without close_notify has still sent its complete response.
        match wire.take(MAX_ANSWER).read_to_end(&mut answer).await {
            Err(error) if answer.is_empty() => Err(error),
            _ => Ok(answer),
        }
    };
    let late = || lost(format!("no response within {} s", STEP_TIMEOUT.as_secs()));
    let answer = timeout(STEP_TIMEOUT, asked).await.map_err(|_| late())?.map_err(|error| lost(error.to_string()))?;
    let answer = Reply::read(&answer).ok_or_else(|| lost(no_web_server(url)))?;
    if let Some(to) = answer.header("location").filter(|_| (300..400).contains(&answer.status)) {
        return Err(lost(moved(to)));
    }
    let said = || {
        let said: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
        let said = said.and_then(|said| said["error"].as_str().map(str::to_string));
        said.unwrap_or_else(|| format!("the hub returns {}", answer.status))
    };
    Ok(match answer.status {
        200 | 201 => Joining::Joined(
            serde_json::from_slice(&answer.body).map_err(|_| lost("the response is not that of a hub".into()))?,
        ),
        202 => Joining::Pending,
        404 if answer.header("content-type").is_none_or(|kind| !kind.contains("json")) => {
            return Err(lost("there is no Watchglass hub at this address (404)".into()));
        }
        status => {
            let wait = answer.header("retry-after").and_then(pause);
            Joining::Refused { status, why: said(), wait }
        }
    })
}
