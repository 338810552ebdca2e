//! Work as a number, so that a test can tell that it grows as a file does. Outside of tests nothing is counted.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts so many bytes looked at.
#[cfg_attr(not(test), expect(unused_variables, reason = "only tests count"))]
pub fn count(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps as u64);
}

/// What a call costs.
#[cfg(test)]
pub fn of(call: impl FnOnce()) -> u64 {
    let before = STEPS.get();
    call();
    STEPS.get() - before
}
