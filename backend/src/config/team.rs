//! Settings of a hub alone: its public address, trusted proxies, and limits of agents.

use super::configured_join::{self, ConfiguredJoin};
use super::keep::{self, KeepRule, KeepRules};
use super::{Config, ConfigError, value};
use settings::kinds::Words;
use settings::{Fault, Written, table};
use std::fmt;
use std::net::IpAddr;
use toml::Value;

/// The address by which people and agents reach a hub, which is never taken from a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// Scheme, name and port as a browser sends them: `https://watch.example.org`.
    pub origin: String,
    /// The base path, with a slash at both ends.
    pub base: String,
}

impl PublicUrl {
    /// Whether it is reached by TLS.
    pub fn is_https(&self) -> bool {
        self.origin.starts_with("https://")
    }

    /// Its name or address, in lower case; an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        let authority = self.origin.split_once("://").map_or("", |(_, authority)| authority);
        value::split_authority(authority).map_or("", |(name, _)| name)
    }

    /// Whether it is an address of this machine only.
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

/// Refuses settings that break the guarantees of a hub: durable history and accounts, and no accidental plain text.
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
    if let (Some(provider), None) = (config.sign_in.providers().next(), &config.public_url) {
        return wrong(format!(
            "{:?} redirects users to the hub's own address, which is not known; write --public-url https://NAME/",
            provider.name()
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

/// A range of addresses with a common prefix. An address without a length is a range of one.
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
    /// Whether it contains every address of its family.
    pub fn is_everybody(&self) -> bool {
        self.bits == 0
    }

    /// Whether it contains an address. It never contains one of the other family.
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
    // An address with bits behind its length is most likely a mistake.
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

impl Written for AddressRange {
    fn show(&self) -> Value {
        self.to_string().into()
    }
}

table! {
    /// `[proxy]`: whose word about callers counts.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Proxies {
        /// Addresses of proxies whose `X-Forwarded-For` is trusted, such as 10.0.0.5 or 10.0.0.0/24
        trusted: Vec<AddressRange> = Vec::new(), text(address_range), like "[\"10.0.0.5\"]";
    }
}

table! {
    /// `[agents]`: what a hub takes from the machines that joined it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AgentLimits, checked by AgentLimits::check {
        /// Maximum number of series of one machine; further ones are dropped and counted
        series: u32 = 20_000, text(settings::value::number);
        /// Maximum number of new agent connections per second; further ones must retry
        handshakes: u32 = 50, text(settings::value::number);
        /// Policy for a known machine that joins again, such as after a new installation: `allow` continues the same
        /// machine; `approve` requires an admin to confirm it
        rejoin: Rejoin = Rejoin::Allow, word(REJOIN);
        /// Join keys that are valid while they stand here, for machines that programs set up
        join: Vec<ConfiguredJoin> = Vec::new(), table(&ConfiguredJoin::TABLE);
        /// Retention of machines by label, at most 8 entries; the first match applies
        keep: Vec<KeepRule> = Vec::new(), table(&KeepRule::TABLE);
    }
}

/// Policy for a known machine that joins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejoin {
    /// It continues as the same machine.
    Allow,
    /// An admin has to confirm it.
    Approve,
}

const REJOIN: Words<Rejoin> = &[("allow", Rejoin::Allow), ("approve", Rejoin::Approve)];

impl AgentLimits {
    /// Retention of machines by their labels.
    pub fn keep_rules(&self) -> KeepRules {
        KeepRules(self.keep.clone())
    }

    fn check(&self) -> Result<(), Fault> {
        configured_join::check(&self.join)?;
        keep::check(&self.keep)
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
        let proxies = Proxies::TABLE.read_text("trusted = [\"10.0.0.5\", \"fd00::/64\"]").expect("a table");
        assert_eq!(Proxies::TABLE.print(&proxies).to_string().trim(), "trusted = [\"10.0.0.5\", \"fd00::/64\"]");
        assert!(Proxies::TABLE.read_text("trusted = [\"10.0.0.1/8\"]").is_err());
        assert!(Proxies::TABLE.read_text("trust = []").is_err());
        let limits = AgentLimits::TABLE.read_text("series = 5").expect("a table");
        assert_eq!((limits.series, limits.handshakes), (5, 50));
    }
}
