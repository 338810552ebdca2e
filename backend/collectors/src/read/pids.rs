//! Maps PIDs reported by a driver or a tool to processes here.
//!
//! Drivers use the PIDs of the machine's first PID namespace, of their caller's, or of another system (Windows below
//! WSL). In the first namespace they are the PIDs of /proc.
//!
//! In any other namespace a PID alone proves nothing. It is taken for a process here only if that process has the
//! device open. This holds only while no other PID in the driver's lists contradicts that the driver uses our
//! namespace.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Target of `/proc/PID/ns/pid` for a process of the first namespace (`PROC_PID_INIT_INO` of the kernel).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Flag of the kernel's own threads in field 9 of `stat` (`PF_KTHREAD`). They are visible only in the first namespace.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Maximum number of open files checked per process.
const MAX_FILES: usize = 4_096;

/// A contradiction that lasts this long is not caused by a process that has just ended.
const CONTRADICTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after that in which the PIDs count as another namespace's, whatever the lists contain.
const FOREIGN_FOR: Duration = Duration::from_secs(600);

/// Maps the PIDs of a driver to processes here.
pub(crate) struct Pids {
    proc: PathBuf,
    /// Prefix of its device files, without the number: `nvidia`.
    device: &'static str,
    /// Whether the PIDs of /proc are those of the first namespace, and the driver is this system's.
    are_first: bool,
    /// Processes that had the device open, with their starts.
    holders: HashMap<u32, u64>,
    /// Start of a contradiction in the lists.
    contradicted: Option<Duration>,
    /// Time until which the PIDs count as another namespace's.
    foreign: Option<Duration>,
}

/// Result of a check of one PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It has the device open.
    Holds,
    /// There is no such process, or it has no device open.
    Other,
    /// It had the device open, and has ended.
    Ended,
    /// This user may not read it.
    Closed,
}

impl Pids {
    /// PIDs of a machine's /proc, for devices whose files have this prefix before their number.
    pub fn new(proc: &Path, device: &'static str) -> Pids {
        let are_first = !cfg!(target_os = "linux") || is_first(proc);
        Pids { proc: proc.into(), device, are_first, holders: HashMap::new(), contradicted: None, foreign: None }
    }

    /// Whether all PIDs are known to be those of /proc.
    pub fn are_first(&self) -> bool {
        self.are_first
    }

    /// The processes of these lists that exist here; one list per device. PIDs that are not in the result are unknown,
    /// and belong to no process here.
    pub fn own(&mut self, lists: &[&[u32]], at: Duration) -> HashSet<u32> {
        let all: HashSet<u32> = lists.iter().flat_map(|list| list.iter().copied()).collect();
        if self.are_first {
            // A driver that does not know the PID reports 0.
            return all.into_iter().filter(|pid| *pid != 0).collect();
        }
        self.holders.retain(|pid, _| all.contains(pid));
        let verdicts: Vec<(u32, Verdict)> = all.into_iter().map(|pid| (pid, self.verdict(pid))).collect();
        // A PID repeated for one device stands for several processes, and identifies none.
        let repeats = |list: &&[u32]| list.iter().collect::<HashSet<_>>().len() < list.len();
        let is_other = verdicts.iter().any(|(_, verdict)| *verdict == Verdict::Other);
        self.contradicted = (is_other || lists.iter().any(repeats)).then(|| self.contradicted.unwrap_or(at));
        if self.contradicted.is_some_and(|since| at.saturating_sub(since) >= CONTRADICTION_TIMEOUT) {
            self.foreign = Some(at + FOREIGN_FOR);
        }
        if self.contradicted.is_some() || self.foreign.is_some_and(|until| at < until) {
            return HashSet::new();
        }
        verdicts.into_iter().filter(|(_, verdict)| *verdict == Verdict::Holds).map(|(pid, _)| pid).collect()
    }

    /// Whether one PID, by itself, is a process here.
    pub fn is_own(&mut self, pid: u32) -> bool {
        self.are_first || self.verdict(pid) == Verdict::Holds
    }

    fn verdict(&mut self, pid: u32) -> Verdict {
        let start = start(&self.proc, pid);
        let known = self.holders.get(&pid).copied();
        if known.is_some() && known == start {
            return Verdict::Holds;
        }
        let Some(start) = start else {
            return if known.is_some() { Verdict::Ended } else { Verdict::Other };
        };
        let files = match std::fs::read_dir(self.proc.join(pid.to_string()).join("fd")) {
            Ok(files) => files,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Verdict::Closed,
            Err(_) => return Verdict::Other,
        };
        let is_device = |entry: std::fs::DirEntry| {
            let target = std::fs::read_link(entry.path()).ok();
            let name = target.as_ref().and_then(|target| target.file_name()?.to_str());
            let number = name.and_then(|name| name.strip_prefix(self.device));
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        };
        if !files.take(MAX_FILES).flatten().any(is_device) {
            return Verdict::Other;
        }
        self.holders.insert(pid, start);
        Verdict::Holds
    }
}

/// Whether this /proc has the PIDs of the machine's first namespace, and the driver is this system's.
fn is_first(proc: &Path) -> bool {
    let release = std::fs::read_to_string(proc.join("sys/kernel/osrelease")).unwrap_or_default();
    if release.to_ascii_lowercase().contains("microsoft") {
        return false;
    }
    // `self` exists only if the reader is in the namespace of this /proc or in one below it. If the reader's is the
    // first one, so is that of this /proc. A container can read the first process of a mounted /proc if permitted.
    let points = |path: &str| std::fs::read_link(proc.join(path)).is_ok_and(|to| to.as_os_str() == FIRST_NAMESPACE);
    let kernel = || Some(field(proc, 2, 6)? & KERNEL_THREAD != 0);
    points("self/ns/pid") || points("1/ns/pid") || kernel().unwrap_or(false)
}

