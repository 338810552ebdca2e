//! Names and labels of machines: those of users take precedence over the machine's own.

use parking_lot::{Mutex, MutexGuard};
use shared::wire::SourceId;
use std::collections::BTreeMap;
use stream::live::Live;

type Labels = Vec<(String, String)>;

/// Fact with the display name of a machine.
pub(super) const NAME: &str = "name";

#[derive(Default)]
struct Called {
    name: String,
    /// Labels that users gave it.
    given: Vec<(String, String)>,
    /// Its own labels, as it last reported them.
    own: Vec<(String, String)>,
}

impl Called {
    fn show(&self, live: &Live, source: SourceId) {
        let is_own = |(key, _): &&(String, String)| !self.given.iter().any(|(given, _)| given == key);
        let labels = self.own.iter().filter(is_own).chain(&self.given).cloned().collect();
        live.set_labels(source, labels);
    }
}

/// Names of the machines that were linked since the start.
#[derive(Default)]
pub(super) struct CalledMachines(Mutex<BTreeMap<SourceId, Called>>);

impl CalledMachines {
    fn all(&self) -> MutexGuard<'_, BTreeMap<SourceId, Called>> {
        self.0.lock()
    }

    /// A link begins of a machine that users gave this name.
    pub fn met(&self, live: &Live, source: SourceId, (name, given): (&str, &[(String, String)]), own: Labels) {
        let called = Called { name: name.into(), given: given.to_vec(), own };
        called.show(live, source);
        self.all().insert(source, called);
    }

    /// A machine reports labels of its own.
    pub fn set_labels(&self, live: &Live, source: SourceId, own: Labels) {
        let mut all = self.all();
        let called = all.entry(source).or_default();
        called.own = own;
        called.show(live, source);
    }

    /// Its display name.
    pub fn name(&self, source: SourceId) -> String {
        self.all().get(&source).map(|called| called.name.clone()).unwrap_or_default()
    }

    /// A user has renamed a machine, linked or not.
    pub fn changed(&self, live: &Live, source: SourceId, name: &str, given: Labels) {
        live.store().add_facts(source, vec![(NAME.into(), name.into())]);
        let mut all = self.all();
        let Some(called) = all.get_mut(&source) else { return };
        if called.name != name || called.given != given {
            (called.name, called.given) = (name.into(), given);
            called.show(live, source);
        }
    }
}
