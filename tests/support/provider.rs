//! An identity provider on loopback. It implements OpenID Connect and GitHub's OAuth, signs with real keys, and does
//! what a test scripts, errors included. It checks its client as strictly as a real provider does.

use crate::hub::Hub;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parking_lot::{Mutex, MutexGuard};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use stream::clock::{Clock, System};
use url::form_urlencoded;

/// Client id of its only client.
pub const CLIENT: &str = "watchglass";
/// Client secret. It must be URL-encoded.
pub const SECRET: &str = "s3cret: of%the+client";

const RSA: &[u8] = include_bytes!("../fixtures/provider/rsa.pk8");

/// A key that signs tokens.
pub enum Key {
    /// RS256 (RSA).
    Rsa,
    /// ES256: the key, and its key id in the published key set.
    Ec(Box<EcdsaKeyPair>, &'static str),
}

/// Signature of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// Correct, by the newest key.
    Well,
    /// By an unpublished key, under the key id of a published one.
    ByAnother,
    /// By an unpublished key, under a key id of its own.
    ByUnknown,
    /// No signature: `alg` is `none`.
    NotAtAll,
    /// By HMAC with the client's secret.
    ByClientSecret,
    /// By HMAC with the published RSA key in its usual form (PEM).
    ByPublicKey,
    /// Correct, but the claims are changed afterwards.
    ThenChanged,
}

/// Behavior of a provider, set by a test.
pub struct Script {
    /// Claims about the person that replace those of the provider; null removes one.
    pub claims: Value,
    /// Kind of signature of the tokens.
    pub signed: Signed,
    /// Keys, the newest last.
    pub keys: Vec<Key>,
    /// Issuer in the authorization response (RFC 9207); a text replaces the real issuer.
    pub says_iss: Option<String>,
    /// Fields that replace those of the discovery document; null removes one.
    pub discovery: Value,
    /// Status of all answers, where it is set.
    pub broken: Option<u16>,
    /// A path, and the number of useless bytes that are added to its answer.
    pub padded: Option<(&'static str, usize)>,
    /// Host and port to which browsers are redirected, in place of those in the redirect URI.
    pub back_to: Option<SocketAddr>,
    /// A person at GitHub: answers of its API by path. Other paths are 404.
    pub github: BTreeMap<&'static str, Value>,
}

/// An authorization that the provider has granted.
struct Granted {
    challenge: String,
    redirect: String,
    nonce: Option<String>,
    again: bool,
}

struct ProviderState {
    script: Script,
    granted: BTreeMap<String, Granted>,
    /// Requested paths.
    asked: Vec<String>,
}

/// A provider. Its threads end with the test program.
pub struct Provider {
    /// Address on which it listens.
    pub addr: SocketAddr,
    state: Arc<Mutex<ProviderState>>,
}

fn url64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Seconds since the Unix epoch.
pub fn now() -> i64 {
    System.wall() / 1_000
}

impl Key {
    /// A new key of an elliptic curve.
    ///
    /// # Panics
    /// Never: the system has random bytes.
    pub fn new_ec(name: &'static str) -> Key {
        let random = SystemRandom::new();
        let pk8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pk8.as_ref(), &random);
        Key::Ec(Box::new(pair.expect("the same key")), name)
    }

    fn rsa() -> RsaKeyPair {
        RsaKeyPair::from_pkcs8(RSA).expect("the key of the tests")
    }

    fn name(&self) -> &str {
        match self {
            Key::Rsa => "rsa",
            Key::Ec(_, name) => name,
        }
    }

    fn shown(&self) -> Value {
        match self {
            Key::Rsa => {
                let parts = PublicKeyComponents::<Vec<u8>>::from(Key::rsa().public_key());
                json!({ "kty": "RSA", "use": "sig", "alg": "RS256", "kid": "rsa", "n": url64(&parts.n), "e": url64(&parts.e) })
            }
            Key::Ec(pair, name) => {
                let point = pair.public_key().as_ref();
                json!({ "kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256", "kid": name,
                        "x": url64(&point[1..33]), "y": url64(&point[33..]) })
            }
        }
    }

    fn sign(&self, text: &str) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Key::Rsa => {
                let key = Key::rsa();
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature).expect("a signature");
                signature
            }
            Key::Ec(pair, _) => pair.sign(&random, text.as_bytes()).expect("a signature").as_ref().to_vec(),
        }
    }
}

