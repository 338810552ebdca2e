//! The rest of a simulated machine: cores, memory, disks, network and the processes of the job.

use super::drive::Drive;
use super::job::Phase;
use super::noise::Key;
use collectors::Out;
use shared::catalog::{cpu, disk, memory, network, process};

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1u64 << 30) as f64;
const SWAP_BYTES: f64 = 8.0 * GIB;
/// Maximum number of links between machines.
const MAX_LINKS: u32 = 8;
/// Sizes of the file systems, GiB.
const SYSTEM_DISK_GIB: f64 = 440.0;
const DATA_DISK_GIB: f64 = 28_000.0;
/// Share of the memory that is in use without a job.
const EMPTY_SHARE: f64 = 0.025;

/// Task of a core.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Drives a GPU.
    Rank,
    /// Prepares data.
    Loader,
    Spare,
}

pub(super) struct Host {
    key: Key,
    gpus: f64,
    cores: Vec<Kind>,
    /// Bytes.
    memory: f64,
    links: Vec<String>,
}

impl Host {
    pub fn new(key: Key, gpus: u32) -> Self {
        let cores = (8 * gpus).clamp(16, 128);
        // 7 has no divisor in common with the number of cores, so each place is used once.
        let kind = |core: u32| match core * 7 % cores {
            place if place < gpus => Kind::Rank,
            place if place < 5 * gpus => Kind::Loader,
            _ => Kind::Spare,
        };
        Host {
            key,
            gpus: f64::from(gpus),
            cores: (0..cores).map(kind).collect(),
            memory: f64::from((128 * gpus).clamp(64, 2_048)) * GIB,
            links: (0..gpus.min(MAX_LINKS)).map(|i| format!("ib{i}")).collect(),
        }
    }

    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Bytes.
    pub fn memory(&self) -> f64 {
        self.memory
    }

    pub fn read(&self, at: &Drive, out: &mut Out) {
        let busy = self.cpu(at, out);
        self.pressure(at, out);
        self.memory_rows(at, out);
        self.disks(at, out);
        self.network(at, out);
        self.processes(at, busy, out);
    }

    fn core(&self, kind: Kind, core: u64, at: &Drive) -> f64 {
        let key = self.key.derive(1_000 + core);
        let jitter = key.jitter(at.t, 1_000);
        let percent = match (kind, at.phase) {
            (Kind::Rank, _) if at.hung => 100.0,
            (_, Phase::Idle | Phase::Dead) => 1.2 + jitter,
            (Kind::Rank, Phase::Train) => 96.0 + 5.0 * jitter,
            (Kind::Rank, Phase::Evaluate) => 90.0 + 8.0 * jitter,
            (Kind::Rank, Phase::StartUp) => 72.0 + 20.0 * jitter,
            (Kind::Rank, Phase::Checkpoint) => 55.0 + 30.0 * jitter,
            (Kind::Loader, _) if at.hung => 1.0 + jitter,
            (Kind::Loader, Phase::Train) => {
                44.0 + 16.0 * key.derive(1).sway(at.t, 9_000) + 10.0 * jitter + 70.0 * at.dip
            }
            (Kind::Loader, Phase::Evaluate) => 26.0 + 10.0 * jitter,
            (Kind::Loader, Phase::StartUp) => 84.0 + 14.0 * jitter,
            (Kind::Loader, Phase::Checkpoint) => 6.0 + 5.0 * jitter,
            (Kind::Spare, Phase::Checkpoint) => 14.0 + 12.0 * jitter,
            (Kind::Spare, _) => 2.2 + 2.0 * jitter,
        };
        percent.clamp(0.0, 100.0)
    }

