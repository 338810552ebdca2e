//! The answer to a request that is not granted: a status, and one sentence that says what to do.

use super::error;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;

/// A request that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Of the client or of the server, 400 to 599.
    pub status: StatusCode,
    /// One sentence that says what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal with a status of the client's or the server's fault.
    pub fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        Refusal { status, message: sentence.into() }
    }

    /// 400: the question is wrong.
    pub fn bad(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }
}

impl From<Refusal> for Response<Body> {
    fn from(refusal: Refusal) -> Self {
        error(refusal.status, refusal.message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        self.into()
    }
}
