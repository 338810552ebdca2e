//! Attacks on ID tokens, each beside the valid token.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RsaEncoding, RsaKeyPair};
use serde_json::json;

const NOW: i64 = 1_800_000_000;
const WANTED: WantedClaims<'static> =
    WantedClaims { issuer: "https://id.test", client: "watchglass", nonce: "n-1", now: NOW };
const RSA: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/provider/rsa.pk8"));

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// Both halves of a key of the provider.
struct Pair {
    alg: &'static str,
    shown: Value,
    sign: Sign,
}

fn url64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rsa_key() -> RsaKeyPair {
    RsaKeyPair::from_pkcs8(RSA).expect("the key of the tests")
}

fn rsa(alg: &'static str, way: &'static dyn RsaEncoding) -> Pair {
    let key = rsa_key();
    let parts = PublicKeyComponents::<Vec<u8>>::from(key.public_key());
    let shown = json!({ "kty": "RSA", "kid": "rsa", "n": url64(&parts.n), "e": url64(&parts.e) });
    let sign = move |text: &[u8]| {
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(way, &SystemRandom::new(), text, &mut signature).expect("a signature");
        signature
    };
    Pair { alg, shown, sign: Box::new(sign) }
}

fn ec(alg: &'static str, curve: &'static str, way: &'static EcdsaSigningAlgorithm) -> Pair {
    let random = SystemRandom::new();
    let pk8 = EcdsaKeyPair::generate_pkcs8(way, &random).expect("a key");
    let key = EcdsaKeyPair::from_pkcs8(way, pk8.as_ref(), &random).expect("the same key");
    let point = key.public_key().as_ref()[1..].to_vec();
    let (x, y) = point.split_at(point.len() / 2);
    let shown = json!({ "kty": "EC", "kid": curve, "crv": curve, "x": url64(x), "y": url64(y) });
    let sign = move |text: &[u8]| key.sign(&random, text).expect("a signature").as_ref().to_vec();
    Pair { alg, shown, sign: Box::new(sign) }
}

fn ed() -> Pair {
    let pk8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
    let key = Ed25519KeyPair::from_pkcs8(pk8.as_ref()).expect("the same key");
    let shown = json!({ "kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": url64(key.public_key().as_ref()) });
    Pair { alg: "EdDSA", shown, sign: Box::new(move |text| key.sign(text).as_ref().to_vec()) }
}

fn p256() -> Pair {
    ec("ES256", "P-256", &ways::ECDSA_P256_SHA256_FIXED_SIGNING)
}

fn every() -> [Pair; 9] {
    [
        rsa("RS256", &ways::RSA_PKCS1_SHA256),
        rsa("RS384", &ways::RSA_PKCS1_SHA384),
        rsa("RS512", &ways::RSA_PKCS1_SHA512),
        rsa("PS256", &ways::RSA_PSS_SHA256),
        rsa("PS384", &ways::RSA_PSS_SHA384),
        rsa("PS512", &ways::RSA_PSS_SHA512),
        p256(),
        ec("ES384", "P-384", &ways::ECDSA_P384_SHA384_FIXED_SIGNING),
        ed(),
    ]
}

/// The keys that a provider publishes.
fn shows(keys: &[Value]) -> Keys {
    serde_json::from_value(json!({ "keys": keys })).expect("a set of keys")
}

/// A table with its fields overwritten by those of another; null removes a field.
fn with(table: &Value, over: Value) -> Value {
    let mut table = table.as_object().expect("a table").clone();
    table.extend(over.as_object().expect("a table").clone());
    table.retain(|_, value| !value.is_null());
    table.into()
}

fn claims() -> Value {
    json!({ "iss": WANTED.issuer, "aud": WANTED.client, "sub": "p-1", "nonce": WANTED.nonce, "iat": NOW, "exp": NOW + 300 })
}

fn signed(head: &Value, claims: &str, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let text = format!("{}.{}", url64(head.to_string().as_bytes()), url64(claims.as_bytes()));
    let signature = url64(&sign(text.as_bytes()));
    format!("{text}.{signature}")
}

impl Pair {
    fn head(&self) -> Value {
        json!({ "alg": self.alg, "typ": "JWT", "kid": self.shown["kid"] })
    }

    fn token(&self, claims: &Value) -> String {
        signed(&self.head(), &claims.to_string(), &self.sign)
    }

    fn shows(&self) -> Keys {
        shows(std::slice::from_ref(&self.shown))
    }
}

/// Reason why a token is rejected.
#[track_caller]
fn why(text: &str, keys: &Keys) -> String {
    believed(text, keys, &WANTED).map(|(claims, _)| claims).expect_err("believed").to_string()
}

