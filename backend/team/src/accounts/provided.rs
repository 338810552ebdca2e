//! People authenticated by a provider. Accounts are matched by (issuer, subject) alone, never by a name or an e-mail
//! address. Groups update the roles of an existing account.

use super::attempts::Limit;
use super::flow::Flow;
use super::session::Begun;
use super::vouched::{GroupRole, free_name};
use super::watchers::{Ended, Ends};
use super::{Accounts, Denied, Done, Network, Principal, logins, random};
use records::accounts::{self, Account};
use records::{Change, codes, sessions};
use shared::provider::{Purpose, Refused};

/// Allowed difference between the clocks of a provider and of the hub, seconds.
const CLOCK_SKEW: i64 = 60;

/// Claims of a provider about a person, after successful validation.
#[derive(Clone, Debug)]
pub struct Proof {
    /// `oidc` or `github`.
    pub kind: &'static str,
    /// The issuer, exact to the letter.
    pub issuer: String,
    /// The subject, which never changes.
    pub subject: String,
    /// The person's present name there: for display, and for the name of a new account.
    pub name: Option<String>,
    /// E-mail address, if the provider has verified it.
    pub email: Option<String>,
    /// Roles of the person's groups; empty if no group gives a role.
    pub roles: Vec<GroupRole>,
    /// Login on machines, if supplied.
    pub login: Option<String>,
    /// Time of the last authentication at the provider, seconds since the Unix epoch, if supplied.
    pub proved: Option<i64>,
}

/// Result of an accepted proof.
#[derive(Debug)]
pub enum Proved {
    /// A session.
    Begun(Box<Begun>),
    /// Another way to sign in, or a fresh sign-in, for the existing session.
    Kept,
}

impl Accounts {
    /// Completes a sign-in for its purpose. `admits`: people without an account get one. A session with the token `old`
    /// is replaced by the new one.
    ///
    /// # Errors
    /// Reason of the refusal, which is in the audit log.
    pub async fn finish_flow(
        &self,
        flow: &Flow,
        proof: &Proof,
        network: &Network,
        (admits, old): (bool, Option<&str>),
    ) -> Result<Proved, Refused> {
        let done = match &flow.of {
            None => self.sign_in_by(flow, proof, network, (admits, old)).await,
            Some((account, session)) => self.add_to(flow, proof, network, (account, session)).await,
        };
        match done {
            Ok(Ok(proved)) => {
                self.0.attempts.succeeded(&[(Limit::Network, network.text())]);
                Ok(proved)
            }
            Ok(Err(refused)) => Err(refused),
            Err(error) => {
                tracing::warn!(%error, provider = flow.provider, "a sign-in by a provider failed");
                Err(Refused::Busy)
            }
        }
    }

