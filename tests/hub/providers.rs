//! Sign-in by a provider, attacks first: forged, expired, foreign and reused tokens; answers of a flow that another
//! browser began; people without admission.

use super::JSON;
use serde_json::{Value, json};
use std::net::SocketAddr;
use watchglass_tests::hub::{Hub, PASSWORD};
use watchglass_tests::provider::{CLIENT, Key, Provider, SECRET, Signed, hub_of, now};
use watchglass_tests::server::{ServerAnswer, ask, run};
use watchglass_tests::waiting::until_so;

const BEGIN: &str = "/api/v1/session/oidc";
const SESSION: &str = "/api/v1/session";

/// A hub with a provider `lab`. `more` is added to its table, `ways` comes before it.
fn hub(provider: &Provider, ways: &str, more: &str) -> Hub {
    hub_of(&format!("[sign_in]\n{ways}\n{}{more}\n", provider.table("lab")))
}

/// A hub with GitHub as its provider.
fn with_github(provider: &Provider, more: &str) -> Hub {
    hub_of(&format!(
        "[sign_in]\nnew_accounts = \"viewer\"\n[sign_in.github]\nurl = \"{}\"\nclient_id = \"{CLIENT}\"\n\
         client_secret_file = \"FOLDER/secret\"\n{more}\n",
        provider.issuer()
    ))
}

/// A sign-in in progress: the redirect target of the browser, and its cookie.
#[derive(Clone)]
struct Begun {
    url: String,
    cookie: String,
}

/// All cookies that an answer sets whose lines begin with a prefix.
fn cookies(answer: &ServerAnswer) -> Vec<String> {
    let lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")).map(|(_, value)| value.to_string()).collect()
}

