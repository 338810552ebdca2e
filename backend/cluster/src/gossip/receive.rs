//! Receives the state of machines that other hubs hold.

use super::message::{GossipMessage, MachineLine};
use shared::catalog::fleet::{Grain, rows};
use shared::connection_state::ConnectionState;
use shared::tick::TickState;
use shared::wire::{Cell, Received, ServerMessage, SourceId, decode_server};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use stream::live::{CellsElsewhere, Live};
use watch::findings::{FindingEntry, FindingRegistry};

/// A hub is silent after this number of missed beats,
const MAX_MISSED_BEATS: u32 = 3;
/// but not before this time.
const LEAST_SILENCE: Duration = Duration::from_secs(3);
/// Findings of a silent hub are dropped after this time.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// Maximum number of other hubs.
const MOST_HUBS: usize = 256;
/// Maximum interval between beats that a hub may announce, milliseconds.
const MOST_INTERVAL: u64 = 60_000;
/// Maximum number of machines of one hub.
const MOST_SOURCES: usize = 20_000;

/// Maximum number of cells of one hub.
const MOST_CELLS: usize = 40_000;

/// Counters of the exchange, for monitoring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GossipFigures {
    /// Other hubs that are sending now.
    pub hubs: u64,
    /// Machines of other hubs.
    pub machines: u64,
    /// Messages that could not be read, or exceeded a limit.
    pub refused: u64,
}

/// The cells of one grain of a hub.
#[derive(Default)]
struct View {
    cells: Vec<Cell>,
    state: TickState,
    /// A keyframe has arrived, and no frame was lost since.
    whole: bool,
}

/// State of another hub.
struct Neighbor {
    heard: Duration,
    interval: Duration,
    silent: bool,
    /// This hub's machine numbers by those of the other hub.
    machines: BTreeMap<u16, SourceId>,
    /// Machines seen since a whole beat began; None outside a whole beat.
    named: Option<BTreeSet<u16>>,
    views: [View; 2],
}

/// Missing records of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LackingRecords {
    /// The hub that stores them.
    pub hub: String,
    /// The machine's key.
    pub key: String,
    /// Number of the newest record.
    pub newest: u64,
}

/// State of all other hubs.
pub(super) struct GossipReceiver {
    live: Arc<Live>,
    findings: Arc<FindingRegistry>,
    hubs: HashMap<String, Neighbor>,
    /// The last hub that reported each machine.
    tellers: HashMap<SourceId, String>,
    /// Machines with missing records, and the hub to ask.
    wanted: BTreeMap<SourceId, LackingRecords>,
    refused: u64,
}

fn at(grain: Grain) -> usize {
    usize::from(grain == Grain::Gpus)
}

