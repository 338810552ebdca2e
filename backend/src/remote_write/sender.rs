//! The sender's thread: it sends due samples, each until it was taken or refused.

use super::batch::Batch;
use super::covered::{SendingCluster, SentRange, WRITE_INTERVAL, join, without};
use super::follow::{Due, Follower, MAX_BEHIND_MS};
use super::progress::{Flight, Progress, ProgressFile};
use super::server::{SendError, Server};
use super::span::TickSpan;
use super::unsettled::{TakenTicks, Unsettled};
use super::{RemoteWriter, SendState};
use shared::tick::TickState;
use shared::wire::{Source, SourceId};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use stream::live::Live;

/// Time span of one request: the labels of a series are sent once for all its ticks.
const BATCH_MS: i64 = 15_000;
/// Interval of the sender's checks for due samples.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Backoff: the pause after the first failure, which doubles up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Error texts of servers for samples that are older than their newest, in lower case.
const DISORDER: [&str; 4] = ["out of order", "out-of-order", "out of bounds", "too old"];

/// Maximum number of late ranges of one source; beyond it all are merged, and the gaps are sent again.
const MAX_LATE: usize = 256;

/// Merges touching ranges, and beyond [`MAX_LATE`] all of them.
fn bound(late: &mut Vec<SentRange>) {
    let first = late.iter().map(|(first, _)| *first).min();
    let last = late.iter().map(|(_, last)| *last).max();
    join(late);
    if let (true, Some(first), Some(last)) = (late.len() > MAX_LATE, first, last) {
        *late = vec![(first, last)];
    }
}

/// The reason of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Its samples follow those before.
    New,
    /// It was taken, and the connection was lost afterwards.
    Again,
    /// Its samples are late, and older than others that were taken.
    Late,
}

/// The sender was stopped, and abandons its current work.
pub struct Stopped;

/// Sends until it is stopped.
pub struct Sender {
    live: Arc<Live>,
    remote: Arc<RemoteWriter>,
    server: Arc<Server>,
    progress: ProgressFile,
    stop: Receiver<()>,
    followers: BTreeMap<SourceId, Follower>,
    /// The replicas that write to the same server; none: this hub alone.
    cluster: Option<SendingCluster>,
    /// Sources of a cluster that this replica holds, with the begin by the steady clock; none once their sent ranges
    /// are known.
    ours: BTreeMap<SourceId, Option<Duration>>,
    /// Ranges that a killed server may lose, by source.
    unsettled: BTreeMap<SourceId, Unsettled>,
    /// Time of the last taken request, by the steady clock.
    answered: Cell<Duration>,
    /// A failure to write the positions was logged.
    told: bool,
}

impl Sender {
    pub(super) fn new(
        live: Arc<Live>,
        remote: Arc<RemoteWriter>,
        cluster: Option<SendingCluster>,
        progress: ProgressFile,
        stop: Receiver<()>,
    ) -> Self {
        let server = remote.server.clone();
        Sender {
            live,
            remote,
            server,
            progress,
            stop,
            followers: BTreeMap::new(),
            cluster,
            ours: BTreeMap::new(),
            unsettled: BTreeMap::new(),
            answered: Cell::default(),
            told: false,
        }
    }

