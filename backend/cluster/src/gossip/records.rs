//! Records of machines of other hubs: what is told of jobs, and what people and programs mark. They are few, and every hub
//! has all of them, as the hub has that holds the machine: in their order, each once.

use super::message::WantedRecords;
use super::receive::GossipReceiver;
use crate::{Bus, MAX_BUS_MESSAGE};
use parking_lot::Mutex;
use shared::record::Record;
use std::sync::Arc;
use std::time::Duration;
use stream::live::Live;
use tokio::sync::Semaphore;

/// Between two looks whether any lack.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long an answer may take.
const WAIT: Duration = Duration::from_secs(5);
/// Bytes of records in one answer, about, and how many.
const MAX_BYTES: usize = MAX_BUS_MESSAGE / 2;
const MAX_RECORDS: usize = 4_096;
/// Answers that are made at once; who is not answered asks again.
const AT_ONCE: usize = 4;
/// Between two attempts to listen.
const PAUSE: Duration = Duration::from_secs(2);

/// On which subject a hub is asked.
fn subject(hub: &str) -> String {
    format!("records.{hub}")
}

/// Gives other hubs what they ask for, until it is dropped.
pub(super) async fn give(live: Arc<Live>, bus: Bus, hub: String) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(mut asked) = bus.subscribe(&subject(&hub)).await else {
            tokio::time::sleep(PAUSE).await;
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

/// The first records behind a number, as many as an answer holds. It may read the disk.
pub(super) fn behind(live: &Live, wanted: &WantedRecords) -> Vec<Record> {
    // The store is held once: it is let go at the end of a statement.
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

/// Brings what lacks here, one machine after the other, until it is dropped.
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
            // Whoever does not answer is asked again when it tells of the machine anew.
            let Ok(answer) = bus.request(&subject(&lacking.hub), asked, WAIT).await else { break };
            let Ok(records) = postcard::from_bytes::<Vec<Record>>(&answer) else { break };
            let theirs = live.clone();
            let kept = tokio::task::spawn_blocking(move || keep(&theirs, source, records)).await;
            if !kept.unwrap_or(false) || live.store().last_record(source) >= lacking.newest || live.holds(source) {
                break;
            }
        }
    }
}

/// Keeps records of a machine of another hub; whether any was new.
fn keep(live: &Live, source: shared::wire::SourceId, records: Vec<Record>) -> bool {
    let (oldest, mut any) = (live.clock.wall() - live.store().retention(source), false);
    for Record { n, t, kind, body } in records {
        // One that is too old to be kept is passed over by those behind it.
        any |= t >= oldest && matches!(live.append_record_at(source, n, t, &kind, body), Ok(Some(_)));
    }
    if any {
        live.announce(&[source]);
    }
    any
}
