//! Detects the ranks of runs: among the processes below a `watchglass run`, and among those that hold a GPU. Other
//! processes are not examined, and each environment is read three times at most.

use super::environ::{self, EnvironFacts, TORCH};
use super::permit::is_in_job;
use super::wandb;
use launch::pod;
use launch::process::{Stat, WITNESS, parent, started};
use launch::reserved::by_kubernetes;
use shared::run::{About, MAX_ID_BYTES, Pod, Rank, Reserved};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use system::user::login_of;

/// File name of this program: as a launcher, it starts a rank and is none.
const PROGRAM: &str = "watchglass";

/// Maximum number of processes per search; further ones are not found.
const MAX_LOOKED_AT: usize = 4096;

/// Launcher name of a process that is numbered by the GPU that it holds.
const GPU: &str = "gpu";

/// Maximum depth of a rank below the process of its run.
const MAX_DEPTH: usize = 16;

/// Times of environment reads, after the process was first seen: a launcher's child has its own environment only after
/// its exec.
const READ_DELAYS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(30)];

/// Time for which each search looks below a rank: a task of Slurm may be a torchrun, which starts ranks of its own.
/// Later searches look once per this interval, because some programs load data for minutes first.
const LAUNCHES: Duration = Duration::from_secs(60);

/// A detected rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DetectedRank {
    /// Id of its run.
    pub run: String,
    /// The run at or below whose process it stands, by the process table. An environment may name any run.
    pub below: Option<String>,
    pub pid: u32,
    /// Its start, clock ticks since boot.
    pub start: u64,
    pub rank: Rank,
    /// ID of its Slurm job.
    pub slurm: Option<String>,
    /// The part of the machine that its scheduler reserved for it.
    pub reserved: Option<Reserved>,
    /// Its pod.
    pub pod: Option<Pod>,
    pub about: About,
    /// Whether the ID of the run is an address, which the next job may reuse.
    pub is_address: bool,
    /// For an address: the process that started it, by PID and start.
    pub launcher: Option<(u32, u64)>,
}

/// State of a process, by PID and start.
struct SeenProcess {
    first: Instant,
    reads: usize,
    named: EnvironFacts,
    /// Its pod, from the first read: a process never moves to another pod.
    pod: Option<Pod>,
    /// The part of the machine that a scheduler reserved for it; the outer None: not determined yet.
    reserved: Option<Option<Reserved>>,
    /// Name of its user, from the last read.
    user: Option<String>,
    /// File name of its program, from the last read.
    program: String,
    /// Its environment belongs to another user, and is not readable.
    refused: bool,
    /// Its number among those of its run that hold a GPU, if it has no other.
    number: Option<u32>,
    /// It has ranks below it, so it is a launcher whatever its environment says.
    launches: bool,
    /// The process that started it; the outer None: not determined yet.
    launcher: Option<Option<(u32, u64)>>,
    /// Time of the last search below it.
    looked_below: Option<Instant>,
}

/// The GPUs of this machine, as their driver numbers them.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    /// UUIDs and numbers.
    uuids: Vec<(String, u32)>,
    /// They are of several models, so CUDA may order them differently from the driver.
    differ: bool,
}

