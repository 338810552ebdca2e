//! Attacks first: forbidden targets, and ways to reach them.

use crate::address::{Allowed, NOT_NAMED, NOT_PUBLIC, Names, Rule, is_public};
use client::Gate;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Names that resolve to one answer after the other; the last one repeats.
#[derive(Debug, Default)]
pub struct FakeNames {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub asked: Arc<AtomicUsize>,
}

impl FakeNames {
    pub fn new(answers: &[&[&str]]) -> Self {
        let ips = |answer: &&[&str]| answer.iter().map(|ip| ip.parse().expect("an address")).collect();
        FakeNames { answers: Mutex::new(answers.iter().map(ips).collect()), asked: Arc::default() }
    }
}

impl Names for FakeNames {
    fn look_up(&self, _: &str, port: u16, _: Duration) -> Result<Vec<SocketAddr>, String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Ok(answer.unwrap_or_default().into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }
}

pub fn rule(allowed: &[&str], answers: &[&[&str]]) -> Rule {
    Rule { allowed: Allowed::parse(allowed).expect("entries"), names: Box::new(FakeNames::new(answers)) }
}

fn asked(rule: &Rule, url: &str) -> Result<Vec<String>, String> {
    let found = rule.addresses(&url.parse().expect(url), Duration::from_secs(5))?;
    Ok(found.iter().map(ToString::to_string).collect())
}

/// One address of each non-public class.
const PRIVATE: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.0.9",
    "169.254.169.254",
    "169.254.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.1.2.3",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "100.100.100.200",
    "::",
    "::1",
    "::2",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a00:1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:a00:1::1",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
    "3fff::1",
    "3ffe::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "4000::1",
    "8000::1",
];

const PUBLIC: &[&str] = &[
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "192.167.255.255",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450::1",
    "2001:4860::8888",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
];

#[test]
fn every_class_that_is_not_public_is_dropped_and_its_neighbors_are_not() {
    for text in PRIVATE {
        assert!(!is_public(text.parse().expect(text)), "{text}");
        let refused = asked(&rule(&[], &[&[text]]), "https://hook.example.org/").expect_err(text);
        assert_eq!(refused, NOT_PUBLIC, "{text}");
    }
    for text in PUBLIC {
        assert!(is_public(text.parse().expect(text)), "{text}");
        assert_eq!(asked(&rule(&[], &[&[text]]), "https://hook.example.org/").expect(text).len(), 1, "{text}");
    }
}

#[test]
fn of_mixed_answers_only_what_is_public_stays() {
    let mixed = rule(&[], &[&["127.0.0.1", "8.8.8.8", "::1", "fd00::1", "2606:4700::1111", "10.0.0.1"]]);
    assert_eq!(
        asked(&mixed, "https://hook.example.org/"),
        Ok(vec!["8.8.8.8:443".into(), "[2606:4700::1111]:443".into()])
    );
    // More private addresses than fit the library's list must not hide a public one after them.
    let mut many = vec!["10.0.0.1"; 40];
    many.push("9.9.9.9");
    assert_eq!(asked(&rule(&[], &[&many]), "https://hook.example.org:8443/"), Ok(vec!["9.9.9.9:8443".into()]));
}

#[test]
fn odd_spellings_of_numbers_are_the_numbers_that_they_are() {
    // The address from the system's parser is checked, not its spelling.
    let system = Rule::new(Allowed::default());
    for host in [
        "0x7f.1",
        "2130706433",
        "127.1",
        "0177.0.0.1",
        "0x7f000001",
        "017700000001",
        "0",
        "127.0.0.1.",
        "localhost",
        "[::1]",
    ] {
        let refused = asked(&system, &format!("https://{host}/")).expect_err(host);
        assert!(refused == NOT_PUBLIC || refused.contains("cannot be resolved"), "{host}: {refused}");
    }
    assert_eq!(asked(&system, "https://[::ffff:127.0.0.1]/"), Err(NOT_PUBLIC.into()));
}