    /// Returns the use of the whole machine, percent.
    fn cpu(&self, at: &Drive, out: &mut Out) -> f64 {
        let mut sum = 0.0;
        for (i, kind) in (0u32..).zip(&self.cores) {
            let percent = self.core(*kind, u64::from(i), at);
            sum += percent;
            out.put(&cpu::CORE_PERCENT, i, percent);
        }
        let n = self.cores.len() as f64;
        let whole = sum / n;
        let jitter = self.key.derive(1).jitter(at.t, 1_000);
        out.put(&cpu::CPU_PERCENT, (), whole);
        out.put(&cpu::USER_PERCENT, (), whole * (0.82 + 0.03 * jitter));
        out.put(&cpu::SYSTEM_PERCENT, (), whole * (0.18 - 0.03 * jitter));
        let waiting = match at.phase {
            Phase::Checkpoint => 6.0 + 3.0 * jitter,
            Phase::StartUp => 3.0 + 2.0 * jitter,
            _ => 0.2 + 0.2 * jitter,
        };
        out.put(&cpu::IOWAIT_PERCENT, (), waiting);
        out.put(&cpu::STEAL_PERCENT, (), 0.0);

        // The kernel's averages follow slowly; so does the warmth of the GPUs.
        let wanted = (3.0 * self.gpus).min(0.7 * n);
        let ended = if at.hung { self.gpus.min(n) } else { 0.4 };
        let after =
            |ms: f64| if at.stopped > 0.0 { ended + (wanted - ended) * (-at.stopped / ms).exp() } else { wanted };
        let sway = |lane: u64, ms: i64| 1.0 + 0.1 * self.key.derive(lane).sway(at.t, ms);
        let now = if at.stopped > 0.0 { after(60_000.0) } else { wanted * (0.3 + 0.75 * at.warmth.1) };
        out.put(&cpu::LOAD1, (), now * sway(2, 30_000));
        out.put(&cpu::LOAD5, (), after(300_000.0) * sway(3, 150_000));
        out.put(&cpu::LOAD15, (), after(900_000.0) * sway(4, 450_000));
        out.put(&cpu::CORES, (), n);
        out.put(&cpu::TASKS_RUNNABLE, (), (sum / 100.0 * (1.1 + 0.3 * jitter)).round().max(1.0));
        let alive = if at.phase == Phase::Dead { 0.0 } else { 48.0 * self.gpus };
        out.put(&cpu::TASKS, (), (9.0 * n + alive + 12.0 * self.key.derive(5).sway(at.t, 60_000)).round());
        out.put(&cpu::UPTIME, (), at.up / 1e3);
        let warm = 36.0 + 24.0 * at.warmth.1 + 0.8 * self.key.derive(6).sway(at.t, 15_000);
        out.put(&cpu::TEMPERATURE, (), (8.0 * warm).round() / 8.0);
        whole
    }

    fn pressure(&self, at: &Drive, out: &mut Out) {
        let jitter = self.key.derive(7).jitter(at.t, 1_000);
        let (cores, disks) = match at.phase {
            Phase::StartUp => (9.0 + 5.0 * jitter, 22.0 + 10.0 * jitter),
            Phase::Checkpoint => (3.0 + 2.0 * jitter, 38.0 + 12.0 * jitter),
            Phase::Idle | Phase::Dead => (0.0, 0.0),
            _ if at.starved => (2.0 + 1.5 * jitter, 46.0 + 8.0 * jitter),
            _ => (2.0 + 1.5 * jitter + 20.0 * at.dip, 0.4 + 0.4 * jitter + 30.0 * at.dip),
        };
        out.put(&cpu::PRESSURE_CPU, (), cores);
        // Near the limit the kernel scans for pages all the time.
        let short = ((at.fills - 0.93) / 0.07).clamp(0.0, 1.0);
        out.put(&cpu::PRESSURE_MEMORY_SOME, (), 60.0 * short);
        out.put(&cpu::PRESSURE_MEMORY_FULL, (), 35.0 * short);
        out.put(&cpu::PRESSURE_IO_SOME, (), disks);
        out.put(&cpu::PRESSURE_IO_FULL, (), 0.6 * disks);
    }

    /// 0 to 1: part of a checkpoint in memory, on its way to the disk.
    fn staged(&self, at: &Drive) -> f64 {
        match at.phase {
            Phase::Checkpoint => (at.into as f64 / 4_000.0).min(1.0),
            // A run's first training follows its start-up, not a checkpoint.
            Phase::Train if !at.hung && at.age - at.into > 90_000 => (-(at.into as f64) / 9_000.0).exp(),
            _ => 0.0,
        }
    }

    /// Share of the memory in use.
    fn used(&self, at: &Drive) -> f64 {
        let job = match at.phase {
            Phase::Dead => 0.0,
            Phase::StartUp => at.into as f64 / 80_000.0,
            _ => 1.0,
        };
        let usual = EMPTY_SHARE + job * (0.24 + 0.006 * self.key.derive(8).sway(at.t, 45_000)) + 0.07 * self.staged(at);
        usual + (0.995 - usual) * at.fills
    }

    /// Share of the memory that the job uses.
    pub fn resident(&self, at: &Drive) -> f64 {
        (self.used(at) - EMPTY_SHARE).max(0.004)
    }

    /// CPU of one process among `of` of its kind, percent of one core. They share the cores of their kind.
    pub fn busy(&self, kind: Kind, i: u32, of: u32, at: &Drive) -> f64 {
        let theirs = || (0u64..).zip(&self.cores).filter(|(_, k)| **k == kind).map(|(core, _)| core);
        let n = theirs().count();
        let core = theirs().nth(i as usize % n.max(1));
        core.map_or(0.5, |core| self.core(kind, core, at) * (n as f64 / f64::from(of)).min(1.0))
    }

