//! Table `rules`: alert rules of people and programs.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A rule of a person or program.
    pub struct RuleRow {
        /// 26 letters.
        pub id: String,
        /// Its team's id.
        pub team: String,
        /// The account that made it; None if it is gone, or was a program.
        pub owner: Option<String>,
        /// The same as text.
        pub maker: String,
        /// Its name, unique in its team.
        pub name: String,
        /// The rule itself, a [`shared::alert::Rule`] as JSON.
        pub body: String,
        /// Rises with each change.
        pub version: i64,
        /// When it was changed last.
        pub updated: i64,
    }
}

/// Those of all teams, or of one by its id: by team and name.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: Option<&str>) -> Result<Vec<RuleRow>, Error> {
    let get = "SELECT * FROM rules WHERE ($1 IS NULL OR team = $1) ORDER BY team, name";
    sql::query_as(get).bind(team).fetch_all(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<RuleRow>, Error> {
    sql::query_as("SELECT * FROM rules WHERE id = $1").bind(id).fetch_optional(on).await
}

/// Number of rules of a team.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection, team: &str) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM rules WHERE team = $1").bind(team).fetch_one(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] if the team has one with this name.
pub async fn add(on: &mut Connection, rule: &RuleRow) -> Result<(), Error> {
    let add = "INSERT INTO rules (id, team, owner, maker, name, body, version, updated)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let query = sql::query(add).bind(&rule.id).bind(&rule.team).bind(&rule.owner).bind(&rule.maker);
    let query = query.bind(&rule.name).bind(&rule.body).bind(rule.version).bind(rule.updated);
    query.execute(on).await?;
    Ok(())
}

/// Changes name, body and time of one, if its version is the previous one; returns whether it was.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] if the team has another with this name.
pub async fn set(on: &mut Connection, rule: &RuleRow) -> Result<bool, Error> {
    let set = "UPDATE rules SET name = $2, body = $3, version = $4, updated = $5 WHERE id = $1 AND version = $6";
    let query = sql::query(set).bind(&rule.id).bind(&rule.name).bind(&rule.body).bind(rule.version);
    Ok(query.bind(rule.updated).bind(rule.version - 1).execute(on).await?.rows_affected() == 1)
}

/// Removes one; returns whether it existed.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<bool, Error> {
    Ok(sql::query("DELETE FROM rules WHERE id = $1").bind(id).execute(on).await?.rows_affected() == 1)
}

/// Removes the owner of an account's rules, and replaces its name: in one team or in all.
///
/// # Errors
/// The statement failed.
pub async fn leave(on: &mut Connection, team: Option<&str>, owner: &str, maker: &str) -> Result<(), Error> {
    let set = "UPDATE rules SET owner = NULL, maker = $3 WHERE owner = $2 AND ($1 IS NULL OR team = $1)";
    sql::query(set).bind(team).bind(owner).bind(maker).execute(on).await?;
    Ok(())
}

/// Replaces a maker's name.
///
/// # Errors
/// The statement failed.
pub async fn rename(on: &mut Connection, maker: &str, to: &str) -> Result<(), Error> {
    sql::query("UPDATE rules SET maker = $2 WHERE maker = $1").bind(maker).bind(to).execute(on).await?;
    Ok(())
}