impl Provider {
    /// Starts a provider with an RSA key and one person.
    ///
    /// # Panics
    /// Panics without a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        let claims =
            json!({ "sub": "p-1", "preferred_username": "Nora", "email": "nora@example.org", "email_verified": true });
        let script = Script {
            claims,
            signed: Signed::Well,
            keys: vec![Key::Rsa],
            says_iss: None,
            discovery: json!({}),
            broken: None,
            padded: None,
            back_to: None,
            github: BTreeMap::new(),
        };
        let state = Arc::new(Mutex::new(ProviderState { script, granted: BTreeMap::new(), asked: Vec::new() }));
        let theirs = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = theirs.clone();
                // The client notices a broken connection.
                std::thread::spawn(move || serve(client, addr, &state));
            }
        });
        Provider { addr, state }
    }

    /// Its table in the configuration of [`hub_of`], under this name.
    pub fn table(&self, name: &str) -> String {
        let (issuer, secret) = (self.issuer(), "client_secret_file = \"FOLDER/secret\"");
        format!("[[sign_in.oidc]]\nname = \"{name}\"\nissuer = \"{issuer}\"\nclient_id = \"{CLIENT}\"\n{secret}\n")
    }

    /// Its issuer.
    pub fn issuer(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Changes its behavior from now on.
    ///
    /// # Panics
    /// Panics when a thread of it has panicked.
    pub fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.lock().script);
    }

    /// Number of requests for a path.
    ///
    /// # Panics
    /// Panics as [`Provider::script`] does.
    pub fn asked(&self, path: &str) -> usize {
        self.lock().asked.iter().filter(|asked| *asked == path).count()
    }

    fn lock(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock()
    }
}

/// A hub with this configuration, in which FOLDER stands for a folder with a file of the secret of [`CLIENT`]. Browsers
/// reach the hub at another address than the redirects' one: see [`Script::back_to`].
///
/// # Panics
/// Panics when it does not start.
pub fn hub_of(text: &str) -> Hub {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, secret) = (folder.path().join("config.toml"), folder.path().join("secret"));
    std::fs::write(&secret, format!("{SECRET}\n")).expect("written");
    std::fs::write(&file, text.replace("FOLDER", &folder.path().display().to_string())).expect("written");
    let (file, public) = (file.display().to_string(), "http://127.0.0.1:9/");
    Hub::start(["--no-local", "--config", &file, "--public-url", public])
}

type Form = BTreeMap<String, String>;