impl Gpus {
    /// The GPUs that a driver of this machine lists, as [`inventory::GpuNumbers::known`] returns them.
    pub fn new(known: Vec<(u32, Vec<(&'static str, String)>)>) -> Gpus {
        let label = |labels: &[(&str, String)], word| {
            labels.iter().find(|(label, _)| *label == word).map(|(_, value)| value.clone())
        };
        let here: Vec<_> = known.into_iter().filter(|(_, labels)| label(labels, "hostname").is_none()).collect();
        let models: HashSet<String> = here.iter().filter_map(|(_, labels)| label(labels, "name")).collect();
        let uuids = here.iter().filter_map(|(number, labels)| Some((label(labels, "uuid")?, *number)));
        Gpus { uuids: uuids.collect(), differ: models.len() > 1 }
    }

    /// The number of the only GPU whose UUID has this prefix. A part of a GPU names its GPU, as in `MIG-GPU-UUID/1/0`;
    /// the UUIDs that newer drivers give parts name none.
    fn find(&self, device: &str) -> Option<u32> {
        let whole = device.strip_prefix("MIG-").unwrap_or(device);
        let begin = whole.split('/').next()?;
        let mut fits = self.uuids.iter().filter(|(uuid, _)| begin.len() > 4 && uuid.starts_with(begin));
        let (_, number) = fits.next()?;
        fits.next().is_none().then_some(*number)
    }
}

/// State kept between searches.
#[derive(Default)]
pub(super) struct Looks {
    /// The current GPUs.
    pub gpus: Gpus,
    /// Control groups of the machine.
    pub tree: PathBuf,
    /// Only processes below a known run are examined.
    pub only_below_runs: bool,
    /// Start times of processes whose ends the kernel reports: they are not checked again for being alive.
    pub awaited: HashMap<u32, u64>,
    seen: HashMap<(u32, u64), SeenProcess>,
    numbers: HashMap<String, u32>,
    /// Names of users who have had ranks here.
    users: HashMap<u32, String>,
}

/// One search.
struct Look<'a> {
    seen: &'a mut HashMap<(u32, u64), SeenProcess>,
    met: HashSet<(u32, u64)>,
    now: Instant,
    holders: &'a BTreeMap<u32, Vec<u32>>,
    gpus: &'a Gpus,
    tree: &'a Path,
    awaited: &'a HashMap<u32, u64>,
    users: &'a mut HashMap<u32, String>,
    /// The next free number of each run, for ranks without a given number.
    numbers: &'a mut HashMap<String, u32>,
    found: Vec<DetectedRank>,
}

impl Looks {
    /// Runs one search. `roots` are processes and their runs, `holders` those that hold GPUs, with the GPUs.
    pub fn search(
        &mut self,
        roots: &[(u32, String)],
        holders: &BTreeMap<u32, Vec<u32>>,
        now: Instant,
    ) -> Vec<DetectedRank> {
        let Looks { gpus, tree, awaited, seen, numbers, users, .. } = self;
        let mut look =
            Look { seen, met: HashSet::new(), now, holders, gpus, tree, awaited, users, numbers, found: Vec::new() };
        for (pid, run) in roots {
            look.below(*pid, run, 0);
        }
        look.holders(roots, self.only_below_runs);
        look.drop_wrappers();
        let Look { met, found, .. } = look;
        self.seen.retain(|key, _| met.contains(key));
        self.numbers.retain(|run, _| found.iter().any(|found| found.run == *run));
        found
    }
}

impl Look<'_> {
    /// The state of a process, if it lives and the limit is not reached.
    fn process(&mut self, pid: u32) -> Option<(u64, &mut SeenProcess)> {
        let start = match self.awaited.get(&pid) {
            Some(start) => *start,
            // An ended process is not found, even before its parent has reaped it.
            None => Stat::read(pid).filter(|stat| !stat.has_ended)?.start,
        };
        if self.met.len() == MAX_LOOKED_AT && !self.met.contains(&(pid, start)) {
            return None;
        }
        self.met.insert((pid, start));
        let (now, users) = (self.now, &mut *self.users);
        let seen = self.seen.entry((pid, start)).or_insert_with(|| SeenProcess {
            first: now,
            reads: 0,
            named: EnvironFacts::default(),
            pod: pod::read_pod(pid),
            reserved: None,
            user: None,
            program: String::new(),
            refused: false,
            number: None,
            launches: false,
            launcher: None,
            looked_below: None,
        });
        if READ_DELAYS.get(seen.reads).is_some_and(|after| now.duration_since(seen.first) >= *after) {
            seen.reads += 1;
            // If it has ended meanwhile, or has overwritten its environment, the earlier values stay.
            // The environment is read first. So the environment of a launcher is never taken for that of the program that it
            // becomes by exec.
            let read = environ::read(pid);
            if let Some(uid) = owner(pid) {
                seen.user = Some(users.entry(uid).or_insert_with(|| login_of(uid)).clone());
                seen.program = program(pid);
            }
            match read {
                Ok(named) => (seen.named, seen.refused) = (named, false),
                // The environment of another user is not readable.
                Err(error) => seen.refused = error.kind() == std::io::ErrorKind::PermissionDenied,
            }
        }
        Some((start, seen))
    }

    /// Finds the ranks at and below a process of a run; true if there are any. Processes below a rank belong to that
    /// rank.
    fn below(&mut self, pid: u32, run: &str, depth: usize) -> bool {
        if self.found.iter().any(|found| found.pid == pid) {
            return true;
        }
        let now = self.now;
        let Some((start, seen)) = self.process(pid) else { return false };
        let named = seen.named.clone();
        let rank = named.rank.clone().filter(|_| !seen.launches && !is_ours(&seen.program));
        // Without a local number it may be the pod's environment, below which torchrun starts others.
        let for_good = rank.as_ref().is_some_and(|rank| rank.launcher == TORCH && rank.local.is_some());
        let lately = seen.looked_below.is_some_and(|then| now.duration_since(then) < LAUNCHES);
        let settled = rank.is_some() && now.duration_since(seen.first) >= LAUNCHES && lately;
        if !for_good && !settled && depth < MAX_DEPTH {
            seen.looked_below = Some(now);
            let before = self.found.len();
            let mut ranks = false;
            for child in children(pid) {
                ranks |= self.below(child, run, depth + 1);
            }
            // Below a rank only torch's are separate ranks; other processes have inherited the rank's environment.
            if let Some(rank) = &rank {
                let mut own = self.found.split_off(before);
                let place = |rank: &Rank| (rank.rank, rank.world, rank.local);
                own.retain(|found| found.rank.launcher == TORCH && place(&found.rank) != place(rank));
                ranks = !own.is_empty();
                self.found.append(&mut own);
            }
            if ranks {
                if let Some((_, seen)) = self.process(pid) {
                    seen.launches = rank.is_some() || seen.launches;
                }
                return true;
            }
        }
        let Some(rank) = rank else { return false };
        // A run within a run belongs to the inner one.
        let inner = named.run.clone().filter(|run| shared::run::check_id(run).is_ok());
        self.add(inner.unwrap_or_else(|| run.into()), Some(run), (pid, start), rank, &named);
        true
    }

