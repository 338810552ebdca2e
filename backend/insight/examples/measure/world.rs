//! Machines with their cards and jobs over time, and their readings.

use super::card::{Card, Parts, Reading};
use super::job::{Hang, Job, Speed, Stage};
use super::random::Random;
use shared::catalog::{Metric, MetricDef, cpu, disk, gpu, gpu_parts, gpu_profile, memory, network, process};
use shared::catalog::{gpu_health, infiniband};
use shared::processes::{Process, ProcessTable};
use shared::series::{SeriesId, quantize};

/// Receiver of samples.
pub trait Sink {
    fn source(&mut self, source: u32, name: &str, interval_ms: i64);
    fn series(&mut self, source: u32, id: SeriesId, metric: &Metric, instance: &str);
    fn tick(&mut self, source: u32, t: i64, samples: &[(SeriesId, f64)]);
    fn processes(&mut self, source: u32, table: &ProcessTable);
    fn jobs(&mut self, jobs: &[insight::Job]);
    fn goodbye(&mut self, source: u32, t: i64);
    fn record_reason(&mut self, source: u32, t: i64, collector: &str, reason: &str);
    /// All samples up to `now`, ms, have been passed.
    fn now(&mut self, now: i64);
}

/// Begin of all traces, milliseconds since the Unix epoch.
pub const BEGIN: i64 = 1_790_000_000_000;

const GPU_ROWS: &[&MetricDef] = &[
    &gpu::UTILIZATION,
    &gpu::MEMORY_ALLOCATED_BYTES,
    &gpu::MEMORY_TOTAL_BYTES,
    &gpu::POWER_WATTS,
    &gpu::POWER_LIMIT_WATTS,
    &gpu::TEMP,
    &gpu::MEMORY_ACTIVITY,
    &gpu::MEMORY_ALLOCATED,
    &gpu::POWER_PERCENT,
    &gpu::ENERGY_JOULES,
    &gpu::SM_CLOCK,
    &gpu::MEMORY_CLOCK,
    &gpu::FAN_SPEED,
    &gpu::CORRECTED_ERRORS,
    &gpu::UNCORRECTED_ERRORS,
    &gpu::THROTTLE_REASONS,
    &gpu_profile::ENGINE_ACTIVE,
    &gpu_profile::SM_ACTIVE,
    &gpu_profile::SM_OCCUPANCY,
    &gpu_profile::DRAM_ACTIVE,
    &gpu_profile::TENSOR_ACTIVE,
    &gpu_profile::NVLINK_TX,
    &gpu_profile::NVLINK_RX,
    &gpu_profile::PCIE_TX,
    &gpu_profile::PCIE_RX,
    &gpu_profile::PCIE_GEN,
    &gpu_profile::MAX_PCIE_GEN,
    &gpu_profile::PCIE_WIDTH,
    &gpu_profile::MAX_PCIE_WIDTH,
    &gpu_parts::XID_ERRORS,
    &gpu_parts::LAST_XID,
    &gpu_health::PERFORMANCE_STATE,
    &gpu_health::POWER_VIOLATION,
    &gpu_health::THERMAL_VIOLATION,
    &gpu_health::PCIE_REPLAYS,
    &gpu_health::REMAPPED_UNCORRECTED,
    &gpu_health::REMAP_PENDING,
    &gpu_health::NVLINKS_ACTIVE,
    &gpu_health::NVLINKS,
    &gpu_health::NVLINK_REPLAYS,
    &gpu_health::NVLINK_CRC_ERRORS,
];

const HOST_ROWS: &[&MetricDef] = &[
    &cpu::CPU_PERCENT,
    &cpu::IOWAIT_PERCENT,
    &cpu::LOAD1,
    &cpu::CORES,
    &cpu::PRESSURE_CPU,
    &cpu::PRESSURE_MEMORY_SOME,
    &cpu::PRESSURE_MEMORY_FULL,
    &cpu::PRESSURE_IO_SOME,
    &cpu::PRESSURE_IO_FULL,
    &memory::USED,
    &memory::TOTAL,
    &memory::PERCENT,
    &memory::WORKING_SET,
    &memory::CACHED,
    &disk::READ,
    &disk::WRITTEN,
    &network::RECEIVED,
    &network::SENT,
    &network::RETRANSMITS,
    &process::CPU,
    &process::THROTTLED,
    &process::RSS,
    &process::OOM_KILLS,
    &memory::OOM_KILLS,
    &cpu::TASKS_BLOCKED,
    &cpu::PROCESSES_UNINTERRUPTIBLE,
];

const DISK_ROWS: &[&MetricDef] = &[&disk::DEVICE_READ, &disk::DEVICE_WRITTEN, &disk::DEVICE_BUSY];
const LINK_ROWS: &[&MetricDef] = &[&network::DEVICE_RECEIVED, &network::DEVICE_SENT];
const PORT_ROWS: &[&MetricDef] = &[
    &infiniband::RECEIVED,
    &infiniband::SENT,
    &infiniband::STATE,
    &infiniband::RATE,
    &infiniband::SYMBOL_ERRORS,
    &infiniband::LINK_DOWNED,
];
const PATH_ROWS: &[&MetricDef] = &[&disk::USAGE_PERCENT, &disk::USAGE_GB];

const GIB: f64 = (1u64 << 30) as f64;
const MIB: f64 = (1u64 << 20) as f64;

/// Available readings of a machine's collectors.
#[derive(Clone, Copy, Debug)]
pub struct Eyes {
    /// Seconds between two ticks.
    pub interval: f64,
    pub profile: bool,
    pub nvlink: bool,
    pub pcie: bool,
    pub lanes: bool,
    pub throttle: bool,
    pub xid: bool,
    pub power: bool,
    pub pressure: bool,
    pub watched: bool,
    pub processes: bool,
    pub collectors: bool,
    /// Health of GPUs and links; counters of the kernel.
    pub health: bool,
    pub kernel: bool,
    /// DCGM's exporter reads the GPUs, and nothing reads the machine.
    pub dcgm: bool,
}

/// A port of an RDMA adapter.
#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    /// Bytes per second that it carries, and when new; symbol errors per second.
    pub rate: f64,
    pub breaking: f64,
    received: f64,
    sent: f64,
    broken: f64,
}

impl Port {
    pub fn new(number: usize, rate: f64) -> Self {
        Port { name: format!("mlx5_{number}/1"), rate, breaking: 0.0, received: 0.0, sent: 0.0, broken: 0.0 }
    }
}

/// A file system.
#[derive(Clone, Debug)]
pub struct Volume {
    pub path: &'static str,
    pub size: f64,
    pub used: f64,
    /// Bytes per second that it fills.
    pub fills: f64,
}

