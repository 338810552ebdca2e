//! Table `links`: the links of machines among several hubs.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A machine's link.
    pub struct LinkRow {
        /// Id of the machine.
        pub source: String,
        /// Id of the hub.
        pub hub: String,
        /// Since when.
        pub since: i64,
        /// Whether the hub's lease is valid; without it the link is void.
        pub alive: bool,
    }
}

/// Name of the lease with which a hub of this id shows that it is alive.
pub fn lease_of(hub: &str) -> String {
    format!("hub:{hub}")
}

/// Assigns the link of a machine to this hub, whichever hub had it before.
///
/// # Errors
/// The statement failed, or the machine does not exist.
pub async fn take(on: &mut Connection, source: &str, hub: &str, since: i64) -> Result<(), Error> {
    let take = "INSERT INTO links (source, hub, since) VALUES ($1, $2, $3)
                ON CONFLICT (source) DO UPDATE SET hub = excluded.hub, since = excluded.since";
    sql::query(take).bind(source).bind(hub).bind(since).execute(on).await?;
    Ok(())
}

/// Releases the link of a machine, if this hub still has it, taken no later than `since`.
///
/// # Errors
/// The statement failed.
pub async fn give_back(on: &mut Connection, source: &str, hub: &str, since: i64) -> Result<bool, Error> {
    let give_back = "DELETE FROM links WHERE source = $1 AND hub = $2 AND since <= $3";
    Ok(sql::query(give_back).bind(source).bind(hub).bind(since).execute(on).await?.rows_affected() == 1)
}

/// Releases all links of a hub.
///
/// # Errors
/// The statement failed.
pub async fn give_all_back(on: &mut Connection, hub: &str) -> Result<(), Error> {
    sql::query("DELETE FROM links WHERE hub = $1").bind(hub).execute(on).await?;
    Ok(())
}

/// All links, by machine.
///
/// # Errors
/// The statement failed.
pub async fn all(on: &mut Connection, now: i64) -> Result<Vec<LinkRow>, Error> {
    let get = "SELECT source, hub, since, EXISTS (
                   SELECT 1 FROM leases WHERE leases.name = 'hub:' || links.hub AND leases.until > $1) AS alive
               FROM links ORDER BY source";
    sql::query_as(get).bind(now).fetch_all(on).await
}

/// The link of one machine.
///
/// # Errors
/// The statement failed.
pub async fn find(on: &mut Connection, source: &str, now: i64) -> Result<Option<LinkRow>, Error> {
    let get = "SELECT source, hub, since, EXISTS (
                   SELECT 1 FROM leases WHERE leases.name = 'hub:' || links.hub AND leases.until > $2) AS alive
               FROM links WHERE source = $1";
    sql::query_as(get).bind(source).bind(now).fetch_optional(on).await
}

/// Hubs with valid leases: id, and the holder's display name.
///
/// # Errors
/// The statement failed.
pub async fn hubs(on: &mut Connection, now: i64) -> Result<Vec<(String, String)>, Error> {
    let get = "SELECT substr(name, 5), holder FROM leases WHERE name LIKE 'hub:%' AND until > $1 ORDER BY name";
    sql::query_as(get).bind(now).fetch_all(on).await
}

/// Deletes hubs whose leases ended before a time, and their links.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    sql::query("DELETE FROM leases WHERE name LIKE 'hub:%' AND until < $1").bind(before).execute(on).await?;
    let orphans = "DELETE FROM links WHERE since < $1
                   AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.name = 'hub:' || links.hub)";
    sql::query(orphans).bind(before).execute(on).await?;
    Ok(())
}
