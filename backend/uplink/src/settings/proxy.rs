//! The proxy for a hub: from a flag, or from the environment variables that other programs use.

use super::hub_url::HubUrl;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::http::Uri;
use percent_encoding::percent_decode_str;
use settings::Written;
use std::fmt;
use std::net::IpAddr;
use toml::Value;

/// An HTTP proxy with CONNECT. Its debug form omits the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The value of `Proxy-Authorization`, which is secret.
    pub authorization: Option<String>,
}

impl ProxyUrl {
    /// Parses `http://[USER:PASSWORD@]HOST[:PORT]`; the scheme is optional.
    ///
    /// # Errors
    /// The rest of a sentence with the expected form; it contains no password.
    pub fn parse(text: &str) -> Result<ProxyUrl, String> {
        let wrong = || "unknown kind of proxy; write it like http://proxy.example.org:3128".to_string();
        let whole = if text.contains("://") { text.to_string() } else { format!("http://{text}") };
        let uri: Uri = whole.parse().map_err(|_| wrong())?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http")).ok_or_else(wrong)?;
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        if host.is_empty() {
            return Err(wrong());
        }
        let user = authority.as_str().rsplit_once('@').map(|(user, _)| percent_decode_str(user).collect::<Vec<u8>>());
        let authorization = user.map(|user| format!("Basic {}", STANDARD.encode(user)));
        Ok(ProxyUrl { host, port: authority.port_u16().unwrap_or(80), authorization })
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = if self.authorization.is_some() { "***@" } else { "" };
        match self.host.contains(':') {
            true => write!(f, "http://{user}[{}]:{}", self.host, self.port),
            false => write!(f, "http://{user}{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

/// Choice of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyChoice {
    /// The one of the environment, if there is one.
    Environment,
    /// No proxy, regardless of the environment.
    Direct,
    /// This one.
    Named(ProxyUrl),
}

impl ProxyChoice {
    /// Reads an address, or `none`.
    ///
    /// # Errors
    /// The rest of a sentence with the expected form.
    pub fn parse(text: &str) -> Result<ProxyChoice, String> {
        if text == "none" { Ok(ProxyChoice::Direct) } else { ProxyUrl::parse(text).map(ProxyChoice::Named) }
    }

    /// Reads the value of a configuration file.
    pub(super) fn read(value: Value) -> Result<Self, String> {
        ProxyChoice::parse(&String::text(value)?)
    }

    /// The value for a configuration file, without a password; None for the default.
    pub(super) fn show(&self) -> Option<Value> {
        match self {
            ProxyChoice::Environment => None,
            ProxyChoice::Direct => Some("none".into()),
            ProxyChoice::Named(proxy) => Some(proxy.to_string().into()),
        }
    }
}

/// The proxy variables of the environment. Its debug form shows nothing, because addresses may contain passwords.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyEnvironment {
    https: Option<String>,
    http: Option<String>,
    all: Option<String>,
    no: String,
}

impl fmt::Debug for ProxyEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyEnvironment(***)")
    }
}

impl ProxyEnvironment {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower case first.
    pub fn read(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let lower = env(&name.to_ascii_lowercase()).filter(|value| !value.is_empty());
            lower.or_else(|| env(name).filter(|value| !value.is_empty()))
        };
        ProxyEnvironment {
            https: either("HTTPS_PROXY"),
            http: either("HTTP_PROXY"),
            all: either("ALL_PROXY"),
            no: either("NO_PROXY").unwrap_or_default(),
        }
    }

    /// The proxy for an address; None: direct connection, as to this machine itself.
    ///
    /// # Errors
    /// The variable names no supported proxy; a sentence.
    pub fn proxy(&self, url: &HubUrl) -> Result<Option<ProxyUrl>, String> {
        let (name, own) = if url.tls { ("HTTPS_PROXY", &self.https) } else { ("HTTP_PROXY", &self.http) };
        let (name, found) = if own.is_some() { (name, own) } else { ("ALL_PROXY", &self.all) };
        match found {
            Some(text) if !url.is_local() && !self.passes_by(url) => ProxyUrl::parse(text).map(Some).map_err(|why| {
                format!("{name} in the environment: {why}; choose another with --proxy, or --proxy none")
            }),
            _ => Ok(None),
        }
    }

    /// Whether `NO_PROXY` matches an address: by a name or a suffix of one, an address, a range of addresses, or `*`.
    fn passes_by(&self, url: &HubUrl) -> bool {
        let ip: Option<IpAddr> = url.host.parse().ok();
        self.no.split([',', ' ']).map(|one| one.trim().to_ascii_lowercase()).filter(|one| !one.is_empty()).any(|one| {
            if one == "*" {
                return true;
            }
            if let (Some(ip), Some((network, length))) = (ip, one.split_once('/')) {
                return network.parse().is_ok_and(|network| length.parse().is_ok_and(|n| within(ip, network, n)));
            }
            let (host, port) = match one.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
                _ => (one.as_str(), None),
            };
            if port.is_some_and(|port| port.parse() != Ok(url.port)) {
                return false;
            }
            let host = host.trim_matches(['[', ']']);
            if let Some(ip) = ip {
                return host.parse() == Ok(ip);
            }
            let suffix = host.trim_start_matches("*.").trim_start_matches('.');
            let below = url.host.strip_suffix(suffix).is_some_and(|before| before.ends_with('.'));
            !suffix.is_empty() && (below || (url.host == suffix && suffix == host))
        })
    }
}

