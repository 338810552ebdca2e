//! Appends ticks of all links in groups. Ticks that arrive within a short time are encoded under few locks, logged by
//! few writes, and announced once.
//!
//! A link waits for its own ticks before it takes its next message. So at most one message of each link is queued here,
//! and only appended ticks return credit. A refused tick affects no other.

use super::Inner;
use parking_lot::Mutex;
use shared::wire::SourceId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::live::NewTick;
use tokio::sync::oneshot;

/// Time in which ticks are collected.
const GATHERED: Duration = Duration::from_millis(20);
/// Ticks that are appended before the task yields its thread.
const MAX_AT_ONCE: usize = 64;
/// Maximum size of one link's values here, bytes; larger messages are appended alone.
pub(super) const MAX_GATHERED_BYTES: usize = 1 << 20;

/// A tick of a link, with the hub's IDs and clock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkTick {
    pub seq: u64,
    /// Time, milliseconds since the Unix epoch.
    pub t: i64,
    pub clock_step: bool,
    /// Values by series ID; NaN is absent.
    pub values: Vec<f64>,
}

impl LinkTick {
    /// Number of present values.
    fn samples(&self) -> u64 {
        self.values.iter().filter(|value| value.is_finite()).count() as u64
    }

    /// Converts it for the stream.
    fn with_source(&self, source: SourceId) -> NewTick<'_> {
        NewTick { source, seq: Some(self.seq), t: self.t, clock_step: self.clock_step, values: &self.values }
    }
}

/// The ticks of one message.
struct Message {
    source: SourceId,
    ticks: Vec<LinkTick>,
    /// Notified once they are appended.
    done: oneshot::Sender<()>,
}

/// Messages that wait for the next group.
#[derive(Default)]
pub(super) struct Gathered(Mutex<Vec<Message>>);

impl Gathered {
    /// Adds a message; true if it is the first of its group.
    fn put(&self, message: Message) -> bool {
        let mut waiting = self.0.lock();
        waiting.push(message);
        waiting.len() == 1
    }

    fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Appends the ticks of a link's message together with those of others. A refused tick is dropped.
pub(super) async fn append(ingest: &Arc<Inner>, source: SourceId, ticks: Vec<LinkTick>) {
    let (done, appended) = oneshot::channel();
    if ingest.gathering.put(Message { source, ticks, done }) {
        let ingest = ingest.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GATHERED).await;
            append_all(&ingest, ingest.gathering.take()).await;
        });
    }
    // A server that ends drops the group and the link, too.
    let _ = appended.await;
}

/// Appends ticks of one link immediately: they exceed the group limit.
pub(super) fn append_alone(ingest: &Inner, source: SourceId, ticks: &[LinkTick]) {
    append_some(ingest, ticks.iter().map(|tick| (source, tick)));
    ingest.live.announce(&[source]);
}

async fn append_all(ingest: &Inner, messages: Vec<Message>) {
    // All first ticks, then all second ones: a group has one of each source.
    let places = (0..).zip(&messages).flat_map(|(at, message)| (0..message.ticks.len()).map(move |tick| (tick, at)));
    let mut places: Vec<(usize, usize)> = places.collect();
    places.sort_unstable();
    for some in places.chunks(MAX_AT_ONCE) {
        append_some(ingest, some.iter().map(|&(tick, at)| (messages[at].source, &messages[at].ticks[tick])));
        tokio::task::yield_now().await;
    }
    ingest.live.announce(&messages.iter().map(|message| message.source).collect::<Vec<_>>());
    for message in messages {
        // A link that has ended no longer waits.
        let _ = message.done.send(());
    }
}

fn append_some<'a>(ingest: &Inner, ticks: impl Iterator<Item = (SourceId, &'a LinkTick)> + Clone) {
    let new: Vec<NewTick> = ticks.clone().map(|(source, tick)| tick.with_source(source)).collect();
    let appended = ingest.live.append_all(&new).into_iter().zip(ticks);
    for (_, (_, tick)) in appended.filter(|(seq, _)| seq.is_some()) {
        ingest.totals.ticks.fetch_add(1, Ordering::Relaxed);
        ingest.totals.samples.fetch_add(tick.samples(), Ordering::Relaxed);
    }
}
