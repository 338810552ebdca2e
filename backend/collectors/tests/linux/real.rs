//! Tests on the machine that runs them.

use collectors::{COLLECTORS, Options, Out, Part, Roots};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A shell with a child, both ended with the test.
struct Family {
    shell: Child,
}

impl Family {
    #[allow(clippy::disallowed_methods, reason = "the test watches a process of its own")]
    fn start() -> Family {
        Family { shell: Command::new("sh").args(["-c", "sleep 300 & wait"]).spawn().unwrap() }
    }

    fn child(&self) -> Option<i32> {
        let pid = self.shell.id();
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
            .ok()?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    }

    fn end(&mut self) {
        let child = self.child();
        // SAFETY: the child was started by our shell, which has not ended yet, so the PID is still its own.
        child.inspect(|pid| unsafe { assert_eq!(libc::kill(*pid, libc::SIGKILL), 0) });
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(pid: u32) -> Part {
    let entry = COLLECTORS.iter().find(|entry| entry.name == "process").unwrap();
    let options = Options { pids: vec![pid], ..Options::default() };
    entry.open_here(&options, &Roots::default()).unwrap().remove(0)
}

#[test]
fn a_process_and_its_child_are_watched_until_they_end() {
    let mut family = Family::start();
    let mut part = watch(family.shell.id());
    let mut out = Out::default();
    let start = Instant::now();
    let mut read = |part: &mut Part| {
        out.begin(start.elapsed());
        let outcome = part.collector.collect(&mut out);
        (out.present(), outcome)
    };
    loop {
        let (now, outcome) = read(&mut part);
        assert_eq!(outcome, Ok(()));
        if now.contains(&("proc.processes".to_string(), 2.0)) {
            assert!(now.iter().any(|(tag, mib)| tag == "proc.memory.rssMB" && *mib > 0.0), "{now:?}");
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{now:?}");
        std::thread::yield_now();
    }
    family.end();
    // The child was killed first, and may end a moment later.
    let outcome = loop {
        let (now, outcome) = read(&mut part);
        if now.iter().all(|(tag, _)| tag == "proc.memory.oomKills") {
            break outcome;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{now:?}");
        std::thread::yield_now();
    };
    assert!(outcome.unwrap_err().reason.ends_with("has ended"));
}

/// A group of processes, ended as a whole with the test.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: a plain system call; the group is that of our child, whose PID is its own until it is reaped.
        unsafe { libc::kill(-(self.0.id() as i32), libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test watches processes of its own")]
fn orphans_of_a_watched_process_and_what_they_start_stay_watched() {
    use std::os::unix::process::CommandExt;
    let dir = tempfile::tempdir().unwrap();
    let [end, go] = ["end", "go"].map(|name| dir.path().join(name));
    assert!(Command::new("mkfifo").args([&end, &go]).status().unwrap().success());
    // The shell starts another one and ends on request; the other one starts a sleep on request.
    let script = "sh -c 'read x < \"$2\"; sleep 300 & wait' sh \"$1\" \"$2\" & read x < \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args([&end, &go]).process_group(0);
    let group = Group(command.spawn().unwrap());
    let root = group.0.id();
    let mut part = watch(root);
    let mut out = Out::default();
    let start = Instant::now();
    let mut until = |wanted: f64, fits: &dyn Fn(Option<&str>) -> bool| loop {
        out.begin(start.elapsed());
        let reason = part.collector.collect(&mut out).err().map(|error| error.reason);
        let count = out.present().into_iter().find(|(tag, _)| tag == "proc.processes").map(|(_, n)| n);
        if count == Some(wanted) && fits(reason.as_deref()) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{count:?} processes instead of {wanted}: {reason:?}");
        std::thread::yield_now();
    };
    until(2.0, &|reason| reason.is_none());
    std::fs::write(&end, "\n").unwrap();
    until(1.0, &|reason| reason.is_some_and(|reason| reason.ends_with("has ended; its descendants still run")));
    std::fs::write(&go, "\n").unwrap();
    until(2.0, &|reason| reason.is_some());
    drop(group);
}

#[test]
fn the_disks_that_count_are_those_with_a_device() {
    let entry = COLLECTORS.iter().find(|entry| entry.name == "disk").unwrap();
    let options = Options { disk_paths: Vec::new(), ..Options::default() };
    let mut parts = entry.open_here(&options, &Roots::default()).unwrap();
    let mut out = Out::default();
    out.begin(Duration::ZERO);
    parts[0].collector.collect(&mut out).unwrap();
    for (tag, _) in out.present() {
        let Some(name) = tag.strip_prefix("disk.").and_then(|rest| rest.strip_suffix(".in")) else { continue };
        assert!(std::path::Path::new("/sys/block").join(name.replace('/', "!")).join("device").exists(), "{tag}");
    }
}
