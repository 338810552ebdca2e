//! Processes that were killed because memory was short: counters of our cgroups and of the machine.
//!
//! Sources below `/sys/fs/cgroup`, at the paths of `/proc/PID/cgroup`:
//! - version 2: `memory.events` and `memory.events.local` (`oom_kill`), `memory.max`, `memory.peak` and `cgroup.procs`;
//! - version 1: `memory.oom_control` (`oom_kill`), `memory.limit_in_bytes` and `memory.max_usage_in_bytes`.
//!
//! Other sources: `oom_kill` of `/proc/vmstat`, and the killed processes in `/dev/kmsg`. The files stay open, because a
//! scheduler removes the cgroup together with the job.
//!
//! Daemons such as systemd-oomd kill before the kernel has to, and the kernel does not count that. They kill all processes
//! of a cgroup, and raise its extended attribute `user.oomd_ooms` before that.
//!
//! A counter records that a process was killed, but not which one. It counts if it rose in the seconds before an end
//! and the kernel's log names that process. Without a readable log it counts only while no other job was in the cgroup.

use super::proc::{is_witness, namespace, parent, started};
use shared::run::MemoryKill;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use system::cgroup;

/// Maximum bytes read of one of these files.
const MAX_BYTES: usize = 16 << 10;

/// Polling interval. A rise in the last two intervals before an end may belong to that end.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum number of processes of a cgroup that are checked, and of ancestors checked for each.
const MAX_PROCESSES: usize = 256;
const MAX_DEPTH: usize = 64;

/// Maximum number of messages read from the kernel's log, and maximum bytes of one.
const MAX_MESSAGES: usize = 100_000;
const MAX_MESSAGE_BYTES: usize = 8 << 10;

/// Extended attribute of a cgroup: how often a daemon killed its processes. Its maximum length, and the maximum number of
/// cgroups whose attribute is read: a daemon kills the innermost one, or one above it that is killed as a whole.
const OOMD: &str = "user.oomd_ooms";
const MAX_ATTRIBUTE_BYTES: usize = 32;
const MAX_MARKED: usize = 3;

/// Inode of the PID namespace whose numbers the kernel's log uses.
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// A counter with its values at the last two polls, oldest first.
struct Counter {
    file: File,
    read: fn(&File) -> Option<u64>,
    before: [u64; 2],
}

impl Counter {
    fn open(path: &Path) -> Option<Counter> {
        let file = File::open(path).ok()?;
        let read = |file: &File| counter(&text(file)?, "oom_kill");
        let kills = read(&file)?;
        Some(Counter { file, read, before: [kills; 2] })
    }

    /// The kills by a daemon in a cgroup. It has no such attribute before the first one.
    fn of_daemon(folder: &Path) -> Option<Counter> {
        let file = File::open(folder).ok()?;
        let read = |file: &File| {
            let mut value = [0_u8; MAX_ATTRIBUTE_BYTES];
            let length = rustix::fs::fgetxattr(file, OOMD, &mut value).ok()?;
            kills_in(value.get(..length)?)
        };
        let kills = read(&file).unwrap_or_default();
        Some(Counter { file, read, before: [kills; 2] })
    }

    fn poll(&mut self) {
        // A removed cgroup returns no value; the last one is kept.
        let now = (self.read)(&self.file);
        self.before = [self.before[1], now.unwrap_or(self.before[1])];
    }

    /// Rise since the poll before the last; None if it did not rise.
    fn risen(&self) -> Option<u64> {
        let now = (self.read)(&self.file);
        now.unwrap_or(self.before[1]).checked_sub(self.before[0]).filter(|kills| *kills > 0)
    }
}

/// The number in the value of an attribute.
fn kills_in(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.trim_end_matches('\0').trim().parse().ok()
}

/// One cgroup with a limit.
struct Group {
    events: Counter,
    peak: Option<File>,
    limit: u64,
}

/// The open counters.
pub struct Watched {
    groups: Vec<Group>,
    /// The innermost cgroup that counts, with or without a limit. It counts every kill among its own processes,
    /// whichever limit was reached.
    own: Option<Counter>,
    machine: Option<Counter>,
    /// Kills by a daemon, innermost cgroup first.
    daemons: Vec<Counter>,
    /// The processes of the innermost cgroup.
    members: Option<File>,
    /// The root process of the job, then its ancestors.
    above: Vec<u32>,
    /// Whether processes of others were in the cgroup, or may have been.
    is_shared: bool,
    looked: Instant,
    /// Kernel log with the killed processes; None if it cannot be read.
    log: Option<PathBuf>,
    /// Start of watching, microseconds since boot.
    began: i64,
}

