//! Tables `accounts` and `identities`: people, and their sign-in identities.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A person.
    pub struct Account {
        /// 26 letters.
        pub id: String,
        /// Unique, in lower case.
        pub name: String,
        /// E-mail address.
        pub email: Option<String>,
        /// Acts as admin in every team.
        pub hub_admin: bool,
        /// `active` or `disabled`.
        pub state: String,
        /// Increases whenever sessions must be checked again.
        pub revision: i64,
        /// When it was made.
        pub created: i64,
    }
}

row! {
    /// A sign-in identity of an account, without the secret.
    pub struct Identity {
        /// 26 letters.
        pub id: String,
        /// `password`, `oidc`, `github` or `proxy`.
        pub kind: String,
        /// Its issuer.
        pub issuer: String,
        /// Its subject ID at the issuer.
        pub subject: String,
    }
}

/// Number of accounts.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM accounts").fetch_one(on).await
}

/// Number of hub admins that may sign in.
///
/// # Errors
/// The statement failed.
pub async fn hub_admins(on: &mut Connection) -> Result<i64, Error> {
    let count = "SELECT count(*) FROM accounts WHERE hub_admin AND state = 'active'";
    sql::query_scalar(count).fetch_one(on).await
}

/// All, by name.
///
/// # Errors
/// The statement failed.
pub async fn all(on: &mut Connection) -> Result<Vec<Account>, Error> {
    sql::query_as("SELECT * FROM accounts ORDER BY name").fetch_all(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn by_id(on: &mut Connection, id: &str) -> Result<Option<Account>, Error> {
    sql::query_as("SELECT * FROM accounts WHERE id = $1").bind(id).fetch_optional(on).await
}

/// One by its name.
///
/// # Errors
/// The statement failed.
pub async fn by_name(on: &mut Connection, name: &str) -> Result<Option<Account>, Error> {
    sql::query_as("SELECT * FROM accounts WHERE name = $1").bind(name).fetch_optional(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] when the name is.
pub async fn add(on: &mut Connection, account: &Account) -> Result<(), Error> {
    let add = "INSERT INTO accounts (id, name, email, hub_admin, state, revision, created)
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let query = sql::query(add).bind(&account.id).bind(&account.name).bind(&account.email).bind(account.hub_admin);
    query.bind(&account.state).bind(account.revision).bind(account.created).execute(on).await?;
    Ok(())
}

/// Sets the flag and the state of one.
///
/// # Errors
/// The statement failed.
pub async fn set(on: &mut Connection, id: &str, hub_admin: bool, state: &str) -> Result<(), Error> {
    let set = "UPDATE accounts SET hub_admin = $2, state = $3, revision = revision + 1 WHERE id = $1";
    sql::query(set).bind(id).bind(hub_admin).bind(state).execute(on).await?;
    Ok(())
}

/// Sets the e-mail address of one.
///
/// # Errors
/// The statement failed.
pub async fn set_email(on: &mut Connection, id: &str, email: Option<&str>) -> Result<(), Error> {
    sql::query("UPDATE accounts SET email = $2 WHERE id = $1").bind(id).bind(email).execute(on).await?;
    Ok(())
}

/// The identities of an account.
///
/// # Errors
/// The statement failed.
pub async fn identities(on: &mut Connection, account: &str) -> Result<Vec<Identity>, Error> {
    let get = "SELECT id, kind, issuer, subject FROM identities WHERE account = $1 ORDER BY kind, id";
    sql::query_as(get).bind(account).fetch_all(on).await
}

/// The account of an identity.
///
/// # Errors
/// The statement failed.
pub async fn by_identity(on: &mut Connection, issuer: &str, subject: &str) -> Result<Option<Account>, Error> {
    let get = "SELECT accounts.* FROM accounts JOIN identities ON identities.account = accounts.id
               WHERE identities.issuer = $1 AND identities.subject = $2";
    sql::query_as(get).bind(issuer).bind(subject).fetch_optional(on).await
}

/// Adds an external identity: its kind, its issuer, and the person's subject ID there.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] when it is another's.
pub async fn add_identity(
    on: &mut Connection,
    id: &str,
    account: &str,
    (kind, issuer, subject): (&str, &str, &str),
) -> Result<(), Error> {
    let add = "INSERT INTO identities (id, account, kind, issuer, subject, data) VALUES ($1, $2, $3, $4, $5, '{}')";
    sql::query(add).bind(id).bind(account).bind(kind).bind(issuer).bind(subject).execute(on).await?;
    Ok(())
}

/// Sets the data of an external identity from its issuer; JSON. Identities of kind password are excluded.
///
/// # Errors
/// The statement failed.
pub async fn set_said(on: &mut Connection, (issuer, subject): (&str, &str), data: &str) -> Result<(), Error> {
    let set = "UPDATE identities SET data = $3 WHERE issuer = $1 AND subject = $2 AND kind <> 'password'";
    sql::query(set).bind(issuer).bind(subject).bind(data).execute(on).await?;
    Ok(())
}

/// The data of an account from the issuers of its identities, with its id; with None, of all accounts. JSON.
///
/// # Errors
/// The statement failed.
pub async fn list_claims(on: &mut Connection, account: Option<&str>) -> Result<Vec<(String, String)>, Error> {
    let get = "SELECT account, data FROM identities
               WHERE ($1 IS NULL OR account = $1) AND kind <> 'password' AND data <> '{}' ORDER BY account, id";
    sql::query_as(get).bind(account).fetch_all(on).await
}

/// Removes an identity.
///
/// # Errors
/// The statement failed.
pub async fn remove_identity(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM identities WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}

/// Removes one, with its identities, sessions, keys and memberships.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<(), Error> {
    sql::query("DELETE FROM accounts WHERE id = $1").bind(id).execute(on).await?;
    Ok(())
}

/// The hash of an account's password, as a PHC string.
///
/// # Errors
/// The statement failed.
pub async fn password(on: &mut Connection, account: &str) -> Result<Option<String>, Error> {
    let get = "SELECT data FROM identities WHERE account = $1 AND kind = 'password'";
    sql::query_scalar(get).bind(account).fetch_optional(on).await
}

/// Sets the hash of an account's password.
///
/// # Errors
/// The statement failed.
pub async fn set_password(on: &mut Connection, id: &str, account: &str, hash: &str) -> Result<(), Error> {
    let set = "INSERT INTO identities (id, account, kind, issuer, subject, data)
               VALUES ($1, $2, 'password', 'password', $2, $3) ON CONFLICT (issuer, subject) DO UPDATE SET data = $3";
    sql::query(set).bind(id).bind(account).bind(hash).execute(on).await?;
    Ok(())
}

row! {
    /// Notices that an account wants about the runs of its logins, and its address.
    pub struct Tells {
        /// The account's id.
        pub id: String,
        /// E-mail address, if it is verified; see [`vouch_email`].
        pub email: Option<String>,
        /// Notices of finished runs.
        pub tell_finished: bool,
        /// Notices of crashed runs.
        pub tell_crashed: bool,
    }
}

/// The notices that accounts want, for accounts that may sign in: one by its id, or all that want any or have made a
/// rule.
///
/// # Errors
/// The statement failed.
pub async fn tells(on: &mut Connection, id: Option<&str>) -> Result<Vec<Tells>, Error> {
    let get =
        "SELECT id, CASE WHEN lower(email) = lower(vouched_email) THEN email END AS email, tell_finished, tell_crashed
               FROM accounts WHERE state = 'active' AND (id = $1 OR ($1 IS NULL AND (tell_finished OR tell_crashed
               OR EXISTS (SELECT 1 FROM rules WHERE rules.owner = accounts.id)))) ORDER BY id";
    sql::query_as(get).bind(id).fetch_all(on).await
}

/// Sets whether an account wants notices of finished and of crashed runs.
///
/// # Errors
/// The statement failed.
pub async fn set_tells(on: &mut Connection, id: &str, (finished, crashed): (bool, bool)) -> Result<(), Error> {
    let set = "UPDATE accounts SET tell_finished = $2, tell_crashed = $3 WHERE id = $1";
    sql::query(set).bind(id).bind(finished).bind(crashed).execute(on).await?;
    Ok(())
}

/// Stores the e-mail address of an account that a source other than the account verified. It becomes the account's
/// address if it has none.
///
/// # Errors
/// The statement failed.
pub async fn vouch_email(on: &mut Connection, id: &str, email: Option<&str>) -> Result<(), Error> {
    let set = "UPDATE accounts SET vouched_email = $2, email = coalesce(email, $2) WHERE id = $1 AND $2 IS NOT NULL";
    sql::query(set).bind(id).bind(email).execute(on).await?;
    Ok(())
}
