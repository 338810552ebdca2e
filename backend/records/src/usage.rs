//! Table `usage_days`: usage by day, team, and machine or key.

use crate::{Connection, Error, sql};

/// Key of a value: day (days since the Unix epoch), team, kind (`day`, `source` or `key`), subject, and measure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Used {
    /// Days since the Unix epoch.
    pub day: i64,
    /// The team's id.
    pub team: String,
    /// `day` for the team as a whole, `source` or `key`.
    pub kind: String,
    /// Id of the source or key; empty for `day`.
    pub subject: String,
    /// The measure.
    pub measure: String,
}

/// Adds to a value.
///
/// # Errors
/// The statement failed, or the team does not exist.
pub async fn add(on: &mut Connection, of: &Used, value: f64) -> Result<(), Error> {
    let add = "INSERT INTO usage_days (day, team, kind, subject, measure, value) VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (day, team, kind, subject, measure) DO UPDATE SET value = usage_days.value + excluded.value";
    let query = sql::query(add).bind(of.day).bind(&of.team).bind(&of.kind).bind(&of.subject).bind(&of.measure);
    query.bind(value).execute(on).await?;
    Ok(())
}

/// Sets a value, unless the existing one is larger.
///
/// # Errors
/// The statement failed, or the team does not exist.
pub async fn raise(on: &mut Connection, of: &Used, value: f64) -> Result<(), Error> {
    let raise = "INSERT INTO usage_days (day, team, kind, subject, measure, value) VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT (day, team, kind, subject, measure) DO UPDATE SET value = excluded.value
                 WHERE excluded.value > usage_days.value";
    let query = sql::query(raise).bind(of.day).bind(&of.team).bind(&of.kind).bind(&of.subject).bind(&of.measure);
    query.bind(value).execute(on).await?;
    Ok(())
}

/// Those of a team, or of all with None, of one kind, between two days, both included: by day, team and subject.
///
/// # Errors
/// The statement failed.
pub async fn list(
    on: &mut Connection,
    team: Option<&str>,
    kind: &str,
    (from, to): (i64, i64),
    limit: i64,
) -> Result<Vec<(Used, f64)>, Error> {
    let get = "SELECT day, team, kind, subject, measure, value FROM usage_days
               WHERE ($1 IS NULL OR team = $1) AND kind = $2 AND day >= $3 AND day <= $4
               ORDER BY day, team, subject, measure LIMIT $5";
    let query = sql::query_as(get).bind(team).bind(kind).bind(from).bind(to).bind(limit);
    let rows: Vec<(i64, String, String, String, String, f64)> = query.fetch_all(on).await?;
    let used = |(day, team, kind, subject, measure, value)| (Used { day, team, kind, subject, measure }, value);
    Ok(rows.into_iter().map(used).collect())
}

/// Deletes those older than a day.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    sql::query("DELETE FROM usage_days WHERE day < $1").bind(before).execute(on).await?;
    Ok(())
}
