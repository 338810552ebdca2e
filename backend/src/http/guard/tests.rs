//! Rules of the guard, one by one.

use super::*;
use proptest::prelude::*;

fn guard(change: impl FnOnce(&mut Config)) -> Guard {
    let mut config = Config::default();
    change(&mut config);
    Guard::of_user(&config, 1000)
}

/// Status of the refusal, 200 when admitted.
fn ask(guard: &Guard, target: &str, kind: Resource, headers: &[(&str, &str)]) -> u16 {
    ask_as(guard, target, kind, headers, HostNames::Own)
}

fn ask_as(guard: &Guard, target: &str, kind: Resource, headers: &[(&str, &str)], names: HostNames) -> u16 {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value"));
    }
    let refused = guard.check(&target.parse().expect("a target"), &map, kind, names).err();
    if let Some(refusal) = &refused {
        assert!(refusal.message.len() > 10);
    }
    refused.map_or(200, |refusal| refusal.status.as_u16())
}

fn host(guard: &Guard, host: &str) -> u16 {
    ask(guard, "/", Resource::Data, &[("host", host)])
}

#[test]
fn only_our_own_names_are_answered_to() {
    let plain = guard(|_| ());
    for ours in [
        "localhost",
        "LOCALHOST:7171",
        "127.0.0.1",
        "127.0.0.1:9000",
        "[::1]",
        "[::1]:7171",
        "[0:0:0::1]:1",
        "localhost:",
    ] {
        assert_eq!(host(&plain, ours), 200, "{ours}");
    }
    for foreign in [
        "evil.test",
        "127.0.0.1.evil.test",
        "localhost.evil.test:7171",
        "LOCALHOST.",
        "127.1",
        "2130706433",
        "0.0.0.0",
        "127.0.0.2",
        "[::ffff:127.0.0.1]",
        "[::]",
        "[fe80::1]",
        "localhost,evil.test",
        "xn--lclhost-9ya",
    ] {
        assert_eq!(host(&plain, foreign), 421, "{foreign}");
    }
    for broken in [
        "",
        ":7171",
        "::1",
        "[::1",
        "[::1]x",
        "localhost:99999",
        "localhost:7171:1",
        "localhost:-1",
        "[127.0.0.1]",
        "löcal:x",
    ] {
        assert_eq!(host(&plain, broken), 400, "{broken}");
    }
    let named = guard(|c| c.hosts = vec!["gpu7.example".into(), "fe80::1".into()]);
    for ours in ["GPU7.example:80", "[fe80:0::1]:7171", "localhost"] {
        assert_eq!(host(&named, ours), 200, "{ours}");
    }
    assert_eq!(host(&named, "gpu8.example"), 421);
    let bound = guard(|c| c.bind = vec!["127.0.0.2".parse().expect("an address")]);
    assert_eq!((host(&bound, "127.0.0.2:7171"), host(&bound, "127.0.0.3")), (200, 421));
}

#[test]
fn the_421_names_the_flag_and_copies_nothing_odd() {
    let message = |name: &str| {
        let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(name).expect("a value"))]);
        guard(|_| ())
            .check(&"/".parse().expect("a target"), &headers, Resource::Page, HostNames::Own)
            .expect_err("foreign")
            .message
    };
    assert!(message("gpu7.lab:7171").ends_with("--host gpu7.lab"));
    assert!(message("<script>").ends_with("--host NAME"));
}

#[test]
fn there_is_exactly_one_host() {
    let plain = guard(|_| ());
    assert_eq!(ask(&plain, "/", Resource::Page, &[]), 400);
    assert_eq!(ask(&plain, "/", Resource::Page, &[("host", "localhost"), ("host", "localhost")]), 400);
    assert_eq!(ask(&plain, "/", Resource::Page, &[("host", "localhost"), ("host", "evil.test")]), 400);
}

#[test]
fn a_target_with_a_name_of_its_own_must_be_the_host() {
    let plain = guard(|_| ());
    let target = |target: &str| ask(&plain, target, Resource::Page, &[("host", "localhost:7171")]);
    assert_eq!(target("http://localhost:7171/"), 200);
    assert_eq!(target("http://LOCALHOST:7171/"), 200);
    assert_eq!(target("http://evil.test/"), 400);
    assert_eq!(target("http://u@localhost:7171/"), 400);
    assert_eq!(ask(&plain, "http://evil.test/", Resource::Page, &[("host", "evil.test")]), 421);
}

