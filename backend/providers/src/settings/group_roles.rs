//! Roles that are granted by groups of a provider or proxy.

use serde::Deserialize;
use shared::role::Role;
use std::collections::BTreeMap;
use toml::Value;

/// The default team.
const MAIN: &str = "main";

/// Groups, and the role in a team that each grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, RawGranted>")]
pub struct GroupRoles(BTreeMap<String, Granted>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Granted {
    team: String,
    role: Role,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawGranted {
    Role(Role),
    InTeam(RawInTeam),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInTeam {
    team: String,
    role: Role,
}

impl From<BTreeMap<String, RawGranted>> for GroupRoles {
    fn from(raw: BTreeMap<String, RawGranted>) -> Self {
        let granted = |raw| match raw {
            RawGranted::Role(role) => Granted { team: MAIN.into(), role },
            RawGranted::InTeam(RawInTeam { team, role }) => Granted { team, role },
        };
        GroupRoles(raw.into_iter().map(|(group, raw)| (group, granted(raw))).collect())
    }
}

impl GroupRoles {
    /// Whether no group grants a role.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For each team with a role from some group: the highest role that these groups grant, by the team's name; None:
    /// none of them grants one.
    pub fn roles_for(&self, groups: &[String]) -> Vec<(String, Option<Role>)> {
        let mut teams: BTreeMap<&str, Option<Role>> = BTreeMap::new();
        for (group, granted) in &self.0 {
            let role = groups.contains(group).then_some(granted.role);
            let best = teams.entry(&granted.team).or_default();
            *best = role.max(*best);
        }
        teams.into_iter().map(|(team, role)| (team.to_string(), role)).collect()
    }

    /// Reads the value of a file.
    pub fn read(value: Value) -> Result<Self, String> {
        let wanted =
            "write a role behind each group, or { team = \"TEAM\", role = \"ROLE\" }; roles are viewer, member, admin";
        value.try_into().map_err(|_| wanted.into())
    }

    /// Its value for a file; None without groups.
    pub fn show(&self) -> Option<Value> {
        let one = |granted: &Granted| {
            let role = Value::from(granted.role.text());
            let both = [("team".to_string(), granted.team.as_str().into()), ("role".to_string(), role.clone())];
            if granted.team == MAIN { role } else { Value::Table(both.into_iter().collect()) }
        };
        let all = self.0.iter().map(|(group, granted)| (group.clone(), one(granted)));
        (!self.is_empty()).then(|| Value::Table(all.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_role_of_all_groups_counts_and_a_group_that_is_gone_takes_its_role_along() {
        let text = "ops = \"admin\"\nusers = \"viewer\"\nlab = { team = \"lab\", role = \"member\" }";
        let roles: GroupRoles = toml::from_str(text).expect("roles");
        let of = |groups: &[&str]| roles.roles_for(&groups.iter().map(|group| group.to_string()).collect::<Vec<_>>());
        let both = |lab, main| vec![("lab".to_string(), lab), ("main".to_string(), main)];
        assert_eq!(of(&["users", "ops", "other"]), both(None, Some(Role::Admin)));
        assert_eq!(of(&["lab", "users"]), both(Some(Role::Member), Some(Role::Viewer)));
        assert_eq!(of(&[]), both(None, None));
        assert_eq!(GroupRoles::read(roles.show().expect("roles")).expect("roles"), roles);
        assert!(toml::from_str::<GroupRoles>("ops = \"owner\"").is_err());
        assert!(toml::from_str::<GroupRoles>("ops = { role = \"admin\" }").is_err());
    }
}
