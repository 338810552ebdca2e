//! Tables `alerts` and `alert_events`: alerts and their history; `alert_state`: stored state of a watcher.

use crate::row::row;
use crate::{Connection, Error, sql};

row! {
    /// One subject for which a rule fires or fired.
    pub struct AlertRow {
        /// Made of rule, subject and start.
        pub id: String,
        /// The team's id; None for a rule of all teams.
        pub team: Option<String>,
        /// Id of its rule.
        pub rule: String,
        /// The subject that fires, unique within the rule.
        pub subject: String,
        /// The machine's id, if it has one.
        pub source: Option<String>,
        /// The run's id, if it has one.
        pub run: Option<String>,
        /// `info`, `warning` or `critical`.
        pub severity: String,
        /// `pending`, `firing` or `resolved`.
        pub state: String,
        /// When its condition began to hold.
        pub began: i64,
        /// When it ended; None until then.
        pub ended: Option<i64>,
        /// The alert itself, a [`shared::alert::Alert`] as JSON, without the acknowledgment.
        pub body: String,
        /// Name of the person who acknowledged it.
        pub acked_by: Option<String>,
        /// When.
        pub acked_at: Option<i64>,
        /// When this was written.
        pub updated: i64,
        /// Whether the notifier has processed it: 0 not yet, 1 changed since then, 2 yes.
        pub heard: i64,
        /// Reason why no notice is sent; empty if there is none.
        pub held: String,
    }
}

/// The notifier has processed the alert in its current state.
pub const NOTIFIED_STATE: i64 = 2;

row! {
    /// An event of an alert.
    pub struct AlertEvent {
        /// Its alert's id.
        pub alert: String,
        /// When.
        pub t: i64,
        /// `pending`, `firing`, `resolved`, `acked`, `flapping`, and others.
        pub kind: String,
        /// The person who caused it; empty for automatic events.
        pub who: String,
        /// In a sentence; may be empty.
        pub words: String,
    }
}

row! {
    /// Stored state of a watcher.
    pub struct KeptState {
        /// Its key.
        pub key: String,
        /// The watcher's own data.
        pub body: Vec<u8>,
        /// When it was written.
        pub updated: i64,
    }
}

/// Filter for alerts; None in a field does not filter.
#[derive(Clone, Debug, Default)]
pub struct AlertFilter {
    /// Alerts of these teams, by id, and without a team; None: of all teams.
    pub teams: Option<Vec<String>>,
    /// Alerts of these machines, by id, and without a machine; None: of all machines. Alerts without team and machine
    /// are only for readers of everything.
    pub sources: Option<Vec<String>>,
    /// `pending`, `firing` or `resolved`.
    pub state: Option<String>,
    /// Id of the rule.
    pub rule: Option<String>,
    /// Only of this machine, by id.
    pub source: Option<String>,
    /// Only of this run.
    pub run: Option<String>,
    /// Not ended before this time, ms.
    pub from: Option<i64>,
    /// Begun by this time, ms.
    pub to: Option<i64>,
}

/// Ids as a list in JSON, which both engines can query.
fn list(ids: Option<&Vec<String>>) -> Option<String> {
    ids.map(|ids| {
        let quoted = ids.iter().map(|id| format!("\"{}\"", id.replace(['"', '\\'], "").replace(char::is_control, "")));
        format!("[{}]", quoted.collect::<Vec<_>>().join(","))
    })
}

