//! Table `notes`: notes of people about machines and runs.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A note.
    pub struct NoteRow {
        /// 26 letters.
        pub id: String,
        /// The id of the team of its machine.
        pub team: String,
        /// The account that wrote it; None if it is gone, or was a program.
        pub owner: Option<String>,
        /// The same as text.
        pub maker: String,
        /// The key of its machine.
        pub source: String,
        /// The ID of its run; None if it is about the machine.
        pub run: Option<String>,
        /// When it was.
        pub begins: i64,
        /// When it was over; None for an instant.
        pub ends: Option<i64>,
        /// Its text.
        pub text: String,
        /// Rises with each change.
        pub version: i64,
        /// When it was changed last.
        pub updated: i64,
    }
}

/// Those that were there between two times, the newest first: of one machine by its key, or of all; of one run by its ID,
/// or of all.
///
/// # Errors
/// The statement failed.
pub async fn between(
    on: &mut Connection,
    (source, run): (Option<&str>, Option<&str>),
    (from, to): (i64, i64),
    limit: i64,
) -> Result<Vec<NoteRow>, Error> {
    let get = "SELECT * FROM notes WHERE ($1 IS NULL OR source = $1) AND ($2 IS NULL OR run = $2)
               AND begins <= $4 AND coalesce(ends, begins) >= $3 ORDER BY begins DESC, id LIMIT $5";
    sql::query_as(get).bind(source).bind(run).bind(from).bind(to).bind(limit).fetch_all(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<NoteRow>, Error> {
    sql::query_as("SELECT * FROM notes WHERE id = $1").bind(id).fetch_optional(on).await
}

/// Those of an account in all teams, by their id.
///
/// # Errors
/// The statement failed.
pub async fn of_owner(on: &mut Connection, owner: &str) -> Result<Vec<NoteRow>, Error> {
    sql::query_as("SELECT * FROM notes WHERE owner = $1 ORDER BY id").bind(owner).fetch_all(on).await
}

/// Number of notes of a team.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection, team: &str) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM notes WHERE team = $1").bind(team).fetch_one(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, note: &NoteRow) -> Result<(), Error> {
    let add = "INSERT INTO notes (id, team, owner, maker, source, run, begins, ends, text, version, updated)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let query = sql::query(add).bind(&note.id).bind(&note.team).bind(&note.owner).bind(&note.maker).bind(&note.source);
    let query = query.bind(&note.run).bind(note.begins).bind(note.ends).bind(&note.text).bind(note.version);
    query.bind(note.updated).execute(on).await?;
    Ok(())
}

/// Changes the text of one, if its version is still the previous one; returns whether it was.
///
/// # Errors
/// The statement failed.
pub async fn set(on: &mut Connection, note: &NoteRow) -> Result<bool, Error> {
    let set = "UPDATE notes SET text = $2, version = $3, updated = $4 WHERE id = $1 AND version = $3 - 1";
    let query = sql::query(set).bind(&note.id).bind(&note.text).bind(note.version).bind(note.updated);
    Ok(query.execute(on).await?.rows_affected() > 0)
}

/// Removes one.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM notes WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}

/// Removes those of a machine, by its key: of one run by its ID, or all.
///
/// # Errors
/// The statement failed.
pub async fn remove_of(on: &mut Connection, source: &str, run: Option<&str>) -> Result<(), Error> {
    let remove = "DELETE FROM notes WHERE source = $1 AND ($2 IS NULL OR run = $2)";
    sql::query(remove).bind(source).bind(run).execute(on).await?;
    Ok(())
}

/// Replaces the author's text.
///
/// # Errors
/// The statement failed.
pub async fn rename(on: &mut Connection, maker: &str, instead: &str) -> Result<(), Error> {
    sql::query("UPDATE notes SET maker = $2 WHERE maker = $1").bind(maker).bind(instead).execute(on).await?;
    Ok(())
}
