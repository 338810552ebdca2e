//! The guard: checks of every request, and the headers of every response. Pure: it reads no socket and no clock, logs
//! nothing and trusts no forwarded header.
//!
//! The Host list stops names that were rebound to this machine (DNS rebinding). The Origin rule stops other sites in
//! the user's own browser. The uid rule stops other users of the machine.

pub mod peer;

use super::{Caller, Refusal};
use crate::config::{Config, LocalAuth, PublicUrl, is_host_name, split_authority};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Kind of the requested resource. The rules are stricter for more sensitive data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// The page and its files: other sites may link to it.
    Page,
    /// Measurements: requests from other sites are refused.
    Data,
    /// The live stream: its Origin, if present, must be ours.
    Socket,
}

/// Host names that a request may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostNames {
    /// The server's own names.
    #[default]
    Own,
    /// Any name: a browser cannot reach a Unix socket by itself, so DNS rebinding is impossible. A proxy that forwards
    /// requests to the socket has its own name.
    Any,
}

/// Rules of admission.
#[derive(Clone, Debug)]
pub struct Guard {
    names: Vec<String>,
    addresses: Vec<IpAddr>,
    origins: Vec<String>,
    /// The configured public origin of a hub, if there is one.
    public: Option<String>,
    /// The scheme that the server itself uses.
    scheme: &'static str,
    /// Admitted uids; none: every local user.
    users: Option<Vec<u32>>,
    /// Uids that may change data of a server without accounts; none: callers cannot be identified.
    writers: Option<Vec<u32>>,
    frame_ancestors: String,
}

impl Guard {
    /// The guard of a configuration; our own uid is the process's.
    pub fn new(config: &Config) -> Self {
        Self::of_user(config, peer::own_uid())
    }

    /// The guard of a hub: accounts replace the check of the caller's uid, and the public name is one of ours.
    pub fn of_hub(config: &Config, public: &PublicUrl) -> Self {
        let mut guard = Guard { users: None, public: Some(public.origin.clone()), ..Self::new(config) };
        match public.host().parse() {
            Ok(ip) => guard.addresses.push(ip),
            Err(_) => guard.names.push(public.host().to_string()),
        }
        guard.origins.push(public.origin.clone());
        if config.tls_cert.is_some() {
            guard.scheme = "https";
        }
        guard
    }

    fn of_user(config: &Config, own_uid: u32) -> Self {
        // The address line shows the addresses that we listen on, so they are names of ours as well.
        let mut addresses = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        addresses.extend(&config.bind);
        addresses.extend(config.hosts.iter().filter_map(|host| host.parse::<IpAddr>().ok()));
        let users = config.allow_users.iter().copied().chain(config.sudo_uid).chain([own_uid, 0]);
        let mut frame_ancestors = "frame-ancestors 'self'".to_string();
        for origin in &config.embed {
            frame_ancestors.push(' ');
            frame_ancestors.push_str(origin);
        }
        Guard {
            names: config.hosts.clone(),
            addresses,
            origins: config.origins.clone(),
            public: None,
            scheme: "http",
            users: (config.local_auth == LocalAuth::Uid).then(|| users.collect()),
            writers: (config.local_auth == LocalAuth::Uid)
                .then(|| config.sudo_uid.into_iter().chain([own_uid, 0]).collect()),
            frame_ancestors,
        }
    }

    /// Whether callers are identified by uid: configured, and possible on this system.
    pub fn asks_uid(&self) -> bool {
        self.users.is_some() && peer::SUPPORTED
    }

    /// Whether a local user may read: our own uid, root, the user who called sudo, `--allow-user`.
    pub fn admits(&self, uid: u32) -> bool {
        self.users.as_ref().is_none_or(|users| users.contains(&uid))
    }

    /// Whether a local user may change data of a server without accounts: our own uid, root, the user who called sudo.
    pub fn lets_write(&self, uid: u32) -> bool {
        self.writers.as_ref().is_some_and(|writers| writers.contains(&uid))
    }

    /// Whether a caller is the owner of the server, who sees the output of its jobs. Other admitted callers are not;
    /// if callers cannot be identified, everybody counts as the owner.
    pub fn is_owner(&self, caller: Caller) -> bool {
        let is = |uid| self.writers.as_ref().is_none_or(|writers| writers.contains(&uid));
        caller.local.is_some() || caller.uid.map_or(!self.asks_uid(), is)
    }

    /// Checks a request by its target and headers.
    ///
    /// # Errors
    /// [`Refusal`]: 400 without exactly one good Host, 421 for a foreign Host, 403 for a foreign Origin.
    pub fn check(&self, target: &Uri, headers: &HeaderMap, kind: Resource, names: HostNames) -> Result<(), Refusal> {
        let host = self.host(target, headers, names)?;
        let mut origins = headers.get_all(header::ORIGIN).iter();
        match (origins.next(), origins.next()) {
            (Some(origin), None) => self.origin(origin, &host),
            (Some(_), Some(_)) => {
                Err(Refusal::new(StatusCode::FORBIDDEN, "the request has several Origin headers; send one"))
            }
            // A socket without an Origin is a script: browsers always send one.
            (None, _) if kind == Resource::Data => own_site(headers),
            (None, _) => Ok(()),
        }
    }

