//! Table `keys`: keys of programs. The secret itself is not stored, only its SHA-256.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A key.
    pub struct Key {
        /// 12 letters, the part of it that lists show.
        pub id: String,
        /// SHA-256 of its secret.
        pub hash: Vec<u8>,
        /// `p` for a person, `s` for a service, `a` for an agent, `j` for joining.
        pub kind: String,
        /// Its name.
        pub name: String,
        /// Its team's id.
        pub team: String,
        /// The account that owns it.
        pub owner: Option<String>,
        /// Its scopes, separated by blanks.
        pub scopes: String,
        /// The source that it is bound to.
        pub source: Option<String>,
        /// Settings of a join key; JSON.
        pub settings: String,
        /// Number of further machines that may join by it; None: any number.
        pub uses: Option<i64>,
        /// Number of machines that have joined by it.
        pub joined: i64,
        /// When it was made.
        pub made: i64,
        /// When it ends by itself.
        pub ends: Option<i64>,
        /// When it was revoked.
        pub ended: Option<i64>,
        /// Reason: `ended`, `revoked`, `replaced`, `removed` or `leaked`.
        pub why: Option<String>,
        /// When it was last used, to the hour.
        pub used: Option<i64>,
        /// Network of the last use.
        pub network: Option<String>,
        /// The service that owns it.
        pub service: Option<String>,
    }
}

/// Prefix of the name of a join key from the hub's configuration.
pub const CONFIGURED: &str = "configuration: ";

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<Key>, Error> {
    sql::query_as("SELECT * FROM keys WHERE id = $1").bind(id).fetch_optional(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, key: &Key) -> Result<(), Error> {
    let add = "INSERT INTO keys (id, hash, kind, name, team, owner, scopes, source, settings, uses, joined, made, ends,
               ended, why, used, network, service)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";
    let query = sql::query(add).bind(&key.id).bind(&key.hash).bind(&key.kind).bind(&key.name).bind(&key.team);
    let query = query.bind(&key.owner).bind(&key.scopes).bind(&key.source).bind(&key.settings).bind(key.uses);
    let query = query.bind(key.joined).bind(key.made).bind(key.ends).bind(key.ended).bind(&key.why).bind(key.used);
    query.bind(&key.network).bind(&key.service).execute(on).await?;
    Ok(())
}

/// Valid ones of a team and some kinds, newest first; of all teams with None.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: Option<&str>, kinds: &str, now: i64) -> Result<Vec<Key>, Error> {
    let get = "SELECT * FROM keys WHERE ($1 IS NULL OR team = $1) AND $2 LIKE '%' || kind || '%' AND ended IS NULL
               AND (ends IS NULL OR ends > $3) ORDER BY made DESC, id";
    sql::query_as(get).bind(team).bind(kinds).bind(now).fetch_all(on).await
}

/// Valid ones of a person, newest first.
///
/// # Errors
/// The statement failed.
pub async fn of_owner(on: &mut Connection, owner: &str, now: i64) -> Result<Vec<Key>, Error> {
    let get = "SELECT * FROM keys WHERE owner = $1 AND kind = 'p' AND ended IS NULL AND (ends IS NULL OR ends > $2)
               ORDER BY made DESC, id";
    sql::query_as(get).bind(owner).bind(now).fetch_all(on).await
}

/// Ends those of a person; returns their ids.
///
/// # Errors
/// The statement failed.
pub async fn end_of_owner(on: &mut Connection, owner: &str, now: i64) -> Result<Vec<String>, Error> {
    let end = "UPDATE keys SET ended = $2, why = 'ended' WHERE owner = $1 AND ended IS NULL RETURNING id";
    sql::query_scalar(end).bind(owner).bind(now).fetch_all(on).await
}

/// Removes the keys of a removed team; those of people move to another team.
///
/// # Errors
/// The statements failed.
pub async fn team_removed(on: &mut Connection, team: &str, other: &str) -> Result<(), Error> {
    sql::query("UPDATE keys SET team = $2 WHERE team = $1 AND kind = 'p'")
        .bind(team)
        .bind(other)
        .execute(&mut *on)
        .await?;
    sql::query("DELETE FROM keys WHERE team = $1").bind(team).execute(on).await?;
    Ok(())
}

/// Valid keys of agents, with their sources.
///
/// # Errors
/// The statement failed.
pub async fn of_agents(on: &mut Connection) -> Result<Vec<(String, String)>, Error> {
    let get = "SELECT source, id FROM keys WHERE kind = 'a' AND ended IS NULL AND source IS NOT NULL";
    sql::query_as(get).fetch_all(on).await
}

/// Ends one that was not ended; returns whether there was one.
///
/// # Errors
/// The statement failed.
pub async fn end(on: &mut Connection, id: &str, now: i64, why: &str) -> Result<bool, Error> {
    let end = "UPDATE keys SET ended = $2, why = $3 WHERE id = $1 AND ended IS NULL";
    Ok(sql::query(end).bind(id).bind(now).bind(why).execute(on).await?.rows_affected() > 0)
}

/// Ends those of a source; returns their ids.
///
/// # Errors
/// The statement failed.
pub async fn end_of_source(on: &mut Connection, source: &str, now: i64, why: &str) -> Result<Vec<String>, Error> {
    let end = "UPDATE keys SET ended = $2, why = $3 WHERE source = $1 AND kind = 'a' AND ended IS NULL RETURNING id";
    sql::query_scalar(end).bind(source).bind(now).bind(why).fetch_all(on).await
}

/// Marks all keys of a source as those of a removed source.
///
/// # Errors
/// The statement failed.
pub async fn source_removed(on: &mut Connection, source: &str) -> Result<(), Error> {
    let set = "UPDATE keys SET why = 'removed' WHERE source = $1 AND kind = 'a' AND ended IS NOT NULL";
    sql::query(set).bind(source).execute(on).await?;
    Ok(())
}

/// Counts a machine that joined by it, and takes one use; returns whether there was one left.
///
/// # Errors
/// The statement failed.
pub async fn join(on: &mut Connection, id: &str) -> Result<bool, Error> {
    let join = "UPDATE keys SET uses = uses - 1, joined = joined + 1 WHERE id = $1 AND (uses IS NULL OR uses > 0)";
    Ok(sql::query(join).bind(id).execute(on).await?.rows_affected() > 0)
}

/// Sets the settings for machines that join by it; JSON.
///
/// # Errors
/// The statement failed.
pub async fn set_settings(on: &mut Connection, id: &str, settings: &str) -> Result<(), Error> {
    sql::query("UPDATE keys SET settings = $2 WHERE id = $1").bind(id).bind(settings).execute(on).await?;
    Ok(())
}

/// Records a use.
///
/// # Errors
/// The statement failed.
pub async fn used(on: &mut Connection, id: &str, at: i64, network: &str) -> Result<(), Error> {
    let used = "UPDATE keys SET used = $2, network = $3 WHERE id = $1";
    sql::query(used).bind(id).bind(at).bind(network).execute(on).await?;
    Ok(())
}

/// Deletes those that ended before a time, except those of the configuration, which would be created again.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    let forget = "DELETE FROM keys WHERE (ended < $1 OR ends < $1) AND name NOT LIKE $2";
    let standing = format!("{CONFIGURED}%");
    sql::query(forget).bind(before).bind(standing.as_str()).execute(on).await?;
    Ok(())
}
