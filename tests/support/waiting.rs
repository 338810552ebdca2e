//! Waits until a condition holds, never for a fixed time.

use std::time::{Duration, Instant};

/// Maximum time of anything on loopback before a test fails. A correct program needs a fraction of a second. On a
/// machine that compiles meanwhile it took up to 20 s now and then.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// Minimum and maximum pause between two polls. A slow poll, such as the start of a program, has longer pauses, so that
/// half of a core stays free for the awaited program.
const POLL_PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(250)];

/// Calls `ask` repeatedly until it returns a value, and returns that.
///
/// # Panics
/// Panics when this takes too long; the message names `what`.
#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_or(MAX_WAIT, ask, || what.to_string())
}

/// Waits like [`until`] for at most this time; `what` makes the message at a timeout.
///
/// # Panics
/// Panics as [`until`] does.
#[track_caller]
pub fn until_or<T>(most: Duration, ask: impl FnMut() -> Option<T>, what: impl FnOnce() -> String) -> T {
    let Some(found) = within(most, ask) else { panic!("not in {most:?}: {}", what()) };
    found
}

/// Waits until `so` returns true.
///
/// # Panics
/// Panics as [`until`] does.
#[track_caller]
pub fn until_so(what: &str, mut so: impl FnMut() -> bool) {
    until(what, || so().then_some(()));
}

/// Calls `ask` repeatedly for at most this time. None when it never returned a value. It is called at least twice:
/// under heavy load the first call may take all of the time.
pub fn within<T>(most: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        let look = Instant::now();
        let is_last = look.duration_since(begin) >= most;
        if let Some(found) = ask() {
            return Some(found);
        }
        if is_last {
            return None;
        }
        std::thread::sleep(look.elapsed().clamp(POLL_PAUSES[0], POLL_PAUSES[1]));
    }
}
