//! The rights of operations.

use shared::role::{KeyScope, Role};

/// Access rule of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Anybody, signed in or not.
    Open,
    /// Requests of our own page, signed in or not, without a key: sign-in and sign-out.
    Session,
    /// An account, about itself.
    Own,
    /// Readers of samples, and everybody with a share link; a key needs this scope.
    Shared(KeyScope),
    /// People with at least this role in some team, and no key.
    Person(Role),
    /// Callers with at least this role in some team; a key needs this scope.
    Role(Role, KeyScope),
    /// Callers with at least the role member in some team; a key needs this scope, and the handler checks the owner.
    Members(KeyScope),
    /// An admin of the team that the path names; a key needs `team:admin`.
    TeamAdmin,
    /// An admin of the hub; a key needs `hub:admin`.
    HubAdmin,
    /// Only keys with this scope; the handler checks the key.
    Key(KeyScope),
}

impl Need {
    /// Whether it is answered while there is no account yet.
    pub const fn before_setup(self) -> bool {
        matches!(self, Need::Open | Need::Session | Need::Key(_))
    }

    /// Whether the operation reads samples.
    pub const fn is_for_samples(self) -> bool {
        let scope = match self {
            Need::Shared(scope) | Need::Role(_, scope) => scope,
            _ => return false,
        };
        matches!(scope, KeyScope::DataRead | KeyScope::MetricsRead)
    }

    /// Scope that a key needs; None if the operation accepts no keys or requires no scope.
    pub const fn scope(self) -> Option<KeyScope> {
        match self {
            Need::Shared(scope) | Need::Role(_, scope) | Need::Members(scope) | Need::Key(scope) => Some(scope),
            Need::TeamAdmin => Some(KeyScope::TeamAdmin),
            Need::HubAdmin => Some(KeyScope::HubAdmin),
            Need::Open | Need::Session | Need::Own | Need::Person(_) => None,
        }
    }
    /// Accounts and keys that may call it, in words.
    pub fn words(self) -> String {
        let key = |who: String, scope: KeyScope| format!("{who}; keys with `{scope}`");
        match self {
            Need::Open => "anybody".into(),
            Need::Session => "anybody, from the page".into(),
            Need::Own => "a signed-in account".into(),
            Need::Shared(scope) => key("viewers and share links".into(), scope),
            Need::Person(role) => format!("{role}s; no keys"),
            Need::Role(role, scope) => key(format!("{role}s"), scope),
            Need::Members(scope) => key("members".into(), scope),
            Need::TeamAdmin => key("admins of the team".into(), KeyScope::TeamAdmin),
            Need::HubAdmin => key("admins of the hub".into(), KeyScope::HubAdmin),
            Need::Key(scope) => format!("keys with `{scope}`"),
        }
    }
}