/// Begins a sign-in with this body, our page's `Origin` header and these headers.
#[track_caller]
fn begin_as(hub: &Hub, body: &Value, headers: &[&str]) -> Begun {
    let answer = hub.send("POST", BEGIN, &[&[JSON, &hub.origin()], headers].concat(), &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let away: Value = serde_json::from_str(&answer.body).expect("JSON");
    let set = cookies(&answer);
    assert!(set[0].contains("; HttpOnly; SameSite=Lax") && set[0].contains("Max-Age=600"), "{set:?}");
    let cookie = set[0].split(';').next().expect("a cookie").to_string();
    Begun { url: away["url"].as_str().expect("an address").to_string(), cookie: format!("Cookie: {cookie}") }
}

#[track_caller]
fn begin(hub: &Hub) -> Begun {
    begin_as(hub, &json!({ "provider": "lab" }), &[])
}

/// Follows an address of the provider, and returns our path to which it redirects the browser.
#[track_caller]
fn granted(url: &str) -> String {
    let (addr, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let addr: SocketAddr = addr.parse().expect("an address of loopback");
    let answer = ask(addr, &format!("GET /{path} HTTP/1.1\r\nHost: {addr}\r\n"));
    assert_eq!(answer.status, 303, "{answer:?}");
    let back = answer.header("location");
    back.strip_prefix("http://127.0.0.1:9").unwrap_or_else(|| panic!("to the hub: {back}")).to_string()
}

/// The browser returns. It sends no header of our page there, and reports another site as the origin of the navigation.
#[track_caller]
fn back(hub: &Hub, path: &str, cookie: &str) -> ServerAnswer {
    let answer = hub.send("GET", path, &[cookie, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"], "");
    assert_eq!(answer.status, 303, "{path}: {answer:?}");
    answer
}

/// The whole flow of a sign-in that has begun. Returns the final address of the page, and the session's cookie.
#[track_caller]
fn ended(hub: &Hub, begun: &Begun) -> (String, Option<String>) {
    came(hub, &back(hub, &granted(&begun.url), &begun.cookie))
}

fn came(hub: &Hub, answer: &ServerAnswer) -> (String, Option<String>) {
    let set = cookies(answer);
    let session = set.iter().find(|line| line.contains("SameSite=Strict"));
    let session = session.and_then(|line| line.split(';').next()).map(|cookie| format!("Cookie: {cookie}"));
    if let Some(session) = &session {
        assert_ne!(who(hub, session), "", "a session that is given holds");
    }
    (answer.header("location").to_string(), session)
}

/// Signs in. Returns the final address of the page, and the name of the signed-in account.
#[track_caller]
fn sign_in(hub: &Hub) -> (String, String) {
    let (place, session) = ended(hub, &begin(hub));
    (place, session.map(|session| who(hub, &session)).unwrap_or_default())
}

/// Name of the account that is signed in with this header.
fn who(hub: &Hub, header: &str) -> String {
    let session: Value = serde_json::from_str(&hub.send("GET", SESSION, &[header], "").body).expect("JSON");
    session["account"]["name"].as_str().unwrap_or_default().to_string()
}

#[track_caller]
fn refused(hub: &Hub, word: &str, what: &str) {
    let (place, name) = sign_in(hub);
    assert_eq!((place.as_str(), name.as_str()), (format!("/#refused={word}").as_str(), ""), "{what}");
}

const VIEWERS: &str = "new_accounts = \"viewer\"";

#[test]
fn who_proves_themselves_is_signed_in_as_the_same_account_each_time() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "");
    let told = hub.send("GET", SESSION, &[], "").body;
    assert!(told.contains("[\"password\",\"lab\"]"), "{told}");
    let wanted = json!({ "provider": "lab", "next": "/?page=fleet&find=node-03" });
    let (place, session) = ended(&hub, &begin_as(&hub, &wanted, &[]));
    assert_eq!(place, "/?page=fleet&find=node-03");
    let session = session.expect("signed in");
    assert_eq!(who(&hub, &session), "nora");
    let me = hub.send("GET", "/api/v1/me", &[&session], "").body;
    assert!(me.contains("nora@example.org") && me.contains("\"role\":\"viewer\""), "{me}");
    // A change of any other claim keeps the person. Another subject is another person, with all other claims equal.
    provider.script(|script| {
        script.claims = json!({ "sub": "p-1", "preferred_username": "ada", "email": "x@example.org" })
    });
    assert_eq!(sign_in(&hub).1, "nora");
    provider.script(|script| script.claims = json!({ "sub": "P-1", "preferred_username": "nora" }));
    assert_eq!(sign_in(&hub).1, "nora-2");
    let root = hub.cookie("root");
    let audit = hub.send("GET", "/api/v1/audit?action=sign-in&who=nora", &[&root], "").body;
    assert_eq!(audit.matches("by lab").count(), 2, "{audit}");
    let accounts = hub.send("GET", "/api/v1/accounts", &[&root], "").body;
    assert!(!accounts.contains(SECRET) && !hub.server.log().contains("s3cret"));
}

#[test]
fn a_token_that_does_not_stand_every_test_signs_nobody_in() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "");
    let person = json!({ "sub": "p-1" });
    let forged = [
        Signed::ByAnother,
        Signed::ByUnknown,
        Signed::NotAtAll,
        Signed::ThenChanged,
        Signed::ByClientSecret,
        Signed::ByPublicKey,
    ];
    for signed in forged {
        provider.script(|script| (script.signed, script.claims) = (signed, person.clone()));
        refused(&hub, "untrusted", &format!("{signed:?}"));
    }
    provider.script(|script| script.signed = Signed::Well);
    let wrong = [
        json!({ "aud": "another" }),
        json!({ "aud": [CLIENT, "another"] }),
        json!({ "aud": null }),
        json!({ "azp": CLIENT, "aud": [CLIENT, "another"] }),
        json!({ "azp": "another" }),
        json!({ "iss": "http://127.0.0.1:1" }),
        json!({ "iss": format!("{}/", provider.issuer()) }),
        json!({ "iss": null }),
        json!({ "iss": [provider.issuer()] }),
        json!({ "nonce": "another" }),
        json!({ "nonce": null }),
        json!({ "exp": now() - 120 }),
        json!({ "exp": null }),
        json!({ "exp": "never" }),
        json!({ "nbf": now() + 3_600 }),
        json!({ "iat": now() - 3_600 }),
        json!({ "iat": now() + 3_600 }),
        json!({ "sub": null }),
        json!({ "sub": "" }),
        json!({ "sub": "x".repeat(600) }),
    ];
    for wrong in &wrong {
        let mut claims = person.clone();
        claims.as_object_mut().expect("claims").extend(wrong.as_object().expect("claims").clone());
        provider.script(|script| script.claims = claims);
        refused(&hub, "untrusted", &wrong.to_string());
    }
    // Clocks may differ slightly.
    provider.script(|script| {
        script.claims = json!({ "sub": "p-1", "azp": CLIENT, "iat": now() - 30, "nbf": now() + 10, "exp": now() - 10 })
    });
    assert_eq!(sign_in(&hub).1, "p-1");
    let audit = hub.send("GET", "/api/v1/audit?action=sign-in&limit=1000", &[&hub.cookie("root")], "").body;
    assert_eq!(audit.matches("\"result\":\"untrusted\"").count(), forged.len() + wrong.len(), "{audit}");
}

