//! Usage of teams: [`Meter`] counts requests of people and programs, the stream counts data of machines, and [`keep`]
//! stores both once a minute. So a tick costs a few additions, and nothing waits for the database.
//!
//! A hub that is killed loses the counts since the last minute; one that ends in order loses nothing. Usage within a
//! minute of midnight (UTC) may count for the next day.

mod meter;
mod registry;

pub use meter::{Meter, Tab};

use crate::accounts::Accounts;
use registry::{SourceNow, UsageRegistry};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Time between two writes.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// One day, milliseconds.
const DAY: i64 = 86_400_000;

/// Stores usage once a minute, and once more when `stop` becomes true. While the database is unreachable, counts are
/// queued, up to a limit.
pub async fn keep(live: Arc<Live>, accounts: Accounts, meter: Arc<Meter>, mut stop: watch::Receiver<bool>) {
    let mut registry = UsageRegistry::default();
    let mut minute = interval_at(Instant::now() + WRITE_INTERVAL, WRITE_INTERVAL);
    minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let last = tokio::select! {
            _ = minute.tick() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        write(&mut registry, &live, &accounts, &meter).await;
        if last {
            return;
        }
    }
}

/// Notes the usage since the last call, and stores it.
async fn write(registry: &mut UsageRegistry, live: &Arc<Live>, accounts: &Accounts, meter: &Meter) {
    // The database has the team of each machine. Without it nothing is noted, and the next call notes all.
    if let Ok(homes) = accounts.usage_homes().await {
        let theirs = live.clone();
        // Reads blocks of all machines, so not on the threads that serve the stream.
        let Ok(sources) = tokio::task::spawn_blocking(move || sources_now(&theirs)).await else { return };
        registry.note(live.clock.wall().div_euclid(DAY), &homes, &sources, &meter.take());
        meter.leaves_out(registry.left_out);
    }
    // A group at a time, so that other writers do not wait long.
    while let Some(some) = registry.next() {
        if accounts.add_usage(&some).await.is_err() {
            return;
        }
        registry.written(&some);
    }
}

/// Received data of each source so far.
fn sources_now(live: &Live) -> Vec<SourceNow> {
    let sources = live.store().sources();
    let now = sources.into_iter().map(|source| {
        let state = live.source(source.id);
        // The store is unlocked between two sources.
        let (disk, series) = {
            let store = live.store();
            (store.disk_bytes(source.id), store.series_alive(source.id))
        };
        let load = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        SourceNow {
            totals: [
                load(&state.taken.samples),
                load(&state.taken.bytes),
                load(&state.taken.late),
                state.figures().refused.iter().map(|(_, count)| count).sum(),
            ],
            largest: [disk, series as u64],
            key: source.key.clone(),
        }
    });
    now.collect()
}
