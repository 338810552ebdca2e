//! Waiting for what is to come: until it is there, not for a time.

use std::time::{Duration, Instant};

/// How long anything on loopback may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What `ask` gives once it gives something; it is asked again and again.
///
/// # Panics
/// When there is nothing in time; `what` was waited for.
#[track_caller]
pub fn until<T>(what: &str, ask: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "not in {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns once it is so.
///
/// # Panics
/// As [`until`].
#[track_caller]
pub fn until_so(what: &str, so: impl Fn() -> bool) {
    until(what, || so().then_some(()));
}
