//! A consistent copy of the database, and its restoration.

use crate::audit::{self, AuditRow};
use crate::{Connection, FILE, OpenError, Records, migrate};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout for a hub that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn failed(path: &Path, what: &'static str, error: impl ToString) -> OpenError {
    OpenError::Io { path: path.into(), what, error: error.to_string() }
}

/// Temporary path of a file until it is complete.
fn part_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.part", path.display()))
}

/// Copies the database of a data folder to a file, readable only by its owner, and then records the actor. The hub may
/// run.
///
/// # Errors
/// [`OpenError`]: there is no database, or the file is there already.
pub async fn backup(folder: &Path, file: &Path, who: &AuditRow) -> Result<(), OpenError> {
    let from = folder.join(FILE);
    if file.exists() {
        return Err(failed(file, "write", "the file exists already; name another one"));
    }
    let connection = copy(&from, file).await?;
    let mut connection = Connection::to_file(connection);
    audit::add(&mut connection, who).await.map_err(|error| failed(&from, "write", error))?;
    connection.close().await.map_err(|error| failed(&from, "close", error))
}

/// Copies a database to a file, readable only by its owner; returns the connection that read it.
pub(crate) async fn copy(from: &Path, file: &Path) -> Result<SqliteConnection, OpenError> {
    let options = SqliteConnectOptions::new().filename(from).create_if_missing(false).busy_timeout(BUSY_TIMEOUT);
    let mut connection = options.connect().await.map_err(|error| failed(from, "open", error))?;
    let part = part_of(file);
    match std::fs::remove_file(&part) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(&part, "write", error)),
        _ => {}
    }
    migrate::make(&part).map_err(|error| failed(&part, "write", error))?;
    let into = sqlx::query("VACUUM INTO $1").bind(part.display().to_string());
    into.execute(&mut connection).await.map_err(|error| failed(&part, "write", error))?;
    migrate::put_in_place(&part, file).map_err(|error| failed(file, "write", error))?;
    Ok(connection)
}

/// Checks that a file is a hub's database of a known version.
pub(crate) async fn check(file: &Path) -> Result<(), OpenError> {
    if migrate::schema_of(file).await? == 0 {
        return Err(failed(file, "read", "this is not a backup of a hub's database"));
    }
    migrate::refuse_newer(file).await
}

/// Restores a copy into a data folder without a database, and migrates it.
///
/// # Errors
/// [`OpenError`]: it is no copy, it is from a newer version, or the folder has a database.
pub async fn restore(file: &Path, folder: &Path) -> Result<(), OpenError> {
    let to = folder.join(FILE);
    if to.exists() {
        return Err(failed(&to, "write", "the folder has a database already; name an empty folder"));
    }
    check(file).await?;
    let part = part_of(&to);
    migrate::make(&part).map_err(|error| failed(&part, "write", error))?;
    std::fs::read(file)
        .and_then(|bytes| std::fs::write(&part, bytes))
        .and_then(|()| migrate::put_in_place(&part, &to))
        .map_err(|error| failed(&to, "write", error))?;
    Records::open(folder).await?.close().await;
    Ok(())
}