pub struct Host {
    pub name: String,
    pub cards: Vec<Card>,
    pub cores: f64,
    pub memory: f64,
    pub base_memory: f64,
    /// Memory of other programs, bytes; and its change per second.
    pub other_memory: f64,
    pub other_rate: f64,
    pub cached: f64,
    /// Capacity of its disk, remaining share of that, and capacity of its network to storage; bytes per second.
    pub disk: f64,
    pub disk_left: f64,
    pub network: f64,
    /// Bytes per second that others receive.
    pub network_others: f64,
    /// Bytes per second that others write to the disk.
    pub disk_others: f64,
    /// Cores wanted by others.
    pub hog: f64,
    /// Cores that the job's container may use.
    pub quota: Option<f64>,
    /// Duration of exchanges between machines relative to normal, and segments resent per second.
    pub wire: f64,
    pub resent: f64,
    /// Exchanges between machines use the measured network; else RDMA, which is not measured.
    pub plain_network: bool,
    /// Constant bytes per second on it.
    pub chatter: f64,
    pub volumes: Vec<Volume>,
    pub ports: Vec<Port>,
    kills_before: f64,
    /// The machine sends nothing; the collector of its GPUs does not answer.
    pub silent: bool,
    pub blind: bool,
    pub eyes: Eyes,
    /// The container of its job has fewer cores than the job needs.
    short: bool,
    /// Share of its memory that is in use.
    full: f64,
    wants: f64,
    share: f64,
    supply: Vec<f64>,
    using: Vec<f64>,
    counters: [f64; 8],
    due: f64,
    load1: f64,
    ids: Vec<Option<SeriesId>>,
    steps: Vec<f64>,
    values: Vec<f64>,
    live: Vec<(String, SeriesId)>,
    parts: Vec<Parts>,
    next_id: SeriesId,
    tables: u64,
    waits_io: f64,
    /// The page cache takes all free memory.
    pub storm: bool,
    /// Processes that wait for a file server.
    stalled: f64,
}

const READ: usize = 0;
const WRITTEN: usize = 1;
const RECEIVED: usize = 2;
const SENT: usize = 3;
const RESENT: usize = 4;
const KILLS: usize = 5;

/// A change of the simulated world.
#[derive(Clone, Debug)]
pub enum Act {
    /// The cooling of a card gets worse by this factor.
    Cooling(usize, usize, f64),
    Stuck(usize, usize, Option<f64>),
    Brake(usize, usize, bool),
    Limit(usize, usize, f64),
    Slow(usize, usize, f64),
    Tenant(usize, usize, f64),
    Lanes(usize, usize, f64),
    Gen(usize, usize, Option<f64>),
    /// Remaining share of its NVLink bandwidth, and number of active links.
    Links(usize, usize, f64, f64),
    /// Corrupted packets per minute on its NVLinks.
    Breaking(usize, usize, f64),
    /// A port carries this share of its former rate, with this many symbol errors per second.
    Port(usize, usize, f64, f64),
    Correcting(usize, usize, f64),
    Uncorrected(usize, usize, f64),
    Xid(usize, usize, f64),
    Lose(usize, usize, bool),
    /// The job begins; seconds until it works.
    Begin(usize, f64),
    End(usize),
    /// Index of a label: its onset is when the job stops.
    Stall(usize, Hang, usize),
    Leak(usize, f64),
    HostLeak(usize, f64),
    OwnCpu(usize, usize, f64),
    Hog(usize, f64),
    Quota(usize, Option<f64>),
    Disk(usize, f64),
    DiskOthers(usize, f64),
    /// Bytes per second that others receive on the machine.
    NetworkOthers(usize, f64),
    /// Scales the production of batches of a job by this factor.
    Headroom(usize, f64),
    /// Scales the length of a step of a job, and its power.
    Work(usize, f64, f64),
    Wire(usize, f64, f64),
    Fills(usize, usize, f64),
    Other(usize, f64),
    Kill(usize),
    Silent(usize, bool),
    Goodbye(usize),
    Blind(usize, bool),
    Restart(usize),
    /// Bytes of a card's memory stay in use without a process.
    Zombie(usize, usize, f64),
    /// The page cache takes all free memory of a machine.
    Storm(usize, bool),
    /// A member of a job starts again; seconds that it takes.
    Respawn(usize, usize, f64),
}

/// A simulated fault.
#[derive(Clone, Debug)]
pub struct Label {
    /// Kind of the fault, among the kinds of findings; and its name in the set.
    pub kind: &'static str,
    pub name: &'static str,
    /// Another kind that also reports it, where the readings for its own kind are missing.
    pub or: Option<&'static str>,
    /// Machines, each with its GPUs; an empty list: the machine itself.
    pub places: Vec<(usize, Vec<u32>)>,
    /// Affected GPUs: a finding about them during the fault is explained by it.
    pub around: Vec<(usize, Vec<u32>)>,
    /// Seconds since the trace began.
    pub onset: f64,
    pub end: f64,
    pub mild: bool,
    /// The fault is on a device: a finding must name exactly that one.
    pub device: bool,
    /// It must be reported before its end, as memory that fills.
    pub before_end: bool,
    /// It may be reported, but need not be.
    pub optional: bool,
    /// Its end is detectable, so a finding must end.
    pub clears: bool,
    /// A note is sufficient.
    pub note: bool,
}

/// Events whose time is known only during the simulation.
#[derive(Clone, Debug)]
pub enum Watch {
    /// The label's onset is when heat first throttles the card, its end when that is over.
    Heat(usize, usize, usize),
    /// The label ends when the memory of a card of the job is full. The job crashes, and restarts after these seconds.
    Full(usize, usize, f64),
    /// The label ends when the machine's memory is full: the kernel kills the job, which restarts.
    HostFull(usize, usize, usize, f64),
    /// The label ends when the volume is full.
    DiskFull(usize, usize, usize),
}

pub struct World {
    pub name: String,
    pub seconds: f64,
    pub hosts: Vec<Host>,
    pub jobs: Vec<Job>,
    pub acts: Vec<(f64, Act)>,
    pub labels: Vec<Label>,
    /// Shares of missing samples and of missing ticks; delay of ticks, ms.
    pub absent: f64,
    pub skipped: f64,
    pub late: f64,
    pub random: Random,
    /// Observed GPU seconds.
    pub gpu_seconds: f64,
    pub told_jobs: bool,
    /// Jobs that are about to stop, with their labels.
    pub stalling: Vec<(usize, usize)>,
    pub watches: Vec<Watch>,
}

/// Use of a machine by jobs in one interval: bytes of memory by jobs, bytes in use in total, and cores.
struct Demand {
    rss: f64,
    used: f64,
    watched_cores: f64,
}

/// One tick of a machine, and the seconds since the previous one.
#[derive(Clone, Copy)]
struct Tick {
    t: f64,
    interval: f64,
}

impl Tick {
    /// A value that is read only once in `every` seconds, because it changes rarely; in between NaN.
    fn asked(self, every: f64, value: f64) -> f64 {
        let (now, before) = (self.t, self.t - self.interval);
        if (now / every).floor() > (before / every).floor() || now <= self.interval { value } else { f64::NAN }
    }
}