#[test]
fn what_the_configuration_names_is_admitted_and_nothing_beside_it() {
    let named =
        |answers: &[&[&str]]| rule(&["mattermost.lab:443", "10.1.2.0/24", "10.9.9.9:9093", "[fd00::7]:443"], answers);
    for (answer, url, admitted) in [
        ("192.168.7.7", "https://mattermost.lab/", true),
        ("192.168.7.7", "https://MATTERMOST.LAB./", true),
        ("192.168.7.7", "https://mattermost.lab:8443/", false),
        ("192.168.7.7", "https://mattermost.lab.evil.example/", false),
        ("10.1.2.3", "https://any.example.org:1/", true),
        ("::ffff:10.1.2.3", "https://any.example.org/", true),
        ("10.1.3.3", "https://any.example.org/", false),
        ("10.9.9.9", "https://any.example.org:9093/", true),
        ("10.9.9.9", "https://any.example.org/", false),
        ("fd00::7", "https://any.example.org/", true),
        ("fd00::8", "https://any.example.org/", false),
        // An allowed name admits no machine's credentials.
        ("169.254.169.254", "https://mattermost.lab/", false),
        ("fe80::1", "https://mattermost.lab/", false),
    ] {
        assert_eq!(asked(&named(&[&[answer]]), url).is_ok(), admitted, "{answer} {url}");
    }
}

#[test]
fn where_clouds_keep_credentials_is_reached_only_when_written_out() {
    for (entry, ip, admitted) in [
        ("169.254.0.0/16", "169.254.169.254", false),
        ("0.0.0.0/0", "169.254.169.254", false),
        ("0.0.0.0/0", "10.0.0.1", true),
        ("::/0", "fd00:ec2::254", false),
        ("::/0", "fe80::1", false),
        ("::/0", "fd00::1", true),
        ("::/0", "::ffff:169.254.169.254", false),
        ("169.254.169.254/32", "169.254.169.254", true),
        ("169.254.169.254:443", "169.254.169.254", true),
        ("169.254.169.254:80", "169.254.169.254", false),
        ("169.254.169.253/32", "169.254.169.254", false),
        ("fd00:ec2::254/128", "fd00:ec2::254", true),
        ("168.63.129.0/24", "168.63.129.16", false),
    ] {
        assert_eq!(asked(&rule(&[entry], &[&[ip]]), "https://a.example/").is_ok(), admitted, "{entry} {ip}");
    }
}

#[test]
fn plain_http_goes_only_to_what_is_named() {
    let rule = |ip| rule(&["10.1.2.0/24", "am.lab:9093"], &[&[ip]]);
    assert_eq!(asked(&rule("8.8.8.8"), "http://any.example.org/"), Err(NOT_NAMED.into()));
    assert_eq!(asked(&rule("10.1.2.3"), "http://any.example.org/"), Ok(vec!["10.1.2.3:80".into()]));
    assert_eq!(asked(&rule("8.8.8.8"), "http://am.lab:9093/"), Ok(vec!["8.8.8.8:9093".into()]));
    assert_eq!(asked(&rule("8.8.8.8"), "http://am.lab/"), Err(NOT_NAMED.into()));
}

#[test]
fn an_address_of_this_machine_is_no_public_one() {
    let own = crate::address::is_own;
    assert!(own("127.0.0.1".parse().expect("an address")));
    assert!(!own("8.8.8.8".parse().expect("an address")));
}

#[test]
fn entries_that_are_none_are_refused_with_an_example() {
    for entry in [
        "",
        "mattermost.lab",
        ":443",
        "a:99999",
        "10.0.0.0/33",
        "::/129",
        "10.0.0.0/x",
        "10.0.0.1",
        "https://a:443",
        "a b:1",
        "*:443",
    ] {
        let error = Allowed::parse(&[entry]).expect_err(entry);
        assert!(error.contains("mattermost.lab:443") && error.contains("10.1.2.0/24"), "{error}");
    }
}

#[test]
fn before_a_proxy_what_can_be_told_here_is_refused() {
    let within = Duration::from_secs(1);
    let uri = |text: &str| text.parse().expect("an address");
    assert_eq!(
        rule(&[], &[&["10.0.0.1"]]).before_proxy(&uri("https://inner.example/"), within),
        Err(NOT_PUBLIC.into())
    );
    assert_eq!(rule(&[], &[]).before_proxy(&uri("https://127.0.0.1/"), within), Err(NOT_PUBLIC.into()));
    assert_eq!(rule(&[], &[&["8.8.8.8"]]).before_proxy(&uri("https://outer.example/"), within), Ok(()));
}
