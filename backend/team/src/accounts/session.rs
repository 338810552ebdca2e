//! Signing in and out. A session is a row; only the browser has its token.

use super::attempts::Limit;
use super::password::Passwords;
use super::watchers::{Ended, Ends, KeyHolder};
use super::{Accounts, DAY, Denied, Done, HOUR, MINUTE, Network, Principal, Who, password, random};
use records::accounts::Account;
use records::{Change, Connection, accounts, sessions, teams};
use shared::people::Reset;
use shared::scope::Bounds;
use shared::secret::Secret;
use shared::session::{Again, Setup, SignIn, TeamRole};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Default idle timeout and maximum lifetime of a session.
pub(super) const IDLE: i64 = 12 * HOUR;
pub(super) const MAX_LIFETIME: i64 = 7 * DAY;

/// Time for which a sign-in counts as fresh.
const FRESH_LIFETIME: i64 = 15 * MINUTE;

/// Lifetime of the code for the first admin.
const SETUP: i64 = DAY;

/// Maximum number of sessions of one account; above it the oldest ends.
const SESSIONS: i64 = 20;

/// Interval at which the mark of the last use is written.
const SEEN_EVERY: i64 = MINUTE;

/// Maximum letters of an account's name.
const NAME: usize = 64;

/// Names in the audit log for rows that are no person's.
const LOGGED: [&str; 3] = ["agent", "hub", "nobody"];

/// A new session.
#[derive(Debug)]
pub struct Begun {
    /// Token for the browser's cookie, returned once.
    pub token: Secret,
    /// The principal.
    pub principal: Principal,
    /// Sessions of the account that ended because of the maximum.
    outlived: Vec<Vec<u8>>,
}

/// The form in which names are stored and compared.
pub(super) fn normal_name(name: &str) -> Result<String, Denied> {
    use unicode_normalization::UnicodeNormalization;
    let typed: String = name.trim().chars().take(NAME + 1).nfkc().collect();
    let name = typed.to_lowercase();
    let good = |letter: char| letter.is_alphanumeric() || ".-_@".contains(letter);
    match !name.is_empty() && name.chars().count() <= NAME && name.chars().all(good) {
        true => Ok(name),
        false => Err(Denied::invalid(format!("a name has 1 to {NAME} letters, digits, \".\", \"-\", \"_\" or \"@\""))),
    }
}

/// Whether an account may get a name. Accounts are found by id or name, and nobody may be found in place of another.
/// Nobody may be taken for the hub in the audit log either.
pub(super) async fn is_free(on: &mut Change, name: &str) -> Result<bool, Denied> {
    let is_taken = accounts::by_name(on, name).await?.is_some() || accounts::by_id(on, name).await?.is_some();
    Ok(!is_taken && !LOGGED.contains(&name))
}

fn wrong() -> Denied {
    Denied::SignIn("the name or the password is wrong".into())
}

pub(super) fn wrong_code() -> Denied {
    Denied::SignIn("this code is invalid: it was used, has expired or is incomplete".into())
}

impl Accounts {
    /// Sets the idle timeout of sessions, and the maximum lifetime of new ones.
    pub fn limit_sessions(&self, idle: Duration, longest: Duration) {
        let ms = |length: Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        self.0.idle.store(ms(idle), Ordering::Relaxed);
        self.0.longest.store(ms(longest), Ordering::Relaxed);
    }

    /// Idle timeout of a session, milliseconds.
    pub(super) fn idle(&self) -> i64 {
        self.0.idle.load(Ordering::Relaxed)
    }