/// The newest ones that match a filter, by their start.
///
/// # Errors
/// The statement failed.
pub async fn newest(on: &mut Connection, filter: &AlertFilter, limit: i64) -> Result<Vec<AlertRow>, Error> {
    let get = "SELECT * FROM alerts
               WHERE ($1 IS NULL OR team IN (SELECT value FROM json_each($1)) OR (team IS NULL AND source IS NOT NULL))
               AND ($2 IS NULL OR source IN (SELECT value FROM json_each($2)) OR (source IS NULL AND team IS NOT NULL))
               AND ($3 IS NULL OR state = $3) AND ($4 IS NULL OR rule = $4) AND ($5 IS NULL OR source = $5)
               AND ($6 IS NULL OR run = $6) AND ($7 IS NULL OR ended IS NULL OR ended >= $7)
               AND ($8 IS NULL OR began <= $8) ORDER BY began DESC, id LIMIT $9";
    let on_postgres = "SELECT * FROM alerts
               WHERE ($1 IS NULL OR team IN (SELECT jsonb_array_elements_text($1::jsonb))
                      OR (team IS NULL AND source IS NOT NULL))
               AND ($2 IS NULL OR source IN (SELECT jsonb_array_elements_text($2::jsonb))
                    OR (source IS NULL AND team IS NOT NULL))
               AND ($3 IS NULL OR state = $3) AND ($4 IS NULL OR rule = $4) AND ($5 IS NULL OR source = $5)
               AND ($6 IS NULL OR run = $6) AND ($7 IS NULL OR ended IS NULL OR ended >= $7)
               AND ($8 IS NULL OR began <= $8) ORDER BY began DESC, id LIMIT $9";
    let (teams, sources) = (list(filter.teams.as_ref()), list(filter.sources.as_ref()));
    let query = sql::query_as(get).on_postgres(on_postgres).bind(&teams).bind(&sources).bind(&filter.state);
    let query = query.bind(&filter.rule).bind(&filter.source).bind(&filter.run).bind(filter.from).bind(filter.to);
    query.bind(limit).fetch_all(on).await
}

/// Number that match a filter.
///
/// # Errors
/// The statement failed.
pub async fn count(on: &mut Connection, filter: &AlertFilter) -> Result<i64, Error> {
    let get = "SELECT count(*) FROM alerts
               WHERE ($1 IS NULL OR team IN (SELECT value FROM json_each($1)) OR (team IS NULL AND source IS NOT NULL))
               AND ($2 IS NULL OR source IN (SELECT value FROM json_each($2)) OR (source IS NULL AND team IS NOT NULL))
               AND ($3 IS NULL OR state = $3) AND ($4 IS NULL OR rule = $4) AND ($5 IS NULL OR source = $5)
               AND ($6 IS NULL OR run = $6) AND ($7 IS NULL OR ended IS NULL OR ended >= $7)
               AND ($8 IS NULL OR began <= $8)";
    let on_postgres = "SELECT count(*) FROM alerts
               WHERE ($1 IS NULL OR team IN (SELECT jsonb_array_elements_text($1::jsonb))
                      OR (team IS NULL AND source IS NOT NULL))
               AND ($2 IS NULL OR source IN (SELECT jsonb_array_elements_text($2::jsonb))
                    OR (source IS NULL AND team IS NOT NULL))
               AND ($3 IS NULL OR state = $3) AND ($4 IS NULL OR rule = $4) AND ($5 IS NULL OR source = $5)
               AND ($6 IS NULL OR run = $6) AND ($7 IS NULL OR ended IS NULL OR ended >= $7)
               AND ($8 IS NULL OR began <= $8)";
    let (teams, sources) = (list(filter.teams.as_ref()), list(filter.sources.as_ref()));
    let query = sql::query_scalar(get).on_postgres(on_postgres).bind(&teams).bind(&sources).bind(&filter.state);
    let query = query.bind(&filter.rule).bind(&filter.source).bind(&filter.run).bind(filter.from).bind(filter.to);
    query.fetch_one(on).await
}

/// One by its id.
///
/// # Errors
/// The statement failed.
pub async fn get(on: &mut Connection, id: &str) -> Result<Option<AlertRow>, Error> {
    sql::query_as("SELECT * FROM alerts WHERE id = $1").bind(id).fetch_optional(on).await
}

/// All that have not ended, in all teams: a watcher continues with them.
///
/// # Errors
/// The statement failed.
pub async fn open(on: &mut Connection) -> Result<Vec<AlertRow>, Error> {
    sql::query_as("SELECT * FROM alerts WHERE state <> 'resolved' ORDER BY began, id").fetch_all(on).await
}

