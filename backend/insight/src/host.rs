//! One machine: destination of each series, queued ticks, devices, and its own signals.

use crate::device::Device;
use crate::ending::Ended;
use crate::filling::Filling;
use crate::hold::Hold;
use crate::levels::{NEVER, Slot};
use crate::signal::{self, Family, HOST_SIGNALS, HostSig, NamedSig, SIGNALS, Sig, SignalTarget, place_of, slots};
use shared::catalog::{Metric, MetricDef};
use shared::processes::ProcessTable;
use shared::series::SeriesId;
use std::collections::{BTreeMap, VecDeque};

const NONE: u32 = u32::MAX;
const HOST: u32 = 1 << 30;
const NAMED: u32 = 2 << 30;
const PROCESS: u32 = 3 << 30;
const KIND: u32 = 3 << 30;
/// Within `PROCESS`: a pod.
const POD: u32 = 1 << 29;

/// Maximum number of each per machine; further ones get no slot.
const MOST_DEVICES: usize = 1024;
const MOST_NAMED: usize = 512;
const MOST_LOGGED: usize = 256;
const MOST_PROCESSES: usize = 2048;
const MOST_PODS: usize = 1000;
/// Maximum number of reports about lost devices.
const MOST_SAID: usize = 16;
/// Maximum number of queued samples.
const MOST_WAITING: usize = 1 << 20;

/// A signal with a name.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub sig: NamedSig,
    pub name: String,
    pub slot: Slot,
    pub filling: Filling,
    pub hold: Hold,
    pub back: Hold,
    /// It was as full at its first sample.
    pub full_from_start: Option<bool>,
    /// Maximum while a finding is open. For a collector: 1 once it has answered for a while.
    pub top: f64,
}

#[derive(Clone, Debug)]
struct GpuProcess {
    gpu: u32,
    pid: u32,
    bytes: f64,
    at: i64,
    /// Time at which its series was announced.
    born: i64,
}

/// A pod that holds a GPU.
#[derive(Clone, Debug)]
pub(crate) struct PodHold {
    pub gpu: u32,
    /// `namespace/name`.
    pub pod: String,
    /// Second of the newest report, or of the announcement.
    at: i64,
}

/// Maximum age of a report about a pod, seconds: the kubelet is asked every 10 s.
const POD_PATIENCE_S: i64 = 45;

/// Progress of each rule with a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostMarks {
    pub filling: Filling,
    pub filled: Hold,
    pub flat: Hold,
    pub slope: f64,
    pub pressed: Hold,
    pub eased: Hold,
    pub killed: Option<i64>,
    pub kills: f64,
    pub ended: Vec<Ended>,
    pub resends: Hold,
    /// Second at which resends became many, and the count by then.
    pub resent: (i64, f64),
    pub clean: Hold,
    pub received_most: f64,
}

/// A collector's report that a device is lost.
#[derive(Debug)]
pub(crate) struct LossReport {
    collector: String,
    /// Second of the report.
    pub at: i64,
    /// The GPU that it names.
    pub gpu: Option<u32>,
    /// The clause of the reason.
    pub words: String,
}

impl LossReport {
    fn new(at: i64, collector: &str, words: &str) -> LossReport {
        let number = words.to_ascii_lowercase();
        let number = number.split("gpu ").nth(1).and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        let gpu = number.and_then(|number| number.parse().ok());
        LossReport { collector: collector.into(), at, gpu, words: words.into() }
    }
}

