//! Table `audit`: the log of changes with their actors. Rows are only added, and expire by age.

use crate::row::row;
use crate::{Connection, Error, sql};
use shared::role::Role;

row! {
    /// One change, or one attempt.
    pub struct AuditRow {
        /// Its number, which rises; ignored when it is added.
        pub id: i64,
        /// When.
        pub t: i64,
        /// Actor as text: the row outlives the account.
        pub who: String,
        /// Credential: a session, a key's id, the command line's uid.
        pub by: String,
        /// Network address of the actor.
        pub network: String,
        /// The action.
        pub action: String,
        /// Id of the team.
        pub team: Option<String>,
        /// Object of the action.
        pub object: String,
        /// Previous value.
        pub before: Option<String>,
        /// New value.
        pub after: Option<String>,
        /// `ok`, or the reason of the failure.
        pub result: String,
    }
}

/// Adds one.
///
/// # Errors
/// The statement failed.
pub async fn add(on: &mut Connection, entry: &AuditRow) -> Result<(), Error> {
    let add = "INSERT INTO audit (t, who, by, network, action, team, object, before, after, result)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let query = sql::query(add).bind(entry.t).bind(&entry.who).bind(&entry.by).bind(&entry.network);
    let query = query.bind(&entry.action).bind(&entry.team).bind(&entry.object).bind(&entry.before);
    query.bind(&entry.after).bind(&entry.result).execute(on).await?;
    Ok(())
}

/// Filter for rows; None in a field does not filter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of this team, by id.
    pub team: Option<String>,
    /// Actor.
    pub who: Option<String>,
    /// Prefix of the action.
    pub action: Option<String>,
    /// Object of the action.
    pub object: Option<String>,
    /// Not before, ms.
    pub from: Option<i64>,
    /// Not after, ms.
    pub to: Option<i64>,
    /// Older than the row of this number.
    pub before: Option<i64>,
}

/// The newest ones that match a filter.
///
/// # Errors
/// The statement failed.
pub async fn newest(on: &mut Connection, filter: &Filter, limit: i64) -> Result<Vec<AuditRow>, Error> {
    let get = "SELECT * FROM audit WHERE ($1 IS NULL OR team = $1) AND ($2 IS NULL OR who = $2)
               AND ($3 IS NULL OR substr(action, 1, length($3)) = $3) AND ($4 IS NULL OR object = $4)
               AND ($5 IS NULL OR t >= $5) AND ($6 IS NULL OR t <= $6) AND ($7 IS NULL OR id < $7)
               ORDER BY id DESC LIMIT $8";
    let query = sql::query_as(get).bind(&filter.team).bind(&filter.who).bind(&filter.action).bind(&filter.object);
    query.bind(filter.from).bind(filter.to).bind(filter.before).bind(limit).fetch_all(on).await
}

/// Those after the row of a number, oldest first.
///
/// # Errors
/// The statement failed.
pub async fn after(on: &mut Connection, id: i64, limit: i64) -> Result<Vec<AuditRow>, Error> {
    let get = "SELECT * FROM audit WHERE id > $1 ORDER BY id LIMIT $2";
    sql::query_as(get).bind(id).bind(limit).fetch_all(on).await
}

/// Number of rows after the row of a number.
///
/// # Errors
/// The statement failed.
pub async fn count_after(on: &mut Connection, id: i64) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM audit WHERE id > $1").bind(id).fetch_one(on).await
}

/// Addresses in rows before a time that have not been shortened to networks.
///
/// # Errors
/// The statement failed.
pub async fn addresses(on: &mut Connection, before: i64) -> Result<Vec<String>, Error> {
    let get = "SELECT DISTINCT network FROM audit WHERE t < $1 AND network LIKE '%.%.%.%' AND network NOT LIKE '%/%'
               LIMIT 10000";
    sql::query_scalar(get).bind(before).fetch_all(on).await
}

/// Replaces an address by its network, in rows before a time.
///
/// # Errors
/// The statement failed.
pub async fn blur(on: &mut Connection, before: i64, address: &str, network: &str) -> Result<(), Error> {
    let set = "UPDATE audit SET network = $3 WHERE t < $1 AND network = $2";
    sql::query(set).bind(before).bind(address).bind(network).execute(on).await?;
    Ok(())
}

/// Replaces the name of an erased person, also in actions of their keys, and removes their e-mail address. The rows
/// stay; returns the number of changed ones.
///
/// # Errors
/// The statements failed.
pub async fn erase(on: &mut Connection, name: &str, email: Option<&str>, instead: &str) -> Result<u64, Error> {
    let who = "UPDATE audit SET who = $2 || substr(who, length($1) + 1)
               WHERE who = $1 OR substr(who, 1, length($1) + 1) = $1 || '/'";
    let mut rows = 0;
    // The row of a person's key has "key NAME/PURPOSE".
    for of in ["", "key "] {
        let (name, instead) = (format!("{of}{name}"), format!("{of}{instead}"));
        rows += sql::query(who).bind(&name).bind(&instead).execute(&mut *on).await?.rows_affected();
    }
    // Their names on machines: "ROLE, logins: NAMES".
    let logins = "UPDATE audit SET after = $2
                  WHERE object = $1 AND action LIKE 'member.%' AND after LIKE $2 || ', logins: %'";
    for role in Role::ALL {
        sql::query(logins).bind(name).bind(role.text()).execute(&mut *on).await?;
    }
    let object = "UPDATE audit SET object = $2 WHERE object = $1
                  AND (action LIKE 'account.%' OR action LIKE 'sign-%' OR action LIKE 'member.%'
                       OR action LIKE 'identity.%' OR action LIKE 'invite.%')";
    rows += sql::query(object).bind(name).bind(instead).execute(&mut *on).await?.rows_affected();
    // The owner of a created key: "NAME/PURPOSE: SCOPES".
    let key = "UPDATE audit SET after = $2 || substr(after, length($1) + 1)
               WHERE action = 'key.add' AND team IS NULL AND substr(after, 1, length($1) + 1) = $1 || '/'";
    rows += sql::query(key).bind(name).bind(instead).execute(&mut *on).await?.rows_affected();
    let mail = "UPDATE audit SET object = $2 WHERE object = $1 AND action LIKE 'invite.%'";
    rows += sql::query(mail).bind(email).bind(instead).execute(on).await?.rows_affected();
    Ok(rows)
}

/// Those that contain the name of a person, newest first. A team, a machine or a view may have the same name.
///
/// # Errors
/// The statement failed.
pub async fn naming(on: &mut Connection, name: &str, limit: i64) -> Result<Vec<AuditRow>, Error> {
    let get = "SELECT * FROM audit WHERE who = $1 OR (object = $1
               AND (action LIKE 'account.%' OR action LIKE 'sign-%' OR action LIKE 'member.%'
                    OR action LIKE 'identity.%' OR action LIKE 'invite.%')) ORDER BY id DESC LIMIT $2";
    sql::query_as(get).bind(name).bind(limit).fetch_all(on).await
}

/// Deletes rows older than a time, but never the last row: SQLite would give its number to the next one, which the
/// log's file and its readers would take for a row that they have.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    let delete = "DELETE FROM audit WHERE t < $1 AND id < (SELECT max(id) FROM audit)";
    sql::query(delete).bind(before).execute(on).await?;
    Ok(())
}
