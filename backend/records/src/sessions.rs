//! Table `sessions`: signed-in sessions. The token itself is not stored, only its SHA-256.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A signed-in session.
    pub struct Session {
        /// SHA-256 of the token.
        pub id_hash: Vec<u8>,
        /// Id of its account.
        pub account: String,
        /// Its sign-in method: `password`, `code`, `oidc`, `github` or `proxy`.
        pub kind: String,
        /// When it began.
        pub made: i64,
        /// When the password was last confirmed.
        pub proved: i64,
        /// When it was used last, to the minute.
        pub seen: i64,
        /// Its latest end.
        pub ends: i64,
        /// Network of its last use.
        pub network: String,
        /// User agent of the browser or program, shortened; empty if there is none.
        pub agent: String,
    }
}

/// One by the hash of its token.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id_hash: &[u8]) -> Result<Option<Session>, Error> {
    sql::query_as("SELECT * FROM sessions WHERE id_hash = $1").bind(id_hash).fetch_optional(on).await
}

/// Those of an account, the newest first.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, account: &str) -> Result<Vec<Session>, Error> {
    let get = "SELECT * FROM sessions WHERE account = $1 ORDER BY made DESC, id_hash";
    sql::query_as(get).bind(account).fetch_all(on).await
}

/// Begins one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, session: &Session) -> Result<(), Error> {
    let add = "INSERT INTO sessions (id_hash, account, kind, made, proved, seen, ends, network, agent)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let query = sql::query(add).bind(&session.id_hash).bind(&session.account).bind(&session.kind).bind(session.made);
    let query = query.bind(session.proved).bind(session.seen).bind(session.ends).bind(&session.network);
    query.bind(&session.agent).execute(on).await?;
    Ok(())
}

/// Sets the user agent.
///
/// # Errors
/// The statement failed.
pub async fn set_agent(on: &mut Connection, id_hash: &[u8], agent: &str) -> Result<(), Error> {
    sql::query("UPDATE sessions SET agent = $2 WHERE id_hash = $1").bind(id_hash).bind(agent).execute(on).await?;
    Ok(())
}

/// Records a use.
///
/// # Errors
/// The statement failed.
pub async fn seen(on: &mut Connection, id_hash: &[u8], at: i64, network: &str) -> Result<(), Error> {
    let seen = "UPDATE sessions SET seen = $2, network = $3 WHERE id_hash = $1";
    sql::query(seen).bind(id_hash).bind(at).bind(network).execute(on).await?;
    Ok(())
}

/// Records a confirmation of the password.
///
/// # Errors
/// The statement failed.
pub async fn proved(on: &mut Connection, id_hash: &[u8], at: i64) -> Result<(), Error> {
    sql::query("UPDATE sessions SET proved = $2 WHERE id_hash = $1").bind(id_hash).bind(at).execute(on).await?;
    Ok(())
}

/// Ends one; returns whether there was one.
///
/// # Errors
/// The statement failed.
pub async fn end(on: &mut Connection, id_hash: &[u8]) -> Result<bool, Error> {
    let ended = sql::query("DELETE FROM sessions WHERE id_hash = $1").bind(id_hash).execute(on).await?;
    Ok(ended.rows_affected() > 0)
}

/// Ends all of an account but one.
///
/// # Errors
/// The statement failed.
pub async fn end_all(on: &mut Connection, account: &str, but: Option<&[u8]>) -> Result<(), Error> {
    let end = "DELETE FROM sessions WHERE account = $1 AND ($2 IS NULL OR id_hash <> $2)";
    sql::query(end).bind(account).bind(but).execute(on).await?;
    Ok(())
}

/// Ends the oldest of an account beyond a number; returns the hashes of the ended ones.
///
/// # Errors
/// The statement failed.
pub async fn end_oldest(on: &mut Connection, account: &str, keep: i64) -> Result<Vec<Vec<u8>>, Error> {
    let end = "DELETE FROM sessions WHERE id_hash IN
               (SELECT id_hash FROM sessions WHERE account = $1 ORDER BY made DESC, id_hash LIMIT 1000000 OFFSET $2)
               RETURNING id_hash";
    sql::query_scalar(end).bind(account).bind(keep).fetch_all(on).await
}

/// Deletes expired ones: by their latest end, or not used since `seen`.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, now: i64, seen: i64) -> Result<(), Error> {
    sql::query("DELETE FROM sessions WHERE ends <= $1 OR seen <= $2").bind(now).bind(seen).execute(on).await?;
    Ok(())
}
