//! Sorting, once for the whole page: each type that is sorted by itself would bring some eight kilobytes of code.

/// Positions in the order of their keys; equal ones stay as they are.
pub fn by(keys: impl IntoIterator<Item = i64>) -> Vec<usize> {
    sort(keys.into_iter().enumerate().map(|(i, key)| (key, i)).collect())
}

#[inline(never)]
fn sort(mut keys: Vec<(i64, usize)>) -> Vec<usize> {
    keys.sort_unstable();
    keys.into_iter().map(|(_, i)| i).collect()
}

/// A key that is in order as the numbers are.
pub fn key(v: f64) -> i64 {
    let bits = v.to_bits() as i64;
    // Of negative numbers the larger bits are the smaller number.
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
