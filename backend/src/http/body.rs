//! Bodies of requests: JSON of a bounded size. No error repeats a value of one, since it may be a password.

use super::Refusal;
use super::strangers::Visitor;
use ::api::Carries;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use std::time::Duration;
use tokio::time::timeout;

/// Separator of the sent and the expected value in an error of serde.
const EXPECTED: &str = ", expected ";
/// Time for the whole of a body to arrive. The longest has 64 KiB.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a request.
pub(super) struct Json<T>(pub T);

/// Refuses bodies without the JSON content type: a form of another site cannot send it without a preflight request.
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
        // A declared length above the limit is refused unread; an undeclared length is counted.
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
        parsed(&bytes).map(Json).map_err(Refusal::bad)
    }
}

/// A body, or the reason why it cannot be read, without the sent values.
fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    // serde would also accept a list of the fields' values, which no client means.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first == b'[') {
        return Err("the body is a list; send a JSON object".into());
    }
    let read =
        serde_path_to_error::deserialize(&mut reader).map_err(|error| field_error(error.path(), error.inner()))?;
    reader.end().map_err(|error| cannot_be_parsed(&error))?;
    Ok(read)
}

/// The error of a body, with the path of its field.
fn field_error(path: &Path, error: &serde_json::Error) -> String {
    if !error.is_data() {
        return cannot_be_parsed(error);
    }
    let text = error.to_string();
    let is_unknown = text.starts_with("unknown field");
    let place = match path.iter().next_back() {
        // The error text already contains the name.
        Some(Segment::Map { key }) if is_unknown => {
            let path = path.to_string();
            path.strip_suffix(key.as_str()).unwrap_or(&path).trim_end_matches('.').to_string()
        }
        Some(_) => path.to_string(),
        None => String::new(),
    };
    let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
    if is_unknown || text.starts_with("missing field") {
        return format!("the body is invalid{at}: {text}");
    }
    let wanted = text.rsplit_once(EXPECTED).map(|(_, wanted)| wanted.split(" at line ").next().unwrap_or_default());
    let wanted = match wanted {
        Some("a map") => ": expected an object".into(),
        Some(wanted) if wanted.starts_with("struct ") => ": expected an object".into(),
        Some("a sequence") => ": expected a list".into(),
        Some(wanted) => format!(": expected {wanted}"),
        None => String::new(),
    };
    format!("the body is invalid{at}{wanted}, line {}, column {}", error.line(), error.column())
}

fn cannot_be_parsed(error: &serde_json::Error) -> String {
    format!("the body cannot be parsed at line {}, column {}", error.line(), error.column())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use shared::new_marker::NewMarkers;
    use shared::reported::{NewRun, ReportedEvent};
    use shared::session::SignIn;

    fn refused<T: DeserializeOwned>(body: &str) -> String {
        parsed::<T>(body.as_bytes()).err().unwrap_or_default()
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
        assert_eq!(refused::<SignIn>("{\"name\":\"a\",\"password\":\"s3cret\"}"), "");
        assert!(refused::<SignIn>("{\"name\":\"a\"}").contains("missing field `password`"));
        assert!(
            refused::<SignIn>("{\"name\":\"a\",\"password\":\"b\",\"hub_admin\":true}")
                .contains("unknown field `hub_admin`")
        );
        for wrong in [
            "{\"name\":\"a\",\"password\":{\"s3cret\":1}}",
            "{\"name\":5432,\"password\":\"s3cret\"}",
            "\"s3cret\"",
            "s3cret",
            "[\"a\",\"s3cret\"]",
            "{\"name\":\"a\",\"password\":\"b\"} s3cret",
            "",
        ] {
            let said = refused::<SignIn>(wrong);
            assert!(said.starts_with("the body") && !said.contains("s3cret") && !said.contains("5432"), "{said}");
        }
    }

    #[test]
    fn an_error_has_the_path_of_its_field() {
        for (body, why) in [
            ("{\"name\":7}", " at name: expected a string"),
            ("{\"tags\":{\"a\":\"b\",\"c.d\":7}}", " at tags.c.d: expected a string"),
            ("{\"user\":\"s3cret\"}", "invalid: unknown field `user`, expected one of"),
            ("[\"s3cret\"]", "the body is a list"),
        ] {
            let said = refused::<NewRun>(body);
            assert!(said.contains(why) && !said.contains("s3cret"), "{body}: {said}");
        }
        for (body, why) in [
            ("{\"event\":\"s3cret, expected x\"}", " at event: expected `heartbeat` or `end`"),
            ("{\"event\":\"end\",\"exit\":\"1\"}", " at exit: expected i32"),
            ("{\"exit\":1}", "invalid: missing field `event`"),
        ] {
            let said = refused::<ReportedEvent>(body);
            assert!(said.contains(why) && !said.contains("s3cret"), "{body}: {said}");
        }
        for (body, why) in [
            ("{\"text\":\"a\",\"n\":-1}", " at n: expected u64"),
            ("{\"text\":\"a\",\"t\":[]}", " at t, line 1"),
            ("{\"tag\":\"a\"}", "invalid: unknown field `tag`"),
            ("{\"markers\":[{\"text\":\"a\"},{\"n\":\"x\"}]}", " at markers[1].n: expected u64"),
            ("{\"markers\":[{\"text\":\"a\"},{\"tag\":\"x\"}]}", " at markers[1]: unknown field `tag`"),
            ("{\"markers\":[],\"text\":\"a\"}", "unknown field `text`, expected `markers`"),
            ("{\"text\":\"a\",\"markers\":[]}", "unknown field `markers`"),
            ("{\"markers\":1}", " at markers: expected a list, line 1"),
            ("7", "expected a marker, or {\"markers\": [...]}"),
        ] {
            let said = refused::<NewMarkers>(body);
            assert!(said.contains(why), "{body}: {said}");
        }
        let count = |body: &str| parsed::<NewMarkers>(body.as_bytes()).map(|NewMarkers(all)| all.len());
        assert_eq!(count("{\"text\":\"a\",\"t\":1.5,\"kind\":\"note\"}"), Ok(1));
        assert_eq!(count("{\"markers\":[{\"text\":\"a\"},{\"step\":3,\"t\":\"2026-01-01T00:00:00Z\"}]}"), Ok(2));
        assert_eq!((count("{\"markers\":[]}"), count("{}")), (Ok(0), Ok(1)));
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
