//! Stores a summary of each run that ends, because it must outlive the run's samples.

use super::days::days_of;
use super::output::ENDED;
use super::registry::RunRegistry;
use super::summary::RunSummary;
use shared::run::{Run, RunState};
use shared::wire::SourceId;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::watch;

/// Interval of the check for ended runs.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Interval of the check for expired output of runs.
const EXPIRY_PERIOD: Duration = Duration::from_secs(60);

/// Maximum size of the output of all runs, bytes, if the data folder has no limit; else a quarter of that limit.
const MAX_LOG_BYTES: u64 = 4 << 30;

/// Delay between the end of a run and its summary, milliseconds. If more is learned of the end later, the summary is
/// made again.
const SETTLED_MS: i64 = 15_000;

/// Stores summaries of ended runs in a data folder until `stop` becomes true. They are kept for this time; None: for
/// ever.
pub async fn keep(
    live: Arc<Live>,
    registry: Arc<RunRegistry>,
    folder: &Path,
    keep: Option<Duration>,
    mut stop: watch::Receiver<bool>,
) {
    let folder = folder.join(ENDED);
    let begin = live.clock.wall();
    let oldest = move |now: i64| keep.map_or(i64::MIN, |keep| now - keep.as_millis() as i64);
    let theirs = registry.clone();
    let opened = tokio::task::spawn_blocking(move || theirs.kept.open(&folder, oldest(begin))).await;
    if let Ok(Err(error)) = opened {
        return tracing::warn!(%error, "runs that have ended are known as long as their samples are: no folder for them");
    }
    let mut due = tokio::time::interval(CHECK_INTERVAL);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let (live, registry) = (live.clone(), registry.clone());
        let _ = tokio::task::spawn_blocking(move || store_ended(&live, &registry, oldest)).await;
    }
}

/// Expires the output of a source's runs with its samples, until `stop` becomes true. `bytes` bounds the data folder.
pub async fn expire_logs(
    live: Arc<Live>,
    registry: Arc<RunRegistry>,
    source: SourceId,
    bytes: Option<u64>,
    mut stop: watch::Receiver<bool>,
) {
    let most = bytes.map_or(MAX_LOG_BYTES, |bytes| bytes / 4);
    let mut due = tokio::time::interval(EXPIRY_PERIOD);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let (ages, registry) = ((live.clock.wall(), live.store().retention(source)), registry.clone());
        let _ = tokio::task::spawn_blocking(move || registry.logs.expire(ages, most)).await;
    }
}

fn store_ended(live: &Arc<Live>, registry: &RunRegistry, oldest: impl Fn(i64) -> i64) {
    let (now, removed) = (live.clock.wall(), live.store().removed().clone());
    let oldest = oldest(now);
    let sources = live.store().sources();
    let own = registry.logs.source().and_then(|own| sources.iter().find(|source| source.id == own));
    registry.kept.forget(oldest, |key| removed.contains(key), own.map(|own| own.key.as_str()));
    let ended = |run: &Run| {
        run.state != RunState::Lost && run.ended.is_some_and(|ended| (oldest..=now - SETTLED_MS).contains(&ended))
    };
    let new: Vec<Arc<Run>> =
        registry.of_records(live, &sources).filter(|run| ended(run) && !registry.kept.has(run)).collect();
    for run in new {
        let run = Arc::unwrap_or_clone(run);
        let id = run.id.clone();
        if let Some(Err(error)) = own.map(|own| registry.logs.keep_last(&run, &own.name)) {
            tracing::warn!(%error, "the last lines of the run {id} are not kept");
        }
        let days = days_of(live, &sources, &run, now);
        let summary = RunSummary { days, ..RunSummary::build(live, &sources, run, registry.summary_inputs()) };
        if let Err(error) = registry.kept.keep(summary) {
            tracing::warn!(%error, "the summary of the run {id} is not kept");
        }
    }
}
