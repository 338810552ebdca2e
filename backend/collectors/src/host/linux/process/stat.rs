//! One process from its `stat` file.

use crate::read::procfs::{fields, fill, number};
use std::fs::File;
use std::path::Path;

/// Fields of /proc/PID/stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Whether it has ended and is not yet reaped.
    pub ended: bool,
    /// Whether it waits for a disk or a driver and cannot be killed (state D).
    pub uninterruptible: bool,
    /// Whether a signal has stopped it (state T); a stop by a debugger does not count.
    pub stopped: bool,
    /// The kernel's letter of its state, such as R or S.
    pub state: char,
    pub parent: u32,
    /// CPU time of its own, user and system, ticks.
    pub own: u64,
    /// CPU time of its reaped children and of their reaped children, ticks.
    pub reaped: u64,
    pub threads: u64,
    /// Ticks from boot to its start. Start and PID identify the process, because PIDs are reused.
    pub start: u64,
    /// Resident pages.
    pub pages: u64,
}

impl Stat {
    /// Reads the process with this PID, if there is one.
    pub fn read(proc: &Path, pid: u32, buffer: &mut Vec<u8>) -> Option<Stat> {
        let dir = proc.join(pid.to_string());
        let mut stat = Stat::parse(read(&dir.join("stat"), buffer)?)?;
        // On machines with many cores `stat` may be some pages per core short, for speed; `statm` is exact.
        if let Some(pages) = read(&dir.join("statm"), buffer).and_then(|text| number(fields(text).nth(1)?)) {
            stat.pages = pages;
        }
        Some(stat)
    }

    /// `PID (NAME) STATE PARENT ...`. The name may contain blanks, parentheses and line ends; the text after its last
    /// parenthesis does not.
    pub fn parse(text: &[u8]) -> Option<Stat> {
        let name_ends = text.iter().rposition(|&b| b == b')')?;
        let mut fields = fields(text[name_ends + 1..].trim_ascii());
        let state = fields.next()?;
        let parent = u32::try_from(number(fields.next()?)?).ok()?;
        let mut time = |skip| number(fields.nth(skip)?);
        let own = time(9)?.checked_add(time(0)?)?;
        let reaped = time(0)?.checked_add(time(0)?)?;
        let threads = time(2)?;
        let start = time(1)?;
        let pages = time(1)?;
        // The first thread of a process may end before the others, and the process goes on.
        let ended = matches!(state, b"Z" | b"X" | b"x") && threads <= 1;
        let uninterruptible = state == b"D";
        let stopped = state == b"T";
        let state = char::from(*state.first()?);
        Some(Stat { ended, uninterruptible, stopped, state, parent, own, reaped, threads, start, pages })
    }
}

/// The name between the outer parentheses of a `stat` file.
pub(crate) fn name_of(text: &[u8]) -> Option<&[u8]> {
    let open = text.iter().position(|&b| b == b'(')?;
    let close = text.iter().rposition(|&b| b == b')')?;
    text.get(open + 1..close)
}

fn read<'a>(path: &Path, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let n = fill(&File::open(path).ok()?, buffer).ok()?;
    Some(&buffer[..n])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_name_does_not_mislead() {
        let text = b"17 (a) R 1 (b\n) S 4 5 6 7 8 9 10 11 12 13 100 20 3 4 20 0 8 0 5000 999 77 18446744073709551615\n";
        let stat = Stat {
            ended: false,
            uninterruptible: false,
            stopped: false,
            state: 'S',
            parent: 4,
            own: 120,
            reaped: 7,
            threads: 8,
            start: 5000,
            pages: 77,
        };
        assert_eq!(Stat::parse(text), Some(stat));
    }

    #[test]
    fn a_process_has_ended_when_no_thread_is_left() {
        let line = |state, threads| format!("1 (x) {state} 0 5 6 7 8 9 10 11 12 13 1 1 1 1 20 0 {threads} 0 5 9 7");
        let ended = |state, threads| Stat::parse(line(state, threads).as_bytes()).unwrap().ended;
        assert!(ended("Z", 1));
        assert!(!ended("Z", 3));
        assert!(!ended("T", 1));
    }

    #[test]
    fn our_own_is_read() {
        let own = Stat::read(Path::new("/proc"), std::process::id(), &mut Vec::new()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(own.threads >= 1 && own.pages > 0 && !own.ended);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, words in "1 \\(x\\) [A-Z]( [0-9]{1,21}){0,30}") {
            Stat::parse(&text);
            Stat::parse(words.as_bytes());
        }
    }
}
