//! Retention: which segments go.

use crate::segments::Segment;
use std::sync::Arc;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Every sample is kept this long, ms; a segment goes when its newest is older.
    pub retention: i64,
    /// The most bytes of all segments, the log apart; the oldest go first. The newest one stays whatever its size.
    pub bytes: Option<u64>,
}

/// The segments that are to be removed, oldest first. Those of a clock that was ahead are as old as the newest that it
/// was not.
pub fn expired(now: i64, limits: Limits, segments: &[Arc<Segment>]) -> Vec<Arc<Segment>> {
    let facts = segments.iter().map(|s| Facts { to: s.to(), serial: s.name().serial, bytes: s.bytes() });
    choose(now, limits, &facts.collect::<Vec<_>>()).into_iter().map(|i| segments[i].clone()).collect()
}

/// What decides over a segment.
#[derive(Clone, Copy)]
struct Facts {
    to: i64,
    serial: u64,
    bytes: u64,
}

fn choose(now: i64, limits: Limits, segments: &[Facts]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..segments.len()).collect();
    // In the order in which they were written: what a clock that was ahead left behind is as old as what came before it.
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
    let mut total: u64 = segments.iter().map(|s| s.bytes).sum();
    let mut gone = Vec::new();
    for (n, &(to, _, i)) in aged.iter().enumerate() {
        let old = to < now.saturating_sub(limits.retention);
        let too_much = limits.bytes.is_some_and(|most| total > most) && n + 1 < aged.len();
        if !old && !too_much {
            break;
        }
        total -= segments[i].bytes;
        gone.push(i);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const NOW: i64 = 1_000 * HOUR;

    /// Segments of ten bytes whose newest ticks are so many hours old, in the order in which they were written.
    fn hours(ages: &[i64]) -> Vec<Facts> {
        let facts = |(serial, age): (usize, &i64)| Facts { to: NOW - age * HOUR, serial: serial as u64, bytes: 10 };
        ages.iter().enumerate().map(facts).collect()
    }

    fn limits(hours: i64, bytes: Option<u64>) -> Limits {
        Limits { retention: hours * HOUR, bytes }
    }

    #[test]
    fn what_is_older_than_the_retention_goes() {
        assert_eq!(choose(NOW, limits(12, None), &hours(&[14, 13, 12, 1, 0])), [0, 1]);
        assert_eq!(choose(NOW, limits(12, None), &[]), Vec::<usize>::new());
    }

    #[test]
    fn the_oldest_make_room_but_the_newest_stays() {
        assert_eq!(choose(NOW, limits(12, Some(25)), &hours(&[3, 2, 1, 0])), [0, 1]);
        assert_eq!(choose(NOW, limits(12, Some(40)), &hours(&[3, 2, 1, 0])), Vec::<usize>::new());
        assert_eq!(choose(NOW, limits(12, Some(5)), &hours(&[1, 0])), [0]);
    }

    #[test]
    fn what_a_clock_that_was_ahead_left_goes_with_its_neighbours() {
        let segments = hours(&[20, 14, -1_000, 13, 1]);
        assert_eq!(choose(NOW, limits(12, None), &segments), [0, 1, 2, 3]);
        assert_eq!(choose(NOW, limits(24, None), &segments), Vec::<usize>::new());
    }
}
