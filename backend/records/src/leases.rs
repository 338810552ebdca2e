//! Table `leases`: exclusive tasks among several hubs, with their holders.

use crate::{Connection, Error, sql};

/// Takes or keeps a lease until a time, if nobody else has it now; returns whether it is held.
///
/// # Errors
/// The statement failed.
pub async fn take(on: &mut Connection, name: &str, holder: &str, (now, until): (i64, i64)) -> Result<bool, Error> {
    let take = "INSERT INTO leases (name, holder, until) VALUES ($1, $2, $4)
                ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
                WHERE leases.holder = excluded.holder OR leases.until <= $3";
    let query = sql::query(take).bind(name).bind(holder).bind(now).bind(until);
    Ok(query.execute(on).await?.rows_affected() == 1)
}

/// Releases a lease.
///
/// # Errors
/// The statement failed.
pub async fn give_back(on: &mut Connection, name: &str, holder: &str) -> Result<(), Error> {
    sql::query("DELETE FROM leases WHERE name = $1 AND holder = $2").bind(name).bind(holder).execute(on).await?;
    Ok(())
}