impl View {
    fn take(&mut self, message: &[u8]) -> Option<()> {
        match decode_server(message).ok()? {
            Received::Control(ServerMessage::Cells { grain, first, cells, .. }) => {
                let rows = rows(grain);
                if first == 0 {
                    *self = View::default();
                }
                if first as usize + cells.len() > MOST_CELLS {
                    return None;
                }
                for (at, cell) in (first as usize..).zip(cells) {
                    if at == self.cells.len() {
                        self.cells.push(cell);
                        self.state.extend(rows.iter().map(|row| row.steps));
                    } else {
                        *self.cells.get_mut(at)? = cell;
                        let ids = at * rows.len()..(at + 1) * rows.len();
                        ids.zip(rows).for_each(|(id, row)| self.state.redefine(id as u32, row.steps));
                    }
                }
            }
            Received::Overview(_, frames) => {
                for frame in frames {
                    self.whole = match self.state.apply(frame) {
                        Ok(shared::tick::Applied::Keyframe) => true,
                        Ok(_) => self.whole,
                        // The next whole beat brings a keyframe.
                        Err(_) => false,
                    };
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The values of the cells.
    fn values(&self, grain: Grain) -> impl Iterator<Item = (u16, &str, &[f64])> {
        let rows = rows(grain).len();
        self.cells.iter().zip(self.state.values().chunks(rows)).filter_map(|(cell, values)| {
            let source = cell.source?;
            Some((source, cell.instance.as_str(), values))
        })
    }
}

impl GossipReceiver {
    pub fn new(live: Arc<Live>, findings: Arc<FindingRegistry>) -> Self {
        GossipReceiver {
            live,
            findings,
            hubs: HashMap::new(),
            tellers: HashMap::new(),
            wanted: BTreeMap::new(),
            refused: 0,
        }
    }

    pub fn figures(&self) -> GossipFigures {
        let hubs = self.hubs.values().filter(|hub| !hub.silent).count() as u64;
        GossipFigures { hubs, machines: self.tellers.len() as u64, refused: self.refused }
    }

    /// Applies a message of a hub.
    pub fn receive(&mut self, hub: &str, bytes: &[u8]) {
        if self.take(hub, bytes).is_none() {
            self.refused += 1;
        }
    }

    fn take(&mut self, hub: &str, bytes: &[u8]) -> Option<()> {
        let (word, now) = (GossipMessage::read(bytes)?, self.live.clock.steady());
        if !self.hubs.contains_key(hub) && self.hubs.len() >= MOST_HUBS {
            return None;
        }
        let live = self.live.clone();
        let neighbor = self.hubs.entry(hub.to_string()).or_insert_with(|| Neighbor {
            heard: now,
            interval: Duration::from_secs(1),
            silent: false,
            machines: BTreeMap::new(),
            named: None,
            views: Default::default(),
        });
        (neighbor.heard, neighbor.silent) = (now, false);
        match word {
            GossipMessage::Begin { whole, interval } => {
                neighbor.interval = Duration::from_millis(interval.clamp(1, MOST_INTERVAL));
                neighbor.named = whole.then(BTreeSet::new);
            }
            GossipMessage::Lines(lines) => {
                for line in lines {
                    self.line(hub, line);
                }
            }
            GossipMessage::Left(left) => {
                for id in left {
                    let source = neighbor.machines.remove(&id);
                    source.into_iter().for_each(|source| leave(&mut self.tellers, &live, hub, source));
                }
            }
            GossipMessage::Overview(message) => {
                let grain = match decode_server(&message).ok()? {
                    Received::Control(ServerMessage::Cells { grain, .. }) | Received::Overview(grain, _) => grain,
                    _ => return None,
                };
                neighbor.views[at(grain)].take(&message)?;
            }
            GossipMessage::Findings(texts) => {
                let changed = texts.iter().filter_map(|text| serde_json::from_str::<FindingEntry>(text).ok()).collect();
                self.findings.lay(hub, changed, None);
            }
            GossipMessage::Open(ids) => {
                let open: HashSet<String> = ids.into_iter().collect();
                self.findings.lay(hub, Vec::new(), Some(&open));
            }
            GossipMessage::Dismissed(said) => self.findings.heed_others(&said),
            GossipMessage::End => self.end(hub),
        }
        Some(())
    }

    /// Applies the entry of a machine.
    fn line(&mut self, hub: &str, MachineLine { entry, figures, record }: MachineLine) {
        let Some(neighbor) = self.hubs.get_mut(hub) else { return };
        if neighbor.machines.len() >= MOST_SOURCES && !neighbor.machines.contains_key(&entry.id) {
            self.refused += 1;
            return;
        }
        let Some((source, _)) = self.live.meet(&entry.key, entry.interval, Some(&entry.name)) else {
            self.refused += 1;
            return;
        };
        neighbor.machines.insert(entry.id, source);
        if let Some(named) = &mut neighbor.named {
            named.insert(entry.id);
        }
        // The holder knows better; the other hub will learn it from the holder's messages.
        if self.live.holds(source) {
            return;
        }
        self.tellers.insert(source, hub.to_string());
        if record > self.live.store().last_record(source) {
            self.wanted.insert(source, LackingRecords { hub: hub.to_string(), key: entry.key.clone(), newest: record });
        }
        let name = self.live.store().source(source).map(|(known, _)| known.name.clone());
        if name.is_some_and(|name| name != entry.name) {
            self.live.store().add_facts(source, vec![(shared::wire::NAME_FACT.to_string(), entry.name)]);
        }
        self.live.set_reported_connection_state(source, (entry.state, entry.since), Some(entry.labels), Some(figures));
    }

    /// The next machine with missing records. It is removed from the list.
    pub fn next_wanted(&mut self) -> Option<(SourceId, LackingRecords)> {
        while let Some((source, lacking)) = self.wanted.pop_first() {
            if !self.live.holds(source) && self.live.store().last_record(source) < lacking.newest {
                return Some((source, lacking));
            }
        }
        None
    }

    /// A beat ends: the overview values are complete.
    fn end(&mut self, hub: &str) {
        let Some(neighbor) = self.hubs.get_mut(hub) else { return };
        if let Some(named) = neighbor.named.take() {
            let gone: Vec<u16> = neighbor.machines.keys().filter(|id| !named.contains(id)).copied().collect();
            for id in gone {
                let source = neighbor.machines.remove(&id);
                source.into_iter().for_each(|source| leave(&mut self.tellers, &self.live, hub, source));
            }
        }
        let mut cells: BTreeMap<SourceId, CellsElsewhere> = BTreeMap::new();
        let own = |source: &SourceId| self.tellers.get(source).is_some_and(|teller| teller == hub);
        let [whole, gpus] = &neighbor.views;
        for (id, _, values) in whole.values(Grain::Sources).filter(|_| whole.whole) {
            if let Some(source) = neighbor.machines.get(&id).filter(|source| own(source)) {
                cells.entry(*source).or_default().whole = values.to_vec();
            }
        }
        for (id, instance, values) in gpus.values(Grain::Gpus).filter(|_| gpus.whole) {
            if let Some(source) = neighbor.machines.get(&id).filter(|source| own(source)) {
                cells.entry(*source).or_default().gpus.insert(instance.to_string(), values.to_vec());
            }
        }
        let held = |source: &SourceId| self.live.holds(*source);
        self.tellers.retain(|source, _| !held(source));
        self.live.tell_cells(cells.into_iter().map(|(source, cells)| (source, Some(cells))));
    }

    /// Marks silent hubs: the state of their machines is unknown.
    pub fn mark_silent_hubs(&mut self) {
        let now = self.live.clock.steady();
        let mut forgotten = Vec::new();
        for (hub, neighbor) in &mut self.hubs {
            let silent = now.saturating_sub(neighbor.heard);
            if silent >= FORGET_AFTER {
                forgotten.push(hub.clone());
            }
            if neighbor.silent || silent < (neighbor.interval * MAX_MISSED_BEATS).max(LEAST_SILENCE) {
                continue;
            }
            neighbor.silent = true;
            neighbor.views = Default::default();
            for (_, source) in std::mem::take(&mut neighbor.machines) {
                leave(&mut self.tellers, &self.live, hub, source);
            }
        }
        for hub in forgotten {
            self.hubs.remove(&hub);
            self.findings.forget_hub(&hub);
        }
    }
}

/// A hub no longer reports a machine.
fn leave(tellers: &mut HashMap<SourceId, String>, live: &Live, hub: &str, source: SourceId) {
    if tellers.get(&source).is_none_or(|teller| teller != hub) {
        return;
    }
    tellers.remove(&source);
    live.tell_cells([(source, None)]);
    if !live.holds(source) && live.source(source).connection_state().0.is_linked() {
        live.set_reported_connection_state(source, (ConnectionState::Unreachable, live.clock.wall()), None, None);
    }
}
