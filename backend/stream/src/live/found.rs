//! Machines that an endpoint tells of, which is scraped here: they have samples, and no program of ours.

use super::Live;
use shared::connection_state::ConnectionState;
use shared::wire::SourceId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::watch;

/// A machine that an endpoint tells of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundMachine {
    /// Its source.
    pub source: SourceId,
    /// Its host name, as the endpoint prints it.
    pub host: String,
}

impl Live {
    /// Marks a source as a machine that an endpoint told of, and is not known to tell of now.
    pub fn set_lost(&self, source: SourceId) {
        self.source(source).is_found.store(true, Ordering::Release);
        self.set_connection_state(source, ConnectionState::Unreachable);
    }

    /// Sets the machines that endpoints tell of now; the others before are lost.
    pub fn set_found(&self, now: Vec<FoundMachine>) {
        let before = self.found.borrow().clone();
        for machine in now.iter().filter(|machine| !before.contains(machine)) {
            self.source(machine.source).is_found.store(true, Ordering::Release);
            self.set_connection_state(machine.source, ConnectionState::Live);
        }
        let is_lost = |machine: &&FoundMachine| !now.iter().any(|new| new.source == machine.source);
        before.iter().filter(is_lost).for_each(|machine| self.set_lost(machine.source));
        self.found.send_replace(Arc::new(now));
    }

    /// The machines that endpoints tell of now, and each change.
    pub fn found(&self) -> watch::Receiver<Arc<Vec<FoundMachine>>> {
        self.found.subscribe()
    }

    /// Whether an endpoint that is scraped here tells of this machine, or has told of it: no program of ours runs there.
    pub fn is_found(&self, source: SourceId) -> bool {
        self.source(source).is_found.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Manual;
    use crate::store::{Limits, Store};
    use shared::catalog::Catalog;
    use std::time::Duration;

    #[test]
    fn a_machine_that_is_not_told_of_any_more_is_unreachable_until_it_is() {
        let clock = Arc::new(Manual::at(1_000_000, Duration::from_secs(100)));
        let mut store = Store::new(Arc::new(Catalog::default()), Limits { retention: 60_000, bytes: usize::MAX });
        for key in ["own", "a", "b"] {
            store.add_source(key.into(), 1_000, Vec::new());
        }
        let live = Live::new(store, clock, 1, 60_000);
        let one = |source, host: &str| FoundMachine { source, host: host.into() };
        let words = || [0, 1, 2].map(|source| live.source(source).connection_state().0.as_str());
        live.set_found(vec![one(1, "a"), one(2, "b")]);
        assert_eq!(words(), ["live"; 3]);
        live.set_found(vec![one(2, "b")]);
        assert_eq!(words(), ["live", "unreachable", "live"]);
        assert_eq!([0, 1, 2].map(|source| live.is_found(source)), [false, true, true]);
        assert_eq!(live.found().borrow().len(), 1);
        live.set_found(vec![one(2, "b"), one(1, "a")]);
        assert_eq!(words(), ["live"; 3]);
    }
}