    /// Sends due samples, until it is stopped.
    pub fn run(mut self) {
        self.remote.stand(&self.live, SendState::Starting);
        loop {
            let mut sources = self.live.store().sources();
            let mut more = false;
            // Also sources that have moved to another replica: this one has sent the samples.
            for source in &sources {
                match self.send_again(source) {
                    Ok(sent) => more |= sent,
                    Err(Stopped) => return,
                }
                self.tell_unsettled(source, None);
            }
            self.unsettled.retain(|id, _| sources.iter().any(|source| source.id == *id));
            sources.retain(|source| self.is_ours(source));
            // In turn, so that no source is hours ahead of another: a server may refuse samples that are far behind.
            for source in &sources {
                match self.go_on(source).and_then(|sent| Ok(sent | self.send_late(source)?)) {
                    Ok(sent) => more |= sent,
                    Err(Stopped) => return,
                }
            }
            let behind = sources.iter().map(|source| self.behind(source)).max();
            self.remote.counts.behind_ms.store(behind.unwrap_or(0), Relaxed);
            let pause = if more { Duration::ZERO } else { POLL_INTERVAL };
            match self.stop.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    /// Milliseconds of ticks that were not taken.
    fn behind(&self, source: &Source) -> u64 {
        let ticks = self.live.store().ticks_after(source.id, self.progress.get(&source.key).seq);
        ticks * source.interval.max(0) as u64
    }

    /// Whether this replica sends the samples of a source now.
    ///
    /// A source that has just arrived waits for the maximum time of the earlier holder's last write. Then its sent
    /// ranges are known.
    fn is_ours(&mut self, source: &Source) -> bool {
        let Some(cluster) = &self.cluster else { return true };
        if !(cluster.holds)(source.id) {
            if self.ours.remove(&source.id).is_some() {
                cluster.covered.left(&source.key);
                self.followers.remove(&source.id);
            }
            // If it arrives here, all local samples that the server lacks are sent.
            drop(self.live.take_late(source.id));
            return false;
        }
        let now = self.live.clock.steady();
        let Some(since) = *self.ours.entry(source.id).or_insert(Some(now)) else { return true };
        if now.saturating_sub(since) < WRITE_INTERVAL {
            return false;
        }
        let Some(covered) = cluster.covered.ranges_of(&source.key) else { return false };
        let place = self.progress.get(&source.key).seq;
        let oldest = self.live.clock.wall() - MAX_BEHIND_MS;
        let runs = self.live.store().runs(source.id);
        if covered.is_empty() {
            // The table begins with the ranges that this hub sent before it was in a cluster.
            let sent = runs.iter().filter(|run| run.first <= place).map(|run| (run.first, run.last.min(place)));
            let late = self.progress.late(&source.key);
            let taken: Vec<SentRange> = sent.flat_map(|range| without(range, late)).collect();
            cluster.covered.took(&source.key, &taken);
        }
        // Ticks that arrived late lie among others, and a sequential reader does not reach them again.
        let recent = runs.iter().filter(|run| run.to >= oldest).map(|run| (run.first, run.last));
        let covered = self.covered(source);
        let mut late: Vec<SentRange> = recent.flat_map(|range| without(range, &covered)).collect();
        bound(&mut late);
        self.keep_late(source, late);
        self.ours.insert(source.id, None);
        true
    }

    /// Ranges of a source that any replica has sent; none without a cluster.
    fn covered(&self, source: &Source) -> Vec<SentRange> {
        self.cluster.as_ref().and_then(|cluster| cluster.covered.ranges_of(&source.key)).unwrap_or_default()
    }

    /// The server has taken these, or refused them for good.
    fn took(&self, source: &Source, ranges: &[SentRange]) {
        if let Some(cluster) = &self.cluster {
            cluster.covered.took(&source.key, ranges);
        }
    }

    /// Sends the next span of a source, if it is due; returns whether it was.
    fn go_on(&mut self, source: &Source) -> Result<bool, Stopped> {
        let ticks = (BATCH_MS / source.interval.max(1)).max(1) as u64;
        // The first is sent at once: a wrong address is reported at the start.
        let due = if self.remote.counts.requests.load(Relaxed) == 0 { 1 } else { ticks };
        let place = self.progress.get(&source.key);
        let covered = self.covered(source);
        let newest = self.live.store().state(source.id).map_or(0, TickState::seq);
        let next = covered.iter().find(|(_, last)| *last > place.seq);
        if let Some(&(_, last)) = next.filter(|(first, _)| *first <= place.seq + 1) {
            // Another replica has sent the next ticks.
            let seq = last.min(newest);
            if seq > place.seq {
                self.keep(source, Progress { seq, flight: None });
            }
            return Ok(seq > place.seq);
        }
        // The end before the next range that another replica has sent.
        let end = next.map(|(first, _)| first - 1).filter(|end| *end <= newest);
        let through = place.flight.map(|f| f.through).or(end);
        let follower = self.followers.entry(source.id).or_insert_with(|| Follower::new(source));
        let seq = match follower.next(&self.live, place.seq, through, due) {
            Due::Nothing => return Ok(false),
            // There are no local ticks before the range that another replica has sent.
            Due::At(seq) if seq == place.seq && through == end => end.unwrap_or(seq),
            Due::At(seq) => seq,
            Due::TooOld { seq, samples } => {
                self.remote.counts.expired.fetch_add(samples, Relaxed);
                tracing::warn!(samples, "remote write is more than 12 h behind; the oldest were given up");
                seq
            }
            Due::Ticks(span) => {
                let Some(lost) = self.send(source, place, &span)? else { return Ok(false) };
                // In this order: ranges that may be lost must not be written meanwhile.
                span.ranges.iter().for_each(|range| self.may_lose(source, (*range, false, 0), lost));
                self.took(source, &span.ranges);
                self.keep(source, Progress { seq: span.last, flight: None });
                self.not_late(source, &span.ranges);
                return Ok(true);
            }
        };
        self.keep(source, Progress { seq, flight: None });
        Ok(true)
    }

    /// Ranges of a source that a server killed now may lose, as of the newest response.
    fn unsettled(&mut self, source: &Source) -> &mut Unsettled {
        let (losses, answered) = (self.server.losses(), self.answered.get());
        let resumed = || Unsettled::resumed(self.progress.unsettled(&source.key), self.live.clock.steady());
        let own = self.unsettled.entry(source.id).or_insert_with(resumed);
        own.update_losses(losses, answered);
        own
    }

    /// Records that the server has just taken these, whether late, and how often they were repeated. It may lose them
    /// if it is killed now. If the connection was `lost` after some of them, it may have lost them already.
    fn may_lose(&mut self, source: &Source, (range, late, again): (SentRange, bool, u8), lost: bool) {
        let at = self.live.clock.steady();
        let own = self.unsettled(source);
        own.took(TakenTicks { range, late, at, again }, lost);
        let ranges = own.ranges();
        self.progress.hold_unsettled(&source.key, ranges);
        self.tell_unsettled(source, None);
    }

    /// Updates the table of sent ranges: the ranges that the server may lose, and the `next` one.
    fn tell_unsettled(&self, source: &Source, next: Option<SentRange>) {
        let Some(cluster) = &self.cluster else { return };
        let own = self.unsettled.get(&source.id).map(Unsettled::ranges).unwrap_or_default();
        let ranges = own.into_iter().map(|(first, last, _)| (first, last)).chain(next);
        cluster.covered.may_lose(&source.key, ranges.collect());
    }

    /// Repeats samples that were taken shortly before the connection was lost; returns whether there were any. Samples
    /// that the server already has are equal, in time and value; if it refuses them for that, it has lost nothing.
    fn send_again(&mut self, source: &Source) -> Result<bool, Stopped> {
        let mut sent = false;
        while let Some(TakenTicks { range, late, again, .. }) = self.unsettled(source).next() {
            self.followers.entry(source.id).or_insert_with(|| Follower::new(source));
            let Some(lost) = self.send_range(source, range, late, Why::Again)? else { return Ok(sent) };
            self.unsettled(source).gone();
            self.may_lose(source, (range, late, again + 1), lost);
            sent = true;
        }
        Ok(sent)
    }

    /// Sends one range of late samples, older than the sent position. Returns whether there was any. Stored late
    /// ranges survive a restart; others are requested again from the machine's agent, and are late again.
    fn send_late(&mut self, source: &Source) -> Result<bool, Stopped> {
        let mut late = self.progress.late(&source.key).to_vec();
        let new = self.live.take_late(source.id);
        if late.is_empty() && new.is_empty() {
            return Ok(false);
        }
        late.extend(new);
        // Another replica may have sent some of it by now.
        let covered = self.covered(source);
        let mut late: Vec<SentRange> = late.into_iter().flat_map(|range| without(range, &covered)).collect();
        bound(&mut late);
        // Ticks behind the position may be sent in order; the rest is sent here afterwards.
        let place = self.progress.get(&source.key).seq;
        let Some(&(first, last)) = late.first().filter(|(first, _)| *first <= place) else {
            if late != self.progress.late(&source.key) {
                self.keep_late(source, late);
            }
            return Ok(false);
        };
        self.keep_late(source, late);
        let range = (first, last.min(place));
        self.tell_unsettled(source, Some(range));
        let Some(lost) = self.send_range(source, range, true, Why::Late)? else { return Ok(false) };
        self.may_lose(source, (range, true, 0), lost);
        self.not_late(source, &[range]);
        Ok(true)
    }

    /// Removes sent ranges from the late ones.
    fn not_late(&mut self, source: &Source, sent: &[SentRange]) {
        let late = self.progress.late(&source.key);
        if late.is_empty() {
            return;
        }
        let left: Vec<SentRange> = late.iter().flat_map(|range| without(*range, sent)).collect();
        if left != late {
            self.keep_late(source, left);
        }
    }

    fn keep_late(&mut self, source: &Source, late: Vec<(u64, u64)>) {
        if let Err(error) = self.progress.set_late(&source.key, late) {
            self.tell(&error);
        }
    }

    /// Sends the stored samples of a range, late or not. Returns whether the connection was lost after some of them.
    /// None if it is incomplete, because the disk refuses a block: that is retried.
    fn send_range(
        &mut self,
        source: &Source,
        (first, through): SentRange,
        late: bool,
        why: Why,
    ) -> Result<Option<bool>, Stopped> {
        let (mut seq, mut taken) = (first.saturating_sub(1), None);
        while seq < through
            && let Some(follower) = self.followers.get_mut(&source.id)
        {
            let due = match late {
                true => follower.late(&self.live, seq, through),
                false => follower.next(&self.live, seq, Some(through), 1),
            };
            let span = match due {
                Due::Nothing => return Ok(None),
                Due::At(next) | Due::TooOld { seq: next, .. } => {
                    seq = next.max(seq + 1);
                    continue;
                }
                Due::Ticks(span) => span,
            };
            let mut from = 0;
            while let Some(follower) = self.followers.get_mut(&source.id)
                && (from as usize) < follower.names.len()
            {
                let batch = follower.names.batch(&span, from, None, |request| self.server.pack(request));
                if span.refused() && follower.waits(self.live.clock.steady()) {
                    return Ok(None);
                }
                if batch.samples > 0 {
                    let losses = self.deliver(&batch, why)?;
                    taken.get_or_insert(losses);
                }
                from = batch.to;
            }
            if let Some(follower) = self.followers.get_mut(&source.id) {
                follower.over(span.refused());
            }
            if why == Why::Late {
                self.took(source, &span.ranges);
            }
            seq = span.last;
        }
        Ok(Some(self.is_lost(taken)))
    }

    /// Whether the connection was lost since samples were taken, after this many losses.
    fn is_lost(&self, taken: Option<u64>) -> bool {
        taken.is_some_and(|losses| losses != self.server.losses())
    }

    /// Sends a span in requests of bounded size; each is recorded before it is sent. Returns whether the connection
    /// was lost after some of it. None if the disk refused the next block, which is retried.
    fn send(&mut self, source: &Source, place: Progress, span: &TickSpan) -> Result<Option<bool>, Stopped> {
        // For a span of an earlier run the number of losses is unknown.
        let mut taken = place.flight.filter(|flight| flight.from > 0).map(|_| 0);
        let (mut from, mut to) = place.flight.map_or((0, None), |flight| (flight.from, Some(flight.to)));
        while let Some(follower) = self.followers.get_mut(&source.id)
            && (from as usize) < follower.names.len()
        {
            let batch = follower.names.batch(span, from, to.take(), |request| self.server.pack(request));
            if span.refused() && follower.waits(self.live.clock.steady()) {
                return Ok(None);
            }
            if batch.samples > 0 {
                let flight = Flight { through: span.last, from, to: batch.to };
                self.keep(source, Progress { seq: place.seq, flight: Some(flight) });
                let losses = self.deliver(&batch, Why::New)?;
                taken.get_or_insert(losses);
            }
            from = batch.to;
        }
        if let Some(follower) = self.followers.get_mut(&source.id) {
            follower.over(span.refused());
        }
        Ok(Some(self.is_lost(taken)))
    }

    fn keep(&mut self, source: &Source, place: Progress) {
        if let Err(error) = self.progress.set(&source.key, place) {
            self.tell(&error);
        }
    }

    fn tell(&mut self, error: &std::io::Error) {
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!(%error, "how far remote write got cannot be written down: a restart will send some of it again");
        }
    }

    /// Sends one request until it is taken or refused; returns the number of losses by then.
    fn deliver(&self, batch: &Batch, why: Why) -> Result<u64, Stopped> {
        let counts = &self.remote.counts;
        let mut pause = FIRST_PAUSE;
        loop {
            counts.requests.fetch_add(1, Relaxed);
            let (reason, wait) = match self.server.write(&batch.body) {
                Ok((rejected, why)) if rejected > 0 => {
                    let rejected = rejected.min(batch.samples);
                    counts.dropped.fetch_add(rejected, Relaxed);
                    counts.sent.fetch_add(batch.samples - rejected, Relaxed);
                    let reason = match why.is_empty() {
                        true => "it rejected a part of the values".into(),
                        false => format!("it rejected a part of the values: {why}"),
                    };
                    self.remote.stand(&self.live, SendState::Refused(reason));
                    return Ok(self.server.losses());
                }
                Ok(_) => {
                    counts.bytes.fetch_add(batch.body.len() as u64, Relaxed);
                    let count = if why == Why::Again { &counts.resent } else { &counts.sent };
                    count.fetch_add(batch.samples, Relaxed);
                    self.remote.stand(&self.live, SendState::Well);
                    self.answered.set(self.live.clock.steady());
                    return Ok(self.server.losses());
                }
                Err(SendError::Refused(reason)) if why == Why::Again => {
                    tracing::debug!(reason, "what was sent once more is refused: it is there");
                    counts.resent.fetch_add(batch.samples, Relaxed);
                    self.remote.stand(&self.live, SendState::Well);
                    return Ok(self.server.losses());
                }
                Err(SendError::Refused(reason)) => {
                    counts.dropped.fetch_add(batch.samples, Relaxed);
                    let words = reason.to_ascii_lowercase();
                    if why == Why::Late || DISORDER.iter().any(|words_of| words.contains(words_of)) {
                        self.remote.refused_late(&reason);
                    }
                    self.remote.stand(&self.live, SendState::Refused(reason));
                    return Ok(self.server.losses());
                }
                Err(SendError::Later { reason, wait }) => (reason, wait),
            };
            counts.retries.fetch_add(1, Relaxed);
            self.remote.stand(&self.live, SendState::Waiting(reason));
            match self.stop.recv_timeout(wait.unwrap_or(pause).max(pause)) {
                Err(RecvTimeoutError::Timeout) => pause = (pause * 2).min(MAX_PAUSE),
                _ => return Err(Stopped),
            }
        }
    }
}
