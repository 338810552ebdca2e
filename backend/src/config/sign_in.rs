//! `[sign_in]`: by which further ways people sign in to a hub. Each is off unless it is written here: who could switch one on
//! from elsewhere could take the hub.

use super::team::{AddressRange, FileTable, address_range};
use serde::Deserialize;
use std::net::IpAddr;
use toml::{Table, Value};

/// The word for the socket in the hub's own folder, among addresses.
const UNIX: &str = "unix";
/// Headers that say something else already.
const TAKEN: &[&str] = &["authorization", "cookie", "host", "origin", "content-type", "x-forwarded-for"];

/// `[sign_in]`: how people sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SignInWays {
    /// What becomes of people for whom somebody vouches and who have no account.
    pub new_accounts: NewAccounts,
    /// A proxy in front that has signed people in.
    pub proxy: Option<ProxySignIn>,
}

/// What becomes of people for whom somebody vouches and who have no account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NewAccounts {
    /// They need an invitation.
    #[default]
    Invited,
    /// They get an account, as viewer of the first team.
    Viewer,
}

/// `[sign_in.proxy]`: a proxy that says in a header who asks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawProxySignIn")]
pub struct ProxySignIn {
    /// From where the header counts.
    from: Vec<AddressRange>,
    /// It counts from the socket in the hub's own folder, too.
    unix: bool,
    /// The header with the name of who asks, in small letters.
    pub user: String,
    /// The header with their address for mail, in small letters.
    pub email: Option<String>,
    /// Where people sign out.
    pub sign_out: Option<String>,
}

impl ProxySignIn {
    /// Whether the header counts from there; none: from the socket in the hub's own folder.
    pub fn counts_from(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            Some(peer) => self.from.iter().any(|range| range.contains(peer)),
            None => self.unix,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProxySignIn {
    from: Vec<String>,
    user: String,
    email: Option<String>,
    sign_out: Option<String>,
}

impl TryFrom<RawProxySignIn> for ProxySignIn {
    type Error = String;

    fn try_from(raw: RawProxySignIn) -> Result<Self, String> {
        let (unix, addresses): (Vec<_>, Vec<_>) = raw.from.iter().partition(|text| *text == UNIX);
        let from: Vec<_> = addresses.into_iter().map(|text| address_range(text)).collect::<Result<_, _>>()?;
        if from.iter().any(AddressRange::is_everybody) {
            return Err(
                "sign_in.proxy.from: every address would count, so anybody could be anybody; name the proxy".into()
            );
        }
        if from.is_empty() && unix.is_empty() {
            return Err("sign_in.proxy.from: name the address of the proxy, such as 10.0.0.5, or \"unix\"".into());
        }
        let (user, email) = (header(&raw.user)?, raw.email.as_deref().map(header).transpose()?);
        if email.as_ref() == Some(&user) {
            return Err("sign_in.proxy.email: it is another header than that of user".into());
        }
        if raw.sign_out.as_ref().is_some_and(|url| !(url.starts_with("https://") || url.starts_with("http://"))) {
            return Err("sign_in.proxy.sign_out: write an address, like https://id.example.org/sign-out".into());
        }
        Ok(ProxySignIn { from, unix: !unix.is_empty(), user, email, sign_out: raw.sign_out })
    }
}

/// The name of a header, in small letters.
fn header(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    match (1..=64).contains(&name.len()) && name.bytes().all(good) && !TAKEN.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!("sign_in.proxy: {text:?} cannot be the header; write one like X-Forwarded-User")),
    }
}

impl FileTable for SignInWays {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        (
            "new_accounts",
            "Of people without an account for whom the proxy vouches: `invited`, they need an invitation; `viewer`, they get one as viewer",
        ),
        ("proxy", "A table: a proxy in front of the hub that signs people in"),
        (
            "proxy.from",
            "Its addresses, or `unix` for the hub's own socket; from elsewhere a request with the header is refused",
        ),
        ("proxy.user", "The header in which it says who asks, such as X-Forwarded-User"),
        ("proxy.email", "The header with their address for mail, for new accounts"),
        ("proxy.sign_out", "Where people sign out"),
    ];

    fn print(&self) -> Table {
        let word = match self.new_accounts {
            NewAccounts::Invited => "invited",
            NewAccounts::Viewer => "viewer",
        };
        let proxy = self.proxy.as_ref().map(|proxy| {
            let unix = proxy.unix.then(|| Value::from(UNIX));
            let from = proxy.from.iter().map(|range| range.to_string().into()).chain(unix).collect();
            let texts =
                [("user", Some(&proxy.user)), ("email", proxy.email.as_ref()), ("sign_out", proxy.sign_out.as_ref())];
            let texts = texts.into_iter().filter_map(|(key, text)| Some((key.to_string(), text?.as_str().into())));
            let table: Table = [("from".to_string(), Value::Array(from))].into_iter().chain(texts).collect();
            ("proxy".to_string(), Value::Table(table))
        });
        [("new_accounts".to_string(), word.into())].into_iter().chain(proxy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_a_hole_is_refused() {
        let read = |text: &str| toml::from_str::<SignInWays>(text);
        assert_eq!(read("").expect("nothing"), SignInWays::default());
        let all = "new_accounts = \"viewer\"\n[proxy]\nfrom = [\"10.0.0.5\", \"unix\"]\nuser = \"X-Forwarded-User\"\n\
                   email = \"X-Forwarded-Email\"\nsign_out = \"https://id.example.org/out\"";
        let own = read(all).expect("all keys");
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        let proxy = own.proxy.expect("a proxy");
        let counts = |ip: &str| proxy.counts_from(Some(ip.parse().expect("an address")));
        assert!(counts("10.0.0.5") && !counts("10.0.0.6") && !counts("::1") && proxy.counts_from(None));
        let only =
            read("proxy = { from = [\"fd00::5\"], user = \"x-user\" }").expect("a proxy").proxy.expect("a proxy");
        assert!(!only.counts_from(None) && only.counts_from("fd00::5".parse().ok()));
        assert!(!only.counts_from("fd00::6".parse().ok()), "an address without a length is that address");
        for (wrong, said) in [
            ("proxy = { from = [], user = \"x-user\" }", "name the address"),
            ("proxy = { from = [\"0.0.0.0/0\"], user = \"x-user\" }", "anybody"),
            ("proxy = { from = [\"::/0\"], user = \"x-user\" }", "anybody"),
            ("proxy = { from = [\"10.0.0.1/8\"], user = \"x-user\" }", "behind its length"),
            ("proxy = { from = [\"unix\"], user = \"Cookie\" }", "cannot be the header"),
            ("proxy = { from = [\"unix\"], user = \"a b\" }", "cannot be the header"),
            ("proxy = { from = [\"unix\"], user = \"x-u\", email = \"X-U\" }", "another header"),
            ("proxy = { from = [\"unix\"], user = \"x-u\", sign_out = \"/out\" }", "sign_out"),
            ("proxy = { from = [\"unix\"] }", "missing field `user`"),
            ("new_accounts = \"admin\"", "unknown variant"),
            ("prox = 1", "unknown field"),
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
