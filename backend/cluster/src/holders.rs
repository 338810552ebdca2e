//! The hub that holds each source, as last read from the database. It is read every two seconds; an announcement of
//! another hub counts at once.

use super::Cluster;
use super::calls::Announced;
use parking_lot::{Mutex, MutexGuard};
use records::links::LinkRow;
use records::{leases, links};
use std::collections::BTreeMap;
use std::time::Duration;
use stream::live::Holder;
use tokio::time::{Instant, timeout};

/// Lifetime of a hub's lease, milliseconds. A hub whose lease has expired holds nothing.
const LEASE_MS: i64 = 15_000;
/// Interval at which a hub renews its lease.
pub(super) const LEASE_INTERVAL: Duration = Duration::from_secs(5);
/// Interval at which the database is read.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum time of a database request.
pub(super) const RECORDS_TIMEOUT: Duration = Duration::from_secs(5);
/// Rows of hubs that ended without cleaning up are deleted after this time, milliseconds.
const FORGET_MS: i64 = 86_400_000;

/// Holder of the link of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldLink {
    /// Id of the hub.
    pub hub: String,
    /// Since when, milliseconds since the Unix epoch.
    pub since: i64,
    /// Whether that hub's lease is valid.
    pub alive: bool,
    /// When this hub learned of it.
    pub heard: Instant,
}

#[derive(Default)]
pub(super) struct KnownLinks {
    all: BTreeMap<String, HeldLink>,
    /// Sources that this hub has written as its own, and the start of each.
    pub mine: BTreeMap<String, i64>,
    /// Hubs with a valid lease: ID and name.
    hubs: Vec<(String, String)>,
    /// Whether the last read of the database succeeded.
    read: bool,
    /// Whether this hub's lease is written.
    leased: bool,
}

/// The holders of all sources.
#[derive(Default)]
pub(super) struct Holders(Mutex<KnownLinks>);

impl Holders {
    pub fn known(&self) -> MutexGuard<'_, KnownLinks> {
        self.0.lock()
    }

    pub fn find(&self, source: &str) -> Option<HeldLink> {
        self.known().all.get(source).cloned()
    }

    /// Hubs with a valid lease: ID and name.
    pub fn hubs(&self) -> Vec<(String, String)> {
        self.known().hubs.clone()
    }

    /// The name of a hub.
    pub fn name_of(&self, hub: &str) -> Option<String> {
        self.known().hubs.iter().find(|(id, _)| id == hub).map(|(_, name)| name.clone())
    }

    /// Number of sources that this hub holds, and that other live hubs hold.
    pub fn counts(&self, own: &str) -> (usize, usize) {
        let known = self.known();
        let own = |held: &&HeldLink| held.hub == own;
        (known.all.values().filter(own).count(), known.all.values().filter(|held| held.alive && !own(held)).count())
    }

    /// Whether the last read of the database succeeded.
    pub fn is_read(&self) -> bool {
        self.known().read
    }

    pub fn put(&self, source: &str, held: HeldLink) {
        self.known().all.insert(source.into(), held);
    }

    /// Applies the rows that the database returned to a query sent at `asked`. Announcements since then are newer.
    fn read(&self, rows: Vec<LinkRow>, hubs: Vec<(String, String)>, asked: Instant) {
        let mut known = self.known();
        let row = |LinkRow { source, hub, since, alive }| (source, HeldLink { hub, since, alive, heard: asked });
        let mut all: BTreeMap<String, HeldLink> = rows.into_iter().map(row).collect();
        let newer = std::mem::take(&mut known.all).into_iter().filter(|(_, held)| held.heard > asked);
        all.extend(newer);
        (known.all, known.hubs, known.read) = (all, hubs, true);
    }

    /// Decision about a link of this hub.
    fn judge(&self, source: &str, own: &str) -> LinkVerdict {
        let known = self.known();
        match (known.mine.get(source), known.all.get(source)) {
            // The link has only begun, and its previous holder is being queried.
            (None, _) => LinkVerdict::Well,
            (Some(_), Some(held)) if held.hub == own => LinkVerdict::Well,
            (Some(since), Some(held)) if held.alive => {
                if held.since > *since {
                    LinkVerdict::Moved
                } else {
                    LinkVerdict::Well
                }
            }
            _ => LinkVerdict::Unwritten,
        }
    }
}

/// Decision about a link of this hub.
#[derive(Debug, PartialEq, Eq)]
enum LinkVerdict {
    Well,
    /// The link must end: another hub has the machine.
    Moved,
    /// The link must be written to the database again.
    Unwritten,
}

impl Cluster {
    /// Renews the lease of this hub.
    pub(super) async fn renew(&self) {
        let now = self.others.live.clock.wall();
        let written = self.others.written(async |on| {
            let name = links::lease_of(&self.others.id);
            leases::take(on, &name, &self.others.name, (now, now + LEASE_MS)).await.map(drop)
        });
        let leased = written.await;
        self.others.holders.known().leased = leased.is_ok();
        if let Err(why) = leased {
            tracing::warn!("that this hub is there could not be written down: {why}");
        }
    }

