//! Rights to submit runs, markers and values for a machine, and the audit of runs that begin and end so.

use super::WrittenRegistry;
use shared::role::{KeyScope, Role};
use team::accounts::{Denied, Principal};

impl WrittenRegistry {
    /// The ID of the team of a machine, if the principal may submit `what` for it: a member of that team, or a key with
    /// `runs:write`.
    ///
    /// # Errors
    /// [`Denied`]: the principal has no such right, or the machine is unknown.
    pub async fn team_of_submitter(&self, by: &Principal, source: &str, what: &str) -> Result<String, Denied> {
        let Some(records) = self.0.there().await? else { return Err(Denied::Unknown) };
        let team = self.team_of_source(&mut *records.read().await?, source).await?;
        if !by.allows(KeyScope::RunsWrite) || !by.may(&team, Role::Member) {
            return Err(Denied::Forbidden(format!("only members of the machine's team can send {what} for it")));
        }
        Ok(team)
    }

    /// Audits the begin or the end of a run that a machine has stored.
    ///
    /// # Errors
    /// [`Denied::Unavailable`]: it could not be audited.
    pub async fn audit_submission(
        &self,
        by: &Principal,
        (action, team): (&str, &str),
        run: &str,
        machine: &str,
    ) -> Result<(), Denied> {
        let mut change = self.0.begin().await?;
        self.0.audit(&mut change, by, (action, team), run, (None, Some(machine.into()))).await?;
        Ok(change.commit().await?)
    }
}
