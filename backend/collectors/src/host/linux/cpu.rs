//! Processor time, load, tasks, context switches, interrupts, uptime and temperature of a Linux host.

use super::temperature::Temperature;
use crate::host::total::Total;
use crate::read::Sources;
use crate::read::procfs::{HotFile, decimal, fields, lines, number};
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::cpu;
use std::time::Duration;

/// Opens one part for the processor, and one for its sensors if there are any (a sensor's bus may be slow).
pub(crate) fn open(_: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    let stat = roots.proc.join("stat");
    let stat = HotFile::open(&stat).map_err(|error| OpenError::from_io(&stat, &error))?;
    let load = HotFile::new(roots.proc.join("loadavg"));
    let uptime = HotFile::new(roots.proc.join("uptime"));
    let tried = [&stat, &load, &uptime].map(|file| file.path().display().to_string());
    let cpu = Cpu {
        stat,
        load,
        uptime,
        whole: None,
        before: Vec::new(),
        now: Vec::new(),
        at: None,
        totals: Default::default(),
    };
    let mut parts = Part::only(tried, cpu);
    parts.extend(Temperature::part(roots));
    Ok(parts)
}

struct Cpu {
    stat: HotFile,
    load: HotFile,
    uptime: HotFile,
    whole: Option<Times>,
    before: Vec<(u32, Times)>,
    now: Vec<(u32, Times)>,
    /// Time of that reading.
    at: Option<Duration>,
    /// Interrupts, context switches and forks.
    totals: [Total; 3],
}

impl Collector for Cpu {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let mut sources = Sources::default();
        self.times(out, &mut sources);
        match self.load.read() {
            Ok(text) => {
                let load = parse_load(text);
                sources.answered();
                out.put_some(&cpu::LOAD1, (), load.averages[0]);
                out.put_some(&cpu::LOAD5, (), load.averages[1]);
                out.put_some(&cpu::LOAD15, (), load.averages[2]);
                out.put_some(&cpu::TASKS_RUNNABLE, (), load.runnable);
                out.put_some(&cpu::TASKS, (), load.tasks);
            }
            Err(error) => sources.failed(|| format!("{}: {error}", self.load.path().display())),
        }
        match self.uptime.read() {
            Ok(text) => {
                sources.answered();
                out.put_some(&cpu::UPTIME, (), fields(text).next().and_then(decimal));
            }
            Err(error) => sources.failed(|| format!("{}: {error}", self.uptime.path().display())),
        }
        sources.outcome()
    }
}

impl Cpu {
    fn times(&mut self, out: &mut Out, sources: &mut Sources) {
        let (whole, work) = match self.stat.read() {
            Ok(text) => (parse_stat(text, &mut self.now), Work::parse(text)),
            Err(error) => {
                (self.whole, self.before, self.at) = (None, Vec::new(), None);
                return sources.failed(|| format!("{}: {error}", self.stat.path().display()));
            }
        };
        match whole {
            Some(_) => sources.answered(),
            None => sources.failed(|| format!("{}: the first line cannot be parsed", self.stat.path().display())),
        }
        let passed = self.at.replace(out.at()).map_or(0.0, |at| out.at().saturating_sub(at).as_secs_f64() * USER_HZ);
        if let (Some(before), Some(now)) = (self.whole, whole)
            && let Some(share) = Share::between(&before, &now, passed * self.now.len() as f64)
        {
            out.put_rounded(&cpu::CPU_PERCENT, (), share.busy);
            out.put_rounded(&cpu::USER_PERCENT, (), share.user);
            out.put_rounded(&cpu::SYSTEM_PERCENT, (), share.system);
            out.put_rounded(&cpu::IOWAIT_PERCENT, (), share.iowait);
            out.put_rounded(&cpu::STEAL_PERCENT, (), share.steal);
        }
        for (i, (core, now)) in self.now.iter().enumerate() {
            // Cores keep their order, so the same position is usually right. It is wrong after a core went offline.
            let at = |(id, _): &&(u32, Times)| id == core;
            let before = self.before.get(i).filter(at).or_else(|| self.before.iter().find(at));
            let share = before.and_then(|(_, before)| Share::between(before, now, passed));
            out.put_rounded(&cpu::CORE_PERCENT, *core, share.map(|share| share.busy));
        }
        if !self.now.is_empty() {
            out.put(&cpu::CORES, (), self.now.len() as f64);
        }
        self.whole = whole;
        std::mem::swap(&mut self.before, &mut self.now);
        out.put_some(&cpu::TASKS_BLOCKED, (), work.blocked.map(|n| n as f64));
        let rows =
            [(&cpu::INTERRUPTS, work.interrupts), (&cpu::CONTEXT_SWITCHES, work.switches), (&cpu::FORKS, work.forks)];
        for (total, (row, count)) in self.totals.iter_mut().zip(rows) {
            if let Some(count) = count {
                total.add(count);
                out.put(row, (), total.sum() as f64);
            }
        }
    }
}

