//! Table `codes`: one-time codes that are shown once. The code itself is not stored, only its SHA-256.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A code.
    pub struct Code {
        /// SHA-256 of the code.
        pub hash: Vec<u8>,
        /// 26 letters, for lists.
        pub id: String,
        /// `setup`, `invite`, `reset` or `oidc`.
        pub kind: String,
        /// Account whose password it resets.
        pub account: Option<String>,
        /// The team that it invites to.
        pub team: Option<String>,
        /// Role of the invitation.
        pub role: Option<String>,
        /// The inviter; None for the command line.
        pub owner: Option<String>,
        /// The same as text.
        pub maker: String,
        /// The invited person.
        pub email: Option<String>,
        /// Further data; JSON.
        pub data: String,
        /// When it was made.
        pub made: i64,
        /// When it ends.
        pub ends: i64,
    }
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, code: &Code) -> Result<(), Error> {
    let add = "INSERT INTO codes (hash, id, kind, account, team, role, owner, maker, email, data, made, ends)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    let query = sql::query(add).bind(&code.hash).bind(&code.id).bind(&code.kind).bind(&code.account).bind(&code.team);
    let query = query.bind(&code.role).bind(&code.owner).bind(&code.maker).bind(&code.email).bind(&code.data);
    query.bind(code.made).bind(code.ends).execute(on).await?;
    Ok(())
}

/// Removes and returns a valid one, so that it works only once.
///
/// # Errors
/// The statement failed.
pub async fn take(on: &mut Connection, hash: &[u8], kind: &str, now: i64) -> Result<Option<Code>, Error> {
    let take = "DELETE FROM codes WHERE hash = $1 AND kind = $2 AND ends > $3 RETURNING *";
    sql::query_as(take).bind(hash).bind(kind).bind(now).fetch_optional(on).await
}

/// Valid ones of a team and a kind, newest first.
///
/// # Errors
/// The statement failed.
pub async fn of_team(on: &mut Connection, team: &str, kind: &str, now: i64) -> Result<Vec<Code>, Error> {
    let get = "SELECT * FROM codes WHERE team = $1 AND kind = $2 AND ends > $3 ORDER BY made DESC, id";
    sql::query_as(get).bind(team).bind(kind).bind(now).fetch_all(on).await
}

/// Number of valid ones of a kind.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection, kind: &str, now: i64) -> Result<i64, Error> {
    let count = "SELECT count(*) FROM codes WHERE kind = $1 AND ends > $2";
    sql::query_scalar(count).bind(kind).bind(now).fetch_one(on).await
}

/// Ends one by its id.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM codes WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}

/// Ends those that an account made for a team.
///
/// # Errors
/// The statement failed.
pub async fn end_of_owner(on: &mut Connection, team: &str, owner: &str) -> Result<(), Error> {
    sql::query("DELETE FROM codes WHERE team = $1 AND owner = $2").bind(team).bind(owner).execute(on).await?;
    Ok(())
}

/// Ends all of a kind, or only those of an account.
///
/// # Errors
/// The statement failed.
pub async fn end(on: &mut Connection, kind: &str, account: Option<&str>) -> Result<(), Error> {
    let end = "DELETE FROM codes WHERE kind = $1 AND ($2 IS NULL OR account = $2)";
    sql::query(end).bind(kind).bind(account).execute(on).await?;
    Ok(())
}

/// Deletes expired ones.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, now: i64) -> Result<(), Error> {
    sql::query("DELETE FROM codes WHERE ends <= $1").bind(now).execute(on).await?;
    Ok(())
}
