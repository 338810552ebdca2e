//! Authentication and authorization of a request: by key, session cookie or the socket in our own folder. This runs
//! before every route.

use super::body::is_json;
use super::bound::bound;
use super::counted::counted;
use super::hub::{Hub, counted_as};
use super::need::check;
use super::proxy_identity::vouched;
use super::rights::Rights;
use super::strangers::{StrangerRequest, Visitor};
use super::{App, Caller, Refusal};
use ::api::need::Need;
use ::api::{Carries, Operation};
use axum::RequestExt;
use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::middleware::Next;
use axum::response::IntoResponse;
use percent_encoding::percent_decode_str;
use shared::linked::LinkedObjects;
use shared::role::KeyScope;
use shared::scope::{Bounds, Scope};
use shared::secret::Secret;
use std::sync::Arc;
use stream::live::Reader;
use team::accounts::{Network, Principal, Vouched, Who};

/// Letters of the `User-Agent` header that are read.
const MAX_AGENT: usize = 256;

/// The caller of a request and its rights. A server without accounts has one reader, who sees all.
#[derive(Clone)]
pub(super) struct Asker {
    /// None without a sign-in, and in a server without accounts.
    pub who: Option<Principal>,
    /// Sources that may be seen.
    pub scope: Scope,
    /// Times that may be seen.
    pub bounds: Bounds,
    /// Network that the request comes from.
    pub network: Network,
    /// The session token of the request, valid or not.
    pub token: Option<Secret>,
    /// The key of the request, valid or not.
    pub bearer: Option<Secret>,
    /// The user signed in by a proxy in front, with or without an account.
    pub vouched: Option<Vouched>,
    /// The `User-Agent` header, shortened; empty without one.
    pub agent: String,
    /// Whether the caller is the owner of a server without accounts.
    pub is_owner: bool,
}

impl Asker {
    /// The stream, limited to the caller's scope.
    pub fn reader(&self, app: &App) -> Reader {
        Reader::new(app.live.clone(), self.scope.clone())
    }

    /// Whether the caller may see the arguments of processes of a source, named by its key.
    pub async fn sees_arguments(&self, app: &App, source: &str) -> bool {
        match (&app.hub, &self.who) {
            (None, _) => self.is_owner,
            (Some(hub), Some(who)) => hub.accounts.shows_arguments(who, source).await.unwrap_or(false),
            (Some(_), None) => false,
        }
    }

    /// The objects of a share link, and the scope of its alert; None for all other callers.
    pub fn linked(&self) -> Option<(&LinkedObjects, Scope)> {
        self.who.as_ref()?.linked()
    }

    /// The part of a span that may be seen.
    ///
    /// # Errors
    /// 403: none of it.
    pub fn within(&self, now: i64, from: i64, to: i64) -> Result<(i64, i64), Refusal> {
        if from > to {
            // The place that reads the span reports its error.
            return Ok((from, to));
        }
        let seen = self.bounds.within(now, from, to);
        seen.ok_or_else(|| {
            Refusal::new(StatusCode::FORBIDDEN, "this link does not include that time; give from= and to=")
        })
    }

    /// Current names of sources; names that a source had before are replaced.
    pub async fn sources(&self, app: &App, names: Vec<String>) -> Vec<String> {
        let Some(hub) = &app.hub else { return names };
        let known = self.reader(app).sources();
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let once = match name.contains('*') || known.iter().any(|source| source.is_called(&name)) {
                true => None,
                // Sources outside the scope get no name.
                false => hub.accounts.find(&name).await.ok().flatten().filter(|key| self.scope.sees(key)),
            };
            found.push(once.unwrap_or(name));
        }
        found
    }

    /// Audits an export of samples: a hub records spans of more than an hour.
    ///
    /// # Errors
    /// 503: the entry could not be stored.
    pub async fn takes(&self, app: &App, action: &str, what: &str, span: (i64, i64)) -> Result<(), Refusal> {
        if let (Some(hub), Some(who)) = (&app.hub, &self.who) {
            hub.accounts.takes(who, action, what, span).await?;
        }
        Ok(())
    }

    /// The signed-in user.
    ///
    /// # Errors
    /// 401: nobody is signed in.
    pub fn principal(&self) -> Result<&Principal, Refusal> {
        self.who.as_ref().ok_or_else(Refusal::sign_in)
    }
}

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        // Every route is behind `admit`, which adds it.
        let missing = || {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the request was not authenticated; please report this bug")
        };
        parts.extensions.get::<Asker>().cloned().ok_or_else(missing)
    }
}

