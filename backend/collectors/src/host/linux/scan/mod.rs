//! Every process of a Linux machine, every five seconds.
//!
//! One `stat` file is read per process. Disks, container and the exact resident set need further files, so they are
//! read only for the watched tree and the busiest processes. Files stay open within a limit ([`held`]), because opening
//! one costs more than reading it. Arguments are read only if an operator enabled that ([`shared::redact`]), the
//! environment never.

mod fdinfo;
mod held;
mod ranks;
mod wandb;

use self::held::{Held, Room};
use self::ranks::Ranks;
use super::process::stat::{Stat, name_of};
use crate::host::facts;
use crate::read::drm;
use crate::read::procfs::{fill, lines, number, trim};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use inventory::{GpuUse, Processes};
use shared::catalog::cpu;
use shared::processes::{Process, ProcessTable};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Interval of the table. Slightly short, so that a tick that is marginally early is not skipped.
const TABLE_INTERVAL: Duration = Duration::from_millis(4_900);
/// Maximum number of processes beside the watched tree whose details are read.
const MAX_BUSIEST: usize = 50;
/// The kernel's own threads are children of this process; idle ones have no row.
const KTHREADD: u32 = 2;
/// Tables without CPU time after which a thread of the kernel rests: a large machine has thousands that never run.
const TABLES_TO_REST: u8 = 12;
/// A resting thread is read in one of so many tables.
const RESTING_TURNS: u32 = 4;
const MIB: f64 = (1 << 20) as f64;

/// Opens the collector.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    std::fs::read_dir(&roots.proc).map_err(|error| OpenError::from_io(&roots.proc, &error))?;
    let tried = [roots.proc.join("PID/stat").display().to_string()];
    // User names are those of this system; names of a mounted host cannot be read.
    let users = if *roots == Roots::default() {
        users(&std::fs::read("/etc/passwd").unwrap_or_default())
    } else {
        HashMap::new()
    };
    let start = |&pid: &u32| Some((pid, Stat::read(&roots.proc, pid, &mut Vec::new())?.start));
    let scan = Scan {
        proc: roots.proc.clone(),
        watched: options.pids.iter().filter_map(start).collect(),
        users,
        known: HashMap::new(),
        at: None,
        turn: 0,
        boot: None,
        buffer: Vec::new(),
        ticks: facts::ticks_per_second(),
        page: facts::page_size(),
        room: Room::by_limit(),
        graphics: !drm::cards(&roots.sys, fdinfo::DRIVERS).is_empty(),
        show_args: options.show_args,
        uninterruptible: 0,
        stopped: HashSet::new(),
    };
    let (ranks, roots) = (Ranks::default(), roots.clone());
    Ok(Part::only(tried, Tables { scan, ranks, roots, to: options.processes.clone() }))
}

struct Tables {
    scan: Scan,
    ranks: Ranks,
    roots: Roots,
    to: Arc<Processes>,
}

impl Collector for Tables {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let ranks = self.to.ranks();
        if self.scan.at.is_some_and(|at| out.at().saturating_sub(at) < TABLE_INTERVAL) {
            self.ranks.put(&ranks, out);
            return Ok(());
        }
        let gpus = self.to.gpus();
        self.scan.boot = boot(&self.roots.proc, out.wall());
        let mut table = self.scan.table(out.at(), &gpus)?;
        table.t = out.wall();
        let mut holders = self.to.gpu_holders();
        for row in &mut table.rows {
            row.gpus = holders.remove(&row.pid).unwrap_or_default();
        }
        out.put(&cpu::PROCESSES_UNINTERRUPTIBLE, (), f64::from(self.scan.uninterruptible));
        self.ranks.take(&ranks, &self.scan, &table.rows, &self.roots);
        self.ranks.put(&ranks, out);
        wandb::put(&table.rows, &self.roots, out);
        self.to.set_stopped(self.scan.stopped.clone());
        self.to.put(table);
        Ok(())
    }
}

/// State of a process between two tables.
#[derive(Default)]
struct ScannedProcess {
    stat: Held,
    statm: Held,
    io: Held,
    /// None while nothing was read.
    start: Option<u64>,
    user: String,
    cpu_ticks: u64,
    /// When its CPU time was read.
    read: Option<Duration>,
    /// Tables in a row in which it, a thread of the kernel, slept without CPU time.
    idle_tables: u8,
    /// Bytes read and written, at the last reading.
    disk: Option<(u64, u64)>,
    /// Use of the engines of cards, at the last reading.
    engines: fdinfo::Engines,
    container: Option<String>,
    /// Its arguments, and its name when they were read: an exec changes both.
    args: Option<(String, String)>,
    /// Whether it belongs to the watched tree. It stays so when its ancestors end.
    watched: bool,
    /// Whether its details are read.
    detailed: bool,
    seen: bool,
}

