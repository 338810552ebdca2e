//! The parameters of a request. This is the only code that reads a query string. It refuses names that the operation
//! does not take, whether its handler reads them or not.

use crate::config::{asked, nearest};
use crate::http::Refusal;
use ::api::Operation;
use ::api::parameter::TO;
use axum::body::Body;
use axum::extract::{FromRequestParts, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use axum::middleware::Next;
use axum::response::IntoResponse;

/// Maximum number of parameters of a request, repeated ones included: each pattern is matched against all series.
const MAX_PARAMETERS: usize = 64;

/// Names and values of a request, in the order given. Every name is one that the operation takes.
#[derive(Clone)]
pub(in crate::http) struct Params(Vec<(String, String)>);

impl Params {
    /// The values of a parameter that may be repeated.
    pub fn each(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that is not repeated; of a repeated one the last counts.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.each(name).last()
    }

    /// The value of a parameter that is an instant, milliseconds since the Unix epoch; `now` is the base of relative
    /// ones. A day means its begin, and for `to` its end.
    ///
    /// # Errors
    /// 400: it is no instant.
    pub fn instant(&self, name: &str, now: i64) -> Result<Option<i64>, Refusal> {
        // Every repeated value must be an instant, though only the last counts.
        self.each(name).try_fold(None, |_, text| match asked(text, now) {
            Ok(at) => Ok(Some(if name == TO.name { at.to } else { at.from })),
            Err(why) => Err(Refusal::bad(format!("{name}: {why}"))),
        })
    }
}

/// Refuses too many parameters, and names that the operation does not take.
fn checked(operation: Operation, all: Vec<(String, String)>) -> Result<Params, String> {
    if all.len() > MAX_PARAMETERS {
        return Err(format!(
            "{} parameters are too many; a request has at most {MAX_PARAMETERS}: send several, or write * for any \
            text",
            all.len()
        ));
    }
    let known: Vec<&str> = operation.row().parameters.iter().map(|parameter| parameter.name).collect();
    match all.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        None => Ok(Params(all)),
        Some((unknown, _)) if known.is_empty() => {
            Err(format!("there is no parameter {unknown:?}; this request takes none"))
        }
        Some((unknown, _)) => Err(format!("there is no parameter {unknown:?}{}", nearest(unknown, &known))),
    }
}

fn read(operation: Operation, request: &Request) -> Result<Params, Refusal> {
    let read = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let Query(all) = read.map_err(|why| Refusal::bad(format!("{why}; write them as ?NAME=VALUE&NAME=VALUE")))?;
    // The named share link is read by the authentication.
    let all = all.into_iter().filter(|(name, _)| name != "share").collect();
    checked(operation, all).map_err(Refusal::bad)
}

/// Passes the parameters of a request to the handler of its operation.
pub(in crate::http) async fn parameters(
    State(operation): State<Operation>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    if operation.takes_any() {
        return next.run(request).await;
    }
    match read(operation, &request) {
        Ok(params) => {
            request.extensions_mut().insert(params);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        // Every handler is behind `parameters`, which adds them.
        let missing =
            || Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "nobody read the parameters; this is a fault of ours");
        parts.extensions.remove::<Params>().ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(operation: Operation, name: &str) -> String {
        checked(operation, vec![(name.into(), "1".into())]).err().unwrap_or_default()
    }

    #[test]
    fn a_name_that_an_operation_does_not_take_is_refused_with_the_nearest() {
        let record = |name: &str| refusal(Operation::RecordSamples, name);
        assert_eq!(record("from"), "");
        assert_eq!(record("form"), "there is no parameter \"form\"; did you mean from?");
        assert_eq!(record("tag"), "there is no parameter \"tag\"; known are from, to");
        assert!(refusal(Operation::QuerySamples, "sauce").ends_with("did you mean source?"));
        assert_eq!(
            refusal(Operation::ListSources, "limit"),
            "there is no parameter \"limit\"; this request takes none"
        );
        assert_eq!(refusal(Operation::ListRuns, "tag"), "");
    }

    #[test]
    fn of_a_repeated_one_the_last_counts_and_each_must_be_right() {
        let params = |values: [&str; 2]| Params(values.map(|value| ("at".to_string(), value.to_string())).to_vec());
        assert_eq!(params(["10", "20"]).instant("at", 0).ok(), Some(Some(20_000)));
        assert_eq!(params(["10", "20"]).instant("to", 0).ok(), Some(None));
        assert!(params(["soon", "20"]).instant("at", 0).is_err());
    }
}
