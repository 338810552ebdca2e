//! The bodies of requests and answers about teams, as JSON: members, invitations, services, and grants of machines.
//!
//! Times are whole seconds since the Unix epoch. Paths and bodies accept the id or the name of a team or a person.

use crate::role::Role;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// `GET /api/v1/teams`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Teams {
    /// The caller's teams, by name; all for an admin of the hub.
    pub teams: Vec<Team>,
}

/// `GET /api/v1/teams/T`, and a row of [`Teams`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// Its id.
    pub id: String,
    /// Its name, unique on the hub.
    pub name: String,
    /// The caller's role in it.
    pub role: Role,
    /// Members may invite viewers and members.
    pub members_invite: bool,
    /// Its members may create share links; false: existing ones show nothing either.
    pub share_links: bool,
    /// Its viewers and share links see the names of users and of people.
    pub user_names: bool,
    /// Id of the view that an address without a query opens; None: the built-in one.
    pub default_view: Option<String>,
    /// Limit of the GPU-hours of its runs in a month (UTC); None: no limit. Jobs continue above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<u64>,
    /// Its people, by name; only if one team is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// The machines that it sees, by name; only if one team is requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<TeamSource>,
}

/// A member of a team.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The account's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// It may not sign in.
    pub disabled: bool,
    /// Names of users on machines whose runs are the account's own; shown to admins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logins: Vec<String>,
    /// The same names from a provider or the proxy; they are not changed here. Shown to admins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// Time of the last use, to the minute, if a session of it is still valid; shown to admins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<i64>,
}

/// A machine that a team sees.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamSource {
    /// The source's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// It joined by a join key of this team, whose admins name and revoke it.
    pub home: bool,
}

/// `POST /api/v1/teams`: makes a team; answered by the [`Team`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewTeam {
    /// 1 to 64 letters, digits, `.`, `-`, `_`; unique on the hub.
    pub name: String,
}

/// `PATCH /api/v1/teams/T`: absent fields are unchanged. Answered by the [`Team`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TeamChange {
    /// A new name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Members may invite viewers and members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members_invite: Option<bool>,
    /// Limit of the GPU-hours of its runs in a month; 0 removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<u64>,
    /// Its members may create share links; false also closes existing ones, until it is true again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_links: Option<bool>,
    /// Its viewers and share links see the names of users and of people; members see them in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_names: Option<bool>,
}

/// `DELETE /api/v1/teams/T`: removes the team with its keys, views and links.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeamEnd {
    /// The team's name, typed again as a confirmation.
    pub name: String,
}

/// `PUT /api/v1/teams/T/members/ID`: absent fields are unchanged. Answered by the [`Member`]. Only an admin of the hub
/// can add a person who is in no team yet. `DELETE` of the same path removes a member; a person leaves with their own
/// id.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemberChange {
    /// The role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Names of users on machines whose runs are the account's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logins: Option<Vec<String>>,
}

/// `PUT /api/v1/sources/ID/grants`: sets the teams that see a machine. Answered by [`Grants`], like `GET`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GrantChange {
    /// Only these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teams: Option<Vec<String>>,
    /// Teams to add.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Teams to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// The teams that see a machine.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// By name.
    pub teams: Vec<NamedTeam>,
}

/// A team by id and name.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTeam {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// `GET /api/v1/teams/T/invites`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invites {
    /// Valid ones that nobody has accepted, newest first.
    pub invites: Vec<Invite>,
}

/// An invitation, without its code.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// Its id, with which it is revoked.
    pub id: String,
    /// Role of the invited person.
    pub role: Role,
    /// The invited person, as the inviter wrote it.
    pub email: Option<String>,
    /// Name of the inviter.
    pub by: String,
    /// When it was made.
    pub made: i64,
    /// When it ends.
    pub ends: i64,
}

/// `POST /api/v1/teams/T/invites`: answered by a [`MadeInvite`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewInvite {
    /// At most the inviter's role; None: `viewer`.
    pub role: Option<Role>,
    /// The invited person; only a note, no message is sent.
    pub email: Option<String>,
    /// Its lifetime: a duration such as `24h`, at most 30 d. None: 7 d.
    pub expires: Option<String>,
}

/// A new invitation. Its link is shown only this once.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeInvite {
    /// Its id.
    pub id: String,
    /// The link, `https://HUB/#invite=CODE`; without the hub's address if that is unknown.
    pub url: Secret,
}

/// `POST /api/v1/session/invite`: a signed-in account joins the team; anybody else creates an account with a name and a
/// password. Answered by a [`Session`](crate::session::Session), for a new account with its cookie.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeInvite {
    /// The code of the link.
    pub code: Secret,
    /// Name of the new account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its password, 12 to 1,024 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

/// `GET /api/v1/teams/T/services`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Services {
    /// By name.
    pub services: Vec<Service>,
}

/// An account of a program: it has keys and no password. Its keys are at `/api/v1/teams/T/services/ID/keys`, in the
/// shapes of [`Keys`](crate::people::Keys), [`NewServiceKey`](crate::people::NewServiceKey) and
/// [`MadeKey`](crate::people::MadeKey).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Its id.
    pub id: String,
    /// Its name, unique in the team.
    pub name: String,
    /// Maximum role of its keys.
    pub role: Role,
    /// Its keys are not valid now.
    pub disabled: bool,
    /// Number of its valid keys.
    pub keys: u32,
    /// When it was made.
    pub made: i64,
}

/// `POST /api/v1/teams/T/services`: answered by the [`Service`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewService {
    /// 1 to 64 letters, digits, `.`, `-`, `_`.
    pub name: String,
    /// Maximum role of its keys, at most the caller's role; None: `viewer`.
    pub role: Option<Role>,
}

/// `PATCH /api/v1/teams/T/services/ID`: absent fields are unchanged. Answered by the [`Service`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceChange {
    /// Maximum role of its keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Its keys are not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}
