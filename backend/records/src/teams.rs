//! Tables `teams` and `members`.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A team.
    pub struct Team {
        /// 26 letters.
        pub id: String,
        /// Unique.
        pub name: String,
        /// Settings by its admins; JSON.
        pub settings: String,
    }
}

row! {
    /// A member of a team.
    pub struct Member {
        /// The account's id.
        pub id: String,
        /// Its name.
        pub name: String,
        /// `viewer`, `member` or `admin`.
        pub role: String,
        /// `active` or `disabled`.
        pub state: String,
        /// Names of users on machines; JSON.
        pub logins: String,
        /// When a session of it was used last.
        pub seen: Option<i64>,
    }
}

row! {
    /// Role of an account in a team.
    pub struct Membership {
        /// The team's id.
        pub team: String,
        /// The team's name.
        pub name: String,
        /// The account's id.
        pub account: String,
        /// `viewer`, `member` or `admin`.
        pub role: String,
    }
}

/// All, by name.
///
/// # Errors
/// The statement failed.
pub async fn all(on: &mut Connection) -> Result<Vec<Team>, Error> {
    sql::query_as("SELECT id, name, settings FROM teams ORDER BY name").fetch_all(on).await
}

/// One by its id or its name.
///
/// # Errors
/// The statement failed.
pub async fn find(on: &mut Connection, word: &str) -> Result<Option<Team>, Error> {
    let find = "SELECT id, name, settings FROM teams WHERE id = $1 OR name = $1 ORDER BY id = $1 DESC LIMIT 1";
    sql::query_as(find).bind(word).fetch_optional(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] if the name is in use.
pub async fn add(on: &mut Connection, team: &Team) -> Result<(), Error> {
    let add = "INSERT INTO teams (id, name, settings) VALUES ($1, $2, $3)";
    sql::query(add).bind(&team.id).bind(&team.name).bind(&team.settings).execute(on).await?;
    Ok(())
}

/// Sets the name and the settings of one.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] if the name is in use.
pub async fn set(on: &mut Connection, team: &Team) -> Result<(), Error> {
    let set = "UPDATE teams SET name = $2, settings = $3 WHERE id = $1";
    sql::query(set).bind(&team.id).bind(&team.name).bind(&team.settings).execute(on).await?;
    Ok(())
}

/// Removes one with its members, grants, services, invitations, views and links; its keys and machines are removed
/// before.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM teams WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}

/// The people of a team, by name.
///
/// # Errors
/// The statement failed.
pub async fn members(on: &mut Connection, team: &str) -> Result<Vec<Member>, Error> {
    let get = "SELECT a.id, a.name, m.role, a.state, m.logins,
               (SELECT MAX(s.seen) FROM sessions s WHERE s.account = a.id) AS seen
               FROM members m JOIN accounts a ON a.id = m.account WHERE m.team = $1 ORDER BY a.name";
    sql::query_as(get).bind(team).fetch_all(on).await
}

/// Sets the user names of a member on machines; JSON.
///
/// # Errors
/// The statement failed.
pub async fn set_logins(on: &mut Connection, team: &str, account: &str, logins: &str) -> Result<(), Error> {
    let set = "UPDATE members SET logins = $3 WHERE team = $1 AND account = $2";
    sql::query(set).bind(team).bind(account).bind(logins).execute(on).await?;
    Ok(())
}

/// The memberships of an account, by the teams' names; of all accounts with None.
///
/// # Errors
/// The statement failed.
pub async fn memberships(on: &mut Connection, account: Option<&str>) -> Result<Vec<Membership>, Error> {
    let get = "SELECT team, name, account, role FROM members JOIN teams ON teams.id = team
               WHERE $1 IS NULL OR account = $1 ORDER BY name, account";
    sql::query_as(get).bind(account).fetch_all(on).await
}

/// Sets the role of an account in a team; None removes it from the team.
///
/// # Errors
/// The statement failed.
pub async fn set_role(on: &mut Connection, team: &str, account: &str, role: Option<&str>) -> Result<(), Error> {
    let query = match role {
        Some(role) => sql::query(
            "INSERT INTO members (team, account, role) VALUES ($1, $2, $3)
             ON CONFLICT (team, account) DO UPDATE SET role = $3",
        )
        .bind(team)
        .bind(account)
        .bind(role),
        None => sql::query("DELETE FROM members WHERE team = $1 AND account = $2").bind(team).bind(account),
    };
    query.execute(on).await?;
    Ok(())
}
