//! Retention: the segments to remove.

use crate::segments::Segment;
use std::sync::Arc;

/// Limits of the stored history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Every sample is kept this long, ms, unless its segment has a retention of its own. A segment is removed when its
    /// newest sample is older.
    pub retention: i64,
    /// Maximum bytes of all segments, without the log; the oldest are removed first. The newest one stays whatever its
    /// size.
    pub bytes: Option<u64>,
}

/// The segments to remove, oldest first; `retention` returns the retention of each, ms. Segments of a clock that was
/// ahead count as old as the newest one written before them.
pub fn expired(
    now: i64,
    bytes: Option<u64>,
    segments: &[Arc<Segment>],
    retention: impl Fn(&Segment) -> i64,
) -> Vec<Arc<Segment>> {
    let facts = |s: &Arc<Segment>| Facts { to: s.to(), serial: s.name().serial, bytes: s.bytes(), kept: retention(s) };
    let facts: Vec<Facts> = segments.iter().map(facts).collect();
    choose(now, bytes, &facts).into_iter().map(|i| segments[i].clone()).collect()
}

/// Data for the decision about a segment.
#[derive(Clone, Copy)]
struct Facts {
    to: i64,
    serial: u64,
    bytes: u64,
    /// Its retention, ms.
    kept: i64,
}

fn choose(now: i64, most: Option<u64>, segments: &[Facts]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..segments.len()).collect();
    // In the order of writing: segments of a clock that was ahead count as old as those before them.
    order.sort_by_key(|&i| segments[i].serial);
    let mut newest = i64::MIN;
    let mut aged: Vec<(i64, u64, usize)> = Vec::with_capacity(order.len());
    for i in order {
        let Facts { to, serial, .. } = segments[i];
        let to = if to <= now || newest == i64::MIN { to.min(now) } else { newest };
        newest = newest.max(to);
        aged.push((to, serial, i));
    }
    aged.sort_unstable();
    let (mut gone, young): (Vec<_>, Vec<_>) =
        aged.into_iter().partition(|&(to, _, i)| to < now.saturating_sub(segments[i].kept));
    let mut total: u64 = young.iter().map(|&(_, _, i)| segments[i].bytes).sum();
    // Then segments to free space, except for the newest.
    for &(to, serial, i) in young.iter().take(young.len().saturating_sub(1)) {
        if most.is_none_or(|most| total <= most) {
            break;
        }
        total -= segments[i].bytes;
        gone.push((to, serial, i));
    }
    gone.into_iter().map(|(_, _, i)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const NOW: i64 = 1_000 * HOUR;

    /// Segments of ten bytes with this retention and newest ticks of these ages, both in hours, in the order of
    /// writing.
    fn hours(kept: i64, ages: &[i64]) -> Vec<Facts> {
        let facts = |(serial, age): (usize, &i64)| {
            let (to, kept) = (NOW - age * HOUR, kept * HOUR);
            Facts { to, serial: serial as u64, bytes: 10, kept }
        };
        ages.iter().enumerate().map(facts).collect()
    }

    #[test]
    fn what_is_older_than_the_retention_goes() {
        assert_eq!(choose(NOW, None, &hours(12, &[14, 13, 12, 1, 0])), [0, 1]);
        assert_eq!(choose(NOW, None, &[]), Vec::<usize>::new());
    }

    #[test]
    fn the_oldest_make_room_but_the_newest_stays() {
        assert_eq!(choose(NOW, Some(25), &hours(12, &[3, 2, 1, 0])), [0, 1]);
        assert_eq!(choose(NOW, Some(40), &hours(12, &[3, 2, 1, 0])), Vec::<usize>::new());
        assert_eq!(choose(NOW, Some(5), &hours(12, &[1, 0])), [0]);
    }

    #[test]
    fn what_a_clock_that_was_ahead_left_goes_with_its_neighbors() {
        let ages = [20, 14, -1_000, 13, 1];
        assert_eq!(choose(NOW, None, &hours(12, &ages)), [0, 1, 2, 3]);
        assert_eq!(choose(NOW, None, &hours(24, &ages)), Vec::<usize>::new());
    }

    #[test]
    fn each_is_kept_for_its_own_time() {
        let mut segments = hours(12, &[30, 20, 13, 11, 1]);
        segments[0].kept = 100 * HOUR;
        segments[3].kept = HOUR;
        assert_eq!(choose(NOW, None, &segments), [1, 2, 3]);
        assert_eq!(choose(NOW, Some(20), &segments), [1, 2, 3], "what has to go anyway makes room first");
        assert_eq!(choose(NOW, Some(10), &segments), [1, 2, 3, 0]);
    }
}
