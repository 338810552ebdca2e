//! Table `outbox`: notices, from their creation until a while after their delivery. A sender takes one with a lease,
//! and never before earlier ones of its group are done.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// A notice to one channel.
    pub struct OutboxRow {
        /// The same in each attempt.
        pub id: String,
        /// The channel's id.
        pub channel: String,
        /// The group that it is about.
        pub group_key: String,
        /// The order within the group.
        pub seq: i64,
        /// `firing`, `resolved`, `digest` or `test`.
        pub kind: String,
        /// Its title.
        pub title: String,
        /// The notice itself, a [`shared::alert::Notice`] as JSON.
        pub body: String,
        /// When it was written.
        pub made: i64,
        /// `waiting`, `sent`, `failed`, or `folded` into a newer one.
        pub state: String,
        /// Number of attempts.
        pub tries: i64,
        /// When the next attempt may be made.
        pub next: i64,
        /// End of the sender's lease.
        pub lease: Option<i64>,
        /// Holder of the lease.
        pub holder: Option<String>,
        /// When the last attempt was made.
        pub tried: Option<i64>,
        /// Result of that attempt, in a sentence.
        pub words: String,
    }
}

row! {
    /// State of the deliveries of a channel.
    pub struct ChannelFigures {
        /// The channel's id.
        pub channel: String,
        /// Queued notices.
        pub waiting: i64,
        /// When the oldest of them was queued.
        pub oldest: Option<i64>,
        /// Notices that were accepted since the requested time.
        pub sent: i64,
        /// Notices that were dropped since then.
        pub failed: i64,
    }
}

/// Queues one; an existing one with the same id is unchanged.
///
/// # Errors
/// The statement failed, or there is no such channel.
pub async fn add(on: &mut Connection, notice: &OutboxRow) -> Result<(), Error> {
    let add = "INSERT INTO outbox (id, channel, group_key, seq, kind, title, body, made, state, tries, next, words)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', 0, $9, '') ON CONFLICT (id) DO NOTHING";
    let query = sql::query(add).bind(&notice.id).bind(&notice.channel).bind(&notice.group_key).bind(notice.seq);
    let query = query.bind(&notice.kind).bind(&notice.title).bind(&notice.body).bind(notice.made);
    query.bind(notice.next).execute(on).await?;
    Ok(())
}

/// Leases the next one until a time: the first queued one of its group, from a channel with fewer than `at_once` leased
/// ones. One whose lease has expired can be leased again. No pause and no lease is longer than an hour: one that ends
/// more than 61 min from now is from before the clock was set back, and does not count.
///
/// # Errors
/// The statement failed.
pub async fn lease(
    on: &mut Connection,
    holder: &str,
    (now, until): (i64, i64),
    at_once: i64,
) -> Result<Option<OutboxRow>, Error> {
    let take = "UPDATE outbox SET lease = $3, holder = $1, tries = tries + 1 WHERE id = (
               SELECT mine.id FROM outbox AS mine
               WHERE mine.state = 'waiting' AND (mine.next <= $2 OR mine.next > $2 + 3660000)
               AND (mine.lease IS NULL OR mine.lease <= $2 OR mine.lease > $2 + 3660000)
               AND NOT EXISTS (SELECT 1 FROM outbox AS before WHERE before.channel = mine.channel
                               AND before.group_key = mine.group_key AND before.state = 'waiting'
                               AND before.seq < mine.seq)
               AND (SELECT count(*) FROM outbox AS busy WHERE busy.channel = mine.channel
                    AND busy.state = 'waiting' AND busy.lease > $2 AND busy.lease <= $2 + 3660000) < $4
               ORDER BY mine.next, mine.made, mine.id LIMIT 1) RETURNING *";
    let on_postgres = "UPDATE outbox SET lease = $3, holder = $1, tries = tries + 1 WHERE id = (
               SELECT mine.id FROM outbox AS mine
               WHERE mine.state = 'waiting' AND (mine.next <= $2 OR mine.next > $2 + 3660000)
               AND (mine.lease IS NULL OR mine.lease <= $2 OR mine.lease > $2 + 3660000)
               AND NOT EXISTS (SELECT 1 FROM outbox AS before WHERE before.channel = mine.channel
                               AND before.group_key = mine.group_key AND before.state = 'waiting'
                               AND before.seq < mine.seq)
               AND (SELECT count(*) FROM outbox AS busy WHERE busy.channel = mine.channel
                    AND busy.state = 'waiting' AND busy.lease > $2 AND busy.lease <= $2 + 3660000) < $4
               ORDER BY mine.next, mine.made, mine.id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *";
    let query = sql::query_as(take).on_postgres(on_postgres).bind(holder).bind(now).bind(until).bind(at_once);
    query.fetch_optional(on).await
}

/// When the oldest queued one was written.
///
/// # Errors
/// The statement failed.
pub async fn oldest(on: &mut Connection) -> Result<Option<i64>, Error> {
    sql::query_scalar("SELECT min(made) FROM outbox WHERE state = 'waiting'").fetch_one(on).await
}

/// Deletes those of a group before a number that are not queued any more.
///
/// # Errors
/// The statement failed.
pub async fn forget_done(on: &mut Connection, of: (&str, &str), seq: i64) -> Result<(), Error> {
    let remove = "DELETE FROM outbox WHERE channel = $1 AND group_key = $2 AND seq < $3 AND state <> 'waiting'";
    sql::query(remove).bind(of.0).bind(of.1).bind(seq).execute(on).await?;
    Ok(())
}

