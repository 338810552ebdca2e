//! The file and its connections: four that read, one that writes.

use crate::migrate;
use crate::{Error, OpenError};
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqlitePool, Transaction};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

/// Name of the database in a data folder.
pub const FILE: &str = "hub.db";

/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections that read at once.
const READERS: u32 = 4;

/// How long a request waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a statement runs on.
pub type Connection = sqlx::SqliteConnection;

/// The database of a hub. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Records {
    writer: SqlitePool,
    readers: SqlitePool,
}

impl Records {
    /// Opens the database in a data folder, which is made for its owner alone where there is none, and brings an older one
    /// up to date; a copy of that is kept beside it as `hub.db.before-VERSION`.
    ///
    /// # Errors
    /// [`OpenError`]; then no byte of what was there is changed.
    pub async fn open(folder: &Path) -> Result<Records, OpenError> {
        let path = folder.join(FILE);
        let failed = |what, error: String| OpenError::Io { path: path.clone(), what, error };
        migrate::make(&path).map_err(|error| failed("open", error.to_string()))?;
        migrate::refuse_newer(&path).await?;
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(false)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT);
        let pool = |max| SqlitePoolOptions::new().max_connections(max).acquire_timeout(ACQUIRE_TIMEOUT);
        let writer = pool(1).connect_with(options.clone()).await.map_err(|e| failed("open", e.to_string()))?;
        migrate::to_newest(&writer, &path).await?;
        let readers = pool(READERS).connect_lazy_with(options.pragma("query_only", "true"));
        Ok(Records { writer, readers })
    }

    /// A connection to read by.
    ///
    /// # Errors
    /// The file cannot be read, or all connections are taken for 10 s.
    pub async fn read(&self) -> Result<Reader, Error> {
        Ok(Reader(self.readers.acquire().await?))
    }

    /// Begins a change, which waits for the one before. Dropped without [`Change::commit`], it has changed nothing.
    ///
    /// # Errors
    /// The file cannot be written, or the change before takes longer than 10 s.
    pub async fn change(&self) -> Result<Change, Error> {
        // A plain BEGIN would fail later, in the middle, where another process writes.
        Ok(Change(self.writer.begin_with("BEGIN IMMEDIATE").await?))
    }

    /// Closes the file in order.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// A connection that reads.
#[derive(Debug)]
pub struct Reader(PoolConnection<Sqlite>);

/// A change that is whole or not at all.
pub struct Change(Transaction<'static, Sqlite>);

impl Change {
    /// Makes it last: when this returns, it is on the disk.
    ///
    /// # Errors
    /// Nothing was changed.
    pub async fn commit(self) -> Result<(), Error> {
        Ok(self.0.commit().await?)
    }
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
        &self.0
    }
}

impl DerefMut for Change {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}
