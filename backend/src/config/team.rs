//! What a hub alone is told: the address that people type, whose word about callers counts, and what agents may send.

use super::file_error::{FileError, deserialized};
use super::keep::KeepRules;
use super::option::{Field, OptionKind};
use super::standing_join::StandingJoins;
use super::written::{Takes, Written};
use super::{Config, ConfigError, value};
use serde::Deserialize;
use settings::FileTable;
use std::fmt;
use std::net::IpAddr;
use toml::de::DeValue;
use toml::{Spanned, Table, Value};

/// The address by which people and agents reach a hub, which it never takes from a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// Scheme, name and port as a browser sends them: `https://watch.example.org`.
    pub origin: String,
    /// The path below which it is served, with both slashes.
    pub base: String,
}

impl PublicUrl {
    /// Whether it is reached by TLS.
    pub fn is_https(&self) -> bool {
        self.origin.starts_with("https://")
    }

    /// Its name or address, in lower case; of an IPv6 address the bare form.
    pub fn host(&self) -> &str {
        let authority = self.origin.split_once("://").map_or("", |(_, authority)| authority);
        value::split_authority(authority).map_or("", |(name, _)| name)
    }

    /// Whether it leads to no other machine than this one.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.base)
    }
}

/// Reads `https://NAME[:PORT][/BASE/]`.
pub fn public_url(text: &str) -> Result<PublicUrl, String> {
    let wrong = || format!("\"{text}\" is not an address; write scheme and name, like https://watch.example.org/");
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let origin = value::origin(&format!("{scheme}://{authority}")).map_err(|_| wrong())?;
    Ok(PublicUrl { origin, base: value::base_path(path).map_err(|_| wrong())? })
}

impl Written for PublicUrl {
    fn show(&self) -> Value {
        self.to_string().into()
    }
}

/// Refuses what would make a hub less than it promises: history and accounts that last, and nothing unencrypted by mistake.
pub fn check(config: &Config) -> Result<(), ConfigError> {
    let wrong = |sentence: String| Err(ConfigError::new(sentence));
    if config.memory {
        return wrong(
            "a hub keeps accounts and history on disk; leave out --memory, or name a folder with --data-dir".into(),
        );
    }
    if config.unix.is_some() {
        return wrong(
            "a hub cannot authenticate users at --unix; leave it out, and let the proxy connect to --bind and --port"
                .into(),
        );
    }
    if config.bind.is_empty() {
        return wrong("bind: write at least one address, 127.0.0.1 or 0.0.0.0".into());
    }
    if config.tls_cert.is_some() != config.tls_key.is_some() {
        return wrong("--tls-cert and --tls-key belong together; give both".into());
    }
    if config.tls_cert.is_some() && config.plain_http {
        return wrong("--plain-http and --tls-cert exclude each other; leave one out".into());
    }
    if let (Some(provider), None) = (config.sign_in.providers.first(), &config.public_url) {
        return wrong(format!(
            "{:?} redirects users to the hub's own address, which is not known; write --public-url https://NAME/",
            provider.name
        ));
    }
    let wide = config.bind.iter().find(|ip| !ip.is_loopback());
    if let Some(ip) = wide.filter(|_| config.tls_cert.is_none() && !config.plain_http) {
        return wrong(format!(
            "--bind {ip} would send passwords and samples unencrypted. Choose one of these:\n  \
             with a certificate:  --tls-cert FILE --tls-key FILE\n  \
             behind a proxy that has one, or in a network that you trust:  --plain-http"
        ));
    }
    match &config.public_url {
        Some(url) if !url.is_https() && !url.is_loopback() && !config.plain_http => wrong(format!(
            "users would send passwords to {url} unencrypted; write https://, or --plain-http in a network that you \
            trust"
        )),
        Some(url) if !url.is_https() && config.tls_cert.is_some() => wrong(format!(
            "a hub with a certificate serves https only; write --public-url {}",
            url.to_string().replacen("http:", "https:", 1)
        )),
        _ => Ok(()),
    }
}

/// Addresses that begin alike. One that is written without a length is that address alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    bits: u8,
}

fn bits(ip: IpAddr) -> (u128, u8) {
    match ip {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    }
}

impl AddressRange {
    /// Whether every address of its family lies in it.
    pub fn is_everybody(&self) -> bool {
        self.bits == 0
    }

    /// Whether an address lies in it. One of the other family never does.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ((own, length), (other, theirs)) = (bits(self.first), bits(ip.to_canonical()));
        length == theirs && (own ^ other).checked_shr(u32::from(length - self.bits)).unwrap_or(0) == 0
    }
}

