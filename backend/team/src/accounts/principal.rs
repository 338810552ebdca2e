//! Who asks, from where, and what they may.

use super::watchers::KeyHolder;
use shared::role::{KeyScope, Role};
use shared::scope::{Bounds, Scope};
use shared::session::TeamRole;
use std::fmt;
use std::net::IpAddr;

/// Where a request came from: an IPv4 address, or the /64 of an IPv6 address, which one subscriber has whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Network(String);

impl Network {
    /// The network of an address.
    pub fn of(address: IpAddr) -> Self {
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

    /// Whether it is this machine itself, from which a proxy may pass on what others ask.
    pub fn is_this_machine(&self) -> bool {
        *self == Self::local() || self.0.starts_with("127.") || *self == Self::of(std::net::Ipv6Addr::LOCALHOST.into())
    }

    /// As it stands in the records.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who asks.
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
        /// What it is called.
        name: String,
    },
    /// Whoever has a share link.
    Share {
        /// The link's id.
        id: String,
        /// What it is called.
        name: String,
    },
    /// The owner of the hub's files, by the socket in their folder or without a hub.
    Local {
        /// The user on this machine.
        uid: u32,
    },
}

/// Who asks, and what they may at this moment.
#[derive(Clone, Debug)]
pub struct Principal {
    /// Who asks.
    pub who: Who,
    /// May all in every team, and alone changes accounts.
    pub hub_admin: bool,
    /// The teams, and what may be done there.
    pub teams: Vec<TeamRole>,
    /// What a key is for; none: no key, so all that the role may.
    pub scopes: Option<Vec<KeyScope>>,
    /// When this ends by itself, milliseconds since the Unix epoch.
    pub ends: Option<i64>,
    /// From where.
    pub network: Network,
    /// Which times may be seen.
    pub bounds: Bounds,
    /// The account whose this is: of a person, or of their key.
    pub(super) owner: Option<String>,
    /// The team of a share link, by id.
    pub(super) home: Option<String>,
    /// The sources of the teams.
    pub(super) scope: Scope,
    /// Until when what needs a fresh sign-in is granted.
    pub(super) fresh_until: i64,
    /// What a socket of theirs watches.
    pub(super) holder: KeyHolder,
    /// Of the session.
    pub(super) session: Option<[u8; 32]>,
}

impl Principal {
    /// The owner of the hub's files: may all.
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

    /// Which sources may be seen, as it was when this was made; [`Accounts::judge_again`](super::Accounts::judge_again) looks
    /// anew. For what a key is for, ask [`allows`](Self::allows).
    pub fn scope(&self) -> Scope {
        self.scope.clone()
    }

    /// What may be done in a team, by its id; none: it does not exist for who asks.
    pub fn role_in(&self, team: &str) -> Option<Role> {
        match self.hub_admin {
            true => Some(Role::Admin),
            false => self.teams.iter().find(|known| known.id == team).map(|known| known.role),
        }
    }

    /// The team, by its id, for which what is asked here counts: the first of theirs, of a share link its own; none: the
    /// hub's first.
    pub fn counts_for(&self) -> Option<&str> {
        self.home.as_deref().or_else(|| self.teams.first().map(|team| team.id.as_str()))
    }

    /// Whether at least this may be done in a team, by its id.
    pub fn may(&self, team: &str, role: Role) -> bool {
        self.role_in(team).is_some_and(|own| own >= role)
    }

    /// Whether both hold the very same: one session, key or link.
    pub fn holds_the_same(&self, other: &Principal) -> bool {
        self.who == other.who && self.holder.own == other.holder.own
    }

    /// Whether roles, and what a key is for, are the same for both; what may be seen is not compared.
    pub fn may_the_same(&self, other: &Principal) -> bool {
        let roles = |of: &Principal| {
            let mut roles: Vec<_> = of.teams.iter().map(|team| (team.id.clone(), team.role)).collect();
            roles.sort();
            roles
        };
        (self.hub_admin, &self.scopes, self.bounds) == (other.hub_admin, &other.scopes, other.bounds)
            && (self.hub_admin || roles(self) == roles(other))
    }

    /// Whether a key is for this; people may all that their role may.
    pub fn allows(&self, scope: KeyScope) -> bool {
        self.scopes.as_ref().is_none_or(|scopes| scopes.contains(&scope))
    }

    /// The account whose this is: of a person, or of their key.
    pub fn owner(&self) -> Option<&String> {
        self.owner.as_ref()
    }

    /// Whether what needs a fresh sign-in is granted at a time, milliseconds since the Unix epoch.
    pub fn is_fresh(&self, now: i64) -> bool {
        now < self.fresh_until
    }

    /// Whether accounts, teams and the removal of sources are theirs to decide.
    pub fn is_hub_admin(&self) -> bool {
        self.hub_admin && self.allows(KeyScope::HubAdmin)
    }

    /// Who it is, as the audit log says it: the row outlives the account.
    pub fn name(&self) -> String {
        match &self.who {
            Who::Account { name, .. } => name.clone(),
            Who::Key { name, .. } => format!("key {name}"),
            Who::Share { name, .. } => format!("link {name}"),
            Who::Local { uid } => format!("uid {uid}"),
        }
    }

    /// By what, as the audit log says it.
    pub fn means(&self) -> String {
        match &self.who {
            Who::Account { .. } if self.session.is_none() => "proxy".into(),
            // The beginning of the hash tells sessions apart and opens none.
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
            let of = Network::of(address.parse().expect("an address"));
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
