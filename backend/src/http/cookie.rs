//! The cookie of a session: its name, how it is read, and how it is set.

use super::Refusal;
use axum::http::{HeaderMap, HeaderValue, header};
use cookie::{Cookie, SameSite};
use shared::secret::Secret;

/// Maximum number of share-link cookies that are read of a request.
const LINKS: usize = 16;

/// The cookies of one hub: that of a session, and those of share links.
pub struct SessionCookie {
    name: String,
    /// Prefix of the names of share-link cookies; the link's id follows.
    links: String,
    /// Prefix of the names of the cookies of pending sign-ins by a provider.
    flows: String,
    secure: bool,
}

/// Letters of the state in the name of its cookie: several windows may sign in at once.
const FLOW_NAME: usize = 8;
/// Lifetime of such a cookie, seconds.
const FLOW_AGE: u32 = 600;

impl SessionCookie {
    /// The cookies of a hub. Behind TLS no other site and no other port can set them. `instance` separates hubs;
    /// `port` separates the hubs of one machine, as browsers share cookies between ports.
    pub fn new(https: bool, instance: &str, port: u16) -> Self {
        let name = if https { format!("__Host-wg-{instance}") } else { format!("wg-{instance}-{port}") };
        let links = match https {
            true => format!("__Host-wg-share-{instance}-"),
            false => format!("wg-share-{instance}-{port}-"),
        };
        let flows = match https {
            true => format!("__Host-wg-flow-{instance}-"),
            false => format!("wg-flow-{instance}-{port}-"),
        };
        SessionCookie { name, links, flows, secure: https }
    }

    /// The session token of a request, if it has one.
    ///
    /// # Errors
    /// 400: it has two, so the choice would be arbitrary.
    pub fn read(&self, headers: &HeaderMap) -> Result<Option<Secret>, Refusal> {
        let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut own = texts.flat_map(Cookie::split_parse).flatten().filter(|cookie| cookie.name() == self.name);
        match (own.next(), own.next()) {
            (token, None) => Ok(token.map(|token| Secret::new(token.value()))),
            (_, Some(_)) => {
                Err(Refusal::bad("this request has two cookies of one session; delete this site's cookies"))
            }
        }
    }

    /// The links whose cookies a request has, by id, with their codes. At most `LINKS` are read.
    pub fn links(&self, headers: &HeaderMap) -> Vec<(String, Secret)> {
        let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let own = texts.flat_map(Cookie::split_parse).flatten().filter_map(|cookie| {
            let id = cookie.name().strip_prefix(self.links.as_str())?.to_string();
            Some((id, Secret::new(cookie.value())))
        });
        own.take(LINKS).collect()
    }

    /// The header that sets the cookie of a link.
    pub fn set_share(&self, id: &str, code: &Secret) -> HeaderValue {
        self.header(&format!("{}{id}", self.links), code.reveal().trim(), false)
    }

    /// The header that removes the cookie of a link.
    pub fn clear_share(&self, id: &str) -> HeaderValue {
        self.header(&format!("{}{id}", self.links), "", true)
    }

    /// The secret of the sign-in with this state, if this browser began it.
    pub fn flow(&self, headers: &HeaderMap, state: &str) -> Option<Secret> {
        let name = self.flow_name(state)?;
        let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut own = texts.flat_map(Cookie::split_parse).flatten().filter(|cookie| cookie.name() == name);
        own.next().map(|cookie| Secret::new(cookie.value()))
    }

    /// The header that sets the cookie of a pending sign-in. Unlike the session cookie, it is sent when the provider
    /// redirects the browser back.
    pub fn set_flow(&self, state: &str, secret: &Secret) -> HeaderValue {
        let name = self.flow_name(state).unwrap_or_default();
        self.lax(&name, secret.reveal(), FLOW_AGE)
    }

    /// The header that removes the cookie of a pending sign-in.
    pub fn clear_flow(&self, state: &str) -> HeaderValue {
        self.lax(&self.flow_name(state).unwrap_or_default(), "", 0)
    }

    fn flow_name(&self, state: &str) -> Option<String> {
        let begin = state.get(..FLOW_NAME).filter(|begin| begin.bytes().all(|b| b.is_ascii_hexdigit()))?;
        Some(format!("{}{begin}", self.flows))
    }

    fn lax(&self, name: &str, value: &str, age: u32) -> HeaderValue {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!("{name}={value}; HttpOnly; SameSite=Lax{secure}; Path=/; Max-Age={age}");
        let mut header = HeaderValue::try_from(text).expect("secrets and names are plain letters");
        header.set_sensitive(true);
        header
    }

    /// The header that sets the session cookie.
    pub fn set(&self, token: &Secret) -> HeaderValue {
        self.header(&self.name, token.reveal(), false)
    }

    /// The header that removes the session cookie.
    pub fn clear(&self) -> HeaderValue {
        self.header(&self.name, "", true)
    }

    fn header(&self, name: &str, value: &str, gone: bool) -> HeaderValue {
        let mut cookie = Cookie::build((name, value)).path("/").http_only(true).same_site(SameSite::Strict);
        if self.secure {
            cookie = cookie.secure(true);
        }
        let mut text = cookie.build().to_string();
        if gone {
            text.push_str("; Max-Age=0");
        }
        let mut header = HeaderValue::try_from(text).expect("tokens and names are plain letters");
        header.set_sensitive(true);
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: HeaderValue) -> String {
        value.to_str().expect("plain").to_string()
    }

    #[test]
    fn behind_tls_it_has_the_prefix_that_no_other_site_can_set() {
        let cookie = SessionCookie::new(true, "abcdefgh", 443);
        let set = text(cookie.set(&Secret::new("t0ken")));
        assert_eq!(set, "__Host-wg-abcdefgh=t0ken; HttpOnly; SameSite=Strict; Secure; Path=/");
        assert!(text(cookie.clear()).ends_with("Path=/; Max-Age=0") && !text(cookie.clear()).contains("t0ken"));
        let plain = SessionCookie::new(false, "abcdefgh", 7171);
        assert_eq!(text(plain.set(&Secret::new("t0ken"))), "wg-abcdefgh-7171=t0ken; HttpOnly; SameSite=Strict; Path=/");
    }

    #[test]
    fn it_is_read_by_its_whole_name_and_once() {
        let cookie = SessionCookie::new(true, "abcdefgh", 443);
        let read = |values: &[&str]| {
            let values = values.iter().map(|value| (header::COOKIE, HeaderValue::from_str(value).expect("plain")));
            let mut headers = HeaderMap::new();
            for (name, value) in values {
                headers.append(name, value);
            }
            cookie.read(&headers).map(|token| token.map(|token| token.reveal().to_string()))
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["a=1; __Host-wg-abcdefgh=x; b=2"]), Ok(Some("x".into())));
        assert_eq!(read(&["a=1", "__Host-wg-abcdefgh=x"]), Ok(Some("x".into())));
        for other in ["wg-abcdefgh=x", "__Host-wg-abcdefgh2=x", "__host-wg-abcdefgh=x", "=; ;;", "__Host-wg-abcdefgh"] {
            assert_eq!(read(&[other]), Ok(None), "{other}");
        }
        assert!(read(&["__Host-wg-abcdefgh=x; __Host-wg-abcdefgh=y"]).is_err());
        assert!(read(&["__Host-wg-abcdefgh=x", "__Host-wg-abcdefgh=x"]).is_err());
    }
}
