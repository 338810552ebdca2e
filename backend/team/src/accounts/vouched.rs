//! People authenticated by a proxy in front of the hub. Accounts are matched by the proxy's subject alone, never by an
//! equal name or e-mail address.

use super::session::{is_free, normal_name};
use super::watchers::{Ended, Ends, KeyHolder};
use super::{Accounts, Denied, Done, MAIN_TEAM, Network, Principal, Who, logins, random};
use records::accounts::{self, Account};
use records::{Change, Connection, teams};
use shared::role::Role;
use shared::scope::Bounds;

/// The kind of the identity, and its issuer.
const PROXY: &str = "proxy";
/// Maximum letters of a name, so that a number fits.
const NAME: usize = 60;
/// Maximum number of accounts whose names differ only in a number.
const NAMESAKES: u32 = 99;
/// Maximum number of accounts whose last request through the proxy is remembered; a hub has at most 1,000.
const MAX_BROUGHT: usize = 2_000;

/// Claims of the proxy about a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vouched {
    /// The subject, at most 512 bytes.
    pub subject: String,
    /// E-mail address, if supplied.
    pub email: Option<String>,
    /// Roles of the person's groups; empty if no group gives a role.
    pub roles: Vec<GroupRole>,
    /// Login on machines, if supplied.
    pub login: Option<String>,
}

/// A team by its name, and the role from a person's groups in it; none: no role.
pub type GroupRole = (String, Option<Role>);

impl Accounts {
    /// The principal of a proxied person. None without an account, or with a disabled one. With `admits`, people
    /// without an account get one as viewers, once the hub has its first admin.
    ///
    /// # Errors
    /// [`Denied::Conflict`]: the maximum number of accounts is reached. [`Denied::Unavailable`].
    pub async fn vouched(&self, who: &Vouched, network: &Network, admits: bool) -> Result<Option<Principal>, Denied> {
        let seen = self.0.people.now();
        let mut on = self.read().await?;
        if let Some(account) = accounts::by_identity(&mut on, PROXY, &who.subject).await? {
            let asked = self.of_proxy(&mut on, &account, seen, network).await?;
            let Some(principal) = asked else { return Ok(None) };
            let gains = self.gains(&mut on, &account, &who.roles).await?
                || logins::differs(&mut on, &account.id, who.login.as_deref()).await?;
            let arrives = self.arrives(&account.id);
            drop(on);
            return match gains || arrives {
                false => Ok(Some(principal)),
                true => self.arrived(who, principal, &account, (gains, arrives)).await.map(Some),
            };
        }
        drop(on);
        if !admits || !self.is_set_up() {
            return Ok(None);
        }
        let mut change = self.begin_change().await?;
        // A page sends several requests at once, and one of them was first.
        if let Some(account) = accounts::by_identity(&mut change, PROXY, &who.subject).await? {
            return self.of_proxy(&mut change, &account, seen, network).await;
        }
        self.need_room(&mut change).await?;
        let name = free_name(&mut change, &who.subject).await?;
        let account = self.add_account(&mut change, name, false, None).await?;
        accounts::add_identity(&mut change, &random::id(), &account.id, (PROXY, PROXY, &who.subject)).await?;
        accounts::vouch_email(&mut change, &account.id, who.email.as_deref()).await?;
        logins::set(&mut change, (PROXY, &who.subject), who.login.as_deref()).await?;
        let team = self.add_viewer(&mut change, &account).await?;
        self.set_group_roles(&mut change, &account, &who.roles).await?;
        let principal = self.of_proxy(&mut change, &account, seen, network).await?;
        if let Some(principal) = &principal {
            let after = Some(format!("{} of {}, by the proxy", Role::Viewer, team.name));
            let done = Done { action: "account.add", object: &account.name, after, ..Done::default() };
            self.audit(&mut change, principal, done).await?;
            self.audit_arrival(&mut change, principal, &account).await?;
            self.arrives(&account.id);
        }
        change.commit().await?;
        Ok(principal)
    }