#[test]
fn keys_change_and_tokens_of_the_new_one_hold_at_once() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "");
    assert_eq!(sign_in(&hub).1, "nora");
    provider.script(|script| script.keys = vec![Key::new_ec("ec-1")]);
    assert_eq!(sign_in(&hub).1, "nora", "ES256, by a key that came after the last look");
    let looked = provider.asked("/keys");
    for signed in [Signed::ByAnother, Signed::ByUnknown].repeat(3) {
        provider.script(|script| script.signed = signed);
        refused(&hub, "untrusted", "by no key of the provider's");
    }
    assert!(provider.asked("/keys") <= looked + 1, "forged tokens do not make the hub ask again and again");

    let provider = Provider::start();
    provider.script(|script| script.keys = vec![Key::new_ec("ec-1")]);
    let hub = self::hub(&provider, VIEWERS, "");
    assert_eq!(sign_in(&hub).1, "nora");
    provider.script(|script| script.keys = vec![Key::new_ec("ec-1")]);
    assert_eq!(sign_in(&hub).1, "nora", "another key under the same name");
}

#[test]
fn a_document_without_end_is_not_read() {
    let body = "{\"provider\":\"lab\"}";
    for path in ["/.well-known/openid-configuration", "/keys"] {
        let provider = Provider::start();
        provider.script(|script| script.padded = Some((path, 1 << 20)));
        let hub = hub(&provider, VIEWERS, "");
        assert_eq!(hub.send("POST", BEGIN, &[JSON, &hub.origin()], body).status, 503, "{path}");
        until_so("the log says which", || hub.server.log().contains(&format!("{}{path}: ", provider.issuer())));
        let provider = Provider::start();
        provider.script(|script| script.padded = Some((path, 100 << 10)));
        assert_eq!(sign_in(&self::hub(&provider, VIEWERS, "")).1, "nora", "large, and not too large: {path}");
    }
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "");
    provider.script(|script| script.padded = Some(("/token", 1 << 20)));
    refused(&hub, "away", "a token of a megabyte");
    provider.script(|script| script.padded = None);
    assert_eq!(sign_in(&hub).1, "nora");
}

#[test]
fn an_answer_counts_once_and_in_the_browser_that_began_it() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "");
    let (own, other) = (begin(&hub), begin(&hub));
    let path = granted(&own.url);
    // A browser is sent another person's answer, and would be signed in as that person (login CSRF).
    for cookie in ["Accept: */*", &other.cookie, &hub.cookie("ada"), &format!("{}x", own.cookie)] {
        let (place, session) = came(&hub, &back(&hub, &path, cookie));
        assert_eq!((place.as_str(), session), ("/#refused=elsewhere", None), "{cookie}");
    }
    let state = path.split("state=").nth(1).expect("a state");
    for wrong in ["", "state=", "state=a", &format!("state={state}&state={state}"), &format!("code=a&state=X{state}")] {
        let (place, session) = came(&hub, &back(&hub, &format!("/auth/lab/callback?{wrong}"), &own.cookie));
        assert_eq!((place.as_str(), session), ("/#refused=elsewhere", None), "{wrong}");
    }
    assert_eq!(provider.asked("/token"), 0, "nobody was asked about any of these");
    let first = back(&hub, &path, &own.cookie);
    assert!(cookies(&first).iter().any(|line| line.contains("Max-Age=0")), "the cookie has done its work: {first:?}");
    assert!(came(&hub, &first).1.is_some());
    let (place, session) = came(&hub, &back(&hub, &path, &own.cookie));
    assert_eq!((place.as_str(), session), ("/#refused=over", None), "the same again");
    // A valid state with an invalid code, or with another's code.
    let path = granted(&other.url).replace("code=", "code=a");
    assert_eq!(came(&hub, &back(&hub, &path, &other.cookie)).0, "/#refused=away");
    let (one, two) = (begin(&hub), begin(&hub));
    let code_of = |path: &str| path.split("code=").nth(1).and_then(|rest| rest.split('&').next()).map(String::from);
    let (first, second) = (granted(&one.url), granted(&two.url));
    let stolen = second.replace(&code_of(&second).expect("a code"), &code_of(&first).expect("a code"));
    let (place, session) = came(&hub, &back(&hub, &stolen, &two.cookie));
    assert_eq!((place.as_str(), session), ("/#refused=away", None), "PKCE: the code was granted to another sign-in");
    let said_no = begin(&hub);
    let state = said_no.url.split("state=").nth(1).and_then(|rest| rest.split('&').next()).expect("a state");
    let no = back(&hub, &format!("/auth/lab/callback?error=access_denied&state={state}"), &said_no.cookie);
    assert_eq!(came(&hub, &no), ("/#refused=declined".into(), None));
}

