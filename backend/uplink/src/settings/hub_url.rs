//! The address of a hub, in its text form and in the form for connections.

use client::http::Uri;
use settings::value;
use std::fmt;

/// The address of a hub: scheme, host, port and base path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubUrl {
    /// Whether it uses TLS.
    pub tls: bool,
    /// Host name or address, in lower case; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The base path, which begins and ends with a slash.
    pub base: String,
}

impl HubUrl {
    /// Reads `https://NAME[:PORT][/BASE]`.
    ///
    /// # Errors
    /// The rest of a sentence with the expected form.
    pub fn parse(text: &str) -> Result<HubUrl, String> {
        let wrong = || format!("\"{text}\" is not the address of a hub; write it like https://watch.example.org");
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(wrong()) };
        let tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(wrong()),
        };
        if authority.as_str().contains('@') {
            return Err("the address of a hub must not contain a user or password; give the key with --key".into());
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(wrong());
        }
        let host = value::host(authority.host()).map_err(|_| wrong())?;
        let base = value::base_path(uri.path()).map_err(|_| wrong())?;
        Ok(HubUrl { tls, host, port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }), base })
    }

    /// Whether it is an address of this machine.
    pub fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Host and port, as in a header `Host` of CONNECT.
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", self.bracketed(), self.port)
    }

    /// Host, and the port if it is not the scheme's default.
    pub fn authority(&self) -> String {
        if self.port == if self.tls { 443 } else { 80 } { self.bracketed() } else { self.host_and_port() }
    }

    fn bracketed(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }
}

impl fmt::Display for HubUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.base.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_meant() {
        for (text, shown, local) in [
            ("https://Watch.example.org", "https://watch.example.org", false),
            ("https://watch.example.org:443/", "https://watch.example.org", false),
            ("https://a:8443/tools/wg/", "https://a:8443/tools/wg", false),
            ("http://127.0.0.1:7171", "http://127.0.0.1:7171", true),
            ("http://localhost:80", "http://localhost", true),
            ("https://[::1]:9/", "https://[::1]:9", true),
        ] {
            let url = HubUrl::parse(text).expect(text);
            assert_eq!((url.to_string().as_str(), url.is_local()), (shown, local));
        }
        for text in ["", "a", "a:1", "ftp://a", "https://", "https://u:s3cret@a", "https://a/?x=1", "https://a/#x"] {
            let error = HubUrl::parse(text).expect_err(text);
            assert!(error.contains("https://") || error.contains("--key"), "{error}");
        }
    }
}
