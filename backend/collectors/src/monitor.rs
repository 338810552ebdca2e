//! What Watchglass itself costs. The rows that tell of the collectors' times are filled by the sampler, which measures
//! them.

use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use shared::catalog::{MetricDef, Range};
use shared::unit::Unit;
use std::time::Duration;

const MIB: f64 = (1 << 20) as f64;

/// Our CPU time.
pub static CPU: MetricDef = MetricDef::gauge("monitor.cpu", Unit::Percent)
    .title("Watchglass CPU")
    .on("monitor.cpu", "CPU")
    .range(Range::FromZero)
    .help("CPU time of this program since the previous sample, in percent of one core. User and system time as the kernel accounts them to the process.");

/// Our memory.
pub static RSS: MetricDef = MetricDef::gauge("monitor.rssMB", Unit::Mebibytes)
    .title("Watchglass memory")
    .on("monitor.memory", "resident")
    .steps(256.0)
    .help("Resident set of this program.");

/// How long a collector took; filled by the sampler.
pub static MICROS: MetricDef = MetricDef::gauge("monitor.{collector}.micros", Unit::Microseconds)
    .title("Time a collector takes")
    .on("monitor.duration", "{collector}")
    .help("Time from the tick's begin to this collector's answer, by the clock on the wall.");

/// Whether a collector answered; filled by the sampler.
pub static OK: MetricDef = MetricDef::state("monitor.{collector}.ok")
    .title("Collector answered")
    .on("monitor.ok", "{collector}")
    .help("1 when the collector read all it was to read, 0 when a reading failed or came too late.");

/// Ticks that were missed; filled by the sampler.
pub static LATE: MetricDef = MetricDef::counter("monitor.late", Unit::Count)
    .title("Ticks missed")
    .on("monitor.late", "missed")
    .help("Ticks that did not happen since the start because the machine, or this program, was held up; each is a gap in all series.");

/// Clock steps; filled by the sampler.
pub static CLOCK_STEPS: MetricDef = MetricDef::counter("monitor.clockSteps", Unit::Count)
    .title("Clock steps")
    .on("monitor.late", "clock steps")
    .help("Times that the machine's clock was set to another time since the start; the samples before and after stand as they were stamped.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&CPU, &RSS, &MICROS, &OK, &LATE, &CLOCK_STEPS];

/// Opens it. It always reads this machine, never a recording.
pub(crate) fn open(_: &Options, _: &Roots) -> Result<Vec<Part>, OpenError> {
    let own = own::Own::open()?;
    Ok(Part::only(own.tried(), Monitor { own, before: None }))
}

struct Monitor {
    own: own::Own,
    before: Option<(Duration, Duration)>,
}

impl Collector for Monitor {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let used = self.own.cpu_time()?;
        let before = self.before.replace((out.at(), used));
        let percent = before.and_then(|(at, before)| {
            let passed = out.at().checked_sub(at)?.as_secs_f64();
            (passed > 0.0).then(|| 100.0 * used.saturating_sub(before).as_secs_f64() / passed)
        });
        out.put_rounded(&CPU, (), percent);
        out.put(&RSS, (), self.own.resident()? / MIB);
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod own {
    use crate::read::procfs::{HotFile, fields, number};
    use crate::{CollectError, OpenError};
    use std::mem::MaybeUninit;
    use std::path::Path;
    use std::time::Duration;

    const STATM: &str = "/proc/self/statm";

    pub(super) struct Own {
        statm: HotFile,
        page: f64,
    }

    impl Own {
        pub fn open() -> Result<Self, OpenError> {
            let statm = HotFile::open(STATM).map_err(|error| OpenError::from_io(Path::new(STATM), &error))?;
            Ok(Own { statm, page: crate::host::page_size() as f64 })
        }

        pub fn tried(&self) -> Vec<String> {
            vec![STATM.into(), "getrusage".into()]
        }

        /// User and system time so far.
        pub fn cpu_time(&mut self) -> Result<Duration, CollectError> {
            let mut usage = MaybeUninit::<libc::rusage>::uninit();
            // SAFETY: the answer is as large as the call expects.
            if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
                return Err(CollectError::failed(format!("getrusage: {}", std::io::Error::last_os_error())));
            }
            // SAFETY: the call succeeded, so the answer is filled in.
            let usage = unsafe { usage.assume_init() };
            let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, 1000 * t.tv_usec as u32);
            Ok(time(usage.ru_utime) + time(usage.ru_stime))
        }

        /// Bytes.
        pub fn resident(&mut self) -> Result<f64, CollectError> {
            let text = self.statm.read().map_err(|error| CollectError::partial(format!("{STATM}: {error}")))?;
            let pages = fields(text).nth(1).and_then(number);
            pages.map(|n| n as f64 * self.page).ok_or_else(|| CollectError::partial(format!("{STATM}: no number")))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod own {
    use crate::{CollectError, OpenError};
    use std::time::Duration;
    use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

    pub(super) struct Own {
        system: System,
        pid: Pid,
    }

    impl Own {
        pub fn open() -> Result<Self, OpenError> {
            let system = System::new().map_err(|error| OpenError {
                kind: crate::OpenErrorKind::Failed,
                tried: vec!["sysinfo".into()],
                reason: format!("the system does not answer: {error:?}"),
                remedy: String::new(),
            })?;
            Ok(Own { system, pid: Pid::from_u32(std::process::id()) })
        }

        pub fn tried(&self) -> Vec<String> {
            vec!["sysinfo".into()]
        }

        /// User and system time so far. This reads the memory as well.
        pub fn cpu_time(&mut self) -> Result<Duration, CollectError> {
            let kind = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
            self.system.refresh_processes_specifics(ProcessesToUpdate::Some(&[self.pid]), false, kind);
            let own = self.system.process(self.pid);
            own.map(|own| Duration::from_millis(own.accumulated_cpu_time()))
                .ok_or_else(|| CollectError::failed("the system does not list this process"))
        }

        /// Bytes.
        pub fn resident(&mut self) -> Result<f64, CollectError> {
            let own = self.system.process(self.pid);
            own.map(|own| own.memory() as f64)
                .ok_or_else(|| CollectError::partial("the system does not list this process"))
        }
    }
}