#[test]
fn forwarded_headers_are_never_believed() {
    for name in ["x-forwarded-host", "forwarded", "x-forwarded-for", "x-real-ip", "x-original-host"] {
        let plain = guard(|c| c.hosts = vec!["a.example".into()]);
        assert_eq!(ask(&plain, "/", Resource::Data, &[("host", "evil.test"), (name, "localhost")]), 421);
        assert_eq!(ask(&plain, "/", Resource::Data, &[("host", "localhost"), (name, "evil.test")]), 200);
    }
}

#[test]
fn an_origin_is_the_host_itself_on_every_kind_of_request() {
    let plain = guard(|c| {
        c.hosts = vec!["gpu7.example".into()];
        c.origins = vec!["https://nb.example:8888".into()];
    });
    for kind in [Resource::Page, Resource::Data, Resource::Socket] {
        let origin = |host: &str, origin: &str| ask(&plain, "/", kind, &[("host", host), ("origin", origin)]);
        for (host, from) in [
            ("localhost:9000", "http://localhost:9000"),
            ("127.0.0.1:7171", "http://127.0.0.1:7171"),
            ("[::1]:7171", "http://[::1]:7171"),
            ("gpu7.example", "https://gpu7.example"),
            ("gpu7.example:8443", "https://gpu7.example:8443"),
            ("localhost:7171", "https://nb.example:8888"),
        ] {
            assert_eq!(origin(host, from), 200, "{host} {from}");
        }
        for (host, from) in [
            ("localhost:7171", "http://localhost:7172"),
            ("localhost:7171", "http://localhost"),
            ("localhost:7171", "http://127.0.0.1:7171"),
            ("localhost:7171", "https://localhost:7171"),
            ("localhost:7171", "http://evil.test"),
            ("localhost:7171", "http://localhost:7171.evil.test"),
            ("localhost:7171", "http://localhost:7171/"),
            ("localhost:7171", "null"),
            ("localhost:7171", ""),
            ("gpu7.example", "https://evil.test"),
            ("localhost:7171", "https://nb.example"),
            ("localhost:7171", "http://nb.example:8888"),
        ] {
            assert_eq!(origin(host, from), 403, "{host} {from}");
        }
        let rebound = ask(&plain, "/", kind, &[("host", "evil.test:7171"), ("origin", "http://evil.test:7171")]);
        assert_eq!(rebound, 421);
        let two = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert_eq!(ask(&plain, "/", kind, &two), 403);
    }
}

