//! Table `grants`: machines that teams see.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A machine that a team sees.
    pub struct Granted {
        /// The source's id.
        pub id: String,
        /// Its name.
        pub name: String,
        /// The id of the team whose join key it used.
        pub home: String,
    }
}

/// Grants a source to a team.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, team: &str, source: &str) -> Result<(), Error> {
    let add = "INSERT INTO grants (team, source) VALUES ($1, $2) ON CONFLICT (team, source) DO NOTHING";
    sql::query(add).bind(team).bind(source).execute(on).await?;
    Ok(())
}

/// Revokes the grant of a source to a team.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, team: &str, source: &str) -> Result<(), Error> {
    sql::query("DELETE FROM grants WHERE team = $1 AND source = $2").bind(team).bind(source).execute(on).await?;
    Ok(())
}

/// The ids of the teams that see a source.
///
/// # Errors
/// The statement failed.
pub async fn teams(on: &mut Connection, source: &str) -> Result<Vec<String>, Error> {
    let get = "SELECT team FROM grants WHERE source = $1 ORDER BY team";
    sql::query_scalar(get).bind(source).fetch_all(on).await
}

/// The machines that a team sees, by name.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: &str) -> Result<Vec<Granted>, Error> {
    let get = "SELECT s.id, s.name, s.team AS home FROM grants g JOIN sources s ON s.id = g.source
               WHERE g.team = $1 AND s.state <> 'pending' ORDER BY s.name";
    sql::query_as(get).bind(team).fetch_all(on).await
}
