//! A provider with OpenID Connect: its metadata, and the identity in its ID token. The issuer is compared with the
//! configured one here; [`token`] validates the token.

use super::token::{self, Claims, Doubt, Keys, WantedClaims};
use super::{Client, Failure, RedirectAnswer};
use crate::settings::OidcProvider;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Map, Value};
use shared::provider::Refused;
use shared::secret::Secret;
use std::sync::Arc;
use std::time::Duration;
use team::accounts::{FlowSecret, Proof};
use url::form_urlencoded::byte_serialize;

/// Issuer whose `hd` claim contains a person's domain.
const GOOGLE: &str = "https://accounts.google.com";
/// Maximum length of an e-mail address and of a person's name at a provider, bytes.
pub(super) const MAX_EMAIL: usize = 254;
const MAX_SUBJECT: usize = 512;
/// Maximum number of groups of one person.
const MAX_GROUPS: usize = 1_000;
/// Minimum interval between two fetches of keys because of tokens with an unknown key.
const ROTATION: Duration = Duration::from_secs(10);
/// Minimum delay before the next request to a provider that was unreachable.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Age from which metadata is fetched again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(3_600);

/// A provider.
pub(super) struct Oidc {
    own: OidcProvider,
    known: Mutex<KnownProvider>,
    /// Held during a fetch; other callers wait for its result.
    fetching: Mutex<()>,
}

#[derive(Default)]
struct KnownProvider {
    provider: Option<Arc<Discovered>>,
    /// Time of the last fetch, of the last failure, and of the last fetch for unknown keys; monotonic clock.
    fetched: Option<Duration>,
    failed: Option<Duration>,
    rotated: Option<Duration>,
}

/// Metadata and keys of a provider.
struct Discovered {
    says: Metadata,
    keys: Keys,
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Option<Secret>,
}

impl Oidc {
    pub(super) fn new(own: &OidcProvider) -> Self {
        Oidc { own: own.clone(), known: Mutex::default(), fetching: Mutex::default() }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.own.issuer
    }

    pub(super) fn scopes(&self) -> String {
        self.own.scopes.join(" ")
    }

    pub(super) fn authorization(&self, client: &Client) -> Result<String, Failure> {
        Ok(self.discovered(client)?.says.authorization_endpoint.clone())
    }

    /// Fetches the provider's metadata again.
    pub(super) fn refetch(&self, client: &Client) -> Result<(), Failure> {
        let _one = self.fetching.lock();
        self.fetch_now(client).map(drop)
    }

    /// The provider's metadata, at most an hour old if it can be fetched; otherwise the older one.
    fn discovered(&self, client: &Client) -> Result<Arc<Discovered>, Failure> {
        if let Some(fresh) = self.fresh(client) {
            return Ok(fresh);
        }
        let _one = self.fetching.lock();
        // Another caller may have fetched it meanwhile, or found the provider unreachable.
        if let Some(fresh) = self.fresh(client) {
            return Ok(fresh);
        }
        let (old, failed) = {
            let known = self.known();
            (known.provider.clone(), known.failed)
        };
        let rests = failed.is_some_and(|failed| client.clock.steady().saturating_sub(failed) < RETRY_INTERVAL);
        let fetched =
            if rests { Err(Failure::away("it did not respond a moment ago")) } else { self.fetch_now(client) };
        // Old keys are better than none: a short outage of the provider goes unnoticed.
        fetched.or_else(|failure| old.ok_or(failure))
    }

    /// The provider's current metadata, because a token has an unknown key; rate-limited.
    fn rotated(&self, client: &Client) -> Option<Arc<Discovered>> {
        let now = client.clock.steady();
        let last = self.known().rotated.replace(now);
        if last.is_some_and(|last| now.saturating_sub(last) < ROTATION) {
            self.known().rotated = last;
            return None;
        }
        let _one = self.fetching.lock();
        self.fetch_now(client).ok()
    }

