//! Sorting for the whole page in one place. A sort of the standard library adds three to eight kilobytes of code for
//! each type and each comparison.

use std::cmp::Ordering;

/// Sorts by a comparison; equal elements keep their order.
pub fn sort_by<T>(all: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let places = places(all.len(), &mut |a, b| compare(&all[a], &all[b]));
    put(places, &mut |a, b| all.swap(a, b));
}

/// Sorts by a key; equal elements keep their order.
pub fn sort_by_key<T, K: Ord>(all: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(all, |a, b| key(a).cmp(&key(b)));
}

/// Sorts; equal elements keep their order.
pub fn sort<T: Ord>(all: &mut [T]) {
    sort_by(all, T::cmp);
}

/// For each element of the sorted list, its position before. `compare` receives such positions.
#[inline(never)]
fn places(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_unstable_by(|a, b| compare(*a, *b).then(a.cmp(b)));
    places
}

/// Moves elements to their positions by swaps, once along each cycle of positions.
#[inline(never)]
fn put(mut places: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for begin in 0..places.len() {
        let mut at = begin;
        loop {
            let from = std::mem::replace(&mut places[at], at);
            if from == begin {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

/// Indices in ascending order of the keys; equal keys keep their order.
pub fn by(keys: impl IntoIterator<Item = i64>) -> Vec<usize> {
    sorted(keys.into_iter().enumerate().map(|(i, key)| (key, i)).collect())
}

#[inline(never)]
fn sorted(mut keys: Vec<(i64, usize)>) -> Vec<usize> {
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
        fn sorting_is_that_of_the_standard_library(values in prop::collection::vec(0..20i64, 0..60)) {
            let mut ours: Vec<(i64, usize)> = values.into_iter().zip(0..).collect();
            let mut theirs = ours.clone();
            sort_by_key(&mut ours, |one| one.0 / 2);
            theirs.sort_by_key(|one| one.0 / 2);
            prop_assert_eq!(&ours, &theirs);
            sort_by(&mut ours, |a, b| b.0.cmp(&a.0));
            theirs.sort_by_key(|one| std::cmp::Reverse(one.0));
            prop_assert_eq!(&ours, &theirs);
            sort(&mut ours);
            theirs.sort();
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn keys_are_in_order_as_numbers_are(values in prop::collection::vec(any::<f64>(), 0..50)) {
            let mut sorted: Vec<usize> = (0..values.len()).collect();
            sorted.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
            prop_assert_eq!(by(values.iter().map(|v| key(*v))), sorted);
        }
    }
}