#[test]
fn each_way_to_sign_holds_by_its_own_key_alone() {
    let every = every();
    for pair in &every {
        let stated = with(&pair.shown, json!({ "alg": pair.alg, "use": "sig" }));
        for shown in [pair.shown.clone(), stated, with(&pair.shown, json!({ "key_ops": ["verify"] }))] {
            let (claims, all) = believed(&pair.token(&claims()), &shows(&[shown]), &WANTED).expect(pair.alg);
            assert_eq!((claims.sub.as_str(), &all["sub"]), ("p-1", &json!("p-1")));
        }
        // Another key's signature under this one's name; and claims that were not signed.
        let another = signed(&pair.head(), &claims().to_string(), |text| (p256().sign)(text));
        let mut parts: Vec<String> = pair.token(&claims()).split('.').map(String::from).collect();
        parts[1] = url64(with(&claims(), json!({ "sub": "p-2" })).to_string().as_bytes());
        for forged in [another, parts.join("."), signed(&pair.head(), &claims().to_string(), |_| Vec::new())] {
            let doubt = believed(&forged, &pair.shows(), &WANTED).map(|_| ()).expect_err(pair.alg);
            assert!(matches!(doubt, Doubt::Keys(_)), "{}: {doubt}", pair.alg);
        }
        // The right key, under the name of every other algorithm.
        for other in every.iter().filter(|other| other.alg != pair.alg) {
            let head = with(&pair.head(), json!({ "alg": other.alg }));
            let confused = signed(&head, &claims().to_string(), &pair.sign);
            assert!(believed(&confused, &pair.shows(), &WANTED).is_err(), "{} as {}", pair.alg, other.alg);
            let stated = with(&pair.shown, json!({ "alg": other.alg }));
            assert_eq!(why(&pair.token(&claims()), &shows(&[stated])), "the provider has no such key", "{}", pair.alg);
        }
    }
}

#[test]
fn no_secret_and_no_missing_signature_makes_a_token() {
    let pair = rsa("RS256", &ways::RSA_PKCS1_SHA256);
    let oct = json!({ "kty": "oct", "kid": "oct", "k": url64(b"secret"), "alg": "HS256" });
    let keys = shows(&[pair.shown.clone(), oct]);
    let der = rsa_key().public_key().as_ref().to_vec();
    let pem = format!("-----BEGIN RSA PUBLIC KEY-----\n{}\n-----END RSA PUBLIC KEY-----\n", STANDARD.encode(&der));
    let modulus = PublicKeyComponents::<Vec<u8>>::from(rsa_key().public_key()).n;
    let ways = [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)];
    for (alg, way) in ways {
        for secret in [pem.as_bytes(), &der, &modulus, b"secret", b""] {
            for kid in [json!("rsa"), json!("oct"), Value::Null] {
                let head = with(&json!({ "alg": alg, "typ": "JWT" }), json!({ "kid": kid }));
                let by = |text: &[u8]| hmac::sign(&hmac::Key::new(way, secret), text).as_ref().to_vec();
                assert!(
                    why(&signed(&head, &claims().to_string(), by), &keys).contains("with a shared secret"),
                    "{head}"
                );
            }
        }
    }
    for alg in ["none", "None", "NONE", "nOnE", "", "RS1", "rs256", "ES512"] {
        for signature in [Vec::new(), (pair.sign)(b"")] {
            let head = json!({ "alg": alg, "typ": "JWT", "kid": "rsa" });
            assert_eq!(
                why(&signed(&head, &claims().to_string(), |_| signature.clone()), &keys),
                "there is none",
                "{alg}"
            );
        }
    }
    // A key inside a token is not trusted.
    let own = p256();
    let head = json!({ "alg": "ES256", "jwk": own.shown, "kid": "P-256" });
    assert_eq!(why(&signed(&head, &claims().to_string(), &own.sign), &keys), "the provider has no such key");
    let head = json!({ "alg": "ES256", "jku": "https://evil.test/keys", "x5u": "https://evil.test/x" });
    assert_eq!(why(&signed(&head, &claims().to_string(), &own.sign), &keys), "the provider has no such key");
}