/// One machine.
#[derive(Debug)]
pub(crate) struct Host {
    pub name: String,
    declared: i64,
    gaps: [i64; 5],
    gaps_seen: usize,
    /// Seconds between ticks, at least 1.
    pub step: i64,
    /// First and newest second of a tick.
    pub first: i64,
    pub newest: i64,
    /// Seconds between the newest tick and the one before.
    pub dt: i64,
    map: Vec<u32>,
    ticks: VecDeque<(i64, u32)>,
    waiting: VecDeque<(u32, f64)>,
    touched: Vec<u32>,
    pub devices: Vec<Device>,
    base: [Slot; HOST_SIGNALS],
    pub named: Vec<Named>,
    processes: Vec<GpuProcess>,
    pods: Vec<PodHold>,
    parents: BTreeMap<u32, (u32, String)>,
    /// Cores used by each process tree, by root, and the second of the value.
    pub trees: BTreeMap<u32, f64>,
    /// Bytes per second that each process tree reads from and writes to disks, by root; NaN: unknown.
    pub tree_bytes: BTreeMap<u32, f64>,
    /// The same for each process on a device, including its descendants.
    own_cpu: BTreeMap<u32, f64>,
    pub table_at: i64,
    pub goodbye: Option<i64>,
    /// Present reports of collectors about lost devices.
    pub said: Vec<LossReport>,
    pub marks: HostMarks,
    /// Groups must be rebuilt.
    pub changed: bool,
    /// At least one of its devices has a job.
    has_job: bool,
}

impl Host {
    pub fn new(name: &str, interval_ms: i64) -> Self {
        Host {
            name: name.into(),
            declared: interval_ms,
            gaps: [0; 5],
            gaps_seen: 0,
            step: (interval_ms / 1000).max(1),
            first: NEVER,
            newest: NEVER,
            dt: 0,
            map: Vec::new(),
            ticks: VecDeque::new(),
            waiting: VecDeque::new(),
            touched: Vec::new(),
            devices: Vec::new(),
            base: slots(),
            named: Vec::new(),
            processes: Vec::new(),
            pods: Vec::new(),
            parents: BTreeMap::new(),
            trees: BTreeMap::new(),
            tree_bytes: BTreeMap::new(),
            own_cpu: BTreeMap::new(),
            table_at: NEVER,
            goodbye: None,
            said: Vec::new(),
            marks: HostMarks::default(),
            changed: false,
            has_job: false,
        }
    }

    pub fn rename(&mut self, name: &str, interval_ms: i64) {
        self.name = name.into();
        if self.declared != interval_ms {
            (self.declared, self.gaps_seen) = (interval_ms, 0);
            self.step = (interval_ms / 1000).max(1);
        }
    }

    /// Maximum age of a current value, seconds.
    pub fn patience(&self) -> i64 {
        (3 * self.step).max(5)
    }

    /// It ticked at the current second.
    pub fn is_at(&self, now: i64) -> bool {
        self.newest == now
    }

    /// Its values are current.
    pub fn is_recent(&self, now: i64) -> bool {
        self.newest >= now - self.patience() - 5
    }

    /// Defines the series with this number.
    pub fn series(&mut self, id: SeriesId, metric: &Metric, instance: &str) {
        let at = id as usize;
        if self.map.len() <= at {
            self.map.resize(at + 1, NONE);
        }
        if self.map[at] != NONE && self.map[at] & KIND == PROCESS {
            let old = (self.map[at] & !KIND & !POD) as usize;
            match self.map[at] & POD {
                0 => self.processes[old].at = NEVER,
                _ => self.pods[old].at = NEVER,
            }
        }
        self.map[at] = NONE;
        let Some((row, place)) = place_of(metric, instance) else { return };
        self.map[at] = match place {
            SignalTarget::Device(family, index, sig, rank) => {
                let Some(position) = self.device(family, index) else { return };
                let slot = &mut self.devices[position].slots[sig as usize];
                if rank > slot.rank {
                    return;
                }
                let own = (position * SIGNALS) as u32 + sig as u32;
                if rank < slot.rank || slot.row.is_none() {
                    self.map.iter_mut().filter(|to| **to == own).for_each(|to| *to = NONE);
                    *slot = Slot::new(Some(row), rank);
                }
                own
            }
            SignalTarget::Host(sig) => {
                self.base[sig as usize].row = Some(row);
                HOST | sig as u32
            }
            SignalTarget::Named(sig) => {
                let Some(position) = self.named_at(sig, row, instance) else { return };
                NAMED | position as u32
            }
            SignalTarget::Process(gpu, pid) => {
                let Some(position) = self.process(gpu, pid) else { return };
                PROCESS | position as u32
            }
            SignalTarget::Pod(gpu) => {
                let Some(position) = self.pod(gpu, instance) else { return };
                PROCESS | POD | position as u32
            }
            SignalTarget::Part(index) => {
                if let Some(position) = self.device(Family::Gpu, index) {
                    self.devices[position].parted = true;
                }
                return;
            }
        };
    }

