//! `[sign_in]`: additional sign-in methods of a hub. Each is off unless this file enables it: enabling one from
//! elsewhere could take over the hub.

use super::team::{AddressRange, address_range};
use providers::settings::{GitHubProvider, GroupRoles, OidcProvider, Provider};
use settings::kinds::Words;
use settings::{Fault, Written, table, value};
use std::net::IpAddr;
use toml::Value;

/// The word for the socket in the hub's own folder, among addresses.
const UNIX: &str = "unix";
/// Maximum number of providers of one hub; each has a button.
const MAX_PROVIDERS: usize = 16;
/// Headers that have another meaning already.
const TAKEN: &[&str] = &["authorization", "cookie", "host", "origin", "content-type", "x-forwarded-for"];

table! {
    /// `[sign_in]`: how people sign in.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SignInWays, checked by SignInWays::check {
        /// Allow sign-in by password
        password: bool = true, text(value::switch);
        /// Policy for authenticated people without an account: `invited` requires an invitation; `viewer` creates an
        /// account, as viewer of the first team
        new_accounts: NewAccounts = NewAccounts::Invited, word(NEW_ACCOUNTS);
        /// OpenID Connect providers, in the order of their buttons
        oidc: Vec<OidcProvider> = Vec::new(), table(&OidcProvider::TABLE);
        /// GitHub's own OAuth
        github: Option<GitHubProvider> = None, table(&GitHubProvider::TABLE);
        /// Proxy in front of the hub that authenticates users
        proxy: Option<ProxySignIn> = None, table(&ProxySignIn::TABLE);
    }
}

impl SignInWays {
    /// Identity providers, in the order of their buttons.
    pub fn providers(&self) -> impl Iterator<Item = Provider<'_>> {
        self.oidc.iter().map(Provider::Oidc).chain(self.github.iter().map(Provider::GitHub))
    }

    fn check(&self) -> Result<(), Fault> {
        if self.providers().count() > MAX_PROVIDERS {
            return Err(format!("a hub has at most {MAX_PROVIDERS} providers").into());
        }
        let twice = |at: &usize| self.oidc[..*at].iter().any(|other| other.name == self.oidc[*at].name);
        if let Some(at) = (0..self.oidc.len()).find(twice) {
            let name = &self.oidc[at].name;
            return Err(Fault::new("oidc", format!("two providers have the name {name:?}; give each its own name")));
        }
        match !self.password && self.providers().next().is_none() && self.proxy.is_none() {
            true => Err(Fault::new("password", "nobody could sign in without it; configure another method first")),
            false => Ok(()),
        }
    }
}

/// Policy for authenticated people without an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewAccounts {
    /// They need an invitation.
    Invited,
    /// They get an account, as viewer of the first team.
    Viewer,
}

const NEW_ACCOUNTS: Words<NewAccounts> = &[("invited", NewAccounts::Invited), ("viewer", NewAccounts::Viewer)];

table! {
    /// `[sign_in.proxy]`: a proxy that says in a header who asks.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProxySignIn, checked by ProxySignIn::check {
        /// Addresses of the proxy, or `unix` for the hub's own socket; requests with the header from elsewhere are
        /// rejected
        from: Vec<HeaderSource> = Vec::new(), text(header_source), required like "[\"10.0.0.5\", \"unix\"]";
        /// Header with the user name
        user: String = String::new(), text(header), required like "\"X-Forwarded-User\"";
        /// Header with the e-mail address, for new accounts
        email: Option<String> = None, text(header), like "\"X-Forwarded-Email\"";
        /// Header with the groups, separated by commas
        groups: Option<String> = None, text(header), like "\"X-Forwarded-Groups\"";
        /// Role of each group, as in `oidc.roles`; applied at each request
        roles: GroupRoles = GroupRoles::default(), own(GroupRoles::read, GroupRoles::show), like "{ ops = \"admin\" }";
        /// Header with the user name on machines, as in `oidc.login_claim`
        login: Option<String> = None, text(header), like "\"X-Forwarded-Preferred-Username\"";
        /// Address of the proxy's sign-out page
        sign_out: Option<String> = None, text(sign_out), like "\"https://id.example.org/sign-out\"";
    }
}

/// Origin from which a header is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderSource {
    /// Addresses of a network.
    Range(AddressRange),
    /// The socket in the hub's own folder.
    Unix,
}

impl Written for HeaderSource {
    fn show(&self) -> Value {
        match self {
            HeaderSource::Range(range) => range.show(),
            HeaderSource::Unix => UNIX.into(),
        }
    }
}

