//! `[[sign_in.oidc]]` and `[sign_in.github]`: providers for sign-in, each with its own button.

mod group_roles;

pub use group_roles::GroupRoles;

use settings::{Fault, table, value};
use shared::secret::Secret;
use std::path::PathBuf;

/// Maximum length of a provider's name, which is on its button and in its address.
const MAX_NAME: usize = 32;
/// Maximum length of the text on a button, letters.
const MAX_TITLE: usize = 48;
/// Names that are reserved for other sign-in methods.
const TAKEN: &[&str] = &["password", "proxy", "github", "code"];
/// Maximum size of a file with a secret, bytes.
const MAX_SECRET: u64 = 4_096;

table! {
    /// A provider that speaks OpenID Connect.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OidcProvider, checked by OidcProvider::check {
        /// Name of the provider; register `/auth/NAME/callback` there as the redirect address
        name: String = String::new(), text(name), required like "\"keycloak\"";
        /// Text of its button [default: its name]
        title: Option<String> = None, text(title), like "\"The lab's account\"";
        /// Issuer address, exactly as in its tokens
        issuer: String = String::new(), text(address), required like "\"https://id.example.org/realms/lab\"";
        /// Client ID of this hub
        client_id: String = String::new(), text(value::any), required like "\"watchglass\"";
        /// Client secret of this hub; prefer `client_secret_file`
        client_secret: Option<Secret> = None, text(secret), like "\"...\"";
        /// File with the client secret of this hub
        client_secret_file: Option<PathBuf> = None, text(value::file), like "\"/etc/watchglass/oidc-secret\"";
        /// Scopes to request
        scopes: Vec<String> = ["openid", "profile", "email"].map(String::from).to_vec(), text(value::any);
        /// Allowed domains: Google's `hd`, or the domain of a verified e-mail address [default: all]
        domains: Vec<String> = Vec::new(), text(domain), like "[\"example.org\"]";
        /// Claim with the groups of a user; dots separate nested names
        groups_claim: Option<String> = None, text(value::any), like "\"groups\"";
        /// Role of each group: a role in team main, or `{ team = ..., role = ... }`; applied at each sign-in
        roles: GroupRoles = GroupRoles::default(), own(GroupRoles::read, GroupRoles::show),
            like "{ ops = \"admin\", lab = { team = \"lab\", role = \"member\" } }";
        /// Claim with a person's user name on machines, whose runs then belong to them; choose one that users cannot
        /// change
        login_claim: Option<String> = None, text(value::any), like "\"preferred_username\"";
    }
}

impl OidcProvider {
    fn check(&self) -> Result<(), Fault> {
        if self.roles.is_empty() == self.groups_claim.is_some() {
            return Err("groups_claim and roles belong together; write both".into());
        }
        if !self.scopes.iter().any(|scope| scope == "openid") {
            return Err(Fault::new("scopes", "add \"openid\"; without it the provider sends no ID token"));
        }
        one_secret(self.client_secret.as_ref(), self.client_secret_file.as_ref())
    }
}

table! {
    /// GitHub's own OAuth.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct GitHubProvider, checked by GitHubProvider::check {
        /// Client ID of this hub at GitHub
        client_id: String = String::new(), text(value::any), required like "\"Iv1.0123456789abcdef\"";
        /// Client secret of this hub; prefer `client_secret_file`
        client_secret: Option<Secret> = None, text(secret), like "\"...\"";
        /// File with the client secret of this hub
        client_secret_file: Option<PathBuf> = None, text(value::file), like "\"/etc/watchglass/github-secret\"";
        /// Address of GitHub
        url: String = "https://github.com".into(), text(github);
        /// Organizations whose members may sign in
        orgs: Vec<String> = Vec::new(), text(org), like "[\"lab\"]";
        /// Teams whose members may sign in
        teams: Vec<String> = Vec::new(), text(team), like "[\"lab/gpu\"]";
    }
}

impl GitHubProvider {
    fn check(&self) -> Result<(), Fault> {
        match self.client_secret.is_none() && self.client_secret_file.is_none() {
            true => Err("GitHub requires a secret; write client_secret_file".into()),
            false => one_secret(self.client_secret.as_ref(), self.client_secret_file.as_ref()),
        }
    }
}