#[test]
fn answers_that_nobody_awaits_fill_no_log_and_lock_nobody_out() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "");
    let used = begin(&hub);
    let path = granted(&used.url);
    assert!(came(&hub, &back(&hub, &path, &used.cookie)).1.is_some());
    let places = |cookie: &str| {
        let one = |_| back(&hub, &path, cookie).header("location").to_string();
        (0..35).map(one).collect::<Vec<_>>()
    };
    // A foreign page sends browsers to the callback that never began a sign-in.
    assert_eq!(places("Accept: */*"), ["/#refused=elsewhere"; 35]);
    let again = places(&used.cookie);
    assert_eq!(
        (again[29].as_str(), again[30].as_str()),
        ("/#refused=over", "/#refused=busy"),
        "what was used, 30 times"
    );
    let audit = |result: &str| {
        let all = hub.send("GET", "/api/v1/audit?action=sign-in&limit=1000", &[&hub.cookie("root")], "").body;
        all.matches(&format!("\"result\":\"{result}\"")).count()
    };
    assert_eq!((audit("elsewhere"), audit("over")), (30, 0), "all of a network in one bound");
    let told = hub.send("GET", "/api/v1/audit?limit=1", &[&hub.cookie("root")], "").body;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    // 5 of the first 35. All of the next 35, checked or not.
    assert_eq!(told["unwritten"], 40, "what is not in the log is counted");
    let team = hub.send("GET", "/api/v1/audit?team=main", &[&hub.cookie("ada")], "").body;
    assert!(!team.contains("unwritten"), "for admins of the hub: {team}");
    let metrics = hub.send("GET", "/metrics", &[&hub.cookie("root")], "").body;
    assert!(metrics.contains("\nwatchglass_audit_sign_ins_unwritten_total 40\n"), "{metrics}");
    let password = format!("{{\"name\":\"ada\",\"password\":\"{PASSWORD}\"}}");
    assert_eq!(hub.send("POST", SESSION, &[&hub.origin(), JSON], &password).status, 200, "passwords are not concerned");
}

#[test]
fn a_sign_in_begins_on_our_own_page_and_ends_there() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "");
    let body = "{\"provider\":\"lab\"}";
    for foreign in
        [&[JSON][..], &[JSON, "Origin: http://evil.test"], &[JSON, &hub.origin(), "Sec-Fetch-Site: same-site"]]
    {
        assert_eq!(hub.send("POST", BEGIN, foreign, body).status, 403, "{foreign:?}");
    }
    let unknown = hub.send("POST", BEGIN, &[JSON, &hub.origin()], "{\"provider\":\"password\"}");
    assert_eq!(unknown.status, 400, "{unknown:?}");
    for next in [
        "//evil.test/?a=b",
        "https://evil.test/",
        "/\\evil.test",
        "/%0d%0aLocation: x",
        "/?a=b#refused=over",
        "/api/v1/session",
        "javascript:alert(1)",
    ] {
        let (place, session) = ended(&hub, &begin_as(&hub, &json!({ "provider": "lab", "next": next }), &[]));
        assert_eq!((place.as_str(), session.is_some()), ("/", true), "{next}");
    }
}

