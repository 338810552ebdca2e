//! `[sign_in]`: by which further ways people sign in to a hub. Each is off unless it is written here: who could switch one on
//! from elsewhere could take the hub.

use super::team::{AddressRange, address_range};
use providers::settings::{GroupRoles, Provider, RawGitHub, RawOidc};
use serde::Deserialize;
use settings::FileTable;
use std::net::IpAddr;
use toml::{Table, Value};

/// The word for the socket in the hub's own folder, among addresses.
const UNIX: &str = "unix";
/// Providers of one hub; each has a button.
const MAX_PROVIDERS: usize = 16;
/// Headers that say something else already.
const TAKEN: &[&str] = &["authorization", "cookie", "host", "origin", "content-type", "x-forwarded-for"];

/// `[sign_in]`: how people sign in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawSignInWays")]
pub struct SignInWays {
    /// People may sign in by a password.
    pub password: bool,
    /// What becomes of people for whom somebody vouches and who have no account.
    pub new_accounts: NewAccounts,
    /// Others by whom people sign in, in the order of their buttons.
    pub providers: Vec<Provider>,
    /// A proxy in front that has signed people in.
    pub proxy: Option<ProxySignIn>,
}

impl Default for SignInWays {
    fn default() -> Self {
        SignInWays { password: true, new_accounts: NewAccounts::default(), providers: Vec::new(), proxy: None }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSignInWays {
    password: Option<bool>,
    #[serde(default)]
    new_accounts: NewAccounts,
    #[serde(default)]
    oidc: Vec<RawOidc>,
    github: Option<RawGitHub>,
    proxy: Option<ProxySignIn>,
}

impl TryFrom<RawSignInWays> for SignInWays {
    type Error = String;

    fn try_from(raw: RawSignInWays) -> Result<Self, String> {
        let oidc = raw.oidc.into_iter().map(Provider::try_from);
        let providers: Vec<Provider> = oidc.chain(raw.github.map(Provider::try_from)).collect::<Result<_, _>>()?;
        if providers.len() > MAX_PROVIDERS {
            return Err(format!("sign_in: a hub has at most {MAX_PROVIDERS} providers"));
        }
        for (at, provider) in providers.iter().enumerate() {
            if providers[..at].iter().any(|other| other.name == provider.name) {
                return Err(format!(
                    "sign_in.oidc: two providers have the name {:?}; give each its own name",
                    provider.name
                ));
            }
        }
        let password = raw.password.unwrap_or(true);
        if !password && providers.is_empty() && raw.proxy.is_none() {
            return Err("sign_in.password: nobody could sign in without it; configure another method first".into());
        }
        Ok(SignInWays { password, new_accounts: raw.new_accounts, providers, proxy: raw.proxy })
    }
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
    /// The header with their groups, in small letters, and what those may.
    pub groups: Option<String>,
    /// See `groups`.
    pub roles: GroupRoles,
    /// The header with the name by which they work on machines, in small letters.
    pub login: Option<String>,
    /// Where people sign out.
    pub sign_out: Option<String>,
}

impl ProxySignIn {
    /// Addresses from which the header counts.
    pub fn ranges(&self) -> &[AddressRange] {
        &self.from
    }

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
    groups: Option<String>,
    #[serde(default)]
    roles: GroupRoles,
    login: Option<String>,
    sign_out: Option<String>,
}

impl TryFrom<RawProxySignIn> for ProxySignIn {
    type Error = String;

    fn try_from(raw: RawProxySignIn) -> Result<Self, String> {
        let (unix, addresses): (Vec<_>, Vec<_>) = raw.from.iter().partition(|text| *text == UNIX);
        let from: Vec<_> = addresses.into_iter().map(|text| address_range(text)).collect::<Result<_, _>>()?;
        if from.iter().any(AddressRange::is_everybody) {
            return Err("sign_in.proxy.from: it would trust every address; name the address of the proxy".into());
        }
        if from.is_empty() && unix.is_empty() {
            return Err("sign_in.proxy.from: name the address of the proxy, such as 10.0.0.5, or \"unix\"".into());
        }
        let (user, email) = (header(&raw.user)?, raw.email.as_deref().map(header).transpose()?);
        let groups = raw.groups.as_deref().map(header).transpose()?;
        if email.as_ref() == Some(&user) {
            return Err("sign_in.proxy.email: it is the header of user; name another one".into());
        }
        if groups.is_some() && (groups == email || groups.as_ref() == Some(&user)) {
            return Err("sign_in.proxy.groups: it is the header of user or email; name another one".into());
        }
        if groups.is_some() == raw.roles.is_empty() {
            return Err("sign_in.proxy: groups and roles belong together; write both".into());
        }
        if raw.sign_out.as_ref().is_some_and(|url| !(url.starts_with("https://") || url.starts_with("http://"))) {
            return Err("sign_in.proxy.sign_out: write an address, like https://id.example.org/sign-out".into());
        }
        let login = raw.login.as_deref().map(header).transpose()?;
        let (unix, roles, sign_out) = (!unix.is_empty(), raw.roles, raw.sign_out);
        Ok(ProxySignIn { from, unix, user, email, groups, roles, login, sign_out })
    }
}

/// The name of a header, in small letters.
fn header(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    match (1..=64).contains(&name.len()) && name.bytes().all(good) && !TAKEN.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!("sign_in.proxy: {text:?} is not a valid header; write one like X-Forwarded-User")),
    }
}