/// Other fields of /proc/stat: totals since boot, and tasks that wait for I/O now.
#[derive(Debug, Default, PartialEq)]
struct Work {
    interrupts: Option<u64>,
    switches: Option<u64>,
    forks: Option<u64>,
    blocked: Option<u64>,
}

impl Work {
    /// Read from the end of the file up to the interrupts. Their line is by far the longest: one number per source.
    fn parse(text: &[u8]) -> Work {
        let mut work = Work::default();
        for line in text.rsplit(|&b| b == b'\n') {
            let mut words = fields(line);
            let value = match words.next() {
                Some(b"ctxt") => &mut work.switches,
                Some(b"processes") => &mut work.forks,
                Some(b"procs_blocked") => &mut work.blocked,
                Some(b"intr") => {
                    work.interrupts = words.next().and_then(number);
                    break;
                }
                // Some kernels have no interrupt line; then the cores come next.
                Some(name) if name.starts_with(b"cpu") => break,
                _ => continue,
            };
            *value = words.next().and_then(number);
        }
        work
    }
}

/// Time by kind, in the kernel's ticks: user, nice, system, idle, I/O wait, interrupts, soft interrupts, stolen. The
/// guest times that follow are part of user and nice.
type Times = [u64; 8];

/// Ticks per second in /proc/stat, on all architectures.
const USER_HZ: f64 = 100.0;

/// Ticks by which the kernel may be late, and the share of the expected ticks that counts as all of the time.
const SLACK_TICKS: f64 = 4.0;
const FULL_SHARE: f64 = 0.9;

/// Shares of the time between two readings, in percent.
#[derive(Debug, PartialEq)]
struct Share {
    busy: f64,
    user: f64,
    system: f64,
    iowait: f64,
    steal: f64,
}