struct Scan {
    proc: PathBuf,
    /// Start by PID.
    watched: HashMap<u32, u64>,
    users: HashMap<u32, String>,
    known: HashMap<u32, ScannedProcess>,
    at: Option<Duration>,
    /// Number of the table; wraps.
    turn: u32,
    /// When the machine started, milliseconds since the Unix epoch.
    boot: Option<i64>,
    buffer: Vec<u8>,
    ticks: f64,
    page: u64,
    room: Room,
    /// Whether there are GPUs whose drivers report memory and engines by process.
    graphics: bool,
    /// Whether arguments are read.
    show_args: bool,
    /// Processes in state D, in the newest table.
    uninterruptible: u32,
    /// PID and start of the processes in state T, in the newest table.
    stopped: HashSet<(u32, u64)>,
}

impl Scan {
    fn table(&mut self, at: Duration, gpus: &GpuUse) -> Result<ProcessTable, CollectError> {
        let seconds = self.at.replace(at).map(|before| at.saturating_sub(before).as_secs_f64()).filter(|s| *s > 0.0);
        let listed =
            std::fs::read_dir(&self.proc).map_err(|e| CollectError::failed(format!("{}: {e}", self.proc.display())))?;
        self.known.values_mut().for_each(|known| known.seen = false);
        let (mut total, mut rows) = (0, Vec::with_capacity(self.known.len()));
        self.uninterruptible = 0;
        self.stopped.clear();
        self.turn = self.turn.wrapping_add(1);
        for entry in listed.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if self.is_left_to_rest(pid) {
                total += 1;
                continue;
            }
            // A process may end between the listing and the reading.
            let Some((row, idle)) = self.row(pid, at) else { continue };
            total += 1;
            if !(idle && (row.parent == KTHREADD || row.pid == KTHREADD)) {
                rows.push(row);
            }
        }
        self.known.retain(|_, known| known.seen);
        self.mark_watched(&mut rows);
        rows.sort_by(|a, b| {
            (b.cpu.unwrap_or(0.0)).total_cmp(&a.cpu.unwrap_or(0.0)).then(b.rss.cmp(&a.rss)).then(a.pid.cmp(&b.pid))
        });
        let mut busiest = 0;
        for row in &mut rows {
            busiest += usize::from(!row.watched);
            self.details(row, row.watched || busiest <= MAX_BUSIEST, seconds);
            if let Some((memory, share)) = gpus.get(&row.pid) {
                (row.gpu_memory, row.gpu_share) = (Some(row.gpu_memory.unwrap_or(0) + memory), share.or(row.gpu_share));
            }
        }
        Ok(ProcessTable { t: 0, total, whole: true, rows })
    }

    /// True for a resting thread of the kernel that is not read in this table.
    fn is_left_to_rest(&mut self, pid: u32) -> bool {
        let turn = self.turn.wrapping_add(pid);
        let Some(known) = self.known.get_mut(&pid).filter(|known| known.idle_tables >= TABLES_TO_REST) else {
            return false;
        };
        if turn.is_multiple_of(RESTING_TURNS) {
            return false;
        }
        known.seen = true;
        true
    }

    /// A process by its `stat` file, and whether it used no CPU.
    fn row(&mut self, pid: u32, at: Duration) -> Option<(Process, bool)> {
        let known = self.known.entry(pid).or_default();
        let path = || self.proc.join(pid.to_string()).join("stat");
        let n = known.stat.read(path, &mut self.buffer, &self.room)?;
        let text = &self.buffer[..n];
        let stat = Stat::parse(text)?;
        let name = String::from_utf8_lossy(name_of(text)?).into_owned();
        let same = known.start == Some(stat.start) && known.cpu_ticks <= stat.own;
        if !same {
            // The owner of the file is the process's user.
            let uid = std::fs::metadata(path()).ok()?.uid();
            let user = self.users.get(&uid).cloned().unwrap_or_else(|| uid.to_string());
            let stat_file = std::mem::take(&mut known.stat);
            *known = ScannedProcess {
                stat: stat_file,
                start: Some(stat.start),
                user,
                cpu_ticks: stat.own,
                ..ScannedProcess::default()
            };
        }
        known.seen = true;
        self.uninterruptible += u32::from(stat.uninterruptible);
        if stat.stopped {
            self.stopped.insert((pid, stat.start));
        }
        let used = stat.own - known.cpu_ticks;
        known.cpu_ticks = stat.own;
        let seconds = known.read.replace(at).map(|before| at.saturating_sub(before).as_secs_f64());
        let is_idle = used == 0 && stat.parent == KTHREADD && matches!(stat.state, 'S' | 'I');
        known.idle_tables = if is_idle { known.idle_tables.saturating_add(1) } else { 0 };
        if known.idle_tables >= TABLES_TO_REST {
            // Its open file is of more use for a process that is read in every table.
            known.stat = Held::default();
        }
        let cpu =
            seconds.filter(|seconds| same && *seconds > 0.0).map(|s| (used as f64 / self.ticks / s * 100.0) as f32);
        let row = Process {
            pid,
            parent: stat.parent,
            user: known.user.clone(),
            name,
            cpu,
            rss: stat.pages * self.page,
            threads: stat.threads as u32,
            started: self.boot.map(|boot| boot + (stat.start as f64 / self.ticks * 1_000.0) as i64),
            state: Some(stat.state).filter(char::is_ascii_alphabetic),
            ..Process::default()
        };
        Some((row, used == 0))
    }

    /// Marks the watched processes, all their descendants, and processes marked before: the kernel gives orphaned
    /// children another parent.
    fn mark_watched(&mut self, rows: &mut [Process]) {
        if self.watched.is_empty() {
            return;
        }
        let mut children: HashMap<u32, Vec<usize>> = HashMap::new();
        for (i, row) in rows.iter().enumerate() {
            children.entry(row.parent).or_default().push(i);
        }
        let is_root =
            |pid: &u32, known: &ScannedProcess| self.watched.get(pid).copied() == known.start && known.start.is_some();
        let begins = |row: &Process| self.known.get(&row.pid).is_some_and(|k| k.watched || is_root(&row.pid, k));
        let mut next: Vec<usize> = (0..rows.len()).filter(|&i| begins(&rows[i])).collect();
        while let Some(i) = next.pop() {
            if !std::mem::replace(&mut rows[i].watched, true) {
                next.extend(children.get(&rows[i].pid).into_iter().flatten());
                if let Some(known) = self.known.get_mut(&rows[i].pid) {
                    known.watched = true;
                }
            }
        }
    }

    /// Reads exact resident set, disk traffic and container, if `wanted`.
    fn details(&mut self, row: &mut Process, wanted: bool, seconds: Option<f64>) {
        let Some(known) = self.known.get_mut(&row.pid) else { return };
        if !wanted {
            if std::mem::take(&mut known.detailed) {
                (known.statm, known.io, known.disk) = (Held::default(), Held::default(), None);
            }
            return;
        }
        known.detailed = true;
        let dir = || self.proc.join(row.pid.to_string());
        let buffer = &mut self.buffer;
        if let Some(n) = known.statm.read(|| dir().join("statm"), buffer, &self.room)
            && let Some(pages) = buffer[..n].split(|&b| b == b' ').nth(1).and_then(number)
        {
            row.rss = pages * self.page;
        }
        // Other users' processes can only be read by root.
        let disk = known.io.read(|| dir().join("io"), buffer, &self.room).and_then(|n| disk_bytes(&buffer[..n]));
        if let (Some(now), Some(before), Some(s)) = (disk, known.disk, seconds) {
            row.read = Some((now.0.saturating_sub(before.0) as f64 / s) as f32);
            row.written = Some((now.1.saturating_sub(before.1) as f64 / s) as f32);
        }
        known.disk = disk;
        let container = known
            .container
            .get_or_insert_with(|| read(&dir().join("cgroup"), buffer).and_then(container_of).unwrap_or_default());
        row.container.clone_from(container);
        if self.show_args {
            if known.args.as_ref().is_none_or(|(name, _)| *name != row.name) {
                let args = read(&dir().join("cmdline"), buffer).map(shared::redact::arguments).unwrap_or_default();
                known.args = Some((row.name.clone(), args));
            }
            row.args = known.args.as_ref().map(|(_, args)| args.clone()).unwrap_or_default();
        }
        if self.graphics && row.watched {
            let now = fdinfo::read(&dir(), buffer);
            row.gpu_memory = now.memory;
            row.gpu_share = seconds.and_then(|seconds| fdinfo::share(&known.engines, &now.engines, seconds));
            known.engines = now.engines;
        }
    }
}

