//! The user that a proxy in front of the hub has signed in, by the header that the proxy is configured to write. From
//! any other peer the header is refused with an error: a misconfiguration becomes visible, and nobody can impersonate
//! another user.

use super::{Caller, Refusal};
use crate::config::ProxySignIn;
use axum::http::HeaderMap;
use team::accounts::Vouched;

/// Maximum length of a name and of an e-mail address from a proxy, bytes.
const MAX_NAME: usize = 512;
const MAX_EMAIL: usize = 254;
/// Error of a repeated header: the client may have written one of the copies.
const TWICE: &str = "is repeated; configure the proxy to replace it, not to add it";
/// Maximum number of groups of one person.
const MAX_GROUPS: usize = 1_000;

/// The identity in the header, if the request has it.
///
/// # Errors
/// 400: the peer is no proxy, one of its headers is repeated, or the name is invalid.
pub(super) fn vouched(
    proxy: Option<&ProxySignIn>,
    caller: Caller,
    headers: &HeaderMap,
) -> Result<Option<Vouched>, Refusal> {
    let Some(proxy) = proxy else { return Ok(None) };
    let mut values = headers.get_all(&proxy.user).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let of = |name: &str, why: &str| Refusal::bad(format!("the header {name} {why}"));
    let bad = |why: &str| of(&proxy.user, why);
    if !proxy.counts_from(caller.peer) {
        return Err(bad("is accepted only from the proxy in sign_in.proxy.from; leave it out"));
    }
    if values.next().is_some() {
        return Err(bad(TWICE));
    }
    let subject = std::str::from_utf8(value.as_bytes()).map_err(|_| bad("is not UTF-8"))?.trim();
    if subject.len() > MAX_NAME || subject.chars().any(char::is_control) {
        return Err(bad("is longer than 512 bytes, or not plain text"));
    }
    let email = proxy.email.as_deref().map(|name| single(headers, name)).transpose()?.flatten();
    let email = email.filter(|email| email.contains('@') && email.len() <= MAX_EMAIL).map(String::from);
    let roles = match &proxy.groups {
        Some(name) => {
            let mut lists = headers.get_all(name).iter();
            let list = lists.next().map_or(&[][..], |list| list.as_bytes());
            if lists.next().is_some() {
                return Err(of(name, TWICE));
            }
            let list = std::str::from_utf8(list).map_err(|_| of(name, "is not UTF-8"))?;
            let all = list.split(',').map(str::trim).filter(|group| !group.is_empty());
            proxy.roles.roles_for(&all.take(MAX_GROUPS).map(String::from).collect::<Vec<_>>())
        }
        None => Vec::new(),
    };
    let login = proxy.login.as_deref().map(|name| single(headers, name)).transpose()?.flatten();
    let login = login.filter(|login| !login.is_empty()).map(String::from);
    // An empty header means that the proxy has signed in nobody.
    Ok((!subject.is_empty()).then(|| Vouched { subject: subject.into(), email, roles, login }))
}

/// The value of a header that the proxy writes, if it is a text.
///
/// # Errors
/// 400: it is repeated.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().and_then(|value| value.to_str().ok()).map(str::trim);
    match values.next() {
        Some(_) => Err(Refusal::bad(format!("the header {name} {TWICE}"))),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    #[test]
    fn a_header_that_the_user_may_have_added_is_refused() {
        let text = "from = [\"10.0.0.5\"]\nuser = \"x-user\"\nemail = \"x-email\"\ngroups = \"x-groups\"\n\
                    roles = { ops = \"viewer\" }\nlogin = \"x-login\"";
        let proxy = ProxySignIn::TABLE.read_text(text).expect("a table");
        let caller = Caller { peer: "10.0.0.5".parse().ok(), ..Caller::default() };
        let of = |list: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in list {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            vouched(Some(&proxy), caller, &headers)
        };
        let own = [("x-user", "mara"), ("x-email", "mara@example.org"), ("x-groups", "ops"), ("x-login", "mara")];
        let who = of(&own).ok().flatten().expect("somebody");
        assert_eq!((who.email.as_deref(), who.login.as_deref()), (Some("mara@example.org"), Some("mara")));
        for (name, _) in own {
            let with = [&[(name, "eve@example.org")][..], &own[..]].concat();
            assert!(of(&with).is_err(), "{name}");
        }
    }
}