#[test]
fn without_an_origin_other_sites_may_load_the_page_but_no_data() {
    let plain = guard(|_| ());
    let from = |kind, site| ask(&plain, "/", kind, &[("host", "localhost"), ("sec-fetch-site", site)]);
    for site in ["cross-site", "same-site", "Cross-Site", "something-new"] {
        assert_eq!(
            (from(Resource::Data, site), from(Resource::Page, site), from(Resource::Socket, site)),
            (403, 200, 200),
            "{site}"
        );
    }
    for site in ["same-origin", "none"] {
        assert_eq!(from(Resource::Data, site), 200, "{site}");
    }
    let both = [("host", "localhost"), ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")];
    assert_eq!(ask(&plain, "/", Resource::Data, &both), 403);
    assert_eq!(ask(&plain, "/", Resource::Data, &[("host", "localhost")]), 200);
    assert_eq!(ask(&plain, "/", Resource::Socket, &[("host", "localhost")]), 200);
}

#[test]
fn our_own_user_root_the_sudo_user_and_named_users_are_admitted() {
    let plain = guard(|_| ());
    assert!(plain.asks_uid());
    assert_eq!([0, 1000, 1001, 65534].map(|uid| plain.admits(uid)), [true, true, false, false]);
    let more = guard(|c| {
        c.sudo_uid = Some(1001);
        c.allow_users = vec![33];
    });
    assert_eq!([0, 1000, 1001, 33, 34].map(|uid| more.admits(uid)), [true, true, true, true, false]);
    let off = guard(|c| c.local_auth = LocalAuth::Off);
    assert!(!off.asks_uid() && off.admits(4711));
}

#[test]
fn who_is_let_in_by_a_flag_is_not_who_runs_the_server() {
    let plain = guard(|c| {
        c.sudo_uid = Some(1001);
        c.allow_users = vec![33];
    });
    let by = |guard: &Guard, uid| guard.is_owner(Caller { admitted: true, uid, ..Caller::default() });
    assert_eq!([1000, 0, 1001, 33, 34].map(|uid| by(&plain, Some(uid))), [true, true, true, false, false]);
    assert!(!by(&plain, None), "nobody knows who it is");
    assert!(plain.is_owner(Caller { local: Some(1000), ..Caller::default() }));
    // If callers are not identified, everybody is the same.
    let off = guard(|c| c.local_auth = LocalAuth::Off);
    assert!(by(&off, None) && by(&off, Some(4711)));
}

#[test]
fn every_answer_carries_the_headers() {
    let mut headers = HeaderMap::new();
    guard(|c| c.embed = vec!["https://nb.example:8888".into()]).headers(&mut headers, &["sha256-abc="]);
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_string();
    let policy = text("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self' 'wasm-unsafe-eval' 'sha256-abc=';",
        "style-src 'self';",
        "connect-src 'self';",
        "frame-ancestors 'self' https://nb.example:8888",
    ] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"));
    assert_eq!(text("cross-origin-resource-policy"), "same-origin");
    assert_eq!(text("x-content-type-options"), "nosniff");
    assert_eq!(text("referrer-policy"), "no-referrer");
    assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}

proptest! {
    #[test]
    fn no_header_bytes_panic_and_no_foreign_name_passes(
        host in proptest::collection::vec(any::<u8>(), 0..40),
        origin in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
        site in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..20)),
        kind in proptest::sample::select(vec![Resource::Page, Resource::Data, Resource::Socket]),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in [(header::HOST, Some(host)), (header::ORIGIN, origin), (SEC_FETCH_SITE, site)] {
            if let Some(Ok(value)) = value.map(|bytes| HeaderValue::from_bytes(&bytes)) {
                headers.append(name, value);
            }
        }
        prop_assert!(guard(|_| ()).check(&Uri::from_static("/"), &headers, kind, HostNames::Own).is_err());
    }

    #[test]
    fn a_longer_or_changed_loopback_name_is_foreign(
        name in proptest::sample::select(vec!["localhost", "127.0.0.1", "[::1]"]),
        before in "[a-z0-9.-]{0,3}",
        after in "[a-z0-9.-]{0,3}",
    ) {
        prop_assume!(!(before.is_empty() && after.is_empty()));
        let changed = format!("{before}{name}{after}");
        prop_assert_ne!(host(&guard(|_| ()), &changed), 200, "{}", changed);
    }
}

#[test]
fn through_a_unix_socket_any_one_name_will_do_and_other_sites_are_still_told_by_their_origin() {
    let guard = guard(|_| ());
    let asked = |kind, headers: &[(&str, &str)]| ask_as(&guard, "/", kind, headers, HostNames::Any);
    assert_eq!(asked(Resource::Data, &[("host", "hub.example")]), 200);
    for kind in [Resource::Data, Resource::Socket] {
        for (origin, status) in [
            ("https://hub.example", 200),
            ("http://hub.example", 200),
            ("https://evil.example", 403),
            ("https://hub.example:8443", 403),
            ("null", 403),
        ] {
            assert_eq!(asked(kind, &[("host", "hub.example"), ("origin", origin)]), status, "{origin}");
        }
    }
    let foreign = [("host", "hub.example"), ("sec-fetch-site", "cross-site")];
    assert_eq!(asked(Resource::Data, &foreign), 403);
    assert_eq!(asked(Resource::Data, &[("host", "a.example"), ("host", "b.example")]), 400);
    assert_eq!(asked(Resource::Data, &[("host", "not a name")]), 400);
    assert_eq!(asked(Resource::Data, &[]), 400);
}
