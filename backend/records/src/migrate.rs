//! The schema of a file, migrated after a backup copy.

use crate::OpenError;
use crate::error::is_full;
use crate::steps::STEPS;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection, SqlitePool};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

pub(crate) fn failed(path: &Path, what: &'static str) -> impl FnOnce(sqlx::Error) -> OpenError {
    let path = path.to_path_buf();
    move |error| match is_full(&error) {
        true => OpenError::Full { path },
        false => OpenError::Io { path, what, error: error.to_string() },
    }
}

/// Creates the file, readable only by its owner; SQLite gives the files beside it the same mode.
pub(crate) fn make(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Gives a complete file its name. Both outlast a power cut when this returns: SQLite syncs no output of VACUUM INTO.
pub(crate) fn put_in_place(part: &Path, whole: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(part)?.sync_all()?;
    std::fs::rename(part, whole)?;
    #[cfg(unix)]
    {
        let folder = whole.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Some network file systems sync no folders. The file is there.
        let _ = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

/// The schema's number; 0 for an empty file.
async fn schema(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'meta'")
        .fetch_one(&mut *connection)
        .await?;
    if tables == 0 {
        return Ok(0);
    }
    let schema = sqlx::query_scalar("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'schema'");
    Ok(schema.fetch_optional(connection).await?.unwrap_or(0))
}

/// The schema's number of a file, without a change; 0 if it is no database of ours.
pub(crate) async fn schema_of(path: &Path) -> Result<i64, OpenError> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut connection = options.connect().await.map_err(failed(path, "open"))?;
    let schema = schema(&mut connection).await.map_err(failed(path, "read"))?;
    connection.close().await.map_err(failed(path, "close"))?;
    Ok(schema)
}

/// Rejects a file of a newer version, without a change.
pub(crate) async fn refuse_newer(path: &Path) -> Result<(), OpenError> {
    refuse(path, schema_of(path).await?)
}

/// Rejects all but the newest schema, without a change.
pub(crate) async fn need_newest(pool: &SqlitePool, path: &Path) -> Result<(), OpenError> {
    let mut connection = pool.acquire().await.map_err(failed(path, "open"))?;
    let schema = schema(&mut connection).await.map_err(failed(path, "read"))?;
    match schema < STEPS.len() as i64 {
        true => Err(OpenError::Full { path: path.into() }),
        false => refuse(path, schema),
    }
}

fn refuse(path: &Path, schema: i64) -> Result<(), OpenError> {
    let known = STEPS.len() as i64;
    if schema > known {
        return Err(OpenError::Newer { place: path.display().to_string(), schema, known });
    }
    Ok(())
}

/// Runs the missing steps, after a backup copy.
pub(crate) async fn to_newest(pool: &SqlitePool, path: &Path) -> Result<(), OpenError> {
    run(pool, path, STEPS).await
}

async fn run(pool: &SqlitePool, path: &Path, steps: &[&'static str]) -> Result<(), OpenError> {
    let mut connection = pool.acquire().await.map_err(failed(path, "open"))?;
    let schema = schema(&mut connection).await.map_err(failed(path, "read"))?;
    if schema > 0 && schema < steps.len() as i64 {
        copy(&mut connection, path, schema).await?;
    }
    for (step, taken) in steps.iter().zip(1_i64..).skip(schema as usize) {
        let mut change = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed(path, "write"))?;
        sqlx::raw_sql(*step).execute(&mut *change).await.map_err(failed(path, "migrate"))?;
        sqlx::query("INSERT INTO meta (key, value) VALUES ('schema', $1) ON CONFLICT (key) DO UPDATE SET value = $1")
            .bind(taken.to_string())
            .execute(&mut *change)
            .await
            .map_err(failed(path, "migrate"))?;
        change.commit().await.map_err(failed(path, "migrate"))?;
    }
    Ok(())
}

/// Copies the database beside itself, as it was before the first step.
async fn copy(connection: &mut SqliteConnection, path: &Path, schema: i64) -> Result<(), OpenError> {
    let beside = |end: &str| PathBuf::from(format!("{}.before-{}{end}", path.display(), schema + 1));
    let (part, whole) = (beside(".part"), beside(""));
    let unwritten =
        |error: std::io::Error| OpenError::Io { path: part.clone(), what: "write", error: error.to_string() };
    // A leftover of an earlier attempt would be written into.
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unwritten(error)),
        _ => {}
    }
    make(&part).map_err(unwritten)?;
    let into = sqlx::query("VACUUM INTO $1").bind(part.display().to_string());
    into.execute(connection).await.map_err(failed(&part, "write"))?;
    put_in_place(&part, &whole).map_err(unwritten)
}