/// Passes on the requests whose caller has the right that the route needs.
pub(super) async fn admit(
    State((app, operation)): State<(Arc<App>, Operation)>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let (need, carries) = (operation.row().need, operation.row().body.carries);
    let asker = match &app.hub {
        None => alone(&app, need, &request).and_then(|asker| match carries {
            // A form of another site cannot send this type without a preflight request.
            Carries::Json(_) => is_json(request.headers()).map(|()| asker),
            Carries::Nothing | Carries::Socket => Ok(asker),
        }),
        Some(hub) => at_hub(&app, hub, need, carries, &mut request).await,
    };
    match asker.and_then(|asker| Ok((strangers_request(&app, need, carries, &asker, &request)?, asker))) {
        Ok((_counted, asker)) => {
            let of_hub = match (&app.hub, &asker.who) {
                (Some(hub), Some(who)) if carries == Carries::Nothing && need.is_for_samples() => {
                    Some((hub, who.clone(), asker.scope.clone()))
                }
                _ => None,
            };
            request.extensions_mut().insert(asker);
            request.extensions_mut().insert(carries);
            let answer = next.run(request).await;
            let Some((hub, who, scope)) = of_hub else { return answer };
            let tab = hub.meter.tab(&who);
            counted(bound(answer, || Rights::new(&hub.accounts, app.live.clock.clone(), who, scope)), tab)
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Marks the connection as authenticated or not, and counts a request with a body that is not authenticated.
///
/// # Errors
/// 429: too many of them are in progress.
fn strangers_request(
    app: &App,
    need: Need,
    carries: Carries,
    asker: &Asker,
    request: &Request,
) -> Result<Option<StrangerRequest>, Refusal> {
    // A share link does not identify a person.
    let is_known = app.hub.is_none() || asker.who.as_ref().is_some_and(|who| !matches!(who.who, Who::Share { .. }));
    let visitor = request.extensions().get::<Visitor>();
    // Open routes do not authenticate their callers.
    if let Some(visitor) = visitor.filter(|_| need != Need::Open) {
        visitor.is(is_known);
    }
    match carries {
        Carries::Json(_) if !is_known => app.strangers.request(&asker.network, visitor).map(Some),
        _ => Ok(None),
    }
}

/// Without accounts every caller that the guard accepts reads all, and there is no sign-in.
fn alone(app: &App, need: Need, request: &Request) -> Result<Asker, Refusal> {
    let caller = request.extensions().get::<Caller>().copied().unwrap_or_default();
    match need {
        Need::Open | Need::Role(..) | Need::Shared(_) | Need::Person(_) | Need::Members(_) => {
            let network = Network::local();
            Ok(Asker {
                who: None,
                scope: Scope::All,
                bounds: Bounds::All,
                network,
                token: None,
                bearer: None,
                vouched: None,
                agent: String::new(),
                is_owner: app.guard.is_owner(caller),
            })
        }
        _ => Err(super::no_accounts()),
    }
}

async fn at_hub(app: &App, hub: &Hub, need: Need, carries: Carries, request: &mut Request) -> Result<Asker, Refusal> {
    let caller = request.extensions().get::<Caller>().copied().unwrap_or_default();
    let path = request.extract_parts::<RawPathParams>().await.ok();
    let team = path.as_ref().and_then(|path| path.iter().find(|(name, _)| *name == "team")).map(|(_, value)| value);
    let headers = request.headers();
    let network = hub.network(caller, headers);
    let vouched = vouched(hub.proxy.as_ref(), caller, headers)?;
    let (token, bearer) = (hub.cookie.read(headers)?, bearer(headers)?);
    let links = (hub.cookie.links(headers), named_link(request.uri().query().unwrap_or_default()));
    let bounds = Bounds::All;
    let agent = match need {
        Need::Session => agent_of(headers),
        _ => String::new(),
    };
    let (scope, is_owner) = (Scope::nothing(), false);
    let mut asker = Asker { who: None, scope, bounds, network, token, bearer, vouched, agent, is_owner };
    if let (Need::Key(scope), Some(key)) = (need, &asker.bearer)
        && is_for(key, scope)
    {
        // Checked at use: the link of a revoked key is closed with that reason.
        return if carries == Carries::Socket { Ok(asker) } else { is_json(headers).map(|()| asker) };
    }
    if need == Need::Open {
        return Ok(asker);
    }
    asker.who = match identify(hub, caller, &asker, &links).await {
        // Readers of a hub keep their access while the database is unreachable.
        Err(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE && reads(request, need) => {
            Some(known_before(hub, &asker).ok_or(refusal)?)
        }
        found => found?,
    };
    if let Some(who) = &asker.who {
        hub.requests.ask(&counted_as(who))?;
        (asker.scope, asker.bounds) = (who.scope(), who.bounds);
    }
    let changes = !request.method().is_safe();
    // A stream in a plain response follows the rules of data: browsers send no Origin header with it.
    let upgrades = carries == Carries::Socket && headers.contains_key(header::UPGRADE);
    // Credentials that a browser sends by itself count only from our own pages. This includes signing in as another
    // user.
    let by_itself = asker.bearer.is_none() && caller.local.is_none();
    if by_itself && (changes || upgrades) && (asker.who.is_some() || need == Need::Session) {
        app.guard.own_page(request.uri(), headers)?;
    }
    if asker.bearer.is_some() && asker.who.is_none() {
        return Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "this key is invalid, expired or revoked; create a new one",
        ));
    }
    match &asker.who {
        None if need == Need::Session => {}
        None if !need.before_setup() && !hub.accounts.is_set_up() => {
            let sentence = "this hub has no admin yet; its log has the address that creates the first one";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, sentence));
        }
        None if asker.vouched.is_some() => {
            let sentence = "the proxy has signed you in, but you have no account here; accept an invitation, or \
                enter your password once";
            return Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
        }
        None => return Err(Refusal::sign_in()),
        Some(who) => check(need, who, team)?,
    }
    if changes {
        is_json(headers)?;
    }
    Ok(asker)
}

