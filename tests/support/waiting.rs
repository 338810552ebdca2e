//! Waits until a condition holds, and never for a fixed time.

use std::time::{Duration, Instant};

/// Longest time that anything on loopback may take before a test fails.
pub const MAX_WAIT: Duration = Duration::from_secs(20);

/// Calls `ask` again and again until it returns something, and returns that.
///
/// # Panics
/// Panics when this takes too long; the message names `what`.
#[track_caller]
pub fn until<T>(what: &str, ask: impl Fn() -> Option<T>) -> T {
    until_or(MAX_WAIT, ask, || what.to_string())
}

/// Likewise for at most this time; `what` makes the message when it is over.
///
/// # Panics
/// Panics as [`until`] does.
#[track_caller]
pub fn until_or<T>(most: Duration, mut ask: impl FnMut() -> Option<T>, what: impl FnOnce() -> String) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begin.elapsed() < most, "not in {most:?}: {}", what());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until `so` returns true.
///
/// # Panics
/// Panics as [`until`] does.
#[track_caller]
pub fn until_so(what: &str, so: impl Fn() -> bool) {
    until(what, || so().then_some(()));
}
