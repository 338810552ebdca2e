//! Creating and changing channels: refusals, and the shown parts.

use crate::address::Allowed;
use crate::check::merged;
use crate::sample_tests::{input, settings};
use crate::settings::Settings;
use crate::sinks::SINKS;
use shared::alert::ChannelInput;
use shared::secret::Secret;

fn refused(input: &ChannelInput) -> String {
    Settings::check(input, &Allowed::default(), true).expect_err("it is refused")
}

fn with(kind: &str, change: impl FnOnce(&mut ChannelInput)) -> ChannelInput {
    let mut input = input(kind);
    change(&mut input);
    input
}

fn at(address: &str) -> ChannelInput {
    with("slack", |input| input.address = Some(Secret::new(address)))
}

#[test]
fn what_is_shown_of_a_channel_gives_nothing_away() {
    for (kind, target) in [
        ("slack", "…h4Fz"),
        ("mattermost", "…5hqo"),
        ("discord", "…cDEF"),
        ("teams", "…cret"),
        ("webhook", "…ey=1"),
        ("email", "ops@example.org and 1 more"),
        ("ntfy", "…1e2b"),
        ("telegram", "…yz_0"),
        ("pagerduty", "…cdef"),
        ("alertmanager", "am-1.example.org and 1 more"),
    ] {
        let settings = settings(kind);
        assert_eq!((settings.kind(), settings.target().as_str(), settings.name()), (kind, target, "lab-channel"));
        let shown = format!("{settings:?}");
        for secret in ["hooks.slack", "whsec", "MfKQ", "tk_", "AAE-", "0123456789abcdef", "sig="] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    assert_eq!(settings("ntfy").target().chars().count(), 5);
    let short = with("ntfy", |input| input.topic = Some("gpus".into()));
    assert_eq!(Settings::check(&short, &Allowed::default(), true).expect("settings").target(), "…");
    assert_eq!(SINKS.len(), 10);
}

#[test]
fn odd_addresses_are_what_they_are_or_refused() {
    for address in [
        "https://0x7f.1/",
        "https://2130706433/",
        "https://127.1/x",
        "https://0177.0.0.1/",
        "https://①②⑦.⓪.⓪.①/",
        "https://127.0.0.1./",
        "https://[::1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[fd00:ec2::254]/",
        "https://10.0.0.1/",
        "https:/10.0.0.1/",
        "https:10.0.0.1",
        "https:\\\\10.0.0.1\\",
    ] {
        assert!(refused(&at(address)).contains("the address is not public"), "{address}: {}", refused(&at(address)));
    }
    for (address, part) in [
        ("https://hooks.slack.com@10.0.0.1/", "must not contain a user or password"),
        ("https://user:pw@hooks.slack.com/", "must not contain a user or password"),
        ("https://:pw@hooks.slack.com/", "must not contain a user or password"),
        ("http://hooks.slack.com/", "begins with https://"),
        ("ftp://a/", "https://host/path"),
        ("file:///etc/passwd", "https://host/path"),
        ("javascript:alert(1)", "https://host/path"),
        ("hooks.slack.com/x", "https://host/path"),
        ("https://", "https://host/path"),
        ("https://a b/", "without spaces"),
        ("https://a/\r\nX: y", "without spaces"),
        ("https://a:99999/", "https://host/path"),
        ("https://a%00b/", "https://host/path"),
    ] {
        let error = refused(&at(address));
        assert!(error.contains(part), "{address}: {error}");
        assert!(!error.contains("pw@") && !error.contains("10.0.0.1"), "{error}");
    }
    assert!(refused(&at(&format!("https://a/{}", "x".repeat(3_000)))).contains("2000 bytes"));
}

#[test]
fn a_name_of_another_alphabet_is_asked_as_it_is_looked_up() {
    let settings =
        Settings::check(&at("https://bücher.example/hook#part"), &Allowed::default(), true).expect("settings");
    assert_eq!(settings.addresses[0].0.to_string(), "https://xn--bcher-kva.example/hook");
}

#[test]
fn plain_http_needs_the_configuration() {
    let allowed = Allowed::parse(&["mattermost.lab:8065", "10.1.2.0/24"]).expect("entries");
    for (address, fits) in [
        ("http://mattermost.lab:8065/hooks/x", true),
        ("http://10.1.2.3/hooks/x", true),
        ("https://10.1.2.3/hooks/x", true),
        ("http://10.1.3.3/hooks/x", false),
        ("https://10.1.3.3/hooks/x", false),
        ("http://8.8.8.8/", false),
    ] {
        assert_eq!(Settings::check(&at(address), &allowed, true).is_ok(), fits, "{address}");
    }
}

#[test]
fn each_kind_says_what_it_needs() {
    for (input, part) in [
        (with("slack", |i| i.kind = "irc".into()), "kinds are slack, mattermost, discord"),
        (with("slack", |i| i.address = None), "slack needs address: the address of an incoming webhook"),
        (with("slack", |i| i.topic = Some("x".into())), "slack does not use topic"),
        (with("webhook", |i| i.secret = None), "webhook needs secret"),
        (with("webhook", |i| i.secret = Some(Secret::new("short"))), "openssl rand -base64 32"),
        (with("webhook", |i| i.old_secret = Some(Secret::new("not base64!"))), "whsec_"),
        (with("webhook", |i| i.format = Some("xml".into())), "json or cloudevents"),
        (with("email", |i| i.to.clear()), "email needs to"),
        (with("email", |i| i.to = vec!["a@example.org".into(); 21]), "at most 20"),
        (with("email", |i| i.to = vec!["ops@example.org, b@example.org".into()]), "the 1. e-mail address"),
        (with("email", |i| i.to = vec!["a@example.org".into(), "b@c\r\nBcc: d@e".into()]), "the 2. e-mail address"),
        (with("email", |i| i.to = vec!["a@example.org\nBcc: d@e.org".into()]), "the 1. e-mail address"),
        (with("email", |i| i.to = vec!["Ops <a@example.org>".into()]), "the 1. e-mail address"),
        (with("ntfy", |i| i.topic = Some("a/b".into())), "a topic of ntfy"),
        (with("ntfy", |i| i.secret = Some(Secret::new("a\r\nX: y"))), "visible ASCII"),
        (with("telegram", |i| i.secret = Some(Secret::new("1:../../x"))), "@BotFather"),
        (with("telegram", |i| i.topic = Some("me".into())), "a Telegram chat"),
        (with("pagerduty", |i| i.secret = Some(Secret::new("x"))), "32 letters"),
        (with("alertmanager", |i| i.addresses.clear()), "alertmanager needs addresses"),
        (with("alertmanager", |i| i.addresses = vec![Secret::new("https://a.example"); 9]), "at most 8"),
        (with("slack", |i| i.name = "a\nb".into()), "one line"),
        (with("slack", |i| i.name = " ".into()), "one line"),
    ] {
        let error = refused(&input);
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = Settings::check(&input("email"), &Allowed::default(), false).expect_err("no server");
    assert!(error.contains("[smtp]"), "{error}");
}

#[test]
fn a_field_that_was_left_empty_was_left_out() {
    let empty = with("webhook", |input| input.old_secret = Some(Secret::new(" ")));
    assert_eq!(Settings::check(&empty, &Allowed::default(), true).expect("settings").keys.len(), 1);
    let empty = with("telegram", |input| input.address = Some(Secret::new("")));
    let settings = Settings::check(&empty, &Allowed::default(), true).expect("settings");
    assert_eq!(settings.addresses[0].0.host(), Some("api.telegram.org"));
    assert!(refused(&with("webhook", |input| input.secret = Some(Secret::new(" ")))).contains("webhook needs secret"));
}

#[test]
fn a_secret_that_is_left_out_stays_only_with_its_host() {
    let old = input("ntfy");
    let without = |change: fn(&mut ChannelInput)| {
        let mut new = input("ntfy");
        new.secret = None;
        change(&mut new);
        merged(&old, new)
    };
    assert_eq!(without(|_| {}).expect("kept").secret, old.secret);
    let empty = without(|new| new.secret = Some(Secret::new("")));
    assert_eq!(empty.expect("kept").secret, old.secret);
    let both = without(|new| new.address = None).expect("kept");
    assert_eq!((both.address, both.secret), (old.address.clone(), old.secret.clone()));
    assert_eq!(without(|new| new.topic = Some("other".into())).expect("kept").secret, old.secret);
    for other in [
        "https://evil.example/",
        "https://ntfy.example.org.evil.example/",
        "http://ntfy.example.org/",
        "https://ntfy.example.org:8443/",
        "https://ntfy.example.org@evil.example/",
        "nonsense",
    ] {
        let mut new = input("ntfy");
        (new.secret, new.address) = (None, Some(Secret::new(other)));
        let kept = merged(&old, new);
        assert!(kept.as_ref().is_err_and(|why| why.contains("enter the secret again")), "{other}: {kept:?}");
    }
    // A change of the kind keeps no secret.
    let mut new = with("webhook", |new| new.secret = None);
    assert_eq!(merged(&old, new.clone()).expect("no secret").secret, None);
    new.address = None;
    assert!(merged(&old, new).expect_err("nothing is left").contains("enter address and secret again"));
    let replaced = with("ntfy", |new| new.secret = Some(Secret::new("tk_new")));
    assert_eq!(merged(&old, replaced).expect("replaced").secret, Some(Secret::new("tk_new")));
}
