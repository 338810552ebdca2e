//! Whether a process belongs to the watched ones, for tools that name the process that uses a device.

use std::path::Path;

/// No tree of real processes is deeper; it ends the walk when files are read while processes come and go.
const DEEPEST: usize = 64;

/// Whether `pid` is one of `roots` or descends from one.
pub(crate) fn descends(proc: &Path, pid: u32, roots: &[u32]) -> bool {
    let mut at = Some(pid);
    for _ in 0..DEEPEST {
        match at {
            Some(pid) if roots.contains(&pid) => return true,
            Some(pid) if pid > 1 => at = parent(proc, pid),
            _ => return false,
        }
    }
    false
}

/// `PID (NAME) STATE PARENT ...`; the name may hold anything, and what follows its last bracket does not.
fn parent(proc: &Path, pid: u32) -> Option<u32> {
    let text = std::fs::read(proc.join(pid.to_string()).join("stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_belongs_to_those_above_it() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, parent) in [(10, 1), (11, 10), (12, 11), (20, 21), (21, 20)] {
            let folder = dir.path().join(pid.to_string());
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("stat"), format!("{pid} (a) b) S {parent} 0 0")).unwrap();
        }
        let descends = |pid, root| super::descends(dir.path(), pid, &[99, root]);
        assert!(descends(12, 10) && descends(10, 10) && descends(12, 11));
        assert!(!descends(10, 12) && !descends(12, 20), "not upwards, not sideways");
        assert!(!descends(20, 10), "a circle ends");
        assert!(descends(4711, 4711) && !descends(4711, 1), "a process that is gone is itself");
    }
}
