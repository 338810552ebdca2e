//! Table `shares`: links to one view. The code itself is not stored, only its SHA-256.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A share link.
    pub struct Share {
        /// 26 letters.
        pub id: String,
        /// SHA-256 of its code.
        pub hash: Vec<u8>,
        /// Its team's id.
        pub team: String,
        /// The account that made it.
        pub owner: String,
        /// The same as text.
        pub maker: String,
        /// Its name.
        pub name: String,
        /// The query of the page.
        pub query: String,
        /// Ids of its sources; JSON.
        pub sources: String,
        /// The span that it shows: both, or None while it is live.
        pub span_from: Option<i64>,
        /// See `span_from`.
        pub span_to: Option<i64>,
        /// The longest window while it is live, ms.
        pub live_window: Option<i64>,
        /// Note of its author.
        pub note: String,
        /// When it was made.
        pub made: i64,
        /// When it ends.
        pub ends: i64,
        /// Number of times that it was opened.
        pub opens: i64,
        /// When it was opened last.
        pub opened: Option<i64>,
    }
}

/// Valid ones of a team, newest first; only of one account if it is given.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: &str, owner: Option<&str>, now: i64) -> Result<Vec<Share>, Error> {
    let get = "SELECT * FROM shares WHERE team = $1 AND ($2 IS NULL OR owner = $2) AND ends > $3
               ORDER BY made DESC, id";
    sql::query_as(get).bind(team).bind(owner).bind(now).fetch_all(on).await
}

/// Those of an account in all teams, by their id.
///
/// # Errors
/// The statement failed.
pub async fn of_owner(on: &mut Connection, owner: &str) -> Result<Vec<Share>, Error> {
    sql::query_as("SELECT * FROM shares WHERE owner = $1 ORDER BY id").bind(owner).fetch_all(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<Share>, Error> {
    sql::query_as("SELECT * FROM shares WHERE id = $1").bind(id).fetch_optional(on).await
}

/// One by the hash of its code, if it is valid.
///
/// # Errors
/// The statement failed.
pub async fn by_hash(on: &mut Connection, hash: &[u8], now: i64) -> Result<Option<Share>, Error> {
    let get = "SELECT * FROM shares WHERE hash = $1 AND ends > $2";
    sql::query_as(get).bind(hash).bind(now).fetch_optional(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, share: &Share) -> Result<(), Error> {
    let add = "INSERT INTO shares (id, hash, team, owner, maker, name, query, sources, span_from, span_to, live_window,
               note, made, ends, opens, opened)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    let query = sql::query(add).bind(&share.id).bind(&share.hash).bind(&share.team).bind(&share.owner);
    let query = query.bind(&share.maker).bind(&share.name).bind(&share.query).bind(&share.sources);
    let query = query.bind(share.span_from).bind(share.span_to).bind(share.live_window).bind(&share.note);
    query.bind(share.made).bind(share.ends).bind(share.opens).bind(share.opened).execute(on).await?;
    Ok(())
}

/// Records an opening.
///
/// # Errors
/// The statement failed.
pub async fn opened(on: &mut Connection, id: &str, at: i64) -> Result<(), Error> {
    let set = "UPDATE shares SET opens = opens + 1, opened = $2 WHERE id = $1";
    sql::query(set).bind(id).bind(at).execute(on).await?;
    Ok(())
}

/// Revokes one.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM shares WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}

/// Revokes those of an account in a team; returns their ids.
///
/// # Errors
/// The statement failed.
pub async fn leave(on: &mut Connection, team: &str, owner: &str) -> Result<Vec<String>, Error> {
    let end = "DELETE FROM shares WHERE team = $1 AND owner = $2 RETURNING id";
    sql::query_scalar(end).bind(team).bind(owner).fetch_all(on).await
}

/// Deletes expired ones.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, now: i64) -> Result<(), Error> {
    sql::query("DELETE FROM shares WHERE ends <= $1").bind(now).execute(on).await?;
    Ok(())
}
