//! Table `run_edits`: changes of runs by people.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// The changes of one run.
    pub struct RunEditRow {
        /// 26 letters.
        pub id: String,
        /// The ID that its machines use.
        pub run: String,
        /// Its team's id.
        pub team: String,
        /// Its machines' ids, each with the number of the job among those of its address; JSON.
        pub machines: String,
        /// Its begin at the last change.
        pub began: i64,
        /// Its end, likewise.
        pub ended: Option<i64>,
        /// Its new names; JSON.
        pub names: String,
        /// Name of the author of the last change.
        pub maker: String,
        /// Rises with each change.
        pub version: i64,
        /// When it was changed last.
        pub updated: i64,
        /// When it was deleted.
        pub deleted: Option<i64>,
        /// Its use, if it was deleted; JSON.
        pub used: Option<String>,
    }
}

/// A number of rows and a sum of versions. Both are the same as before only if nothing was changed since.
///
/// # Errors
/// The statement failed.
pub async fn state(on: &mut Connection) -> Result<(i64, i64), Error> {
    let get = "SELECT count(*), CAST(coalesce(sum(version), 0) AS BIGINT) FROM run_edits";
    Ok(sql::query_as(get).fetch_optional(on).await?.unwrap_or_default())
}

/// Those of all runs, the newest first.
///
/// # Errors
/// The statement failed.
pub async fn all(on: &mut Connection, limit: i64) -> Result<Vec<RunEditRow>, Error> {
    sql::query_as("SELECT * FROM run_edits ORDER BY updated DESC, id LIMIT $1").bind(limit).fetch_all(on).await
}

/// Those of runs with an ID of machines.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, run: &str) -> Result<Vec<RunEditRow>, Error> {
    sql::query_as("SELECT * FROM run_edits WHERE run = $1 ORDER BY updated DESC, id").bind(run).fetch_all(on).await
}

/// Number of changed runs of a team.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection, team: &str) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM run_edits WHERE team = $1").bind(team).fetch_one(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, edit: &RunEditRow) -> Result<(), Error> {
    let add =
        "INSERT INTO run_edits (id, run, team, machines, began, ended, names, maker, version, updated, deleted, used)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let query = sql::query(add).bind(&edit.id).bind(&edit.run).bind(&edit.team).bind(&edit.machines).bind(edit.began);
    let query = query.bind(edit.ended).bind(&edit.names).bind(&edit.maker).bind(edit.version).bind(edit.updated);
    query.bind(edit.deleted).bind(&edit.used).execute(on).await?;
    Ok(())
}

/// Changes one, if its version is still the previous one; returns whether it was.
///
/// # Errors
/// The statement failed.
pub async fn set(on: &mut Connection, edit: &RunEditRow) -> Result<bool, Error> {
    let set = "UPDATE run_edits SET machines = $2, began = $3, ended = $4, names = $5, maker = $6, version = $7,
               updated = $8, deleted = $9, used = $10 WHERE id = $1 AND version = $7 - 1";
    let query = sql::query(set).bind(&edit.id).bind(&edit.machines).bind(edit.began).bind(edit.ended);
    let query = query.bind(&edit.names).bind(&edit.maker).bind(edit.version).bind(edit.updated).bind(edit.deleted);
    Ok(query.bind(&edit.used).execute(on).await?.rows_affected() > 0)
}

/// Replaces a maker's name.
///
/// # Errors
/// The statement failed.
pub async fn rename(on: &mut Connection, maker: &str, instead: &str) -> Result<(), Error> {
    let set = "UPDATE run_edits SET maker = $2, version = version + 1 WHERE maker = $1";
    sql::query(set).bind(maker).bind(instead).execute(on).await?;
    Ok(())
}

/// Forgets the runs that were deleted before a time.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    sql::query("DELETE FROM run_edits WHERE deleted < $1").bind(before).execute(on).await?;
    Ok(())
}

/// Forgets the use of deleted runs that ended before a time.
///
/// # Errors
/// The statement failed.
pub async fn forget_used(on: &mut Connection, before: i64) -> Result<(), Error> {
    let set = "UPDATE run_edits SET used = NULL, version = version + 1 WHERE used IS NOT NULL AND ended < $1";
    sql::query(set).bind(before).execute(on).await?;
    Ok(())
}

/// Forgets the use of deleted runs of a machine, by its id.
///
/// # Errors
/// The statement failed.
pub async fn forget_used_of(on: &mut Connection, source: &str) -> Result<(), Error> {
    let set = "UPDATE run_edits SET used = NULL, version = version + 1
               WHERE used IS NOT NULL AND machines <> replace(machines, $1, '')";
    let machine = format!("\"{source}\"");
    sql::query(set).bind(machine.as_str()).execute(on).await?;
    Ok(())
}

/// Takes a user out of the use of a team's deleted runs. `user` is the name as JSON, with its quotes.
///
/// # Errors
/// The statement failed.
pub async fn forget_user(on: &mut Connection, team: &str, user: &str) -> Result<(), Error> {
    // A quote within a text is escaped, so this is no part of one.
    let set = "UPDATE run_edits SET used = replace(used, $2, '\"user\":null'), version = version + 1
               WHERE team = $1 AND used <> replace(used, $2, '\"user\":null')";
    let field = format!("\"user\":{user}");
    sql::query(set).bind(team).bind(field.as_str()).execute(on).await?;
    Ok(())
}
