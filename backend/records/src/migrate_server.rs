//! The schema of a PostgreSQL, brought up to date by one program at a time.

use crate::steps::{STEPS, for_postgres};
use crate::{OpenError, Server};
use sqlx::{PgConnection, PgPool};

/// Locks are numbers in PostgreSQL; these two are ours, in each database apart.
const SCHEMA_LOCK: i64 = 0x7761_7463_6801;
const CHANGE_LOCK: i64 = 0x7761_7463_6802;

/// How many steps ahead of what a program knows a schema may be: while the hubs of a cluster are brought up to date one after
/// the other, those of the version before go on, and start again if they must. A step only adds, so what they say still holds.
const AHEAD: i64 = 1;

/// Waits until no other program changes the schema, until the transaction ends.
async fn lock(on: &mut PgConnection, number: i64) -> sqlx::Result<()> {
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(number).execute(on).await.map(drop)
}

/// Waits until no other change is under way, until the transaction ends: one writer at a time, as SQLite has it, so that
/// what a change has read holds until it is written.
pub(crate) async fn lock_changes(on: &mut PgConnection) -> sqlx::Result<()> {
    lock(on, CHANGE_LOCK).await
}

/// The schema's number; 0 where there is none of ours.
async fn schema(on: &mut PgConnection) -> sqlx::Result<i64> {
    if !sqlx::query_scalar("SELECT to_regclass('meta') IS NOT NULL").fetch_one(&mut *on).await? {
        return Ok(0);
    }
    let schema: Option<String> =
        sqlx::query_scalar("SELECT value FROM meta WHERE key = 'schema'").fetch_optional(on).await?;
    Ok(schema.and_then(|schema| schema.parse().ok()).unwrap_or(0))
}

/// Takes the steps that are missing, each in a transaction.
pub(crate) async fn to_newest(pool: &PgPool, server: &Server) -> Result<(), OpenError> {
    run(pool, server, STEPS).await
}

async fn run(pool: &PgPool, server: &Server, steps: &[&str]) -> Result<(), OpenError> {
    let failed = |error: sqlx::Error| server.failed("bring up to date", error);
    loop {
        let mut change = pool.begin().await.map_err(failed)?;
        lock(&mut change, SCHEMA_LOCK).await.map_err(failed)?;
        let (schema, known) = (schema(&mut change).await.map_err(failed)?, steps.len() as i64);
        if schema > known + AHEAD {
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
