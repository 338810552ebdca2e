//! Validation of ID tokens. `jsonwebtoken` parses tokens and keys, and `ring` verifies signatures. Times are checked
//! here, by the hub's clock, and so are the checks that the library leaves open.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, new_error};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::signature::{Error as BadSignature, Verifier};
use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, Header, Validation, decode, decode_header,
};
use ring::signature::{self as ways, RsaParameters, VerificationAlgorithm};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::fmt;

/// Tolerance for clock differences at the start and end of a token, and for its time of issue, seconds.
const SKEW: i64 = 60;
const MAX_AGE: u64 = 300;

/// Only asymmetric algorithms: no secret of ours can sign a token.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Allowed types in the header of an ID token, if it has one; other tokens of the same provider are rejected.
const TYPES: [&str; 4] = ["JWT", "application/jwt", "JOSE", "application/jose"];

/// The keys that a provider publishes.
pub(super) struct Keys(Vec<Jwk>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        // A key that cannot be read is skipped; the others are used.
        let keys = Set::deserialize(from)?.keys.into_iter();
        Ok(Keys(keys.filter_map(|key| Jwk::deserialize(key).ok()).collect()))
    }
}

/// Required claims of a token.
pub(super) struct WantedClaims<'a> {
    /// The issuer.
    pub issuer: &'a str,
    /// The audience.
    pub client: &'a str,
    /// The nonce of the request.
    pub nonce: &'a str,
    /// Now, seconds since the Unix epoch.
    pub now: i64,
}

/// Reason why a token is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// None of these keys signed it; the provider may have new ones.
    Keys(&'static str),
    /// New keys do not help.
    Whole(String),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Keys(why) => f.write_str(why),
            Doubt::Whole(why) => f.write_str(why),
        }
    }
}

fn whole(why: impl Into<String>) -> Doubt {
    Doubt::Whole(why.into())
}

/// Claims that are read by name.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: String,
    aud: Audience,
    azp: Option<String>,
    exp: Seconds,
    iat: Seconds,
    nbf: Option<Seconds>,
    nonce: String,
    auth_time: Option<Seconds>,
    /// The person's subject ID, which never changes.
    pub sub: String,
    email: Option<String>,
    #[serde(default, deserialize_with = "truth")]
    email_verified: bool,
    /// The person's user name.
    pub preferred_username: Option<String>,
}

impl Claims {
    /// The person's e-mail address, if the provider has verified it.
    pub fn email(&self) -> Option<&str> {
        self.email.as_deref().filter(|_| self.email_verified)
    }

    /// When the person authenticated, seconds since the Unix epoch.
    pub fn proved(&self) -> Option<i64> {
        self.auth_time.map(|at| at.0)
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// Seconds since the Unix epoch; a provider may send fractions.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(from = "f64")]
struct Seconds(i64);

impl From<f64> for Seconds {
    fn from(seconds: f64) -> Self {
        Seconds(seconds.floor() as i64)
    }
}

/// Some providers send it as a text.
fn truth<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let told = Value::deserialize(from)?;
    Ok(told == Value::Bool(true) || told == "true")
}

/// The claims of a valid token: those that are read by name, and all of them.
pub(super) fn believed(
    text: &str,
    keys: &Keys,
    wanted: &WantedClaims<'_>,
) -> Result<(Claims, Map<String, Value>), Doubt> {
    // A second installation fails without harm: there is no other provider.
    let _ = RING.install_default();
    let header = decode_header(text).map_err(|_| whole("there is none"))?;
    let key = key_of(&header, keys)?;
    let mut validation = Validation::new(header.alg);
    validation.set_issuer(&[wanted.issuer]);
    validation.set_audience(&[wanted.client]);
    validation.set_required_spec_claims(&["iss", "aud", "exp", "sub"]);
    // The library would use the system's clock.
    validation.validate_exp = false;
    let key = DecodingKey::from_jwk(key).map_err(|_| whole("the key that it names cannot be read"))?;
    let all = decode::<Value>(text, &key, &validation).map_err(doubt)?.claims;
    let claims = Claims::deserialize(&all).map_err(|error| whole(format!("its claims: {error}")))?;
    holds(&claims, wanted).map_err(whole)?;
    match all {
        Value::Object(all) => Ok((claims, all)),
        _ => Err(whole("its claims are not an object")),
    }
}

/// The only key that can have signed a token with this header.
fn key_of<'a>(header: &Header, keys: &'a Keys) -> Result<&'a Jwk, Doubt> {
    if !ALGORITHMS.contains(&header.alg) {
        return Err(whole("it is signed with a shared secret, which is not supported (alg)"));
    }
    if header.typ.as_ref().is_some_and(|typ| !TYPES.iter().any(|known| known.eq_ignore_ascii_case(typ))) {
        return Err(whole("it is another kind of token (typ)"));
    }
    if header.crit.is_some() || header.cty.is_some() {
        return Err(whole("it has an unsupported critical header (crit, cty)"));
    }
    let named = |key: &&Jwk| header.kid.is_none() || header.kid == key.common.key_id;
    let mut fitting = keys.0.iter().filter(named).filter(|key| fits(key, header.alg));
    match (fitting.next(), fitting.next()) {
        (Some(key), None) => Ok(key),
        (None, _) => Err(Doubt::Keys("the provider has no such key")),
        (Some(_), Some(_)) => Err(whole("it does not name the key of its signature (kid)")),
    }
}