/// File names in one cgroup version.
struct Names {
    events: &'static str,
    limit: &'static str,
    peak: &'static str,
}

const V2: Names = Names { events: "memory.events", limit: "memory.max", peak: "memory.peak" };
const V1: Names =
    Names { events: "memory.oom_control", limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes" };

/// Counts the processes of a cgroup itself, without those of cgroups in it.
const LOCAL: &str = "memory.events.local";

/// A larger limit means no limit: version 1 writes the largest number of pages.
const NO_LIMIT: u64 = 1 << 62;

impl Watched {
    /// Opens the counters of this process's cgroups. The job is below this process.
    pub fn own() -> Watched {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Watched::new(&own, Path::new(cgroup::TREE), Path::new("/proc/vmstat")).with(std::process::id())
    }

    /// Same for the cgroups of another process, below `tree`. The job is below its parent.
    pub fn of_process(pid: u32, tree: &Path) -> Watched {
        let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let watched = Watched::new(&own, tree, Path::new("/proc/vmstat"));
        watched.with(parent(pid).unwrap_or(pid))
    }

    fn with(mut self, root: u32) -> Watched {
        self.above = line(root).collect();
        self.log = (namespace() == Some(FIRST_NAMESPACE)).then(|| "/dev/kmsg".into());
        self.look_at_members();
        self
    }

    /// Same for the cgroups below `root` that `own`, the text of `/proc/PID/cgroup`, names.
    pub fn new(own: &str, root: &Path, vmstat: &Path) -> Watched {
        let folders = folders(own, root);
        // A group that is not visible may have processes of others.
        let is_hidden = folders.is_empty() && own.lines().any(|line| line.contains(":/.."));
        // In version 1, the root cgroup counts no kills, or not all of them.
        let counts = |folder: &Path| folder != root.join("memory");
        let own = folders.iter().filter(|(folder, _)| counts(folder));
        let own = own.flat_map(|(folder, names)| [folder.join(LOCAL), folder.join(names.events)]);
        let own = own.into_iter().find_map(|events| Counter::open(&events));
        let groups = folders.iter().filter_map(|(folder, names)| Group::open(folder, names)).collect();
        let members = folders.first().and_then(|(folder, _)| File::open(folder.join("cgroup.procs")).ok());
        // Only version 2 has attributes that others may read.
        let of_v2 = folders.iter().filter(|(_, names)| names.events == V2.events);
        let daemons = of_v2.take(MAX_MARKED).filter_map(|(folder, _)| Counter::of_daemon(folder)).collect();
        Watched {
            groups,
            own,
            machine: Counter::open(vmstat),
            daemons,
            members,
            above: Vec::new(),
            is_shared: is_hidden,
            looked: Instant::now(),
            log: None,
            began: since_boot(),
        }
    }

    /// Polls if the interval is over.
    pub fn poll(&mut self) {
        if self.looked.elapsed() >= LOOK_INTERVAL {
            self.look_now();
        }
    }

    fn look_now(&mut self) {
        self.looked = Instant::now();
        let groups = self.groups.iter_mut().map(|group| &mut group.events);
        groups.chain(&mut self.own).chain(&mut self.machine).chain(&mut self.daemons).for_each(Counter::poll);
        self.look_at_members();
    }

    /// Checks whether the cgroup has processes that are neither below nor above the job's root process.
    fn look_at_members(&mut self) {
        // Others that were there once stay a possible target. A job of many processes costs many reads.
        if self.is_shared {
            return;
        }
        let (Some(root), Some(members)) = (self.above.first(), self.members.as_ref().and_then(text)) else { return };
        // A launcher that is the first process of its container has all others below it.
        if *root == 1 {
            return;
        }
        // PID 1 is the ancestor of all, or of all in a container.
        let is_other = |pid: &u32| *pid > 1 && !self.above.contains(pid) && !line(*pid).any(|pid| pid == *root);
        let members = members.lines().filter_map(|line| line.parse().ok()).take(MAX_PROCESSES);
        // A process that has ended meanwhile belongs to nobody.
        // The launcher's witness of signals is beside the process that leads the job's terminal.
        self.is_shared = members.filter(is_other).any(|pid| started(pid).is_some() && !is_witness(pid));
    }

    /// Whether a daemon has killed all processes of the job's cgroup.
    pub fn is_killed_as_whole(&self) -> bool {
        self.daemons.iter().any(|daemon| daemon.risen().is_some())
    }

    /// The latest kill, first of the innermost cgroup with a limit. None if there was none, or if another job may have
    /// been its target.
    /// `victim` is the process that ended by SIGKILL, if there was one.
    pub fn killed(&mut self, victim: Option<u32>) -> Option<MemoryKill> {
        self.look_at_members();
        // A daemon kills all processes of a cgroup, so this job's, too.
        if let Some(kills) = self.daemons.iter().find_map(Counter::risen) {
            return Some(MemoryKill { kills, limit: None, peak: None });
        }
        let of_group = |group: &Group| {
            let kills = group.events.risen()?;
            let peak = group.peak.as_ref().and_then(text).and_then(|text| text.trim().parse().ok());
            Some(MemoryKill { kills, limit: Some(group.limit), peak })
        };
        // Without a kill in our own cgroup, the kill may be another job's, even at a limit of that job.
        if self.own.as_ref().is_some_and(|own| own.risen().is_none()) {
            return None;
        }
        let of_machine = || Some(MemoryKill { kills: self.machine.as_ref()?.risen()?, limit: None, peak: None });
        let kill = self.groups.iter().find_map(of_group).or_else(of_machine)?;
        let named = victim.and_then(|pid| Some(killed_since(self.log.as_deref()?, self.began)?.contains(&pid)));
        named.unwrap_or(!self.is_shared).then_some(kill)
    }
}

/// A process and its ancestors.
fn line(pid: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(pid), |pid| parent(*pid)).take(MAX_DEPTH)
}

