//! The bodies of requests and answers about oneself, as JSON. Times are whole seconds since the Unix epoch.
//!
//! Keys of one's own are at `/api/v1/me/keys`, in the shapes of [`Keys`](crate::people::Keys),
//! [`NewServiceKey`](crate::people::NewServiceKey) and [`MadeKey`](crate::people::MadeKey).

use crate::secret::Secret;
use crate::session::TeamRole;
use serde::{Deserialize, Serialize};

/// `GET /api/v1/me`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Me {
    /// The account's id.
    pub id: String,
    /// Its name, unique on the hub.
    pub name: String,
    /// Its address for mail.
    pub email: Option<String>,
    /// That address is known to be its own: a provider named it, the proxy, or who invited. Notices go to no other.
    pub email_vouched: bool,
    /// It is told of runs of its logins that finished.
    pub tell_finished: bool,
    /// Likewise of those that crashed.
    pub tell_crashed: bool,
    /// It acts as admin in every team.
    pub hub_admin: bool,
    /// It has a password.
    pub password: bool,
    /// Its teams, and what it may there.
    pub teams: Vec<TeamRole>,
    /// When it was made.
    pub created: i64,
}

/// `PATCH /api/v1/me`: what is absent stays. Answered by [`Me`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MeChange {
    /// A new address for mail; an empty text removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Whether it is told of runs of its logins that finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tell_finished: Option<bool>,
    /// Likewise of those that crashed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tell_crashed: Option<bool>,
}

/// `PUT /api/v1/me/password`: the other sessions of the account end. Answered by `{}`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The password until now; none where there is none, as of an account that a provider brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Secret>,
    /// The new one, 12 to 1,024 bytes.
    pub new: Secret,
}

/// `GET /api/v1/me/sessions`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSessions {
    /// Those that hold, the newest first.
    pub sessions: Vec<OwnSession>,
}

/// Where somebody is signed in. `DELETE /api/v1/me/sessions/ID` ends it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSession {
    /// Its id, which opens nothing.
    pub id: String,
    /// By what it began: `password`, `code`, or a provider.
    pub kind: String,
    /// When it began.
    pub made: i64,
    /// When it was used last, to the minute.
    pub seen: i64,
    /// Its latest end.
    pub ends: i64,
    /// From where it was used last.
    pub network: String,
    /// What the browser said of itself.
    pub agent: Option<String>,
    /// It is the one that asks.
    pub current: bool,
}

/// `GET /api/v1/me/identities`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnIdentities {
    /// By what the account proves itself.
    pub identities: Vec<OwnIdentity>,
}

/// One way by which an account signs in.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnIdentity {
    /// Its id.
    pub id: String,
    /// `password`, `oidc`, `github` or `proxy`.
    pub kind: String,
    /// Who vouches for it; the hub itself for a password.
    pub issuer: String,
    /// How it is called there.
    pub subject: String,
    /// What people call who vouches for it, where that is a provider of this hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}
