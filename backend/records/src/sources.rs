//! Tables `sources` and `aliases`: machines, and their former names.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A machine.
    pub struct Source {
        /// 26 letters that never change; for the hub's own machine, its host name.
        pub id: String,
        /// Its team's id.
        pub team: String,
        /// Unique.
        pub name: String,
        /// Labels of the join key and of admins; JSON.
        pub labels: String,
        /// `own` for the hub's own machine, `pending`, `active` or `revoked`.
        pub state: String,
        /// Removed for good after an hour without a link.
        pub ephemeral: bool,
        /// The name that it chose when it joined.
        pub by_name: Option<String>,
        /// A hash of its machine id.
        pub machine: Option<String>,
        /// Hashes of the addresses of its links; JSON.
        pub links: String,
        /// Its host name, as last reported.
        pub host: Option<String>,
        /// Operating system and processor.
        pub platform: Option<String>,
        /// Version of its agent.
        pub version: Option<String>,
        /// Further facts, as last reported; JSON.
        pub facts: Option<String>,
        /// When it joined.
        pub first_seen: i64,
        /// When it last sent data.
        pub last_seen: Option<i64>,
    }
}

/// Number of sources.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM sources").fetch_one(on).await
}

/// Those of a team, by name; of all teams with None.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: Option<&str>) -> Result<Vec<Source>, Error> {
    let get = "SELECT * FROM sources WHERE $1 IS NULL OR team = $1 ORDER BY name";
    sql::query_as(get).bind(team).fetch_all(on).await
}

/// The ids of those that a team sees.
///
/// # Errors
/// The statement failed.
pub async fn ids(on: &mut Connection, team: &str) -> Result<Vec<String>, Error> {
    let get = "SELECT id FROM grants JOIN sources ON id = source WHERE grants.team = $1 AND state <> 'pending'";
    sql::query_scalar(get).bind(team).fetch_all(on).await
}

/// Ids of ephemeral ones that sent nothing since this time, milliseconds since the Unix epoch.
///
/// # Errors
/// The statement failed.
pub async fn ended(on: &mut Connection, before: i64) -> Result<Vec<String>, Error> {
    let get = "SELECT id FROM sources WHERE ephemeral = TRUE AND coalesce(last_seen, first_seen) < $1";
    sql::query_scalar(get).bind(before).fetch_all(on).await
}

/// Id and team of each.
///
/// # Errors
/// The statement failed.
pub async fn homes(on: &mut Connection) -> Result<Vec<(String, String)>, Error> {
    sql::query_as("SELECT id, team FROM sources").fetch_all(on).await
}

