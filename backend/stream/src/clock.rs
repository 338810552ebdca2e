//! The only place that reads a clock. All other code receives times as arguments, so that tests can stop them.

use parking_lot::Mutex;
use std::time::Duration;

/// Wall time and steady time.
pub trait Clock: Send + Sync {
    /// Wall time, milliseconds since the Unix epoch. May step.
    fn wall(&self) -> i64;
    /// Time since an arbitrary start that never steps and counts suspended time.
    fn steady(&self) -> Duration;
}

/// A wall clock that stands still: nothing new happens in a recording.
#[derive(Clone, Copy, Debug)]
pub struct StoppedClock(pub i64);

impl Clock for StoppedClock {
    fn wall(&self) -> i64 {
        self.0
    }

    fn steady(&self) -> Duration {
        System.steady()
    }
}

/// The machine's clocks.
#[derive(Debug, Default)]
pub struct System;

impl Clock for System {
    #[allow(clippy::disallowed_methods, reason = "this is clock.rs")]
    fn wall(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }

    #[cfg(target_os = "linux")]
    fn steady(&self) -> Duration {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // CLOCK_BOOTTIME continues while the machine is suspended: a suspend is then a gap, not a step of the wall
        // clock.
        // SAFETY: `time` is a valid timespec that the call fills.
        unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    #[cfg(not(target_os = "linux"))]
    fn steady(&self) -> Duration {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed()
    }
}

/// A clock that stands still until a test advances it.
#[derive(Debug, Default)]
pub struct Manual(Mutex<(i64, Duration)>);

impl Manual {
    /// Wall and steady time as given.
    pub fn at(wall: i64, steady: Duration) -> Self {
        Manual(Mutex::new((wall, steady)))
    }

    /// Advances both.
    pub fn pass(&self, by: Duration) {
        let mut now = self.0.lock();
        now.0 += by.as_millis() as i64;
        now.1 += by;
    }

    /// Steps the wall clock alone.
    pub fn step(&self, by_ms: i64) {
        self.0.lock().0 += by_ms;
    }
}

impl Clock for Manual {
    fn wall(&self) -> i64 {
        self.0.lock().0
    }
    fn steady(&self) -> Duration {
        self.0.lock().1
    }
}
