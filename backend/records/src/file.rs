//! The database in a file and its connections: four that read, one that writes; on a full disk one for both.

use crate::OpenError;
use crate::generation::Generation;
use crate::migrate;
use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection, Sqlite, SqlitePool, Transaction};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum concurrent reading connections, here and for PostgreSQL.
pub(crate) const READERS: u32 = 4;

/// Timeout of a request for a connection.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of a statement for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Minimum interval between attempts to reopen a file that was opened on a full disk.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A database in a file. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct File {
    writer: SqlitePool,
    readers: SqlitePool,
    full: Arc<Mutex<Option<FullDisk>>>,
}

/// A full disk has no room for the index of the log, which connections share. A connection with an exclusive lock keeps
/// that index in its own memory. So there is only one connection, the writer's, which also reads.
#[derive(Debug)]
struct FullDisk {
    shared: SqliteConnectOptions,
    alone: SqliteConnectOptions,
    tried: Instant,
}

impl File {
    pub(crate) async fn open(path: &Path, generation: &Generation) -> Result<File, OpenError> {
        let made = migrate::make(path);
        made.map_err(|error| OpenError::Io { path: path.into(), what: "open", error: error.to_string() })?;
        let shared = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .foreign_keys(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT);
        let opened = File::open_shared(path, generation, &shared).await;
        let Err(OpenError::Full { .. }) = opened else { return opened };
        let alone = shared.clone().locking_mode(SqliteLockingMode::Exclusive);
        File::open_alone(path, generation, FullDisk { shared, alone, tried: Instant::now() }).await
    }

    async fn open_shared(
        path: &Path,
        generation: &Generation,
        shared: &SqliteConnectOptions,
    ) -> Result<File, OpenError> {
        migrate::refuse_newer(path).await?;
        let writer = writer(generation).connect_with(shared.clone()).await.map_err(migrate::failed(path, "open"))?;
        migrate::to_newest(&writer, path).await?;
        Ok(File { writer, readers: readers(shared), full: Arc::default() })
    }

    async fn open_alone(path: &Path, generation: &Generation, disk: FullDisk) -> Result<File, OpenError> {
        let writer =
            writer(generation).connect_with(disk.alone.clone()).await.map_err(migrate::failed(path, "open"))?;
        migrate::need_newest(&writer, path).await?;
        Ok(File { writer, readers: readers(&disk.shared), full: Arc::new(Mutex::new(Some(disk))) })
    }

    /// Readers and the writer share one connection: a task that holds one of them must not wait for the other.
    pub(crate) async fn in_memory() -> Result<File, OpenError> {
        let path = Path::new(":memory:");
        let options = SqliteConnectOptions::new().in_memory(true).foreign_keys(true);
        let only = pool(1).idle_timeout(None).max_lifetime(None).connect_with(options).await;
        let only = only.map_err(migrate::failed(path, "open"))?;
        migrate::to_newest(&only, path).await?;
        Ok(File { writer: only.clone(), readers: only, full: Arc::default() })
    }

    pub(crate) async fn writer(&self) -> sqlx::Result<PoolConnection<Sqlite>> {
        self.writer.acquire().await
    }

    pub(crate) async fn reader(&self) -> sqlx::Result<PoolConnection<Sqlite>> {
        match self.is_alone() {
            true => self.writer.acquire().await,
            false => self.readers.acquire().await,
        }
    }

    pub(crate) async fn begin(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.share_again().await?;
        // A plain BEGIN would fail later, in the middle, if another process writes.
        self.writer.begin_with("BEGIN IMMEDIATE").await
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Whether the disk was full when it was opened, and still is as far as known.
    pub(crate) fn is_alone(&self) -> bool {
        self.full.lock().is_some()
    }

    /// Reopens the file after there was no room for that before.
    async fn share_again(&self) -> sqlx::Result<()> {
        let (shared, alone) = {
            let mut full = self.full.lock();
            let Some(disk) = full.as_mut().filter(|disk| disk.tried.elapsed() >= RETRY_INTERVAL) else { return Ok(()) };
            disk.tried = Instant::now();
            (disk.shared.clone(), disk.alone.clone())
        };
        self.writer.set_connect_options(shared);
        self.writer.acquire().await?.close().await?;
        match self.writer.acquire().await {
            Ok(_) => *self.full.lock() = None,
            Err(_) => self.writer.set_connect_options(alone),
        }
        Ok(())
    }
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE_TIMEOUT)
}

