//! The thread that sends: what is due, once, until it was taken or refused.

use super::batch::Batch;
use super::covered::{SendingCluster, SentRange, WRITE_INTERVAL, join, without};
use super::follow::{Due, Follower, MAX_BEHIND_MS};
use super::progress::{Flight, Progress, ProgressFile};
use super::server::{SendError, Server};
use super::span::TickSpan;
use super::unsettled::{TakenTicks, Unsettled};
use super::{RemoteWriter, Standing};
use shared::tick::TickState;
use shared::wire::{Source, SourceId};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use stream::live::Live;

/// Ticks of this much time go in one request: the labels of a series are sent once for all of them.
const BATCH_MS: i64 = 15_000;
/// How often the sender looks whether something is due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Back-off: the pause after the first failure, which doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// What servers say of samples that are older than the newest they have, in small letters.
const DISORDER: [&str; 4] = ["out of order", "out-of-order", "out of bounds", "too old"];

/// Ranges that are late of one source; beyond them all are one, and what lies between is sent once more.
const MAX_LATE: usize = 256;

/// Makes those that touch one, and beyond [`MAX_LATE`] all of them.
fn bound(late: &mut Vec<SentRange>) {
    let first = late.iter().map(|(first, _)| *first).min();
    let last = late.iter().map(|(_, last)| *last).max();
    join(late);
    if let (true, Some(first), Some(last)) = (late.len() > MAX_LATE, first, last) {
        *late = vec![(first, last)];
    }
}

/// Why a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// Its samples follow those before.
    New,
    /// It was taken, and the connection was lost behind it.
    Again,
    /// Its samples came late, and lie before others that were taken.
    Late,
}

/// The sender was told to end, so that it leaves what it was about to do.
pub struct Stopped;

/// Sends until it is told to end.
pub struct Sender {
    live: Arc<Live>,
    remote: Arc<RemoteWriter>,
    server: Arc<Server>,
    progress: ProgressFile,
    stop: Receiver<()>,
    followers: BTreeMap<SourceId, Follower>,
    /// The hubs that write to the same server; none: this one alone.
    cluster: Option<SendingCluster>,
    /// Sources of a cluster that are ours, and since when, by the steady clock; none once it is known what the server
    /// has of them.
    ours: BTreeMap<SourceId, Option<Duration>>,
    /// What a server that is killed may lose, by source.
    unsettled: BTreeMap<SourceId, Unsettled>,
    /// When the server took something last, by the steady clock.
    answered: Cell<Duration>,
    /// A failure to write the progress down was told.
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