    /// The place of a process on a GPU: its own, or that of one that is long gone.
    fn process(&mut self, gpu: u32, pid: u32) -> Option<usize> {
        let own = GpuProcess { gpu, pid, bytes: 0.0, at: NEVER, born: self.newest };
        let newest = self.newest;
        let free = self
            .processes
            .iter()
            .position(|p| (p.gpu, p.pid) == (gpu, pid))
            .or_else(|| self.processes.iter().position(|p| p.at.max(p.born) < newest - 3600));
        match free {
            Some(free) => {
                let taken = PROCESS | free as u32;
                self.map.iter_mut().filter(|to| **to == taken).for_each(|to| *to = NONE);
                self.processes[free] = own;
                Some(free)
            }
            None if self.processes.len() < MOST_PROCESSES => {
                self.processes.push(own);
                Some(self.processes.len() - 1)
            }
            None => None,
        }
    }

    /// The place of a pod that holds a GPU: its own, or that of one that no longer holds any.
    fn pod(&mut self, gpu: u32, instance: &str) -> Option<usize> {
        let (_, pod) = instance.split_once(signal::POD)?;
        let own = PodHold { gpu, pod: pod.into(), at: NEVER };
        if let Some(known) = self.pods.iter().position(|held| held.gpu == gpu && held.pod == pod) {
            return Some(known);
        }
        if self.pods.len() < MOST_PODS {
            self.pods.push(own);
            return Some(self.pods.len() - 1);
        }
        let over = self.newest - POD_PATIENCE_S.max(3 * self.step);
        let free = self.pods.iter().position(|held| held.at < over)?;
        let taken = PROCESS | POD | free as u32;
        self.map.iter_mut().filter(|to| **to == taken).for_each(|to| *to = NONE);
        self.pods[free] = own;
        Some(free)
    }

    /// Whether a pod holds or held a GPU.
    pub fn has_pods(&self) -> bool {
        !self.pods.is_empty()
    }

    /// The pods that hold a GPU now.
    pub fn pods_of(&self, gpu: u32) -> impl Iterator<Item = &str> {
        let since = self.newest - POD_PATIENCE_S.max(3 * self.step);
        self.pods.iter().filter(move |held| held.gpu == gpu && held.at >= since).map(|held| held.pod.as_str())
    }

    /// Position of a named signal, which is added if it is new. None where there are too many.
    fn named_at(&mut self, sig: NamedSig, row: &'static MetricDef, name: &str) -> Option<usize> {
        let known = self.named.iter().position(|named| named.sig == sig && named.name == name);
        if known.is_some() {
            return known;
        }
        let new = Named {
            sig,
            name: name.into(),
            slot: Slot::new(Some(row), 0),
            filling: Filling::default(),
            hold: Hold::default(),
            back: Hold::default(),
            full_from_start: None,
            top: 0.0,
        };
        // Ranks come and go, so those that log nothing any more make room.
        let logged = self.named.iter().filter(|named| named.sig.is_logged()).count();
        if sig.is_logged() && logged >= MOST_LOGGED {
            let newest = self.newest;
            let is_old = |named: &Named| named.sig.is_logged() && named.slot.at < newest - 3600;
            let free = self.named.iter().position(is_old)?;
            let taken = NAMED | free as u32;
            self.map.iter_mut().filter(|to| **to == taken).for_each(|to| *to = NONE);
            self.named[free] = new;
            return Some(free);
        }
        if self.named.len() >= MOST_NAMED {
            return None;
        }
        self.named.push(new);
        Some(self.named.len() - 1)
    }

