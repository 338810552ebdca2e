//! Machines of the fleet: grouped by rack or by name prefix, filtered, sorted, and counted.

use super::{Instant, Values};
use charts::order;
use shared::catalog::fleet::{self, FleetRow};
use shared::connection_state::ConnectionState;
use shared::wire::IndexEntry;

/// Use from which a GPU counts as busy, percent.
const BUSY: f64 = 5.0;
/// Labels that name a part of the fleet; the first one that a machine has is used.
const PART_LABELS: [&str; 4] = ["pod", "row", "room", "site"];

/// A machine of the fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its entry in the index.
    pub entry: IndexEntry,
    /// Its newest values.
    pub values: Values,
}

impl Host {
    /// Its use, 0 to 100: of its GPUs, or of its processor if it has none; NaN if unknown.
    pub fn busy(&self) -> f64 {
        let gpus = self.values.value_of(&fleet::GPU_BUSY);
        if gpus.is_nan() { self.values.value_of(&fleet::CPU) } else { gpus }
    }

    /// For each of its GPUs, the use and the distance from the median of all of them (NaN below three). A machine
    /// without GPUs has one cell, its processor.
    pub fn cells(&self) -> Vec<(f64, f64)> {
        let gpus = &self.values.gpus;
        if gpus.is_empty() {
            return vec![(self.values.value_of(&fleet::CPU), f64::NAN)];
        }
        self.values.cells()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.entry.labels.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Text that a filter searches: name, state and labels.
    fn text(&self) -> String {
        let lost = if self.entry.state == ConnectionState::Unreachable { " state:lost" } else { "" };
        let mut text = format!("{} state:{}{lost}", self.entry.name, self.entry.state.as_str());
        for (key, value) in &self.entry.labels {
            text += &format!(" {key}:{value} {key}={value}");
        }
        text.to_lowercase()
    }

    /// Whether each word of a filter is found. `filter` is in lower case.
    pub fn fits(&self, filter: &str) -> bool {
        let text = self.text();
        filter.split_whitespace().all(|word| text.contains(word))
    }
}

/// A group of machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostGroup {
    /// Its rack, or the common prefix of its machines' names.
    pub name: String,
    /// The part of the fleet that it belongs to; empty if no label names one.
    pub part: String,
    /// Positions of its machines in the list that was grouped.
    pub hosts: Vec<usize>,
}

/// A text that sorts by its numbers: `node-9` before `node-10`.
pub fn natural(text: &str) -> String {
    let (mut key, mut digits) = (String::new(), String::new());
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
        } else {
            if !digits.is_empty() {
                key += &format!("{:0>12}", std::mem::take(&mut digits));
            }
            key.extend(c.to_lowercase());
        }
    }
    key
}

/// The prefix of a name, before its number: `node` of `node-12`.
fn prefix(name: &str) -> &str {
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(|c: char| c.is_ascii_digit());
    let stem = stem.trim_end_matches(['-', '_', '.']);
    if stem.is_empty() { name } else { stem }
}

/// All machines, by name.
pub fn hosts(index: &[IndexEntry], values: &[Values]) -> Vec<Host> {
    let mut keys: Vec<(String, Host)> = Vec::new();
    for entry in index {
        let values = values.get(usize::from(entry.id)).cloned().unwrap_or_default();
        put(&mut keys, natural(&entry.name), || Host { entry: entry.clone(), values });
    }
    keys.into_iter().map(|(_, host)| host).collect()
}

/// Inserts into a list in ascending order of keys, after equal keys. Most elements come in order.
fn put<T>(list: &mut Vec<(String, T)>, key: String, make: impl FnOnce() -> T) {
    let at = list.partition_point(|(known, _)| *known <= key);
    list.insert(at, (key, make()));
}