    /// Finds the ranks among the processes that hold a GPU. Those at or below a process of a run belong to that run.
    /// Those without a given number are numbered as they are found, by their GPUs.
    fn holders(&mut self, roots: &[(u32, String)], only_below_runs: bool) {
        // Run, whether it stands below a process of that run, PID, and start.
        let mut without: Vec<(String, bool, u32, u64)> = Vec::new();
        // Processes without a known run: PID of the parent, their own, and start.
        let mut unnamed: Vec<(u32, u32, u64)> = Vec::new();
        let mut others: Vec<(u64, u32)> = self.holders.keys().filter_map(|pid| Some((started(*pid)?, *pid))).collect();
        // Sorted by start: a process below a rank belongs to that rank.
        others.sort_unstable();
        for (start, pid) in others {
            let is_known = |pid: &u32| self.found.iter().any(|found| found.pid == *pid);
            let line = line(pid);
            let is_within = line[1..].iter().any(|above| without.iter().any(|(.., pid, _)| pid == above));
            // A process above ranks is their launcher, whatever it holds; except when it is the first rank itself.
            let ranks: Vec<&DetectedRank> = self.found.iter().filter(|found| line_above(found.pid, pid)).collect();
            let is_first = first_of(&ranks);
            if line.iter().any(is_known) || is_within || (!ranks.is_empty() && is_first.is_none()) {
                continue;
            }
            if let Some((run, below, rank)) = is_first {
                let Some((start, seen)) = self.process(pid) else { continue };
                let named = seen.named.clone();
                self.add(run, below.as_deref(), (pid, start), rank, &named);
                continue;
            }
            let root = line.iter().find_map(|one| roots.iter().find(|(pid, _)| pid == one));
            if root.is_none() && only_below_runs {
                continue;
            }
            let Some((_, seen)) = self.process(pid) else { continue };
            let named = seen.named.clone();
            let run = run_of(&named, pid).or_else(|| {
                run_of(&EnvironFacts { key: wandb::key_of(pid, &children(pid)), ..EnvironFacts::default() }, pid)
            });
            match (root, named.rank.clone(), run) {
                (Some((_, run)), ..) => without.push((run.clone(), true, pid, start)),
                (None, Some(rank), Some(run)) => self.add(run, None, (pid, start), rank, &named),
                // A job without a launcher.
                (None, None, Some(run)) => without.push((run, false, pid, start)),
                (None, _, None) => unnamed.extend(line.get(1).map(|parent| (*parent, pid, start))),
            }
        }
        for (parent, own) in siblings(unnamed) {
            // Each holds a GPU of its own: then they are workers of one job, not programs with a display.
            let gpus: Vec<&Vec<u32>> = own.iter().filter_map(|(pid, _)| self.holders.get(pid)).collect();
            let different: HashSet<u32> = gpus.iter().filter_map(|gpus| gpus.first().copied()).collect();
            let each_one = gpus.iter().all(|gpus| gpus.len() == 1) && different.len() == own.len();
            if own.len() > 1
                && each_one
                && let Some(run) = run_of_siblings(parent)
            {
                without.extend(own.into_iter().map(|(pid, start)| (run.clone(), false, pid, start)));
            }
        }
        without.sort_by_key(|(run, _, pid, start)| (run.clone(), self.holders.get(pid).cloned(), *start));
        for (run, is_below, pid, start) in without {
            let taken = self.found.iter().filter(|found| found.run == run).map(|found| found.rank.rank + 1);
            let next = taken.max().unwrap_or(0).max(*self.numbers.get(&run).unwrap_or(&0));
            let Some((_, seen)) = self.process(pid) else { continue };
            let number = *seen.number.get_or_insert(next);
            let (mut named, refused) = (seen.named.clone(), seen.refused);
            self.numbers.insert(run.clone(), next.max(number + 1));
            if refused {
                named.label = Some("?".into());
            }
            let below = is_below.then(|| run.clone());
            let rank = Rank { rank: number, launcher: GPU.into(), ..Rank::default() };
            self.add(run, below.as_deref(), (pid, start), rank, &named);
        }
    }

    /// Drops a rank that has a descendant with the same place in the job: a script around a `watchglass run`, whose own
    /// process is the rank.
    fn drop_wrappers(&mut self) {
        let mut by_place: HashMap<_, Vec<u32>> = HashMap::new();
        for DetectedRank { pid, rank, .. } in self.found.iter().filter(|found| found.rank.launcher != GPU) {
            by_place.entry((rank.rank, rank.world, rank.local)).or_default().push(*pid);
        }
        by_place.retain(|_, pids| pids.len() > 1);
        let mut above: HashSet<u32> = HashSet::new();
        for pids in by_place.values() {
            let lines = pids.iter().flat_map(|pid| line(*pid).into_iter().skip(1));
            above.extend(lines.filter(|one| pids.contains(one)));
        }
        for DetectedRank { pid, start, .. } in self.found.extract_if(.., |found| above.contains(&found.pid)) {
            if let Some(seen) = self.seen.get_mut(&(pid, start)) {
                seen.launches = true;
            }
        }
    }

    /// Adds to a rank that holds no GPU according to the driver the GPU that it was told to use, if that is clear.
    fn told_to_use(&self, rank: Rank, named: &EnvironFacts) -> Rank {
        let gpus: Vec<u32> = match &named.device {
            Some(device) => self.gpus.find(device).into_iter().collect(),
            None if named.fastest_first && self.gpus.differ => Vec::new(),
            None => rank.gpus.clone(),
        };
        Rank { assumed: !gpus.is_empty(), gpus, ..rank }
    }

    /// The part of the machine that a scheduler reserved for a process, determined once.
    fn reserved(
        &mut self,
        process: (u32, u64),
        (slurm, is_in_pod): (Option<&str>, bool),
        by_variables: Option<Reserved>,
        of_container: &[String],
    ) -> Option<Reserved> {
        let known = self.seen.get(&process).and_then(|seen| seen.reserved.clone());
        let reserved = known.unwrap_or_else(|| match is_in_pod {
            // An environment may name any job, so the kernel must confirm it for processes of other users.
            false => by_variables.filter(|_| {
                let is_own = owner(process.0) == owner(std::process::id());
                is_own || slurm.is_some_and(|job| is_in_job(process.0, job))
            }),
            true => {
                let gpus = of_container.iter().map(|device| self.gpus.find(device)).collect::<Option<Vec<u32>>>();
                by_kubernetes(process.0, gpus.unwrap_or_default(), self.tree)
            }
        });
        if let Some(seen) = self.seen.get_mut(&process) {
            seen.reserved = Some(reserved.clone());
        }
        reserved
    }