    fn device(&mut self, family: Family, index: u32) -> Option<usize> {
        let known = self.devices.iter().position(|d| (d.family, d.index) == (family, index));
        if known.is_some() || self.devices.len() >= MOST_DEVICES {
            return known;
        }
        self.devices.push(Device::new(family, index));
        self.changed = true;
        Some(self.devices.len() - 1)
    }

    /// Queues the samples of a tick until their second is judged.
    pub fn tick(&mut self, t: i64, samples: impl IntoIterator<Item = (SeriesId, f64)>) {
        let mut n = 0;
        for (id, value) in samples {
            let to = self.map.get(id as usize).copied().unwrap_or(NONE);
            if to != NONE && value.is_finite() && self.waiting.len() < MOST_WAITING {
                self.waiting.push_back((to, value));
                n += 1;
            }
        }
        self.ticks.push_back((t.div_euclid(1000), n));
        while self.ticks.len() > MOST_WAITING / 8 {
            let n = self.ticks.pop_front().map_or(0, |(_, n)| n as usize);
            self.waiting.drain(..n);
        }
    }

    /// The second of the oldest queued tick.
    pub fn next(&self) -> Option<i64> {
        self.ticks.front().map(|(second, _)| *second)
    }

    /// Applies all ticks up to the second `t`; true when there were any.
    pub fn take(&mut self, t: i64) -> bool {
        let mut any = false;
        while let Some(&(second, n)) = self.ticks.front() {
            if second > t {
                break;
            }
            self.ticks.pop_front();
            any = true;
            for _ in 0..n {
                let Some((to, value)) = self.waiting.pop_front() else { break };
                let low = (to & !KIND) as usize;
                let first = match to & KIND {
                    HOST => self.base[low].add(value),
                    NAMED => self.named[low].slot.add(value),
                    PROCESS if low as u32 & POD != 0 => {
                        self.pods[low & !(POD as usize)].at = if value > 0.0 { t } else { NEVER };
                        false
                    }
                    PROCESS => {
                        let process = &mut self.processes[low];
                        (process.bytes, process.at) = (value, t);
                        false
                    }
                    _ => self.devices[low / SIGNALS].slots[low % SIGNALS].add(value),
                };
                if first {
                    self.touched.push(to);
                }
            }
        }
        if any {
            self.close(t);
        }
        any
    }

    fn close(&mut self, t: i64) {
        if self.first == NEVER {
            self.first = t;
            self.newest = t - self.step;
        }
        self.dt = t - self.newest;
        self.newest = t;
        // Ticks from before the goodbye may be applied after it.
        self.goodbye = self.goodbye.filter(|goodbye| *goodbye >= t);
        self.gaps[self.gaps_seen % 5] = self.dt;
        self.gaps_seen += 1;
        if self.gaps_seen >= 4 {
            let mut gaps = self.gaps;
            let known = &mut gaps[..self.gaps_seen.min(5)];
            known.sort_unstable();
            let median = known[known.len() / 2].clamp(1, 600);
            // Windows are counted in steps, so a slightly late tick does not change the step.
            if 4 * (median - self.step).abs() > self.step {
                self.step = median;
            }
        }
        let patience = self.patience();
        for at in 0..self.touched.len() {
            let to = self.touched[at];
            let low = (to & !KIND) as usize;
            match to & KIND {
                HOST => self.base[low].close(t),
                NAMED => self.named[low].slot.close(t),
                _ => {
                    let device = &mut self.devices[low / SIGNALS];
                    device.slots[low % SIGNALS].close(t);
                    device.seen = t;
                    if device.first == NEVER {
                        device.first = t;
                    }
                }
            }
        }
        self.touched.clear();
        let whole = self.dt <= patience;
        self.claim(t);
        let mut answer = [false; 3];
        self.devices.iter_mut().filter(|d| d.seen == t).for_each(|d| d.answer(t));
        self.devices.iter().filter(|d| d.answered == t).for_each(|d| answer[d.family as usize] = true);
        for at in 0..self.devices.len() {
            let device = &mut self.devices[at];
            device.missed = match device.answered == t {
                true => 0,
                // The device must vanish while its machine is watched: after a restart a different selection of devices
                // may apply.
                false if !whole => 0,
                false if answer[device.family as usize] && (device.missed > 0 || device.answered >= t - self.dt) => {
                    device.missed + 1
                }
                false => device.missed,
            };
            let (began, known) = (device.work.began, device.work.worked >= 60);
            device.tick(t, self.dt, self.step, patience);
            self.changed |= device.work.began != began || known != (device.work.worked >= 60);
        }
        if let Some(received) = self.recent(HostSig::NetIn).map(|slot| slot.minute) {
            self.marks.received_most = self.marks.received_most.max(received);
        }
        // When no device has a job, the usual values are learned anew.
        let had = std::mem::replace(&mut self.has_job, self.devices.iter().any(|d| d.work.began != NEVER));
        if had && !self.has_job {
            self.forget_levels();
        }
        let works = self.devices.iter().any(|d| d.work.on);
        let frozen = self.devices.iter().any(|d| d.work.frozen >= t);
        if works && !frozen {
            let dt = self.dt.min(2 * self.step) as f64;
            self.base.iter_mut().filter(|slot| slot.at == t).for_each(|slot| slot.learn(dt));
            self.named.iter_mut().filter(|n| n.slot.at == t).for_each(|n| n.slot.learn(dt));
        }
    }

