//! The bodies of requests and answers about people, sessions and agents, as JSON: page, hub and command line read the same.
//!
//! Times are whole seconds since the Unix epoch. Lists are wrapped and named. An error is [`Problem`] everywhere.

use crate::role::Role;
use crate::secret::Secret;
use crate::views::SharedView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An answer that is none: one sentence that says what to do, and what a page is to ask for.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// One sentence.
    pub error: String,
    /// Nobody is signed in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sign_in: bool,
    /// The sign-in is too old for this: the password is to be given again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub again: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// `GET /api/v1/session`: who asks, and how one may sign in. A server without accounts answers 404.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Who is signed in; none: nobody.
    pub account: Option<SignedIn>,
    /// The teams of the account.
    pub teams: Vec<TeamRole>,
    /// The id of the share link by which the page was opened.
    pub share: Option<String>,
    /// What that shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedView>,
    /// Ways to sign in: `password`, and names of providers.
    pub ways: Vec<String>,
    /// What people call each of the providers, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub titles: BTreeMap<String, String>,
    /// There is no account yet; the first is made by a code.
    pub setup: bool,
    /// The hub is reached without TLS from other machines, which every page says.
    #[serde(default)]
    pub plain_http: bool,
}

/// Who is signed in.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedIn {
    /// The account's id.
    pub id: String,
    /// Its name, unique on the hub.
    pub name: String,
    /// It acts as admin in every team, and alone changes accounts, teams and grants.
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
    /// What the account may there.
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

/// `POST /api/v1/session/again`: signs in anew where a change asks for it; answered by a [`Session`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Again {
    /// The password of who is signed in.
    pub password: Secret,
}

/// `POST /api/v1/teams/T/join`: makes a join key. Answered by [`Joined`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewJoin {
    /// How many machines may join by it; none: any number.
    pub uses: Option<u32>,
    /// How long it holds: a duration such as `30min`, `24h` or `7d`, or `never`. None: 24 h.
    pub expires: Option<String>,
    /// Labels of the machines that join by it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// A machine in a container, or without a machine id, is known again by its name.
    pub by_name: bool,
    /// Its machines are gone for good when they have been away for an hour.
    pub ephemeral: bool,
    /// An admin confirms each machine before it may send anything.
    pub approve: bool,
    /// The source, by id or name, that the next machine takes over; so a revoked machine comes back.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A join key that was made just now. Its secret is told this once.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// Its id, by which it is ended.
    pub id: String,
    /// The key itself, `wg_j_...`.
    pub key: Secret,
    /// The whole line that a machine joins with: what it is started with, the key included unless that has no end.
    pub line: Secret,
}

/// `GET /api/v1/teams/T/join`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joins {
    /// Those that still hold.
    pub joins: Vec<Join>,
}

/// A join key, without its secret.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Join {
    /// Its id.
    pub id: String,
    /// Where it comes from, if not from an admin: `configuration: NAME`, or the hub's first start.
    pub name: String,
    /// When it was made.
    pub made: i64,
    /// Until when it holds; none: it has no end.
    pub ends: Option<i64>,
    /// How many more machines may join by it; none: any number.
    pub left: Option<u32>,
    /// How many machines have joined by it.
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
    /// `pending` before an admin has confirmed it, `revoked` after its key was ended, else the state of its link: `live`,
    /// `late`, `filling`, `unreachable`, `stopped`, `refused`, `ended`.
    pub state: String,
    /// Since when; none where that is not known.
    pub since: Option<i64>,
    /// Its host name, as it last told it.
    pub host: Option<String>,
    /// Operating system and processor, as it last told them.
    pub platform: Option<String>,
    /// Version of the agent, as it last told it.
    pub version: Option<String>,
    /// Labels of the join key and of admins.
    pub labels: BTreeMap<String, String>,
    /// When it joined.
    pub joined: i64,
    /// When it was last heard; none: never.
    pub seen: Option<i64>,
    /// The id of its key, as lists show it; none where it has none.
    pub key: Option<String>,
}

/// `PATCH /api/v1/teams/T/agents/SOURCE`: what is absent stays. Answered by the [`Agent`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentChange {
    /// A new name, at most 63 letters, digits, `.`, `-`, `_`; the old one leads here for 90 days.
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
    fn a_secret_is_sent_and_never_printed() {
        let body = SignIn { name: "mara".into(), password: Secret::new("correct horse") };
        let said = format!("{body:?} {body:#?}");
        assert!(!said.contains("horse") && said.contains("***"), "{said}");
        let joined = Joined { id: "abc".into(), key: Secret::new("wg_j_1"), line: Secret::new("watchglass wg_j_1") };
        assert!(!format!("{joined:?}").contains("wg_j_1"));
        // Not by way of JSON: this crate knows no text form, and postcard sends the same fields.
        let bytes = postcard::to_stdvec(&body).expect("plain fields");
        let back: SignIn = postcard::from_bytes(&bytes).expect("the same");
        assert_eq!((back.name.as_str(), back.password.reveal()), ("mara", "correct horse"));
    }
}
