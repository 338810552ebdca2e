//! Sums up the runs that end, so that something of them is kept when their samples go.

use super::book::RunBook;
use super::kept::KEEP_MS;
use super::summary::RunSummary;
use crate::live::Live;
use shared::run::{Run, RunState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Name of the folder in the data folder.
const FOLDER: &str = "ended-runs";

/// How often it is looked whether runs have ended.
const PERIOD: Duration = Duration::from_secs(10);

/// How long after its end a run is summed up, milliseconds: one that is said better later is summed up once more.
const SETTLED_MS: i64 = 15_000;

/// Keeps summaries of the runs that end, in a data folder, until `stop` becomes true.
pub async fn keep(live: Arc<Live>, book: Arc<RunBook>, folder: &Path, mut stop: watch::Receiver<bool>) {
    let folder = folder.join(FOLDER);
    let (theirs, now) = (book.clone(), live.clock.wall());
    let opened = tokio::task::spawn_blocking(move || theirs.kept.open(&folder, now)).await;
    if let Ok(Err(error)) = opened {
        return tracing::warn!(%error, "runs that have ended are known as long as their samples are: no folder for them");
    }
    let mut due = tokio::time::interval(PERIOD);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        let (live, book) = (live.clone(), book.clone());
        let _ = tokio::task::spawn_blocking(move || look(&live, &book)).await;
    }
}

fn look(live: &Arc<Live>, book: &RunBook) {
    let (now, removed) = (live.clock.wall(), live.store().removed().clone());
    book.kept.forget(now, |key| removed.contains(key));
    let sources = live.store().sources();
    let ended = |run: &Run| {
        run.state != RunState::Lost
            && run.ended.is_some_and(|ended| (now - KEEP_MS..=now - SETTLED_MS).contains(&ended))
    };
    let new: Vec<Run> = book.of_records(live, &sources).filter(|run| ended(run) && !book.kept.has(run)).collect();
    for run in new {
        let id = run.id.clone();
        if let Err(error) = book.kept.keep(RunSummary::of(live, &sources, run)) {
            tracing::warn!(%error, "the summary of the run {id} is not kept");
        }
    }
}
