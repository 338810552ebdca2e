//! The principal's own account: queries and changes.

use super::invites::email_of;
use super::watchers::{Ended, Ends};
use super::{Accounts, Denied, Done, Principal, Who};
use records::accounts::Account;
use records::{Connection, accounts, audit, notes, sessions, shares, views};
use serde_json::{Value, json};
use shared::me::{Me, MeChange, OwnIdentity, OwnSession};

/// Rows of the audit log in an export.
const EXPORTED: i64 = 10_000;
/// Stored letters of the browser's name.
const AGENT: usize = 128;
/// Letters of a session's id: the start of its hash, which grants nothing.
const SESSION_ID: usize = 16;

impl Accounts {
    /// The principal's own account.
    ///
    /// # Errors
    /// [`Denied::Forbidden`] to a principal that is no account.
    pub async fn me(&self, by: &Principal) -> Result<Me, Denied> {
        let mut on = self.read().await?;
        let account = self.own(&mut on, by).await?;
        self.shown_me(&mut on, &account).await
    }

    /// Changes the e-mail address, and the notices about runs of the principal's own logins.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn change_me(&self, by: &Principal, wanted: &MeChange) -> Result<Me, Denied> {
        let mut change = self.begin_change().await?;
        let account = self.own(&mut change, by).await?;
        if let Some(email) = &wanted.email {
            accounts::set_email(&mut change, &account.id, email_of(email)?.as_deref()).await?;
            let done = Done { action: "account.email", object: &account.name, ..Done::default() };
            self.audit(&mut change, by, done).await?;
        }
        if wanted.tell_finished.is_some() || wanted.tell_crashed.is_some() {
            let known = accounts::tells(&mut change, Some(&account.id)).await?.pop().ok_or(Denied::Unknown)?;
            let finished = wanted.tell_finished.unwrap_or(known.tell_finished);
            let crashed = wanted.tell_crashed.unwrap_or(known.tell_crashed);
            accounts::set_tells(&mut change, &account.id, (finished, crashed)).await?;
            let after = format!("finished: {finished}, crashed: {crashed}");
            let done = Done { action: "account.tell", object: &account.name, after: Some(after), ..Done::default() };
            self.audit(&mut change, by, done).await?;
        }
        let account = self.own(&mut change, by).await?;
        let me = self.shown_me(&mut change, &account).await?;
        change.commit().await?;
        Ok(me)
    }

    /// The principal's own sessions, newest first.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn own_sessions(&self, by: &Principal) -> Result<Vec<OwnSession>, Denied> {
        let mut on = self.read().await?;
        let (account, now) = (self.own(&mut on, by).await?, self.now());
        let rows = sessions::list(&mut on, &account.id).await?.into_iter();
        let holding = rows.filter(|row| now < row.ends && now < row.seen + self.idle());
        let shown = holding.map(|row| OwnSession {
            id: session_id(&row.id_hash),
            current: by.session.is_some_and(|own| own.as_slice() == row.id_hash),
            kind: row.kind,
            made: row.made / 1_000,
            seen: row.seen / 1_000,
            ends: row.ends / 1_000,
            network: row.network,
            agent: (!row.agent.is_empty()).then_some(row.agent),
        });
        Ok(shown.collect())
    }

    /// Stores the browser of a new session, shortened, so that people can distinguish their sessions.
    ///
    /// # Errors
    /// [`Denied::Unavailable`].
    pub async fn note_agent(&self, by: &Principal, agent: &str) -> Result<(), Denied> {
        let (Some(session), false) = (by.session, agent.is_empty()) else { return Ok(()) };
        let plain: String = agent.chars().filter(|letter| !letter.is_control()).take(AGENT).collect();
        let mut change = self.begin_change().await?;
        sessions::set_agent(&mut change, &session, &plain).await?;
        Ok(change.commit().await?)
    }

    /// Ends one of the principal's own sessions; its sockets close at once.
    ///
    /// # Errors
    /// [`Denied::Unknown`].
    pub async fn end_own_session(&self, by: &Principal, id: &str) -> Result<(), Denied> {
        let mut change = self.begin_change().await?;
        let account = self.own(&mut change, by).await?;
        let rows = sessions::list(&mut change, &account.id).await?;
        let row = rows.into_iter().find(|row| session_id(&row.id_hash) == id).ok_or(Denied::Unknown)?;
        sessions::end(&mut change, &row.id_hash).await?;
        let done = Done { action: "sign-out", object: &account.name, ..Done::default() };
        self.audit(&mut change, by, done).await?;
        change.commit().await?;
        self.end_people(Ends::One(hex::encode(&row.id_hash)), Ended::SignedOut);
        Ok(())
    }

    /// The identities of the account.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn own_identities(&self, by: &Principal) -> Result<Vec<OwnIdentity>, Denied> {
        let mut on = self.read().await?;
        let account = self.own(&mut on, by).await?;
        let rows = accounts::identities(&mut on, &account.id).await?.into_iter();
        let shown = rows.map(|row| OwnIdentity {
            subject: if row.kind == "password" { account.name.clone() } else { row.subject },
            id: row.id,
            kind: row.kind,
            issuer: row.issuer,
            title: None,
        });
        Ok(shown.collect())
    }

    /// An export of all data about the account.
    ///
    /// # Errors
    /// [`Denied`].
    pub async fn export_me(&self, by: &Principal) -> Result<Value, Denied> {
        let (me, signed_in) = (self.me(by).await?, self.own_sessions(by).await?);
        let (identities, own_keys) = (self.own_identities(by).await?, self.own_keys(by).await?);
        let mut on = self.read().await?;
        let rows = audit::naming(&mut on, &me.name, EXPORTED).await?;
        let log: Vec<Value> = rows
            .iter()
            .map(|row| {
                // The address of somebody else is theirs.
                let network = (row.who == me.name).then_some(&row.network);
                json!({ "t": row.t / 1_000, "who": row.who, "by": row.by, "network": network, "action": row.action,
                        "object": row.object, "before": row.before, "after": row.after, "result": row.result })
            })
            .collect();
        let id = by.owner.as_deref().unwrap_or_default();
        let views = views::of_owner(&mut on, id).await?;
        let views: Vec<Value> = views
            .iter()
            .map(|view| {
                json!({ "id": view.id, "team": view.team, "scope": view.scope, "name": view.name, "query": view.query,
                    "version": view.version, "updated": view.updated / 1_000 })
            })
            .collect();
        let notes = notes::of_owner(&mut on, id).await?;
        let notes: Vec<Value> = notes
            .iter()
            .map(|note| {
                json!({ "id": note.id, "team": note.team, "source": note.source, "run": note.run, "text": note.text,
                    "t": note.begins / 1_000, "updated": note.updated / 1_000 })
            })
            .collect();
        let links = shares::of_owner(&mut on, id).await?;
        let links: Vec<Value> = links
            .iter()
            .map(|link| {
                json!({ "id": link.id, "team": link.team, "name": link.name, "query": link.query, "note": link.note,
                    "made": link.made / 1_000, "ends": link.ends / 1_000, "opens": link.opens })
            })
            .collect();
        Ok(json!({ "account": me, "identities": identities, "sessions": signed_in, "keys": own_keys, "views": views,
                   "links": links, "notes": notes, "audit": log }))
    }

    /// The row of the principal's own account.
    pub(super) async fn own(&self, on: &mut Connection, by: &Principal) -> Result<Account, Denied> {
        match &by.who {
            Who::Account { id, .. } => accounts::by_id(on, id).await?.ok_or(Denied::Unknown),
            _ => Err(Denied::Forbidden("this needs a signed-in user; a key cannot do it".into())),
        }
    }

    async fn shown_me(&self, on: &mut Connection, account: &Account) -> Result<Me, Denied> {
        let tells = accounts::tells(on, Some(&account.id)).await?.pop();
        Ok(Me {
            email_vouched: tells.as_ref().is_some_and(|tells| tells.email.is_some()),
            tell_finished: tells.as_ref().is_some_and(|tells| tells.tell_finished),
            tell_crashed: tells.as_ref().is_some_and(|tells| tells.tell_crashed),
            id: account.id.clone(),
            name: account.name.clone(),
            email: account.email.clone(),
            hub_admin: account.hub_admin,
            password: accounts::password(on, &account.id).await?.is_some(),
            teams: self.team_roles(on, account).await?,
            created: account.created / 1_000,
        })
    }
}

fn session_id(hash: &[u8]) -> String {
    hex::encode(hash)[..SESSION_ID].to_string()
}