#[test]
fn two_providers_are_never_mixed_up() {
    let (honest, evil) = (Provider::start(), Provider::start());
    let hub = hub_of(&format!("[sign_in]\n{VIEWERS}\n{}{}", honest.table("lab"), evil.table("evil")));
    // The browser began at one provider and returns to the callback of the other.
    let begun = begin(&hub);
    let path = granted(&begun.url).replace("/auth/lab/", "/auth/evil/");
    assert_eq!(came(&hub, &back(&hub, &path, &begun.cookie)), ("/#refused=untrusted".into(), None));
    assert_eq!((honest.asked("/token"), evil.asked("/token")), (0, 0), "no code was shown to anybody");
    let begun = begin(&hub);
    let path = format!("{}&iss=http%3A%2F%2F{}", granted(&begun.url), evil.addr);
    assert_eq!(came(&hub, &back(&hub, &path, &begun.cookie)), ("/#refused=untrusted".into(), None));
    assert_eq!(honest.asked("/token"), 0);
    // The same subject at two providers is two people.
    assert_eq!(sign_in(&hub).1, "nora");
    let (_, session) = ended(&hub, &begin_as(&hub, &json!({ "provider": "evil" }), &[]));
    assert_eq!(who(&hub, &session.expect("signed in")), "nora-2");
    // A token of one provider is invalid for the other, whatever its claims are.
    evil.script(|script| script.claims = json!({ "sub": "p-1", "iss": honest.issuer() }));
    let (place, session) = ended(&hub, &begin_as(&hub, &json!({ "provider": "evil" }), &[]));
    assert_eq!((place.as_str(), session), ("/#refused=untrusted", None));
}

#[test]
fn one_that_says_who_it_is_says_so_each_time() {
    let provider = Provider::start();
    provider.script(|script| script.says_iss = Some(format!("http://{}", provider.addr)));
    let hub = hub(&provider, VIEWERS, "");
    assert_eq!(sign_in(&hub).1, "nora");
    provider.script(|script| script.says_iss = None);
    refused(&hub, "untrusted", "the answer may be another's");
    provider.script(|script| script.says_iss = Some("http://evil.test".into()));
    refused(&hub, "untrusted", "it is another's");
}

#[test]
fn a_domain_admits_by_a_verified_address_only_and_an_address_is_nobodys_account() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "domains = [\"example.org\"]");
    for (email, verified) in [
        (json!("nora@example.org"), json!(false)),
        (json!("nora@example.org"), Value::Null),
        (json!("nora@example.org.evil.test"), json!(true)),
        (json!("nora@evil.test"), json!(true)),
        (json!("example.org"), json!(true)),
        (Value::Null, json!(true)),
    ] {
        let claims = json!({ "sub": "p-1", "email": email, "email_verified": verified, "hd": "example.org" });
        provider.script(|script| script.claims = claims);
        refused(&hub, "outside", &format!("{email} {verified}"));
    }
    let root = hub.cookie("root");
    let change = hub.send("PATCH", "/api/v1/me", &[&root, &hub.origin(), JSON], "{\"email\":\"root@example.org\"}");
    assert_eq!(change.status, 200, "{change:?}");
    let claims =
        json!({ "sub": "p-9", "preferred_username": "root", "email": "root@Example.org", "email_verified": true });
    provider.script(|script| script.claims = claims);
    assert_eq!(sign_in(&hub).1, "root-2", "the same name and address, and another person");
}

#[test]
fn who_has_no_account_needs_an_invitation_and_takes_it_by_the_provider() {
    let provider = Provider::start();
    let hub = hub(&provider, "", "");
    refused(&hub, "uninvited", "nobody invited them");
    let invite = || {
        let body = "{\"role\":\"member\"}";
        let made = hub.send("POST", "/api/v1/teams/main/invites", &[&hub.cookie("ada"), &hub.origin(), JSON], body);
        assert_eq!(made.status, 201, "{made:?}");
        let made: Value = serde_json::from_str(&made.body).expect("JSON");
        let link = made["link"].as_str().or(made["url"].as_str()).expect("a link").to_string();
        link.split("#invite=").nth(1).expect("a code").to_string()
    };
    let code = invite();
    let begun = begin_as(&hub, &json!({ "provider": "lab", "code": code }), &[]);
    let (_, session) = ended(&hub, &begun);
    let session = session.expect("signed in");
    assert_eq!(who(&hub, &session), "nora");
    assert!(hub.send("GET", SESSION, &[&session], "").body.contains("\"role\":\"member\""));
    provider.script(|script| script.claims = json!({ "sub": "p-2", "preferred_username": "otto" }));
    let (place, session) = ended(&hub, &begin_as(&hub, &json!({ "provider": "lab", "code": code }), &[]));
    assert_eq!((place.as_str(), session), ("/#refused=uninvited", None), "a code works once");
    // A disabled account stays out.
    let off = "{\"disabled\":true}";
    let answer = hub.send("PATCH", "/api/v1/accounts/nora", &[&hub.cookie("root"), &hub.origin(), JSON], off);
    assert_eq!(answer.status, 200, "{answer:?}");
    provider.script(|script| script.claims = json!({ "sub": "p-1" }));
    refused(&hub, "disabled", "by whatever way");
}

