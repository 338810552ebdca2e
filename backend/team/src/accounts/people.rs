//! Creation, change and removal of accounts. The last admin of the hub stays.

use super::session::normal_name;
use super::teams::left;
use super::watchers::{Ended, Ends};
use super::{Accounts, DAY, Denied, Done, HOUR, Principal, Who, password, random};
use records::accounts::Account;
use records::{Change, Connection, accounts, audit, codes, keys, rules, sessions, teams, views};
use shared::hub::AboutHub;
use shared::people::{Made, NewPerson, Person, PersonChange};
use shared::role::Role;
use shared::secret::Secret;

/// Lifetime of the code to set a password: for the first password, and for a reset.
const FIRST_CODE_LIFETIME: i64 = DAY;
const RESET: i64 = HOUR;

/// Maximum number of accounts of a hub.
const ACCOUNTS: i64 = 1_000;

impl Accounts {
    /// Summary of the hub, as far as its database contains it.
    ///
    /// # Errors
    /// [`Denied::Forbidden`] without hub admin rights, [`Denied::Unavailable`].
    pub async fn about(&self, by: &Principal) -> Result<AboutHub, Denied> {
        self.need_hub_admin(by)?;
        let mut on = self.read().await?;
        let (judged, judged_dropped) = self.0.judged.figures();
        let number = |count: i64| u64::try_from(count).unwrap_or(0);
        let last = audit::Filter { action: Some("backup".into()), ..audit::Filter::default() };
        Ok(AboutHub {
            database: self.0.records.engine().into(),
            database_bytes: records::meta::bytes(&mut on).await.ok().map(number),
            backup: audit::newest(&mut on, &last, 1).await?.first().map(|row| row.t / 1_000),
            accounts: number(accounts::count(&mut on).await?),
            teams: teams::all(&mut on).await?.len() as u64,
            machines: number(records::sources::count(&mut on).await?),
            judged: judged as u64,
            judged_dropped,
            ..AboutHub::default()
        })
    }

    /// All accounts, by name.
    ///
    /// # Errors
    /// [`Denied::Forbidden`] without hub admin rights.
    pub async fn people(&self, by: &Principal) -> Result<Vec<Person>, Denied> {
        self.need_hub_admin(by)?;
        let mut on = self.read().await?;
        let mut people = Vec::new();
        for account in accounts::all(&mut on).await? {
            people.push(self.shown(&mut on, &account).await?);
        }
        Ok(people)
    }

