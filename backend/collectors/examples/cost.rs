//! CPU time of one reading of each collector on this machine: the median of many, in microseconds. Build it in release
//! mode. Arguments: PIDs of processes to watch.

use collectors::{COLLECTORS, Options, Out, Roots};
use std::time::Duration;

const READINGS: u32 = 2000;

/// The collectors of the cost target: one host sample.
const HOST: [&str; 5] = ["cpu", "memory", "disk", "network", "monitor"];

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn main() {
    let pids = std::env::args().skip(1).filter_map(|pid| pid.parse().ok()).collect();
    let options = Options { pids, ..Options::default() };
    let mut open = Vec::new();
    for entry in COLLECTORS {
        match entry.open_here(&options, &Roots::default()) {
            Ok(parts) => open.extend(parts.into_iter().map(|part| (entry.name, part, Out::default(), Vec::new()))),
            Err(error) => println!("{:12} {}", entry.name, error.reason),
        }
    }
    // Collectors run in turn, as in a tick, so that none has the CPU caches to itself.
    for reading in 0..READINGS {
        for (_, part, out, times) in &mut open {
            let before = cpu_time();
            out.begin(Duration::from_secs(u64::from(reading)));
            let _ = part.collector.collect(out);
            times.push((cpu_time() - before).as_nanos() as f64 / 1000.0);
        }
    }
    let mut host = 0.0;
    for (name, part, out, times) in &mut open {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let p95 = times[times.len() * 95 / 100];
        println!(
            "{name:12} {:14} {:4} series  median {median:7.1} us  p95 {p95:7.1} us",
            part.name,
            out.slots().count()
        );
        host += if HOST.contains(name) { median } else { 0.0 };
    }
    println!("one host sample ({}): {host:.1} us", HOST.join(", "));
}

/// CPU time of this thread.
#[cfg(target_os = "linux")]
fn cpu_time() -> Duration {
    let mut time = std::mem::MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` has the size that the call expects, and this clock always exists.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr());
        time.assume_init()
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Other systems use the wall clock.
#[cfg(not(target_os = "linux"))]
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}