/// Reads `10.0.0.5`, `10.0.0.0/8`, `fd00::/64`.
pub(super) fn address_range(text: &str) -> Result<AddressRange, String> {
    let wrong = || format!("\"{text}\" is not an address; write an address or a range: 10.0.0.5, 10.0.0.0/24");
    let (ip, length) = text.split_once('/').map_or((text, None), |(ip, length)| (ip, Some(length)));
    let first = value::bind(ip).map_err(|_| wrong())?;
    let (own, all) = bits(first);
    let bits: u8 = length.map_or(Ok(all), str::parse).map_err(|_| wrong())?;
    let rest = all.checked_sub(bits).ok_or_else(wrong)?;
    // An address with bits behind its length is most likely not what was meant.
    match own & !u128::MAX.checked_shl(u32::from(rest)).unwrap_or(0) {
        0 => Ok(AddressRange { first, bits }),
        _ => Err(format!("\"{text}\" has bits set beyond its prefix length; write the first address of the range")),
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.bits < bits(self.first).1 { write!(f, "/{}", self.bits) } else { Ok(()) }
    }
}

/// `[proxy]`: whose word about callers counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Who may say by `X-Forwarded-For` for whom a request is made.
    pub trusted: Vec<AddressRange>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProxies {
    #[serde(default)]
    trusted: Vec<String>,
}

impl<'de> Deserialize<'de> for Proxies {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let raw = RawProxies::deserialize(from)?;
        let trusted = raw.trusted.iter().map(|text| address_range(text)).collect::<Result<_, _>>();
        Ok(Proxies { trusted: trusted.map_err(serde::de::Error::custom)? })
    }
}

/// `[agents]`: what a hub takes from the machines that joined it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentLimits {
    /// Series of one machine.
    pub series: u32,
    /// Links that begin in a second; more are told to come back.
    pub handshakes: u32,
    /// What happens when a machine that is known joins anew, as after it was installed again.
    pub rejoin: Rejoin,
    /// Join keys that stand in files.
    pub join: StandingJoins,
    /// Machines that are kept for another time than the others.
    pub keep: KeepRules,
}

/// What happens when a machine that is known joins anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rejoin {
    /// It goes on as the machine that it was.
    #[default]
    Allow,
    /// An admin has to confirm it.
    Approve,
}

impl Default for AgentLimits {
    fn default() -> Self {
        let (join, keep) = Default::default();
        AgentLimits { series: 20_000, handshakes: 50, rejoin: Rejoin::Allow, join, keep }
    }
}

impl FileTable for Proxies {
    const KEYS: &'static [(&'static str, &'static str)] =
        &[("trusted", "Addresses of proxies whose `X-Forwarded-For` counts, such as 10.0.0.5 or 10.0.0.0/24")];

    fn print(&self) -> Table {
        let trusted = self.trusted.iter().map(|range| Value::from(range.to_string())).collect();
        Table::from_iter([("trusted".to_string(), Value::Array(trusted))])
    }
}

impl FileTable for AgentLimits {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("series", "The most series of one machine; more are left out and counted"),
        ("handshakes", "How many links may begin in a second; more are told to come back"),
        (
            "rejoin",
            "`approve`: an admin confirms it when a machine that is known joins anew, as after a new installation",
        ),
        ("join", "Tables: join keys that hold for as long as they are written here, for machines that programs set up"),
        ("join.name", "What it is called"),
        (
            "join.token_file",
            "The file that holds the key, for the agents' `--key-file`; the hub makes it where there is none",
        ),
        ("join.team", "The team of its machines, by name; the first one unless it is written"),
        ("join.labels", "Labels of its machines"),
        (
            "keep",
            "Tables: machines that are kept for another time than `--retention`, at most 8; the first that fits counts",
        ),
        ("keep.match", "Labels that the join key or an admin gave the machine, such as `{ tier = \"gpu\" }`"),
        ("keep.retention", "How long its samples are kept"),
    ];

    fn print(&self) -> Table {
        let numbers = [("series", self.series), ("handshakes", self.handshakes)];
        let numbers = numbers.map(|(key, value)| (key, Value::from(i64::from(value))));
        let word = match self.rejoin {
            Rejoin::Allow => "allow",
            Rejoin::Approve => "approve",
        };
        let all = numbers.into_iter().chain([("rejoin", Value::from(word))]);
        let all = all.chain(self.join.print().map(|join| ("join", join)));
        let all = all.chain(self.keep.print().map(|keep| ("keep", keep)));
        all.map(|(key, value)| (key.to_string(), value)).collect()
    }
}

/// An option that is a [`FileTable`].
pub struct Tables<C: 'static, T: 'static> {
    /// Where it is kept.
    pub field: Field<C, T>,
}

impl<C, T: FileTable> OptionKind<C> for Tables<C, T> {
    fn takes(&self) -> Takes {
        Takes::One
    }