    fn add(&mut self, run: String, below: Option<&str>, (pid, start): (u32, u64), rank: Rank, named: &EnvironFacts) {
        let rank = match self.holders.get(&pid) {
            Some(gpus) => Rank { gpus: gpus.clone(), assumed: false, ..rank },
            None => self.told_to_use(rank, named),
        };
        // Ranks found by an ID also give it to a process that does not name it itself.
        let same = |found: &DetectedRank| found.run == run && found.is_address;
        let is_address = below.is_none() && (named.is_address() || self.found.iter().any(same));
        let named = named.clone();
        let slurm = named.slurm.filter(|id| shared::run::check_id(id).is_ok());
        let of_address = self.seen.get_mut(&(pid, start)).filter(|_| is_address);
        let launcher = of_address.and_then(|seen| *seen.launcher.get_or_insert_with(|| launcher_of(pid)));
        let seen = self.seen.get(&(pid, start));
        let (pod, user) = seen.map(|seen| (seen.pod.clone(), seen.user.clone())).unwrap_or_default();
        let about = About {
            name: named.name,
            project: named.project,
            group: named.group,
            job_type: named.job_type,
            label: named.label,
            user,
            sent_by: None,
            notes: named.notes,
            tags: named.tags.into_iter().map(|tag| (tag, String::new())).collect(),
            program: seen.map(|seen| seen.program.clone()).unwrap_or_default(),
        };
        let below = below.map(String::from);
        let reserved =
            self.reserved((pid, start), (slurm.as_deref(), pod.is_some()), named.reserved, &named.of_container);
        self.found.push(DetectedRank {
            run,
            below,
            pid,
            start,
            rank,
            slurm,
            reserved,
            pod,
            about,
            is_address,
            launcher,
        });
    }
}

/// The rank of a process that stands above these ranks and holds a GPU, if the first of them is missing. Lightning's
/// own process is a rank that starts the others, and has no number. Returns its run, the run below which it stands, and
/// its rank.
fn first_of(ranks: &[&DetectedRank]) -> Option<(String, Option<String>, Rank)> {
    let one = ranks.first()?;
    let lacks = |found: &&DetectedRank| {
        found.run == one.run && found.rank.launcher == TORCH && found.rank.local.is_some_and(|n| n > 0)
    };
    if !ranks.iter().all(lacks) {
        return None;
    }
    let number = one.rank.rank.checked_sub(one.rank.local?)?;
    let rank = Rank { rank: number, local: Some(0), gpus: Vec::new(), assumed: false, ..one.rank.clone() };
    Some((one.run.clone(), one.below.clone(), rank))
}

/// The children of all threads of a process.
fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).ok();
    let lists: Vec<String> = threads.flatten().take(MAX_LOOKED_AT).filter_map(of).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// A process and those above it.
fn line(pid: u32) -> Vec<u32> {
    std::iter::successors(Some(pid), |pid| parent(*pid)).take(MAX_DEPTH).collect()
}

fn line_above(pid: u32, above: u32) -> bool {
    line(pid).contains(&above)
}

/// The process that started a rank: PID and start of the nearest one above it without the rank's own environment. A
/// script between torchrun and its rank has that environment.
fn launcher_of(pid: u32) -> Option<(u32, u64)> {
    let is_rank = |pid: &u32| {
        let rank = environ::read(*pid).ok().and_then(|said| said.rank);
        rank.is_some_and(|rank| rank.attempt.is_some())
    };
    let launcher = line(pid).into_iter().skip(1).find(|above| !is_rank(above))?;
    Some((launcher, started(launcher)?))
}

/// User ID of a process.
fn owner(pid: u32) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(format!("/proc/{pid}")).ok()?))
}

