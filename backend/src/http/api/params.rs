//! The parameters of a question. This is the only place that reads a query string; it knows which names each route takes,
//! and refuses all others with the nearest that there is.

use crate::config::{nearest, when};
use crate::http::Refusal;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

/// The routes that take parameters, and their names. What is no row here takes none and looks at none.
const NAMES: &[(&str, &[&str])] = &[
    ("/api/v1/series", &["match"]),
    ("/api/v1/query", &["run", "tag", "source", "from", "to", "step", "fn", "format"]),
    ("/api/v1/figure", &["run", "tag", "source", "from", "to", "step", "fn", "width", "height", "theme"]),
    ("/api/v1/export", &["run", "tag", "source", "from", "to", "step", "fn", "format"]),
    ("/report", &["format"]),
    ("/logs", &["from", "to", "rank", "stream", "text", "limit", "format"]),
    ("/api/v1/record", &["from", "to"]),
    (
        "/api/v1/runs",
        &["state", "project", "group", "job_type", "user", "source", "q", "from", "to", "before", "limit", "sums"],
    ),
    ("/api/v1/changed", &["from", "to", "source"]),
    ("/api/v1/findings", &["from", "to", "source", "kind", "active"]),
    ("/api/v1/fleet", &["row", "source", "from", "to", "step"]),
    ("/api/v1/processes", &["at", "source"]),
    ("/api/v1/kernels", &["source"]),
    ("/api/v1/markers", &["kernel", "kind", "run", "source", "from", "to"]),
    ("/api/v1/cells", &["kernel", "source", "from", "to"]),
    ("/api/v1/doctor", &["source"]),
    ("/api/v1/live", &["format", "source", "cursor"]),
    ("/api/v1/views", &["team"]),
    ("/api/v1/shares", &["team"]),
    ("/api/v1/rules", &["team"]),
    ("/api/v1/silences", &["team"]),
    ("/api/v1/channels", &["team"]),
    ("/api/v1/alerts", &["team", "state", "rule", "source", "run", "from", "to", "limit"]),
    ("/api/v1/usage", &["team", "by", "from", "to", "format"]),
    ("/api/v1/audit", &["team", "who", "action", "object", "from", "to", "before", "limit"]),
];

/// The most parameters of one question, repeated ones too: each pattern is looked for among all series.
const MAX_PARAMETERS: usize = 64;

/// Names and values of a question, in the order given. Every name is one that the route takes.
pub(in crate::http) struct Params(Vec<(String, String)>);

impl Params {
    /// The values of a parameter that may be repeated.
    pub fn each(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that is asked once; of a repeated one the last counts.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.each(name).last()
    }

    /// The value of a parameter that is an instant, milliseconds since the Unix epoch; `now` is what relative ones count from.
    ///
    /// # Errors
    /// 400: it is no instant.
    pub fn instant(&self, name: &str, now: i64) -> Result<Option<i64>, Refusal> {
        // Each of a repeated one must be an instant, though only the last counts.
        self.each(name).try_fold(None, |_, text| match when(text) {
            Ok(when) => Ok(Some(when.at(now))),
            Err(why) => Err(Refusal::bad(format!("{name}: {why}"))),
        })
    }
}

/// The parameters that a route takes; `path` may begin with the base path of the server.
fn names(path: &str) -> &'static [&'static str] {
    NAMES.iter().find(|(route, _)| path.ends_with(route)).map_or(&[], |(_, names)| names)
}

/// Refuses too many, and names that the route does not take.
fn checked(path: &str, all: Vec<(String, String)>) -> Result<Params, String> {
    if all.len() > MAX_PARAMETERS {
        return Err(format!(
            "{} parameters are too many; a request has at most {MAX_PARAMETERS}: send several, or write * for any \
            text",
            all.len()
        ));
    }
    let known = names(path);
    match all.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        Some((unknown, _)) => Err(format!("there is no parameter {unknown:?}{}", nearest(unknown, known))),
        None => Ok(Params(all)),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let read = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Query(all) = read.map_err(|why| Refusal::bad(format!("{why}; write them as ?NAME=VALUE&NAME=VALUE")))?;
        // Which link is meant is read where it is asked who may.
        let all = all.into_iter().filter(|(name, _)| name != "share").collect();
        checked(parts.uri.path(), all).map_err(Refusal::bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &str, name: &str) -> String {
        checked(path, vec![(name.into(), "1".into())]).err().unwrap_or_default()
    }

    #[test]
    fn a_name_that_a_route_does_not_take_is_refused_with_the_nearest() {
        assert_eq!(refusal("/api/v1/record", "from"), "");
        assert_eq!(refusal("/base/api/v1/record", "from"), "", "below a base path");
        assert_eq!(refusal("/api/v1/record", "form"), "there is no parameter \"form\" here; did you mean from?");
        assert_eq!(refusal("/api/v1/record", "tag"), "there is no parameter \"tag\"; known are from, to");
        assert!(refusal("/api/v1/query", "sauce").ends_with("did you mean source?"));
    }

    #[test]
    fn of_a_repeated_one_the_last_counts_and_each_must_be_right() {
        let params = |values: [&str; 2]| Params(values.map(|value| ("at".to_string(), value.to_string())).to_vec());
        assert_eq!(params(["10", "20"]).instant("at", 0).ok(), Some(Some(20_000)));
        assert_eq!(params(["10", "20"]).instant("to", 0).ok(), Some(None));
        assert!(params(["soon", "20"]).instant("at", 0).is_err());
    }
}
