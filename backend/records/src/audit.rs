//! Table `audit`: who changed what. Rows are only added, and leave by age.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// One change, or one attempt.
    pub struct Entry {
        /// Its number, which rises; of no meaning where it is added.
        pub id: i64,
        /// When.
        pub t: i64,
        /// Who, as text: the row outlives the account.
        pub who: String,
        /// By what: a session, a key's id, the command line's uid.
        pub by: String,
        /// From where.
        pub network: String,
        /// What was done.
        pub action: String,
        /// In which team.
        pub team: Option<String>,
        /// To what.
        pub object: String,
        /// What it was.
        pub before: Option<String>,
        /// What it is.
        pub after: Option<String>,
        /// `ok`, or why not.
        pub result: String,
    }
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, entry: &Entry) -> Result<(), Error> {
    let add = "INSERT INTO audit (t, who, by, network, action, team, object, before, after, result)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let query = sql::query(add).bind(entry.t).bind(&entry.who).bind(&entry.by).bind(&entry.network);
    let query = query.bind(&entry.action).bind(&entry.team).bind(&entry.object).bind(&entry.before);
    query.bind(&entry.after).bind(&entry.result).execute(on).await?;
    Ok(())
}

/// Which rows are asked for; what is none chooses nothing.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this team, by id.
    pub team: Option<String>,
    /// By whom.
    pub who: Option<String>,
    /// The start of the action.
    pub action: Option<String>,
    /// To what.
    pub object: Option<String>,
    /// Not before, ms.
    pub from: Option<i64>,
    /// Not after, ms.
    pub to: Option<i64>,
    /// Older than the row of this number.
    pub before: Option<i64>,
}

/// The newest that a filter lets through.
///
/// # Errors
/// The statement failed.
pub async fn newest(on: &mut Connection, filter: &Filter, limit: i64) -> Result<Vec<Entry>, Error> {
    let get = "SELECT * FROM audit WHERE ($1 IS NULL OR team = $1) AND ($2 IS NULL OR who = $2)
               AND ($3 IS NULL OR substr(action, 1, length($3)) = $3) AND ($4 IS NULL OR object = $4)
               AND ($5 IS NULL OR t >= $5) AND ($6 IS NULL OR t <= $6) AND ($7 IS NULL OR id < $7)
               ORDER BY id DESC LIMIT $8";
    let query = sql::query_as(get).bind(&filter.team).bind(&filter.who).bind(&filter.action).bind(&filter.object);
    query.bind(filter.from).bind(filter.to).bind(filter.before).bind(limit).fetch_all(on).await
}

/// Those behind the row of a number, the oldest first.
///
/// # Errors
/// The statement failed.
pub async fn after(on: &mut Connection, id: i64, limit: i64) -> Result<Vec<Entry>, Error> {
    let get = "SELECT * FROM audit WHERE id > $1 ORDER BY id LIMIT $2";
    sql::query_as(get).bind(id).bind(limit).fetch_all(on).await
}

/// How many are behind the row of a number.
///
/// # Errors
/// The statement failed.
pub async fn count_after(on: &mut Connection, id: i64) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM audit WHERE id > $1").bind(id).fetch_one(on).await
}

/// Addresses in rows before a time that are not networks yet.
///
/// # Errors
/// The statement failed.
pub async fn addresses(on: &mut Connection, before: i64) -> Result<Vec<String>, Error> {
    let get = "SELECT DISTINCT network FROM audit WHERE t < $1 AND network LIKE '%.%.%.%' AND network NOT LIKE '%/%'
               LIMIT 10000";
    sql::query_scalar(get).bind(before).fetch_all(on).await
}

/// A network in place of an address, in rows before a time.
///
/// # Errors
/// The statement failed.
pub async fn blur(on: &mut Connection, before: i64, address: &str, network: &str) -> Result<(), Error> {
    let set = "UPDATE audit SET network = $3 WHERE t < $1 AND network = $2";
    sql::query(set).bind(before).bind(address).bind(network).execute(on).await?;
    Ok(())
}

/// Another name for somebody who asked to be forgotten, and for what their keys did; nothing in place of their address for
/// mail. The rows stay; how many were changed.
///
/// # Errors
/// The statements failed.
pub async fn erase(on: &mut Connection, name: &str, email: Option<&str>, instead: &str) -> Result<u64, Error> {
    let who = "UPDATE audit SET who = $2 || substr(who, length($1) + 1)
               WHERE who = $1 OR substr(who, 1, length($1) + 1) = $1 || '/'";
    let mut rows = 0;
    // A key of theirs stands there as "key NAME/WHAT FOR".
    for of in ["", "key "] {
        let (name, instead) = (format!("{of}{name}"), format!("{of}{instead}"));
        rows += sql::query(who).bind(&name).bind(&instead).execute(&mut *on).await?.rows_affected();
    }
    let object = "UPDATE audit SET object = $2 WHERE object = $1
                  AND (action LIKE 'account.%' OR action LIKE 'sign-%' OR action LIKE 'member.%'
                       OR action LIKE 'identity.%' OR action LIKE 'invite.%')";
    rows += sql::query(object).bind(name).bind(instead).execute(&mut *on).await?.rows_affected();
    // Whose key was made: "NAME/WHAT FOR: SCOPES".
    let key = "UPDATE audit SET after = $2 || substr(after, length($1) + 1)
               WHERE action = 'key.add' AND team IS NULL AND substr(after, 1, length($1) + 1) = $1 || '/'";
    rows += sql::query(key).bind(name).bind(instead).execute(&mut *on).await?.rows_affected();
    let mail = "UPDATE audit SET object = $2 WHERE object = $1 AND action LIKE 'invite.%'";
    rows += sql::query(mail).bind(email).bind(instead).execute(on).await?.rows_affected();
    Ok(rows)
}

/// Those that name somebody, the newest first.
///
/// # Errors
/// The statement failed.
pub async fn naming(on: &mut Connection, name: &str, limit: i64) -> Result<Vec<Entry>, Error> {
    let get = "SELECT * FROM audit WHERE who = $1 OR object = $1 ORDER BY id DESC LIMIT $2";
    sql::query_as(get).bind(name).bind(limit).fetch_all(on).await
}

/// Forgets what is older than a time.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    sql::query("DELETE FROM audit WHERE t < $1").bind(before).execute(on).await?;
    Ok(())
}
