//! Counts work, so that a test can check that the work grows no faster than a file. Outside of tests nothing is
//! counted.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds a number of inspected bytes to the count.
#[cfg_attr(not(test), expect(unused_variables, reason = "only tests count"))]
pub fn count(steps: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + steps as u64);
}

/// The counted work of a call.
#[cfg(test)]
pub fn count_steps(call: impl FnOnce()) -> u64 {
    let before = STEPS.get();
    call();
    STEPS.get() - before
}