/// Number of firing alerts of each rule among the teams and machines of a filter, and the newest start of each rule.
///
/// # Errors
/// The statement failed.
pub async fn by_rule(on: &mut Connection, filter: &AlertFilter) -> Result<Vec<(String, i64, i64)>, Error> {
    let get = "SELECT rule, count(CASE WHEN state = 'firing' THEN 1 END), max(began) FROM alerts
               WHERE ($1 IS NULL OR team IN (SELECT value FROM json_each($1)) OR (team IS NULL AND source IS NOT NULL))
               AND ($2 IS NULL OR source IN (SELECT value FROM json_each($2)) OR (source IS NULL AND team IS NOT NULL))
               AND state <> 'pending' GROUP BY rule ORDER BY rule";
    let on_postgres = "SELECT rule, count(CASE WHEN state = 'firing' THEN 1 END), max(began) FROM alerts
               WHERE ($1 IS NULL OR team IN (SELECT jsonb_array_elements_text($1::jsonb))
                      OR (team IS NULL AND source IS NOT NULL))
               AND ($2 IS NULL OR source IN (SELECT jsonb_array_elements_text($2::jsonb))
                    OR (source IS NULL AND team IS NOT NULL))
               AND state <> 'pending' GROUP BY rule ORDER BY rule";
    let (teams, sources) = (list(filter.teams.as_ref()), list(filter.sources.as_ref()));
    sql::query_as(get).on_postgres(on_postgres).bind(&teams).bind(&sources).fetch_all(on).await
}

/// Inserts or updates one. The acknowledgment and the reason for no notice are unchanged. If the writer is not the
/// notifier, the row is marked for the notifier.
///
/// # Errors
/// The statement failed.
pub async fn put(on: &mut Connection, alert: &AlertRow) -> Result<(), Error> {
    let put = "INSERT INTO alerts
               (id, team, rule, subject, source, run, severity, state, began, ended, body, updated, heard)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
               ON CONFLICT (id) DO UPDATE SET severity = excluded.severity, state = excluded.state,
               ended = excluded.ended, body = excluded.body, updated = excluded.updated,
               heard = CASE WHEN excluded.heard = 2 THEN 2 WHEN alerts.heard = 0 THEN 0 ELSE 1 END";
    let query = sql::query(put).bind(&alert.id).bind(&alert.team).bind(&alert.rule).bind(&alert.subject);
    let query = query.bind(&alert.source).bind(&alert.run).bind(&alert.severity).bind(&alert.state);
    let query = query.bind(alert.began).bind(alert.ended).bind(&alert.body).bind(alert.updated);
    query.bind(alert.heard).execute(on).await?;
    Ok(())
}

/// Those whose current state the notifier has not processed, oldest first.
///
/// # Errors
/// The statement failed.
pub async fn unheard(on: &mut Connection, limit: i64) -> Result<Vec<AlertRow>, Error> {
    let get = "SELECT * FROM alerts WHERE heard < 2 ORDER BY updated, id LIMIT $1";
    sql::query_as(get).bind(limit).fetch_all(on).await
}

/// Marks one as processed by the notifier, as written at a time in this state; if it was written again since, it is
/// marked as changed.
///
/// # Errors
/// The statement failed.
pub async fn set_heard(on: &mut Connection, id: &str, state: &str, updated: i64) -> Result<(), Error> {
    let set = "UPDATE alerts SET heard = CASE WHEN state = $2 AND updated = $3 THEN 2 ELSE 1 END WHERE id = $1";
    sql::query(set).bind(id).bind(state).bind(updated).execute(on).await?;
    Ok(())
}

/// Stores the reason why no notice of one is sent; empty: there is none.
///
/// # Errors
/// The statement failed.
pub async fn set_held(on: &mut Connection, id: &str, why: &str) -> Result<(), Error> {
    sql::query("UPDATE alerts SET held = $2 WHERE id = $1").bind(id).bind(why).execute(on).await?;
    Ok(())
}

/// Acknowledges one that has not ended and is not acknowledged; returns whether it did.
///
/// # Errors
/// The statement failed.
pub async fn ack(on: &mut Connection, id: &str, by: &str, at: i64) -> Result<bool, Error> {
    let set = "UPDATE alerts SET acked_by = $2, acked_at = $3
               WHERE id = $1 AND state <> 'resolved' AND acked_by IS NULL";
    Ok(sql::query(set).bind(id).bind(by).bind(at).execute(on).await?.rows_affected() == 1)
}