/// Whether a key is for signatures with this algorithm.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let kind = match &key.algorithm {
        AlgorithmParameters::RSA(_) => algorithm.family() == AlgorithmFamily::Rsa,
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => algorithm == Algorithm::ES256,
            EllipticCurve::P384 => algorithm == Algorithm::ES384,
            _ => false,
        },
        AlgorithmParameters::OctetKeyPair(key) => key.curve == EllipticCurve::Ed25519 && algorithm == Algorithm::EdDSA,
        // A symmetric key, or an unknown kind.
        _ => false,
    };
    let own = &key.common;
    let signs =
        |all: &Vec<KeyOperations>| all.iter().any(|does| matches!(does, KeyOperations::Verify | KeyOperations::Sign));
    kind && own.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature)
        && own.key_operations.as_ref().is_none_or(signs)
        && own.key_algorithm.is_none_or(|own| own == KeyAlgorithm::from(algorithm))
}

fn doubt(error: Error) -> Doubt {
    match error.kind() {
        ErrorKind::InvalidSignature => {
            Doubt::Keys("its signature matches no key of the provider; RSA needs 2048 bits or more")
        }
        ErrorKind::InvalidIssuer => whole("it is from another issuer (iss)"),
        ErrorKind::InvalidAudience => whole("it is for another client (aud)"),
        ErrorKind::MissingRequiredClaim(claim) => whole(format!("{claim} is missing in it")),
        _ => whole("it cannot be read"),
    }
}

/// The checks that the library leaves open.
fn holds(claims: &Claims, wanted: &WantedClaims<'_>) -> Result<(), &'static str> {
    let alone = match &claims.aud {
        Audience::One(aud) => aud == wanted.client,
        Audience::Many(all) => all.iter().all(|aud| aud == wanted.client),
    };
    let now = wanted.now;
    Err(match claims {
        _ if claims.iss != wanted.issuer => "it is from another issuer (iss)",
        // Each of the other clients could sign in here with it.
        _ if !alone => "it is also for other clients (aud)",
        _ if claims.azp.as_ref().is_some_and(|azp| azp != wanted.client) => "it was issued to another client (azp)",
        _ if now.saturating_sub(SKEW) >= claims.exp.0 => "it has expired (exp)",
        _ if claims.nbf.is_some_and(|from| from.0.saturating_sub(SKEW) > now) => "it is not valid yet (nbf)",
        _ if claims.iat.0.abs_diff(now) > MAX_AGE => "it is too old, or one of the two clocks is wrong (iat)",
        _ if claims.nonce != wanted.nonce => "it belongs to another sign-in (nonce)",
        _ => return Ok(()),
    })
}

/// Signatures by `ring`, as in TLS.
static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: |algorithm, key| match key.family() == algorithm.family() {
        true => Ok(Box::new(ByRing { algorithm: *algorithm, key: key.clone() })),
        false => Err(new_error(ErrorKind::InvalidAlgorithm)),
    },
    // For keys of other formats, which are not used.
    key_utils: KeyUtils::new_unimplemented(),
};

struct ByRing {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for ByRing {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for ByRing {
    fn verify(&self, text: &[u8], signature: &Vec<u8>) -> Result<(), BadSignature> {
        let rsa = |way: &'static RsaParameters| match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                ways::RsaPublicKeyComponents { n: bare(n), e: bare(e) }.verify(way, text, signature).ok()
            }
            DecodingKeyKind::SecretOrDer(_) => None,
        };
        let point = |way: &'static dyn VerificationAlgorithm| match self.key.kind() {
            DecodingKeyKind::SecretOrDer(key) => ways::UnparsedPublicKey::new(way, key).verify(text, signature).ok(),
            DecodingKeyKind::RsaModulusExponent { .. } => None,
        };
        let good = match self.algorithm {
            Algorithm::RS256 => rsa(&ways::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => rsa(&ways::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => rsa(&ways::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => rsa(&ways::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => rsa(&ways::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => rsa(&ways::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => point(&ways::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => point(&ways::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => point(&ways::ED25519),
            _ => None,
        };
        good.ok_or_else(BadSignature::new)
    }
}

/// A number without the leading zeros that some providers write.
fn bare(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests;
