//! Table `codes`: what is told once and works once. The code itself is nowhere, only its SHA-256.

use crate::row::row;
use crate::{Connection, Error};

row! {
    /// A code.
    pub struct Code {
        /// SHA-256 of it.
        pub hash: Vec<u8>,
        /// `setup`, `invite` or `reset`.
        pub kind: String,
        /// Whose password it resets.
        pub account: Option<String>,
        /// The team that it invites to.
        pub team: Option<String>,
        /// With which role.
        pub role: Option<String>,
        /// When it ends.
        pub ends: i64,
    }
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, code: &Code) -> Result<(), Error> {
    let add = "INSERT INTO codes (hash, kind, account, team, role, ends) VALUES ($1, $2, $3, $4, $5, $6)";
    let query = sqlx::query(add).bind(&code.hash).bind(&code.kind).bind(&code.account).bind(&code.team);
    query.bind(&code.role).bind(code.ends).execute(on).await?;
    Ok(())
}

/// Takes one that still holds: nobody else can take it.
///
/// # Errors
/// The statement failed.
pub async fn take(on: &mut Connection, hash: &[u8], kind: &str, now: i64) -> Result<Option<Code>, Error> {
    let take = "DELETE FROM codes WHERE hash = $1 AND kind = $2 AND ends > $3 RETURNING *";
    Ok(sqlx::query_as(take).bind(hash).bind(kind).bind(now).fetch_optional(on).await?)
}

/// Ends all of a kind, or those of an account alone.
///
/// # Errors
/// The statement failed.
pub async fn end(on: &mut Connection, kind: &str, account: Option<&str>) -> Result<(), Error> {
    let end = "DELETE FROM codes WHERE kind = $1 AND ($2 IS NULL OR account = $2)";
    sqlx::query(end).bind(kind).bind(account).execute(on).await?;
    Ok(())
}

/// Forgets those that are over.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, now: i64) -> Result<(), Error> {
    sqlx::query("DELETE FROM codes WHERE ends <= $1").bind(now).execute(on).await?;
    Ok(())
}
