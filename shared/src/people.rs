//! The bodies of requests and answers about accounts and keys, as JSON. Times are whole seconds since the Unix epoch.

use crate::role::{KeyScope, Role};
use crate::secret::Secret;
use crate::session::TeamRole;
use serde::{Deserialize, Serialize};

/// `GET /api/v1/accounts`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct People {
    /// All accounts, by name.
    pub accounts: Vec<Person>,
}

/// An account.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Its id.
    pub id: String,
    /// Its name, unique on the hub.
    pub name: String,
    /// It acts as admin in every team, and only such accounts change accounts.
    pub hub_admin: bool,
    /// It may not sign in.
    pub disabled: bool,
    /// Its teams, and its roles there.
    pub teams: Vec<TeamRole>,
    /// When it was made.
    pub created: i64,
}

/// `POST /api/v1/accounts`: makes an account; answered by a [`Made`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewPerson {
    /// At most 64 letters, digits, `.`, `-`, `_`, `@`; small letters and capital ones are the same.
    pub name: String,
    /// Its password; None: the answer has a code with which the person sets it.
    pub password: Option<Secret>,
    /// It acts as admin in every team.
    pub hub_admin: bool,
    /// Its team, by id or name; None: the only one.
    pub team: Option<String>,
    /// Its role there; None: `viewer`.
    pub role: Option<Role>,
}

/// `PATCH /api/v1/accounts/ID`: absent fields are unchanged. Answered by the [`Person`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PersonChange {
    /// It acts as admin in every team.
    pub hub_admin: Option<bool>,
    /// It may not sign in.
    pub disabled: Option<bool>,
    /// Its role in `team`.
    pub role: Option<Role>,
    /// The team of `role`, by id or name; None: the only one.
    pub team: Option<String>,
    /// A new password, which ends all sessions; only on the hub's own machine, where no code could be sent to a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

/// A new account, or an account whose password may be set again.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The account's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The code for setting its password, once and within 24 h, shown only this once; None if it has a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Secret>,
}

/// `POST /api/v1/accounts/NAME/erase`, `DELETE /api/v1/me`: a person was erased.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// Name that replaces theirs from now on.
    pub name: String,
    /// Rows of the audit log that were changed.
    pub rows: u64,
}

/// `POST /api/v1/session/reset`: sets a password by a code; answered as a sign-in.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// The code.
    pub code: Secret,
    /// The new password, 12 to 1,024 bytes.
    pub password: Secret,
}

/// `GET /api/v1/teams/T/keys`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Valid ones, newest first.
    pub keys: Vec<ServiceKey>,
}

/// A key of a program, without its secret.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceKey {
    /// Its id, which is a part of the key.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its team's name; empty for a key of a person, which has that person's rights in all their teams.
    pub team: String,
    /// Name of the service that owns it; None for keys of the team and of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Its scopes.
    pub scopes: Vec<KeyScope>,
    /// When it was made.
    pub made: i64,
    /// When it ends; None: never.
    pub ends: Option<i64>,
    /// When it was last used, to the hour; None: never.
    pub used: Option<i64>,
    /// Network of its last use.
    pub network: Option<String>,
}

/// `POST /api/v1/teams/T/keys`: makes a key; answered by a [`MadeKey`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewServiceKey {
    /// Its name, at most 64 letters.
    pub name: String,
    /// Its scopes.
    pub scopes: Vec<KeyScope>,
    /// Its lifetime: a duration such as `90d`, or `never`. None: 400 days.
    pub expires: Option<String>,
}

/// A new key.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeKey {
    /// Its id.
    pub id: String,
    /// The key itself, `wg_s_...`, shown only this once.
    pub key: Secret,
}
