//! Invitations: one-time links into a team. Only the SHA-256 of the code is stored.

use super::attempts::Limit;
use super::session::{normal_name, wrong_code};
use super::teams::settings_of;
use super::watchers::{Ended, Ends};
use super::{Accounts, Begun, DAY, Denied, Done, Network, Principal, Who, key, password, random};
use records::codes::Code;
use records::{Change, Connection, accounts, codes, teams};
use shared::role::{KeyScope, Role};
use shared::secret::Secret;
use shared::team::{Invite, NewInvite, TakeInvite};

/// Lifetime of an invitation: default and maximum.
const DEFAULT_LIFETIME: i64 = 7 * DAY;
const MAX_LIFETIME: i64 = 30 * DAY;
/// Maximum number of open invitations of a team.
const INVITES: usize = 200;
/// Maximum length of an e-mail address.
const EMAIL: usize = 254;

/// Result of an accepted invitation.
#[derive(Debug)]
pub enum InviteTaken {
    /// A new account, which is signed in now.
    Begun(Box<Begun>),
    /// The signed-in account joined.
    Joined,
}

/// The role of an account that joins a team by an invitation: at least the one that it has there. The rights of a
/// hub admin in every team are no role of theirs.
async fn joined_role(change: &mut Change, team: &str, account: &str, role: Role) -> Result<Role, Denied> {
    let own = teams::memberships(change, Some(account)).await?;
    let present = own.iter().find(|own| own.team == team).and_then(|own| own.role.parse::<Role>().ok());
    Ok(present.map_or(role, |present| role.max(present)))
}

/// An e-mail address as it is stored; none for an empty one.
pub(super) fn email_of(text: &str) -> Result<Option<String>, Denied> {
    let text = text.trim();
    let plain = !text.chars().any(|letter| letter.is_control() || letter == ' ');
    match text {
        "" => Ok(None),
        text if text.len() <= EMAIL && text.contains('@') && plain => Ok(Some(text.into())),
        _ => Err(Denied::invalid("an e-mail address looks like name@example.org")),
    }
}