#[test]
fn a_key_is_found_by_its_name_or_because_there_is_but_one() {
    let (pair, other) = (p256(), ed());
    let good = pair.token(&claims());
    let unnamed = signed(&json!({ "alg": "ES256" }), &claims().to_string(), &pair.sign);
    let second = with(&p256().shown, json!({ "kid": "second" }));
    let both = shows(&[second.clone(), pair.shown.clone()]);
    assert!(believed(&good, &both, &WANTED).is_ok());
    assert!(believed(&unnamed, &shows(&[other.shown.clone(), pair.shown.clone()]), &WANTED).is_ok(), "one that fits");
    assert!(why(&unnamed, &both).contains("(kid)"));
    assert!(why(&good, &shows(&[pair.shown.clone(), pair.shown.clone()])).contains("(kid)"), "twice");
    for shown in [
        second,
        with(&pair.shown, json!({ "kid": null })),
        with(&pair.shown, json!({ "use": "enc" })),
        with(&pair.shown, json!({ "key_ops": ["encrypt"] })),
        with(&pair.shown, json!({ "alg": "ECDH-ES" })),
        with(&pair.shown, json!({ "crv": "P-384" })),
        with(&pair.shown, json!({ "crv": "secp256k1" })),
        with(&pair.shown, json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" })),
        with(&pair.shown, json!({ "y": null })),
        json!({}),
        json!("no key"),
        json!(null),
    ] {
        assert_eq!(why(&good, &shows(std::slice::from_ref(&shown))), "the provider has no such key", "{shown}");
        // It does not affect the other keys.
        assert!(believed(&good, &shows(&[shown, pair.shown.clone()]), &WANTED).is_ok());
    }
    assert_eq!(why(&good, &shows(&[])), "the provider has no such key");
    for wrong in [json!({}), json!([]), json!({ "keys": {} }), json!({ "keys": null })] {
        assert!(serde_json::from_value::<Keys>(wrong.clone()).is_err(), "{wrong}");
    }
    // Invalid letters, and points that are on no curve.
    for (x, words) in [("!", "cannot be read"), ("AAAA", "matches no key"), ("", "matches no key")] {
        let broken = with(&pair.shown, json!({ "x": x }));
        assert!(why(&good, &shows(&[broken])).contains(words), "{x}");
    }
}

#[test]
fn an_rsa_key_counts_from_2048_bits_however_its_number_is_written() {
    let pair = rsa("PS256", &ways::RSA_PSS_SHA256);
    let n = PublicKeyComponents::<Vec<u8>>::from(rsa_key().public_key()).n;
    let shown = |n: &[u8]| shows(&[with(&pair.shown, json!({ "n": url64(n) }))]);
    assert!(believed(&pair.token(&claims()), &shown(&[&[0, 0], n.as_slice()].concat()), &WANTED).is_ok());
    for wrong in [&n[..128], &n[1..], &[], &[0; 256]] {
        assert!(why(&pair.token(&claims()), &shown(wrong)).contains("2048 bits"));
    }
}

#[test]
fn each_claim_has_to_be_as_it_should() {
    let pair = ed();
    let keys = pair.shows();
    for (over, word) in [
        (json!({ "iss": "https://id.test/" }), "(iss)"),
        (json!({ "iss": "https://evil.test" }), "(iss)"),
        (json!({ "iss": null }), "iss is missing"),
        (json!({ "iss": ["https://id.test", "https://evil.test"] }), "its claims"),
        (json!({ "aud": "another" }), "(aud)"),
        (json!({ "aud": "Watchglass" }), "(aud)"),
        (json!({ "aud": null }), "aud is missing"),
        (json!({ "aud": [] }), "(aud)"),
        (json!({ "aud": [1, "watchglass"] }), "aud is missing"),
        (json!({ "aud": { "watchglass": 1 } }), "aud is missing"),
        (json!({ "aud": ["watchglass", "another"] }), "also for other clients (aud)"),
        (json!({ "aud": ["watchglass", "another"], "azp": "watchglass" }), "also for other clients (aud)"),
        (json!({ "azp": "another" }), "(azp)"),
        (json!({ "azp": ["watchglass"] }), "its claims"),
        (json!({ "nonce": "n-2" }), "(nonce)"),
        (json!({ "nonce": "" }), "(nonce)"),
        (json!({ "nonce": null }), "nonce"),
        (json!({ "sub": null }), "sub is missing"),
        (json!({ "sub": 1 }), "sub is missing"),
        (json!({ "exp": null }), "exp is missing"),
        (json!({ "exp": "never" }), "exp is missing"),
        (json!({ "exp": -1 }), "exp is missing"),
        (json!({ "exp": 1e300 }), "exp is missing"),
        (json!({ "exp": NOW - 60 }), "(exp)"),
        (json!({ "exp": 0 }), "(exp)"),
        (json!({ "nbf": NOW + 61 }), "(nbf)"),
        (json!({ "nbf": 1e300 }), "(nbf)"),
        (json!({ "nbf": "later" }), "its claims"),
        (json!({ "iat": null }), "iat"),
        (json!({ "iat": NOW - 301 }), "(iat)"),
        (json!({ "iat": NOW + 301 }), "(iat)"),
        (json!({ "iat": 1e300 }), "(iat)"),
        (json!({ "iat": -1e300 }), "(iat)"),
        (json!({ "iat": format!("{NOW}") }), "its claims"),
        (json!({ "auth_time": "now" }), "its claims"),
        (json!({ "email": 1 }), "its claims"),
    ] {
        let doubt =
            believed(&pair.token(&with(&claims(), over.clone())), &keys, &WANTED).map(|_| ()).expect_err("believed");
        assert!(matches!(&doubt, Doubt::Whole(why) if why.contains(word)), "{over}: {doubt}");
    }
    for over in [
        json!({ "aud": ["watchglass"] }),
        json!({ "aud": ["watchglass", "watchglass"], "azp": "watchglass" }),
        json!({ "exp": NOW - 59 }),
        json!({ "exp": NOW as f64 + 0.5 }),
        json!({ "nbf": NOW + 60 }),
        json!({ "nbf": 0 }),
        json!({ "iat": NOW - 300 }),
        json!({ "iat": NOW + 300 }),
        json!({ "iat": NOW as f64 - 0.5, "auth_time": NOW as f64 + 0.9 }),
    ] {
        let (claims, _) = believed(&pair.token(&with(&claims(), over.clone())), &keys, &WANTED).expect("believed");
        assert_eq!(claims.proved(), over.get("auth_time").map(|_| NOW), "{over}");
    }
}

#[test]
fn an_address_counts_only_if_the_provider_has_seen_to_it() {
    let pair = ed();
    for (verified, counts) in [
        (json!(true), true),
        (json!("true"), true),
        (json!(false), false),
        (json!("false"), false),
        (json!("TRUE"), false),
        (json!(1), false),
        (json!(["true"]), false),
        (json!(null), false),
    ] {
        let over = json!({ "email": "nora@example.org", "email_verified": verified, "groups": ["a"] });
        let (claims, all) = believed(&pair.token(&with(&claims(), over)), &pair.shows(), &WANTED).expect("believed");
        assert_eq!(claims.email(), counts.then_some("nora@example.org"), "{verified}");
        assert_eq!(all["groups"], json!(["a"]));
    }
}

#[test]
fn what_is_no_plain_id_token_is_none() {
    let pair = ed();
    let (keys, good) = (pair.shows(), pair.token(&claims()));
    for head in [json!({ "typ": null }), json!({ "typ": "jwt" }), json!({ "typ": "application/JWT" })] {
        assert!(
            believed(&signed(&with(&pair.head(), head), &claims().to_string(), &pair.sign), &keys, &WANTED).is_ok()
        );
    }
    for (head, word) in [
        (json!({ "typ": "at+jwt" }), "(typ)"),
        (json!({ "typ": "logout+jwt" }), "(typ)"),
        (json!({ "typ": "" }), "(typ)"),
        (json!({ "crit": ["b64"], "b64": false }), "(crit, cty)"),
        (json!({ "crit": [] }), "(crit, cty)"),
        (json!({ "cty": "JWT" }), "(crit, cty)"),
        (json!({ "kid": 7 }), "there is none"),
        (json!({ "alg": null }), "there is none"),
    ] {
        let text = signed(&with(&pair.head(), head.clone()), &claims().to_string(), &pair.sign);
        assert!(why(&text, &keys).contains(word), "{head}");
    }
    let twice = format!("{{\"iss\":\"https://evil.test\",{}", &claims().to_string()[1..]);
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    for text in [twice.as_str(), "[]", "1", "null", "", "{", &deep] {
        let short: String = text.chars().take(40).collect();
        assert!(believed(&signed(&pair.head(), text, &pair.sign), &keys, &WANTED).is_err(), "{short}");
    }
    for text in ["", ".", "..", "...", "a.b.c", "\u{0}.\u{0}.\u{0}", "é.é.é"] {
        assert_eq!(why(text, &keys), "there is none", "{text}");
    }
    for text in [format!("{good}."), format!("{good}.a"), format!(".{good}"), format!("{good}="), format!(" {good}")] {
        assert!(believed(&text, &keys, &WANTED).is_err(), "{text}");
    }
    // Every letter is covered by the signature.
    for at in 0..good.len() {
        for letter in [b'A', b'B', b'_', b'.', b' '] {
            let mut bytes = good.clone().into_bytes();
            if std::mem::replace(&mut bytes[at], letter) != letter {
                let text = String::from_utf8(bytes).expect("letters");
                assert!(believed(&text, &keys, &WANTED).is_err(), "{text}");
            }
        }
        assert!(believed(&good[..at], &keys, &WANTED).is_err());
    }
}
