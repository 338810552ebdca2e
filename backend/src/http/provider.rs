//! Sign-in by a provider: the redirect to it and the callback, which ends on the page with the result.

use super::admit::Asker;
use super::body::Json;
use super::hub::Hub;
use super::{App, Refusal, json};
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use providers::RedirectAnswer;
use shared::provider::{Away, ByProvider, Purpose, Refused};
use shared::secret::Secret;
use std::collections::BTreeMap;
use std::sync::Arc;
use team::accounts::{FlowSecret, Proved};

/// Maximum size of the address to open afterwards, and of the query of a callback, bytes.
const MAX_NEXT: usize = 2_048;
const MAX_ANSWER: usize = 8_192;

/// Returns the address that the browser opens next. The secret of the sign-in goes into a cookie of this browser.
pub(super) async fn begin(
    State(app): State<Arc<App>>,
    asker: Asker,
    Json(body): Json<ByProvider>,
) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    if !hub.providers.has(&body.provider) {
        return Err(Refusal::bad("this hub has no such provider; GET /api/v1/session lists the sign-in methods"));
    }
    if !hub.accounts.is_set_up() {
        let sentence = "this hub has no account yet; create the first admin with the address that the hub printed";
        return Err(Refusal::new(StatusCode::CONFLICT, sentence));
    }
    let next = next_of(&hub.public.base, body.next.as_deref().unwrap_or_default());
    let (who, purpose) = (asker.who.as_ref(), (body.purpose, body.code.as_ref()));
    let flow = hub.accounts.begin_flow(who, (&body.provider, next), purpose, &asker.network).await?;
    let place = hub.providers.place(&body.provider, &flow, body.purpose == Purpose::Again).await;
    let url = place.map_err(|failure| {
        tracing::warn!("sign-in by {:?} does not work now: {}", body.provider, failure.why);
        let sentence =
            format!("{} does not respond correctly; try again, or use another sign-in method", body.provider);
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
    })?;
    let mut response = json(StatusCode::OK, &Away { url });
    response.headers_mut().insert(header::SET_COOKIE, hub.cookie.set_flow(&flow.state(), flow.cookie()));
    Ok(response)
}

/// The callback address for providers. The browser is redirected to the page with any result.
pub(super) async fn back(
    State(app): State<Arc<App>>,
    asker: Asker,
    Path(provider): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Refusal> {
    let hub = app.hub()?;
    let query = query.filter(|query| query.len() <= MAX_ANSWER).unwrap_or_default();
    let fields = fields(&query);
    let state = fields.get("state").cloned().unwrap_or_default();
    let flow = hub.cookie.flow(&headers, &state).map(FlowSecret::new);
    let came = came(hub, &asker, (&provider, &fields), flow.as_ref(), &state).await;
    let (place, set) = match came {
        Ok((next, token)) => (next, token.map(|token| hub.cookie.set(&token))),
        Err((refused, next)) => {
            if refused != Refused::Declined && hub.providers.has(&provider) {
                hub.accounts.refused_flow(&provider, refused, &asker.network).await;
            }
            (format!("{next}#refused={}", refused.as_str()), None)
        }
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let place = HeaderValue::try_from(place).map_err(|_| Refusal::bad("the response cannot be read"))?;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, place);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The cookie is for one use, whatever the result.
    if flow.is_some() {
        headers.append(header::SET_COOKIE, hub.cookie.clear_flow(&state));
    }
    if let Some(set) = set {
        headers.append(header::SET_COOKIE, set);
    }
    Ok(response)
}

/// The address of the page to open, and the token of the new session. On failure the reason and that address.
async fn came(
    hub: &Hub,
    asker: &Asker,
    (provider, fields): (&str, &BTreeMap<String, String>),
    secret: Option<&FlowSecret>,
    state: &str,
) -> Result<(String, Option<Secret>), (Refused, String)> {
    let base = hub.public.base.clone();
    let secret = secret.ok_or((Refused::Elsewhere, base.clone()))?;
    // The flow is taken before any other check, so a callback cannot be replayed.
    let flow =
        hub.accounts.take_flow(Some(secret), state, &asker.network).await.map_err(|refused| (refused, base.clone()))?;
    let at = |refused| (refused, flow.next.clone());
    if flow.provider != provider {
        return Err(at(Refused::Untrusted));
    }
    if let Some(error) = fields.get("error") {
        let plain: String = error.chars().filter(|letter| !letter.is_control()).take(64).collect();
        tracing::info!("{provider:?} sent somebody back with the error {plain:?}");
        return Err(at(Refused::Declined));
    }
    let code = fields.get("code").ok_or_else(|| at(Refused::Untrusted))?;
    let answer = RedirectAnswer { code: Secret::new(code), issuer: fields.get("iss").cloned() };
    let proof = hub.providers.proof(provider, secret, answer).await.map_err(|failure| {
        tracing::warn!("a sign-in by {provider:?} came to nothing: {}", failure.why);
        at(failure.refused)
    })?;
    let old = asker.token.as_ref().map(|token| token.reveal());
    match hub.accounts.finish_flow(&flow, &proof, &asker.network, (hub.admits, old)).await.map_err(at)? {
        Proved::Kept => Ok((flow.next, None)),
        Proved::Begun(begun) => {
            // It is only for the list of sessions, so its failure does not fail the sign-in.
            let _ = hub.accounts.note_agent(&begun.principal, &asker.agent).await;
            Ok((flow.next, Some(begun.token)))
        }
    }
}

/// The fields of a callback. A repeated field is ambiguous and is dropped.
fn fields(query: &str) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        fields.entry(name.into_owned()).and_modify(|known| *known = None).or_insert_with(|| Some(value.into_owned()));
    }
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The address of the page to open, rebuilt from the requested one: our own page with a query, and nothing else.
fn next_of(base: &str, wished: &str) -> String {
    let query = wished.strip_prefix(base).and_then(|rest| rest.strip_prefix('?'));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%&=+:,*/!@;$'()?|[]".contains(&byte);
    match query {
        Some(query) if wished.len() <= MAX_NEXT && query.bytes().all(plain) => format!("{base}?{query}"),
        _ => base.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn afterwards_the_browser_stays_on_our_page() {
        for (base, wished, next) in [
            ("/", "/?page=fleet&find=node-03", "/?page=fleet&find=node-03"),
            ("/", "/", "/"),
            ("/", "", "/"),
            ("/", "//evil.test/?a", "/"),
            ("/", "/\\evil.test", "/"),
            ("/", "https://evil.test/?a", "/"),
            ("/", "/api/v1/session?x", "/"),
            ("/", "/?a=b#refused=over", "/"),
            ("/", "/?a\r\nSet-Cookie: x", "/"),
            ("/w/", "/w/?page=me", "/w/?page=me"),
            ("/w/", "/?page=me", "/w/"),
        ] {
            assert_eq!(next_of(base, wished), next, "{wished}");
        }
        assert_eq!(next_of("/", &format!("/?{}", "x".repeat(3_000))), "/");
    }

    #[test]
    fn a_field_that_comes_twice_is_none() {
        let all = fields("state=a&code=b%20c&code=d&iss=https%3A%2F%2Fid");
        assert_eq!((all.get("state").map(String::as_str), all.get("code")), (Some("a"), None));
        assert_eq!(all.get("iss").map(String::as_str), Some("https://id"));
    }
}