    /// Whether groups would change the rights of an account.
    async fn gains(&self, on: &mut Connection, account: &Account, roles: &[GroupRole]) -> Result<bool, Denied> {
        if roles.is_empty() {
            return Ok(false);
        }
        let own = teams::memberships(on, Some(&account.id)).await?;
        for (name, role) in roles {
            let present = own.iter().find(|team| team.name == *name).map(|team| team.role.as_str());
            if present != role.map(Role::text) && teams::find(on, name).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets the roles of an account to those of its groups, in the teams that any group gives a role in. Returns the
    /// changes, for the audit log; none: no change.
    pub(super) async fn set_group_roles(
        &self,
        change: &mut Change,
        account: &Account,
        roles: &[GroupRole],
    ) -> Result<Option<String>, Denied> {
        let own = teams::memberships(change, Some(&account.id)).await?;
        let mut changed = Vec::new();
        for (name, role) in roles {
            let Some(team) = teams::find(change, name).await? else {
                tracing::warn!(
                    team = name,
                    "a group gives a role in a team that does not exist; create the team, or change roles"
                );
                continue;
            };
            let present = own.iter().find(|own| own.team == team.id).map(|own| own.role.as_str());
            if present != role.map(Role::text) {
                teams::set_role(change, &team.id, &account.id, role.map(Role::text)).await?;
                changed.push(match role {
                    Some(role) => format!("{role} of {name}"),
                    None => format!("nothing in {name}"),
                });
            }
        }
        Ok((!changed.is_empty()).then(|| changed.join(", ")))
    }

    /// Records the first request of a person through the proxy for a while, or a change of their groups.
    async fn arrived(
        &self,
        who: &Vouched,
        principal: Principal,
        account: &Account,
        (gains, arrives): (bool, bool),
    ) -> Result<Principal, Denied> {
        let seen = self.0.people.now();
        let mut change = self.begin_change().await?;
        if gains {
            logins::set(&mut change, (PROXY, &who.subject), who.login.as_deref()).await?;
        }
        let changed = match gains {
            true => self.set_group_roles(&mut change, account, &who.roles).await?,
            false => None,
        };
        if changed.is_some() {
            let done =
                Done { action: "member.groups", object: &account.name, after: changed.clone(), ..Done::default() };
            self.audit(&mut change, &principal, done).await?;
        }
        if arrives {
            self.audit_arrival(&mut change, &principal, account).await?;
        }
        let anew = self.of_proxy(&mut change, account, seen, &principal.network).await?;
        change.commit().await?;
        if changed.is_some() {
            self.end_people(Ends::AllOf(account.id.clone(), None), Ended::Rights);
        }
        Ok(anew.unwrap_or(principal))
    }

    async fn audit_arrival(&self, change: &mut Change, by: &Principal, account: &Account) -> Result<(), Denied> {
        let after = Some("by the proxy".to_string());
        self.audit(change, by, Done { action: "sign-in", object: &account.name, after, ..Done::default() }).await
    }

    /// Whether the last request of an account through the proxy is older than the idle timeout of a session.
    fn arrives(&self, account: &str) -> bool {
        let (now, idle) = (self.now(), self.idle());
        let mut brought = self.0.brought.lock();
        // An evicted account is recorded once more.
        if brought.len() >= MAX_BROUGHT {
            brought.retain(|_, last| now < *last + idle);
            if brought.len() >= MAX_BROUGHT {
                brought.clear();
            }
        }
        brought.insert(account.to_string(), now).is_none_or(|last| now >= last + idle)
    }

    /// Makes a new account a viewer of the team that exists from the start, or of the first.
    pub(super) async fn add_viewer(&self, change: &mut Change, account: &Account) -> Result<teams::Team, Denied> {
        let team = match teams::find(change, MAIN_TEAM).await? {
            Some(team) => Some(team),
            None => teams::all(change).await?.into_iter().next(),
        };
        let team = team.ok_or_else(|| Denied::conflict("this hub has no team; create one first"))?;
        teams::set_role(change, &team.id, &account.id, Some(Role::Viewer.text())).await?;
        Ok(team)
    }

    /// Links the principal's account, after a fresh sign-in, to the proxy's identity.
    ///
    /// # Errors
    /// [`Denied::Conflict`]: the account is linked to another identity. [`Denied::Unavailable`].
    pub async fn bind(&self, by: &Principal, who: &Vouched) -> Result<(), Denied> {
        self.need_fresh(by)?;
        let Who::Account { id, name } = &by.who else {
            return Err(Denied::invalid("the proxy can sign in to an account only"));
        };
        let mut change = self.begin_change().await?;
        if let Some(other) = accounts::by_identity(&mut change, PROXY, &who.subject).await? {
            return match other.id == *id {
                true => Ok(()),
                false => Err(Denied::conflict("the proxy's name for you belongs to another account; ask an admin")),
            };
        }
        accounts::add_identity(&mut change, &random::id(), id, (PROXY, PROXY, &who.subject)).await?;
        let done = Done { action: "identity.add", object: name, after: Some(PROXY.into()), ..Done::default() };
        self.audit(&mut change, by, done).await?;
        Ok(change.commit().await?)
    }

    async fn of_proxy(
        &self,
        on: &mut Connection,
        account: &Account,
        seen: u64,
        network: &Network,
    ) -> Result<Option<Principal>, Denied> {
        if account.state != "active" {
            return Ok(None);
        }
        let teams = self.team_roles(on, account).await?;
        Ok(Some(Principal {
            who: Who::Account { id: account.id.clone(), name: account.name.clone() },
            hub_admin: account.hub_admin,
            scopes: None,
            // Sockets are authorized by the proxy again from time to time: the page reconnects by itself.
            ends: Some(self.now() + self.idle()),
            network: network.clone(),
            bounds: Bounds::All,
            owner: Some(account.id.clone()),
            home: None,
            scope: self.scope_of(on, account.hub_admin, &teams).await?,
            teams,
            // There is no password to enter again.
            fresh_until: i64::MAX,
            holder: KeyHolder { own: format!("proxy {}", account.id), of: account.id.clone(), since: seen },
            session: None,
        }))
    }

    /// Likewise by the id of an account that was authenticated by the proxy.
    pub(super) async fn vouched_account(&self, id: &str, network: &Network) -> Result<Option<Principal>, Denied> {
        let seen = self.0.people.now();
        let mut on = self.read().await?;
        match accounts::by_id(&mut on, id).await? {
            Some(account) => self.of_proxy(&mut on, &account, seen, network).await,
            None => Ok(None),
        }
    }
}

/// A free name, close to the proxy's subject.
pub(super) async fn free_name(on: &mut Change, subject: &str) -> Result<String, Denied> {
    let base = near(subject);
    for n in 1..=NAMESAKES {
        let name = if n == 1 { base.clone() } else { format!("{base}-{n}") };
        if is_free(on, &name).await? {
            return Ok(name);
        }
    }
    Err(Denied::conflict(format!("there are {NAMESAKES} accounts like {base:?}; ask an admin for an account")))
}

fn near(subject: &str) -> String {
    let good = |letter: char| letter.is_alphanumeric() || ".-_@".contains(letter);
    let short: String = subject.trim().chars().take(NAME).map(|c| if good(c) { c } else { '-' }).collect();
    // Lower case may have more letters.
    let name = normal_name(&short).unwrap_or_default();
    if name.is_empty() || name.chars().count() > NAME { "somebody".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_to_what_the_proxy_says() {
        for (subject, name) in [
            ("Mara", "mara"),
            ("mara@example.org", "mara@example.org"),
            ("LAB\\mara", "lab-mara"),
            ("cn=mara,dc=lab", "cn-mara-dc-lab"),
            ("", "somebody"),
        ] {
            assert_eq!(near(subject), name);
        }
        assert_eq!(near(&"x".repeat(500)).len(), NAME);
    }
}