fn form(text: &str) -> Form {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// An answer: the status, a header line, and a body.
type Reply = (u16, String, String);

fn plain(status: u16, body: Value) -> Reply {
    (status, String::new(), body.to_string())
}

fn refused(error: &str) -> Reply {
    plain(400, json!({ "error": error, "error_description": "as the tests want it" }))
}

fn serve(mut client: TcpStream, addr: SocketAddr, state: &Mutex<ProviderState>) -> io::Result<()> {
    let mut from = BufReader::new(client.try_clone()?);
    loop {
        let mut first = String::new();
        if from.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let (mut length, mut authorization, mut last) = (0, String::new(), false);
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(io::Error::other)?,
                "connection" => last = value.eq_ignore_ascii_case("close"),
                "authorization" => authorization = value.to_string(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        let target = first.split(' ').nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let sent = form(if query.is_empty() { std::str::from_utf8(&body).unwrap_or_default() } else { query });
        let (status, header, body) = {
            let mut state = state.lock();
            state.asked.push(path.to_string());
            match state.script.broken {
                Some(status) => plain(status, json!({ "error": "broken" })),
                None => state.padded_answer(addr, path, &sent, &authorization),
            }
        };
        let length = body.len();
        write!(
            client,
            "HTTP/1.1 {status} As it is\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{header}\r\n{body}"
        )?;
        if last {
            return Ok(());
        }
    }
}

impl ProviderState {
    fn padded_answer(&mut self, addr: SocketAddr, path: &str, sent: &Form, authorization: &str) -> Reply {
        let (status, header, body) = self.answer(addr, path, sent, authorization);
        let body = match self.script.padded {
            Some((padded, bytes)) if padded == path => {
                body.replacen('{', &format!("{{\"padding\":\"{}\",", "x".repeat(bytes)), 1)
            }
            _ => body,
        };
        (status, header, body)
    }

    fn answer(&mut self, addr: SocketAddr, path: &str, sent: &Form, authorization: &str) -> Reply {
        let issuer = format!("http://{addr}");
        match path {
            "/.well-known/openid-configuration" => {
                let mut says = json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/authorize"),
                    "token_endpoint": format!("{issuer}/token"),
                    "jwks_uri": format!("{issuer}/keys"),
                    "authorization_response_iss_parameter_supported": self.script.says_iss.is_some(),
                });
                put(&mut says, &self.script.discovery);
                plain(200, says)
            }
            "/keys" => plain(200, json!({ "keys": self.script.keys.iter().map(Key::shown).collect::<Vec<_>>() })),
            "/authorize" | "/login/oauth/authorize" => self.grant(path, sent),
            "/token" => {
                let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let wanted = format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(CLIENT), encoded(SECRET))));
                match authorization == wanted {
                    true => self.swap(&issuer, sent),
                    false => plain(401, json!({ "error": "invalid_client" })),
                }
            }
            "/login/oauth/access_token" => {
                let right = sent.get("client_id").is_some_and(|id| id == CLIENT)
                    && sent.get("client_secret").is_some_and(|secret| secret == SECRET);
                match self.taken(sent).filter(|_| right) {
                    Some(_) => plain(200, json!({ "access_token": "gho_t0ken", "token_type": "bearer" })),
                    None => plain(200, json!({ "error": "bad_verification_code" })),
                }
            }
            path if authorization == "Bearer gho_t0ken" => match self.script.github.get(path) {
                Some(body) => plain(200, body.clone()),
                None => plain(404, json!({ "message": "Not Found" })),
            },
            _ => plain(404, json!({ "error": "not_found" })),
        }
    }

    /// A person consents, and is redirected back.
    fn grant(&mut self, path: &str, sent: &Form) -> Reply {
        let field = |name: &str| sent.get(name).cloned().unwrap_or_default();
        let oidc = path == "/authorize";
        let right = field("client_id") == CLIENT
            && field("response_type") == "code"
            && field("code_challenge_method") == "S256"
            && !field("state").is_empty()
            && oidc == sent.contains_key("nonce")
            && oidc == field("scope").split(' ').any(|scope| scope == "openid");
        if !right {
            return refused("invalid_request");
        }
        let code = format!("code+{}/", self.granted.len());
        let (redirect, again) = (field("redirect_uri"), field("prompt") == "login");
        let challenge = field("code_challenge");
        let granted = Granted { challenge, redirect: redirect.clone(), nonce: sent.get("nonce").cloned(), again };
        self.granted.insert(code.clone(), granted);
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("code", &code).append_pair("state", &field("state"));
        if let Some(issuer) = &self.script.says_iss {
            query.append_pair("iss", issuer);
        }
        let place = match (self.script.back_to, redirect.splitn(4, '/').nth(3)) {
            (Some(addr), Some(path)) => format!("http://{addr}/{path}"),
            _ => redirect,
        };
        (303, format!("location: {place}?{}\r\n", query.finish()), String::new())
    }

    /// The grant of a code, which is valid once. None when verifier or redirect URI does not match.
    fn taken(&mut self, sent: &Form) -> Option<Granted> {
        let granted = self.granted.remove(sent.get("code")?)?;
        let proved = url64(digest(&SHA256, sent.get("code_verifier")?.as_bytes()).as_ref());
        (proved == granted.challenge && sent.get("redirect_uri") == Some(&granted.redirect)).then_some(granted)
    }

    fn swap(&mut self, issuer: &str, sent: &Form) -> Reply {
        if sent.get("grant_type").is_none_or(|grant| grant != "authorization_code") {
            return refused("unsupported_grant_type");
        }
        let Some(granted) = self.taken(sent) else { return refused("invalid_grant") };
        let now = now();
        let mut claims = json!({ "iss": issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": granted.nonce });
        if granted.again {
            claims["auth_time"] = now.into();
        }
        put(&mut claims, &self.script.claims);
        plain(200, json!({ "access_token": "unused", "token_type": "Bearer", "id_token": self.token(&claims) }))
    }

    fn token(&self, claims: &Value) -> String {
        let key = self.script.keys.last().expect("a provider has a key");
        let name = if self.script.signed == Signed::ByUnknown { "unknown" } else { key.name() };
        let alg = match (self.script.signed, key) {
            (Signed::NotAtAll, _) => "none",
            (Signed::ByUnknown, _) => "ES256",
            (Signed::ByClientSecret | Signed::ByPublicKey, _) => "HS256",
            (_, Key::Rsa) => "RS256",
            (_, Key::Ec(..)) => "ES256",
        };
        let part = |value: &Value| url64(value.to_string().as_bytes());
        let head = part(&json!({ "alg": alg, "typ": "JWT", "kid": name }));
        let text = format!("{head}.{}", part(claims));
        let signature = match self.script.signed {
            Signed::Well | Signed::ThenChanged => key.sign(&text),
            Signed::NotAtAll => Vec::new(),
            Signed::ByAnother | Signed::ByUnknown => Key::new_ec("other").sign(&text),
            Signed::ByClientSecret => by_hmac(SECRET, &text),
            Signed::ByPublicKey => {
                let shown = STANDARD.encode(Key::rsa().public_key());
                by_hmac(&format!("-----BEGIN RSA PUBLIC KEY-----\n{shown}\n-----END RSA PUBLIC KEY-----\n"), &text)
            }
        };
        let text = match self.script.signed {
            Signed::ThenChanged => {
                let mut other = claims.clone();
                other["sub"] = "p-2".into();
                format!("{head}.{}", part(&other))
            }
            _ => text,
        };
        format!("{text}.{}", url64(&signature))
    }
}

fn by_hmac(key: &str, text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), text.as_bytes()).as_ref().to_vec()
}

/// Sets fields of an object; null removes one.
fn put(onto: &mut Value, over: &Value) {
    let (Some(onto), Some(over)) = (onto.as_object_mut(), over.as_object()) else { return };
    for (name, value) in over {
        match value {
            Value::Null => drop(onto.remove(name)),
            value => drop(onto.insert(name.clone(), value.clone())),
        }
    }
}