    /// Admits requests of our own page. It protects changes that rely on credentials a browser sends by itself (CSRF).
    ///
    /// # Errors
    /// [`Refusal`]: 403 without exactly one Origin that is ours by scheme, host and port, or from another site.
    pub fn own_page(&self, target: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let foreign = || {
            Refusal::new(
                StatusCode::FORBIDDEN,
                "only the page of this hub can do this; start the hub with --public-url if users reach it by another \
                address. Programs authenticate with a key",
            )
        };
        let host = self.host(target, headers, HostNames::Own)?;
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return Err(foreign()) };
        let is = |text: &str| origin.as_bytes().eq_ignore_ascii_case(text.as_bytes());
        // A proxy that terminates TLS may keep the host name of the client.
        let by_name = is(&format!("{}://{}", self.scheme, host.text));
        let ours = by_name || self.public.as_deref().is_some_and(is);
        let same = headers.get_all(SEC_FETCH_SITE).iter().all(|site| site.as_bytes() == b"same-origin");
        if ours && same { Ok(()) } else { Err(foreign()) }
    }

    /// The one Host, if it names this server.
    fn host<'a>(&self, target: &Uri, headers: &'a HeaderMap, names: HostNames) -> Result<Host<'a>, Refusal> {
        let bad = |sentence: &str| Refusal::new(StatusCode::BAD_REQUEST, sentence);
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(value), None) = (hosts.next(), hosts.next()) else {
            return Err(bad("send exactly one Host header"));
        };
        let text = value.to_str().map_err(|_| bad("the Host header is not plain text"))?;
        let (name, _) = split_authority(text).ok_or_else(|| bad("write the Host header as NAME or NAME:PORT"))?;
        // A target with a different name would be a second Host, and the choice between the two would be arbitrary.
        if target.authority().is_some_and(|own: &Authority| !own.as_str().eq_ignore_ascii_case(text)) {
            return Err(bad("the request's target and its Host header name different servers"));
        }
        let listed = names == HostNames::Any || self.names.iter().any(|own| own.eq_ignore_ascii_case(name));
        let address = text.starts_with('[') || name.parse::<Ipv4Addr>().is_ok();
        if names == HostNames::Any && !address && !is_host_name(name) {
            return Err(bad("write the Host header as NAME or NAME:PORT"));
        }
        let ours = address && name.parse().is_ok_and(|ip| self.addresses.contains(&ip));
        if listed || ours || name.eq_ignore_ascii_case("localhost") {
            return Ok(Host { text, listed });
        }
        let flag = if is_host_name(name) { name } else { "NAME" };
        let sentence = format!("this server rejects that host name; allow it with --host {flag}");
        Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, sentence))
    }

    /// Checks that an Origin is the address of the page, or one that was configured.
    fn origin(&self, origin: &HeaderValue, host: &Host<'_>) -> Result<(), Refusal> {
        let is = |text: &str| origin.as_bytes().eq_ignore_ascii_case(text.as_bytes());
        let with = |scheme: &str| is(&format!("{scheme}://{}", host.text));
        if with(self.scheme) || (host.listed && with("https")) || self.origins.iter().any(|own| is(own)) {
            return Ok(());
        }
        let sentence = "the request comes from another web origin; start the server with --origin URL to allow it";
        Err(Refusal::new(StatusCode::FORBIDDEN, sentence))
    }

    /// Sets the headers of every response. `script_hashes` are CSP sources (`sha256-...`) of the page's inline
    /// scripts.
    pub fn headers(&self, headers: &mut HeaderMap, script_hashes: &[&str]) {
        let mut scripts = "script-src 'self' 'wasm-unsafe-eval'".to_string();
        for hash in script_hashes {
            scripts.push_str(&format!(" '{hash}'"));
        }
        let policy = format!(
            "default-src 'none'; {scripts}; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; \
             manifest-src 'self'; base-uri 'none'; form-action 'none'; {}",
            self.frame_ancestors
        );
        let policy = HeaderValue::try_from(policy).expect("origins are checked for their letters when they are read");
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        headers.insert(CORP, HeaderValue::from_static("same-origin"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
}

/// Headers that our own commands never send. Browsers and proxies add them.
const PASSED_ON: [&str; 5] = ["origin", "sec-fetch-site", "cookie", "forwarded", "x-forwarded-for"];

/// Whether a request over the socket in our own folder is a command of a user who may open that folder. The kernel
/// reports the user, and no browser can open the socket by itself, so such a request has no web origin and needs none.
/// A request that a proxy forwards for somebody else is checked like any other.
pub fn is_command(headers: &HeaderMap) -> bool {
    PASSED_ON.iter().all(|name| !headers.contains_key(*name))
}

struct Host<'a> {
    text: &'a str,
    /// It is the configured name of a proxy, which may serve over TLS.
    listed: bool,
}

/// Browsers report the site of a request without an Origin in `Sec-Fetch-Site`.
fn own_site(headers: &HeaderMap) -> Result<(), Refusal> {
    let own = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    if headers.get_all(SEC_FETCH_SITE).iter().all(own) {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        "another site can link to the page, but not load its data; open the page itself",
    ))
}

#[cfg(test)]
mod tests;