fn gpu_row(row: usize, eyes: &Eyes, card: &Card) -> bool {
    let model = card.model;
    if eyes.dcgm {
        // The counters of its default list that this simulation has.
        return match row {
            21 | 22 => eyes.nvlink && model.nvlink > 0.0,
            0 | 1 | 3 | 5..=7 | 9..=11 | 16..=20 | 23 | 24 | 30 | 34..=36 => true,
            _ => false,
        };
    }
    match row {
        3 | 9 => eyes.power,
        4 | 8 => eyes.power,
        12 => model.fan,
        13 | 14 => model.ecc && !model.amd,
        15 => eyes.throttle && !model.amd,
        16..=20 => eyes.profile,
        21 | 22 => eyes.nvlink && model.nvlink > 0.0,
        23 | 24 => eyes.pcie && !model.amd,
        25..=28 => eyes.lanes && !model.amd,
        29 | 30 => eyes.xid && !model.amd,
        31 | 34 => eyes.health && !model.amd,
        32 | 33 => eyes.health && !model.amd && !model.fan,
        35 | 36 => eyes.health && !model.amd && model.ecc && model.memory_clock != 877.0,
        37..=40 => eyes.health && eyes.nvlink && model.nvlink > 0.0,
        _ => true,
    }
}

fn host_row(row: usize, eyes: &Eyes, host_quota: bool) -> bool {
    match row {
        _ if eyes.dcgm => false,
        4..=8 => eyes.pressure,
        19 | 21 => eyes.watched,
        20 | 22 => eyes.watched && host_quota,
        23..=25 => eyes.kernel,
        _ => true,
    }
}

impl Host {
    pub fn new(name: String, cards: Vec<Card>, eyes: Eyes, random: &mut Random) -> Self {
        let count = cards.len();
        let per_gpu = random.pick(&[8.0, 12.0, 16.0, 24.0]);
        let cores = (per_gpu * count as f64).clamp(8.0, 256.0);
        let memory = (random.pick(&[48.0, 96.0, 128.0, 256.0]) * count as f64).clamp(48.0, 2048.0) * GIB;
        let disk = random.scaled(0.4e9, 6e9);
        Host {
            name,
            cores,
            memory,
            base_memory: random.between(3.0, 9.0) * GIB,
            other_memory: 0.0,
            other_rate: 0.0,
            cached: random.between(2.0, 12.0) * GIB,
            disk,
            disk_left: 1.0,
            network: random.pick(&[1.2e9, 3e9, 12e9, 24e9]),
            network_others: 0.0,
            disk_others: 0.0,
            hog: 0.0,
            quota: None,
            wire: 1.0,
            resent: 0.0,
            plain_network: false,
            chatter: random.scaled(2e3, 6e5),
            volumes: vec![
                Volume { path: "/", size: 400.0 * GIB, used: random.between(60.0, 250.0) * GIB, fills: 2e3 },
                Volume { path: "/data", size: 7000.0 * GIB, used: random.between(700.0, 5600.0) * GIB, fills: 5e4 },
            ],
            ports: Vec::new(),
            kills_before: random.whole(0, 5) as f64,
            silent: false,
            blind: false,
            eyes,
            short: false,
            full: 0.0,
            wants: 0.0,
            share: 1.0,
            supply: Vec::new(),
            using: Vec::new(),
            counters: [0.0; 8],
            due: 0.0,
            load1: 1.0,
            ids: Vec::new(),
            steps: Vec::new(),
            values: Vec::new(),
            live: Vec::new(),
            parts: vec![Parts::default(); count],
            next_id: 0,
            tables: 0,
            waits_io: 0.0,
            storm: false,
            stalled: 0.0,
            cards,
        }
    }

    /// Announces its series in a fixed order, which determines their numbers.
    fn announce(&mut self, source: u32, sink: &mut dyn Sink) {
        sink.source(source, &self.name, (self.eyes.interval * 1000.0) as i64);
        let mut rows: Vec<(&MetricDef, String, bool)> = Vec::new();
        for (at, row) in HOST_ROWS.iter().enumerate() {
            rows.push((row, String::new(), host_row(at, &self.eyes, self.quota.is_some())));
        }
        let reads = !self.eyes.dcgm;
        rows.extend(DISK_ROWS.iter().map(|row| (*row, "nvme0n1".to_owned(), reads)));
        rows.extend(LINK_ROWS.iter().map(|row| (*row, "eth0".to_owned(), reads)));
        for volume in &self.volumes {
            rows.extend(PATH_ROWS.iter().map(|row| (*row, volume.path.to_owned(), reads)));
        }
        for port in &self.ports {
            rows.extend(PORT_ROWS.iter().map(|row| (*row, port.name.clone(), reads)));
        }
        for (g, card) in self.cards.iter().enumerate() {
            for (at, row) in GPU_ROWS.iter().enumerate() {
                rows.push((row, g.to_string(), gpu_row(at, &self.eyes, card)));
            }
        }
        self.values = vec![f64::NAN; rows.len() + 1];
        self.steps = rows.iter().map(|(row, ..)| row.steps).chain([1.0]).collect();
        self.ids = Vec::new();
        for (row, instance, there) in rows {
            self.ids.push(there.then(|| {
                sink.series(source, self.next_id, &Metric::from(row), &instance);
                self.next_id += 1;
                self.next_id - 1
            }));
        }
        // The row about a collector's state is defined with the collectors, which this package does not depend on.
        let answers = Metric { tag: ["monitor.{collector}", "ok"].join("."), ..Metric::from(&MetricDef::state("")) };
        let collector = if self.cards.iter().any(|c| c.model.amd) { "amd" } else { "nvidia" };
        self.ids.push((self.eyes.collectors && reads).then(|| {
            sink.series(source, self.next_id, &answers, collector);
            self.next_id += 1;
            self.next_id - 1
        }));
    }

