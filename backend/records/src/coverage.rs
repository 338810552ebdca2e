//! Table `coverage`: spans of sequences of machines that the sample store has accepted. Spans of a machine neither
//! overlap nor touch: [`add`] joins them.

use crate::{Connection, Error, sql};

/// The spans of a machine, first and last sequence of each, oldest first.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, source: &str) -> Result<Vec<(i64, i64)>, Error> {
    sql::query_as("SELECT first, last FROM coverage WHERE source = $1 ORDER BY first").bind(source).fetch_all(on).await
}

/// Adds a span, joined with those that it overlaps or touches. Call it inside a change, so that no other caller joins
/// at the same time.
///
/// # Errors
/// The statement failed, the machine does not exist, or the span ends before it begins.
pub async fn add(on: &mut Connection, source: &str, first: i64, last: i64) -> Result<(), Error> {
    // Nearly always the newest span is extended: one statement.
    let go_on = "UPDATE coverage SET last = $3 WHERE source = $1 AND first <= $2 AND last >= $4 AND last < $3
                 AND NOT EXISTS (SELECT 1 FROM coverage AS next
                                 WHERE next.source = $1 AND next.first > $2 AND next.first <= $5)";
    let go_on = sql::query(go_on).bind(source).bind(first).bind(last);
    let go_on = go_on.bind(first.saturating_sub(1)).bind(last.saturating_add(1));
    if go_on.execute(on).await?.rows_affected() == 1 {
        return Ok(());
    }
    let get = "SELECT first, last FROM coverage
               WHERE source = $1 AND first <= $3 AND last >= $2 ORDER BY first";
    let touching = sql::query_as(get).bind(source).bind(first.saturating_sub(1)).bind(last.saturating_add(1));
    let touching: Vec<(i64, i64)> = touching.fetch_all(on).await?;
    let whole = touching.iter().fold((first, last), |(first, last), span| (first.min(span.0), last.max(span.1)));
    if touching == [whole] {
        return Ok(());
    }
    let remove = "DELETE FROM coverage WHERE source = $1 AND first >= $2 AND first <= $3";
    sql::query(remove).bind(source).bind(whole.0).bind(whole.1).execute(on).await?;
    let put = "INSERT INTO coverage (source, first, last) VALUES ($1, $2, $3)";
    sql::query(put).bind(source).bind(whole.0).bind(whole.1).execute(on).await?;
    Ok(())
}

/// Drops spans below a sequence; a span across it is cut to start there.
///
/// # Errors
/// The statement failed.
pub async fn drop_below(on: &mut Connection, source: &str, first: i64) -> Result<(), Error> {
    sql::query("DELETE FROM coverage WHERE source = $1 AND last < $2").bind(source).bind(first).execute(on).await?;
    let cut = "UPDATE coverage SET first = $2 WHERE source = $1 AND first < $2";
    sql::query(cut).bind(source).bind(first).execute(on).await?;
    Ok(())
}