/// Marks one as accepted or dropped: `sent` or `failed`. Only for the holder of its lease; returns whether the caller
/// was.
///
/// # Errors
/// The statement failed.
pub async fn finish(
    on: &mut Connection,
    (id, holder): (&str, &str),
    state: &str,
    words: &str,
    at: i64,
) -> Result<bool, Error> {
    let set = "UPDATE outbox SET state = $3, words = $4, tried = $5, lease = NULL, holder = NULL
               WHERE id = $1 AND holder = $2 AND state = 'waiting'";
    let query = sql::query(set).bind(id).bind(holder).bind(state).bind(words).bind(at);
    Ok(query.execute(on).await?.rows_affected() == 1)
}

/// Schedules a retry of one at a time. Only for the holder of its lease; returns whether the caller was.
///
/// # Errors
/// The statement failed.
pub async fn again(
    on: &mut Connection,
    (id, holder): (&str, &str),
    next: i64,
    words: &str,
    at: i64,
) -> Result<bool, Error> {
    let set = "UPDATE outbox SET next = $3, words = $4, tried = $5, lease = NULL, holder = NULL
               WHERE id = $1 AND holder = $2 AND state = 'waiting'";
    let query = sql::query(set).bind(id).bind(holder).bind(next).bind(words).bind(at);
    Ok(query.execute(on).await?.rows_affected() == 1)
}

/// Drops a queued one, whoever holds its lease; returns whether it was queued.
///
/// # Errors
/// The statement failed.
pub async fn give_up(on: &mut Connection, id: &str) -> Result<bool, Error> {
    let set = "UPDATE outbox SET state = 'failed', lease = NULL, holder = NULL WHERE id = $1 AND state = 'waiting'";
    Ok(sql::query(set).bind(id).execute(on).await?.rows_affected() == 1)
}

/// Queued ones of a group without a lease, in their order: candidates for merging into a newer one.
///
/// # Errors
/// The statement failed.
pub async fn waiting(on: &mut Connection, channel: &str, group_key: &str, now: i64) -> Result<Vec<OutboxRow>, Error> {
    let get = "SELECT * FROM outbox WHERE channel = $1 AND group_key = $2 AND state = 'waiting'
               AND (lease IS NULL OR lease <= $3) ORDER BY seq";
    sql::query_as(get).bind(channel).bind(group_key).bind(now).fetch_all(on).await
}

/// Merges queued ones of a group before a number, without a lease, into the one with that number; returns their number.
///
/// # Errors
/// The statement failed.
pub async fn fold(on: &mut Connection, of: (&str, &str), seq: i64, now: i64) -> Result<u64, Error> {
    let set = "UPDATE outbox SET state = 'folded', lease = NULL, holder = NULL
               WHERE channel = $1 AND group_key = $2 AND seq < $3 AND state = 'waiting'
               AND (lease IS NULL OR lease <= $4)";
    let query = sql::query(set).bind(of.0).bind(of.1).bind(seq).bind(now);
    Ok(query.execute(on).await?.rows_affected())
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<OutboxRow>, Error> {
    sql::query_as("SELECT * FROM outbox WHERE id = $1").bind(id).fetch_optional(on).await
}

/// Notices that were accepted or dropped since a time: id, channel, and `sent` or `failed`.
///
/// # Errors
/// The statement failed.
pub async fn done_since(on: &mut Connection, since: i64, limit: i64) -> Result<Vec<(String, String, String)>, Error> {
    let get = "SELECT id, channel, state FROM outbox WHERE state IN ('sent', 'failed') AND tried >= $1
               ORDER BY tried DESC, id LIMIT $2";
    sql::query_as(get).bind(since).bind(limit).fetch_all(on).await
}

/// State of the deliveries of all channels with any, by channel; finished ones count since a time.
///
/// # Errors
/// The statement failed.
pub async fn figures(on: &mut Connection, since: i64) -> Result<Vec<ChannelFigures>, Error> {
    let get = "SELECT channel, count(CASE WHEN state = 'waiting' THEN 1 END) AS waiting,
               min(CASE WHEN state = 'waiting' THEN made END) AS oldest,
               count(CASE WHEN state = 'sent' AND tried >= $1 THEN 1 END) AS sent,
               count(CASE WHEN state = 'failed' AND tried >= $1 THEN 1 END) AS failed
               FROM outbox GROUP BY channel ORDER BY channel";
    sql::query_as(get).bind(since).fetch_all(on).await
}

/// The last attempted one of each channel, by channel.
///
/// # Errors
/// The statement failed.
pub async fn last_tried(on: &mut Connection) -> Result<Vec<OutboxRow>, Error> {
    let get = "SELECT one.* FROM outbox AS one WHERE one.id = (
               SELECT newest.id FROM outbox AS newest WHERE newest.channel = one.channel AND newest.tried IS NOT NULL
               ORDER BY newest.tried DESC, newest.id LIMIT 1) ORDER BY one.channel";
    sql::query_as(get).fetch_all(on).await
}

/// The newest notices of a team, by its id, that were written since a time.
///
/// # Errors
/// The statement failed.
pub async fn newest(on: &mut Connection, team: &str, since: i64, limit: i64) -> Result<Vec<OutboxRow>, Error> {
    let get = "SELECT outbox.* FROM outbox JOIN channels ON channels.id = outbox.channel
               WHERE channels.team = $1 AND channels.kind <> 'me' AND outbox.made >= $2 ORDER BY outbox.made DESC, outbox.id LIMIT $3";
    sql::query_as(get).bind(team).bind(since).bind(limit).fetch_all(on).await
}

/// Deletes those that were written before a time and are not queued any more.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    sql::query("DELETE FROM outbox WHERE made < $1 AND state <> 'waiting'").bind(before).execute(on).await?;
    Ok(())
}
