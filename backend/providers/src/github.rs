//! GitHub, which supports OAuth but not OpenID Connect. The identity is read from its API with the token of the
//! sign-in, which is then dropped. Accounts are identified by their number: names can be taken over.

use super::{Client, Failure, RedirectAnswer};
use crate::settings::GitHubProvider;
use serde::Deserialize;
use shared::provider::Refused;
use shared::secret::Secret;
use team::accounts::{FlowSecret, Proof};

/// GitHub, or a self-hosted installation.
pub(super) struct GitHub {
    own: GitHubProvider,
    api: String,
}

#[derive(Deserialize)]
struct Token {
    access_token: Option<Secret>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct User {
    id: u64,
    login: String,
}

#[derive(Deserialize)]
struct Email {
    email: String,
    primary: bool,
    verified: bool,
}

#[derive(Deserialize)]
struct Membership {
    state: String,
}

impl GitHub {
    pub(super) fn new(own: &GitHubProvider) -> Self {
        let api = match own.url.as_str() {
            "https://github.com" => "https://api.github.com".into(),
            own => format!("{own}/api/v3"),
        };
        GitHub { own: own.clone(), api }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.own.url
    }

    pub(super) fn authorization(&self) -> String {
        format!("{}/login/oauth/authorize", self.own.url)
    }

    pub(super) fn scopes(&self) -> String {
        let closed = !self.own.orgs.is_empty() || !self.own.teams.is_empty();
        format!("read:user user:email{}", if closed { " read:org" } else { "" })
    }

    pub(super) fn proof(&self, client: &Client, flow: &FlowSecret, answer: &RedirectAnswer) -> Result<Proof, Failure> {
        let (verifier, secret) = (flow.verifier(), client.secret.as_ref());
        let mut form = client.swap(answer, &verifier);
        form.push(("client_id", &client.client_id));
        form.extend(secret.map(|secret| ("client_secret", secret.reveal())));
        let token: Token = client.questions.post(&format!("{}/login/oauth/access_token", self.own.url), &[], &form)?;
        // GitHub returns status 200 for an invalid code, too.
        let token = token.access_token.ok_or_else(|| {
            let said: String = token.error.unwrap_or_default().chars().take(64).collect();
            Failure::untrusted(format!("GitHub returned no token for the code: {said:?}; check client_id and secret"))
        })?;
        let authorization = Secret::new(format!("Bearer {}", token.reveal()));
        let headers = [("authorization", authorization.reveal()), ("x-github-api-version", "2022-11-28")];
        let user: User = client.questions.get(&format!("{}/user", self.api), &headers)?;
        if !self.admits(client, &headers, &user.login) {
            return Err(Failure::new(Refused::Outside, format!("user {} is not a member of orgs and teams", user.id)));
        }
        // Without an address, the sign-in continues.
        let emails: Vec<Email> =
            client.questions.get(&format!("{}/user/emails", self.api), &headers).unwrap_or_default();
        let email = emails.into_iter().find(|email| email.primary && email.verified).map(|email| email.email);
        Ok(Proof {
            kind: "github",
            issuer: self.own.url.clone(),
            subject: user.id.to_string(),
            name: Some(user.login),
            email: email.filter(|email| email.len() <= super::oidc::MAX_EMAIL),
            login: None,
            roles: Vec::new(),
            proved: None,
        })
    }

    /// Whether a user is in one of the organizations or teams; true if none is configured. Values that cannot be read
    /// count as no.
    fn admits(&self, client: &Client, headers: &[(&str, &str)], login: &str) -> bool {
        if self.own.orgs.is_empty() && self.own.teams.is_empty() {
            return true;
        }
        let active = |path: String| {
            let asked = client.questions.get::<Membership>(&format!("{}{path}", self.api), headers);
            asked.is_ok_and(|membership| membership.state == "active")
        };
        let plain = login.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        let in_team = |team: &String| {
            let (org, team) = team.split_once('/').unwrap_or_default();
            plain && active(format!("/orgs/{org}/teams/{team}/memberships/{login}"))
        };
        self.own.orgs.iter().any(|org| active(format!("/user/memberships/orgs/{org}")))
            || self.own.teams.iter().any(in_team)
    }
}
