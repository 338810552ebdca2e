//! Runs of this machine while they run: what is told of them, and what the kernel says of their ends, as records.

use super::socket::RunSocket;
use super::untold;
use crate::live::Live;
use shared::run::{BEGIN_KIND, Begun, END_KIND, How, Over, Told};
use shared::wire::SourceId;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The most processes whose ends are waited for; of others an end is known that is told.
const MAX_WATCHED: usize = 1024;

/// The most messages a second: a record is written for each.
const MAX_MESSAGES: governor::Quota = governor::Quota::per_second(std::num::NonZeroU32::new(100).expect("not zero"));

/// How long a launcher may take to say how its process ended, which it knows better than the kernel tells others.
const TELL_TIMEOUT: Duration = Duration::from_secs(2);

/// A run that lives longer than samples are kept is told again so often.
const AGAIN: Duration = Duration::from_secs(3600);

/// A process of a run, by run and number.
type Key = (String, u32);

struct Tracker {
    live: Arc<Live>,
    source: SourceId,
    /// Those that run, as far as is known.
    running: HashMap<Key, Begun>,
    /// Ends that the kernel tells.
    ends: JoinSet<(Begun, How)>,
    dropped: u64,
}

/// Follows the runs of this machine until `stop` becomes true: what launchers tell on the socket, what they wrote into the
/// data folder, and what ran when this process started.
pub async fn follow(
    live: Arc<Live>,
    source: SourceId,
    socket: RunSocket,
    folder: &Path,
    mut stop: watch::Receiver<bool>,
) {
    let mut tracker = Tracker { live, source, running: HashMap::new(), ends: JoinSet::new(), dropped: 0 };
    let limit = governor::RateLimiter::direct(MAX_MESSAGES);
    for told in untold::take(&folder.join(untold::FOLDER)) {
        tracker.told(told);
    }
    tracker.resume();
    let mut again =
        tokio::time::interval(AGAIN.min(Duration::from_millis(tracker.live.retention.unsigned_abs() / 2 + 1)));
    again.tick().await;
    loop {
        tokio::select! {
            told = socket.next() => match limit.check() {
                Ok(()) => tracker.told(told),
                Err(_) => tracker.drop_one(),
            },
            Some(Ok((begun, how))) = tracker.ends.join_next() => tracker.gone(begun, how),
            _ = again.tick() => tracker.again(),
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

impl Tracker {
    fn told(&mut self, told: Told) {
        match told {
            Told::Begin(begun) => {
                let key = (begun.run.clone(), begun.pid);
                if self.running.get(&key) != Some(&begun) {
                    self.append(begun.t, BEGIN_KIND, &begun);
                    self.watch(begun);
                }
            }
            Told::End(over) => self.over(over),
        }
    }

    fn over(&mut self, over: Over) {
        self.running.remove(&(over.begun.run.clone(), over.begun.pid));
        self.append(over.t, END_KIND, &over);
    }

    /// The kernel says that a process is gone.
    fn gone(&mut self, begun: Begun, how: How) {
        // Its launcher may have said more.
        if self.running.contains_key(&(begun.run.clone(), begun.pid)) {
            let t = self.live.clock.wall();
            self.over(Over { begun, t, how });
        }
    }

    /// Those that our own records say run. Those that ended while nobody looked are said to have ended.
    fn resume(&mut self) {
        let records = self.live.store().records(self.source, 0, i64::MAX);
        let mut open: HashMap<Key, Begun> = HashMap::new();
        for record in records.into_iter().flatten().flatten() {
            if record.kind == BEGIN_KIND
                && let Ok(begun) = serde_json::from_slice::<Begun>(&record.body)
            {
                open.insert((begun.run.clone(), begun.pid), begun);
            } else if record.kind == END_KIND
                && let Ok(Over { begun, .. }) = serde_json::from_slice(&record.body)
            {
                open.remove(&(begun.run, begun.pid));
            }
        }
        open.retain(|key, _| !self.running.contains_key(key));
        for begun in open.into_values() {
            let is_ours = begun.namespace == launch::process::namespace();
            match !is_ours || begun.start.is_some() && launch::process::started(begun.pid) == begun.start {
                true => self.watch(begun),
                false => {
                    let t = self.live.clock.wall();
                    self.over(Over { begun, t, how: How::default() });
                }
            }
        }
    }

    /// Tells of those that run once more, before what was told first is as old as the samples that go.
    fn again(&mut self) {
        for begun in self.running.values() {
            self.append(self.live.clock.wall(), BEGIN_KIND, begun);
        }
    }

    fn watch(&mut self, begun: Begun) {
        self.running.insert((begun.run.clone(), begun.pid), begun.clone());
        #[cfg(target_os = "linux")]
        if self.ends.len() < MAX_WATCHED {
            self.ends.spawn(async move {
                let how = match begun.start.filter(|_| begun.namespace == launch::process::namespace()) {
                    Some(start) => match super::pidfd::ProcessFd::open(begun.pid, start) {
                        Ok(process) => process.ended().await,
                        Err(_) => How::default(), // It has ended already.
                    },
                    // Its number means nothing here, as that of a process in a container: its launcher alone tells.
                    None => std::future::pending().await,
                };
                tokio::time::sleep(TELL_TIMEOUT).await;
                (begun, how)
            });
        }
    }

    fn append(&self, t: i64, kind: &str, body: &impl serde::Serialize) {
        let body = serde_json::to_vec(body).expect("texts and numbers only");
        if let Err(error) = self.live.append_record(self.source, t, kind, body) {
            tracing::warn!(%error, "a run is not kept");
        }
    }

    fn drop_one(&mut self) {
        self.dropped += 1;
        if self.dropped.is_power_of_two() {
            tracing::warn!(
                dropped = self.dropped,
                "more than 100 messages a second about runs; those beyond are dropped"
            );
        }
    }
}
