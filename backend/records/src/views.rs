//! Table `views`: saved views of the page.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A saved view.
    pub struct View {
        /// 26 letters.
        pub id: String,
        /// Its team's id.
        pub team: String,
        /// The account that saved it; None if it is gone, or was a program.
        pub owner: Option<String>,
        /// The same as text.
        pub maker: String,
        /// `mine` or `team`.
        pub scope: String,
        /// Its name.
        pub name: String,
        /// The query of the page.
        pub query: String,
        /// Rises with each change.
        pub version: i64,
        /// When it was changed last.
        pub updated: i64,
    }
}

/// Those of a team that are shared with the team or an account's own, by name.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: &str, owner: Option<&str>) -> Result<Vec<View>, Error> {
    let get = "SELECT * FROM views WHERE team = $1 AND (scope = 'team' OR owner = $2) ORDER BY scope DESC, name, id";
    sql::query_as(get).bind(team).bind(owner).fetch_all(on).await
}

/// Number of views of a team, or of an account's own views in a team.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection, team: &str, owner: Option<&str>) -> Result<i64, Error> {
    match owner {
        None => {
            let get = "SELECT count(*) FROM views WHERE team = $1 AND scope = 'team'";
            sql::query_scalar(get).bind(team).fetch_one(on).await
        }
        Some(owner) => {
            let get = "SELECT count(*) FROM views WHERE team = $1 AND scope <> 'team' AND owner = $2";
            sql::query_scalar(get).bind(team).bind(owner).fetch_one(on).await
        }
    }
}

/// Those of an account in all teams, by their id.
///
/// # Errors
/// The statement failed.
pub async fn of_owner(on: &mut Connection, owner: &str) -> Result<Vec<View>, Error> {
    sql::query_as("SELECT * FROM views WHERE owner = $1 ORDER BY id").bind(owner).fetch_all(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<View>, Error> {
    sql::query_as("SELECT * FROM views WHERE id = $1").bind(id).fetch_optional(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, view: &View) -> Result<(), Error> {
    let add = "INSERT INTO views (id, team, owner, maker, scope, name, query, version, updated)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let query = sql::query(add).bind(&view.id).bind(&view.team).bind(&view.owner).bind(&view.maker).bind(&view.scope);
    query.bind(&view.name).bind(&view.query).bind(view.version).bind(view.updated).execute(on).await?;
    Ok(())
}

/// Changes one, if its version is still the previous one; returns whether it was.
///
/// # Errors
/// The statement failed.
pub async fn set(on: &mut Connection, view: &View) -> Result<bool, Error> {
    let set = "UPDATE views SET scope = $2, name = $3, query = $4, version = $5, updated = $6
               WHERE id = $1 AND version = $5 - 1";
    let query = sql::query(set).bind(&view.id).bind(&view.scope).bind(&view.name).bind(&view.query).bind(view.version);
    Ok(query.bind(view.updated).execute(on).await?.rows_affected() > 0)
}

/// Removes one.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM views WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}

/// Removes an account's own views in a team, or in all with None. The team's views stay, with another text for their
/// author.
///
/// # Errors
/// The statements failed.
pub async fn leave(on: &mut Connection, team: Option<&str>, owner: &str, maker: &str) -> Result<(), Error> {
    let own = "DELETE FROM views WHERE owner = $1 AND scope = 'mine' AND ($2 IS NULL OR team = $2)";
    sql::query(own).bind(owner).bind(team).execute(&mut *on).await?;
    let rest = "UPDATE views SET owner = NULL, maker = $3 WHERE owner = $1 AND ($2 IS NULL OR team = $2)";
    sql::query(rest).bind(owner).bind(team).bind(maker).execute(on).await?;
    Ok(())
}

/// Replaces the author's text of views without an account.
///
/// # Errors
/// The statement failed.
pub async fn rename(on: &mut Connection, maker: &str, instead: &str) -> Result<(), Error> {
    let set = "UPDATE views SET maker = $2 WHERE maker = $1 AND owner IS NULL";
    sql::query(set).bind(maker).bind(instead).execute(on).await?;
    Ok(())
}