    /// The code to create the first admin, which the hub prints; it replaces the one before. None when there is an
    /// account.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn setup_code(&self) -> Result<Option<Secret>, Denied> {
        if accounts::count(&mut *self.read().await?).await? > 0 {
            return Ok(None);
        }
        let mut change = self.begin_change().await?;
        if accounts::count(&mut change).await? > 0 {
            return Ok(None);
        }
        let code = random::code();
        records::codes::end(&mut change, "setup", None).await?;
        let row = records::codes::Code {
            hash: random::hash(&code).into(),
            id: random::id(),
            kind: "setup".into(),
            account: None,
            team: None,
            role: None,
            owner: None,
            maker: "hub".into(),
            email: None,
            data: "{}".into(),
            made: self.now(),
            ends: self.now() + SETUP,
        };
        records::codes::add(&mut change, &row).await?;
        change.commit().await?;
        Ok(Some(Secret::new(code)))
    }

    /// Creates the first admin by the code that the hub printed, and signs them in.
    ///
    /// # Errors
    /// [`Denied`]: a wrong code, a password or a name that is refused, or an existing account.
    pub async fn setup(&self, wanted: &Setup, network: &Network) -> Result<Begun, Denied> {
        let by = [(Limit::Code, network.text())];
        self.attempt(&by)?;
        let name = normal_name(&wanted.name)?;
        password::check(&wanted.password, &name)?;
        let hash = self.0.passwords.hash(&wanted.password).await?;
        let mut change = self.begin_change().await?;
        let code = random::hash(wanted.code.reveal().trim());
        if records::codes::take(&mut change, &code, "setup", self.now()).await?.is_none() {
            return Err(wrong_code());
        }
        if accounts::count(&mut change).await? > 0 {
            return Err(Denied::conflict("this hub already has its first admin; ask them for an account"));
        }
        let account = self.add_account(&mut change, name, true, Some(&hash)).await?;
        let begun = self.begin(&mut change, &account, network, "password").await?;
        let done = Done { action: "account.setup", object: &account.name, ..Done::default() };
        self.audit(&mut change, &begun.principal, done).await?;
        change.commit().await?;
        self.has_begun(&begun, &by);
        self.0.set_up.store(true, Ordering::Release);
        Ok(begun)
    }

    /// Signs in by name and password. A session sent with the request ends.
    ///
    /// # Errors
    /// [`Denied::SignIn`], the same and after the same work for every wrong input; [`Denied::Throttled`],
    /// [`Denied::Busy`].
    pub async fn sign_in(&self, wanted: &SignIn, network: &Network, old: Option<&str>) -> Result<Begun, Denied> {
        // An invalid name counts as unknown, and costs as much.
        let name = normal_name(&wanted.name).unwrap_or_default();
        let pair = format!("{name} {network}");
        let by = [(Limit::Name, pair.as_str()), (Limit::Network, network.text())];
        self.attempt(&by).inspect_err(|_| self.leave_unwritten())?;
        let mut on = self.read().await?;
        let account = accounts::by_name(&mut on, &name).await?;
        let elsewhere = [(Limit::Elsewhere, name.as_str())];
        if !self.is_known_from(&mut on, account.as_ref(), &pair, network).await? {
            self.attempt(&elsewhere).inspect_err(|_| {
                self.0.attempts.withdrawn(&by);
                self.leave_unwritten();
            })?;
        }
        let hash = match &account {
            Some(account) => accounts::password(&mut on, &account.id).await?,
            None => accounts::password(&mut on, "").await?,
        };
        drop(on);
        let right = self.0.passwords.is_right(&wanted.password, hash.clone()).await;
        if let Err(Denied::Busy { .. }) = right {
            self.0.attempts.succeeded(&by[1..]);
        }
        let admitted = account.as_ref().filter(|account| account.state == "active").filter(|_| right == Ok(true));
        right?;
        let renewed = match (admitted, &hash) {
            (Some(_), Some(hash)) if Passwords::is_old(hash) => Some(self.0.passwords.hash(&wanted.password).await?),
            _ => None,
        };
        let mut change = self.begin_change().await?;
        let known = account.as_ref().map_or("nobody", |account| account.name.as_str());
        let Some(account) = admitted else {
            let done = Done { action: "sign-in", object: known, ..Done::default() };
            self.write_audit(&mut change, (known, "password", network.text()), done, "wrong").await?;
            change.commit().await?;
            return Err(wrong());
        };
        // The account may have changed while the password was checked.
        let now = accounts::by_id(&mut change, &account.id).await?;
        let still =
            now.is_some_and(|now| now.state == "active") && accounts::password(&mut change, &account.id).await? == hash;
        if !still {
            return Err(wrong());
        }
        if let Some(renewed) = renewed {
            accounts::set_password(&mut change, &random::id(), &account.id, &renewed).await?;
        }
        if let Some(old) = old {
            sessions::end(&mut change, &random::hash(old)).await?;
        }
        let begun = self.begin(&mut change, account, network, "password").await?;
        let after = Some("by password".to_string());
        let done = Done { action: "sign-in", object: &account.name, after, ..Done::default() };
        self.audit(&mut change, &begun.principal, done).await?;
        change.commit().await?;
        self.has_begun(&begun, &by);
        self.0.attempts.withdrawn(&elsewhere);
        if let Some(old) = old {
            self.end_people(Ends::One(hex::encode(random::hash(old))), Ended::SignedOut);
        }
        Ok(begun)
    }

    /// Whether an account has signed in from a network before: since the start, or by a valid session.
    async fn is_known_from(
        &self,
        on: &mut Connection,
        account: Option<&Account>,
        pair: &str,
        network: &Network,
    ) -> Result<bool, Denied> {
        if self.0.attempts.has_signed_in(pair) {
            return Ok(true);
        }
        let Some(account) = account else { return Ok(false) };
        let sessions = sessions::list(on, &account.id).await?;
        Ok(sessions.iter().any(|session| session.network == network.text()))
    }

    /// Sets a password by a code from an admin, ends all sessions of the account, and signs in.
    ///
    /// # Errors
    /// [`Denied`]: a wrong code, or a password that is refused.
    pub async fn reset_password(&self, wanted: &Reset, network: &Network) -> Result<Begun, Denied> {
        let by = [(Limit::Code, network.text())];
        self.attempt(&by)?;
        password::check(&wanted.password, "")?;
        let hash = self.0.passwords.hash(&wanted.password).await?;
        let mut change = self.begin_change().await?;
        let code = random::hash(wanted.code.reveal().trim());
        let code = records::codes::take(&mut change, &code, "reset", self.now()).await?.ok_or_else(wrong_code)?;
        let account = match &code.account {
            Some(account) => accounts::by_id(&mut change, account).await?,
            None => None,
        };
        let account = account.filter(|account| account.state == "active").ok_or_else(wrong_code)?;
        password::check(&wanted.password, &account.name)?;
        accounts::set_password(&mut change, &random::id(), &account.id, &hash).await?;
        sessions::end_all(&mut change, &account.id, None).await?;
        let begun = self.begin(&mut change, &account, network, "code").await?;
        let done = Done { action: "account.password", object: &account.name, ..Done::default() };
        self.audit(&mut change, &begun.principal, done).await?;
        change.commit().await?;
        self.has_begun(&begun, &by);
        self.end_people(Ends::AllOf(account.id, Some(begun.principal.holder.own.clone())), Ended::Password);
        Ok(begun)
    }

    /// The principal of a session's token; none when it is unknown or has ended.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn session(&self, token: &str, network: &Network) -> Result<Option<Principal>, Denied> {
        let hash = random::hash(token);
        if let Some(principal) = self.judged(&hash, network).await {
            return Ok(Some(principal));
        }
        let generation = self.0.records.generation();
        let Some((session, principal)) = self.session_of(&hash, network).await? else { return Ok(None) };
        if self.now() >= session.seen + SEEN_EVERY {
            self.mark_seen(&hash, network).await;
        }
        self.keep_judged(hash, generation, &principal);
        Ok(Some(principal))
    }

    /// The principal and the row of the session of this hash; none when it has ended. An expired one is removed.
    pub(super) async fn session_of(
        &self,
        hash: &[u8; 32],
        network: &Network,
    ) -> Result<Option<(sessions::Session, Principal)>, Denied> {
        let (seen, now) = (self.0.people.now(), self.now());
        let mut on = self.read().await?;
        let Some(session) = sessions::get(&mut on, hash).await? else { return Ok(None) };
        let Some(account) = accounts::by_id(&mut on, &session.account).await? else { return Ok(None) };
        // Setting the clock back must not extend an expired session.
        if now < session.ends && now < session.seen + self.idle() && account.state == "active" {
            let principal = self.signed_in(&mut on, &account, &session, seen, network).await?;
            return Ok(Some((session, principal)));
        }
        drop(on);
        let mut change = self.begin_change().await?;
        sessions::end(&mut change, hash).await?;
        change.commit().await?;
        self.end_people(Ends::One(hex::encode(hash)), Ended::SignedOut);
        Ok(None)
    }

    /// Counts traffic of a socket as use of the session that opened it.
    ///
    /// # Errors
    /// [`Denied::Unavailable`]: the session cannot be checked.
    pub async fn touch(&self, by: &Principal) -> Result<(), Denied> {
        drop(self.read().await?);
        if let Some(hash) = &by.session {
            self.mark_seen(hash, &by.network).await;
        }
        Ok(())
    }

    /// A failed write only ends the session earlier.
    async fn mark_seen(&self, hash: &[u8; 32], network: &Network) {
        let now = self.now();
        let mark = async {
            let mut on = self.read().await?;
            let due = sessions::get(&mut on, hash).await?.is_some_and(|session| now >= session.seen + SEEN_EVERY);
            drop(on);
            if due {
                let mut change = self.begin_note().await?;
                sessions::seen(&mut change, hash, now, network.text()).await?;
                change.commit().await?;
            }
            Ok::<(), Denied>(())
        };
        if let Err(error) = mark.await {
            tracing::debug!(%error, "the last use of a session is not written down");
        }
    }

    /// Ends the principal's session.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn sign_out(&self, by: &Principal) -> Result<(), Denied> {
        let Some(hash) = &by.session else { return Ok(()) };
        let mut change = self.begin_change().await?;
        if sessions::end(&mut change, hash).await? {
            self.audit(&mut change, by, Done { action: "sign-out", object: &by.name(), ..Done::default() }).await?;
        }
        change.commit().await?;
        self.end_people(Ends::One(by.holder.own.clone()), Ended::SignedOut);
        Ok(())
    }

    /// Checks the password again, for actions that need a fresh sign-in; it counts for 15 minutes.
    ///
    /// # Errors
    /// [`Denied::SignIn`] when it is wrong; [`Denied::Throttled`], [`Denied::Busy`].
    pub async fn again(&self, by: &Principal, wanted: &Again) -> Result<(), Denied> {
        let (Who::Account { id, name }, Some(hash)) = (&by.who, &by.session) else {
            return Err(Denied::invalid("this account does not sign in with a password"));
        };
        let pair = format!("{name} {}", by.network);
        let limits = [(Limit::Name, pair.as_str()), (Limit::Network, by.network.text())];
        self.attempt(&limits).inspect_err(|_| self.leave_unwritten())?;
        let mut on = self.read().await?;
        let kept = accounts::password(&mut on, id).await?;
        drop(on);
        let right = self.0.passwords.is_right(&wanted.password, kept).await?;
        let mut change = self.begin_change().await?;
        let done = Done { action: "sign-in.again", object: name, ..Done::default() };
        let result = if right { "ok" } else { "wrong" };
        self.write_audit(&mut change, (name, &by.means(), by.network.text()), done, result).await?;
        if right {
            sessions::proved(&mut change, hash, self.now()).await?;
        }
        change.commit().await?;
        if !right {
            return Err(Denied::SignIn("this is not your password".into()));
        }
        self.0.attempts.succeeded(&limits);
        Ok(())
    }

    /// Begins a session in the caller's transaction.
    pub(super) async fn begin(
        &self,
        change: &mut Change,
        account: &Account,
        network: &Network,
        kind: &str,
    ) -> Result<Begun, Denied> {
        let (token, now, seen) = (random::base62(43), self.now(), self.0.people.now());
        let session = sessions::Session {
            id_hash: random::hash(&token).into(),
            account: account.id.clone(),
            kind: kind.into(),
            made: now,
            proved: now,
            seen: now,
            ends: now + self.0.longest.load(Ordering::Relaxed),
            network: network.text().into(),
            agent: String::new(),
        };
        // Before it begins: after the clock was set back it would itself be the oldest.
        let outlived = sessions::end_oldest(change, &account.id, SESSIONS - 1).await?;
        sessions::add(change, &session).await?;
        let principal = self.signed_in(change, account, &session, seen, network).await?;
        Ok(Begun { token: Secret::new(token), principal, outlived })
    }

    /// After the commit of a sign-in: uncounts the attempt, and notifies the sessions that it ended.
    pub(super) fn has_begun(&self, begun: &Begun, limits: &[(Limit, &str)]) {
        self.0.attempts.succeeded(limits);
        for ended in &begun.outlived {
            self.end_people(Ends::One(hex::encode(ended)), Ended::SignedOut);
        }
    }

    async fn signed_in(
        &self,
        on: &mut Connection,
        account: &Account,
        session: &sessions::Session,
        seen: u64,
        network: &Network,
    ) -> Result<Principal, Denied> {
        let teams = self.team_roles(on, account).await?;
        Ok(Principal {
            who: Who::Account { id: account.id.clone(), name: account.name.clone() },
            hub_admin: account.hub_admin,
            scopes: None,
            ends: Some(session.ends),
            network: network.clone(),
            owner: Some(account.id.clone()),
            bounds: Bounds::All,
            home: None,
            scope: self.scope_of(on, account.hub_admin, &teams).await?,
            teams,
            fresh_until: session.proved + FRESH_LIFETIME,
            holder: KeyHolder { own: hex::encode(&session.id_hash), of: account.id.clone(), since: seen },
            session: session.id_hash.as_slice().try_into().ok(),
        })
    }

    /// The teams of an account; a hub admin is admin in all of them.
    pub(super) async fn team_roles(&self, on: &mut Connection, account: &Account) -> Result<Vec<TeamRole>, Denied> {
        use shared::role::Role;
        if account.hub_admin {
            let all = teams::all(on).await?.into_iter();
            return Ok(all.map(|team| TeamRole { id: team.id, name: team.name, role: Role::Admin }).collect());
        }
        let own = teams::memberships(on, Some(&account.id)).await?.into_iter();
        // A role unknown to this version gives no right.
        Ok(own
            .filter_map(|own| Some(TeamRole { role: own.role.parse().ok()?, id: own.team, name: own.name }))
            .collect())
    }

    /// Adds an account in the caller's transaction; the setup code is not valid any more.
    pub(super) async fn add_account(
        &self,
        change: &mut Change,
        name: String,
        hub_admin: bool,
        hash: Option<&str>,
    ) -> Result<Account, Denied> {
        let account = Account {
            id: random::id(),
            name,
            email: None,
            hub_admin,
            state: "active".into(),
            revision: 0,
            created: self.now(),
        };
        if !is_free(change, &account.name).await? {
            return Err(Denied::conflict(format!("the name {:?} is taken; choose another name", account.name)));
        }
        accounts::add(change, &account).await?;
        if let Some(hash) = hash {
            accounts::set_password(change, &random::id(), &account.id, hash).await?;
        }
        records::codes::end(change, "setup", None).await?;
        Ok(account)
    }
}