impl FileTable for SignInWays {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("password", "Whether people may sign in by a password"),
        (
            "new_accounts",
            "Of people without an account for whom a provider or the proxy vouches: `invited`, they need an invitation; `viewer`, they get one as viewer",
        ),
        ("oidc", "A list of tables: providers that speak OpenID Connect, each with a button"),
        (
            "oidc.name",
            "What it is called on its button; people come back to `/auth/NAME/callback`, which is registered there",
        ),
        ("oidc.title", "What people call it: the words on its button; its name unless written"),
        ("oidc.issuer", "Its address, as its tokens say it to the letter"),
        ("oidc.client_id", "What it calls this hub"),
        (
            "oidc.client_secret_file",
            "The file with the secret that it gave for this hub; or `client_secret`, the secret itself",
        ),
        ("oidc.scopes", "What it is asked for; `openid`, `profile` and `email` unless written"),
        ("oidc.domains", "Whose people alone may come in: Google's `hd`, or the domain of an e-mail that is verified"),
        ("oidc.groups_claim", "The claim with somebody's groups, such as `groups`; dots lead inwards"),
        (
            "oidc.roles",
            "A table: what each group may, a role in team main or `{ team = ..., role = ... }`; set anew at each sign-in",
        ),
        (
            "oidc.login_claim",
            "The claim with the name of somebody's user on machines, whose runs are then theirs; one that nobody can change themselves",
        ),
        ("github", "A table: GitHub's own OAuth"),
        ("github.client_id", "What GitHub calls this hub"),
        ("github.client_secret_file", "As for `oidc`"),
        ("github.url", "Where GitHub is, if not at https://github.com"),
        ("github.orgs", "Organizations whose members may come in"),
        ("github.teams", "Teams whose members may come in, such as lab/gpu"),
        ("proxy", "A table: a proxy in front of the hub that signs people in"),
        (
            "proxy.from",
            "Its addresses, or `unix` for the hub's own socket; from elsewhere a request with the header is refused",
        ),
        ("proxy.user", "The header in which it says who asks, such as X-Forwarded-User"),
        ("proxy.email", "The header with their address for mail, for new accounts"),
        ("proxy.groups", "The header with their groups, between commas"),
        ("proxy.roles", "What each group may, as in `oidc.roles`; it is looked at with each request"),
        ("proxy.login", "The header with the name of their user on machines, as in `oidc.login_claim`"),
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
            let texts = [
                ("user", Some(&proxy.user)),
                ("email", proxy.email.as_ref()),
                ("groups", proxy.groups.as_ref()),
                ("login", proxy.login.as_ref()),
                ("sign_out", proxy.sign_out.as_ref()),
            ];
            let roles = proxy.groups.as_ref().map(|_| ("roles".to_string(), Value::Table(proxy.roles.print())));
            let texts = texts.into_iter().filter_map(|(key, text)| Some((key.to_string(), text?.as_str().into())));
            let table: Table =
                [("from".to_string(), Value::Array(from))].into_iter().chain(texts).chain(roles).collect();
            ("proxy".to_string(), Value::Table(table))
        });
        let (github, oidc): (Vec<_>, Vec<_>) = self.providers.iter().partition(|provider| provider.name == "github");
        let oidc: Vec<Value> = oidc.into_iter().map(|provider| Value::Table(provider.print())).collect();
        let oidc = (!oidc.is_empty()).then(|| ("oidc".to_string(), Value::Array(oidc)));
        let github = github.first().map(|provider| ("github".to_string(), Value::Table(provider.print())));
        let plain = [("password".to_string(), self.password.into()), ("new_accounts".to_string(), word.into())];
        plain.into_iter().chain(oidc).chain(github).chain(proxy).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_read_and_printed_without_their_secrets() {
        let read = |text: &str| toml::from_str::<SignInWays>(text);
        let oidc =
            "[[oidc]]\nname = \"keycloak\"\nissuer = \"https://id.example.org/realms/lab\"\nclient_id = \"wg\"\n";
        let all = format!(
            "password = false\n{oidc}client_secret = \"s3cret\"\ngroups_claim = \"groups\"\n\
             domains = [\"@Example.org\"]\nroles = {{ ops = \"admin\" }}\n\
             [github]\nclient_id = \"gh\"\nclient_secret_file = \"/s\"\nteams = [\"lab/gpu\"]\n"
        );
        let own = read(&all).expect("all keys");
        let shown = format!("{own:?}\n{}", own.print());
        assert!(shown.contains("keycloak") && shown.contains("example.org") && !shown.contains("s3cret"), "{shown}");
        let back = read(&own.print().to_string()).expect("a table");
        assert_eq!((back.password, back.providers.len(), back.providers[1].name.as_str()), (false, 2, "github"));
        assert_eq!(own.providers[0].secret().map(|secret| secret.map(|s| s.reveal().len())), Ok(Some(6)));
        for (wrong, said) in [
            ("password = false".to_string(), "nobody could sign in"),
            (oidc.replace("keycloak", "password"), "choose another name"),
            (oidc.replace("keycloak", "A b"), "is not a valid name"),
            (format!("{oidc}{oidc}"), "two providers have"),
            (oidc.replace("https://", "http://"), "write https://"),
            (oidc.replace("/lab", "/lab?x=1"), "from ? or #"),
            (oidc.replace("https://", "https://me:s3cret@"), "is not an address"),
            (format!("{oidc}scopes = [\"email\"]"), "openid"),
            (format!("{oidc}groups_claim = \"groups\""), "belong together"),
            (format!("{oidc}client_secret = \"s3cret\"\nclient_secret_file = \"/a\""), "choose one"),
            ("[github]\nclient_id = \"a\"".into(), "client_secret_file"),
            ("[github]\nclient_id = \"a\"\nclient_secret = \"s3cret\"\nteams = [\"lab\"]".into(), "like lab/gpu"),
        ] {
            let error = read(&wrong).expect_err(&wrong).to_string();
            // The library shows the line; what we say of it tells no secret.
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }

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
            ("proxy = { from = [\"0.0.0.0/0\"], user = \"x-user\" }", "trust every address"),
            ("proxy = { from = [\"::/0\"], user = \"x-user\" }", "trust every address"),
            ("proxy = { from = [\"10.0.0.1/8\"], user = \"x-user\" }", "beyond its prefix length"),
            ("proxy = { from = [\"unix\"], user = \"Cookie\" }", "is not a valid header"),
            ("proxy = { from = [\"unix\"], user = \"a b\" }", "is not a valid header"),
            ("proxy = { from = [\"unix\"], user = \"x-u\", email = \"X-U\" }", "it is the header of"),
            ("proxy = { from = [\"unix\"], user = \"x-u\", sign_out = \"/out\" }", "sign_out"),
            ("proxy = { from = [\"unix\"] }", "missing field `user`"),
            ("new_accounts = \"admin\"", "unknown variant"),
            ("prox = 1", "unknown field"),
            ("proxy = { from = [\"unix\"], user = \"x-u\", groups = \"x-g\" }", "belong together"),
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
