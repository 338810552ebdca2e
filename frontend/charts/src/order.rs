//! Sorting for the whole page in one place, because sorting another type adds some eight kilobytes of code.

/// Indices in ascending order of the keys; equal keys keep their order.
pub fn by(keys: impl IntoIterator<Item = i64>) -> Vec<usize> {
    sort(keys.into_iter().enumerate().map(|(i, key)| (key, i)).collect())
}

#[inline(never)]
fn sort(mut keys: Vec<(i64, usize)>) -> Vec<usize> {
    keys.sort_unstable();
    keys.into_iter().map(|(_, i)| i).collect()
}

/// Turns a number into an integer key of the same order.
pub fn key(v: f64) -> i64 {
    let bits = v.to_bits() as i64;
    // The bits of negative numbers count backwards, so all but the sign are inverted.
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_in_order_as_numbers_are(values in prop::collection::vec(any::<f64>(), 0..50)) {
            let mut sorted: Vec<usize> = (0..values.len()).collect();
            sorted.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
            prop_assert_eq!(by(values.iter().map(|v| key(*v))), sorted);
        }
    }
}