/// Machines in groups: by the label `by`, or by name prefix if they lack it.
pub fn grouped(hosts: &[Host], by: &str) -> Vec<HostGroup> {
    let mut groups: Vec<(String, HostGroup)> = Vec::new();
    for (at, host) in hosts.iter().enumerate() {
        let part = PART_LABELS.iter().filter(|key| **key != by).find_map(|key| Some((*key, host.label(key)?)));
        let part = part.map(|(key, value)| if value.len() < 4 { format!("{key} {value}") } else { value.to_string() });
        let part = part.unwrap_or_default();
        let name = host.label(by).map_or_else(|| prefix(&host.entry.name).to_string(), str::to_string);
        let key = format!("{}\0{}", natural(&part), natural(&name));
        match groups.iter_mut().rev().find(|(known, _)| *known == key) {
            Some((_, group)) => group.hosts.push(at),
            None => put(&mut groups, key, || HostGroup { name, part, hosts: vec![at] }),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Labels by which machines can be grouped: those with at least two values. `rack` is the first.
pub fn labels(hosts: &[Host]) -> Vec<String> {
    // Key, its first value, and whether there is another.
    let mut known: Vec<(String, (&str, bool))> = Vec::new();
    for (key, value) in hosts.iter().flat_map(|host| &host.entry.labels) {
        match known.iter_mut().find(|(name, _)| name == key) {
            Some((_, (first, several))) => *several |= first != value,
            None => put(&mut known, key.clone(), || (value, false)),
        }
    }
    let mut keys: Vec<String> = known.into_iter().filter(|(_, (_, several))| *several).map(|(key, _)| key).collect();
    if let Some(at) = keys.iter().position(|key| key == "rack") {
        let rack = keys.remove(at);
        keys.insert(0, rack);
    }
    keys
}

/// Orders of the table that are none of its [columns](COLUMNS): by state (problems first), and by name.
pub const BY_STATE: &str = "state";
/// See [`BY_STATE`].
pub const BY_NAME: &str = "name";

/// The columns of the table.
pub static COLUMNS: &[(&FleetRow, &str)] = &[
    (&fleet::GPU_BUSY, "GPU"),
    (&fleet::GPU_MEMORY, "GPU memory"),
    (&fleet::GPU_TEMP, "hottest"),
    (&fleet::GPU_POWER, "power"),
    (&fleet::CPU, "CPU"),
    (&fleet::MEMORY, "memory"),
    (&fleet::NETWORK_IN, "in"),
    (&fleet::NETWORK_OUT, "out"),
    (&fleet::DISK, "disk"),
];

/// Machines that match a filter, in an order: [`BY_STATE`], [`BY_NAME`], or the position of a column, largest first. A
/// leading `-` reverses it; machines without a value stay last. `hosts` is in the order of names.
pub fn sorted(hosts: &[Host], filter: &str, by: &str) -> Vec<usize> {
    let filter = filter.to_lowercase();
    let (by, turned) = by.strip_prefix('-').map_or((by, false), |by| (by, true));
    let mut fits: Vec<usize> = (0..hosts.len()).filter(|i| hosts[*i].fits(&filter)).collect();
    if turned && by == BY_NAME {
        fits.reverse();
    }
    let column = by.parse::<usize>().ok().and_then(|at| COLUMNS.get(at));
    let key = |host: &Host| {
        let key = match column {
            Some((row, _)) => match host.values.value_of(row) {
                value if value.is_finite() => -order::key(value),
                _ => return i64::MAX,
            },
            None if by == BY_NAME => 0,
            None => i64::from(urgency(&host.entry.state)),
        };
        if turned { -key } else { key }
    };
    order::by(fits.iter().map(|i| key(&hosts[*i]))).into_iter().map(|k| fits[k]).collect()
}

/// Sort position of a state: states that need attention come first.
fn urgency(state: &ConnectionState) -> u8 {
    match state {
        ConnectionState::Refused(_) => 0,
        ConnectionState::Unreachable => 1,
        ConnectionState::Late => 2,
        ConnectionState::Filling { .. } => 3,
        ConnectionState::Stopped(_) => 4,
        ConnectionState::Live => 5,
        ConnectionState::Ended => 6,
    }
}

/// Totals over all machines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Number of machines, without those that have ended.
    pub hosts: usize,
    /// Number of machines that send values.
    pub answer: usize,
    /// Machines by [`ConnectionState::code`].
    pub states: [usize; 7],
    /// GPUs of all machines.
    pub gpus: usize,
    /// Number of GPUs with a known value, and number of busy ones.
    pub busy: (usize, usize),
    /// Mean use of the busy GPUs; NaN if there are none.
    pub busy_mean: f64,
    /// Mean use of all processors.
    pub cpu: f64,
    /// Power of all GPUs in W; NaN if there are none.
    pub power: f64,
    /// Bytes received per second over all links of all machines; NaN if there are none.
    pub network_in: f64,
    /// Bytes sent per second over all links of all machines; NaN if there are none.
    pub network_out: f64,
    /// The hottest GPU in °C, and its machine.
    pub hottest: Option<(f64, String)>,
    /// The largest share of memory in use, and its machine.
    pub fullest: Option<(f64, String)>,
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    values.filter(|v| v.is_finite()).for_each(|v| (sum, n) = (sum + v, n + 1.0));
    sum / n
}

fn sum(hosts: &[Host], row: &FleetRow) -> f64 {
    let values = hosts.iter().map(|host| host.values.value_of(row)).filter(|v| v.is_finite());
    values.reduce(|a, b| a + b).unwrap_or(f64::NAN)
}

fn largest(hosts: &[Host], row: &FleetRow) -> Option<(f64, String)> {
    let known = hosts.iter().map(|host| (host.values.value_of(row), host)).filter(|(v, _)| v.is_finite());
    known.reduce(|a, b| if b.0 > a.0 { b } else { a }).map(|(v, host)| (v, host.entry.name.clone()))
}

impl Totals {
    /// Counts machines.
    pub fn from_hosts(hosts: &[Host]) -> Self {
        let mut totals = Totals::default();
        for host in hosts {
            totals.states[usize::from(host.entry.state.code())] += 1;
            totals.answer +=
                usize::from(matches!(host.entry.state, ConnectionState::Live | ConnectionState::Filling { .. }));
            totals.gpus += host.values.gpus.len();
        }
        totals.hosts = hosts.len() - totals.states[usize::from(ConnectionState::Ended.code())];
        let gpus = || hosts.iter().flat_map(|host| host.values.gpus.iter().copied()).filter(|v| v.is_finite());
        totals.busy = (gpus().count(), gpus().filter(|v| *v >= BUSY).count());
        totals.busy_mean = mean(gpus().filter(|v| *v >= BUSY));
        totals.cpu = mean(hosts.iter().map(|host| host.values.value_of(&fleet::CPU)));
        (totals.power, totals.network_in, totals.network_out) =
            (sum(hosts, &fleet::GPU_POWER), sum(hosts, &fleet::NETWORK_IN), sum(hosts, &fleet::NETWORK_OUT));
        totals.hottest = largest(hosts, &fleet::GPU_TEMP);
        totals.fullest = largest(hosts, &fleet::MEMORY);
        totals
    }

    /// One instant of the sparklines.
    pub fn instant(&self, t: i64) -> Instant {
        let most = self.hottest.as_ref().or(self.fullest.as_ref()).map_or(f64::NAN, |(v, _)| *v);
        let busy = match self.busy.0 {
            0 => self.cpu,
            all => self.busy.1 as f64 * 100.0 / all as f64,
        };
        let power = if self.gpus > 0 { self.power } else { self.network_in };
        Instant { t, busy, answer: self.answer as f64, power, most }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A machine with this name, state and labels, and this use of its GPUs.
    pub fn host(id: u16, name: &str, state: ConnectionState, labels: &[(&str, &str)], gpus: &[f64]) -> Host {
        let labels = labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let entry = IndexEntry {
            id,
            key: format!("key{id}"),
            name: name.into(),
            interval: 1_000,
            state,
            since: 1_000_000,
            labels,
        };
        let busy = mean(gpus.iter().copied());
        Host { entry, values: Values::new(&[(&fleet::GPU_BUSY, busy), (&fleet::GPU_TEMP, 60.0)], gpus.to_vec()) }
    }

    #[test]
    fn machines_stand_in_the_order_of_their_numbers() {
        let names = ["node-10", "node-9", "a1", "node-1", "Node-2"];
        let index: Vec<IndexEntry> =
            (0..).zip(names).map(|(id, name)| host(id, name, ConnectionState::Live, &[], &[]).entry).collect();
        let hosts = hosts(&index, &[]);
        let names: Vec<&str> = hosts.iter().map(|host| host.entry.name.as_str()).collect();
        assert_eq!(names, ["a1", "node-1", "Node-2", "node-9", "node-10"]);
    }

    #[test]
    fn groups_are_racks_and_else_the_begin_of_names() {
        let live = ConnectionState::Live;
        let hosts = [
            host(0, "node-1", live.clone(), &[("rack", "r10"), ("pod", "B")], &[]),
            host(1, "node-2", live.clone(), &[("rack", "r9"), ("pod", "B")], &[]),
            host(2, "node-3", live.clone(), &[("rack", "r9"), ("pod", "B")], &[]),
            host(3, "gpu07.lab.example", live.clone(), &[], &[]),
            host(4, "gpu08.lab.example", live, &[], &[]),
        ];
        let groups = grouped(&hosts, "rack");
        let said: Vec<_> = groups.iter().map(|g| (g.part.as_str(), g.name.as_str(), g.hosts.as_slice())).collect();
        assert_eq!(said, [("", "gpu", &[3, 4][..]), ("pod B", "r9", &[1, 2]), ("pod B", "r10", &[0])]);
        assert_eq!(labels(&hosts), ["rack"], "a label with one value alone groups nothing");
    }

    #[test]
    fn a_filter_finds_names_states_and_labels_and_all_of_its_words() {
        let hosts = [
            host(0, "node-1", ConnectionState::Live, &[("rack", "r1")], &[]),
            host(1, "node-12", ConnectionState::Unreachable, &[("rack", "r2")], &[]),
            host(2, "node-3", ConnectionState::Late, &[("rack", "r2")], &[]),
        ];
        let found = |filter: &str| sorted(&hosts, filter, BY_NAME);
        assert_eq!(found(""), [0, 1, 2]);
        assert_eq!(found("node-1"), [0, 1]);
        assert_eq!(found("RACK:r2 state:lost"), [1]);
        assert_eq!(found("rack=r2 unreachable"), [1]);
        assert_eq!(found("nothing"), [0usize; 0]);
        assert_eq!(sorted(&hosts, "", BY_STATE), [1, 2, 0], "what needs somebody is first");
    }

    #[test]
    fn the_largest_is_first_and_what_is_not_known_last() {
        let live = || ConnectionState::Live;
        let hosts =
            [host(0, "a", live(), &[], &[10.0]), host(1, "b", live(), &[], &[]), host(2, "c", live(), &[], &[90.0])];
        assert_eq!(sorted(&hosts, "", "0"), [2, 0, 1]);
        assert_eq!(sorted(&hosts, "", "-0"), [0, 2, 1], "turned, too");
        assert_eq!(sorted(&hosts, "", "-name"), [2, 1, 0]);
    }

    #[test]
    fn a_device_is_compared_with_those_of_its_machine() {
        let apart = |gpus: &[f64]| {
            let cells = host(0, "a", ConnectionState::Live, &[], gpus).cells();
            cells.iter().map(|(_, apart)| *apart).collect::<Vec<_>>()
        };
        assert_eq!(apart(&[98.0, 99.0, 60.0, 99.0]), [-1.0, 0.0, -39.0, 0.0]);
        assert!(apart(&[98.0, 10.0]).iter().all(|apart| apart.is_nan()), "of two, nobody knows which is odd");
    }

    #[test]
    fn totals_count_what_is_known_alone() {
        let hosts = [
            host(0, "a", ConnectionState::Live, &[], &[100.0, 0.0, f64::NAN]),
            host(1, "b", ConnectionState::Late, &[], &[50.0]),
            host(2, "c", ConnectionState::Ended, &[], &[]),
        ];
        let totals = Totals::from_hosts(&hosts);
        assert_eq!((totals.hosts, totals.answer, totals.gpus, totals.busy), (2, 1, 4, (3, 2)));
        assert_eq!(totals.busy_mean, 75.0);
        assert!(totals.power.is_nan());
    }
}
