//! Bodies of requests: JSON of a bounded size. No error repeats a value of one, since it may be a password.

use super::Refusal;
use super::strangers::Visitor;
use ::api::Carries;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::timeout;

/// Time for the whole of a body to arrive. The longest has 64 KiB.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a request.
pub(super) struct Json<T>(pub T);

/// Refuses what is not said to be JSON: a form of another site cannot say so without asking first.
pub(super) fn is_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let json = |value: &axum::http::HeaderValue| {
        let mime = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        mime.trim_ascii().eq_ignore_ascii_case(b"application/json")
    };
    match (types.next(), types.next()) {
        (Some(value), None) if json(value) => Ok(()),
        _ => Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send JSON, with Content-Type: application/json")),
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request<Body>, _: &S) -> Result<Self, Refusal> {
        let most = match request.extensions().get::<Carries>() {
            Some(Carries::Json(most)) => *most,
            _ => 0,
        };
        let large = || {
            let sentence = format!("the body of the request has more than {most} bytes");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
        };
        // What it says of itself spares us the reading; what it does not say is counted.
        let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if length.is_some_and(|length: u64| length > most as u64) {
            return Err(large());
        }
        let visitor = request.extensions().get::<Visitor>().cloned();
        let Ok(read) = timeout(BODY_TIMEOUT, to_bytes(request.into_body(), most)).await else {
            visitor.inspect(Visitor::is_late);
            let sentence =
                format!("the body of the request timed out after {} s; send it again", BODY_TIMEOUT.as_secs());
            return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, sentence));
        };
        let bytes = read.map_err(|_| large())?;
        serde_json::from_slice(&bytes).map(Json).map_err(|error| Refusal::bad(told(&error)))
    }
}

/// What is wrong, without the values that were sent.
fn told(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let names = ["missing field", "unknown field"].iter().any(|begin| text.starts_with(begin));
    match names {
        true => format!("the body is invalid: {text}"),
        false => format!("the body cannot be parsed at line {}, column {}", error.line(), error.column()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use shared::session::SignIn;

    fn read(body: &str) -> String {
        let error = serde_json::from_str::<SignIn>(body).err();
        error.map(|error| told(&error)).unwrap_or_default()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_waited_for_as_a_whole_and_not_from_byte_to_byte() {
        let bytes = futures_util::stream::unfold((), async |()| {
            tokio::time::sleep(BODY_TIMEOUT * 9 / 10).await;
            Some((Ok::<_, std::io::Error>("x"), ()))
        });
        let mut request = Request::new(Body::from_stream(bytes));
        request.extensions_mut().insert(Carries::Json(64 << 10));
        let begun = tokio::time::Instant::now();
        let refused = Json::<SignIn>::from_request(request, &()).await.err().expect("too late");
        assert_eq!(refused.status, StatusCode::REQUEST_TIMEOUT);
        assert!(begun.elapsed() < BODY_TIMEOUT * 11 / 10, "{:?}", begun.elapsed());
    }

    #[test]
    fn no_error_repeats_what_was_sent() {
        assert_eq!(read("{\"name\":\"a\",\"password\":\"s3cret\"}"), "");
        assert!(read("{\"name\":\"a\"}").contains("missing field `password`"));
        assert!(read("{\"name\":\"a\",\"password\":\"b\",\"hub_admin\":true}").contains("unknown field `hub_admin`"));
        for wrong in [
            "{\"name\":\"a\",\"password\":{\"s3cret\":1}}",
            "{\"name\":5432,\"password\":\"s3cret\"}",
            "\"s3cret\"",
            "s3cret",
            "",
        ] {
            let said = read(wrong);
            assert!(said.contains("line") && !said.contains("s3cret") && !said.contains("5432"), "{said}");
        }
    }

    #[test]
    fn json_is_said_once_and_plainly() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_static(value));
            }
            is_json(&headers).map_err(|refusal| refusal.status.as_u16())
        };
        for json in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            assert_eq!(of(&[json]), Ok(()), "{json}");
        }
        for other in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "text/plain; application/json",
            "application/jsonp",
            "",
        ] {
            assert_eq!(of(&[other]), Err(415), "{other}");
        }
        assert_eq!((of(&[]), of(&["application/json", "application/json"])), (Err(415), Err(415)));
    }
}
