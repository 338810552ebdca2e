//! Finds the sample that is nearest to an instant.

/// Index of the time nearest to `t`; None when there are no times.
pub fn nearest(times: &[i64], t: i64) -> Option<usize> {
    let after = times.partition_point(|&x| x < t);
    match (after.checked_sub(1), times.get(after)) {
        (Some(before), Some(&next)) => Some(if t - times[before] <= next - t { before } else { after }),
        (Some(before), None) => Some(before),
        (None, Some(_)) => Some(after),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_time_is_found_from_both_sides_and_beyond_the_ends() {
        let times = [10, 20, 40];
        for (t, at) in [(-5, 0), (14, 0), (15, 0), (16, 1), (29, 1), (31, 2), (900, 2)] {
            assert_eq!(nearest(&times, t), Some(at), "{t}");
        }
        assert_eq!(nearest(&[], 1), None);
    }
}