/// A pool for tests of the steps.
#[cfg(test)]
async fn pool(path: &Path) -> SqlitePool {
    use sqlx::sqlite::SqlitePoolOptions;
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    SqlitePoolOptions::new().max_connections(1).connect_with(options).await.expect("a fresh file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_older_schema_is_copied_first_and_then_brought_up_to_date() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.db");
        let pool = pool(&path).await;
        run(&pool, &path, STEPS).await.expect("the first schema");
        let before = folder.path().join(format!("hub.db.before-{}", STEPS.len() + 1));
        assert!(!before.exists(), "nothing to copy");
        sqlx::query("INSERT INTO meta VALUES ('kept', 'yes')").execute(&pool).await.expect("a row");
        let steps = [STEPS, &["CREATE TABLE later (a INTEGER); INSERT INTO later VALUES (1);"]].concat();
        run(&pool, &path, &steps).await.expect("the next step");
        run(&pool, &path, &steps).await.expect("nothing to do");
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM later").fetch_one(&pool).await.expect("the new table");
        assert_eq!(rows, 1, "each step is taken once");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = before.metadata().expect("the copy").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let copied = super::pool(&before).await;
        let kept: String =
            sqlx::query_scalar("SELECT value FROM meta WHERE key = 'kept'").fetch_one(&copied).await.expect("the row");
        assert_eq!(
            (kept.as_str(), schema(&mut copied.acquire().await.expect("open")).await.expect("read")),
            ("yes", STEPS.len() as i64)
        );
    }

    #[tokio::test]
    async fn what_the_first_schema_held_is_there_in_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.db");
        let pool = pool(&path).await;
        run(&pool, &path, &STEPS[..1]).await.expect("the first schema");
        let (team, person, machine) = ("t".repeat(26), "p".repeat(26), "s".repeat(26));
        for statement in [
            format!("INSERT INTO teams VALUES ('{team}', 'main', '{{}}')"),
            format!("INSERT INTO accounts VALUES ('{person}', 'mara', NULL, 1, 'active', 0, 1)"),
            format!(
                "INSERT INTO identities VALUES ('{person}', '{person}', 'password', 'password', '{person}', 'hash')"
            ),
            format!("INSERT INTO sessions VALUES (zeroblob(32), '{person}', 'password', 1, 1, 1, 9, 'n')"),
            format!("INSERT INTO members VALUES ('{team}', '{person}', 'admin')"),
            format!(
                "INSERT INTO sources (id, team, name, labels, state, ephemeral, links, first_seen)
                 VALUES ('{machine}', '{team}', 'gpu-1', '{{}}', 'active', 0, '[]', 1)"
            ),
        ] {
            sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&pool).await.expect("a row");
        }
        run(&pool, &path, STEPS).await.expect("the newest schema");
        for (table, rows) in [("identities", 1_i64), ("sessions", 1), ("members", 1), ("grants", 1)] {
            let count = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}")));
            assert_eq!(count.fetch_one(&pool).await.ok(), Some(rows), "{table}");
        }
    }

    /// Columns of all tables: table, name, type, whether it is required, whether it has a default, place in the key.
    async fn columns(pool: &SqlitePool) -> Vec<(String, String, String, bool, bool, i64)> {
        let all = "SELECT t.name, c.name, c.type, c.\"notnull\", c.dflt_value IS NOT NULL, c.pk
                   FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY 1, 2";
        sqlx::query_as(all).fetch_all(pool).await.expect("the tables")
    }

    /// Hubs share a database from the fifth step on. While they are upgraded one after the other, hubs of the previous
    /// version read and write the same data.
    #[tokio::test]
    async fn a_step_takes_nothing_from_the_version_before_and_asks_nothing_new_of_it() {
        for step in 4..STEPS.len() {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("hub.db");
            let pool = pool(&path).await;
            run(&pool, &path, &STEPS[..step]).await.expect("the schema before");
            let before = columns(&pool).await;
            run(&pool, &path, &STEPS[..=step]).await.expect("the schema");
            let after = columns(&pool).await;
            let gone: Vec<_> = before.iter().filter(|column| !after.contains(column)).collect();
            assert!(gone.is_empty(), "step {} changes {gone:?}", step + 1);
            let known = |table: &String| before.iter().any(|(own, ..)| own == table);
            let asked: Vec<_> = after
                .iter()
                .filter(|column| !before.contains(column))
                .filter(|(table, _, _, must, default, key)| known(table) && ((*must && !default) || *key > 0))
                .collect();
            assert!(asked.is_empty(), "step {} wants what nobody says yet: {asked:?}", step + 1);
        }
    }

    #[tokio::test]
    async fn a_step_that_fails_leaves_the_schema_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.db");
        let pool = pool(&path).await;
        run(&pool, &path, STEPS).await.expect("the first schema");
        let wrong = [STEPS, &["CREATE TABLE half (a INTEGER); CREATE TABLE half (a INTEGER);"]].concat();
        let error = run(&pool, &path, &wrong).await.expect_err("the table is there twice").to_string();
        assert!(error.contains("migrate"), "{error}");
        let mut connection = pool.acquire().await.expect("open");
        assert_eq!(schema(&mut connection).await.expect("read"), STEPS.len() as i64);
        let half = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM half").fetch_one(&mut *connection).await;
        assert!(half.is_err(), "the first half of the step is not there");
    }

    #[tokio::test]
    async fn a_newer_schema_is_refused_and_no_byte_is_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.db");
        crate::Records::open(folder.path()).await.expect("a fresh one").close().await;
        let pool = pool(&path).await;
        sqlx::query("UPDATE meta SET value = '99' WHERE key = 'schema'").execute(&pool).await.expect("a newer one");
        pool.close().await;
        let before = std::fs::read(&path).expect("the file");
        let error = crate::Records::open(folder.path()).await.expect_err("newer").to_string();
        let said = format!("(schema 99, this version knows {})", STEPS.len());
        assert!(error.contains(&said), "{error}");
        assert_eq!(std::fs::read(&path).expect("the file"), before);
    }
}
