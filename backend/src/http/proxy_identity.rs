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
/// 400: the peer is no proxy, this header or that of the groups is repeated, or the name is invalid.
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
    let email = proxy.email.as_ref().and_then(|name| headers.get(name)).and_then(|value| value.to_str().ok());
    let email = email.map(str::trim).filter(|email| email.contains('@') && email.len() <= MAX_EMAIL);
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
    let login = match &proxy.login {
        Some(name) => {
            let mut values = headers.get_all(name).iter();
            let value = values.next().and_then(|value| value.to_str().ok()).map(str::trim);
            if values.next().is_some() {
                return Err(of(name, TWICE));
            }
            value.filter(|login| !login.is_empty()).map(String::from)
        }
        None => None,
    };
    // An empty header means that the proxy has signed in nobody.
    let email = email.map(String::from);
    Ok((!subject.is_empty()).then(|| Vouched { subject: subject.into(), email, roles, login }))
}
