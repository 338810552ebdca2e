//! `[[sign_in.oidc]]` and `[sign_in.github]`: others by whom people sign in, each with a button of its own.

mod group_roles;

pub use group_roles::GroupRoles;

use serde::Deserialize;
use shared::secret::Secret;
use std::path::PathBuf;
use toml::{Table, Value};

/// The longest name of a provider, which stands on its button and in its address.
const MAX_NAME: usize = 32;
/// The longest words on a button, letters.
const MAX_TITLE: usize = 48;
/// Names that mean another way to sign in.
const TAKEN: &[&str] = &["password", "proxy", "github", "code"];
/// The largest file with a secret, bytes.
const MAX_SECRET: u64 = 4_096;
/// Where GitHub is.
const GITHUB: &str = "https://github.com";

/// Somebody else by whom people sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// What it is called on its button and in `/auth/NAME/callback`.
    pub name: String,
    /// What people call it: the words on its button.
    pub title: String,
    /// What it calls this hub.
    pub client_id: String,
    /// By what the hub proves itself there; none: it need not.
    client_secret: Option<SecretFrom>,
    /// What speaks there.
    pub kind: ProviderKind,
}

/// What a provider speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenID Connect.
    Oidc {
        /// Its address, as its tokens say it to the letter.
        issuer: String,
        /// What it is asked for.
        scopes: Vec<String>,
        /// Whose people alone may come in; empty: all.
        domains: Vec<String>,
        /// The claim with somebody's groups; dots lead inwards.
        groups_claim: Option<String>,
        /// What groups may.
        roles: GroupRoles,
        /// The claim with the name by which somebody works on machines; dots lead inwards.
        login_claim: Option<String>,
    },
    /// GitHub's own OAuth.
    GitHub {
        /// Its address, without a slash at the end.
        url: String,
        /// Organizations whose members may come in.
        orgs: Vec<String>,
        /// Teams, as ORGANIZATION/TEAM, whose members may come in.
        teams: Vec<String>,
    },
}

/// The secret, or the file in which it is. Its debug form tells none.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SecretFrom {
    Given(Secret),
    File(PathBuf),
}

impl Provider {
    /// By what the hub proves itself there; none: it need not.
    ///
    /// # Errors
    /// The file cannot be read, is empty or too large; a sentence.
    pub fn secret(&self) -> Result<Option<Secret>, String> {
        let path = match &self.client_secret {
            None => return Ok(None),
            Some(SecretFrom::Given(secret)) => return Ok(Some(secret.clone())),
            Some(SecretFrom::File(path)) => path,
        };
        let wrong = |why: String| format!("the client_secret_file of {:?}, {}, {why}", self.name, path.display());
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

    /// Its values as they stand in a file; the secret is not told.
    pub fn print(&self) -> Table {
        let mut table = Table::new();
        let mut put = |key: &str, value: Value| drop(table.insert(key.into(), value));
        let list = |texts: &[String]| Value::Array(texts.iter().map(|text| text.as_str().into()).collect());
        put("client_id", self.client_id.as_str().into());
        match &self.client_secret {
            None => {}
            Some(SecretFrom::Given(_)) => put("client_secret", "***".into()),
            Some(SecretFrom::File(path)) => put("client_secret_file", path.display().to_string().into()),
        }
        match &self.kind {
            ProviderKind::Oidc { issuer, scopes, domains, groups_claim, roles, login_claim } => {
                put("name", self.name.as_str().into());
                put("title", self.title.as_str().into());
                put("issuer", issuer.as_str().into());
                put("scopes", list(scopes));
                put("domains", list(domains));
                if let Some(claim) = groups_claim {
                    put("groups_claim", claim.as_str().into());
                    put("roles", Value::Table(roles.print()));
                }
                if let Some(claim) = login_claim {
                    put("login_claim", claim.as_str().into());
                }
            }
            ProviderKind::GitHub { url, orgs, teams } => {
                put("url", url.as_str().into());
                put("orgs", list(orgs));
                put("teams", list(teams));
            }
        }
        table
    }
}

/// As `[[sign_in.oidc]]` stands in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawOidc {
    name: String,
    title: Option<String>,
    login_claim: Option<String>,
    issuer: String,
    client_id: String,
    client_secret: Option<Secret>,
    client_secret_file: Option<PathBuf>,
    scopes: Option<Vec<String>>,
    #[serde(default)]
    domains: Vec<String>,
    groups_claim: Option<String>,
    #[serde(default)]
    roles: GroupRoles,
}

impl TryFrom<RawOidc> for Provider {
    type Error = String;

