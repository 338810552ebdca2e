//! Table `channels`: targets of notices.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A target of notices.
    pub struct ChannelRow {
        /// 26 letters.
        pub id: String,
        /// Its team's id.
        pub team: String,
        /// Its author.
        pub maker: String,
        /// Unique in its team.
        pub name: String,
        /// Kind of sink.
        pub kind: String,
        /// Displayable part of its address.
        pub target: String,
        /// Settings that are not secret; JSON.
        pub settings: String,
        /// Secret settings, encrypted.
        pub sealed: Option<Vec<u8>>,
        /// Whether it receives notices of rules that name no channel.
        pub is_default: bool,
        /// When a test was sent last.
        pub tested: Option<i64>,
        /// When it was changed last.
        pub updated: i64,
    }
}

/// The kind of a channel to one person: a row that a notice needs, with the account's id. It is no channel of a team.
pub const OWN_KIND: &str = "me";

/// Those of all teams, or of one by its id: by team and name.
///
/// # Errors
/// The statement failed.
pub async fn list(on: &mut Connection, team: Option<&str>) -> Result<Vec<ChannelRow>, Error> {
    let get = "SELECT * FROM channels WHERE ($1 IS NULL OR team = $1) AND kind <> 'me' ORDER BY team, name";
    sql::query_as(get).bind(team).fetch_all(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<ChannelRow>, Error> {
    sql::query_as("SELECT * FROM channels WHERE id = $1 AND kind <> 'me'").bind(id).fetch_optional(on).await
}

/// Number of channels of a team.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection, team: &str) -> Result<i64, Error> {
    sql::query_scalar("SELECT count(*) FROM channels WHERE team = $1 AND kind <> 'me'").bind(team).fetch_one(on).await
}

/// Adds one.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] if the team has one with this name.
pub async fn add(on: &mut Connection, channel: &ChannelRow) -> Result<(), Error> {
    let add = "INSERT INTO channels (id, team, maker, name, kind, target, settings, sealed, is_default, updated)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let query = sql::query(add).bind(&channel.id).bind(&channel.team).bind(&channel.maker).bind(&channel.name);
    let query = query.bind(&channel.kind).bind(&channel.target).bind(&channel.settings);
    query.bind(channel.sealed.as_deref()).bind(channel.is_default).bind(channel.updated).execute(on).await?;
    Ok(())
}

/// Ensures a row for an account, so that a notice can refer to it.
///
/// # Errors
/// The statement failed.
pub async fn have_own(on: &mut Connection, account: &str, team: &str, now: i64) -> Result<(), Error> {
    let add = "INSERT INTO channels (id, team, maker, name, kind, target, settings, is_default, updated)
               VALUES ($1, $2, '', $3, 'me', '', '{}', FALSE, $4) ON CONFLICT (id) DO NOTHING";
    // No team's channel has a name with a control character.
    let name = format!("\u{1f}{account}");
    sql::query(add).bind(account).bind(team).bind(&name).bind(now).execute(on).await?;
    Ok(())
}

/// Removes the rows of accounts that no notice refers to any more.
///
/// # Errors
/// The statement failed.
pub async fn forget_own(on: &mut Connection) -> Result<(), Error> {
    let remove = "DELETE FROM channels WHERE kind = 'me'
                  AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.channel = channels.id)";
    sql::query(remove).execute(on).await?;
    Ok(())
}

/// Changes all fields of one, except its team and maker.
///
/// # Errors
/// The statement failed; [`Error::is_taken`] if the team has another with this name.
pub async fn set(on: &mut Connection, channel: &ChannelRow) -> Result<(), Error> {
    let set = "UPDATE channels SET name = $2, kind = $3, target = $4, settings = $5, sealed = $6,
               is_default = $7, updated = $8 WHERE id = $1";
    let query = sql::query(set).bind(&channel.id).bind(&channel.name).bind(&channel.kind).bind(&channel.target);
    let query = query.bind(&channel.settings).bind(channel.sealed.as_deref());
    query.bind(channel.is_default).bind(channel.updated).execute(on).await?;
    Ok(())
}

/// Records a test now, if there was none since a time; returns whether it may be sent. A test in the future is one before
/// the clock was set back.
///
/// # Errors
/// The statement failed.
pub async fn test(on: &mut Connection, id: &str, now: i64, since: i64) -> Result<bool, Error> {
    let set = "UPDATE channels SET tested = $2 WHERE id = $1 AND (tested IS NULL OR tested <= $3 OR tested > $2)";
    Ok(sql::query(set).bind(id).bind(now).bind(since).execute(on).await?.rows_affected() == 1)
}

/// Replaces a maker's name.
///
/// # Errors
/// The statement failed.
pub async fn rename(on: &mut Connection, maker: &str, to: &str) -> Result<(), Error> {
    sql::query("UPDATE channels SET maker = $2 WHERE maker = $1").bind(maker).bind(to).execute(on).await?;
    Ok(())
}

/// Removes one with its notices; returns whether it existed.
///
/// # Errors
/// The statement failed.
pub async fn remove(on: &mut Connection, id: &str) -> Result<bool, Error> {
    Ok(sql::query("DELETE FROM channels WHERE id = $1").bind(id).execute(on).await?.rows_affected() == 1)
}