impl Share {
    /// None if no tick passed; `passed` ticks are expected. A kind that decreased (the kernel corrects I/O wait and
    /// idle) counts as unchanged.
    /// On some systems idle time never increases (lxcfs, some hypervisors). If the other kinds do not cover all of the
    /// time there, the rest was idle.
    fn between(before: &Times, now: &Times, passed: f64) -> Option<Share> {
        let mut d = [0; 8];
        for (d, (before, now)) in d.iter_mut().zip(before.iter().zip(now)) {
            *d = now.saturating_sub(*before);
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = d;
        let counted: u64 = d.iter().sum();
        let lacks = idle == 0 && (counted as f64 + SLACK_TICKS) < passed * FULL_SHARE;
        let all = if lacks { passed } else { counted as f64 };
        let percent = |ticks: u64| 100.0 * ticks as f64 / all;
        (counted > 0).then(|| Share {
            busy: percent(counted - idle - iowait),
            user: percent(user + nice),
            system: percent(system + irq + softirq),
            iowait: percent(iowait),
            steal: percent(steal),
        })
    }
}

/// The whole machine's times; those of the cores are added to `cores`. Stops at the interrupts, the long part of the
/// file.
fn parse_stat(text: &[u8], cores: &mut Vec<(u32, Times)>) -> Option<Times> {
    cores.clear();
    let mut whole = None;
    for line in lines(text).take_while(|line| !line.starts_with(b"intr")) {
        let Some(rest) = line.strip_prefix(b"cpu") else { continue };
        let name_ends = rest.iter().position(|&b| b == b' ').unwrap_or(rest.len());
        let Some(times) = parse_times(&rest[name_ends..]) else { continue };
        match &rest[..name_ends] {
            [] => whole = Some(times),
            name => cores.extend(number(name).and_then(|i| Some((u32::try_from(i).ok()?, times)))),
        }
    }
    whole
}

/// Kinds that an old kernel lacks stay 0; a kind that is no number makes the line invalid.
fn parse_times(text: &[u8]) -> Option<Times> {
    let mut times = Times::default();
    let mut found = 0;
    for (time, field) in times.iter_mut().zip(fields(text)) {
        // The limit keeps the sum of all kinds from overflowing, for any text.
        *time = number(field).filter(|&n| n < 1 << 60)?;
        found += 1;
    }
    (found >= 4).then_some(times)
}

#[derive(Debug, Default, PartialEq)]
struct Load {
    averages: [Option<f64>; 3],
    runnable: Option<f64>,
    tasks: Option<f64>,
}

/// `0.20 0.18 0.12 1/80 11206`
fn parse_load(text: &[u8]) -> Load {
    let mut fields = fields(text);
    let averages = [(); 3].map(|()| fields.next().and_then(decimal));
    let mut tasks = fields.next().unwrap_or_default().split(|&b| b == b'/').map(|n| number(n).map(|n| n as f64));
    Load { averages, runnable: tasks.next().flatten(), tasks: tasks.next().flatten() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn work_is_what_is_neither_idle_nor_waiting() {
        let before = [100, 0, 0, 1000, 50, 0, 0, 0];
        let now = [120, 10, 15, 1040, 55, 2, 3, 5];
        let share = Share::between(&before, &now, 100.0).unwrap();
        assert_eq!(share, Share { busy: 55.0, user: 30.0, system: 20.0, iowait: 5.0, steal: 5.0 });
        assert_eq!(Share::between(&now, &now, 100.0), None);
    }

    #[test]
    fn io_wait_that_falls_counts_as_still() {
        let share = Share::between(&[0, 0, 0, 0, 90, 0, 0, 0], &[10, 0, 0, 10, 80, 0, 0, 0], 100.0).unwrap();
        assert_eq!((share.busy, share.iowait), (50.0, 0.0));
    }

    #[test]
    fn idle_that_falls_or_stands_still_makes_no_busy_core() {
        let busy =
            |now: Times, passed| Share::between(&[100, 0, 50, 9_000, 0, 0, 0, 0], &now, passed).map(|share| share.busy);
        for idle in [9_000, 8_990, 0] {
            assert_eq!(busy([105, 0, 55, idle, 0, 0, 0, 0], 100.0), Some(10.0), "idle at {idle}");
            assert_eq!(busy([150, 0, 60, idle, 0, 0, 0, 0], 100.0), Some(60.0), "idle at {idle}");
            // All of the time, within the kernel's accuracy.
            assert_eq!(busy([190, 0, 58, idle, 0, 0, 0, 0], 100.0), Some(100.0), "idle at {idle}");
            assert_eq!(
                busy([108, 0, 50, idle, 0, 0, 0, 0], 10.0),
                Some(100.0),
                "idle at {idle}, in a tenth of a second"
            );
        }
        assert_eq!(busy([105, 0, 55, 9_001, 0, 0, 0, 0], 100.0).map(f64::round), Some(91.0), "idle goes on");
    }

    #[test]
    fn the_load_is_read_as_far_as_it_goes() {
        let load = parse_load(b"0.20 x 0.12 3/812 11206\n");
        assert_eq!(load.averages, [Some(0.2), None, Some(0.12)]);
        assert_eq!((load.runnable, load.tasks), (Some(3.0), Some(812.0)));
    }

    #[test]
    fn what_is_missing_beside_the_times_is_absent() {
        let work = Work::parse(b"cpu 1 2 3 4\nintr 12 0 0\nctxt 7\nprocesses x\nprocs_running 2\nsoftirq 9 1\n");
        assert_eq!(work, Work { interrupts: Some(12), switches: Some(7), ..Work::default() });
        assert_eq!(Work::parse(b"ctxt 5\ncpu 1 2 3 4\ncpu0 1 2 3 4\n"), Work::default(), "above the cores is nothing");
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>, words in "(cpu[0-9]{0,3}( [0-9x]{1,25}){0,12}\n){0,5}") {
            let mut cores = Vec::new();
            for text in [&text[..], words.as_bytes()] {
                let whole = parse_stat(text, &mut cores);
                let _ = (parse_load(text), Work::parse(text));
                if let Some(now) = whole {
                    Share::between(&Times::default(), &now, 100.0);
                }
            }
        }
    }
}
