//! One service of a cluster at a time is away for ten minutes: NATS, PostgreSQL, the sample store. The page reports it,
//! and reads afterwards return each sample once. The ten minutes pass only on the wall clock of hubs and agent.
#![cfg(target_os = "linux")]

use crate::sample_stores::{DEDUP, ledger_in, victoria_metrics};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tempfile::TempDir;
use watchglass_tests::cluster::Cluster;
use watchglass_tests::programs::Program;
use watchglass_tests::stream::Page;
use watchglass_tests::waiting::MAX_WAIT;

const TEN_MINUTES: i64 = 600_000;

/// A cluster over a real store. A machine is connected to the first hub, and shown on the second.
struct Stage {
    cluster: Cluster,
    store: Option<Program>,
    addr: SocketAddr,
    folder: TempDir,
}

type Ledger = BTreeMap<(i64, String), f64>;

impl Stage {
    fn start() -> Stage {
        let (folder, addr) = (tempfile::tempdir().expect("a folder"), Program::free());
        let store = Some(victoria_metrics(addr, folder.path(), &[DEDUP]));
        let mut cluster = Cluster::start_over(2, addr);
        cluster.start_agent(&[0]);
        Stage { cluster, store, addr, folder }
    }

    fn start_store(&mut self) {
        self.store = Some(victoria_metrics(self.addr, self.folder.path(), &[DEDUP]));
    }

    fn stored(&self) -> Ledger {
        ledger_in(self.store.as_ref().expect("it runs"))
    }

    /// The agent's own samples, by the names in a store.
    fn measured(&self) -> Ledger {
        let name = |tag: &str| {
            let tag = tag.trim_start_matches('"').strip_prefix("openmetrics.books.").unwrap_or_else(|| panic!("{tag}"));
            tag.split('{').next().unwrap_or_default().to_string()
        };
        let all = self.cluster.measured().into_iter();
        all.map(|((t, tag), value)| ((t, name(&tag)), value.parse().expect("a number"))).collect()
    }

    /// Takes one service away for ten minutes. A page of the second hub reports this meanwhile, and no longer
    /// afterwards.
    async fn without(mut self, said: &str, stop: impl FnOnce(&mut Stage), start: impl FnOnce(&mut Stage)) {
        self.cluster.is_live(0);
        self.cluster.is_live(1);
        self.cluster.until("the first hub sends", || self.stored().len() > 60);
        let (mut page, mut connection) = self.cluster.page(1).await;
        page.until(&mut connection, |page| !page.checks.is_empty()).await;
        let says = |page: &Page| page.checks.iter().any(|check| check.reason.contains(said));
        assert!(!says(&page), "{:?}", page.checks);
        stop(&mut self);
        self.cluster.clock.set_ahead(TEN_MINUTES);
        // A request is sent every 15 s.
        let said = async {
            while !says(&page) {
                assert!(page.take(&mut connection).await, "the stream ended: {:?}", page.goodbye);
            }
        };
        tokio::time::timeout(5 * MAX_WAIT, said).await.expect("the page says it");
        drop(connection);
        // Three samples each, some of which come too late for their tick.
        self.cluster.measures_on(150);
        start(&mut self);
        for hub in [0, 1] {
            self.cluster.is_live(hub);
        }
        for hub in [0, 1] {
            self.cluster.is_whole(hub);
        }
        let newest = |all: &Ledger| all.keys().map(|(t, _)| *t).max().unwrap_or_default();
        let now = newest(&self.measured());
        self.cluster.until("what came meanwhile is in the store", || newest(&self.stored()) > now);
        let up_to = |all: Ledger| all.into_iter().filter(|((t, _), _)| *t <= now).collect::<Vec<_>>();
        let (ours, theirs) = (up_to(self.measured()), up_to(self.stored()));
        assert!(ours.len() > 400, "{}", ours.len());
        let differ = ours.iter().zip(&theirs).find(|(own, other)| own.0 != other.0 || (own.1 - other.1).abs() > 1e-9);
        assert!(differ.is_none() && ours.len() == theirs.len(), "{} and {}: {differ:?}", ours.len(), theirs.len());
        let (mut page, mut connection) = self.cluster.page(1).await;
        page.until(&mut connection, |page| !page.checks.is_empty() && !says(page)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Debian's nats-server, PostgreSQL 15 and victoria-metrics"]
async fn with_nats_stopped_for_ten_minutes_no_sample_is_lost_or_doubled_and_it_is_said() {
    let said = "NATS, which connects the hubs of this cluster, is unreachable";
    Stage::start().without(said, |stage| stage.cluster.stop_nats(), |stage| stage.cluster.start_nats()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Debian's nats-server, PostgreSQL 15 and victoria-metrics"]
async fn with_nats_and_its_postgresql_stopped_for_ten_minutes_no_sample_is_lost_or_doubled_and_it_is_said() {
    let said = "the database of this cluster is unreachable";
    let (stop, start) = (
        |stage: &mut Stage| stage.cluster.postgresql.stop(),
        |stage: &mut Stage| stage.cluster.postgresql.start_again(),
    );
    Stage::start().without(said, stop, start).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Debian's nats-server, PostgreSQL 15 and victoria-metrics"]
async fn with_nats_and_its_sample_store_killed_for_ten_minutes_no_sample_is_lost_or_doubled_and_it_is_said() {
    let said = "unsent samples of up to 12 h are retried";
    Stage::start().without(said, |stage| stage.store = None, Stage::start_store).await;
}
