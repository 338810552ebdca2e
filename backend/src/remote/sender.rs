//! The thread that sends: what is due, once, until it was taken or refused.

use super::batch::Batch;
use super::follow::{Follower, Next, Run};
use super::place::{Flight, Place, Places};
use super::server::{Server, Trouble};
use super::{Remote, Standing};
use crate::live::Hub;
use shared::wire::{Source, SourceId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Ticks of this much time go in one request: the labels of a series are sent once for all of them.
const BATCH: i64 = 15_000;
/// How much of what was taken goes once more after the connection was lost, milliseconds: a server that was killed may
/// have lost what it had not written.
const AGAIN: i64 = 60_000;
/// How often it is looked whether something is due.
const LOOK: Duration = Duration::from_secs(1);
/// The pause after the first failure; it doubles up to the longest.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// We were told to end.
pub struct Stopped;

/// Sends until it is told to end.
pub struct Sender {
    hub: Arc<Hub>,
    remote: Arc<Remote>,
    server: Arc<Server>,
    places: Places,
    stop: Receiver<()>,
    followers: BTreeMap<SourceId, Follower>,
    /// The losses of the connection after which a source has sent its last minute once more.
    losses: BTreeMap<SourceId, u64>,
    /// A failure to write the places down was told.
    told: bool,
}

impl Sender {
    pub(super) fn new(hub: Arc<Hub>, remote: Arc<Remote>, places: Places, stop: Receiver<()>) -> Self {
        let server = remote.server.clone();
        Sender { hub, remote, server, places, stop, followers: BTreeMap::new(), losses: BTreeMap::new(), told: false }
    }

    /// Runs to the end.
    pub fn run(mut self) {
        self.remote.stand(&self.hub, Standing::Starting);
        loop {
            let sources = self.hub.store().sources();
            let mut more = false;
            // In turn, so that no source is hours ahead of another: a server may take nothing that is so far behind.
            for source in &sources {
                match self.go_on(source) {
                    Ok(sent) => more |= sent,
                    Err(Stopped) => return,
                }
            }
            let behind = sources.iter().filter_map(|source| self.behind(source)).max();
            self.remote.counts.behind_ms.store(behind.unwrap_or(0), Relaxed);
            let pause = if more { Duration::ZERO } else { LOOK };
            match self.stop.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    /// Milliseconds of ticks that were not taken.
    fn behind(&self, source: &Source) -> Option<u64> {
        let newest = self.hub.store().state(source.id)?.seq();
        let ticks = newest.saturating_sub(self.places.get(&source.name).seq);
        Some(ticks * source.interval.max(0) as u64)
    }

    /// Sends the next run of a source, if it is due; whether it was.
    fn go_on(&mut self, source: &Source) -> Result<bool, Stopped> {
        let ticks = (BATCH / source.interval.max(1)).max(1) as u64;
        // The first goes at once: a wrong address is told at the start.
        let due = if self.remote.counts.requests.load(Relaxed) == 0 { 1 } else { ticks };
        let place = self.places.get(&source.name);
        let follower = self.followers.entry(source.id).or_insert_with(|| Follower::new(source));
        let seq = match follower.next(&self.hub, place.seq, place.flight.map(|f| f.through), due) {
            Next::Nothing => return Ok(false),
            Next::At(seq) => seq,
            Next::TooOld { seq, samples } => {
                self.remote.counts.expired.fetch_add(samples, Relaxed);
                tracing::warn!(samples, "remote write is more than 12 h behind; the oldest were given up");
                seq
            }
            Next::Run(run) => {
                let Some(taken) = self.send(source, place, &run)? else { return Ok(false) };
                self.keep(source, Place { seq: run.last, flight: None });
                self.send_again(source, taken)?;
                return Ok(true);
            }
        };
        self.keep(source, Place { seq, flight: None });
        Ok(true)
    }

    /// Sends the last minute up to a tick once more, where the connection was lost since that was done last. Only behind a
    /// run that is new, so that a server that ends every connection is sent each sample a bounded number of times. What
    /// it holds already is equal, in time and value; a server that refuses it for that has lost nothing.
    fn send_again(&mut self, source: &Source, through: u64) -> Result<(), Stopped> {
        let losses = self.server.losses();
        if self.losses.insert(source.id, losses).unwrap_or(0) == losses {
            return Ok(());
        }
        let mut seq = through.saturating_sub((AGAIN / source.interval.max(1)).max(1) as u64);
        while seq < through
            && let Some(follower) = self.followers.get_mut(&source.id)
        {
            let run = match follower.next(&self.hub, seq, Some(through), 1) {
                // It is not kept any more.
                Next::Nothing => break,
                Next::At(next) | Next::TooOld { seq: next, .. } => {
                    seq = next.max(seq + 1);
                    continue;
                }
                Next::Run(run) => run,
            };
            let mut from = 0;
            while let Some(follower) = self.followers.get_mut(&source.id)
                && (from as usize) < follower.names.len()
            {
                let batch = follower.names.batch(&run, from, None);
                if batch.samples > 0 {
                    self.deliver(&batch, true)?;
                }
                from = batch.to;
            }
            seq = run.last;
        }
        Ok(())
    }

    /// Sends a run in requests of bounded size, each written down before it leaves. The sequence up to which something was
    /// taken before the connection was lost, should it have been; none where the disk did not hand out what comes next,
    /// and it is waited for.
    fn send(&mut self, source: &Source, place: Place, run: &Run) -> Result<Option<u64>, Stopped> {
        let (losses, mut taken) = (self.server.losses(), place.seq);
        let before = self.losses.get(&source.id).copied().unwrap_or(0) != losses;
        let (mut from, mut to) = place.flight.map_or((0, None), |flight| (flight.from, Some(flight.to)));
        while let Some(follower) = self.followers.get_mut(&source.id)
            && (from as usize) < follower.names.len()
        {
            let batch = follower.names.batch(run, from, to.take());
            if run.refused() && follower.waits(self.hub.clock.steady()) {
                return Ok(None);
            }
            if batch.samples > 0 {
                let flight = Flight { through: run.last, from, to: batch.to };
                self.keep(source, Place { seq: place.seq, flight: Some(flight) });
                self.deliver(&batch, false)?;
                if !before && self.server.losses() == losses {
                    taken = run.last;
                }
            }
            from = batch.to;
        }
        if let Some(follower) = self.followers.get_mut(&source.id) {
            follower.over(run.refused());
        }
        Ok(Some(taken))
    }

    fn keep(&mut self, source: &Source, place: Place) {
        if let Err(error) = self.places.set(&source.name, place)
            && !std::mem::replace(&mut self.told, true)
        {
            tracing::warn!(%error, "how far remote write got cannot be written down: a restart will send some of it again");
        }
    }

    /// Sends one request until it is taken or refused; `again` where it was taken before.
    fn deliver(&self, batch: &Batch, again: bool) -> Result<(), Stopped> {
        let counts = &self.remote.counts;
        let mut pause = FIRST;
        loop {
            counts.requests.fetch_add(1, Relaxed);
            let (reason, wait) = match self.server.write(&batch.body) {
                Ok(()) => {
                    counts.bytes.fetch_add(batch.body.len() as u64, Relaxed);
                    let count = if again { &counts.resent } else { &counts.sent };
                    count.fetch_add(batch.samples, Relaxed);
                    self.remote.stand(&self.hub, Standing::Well);
                    return Ok(());
                }
                Err(Trouble::Refused(reason)) if again => {
                    tracing::debug!(reason, "what was sent once more is refused: it is there");
                    counts.resent.fetch_add(batch.samples, Relaxed);
                    self.remote.stand(&self.hub, Standing::Well);
                    return Ok(());
                }
                Err(Trouble::Refused(reason)) => {
                    counts.dropped.fetch_add(batch.samples, Relaxed);
                    self.remote.stand(&self.hub, Standing::Refused(reason));
                    return Ok(());
                }
                Err(Trouble::Later { reason, wait }) => (reason, wait),
            };
            counts.retries.fetch_add(1, Relaxed);
            self.remote.stand(&self.hub, Standing::Waiting(reason));
            match self.stop.recv_timeout(wait.unwrap_or(pause).max(pause)) {
                Err(RecvTimeoutError::Timeout) => pause = (pause * 2).min(LONGEST),
                _ => return Err(Stopped),
            }
        }
    }
}