impl Accounts {
    /// The valid invitations of a team, newest first.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn invites(&self, by: &Principal, team: &str) -> Result<Vec<Invite>, Denied> {
        let mut on = self.read().await?;
        let team = self.inviting(&mut on, by, team).await?;
        let rows = codes::of_team(&mut on, &team.id, "invite", self.now()).await?.into_iter();
        let shown = rows.filter_map(|row| {
            Some(Invite {
                role: row.role?.parse().ok()?,
                id: row.id,
                email: row.email,
                by: row.maker,
                made: row.made / 1_000,
                ends: row.ends / 1_000,
            })
        });
        Ok(shown.collect())
    }

    /// Invites a person into a team. Returns the id of the invitation, and its code, which is shown once.
    ///
    /// # Errors
    /// [`Denied`]: a role above the principal's own, or an invitation of an admin by a member; too many.
    pub async fn invite(&self, by: &Principal, team: &str, wanted: &NewInvite) -> Result<(String, Secret), Denied> {
        let (now, role) = (self.now(), wanted.role.unwrap_or(Role::Viewer));
        let email = email_of(wanted.email.as_deref().unwrap_or_default())?;
        let ends = key::end_of(wanted.expires.as_deref(), Some(DEFAULT_LIFETIME), now)?;
        let ends = ends.filter(|ends| *ends <= now + MAX_LIFETIME);
        let ends = ends.ok_or_else(|| Denied::invalid("an invitation lasts at most 30d"))?;
        let mut change = self.begin_change().await?;
        let team = self.inviting(&mut change, by, team).await?;
        self.need_fresh(by)?;
        if !by.may(&team.id, role) {
            return Err(Denied::Forbidden(format!("you cannot give a right that you do not have: {role}")));
        }
        if codes::of_team(&mut change, &team.id, "invite", now).await?.len() >= INVITES {
            return Err(Denied::conflict(format!("a team has at most {INVITES} open invitations; revoke one first")));
        }
        let code = random::code();
        let row = Code {
            hash: random::hash(&code).into(),
            id: random::id(),
            kind: "invite".into(),
            account: None,
            team: Some(team.id.clone()),
            role: Some(role.text().into()),
            owner: by.owner.clone(),
            maker: by.name(),
            email,
            data: "{}".into(),
            made: now,
            ends,
        };
        codes::add(&mut change, &row).await?;
        let whom = row.email.as_deref().unwrap_or("somebody");
        let done = Done {
            action: "invite.add",
            team: Some(&team.id),
            object: whom,
            after: row.role.clone(),
            ..Done::default()
        };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        Ok((row.id, Secret::new(code)))
    }

    /// Revokes an invitation.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn end_invite(&self, by: &Principal, team: &str, id: &str) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let team = self.inviting(&mut change, by, team).await?;
        let rows = codes::of_team(&mut change, &team.id, "invite", self.now()).await?;
        let row = rows.into_iter().find(|row| row.id == id).ok_or(Denied::Unknown)?;
        let own = row.owner.is_some() && row.owner == by.owner;
        if !own && !by.may(&team.id, Role::Admin) {
            return Err(Denied::Forbidden("only an admin of the team can revoke another member's invitation".into()));
        }
        codes::remove(&mut change, id).await?;
        let whom = row.email.as_deref().unwrap_or("somebody");
        let done = Done { action: "invite.end", team: Some(&team.id), object: whom, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        Ok(change.commit().await?)
    }

    /// Accepts an invitation: the signed-in account joins the team, or a new account is created.
    ///
    /// # Errors
    /// [`Denied`]: a wrong code; a name or a password that is refused.
    pub async fn take_invite(
        &self,
        by: Option<&Principal>,
        wanted: &TakeInvite,
        network: &Network,
    ) -> Result<InviteTaken, Denied> {
        let limits = [(Limit::Code, network.text())];
        self.attempt(&limits)?;
        let signed_in = by.and_then(|by| match &by.who {
            Who::Account { id, .. } => Some((by, id)),
            _ => None,
        });
        // Errors in these do not use up the code.
        let fresh = match (signed_in, &wanted.name, &wanted.password) {
            (Some(_), ..) => None,
            (None, Some(name), Some(secret)) => {
                let name = normal_name(name)?;
                password::check(secret, &name)?;
                Some((name, self.0.passwords.hash(secret).await?))
            }
            _ => return Err(Denied::invalid("sign in first, or send a name and a password for a new account")),
        };
        let mut change = self.begin_change().await?;
        let hash = random::hash(wanted.code.reveal().trim());
        let code = codes::take(&mut change, &hash, "invite", self.now()).await?.ok_or_else(wrong_code)?;
        let (team, role) = self.still_granted(&mut change, &code).await?;
        let taken = match (fresh, signed_in) {
            (Some((name, hash)), _) => {
                self.need_room(&mut change).await?;
                let account = self.add_account(&mut change, name, false, Some(&hash)).await?;
                teams::set_role(&mut change, &team.id, &account.id, Some(role.text())).await?;
                accounts::vouch_email(&mut change, &account.id, code.email.as_deref()).await?;
                let begun = self.begin(&mut change, &account, network, "code").await?;
                self.audit_taken(&mut change, &begun.principal, &team, &account.name, role).await?;
                InviteTaken::Begun(Box::new(begun))
            }
            (None, Some((by, id))) => {
                let account = accounts::by_id(&mut change, id).await?.ok_or_else(wrong_code)?;
                let role = joined_role(&mut change, &team.id, id, role).await?;
                teams::set_role(&mut change, &team.id, &account.id, Some(role.text())).await?;
                self.audit_taken(&mut change, by, &team, &account.name, role).await?;
                InviteTaken::Joined
            }
            (None, None) => return Err(wrong_code()),
        };
        change.commit().await?;
        match &taken {
            InviteTaken::Begun(begun) => self.has_begun(begun, &limits),
            InviteTaken::Joined => {
                self.0.attempts.succeeded(&limits);
                if let Some((_, id)) = signed_in {
                    self.end_people(Ends::AllOf(id.clone(), None), Ended::Rights);
                }
            }
        }
        Ok(taken)
    }

    /// Adds an account to the team of an invitation, which is used up.
    pub(super) async fn join_by(
        &self,
        change: &mut Change,
        code: &Code,
        account: &accounts::Account,
    ) -> Result<(), Denied> {
        let (team, role) = self.still_granted(change, code).await?;
        let role = joined_role(change, &team.id, &account.id, role).await?;
        teams::set_role(change, &team.id, &account.id, Some(role.text())).await?;
        let after = Some(role.text().to_string());
        let done =
            Done { action: "member.join", team: Some(&team.id), object: &account.name, after, ..Done::default() };
        self.write_audit(change, (&account.name, "invitation", ""), done, "ok").await
    }

    async fn audit_taken(
        &self,
        change: &mut Change,
        by: &Principal,
        team: &teams::Team,
        name: &str,
        role: Role,
    ) -> Result<(), Denied> {
        let after = Some(role.text().to_string());
        let done = Done { action: "member.join", team: Some(&team.id), object: name, after, ..Done::default() };
        self.audit(change, by, done).await
    }

    /// The team and role of an invitation, if its creator could still make it.
    async fn still_granted(&self, change: &mut Change, code: &Code) -> Result<(teams::Team, Role), Denied> {
        let role: Role = code.role.as_deref().and_then(|role| role.parse().ok()).ok_or_else(wrong_code)?;
        let team = teams::find(change, code.team.as_deref().unwrap_or_default()).await?.ok_or_else(wrong_code)?;
        if let Some(owner) = &code.owner {
            let inviter = accounts::by_id(change, owner).await?.filter(|account| account.state == "active");
            let inviter = inviter.ok_or_else(wrong_code)?;
            let roles = self.team_roles(change, &inviter).await?;
            let still = roles.iter().any(|own| own.id == team.id && own.role >= role.max(Role::Member));
            if !still {
                return Err(wrong_code());
            }
        }
        Ok((team, role))
    }

    /// A team where the principal may invite: as an admin, or as a member if members may.
    async fn inviting(&self, on: &mut Connection, by: &Principal, word: &str) -> Result<teams::Team, Denied> {
        let team = self.team(on, by, word, Role::Member).await?;
        let may = by.may(&team.id, Role::Admin) || settings_of(&team).members_invite;
        if !may {
            return Err(Denied::Forbidden("only an admin of the team can invite; ask one".into()));
        }
        if !by.allows(KeyScope::TeamAdmin) && !by.allows(KeyScope::HubAdmin) {
            return Err(Denied::Forbidden(format!("this needs a key with the scope {}", KeyScope::TeamAdmin)));
        }
        Ok(team)
    }
}