/// Start of a process, clock ticks since boot.
fn start(proc: &Path, pid: u32) -> Option<u64> {
    field(proc, pid, 19)
}

/// A number after the name in `stat`, counted from 0.
fn field(proc: &Path, pid: u32, at: usize) -> Option<u64> {
    let text = std::fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
    let (_, behind) = text.rsplit_once(')')?;
    behind.split_ascii_whitespace().nth(at)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A /proc made of files.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Machine {
            Machine(tempfile::tempdir().expect("a folder"))
        }

        fn link(&self, path: &str, to: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            symlink(to, path).expect("a link");
        }

        /// A process with these open files.
        fn process(&self, pid: u32, start: u64, files: &[&str]) {
            let dir = self.0.path().join(pid.to_string());
            std::fs::create_dir_all(dir.join("fd")).expect("a folder");
            let stat = format!("{pid} (a) b) S 1 1 1 0 -1 4194304 0 0 0 0 1 1 0 0 20 0 1 0 {start} 0 9 0\n");
            std::fs::write(dir.join("stat"), stat).expect("a file");
            for (number, file) in files.iter().enumerate() {
                symlink(file, dir.join("fd").join(number.to_string())).expect("a link");
            }
        }

        fn ends(&self, pid: u32) {
            std::fs::remove_dir_all(self.0.path().join(pid.to_string())).expect("it was there");
        }

        fn pids(&self) -> Pids {
            Pids::new(self.0.path(), "nvidia")
        }
    }

    fn own(pids: &mut Pids, second: u64, lists: &[&[u32]]) -> Vec<u32> {
        let mut own: Vec<u32> = pids.own(lists, Duration::from_secs(second)).into_iter().collect();
        own.sort_unstable();
        own
    }

    const NOBODY: [u32; 0] = [];
    const DEVICES: &[&str] = &["/dev/null", "socket:[7]", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"];
    const NONE: &[&str] = &["/dev/null", "/dev/nvidiactl", "/dev/nvidia-uvm", "/home/a/nvidia0.log", "/dev/nvidia"];

    #[test]
    fn in_the_first_namespace_the_numbers_are_those_of_proc() {
        for path in ["self/ns/pid", "1/ns/pid"] {
            let machine = Machine::new();
            machine.link(path, FIRST_NAMESPACE);
            machine.process(7, 1, NONE);
            assert_eq!(own(&mut machine.pids(), 0, &[&[7, 8, 0]]), [7, 8], "{path}");
        }
        // The kernel's threads are visible only in the first namespace, even if links of other users may not be read.
        let machine = Machine::new();
        machine.process(2, 0, &[]);
        assert!(!machine.pids().are_first(), "a process of the number 2");
        let stat = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 30 0 0\n";
        std::fs::write(machine.0.path().join("2/stat"), stat).expect("a file");
        assert!(machine.pids().are_first());
        // The driver below WSL is that of Windows, and uses its PIDs.
        std::fs::create_dir_all(machine.0.path().join("sys/kernel")).expect("a folder");
        let release = machine.0.path().join("sys/kernel/osrelease");
        std::fs::write(release, "5.15.153.1-microsoft-standard-WSL2\n").expect("a file");
        assert!(!machine.pids().are_first());
    }

    #[test]
    fn elsewhere_a_number_alone_is_nobodys() {
        let machine = Machine::new();
        machine.link("self/ns/pid", "pid:[4026532201]");
        machine.process(7, 1, NONE);
        machine.process(9, 1, DEVICES);
        assert_eq!(own(&mut machine.pids(), 0, &[&[7]]), NOBODY, "it has the number only");
        assert_eq!(own(&mut machine.pids(), 0, &[&[9]]), [9], "a driver that translates its numbers");
        assert_eq!(own(&mut machine.pids(), 0, &[&[9], &[9]]), [9], "on two devices");
        assert_eq!(own(&mut machine.pids(), 0, &[&[9, 4_000]]), NOBODY, "the driver means processes that are not here");
        assert_eq!(own(&mut machine.pids(), 0, &[&[9], &[7]]), NOBODY);
        assert_eq!(own(&mut machine.pids(), 0, &[&[9, 9]]), NOBODY, "one number for two");
        assert_eq!(own(&mut machine.pids(), 0, &[&[0, 9]]), NOBODY);
        assert!(machine.pids().is_own(9) && !machine.pids().is_own(7) && !machine.pids().is_own(4_000));
    }

    #[test]
    fn a_contradiction_that_lasts_is_remembered_and_one_of_a_process_that_ended_is_none() {
        let machine = Machine::new();
        machine.process(9, 1, DEVICES);
        machine.process(10, 1, DEVICES);
        let mut pids = machine.pids();
        assert_eq!(own(&mut pids, 0, &[&[9, 10]]), [9, 10]);
        machine.ends(10);
        assert_eq!(own(&mut pids, 1, &[&[9, 10]]), [9], "the driver's list is a little behind");
        // The process that has the PID now is another one.
        machine.process(10, 5, NONE);
        assert_eq!(own(&mut pids, 2, &[&[9, 10]]), NOBODY);
        assert_eq!(own(&mut pids, 3, &[&[9]]), [9], "it was short");
        assert_eq!(own(&mut pids, 4, &[&[9, 4_000]]), NOBODY);
        assert_eq!(own(&mut pids, 14, &[&[9, 4_000]]), NOBODY);
        assert_eq!(own(&mut pids, 15, &[&[9]]), NOBODY, "the number 9 is no better known than before");
        assert_eq!(own(&mut pids, 613, &[&[9]]), NOBODY);
        assert_eq!(own(&mut pids, 614, &[&[9]]), [9]);
    }
}