    /// Divides its CPU, disk and network among their users for the next interval.
    fn provide(&mut self, jobs: &[Job], own: usize, dt: f64, random: &mut Random) {
        let mut cores = self.hog + 0.6;
        let (mut reads, mut writes, mut sent, mut received) = (0.0, self.disk_others, 0.0, 0.0);
        let (mut limited_disk, mut short) = (false, false);
        self.using.resize(jobs.len(), 0.0);
        for (number, job) in jobs.iter().enumerate() {
            let Some(place) = job.hosts.iter().position(|&h| h == own) else { continue };
            let members = job.members.iter().filter(|m| m.host == own).count() as f64;
            let tau = (2.0 / job.need()).max(4.0);
            let keep = (-dt / tau).exp();
            self.using[number] = self.using[number] * keep + job.batches[place] / dt * (1.0 - keep);
            let making = self.using[number];
            cores += job.cores[place] / dt + making * job.recipe.batch_cores * members;
            writes += job.written[place] / dt;
            sent += job.sent[place] / dt;
            if job.hosts.len() > 1 {
                // In a ring over machines one member's share leaves the machine, and as much comes in.
                let crossing = job.parts.iter().zip(&job.members).filter(|(_, m)| m.host == own);
                let bytes = crossing.map(|(parts, _)| parts.peers).sum::<f64>() / members / dt;
                let (ports, random) = (self.ports.len() as f64, &mut *random);
                for port in &mut self.ports {
                    port.sent += bytes / ports * dt * random.about_one(0.002);
                    port.received += bytes / ports * dt * random.about_one(0.002);
                }
                if self.plain_network {
                    sent += bytes;
                    received += bytes;
                }
            }
            let bytes = making * job.recipe.batch_bytes * members;
            if job.recipe.remote { received += bytes } else { reads += bytes }
        }
        let room = self.quota.unwrap_or(self.cores).min(self.cores);
        self.wants = cores;
        self.share = ((self.cores - 0.2) / cores).min(1.0);
        let disk = self.disk * self.disk_left;
        let network = (self.network - self.network_others).max(1e-4 * self.network);
        self.supply = jobs
            .iter()
            .map(|job| {
                let Some(_) = job.hosts.iter().position(|&h| h == own) else { return 0.0 };
                let members = job.members.iter().filter(|m| m.host == own).count() as f64;
                let r = &job.recipe;
                let full = job.need() * r.headroom;
                // Cores are shared evenly: the loaders lack what others take.
                let wanted = full * r.batch_cores * members + members * r.cores + self.hog + 0.6;
                let got = (self.cores / wanted).min(1.0);
                let own_room =
                    ((room - members * r.cores).max(0.1) / (full * r.batch_cores * members).max(1e-9)).min(1.0);
                let by_cores = full * got.min(own_room);
                short |= own_room < got && by_cores < job.need() && job.stage == Stage::Running;
                let left = if r.remote { network } else { (disk - writes).max(1e-3 * disk) };
                let by_bytes = if r.batch_bytes > 0.0 { left / (r.batch_bytes * members) } else { f64::INFINITY };
                if by_bytes < by_cores && by_bytes < job.need() * 1.1 && job.stage == Stage::Running {
                    limited_disk |= !r.remote;
                }
                by_cores.min(by_bytes)
            })
            .collect();
        self.short = short;
        self.waits_io = if limited_disk { 1.0 } else { ((reads + writes) / disk).min(1.0).powf(2.0) * 0.6 };
        self.counters[READ] += reads.min(disk) * dt;
        self.counters[WRITTEN] += writes.min(disk) * dt;
        self.counters[RECEIVED] +=
            (received.min(network) + self.network_others + self.chatter * random.about_one(0.4)) * dt;
        self.counters[SENT] += (sent + received * 0.01 + 0.6 * self.chatter * random.about_one(0.4)) * dt;
        self.cached = (self.cached + (reads + received * 0.2) * dt).min(self.memory * 0.6);
        self.volumes[1].used += writes * dt * 0.02;
        for volume in &mut self.volumes {
            volume.used = (volume.used + volume.fills * dt).min(volume.size);
        }
        for port in &mut self.ports {
            port.broken += (port.breaking * dt * random.about_one(0.2)).floor();
        }
        self.load1 += (cores - self.load1) * (1.0 - (-dt / 60.0).exp());
    }

    /// Resets its counters to zero, as after a restart.
    fn reset_counters(&mut self) {
        self.counters = [0.0; 8];
        self.ports.iter_mut().for_each(|port| (port.received, port.sent, port.broken) = (0.0, 0.0, 0.0));
    }

    /// Whether its tick is due; if so, schedules the next one.
    fn is_due(&mut self, t: f64) -> bool {
        if t + 1e-6 < self.due {
            return false;
        }
        self.due = if self.due == 0.0 { t } else { self.due } + self.eyes.interval;
        if self.due < t {
            self.due = t + self.eyes.interval;
        }
        true
    }

    /// Reads [`HOST_ROWS`], [`DISK_ROWS`] and [`LINK_ROWS`].
    fn read_machine(&mut self, demand: &Demand, random: &mut Random) {
        let used = demand.used;
        let wants = self.wants;
        let busy = (100.0 * wants / self.cores + 0.8 * random.normal().abs()).clamp(0.1, 100.0);
        let crowd = (wants / self.cores - 0.9).max(0.0);
        let io = self.waits_io;
        self.counters[RESENT] +=
            (self.resent * random.about_one(0.2) + if random.chance(0.05) { 2.0 } else { 0.1 }) * self.eyes.interval;
        let c = &self.counters;
        // Reclaim makes some tasks wait, and now and then all of them.
        let storm = f64::from(u8::from(self.storm));
        let memory_full = ((used / self.memory - 0.965) / 0.033).clamp(0.0, 1.0);
        let (read, written, received, sent) = (c[READ] / MIB, c[WRITTEN] / MIB, c[RECEIVED], c[SENT]);
        let quota = self.quota.unwrap_or(self.cores);
        let throttled = if self.short { random.between(0.6, 0.97) } else { 0.0 };
        self.values.extend([
            busy,
            (io * 6.0 * random.unit()).min(100.0 - busy),
            self.load1,
            self.cores,
            (crowd * 90.0 * random.about_one(0.1)).min(98.0) + 0.3 * random.unit(),
            (memory_full + storm) * 30.0 * random.about_one(0.2),
            (memory_full + 0.5 * storm) * 18.0 * random.about_one(0.2),
            (io * 62.0 * random.about_one(0.15)).min(99.0),
            (io * 34.0 * random.about_one(0.15)).min(99.0),
            used,
            self.memory,
            100.0 * used / self.memory,
            100.0 * used / self.memory,
            if self.storm { self.memory } else { self.cached }.min(self.memory - used).max(0.1 * GIB),
            read,
            written,
            received,
            sent,
            c[RESENT].floor(),
            (100.0 * demand.watched_cores / quota).min(100.0),
            100.0 * throttled,
            demand.rss / MIB,
            c[KILLS],
            // The machine counts all kills since its boot.
            c[KILLS] + self.kills_before,
            (io * 9.0 * random.unit()).round() + self.stalled,
            (io * 12.0 * random.about_one(0.2)).round() + self.stalled,
            read,
            written,
            if io >= 1.0 { 100.0 - 2.0 * random.unit() } else { (100.0 * (io / 0.6).powf(0.35)).min(99.0) },
            received,
            sent,
        ]);
    }

    /// Reads [`PATH_ROWS`] of each volume and [`PORT_ROWS`] of each port.
    fn read_volumes_and_ports(&mut self, tick: Tick) {
        for volume in &self.volumes {
            self.values.extend([100.0 * volume.used / volume.size, volume.used / GIB]);
        }
        for port in &self.ports {
            self.values.extend([
                port.received.round(),
                port.sent.round(),
                tick.asked(10.0, 4.0),
                tick.asked(10.0, port.rate),
                tick.asked(10.0, port.broken),
                tick.asked(10.0, 0.0),
            ]);
        }
    }

    /// Reads [`GPU_ROWS`] of each card.
    fn read_cards(&mut self, readings: &[Reading], dt: f64, tick: Tick, random: &mut Random) {
        for ((card, reading), parts) in self.cards.iter().zip(readings).zip(&self.parts) {
            match card.lost || self.blind {
                true => self.values.extend([f64::NAN; GPU_ROWS.len()]),
                false => self.values.extend(gpu_values(card, reading, parts, dt, tick, random)),
            }
        }
    }