    /// Sends what is due, until it is told to end.
    pub fn run(mut self) {
        self.remote.stand(&self.live, Standing::Starting);
        loop {
            let mut sources = self.live.store().sources();
            let mut more = false;
            // What was another hub's meanwhile, too: this one has sent it.
            for source in &sources {
                match self.send_again(source) {
                    Ok(sent) => more |= sent,
                    Err(Stopped) => return,
                }
                self.tell_unsettled(source, None);
            }
            self.unsettled.retain(|id, _| sources.iter().any(|source| source.id == *id));
            sources.retain(|source| self.is_ours(source));
            // In turn, so that no source is hours ahead of another: a server may take nothing that is so far behind.
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

    /// Whether the samples of a source are for us to send, now.
    ///
    /// One that has just arrived waits for as long as the hub before may take to write down what it sent: then it is known
    /// what the server has.
    fn is_ours(&mut self, source: &Source) -> bool {
        let Some(cluster) = &self.cluster else { return true };
        if !(cluster.holds)(source.id) {
            if self.ours.remove(&source.id).is_some() {
                cluster.covered.left(&source.key);
                self.followers.remove(&source.id);
            }
            // All that is here and not with the server is sent should it arrive.
            drop(self.live.take_late(source.id));
            return false;
        }
        let now = self.live.clock.steady();
        let Some(since) = *self.ours.entry(source.id).or_insert(Some(now)) else { return true };
        if now.saturating_sub(since) < WRITE_INTERVAL {
            return false;
        }
        let Some(covered) = cluster.covered.of(&source.key) else { return false };
        let place = self.progress.get(&source.key).seq;
        let oldest = self.live.clock.wall() - MAX_BEHIND_MS;
        let runs = self.live.store().runs(source.id);
        if covered.is_empty() {
            // The table begins with what this hub has sent by itself.
            let sent = runs.iter().filter(|run| run.first <= place).map(|run| (run.first, run.last.min(place)));
            let late = self.progress.late(&source.key);
            let taken: Vec<SentRange> = sent.flat_map(|range| without(range, late)).collect();
            cluster.covered.took(&source.key, &taken);
        }
        // Ticks that were brought here late lie among others, and are not met again by who reads on.
        let recent = runs.iter().filter(|run| run.to >= oldest).map(|run| (run.first, run.last));
        let covered = self.covered(source);
        let mut late: Vec<SentRange> = recent.flat_map(|range| without(range, &covered)).collect();
        bound(&mut late);
        self.keep_late(source, late);
        self.ours.insert(source.id, None);
        true
    }

    /// What the server has of a source by any hub of the cluster; nothing where there is none.
    fn covered(&self, source: &Source) -> Vec<SentRange> {
        self.cluster.as_ref().and_then(|cluster| cluster.covered.of(&source.key)).unwrap_or_default()
    }

    /// The server has taken these, or refused them for good.
    fn took(&self, source: &Source, ranges: &[SentRange]) {
        if let Some(cluster) = &self.cluster {
            cluster.covered.took(&source.key, ranges);
        }
    }

    /// Sends the next span of a source, if it is due; whether it was.
    fn go_on(&mut self, source: &Source) -> Result<bool, Stopped> {
        let ticks = (BATCH_MS / source.interval.max(1)).max(1) as u64;
        // The first goes at once: a wrong address is told at the start.
        let due = if self.remote.counts.requests.load(Relaxed) == 0 { 1 } else { ticks };
        let place = self.progress.get(&source.key);
        let covered = self.covered(source);
        let newest = self.live.store().state(source.id).map_or(0, TickState::seq);
        let next = covered.iter().find(|(_, last)| *last > place.seq);
        if let Some(&(_, last)) = next.filter(|(first, _)| *first <= place.seq + 1) {
            // Another hub has sent what comes next.
            let seq = last.min(newest);
            if seq > place.seq {
                self.keep(source, Progress { seq, flight: None });
            }
            return Ok(seq > place.seq);
        }
        // And what comes behind this.
        let end = next.map(|(first, _)| first - 1).filter(|end| *end <= newest);
        let through = place.flight.map(|f| f.through).or(end);
        let follower = self.followers.entry(source.id).or_insert_with(|| Follower::new(source));
        let seq = match follower.next(&self.live, place.seq, through, due) {
            Due::Nothing => return Ok(false),
            // Nothing that is here lies in front of what another has sent.
            Due::At(seq) if seq == place.seq && through == end => end.unwrap_or(seq),
            Due::At(seq) => seq,
            Due::TooOld { seq, samples } => {
                self.remote.counts.expired.fetch_add(samples, Relaxed);
                tracing::warn!(samples, "remote write is more than 12 h behind; the oldest were given up");
                seq
            }
            Due::Ticks(span) => {
                let Some(lost) = self.send(source, place, &span)? else { return Ok(false) };
                // In this order: what may be lost is not written down meanwhile.
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

    /// What of a source a server that is killed now may lose, as it stands after the newest answer.
    fn unsettled(&mut self, source: &Source) -> &mut Unsettled {
        let (losses, answered) = (self.server.losses(), self.answered.get());
        let resumed = || Unsettled::resumed(self.progress.unsettled(&source.key), self.live.clock.steady());
        let own = self.unsettled.entry(source.id).or_insert_with(resumed);
        own.look(losses, answered);
        own
    }

    /// The server has just taken these, which came late or not, and so often once more. It may lose them should it be killed
    /// now; where the connection was `lost` behind some of them, it may have lost them already.
    fn may_lose(&mut self, source: &Source, (range, late, again): (SentRange, bool, u8), lost: bool) {
        let at = self.live.clock.steady();
        let own = self.unsettled(source);
        own.took(TakenTicks { range, late, at, again }, lost);
        let ranges = own.ranges();
        self.progress.hold_unsettled(&source.key, ranges);
        self.tell_unsettled(source, None);
    }

    /// Tells who writes down what was sent what of it the server may lose, and what is `next`.
    fn tell_unsettled(&self, source: &Source, next: Option<SentRange>) {
        let Some(cluster) = &self.cluster else { return };
        let own = self.unsettled.get(&source.id).map(Unsettled::ranges).unwrap_or_default();
        let ranges = own.into_iter().map(|(first, last, _)| (first, last)).chain(next);
        cluster.covered.may_lose(&source.key, ranges.collect());
    }

    /// Sends once more what was taken shortly before the connection was lost; whether there was any. What the server holds
    /// already is equal, in time and value; one that refuses it for that has lost nothing.
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

    /// Sends what came late in front of what was sent: one range of it. Whether there was any. What is written down of it
    /// outlives us; of what was not, the machine's agent is asked anew, and it comes late again.
    fn send_late(&mut self, source: &Source) -> Result<bool, Stopped> {
        let mut late = self.progress.late(&source.key).to_vec();
        let new = self.live.take_late(source.id);
        if late.is_empty() && new.is_empty() {
            return Ok(false);
        }
        late.extend(new);
        // Another hub may have sent some of it by now.
        let covered = self.covered(source);
        let mut late: Vec<SentRange> = late.into_iter().flat_map(|range| without(range, &covered)).collect();
        bound(&mut late);
        // What lies behind the place may be sent in its turn; what is left of it then is sent here.
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

    /// These were sent, and are not late any more.
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

    /// Sends what is kept of a range, which came late or not. Whether the connection was lost behind some of it; none where
    /// that was not all: a disk that does not hand it out is waited for.
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
                let batch = follower.names.batch(&span, from, None);
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

    /// Whether the connection was lost since something was taken, after so many losses.
    fn is_lost(&self, taken: Option<u64>) -> bool {
        taken.is_some_and(|losses| losses != self.server.losses())
    }

    /// Sends a span in requests of bounded size, each written down before it leaves. Whether the connection was lost behind
    /// some of it; none where the disk did not hand out what comes next, and it is waited for.
    fn send(&mut self, source: &Source, place: Progress, span: &TickSpan) -> Result<Option<bool>, Stopped> {
        // Of a span that was begun before it is not known how often the connection had been lost by then.
        let mut taken = place.flight.filter(|flight| flight.from > 0).map(|_| 0);
        let (mut from, mut to) = place.flight.map_or((0, None), |flight| (flight.from, Some(flight.to)));
        while let Some(follower) = self.followers.get_mut(&source.id)
            && (from as usize) < follower.names.len()
        {
            let batch = follower.names.batch(span, from, to.take());
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

    /// Sends one request until it is taken or refused; how often the connection had been lost by then.
    fn deliver(&self, batch: &Batch, why: Why) -> Result<u64, Stopped> {
        let counts = &self.remote.counts;
        let mut pause = FIRST_PAUSE;
        loop {
            counts.requests.fetch_add(1, Relaxed);
            let (reason, wait) = match self.server.write(&batch.body) {
                Ok(()) => {
                    counts.bytes.fetch_add(batch.body.len() as u64, Relaxed);
                    let count = if why == Why::Again { &counts.resent } else { &counts.sent };
                    count.fetch_add(batch.samples, Relaxed);
                    self.remote.stand(&self.live, Standing::Well);
                    self.answered.set(self.live.clock.steady());
                    return Ok(self.server.losses());
                }
                Err(SendError::Refused(reason)) if why == Why::Again => {
                    tracing::debug!(reason, "what was sent once more is refused: it is there");
                    counts.resent.fetch_add(batch.samples, Relaxed);
                    self.remote.stand(&self.live, Standing::Well);
                    return Ok(self.server.losses());
                }
                Err(SendError::Refused(reason)) => {
                    counts.dropped.fetch_add(batch.samples, Relaxed);
                    let words = reason.to_ascii_lowercase();
                    if why == Why::Late || DISORDER.iter().any(|words_of| words.contains(words_of)) {
                        self.remote.refused_late(&reason);
                    }
                    self.remote.stand(&self.live, Standing::Refused(reason));
                    return Ok(self.server.losses());
                }
                Err(SendError::Later { reason, wait }) => (reason, wait),
            };
            counts.retries.fetch_add(1, Relaxed);
            self.remote.stand(&self.live, Standing::Waiting(reason));
            match self.stop.recv_timeout(wait.unwrap_or(pause).max(pause)) {
                Err(RecvTimeoutError::Timeout) => pause = (pause * 2).min(MAX_PAUSE),
                _ => return Err(Stopped),
            }
        }
    }
}
