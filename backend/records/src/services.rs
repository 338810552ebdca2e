//! Table `services`: accounts of programs.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// An account of a program.
    pub struct Service {
        /// 26 letters.
        pub id: String,
        /// Its team's id.
        pub team: String,
        /// Unique in the team.
        pub name: String,
        /// Maximum role of its keys: `viewer`, `member` or `admin`.
        pub role: String,
        /// `active` or `disabled`.
        pub state: String,
        /// When it was made.
        pub made: i64,
    }
}

/// Those of a team, by name.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: &str) -> Result<Vec<Service>, Error> {
    sql::query_as("SELECT * FROM services WHERE team = $1 ORDER BY name").bind(team).fetch_all(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<Service>, Error> {
    sql::query_as("SELECT * FROM services WHERE id = $1").bind(id).fetch_optional(on).await
}

/// One of a team by its id, else its name.
///
/// # Errors
/// The statement failed.
pub async fn find(on: &mut Connection, team: &str, word: &str) -> Result<Option<Service>, Error> {
    let find = "SELECT * FROM services WHERE team = $1 AND (id = $2 OR name = $2) ORDER BY id = $2 DESC LIMIT 1";
    sql::query_as(find).bind(team).bind(word).fetch_optional(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] if the name is in use.
pub async fn add(on: &mut Connection, service: &Service) -> Result<(), Error> {
    let add = "INSERT INTO services (id, team, name, role, state, made) VALUES ($1, $2, $3, $4, $5, $6)";
    let query = sql::query(add).bind(&service.id).bind(&service.team).bind(&service.name).bind(&service.role);
    query.bind(&service.state).bind(service.made).execute(on).await?;
    Ok(())
}

/// Sets the role of one, and whether its keys are valid.
///
/// # Errors
/// The statement failed.
pub async fn set(on: &mut Connection, id: &str, role: &str, state: &str) -> Result<(), Error> {
    let set = "UPDATE services SET role = $2, state = $3 WHERE id = $1";
    sql::query(set).bind(id).bind(role).bind(state).execute(on).await?;
    Ok(())
}

/// Removes one with its keys.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM services WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}