#[test]
fn groups_give_roles_at_each_sign_in_and_take_them_along() {
    let provider = Provider::start();
    let more = "groups_claim = \"realm.groups\"\n[sign_in.oidc.roles]\nops = \"admin\"\nusers = \"member\"\n\
                others = { team = \"other\", role = \"viewer\" }";
    let hub = hub(&provider, VIEWERS, more);
    let roles = |groups: Value| {
        provider.script(|script| {
            script.claims = json!({ "sub": "p-1", "preferred_username": "nora", "realm": { "groups": groups } })
        });
        let (place, session) = ended(&hub, &begin(&hub));
        let told = hub.send("GET", SESSION, &[&session.unwrap_or_else(|| panic!("signed in: {place}"))], "").body;
        let told: Value = serde_json::from_str(&told).expect("JSON");
        let teams = told["teams"].as_array().expect("teams").clone();
        let one =
            |team: &Value| format!("{} {}", team["name"].as_str().unwrap_or(""), team["role"].as_str().unwrap_or(""));
        teams.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(roles(json!(["users", "ops", "unknown"])), ["main admin"]);
    assert_eq!(roles(json!(["users", "others"])), ["main member", "other viewer"]);
    assert_eq!(roles(json!("users")), ["main member"]);
    assert_eq!(roles(json!([])), [""; 0], "a group that is gone takes its role with it");
    assert_eq!(roles(json!(["users"])), ["main member"]);
}

#[test]
fn another_way_is_added_by_who_is_signed_in_and_the_last_one_stays() {
    let provider = Provider::start();
    let hub = hub(&provider, "", "");
    let (ada, vera) = (hub.cookie("ada"), hub.cookie("vera"));
    let link = json!({ "provider": "lab", "purpose": "link" });
    let nobody = hub.send("POST", BEGIN, &[JSON, &hub.origin()], &link.to_string());
    assert_eq!(nobody.status, 400, "{nobody:?}");
    let begun = begin_as(&hub, &link, &[&ada]);
    let (place, session) = ended(&hub, &begun);
    assert_eq!((place.as_str(), session), ("/", None), "the session stays the one that there was");
    assert_eq!(sign_in(&hub).1, "ada");
    let (place, _) = ended(&hub, &begin_as(&hub, &link, &[&vera]));
    assert_eq!(place, "/#refused=taken", "whose it is stays");
    let ways = |cookie: &str| {
        let all: Value =
            serde_json::from_str(&hub.send("GET", "/api/v1/me/identities", &[cookie], "").body).expect("JSON");
        let one = |way: &Value| {
            (way["kind"].as_str().unwrap_or("").to_string(), way["id"].as_str().unwrap_or("").to_string())
        };
        all["identities"].as_array().expect("a list").iter().map(one).collect::<Vec<_>>()
    };
    let remove = |cookie: &str, id: &str| {
        hub.send("DELETE", &format!("/api/v1/me/identities/{id}"), &[cookie, &hub.origin(), JSON], "").status
    };
    let own = ways(&ada);
    assert_eq!(own.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>(), ["oidc", "password"]);
    assert_eq!(remove(&vera, &own[0].1), 404, "another's");
    assert_eq!(remove(&ada, &own[1].1), 200, "the password");
    assert_eq!(remove(&ada, &own[0].1), 409, "the last");
    let body = format!("{{\"name\":\"ada\",\"password\":\"{PASSWORD}\"}}");
    assert_eq!(hub.send("POST", SESSION, &[&hub.origin(), JSON], &body).status, 401);
    assert_eq!(sign_in(&hub).1, "ada");
    // A confirmation of identity needs the same provider and the same person.
    let again = json!({ "provider": "lab", "purpose": "again" });
    assert_eq!(ended(&hub, &begin_as(&hub, &again, &[&ada])), ("/".into(), None));
    assert_eq!(ended(&hub, &begin_as(&hub, &again, &[&vera])).0, "/#refused=other");
    provider.script(|script| script.claims["auth_time"] = json!(now() - 3_600));
    assert_eq!(ended(&hub, &begin_as(&hub, &again, &[&ada])).0, "/#refused=untrusted");
    // A session that ended meanwhile does not come back by it.
    let begun = begin_as(&hub, &link, &[&vera]);
    assert_eq!(hub.send("DELETE", SESSION, &[&vera, &hub.origin(), JSON], "").status, 200);
    provider.script(|script| script.claims = json!({ "sub": "p-7" }));
    assert_eq!(ended(&hub, &begun).0, "/#refused=over");
    let audit = hub.send("GET", "/api/v1/audit?action=identity.", &[&hub.cookie("root")], "").body;
    assert_eq!((audit.matches("identity.add").count(), audit.matches("identity.remove").count()), (1, 1), "{audit}");
}

#[test]
fn a_provider_that_is_away_costs_its_own_button_and_says_so_in_the_log() {
    let provider = Provider::start();
    provider.script(|script| script.broken = Some(500));
    let hub = hub(&provider, "", "");
    let body = "{\"provider\":\"lab\"}";
    let answer = hub.send("POST", BEGIN, &[JSON, &hub.origin()], body);
    assert_eq!(answer.status, 503);
    assert!(answer.error().contains("lab does not respond"), "{answer:?}");
    let password = format!("{{\"name\":\"ada\",\"password\":\"{PASSWORD}\"}}");
    assert_eq!(hub.send("POST", SESSION, &[&hub.origin(), JSON], &password).status, 200);
    until_so("the log says it", || hub.server.log().contains("it returned 500"));
    assert!(hub.server.log().contains("http://127.0.0.1:9/auth/lab/callback; register that address"));
    // The provider is back, and the hub needs no restart.
    provider.script(|script| script.broken = None);
    until_so("it works again", || hub.send("POST", BEGIN, &[JSON, &hub.origin()], body).status == 200);

    let other = Provider::start();
    other.script(|script| script.discovery = json!({ "issuer": "https://id.example.org/realms/lab" }));
    let hub = self::hub(&other, "", "");
    assert_eq!(hub.send("POST", BEGIN, &[JSON, &hub.origin()], body).status, 503);
    until_so("the log names the issuer", || {
        hub.server.log().contains("its issuer is \"https://id.example.org/realms/lab\"")
    });
}

#[test]
fn without_passwords_there_are_the_other_ways_alone() {
    let provider = Provider::start();
    let hub = hub(&provider, "password = false\nnew_accounts = \"viewer\"", "");
    assert!(hub.send("GET", SESSION, &[], "").body.contains("\"ways\":[\"lab\"]"));
    let password = format!("{{\"name\":\"ada\",\"password\":\"{PASSWORD}\"}}");
    assert_eq!(hub.send("POST", SESSION, &[&hub.origin(), JSON], &password).status, 403);
    assert_eq!(sign_in(&hub).1, "nora");
    let invite = json!({ "code": "x", "name": "otto", "password": PASSWORD }).to_string();
    let invited = hub.send("POST", "/api/v1/session/invite", &[&hub.origin(), JSON], &invite);
    assert_eq!(invited.status, 403, "no account that nobody can sign in to: {invited:?}");
}

#[test]
fn github_identifies_by_number_and_admits_members() {
    let provider = Provider::start();
    let person = |id: u64, login: &str| {
        [
            ("/api/v3/user", json!({ "id": id, "login": login })),
            (
                "/api/v3/user/emails",
                json!([{ "email": "a@evil.test", "primary": false, "verified": true },
                       { "email": "nora@example.org", "primary": true, "verified": true }]),
            ),
        ]
    };
    provider.script(|script| script.github.extend(person(7, "nora")));
    let hub = with_github(&provider, "");
    let begin = || begin_as(&hub, &json!({ "provider": "github" }), &[]);
    let session = ended(&hub, &begin()).1.expect("signed in");
    assert_eq!(who(&hub, &session), "nora");
    assert!(hub.send("GET", "/api/v1/me", &[&session], "").body.contains("nora@example.org"));
    // A login name may later belong to another person.
    provider.script(|script| script.github.extend(person(8, "nora")));
    assert_eq!(who(&hub, &ended(&hub, &begin()).1.expect("signed in")), "nora-2");
    provider.script(|script| script.github.extend(person(7, "renamed")));
    assert_eq!(who(&hub, &ended(&hub, &begin()).1.expect("signed in")), "nora");

    let closed = with_github(&provider, "orgs = [\"lab\"]\nteams = [\"uni/gpu\"]");
    let come = || ended(&closed, &begin_as(&closed, &json!({ "provider": "github" }), &[]));
    assert_eq!(come(), ("/#refused=outside".into(), None));
    let member =
        |path, state: &str| provider.script(|script| drop(script.github.insert(path, json!({ "state": state }))));
    member("/api/v3/user/memberships/orgs/lab", "pending");
    assert_eq!(come(), ("/#refused=outside".into(), None), "who was asked has not come yet");
    member("/api/v3/orgs/uni/teams/gpu/memberships/renamed", "active");
    assert!(come().1.is_some());
    provider.script(|script| drop(script.github.remove("/api/v3/orgs/uni/teams/gpu/memberships/renamed")));
    member("/api/v3/user/memberships/orgs/lab", "active");
    assert!(come().1.is_some());
}

#[test]
fn what_is_missing_stops_the_start_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.toml");
    let (path, data) = (file.display().to_string(), folder.path().display().to_string());
    let table = "[[sign_in.oidc]]\nname = \"lab\"\nissuer = \"https://id.example.org\"\nclient_id = \"wg\"\n";
    for (text, public, said) in [
        (table.to_string(), None, "--public-url"),
        (format!("{table}client_secret_file = \"/none\"\n"), Some("https://watch.example.org/"), "cannot be read"),
        (table.replace("https://", "http://"), Some("https://watch.example.org/"), "https://"),
    ] {
        std::fs::write(&file, &text).expect("written");
        let mut args = vec!["hub", "--port", "0", "--data-dir", &data, "--config", &path];
        args.extend(public.into_iter().flat_map(|url| ["--public-url", url]));
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{text}");
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains(said), "{text}: {log}");
    }
}

