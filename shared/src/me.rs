//! The bodies of requests and answers about one's own account, as JSON. Times are whole seconds since the Unix epoch.
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
    /// The address is verified: it came from a provider, the proxy or the inviter. Notices go only to verified
    /// addresses.
    pub email_vouched: bool,
    /// It receives notices of runs of its logins that finished.
    pub tell_finished: bool,
    /// Likewise for runs that crashed.
    pub tell_crashed: bool,
    /// It acts as admin in every team.
    pub hub_admin: bool,
    /// It has a password.
    pub password: bool,
    /// Its teams, and its roles there.
    pub teams: Vec<TeamRole>,
    /// When it was made.
    pub created: i64,
}

/// `PATCH /api/v1/me`: absent fields are unchanged. Answered by [`Me`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MeChange {
    /// A new address for mail; an empty text removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Whether it receives notices of runs of its logins that finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tell_finished: Option<bool>,
    /// Likewise for runs that crashed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tell_crashed: Option<bool>,
}

/// `PUT /api/v1/me/password`: the other sessions of the account end. Answered by `{}`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The current password; None if there is none, as for an account from a provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Secret>,
    /// The new one, 12 to 1,024 bytes.
    pub new: Secret,
}

/// `GET /api/v1/me/sessions`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSessions {
    /// Valid ones, newest first.
    pub sessions: Vec<OwnSession>,
}

/// A session of the account. `DELETE /api/v1/me/sessions/ID` ends it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnSession {
    /// Its id, which grants no access.
    pub id: String,
    /// Its sign-in method: `password`, `code`, or a provider.
    pub kind: String,
    /// When it began.
    pub made: i64,
    /// When it was used last, to the minute.
    pub seen: i64,
    /// Its latest end.
    pub ends: i64,
    /// Network of its last use.
    pub network: String,
    /// User agent of the browser.
    pub agent: Option<String>,
    /// It is the session of this request.
    pub current: bool,
}

/// `GET /api/v1/me/identities`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnIdentities {
    /// The account's identities.
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
    /// Its issuer; the hub itself for a password.
    pub issuer: String,
    /// Its subject ID at the issuer.
    pub subject: String,
    /// Display name of the issuer, if it is a provider of this hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}
