//! The audit log as it is asked for, and as it grows old.

use super::{Accounts, DAY, Denied, Done, HOUR, Principal};
use records::Change;
use records::audit::{self, Filter};
use shared::audit::{AuditEntry, AuditLog};
use shared::date;
use shared::role::{KeyScope, Role};

/// Rows of one answer: unless it is said, and at most.
const ROWS: (i64, i64) = (200, 1_000);
/// After so long only the network stands where an address stood.
const ADDRESSES: i64 = 30 * DAY;

/// Which rows of the log are asked for.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Of this team, by id or name; none: of the whole hub, for its admins, else of the only team of who asks.
    pub team: Option<String>,
    /// By whom.
    pub who: Option<String>,
    /// The begin of the action, such as `key.`.
    pub action: Option<String>,
    /// To what.
    pub object: Option<String>,
    /// Not before, milliseconds since the Unix epoch.
    pub from: Option<i64>,
    /// Not after, milliseconds since the Unix epoch.
    pub to: Option<i64>,
    /// Older than the row of this number.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: Option<i64>,
}

impl Accounts {
    /// Rows of the audit log, the newest first.
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
        Ok(AuditLog { entries: rows.into_iter().map(told).collect(), more, unwritten })
    }
}

impl Accounts {
    /// Somebody takes samples along, of the machines that this names, between two times, milliseconds since the Unix epoch;
    /// more than an hour of them is written down.
    ///
    /// # Errors
    /// [`Denied::Unavailable`]: it could not be written down, so nothing may be taken.
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

/// A row as it is told.
pub(super) fn told(row: audit::Entry) -> AuditEntry {
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

/// Networks in place of addresses in what is a month old.
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