#[test]
fn a_claim_says_the_login_of_a_person_anew_at_each_sign_in() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "title = \"The lab's own\"\nlogin_claim = \"unix.name\"");
    let logins = |claim: Value| {
        provider.script(|script| {
            script.claims = json!({ "sub": "p-1", "preferred_username": "nora", "unix": { "name": claim } })
        });
        let (place, session) = ended(&hub, &begin(&hub));
        let session = session.unwrap_or_else(|| panic!("signed in: {place}"));
        let team = hub.send("GET", "/api/v1/teams/main", &[&hub.cookie("ada")], "").body;
        let team: Value = serde_json::from_str(&team).expect("JSON");
        let nora = team["members"].as_array().expect("a list").iter().find(|one| one["name"] == "nora").cloned();
        (nora.expect("a viewer")["said"].clone(), session)
    };
    let (said, session) = logins(json!("nora7"));
    assert_eq!(said, json!(["nora7"]));
    assert_eq!(logins(json!("root now")).0, Value::Null, "no user of a machine is called so");
    assert_eq!(logins(json!("nora8")).0, json!(["nora8"]));
    assert_eq!(logins(Value::Null).0, Value::Null, "what is not said any more goes");
    let told = hub.send("GET", SESSION, &[], "").body;
    assert!(told.contains("\"titles\":{\"lab\":\"The lab's own\"}"), "{told}");
    let own = hub.send("GET", "/api/v1/me/identities", &[&session], "").body;
    assert!(own.contains("The lab's own"), "{own}");
}

