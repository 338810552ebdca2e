//! Requests for the stacks of hanging jobs. Launchers with `--stacks` offer them on the socket, again and again; each offer
//! is used once.

use launch::peer::Sender;
use parking_lot::Mutex;
use shared::run::{RunProcess, StackedRank, StacksAsked};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Time for which an offer is valid: ten times the interval of offers.
const OFFER_LIFETIME: Duration = Duration::from_secs(300);
/// Maximum number of runs with offers, and of launchers of one run.
const MAX_RUNS: usize = 256;
const MAX_LAUNCHERS: usize = 64;
/// Maximum number of processes that one launcher is asked about.
const MAX_PROCESSES: usize = 64;

/// A launcher that takes stacks, and the time of its newest offer.
#[derive(Clone, Copy)]
struct Offer {
    launcher: Sender,
    at: Instant,
}

/// Offers of launchers, and requests that are not sent yet.
#[derive(Default)]
pub(super) struct StackRequests {
    offers: Mutex<BTreeMap<String, Vec<Offer>>>,
    queue: Mutex<Vec<(Sender, StacksAsked)>>,
    came: Notify,
}

impl StackRequests {
    /// Adds the offer of a launcher for a run.
    pub fn offer(&self, run: &str, launcher: Sender) {
        let mut offers = self.offers.lock();
        offers.values_mut().for_each(|all| all.retain(|one| one.at.elapsed() < OFFER_LIFETIME));
        offers.retain(|_, all| !all.is_empty());
        if offers.len() >= MAX_RUNS && !offers.contains_key(run) {
            return;
        }
        let all = offers.entry(run.into()).or_default();
        all.retain(|one| one.launcher.pid != launcher.pid);
        if all.len() < MAX_LAUNCHERS {
            all.push(Offer { launcher, at: Instant::now() });
        }
    }

    /// Queues a request to the launchers of a run; false if there are none.
    pub fn request(&self, run: &str, asked: &StacksAsked) -> bool {
        let offers = self.offers.lock().remove(run).unwrap_or_default();
        let valid = offers.into_iter().filter(|one| one.at.elapsed() < OFFER_LIFETIME);
        let requests: Vec<(Sender, StacksAsked)> = valid.map(|one| (one.launcher, asked.clone())).collect();
        let is_any = !requests.is_empty();
        self.queue.lock().extend(requests);
        self.came.notify_one();
        is_any
    }

    /// The next requests to send.
    pub async fn next(&self) -> Vec<(Sender, StacksAsked)> {
        self.came.notified().await;
        std::mem::take(&mut *self.queue.lock())
    }
}

/// The processes of a run whose stacks are requested: its ranks, else all. None if it holds none of these GPUs.
pub(super) fn wanted(here: &[&RunProcess], gpus: &[u32]) -> Vec<StackedRank> {
    let holds = |one: &&RunProcess| one.rank.iter().flat_map(|rank| &rank.gpus).any(|gpu| gpus.contains(gpu));
    if !gpus.is_empty() && !here.iter().any(holds) {
        return Vec::new();
    }
    let has_ranks = here.iter().any(|one| one.rank.is_some());
    let of_rank = here.iter().filter(|one| one.rank.is_some() || !has_ranks);
    let asked = of_rank.map(|one| StackedRank { pid: one.pid, rank: one.rank.as_ref().map(|rank| rank.rank) });
    asked.take(MAX_PROCESSES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::run::Rank;

    fn launcher(pid: u32) -> Sender {
        Sender { pid: Some(pid), ..Sender::from_uid(Some(1_000)) }
    }

    #[test]
    fn an_offer_is_used_once_and_only_for_its_run() {
        let requests = StackRequests::default();
        let asked = StacksAsked { ranks: vec![StackedRank { pid: 7, rank: Some(0) }] };
        assert!(!requests.request("one", &asked), "nobody offered them");
        // A launcher repeats its offer.
        [1, 1, 2].into_iter().for_each(|pid| requests.offer("one", launcher(pid)));
        assert!(!requests.request("other", &asked) && requests.request("one", &asked));
        assert_eq!(requests.queue.lock().iter().map(|(to, _)| to.pid).collect::<Vec<_>>(), [Some(1), Some(2)]);
        assert!(!requests.request("one", &asked), "each offer counts once");
        (0..2 * MAX_RUNS as u32).for_each(|n| requests.offer(&format!("run-{n}"), launcher(n)));
        (0..2 * MAX_LAUNCHERS as u32).for_each(|n| requests.offer("run-1", launcher(n)));
        let offers = requests.offers.lock();
        assert_eq!((offers.len(), offers["run-1"].len()), (MAX_RUNS, MAX_LAUNCHERS), "offers are bounded");
    }

    #[test]
    fn ranks_of_the_job_that_holds_the_gpus_are_asked_for() {
        let process = |pid, rank: Option<(u32, &[u32])>| RunProcess {
            pid,
            rank: rank.map(|(rank, gpus)| Rank { rank, gpus: gpus.to_vec(), ..Rank::default() }),
            ..RunProcess::default()
        };
        let all = [process(1, None), process(2, Some((0, &[0]))), process(3, Some((1, &[1])))];
        let here: Vec<&RunProcess> = all.iter().collect();
        let pids = |gpus: &[u32]| wanted(&here, gpus).iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!((pids(&[1]), pids(&[]), pids(&[5])), (vec![2, 3], vec![2, 3], vec![]));
        assert_eq!(wanted(&here[..1], &[]), [StackedRank { pid: 1, rank: None }], "a job without ranks");
    }
}