    fn try_from(raw: RawOidc) -> Result<Self, String> {
        let at = |why: &str| format!("sign_in.oidc {:?}: {why}", raw.name);
        let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
        if raw.name.is_empty() || raw.name.len() > MAX_NAME || !raw.name.bytes().all(good) || raw.name.starts_with('.')
        {
            return Err(format!(
                "sign_in.oidc: {:?} is not a valid name; write 1 to {MAX_NAME} lower-case letters, digits, dots and \
                -",
                raw.name
            ));
        }
        if TAKEN.contains(&raw.name.as_str()) {
            return Err(at("another sign-in method has this name; choose another name"));
        }
        address(&raw.issuer).map_err(|why| at(&format!("issuer: {why}")))?;
        if raw.roles.is_empty() == raw.groups_claim.is_some() {
            return Err(at("groups_claim and roles belong together; write both"));
        }
        let scopes = raw.scopes.unwrap_or_else(|| ["openid", "profile", "email"].map(String::from).to_vec());
        if !scopes.iter().any(|scope| scope == "openid") {
            return Err(at("scopes: \"openid\" is missing; without it the provider sends no ID token"));
        }
        let title = raw.title.clone().unwrap_or_else(|| raw.name.clone());
        if title.trim().is_empty() || title.chars().count() > MAX_TITLE || title.chars().any(char::is_control) {
            return Err(at(&format!("title: write 1 to {MAX_TITLE} letters; it is the label of the button")));
        }
        let client_secret = secret_from(raw.client_secret, raw.client_secret_file).map_err(|why| at(&why))?;
        let domains = raw.domains.iter().map(|domain| domain.trim_start_matches('@').to_ascii_lowercase()).collect();
        Ok(Provider {
            client_id: raw.client_id,
            client_secret,
            kind: ProviderKind::Oidc {
                issuer: raw.issuer,
                scopes,
                domains,
                groups_claim: raw.groups_claim,
                roles: raw.roles,
                login_claim: raw.login_claim,
            },
            name: raw.name,
            title,
        })
    }
}

/// As `[sign_in.github]` stands in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawGitHub {
    client_id: String,
    client_secret: Option<Secret>,
    client_secret_file: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    orgs: Vec<String>,
    #[serde(default)]
    teams: Vec<String>,
}

impl TryFrom<RawGitHub> for Provider {
    type Error = String;

    fn try_from(raw: RawGitHub) -> Result<Self, String> {
        let at = |why: &str| format!("sign_in.github: {why}");
        let url = raw.url.unwrap_or_else(|| GITHUB.into());
        let url = url.trim_end_matches('/').to_string();
        address(&url).map_err(|why| at(&format!("url: {why}")))?;
        let word =
            |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if let Some(org) = raw.orgs.iter().find(|org| !word(org)) {
            return Err(at(&format!("orgs: {org:?} is not an organization; write its name as in its address")));
        }
        let is_team = |team: &&String| team.split_once('/').is_some_and(|(org, team)| word(org) && word(team));
        if let Some(team) = raw.teams.iter().find(|team| !is_team(team)) {
            return Err(at(&format!("teams: {team:?} is not a team; write it like lab/gpu")));
        }
        let client_secret = secret_from(raw.client_secret, raw.client_secret_file).map_err(|why| at(&why))?;
        if client_secret.is_none() {
            return Err(at("GitHub requires a secret; write client_secret_file"));
        }
        let kind = ProviderKind::GitHub { url, orgs: raw.orgs, teams: raw.teams };
        Ok(Provider { name: "github".into(), title: "GitHub".into(), client_id: raw.client_id, client_secret, kind })
    }
}

fn secret_from(given: Option<Secret>, file: Option<PathBuf>) -> Result<Option<SecretFrom>, String> {
    match (given, file) {
        (Some(_), Some(_)) => Err("client_secret and client_secret_file exclude each other; write one of them".into()),
        (Some(secret), None) if secret.reveal().trim().is_empty() => Err("client_secret is empty".into()),
        (given, file) => Ok(given.map(SecretFrom::Given).or(file.map(SecretFrom::File))),
    }
}

/// Refuses an address over which somebody could listen, or that is none.
fn address(text: &str) -> Result<(), String> {
    let uri: client::http::Uri = text.parse().map_err(|_| format!("{text:?} is not an address"))?;
    let local = client::is_local(&uri);
    match uri.scheme_str() {
        _ if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) => {
            Err(format!("{:?} is not an address; write one like https://id.example.org", client::bare(text)))
        }
        _ if uri.query().is_some() || text.contains('#') => Err("leave out the part from ? or # on".into()),
        Some("https") => Ok(()),
        Some("http") if local => Ok(()),
        _ => Err("write https://; only an address on this machine may use http://".into()),
    }
}
