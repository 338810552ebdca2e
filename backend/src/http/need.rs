//! Who may ask for what a route has: the words of the table of routes, and what they mean for a principal.

use shared::role::{KeyScope, Role};
use team::accounts::{Denied, Principal, Who};

/// Who may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Anybody, signed in or not.
    Open,
    /// Anybody from a page of ours, signed in or not, but no key: signing in and out.
    Session,
    /// An account, about itself.
    Own,
    /// Who may look at samples, and whoever has a share link; a key needs this scope.
    Shared(KeyScope),
    /// Who has at least this role in some team, and no key.
    Person(Role),
    /// Who has at least this role in some team; a key needs this scope.
    Role(Role, KeyScope),
    /// Who has at least the role member in some team; a key needs this scope, and what answers looks whose it is.
    Members(KeyScope),
    /// An admin of the team that the path names; a key needs `team:admin`.
    TeamAdmin,
    /// An admin of the hub; a key needs `hub:admin`.
    HubAdmin,
    /// Keys with this scope and nobody else; what answers looks at the key.
    Key(KeyScope),
}

/// What comes with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Nothing that is read.
    Nothing,
    /// JSON of at most so many bytes.
    Json(usize),
    /// It becomes a WebSocket.
    Socket,
}

fn forbidden(sentence: impl Into<String>) -> Result<(), Denied> {
    Err(Denied::Forbidden(sentence.into()))
}

/// A key may what its owner may, as far as its scopes go.
fn scoped(principal: &Principal, scope: KeyScope) -> Result<(), Denied> {
    match principal.allows(scope) {
        true => Ok(()),
        false => forbidden(format!("this key lacks the scope {scope}; create one with it")),
    }
}

fn missing(role: Role) -> Result<(), Denied> {
    forbidden(format!("this needs the role {role}; ask an admin of your team for it"))
}

impl Need {
    /// Whether it is answered while there is no account yet.
    pub fn before_setup(self) -> bool {
        matches!(self, Need::Open | Need::Session | Need::Key(_))
    }

    /// Whether asking for it is a question for samples.
    pub fn is_for_samples(self) -> bool {
        let scope = match self {
            Need::Shared(scope) | Need::Role(_, scope) => scope,
            _ => return false,
        };
        [KeyScope::DataRead, KeyScope::MetricsRead].contains(&scope)
    }

    /// Whether somebody may ask; `team` is the id or name in the path.
    ///
    /// # Errors
    /// What is answered instead: another's team does not exist for who asks.
    pub fn check(self, principal: &Principal, team: Option<&str>) -> Result<(), Denied> {
        let is_key = principal.scopes.is_some();
        if matches!(principal.who, Who::Share { .. }) && !matches!(self, Need::Open | Need::Session | Need::Shared(_)) {
            return forbidden("a share link shows one view only; sign in for more");
        }
        match self {
            Need::Open => Ok(()),
            Need::Session if is_key => forbidden("a key cannot sign in; send it with each request"),
            Need::Session => Ok(()),
            Need::Own => match principal.who {
                Who::Account { .. } => Ok(()),
                _ => forbidden("this needs a signed-in user; a key cannot do it"),
            },
            Need::Shared(_) if matches!(principal.who, Who::Share { .. }) => Ok(()),
            Need::Shared(scope) => Need::Role(Role::Viewer, scope).check(principal, team),
            Need::Role(least, scope) => {
                scoped(principal, scope)?;
                let has = principal.hub_admin || principal.teams.iter().any(|team| team.role >= least);
                if has { Ok(()) } else { missing(least) }
            }
            Need::Members(scope) if is_key => scoped(principal, scope),
            Need::Members(scope) => Need::Role(Role::Member, scope).check(principal, team),
            Need::Person(_) if is_key => forbidden("this needs a signed-in user; a key cannot do it"),
            Need::Person(least) => {
                let has = principal.hub_admin || principal.teams.iter().any(|team| team.role >= least);
                if has { Ok(()) } else { missing(least) }
            }
            Need::TeamAdmin => {
                scoped(principal, KeyScope::TeamAdmin)?;
                let own =
                    principal.teams.iter().find(|own| team.is_some_and(|team| own.id == team || own.name == team));
                match own {
                    _ if principal.hub_admin => Ok(()),
                    None => Err(Denied::Unknown),
                    Some(own) if own.role < Role::Admin => missing(Role::Admin),
                    Some(_) => Ok(()),
                }
            }
            Need::HubAdmin => {
                scoped(principal, KeyScope::HubAdmin)?;
                if principal.hub_admin { Ok(()) } else { forbidden("this needs an admin of the hub") }
            }
            Need::Key(scope) => forbidden(format!("this needs a key with the scope {scope}")),
        }
    }
}
