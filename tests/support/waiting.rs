//! Waits until a condition holds, and never for a fixed time.

use std::time::{Duration, Instant};

/// Longest time that anything on loopback may take before a test fails. What is right takes a part of a second; on a machine
/// that compiles meanwhile it took 20 s now and then, and what hangs hangs for good.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// Between two looks: at least, and at most. What takes long itself, such as a program that is started, is asked less often,
/// so that it leaves half of a core to what is waited for.
const PAUSE: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(250)];

/// Calls `ask` again and again until it returns something, and returns that.
///
/// # Panics
/// Panics when this takes too long; the message names `what`.
#[track_caller]
pub fn until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    until_or(MAX_WAIT, ask, || what.to_string())
}

/// Likewise for at most this time; `what` makes the message when it is over.
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

/// Calls `ask` again and again for at most this time; None where it never returned anything. It is called at least twice: a
/// machine with much load may take all of the time for the first call.
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
        std::thread::sleep(look.elapsed().clamp(PAUSE[0], PAUSE[1]));
    }
}