    fn forget_levels(&mut self) {
        self.base.iter_mut().for_each(Slot::forget);
        self.named.iter_mut().for_each(|named| named.slot.forget());
        self.marks.received_most = 0.0;
    }

    /// Assigns processes to devices.
    fn claim(&mut self, t: i64) {
        let patience = self.patience();
        for at in 0..self.devices.len() {
            let device = &self.devices[at];
            if device.family != Family::Gpu {
                continue;
            }
            let mut on: Vec<(f64, u32)> = self
                .processes
                .iter()
                .filter(|p| p.gpu == device.index && p.at >= t - patience)
                .map(|p| (p.bytes, p.pid))
                .collect();
            on.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            if on.iter().map(|(_, pid)| *pid).ne(self.devices[at].pids.iter().copied()) {
                self.devices[at].pids = on.into_iter().map(|(_, pid)| pid).collect();
                self.guest(at, t);
                // Other processes are on it: another job has begun.
                let own = &mut self.devices[at];
                if !own.pids.is_empty() {
                    let stays = own.of.iter().any(|pid| own.pids.contains(pid));
                    if !own.of.is_empty() && !stays {
                        own.forget();
                    }
                    own.of = own.pids.clone();
                }
                self.root(at);
            }
        }
    }

    /// Remembers a process that came onto a device during a running job, until it leaves.
    fn guest(&mut self, at: usize, t: i64) {
        let own = &self.devices[at];
        let goes_on = own.of.iter().any(|pid| own.pids.contains(pid));
        let root = |pid: u32| self.root_of(pid).map(|(root, _)| root);
        let of_job = |pid: u32| root(pid).is_some_and(|root| own.root.is_some_and(|(own, _)| own == root));
        let came = own.pids.iter().copied().find(|pid| !own.of.contains(pid) && !of_job(*pid)).filter(|_| goes_on);
        let stays = Some(own.guest).filter(|(_, pid)| own.pids.contains(pid));
        let came = came.map(|pid| (u32::try_from(t).unwrap_or_default(), pid));
        // A process that is alone has outlived the job and is the next one.
        self.devices[at].guest = came.or(stays).filter(|_| own.pids.len() > 1).unwrap_or_default();
    }

    /// Bytes of a GPU's memory that a process uses, by its newest sample.
    pub fn held_by(&self, pid: u32, gpu: u32) -> Option<f64> {
        self.processes.iter().filter(|p| p.gpu == gpu && p.pid == pid).max_by_key(|p| p.at).map(|p| p.bytes)
    }