/// The connection that writes. It stays the same, so that its view of changes by others can be compared.
fn writer(generation: &Generation) -> SqlitePoolOptions {
    let generation = generation.clone();
    pool(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(move |_, _| {
            generation.reconnected();
            Box::pin(async { Ok(()) })
        })
        // SQLite itself rolls back a change that finds the disk full. The connection then waits for ever for the end of
        // that change, and is closed. The ping waits until the change was rolled back.
        .after_release(|connection, _| {
            Box::pin(async move {
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}

fn readers(options: &SqliteConnectOptions) -> SqlitePool {
    pool(READERS).connect_lazy_with(options.clone().pragma("query_only", "true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_that_found_the_disk_full_leaves_the_next_one_unharmed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = File::open(&folder.path().join("hub.db"), &Generation::default()).await.expect("opened");
        for size in [1 << 12, 1 << 16, 1 << 20, 8 << 20] {
            for rows in [1, 200] {
                let mut change = file.begin().await.expect("the change before is over");
                let pages: i64 =
                    sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *change).await.expect("counted");
                sqlx::raw_sql(sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}")))
                    .execute(&mut *change)
                    .await
                    .expect("bounded");
                let mut found = None;
                for row in 0..rows {
                    let add = sqlx::query("INSERT INTO meta (key, value) VALUES ($1, hex(zeroblob($2)))");
                    let added = add.bind(format!("{size}/{rows}/{row}")).bind(size).execute(&mut *change).await;
                    found = found.or(added.err());
                }
                let found = match found {
                    Some(error) => error,
                    None => change.commit().await.expect_err("there is no room"),
                };
                assert!(crate::error::is_full(&found), "{size} x {rows}: {found}");
            }
        }
        let mut change = file.begin().await.expect("the next change begins");
        // Simulates that room was made.
        sqlx::raw_sql("PRAGMA max_page_count = 1000000").execute(&mut *change).await.expect("room");
        let add = sqlx::query("INSERT INTO meta (key, value) VALUES ('kept', 'yes')");
        add.execute(&mut *change).await.expect("written");
        change.commit().await.expect("kept");
        let mut reader = file.reader().await.expect("read");
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM meta WHERE key = 'kept' OR key LIKE '%/%'")
            .fetch_one(&mut *reader)
            .await
            .expect("counted");
        assert_eq!(rows, 1, "what failed has changed nothing");
    }

    #[tokio::test]
    async fn a_file_that_one_connection_has_alone_is_read_and_written_by_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.db");
        let first = File::open(&path, &Generation::default()).await.expect("opened");
        first.close().await;
        let shared = SqliteConnectOptions::new().filename(&path).journal_mode(SqliteJournalMode::Wal);
        let alone = shared.clone().locking_mode(SqliteLockingMode::Exclusive);
        let tried = Instant::now();
        let file = File::open_alone(&path, &Generation::default(), FullDisk { shared, alone, tried }).await;
        let file = file.expect("opened");
        assert!(!folder.path().join("hub.db-shm").exists(), "it needs no room for an index");
        file.begin().await.expect("a change").commit().await.expect("kept");
        drop(file.reader().await.expect("read"));
        assert!(file.is_alone());
        let long_ago = Instant::now().checked_sub(RETRY_INTERVAL).expect("this machine runs for some seconds");
        file.full.lock().as_mut().expect("alone").tried = long_ago;
        let change = file.begin().await.expect("a change");
        assert!(!file.is_alone(), "there is room");
        let mut reader = file.reader().await.expect("beside the one that writes");
        let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM meta").fetch_one(&mut *reader).await.expect("read");
        assert!(tables > 0);
        change.commit().await.expect("kept");
    }
}