#[test]
fn who_was_brought_by_a_provider_sets_a_first_password() {
    let provider = Provider::start();
    let hub = hub(&provider, VIEWERS, "");
    provider.script(|script| script.claims = json!({ "sub": "p-1", "preferred_username": "nora" }));
    let (_, session) = ended(&hub, &begin(&hub));
    let session = session.expect("signed in");
    let put = |body: &Value| {
        let headers = [session.as_str(), JSON, &hub.origin()];
        hub.send("PUT", "/api/v1/me/password", &headers, &body.to_string())
    };
    let sign_in = || {
        let body = json!({ "name": "nora", "password": PASSWORD }).to_string();
        hub.send("POST", SESSION, &[JSON, &hub.origin()], &body).status
    };
    assert_eq!(sign_in(), 401, "there is none yet");
    assert_eq!(put(&json!({ "new": "short" })).status, 400);
    assert_eq!(put(&json!({ "new": PASSWORD })).status, 200);
    assert_eq!(sign_in(), 200);
    let anew = put(&json!({ "new": "another long sentence" }));
    assert!(anew.status == 400 && anew.body.contains("current password"), "{anew:?}");
    assert_eq!(put(&json!({ "old": PASSWORD, "new": "another long sentence" })).status, 200);
    let audit = hub.send("GET", "/api/v1/audit?action=account.password", &[&hub.cookie("root")], "").body;
    assert_eq!(audit.matches("\"nora\"").count(), 4, "who and whom, twice: {audit}");
}