/// Acknowledged ones that have not ended: id, person, time.
///
/// # Errors
/// The statement failed.
pub async fn acked(on: &mut Connection) -> Result<Vec<(String, String, i64)>, Error> {
    let get = "SELECT id, acked_by, acked_at FROM alerts
               WHERE state <> 'resolved' AND acked_by IS NOT NULL AND acked_at IS NOT NULL ORDER BY id";
    sql::query_as(get).fetch_all(on).await
}

/// Replaces a name in acknowledgments.
///
/// # Errors
/// The statement failed.
pub async fn rename(on: &mut Connection, who: &str, to: &str) -> Result<(), Error> {
    sql::query("UPDATE alerts SET acked_by = $2 WHERE acked_by = $1").bind(who).bind(to).execute(on).await?;
    Ok(())
}

/// Replaces a name in the events of alerts.
///
/// # Errors
/// The statement failed.
pub async fn rename_in_events(on: &mut Connection, who: &str, to: &str) -> Result<(), Error> {
    sql::query("UPDATE alert_events SET who = $2 WHERE who = $1").bind(who).bind(to).execute(on).await?;
    Ok(())
}

/// Removes those of a machine, by its id; returns their number.
///
/// # Errors
/// The statement failed.
pub async fn remove_source(on: &mut Connection, source: &str) -> Result<u64, Error> {
    Ok(sql::query("DELETE FROM alerts WHERE source = $1").bind(source).execute(on).await?.rows_affected())
}

/// Deletes those that ended before a time, with their events.
///
/// # Errors
/// The statement failed.
pub async fn forget(on: &mut Connection, before: i64) -> Result<(), Error> {
    sql::query("DELETE FROM alerts WHERE ended < $1").bind(before).execute(on).await?;
    Ok(())
}

/// Adds an event of one.
///
/// # Errors
/// The statement failed, or there is no such alert.
pub async fn happened(on: &mut Connection, event: &AlertEvent) -> Result<(), Error> {
    let add = "INSERT INTO alert_events (alert, t, kind, who, words) VALUES ($1, $2, $3, $4, $5)";
    let query = sql::query(add).bind(&event.alert).bind(event.t).bind(&event.kind).bind(&event.who);
    query.bind(&event.words).execute(on).await?;
    Ok(())
}

/// The events of one, oldest first.
///
/// # Errors
/// The statement failed.
pub async fn events(on: &mut Connection, alert: &str, limit: i64) -> Result<Vec<AlertEvent>, Error> {
    let get = "SELECT alert, t, kind, who, words FROM alert_events WHERE alert = $1 ORDER BY id LIMIT $2";
    sql::query_as(get).bind(alert).bind(limit).fetch_all(on).await
}

/// All stored states of watchers.
///
/// # Errors
/// The statement failed.
pub async fn states(on: &mut Connection) -> Result<Vec<KeptState>, Error> {
    sql::query_as("SELECT key, body, updated FROM alert_state ORDER BY key").fetch_all(on).await
}

/// Stores a state of a watcher, in place of the previous one.
///
/// # Errors
/// The statement failed.
pub async fn keep_state(on: &mut Connection, state: &KeptState) -> Result<(), Error> {
    let put = "INSERT INTO alert_state (key, body, updated) VALUES ($1, $2, $3)
               ON CONFLICT (key) DO UPDATE SET body = excluded.body, updated = excluded.updated";
    sql::query(put).bind(&state.key).bind(&state.body).bind(state.updated).execute(on).await?;
    Ok(())
}

/// Deletes the state of a key.
///
/// # Errors
/// The statement failed.
pub async fn drop_state(on: &mut Connection, key: &str) -> Result<(), Error> {
    sql::query("DELETE FROM alert_state WHERE key = $1").bind(key).execute(on).await?;
    Ok(())
}

/// Deletes states that were not written since a time.
///
/// # Errors
/// The statement failed.
pub async fn forget_states(on: &mut Connection, before: i64) -> Result<(), Error> {
    sql::query("DELETE FROM alert_state WHERE updated < $1").bind(before).execute(on).await?;
    Ok(())
}