fn read<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let n = fill(&File::open(path).ok()?, buffer).ok()?;
    Some(&buffer[..n])
}

/// When the machine started, by its uptime at `wall`, both in milliseconds since the Unix epoch. Whole seconds, so that
/// the starts of processes do not differ from table to table.
fn boot(proc: &Path, wall: i64) -> Option<i64> {
    let uptime = facts::since_boot(proc)?;
    Some((wall - (uptime * 1_000.0) as i64 + 500).div_euclid(1_000) * 1_000)
}

/// `read_bytes` and `write_bytes` of an `io` file: traffic of disks.
fn disk_bytes(text: &[u8]) -> Option<(u64, u64)> {
    let value = |key: &[u8]| lines(text).find_map(|line| number(trim(line.strip_prefix(key)?)));
    Some((value(b"read_bytes:")?, value(b"write_bytes:")?))
}

/// First twelve digits of the 64-digit ID that container runtimes put into the name of a control group.
fn container_of(text: &[u8]) -> Option<String> {
    let hex = |b: &u8| b.is_ascii_hexdigit();
    let words = text.split(|b| !b.is_ascii_alphanumeric());
    let id = words.into_iter().rfind(|word| word.len() == 64 && word.iter().all(hex))?;
    Some(String::from_utf8_lossy(&id[..12]).into_owned())
}

/// User names by ID, from a passwd file.
fn users(text: &[u8]) -> HashMap<u32, String> {
    let user = |line: &[u8]| {
        let mut parts = line.split(|&b| b == b':');
        let name = String::from_utf8_lossy(parts.next()?).into_owned();
        Some((number(parts.nth(1)?).and_then(|n| u32::try_from(n).ok())?, name))
    };
    lines(text).filter_map(user).collect()
}

#[cfg(test)]
mod tests;
