//! Transfer from a file to a PostgreSQL: every row of every table, in one change.

use crate::connection::Engine;
use crate::{FILE, OpenError, Records, Server, backup, meta};
use sqlx::postgres::PgArguments;
use sqlx::sqlite::SqliteRow;
use sqlx::{Arguments, AssertSqlSafe, PgConnection, Row, SqliteConnection};
use std::path::Path;

/// All tables, each after those that it refers to.
const TABLES: [&str; 32] = [
    "meta",
    "teams",
    "accounts",
    "identities",
    "sessions",
    "members",
    "services",
    "sources",
    "keys",
    "aliases",
    "enrolments",
    "eras",
    "erased",
    "codes",
    "audit",
    "grants",
    "views",
    "shares",
    "usage_days",
    "rules",
    "alerts",
    "alert_events",
    "silences",
    "channels",
    "outbox",
    "alert_state",
    "leases",
    "links",
    "coverage",
    "watched",
    "run_edits",
    "notes",
];

/// Tables whose rows get their number from the server.
const NUMBERED: [&str; 2] = ["audit", "alert_events"];

/// Rows per statement; PostgreSQL accepts 65,535 values at once.
const GROUP: usize = 500;

/// Writes the rows of a file, a hub's own or a copy of it, into an empty database of a PostgreSQL. The file is
/// unchanged. `between` is a temporary folder, which must not exist yet.
///
/// # Errors
/// [`OpenError`]: it is no such file, it is from a newer version, or the database already has a hub. Then nothing is
/// written.
pub async fn transfer(file: &Path, between: &Path, server: &Server) -> Result<(), OpenError> {
    backup::check(file).await?;
    std::fs::create_dir(between).map_err(|error| backup::failed(between, "make", error))?;
    let done = through(file, between, server).await;
    let removed = std::fs::remove_dir_all(between).map_err(|error| backup::failed(between, "remove", error));
    done.and(removed)
}

async fn through(file: &Path, between: &Path, server: &Server) -> Result<(), OpenError> {
    let copied = backup::copy(file, &between.join(FILE)).await?;
    sqlx::Connection::close(copied).await.map_err(|error| backup::failed(file, "close", error))?;
    // An older one is migrated, so that both have the same columns.
    let (from, to) = (Records::open(between).await?, Records::connect(server).await?);
    let done = rows(&from, &to).await;
    from.close().await;
    to.close().await;
    done.map_err(|error| server.failed("write to", error))
}

async fn rows(from: &Records, to: &Records) -> sqlx::Result<()> {
    let refused = |why: String| sqlx::Error::Protocol(why);
    let (mut from, mut to) = (from.read().await?, to.change().await?);
    if meta::get(&mut to, "instance").await?.is_some() {
        return Err(refused("the database has data of a hub already; name an empty database".into()));
    }
    {
        let (Engine::Sqlite(from), Engine::Postgres(to)) = (from.engine(), to.engine()) else {
            return Err(refused("rows can only be copied from a file to a server".into()));
        };
        let known =
            sqlx::query_scalar("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
        let known: Vec<String> = known.fetch_all(&mut *from).await?;
        if let Some(other) = known.iter().find(|name| !TABLES.contains(&name.as_str())) {
            return Err(refused(format!("the table {other} is unknown")));
        }
        sqlx::query("DELETE FROM meta").execute(&mut *to).await?;
        for table in TABLES {
            whole(table, from, to).await?;
        }
        for table in NUMBERED {
            let go_on = format!("SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}");
            sqlx::query(AssertSqlSafe(go_on)).execute(&mut *to).await?;
        }
    }
    Ok(to.commit().await?)
}

/// All rows of a table.
async fn whole(table: &str, from: &mut SqliteConnection, to: &mut PgConnection) -> sqlx::Result<()> {
    let columns = "SELECT column_name::text, data_type::text FROM information_schema.columns
                   WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position";
    let columns: Vec<(String, String)> = sqlx::query_as(columns).bind(table).fetch_all(&mut *to).await?;
    let names = columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let get = format!("SELECT {names}, rowid FROM {table} WHERE rowid > $1 ORDER BY rowid LIMIT {GROUP}");
    let mut last = i64::MIN;
    loop {
        let query = sqlx::query(AssertSqlSafe(get.clone())).bind(last);
        let rows: Vec<SqliteRow> = query.fetch_all(&mut *from).await?;
        let Some(end) = rows.last() else { return Ok(()) };
        last = end.try_get(columns.len())?;
        let mut values = PgArguments::default();
        for row in &rows {
            for (at, (name, kind)) in columns.iter().enumerate() {
                put(&mut values, row, at, kind)
                    .map_err(|error| sqlx::Error::Protocol(format!("{table}.{name}: {error}")))?;
            }
        }
        let row = |row: usize| {
            let places = (1..=columns.len()).map(|at| format!("${}", row * columns.len() + at)).collect::<Vec<_>>();
            format!("({})", places.join(", "))
        };
        let places = (0..rows.len()).map(row).collect::<Vec<_>>().join(", ");
        let put = format!("INSERT INTO {table} ({names}) VALUES {places}");
        sqlx::query_with(AssertSqlSafe(put), values).execute(&mut *to).await?;
    }
}

/// A value in the type of its column in PostgreSQL.
fn put(values: &mut PgArguments, row: &SqliteRow, at: usize, kind: &str) -> Result<(), sqlx::error::BoxDynError> {
    match kind {
        "bigint" => values.add(row.try_get::<Option<i64>, _>(at)?),
        "boolean" => values.add(row.try_get::<Option<bool>, _>(at)?),
        "double precision" => values.add(row.try_get::<Option<f64>, _>(at)?),
        "bytea" => values.add(row.try_get::<Option<Vec<u8>>, _>(at)?),
        // PostgreSQL accepts no NUL.
        "text" => values.add(row.try_get::<Option<String>, _>(at)?.map(|text| text.replace('\0', "\u{fffd}"))),
        other => Err(format!("values of the type {other} are unknown").into()),
    }
}
