//! Totals since our start, from counters that may wrap, reset or disappear.

/// The largest growth that counts as a wraparound; above it is a reset.
const LARGEST_WRAP: u64 = 1 << 30;

/// Readings within which a slightly decreased counter may return to its old value. Later its growth is new.
const DIP_READINGS: u8 = 3;

/// A counter's total since its first reading. It starts at 0 and never falls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    last: Option<u64>,
    sum: u64,
    /// Amount by which the counter is below its old value, and the remaining readings to return.
    below: (u64, u8),
}

impl Total {
    /// Adds a reading. Returns the growth since the previous one; 0 for the first.
    pub fn add(&mut self, raw: u64) -> u64 {
        let mut grown = self.last.map_or(0, |last| increase(last, raw));
        let (below, readings) = &mut self.below;
        match self.last {
            Some(last) if is_dip(last, raw) => (*below, *readings) = (below.saturating_add(last - raw), DIP_READINGS),
            _ => {
                let regained = grown.min(*below);
                grown -= regained;
                *readings = readings.saturating_sub(1);
                *below = if *readings == 0 { 0 } else { *below - regained };
            }
        }
        self.last = Some(raw);
        self.sum = self.sum.saturating_add(grown);
        grown
    }

    /// The total so far.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The counter is gone. If it comes back, its first reading is a new baseline and the total goes on.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "sysinfo does not say when a device left"))]
    pub fn forget(&mut self) {
        (self.last, self.below) = (None, (0, 0));
    }
}

/// Whether a counter fell by less than half. A restart falls to about 0. A sum of other counters (as of a bond's links)
/// may be read while one of them lags.
fn is_dip(last: u64, raw: u64) -> bool {
    raw < last && raw > last / 2
}

/// Growth from one reading to the next. After a large fall, a 32-bit (or 64-bit) counter wrapped if both readings are
/// close to the wraparound; else it restarted from 0. A small fall is no growth.
pub(crate) fn increase(last: u64, raw: u64) -> u64 {
    if raw >= last {
        return raw - last;
    }
    if is_dip(last, raw) {
        return 0;
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
    fn a_fall_that_is_small_beside_the_counter_is_no_restart() {
        let of = 5_000_000_000_000;
        assert_eq!(sums(&[of, of - 1_000_000, of - 500_000, of, of + 7]), [0, 0, 0, 0, 7]);
        assert_eq!(sums(&[of, of - 10, of - 20, of + 5]), [0, 0, 0, 5], "it fell twice");
        // A counter that stays lower, as after a restart of a part, is accepted after some readings.
        assert_eq!(sums(&[1_000, 600, 610, 620, 630, 640]), [0, 0, 0, 0, 0, 10]);
        assert_eq!(sums(&[1_000, 499, 500]), [0, 499, 500], "a restart");
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
