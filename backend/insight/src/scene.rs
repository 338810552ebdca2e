//! Input of a detector at one second: machines, groups, and the ledger of findings.

use crate::finding::{Draft, Ledger};
use crate::group::Group;
use crate::host::Host;
use crate::key::{Key, What};
use crate::signal::{Family, HostSig, Sig, host_row_of, row_of};
use crate::words::At;
use crate::{Hosts, Settings, Source};
use shared::finding::Watch;

/// Whether a rule has its inputs, and the missing one.
pub(crate) type Sight = (Watch, String);

pub(crate) struct Scene<'a> {
    /// The second that is judged.
    pub now: i64,
    pub hosts: &'a mut Hosts,
    pub groups: &'a mut Vec<Group>,
    pub ledger: &'a mut Ledger,
    pub settings: &'a Settings,
    /// A hub follows the machines.
    pub follow: bool,
}

impl Scene<'_> {
    /// Machines that ticked at this second.
    pub fn ticked(&self) -> Vec<Source> {
        self.hosts.iter().filter(|(_, host)| host.is_at(self.now)).map(|(source, _)| *source).collect()
    }

    /// The group of a device.
    pub fn group_of(&self, source: Source, at: usize) -> Option<&Group> {
        self.group(self.hosts.get(&source)?.devices.get(at)?.group?)
    }

    /// The oldest group that works on a machine.
    pub fn group_on(&self, source: Source) -> Option<&Group> {
        self.group(self.hosts.get(&source)?.devices.iter().filter_map(|device| device.group).min()?)
    }

    /// Groups are sorted by id.
    fn group(&self, id: u64) -> Option<&Group> {
        self.groups.binary_search_by_key(&id, |group| group.id).ok().map(|at| &self.groups[at])
    }

    /// The other devices of its group.
    pub fn others(&self, source: Source, at: usize) -> Vec<At> {
        let own = self.at(source, at);
        let all = self.group_of(source, at).map(|group| group.devices(self.hosts)).unwrap_or_default();
        all.into_iter().filter(|other| Some(*other) != own).collect()
    }

    /// A device by machine, family and number.
    pub fn at(&self, source: Source, at: usize) -> Option<At> {
        let device = self.hosts.get(&source)?.devices.get(at)?;
        Some((source, device.family, device.index))
    }

    /// The key of a finding of one device.
    pub fn key(&self, kind: &'static str, source: Source, at: usize) -> Key {
        let (_, family, index) = self.at(source, at).unwrap_or((source, Family::Gpu, 0));
        Key::new(kind, source, What::Device(family, index))
    }

    pub fn raise(&mut self, key: Key, draft: Draft) {
        self.ledger.raise(self.now, key, draft, self.hosts, self.settings);
    }

    pub fn end(&mut self, key: &Key) {
        self.ledger.end(self.now, key);
    }
}

/// Inputs of a rule about devices: all of `needs` are required, and it is weaker without any of `weaker`, each with a
/// text.
pub(crate) fn sight(hosts: &Hosts, needs: &[Sig], weaker: &[(Sig, &str)]) -> Sight {
    let has = |sig: Sig| hosts.values().any(|host| host.any_has(sig));
    let lacks = |sig: &&Sig| !(has(**sig) || **sig == Sig::Power && has(Sig::PowerShare));
    if let Some(row) = needs.iter().find(lacks).and_then(|sig| row_of(Family::Gpu, *sig)) {
        return (Watch::Needs, format!("needs {}", row.tag));
    }
    match weaker.iter().filter(|(sig, _)| !has(*sig)).map(|(_, words)| *words).collect::<Vec<_>>() {
        without if without.is_empty() => (Watch::Watching, String::new()),
        without => (Watch::Weaker, format!("weaker without {}", without.join(", "))),
    }
}

/// Inputs of a rule about machines: all of these are required.
pub(crate) fn host_sight(hosts: &Hosts, needs: &[HostSig]) -> Sight {
    match needs.iter().find(|sig| !hosts.values().any(|host| host.has(**sig))) {
        Some(sig) => (Watch::Needs, format!("needs {}", host_row_of(*sig).tag)),
        None => (Watch::Watching, String::new()),
    }
}

/// Median of a value over the other devices of the same family and model on a machine, if at least `least` have it.
pub(crate) fn peers(
    host: &Host,
    at: usize,
    least: usize,
    of: impl Fn(&crate::device::Device) -> Option<f64>,
) -> Option<f64> {
    let own = &host.devices[at];
    let alike = |d: &&crate::device::Device| d.index != own.index && d.family == own.family && d.model() == own.model();
    let mut all: Vec<f64> = host.devices.iter().filter(alike).filter_map(of).collect();
    if all.len() < least { None } else { crate::levels::median(&mut all) }
}
