//! The database and its connections: four that read, one that writes.

use crate::connection::{Change, Held, Reader};
use crate::file::{ACQUIRE_TIMEOUT, File, READERS};
use crate::generation::{self, Generation};
use crate::{Error, OpenError, Server, meta, migrate_server};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use std::path::Path;
use std::time::Duration;

/// Name of the database in a data folder.
pub const FILE: &str = "hub.db";

/// Timeout for reading from a PostgreSQL that does not answer.
const AWAY_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeouts of PostgreSQL itself: for a statement, for waiting for a lock, and for an idle transaction, milliseconds.
const LIMITS: [(&str, &str); 3] =
    [("statement_timeout", "10000"), ("lock_timeout", "10000"), ("idle_in_transaction_session_timeout", "30000")];

/// The database of a hub. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Records {
    pools: Pools,
    generation: Generation,
}

/// The connections of either engine.
#[derive(Clone, Debug)]
enum Pools {
    Sqlite(File),
    Postgres { writer: PgPool, readers: PgPool },
}

impl Records {
    /// Opens the database in a data folder. A missing database is created, readable only by its owner. An older
    /// database is migrated, and a copy of it is stored beside it as `hub.db.before-VERSION`. On a full disk, a current
    /// database is still opened: it can be read, and changes fail until there is room.
    ///
    /// # Errors
    /// [`OpenError`]; then no existing byte is changed.
    pub async fn open(folder: &Path) -> Result<Records, OpenError> {
        Records::open_file(&folder.join(FILE)).await
    }

    /// Likewise a file of any name.
    ///
    /// # Errors
    /// As [`Records::open`].
    pub async fn open_file(path: &Path) -> Result<Records, OpenError> {
        let generation = Generation::default();
        let file = File::open(path, &generation).await?;
        Ok(Records { pools: Pools::Sqlite(file), generation })
    }

    /// A database in memory, which is lost when the program ends and never reaches a disk.
    ///
    /// # Errors
    /// [`OpenError`]: no memory was left.
    pub async fn in_memory() -> Result<Records, OpenError> {
        let file = File::in_memory().await?;
        Ok(Records { pools: Pools::Sqlite(file), generation: Generation::default() })
    }

    /// Connects to a database of a PostgreSQL, and migrates an empty or an older one.
    ///
    /// # Errors
    /// [`OpenError`]: it does not answer, denies access, or a newer version has written it; then no byte is changed.
    pub async fn connect(server: &Server) -> Result<Records, OpenError> {
        let options = server.0.clone().options(LIMITS);
        let pool = |max, wait| PgPoolOptions::new().max_connections(max).acquire_timeout(wait);
        let writer = pool(1, ACQUIRE_TIMEOUT).connect_with(options.clone()).await;
        let writer = writer.map_err(|error| server.failed("open", error))?;
        migrate_server::to_newest(&writer, server).await?;
        let read_only: PgConnectOptions = options.options([("default_transaction_read_only", "on")]);
        let readers = pool(READERS, AWAY_TIMEOUT).connect_lazy_with(read_only);
        Ok(Records { pools: Pools::Postgres { writer, readers }, generation: Generation::default() })
    }

    /// A connection for reading.
    ///
    /// # Errors
    /// The database cannot be read, or all connections are busy for 10 s (3 s of PostgreSQL).
    pub async fn read(&self) -> Result<Reader, Error> {
        Ok(Reader::new(match &self.pools {
            Pools::Sqlite(file) => Held::SqliteReader(file.reader().await?),
            Pools::Postgres { readers, .. } => Held::PostgresReader(readers.acquire().await?),
        }))
    }

    /// Begins a change, after the previous one has ended. If it is dropped without [`Change::commit`], nothing is
    /// changed. Drop it after a failed statement: PostgreSQL accepts no more in it.
    ///
    /// # Errors
    /// The database cannot be written, or the changes before take longer than 10 s.
    pub async fn change(&self) -> Result<Change, Error> {
        Ok(Change::new(self.begin().await?, Some(self.generation.clone())))
    }

    /// Likewise for marks and figures that no authentication depends on: the [generation](Self::generation) is
    /// unchanged.
    ///
    /// # Errors
    /// As [`Records::change`].
    pub async fn note(&self) -> Result<Change, Error> {
        Ok(Change::new(self.begin().await?, None))
    }

    async fn begin(&self) -> Result<Held, Error> {
        Ok(match &self.pools {
            Pools::Sqlite(file) => Held::SqliteChange(file.begin().await?),
            Pools::Postgres { writer, .. } => {
                let mut change = writer.begin().await?;
                if !migrate_server::lock_changes(&mut change).await? {
                    drop(change);
                    // The address may lead to another server by now, and this connection would stay for half an hour.
                    writer.acquire().await?.close().await?;
                    let why = "it can only be read: it is a standby, or default_transaction_read_only is on";
                    return Err(sqlx::Error::Io(std::io::Error::other(why)).into());
                }
                Held::PostgresChange(change)
            }
        })
    }

    /// A number that rises with each change. Data that was read at the same number is current, except for changes by
    /// others since the last [check](Self::check_changes).
    pub fn generation(&self) -> u64 {
        self.generation.now()
    }

    /// Checks whether others have changed anything since the previous check; then the generation has risen. Others are
    /// other programs, and changes of this one whose caller was dropped.
    ///
    /// # Errors
    /// Unknown: the database does not answer, or the changes before take longer than 10 s.
    pub async fn check_changes(&self) -> Result<bool, Error> {
        let said = match &self.pools {
            Pools::Sqlite(file) => generation::of_file(&mut *file.writer().await?).await?,
            Pools::Postgres { readers, .. } => generation::of_server(&mut *readers.acquire().await?).await?,
        };
        Ok(self.generation.has_risen(said))
    }

    /// The engine, in a word.
    pub fn engine(&self) -> &'static str {
        match &self.pools {
            Pools::Sqlite(_) => "sqlite",
            Pools::Postgres { .. } => "postgresql",
        }
    }

    /// Whether the disk was full when the file was opened, and still is as far as known: then it can be read, and
    /// changes fail.
    pub fn is_read_only(&self) -> bool {
        match &self.pools {
            Pools::Sqlite(file) => file.is_alone(),
            Pools::Postgres { .. } => false,
        }
    }

    /// Whether no hub has written anything into it yet.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn is_new(&self) -> Result<bool, Error> {
        Ok(meta::get(&mut *self.read().await?, "instance").await?.is_none())
    }

    /// Closes the connections cleanly.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite(file) => file.close().await,
            Pools::Postgres { writer, readers } => {
                readers.close().await;
                writer.close().await;
            }
        }
    }
}