/// Microseconds since boot in the clock of the kernel's log, minus one second because the two clocks differ.
#[allow(clippy::unnecessary_cast, reason = "the fields have other types on other systems")]
fn since_boot() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    (now.tv_sec as i64 - 1) * 1_000_000 + now.tv_nsec as i64 / 1_000
}

/// PIDs of the processes that the kernel's log reports as killed because of memory since `since`; None if the log
/// cannot be read.
fn killed_since(log: &Path, since: i64) -> Option<Vec<u32>> {
    let mut log = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(log).ok()?;
    let (mut found, mut bytes) = (Vec::new(), [0; MAX_MESSAGE_BYTES]);
    for _ in 0..MAX_MESSAGES {
        match log.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => found.extend(victims(&String::from_utf8_lossy(&bytes[..read]), since)),
            // Overwritten messages are skipped.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(_) => return None,
        }
    }
    Some(found)
}

/// PIDs killed since `since`, from messages of `/dev/kmsg`: `3,812,5312345678,-;Out of memory: Killed process 1234
/// (x)`. Before Linux 5.1 the reason is a message of its own, and `Killed process 1234 (x)` follows it. The name of a
/// program, with which other messages begin, has at most 15 bytes, so it holds no number there.
fn victims(messages: &str, since: i64) -> Vec<u32> {
    let one = |line: &str| {
        let (head, message) = line.split_once(';')?;
        let t: i64 = head.split(',').nth(2)?.parse().ok()?;
        let behind = || message.split_once("ut of memory")?.1.split_once("Killed process ").map(|(_, rest)| rest);
        let rest = message.strip_prefix("Killed process ").or_else(behind).filter(|_| t >= since)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    messages.lines().filter_map(one).collect()
}

impl Group {
    fn open(folder: &Path, names: &Names) -> Option<Group> {
        let limit = memory_limit(&fs::read_to_string(folder.join(names.limit)).ok()?)?;
        let events = Counter::open(&folder.join(names.events))?;
        Some(Group { events, peak: File::open(folder.join(names.peak)).ok(), limit })
    }
}

/// Bytes in a limit of memory; `max` is no limit.
pub(crate) fn memory_limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|max| *max < NO_LIMIT)
}

/// The memory cgroup and its ancestors, innermost first.
fn folders(own: &str, root: &Path) -> Vec<(PathBuf, &'static Names)> {
    let mut all = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let (root, names) = match controllers {
            "" => (root.to_path_buf(), &V2),
            _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), &V1),
            _ => continue,
        };
        let Some(folder) = cgroup::find(&root, path) else { continue };
        all.extend(folder.ancestors().take_while(|one| one.starts_with(&root)).map(|one| (one.to_path_buf(), names)));
    }
    all
}

