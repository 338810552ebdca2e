//! Ticks of all links are appended in groups: what came within a moment is encoded under few locks, logged by few writes,
//! and announced once.
//!
//! A link waits for its own ticks before it takes its next message in, so there is at most one message of each link here,
//! and credit is given back for what is appended alone. A tick that is refused concerns no other.

use super::Inner;
use parking_lot::Mutex;
use shared::wire::SourceId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use stream::live::NewTick;
use tokio::sync::oneshot;

/// How long ticks are gathered.
const GATHERED: Duration = Duration::from_millis(20);
/// Ticks that are appended before other work of the same thread has its turn.
const MAX_AT_ONCE: usize = 64;
/// Bytes of values that one link may have here; what is beyond is appended alone.
pub(super) const MAX_GATHERED_BYTES: usize = 1 << 20;

/// A tick of a link, in the hub's ids and by its clock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkTick {
    pub seq: u64,
    /// Milliseconds since the Unix epoch.
    pub t: i64,
    pub clock_step: bool,
    /// By series id; NaN is absent.
    pub values: Vec<f64>,
}

impl LinkTick {
    /// How many of the values are present.
    fn samples(&self) -> u64 {
        self.values.iter().filter(|value| value.is_finite()).count() as u64
    }

    /// As the stream takes it.
    fn of(&self, source: SourceId) -> NewTick<'_> {
        NewTick { source, seq: Some(self.seq), t: self.t, clock_step: self.clock_step, values: &self.values }
    }
}

/// The ticks of one message.
struct Message {
    source: SourceId,
    ticks: Vec<LinkTick>,
    /// Is told once they are appended.
    done: oneshot::Sender<()>,
}

/// Messages that wait for the next group.
#[derive(Default)]
pub(super) struct Gathered(Mutex<Vec<Message>>);

impl Gathered {
    /// Puts a message in; whether it is the first.
    fn put(&self, message: Message) -> bool {
        let mut waiting = self.0.lock();
        waiting.push(message);
        waiting.len() == 1
    }

    fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Appends the ticks of a message of a link together with those of others. One that is refused is left out.
pub(super) async fn append(ingest: &Arc<Inner>, source: SourceId, ticks: Vec<LinkTick>) {
    let (done, appended) = oneshot::channel();
    if ingest.gathering.put(Message { source, ticks, done }) {
        let ingest = ingest.clone();
        tokio::spawn(async move {
            tokio::time::sleep(GATHERED).await;
            append_all(&ingest, ingest.gathering.take()).await;
        });
    }
    // A server that ends drops the group, and the link as well.
    let _ = appended.await;
}

/// Appends ticks of one link at once: more than may wait here.
pub(super) fn append_alone(ingest: &Inner, source: SourceId, ticks: &[LinkTick]) {
    append_some(ingest, ticks.iter().map(|tick| (source, tick)));
    ingest.live.announce(&[source]);
}

async fn append_all(ingest: &Inner, messages: Vec<Message>) {
    // The first ticks of all, then the second ones: a group has one of each source.
    let places = (0..).zip(&messages).flat_map(|(at, message)| (0..message.ticks.len()).map(move |tick| (tick, at)));
    let mut places: Vec<(usize, usize)> = places.collect();
    places.sort_unstable();
    for some in places.chunks(MAX_AT_ONCE) {
        append_some(ingest, some.iter().map(|&(tick, at)| (messages[at].source, &messages[at].ticks[tick])));
        tokio::task::yield_now().await;
    }
    ingest.live.announce(&messages.iter().map(|message| message.source).collect::<Vec<_>>());
    for message in messages {
        // A link that has ended does not ask.
        let _ = message.done.send(());
    }
}

fn append_some<'a>(ingest: &Inner, ticks: impl Iterator<Item = (SourceId, &'a LinkTick)> + Clone) {
    let new: Vec<NewTick> = ticks.clone().map(|(source, tick)| tick.of(source)).collect();
    let appended = ingest.live.append_all(&new).into_iter().zip(ticks);
    for (_, (_, tick)) in appended.filter(|(seq, _)| seq.is_some()) {
        ingest.totals.ticks.fetch_add(1, Ordering::Relaxed);
        ingest.totals.samples.fetch_add(tick.samples(), Ordering::Relaxed);
    }
}
