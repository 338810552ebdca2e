//! What a team uses, added up: [`Meter`] counts what people and programs ask for, the stream counts what machines send, and
//! [`keep`] writes both down once a minute, so that a tick costs a few additions and nothing waits for the database.
//!
//! A hub that is killed loses what was counted since the last minute; one that ends in order loses nothing. What is counted
//! within a minute of midnight (UTC) may stand on the next day.

mod book;
mod meter;

pub use meter::{Meter, Tab};

use crate::accounts::Accounts;
use book::{Book, SourceNow};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Time between two times that it is written down.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// One day, milliseconds.
const DAY: i64 = 86_400_000;

/// Writes down what was used, once a minute and once more when `stop` becomes true. A database that is away loses nothing:
/// what was counted waits, up to a bound.
pub async fn keep(live: Arc<Live>, accounts: Accounts, meter: Arc<Meter>, mut stop: watch::Receiver<bool>) {
    let mut book = Book::default();
    let mut minute = interval_at(Instant::now() + WRITE_INTERVAL, WRITE_INTERVAL);
    minute.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let last = tokio::select! {
            _ = minute.tick() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        write(&mut book, &live, &accounts, &meter).await;
        if last {
            return;
        }
    }
}

/// Notes what was used since the last time, and writes it down.
async fn write(book: &mut Book, live: &Arc<Live>, accounts: &Accounts, meter: &Meter) {
    // Whose a machine is the database says: without it nothing is noted, and all of it the next time.
    if let Ok(homes) = accounts.usage_homes().await {
        let theirs = live.clone();
        // Blocks of all machines are looked through, not on the threads that serve the stream.
        let Ok(sources) = tokio::task::spawn_blocking(move || sources_now(&theirs)).await else { return };
        book.note(live.clock.wall().div_euclid(DAY), &homes, &sources, &meter.take());
        meter.leaves_out(book.left_out);
    }
    // A group at a time, so that others who write do not wait long.
    while let Some(some) = book.next() {
        if accounts.add_usage(&some).await.is_err() {
            return;
        }
        book.written(&some);
    }
}

/// What was taken of each source by now.
fn sources_now(live: &Live) -> Vec<SourceNow> {
    let sources = live.store().sources();
    let now = sources.into_iter().map(|source| {
        let state = live.source(source.id);
        // Between two of them others have the store.
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