/// Whether the first `length` bits of two addresses agree.
fn within(ip: IpAddr, network: IpAddr, length: u32) -> bool {
    let same = |a: u128, b: u128, bits: u32| length <= bits && (length == 0 || (a ^ b) >> (bits - length) == 0);
    match (ip, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(all: &[(&str, &str)]) -> ProxyEnvironment {
        let all: Vec<(String, String)> =
            all.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        ProxyEnvironment::read(&|name| all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
    }

    #[test]
    fn a_proxy_is_read_with_its_password_and_shown_without() {
        let proxy = ProxyUrl::parse("http://me:s%40cret@Proxy:3128/").expect("a proxy");
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy", 3128));
        assert_eq!(proxy.authorization.as_deref(), Some("Basic bWU6c0BjcmV0"));
        assert_eq!(format!("{proxy} {proxy:?}"), "http://***@proxy:3128 ProxyUrl(http://***@proxy:3128)");
        assert_eq!(ProxyUrl::parse("proxy:1").map(|p| p.to_string()).as_deref(), Ok("http://proxy:1"));
        assert_eq!(ProxyUrl::parse("[::1]:1").map(|p| p.to_string()).as_deref(), Ok("http://[::1]:1"));
        for text in ["socks5://me:s3cret@a:1", "https://a", "", "http://", "a b"] {
            let error = ProxyUrl::parse(text).expect_err(text);
            assert!(error.contains("http://proxy") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn the_environment_chooses_by_scheme_and_lets_pass_what_it_names() {
        let env = environment(&[
            ("https_proxy", "http://secure:1"),
            ("HTTPS_PROXY", "http://other:1"),
            ("ALL_PROXY", "all:1"),
            ("NO_PROXY", "example.org, .inner.net,10.0.0.0/8 fd00::/8,a:8443,*.star.net,192.168.1.1"),
        ]);
        for (url, proxy) in [
            ("https://b.net", Some("http://secure:1")),
            ("http://b.net", Some("http://all:1")),
            ("https://localhost:9", None),
            ("https://127.0.0.2", None),
            ("https://[::1]", None),
            ("https://example.org", None),
            ("https://hub.example.org:9", None),
            ("https://anexample.org", Some("http://secure:1")),
            ("https://inner.net", Some("http://secure:1")),
            ("https://a.inner.net", None),
            ("https://x.star.net", None),
            ("https://10.1.2.3", None),
            ("https://11.1.2.3", Some("http://secure:1")),
            ("https://192.168.1.1", None),
            ("https://[fd12::1]", None),
            ("https://[fe80::1]", Some("http://secure:1")),
            ("https://a:8443", None),
            ("https://a", Some("http://secure:1")),
        ] {
            let url = HubUrl::parse(url).expect(url);
            let found = env.proxy(&url).expect("a proxy or none").map(|proxy| proxy.to_string());
            assert_eq!(found.as_deref(), proxy, "{url}");
        }
        let star = environment(&[("ALL_PROXY", "all:1"), ("no_proxy", "*")]);
        assert_eq!(star.proxy(&HubUrl::parse("https://a").expect("a hub")), Ok(None));
        let other = environment(&[("ALL_PROXY", "socks5://me:s3cret@a:1")]);
        let error = other.proxy(&HubUrl::parse("https://a").expect("a hub")).expect_err("no such proxy");
        assert!(
            error.starts_with("ALL_PROXY") && error.contains("--proxy none") && !error.contains("s3cret"),
            "{error}"
        );
    }
}
