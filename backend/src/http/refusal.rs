//! The response to a refused request: a status, and one sentence with the action to take.

use super::json;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use fleet::ingest::NoAnswer;
use shared::session::Problem;
use std::time::Duration;
use team::accounts::Denied;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Status of a client or server error, 400 to 599.
    pub status: StatusCode,
    /// One sentence with the action to take.
    pub message: String,
    /// The step that a page requires of its user first.
    asks: Asks,
    /// Time to wait before a retry.
    again_in: Option<Duration>,
}

/// The step required before a request is repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asks {
    #[default]
    Nothing,
    SignIn,
    Again,
}

impl Refusal {
    /// A refusal with a status of a client or server error.
    pub fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        Refusal { status, message: sentence.into(), asks: Asks::Nothing, again_in: None }
    }

    /// 400: the request is invalid.
    pub fn bad(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    /// 401: nobody is signed in.
    pub fn sign_in() -> Self {
        Refusal {
            asks: Asks::SignIn,
            ..Self::new(StatusCode::UNAUTHORIZED, "sign in first, or send a key: Authorization: Bearer wg_...")
        }
    }

    /// The same as a page, for a person at a browser. It has no style and no script, because nothing else of this server
    /// is open to that person.
    pub fn page(&self) -> Response<Body> {
        let mut sentence = self.message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        if let Some(first) = sentence.get(..1) {
            sentence.replace_range(..1, &first.to_ascii_uppercase());
        }
        let status = self.status.as_u16();
        let text = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Watchglass: access refused</title>\
             <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
             </head><body><h1>Watchglass refused this request</h1><p>{sentence}.</p><p>Status {status}.</p></body></html>\n"
        );
        Response::builder()
            .status(self.status)
            .header(header::CONTENT_TYPE, "text/html; charset=utf-8")
            .body(Body::from(text))
            .expect("these headers are valid")
    }

    /// Sets the time to wait before a retry.
    pub fn again_in(self, wait: Duration) -> Self {
        Refusal { again_in: Some(wait), ..self }
    }
}

/// Whether a request asks for a page, as a browser does when a person opens an address.
pub fn wants_page(headers: &HeaderMap) -> bool {
    let names_html = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("text/html"));
    headers.get_all(header::ACCEPT).iter().any(names_html)
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let status = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let asks = match (denied.asks_sign_in(), denied.asks_again()) {
            (true, _) => Asks::SignIn,
            (_, true) => Asks::Again,
            _ => Asks::Nothing,
        };
        Refusal { asks, again_in: denied.retry_after(), ..Self::new(status, denied.to_string()) }
    }
}

impl From<NoAnswer> for Refusal {
    fn from(none: NoAnswer) -> Self {
        let status = match none {
            NoAnswer::Late => StatusCode::GATEWAY_TIMEOUT,
            NoAnswer::Unlinked | NoAnswer::Busy | NoAnswer::Nothing | NoAnswer::HubAway => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        Self::new(status, none.to_string())
    }
}

impl From<Refusal> for Response<Body> {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, message, asks, again_in } = refusal;
        let problem = Problem { error: message, sign_in: asks == Asks::SignIn, again: asks == Asks::Again };
        let mut response = json(status, &problem);
        if let Some(wait) = again_in {
            // Whole seconds, rounded up.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        self.into()
    }
}
