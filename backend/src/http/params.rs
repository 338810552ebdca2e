//! The parameters of a question.

use super::error;
use axum::body::Body;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};

/// The most parameters of one question, repeated ones too: each is looked for among all series.
pub(super) const MOST: usize = 64;

/// Names and values, in the order given.
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The answer to a parameter that the path does not know; `known` says what there is.
    pub fn unknown(key: &str, known: &str) -> Response<Body> {
        error(StatusCode::BAD_REQUEST, format!("unknown parameter {key:?}; {known}"))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let read = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Query(all) =
            read.map_err(|why| error(StatusCode::BAD_REQUEST, format!("{why}; write them as ?NAME=VALUE&NAME=VALUE")))?;
        if all.len() > MOST {
            let sentence = format!(
                "{} parameters are too many; one question has at most {MOST}: ask several, or write * for any text",
                all.len()
            );
            return Err(error(StatusCode::BAD_REQUEST, sentence));
        }
        Ok(Params(all))
    }
}