    /// Audits a refused answer of a provider. Anybody can send such answers, so few per network are logged.
    pub async fn refused_flow(&self, provider: &str, refused: Refused, network: &Network) {
        if self.attempt(&[(Limit::Answer, &format!("log {network}"))]).is_err() {
            self.leave_unwritten();
            return tracing::debug!(provider, "a sign-in that failed is not written down: too many were");
        }
        let written = async {
            let mut change = self.begin_change().await?;
            let done = Done { action: "sign-in", object: "nobody", ..Done::default() };
            self.write_audit(&mut change, ("nobody", provider, network.text()), done, refused.as_str()).await?;
            Ok::<_, Denied>(change.commit().await?)
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "a sign-in that failed is not written down");
        }
    }

    async fn sign_in_by(
        &self,
        flow: &Flow,
        proof: &Proof,
        network: &Network,
        (admits, old): (bool, Option<&str>),
    ) -> Result<Result<Proved, Refused>, Denied> {
        let mut change = self.begin_change().await?;
        let known = accounts::by_identity(&mut change, &proof.issuer, &proof.subject).await?;
        if known.as_ref().is_some_and(|account| account.state != "active") {
            return Ok(Err(Refused::Disabled));
        }
        let invite = match &flow.invite {
            Some(hash) => codes::take(&mut change, hash, "invite", self.now()).await?,
            None => None,
        };
        let is_new = known.is_none();
        let account = match known {
            Some(account) => account,
            // The first admin is created only by the code that the hub printed.
            None if !self.is_set_up() || (invite.is_none() && !admits) => return Ok(Err(Refused::Uninvited)),
            None => self.add_provided(&mut change, proof, invite.is_none()).await?,
        };
        if let Some(code) = invite
            && self.join_by(&mut change, &code, &account).await.is_err()
        {
            // The creator could not make the invitation any more. The change is not committed.
            return Ok(Err(Refused::Uninvited));
        }
        logins::set(&mut change, (&proof.issuer, &proof.subject), proof.login.as_deref()).await?;
        accounts::vouch_email(&mut change, &account.id, proof.email.as_deref()).await?;
        let changed = self.set_group_roles(&mut change, &account, &proof.roles).await?;
        let old = old.map(random::hash);
        if let Some(old) = &old {
            sessions::end(&mut change, old).await?;
        }
        let begun = self.begin(&mut change, &account, network, proof.kind).await?;
        let after = Some(format!("by {}", flow.provider));
        if is_new {
            let done = Done { action: "account.add", object: &account.name, after: after.clone(), ..Done::default() };
            self.audit(&mut change, &begun.principal, done).await?;
        }
        let done = Done { action: "sign-in", object: &account.name, after, ..Done::default() };
        self.audit(&mut change, &begun.principal, done).await?;
        if changed.is_some() {
            let done =
                Done { action: "member.groups", object: &account.name, after: changed.clone(), ..Done::default() };
            self.audit(&mut change, &begun.principal, done).await?;
        }
        change.commit().await?;
        self.has_begun(&begun, &[]);
        if let Some(old) = &old {
            self.end_people(Ends::One(hex::encode(old)), Ended::SignedOut);
        }
        if changed.is_some() {
            self.end_people(Ends::AllOf(account.id, Some(begun.principal.holder.own.clone())), Ended::Rights);
        }
        Ok(Ok(Proved::Begun(Box::new(begun))))
    }

    async fn add_provided(&self, change: &mut Change, proof: &Proof, as_viewer: bool) -> Result<Account, Denied> {
        self.need_room(change).await?;
        let wanted = proof.name.as_deref().or(proof.email.as_deref()).unwrap_or(&proof.subject);
        let name = free_name(change, wanted).await?;
        let account = self.add_account(change, name, false, None).await?;
        let identity = (proof.kind, proof.issuer.as_str(), proof.subject.as_str());
        accounts::add_identity(change, &random::id(), &account.id, identity).await?;
        if as_viewer {
            self.add_viewer(change, &account).await?;
        }
        Ok(account)
    }

    /// Adds a way to sign in, or records a fresh authentication. The session must still be valid.
    async fn add_to(
        &self,
        flow: &Flow,
        proof: &Proof,
        network: &Network,
        (id, session): (&str, &[u8; 32]),
    ) -> Result<Result<Proved, Refused>, Denied> {
        let mut change = self.begin_change().await?;
        let row = sessions::get(&mut change, session).await?;
        let holds = row.is_some_and(|row| row.account == *id && self.now() < row.ends);
        let account = accounts::by_id(&mut change, id).await?.filter(|account| account.state == "active");
        let Some(account) = account.filter(|_| holds) else { return Ok(Err(Refused::Over)) };
        let known = accounts::by_identity(&mut change, &proof.issuer, &proof.subject).await?;
        let means = format!("session {}", &hex::encode(session)[..8]);
        let by = (account.name.as_str(), means.as_str(), network.text());
        let after = Some(format!("by {}", flow.provider));
        match (flow.purpose, known) {
            (Purpose::Link, Some(other)) if other.id != account.id => return Ok(Err(Refused::Taken)),
            (Purpose::Link, Some(_)) => return Ok(Ok(Proved::Kept)),
            (Purpose::Link, None) => {
                let identity = (proof.kind, proof.issuer.as_str(), proof.subject.as_str());
                accounts::add_identity(&mut change, &random::id(), &account.id, identity).await?;
                logins::set(&mut change, (&proof.issuer, &proof.subject), proof.login.as_deref()).await?;
                let done = Done { action: "identity.add", object: &account.name, after, ..Done::default() };
                self.write_audit(&mut change, by, done, "ok").await?;
            }
            (_, Some(own)) if own.id == account.id => {
                // A provider supplies the time of a fresh authentication, if it was requested. Without a time there was
                // none.
                let since = flow.began / 1_000 - CLOCK_SKEW;
                if proof.proved.is_none_or(|proved| proved < since) {
                    return Ok(Err(Refused::Untrusted));
                }
                sessions::proved(&mut change, session, self.now()).await?;
                let done = Done { action: "sign-in.again", object: &account.name, after, ..Done::default() };
                self.write_audit(&mut change, by, done, "ok").await?;
            }
            _ => return Ok(Err(Refused::Other)),
        }
        change.commit().await?;
        Ok(Ok(Proved::Kept))
    }

    /// Removes one of the principal's ways to sign in, and ends their other sessions, which may come from it. `works`
    /// returns whether a kind and issuer can be used here; the last usable one stays.
    ///
    /// # Errors
    /// [`Denied::Unknown`]; [`Denied::Conflict`] for the last; [`Denied::Again`].
    pub async fn remove_identity(
        &self,
        by: &Principal,
        id: &str,
        works: impl Fn(&str, &str) -> bool,
    ) -> Result<(), Denied> {
        self.need_fresh(by)?;
        let mut change = self.begin_change().await?;
        let account = self.own(&mut change, by).await?;
        let all = accounts::identities(&mut change, &account.id).await?;
        let identity = all.iter().find(|identity| identity.id == id).ok_or(Denied::Unknown)?;
        if !all.iter().any(|other| other.id != id && works(&other.kind, &other.issuer)) {
            return Err(Denied::conflict("this is your last sign-in method; add another one first"));
        }
        accounts::remove_identity(&mut change, id).await?;
        sessions::end_all(&mut change, &account.id, by.session.as_ref().map(|hash| hash.as_slice())).await?;
        let before = Some(format!("{} {}", identity.kind, identity.issuer));
        let done = Done { action: "identity.remove", object: &account.name, before, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.end_people(Ends::AllOf(account.id, Some(by.holder.own.clone())), Ended::Identity);
        Ok(())
    }
}
