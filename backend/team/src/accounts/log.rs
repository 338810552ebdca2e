//! Queries and retention of the audit log.

use super::{Accounts, DAY, Denied, Done, HOUR, Principal};
use records::Change;
use records::audit::{self, Filter};
use shared::audit::{AuditEntry, AuditLog};
use shared::date;
use shared::role::{KeyScope, Role};

/// Rows of one answer: default and maximum.
const ROWS: (i64, i64) = (200, 1_000);
/// Age from which addresses are replaced by their network.
const ADDRESSES: i64 = 30 * DAY;

/// Filter of the rows of the log.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Team, by id or name; none: the whole hub for its admins, else the only team of the principal.
    pub team: Option<String>,
    /// Actor.
    pub who: Option<String>,
    /// Prefix of the action, such as `key.`.
    pub action: Option<String>,
    /// Object.
    pub object: Option<String>,
    /// Not before, milliseconds since the Unix epoch.
    pub from: Option<i64>,
    /// Not after, milliseconds since the Unix epoch.
    pub to: Option<i64>,
    /// Older than the row of this number.
    pub before: Option<i64>,
    /// Maximum number of rows.
    pub limit: Option<i64>,
}

impl Accounts {
    /// Rows of the audit log, newest first.
    ///
    /// # Errors
    /// [`Denied::Unknown`], [`Denied::Forbidden`], [`Denied::Unavailable`].
    pub async fn audit_log(&self, by: &Principal, asked: &LogFilter) -> Result<AuditLog, Denied> {
        if !by.allows(KeyScope::AuditRead) {
            return Err(Denied::Forbidden(format!("this needs a key with the scope {}", KeyScope::AuditRead)));
        }
        let mut on = self.read().await?;
        let team = match &asked.team {
            None if by.hub_admin => None,
            word => {
                let team = self.own_team(&mut on, by, word.as_deref()).await?;
                if !by.may(&team.id, Role::Admin) {
                    return Err(Denied::Forbidden("only admins of the team can read the log".into()));
                }
                Some(team.id)
            }
        };
        let limit = asked.limit.unwrap_or(ROWS.0).clamp(1, ROWS.1);
        let filter = Filter {
            team,
            who: asked.who.clone(),
            action: asked.action.clone(),
            object: asked.object.clone(),
            from: asked.from,
            to: asked.to,
            before: asked.before,
        };
        let mut rows = audit::newest(&mut on, &filter, limit + 1).await?;
        let more = rows.len() as i64 > limit;
        rows.truncate(limit as usize);
        let unwritten = by.hub_admin.then(|| self.unwritten_sign_ins());
        Ok(AuditLog { entries: rows.into_iter().map(to_entry).collect(), more, unwritten })
    }
}

impl Accounts {
    /// Audits an export of samples of the named machines between two times, milliseconds since the Unix epoch. Exports
    /// of at most an hour are not logged.
    ///
    /// # Errors
    /// [`Denied::Unavailable`]: it could not be logged, so the export must not be made.
    pub async fn takes(&self, by: &Principal, action: &str, what: &str, (from, to): (i64, i64)) -> Result<(), Denied> {
        if to.saturating_sub(from) <= HOUR {
            return Ok(());
        }
        let team = by.counts_for();
        let from = if from <= 0 { "the beginning".to_string() } else { date::text(from) };
        let after = Some(format!("{from} to {}", date::text(to)));
        let mut change = self.begin_note().await?;
        let object: String = what.chars().take(256).collect();
        self.audit(&mut change, by, Done { action, team, object: &object, before: None, after }).await?;
        Ok(change.commit().await?)
    }
}

/// A row in the form of the API.
pub(super) fn to_entry(row: audit::AuditRow) -> AuditEntry {
    AuditEntry {
        id: row.id,
        t: row.t / 1_000,
        who: row.who,
        by: row.by,
        network: row.network,
        action: row.action,
        team: row.team,
        object: row.object,
        before: row.before,
        after: row.after,
        result: row.result,
    }
}

/// Replaces addresses by their networks in rows older than a month.
pub(super) async fn blur(change: &mut Change, now: i64) -> Result<(), records::Error> {
    let before = now - ADDRESSES;
    for address in audit::addresses(change, before).await? {
        let network = match address.rsplit_once('.') {
            Some((network, _)) => format!("{network}.0/24"),
            None => continue,
        };
        audit::blur(change, before, &address, &network).await?;
    }
    Ok(())
}
