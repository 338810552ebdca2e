//! Cached reads are valid until something is written: by this program, which counts its changes, or by another one,
//! which is detected by polling.
//!
//! On PostgreSQL each change has a mark in a row, and has the mark before it, too. So this program's own changes do not
//! count as another's: a cached read outlives a database that goes away just after a change.

use crate::Error;
use parking_lot::Mutex;
use sqlx::{PgConnection, SqliteConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Counts changes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generation(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    changes: AtomicU64,
    /// Number of the current writing connection among all so far.
    connection: AtomicI64,
    /// The database's answer at the last check, and the connection that received it.
    said: Mutex<Option<(i64, String)>>,
    /// Changes whose caller was dropped before their result was known.
    unheard: AtomicU64,
}

impl Generation {
    pub(crate) fn now(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// Something was changed, or may have been.
    pub(crate) fn rise(&self) {
        self.0.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Likewise, and no caller is left to notify those affected.
    pub(crate) fn rise_unheard(&self) {
        self.rise();
        self.0.unheard.fetch_add(1, Ordering::AcqRel);
    }

    /// The writing connection is a new one, so numbers of the previous one are not comparable.
    pub(crate) fn reconnected(&self) {
        self.0.connection.fetch_add(1, Ordering::AcqRel);
    }

    /// A change of this program has replaced the mark `before` by `own` on the server. If nothing else has changed since
    /// the last check, the next one expects this mark.
    pub(crate) fn expect_mark(&self, Marked { before, own }: Marked) {
        let mut said = self.0.said.lock();
        if let Some((_, said)) = said.as_mut().filter(|(_, said)| *said == before) {
            *said = own;
        }
    }

    /// Whether the database's answer differs from the previous one.
    pub(crate) fn has_risen(&self, said: String) -> bool {
        let said = Some((self.0.connection.load(Ordering::Acquire), said));
        let before = std::mem::replace(&mut *self.0.said.lock(), said.clone());
        let others = before != said;
        if others {
            self.rise();
        }
        self.0.unheard.swap(0, Ordering::AcqRel) > 0 || others
    }
}

/// A number that changes when another connection than this one has changed the file.
pub(crate) async fn of_file(on: &mut SqliteConnection) -> Result<String, Error> {
    let version: i64 = sqlx::query_scalar("PRAGMA data_version").fetch_one(on).await?;
    Ok(version.to_string())
}

/// The mark of a transaction, and the mark of the change before it.
#[derive(Debug)]
pub(crate) struct Marked {
    before: String,
    own: String,
}

/// Marks the transaction as a change. Changes are made one after the other, so none is between it and the one before.
pub(crate) async fn mark(on: &mut PgConnection) -> Result<Marked, Error> {
    let before = of_server(on).await?;
    let mark = "INSERT INTO meta (key, value) VALUES ('changed', pg_current_xact_id()::text)
                ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value RETURNING value";
    let own = sqlx::query_scalar(mark).fetch_one(on).await?;
    Ok(Marked { before, own })
}

/// The mark of the newest change that is visible.
pub(crate) async fn of_server(on: &mut PgConnection) -> Result<String, Error> {
    let number: Option<String> =
        sqlx::query_scalar("SELECT value FROM meta WHERE key = 'changed'").fetch_optional(on).await?;
    Ok(number.unwrap_or_default())
}
