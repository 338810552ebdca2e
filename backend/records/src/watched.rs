//! Table `watched`: the hub that evaluates rules for each machine, among several hubs. It follows `links`, and is
//! unchanged when a link ends.

use crate::{Connection, Error, sql};

/// Assigns machines with a link to this hub to this hub's rule evaluation. Returns those that no hub evaluated before
/// and that exist since a time, milliseconds since the Unix epoch.
///
/// # Errors
/// The statements failed.
pub async fn follow_links(on: &mut Connection, hub: &str, new_since: i64) -> Result<Vec<String>, Error> {
    let new = "SELECT links.source FROM links JOIN sources ON sources.id = links.source
               WHERE links.hub = $1 AND sources.first_seen >= $2
               AND NOT EXISTS (SELECT 1 FROM watched WHERE watched.source = links.source) ORDER BY links.source";
    let new = sql::query_scalar(new).bind(hub).bind(new_since).fetch_all(&mut *on).await?;
    let take = "INSERT INTO watched (source, hub) SELECT source, hub FROM links WHERE hub = $1
                ON CONFLICT (source) DO UPDATE SET hub = excluded.hub WHERE watched.hub <> excluded.hub";
    sql::query(take).bind(hub).execute(on).await?;
    Ok(new)
}

/// Assigns one machine to this hub's rule evaluation, whichever hub had it before.
///
/// # Errors
/// The statement failed, or there is no such machine.
pub async fn take(on: &mut Connection, source: &str, hub: &str) -> Result<(), Error> {
    let take =
        "INSERT INTO watched (source, hub) VALUES ($1, $2) ON CONFLICT (source) DO UPDATE SET hub = excluded.hub";
    sql::query(take).bind(source).bind(hub).execute(on).await?;
    Ok(())
}

/// Assigns machines without an evaluating hub with a valid lease to this hub; returns their number. A later link
/// reassigns them.
///
/// # Errors
/// The statement failed.
pub async fn take_left(on: &mut Connection, hub: &str, now: i64) -> Result<u64, Error> {
    let new = "INSERT INTO watched (source, hub) SELECT id, $1 FROM sources
               WHERE state = 'active' AND NOT EXISTS (SELECT 1 FROM watched WHERE watched.source = sources.id)
               AND NOT EXISTS (SELECT 1 FROM links WHERE links.source = sources.id)";
    let new = sql::query(new).bind(hub).execute(&mut *on).await?.rows_affected();
    let left = "UPDATE watched SET hub = $1 WHERE hub <> $1 AND NOT EXISTS (
                    SELECT 1 FROM leases WHERE leases.name = 'hub:' || watched.hub AND leases.until > $2)";
    Ok(new + sql::query(left).bind(hub).bind(now).execute(on).await?.rows_affected())
}

/// The ids of the machines that a hub evaluates.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, hub: &str) -> Result<Vec<String>, Error> {
    sql::query_scalar("SELECT source FROM watched WHERE hub = $1 ORDER BY source").bind(hub).fetch_all(on).await
}