fn text(file: &File) -> Option<String> {
    let mut bytes = vec![0; MAX_BYTES];
    let read = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(read);
    String::from_utf8(bytes).ok()
}

/// The number after a name at the start of a line.
fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn the_innermost_cgroup_with_a_limit_tells_of_a_kill() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "slurm/memory.max", "34359738368\n");
        write(root, "slurm/memory.peak", "34359738000\n");
        write(root, "slurm/memory.events", "low 0\nhigh 0\nmax 3\noom 0\noom_kill 2\noom_group_kill 0\n");
        write(root, "slurm/job/memory.max", "max\n");
        write(root, "slurm/job/memory.events", "oom_kill 2\n");
        write(root, "vmstat", "nr_free_pages 1\noom_kill 7\n");
        let mut watched = Watched::new("0::/slurm/job\n", root, &root.join("vmstat"));
        assert_eq!(watched.killed(None), None);
        write(root, "vmstat", "oom_kill 8\n");
        assert_eq!(watched.killed(None), None, "it was none of this job's");
        write(root, "slurm/memory.events", "oom 1\noom_kill 3\n");
        assert_eq!(watched.killed(None), None, "it was another job below the limit");
        write(root, "slurm/job/memory.events", "oom_kill 3\n");
        let kill = MemoryKill { kills: 1, limit: Some(34_359_738_368), peak: Some(34_359_738_000) };
        assert_eq!(watched.killed(None), Some(kill));
        write(root, "slurm/memory.events", "oom 1\noom_kill 2\n");
        let machine = MemoryKill { kills: 1, limit: None, peak: None };
        assert_eq!(watched.killed(None), Some(machine), "only the machine says so");
        // The counter of cgroups in it does not count here.
        write(root, "slurm/job/memory.events.local", "oom_kill 0\n");
        let mut watched = Watched::new("0::/slurm/job\n", root, &root.join("vmstat"));
        write(root, "slurm/job/memory.events", "oom_kill 4\n");
        write(root, "slurm/memory.events", "oom 1\noom_kill 5\n");
        assert_eq!(watched.killed(None), None);
    }

    #[test]
    fn a_daemon_that_kills_before_the_kernel_marks_the_cgroup() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "app.scope/memory.max", "max\n");
        write(root, "app.scope/memory.events", "oom_kill 0\n");
        write(root, "vmstat", "oom_kill 7\n");
        let mut watched = Watched::new("0::/app.scope\n", root, &root.join("vmstat"));
        // A container sees its own cgroup as the root.
        assert_eq!(watched.daemons.len(), 2, "of each cgroup");
        assert_eq!(watched.killed(Some(7)), None, "there is no attribute yet");
        // A file in the place of the attribute, which few file systems have.
        write(root, "mark", "1");
        let read = |file: &File| kills_in(text(file)?.as_bytes());
        watched.daemons[0] = Counter { file: File::open(root.join("mark")).expect("a file"), read, before: [1; 2] };
        assert_eq!(watched.killed(Some(7)), None, "it was another job in this cgroup");
        write(root, "mark", "2");
        let kill = MemoryKill { kills: 1, limit: None, peak: None };
        assert_eq!((watched.is_killed_as_whole(), watched.killed(Some(7))), (true, Some(kill)));
        (0..2).for_each(|_| watched.look_now());
        assert_eq!((watched.is_killed_as_whole(), watched.killed(Some(7))), (false, None), "long ago");
        assert_eq!([&b"3"[..], b"12\0", b"", b"x"].map(kills_in), [Some(3), Some(12), None, None]);
    }

    #[test]
    fn what_was_killed_long_before_an_end_is_none_of_it() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "job/memory.max", "1048576\n");
        write(root, "job/memory.events", "oom_kill 0\n");
        let mut watched = Watched::new("0::/job\n", root, &root.join("none"));
        write(root, "job/memory.events", "oom_kill 1\n");
        let kill = MemoryKill { kills: 1, limit: Some(1 << 20), peak: None };
        assert_eq!(watched.killed(Some(7)), Some(kill.clone()));
        watched.look_now();
        assert_eq!(watched.killed(Some(7)), Some(kill.clone()), "it rose since the look before the last");
        watched.look_now();
        assert_eq!(watched.killed(Some(7)), None);
        write(root, "job/memory.events", "oom_kill 2\n");
        assert_eq!(watched.killed(Some(7)), Some(kill));
    }

    #[test]
    fn where_others_are_in_the_cgroup_the_kernels_log_says_who_was_killed() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "job/memory.max", "1048576\n");
        write(root, "job/memory.events", "oom_kill 0\n");
        #[allow(clippy::disallowed_methods, reason = "two jobs")]
        let job = || std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().expect("it starts");
        let mut jobs = [job(), job()];
        let [own, other] = [jobs[0].id(), jobs[1].id()];
        write(root, "job/cgroup.procs", &format!("1\n{}\n{own}\n", std::process::id()));
        let watched = |log: Option<&str>| {
            let mut watched = Watched::new("0::/job\n", root, &root.join("none")).with(own);
            write(root, "log", log.unwrap_or_default());
            (watched.log, watched.began) = (log.map(|_| root.join("log")), 1_000);
            write(root, "job/memory.events", "oom_kill 1\n");
            let killed = [Some(7), Some(9), None].map(|victim| watched.killed(victim).is_some());
            write(root, "job/memory.events", "oom_kill 0\n");
            killed
        };
        let log = "4,1,999,-;Memory cgroup out of memory: Killed process 9 (x)\n\
                   6,2,2000,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=x,pid=9,uid=0\n\
                   3,3,2001,-;Memory cgroup out of memory: Killed process 7 (x) total-vm:1kB\n SUBSYSTEM=memory\n";
        assert_eq!(watched(None), [true; 3], "nobody else is there");
        assert_eq!(watched(Some(log)), [true, false, true]);
        // Linux 4.19.
        let old = "3,3,2001,-;Memory cgroup out of memory: Kill process 7 (x) score 968 or sacrifice child\n\
                   3,4,2002,-;Killed process 7 (x) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB\n\
                   6,5,2003,-;Killed process [9]: segfault at 0 ip 0 sp 0 error 4\n";
        assert_eq!(watched(Some(old)), [true, false, true]);
        write(root, "job/cgroup.procs", &format!("1\n{}\n{own}\n{other}\n", std::process::id()));
        assert_eq!(watched(None), [false; 3]);
        assert_eq!(watched(Some(log)), [true, false, false]);
        // The job has the container for itself: its launcher is PID 1, which no process has as its parent here.
        let mut watched = Watched::new("0::/job\n", root, &root.join("none")).with(1);
        watched.log = None;
        write(root, "job/memory.events", "oom_kill 1\n");
        assert!(watched.killed(Some(own)).is_some());
        for job in &mut jobs {
            job.stdin.take();
            job.wait().expect("it ended");
        }
    }

    #[test]
    fn an_agent_in_a_container_sees_kills_of_other_containers_in_the_machines_tree_only() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "pods/a/memory.max", "536870912\n");
        write(root, "pods/a/memory.events", "oom_kill 0\n");
        write(root, "pods/b/memory.max", "1048576\n");
        write(root, "pods/b/memory.events", "oom_kill 0\n");
        write(root, "vmstat", "oom_kill 7\n");
        let watched = |tree: &str| Watched::new("0::/../b\n", &root.join(tree), &root.join("vmstat"));
        let (mut of_machine, mut of_ours) = (watched(""), watched("pods/a"));
        write(root, "pods/b/memory.events", "oom_kill 1\n");
        write(root, "vmstat", "oom_kill 8\n");
        let kill = MemoryKill { kills: 1, limit: Some(1 << 20), peak: None };
        assert_eq!(of_machine.killed(None), Some(kill));
        assert_eq!(of_ours.killed(None), None, "the kill may be that of any container");
    }

    #[test]
    fn cgroups_of_version_1_tell_it_too() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        write(root, "memory/job/memory.limit_in_bytes", "1048576\n");
        write(root, "memory/job/memory.max_usage_in_bytes", "1048576\n");
        write(root, "memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
        write(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
        let own = "11:cpu,cpuacct:/job\n9:memory:/job\n0::/\n";
        let mut watched = Watched::new(own, root, &root.join("none"));
        assert_eq!(watched.killed(None), None);
        write(root, "memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
        let kill = MemoryKill { kills: 4, limit: Some(1 << 20), peak: Some(1 << 20) };
        assert_eq!(watched.killed(None), Some(kill));
    }
}