/// A provider for sign-in.
#[derive(Clone, Copy, Debug)]
pub enum Provider<'a> {
    /// By OpenID Connect.
    Oidc(&'a OidcProvider),
    /// By GitHub's own OAuth.
    GitHub(&'a GitHubProvider),
}

impl<'a> Provider<'a> {
    /// Its name on its button and in `/auth/NAME/callback`.
    pub fn name(self) -> &'a str {
        match self {
            Provider::Oidc(own) => &own.name,
            Provider::GitHub(_) => "github",
        }
    }

    /// Its display name: the text on its button.
    pub fn title(self) -> &'a str {
        match self {
            Provider::Oidc(own) => own.title.as_deref().unwrap_or(&own.name),
            Provider::GitHub(_) => "GitHub",
        }
    }

    /// The client ID of this hub.
    pub fn client_id(self) -> &'a str {
        match self {
            Provider::Oidc(own) => &own.client_id,
            Provider::GitHub(own) => &own.client_id,
        }
    }

    /// The client secret of this hub; None if none is needed.
    ///
    /// # Errors
    /// The file cannot be read, is empty or too large; a sentence.
    pub fn secret(self) -> Result<Option<Secret>, String> {
        let (given, file) = match self {
            Provider::Oidc(own) => (&own.client_secret, &own.client_secret_file),
            Provider::GitHub(own) => (&own.client_secret, &own.client_secret_file),
        };
        let Some(path) = file else { return Ok(given.clone()) };
        let wrong = |why: String| format!("the client_secret_file of {:?}, {}, {why}", self.name(), path.display());
        let length = std::fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?.len();
        if length > MAX_SECRET {
            return Err(wrong(format!("has more than {MAX_SECRET} bytes; put the secret alone into it")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        match text.trim() {
            "" => Err(wrong("is empty; put the secret into it".into())),
            text => Ok(Some(Secret::new(text))),
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(good) || text.starts_with('.') {
        return Err(format!(
            "{text:?} is not a valid name; write 1 to {MAX_NAME} lower-case letters, digits, dots and -"
        ));
    }
    match TAKEN.contains(&text) {
        true => Err(format!("another sign-in method has the name {text:?}; choose another name")),
        false => Ok(text.into()),
    }
}

fn title(text: &str) -> Result<String, String> {
    match text.trim().is_empty() || text.chars().count() > MAX_TITLE || text.chars().any(char::is_control) {
        true => Err(format!("write 1 to {MAX_TITLE} letters; it stands on the button")),
        false => Ok(text.into()),
    }
}

fn secret(text: &str) -> Result<Secret, String> {
    if text.trim().is_empty() { Err("it is empty; write the secret".into()) } else { Ok(Secret::new(text)) }
}

fn one_secret(given: Option<&Secret>, file: Option<&PathBuf>) -> Result<(), Fault> {
    match given.is_some() && file.is_some() {
        true => Err("client_secret and client_secret_file exclude each other; write one of them".into()),
        false => Ok(()),
    }
}

fn domain(text: &str) -> Result<String, String> {
    Ok(text.trim_start_matches('@').to_ascii_lowercase())
}

fn github(text: &str) -> Result<String, String> {
    address(text.trim_end_matches('/'))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn org(text: &str) -> Result<String, String> {
    match is_word(text) {
        true => Ok(text.into()),
        false => Err(format!("{text:?} is not an organization; write its name as in its address")),
    }
}

fn team(text: &str) -> Result<String, String> {
    match text.split_once('/').is_some_and(|(org, team)| is_word(org) && is_word(team)) {
        true => Ok(text.into()),
        false => Err(format!("{text:?} is not a team; write it like lab/gpu")),
    }
}

/// Rejects an invalid address, and an address that could be intercepted.
fn address(text: &str) -> Result<String, String> {
    let uri: client::http::Uri = text.parse().map_err(|_| format!("{text:?} is not an address"))?;
    let local = client::is_local(&uri);
    match uri.scheme_str() {
        _ if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) => {
            Err(format!("{:?} is not an address; write one like https://id.example.org", client::bare(text)))
        }
        _ if uri.query().is_some() || text.contains('#') => Err("leave out the part from ? or # on".into()),
        Some("https") => Ok(text.into()),
        Some("http") if local => Ok(text.into()),
        _ => Err("write https://; only an address on this machine may use http://".into()),
    }
}
