//! The principal of a request: identity, network and permissions.

use super::watchers::KeyHolder;
use shared::linked::LinkedObjects;
use shared::role::{KeyScope, Role};
use shared::scope::{Bounds, Scope};
use shared::session::TeamRole;
use std::fmt;
use std::net::IpAddr;

/// Network of a request: an IPv4 address, or the /64 of an IPv6 address, which belongs to one subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Network(String);

impl Network {
    /// The network of an address.
    pub fn from_address(address: IpAddr) -> Self {
        Network(match address.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{}/64", std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        })
    }

    /// This machine, by its socket or by its files.
    pub fn local() -> Self {
        Network("local".into())
    }

    /// Whether it is this machine itself, from which a proxy may forward requests of others.
    pub fn is_this_machine(&self) -> bool {
        *self == Self::local()
            || self.0.starts_with("127.")
            || *self == Self::from_address(std::net::Ipv6Addr::LOCALHOST.into())
    }

    /// Its text in the records.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identity of a principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// A person who is signed in.
    Account {
        /// The account's id.
        id: String,
        /// Its name.
        name: String,
    },
    /// A program.
    Key {
        /// The key's id.
        id: String,
        /// Its name.
        name: String,
    },
    /// A holder of a share link.
    Share {
        /// The link's id.
        id: String,
        /// Its name.
        name: String,
        /// The run and the alert that it shows.
        objects: LinkedObjects,
    },
    /// The owner of the hub's files, by the socket in their folder or without a hub.
    Local {
        /// The user id on this machine.
        uid: u32,
    },
}

/// Identity and permissions at the time of a request.
#[derive(Clone, Debug)]
pub struct Principal {
    /// Identity.
    pub who: Who,
    /// Has all rights in every team, and the sole right to change accounts.
    pub hub_admin: bool,
    /// The teams, with the role in each.
    pub teams: Vec<TeamRole>,
    /// Scopes of a key; none: not a key, so all rights of the role.
    pub scopes: Option<Vec<KeyScope>>,
    /// Expiry, milliseconds since the Unix epoch.
    pub ends: Option<i64>,
    /// Network of the request.
    pub network: Network,
    /// Visible times.
    pub bounds: Bounds,
    /// The owning account: of a person, or of their key.
    pub(super) owner: Option<String>,
    /// The team of a share link, by id.
    pub(super) home: Option<String>,
    /// The visible sources of the teams.
    pub(super) scope: Scope,
    /// Time until which the sign-in counts as fresh.
    pub(super) fresh_until: i64,
    /// Identifies the holder that their sockets watch.
    pub(super) holder: KeyHolder,
    /// Hash of the session.
    pub(super) session: Option<[u8; 32]>,
}

impl Principal {
    /// The owner of the hub's files, with all rights.
    pub fn local(uid: u32) -> Self {
        Principal {
            who: Who::Local { uid },
            hub_admin: true,
            teams: Vec::new(),
            scopes: None,
            ends: None,
            network: Network::local(),
            bounds: Bounds::All,
            owner: None,
            home: None,
            scope: Scope::All,
            fresh_until: i64::MAX,
            holder: KeyHolder { own: format!("uid {uid}"), of: String::new(), since: 0 },
            session: None,
        }
    }

    /// The visible sources at the time when this was made; [`Accounts::judge_again`](super::Accounts::judge_again)
    /// reads them again. The scopes of a key are in [`allows`](Self::allows).
    pub fn scope(&self) -> Scope {
        self.scope.clone()
    }

    /// The role in a team, by its id; none: the team does not exist for the principal.
    pub fn role_in(&self, team: &str) -> Option<Role> {
        match self.hub_admin {
            true => Some(Role::Admin),
            false => self.teams.iter().find(|known| known.id == team).map(|known| known.role),
        }
    }

    /// The team, by its id, that the principal's usage counts for: the first of theirs, for a share link its own; none:
    /// the hub's first.
    pub fn counts_for(&self) -> Option<&str> {
        self.home.as_deref().or_else(|| self.teams.first().map(|team| team.id.as_str()))
    }