fn header_source(text: &str) -> Result<HeaderSource, String> {
    match text {
        UNIX => Ok(HeaderSource::Unix),
        text => match address_range(text)? {
            all if all.is_everybody() => Err("it would trust every address; name the address of the proxy".into()),
            range => Ok(HeaderSource::Range(range)),
        },
    }
}

impl ProxySignIn {
    /// Addresses from which the header is trusted.
    pub fn ranges(&self) -> impl Iterator<Item = &AddressRange> {
        self.from.iter().filter_map(|source| match source {
            HeaderSource::Range(range) => Some(range),
            HeaderSource::Unix => None,
        })
    }

    /// Whether the header is trusted from a peer; none: the socket in the hub's own folder.
    pub fn counts_from(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            Some(peer) => self.ranges().any(|range| range.contains(peer)),
            None => self.from.contains(&HeaderSource::Unix),
        }
    }

    fn check(&self) -> Result<(), Fault> {
        if self.from.is_empty() {
            return Err(Fault::new("from", "name the address of the proxy, such as 10.0.0.5, or \"unix\""));
        }
        if self.email.as_ref() == Some(&self.user) {
            return Err(Fault::new("email", "it is the header of user; name another one"));
        }
        if self.groups.is_some() && (self.groups == self.email || self.groups.as_ref() == Some(&self.user)) {
            return Err(Fault::new("groups", "it is the header of user or email; name another one"));
        }
        match self.groups.is_some() == self.roles.is_empty() {
            true => Err("groups and roles belong together; write both".into()),
            false => Ok(()),
        }
    }
}

fn sign_out(text: &str) -> Result<String, String> {
    match text.starts_with("https://") || text.starts_with("http://") {
        true => Ok(text.into()),
        false => Err("write an address, like https://id.example.org/sign-out".into()),
    }
}

/// The name of a header, in lower case.
fn header(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    match (1..=64).contains(&name.len()) && name.bytes().all(good) && !TAKEN.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!("{text:?} is not a valid header; write one like X-Forwarded-User")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_read_and_printed_without_their_secrets() {
        let read = |text: &str| SignInWays::TABLE.read_text(text);
        let oidc =
            "[[oidc]]\nname = \"keycloak\"\nissuer = \"https://id.example.org/realms/lab\"\nclient_id = \"wg\"\n";
        let all = format!(
            "password = false\n{oidc}client_secret = \"s3cret\"\ngroups_claim = \"groups\"\n\
             domains = [\"@Example.org\"]\nroles = {{ ops = \"admin\" }}\n\
             [github]\nclient_id = \"gh\"\nclient_secret_file = \"/s\"\nteams = [\"lab/gpu\"]\n"
        );
        let own = read(&all).expect("all keys");
        let shown = format!("{own:?}\n{}", SignInWays::TABLE.print(&own));
        assert!(shown.contains("keycloak") && shown.contains("example.org") && !shown.contains("s3cret"), "{shown}");
        let back = read(&SignInWays::TABLE.print(&own).to_string()).expect("a table");
        let names: Vec<&str> = back.providers().map(Provider::name).collect();
        assert_eq!((back.password, names), (false, vec!["keycloak", "github"]));
        assert_eq!(
            own.providers().next().expect("one").secret().map(|secret| secret.map(|s| s.reveal().len())),
            Ok(Some(6))
        );
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
            (format!("{oidc}client_secret = \"s3cret\"\nclient_secret_file = \"/a\""), "exclude each other"),
            ("[github]\nclient_id = \"a\"".into(), "client_secret_file"),
            ("[github]\nclient_id = \"a\"\nclient_secret = \"s3cret\"\nteams = [\"lab\"]".into(), "like lab/gpu"),
        ] {
            let error = read(&wrong).expect_err(&wrong).to_string();
            assert!(error.contains(said) && !error.contains("s3cret"), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_a_hole_is_refused() {
        let read = |text: &str| SignInWays::TABLE.read_text(text);
        assert_eq!(read("").expect("nothing"), SignInWays::default());
        let all = "new_accounts = \"viewer\"\n[proxy]\nfrom = [\"10.0.0.5\", \"unix\"]\nuser = \"X-Forwarded-User\"\n\
                   email = \"X-Forwarded-Email\"\nsign_out = \"https://id.example.org/out\"";
        let own = read(all).expect("all keys");
        assert_eq!(read(&SignInWays::TABLE.print(&own).to_string()).expect("a table"), own);
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
            ("proxy = { from = [\"unix\"] }", "proxy.user: it is missing; write user = \"X-Forwarded-User\""),
            ("new_accounts = \"admin\"", "new_accounts: there is no \"admin\" to choose"),
            ("prox = 1", "did you mean proxy?"),
            ("proxy = { from = [\"unix\"], user = \"x-u\", groups = \"x-g\" }", "belong together"),
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