/// The ID of the run that an environment names: the same on all machines, and different for another user. An address
/// that means this machine is unique to its launcher.
fn run_of(named: &EnvironFacts, pid: u32) -> Option<String> {
    if let Some(run) = &named.run {
        return shared::run::check_id(run).is_ok().then(|| run.clone());
    }
    let (who, key) = named.key.as_ref()?;
    let user = owner(pid)?;
    let mut whole = format!("{key} {user}");
    if ["127.0.0.1", "localhost", "0.0.0.0", "::1", "[::1]"].iter().any(|here| key.starts_with(here)) {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let launcher = parent(pid).unwrap_or(pid);
        whole += &format!(" {boot} {launcher} {:?}", started(launcher));
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let mut id: String = format!("{who}-{key}").chars().map(plain).collect();
    let sum = format!("-{:08x}", shared::crc32c::crc32c(whole.as_bytes()));
    id.truncate(MAX_ID_BYTES - sum.len());
    Some(id + &sum)
}

/// Processes by their parent and the name of their program.
fn siblings(all: Vec<(u32, u32, u64)>) -> impl Iterator<Item = (u32, Vec<(u32, u64)>)> {
    let mut by_parent: BTreeMap<(u32, String), Vec<(u32, u64)>> = BTreeMap::new();
    for (parent, pid, start) in all {
        by_parent.entry((parent, program(pid))).or_default().push((pid, start));
    }
    by_parent.into_iter().map(|((parent, _), own)| (parent, own))
}

/// File name of the program of a process, from the kernel; empty if it has ended.
fn program(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().into()
}

/// Whether a program is this one, as a launcher of a job or as the process that it has beside the job.
fn is_ours(program: &str) -> bool {
    [PROGRAM, WITNESS].contains(&program)
}

/// The ID of the run of processes that share a parent and hold a GPU each, as torch's `spawn` starts them. The ID comes
/// from their parent. None for init, which adopts orphans.
fn run_of_siblings(parent: u32) -> Option<String> {
    let named = EnvironFacts { key: Some(("spawn", format!("localhost:{parent}"))), ..EnvironFacts::default() };
    (parent > 1).then(|| run_of(&named, parent)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    /// A shell that runs until its standard input ends.
    #[expect(clippy::disallowed_methods, reason = "processes that are to be found")]
    fn shell(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", script])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell")
    }

    /// Searches until as many ranks are found twice in a row. They must exec first, and one may exec and start another
    /// during a search.
    fn search_twice(looks: &mut Looks, root: &Child, wanted: usize) -> Vec<DetectedRank> {
        let end = Instant::now() + Duration::from_secs(60);
        let mut before = Vec::new();
        loop {
            // Environments read before the exec are read again.
            looks.seen.clear();
            let found = looks.search(&[(root.id(), "run".into())], &BTreeMap::new(), Instant::now());
            if found.len() == wanted && found == before {
                return found;
            }
            assert!(Instant::now() < end, "{found:?}");
            before = found;
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_starts_a_rank_by_a_run_of_its_own_is_no_rank_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join(PROGRAM);
        let witness = folder.path().join(WITNESS);
        for link in [&own, &witness] {
            std::os::unix::fs::symlink("/bin/sh", link).expect("a link");
        }
        // The launcher itself, alone and with its witness, a script around a program that is called otherwise, and both.
        let (own, witness) = (own.display(), witness.display());
        let job = "cat <&3 & wait";
        for starts in [
            format!("{own} -c '{job}'"),
            format!("{own} -c '{witness} -c \"read line <&3; true\" & {job}'"),
            format!("sh -c '{job}'"),
            format!("sh -c '{own} -c \"{job}\" & wait'"),
        ] {
            let rank = |n: u32| format!("RANK={n} WORLD_SIZE=2 LOCAL_RANK={n} {starts} &");
            let mut root = shell(&format!("exec 3<&0; {} {} wait", rank(0), rank(1)));
            let end = Instant::now() + Duration::from_secs(60);
            let below = |pid: u32| {
                let mut all = children(pid);
                let mut at = 0;
                while let Some(pid) = all.get(at).copied() {
                    all.extend(children(pid));
                    at += 1;
                }
                all
            };
            let jobs = loop {
                let jobs: Vec<u32> = below(root.id()).into_iter().filter(|pid| program(*pid) == "cat").collect();
                if jobs.len() == 2 {
                    break jobs;
                }
                assert!(Instant::now() < end, "{jobs:?}");
                std::thread::yield_now();
            };
            let inner: Vec<_> = jobs.iter().map(|pid| (*pid, "run".to_string())).collect();
            let outer = vec![(root.id(), "run".to_string())];
            for roots in [[&outer[..], &inner].concat(), [&inner[..], &outer].concat()] {
                let mut looks = Looks::default();
                for _ in 0..2 {
                    let found = looks.search(&roots, &BTreeMap::new(), Instant::now());
                    let mut pids: Vec<u32> = found.iter().map(|one| one.pid).collect();
                    pids.sort_unstable();
                    assert_eq!((numbers(&found), pids), (vec![(0, TORCH.into()), (1, TORCH.into())], sorted(&jobs)));
                }
            }
            drop(root.stdin.take());
            root.wait().expect("it ended");
        }
    }

    fn sorted(pids: &[u32]) -> Vec<u32> {
        let mut pids = pids.to_vec();
        pids.sort_unstable();
        pids
    }

    fn numbers(found: &[DetectedRank]) -> Vec<(u32, String)> {
        let mut all: Vec<_> = found.iter().map(|one| (one.rank.rank, one.rank.launcher.clone())).collect();
        all.sort();
        all
    }

    #[test]
    fn ranks_are_found_below_their_launcher_and_what_they_start_is_theirs() {
        // Each rank has a child, which has its environment.
        let rank = |n: u32| format!("RANK={n} WORLD_SIZE=2 LOCAL_RANK={n} sh -c 'cat <&3 & wait' &");
        let mut root = shell(&format!("exec 3<&0; {} {} wait", rank(0), rank(1)));
        let mut looks = Looks::default();
        let found = search_twice(&mut looks, &root, 2);
        assert_eq!(numbers(&found), [(0, TORCH.into()), (1, TORCH.into())]);
        assert!(found.iter().all(|one| one.run == "run" && one.about.program == "sh"), "{found:?}");
        // The driver's list has the GPUs that they hold.
        let holders = BTreeMap::from([(found[0].pid, vec![4, 5])]);
        let held = looks.search(&[(root.id(), "run".into())], &holders, Instant::now());
        assert_eq!((held[0].rank.gpus.clone(), held[0].rank.assumed), (vec![4, 5], false));
        // Their launcher is no rank, whatever it holds.
        let all = BTreeMap::from([(root.id(), vec![1])]);
        assert_eq!(looks.search(&[(root.id(), "run".into())], &all, Instant::now()).len(), 2);
        // Without a root, the processes that hold a GPU are found; a run that nobody names stays unknown.
        assert_eq!(looks.search(&[], &holders, Instant::now()), []);
        drop(root.stdin.take());
        root.wait().expect("it ended");
    }

    #[test]
    fn who_has_ended_is_no_more_found_while_its_parent_takes_no_note() {
        // The shell becomes a program that waits for none of its children.
        let mut root = shell("exec 3<&0; RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 cat <&3 & exec tail -f /dev/null");
        let mut looks = Looks::default();
        let found = search_twice(&mut looks, &root, 1).remove(0);
        let roots = [(root.id(), "run".to_string()), (found.pid, "run".into())];
        assert_eq!(
            looks.search(&roots, &BTreeMap::new(), Instant::now()).len(),
            1,
            "it is a process of the run itself"
        );
        drop(root.stdin.take());
        let end = Instant::now() + Duration::from_secs(60);
        while !Stat::read(found.pid).expect("nobody takes note").has_ended {
            assert!(Instant::now() < end, "it goes on");
            std::thread::yield_now();
        }
        // Until the kernel has reported its end, the known state counts.
        looks.awaited.insert(found.pid, found.start);
        assert_eq!(looks.search(&roots, &BTreeMap::new(), Instant::now()).len(), 1);
        looks.awaited.clear();
        assert_eq!(looks.search(&roots, &BTreeMap::new(), Instant::now()), []);
        root.kill().and_then(|()| root.wait()).expect("it ended");
    }

    #[test]
    fn who_holds_a_gpu_of_a_run_is_a_rank_also_without_a_number() {
        // Two workers without variables; the second has a child that also holds its GPU.
        let mut root = shell("exec 3<&0; sh -c 'cat <&3 & wait' & sh -c 'cat <&3 & wait' & wait");
        let end = Instant::now() + Duration::from_secs(60);
        let (first, second, child) = loop {
            let workers = children(root.id());
            if let [first, second] = workers[..]
                && let [child] = children(second)[..]
            {
                break (first, second, child);
            }
            assert!(Instant::now() < end, "{workers:?}");
            std::thread::yield_now();
        };
        let (id, mut looks) = (root.id(), Looks::default());
        let mut look = |holders: &[(u32, u32)]| {
            let holders = holders.iter().map(|(pid, gpu)| (*pid, vec![*gpu])).collect();
            let found = looks.search(&[(id, "run".into())], &holders, Instant::now());
            let mut all: Vec<_> = found.into_iter().map(|one| (one.rank.rank, one.pid, one.rank.launcher)).collect();
            all.sort();
            all
        };
        assert_eq!(look(&[(second, 0), (child, 0)]), [(0, second, GPU.into())]);
        let both = [(0, second, GPU.to_string()), (1, first, GPU.into())];
        assert_eq!(look(&[(first, 1), (second, 0), (child, 0)]), both, "a number stays");
        drop(root.stdin.take());
        root.wait().expect("it ended");
        assert_eq!(look(&[]), []);
    }

    /// The children of a shell, once there are `wanted`, and each has exec'd its program.
    fn workers(root: &Child, wanted: usize) -> Vec<u32> {
        let end = Instant::now() + Duration::from_secs(60);
        let is_cat = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "cat\n");
        loop {
            let workers = children(root.id());
            if workers.len() == wanted && workers.iter().all(is_cat) {
                return workers;
            }
            assert!(Instant::now() < end, "{workers:?}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn ranks_that_an_address_alone_names_say_so() {
        let mut root = shell("exec 3<&0; RANK=0 WORLD_SIZE=1 MASTER_ADDR=n1 MASTER_PORT=29500 cat <&3 & wait");
        let holders = BTreeMap::from([(workers(&root, 1)[0], vec![0])]);
        let roots = [(root.id(), "run".to_string())];
        let look = |roots: &[(u32, String)]| Looks::default().search(roots, &holders, Instant::now()).remove(0);
        let alone = look(&[]);
        assert!(alone.run.starts_with("ddp-n1-29500-") && alone.is_address, "{alone:?}");
        let below = look(&roots);
        assert!(below.run == "run" && !below.is_address, "{below:?}");
        let named = |who, key: &str| EnvironFacts { key: Some((who, key.into())), ..EnvironFacts::default() };
        assert!(named("jax", "n1:1234").is_address() && !named("torchrun", "job-7").is_address());
        assert!(!named("slurm", "7:0").is_address() && !EnvironFacts::default().is_address());
        drop(root.stdin.take());
        root.wait().expect("it ended");
    }

    #[test]
    fn what_started_a_rank_is_the_launcher_and_no_script_between() {
        let rank = "TORCHELASTIC_RESTART_COUNT=0 RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=n1 MASTER_PORT=29500";
        let mut root = shell(&format!("exec 3<&0; {rank} sh -c 'cat <&3 & wait' & wait"));
        let end = Instant::now() + Duration::from_secs(60);
        let script = loop {
            let script = children(root.id()).first().copied();
            if let Some(script) = script.filter(|pid| children(*pid).len() == 1 && launcher_of(*pid).is_some()) {
                break script;
            }
            assert!(Instant::now() < end, "no script");
            std::thread::yield_now();
        };
        let launcher = Some((root.id(), started(root.id()).expect("it runs")));
        let worker = loop {
            let worker = children(script)[0];
            if launcher_of(worker) == launcher {
                break worker;
            }
            // It has its environment after the exec.
            assert!(Instant::now() < end, "{:?}", launcher_of(worker));
            std::thread::yield_now();
        };
        assert_eq!(launcher_of(script), launcher);
        let holders = BTreeMap::from([(worker, vec![0])]);
        let found = Looks::default().search(&[], &holders, Instant::now()).remove(0);
        assert!(found.is_address && found.launcher == launcher, "{found:?}");
        drop(root.stdin.take());
        root.wait().expect("it ended");
    }

    #[test]
    fn siblings_that_hold_a_gpu_each_are_ranks_in_the_order_of_their_gpus() {
        let mut root = shell("exec 3<&0; cat <&3 & cat <&3 & cat <&3 & wait");
        let own = workers(&root, 3);
        let mut looks = Looks::default();
        let mut look = |holders: &[(u32, &[u32])]| {
            let holders = holders.iter().map(|(pid, gpus)| (*pid, gpus.to_vec())).collect();
            let found = looks.search(&[], &holders, Instant::now());
            assert!(found.iter().all(|one| one.run.starts_with("spawn-") && one.run == found[0].run), "{found:?}");
            let mut all: Vec<_> = found.into_iter().map(|one| (one.rank.rank, one.pid)).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(look(&[(own[0], &[1])]), [], "one alone may be anything");
        assert_eq!(look(&[(own[0], &[1]), (own[1], &[1])]), [], "they share one, as programs with windows do");
        assert_eq!(look(&[(own[0], &[1]), (own[1], &[0]), (own[2], &[2, 3])]), [], "one has several");
        assert_eq!(look(&[(own[0], &[1]), (own[1], &[0])]), [(0, own[1]), (1, own[0])]);
        let mut launched = Looks { only_below_runs: true, ..Looks::default() };
        let holders = BTreeMap::from([(own[0], vec![1]), (own[1], vec![0])]);
        assert_eq!(launched.search(&[], &holders, Instant::now()), []);
        assert!(launched.seen.is_empty(), "no environment of theirs is read");
        let roots = [(root.id(), "run".to_string())];
        assert_eq!(launched.search(&roots, &holders, Instant::now()).len(), 2, "below a run they are ranks");
        drop(root.stdin.take());
        root.wait().expect("it ended");
        assert_eq!(look(&[]), []);
    }

    #[test]
    fn an_open_file_of_wandb_names_the_run_that_nothing_else_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("run-20260101_000000-abc123").join("run-abc123.wandb");
        std::fs::create_dir(file.parent().expect("a folder")).expect("made");
        // The job itself opens no file: the service that it starts has it open.
        let mut root = shell(&format!("exec 3<&0; sh -c 'exec 5>{}; cat <&3' & wait", file.display()));
        let own = root.id();
        let mut looks = Looks::default();
        let holders = BTreeMap::from([(own, vec![0])]);
        let end = Instant::now() + Duration::from_secs(60);
        let found = loop {
            let found = looks.search(&[], &holders, Instant::now());
            if !found.is_empty() {
                break found;
            }
            assert!(Instant::now() < end, "no run");
            std::thread::yield_now();
        };
        assert!(found[0].run.starts_with("wandb-abc123-"), "{found:?}");
        assert_eq!((found[0].pid, found[0].rank.rank, found[0].rank.launcher.as_str()), (own, 0, GPU));
        drop(root.stdin.take());
        root.wait().expect("it ended");
    }

    #[test]
    fn the_gpu_of_a_rank_that_no_driver_lists_is_the_one_that_it_was_told_to_use() {
        let label = |uuid: &str, name: &str| vec![("uuid", uuid.to_string()), ("name", name.to_string())];
        let known = |second: &str| vec![(0, label("GPU-aaaa-1", "H100")), (3, label("GPU-aabb-2", second))];
        let gpus = Gpus::new(known("H100"));
        assert_eq!(
            (gpus.find("GPU-aabb-2"), gpus.find("GPU-aab"), gpus.find("MIG-GPU-aaaa-1/1/0")),
            (Some(3), Some(3), Some(0))
        );
        assert_eq!(
            (gpus.find("GPU-aa"), gpus.find("GPU-"), gpus.find("GPU-c"), gpus.find("MIG-aaaa-1")),
            (None, None, None, None)
        );
        assert!(!gpus.differ && Gpus::new(known("A100")).differ && !Gpus::default().differ);
        let elsewhere = vec![(7, vec![("uuid", "GPU-dd".to_string()), ("hostname", "node-2".to_string())])];
        assert_eq!(Gpus::new(elsewhere).find("GPU-dd"), None, "another machine's");
        let rank = |gpus: Gpus, words: &str| {
            let mut root = shell(&format!("exec 3<&0; RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 {words} cat <&3 & wait"));
            let found = search_twice(&mut Looks { gpus, ..Looks::default() }, &root, 1).remove(0).rank;
            drop(root.stdin.take());
            root.wait().expect("it ended");
            (found.gpus, found.assumed)
        };
        assert_eq!(rank(Gpus::new(known("A100")), "CUDA_VISIBLE_DEVICES=GPU-aaaa,GPU-aabb"), (vec![3], true));
        assert_eq!(rank(Gpus::new(known("H100")), "CUDA_VISIBLE_DEVICES=3,0"), (vec![0], true), "all are alike");
        assert_eq!(rank(Gpus::new(known("A100")), "CUDA_VISIBLE_DEVICES=3,0"), (vec![], false), "CUDA counts by speed");
        let ordered = "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=3,0";
        assert_eq!(rank(Gpus::new(known("A100")), ordered), (vec![0], true));
        assert_eq!(rank(Gpus::new(known("H100")), "CUDA_VISIBLE_DEVICES=GPU-cc,GPU-dd"), (vec![], false));
    }

    #[test]
    fn a_rank_that_launches_ranks_is_a_launcher() {
        let torch = |n: u32| format!("RANK={n} WORLD_SIZE=2 cat <&3 &");
        let task = format!("SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1 sh -c '{} {} wait' &", torch(0), torch(1));
        let mut root = shell(&format!("exec 3<&0; {task} wait"));
        let mut looks = Looks::default();
        let found = search_twice(&mut looks, &root, 2);
        assert_eq!(numbers(&found), [(0, TORCH.into()), (1, TORCH.into())]);
        drop(root.stdin.take());
        root.wait().expect("it ended");
        assert_eq!(looks.search(&[(root.id(), "run".into())], &BTreeMap::new(), Instant::now()), []);
        assert!(looks.seen.is_empty(), "who is gone is forgotten");
    }

    #[test]
    fn below_a_pod_that_is_a_rank_itself_torchrun_starts_the_ranks() {
        let torch = |n: u32| format!("RANK={} WORLD_SIZE=4 LOCAL_RANK={n} cat <&3 &", n + 2);
        // The pod's own environment, which torchrun inherits.
        let pod = "RANK=1 WORLD_SIZE=2 MASTER_ADDR=job-master-0 PET_NODE_RANK=1";
        let mut root = shell(&format!("exec 3<&0; {pod} sh -c '{} {} wait' & wait", torch(0), torch(1)));
        let mut looks = Looks::default();
        let found = search_twice(&mut looks, &root, 2);
        assert_eq!(numbers(&found), [(2, TORCH.into()), (3, TORCH.into())]);
        // A job of one process per pod, with a child that has its environment.
        let mut alone = shell(&format!("exec 3<&0; {pod} sh -c 'cat <&3 & wait' & wait"));
        assert_eq!(numbers(&search_twice(&mut Looks::default(), &alone, 1)), [(1, TORCH.into())]);
        for root in [&mut root, &mut alone] {
            drop(root.stdin.take());
            root.wait().expect("it ended");
        }
    }

    #[test]
    fn a_process_that_starts_the_other_ranks_and_holds_a_gpu_is_the_first() {
        // As with Lightning: the first process has no number, or that of a Slurm task.
        for own in ["", "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1"] {
            let rank = |n: u32| format!("LOCAL_RANK={n} NODE_RANK=0 WORLD_SIZE=3 cat <&3 &");
            let mut root = shell(&format!("exec 3<&0; {own} sh -c '{} {} wait' & wait", rank(1), rank(2)));
            let mut looks = Looks::default();
            let found = search_twice(&mut looks, &root, 2);
            assert_eq!(numbers(&found), [(1, TORCH.into()), (2, TORCH.into())], "{own}");
            let first = parent(found[0].pid).expect("the process above them");
            let holders = BTreeMap::from([(first, vec![5]), (found[0].pid, vec![6]), (found[1].pid, vec![7])]);
            let held = looks.search(&[(root.id(), "run".into())], &holders, Instant::now());
            let mut all: Vec<_> = held.iter().map(|one| (one.rank.rank, one.rank.gpus.clone())).collect();
            all.sort_unstable();
            let numbers: Vec<u32> = all.iter().map(|(number, _)| *number).collect();
            let mut gpus: Vec<u32> = all.into_iter().flat_map(|(_, gpus)| gpus).collect();
            gpus.sort_unstable();
            assert_eq!((numbers, gpus), (vec![0, 1, 2], vec![5, 6, 7]), "{own}");
            assert!(held.iter().all(|one| one.run == "run"), "{own}");
            drop(root.stdin.take());
            root.wait().expect("it ended");
        }
    }

    #[test]
    fn ranks_that_a_task_starts_minutes_later_are_found() {
        let mut root = shell(
            "exec 3<&0; SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1 sh -c 'read go <&3; RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 cat <&3 & wait' & wait",
        );
        let mut looks = Looks::default();
        let task = search_twice(&mut looks, &root, 1).remove(0);
        assert_eq!(task.rank.launcher, "slurm");
        let roots = [(root.id(), "run".to_string())];
        let begin = Instant::now();
        let later = |minutes: u64| begin + Duration::from_secs(60 * minutes);
        looks.search(&roots, &BTreeMap::new(), later(2));
        std::io::Write::write_all(root.stdin.as_mut().expect("open"), b"go\n").expect("written");
        let end = Instant::now() + Duration::from_secs(60);
        // Before it becomes the rank, it has the environment of its task; minutes later it has another one.
        let is_rank = |pid: u32| {
            let environment = std::fs::read_to_string(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split('\0').any(|word| word == "RANK=0")
        };
        while !children(task.pid).into_iter().any(is_rank) {
            assert!(Instant::now() < end, "the rank begins");
            std::thread::yield_now();
        }
        let found = looks.search(&roots, &BTreeMap::new(), later(4));
        let launchers: Vec<&str> = found.iter().map(|one| one.rank.launcher.as_str()).collect();
        assert_eq!(launchers, [TORCH], "the task is no rank beside it");
        drop(root.stdin.take());
        root.wait().expect("it ended");
    }

    #[test]
    fn a_run_without_a_launcher_of_ours_has_the_id_that_its_key_makes() {
        let named = |who, key: &str| EnvironFacts { key: Some((who, key.into())), ..EnvironFacts::default() };
        let own = std::process::id();
        let id = |who, key: &str| run_of(&named(who, key), own).expect("an id");
        assert!(id("slurm", "big:42").starts_with("slurm-big-42-"), "{}", id("slurm", "big:42"));
        assert_eq!(id("slurm", "big:42"), id("slurm", "big:42"));
        assert_ne!(id("slurm", "big:42"), id("slurm", "big-42"), "what looks alike is not the same");
        let here = id("ddp", "localhost:29500");
        assert_eq!(here, id("ddp", "localhost:29500"));
        let long = id("wandb", &"x".repeat(200));
        assert_eq!(shared::run::check_id(&long), Ok(()));
        let inner = EnvironFacts { run: Some("one".into()), ..named("slurm", "1") };
        assert_eq!(run_of(&inner, own).as_deref(), Some("one"), "what `watchglass run` says comes first");
        assert_eq!(run_of(&EnvironFacts::default(), own), None);
    }
}
