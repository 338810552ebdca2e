//! `/api/v1/teams/T/join`: the keys by which machines join.

use crate::http::admit::Asker;
use crate::http::body::Json;
use crate::http::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Response, StatusCode};
use shared::session::{Joined, Joins, NewJoin, Secret};
use std::sync::Arc;

pub(in crate::http) async fn list(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
) -> Result<Response<Body>, Refusal> {
    let joins = app.hub()?.accounts.joins(asker.principal()?, &team).await?;
    Ok(json(StatusCode::OK, &Joins { joins }))
}

pub(in crate::http) async fn create(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(team): Path<String>,
    Json(body): Json<NewJoin>,
) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    let key = hub.accounts.new_join(asker.principal()?, &team, &body).await?;
    let line = Secret::new(line(&hub.public, hub.unencrypted, &key.key, key.ends.is_some()));
    Ok(json(StatusCode::CREATED, &Joined { id: key.id, key: key.key, line }))
}

pub(in crate::http) async fn end(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path((team, id)): Path<(String, String)>,
) -> Result<Response<Body>, Refusal> {
    app.hub()?.accounts.end_join(asker.principal()?, &team, &id).await?;
    Ok(json(StatusCode::OK, &serde_json::json!({ "id": id })))
}

/// What a machine is started with to join. Arguments are seen by every user of it, so a key without an end stands in a file.
pub fn line(public: &crate::config::PublicUrl, unencrypted: bool, key: &Secret, ends: bool) -> String {
    let key = if ends { format!("--key {}", key.reveal()) } else { "--key-file FILE".into() };
    let plain = if unencrypted { " --plain-http" } else { "" };
    format!("watchglass agent --hub {public} {key}{plain}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Command, parse};

    #[test]
    fn a_key_without_an_end_is_in_no_line() {
        let args = ["watchglass", "hub", "--public-url", "https://watch.example.org"].map(std::ffi::OsString::from);
        let parsed = parse(args, &|_| None, &|_| Err(std::io::ErrorKind::NotFound.into())).expect("a hub");
        let Command::Hub(config) = parsed else { panic!("a hub") };
        let (public, key) = (config.public_url.expect("given"), Secret::new("wg_j_secret"));
        assert_eq!(
            line(&public, false, &key, true),
            "watchglass agent --hub https://watch.example.org/ --key wg_j_secret"
        );
        assert!(!line(&public, false, &key, false).contains("wg_j_secret"));
        assert!(line(&public, true, &key, true).ends_with(" --plain-http"));
    }
}