    /// The objects of a share link, and the scope in which its alert is: that of its team, with its machines. None for
    /// all others.
    pub fn linked(&self) -> Option<(&LinkedObjects, Scope)> {
        let Who::Share { objects, .. } = &self.who else { return None };
        Some((objects, self.scope.with_teams(self.home.clone())))
    }

    /// Whether the principal has at least this role in a team, by its id.
    pub fn may(&self, team: &str, role: Role) -> bool {
        self.role_in(team).is_some_and(|own| own >= role)
    }

    /// Whether both are the same session, key or link.
    pub fn holds_the_same(&self, other: &Principal) -> bool {
        self.who == other.who && self.holder.own == other.holder.own
    }

    /// Whether both have the same roles and scopes; visible sources are not compared.
    pub fn may_the_same(&self, other: &Principal) -> bool {
        let roles = |of: &Principal| {
            let mut roles: Vec<_> = of.teams.iter().map(|team| (team.id.clone(), team.role)).collect();
            roles.sort();
            roles
        };
        (self.hub_admin, &self.scopes, self.bounds) == (other.hub_admin, &other.scopes, other.bounds)
            && (self.hub_admin || roles(self) == roles(other))
    }

    /// Whether a key has this scope; people have all.
    pub fn allows(&self, scope: KeyScope) -> bool {
        self.scopes.as_ref().is_none_or(|scopes| scopes.contains(&scope))
    }

    /// The owning account: of a person, or of their key.
    pub fn owner(&self) -> Option<&String> {
        self.owner.as_ref()
    }

    /// Whether the sign-in counts as fresh at a time, milliseconds since the Unix epoch.
    pub fn is_fresh(&self, now: i64) -> bool {
        now < self.fresh_until
    }

    /// Whether the principal may change accounts and teams and remove sources.
    pub fn is_hub_admin(&self) -> bool {
        self.hub_admin && self.allows(KeyScope::HubAdmin)
    }

    /// Name for the audit log: the row outlives the account.
    pub fn name(&self) -> String {
        match &self.who {
            Who::Account { name, .. } => name.clone(),
            Who::Key { name, .. } => format!("key {name}"),
            Who::Share { name, .. } => format!("link {name}"),
            Who::Local { uid } => format!("uid {uid}"),
        }
    }

    /// Credential for the audit log.
    pub fn means(&self) -> String {
        match &self.who {
            Who::Account { .. } if self.session.is_none() => "proxy".into(),
            // The start of the hash distinguishes sessions and grants nothing.
            Who::Account { .. } => format!("session {}", &self.holder.own[..self.holder.own.len().min(8)]),
            Who::Key { id, .. } => format!("key {id}"),
            Who::Share { id, .. } => format!("link {id}"),
            Who::Local { .. } => "command line".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_what_one_caller_has() {
        for (address, network) in [
            ("10.0.0.7", "10.0.0.7"),
            ("::ffff:10.0.0.7", "10.0.0.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("::1", "::/64"),
            ("127.0.0.9", "127.0.0.9"),
        ] {
            let of = Network::from_address(address.parse().expect("an address"));
            assert_eq!(of.text(), network);
            assert_eq!(of.is_this_machine(), ["::1", "127.0.0.9"].contains(&address), "{address}");
        }
        assert!(Network::local().is_this_machine());
    }

    #[test]
    fn a_key_never_may_more_than_it_is_for() {
        let mut principal = Principal::local(0);
        assert!(principal.is_hub_admin() && principal.scope() == Scope::All);
        principal.scopes = Some(vec![KeyScope::MetricsRead]);
        assert!(!principal.is_hub_admin() && !principal.allows(KeyScope::DataRead));
    }

    #[test]
    fn a_team_of_others_does_not_exist() {
        let role = TeamRole { id: "t1".into(), name: "main".into(), role: Role::Member };
        let scope = Scope::only(["t1".to_string()], ["s1".to_string()]);
        let principal = Principal { hub_admin: false, teams: vec![role], scope, ..Principal::local(0) };
        assert_eq!((principal.role_in("t1"), principal.role_in("t2")), (Some(Role::Member), None));
        assert!(
            principal.may("t1", Role::Viewer)
                && !principal.may("t1", Role::Admin)
                && !principal.may("t2", Role::Viewer)
        );
        assert!(principal.scope().sees("s1") && !principal.scope().sees("s2"));
    }
}
