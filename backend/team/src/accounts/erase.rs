//! Erasure of a person: the account is removed with all its data, and another name replaces theirs in the log.

use super::logins::logins_of;
use super::session::normal_name;
use super::teams::left;
use super::watchers::{Ended, Ends};
use super::{Accounts, Denied, Done, Principal, random};
use records::accounts::Account;
use records::{Change, accounts, alerts, audit, channels, keys, notes, rules, run_edits, silences, views};
use shared::people::Erased;

impl Accounts {
    /// Erases the principal's own account.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Conflict`] for the last admin of the hub.
    pub async fn erase_me(&self, by: &Principal) -> Result<Erased, Denied> {
        self.need_fresh(by)?;
        let mut change = self.begin_change().await?;
        let account = self.own(&mut change, by).await?;
        self.erase(change, by, account.name.clone(), Some(account)).await
    }

    /// Erases a person by id or name; by name also a person whose account was removed before.
    ///
    /// # Errors
    /// [`Denied`]; [`Denied::Conflict`] for the last admin of the hub, [`Denied::Unknown`] if no record has that name.
    pub async fn erase_person(&self, by: &Principal, word: &str) -> Result<Erased, Denied> {
        self.need_hub_admin(by)?;
        self.need_fresh(by)?;
        let mut change = self.begin_change().await?;
        let account = match self.account(&mut change, word).await {
            Ok(account) => Some(account),
            Err(Denied::Unknown) => None,
            Err(denied) => return Err(denied),
        };
        let name = match &account {
            Some(account) => account.name.clone(),
            None => normal_name(word).map_err(|_| Denied::Unknown)?,
        };
        self.erase(change, by, name, account).await
    }

    async fn erase(
        &self,
        mut change: Change,
        by: &Principal,
        name: String,
        account: Option<Account>,
    ) -> Result<Erased, Denied> {
        let instead = format!("erased-{}", &random::id()[..8]);
        let mut ended = Vec::new();
        if let Some(account) = &account {
            self.need_another_admin(&mut change, account).await?;
            for (team, login) in logins_of(&mut change, &account.id).await? {
                let login = serde_json::to_string(&login).expect("a text");
                run_edits::forget_user(&mut change, &team, &login).await?;
            }
            views::leave(&mut change, None, &account.id, &instead).await?;
            rules::leave(&mut change, None, &account.id, &instead).await?;
            ended = keys::end_of_owner(&mut change, &account.id, self.now()).await?;
            accounts::remove(&mut change, &account.id).await?;
        } else if audit::naming(&mut change, &name, 1).await?.is_empty() {
            return Err(Denied::Unknown);
        }
        // Objects saved for a team that they left earlier contain their name, too.
        views::rename(&mut change, &left(&name), &instead).await?;
        rules::rename(&mut change, &left(&name), &instead).await?;
        channels::rename(&mut change, &name, &instead).await?;
        silences::rename(&mut change, &name, &instead).await?;
        run_edits::rename(&mut change, &name, &instead).await?;
        notes::rename(&mut change, &name, &instead).await?;
        alerts::rename(&mut change, &name, &instead).await?;
        alerts::rename_in_events(&mut change, &name, &instead).await?;
        self.audit(&mut change, by, Done { action: "account.erase", object: &name, ..Done::default() }).await?;
        let email = account.as_ref().and_then(|account| account.email.as_deref());
        let rows = audit::erase(&mut change, &name, email, &instead).await?;
        change.commit().await?;
        if let Some(account) = account {
            self.end_people(Ends::AllOf(account.id, None), Ended::Removed);
        }
        for key in ended {
            self.end_people(Ends::One(key), Ended::Key);
        }
        Ok(Erased { name: instead, rows })
    }
}