    /// Reads the holders of all sources, and acts on them.
    pub(super) async fn read_holders(&self) {
        let (now, asked) = (self.others.live.clock.wall(), Instant::now());
        let read = async {
            let mut on = self.others.records.read().await?;
            Ok::<_, records::Error>((links::all(&mut on, now).await?, links::hubs(&mut on, now).await?))
        };
        let (rows, hubs) = match timeout(RECORDS_TIMEOUT, read).await {
            Ok(Ok(read)) => read,
            // The known state stays valid, above all this hub's own links.
            _ => return self.others.holders.known().read = false,
        };
        self.others.holders.read(rows, hubs, asked);
        self.settle().await;
    }

    /// Publishes the known state on the stream, ends links that another hub holds now, and writes this hub's links that
    /// have no holder.
    async fn settle(&self) {
        let (others, linked) = (&self.others, self.ingest.linked());
        let mut gone: Vec<String> = others.holders.known().mine.keys().cloned().collect();
        gone.retain(|key| {
            let source = others.live.store().named(key);
            !linked.contains(key) && !others.is_own(key, source)
        });
        others.holders.known().mine.retain(|key, _| !gone.contains(key));
        let mut unwritten = Vec::new();
        for source in linked {
            match others.holders.judge(&source, &others.id) {
                LinkVerdict::Well => {}
                LinkVerdict::Moved => self.ingest.leave(&source),
                LinkVerdict::Unwritten => unwritten.push(source),
            }
        }
        // Two hubs on one machine both measure it; the first to write it down holds it.
        let is_free = |own: &String| others.holders.find(own).is_none_or(|held| !held.alive);
        unwritten.extend(others.all_own().into_iter().filter(is_free));
        for source in unwritten {
            let _ = others.put(&source).await;
        }
        let known: BTreeMap<String, HeldLink> = others.holders.known().all.clone();
        self.show(&known);
    }

    /// Sets the holder of each source in the live state.
    fn show(&self, known: &BTreeMap<String, HeldLink>) {
        let missing: Vec<&String> = {
            let store = self.others.live.store();
            known.keys().filter(|source| store.named(source).is_none()).collect()
        };
        missing.into_iter().for_each(|source| self.others.add(source));
        let sources = self.others.live.store().sources();
        for source in sources {
            let holder = match known.get(&source.key) {
                _ if self.others.is_own(&source.key, Some(source.id)) => Holder::Here,
                Some(held) if held.hub == self.others.id => Holder::Here,
                Some(held) if held.alive => Holder::There,
                _ => Holder::Nobody,
            };
            self.others.live.set_holder(source.id, holder);
        }
    }

    /// Another hub announced a source. If it is another one's now, its link here ends.
    pub(super) fn apply_announcement(&self, said: Announced) {
        let (source, ours) = (said.source.clone(), said.hub == self.others.id);
        if self.others.apply_announcement(said) && !ours {
            self.ingest.leave(&source);
        }
    }

    /// Deletes the rows of hubs that ended without cleaning up.
    pub(super) async fn forget(&self) {
        let before = self.others.live.clock.wall() - FORGET_MS;
        if let Err(why) = self.others.written(async |on| links::forget(on, before).await).await {
            tracing::warn!("hubs that ended could not be forgotten: {why}");
        }
    }

    /// Releases all sources of this hub when it ends.
    pub(super) async fn give_back(&self) {
        let given = self.others.written(async |on| {
            links::give_all_back(on, &self.others.id).await?;
            leases::give_back(on, &links::lease_of(&self.others.id), &self.others.name).await
        });
        if let Err(why) = given.await {
            tracing::warn!("that this hub ends could not be written down: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(hub: &str, since: i64, alive: bool) -> LinkRow {
        LinkRow { source: "s".into(), hub: hub.into(), since, alive }
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_ends_only_for_a_hub_that_took_it_later() {
        let holders = Holders::default();
        let read = |row: Option<LinkRow>| holders.read(row.into_iter().collect(), Vec::new(), Instant::now());
        read(Some(row("b", 5, true)));
        assert_eq!(holders.judge("s", "a"), LinkVerdict::Well, "it is being asked who has it");
        holders.known().mine.insert("s".into(), 6);
        assert_eq!(holders.judge("s", "a"), LinkVerdict::Well, "what was read is older than what was written");
        read(Some(row("b", 7, true)));
        assert_eq!(holders.judge("s", "a"), LinkVerdict::Moved);
        read(Some(row("b", 7, false)));
        assert_eq!(holders.judge("s", "a"), LinkVerdict::Unwritten, "that hub has ended");
        read(None);
        assert_eq!(holders.judge("s", "a"), LinkVerdict::Unwritten);
        read(Some(row("a", 8, true)));
        assert_eq!(holders.judge("s", "a"), LinkVerdict::Well);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_heard_while_the_database_was_read_counts() {
        let holders = Holders::default();
        let asked = Instant::now();
        tokio::time::advance(Duration::from_millis(5)).await;
        holders.put("s", HeldLink { hub: "a".into(), since: 9, alive: true, heard: Instant::now() });
        holders.read(vec![row("b", 3, true)], Vec::new(), asked);
        assert_eq!(holders.find("s").map(|held| held.hub).as_deref(), Some("a"));
        tokio::time::advance(Duration::from_millis(5)).await;
        holders.read(vec![row("b", 10, true)], vec![("b".into(), "node".into())], Instant::now());
        assert_eq!(holders.find("s").map(|held| held.hub).as_deref(), Some("b"));
        assert_eq!((holders.counts("a"), holders.name_of("b").as_deref()), ((0, 1), Some("node")));
    }
}
