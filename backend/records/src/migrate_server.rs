//! The schema of a PostgreSQL, migrated by one program at a time.

use crate::steps::{STEPS, for_postgres};
use crate::{OpenError, Server};
use sqlx::{Connection, PgConnection, PgPool};
use std::time::Duration;

/// Locks are numbers in PostgreSQL; these two are ours, separately in each database.
const SCHEMA_LOCK: i64 = 0x7761_7463_6801;
const CHANGE_LOCK: i64 = 0x7761_7463_6802;

/// Maximum number of steps by which a schema may be ahead of a program. While the hubs of a cluster are upgraded one
/// after the other, those of the previous version continue, and may restart. A step only adds, so their statements
/// still work.
const MAX_STEPS_AHEAD: i64 = 1;

/// Timeout of a look.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until no other program changes the schema; the lock lasts until the transaction ends.
async fn lock(on: &mut PgConnection, number: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(number).execute(on).await.map(drop)
}

/// Waits until no other change is in progress; the lock lasts until the transaction ends. There is one writer at a
/// time, as in SQLite, so that data read by a change stays valid until the change is written. Returns whether the
/// server can be written: a standby cannot.
pub(crate) async fn lock_changes(on: &mut PgConnection) -> sqlx::Result<bool> {
    let lock = "SELECT current_setting('transaction_read_only') = 'off' FROM pg_advisory_xact_lock($1)";
    sqlx::query_scalar(lock).bind(CHANGE_LOCK).fetch_one(on).await
}

/// The schema's number; 0 if there is none of ours.
async fn schema(on: &mut PgConnection) -> sqlx::Result<i64> {
    if !sqlx::query_scalar("SELECT to_regclass('meta') IS NOT NULL").fetch_one(&mut *on).await? {
        return Ok(0);
    }
    let schema: Option<String> =
        sqlx::query_scalar("SELECT value FROM meta WHERE key = 'schema'").fetch_optional(on).await?;
    Ok(schema.and_then(|schema| schema.parse().ok()).unwrap_or(0))
}

/// Runs the missing steps, each in a transaction.
pub(crate) async fn to_newest(pool: &PgPool, server: &Server) -> Result<(), OpenError> {
    run(pool, server, STEPS).await
}

/// Result of a look at a server, which changes nothing there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLook {
    /// Its version, as the server reports it.
    pub version: String,
    /// Number of our tables; 0: there are none.
    pub schema: i64,
    /// Number of the newest tables that this program creates.
    pub known: i64,
}

impl Server {
    /// Looks at it, and changes nothing.
    ///
    /// # Errors
    /// [`OpenError`]: it does not answer within 5 s, denies access, or a newer version has created its tables.
    pub async fn inspect(&self) -> Result<ServerLook, OpenError> {
        let failed = |error: sqlx::Error| self.failed("open", error);
        let looked = async {
            let mut on = PgConnection::connect_with(&self.0).await?;
            let version = sqlx::query_scalar("SHOW server_version").fetch_one(&mut on).await?;
            let schema = schema(&mut on).await?;
            on.close().await?;
            Ok(ServerLook { version, schema, known: STEPS.len() as i64 })
        };
        let looked = tokio::time::timeout(LOOK_TIMEOUT, looked).await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let looked = looked.map_err(failed)?;
        match looked.schema > looked.known + MAX_STEPS_AHEAD {
            true => Err(OpenError::Newer { place: self.to_string(), schema: looked.schema, known: looked.known }),
            false => Ok(looked),
        }
    }
}

async fn run(pool: &PgPool, server: &Server, steps: &[&str]) -> Result<(), OpenError> {
    let failed = |error: sqlx::Error| server.failed("migrate", error);
    loop {
        let mut change = pool.begin().await.map_err(failed)?;
        lock(&mut change, SCHEMA_LOCK).await.map_err(failed)?;
        let (schema, known) = (schema(&mut change).await.map_err(failed)?, steps.len() as i64);
        if schema > known + MAX_STEPS_AHEAD {
            return Err(OpenError::Newer { place: server.to_string(), schema, known });
        }
        let Some(step) = steps.get(schema as usize) else { return Ok(()) };
        sqlx::raw_sql(sqlx::AssertSqlSafe(for_postgres(step))).execute(&mut *change).await.map_err(failed)?;
        sqlx::query("INSERT INTO meta (key, value) VALUES ('schema', $1) ON CONFLICT (key) DO UPDATE SET value = $1")
            .bind((schema + 1).to_string())
            .execute(&mut *change)
            .await
            .map_err(failed)?;
        change.commit().await.map_err(failed)?;
    }
}