    fn known(&self) -> MutexGuard<'_, KnownProvider> {
        self.known.lock()
    }

    fn fresh(&self, client: &Client) -> Option<Arc<Discovered>> {
        let (known, now) = (self.known(), client.clock.steady());
        let fresh = known.fetched.is_some_and(|at| now.saturating_sub(at) < REFRESH_INTERVAL);
        known.provider.clone().filter(|_| fresh)
    }

    fn fetch_now(&self, client: &Client) -> Result<Arc<Discovered>, Failure> {
        let fetched = self.fetch(client).map(Arc::new);
        let (mut known, now) = (self.known(), client.clock.steady());
        match &fetched {
            Ok(provider) => {
                (known.provider, known.fetched, known.failed) = (Some(provider.clone()), Some(now), None);
            }
            Err(_) => known.failed = Some(now),
        }
        fetched
    }

    fn fetch(&self, client: &Client) -> Result<Discovered, Failure> {
        let address = format!("{}/.well-known/openid-configuration", self.own.issuer.trim_end_matches('/'));
        let says: Metadata = client.questions.get(&address, &[])?;
        if says.issuer != self.own.issuer {
            return Err(Failure::away(format!(
                "its issuer is {:?}, but the configuration has {:?}; write the issuer exactly",
                client::bare(&says.issuer),
                self.own.issuer
            )));
        }
        let keys = client.questions.get(&says.jwks_uri, &[])?;
        Ok(Discovered { says, keys })
    }

    pub(super) fn proof(&self, client: &Client, flow: &FlowSecret, answer: &RedirectAnswer) -> Result<Proof, Failure> {
        let known = self.discovered(client)?;
        match &answer.issuer {
            Some(issuer) if *issuer != self.own.issuer => {
                return Err(Failure::untrusted("the response is from another provider (iss)"));
            }
            None if known.says.authorization_response_iss_parameter_supported => {
                return Err(Failure::untrusted("the response has no issuer (iss), though the provider announces it"));
            }
            _ => {}
        }
        let text = self.token(client, &known, flow, answer)?;
        let nonce = flow.nonce();
        let now = client.clock.wall() / 1_000;
        let wanted = WantedClaims { issuer: &self.own.issuer, client: &client.client_id, nonce: &nonce, now };
        let judged = match token::believed(text.reveal(), &known.keys, &wanted) {
            Err(Doubt::Keys(_)) => {
                // The provider may have new keys.
                let anew = self.rotated(client).unwrap_or(known);
                token::believed(text.reveal(), &anew.keys, &wanted)
            }
            judged => judged,
        };
        let (claims, all) = judged.map_err(|doubt| Failure::untrusted(format!("its ID token is invalid: {doubt}")))?;
        self.named(&claims, &all)
    }

    /// Exchanges the code for an ID token.
    fn token(
        &self,
        client: &Client,
        known: &Discovered,
        flow: &FlowSecret,
        answer: &RedirectAnswer,
    ) -> Result<Secret, Failure> {
        let verifier = flow.verifier();
        let mut form = client.swap(answer, &verifier);
        let methods = &known.says.token_endpoint_auth_methods_supported;
        let by_form = !methods.is_empty() && !methods.iter().any(|method| method == "client_secret_basic");
        let mut authorization = None;
        match &client.secret {
            None => form.push(("client_id", &client.client_id)),
            Some(secret) if by_form => {
                form.extend([("client_id", client.client_id.as_str()), ("client_secret", secret.reveal())]);
            }
            Some(secret) => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let both = format!("{}:{}", encoded(&client.client_id), encoded(secret.reveal()));
                authorization = Some(Secret::new(format!("Basic {}", STANDARD.encode(both))));
            }
        }
        let headers: Vec<(&str, &str)> = authorization.iter().map(|own| ("authorization", own.reveal())).collect();
        let tokens: Result<Tokens, Failure> = client.questions.post(&known.says.token_endpoint, &headers, &form);
        let tokens = tokens.map_err(|failure| Failure {
            why: format!(
                "{}; check client_id, the secret, and that {} is registered there as redirect_uri",
                failure.why, client.back
            ),
            ..failure
        })?;
        tokens.id_token.ok_or_else(|| Failure::untrusted("its response has no ID token; scopes need \"openid\""))
    }

    /// The identity in the claims, if the person may sign in.
    fn named(&self, claims: &Claims, all: &Map<String, Value>) -> Result<Proof, Failure> {
        let subject = claims.sub.clone();
        if subject.is_empty() || subject.len() > MAX_SUBJECT {
            return Err(Failure::untrusted("its sub is empty or longer than 512 bytes"));
        }
        let email = claims.email().filter(|email| email.len() <= MAX_EMAIL);
        let domain = match self.own.issuer.as_str() {
            GOOGLE => all.get("hd").and_then(Value::as_str),
            _ => email.and_then(|email| Some(email.rsplit_once('@')?.1)),
        };
        if !self.own.domains.is_empty()
            && !domain.is_some_and(|domain| self.own.domains.iter().any(|own| own.eq_ignore_ascii_case(domain)))
        {
            return Err(Failure::new(Refused::Outside, "the user has no verified e-mail address in domains"));
        }
        let roles = match &self.own.groups_claim {
            Some(claim) if is_elsewhere(all, claim) => {
                tracing::warn!(
                    provider = self.own.name,
                    "the ID token of a user lacks the claim {claim}, because they have too many groups; their roles \
                    stay as they are. Limit the claim to the groups of this application at the provider"
                );
                Vec::new()
            }
            Some(claim) => self.own.roles.roles_for(&groups(all, claim)),
            None => Vec::new(),
        };
        let local = email.and_then(|email| email.split('@').next());
        let called = claims.preferred_username.as_deref().filter(|name| !name.is_empty());
        let name = called.or(local).map(String::from);
        let login = self.own.login_claim.as_deref().and_then(|claim| match claim {
            // An unverified address could belong to anybody.
            "email" => email,
            claim => found(all, claim).and_then(Value::as_str),
        });
        let (email, login) = (email.map(String::from), login.map(String::from));
        let issuer = self.own.issuer.clone();
        Ok(Proof { kind: "oidc", issuer, subject, name, email, roles, login, proved: claims.proved() })
    }
}