    fn root(&mut self, at: usize) {
        let root = self.devices[at].pids.first().and_then(|pid| self.root_of(*pid));
        if self.devices[at].root != root {
            self.devices[at].root = root;
            self.changed = true;
        }
    }

    /// The highest ancestor that belongs to the job, and its parent.
    fn root_of(&self, pid: u32) -> Option<(u32, u32)> {
        let mut own = pid;
        let mut parent = self.parents.get(&pid)?.0;
        for _ in 0..64 {
            match self.parents.get(&parent) {
                Some((above, name)) if parent > 1 && !is_session(name) => (own, parent) = (parent, *above),
                _ => break,
            }
        }
        Some((own, parent))
    }

    /// Applies a newer process table.
    pub fn table(&mut self, table: &ProcessTable) {
        self.table_at = table.t.div_euclid(1000);
        self.parents = table.rows.iter().map(|p| (p.pid, (p.parent, p.name.clone()))).collect();
        for at in 0..self.devices.len() {
            self.root(at);
        }
        let roots: Vec<u32> = self.devices.iter().filter_map(|d| d.root).map(|(root, _)| root).collect();
        self.trees.clear();
        self.tree_bytes.clear();
        self.own_cpu.clear();
        let own: Vec<u32> = self.devices.iter().flat_map(|d| d.pids.iter().copied()).collect();
        for row in table.rows.iter().filter(|row| row.cpu.is_some_and(|cpu| cpu.is_finite())) {
            let mut pid = row.pid;
            for _ in 0..16 {
                if own.contains(&pid) {
                    *self.own_cpu.entry(pid).or_default() += f64::from(row.cpu.unwrap_or(0.0)) / 100.0;
                    break;
                }
                match self.parents.get(&pid) {
                    Some((parent, _)) if *parent > 1 => pid = *parent,
                    _ => break,
                }
            }
        }
        if roots.is_empty() {
            return;
        }
        for row in &table.rows {
            let Some((root, _)) = self.root_of(row.pid).filter(|(root, _)| roots.contains(root)) else { continue };
            if let Some(cpu) = row.cpu {
                *self.trees.entry(root).or_default() += f64::from(cpu) / 100.0;
            }
            // NaN where one of them may not be read: then what the tree moves is not known.
            let bytes = row.read.zip(row.written).map_or(f32::NAN, |(read, written)| read + written);
            *self.tree_bytes.entry(root).or_default() += f64::from(bytes);
        }
    }

    /// Cores used by a process on a device and its descendants; none where that is unknown now.
    pub fn cpu_of(&self, pid: u32, now: i64) -> Option<f64> {
        let known = self.table_at >= now - 60.max(3 * self.step);
        known.then(|| self.own_cpu.get(&pid).copied()).flatten()
    }

    /// Replaces what a collector reports about lost devices by those clauses of its reason that tell of one.
    pub fn record_reason(&mut self, t: i64, collector: &str, reason: &str) {
        self.said.retain(|known| known.collector != collector);
        let is_loss = |words: &&str| {
            let words = words.to_ascii_lowercase();
            words.contains("gpu")
                && [" is lost", " as lost", "fallen off", "fell off"].iter().any(|loss| words.contains(loss))
        };
        let more = reason.split("; ").filter(is_loss).map(|words| LossReport::new(t, collector, words));
        self.said.extend(more.take(MOST_SAID.saturating_sub(self.said.len())));
    }

    /// The report that a device is lost: one that names it, or one without a name if it is `alone`.
    pub fn loss_of(&self, index: u32, alone: bool) -> Option<&LossReport> {
        let named = self.said.iter().find(|report| report.gpu == Some(index));
        named.or_else(|| self.said.iter().find(|report| alone && report.gpu.is_none()))
    }

