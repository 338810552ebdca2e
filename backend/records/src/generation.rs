//! What was read holds until something is written: by this program, which counts its changes, or by another one, which is
//! looked for.

use crate::Error;
use sqlx::{PgConnection, SqliteConnection};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts changes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generation(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    changes: AtomicU64,
    /// The connection that writes is this one of all that there were.
    connection: AtomicI64,
    /// What the database said when it was looked at last, and by which connection.
    said: Mutex<Option<(i64, String)>>,
    /// A change whose maker went away before it was told how it ended.
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

    /// Likewise, and nobody is left who says so to those whom it concerns.
    pub(crate) fn rise_unheard(&self) {
        self.rise();
        self.0.unheard.fetch_add(1, Ordering::AcqRel);
    }

    /// The connection that writes is a new one, to which the numbers of the one before mean nothing.
    pub(crate) fn reconnected(&self) {
        self.0.connection.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether what the database says now is not what it said before.
    pub(crate) fn has_risen(&self, said: String) -> bool {
        let said = Some((self.0.connection.load(Ordering::Acquire), said));
        let before = std::mem::replace(&mut *self.0.said.lock().unwrap_or_else(PoisonError::into_inner), said.clone());
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

/// Says in the transaction of a change that it is one.
pub(crate) async fn mark(on: &mut PgConnection) -> Result<(), Error> {
    let mark = "INSERT INTO meta (key, value) VALUES ('changed', pg_current_xact_id()::text)
                ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value";
    sqlx::query(mark).execute(on).await?;
    Ok(())
}

/// The number of the newest change that is visible; changes of this program are among them.
pub(crate) async fn of_server(on: &mut PgConnection) -> Result<String, Error> {
    let number: Option<String> =
        sqlx::query_scalar("SELECT value FROM meta WHERE key = 'changed'").fetch_optional(on).await?;
    Ok(number.unwrap_or_default())
}