    /// Creates an account, with a password or with a code by which the person sets one.
    ///
    /// # Errors
    /// [`Denied`]: the principal is no hub admin, the name is taken, the password is refused.
    pub async fn add_person(&self, by: &Principal, wanted: &NewPerson) -> Result<Made, Denied> {
        self.need_hub_admin(by)?;
        self.need_fresh(by)?;
        let name = normal_name(&wanted.name)?;
        let hash = match &wanted.password {
            Some(password) => {
                password::check(password, &name)?;
                Some(self.0.passwords.hash(password).await?)
            }
            None => None,
        };
        let mut change = self.begin_change().await?;
        self.need_room(&mut change).await?;
        // A hub admin has all rights in each team; another role in the list of members would hide it.
        let role = wanted.role.unwrap_or(if wanted.hub_admin { Role::Admin } else { Role::Viewer });
        let team = self.named_team(&mut change, wanted.team.as_deref()).await?;
        let account = self.add_account(&mut change, name, wanted.hub_admin, hash.as_deref()).await?;
        teams::set_role(&mut change, &team.id, &account.id, Some(role.text())).await?;
        let code = match hash {
            None => Some(self.new_code(&mut change, by, &account, FIRST_CODE_LIFETIME).await?),
            Some(_) => None,
        };
        let after = match wanted.hub_admin {
            true => "hub admin".to_string(),
            false => format!("{role} of {}", team.name),
        };
        let done = Done { action: "account.add", object: &account.name, after: Some(after), ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.0.set_up.store(true, std::sync::atomic::Ordering::Release);
        Ok(Made { id: account.id, name: account.name, code })
    }

    /// Changes the rights of an account, by its id or name; its sockets close and reconnect with the new rights.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Conflict`] for the last admin of the hub.
    pub async fn change_person(&self, by: &Principal, word: &str, wanted: &PersonChange) -> Result<Person, Denied> {
        self.need_hub_admin(by)?;
        self.need_fresh(by)?;
        let hash = match &wanted.password {
            Some(_) if !matches!(by.who, Who::Local { .. }) => {
                let sentence = "the password of another account cannot be set remotely; create a reset code instead";
                return Err(Denied::Forbidden(sentence.into()));
            }
            Some(password) => {
                password::check(password, &normal_name(word).unwrap_or_default())?;
                Some(self.0.passwords.hash(password).await?)
            }
            None => None,
        };
        let mut change = self.begin_change().await?;
        let account = self.account(&mut change, word).await?;
        let before = self.shown(&mut change, &account).await?;
        let hub_admin = wanted.hub_admin.unwrap_or(account.hub_admin);
        let disabled = wanted.disabled.unwrap_or(before.disabled);
        if !hub_admin || disabled {
            self.need_another_admin(&mut change, &account).await?;
        }
        accounts::set(&mut change, &account.id, hub_admin, if disabled { "disabled" } else { "active" }).await?;
        if let Some(role) = wanted.role {
            let team = self.named_team(&mut change, wanted.team.as_deref()).await?;
            teams::set_role(&mut change, &team.id, &account.id, Some(role.text())).await?;
        }
        if let Some(hash) = &hash {
            accounts::set_password(&mut change, &random::id(), &account.id, hash).await?;
            codes::end(&mut change, "reset", Some(&account.id)).await?;
        }
        if disabled || hash.is_some() {
            sessions::end_all(&mut change, &account.id, None).await?;
        }
        if disabled {
            keys::end_of_owner(&mut change, &account.id, self.now()).await?;
        }
        let account = self.account(&mut change, &account.id).await?;
        let after = self.shown(&mut change, &account).await?;
        let text = |person: &Person| {
            let teams = person.teams.iter().map(|team| format!("{} of {}", team.role, team.name));
            let hub_admin = person.hub_admin.then(|| "hub admin".to_string());
            let disabled = person.disabled.then(|| "disabled".to_string());
            hub_admin.into_iter().chain(disabled).chain(teams).collect::<Vec<_>>().join(", ")
        };
        let (was, is) = (Some(text(&before)), Some(text(&after)));
        let action = if hash.is_some() { "account.password" } else { "account.change" };
        let done = Done { action, object: &account.name, before: was, after: is, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        let why = match hash {
            Some(_) => Ended::Password,
            None if disabled => Ended::Disabled,
            None => Ended::Rights,
        };
        self.end_people(Ends::AllOf(account.id, None), why);
        Ok(after)
    }

    /// A code by which a person sets their password, once and within an hour; its use ends their sessions.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn reset_person(&self, by: &Principal, word: &str) -> Result<Made, Denied> {
        self.need_hub_admin(by)?;
        self.need_fresh(by)?;
        let mut change = self.begin_change().await?;
        let account = self.account(&mut change, word).await?;
        let code = self.new_code(&mut change, by, &account, RESET).await?;
        let done = Done { action: "account.reset", object: &account.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        Ok(Made { id: account.id, name: account.name, code: Some(code) })
    }

    /// Removes an account with its sessions and keys; its sockets close at once.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Conflict`] for the last admin of the hub.
    pub async fn remove_person(&self, by: &Principal, word: &str) -> Result<(), Denied> {
        self.need_hub_admin(by)?;
        self.need_fresh(by)?;
        let mut change = self.begin_change().await?;
        let account = self.account(&mut change, word).await?;
        self.need_another_admin(&mut change, &account).await?;
        views::leave(&mut change, None, &account.id, &left(&account.name)).await?;
        rules::leave(&mut change, None, &account.id, &left(&account.name)).await?;
        accounts::remove(&mut change, &account.id).await?;
        let done = Done { action: "account.remove", object: &account.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.end_people(Ends::AllOf(account.id, None), Ended::Removed);
        Ok(())
    }

    /// Sets the principal's own password; the other sessions of the account end.
    ///
    /// # Errors
    /// [`Denied`]: the old one is wrong, or the new one is refused; [`Denied::Again`] if there is no old one, and the
    /// principal has no fresh sign-in by other means.
    pub async fn set_password(&self, by: &Principal, old: Option<&Secret>, new: &Secret) -> Result<(), Denied> {
        let Who::Account { id, name } = &by.who else {
            return Err(Denied::invalid("this account does not sign in with a password"));
        };
        password::check(new, name)?;
        match old {
            Some(old) => drop(self.again(by, &shared::session::Again { password: old.clone() }).await?),
            None => self.need_fresh(by)?,
        }
        let hash = self.0.passwords.hash(new).await?;
        let mut change = self.begin_change().await?;
        if old.is_none() && accounts::password(&mut change, id).await?.is_some() {
            return Err(Denied::invalid("enter the current password, too: this account has one"));
        }
        accounts::set_password(&mut change, &random::id(), id, &hash).await?;
        sessions::end_all(&mut change, id, by.session.as_ref().map(|hash| hash.as_slice())).await?;
        self.audit(&mut change, by, Done { action: "account.password", object: name, ..Done::default() }).await?;
        change.commit().await?;
        self.end_people(Ends::AllOf(id.clone(), Some(by.holder.own.clone())), Ended::Password);
        Ok(())
    }

    async fn new_code(
        &self,
        change: &mut Change,
        by: &Principal,
        account: &Account,
        holds: i64,
    ) -> Result<Secret, Denied> {
        let code = random::code();
        codes::end(change, "reset", Some(&account.id)).await?;
        let row = codes::Code {
            hash: random::hash(&code).into(),
            id: random::id(),
            kind: "reset".into(),
            account: Some(account.id.clone()),
            team: None,
            role: None,
            owner: None,
            maker: by.name(),
            email: None,
            data: "{}".into(),
            made: self.now(),
            ends: self.now() + holds,
        };
        codes::add(change, &row).await?;
        Ok(Secret::new(code))
    }

    /// Refuses an account above the maximum.
    pub(super) async fn need_room(&self, change: &mut Change) -> Result<(), Denied> {
        match accounts::count(change).await? >= ACCOUNTS {
            true => Err(Denied::conflict(format!("a hub has at most {ACCOUNTS} accounts; remove one first"))),
            false => Ok(()),
        }
    }

    /// An account by its id or name.
    pub(super) async fn account(&self, on: &mut Connection, word: &str) -> Result<Account, Denied> {
        if let Some(found) = accounts::by_id(on, word).await? {
            return Ok(found);
        }
        let name = normal_name(word).map_err(|_| Denied::Unknown)?;
        accounts::by_name(on, &name).await?.ok_or(Denied::Unknown)
    }

    pub(super) async fn need_another_admin(&self, on: &mut Connection, account: &Account) -> Result<(), Denied> {
        let is_one = account.hub_admin && account.state == "active";
        match is_one && accounts::hub_admins(on).await? <= 1 {
            true => Err(Denied::conflict("this is the last admin of the hub; add another one first")),
            false => Ok(()),
        }
    }

    async fn shown(&self, on: &mut Connection, account: &Account) -> Result<Person, Denied> {
        Ok(Person {
            id: account.id.clone(),
            name: account.name.clone(),
            hub_admin: account.hub_admin,
            disabled: account.state != "active",
            teams: self.team_roles(on, account).await?,
            created: account.created / 1_000,
        })
    }
}
