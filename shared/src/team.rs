//! The bodies of requests and answers about teams, as JSON: members, invitations, services, and who sees which machine.
//!
//! Times are whole seconds since the Unix epoch. Where a path or a body names a team or a person, id and name are the same.

use crate::role::Role;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// `GET /api/v1/teams`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Teams {
    /// Those of who asks, by name; all for an admin of the hub.
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
    /// What who asks may in it.
    pub role: Role,
    /// Members may invite viewers and members.
    pub members_invite: bool,
    /// Id of the view that an address without a query opens; none: the built-in one.
    pub default_view: Option<String>,
    /// Its people, by name; only where one team is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<Member>,
    /// The machines that it sees, by name; only where one team is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<TeamSource>,
}

/// Somebody in a team.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The account's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it may.
    pub role: Role,
    /// It may not sign in.
    pub disabled: bool,
    /// Names of users on machines whose runs are the account's own; told to admins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logins: Vec<String>,
    /// The same as a provider or the proxy says it; it is not changed here. Told to admins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// When it was here last, to the minute, as far as a session of it holds; told to admins.
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

/// `PATCH /api/v1/teams/T`: what is absent stays. Answered by the [`Team`].
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
}

/// `DELETE /api/v1/teams/T`: the team with its keys, views and links goes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeamEnd {
    /// The team's name, typed once more.
    pub name: String,
}

/// `PUT /api/v1/teams/T/members/ID`: what is absent stays. Answered by the [`Member`]. Who is in no team yet is added by an
/// admin of the hub alone. `DELETE` of the same takes somebody out; a person leaves by their own id.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemberChange {
    /// What it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Names of users on machines whose runs are the account's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logins: Option<Vec<String>>,
}

/// `PUT /api/v1/sources/ID/grants`: which teams see a machine. Answered by [`Grants`], like `GET`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GrantChange {
    /// These, and no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teams: Option<Vec<String>>,
    /// These as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// These no longer.
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
    /// Those that hold and nobody has taken, the newest first.
    pub invites: Vec<Invite>,
}

/// An invitation, without its code.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// Its id, by which it is taken back.
    pub id: String,
    /// What who takes it may.
    pub role: Role,
    /// For whom it is, as the inviter wrote it.
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
    /// At most what the inviter may; none: `viewer`.
    pub role: Option<Role>,
    /// For whom it is; a note, no message is sent.
    pub email: Option<String>,
    /// How long it holds: a duration such as `24h`, at most 30 d. None: 7 d.
    pub expires: Option<String>,
}

/// An invitation that was made just now. Its link is told this once.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeInvite {
    /// Its id.
    pub id: String,
    /// The link, `https://HUB/#invite=CODE`; without the hub's address where that is not known.
    pub url: Secret,
}

/// `POST /api/v1/session/invite`: who is signed in joins the team; who is not makes an account with a name and a password.
/// Answered by a [`Session`](crate::session::Session), for a new account with its cookie.
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

/// An account of a program: it has keys and no password. Its keys are at `/api/v1/teams/T/services/ID/keys`, in the shapes of
/// [`Keys`](crate::people::Keys), [`NewServiceKey`](crate::people::NewServiceKey) and [`MadeKey`](crate::people::MadeKey).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Its id.
    pub id: String,
    /// Its name, unique in the team.
    pub name: String,
    /// The most that its keys may.
    pub role: Role,
    /// Its keys do not hold now.
    pub disabled: bool,
    /// How many keys of it hold.
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
    /// The most that its keys may, at most what who asks may; none: `viewer`.
    pub role: Option<Role>,
}

/// `PATCH /api/v1/teams/T/services/ID`: what is absent stays. Answered by the [`Service`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceChange {
    /// The most that its keys may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Its keys do not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
}
