//! Connections for statements: one that reads, or a change, of either engine.

use crate::error::Error;
use crate::generation::{self, Generation};
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres, Sqlite, SqliteConnection, Transaction};
use std::ops::{Deref, DerefMut};
use tokio::sync::oneshot;

/// A connection for statements.
pub struct Connection(Held);

pub(crate) enum Held {
    /// To a file that a hub may also have open.
    SqliteFile(SqliteConnection),
    SqliteReader(PoolConnection<Sqlite>),
    SqliteChange(Transaction<'static, Sqlite>),
    PostgresReader(PoolConnection<Postgres>),
    PostgresChange(Transaction<'static, Postgres>),
}

/// The two engines, which share one SQL text.
pub(crate) enum Engine<'a> {
    Sqlite(&'a mut SqliteConnection),
    Postgres(&'a mut PgConnection),
}

impl Connection {
    /// A connection to a file, outside of its pools.
    pub(crate) fn to_file(connection: SqliteConnection) -> Self {
        Connection(Held::SqliteFile(connection))
    }

    /// Closes such a connection cleanly; others return to their pools by themselves.
    pub(crate) async fn close(self) -> Result<(), Error> {
        if let Held::SqliteFile(connection) = self.0 {
            sqlx::Connection::close(connection).await?;
        }
        Ok(())
    }

    pub(crate) fn engine(&mut self) -> Engine<'_> {
        match &mut self.0 {
            Held::SqliteFile(on) => Engine::Sqlite(on),
            Held::SqliteReader(on) => Engine::Sqlite(on),
            Held::SqliteChange(on) => Engine::Sqlite(on),
            Held::PostgresReader(on) => Engine::Postgres(on),
            Held::PostgresChange(on) => Engine::Postgres(on),
        }
    }
}

/// A connection that reads.
pub struct Reader(Connection);

/// A transaction: all of its changes are applied, or none.
pub struct Change {
    on: Connection,
    /// The generation that rises with it; None: no authentication depends on its changes.
    rises: Option<Generation>,
}

impl Reader {
    pub(crate) fn new(held: Held) -> Self {
        Reader(Connection(held))
    }
}

impl Change {
    pub(crate) fn new(held: Held, rises: Option<Generation>) -> Self {
        Change { on: Connection(held), rises }
    }

    /// Commits it: when this returns, it is on the disk.
    ///
    /// # Errors
    /// Nothing was changed; or PostgreSQL was lost at that moment, and the result is unknown.
    pub async fn commit(self) -> Result<(), Error> {
        let Change { on, rises } = self;
        let Some(rises) = rises else { return commit(on.0).await };
        let (done, told) = oneshot::channel();
        // The commit continues even if the caller is dropped; cached reads become stale only after it.
        tokio::spawn(async move {
            let mut held = on.0;
            let marked = match &mut held {
                Held::PostgresChange(change) => generation::mark(change).await.map(Some),
                _ => Ok(None),
            };
            let written = match marked {
                Ok(marked) => {
                    commit(held).await.inspect(|()| marked.into_iter().for_each(|mark| rises.expect_mark(mark)))
                }
                Err(failed) => Err(failed),
            };
            rises.rise();
            if done.send(written).is_err() {
                rises.rise_unheard();
            }
        });
        told.await.unwrap_or(Err(sqlx::Error::WorkerCrashed.into()))
    }
}

async fn commit(held: Held) -> Result<(), Error> {
    match held {
        Held::SqliteChange(change) => change.commit().await?,
        Held::PostgresChange(change) => change.commit().await?,
        // These are not changes.
        Held::SqliteFile(_) | Held::SqliteReader(_) | Held::PostgresReader(_) => {}
    }
    Ok(())
}

impl Deref for Reader {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}

impl Deref for Change {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.on
    }
}

impl DerefMut for Change {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.on
    }
}