/// A claim by its name; dots separate nested names.
fn found<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|part| claims.get(part));
    claims.get(path).or_else(|| parts.try_fold(first?, |value, part| value.get(part)))
}

/// Whether a claim is left out of the token, which names another place that has it (OpenID Connect Core, 5.6.2). Entra
/// ID does so with more than 200 groups. Then the groups are unknown, and a user is not without groups.
fn is_elsewhere(claims: &Map<String, Value>, path: &str) -> bool {
    let first = path.split('.').next().unwrap_or_default();
    let names = claims.get("_claim_names").and_then(Value::as_object);
    let named = names.is_some_and(|names| names.contains_key(path) || names.contains_key(first));
    let many = claims.get("hasgroups").is_some_and(|has| *has == Value::Bool(true) || *has == "true");
    found(claims, path).is_none() && (named || many)
}

/// The groups in a claim, one or a list.
fn groups(claims: &Map<String, Value>, path: &str) -> Vec<String> {
    match found(claims, path) {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => {
            all.iter().take(MAX_GROUPS).filter_map(|one| one.as_str()).map(String::from).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::role::Role;

    #[test]
    fn groups_that_the_token_leaves_out_take_no_role() {
        let text = "name = \"entra\"\nissuer = \"https://id.example.org/\"\nclient_id = \"hub\"\n\
                    groups_claim = \"groups\"\nroles = { ops = \"admin\" }";
        let oidc = Oidc::new(&OidcProvider::TABLE.read_text(text).expect("a table"));
        let roles = |more: Value| {
            let mut all = json!({
                "iss": "https://id.example.org/", "aud": "hub", "exp": 2, "iat": 1, "nonce": "n", "sub": "s",
            });
            if let (Some(all), Value::Object(more)) = (all.as_object_mut(), more) {
                all.extend(more);
            }
            let claims = Claims::deserialize(&all).expect("claims");
            let all = all.as_object().cloned().unwrap_or_default();
            oidc.named(&claims, &all).expect("a person").roles
        };
        let main = |role| vec![("main".to_string(), role)];
        assert_eq!(roles(json!({ "groups": ["ops", "users"] })), main(Some(Role::Admin)));
        assert_eq!(roles(json!({ "groups": [] })), main(None));
        assert_eq!(roles(json!({})), main(None), "a provider may leave out an empty claim");
        let sources = json!({ "src1": { "endpoint": "https://graph.example.org/getMemberObjects" } });
        assert!(roles(json!({ "_claim_names": { "groups": "src1" }, "_claim_sources": sources })).is_empty());
        assert_eq!(roles(json!({ "_claim_names": { "other": "src1" } })), main(None));
        assert!(roles(json!({ "hasgroups": true })).is_empty());
    }
}