/// Id, name and labels of each.
///
/// # Errors
/// The statement failed.
pub async fn called(on: &mut Connection) -> Result<Vec<(String, String, String)>, Error> {
    sql::query_as("SELECT id, name, labels FROM sources").fetch_all(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<Source>, Error> {
    sql::query_as("SELECT * FROM sources WHERE id = $1").bind(id).fetch_optional(on).await
}

/// One by its id, else its name, else a former name.
///
/// # Errors
/// The statement failed.
pub async fn find(on: &mut Connection, word: &str, now: i64) -> Result<Option<Source>, Error> {
    let find = "SELECT s.* FROM sources s WHERE s.id = $1 OR s.name = $1
                OR s.id = (SELECT source FROM aliases WHERE name = $1 AND until > $2)
                ORDER BY s.id = $1 DESC, s.name = $1 DESC LIMIT 1";
    sql::query_as(find).bind(word).bind(now).fetch_optional(on).await
}

/// Those of a team that have a machine's id and host name.
///
/// # Errors
/// The statement failed.
pub async fn of_machine(on: &mut Connection, team: &str, machine: &str, host: &str) -> Result<Vec<Source>, Error> {
    let get = "SELECT * FROM sources WHERE team = $1 AND machine = $2 AND host = $3 AND state = 'active'
               ORDER BY last_seen DESC NULLS LAST, id";
    sql::query_as(get).bind(team).bind(machine).bind(host).fetch_all(on).await
}

/// Those of a team with this self-chosen name.
///
/// # Errors
/// The statement failed.
pub async fn of_name(on: &mut Connection, team: &str, name: &str) -> Result<Vec<Source>, Error> {
    let get = "SELECT * FROM sources WHERE team = $1 AND by_name = $2 AND state = 'active' ORDER BY last_seen DESC NULLS LAST, id";
    sql::query_as(get).bind(team).bind(name).fetch_all(on).await
}

/// Whether a name, an id, or a former name that is still valid belongs to a source.
///
/// # Errors
/// The statement failed.
pub async fn is_taken(on: &mut Connection, name: &str, now: i64) -> Result<bool, Error> {
    let taken = "SELECT EXISTS (SELECT 1 FROM sources WHERE id = $1 OR name = $1)
                 OR EXISTS (SELECT 1 FROM aliases WHERE name = $1 AND until > $2)";
    sql::query_scalar(taken).bind(name).bind(now).fetch_one(on).await
}

/// Adds one, and grants it to its own team.
///
/// # Errors
/// The statements failed; [`Error::is_taken`] if the name is in use.
pub async fn add(on: &mut Connection, source: &Source) -> Result<(), Error> {
    let add = "INSERT INTO sources (id, team, name, labels, state, ephemeral, by_name, machine, links, host, platform,
               version, facts, first_seen, last_seen)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
    let query = sql::query(add).bind(&source.id).bind(&source.team).bind(&source.name).bind(&source.labels);
    let query = query.bind(&source.state).bind(source.ephemeral).bind(&source.by_name).bind(&source.machine);
    let query = query.bind(&source.links).bind(&source.host).bind(&source.platform).bind(&source.version);
    query.bind(&source.facts).bind(source.first_seen).bind(source.last_seen).execute(&mut *on).await?;
    crate::grants::add(on, &source.team, &source.id).await
}

/// Sets the state.
///
/// # Errors
/// The statement failed.
pub async fn set_state(on: &mut Connection, id: &str, state: &str) -> Result<(), Error> {
    sql::query("UPDATE sources SET state = $2 WHERE id = $1").bind(id).bind(state).execute(on).await?;
    Ok(())
}

/// Sets the labels; JSON.
///
/// # Errors
/// The statement failed.
pub async fn set_labels(on: &mut Connection, id: &str, labels: &str) -> Result<(), Error> {
    sql::query("UPDATE sources SET labels = $2 WHERE id = $1").bind(id).bind(labels).execute(on).await?;
    Ok(())
}

/// Renames one; its old name remains an alias until a time.
///
/// # Errors
/// The statements failed; [`Error::is_taken`] if the name is in use.
pub async fn rename(on: &mut Connection, id: &str, old: &str, new: &str, until: i64) -> Result<(), Error> {
    // The new name may be an alias of another source; it now belongs to this one.
    sql::query("DELETE FROM aliases WHERE name = $1").bind(new).execute(&mut *on).await?;
    let alias = "INSERT INTO aliases (name, source, until) VALUES ($1, $2, $3)
                 ON CONFLICT (name) DO UPDATE SET source = $2, until = $3";
    sql::query(alias).bind(old).bind(id).bind(until).execute(&mut *on).await?;
    sql::query("UPDATE sources SET name = $2 WHERE id = $1").bind(id).bind(new).execute(on).await?;
    Ok(())
}

/// Updates the identity of a machine that joined again.
///
/// # Errors
/// The statement failed.
pub async fn set_machine(
    on: &mut Connection,
    id: &str,
    machine: Option<&str>,
    links: &str,
    by_name: Option<&str>,
) -> Result<(), Error> {
    let set = "UPDATE sources SET machine = $2, links = $3, by_name = COALESCE($4, by_name) WHERE id = $1";
    sql::query(set).bind(id).bind(machine).bind(links).bind(by_name).execute(on).await?;
    Ok(())
}

/// Facts that a machine reports; absent ones are unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReportedFacts<'a> {
    /// Its host name.
    pub host: Option<&'a str>,
    /// Operating system and processor.
    pub platform: Option<&'a str>,
    /// Version of its agent.
    pub version: Option<&'a str>,
    /// Further facts; JSON.
    pub facts: Option<&'a str>,
}

/// Records received data.
///
/// # Errors
/// The statement failed.
pub async fn record_reception(on: &mut Connection, id: &str, at: i64, told: ReportedFacts<'_>) -> Result<(), Error> {
    let set = "UPDATE sources SET last_seen = $2, host = COALESCE($3, host), platform = COALESCE($4, platform),
               version = COALESCE($5, version), facts = COALESCE($6, facts) WHERE id = $1";
    let query = sql::query(set).bind(id).bind(at).bind(told.host).bind(told.platform).bind(told.version);
    query.bind(told.facts).execute(on).await?;
    Ok(())
}

/// Removes one, with its aliases, enrolments and eras.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM sources WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}

/// Deletes expired aliases.
///
/// # Errors
/// The statement failed.
pub async fn forget_aliases(on: &mut Connection, now: i64) -> Result<(), Error> {
    sql::query("DELETE FROM aliases WHERE until <= $1").bind(now).execute(on).await?;
    Ok(())
}
