//! `watchglass doctor`: whether the other server accepts samples, and answers queries.

use super::CHECK;
use super::message::WriteRequest;
use super::server::{SendError, Server};
use crate::config::RemoteWrite;
use shared::wire::{Check, CheckState};
use std::sync::Arc;
use stream::clock::System;

/// Sends a request without samples, and a query without data. Blocks until both are answered.
pub fn examine(settings: RemoteWrite) -> Check {
    let tried = [Some(&settings.url), settings.read_url.as_ref()].into_iter().flatten().map(|url| client::bare(url));
    let tried = tried.collect();
    let server = Server::new(settings, Arc::new(System));
    let check = |state, found: &str, reason: String, remedy: &str| Check {
        id: CHECK.into(),
        state,
        tried,
        found: found.into(),
        reason,
        remedy: remedy.into(),
    };
    let found = "samples are also sent to another server";
    if let Err(SendError::Refused(reason) | SendError::Later { reason, .. }) =
        server.write(&server.pack(&WriteRequest::default()))
    {
        let reason = format!("it does not accept samples: {reason}");
        let remedy = "check that the server runs, and correct url and headers of [remote_write]";
        return check(CheckState::Failed, found, reason, remedy);
    }
    if !server.reads() {
        return check(CheckState::Ok, "the server accepts samples", String::new(), "");
    }
    match server.read("/api/v1/query", &[("query", "vector(1)".into())]) {
        Ok(_) => check(CheckState::Ok, "the server accepts samples and queries", String::new(), ""),
        Err(why) => {
            let reason = format!("it accepts samples, but older history cannot be read back: {why}");
            let remedy = "correct read_url of [remote_write]: the address below which /api/v1/query is";
            check(CheckState::Failed, found, reason, remedy)
        }
    }
}