    /// The samples of the readings, without absent ones.
    fn samples(&self, absent: f64, random: &mut Random) -> Vec<(SeriesId, f64)> {
        let mut samples: Vec<(SeriesId, f64)> = Vec::with_capacity(self.values.len());
        for (at, (&value, id)) in self.values.iter().zip(&self.ids).enumerate() {
            let Some(id) = id else { continue };
            if value.is_nan() || random.chance(absent) {
                continue;
            }
            samples.push((*id, quantize(value, self.steps[at])));
        }
        samples
    }

    /// Bytes of GPU memory of each process, by the instance of its series: processes of jobs, then others.
    fn process_memory(&self, jobs: &[Job], own: usize, t: f64) -> Vec<(String, f64)> {
        let mut held = Vec::new();
        if self.blind {
            return held;
        }
        for job in jobs.iter().filter(|job| job.stage != Stage::Off) {
            for (m, member) in job.members.iter().enumerate().filter(|(_, member)| member.host == own) {
                let card = &self.cards[member.gpu];
                if !card.lost {
                    let bytes = (job.memory(m, t) * card.model.memory + job.leaked).round();
                    held.push((format!("{}.proc.{}", member.gpu, member.pid), bytes));
                }
            }
        }
        for (g, card) in self.cards.iter().enumerate().filter(|(_, card)| card.tenant > 0.0 && !card.lost) {
            held.push((format!("{g}.proc.{}", 9100 + g), (0.12 * card.model.memory).round()));
        }
        held
    }

    /// The series of a process with GPU memory: its own while it lives.
    fn process_series(&mut self, instance: String, source: u32, sink: &mut dyn Sink) -> SeriesId {
        if let Some((_, id)) = self.live.iter().find(|(known, _)| *known == instance) {
            return *id;
        }
        let id = self.next_id;
        self.next_id += 1;
        sink.series(source, id, &Metric::from(&gpu_parts::PROCESS_MEMORY), &instance);
        self.live.push((instance, id));
        id
    }
}

/// The rows of one card, in the order of [`GPU_ROWS`].
fn gpu_values(
    card: &Card,
    r: &Reading,
    own: &Parts,
    dt: f64,
    tick: Tick,
    random: &mut Random,
) -> [f64; GPU_ROWS.len()] {
    let model = card.model;
    let (peers, from_host) = (own.peers / dt, own.host / dt);
    // Without NVLink the traffic of a card goes over PCIe.
    let (by_links, by_pcie) = if model.nvlink <= 0.0 {
        (0.0, peers)
    } else if card.links < 0.15 {
        (0.02 * peers, peers)
    } else {
        (peers, 0.0)
    };
    let asleep = card.bits & 1 != 0;
    let max_gen = card.max_gen;
    let link_gen = if asleep { 1.0 } else { card.worst_gen.unwrap_or(max_gen) };
    [
        r.used.round(),
        card.used,
        model.memory,
        r.power,
        card.limit,
        r.temp,
        r.active.round(),
        100.0 * card.used / model.memory,
        100.0 * r.power / card.limit,
        card.energy,
        r.clock,
        if asleep { 0.2 * model.memory_clock } else { model.memory_clock },
        (30.0 + 2.0 * (r.temp - 50.0)).clamp(0.0, 100.0).round(),
        card.corrected,
        card.uncorrected,
        f64::from(card.bits),
        r.engine,
        r.sm,
        r.occupancy,
        r.dram,
        r.tensor,
        by_links * random.about_one(0.01),
        by_links * random.about_one(0.01),
        (by_pcie + 2e5 * random.unit()).round(),
        (by_pcie + from_host + 2e5 * random.unit()).round(),
        link_gen,
        max_gen,
        card.lanes,
        card.max_lanes,
        card.xids,
        if card.xids > 0.0 { card.last_xid } else { f64::NAN },
        tick.asked(10.0, if asleep { 8.0 } else { 0.0 }),
        tick.asked(10.0, 100.0 * card.by_power),
        tick.asked(10.0, 100.0 * card.by_heat),
        tick.asked(10.0, 0.0),
        tick.asked(10.0, card.remapped),
        tick.asked(10.0, f64::from(u8::from(card.pending))),
        tick.asked(30.0, card.links_up),
        tick.asked(30.0, model.links()),
        tick.asked(60.0, (card.broken * 0.7).floor()),
        tick.asked(60.0, card.broken),
    ]
}

