//! Table `meta`: facts of the database itself.

use crate::{Connection, Error, sql};

/// A value.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, key: &str) -> Result<Option<String>, Error> {
    sql::query_scalar("SELECT value FROM meta WHERE key = $1").bind(key).fetch_optional(on).await
}

/// Sets a value.
///
/// # Errors
/// The statement failed.
pub async fn put(on: &mut Connection, key: &str, value: &str) -> Result<(), Error> {
    let put = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2";
    sql::query(put).bind(key).bind(value).execute(on).await?;
    Ok(())
}

/// Bytes of the database.
///
/// # Errors
/// The statement failed.
pub async fn bytes(on: &mut Connection) -> Result<i64, Error> {
    let get = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
    let query = sql::query_scalar(get).on_postgres("SELECT pg_database_size(current_database())");
    query.fetch_one(on).await
}
