//! Totals since our start, made of counters that may wrap, reset or vanish.

/// The largest step that is taken for a wrap; a larger one is a reset.
const LARGEST_WRAP: u64 = 1 << 30;

/// A counter's total since its first reading. It starts at 0 and never falls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    last: Option<u64>,
    sum: u64,
}

impl Total {
    /// Takes a reading and answers by how much the counter grew since the one before; 0 for the first.
    pub fn add(&mut self, raw: u64) -> u64 {
        let grown = self.last.map_or(0, |last| increase(last, raw));
        self.last = Some(raw);
        self.sum = self.sum.saturating_add(grown);
        grown
    }

    /// The total so far.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The counter is gone; should it come back, its first reading is a new baseline and the total goes on.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "sysinfo does not say when a device left"))]
    pub fn forget(&mut self) {
        self.last = None;
    }
}

/// Growth from one reading to the next. A reading below the last one means that a 32-bit (or 64-bit) counter wrapped when
/// both readings lie close to the wrap, else that it restarted from 0.
pub(crate) fn increase(last: u64, raw: u64) -> u64 {
    if raw >= last {
        return raw - last;
    }
    let narrow = u32::try_from(last).ok().map(|last| u64::from((raw as u32).wrapping_sub(last)));
    let wrapped = narrow.unwrap_or_else(|| raw.wrapping_sub(last));
    if wrapped <= LARGEST_WRAP { wrapped } else { raw }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WRAP: u64 = 1 << 32;

    fn sums(readings: &[u64]) -> Vec<u64> {
        let mut total = Total::default();
        readings
            .iter()
            .map(|&raw| {
                total.add(raw);
                total.sum()
            })
            .collect()
    }

    #[test]
    fn the_first_reading_is_the_baseline() {
        assert_eq!(sums(&[500, 500, 510]), [0, 0, 10]);
    }

    #[test]
    fn a_32_bit_wrap_counts_on() {
        assert_eq!(sums(&[WRAP - 100, 50, 60]), [0, 150, 160]);
    }

    #[test]
    fn a_64_bit_wrap_counts_on() {
        assert_eq!(sums(&[u64::MAX - 9, 10]), [0, 20]);
    }

    #[test]
    fn a_reset_counts_from_zero_up() {
        assert_eq!(sums(&[5_000, 6_000, 40, 41]), [0, 1_000, 1_040, 1_041]);
        assert_eq!(sums(&[WRAP * 7, 12]), [0, 12]);
        assert_eq!(sums(&[WRAP / 2, 12]), [0, 12]);
    }

    #[test]
    fn a_counter_that_left_comes_back_with_a_new_baseline() {
        let mut total = Total::default();
        total.add(10);
        total.add(15);
        total.forget();
        assert_eq!(total.add(900), 0);
        assert_eq!(total.add(901), 1);
        assert_eq!(total.sum(), 6);
    }

    proptest! {
        #[test]
        fn never_falls(readings: Vec<u64>) {
            let sums = sums(&readings);
            prop_assert!(sums.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