impl World {
    fn apply(&mut self, act: Act, t: f64, sink: &mut dyn Sink) {
        let ms = BEGIN + (t * 1000.0) as i64;
        match act {
            Act::Cooling(h, g, factor) => self.hosts[h].cards[g].cooling *= factor,
            Act::Stuck(h, g, clock) => self.hosts[h].cards[g].stuck = clock,
            Act::Brake(h, g, on) => self.hosts[h].cards[g].brake = on,
            Act::Limit(h, g, watts) => self.hosts[h].cards[g].limit = watts,
            Act::Slow(h, g, speed) => self.hosts[h].cards[g].slow = speed,
            Act::Tenant(h, g, share) => self.hosts[h].cards[g].tenant = share,
            Act::Lanes(h, g, lanes) => self.hosts[h].cards[g].lanes = lanes,
            Act::Gen(h, g, r#gen) => self.hosts[h].cards[g].worst_gen = r#gen,
            Act::Links(h, g, share, up) => {
                let card = &mut self.hosts[h].cards[g];
                (card.links, card.links_up) = (share, up);
            }
            Act::Breaking(h, g, a_minute) => self.hosts[h].cards[g].breaking = a_minute,
            Act::Port(h, port, share, breaking) => {
                let port = &mut self.hosts[h].ports[port];
                port.rate *= share;
                port.breaking = breaking;
            }
            Act::Correcting(h, g, a_minute) => self.hosts[h].cards[g].correcting = a_minute,
            Act::Uncorrected(h, g, count) => {
                let card = &mut self.hosts[h].cards[g];
                card.uncorrected += count;
                card.pending = true;
            }
            Act::Xid(h, g, xid) => {
                let card = &mut self.hosts[h].cards[g];
                card.xids += 1.0;
                card.last_xid = xid;
            }
            Act::Lose(h, g, lost) => {
                let host = &mut self.hosts[h];
                host.cards[g].lost = lost;
                if lost && host.cards.len() == 1 {
                    // The collector reports it at the tick at which it fails.
                    sink.record_reason(h as u32, ms + (host.eyes.interval * 1000.0) as i64, "nvidia", "GPU is lost");
                }
            }
            Act::Begin(job, start) => {
                self.jobs[job].begin(t, start);
                self.tell_jobs(sink);
            }
            Act::End(job) => {
                self.jobs[job].end();
                self.tell_jobs(sink);
            }
            Act::Stall(job, hang, _) => self.jobs[job].stall(hang),
            Act::Leak(job, rate) => self.jobs[job].leak = rate,
            Act::HostLeak(job, rate) => self.jobs[job].host_leak = rate,
            Act::OwnCpu(job, member, speed) => self.jobs[job].own_cpu[member] = speed,
            Act::Hog(h, cores) => self.hosts[h].hog = cores,
            Act::Quota(h, cores) => self.hosts[h].quota = cores,
            Act::Disk(h, left) => self.hosts[h].disk_left = left,
            Act::DiskOthers(h, rate) => self.hosts[h].disk_others = rate,
            Act::NetworkOthers(h, rate) => self.hosts[h].network_others = rate,
            Act::Headroom(job, times) => self.jobs[job].recipe.headroom *= times,
            Act::Work(job, times, heavy) => self.jobs[job].recipe.change_work(times, heavy),
            Act::Wire(h, times, resent) => (self.hosts[h].wire, self.hosts[h].resent) = (times, resent),
            Act::Fills(h, volume, rate) => self.hosts[h].volumes[volume].fills = rate,
            Act::Other(h, rate) => self.hosts[h].other_rate = rate,
            Act::Kill(h) => self.hosts[h].counters[KILLS] += 1.0,
            Act::Silent(h, silent) => self.hosts[h].silent = silent,
            Act::Goodbye(h) => {
                self.hosts[h].silent = true;
                // It sends the goodbye after its last tick.
                sink.goodbye(h as u32, ms + self.late as i64 + 20);
            }
            Act::Blind(h, blind) => self.hosts[h].blind = blind,
            Act::Restart(h) => self.hosts[h].reset_counters(),
            Act::Zombie(h, g, bytes) => self.hosts[h].cards[g].zombie = bytes,
            Act::Storm(h, on) => self.hosts[h].storm = on,
            Act::Respawn(job, member, seconds) => {
                self.jobs[job].respawn(member, seconds);
                self.tell_jobs(sink);
            }
        }
    }

    fn tell_jobs(&self, sink: &mut dyn Sink) {
        if !self.told_jobs {
            return;
        }
        let running = self.jobs.iter().filter(|job| job.stage != Stage::Off && job.known);
        let jobs: Vec<insight::Job> = running
            .map(|job| {
                let mut ranks: Vec<insight::Rank> = Vec::new();
                for member in &job.members {
                    let (source, gpu) = (member.host as u32, member.gpu as u32);
                    match ranks.iter_mut().find(|r| r.source == source && r.pid == member.pid) {
                        Some(rank) => rank.gpus.push(gpu),
                        None => {
                            ranks.push(insight::Rank { source, pid: member.pid, gpus: vec![gpu], logs: String::new() });
                        }
                    }
                }
                let reserved = job.reserved.iter();
                let reserved =
                    reserved.map(|(host, gpus)| insight::Reserved { source: *host as u32, gpus: gpus.clone() });
                insight::Job { id: job.name.clone(), ranks, reserved: reserved.collect(), owner: String::new() }
            })
            .collect();
        sink.jobs(&jobs);
    }

    /// Runs the simulation, and passes all readings to `sink`.
    pub fn run(&mut self, sink: &mut dyn Sink) {
        for h in 0..self.hosts.len() {
            self.hosts[h].announce(h as u32, sink);
        }
        self.acts.sort_by(|a, b| b.0.total_cmp(&a.0));
        // A job synchronizes all machines, so one interval of the simulation is the shortest of theirs.
        let dt = self.hosts.iter().map(|h| h.eyes.interval).fold(f64::INFINITY, f64::min);
        let mut t = 0.0;
        while t < self.seconds {
            while self.acts.last().is_some_and(|(at, _)| *at <= t) {
                if let Some((_, act)) = self.acts.pop() {
                    if let Act::Stall(job, _, label) = act {
                        // The onset is when the job stops, at the end of its current work.
                        self.labels[label].onset = f64::INFINITY;
                        self.stalling.push((job, label));
                    }
                    self.apply(act, t, sink);
                }
            }
            let to = t + dt;
            for host in &mut self.hosts {
                host.parts.fill(Parts::default());
            }
            for number in 0..self.jobs.len() {
                if self.jobs[number].stage != Stage::Off {
                    self.advance_job(number, (t, to));
                }
            }
            let (jobs, labels) = (&self.jobs, &mut self.labels);
            self.stalling.retain(|&(job, label)| match jobs[job].hung_since {
                Some(since) => {
                    labels[label].onset = since;
                    false
                }
                None => true,
            });
            for h in 0..self.hosts.len() {
                self.hosts[h].provide(&self.jobs, h, dt, &mut self.random);
                self.simulate_interval(h, to, dt, sink);
            }
            self.watch(to, sink);
            self.lulls(to);
            t = to;
            sink.now(BEGIN + (t * 1000.0) as i64 + 400);
        }
        self.lulls(f64::INFINITY);
        self.labels.retain(|label| label.onset < self.seconds);
    }

    /// Advances a job by one interval, as fast as its machines and cards allow, and assigns its work to the cards.
    fn advance_job(&mut self, number: usize, (t, to): (f64, f64)) {
        let mut speeds = Vec::new();
        let mut ring: f64 = 1.0;
        let job = &self.jobs[number];
        for (m, member) in job.members.iter().enumerate() {
            let host = &self.hosts[member.host];
            let card = &host.cards[member.gpu];
            let (tensor, stream) = card.speed();
            let cpu = (host.share * job.own_cpu[m]).clamp(0.02, 1.0);
            // Work that is launched too slowly waits for its launches.
            let launch = 0.3 + 0.7 * (cpu * 1.6).min(1.0);
            let lanes = card.lanes / card.max_lanes * card.worst_gen.map_or(1.0, |g| 2f64.powf(g - card.max_gen));
            speeds.push(Speed { tensor, stream, cpu, copy: lanes, launch });
            let bridge = if card.model.nvlink > 0.0 { card.links.max(0.06) } else { lanes };
            ring = ring.max(1.0 / bridge);
            if job.hosts.len() > 1 {
                ring = ring.max(host.wire);
            }
        }
        let supply: Vec<f64> =
            job.hosts.iter().map(|&h| self.hosts[h].supply.get(number).copied().unwrap_or(1e9)).collect();
        let job = &mut self.jobs[number];
        if job.leak > 0.0 && job.stage == Stage::Running && job.hang.is_none() {
            job.leaked += job.leak * (to - t);
        }
        if job.host_leak > 0.0 {
            job.host_leaked += job.host_leak * (to - t);
        }
        job.advance((t, to), &speeds, ring, &supply, &mut self.random);
        for (member, parts) in job.members.iter().zip(&job.parts) {
            self.hosts[member.host].parts[member.gpu].merge(parts);
        }
    }

    fn watch(&mut self, t: f64, sink: &mut dyn Sink) {
        let mut happened = Vec::new();
        let watches = std::mem::take(&mut self.watches);
        for watch in watches {
            match watch {
                Watch::Heat(label, h, g) => {
                    let (held, label) = (self.hosts[h].cards[g].bits & 96 != 0, &mut self.labels[label]);
                    if held {
                        label.onset = label.onset.min(t);
                        label.end = t;
                    }
                    self.watches.push(watch);
                }
                Watch::Full(label, job, again) => {
                    let full = self.jobs[job].members.iter().any(|m| {
                        let card = &self.hosts[m.host].cards[m.gpu];
                        card.used >= 0.99 * card.model.memory
                    });
                    if full {
                        self.labels[label].end = t;
                        happened.extend([(t, Act::End(job)), (t + again, Act::Begin(job, 0.5 * again))]);
                    } else {
                        self.watches.push(watch);
                    }
                }
                Watch::HostFull(label, job, h, again) => {
                    let host = &mut self.hosts[h];
                    if host.full >= 0.985 {
                        self.labels[label].end = t;
                        (host.other_memory, host.other_rate) = (0.0, 0.0);
                        happened.push((t, Act::Kill(h)));
                        happened.extend([(t, Act::End(job)), (t + again, Act::Begin(job, 0.5 * again))]);
                    } else {
                        self.watches.push(watch);
                    }
                }
                Watch::DiskFull(label, h, volume) => {
                    let volume = &self.hosts[h].volumes[volume];
                    if volume.used >= volume.size {
                        self.labels[label].end = t;
                    } else {
                        self.watches.push(watch);
                    }
                }
            }
        }
        for (at, act) in happened {
            if at <= t { self.apply(act, t, sink) } else { self.acts.push((at, act)) }
        }
        self.acts.sort_by(|a, b| b.0.total_cmp(&a.0));
    }

    /// Adds labels for GPUs that are held for long without work: reporting them is right, but not required.
    fn lulls(&mut self, t: f64) {
        for h in 0..self.hosts.len() {
            for g in 0..self.hosts[h].cards.len() {
                let card = &mut self.hosts[h].cards[g];
                let idle = t.is_finite() && card.has_context && card.idle;
                match (card.idle_since, idle) {
                    (None, true) => card.idle_since = Some(t),
                    (Some(since), false) => {
                        card.idle_since = None;
                        let end = t.min(self.seconds);
                        if end - since >= 840.0 {
                            let places = vec![(h, vec![g as u32])];
                            self.labels.push(Label {
                                kind: "idle",
                                name: "lull",
                                or: None,
                                places,
                                around: Vec::new(),
                                onset: since,
                                end,
                                mild: false,
                                device: false,
                                before_end: false,
                                optional: true,
                                clears: false,
                                note: true,
                            });
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Simulates one interval of a machine, and reads it when its tick is due.
    fn simulate_interval(&mut self, h: usize, t: f64, dt: f64, sink: &mut dyn Sink) {
        let demand = self.demand(h, dt);
        let readings = self.pass_cards(h, t, dt);
        let (host, random) = (&mut self.hosts[h], &mut self.random);
        let waits = |job: &&Job| job.stage == Stage::Running && t < job.stalled_until && job.hosts.contains(&h);
        host.stalled = self.jobs.iter().filter(waits).map(|job| job.members.len() as f64).sum();
        if !host.is_due(t) || host.silent {
            return;
        }
        self.gpu_seconds += host.cards.len() as f64 * host.eyes.interval;
        if random.chance(self.skipped) {
            return;
        }
        let tick = Tick { t, interval: host.eyes.interval };
        host.values.clear();
        host.read_machine(&demand, random);
        host.read_volumes_and_ports(tick);
        host.read_cards(&readings, dt, tick, random);
        host.values.push(if host.blind { 0.0 } else { 1.0 });
        let source = h as u32;
        let mut samples = host.samples(self.absent, random);
        let held = if host.eyes.dcgm { Vec::new() } else { host.process_memory(&self.jobs, h, t) };
        for (instance, bytes) in held {
            samples.push((host.process_series(instance, source, sink), bytes));
        }
        let ms = BEGIN + (t * 1000.0) as i64 + (random.unit() * self.late) as i64;
        sink.tick(source, ms, &samples);
        host.tables += 1;
        let every = (5.0 / tick.interval).ceil().max(1.0) as u64;
        if host.eyes.processes && !host.eyes.dcgm && host.tables % every == 1 % every {
            let table = table(ms, host, &self.jobs, h, dt);
            sink.processes(source, &table);
        }
    }

    /// Use of a machine's memory and cores by all jobs in one interval. It also updates the machine's memory.
    fn demand(&mut self, h: usize, dt: f64) -> Demand {
        let host = &mut self.hosts[h];
        let (mut rss, mut watched_cores) = (0.0, 0.0);
        for (number, job) in self.jobs.iter().enumerate() {
            let Some(place) = job.hosts.iter().position(|&own| own == h) else { continue };
            if job.stage == Stage::Off {
                continue;
            }
            let members = job.members.iter().filter(|m| m.host == h).count() as f64;
            rss += job.recipe.resident * members + job.host_leaked;
            watched_cores += job.cores[place] / dt
                + host.using.get(number).copied().unwrap_or(0.0) * job.recipe.batch_cores * members;
        }
        host.other_memory = (host.other_memory + host.other_rate * dt).max(0.0);
        let used = (host.base_memory + rss + host.other_memory).min(host.memory * 0.998);
        host.full = used / host.memory;
        Demand { rss, used, watched_cores }
    }

    /// Simulates one interval of each card of a machine.
    fn pass_cards(&mut self, h: usize, t: f64, dt: f64) -> Vec<Reading> {
        let host = &mut self.hosts[h];
        let mut readings: Vec<Reading> = Vec::with_capacity(host.cards.len());
        for g in 0..host.cards.len() {
            let mut parts = host.parts[g];
            let card = &mut host.cards[g];
            let mut held = 0.0;
            let mut context = false;
            for job in &self.jobs {
                if job.stage == Stage::Off {
                    continue;
                }
                for (m, member) in job.members.iter().enumerate() {
                    if member.host == h && member.gpu == g {
                        held += job.memory(m, t) * card.model.memory + job.leaked;
                        context = true;
                        card.load = job.recipe.load;
                        card.grain = (job.recipe.step / 3.0).max(0.005);
                    }
                }
            }
            card.has_context = context;
            card.used = (0.006 * card.model.memory
                + held
                + card.zombie
                + if card.tenant > 0.0 { 0.12 * card.model.memory } else { 0.0 })
            .min(card.model.memory * 0.997);
            parts.fit(dt);
            readings.push(card.pass(&parts, dt, &mut self.random));
        }
        readings
    }
}

fn table(t: i64, host: &Host, jobs: &[Job], h: usize, dt: f64) -> ProcessTable {
    let mut rows = vec![
        Process {
            pid: 1,
            name: "systemd".into(),
            user: "root".into(),
            cpu: Some(0.1),
            rss: 12 << 20,
            threads: 1,
            ..Process::default()
        },
        Process {
            pid: 900,
            parent: 1,
            name: "dcgm".into(),
            user: "root".into(),
            cpu: Some(1.2),
            rss: 60 << 20,
            threads: 9,
            ..Process::default()
        },
    ];
    if host.hog > 0.0 {
        let cpu = (100.0 * host.hog * host.share) as f32;
        rows.push(Process {
            pid: 7777,
            parent: 1,
            name: "make".into(),
            user: "li".into(),
            cpu: Some(cpu),
            rss: 4 << 30,
            threads: 64,
            ..Process::default()
        });
    }
    for (number, job) in jobs.iter().enumerate().filter(|(_, job)| job.stage != Stage::Off) {
        if let Some(place) = job.hosts.iter().position(|&own| own == h) {
            rows.extend(job_processes(job, place, h, host.using.get(number).copied().unwrap_or(0.0), dt));
        }
    }
    for (g, card) in host.cards.iter().enumerate() {
        if card.tenant > 0.0 {
            let memory = Some((0.12 * card.model.memory) as u64);
            rows.push(Process {
                pid: 9100 + g as u32,
                parent: 1,
                name: "python".into(),
                user: "kim".into(),
                cpu: Some(100.0),
                rss: 3 << 30,
                threads: 20,
                gpu_memory: memory,
                ..Process::default()
            });
        }
    }
    ProcessTable { t, total: rows.len() as u32 + 300, whole: true, rows }
}

/// The processes of a job on its machine `place`, which has index `h`; its loaders produce `batches` per second.
fn job_processes(job: &Job, place: usize, h: usize, batches: f64, dt: f64) -> Vec<Process> {
    let mut rows = Vec::new();
    let mut pids: Vec<u32> = job.members.iter().filter(|m| m.host == h).map(|m| m.pid).collect();
    pids.dedup();
    let Some(&first) = pids.first() else { return rows };
    let parent = first - 1;
    let row = |pid: u32, parent: u32, name: &str, cpu: f64, rss: f64| Process {
        pid,
        parent,
        user: "ana".into(),
        name: name.into(),
        cpu: Some((100.0 * cpu) as f32),
        rss: rss as u64,
        threads: 40,
        watched: true,
        ..Process::default()
    };
    rows.push(row(parent, 1, "torchrun", 0.01, 3e8));
    let members = job.members.iter().filter(|m| m.host == h).count() as f64;
    let each = job.cores[place] / dt / pids.len() as f64;
    let loading = batches * job.recipe.batch_cores * members / pids.len() as f64;
    for pid in pids {
        rows.push(row(pid, parent, "python3", each, job.recipe.resident));
        if loading > 0.001 {
            rows.push(row(pid + 400, pid, "pt_data_worker", loading, 1e9));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::set;
    use super::*;
    use std::collections::HashMap;

    /// All samples of one row of the first machine, by instance.
    #[derive(Default)]
    struct RowSamples {
        names: HashMap<(u32, SeriesId), (String, String)>,
        rows: HashMap<(String, String), Vec<(i64, f64)>>,
        samples: u64,
        sum: u64,
    }

    impl Sink for RowSamples {
        fn source(&mut self, _source: u32, _name: &str, _interval_ms: i64) {}
        fn series(&mut self, source: u32, id: SeriesId, metric: &Metric, instance: &str) {
            self.names.insert((source, id), (metric.tag.clone(), instance.to_owned()));
        }
        fn tick(&mut self, source: u32, t: i64, samples: &[(SeriesId, f64)]) {
            for &(id, value) in samples {
                self.samples += 1;
                self.sum = self.sum.rotate_left(5) ^ value.to_bits() ^ t as u64 ^ u64::from(id);
                if source == 0 {
                    self.rows.entry(self.names[&(source, id)].clone()).or_default().push((t, value));
                }
            }
        }
        fn processes(&mut self, _source: u32, _table: &ProcessTable) {}
        fn jobs(&mut self, _jobs: &[insight::Job]) {}
        fn goodbye(&mut self, _source: u32, _t: i64) {}
        fn record_reason(&mut self, _source: u32, _t: i64, _collector: &str, _reason: &str) {}
        fn now(&mut self, _now: i64) {}
    }

    impl RowSamples {
        fn mean(&self, row: &MetricDef, instance: &str, from: f64, to: f64) -> f64 {
            let within = |t: i64| (from..to).contains(&((t - BEGIN) as f64 / 1000.0));
            let all = &self.rows[&(row.tag.to_owned(), instance.to_owned())];
            let values: Vec<f64> = all.iter().filter(|(t, _)| within(*t)).map(|(_, v)| *v).collect();
            values.iter().sum::<f64>() / values.len() as f64
        }
    }

    fn run(seed: u64) -> (World, RowSamples) {
        let (mut world, mut kept) = (set::world(seed, None, 0.0, None), RowSamples::default());
        world.run(&mut kept);
        (world, kept)
    }

    fn seed_of(name: &str, skip: usize) -> u64 {
        (0..4000).filter(|&seed| set::plan(seed).1 == name).nth(skip).expect("the set has it")
    }

    #[test]
    fn the_same_seed_gives_the_same_samples() {
        let ((_, one), (_, two), (_, three)) = (run(9), run(9), run(11));
        assert!(one.samples > 100_000);
        assert_eq!((one.samples, one.sum), (two.samples, two.sum));
        assert_ne!(one.sum, three.sum);
    }

    #[test]
    fn who_waits_in_a_kernel_is_busy_and_takes_less_power_than_who_works() {
        let (world, kept) = run(seed_of("hang.spin", 0));
        let onset = world.labels[0].onset;
        let (before, after) = ((onset - 200.0, onset - 30.0), (onset + 30.0, onset + 200.0));
        let power = |(from, to)| kept.mean(&gpu::POWER_WATTS, "0", from, to);
        assert!(kept.mean(&gpu::UTILIZATION, "0", after.0, after.1) > 99.0);
        assert!(power(after) < 0.75 * power(before), "{} {}", power(after), power(before));
    }

    #[test]
    fn all_wait_for_the_slow_one_and_its_share_of_memory_time_stays() {
        // A stuck clock: this member works all the time, and its peers less.
        let of = (0..40).map(|skip| seed_of("straggler", skip)).find(|&seed| {
            let label = &set::world(seed, None, 0.0, None).labels[0];
            label.name == "clock" && label.places[0].0 == 0
        });
        let (world, kept) = run(of.expect("one is on the first machine"));
        let (label, victim) = (&world.labels[0], world.labels[0].places[0].1[0]);
        let peer = u32::from(victim == 0);
        let clock = |g: u32, from, to| kept.mean(&gpu::SM_CLOCK, &g.to_string(), from, to);
        let (onset, until) = (label.onset + 20.0, (label.onset + 400.0).min(label.end));
        assert!(clock(victim, onset, until) < 0.9 * clock(victim, onset - 300.0, label.onset - 5.0));
        assert!(clock(victim, onset, until) < 0.95 * clock(peer, onset, until));
    }

    #[test]
    fn a_set_has_every_fault_and_at_least_a_third_that_only_looks_like_one() {
        let (mut names, mut hard) = (std::collections::BTreeSet::new(), 0);
        for seed in (0..1440).map(|n| 2 * n) {
            let (class, name) = set::plan(seed);
            names.insert(name);
            hard += usize::from(class == set::Class::Hard);
        }
        assert!(hard * 3 >= 1440, "{hard}");
        assert!(names.len() > 80, "{}", names.len());
    }
}
