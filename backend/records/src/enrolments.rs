//! Table `enrolments`: requests of machines to join, so that a repeated request is recognized.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A request to join.
    pub struct Enrolment {
        /// The number that the machine chose, as 32 hexadecimal digits.
        pub request: String,
        /// The source that it got.
        pub source: String,
        /// The id of the join key.
        pub join_key: String,
        /// `pending` until an admin confirms it, then `approved`.
        pub state: String,
        /// When it arrived first.
        pub made: i64,
        /// When it arrived last.
        pub asked: i64,
    }
}

/// One by its request.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, request: &str) -> Result<Option<Enrolment>, Error> {
    sql::query_as("SELECT * FROM enrolments WHERE request = $1").bind(request).fetch_optional(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, enrolment: &Enrolment) -> Result<(), Error> {
    let add = "INSERT INTO enrolments (request, source, join_key, state, made, asked) VALUES ($1, $2, $3, $4, $5, $6)";
    let query = sql::query(add).bind(&enrolment.request).bind(&enrolment.source).bind(&enrolment.join_key);
    query.bind(&enrolment.state).bind(enrolment.made).bind(enrolment.asked).execute(on).await?;
    Ok(())
}

/// Records a repeated request.
///
/// # Errors
/// The statement failed.
pub async fn asked(on: &mut Connection, request: &str, at: i64) -> Result<(), Error> {
    sql::query("UPDATE enrolments SET asked = $2 WHERE request = $1").bind(request).bind(at).execute(on).await?;
    Ok(())
}

/// Confirms those of a source; returns their number.
///
/// # Errors
/// The statement failed.
pub async fn approve(on: &mut Connection, source: &str) -> Result<u64, Error> {
    let approve = "UPDATE enrolments SET state = 'approved' WHERE source = $1 AND state = 'pending'";
    Ok(sql::query(approve).bind(source).execute(on).await?.rows_affected())
}

/// The sources of pending ones.
///
/// # Errors
/// The statement failed.
pub async fn pending(on: &mut Connection) -> Result<Vec<String>, Error> {
    let get = "SELECT DISTINCT source FROM enrolments WHERE state = 'pending'";
    sql::query_scalar(get).fetch_all(on).await
}

/// Deletes requests whose last arrival is older than a time, one time for confirmed and one for pending ones, and the
/// sources that nobody confirmed.
///
/// # Errors
/// The statements failed.
pub async fn forget(on: &mut Connection, approved: i64, pending: i64) -> Result<(), Error> {
    let forget =
        "DELETE FROM enrolments WHERE (state = 'approved' AND asked < $1) OR (state = 'pending' AND asked < $2)";
    sql::query(forget).bind(approved).bind(pending).execute(&mut *on).await?;
    let sources = "DELETE FROM sources WHERE state = 'pending' AND id NOT IN (SELECT source FROM enrolments)";
    sql::query(sources).execute(on).await?;
    Ok(())
}

/// Deletes one.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, request: &str) -> Result<(), Error> {
    sql::query("DELETE FROM enrolments WHERE request = $1").bind(request).execute(on).await?;
    Ok(())
}
