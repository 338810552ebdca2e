//! The bodies of requests and answers about people, sessions and agents, as JSON: page, hub and command line share
//! them.
//!
//! Times are whole seconds since the Unix epoch. Lists are wrapped and named. An error is [`Problem`] everywhere.

use crate::role::Role;
use crate::secret::Secret;
use crate::views::SharedView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An error answer: one sentence with the remedy, and the sign-in that a page has to request.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// One sentence.
    pub error: String,
    /// Nobody is signed in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sign_in: bool,
    /// The sign-in is too old for this: the password has to be entered again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// `GET /api/v1/session`: the account of the request, and the sign-in methods. A server without accounts answers 404.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The signed-in account; None: nobody.
    pub account: Option<SignedIn>,
    /// The teams of the account.
    pub teams: Vec<TeamRole>,
    /// The id of the share link by which the page was opened.
    pub share: Option<String>,
    /// The content of that link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedView>,
    /// Sign-in methods: `password`, and names of providers.
    pub ways: Vec<String>,
    /// Display names of the providers, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub titles: BTreeMap<String, String>,
    /// There is no account yet; the first is made by a code.
    pub setup: bool,
    /// The hub is reached without TLS from other machines; every page shows a warning.
    #[serde(default)]
    pub plain_http: bool,
}

impl Session {
    /// Whether the account may write in some team. The machines of that team decide the rest.
    pub fn is_member_somewhere(&self) -> bool {
        let is_admin = self.account.as_ref().is_some_and(|account| account.hub_admin);
        is_admin || self.teams.iter().any(|team| team.role >= Role::Member)
    }
}

/// The signed-in account.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedIn {
    /// The account's id.
    pub id: String,
    /// Its name, unique on the hub.
    pub name: String,
    /// It acts as admin in every team, and only such accounts change accounts, teams and grants.
    pub hub_admin: bool,
}

/// A team, and the account's role in it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamRole {
    /// The team's id.
    pub id: String,
    /// Its name, unique on the hub.
    pub name: String,
    /// The account's role there.
    pub role: Role,
}

/// `POST /api/v1/session`: answered by a [`Session`] and its cookie.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// Name of the account.
    pub name: String,
    /// Its password.
    pub password: Secret,
}

/// `POST /api/v1/session/setup`: makes the first admin; answered by a [`Session`] and its cookie.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The code that the hub printed.
    pub code: Secret,
    /// Name of the new account.
    pub name: String,
    /// Its password, 12 to 1,024 bytes.
    pub password: Secret,
}

/// `POST /api/v1/session/again`: confirms the sign-in for a change that requires it; answered by a [`Session`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Again {
    /// The password of the signed-in account.
    pub password: Secret,
}

/// `POST /api/v1/teams/T/join`: makes a join key. Answered by [`Joined`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewJoin {
    /// Maximum number of machines that may join by it; None: any number.
    pub uses: Option<u32>,
    /// Its lifetime: a duration such as `30min`, `24h` or `7d`, or `never`. None: 24 h.
    pub expires: Option<String>,
    /// Labels of the machines that join by it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// A machine in a container, or without a machine id, is recognized by its name.
    pub by_name: bool,
    /// Its machines are removed for good after an hour without a link.
    pub ephemeral: bool,
    /// An admin confirms each machine before it may send anything.
    pub approve: bool,
    /// The source, by id or name, that the next machine takes over; this restores a revoked machine.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A new join key. Its secret is shown only this once.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Its id, with which it is revoked.
    pub id: String,
    /// The key itself, `wg_j_...`.
    pub key: Secret,
    /// The whole command line for joining a machine. It includes the key, unless the key never expires.
    pub line: Secret,
}

/// `GET /api/v1/teams/T/join`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joins {
    /// Valid ones.
    pub joins: Vec<Join>,
}

/// A join key, without its secret.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Join {
    /// Its id.
    pub id: String,
    /// Its origin, if it is not from an admin: `configuration: NAME`, or the hub's first start.
    pub name: String,
    /// When it was made.
    pub made: i64,
    /// When it ends; None: never.
    pub ends: Option<i64>,
    /// Number of further machines that may join by it; None: any number.
    pub left: Option<u32>,
    /// Number of machines that have joined by it.
    pub used: u32,
    /// Labels of its machines.
    pub labels: BTreeMap<String, String>,
    /// See [`NewJoin::by_name`].
    pub by_name: bool,
    /// See [`NewJoin::ephemeral`].
    pub ephemeral: bool,
    /// See [`NewJoin::approve`].
    pub approve: bool,
    /// The id of the source that it is bound to.
    #[serde(rename = "as")]
    pub source: Option<String>,
}

/// `GET /api/v1/teams/T/agents`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agents {
    /// The machines that joined by the team's join keys, by name.
    pub agents: Vec<Agent>,
}

/// A machine that joined.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// The source's id, 26 letters; it never changes.
    pub id: String,
    /// Its name, unique on the hub.
    pub name: String,
    /// Its team's id.
    pub team: String,
    /// `pending` before an admin has confirmed it, `revoked` after its key was revoked, else the state of its link:
    /// `live`, `late`, `filling`, `unreachable`, `stopped`, `refused`, `ended`.
    pub state: String,
    /// Since when; None if unknown.
    pub since: Option<i64>,
    /// Its host name, as last reported.
    pub host: Option<String>,
    /// Operating system and processor, as last reported.
    pub platform: Option<String>,
    /// Version of the agent, as last reported.
    pub version: Option<String>,
    /// Labels of the join key and of admins.
    pub labels: BTreeMap<String, String>,
    /// When it joined.
    pub joined: i64,
    /// When it last sent data; None: never.
    pub seen: Option<i64>,
    /// The id of its key, as lists show it; None if it has none.
    pub key: Option<String>,
}

/// `PATCH /api/v1/teams/T/agents/SOURCE`: absent fields are unchanged. Answered by the [`Agent`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentChange {
    /// A new name, at most 63 letters, digits, `.`, `-`, `_`; the old one redirects here for 90 days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New labels, in place of all labels that admins gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_any_team_writes_somewhere() {
        let writes = |hub_admin: Option<bool>, roles: &[Role]| {
            let account = hub_admin.map(|hub_admin| SignedIn { id: "p1".into(), name: "mara".into(), hub_admin });
            let team = |role: &Role| TeamRole { id: "t1".into(), name: "main".into(), role: *role };
            Session { account, teams: roles.iter().map(team).collect(), ..Session::default() }.is_member_somewhere()
        };
        assert!(writes(Some(false), &[Role::Viewer, Role::Member]) && writes(Some(true), &[]));
        assert!(!writes(Some(false), &[Role::Viewer]) && !writes(None, &[]), "a share link has no account");
    }

    #[test]
    fn a_secret_is_sent_and_never_printed() {
        let body = SignIn { name: "mara".into(), password: Secret::new("correct horse") };
        let said = format!("{body:?} {body:#?}");
        assert!(!said.contains("horse") && said.contains("***"), "{said}");
        let joined = Joined { id: "abc".into(), key: Secret::new("wg_j_1"), line: Secret::new("watchglass wg_j_1") };
        assert!(!format!("{joined:?}").contains("wg_j_1"));
        // JSON is not used here: this crate has no text format, and postcard sends the same fields.
        let bytes = postcard::to_stdvec(&body).expect("plain fields");
        let back: SignIn = postcard::from_bytes(&bytes).expect("the same");
        assert_eq!((back.name.as_str(), back.password.reveal()), ("mara", "correct horse"));
    }
}
