//! The replicas of a hub send to one sample store; their database records which replica sends.

use crate::remote_write::{CoverageTable, Covered, SendingCluster, SentRange, keep_covered};
use std::collections::BTreeMap;
use std::sync::Arc;
use stream::live::Live;
use team::accounts::Accounts;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The table `coverage` of a hub's database.
struct SentTable(Accounts);

impl CoverageTable for SentTable {
    async fn read(&self, sources: Vec<String>) -> Result<BTreeMap<String, Vec<SentRange>>, String> {
        self.0.sent(&sources).await.map_err(|why| why.to_string())
    }

    async fn extend(&self, taken: BTreeMap<String, Vec<SentRange>>) -> Result<(), String> {
        self.0.add_sent(&taken).await.map_err(|why| why.to_string())
    }
}

/// The sender of a replica, and the task that reads and writes the table until `stop` becomes true. The task is
/// awaited at shutdown, so the last progress is stored, too.
pub(super) fn sending(
    live: &Arc<Live>,
    accounts: &Accounts,
    stop: &watch::Receiver<bool>,
) -> (SendingCluster, JoinHandle<()>) {
    let covered = Arc::new(Covered::default());
    let (theirs, table, stop) = (covered.clone(), SentTable(accounts.clone()), stop.clone());
    let keeping = tokio::spawn(async move { keep_covered(&theirs, table, stop).await });
    let live = Arc::downgrade(live);
    let holds = move |source| live.upgrade().is_some_and(|live| live.holds(source));
    (SendingCluster { covered, holds: Box::new(holds) }, keeping)
}