    fn keys(&self) -> &'static [(&'static str, &'static str)] {
        T::KEYS
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Err("this key belongs in the configuration file".into())
    }

    fn set(&self, _: &mut C, _: &[String]) -> Result<(), String> {
        OptionKind::<C>::check(self, "")
    }

    fn read(&self, at: &mut C, value: Spanned<DeValue<'_>>) -> Result<(), FileError> {
        *(self.field.at)(at) = deserialized(value)?;
        Ok(())
    }

    fn show(&self, of: &C) -> Option<Value> {
        let own = (self.field.get)(of);
        (*own != T::default()).then(|| Value::Table(own.print()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_is_what_a_browser_would_send() {
        for (text, origin, base, host, loopback) in [
            ("https://Watch.example.org", "https://watch.example.org", "/", "watch.example.org", false),
            ("https://watch.example.org:443/", "https://watch.example.org", "/", "watch.example.org", false),
            ("http://127.0.0.1:7171/tools/w", "http://127.0.0.1:7171", "/tools/w/", "127.0.0.1", true),
            ("https://[::1]:8443/", "https://[::1]:8443", "/", "::1", true),
            ("http://localhost", "http://localhost", "/", "localhost", true),
        ] {
            let url = public_url(text).expect(text);
            assert_eq!((url.origin.as_str(), url.base.as_str(), url.host()), (origin, base, host), "{text}");
            assert_eq!((url.is_loopback(), url.is_https()), (loopback, origin.starts_with("https")), "{text}");
            assert_eq!(public_url(&url.to_string()), Ok(url), "{text}");
        }
        for wrong in
            ["", "watch.example.org", "ftp://a/", "https://", "https://u:p@a/", "https://a/?x=1", "https://a/#b"]
        {
            assert!(public_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_without_a_length_is_that_address_alone() {
        let holds =
            |range: &str, ip: &str| address_range(range).expect(range).contains(ip.parse().expect("an address"));
        assert!(holds("10.0.0.5", "10.0.0.5") && !holds("10.0.0.5", "10.0.0.4"));
        assert!(holds("10.0.0.5", "::ffff:10.0.0.5"), "as a listener for both families reports it");
        assert!(holds("fd00::1", "fd00::1") && !holds("fd00::1", "fd00::2") && !holds("fd00::1", "fd01::1"));
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("0.0.0.0/0", "192.0.2.1") && !holds("0.0.0.0/0", "::1") && holds("::/0", "fd00::1"));
        assert!(holds("fd00::/64", "fd00::ffff") && !holds("fd00::/64", "fd00:0:0:1::"));
        for wrong in ["", "10.0.0", "10.0.0.0/33", "10.0.0.1/8", "::/129", "a", "10.0.0.0/", "10.0.0.0/x"] {
            assert!(address_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_hub_is_never_less_than_it_promises() {
        let said = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            check(&config).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let wide = |config: &mut Config| config.bind = vec!["0.0.0.0".parse().expect("an address")];
        assert_eq!(said(|_| ()), "");
        assert!(said(|c| c.memory = true).contains("--memory"));
        assert!(said(|c| c.tls_cert = Some("a".into())).contains("both"));
        assert!(said(|c| c.tls_key = Some("a".into())).contains("both"));
        assert!(said(|c| c.bind.clear()).contains("bind"));
        let mut config = Config::default();
        wide(&mut config);
        assert!(
            check(&config)
                .is_err_and(|e| e.to_string().contains("--tls-cert") && e.to_string().contains("--plain-http"))
        );
        config.plain_http = true;
        assert_eq!(check(&config), Ok(()));
        config.plain_http = false;
        (config.tls_cert, config.tls_key) = (Some("a".into()), Some("b".into()));
        assert_eq!(check(&config), Ok(()));
        config.plain_http = true;
        assert!(check(&config).is_err());
        assert!(said(|c| c.public_url = public_url("http://watch.example.org").ok()).contains("--plain-http"));
        assert_eq!(said(|c| c.public_url = public_url("http://localhost:7171").ok()), "");
        assert_eq!(said(|c| c.public_url = public_url("https://watch.example.org").ok()), "");
    }

    #[test]
    fn tables_are_read_and_written_alike() {
        let proxies: Proxies = toml::from_str("trusted = [\"10.0.0.5\", \"fd00::/64\"]").expect("a table");
        assert_eq!(proxies.print().to_string().trim(), "trusted = [\"10.0.0.5\", \"fd00::/64\"]");
        assert!(toml::from_str::<Proxies>("trusted = [\"10.0.0.1/8\"]").is_err());
        assert!(toml::from_str::<Proxies>("trust = []").is_err());
        let limits: AgentLimits = toml::from_str("series = 5").expect("a table");
        assert_eq!((limits.series, limits.handshakes), (5, 50));
    }
}