/// Whether the request reads samples and changes nothing.
fn reads(request: &Request, need: Need) -> bool {
    request.method().is_safe() && need.is_for_samples()
}

/// The caller, as cached before the database became unreachable.
fn known_before(hub: &Hub, asker: &Asker) -> Option<Principal> {
    if asker.vouched.is_some() {
        return None;
    }
    let [key, token] = [&asker.bearer, &asker.token].map(|secret| secret.as_ref().map(|secret| secret.reveal()));
    hub.accounts.known_before(key, token, &asker.network)
}

/// Identifies the caller, in this order: a key (alone, whatever else the request carries); the link that the request
/// names; the user signed in by the proxy (then no cookie counts); the user signed in here; any valid link.
async fn identify(
    hub: &Hub,
    caller: Caller,
    asker: &Asker,
    (links, named): &(Vec<(String, Secret)>, Option<String>),
) -> Result<Option<Principal>, Refusal> {
    match (&asker.bearer, caller.local) {
        (Some(key), _) => return Ok(hub.accounts.key(key.reveal(), &asker.network).await?),
        (None, Some(uid)) => return Ok(Some(Principal::local(uid))),
        (None, None) => {}
    }
    let (first, others): (Vec<_>, Vec<_>) = links.iter().partition(|(id, _)| Some(id) == named.as_ref());
    if let Some((_, code)) = first.first() {
        return Ok(hub.accounts.share(code.reveal(), &asker.network).await?);
    }
    if let Some(vouched) = &asker.vouched {
        return Ok(hub.accounts.vouched(vouched, &asker.network, hub.admits).await?);
    }
    if let Some(token) = &asker.token
        && let Some(who) = hub.accounts.session(token.reveal(), &asker.network).await?
    {
        return Ok(Some(who));
    }
    for (_, code) in others {
        if let Some(who) = hub.accounts.share(code.reveal(), &asker.network).await? {
            return Ok(Some(who));
        }
    }
    Ok(None)
}

