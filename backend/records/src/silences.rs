//! Table `silences`: alerts whose notices are withheld for a while.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A silence.
    pub struct SilenceRow {
        /// 26 letters.
        pub id: String,
        /// Its team's id.
        pub team: String,
        /// Its author.
        pub maker: String,
        /// Labels and patterns that all must match; JSON.
        pub labels: String,
        /// From when.
        pub begins: i64,
        /// Until when.
        pub ends: i64,
        /// Reason.
        pub comment: String,
        /// Notices that it withheld.
        pub held: i64,
    }
}

/// Those of all teams, or of one by its id, that had not ended at a time: the latest end first.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: Option<&str>, since: i64, limit: i64) -> Result<Vec<SilenceRow>, Error> {
    let get = "SELECT * FROM silences WHERE ($1 IS NULL OR team = $1) AND ends > $2 ORDER BY ends DESC, id LIMIT $3";
    sql::query_as(get).bind(team).bind(since).bind(limit).fetch_all(on).await
}

/// Number of those of a team that have not ended.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection, team: &str, now: i64) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM silences WHERE team = $1 AND ends > $2")
        .bind(team)
        .bind(now)
        .fetch_one(on)
        .await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<SilenceRow>, Error> {
    sql::query_as("SELECT * FROM silences WHERE id = $1").bind(id).fetch_optional(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, silence: &SilenceRow) -> Result<(), Error> {
    let add = "INSERT INTO silences (id, team, maker, labels, begins, ends, comment, held)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let query = sql::query(add).bind(&silence.id).bind(&silence.team).bind(&silence.maker).bind(&silence.labels);
    query.bind(silence.begins).bind(silence.ends).bind(&silence.comment).bind(silence.held).execute(on).await?;
    Ok(())
}

/// Ends one at a time, if it has not ended by then; returns whether it did.
///
/// # Errors
/// The statement failed.
pub async fn end(on: &mut Connection, id: &str, at: i64) -> Result<bool, Error> {
    let set = "UPDATE silences SET ends = $2, begins = CASE WHEN begins > $2 THEN $2 ELSE begins END
               WHERE id = $1 AND ends > $2";
    Ok(sql::query(set).bind(id).bind(at).execute(on).await?.rows_affected() == 1)
}

/// Adds to the number of notices that it withheld.
///
/// # Errors
/// The statement failed.
pub async fn held(on: &mut Connection, id: &str, more: i64) -> Result<(), Error> {
    sql::query("UPDATE silences SET held = held + $2 WHERE id = $1").bind(id).bind(more).execute(on).await?;
    Ok(())
}

/// Replaces a maker's name.
///
/// # Errors
/// The statement failed.
pub async fn rename(on: &mut Connection, maker: &str, to: &str) -> Result<(), Error> {
    sql::query("UPDATE silences SET maker = $2 WHERE maker = $1").bind(maker).bind(to).execute(on).await?;
    Ok(())
}

/// Deletes those that ended before a time.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    sql::query("DELETE FROM silences WHERE ends < $1").bind(before).execute(on).await?;
    Ok(())
}