    /// Clears all state except the list of series.
    pub fn begin_anew(&mut self) {
        let renew = |slot: &mut Slot| *slot = Slot::new(slot.row, slot.rank);
        for device in &mut self.devices {
            let mut new = Device::new(device.family, device.index);
            std::mem::swap(&mut new.slots, &mut device.slots);
            new.slots.iter_mut().for_each(renew);
            new.parted = device.parted;
            *device = new;
        }
        self.base.iter_mut().for_each(renew);
        for named in &mut self.named {
            renew(&mut named.slot);
            (named.filling, named.hold, named.back) = Default::default();
        }
        self.processes.iter_mut().for_each(|p| p.at = NEVER);
        self.pods.iter_mut().for_each(|held| held.at = NEVER);
        self.ticks.clear();
        self.waiting.clear();
        (self.first, self.newest, self.gaps_seen, self.table_at) = (NEVER, NEVER, 0, NEVER);
        self.marks = HostMarks::default();
        self.said.clear();
    }

    /// A signal whose value is recent.
    pub fn recent(&self, sig: HostSig) -> Option<&Slot> {
        let slot = &self.base[sig as usize];
        (slot.at >= self.newest - self.patience() && slot.now.is_finite()).then_some(slot)
    }

    /// Whether it ever had this signal.
    pub fn has(&self, sig: HostSig) -> bool {
        self.base[sig as usize].at != NEVER
    }

    /// Whether any of its devices ever had this signal.
    pub fn any_has(&self, sig: Sig) -> bool {
        self.devices.iter().any(|d| d.has(sig))
    }

    /// Named signals of a kind whose value is not older than `age` seconds.
    pub fn named(&self, sig: NamedSig, age: i64) -> impl Iterator<Item = &Named> {
        let newest = self.newest;
        let recent = move |n: &&Named| n.sig == sig && n.slot.at >= newest - age && n.slot.now.is_finite();
        self.named.iter().filter(recent)
    }

    /// Traffic signals of disks and networks that are current, with the bytes in a unit of each.
    fn movers(&self) -> impl Iterator<Item = (HostSig, &Slot, f64)> + Clone {
        const MIB: f64 = (1 << 20) as f64; // disks count MiB
        let parts = [(HostSig::DiskIn, MIB), (HostSig::DiskOut, MIB), (HostSig::NetIn, 1.0), (HostSig::NetOut, 1.0)];
        parts.into_iter().filter_map(|(sig, by)| Some((sig, self.recent(sig)?, by)))
    }

    /// Bytes per second of disks and networks over the last seconds, and in work; none where neither is measured.
    pub fn moved(&self) -> Option<(f64, Option<f64>)> {
        let levels: Option<f64> = self.movers().map(|(_, slot, by)| slot.level().map(|level| level * by)).sum();
        let moved = self.movers().map(|(_, slot, by)| slot.short * by).sum();
        self.movers().next().is_some().then_some((moved, levels))
    }

    /// The busiest of disks and networks now, and its bytes per second.
    pub fn busiest(&self) -> Option<(HostSig, &Slot, f64)> {
        let all = self.movers().map(|(sig, slot, by)| (sig, slot, slot.now * by));
        all.max_by(|a, b| a.2.total_cmp(&b.2))
    }
}

/// Programs above a job: shells, sessions, and launchers of containers and tasks.
fn is_session(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "ash",
        "bash",
        "containerd-shim",
        "cron",
        "crond",
        "dash",
        "docker-init",
        "dockerd",
        "dumb-init",
        "entrypoint.sh",
        "fish",
        "init",
        "jupyter-lab",
        "jupyter-noteboo",
        "jupyter-server",
        "ksh",
        "login",
        "screen",
        "sh",
        "slurmstepd",
        "srun",
        "sshd",
        "su",
        "sudo",
        "supervisord",
        "systemd",
        "tini",
        "tmux",
        "tmux: server",
        "zsh",
        "kubelet",
        "conmon",
        "runc",
        "jupyterhub-sing",
        "code",
        "node",
        "watchglass",
    ];
    NAMES.contains(&name)
        || name.starts_with("containerd-shim")
        || name.starts_with("jupyter")
        || name.starts_with("sshd")
}
