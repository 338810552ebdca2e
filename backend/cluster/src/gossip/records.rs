//! Records of machines of other hubs: job reports, and markers of people and programs. They are few, so every hub
//! stores all of them, each once and in the order of the hub that holds the machine.

use super::message::WantedRecords;
use super::receive::GossipReceiver;
use crate::{Bus, MAX_BUS_MESSAGE};
use parking_lot::Mutex;
use shared::record::Record;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::Semaphore;

/// Interval of the check for missing records.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum time for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Approximate maximum size of an answer, bytes of records, and its number of records.
const MAX_BYTES: usize = MAX_BUS_MESSAGE / 2;
const MAX_RECORDS: usize = 4_096;
/// Answers that are made at once; a hub without an answer asks again.
const AT_ONCE: usize = 4;
/// Pause between two attempts to subscribe.
const RESUBSCRIBE_INTERVAL: Duration = Duration::from_secs(2);

/// Subject of the requests to a hub.
fn subject(hub: &str) -> String {
    format!("records.{hub}")
}

/// Answers requests of other hubs, until the future is dropped.
pub(super) async fn give(live: Arc<Live>, bus: Bus, hub: String) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(mut asked) = bus.subscribe(&subject(&hub)).await else {
            tokio::time::sleep(RESUBSCRIBE_INTERVAL).await;
            continue;
        };
        while let Some(message) = asked.next().await {
            let Ok(wanted) = postcard::from_bytes::<WantedRecords>(message.bytes()) else { continue };
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            let (live, bus) = (live.clone(), bus.clone());
            tokio::task::spawn_blocking(move || {
                let found = behind(&live, &wanted);
                bus.answer(&message, postcard::to_stdvec(&found).expect("texts and numbers only"));
                drop(permit);
            });
        }
    }
}

/// The first records after a number, as many as an answer holds. It may read the disk.
pub(super) fn behind(live: &Live, wanted: &WantedRecords) -> Vec<Record> {
    // The lock on the store is released at the end of the statement.
    let Some(snapshot) = ({
        let store = live.store();
        store.named(&wanted.key).and_then(|id| store.records_behind(id, wanted.behind))
    }) else {
        return Vec::new();
    };
    let mut bytes = 0;
    let fits = |record: &Record| {
        bytes += record.size();
        bytes <= MAX_BYTES
    };
    let all = snapshot.flatten().map(Arc::unwrap_or_clone);
    all.take(MAX_RECORDS).take_while(fits).collect()
}

/// Fetches missing records, one machine after the other, until the future is dropped.
pub(super) async fn bring(live: Arc<Live>, hearer: Arc<Mutex<GossipReceiver>>, bus: Bus) {
    loop {
        let wanted = hearer.lock().next_wanted();
        let Some((source, lacking)) = wanted else {
            tokio::time::sleep(LOOK_INTERVAL).await;
            continue;
        };
        loop {
            let had = live.store().last_record(source);
            let asked = WantedRecords { key: lacking.key.clone(), behind: had };
            let asked = postcard::to_stdvec(&asked).expect("texts and numbers only");
            // A hub that does not answer is asked again when it reports the machine again.
            let Ok(answer) = bus.request(&subject(&lacking.hub), asked, ANSWER_TIMEOUT).await else { break };
            let Ok(records) = postcard::from_bytes::<Vec<Record>>(&answer) else { break };
            let theirs = live.clone();
            let kept = tokio::task::spawn_blocking(move || keep(&theirs, source, records)).await;
            if !kept.unwrap_or(false) || live.store().last_record(source) >= lacking.newest || live.holds(source) {
                break;
            }
        }
    }
}

/// Stores records of a machine of another hub; true if any was new.
fn keep(live: &Live, source: shared::wire::SourceId, records: Vec<Record>) -> bool {
    let (oldest, mut any) = (live.clock.wall() - live.store().retention(source), false);
    for Record { n, t, kind, body } in records {
        // A record that is past its retention is skipped; the later ones are stored.
        any |= t >= oldest && matches!(live.append_record_at(source, n, t, &kind, body), Ok(Some(_)));
    }
    if any {
        live.announce(&[source]);
    }
    any
}
