//! Rights of a person in a team, and of a key, with the words that page, hub and command line share.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Rights of an account in a team. A higher role includes all rights of a lower one, so roles are compared by `<`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads the data that is granted to the team.
    Viewer,
    /// Also writes its own objects: runs, markers, views, rules.
    Member,
    /// Also manages the team's people, machines and keys.
    Admin,
}

impl Role {
    /// All, the lowest first.
    pub const ALL: &[Role] = &[Role::Viewer, Role::Member, Role::Admin];

    /// The word for it in files, addresses and answers.
    pub const fn text(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Member => "member",
            Role::Admin => "admin",
        }
    }
}

/// A right of a key. A key never has more rights than its owner at that moment.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KeyScope {
    /// Reads samples, runs, alerts and views.
    #[serde(rename = "data:read")]
    DataRead,
    /// Reads `/metrics`.
    #[serde(rename = "metrics:read")]
    MetricsRead,
    /// Writes runs and markers.
    #[serde(rename = "runs:write")]
    RunsWrite,
    /// Writes views.
    #[serde(rename = "views:write")]
    ViewsWrite,
    /// Writes rules and silences.
    #[serde(rename = "alerts:write")]
    AlertsWrite,
    /// Reads the audit log.
    #[serde(rename = "audit:read")]
    AuditRead,
    /// Administers the team.
    #[serde(rename = "team:admin")]
    TeamAdmin,
    /// Administers the hub.
    #[serde(rename = "hub:admin")]
    HubAdmin,
    /// Adds machines; join keys only.
    #[serde(rename = "agent:join")]
    AgentJoin,
    /// Sends the samples of one machine; agents' keys only.
    #[serde(rename = "agent:write")]
    AgentWrite,
}

impl KeyScope {
    /// All of them.
    pub const ALL: &[KeyScope] = &[
        KeyScope::DataRead,
        KeyScope::MetricsRead,
        KeyScope::RunsWrite,
        KeyScope::ViewsWrite,
        KeyScope::AlertsWrite,
        KeyScope::AuditRead,
        KeyScope::TeamAdmin,
        KeyScope::HubAdmin,
        KeyScope::AgentJoin,
        KeyScope::AgentWrite,
    ];

    /// The word for it in files, addresses and answers.
    pub const fn text(self) -> &'static str {
        match self {
            KeyScope::DataRead => "data:read",
            KeyScope::MetricsRead => "metrics:read",
            KeyScope::RunsWrite => "runs:write",
            KeyScope::ViewsWrite => "views:write",
            KeyScope::AlertsWrite => "alerts:write",
            KeyScope::AuditRead => "audit:read",
            KeyScope::TeamAdmin => "team:admin",
            KeyScope::HubAdmin => "hub:admin",
            KeyScope::AgentJoin => "agent:join",
            KeyScope::AgentWrite => "agent:write",
        }
    }

    /// The least role in a team that may have a key with it; None if only a hub admin may, or if nobody may create it
    /// by hand.
    pub const fn least_role(self) -> Option<Role> {
        match self {
            KeyScope::DataRead => Some(Role::Viewer),
            KeyScope::RunsWrite | KeyScope::ViewsWrite | KeyScope::AlertsWrite => Some(Role::Member),
            KeyScope::MetricsRead | KeyScope::AuditRead | KeyScope::TeamAdmin => Some(Role::Admin),
            KeyScope::HubAdmin | KeyScope::AgentJoin | KeyScope::AgentWrite => None,
        }
    }
}

/// An unknown word; the sentence names the known ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWord(String);

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnknownWord {}

fn unknown(text: &str, known: Vec<&str>) -> UnknownWord {
    UnknownWord(format!("{text:?} is not one of {}", known.join(", ")))
}

impl FromStr for Role {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let found = Role::ALL.iter().find(|role| role.text() == text).copied();
        found.ok_or_else(|| unknown(text, Role::ALL.iter().map(|role| role.text()).collect()))
    }
}

impl FromStr for KeyScope {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let found = KeyScope::ALL.iter().find(|scope| scope.text() == text).copied();
        found.ok_or_else(|| unknown(text, KeyScope::ALL.iter().map(|scope| scope.text()).collect()))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_is_written_and_no_other() {
        for &role in Role::ALL {
            assert_eq!(role.text().parse(), Ok(role));
        }
        for &scope in KeyScope::ALL {
            assert_eq!(scope.text().parse(), Ok(scope));
        }
        for wrong in ["", "Admin", "admin ", "data", "data:*"] {
            assert!(wrong.parse::<Role>().is_err() && wrong.parse::<KeyScope>().is_err(), "{wrong:?}");
        }
        let told = "root".parse::<Role>().expect_err("no role").to_string();
        assert_eq!(told, "\"root\" is not one of viewer, member, admin");
    }

    #[test]
    fn roles_rise() {
        assert!(Role::Viewer < Role::Member && Role::Member < Role::Admin);
        assert!(Role::ALL.is_sorted() && KeyScope::ALL.is_sorted());
    }
}