    fn memory_rows(&self, at: &Drive, out: &mut Out) {
        let staged = self.staged(at);
        let used = self.used(at);
        let cached = (0.10 + 0.42 * (1.0 - (-(at.age as f64) / 1_500_000.0).exp())).min(1.0 - used);
        let bytes = |share: f64| share * self.memory;
        out.put(&memory::USED, (), bytes(used));
        out.put(&memory::TOTAL, (), self.memory);
        out.put(&memory::PERCENT, (), 100.0 * used);
        out.put(&memory::WORKING_SET, (), 100.0 * used);
        out.put(&memory::AVAILABLE, (), bytes(1.0 - used) / MIB);
        out.put(&memory::CACHED, (), bytes(cached));
        out.put(&memory::DIRTY, (), bytes(0.02 * staged) + 9.0 * MIB * (1.2 + self.key.derive(9).sway(at.t, 5_000)));
        out.put(&memory::SWAP_USED, (), 96.0 * MIB);
        out.put(&memory::SWAP_TOTAL, (), SWAP_BYTES);
        out.put(&memory::SWAP_PERCENT, (), 100.0 * 96.0 * MIB / SWAP_BYTES);
    }

    /// A counter with a mean rate per second. It grows unevenly, and never falls.
    fn sum(&self, lane: u64, rate: f64, ms: f64) -> f64 {
        const UNEVEN: i64 = 8_000;
        // The slope of the uneven part is at most 1.5 x 2 x 0.25 = 0.75 of the rate's.
        let uneven = self.key.derive(lane).sway(ms as i64, UNEVEN) + 1.0;
        rate * (ms + 0.25 * UNEVEN as f64 * uneven) / 1e3
    }

    fn disks(&self, at: &Drive, out: &mut Out) {
        let n = self.gpus.min(64.0);
        // MiB a second.
        let read = self.sum(20, 24.0 * n, at.done)
            + self.sum(21, 260.0 * n.min(16.0), at.spent.start_up)
            + self.sum(22, 30.0 * n, at.spent.evaluate);
        let written = self.sum(23, 380.0 * n.min(16.0), at.spent.checkpoint) + self.sum(24, 0.3, at.done);
        let (system_read, system_written) = (self.sum(25, 0.02, at.up), self.sum(26, 0.5, at.up));
        out.put(&disk::READ, (), read + system_read);
        out.put(&disk::WRITTEN, (), written + system_written);
        let jitter = self.key.derive(27).jitter(at.t, 1_000);
        let busy = match at.phase {
            _ if at.hung => 0.1,
            Phase::Train if at.starved => 98.5 + 1.5 * jitter,
            Phase::Train => 14.0 + 6.0 * jitter,
            Phase::Evaluate => 18.0 + 6.0 * jitter,
            Phase::StartUp => 78.0 + 15.0 * jitter,
            Phase::Checkpoint => 97.0 + 3.0 * jitter,
            Phase::Idle | Phase::Dead => 0.0,
        };
        let system = 0.8 + 0.8 * self.key.derive(28).jitter(at.t, 1_000);
        for (name, read, written, busy) in
            [("nvme0n1", system_read, system_written, system), ("nvme1n1", read, written, busy.min(100.0))]
        {
            out.put(&disk::DEVICE_READ, name, read);
            out.put(&disk::DEVICE_WRITTEN, name, written);
            out.put(&disk::DEVICE_BUSY, name, busy);
        }
        // Checkpoints accumulate until the next run deletes them.
        let data = 41.0 + 24.0 * (at.age as f64 / 1.6e7).min(1.0);
        for (path, percent, size) in [("/", 38.2, SYSTEM_DISK_GIB), ("/data", data, DATA_DISK_GIB)] {
            out.put(&disk::USAGE_PERCENT, path, percent);
            out.put(&disk::USAGE_GB, path, percent / 100.0 * size);
        }
    }

    fn network(&self, at: &Drive, out: &mut Out) {
        let reduced = |lane| self.sum(lane, 2.1e9, at.done) + self.sum(lane, 0.2e9, at.spent.evaluate);
        let own = (self.sum(40, 26e3, at.up) + self.sum(41, 18e6, at.done), self.sum(42, 31e3, at.up));
        let (mut received, mut sent) = own;
        out.put(&network::DEVICE_RECEIVED, "eth0", own.0);
        out.put(&network::DEVICE_SENT, "eth0", own.1);
        for (lane, link) in (50u64..).zip(&self.links) {
            let (there, back) = (reduced(lane), reduced(lane + 20));
            (received, sent) = (received + there, sent + back);
            out.put(&network::DEVICE_RECEIVED, link.as_str(), there);
            out.put(&network::DEVICE_SENT, link.as_str(), back);
        }
        out.put(&network::RECEIVED, (), received);
        out.put(&network::SENT, (), sent);
        out.put(&network::RETRANSMITS, (), self.sum(43, 0.06, at.done).floor());
    }

    /// The job's processes, as if they were watched; absent after its end.
    fn processes(&self, at: &Drive, busy: f64, out: &mut Out) {
        if at.phase == Phase::Dead {
            return;
        }
        let resident = self.resident(at);
        out.put(&process::CPU, (), 0.97 * busy);
        out.put(&process::THREADS, (), 1.0 + 41.0 * self.gpus);
        out.put(&process::PROCESSES, (), 1.0 + 5.0 * self.gpus);
        out.put(&process::RSS, (), resident * self.memory / MIB);
        out.put(&process::RSS_PERCENT, (), 100.0 * resident);
    }
}
