//! Checks a principal against the rights of the table of operations.

use ::api::need::Need;
use shared::role::{KeyScope, Role};
use team::accounts::{Denied, Principal, Who};

fn forbidden(sentence: impl Into<String>) -> Result<(), Denied> {
    Err(Denied::Forbidden(sentence.into()))
}

/// A key has the rights of its owner, limited by its scopes.
fn scoped(principal: &Principal, scope: KeyScope) -> Result<(), Denied> {
    match principal.allows(scope) {
        true => Ok(()),
        false => forbidden(format!("this key lacks the scope {scope}; create one with it")),
    }
}

fn missing(role: Role) -> Result<(), Denied> {
    forbidden(format!("this needs the role {role}; ask an admin of your team for it"))
}

/// Whether a principal may use an operation; `team` is the id or name in the path.
///
/// # Errors
/// The response instead. Teams of others do not exist for the caller.
pub(super) fn check(need: Need, principal: &Principal, team: Option<&str>) -> Result<(), Denied> {
    let is_key = principal.scopes.is_some();
    if matches!(principal.who, Who::Share { .. }) && !matches!(need, Need::Open | Need::Session | Need::Shared(_)) {
        return forbidden("a share link shows one view only; sign in for more");
    }
    match need {
        Need::Open => Ok(()),
        Need::Session if is_key => forbidden("a key cannot sign in; send it with each request"),
        Need::Session => Ok(()),
        Need::Own => match principal.who {
            Who::Account { .. } => Ok(()),
            _ => forbidden("this needs a signed-in user; a key cannot do it"),
        },
        Need::Shared(_) if matches!(principal.who, Who::Share { .. }) => Ok(()),
        Need::Shared(scope) => check(Need::Role(Role::Viewer, scope), principal, team),
        Need::Role(least, scope) => {
            scoped(principal, scope)?;
            let has = principal.hub_admin || principal.teams.iter().any(|team| team.role >= least);
            // No admin can help: a key has the role that its scopes need, and this scope needs a lower one.
            let is_for_people = is_key && scope.least_role().is_some_and(|role| role < least);
            match has {
                true => Ok(()),
                false if is_for_people => forbidden(format!("a key cannot do this; sign in with the role {least}")),
                false => missing(least),
            }
        }
        Need::Members(scope) if is_key => scoped(principal, scope),
        Need::Members(scope) => check(Need::Role(Role::Member, scope), principal, team),
        Need::Person(_) if is_key => forbidden("this needs a signed-in user; a key cannot do it"),
        Need::Person(least) => {
            let has = principal.hub_admin || principal.teams.iter().any(|team| team.role >= least);
            if has { Ok(()) } else { missing(least) }
        }
        Need::TeamAdmin => {
            scoped(principal, KeyScope::TeamAdmin)?;
            let own = principal.teams.iter().find(|own| team.is_some_and(|team| own.id == team || own.name == team));
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