/// The `User-Agent` header, cut to the stored length.
fn agent_of(headers: &HeaderMap) -> String {
    let text = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.chars().take(MAX_AGENT).collect()
}

/// The link that a request names, by `share=ID`.
fn named_link(query: &str) -> Option<String> {
    query.split('&').find_map(|pair| pair.strip_prefix("share=")).map(String::from)
}

/// The key that a request has, if it has one. Another kind of `Authorization` is a proxy's affair.
fn bearer(headers: &HeaderMap) -> Result<Option<Secret>, Refusal> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(Refusal::bad("the request has several Authorization headers; send one"));
    }
    let text = first.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, key) = text.split_once(' ').unwrap_or((text, ""));
    Ok(scheme.eq_ignore_ascii_case("bearer").then(|| Secret::new(key.trim())))
}

/// Whether the prefix of a key fits this scope.
fn is_for(key: &Secret, scope: KeyScope) -> bool {
    let kind = match scope {
        KeyScope::AgentJoin => "wg_j_",
        KeyScope::AgentWrite => "wg_a_",
        _ => return false,
    };
    key.reveal().starts_with(kind)
}

/// A text in a query that looks like a key. Such a key is already in some log.
pub(super) fn key_in(query: &str) -> Option<Secret> {
    let decoded = percent_decode_str(query).decode_utf8_lossy();
    let at = decoded.find("wg_")?;
    let text = &decoded[at..];
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    // Shorter ones hold no secret: a metric may be called so.
    (text[..end].matches('_').count() == 3 && end >= 40).then(|| Secret::new(&text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_key_in_a_query_is_found_however_it_is_written() {
        let key = format!("wg_s_abcdefghijkl_{}", "x".repeat(49));
        for query in [
            format!("key={key}"),
            format!("tag=cpu&access_token={key}&x=1"),
            format!("key=Bearer%20{}", key.replace('_', "%5F")),
            format!("{}=1", key.replace('w', "%77")),
            format!("match=a{key}"),
        ] {
            assert_eq!(key_in(&query).map(|found| found.reveal().to_string()), Some(key.clone()), "{query}");
        }
        for query in ["", "tag=wg_", "tag=wg_self_ticks_total", "source=%zz%", "tag=cpu"] {
            assert!(key_in(query).is_none(), "{query}");
        }
    }

    #[test]
    fn one_key_comes_in_one_header() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_static(value));
            }
            bearer(&headers).map(|key| key.map(|key| key.reveal().to_string()))
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&["Bearer wg_p_1"]), Ok(Some("wg_p_1".into())));
        assert_eq!(of(&["bearer  wg_p_1 "]), Ok(Some("wg_p_1".into())));
        assert_eq!(of(&["Basic dXNlcg=="]), Ok(None), "a proxy's own");
        assert_eq!(of(&["Bearer"]), Ok(Some(String::new())), "an empty key is no session");
        assert!(of(&["Bearer a", "Bearer b"]).is_err() && of(&["Basic a", "Bearer b"]).is_err());
    }
}
