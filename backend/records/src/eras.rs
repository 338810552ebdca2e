//! Tables `eras` and `erased`: corrections of a source's clock, and removed spans of it.

use crate::row::row;
use crate::{Connection, Error, sql};

/// Maximum number of corrections of one source. Older ones matter only to ticks that are fetched very late.
const MAX_ERAS: i64 = 1_000;

row! {
    /// A correction of the stamps of a source, from a sequence on.
    pub struct Era {
        /// The first sequence, its bits as a signed number.
        pub first: i64,
        /// Correction that is added to stamps, milliseconds.
        pub shift: i64,
        /// Lead of its clock, milliseconds.
        pub skew: i64,
        /// Round trip of that measurement, milliseconds.
        pub rtt: i64,
    }
}

/// Those of a source.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, source: &str) -> Result<Vec<Era>, Error> {
    let get = "SELECT first, shift, skew, rtt FROM eras WHERE source = $1 ORDER BY first";
    sql::query_as(get).bind(source).fetch_all(on).await
}

/// Sets one, and forgets the oldest ones above the maximum: the clock of some machines is set again and again.
///
/// # Errors
/// The statement failed, or the source does not exist.
pub async fn put(on: &mut Connection, source: &str, era: &Era) -> Result<(), Error> {
    let put = "INSERT INTO eras (source, first, shift, skew, rtt) VALUES ($1, $2, $3, $4, $5)
               ON CONFLICT (source, first) DO UPDATE SET shift = $3, skew = $4, rtt = $5";
    let query = sql::query(put).bind(source).bind(era.first).bind(era.shift).bind(era.skew).bind(era.rtt);
    query.execute(on).await?;
    let forget = "DELETE FROM eras WHERE source = $1 AND first <= (
                      SELECT first FROM eras WHERE source = $1 ORDER BY first DESC LIMIT 1 OFFSET $2)";
    sql::query(forget).bind(source).bind(MAX_ERAS).execute(on).await?;
    Ok(())
}

/// The spans of sequences that were removed of a source, as the bits of signed numbers.
///
/// # Errors
/// The statement failed.
pub async fn erased(on: &mut Connection, source: &str) -> Result<Vec<(i64, i64)>, Error> {
    sql::query_as("SELECT first, last FROM erased WHERE source = $1").bind(source).fetch_all(on).await
}

/// Sources that were removed entirely, and do not exist any more.
///
/// # Errors
/// The statement failed.
pub async fn removed(on: &mut Connection) -> Result<Vec<String>, Error> {
    let get = "SELECT DISTINCT source FROM erased WHERE last = -1 AND source NOT IN (SELECT id FROM sources)";
    sql::query_scalar(get).fetch_all(on).await
}

/// Records a removed span of sequences of a source.
///
/// # Errors
/// The statement failed.
pub async fn erase(on: &mut Connection, source: &str, first: i64, last: i64) -> Result<(), Error> {
    let put = "INSERT INTO erased (source, first, last) VALUES ($1, $2, $3) ON CONFLICT (source, first) DO UPDATE SET last = $3";
    sql::query(put).bind(source).bind(first).bind(last).execute(on).await?;
    Ok(())
}
