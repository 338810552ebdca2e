//! Missing samples of a source: the ticks that its agent offers, minus those stored here, minus those that did not
//! arrive when requested.
//!
//! Nothing is stored about arrived ticks: they are determined from the stored data, so that nothing can disagree with
//! it.

use shared::agent::Offer;

/// First and last sequence, both included.
pub(super) type Span = (u64, u64);

/// Holes that end within this time are filled first, because users look there.
const RECENT_MS: i64 = 3_600_000;

/// Ticks that are missing here and that the agent offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    /// Sequence of the first.
    pub first: u64,
    /// Sequence of the last.
    pub last: u64,
    /// Approximate time of the first, milliseconds since the Unix epoch by our clock.
    pub from: i64,
    /// Approximate time of the last.
    pub to: i64,
}

/// Adds a range to sorted ranges that do not touch.
pub(super) fn add(spans: &mut Vec<Span>, new: Span) {
    spans.push(new);
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for &(first, last) in spans.iter() {
        match joined.last_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => joined.push((first, last)),
        }
    }
    *spans = joined;
}

/// The parts of a range outside of all others, which are sorted and do not overlap.
pub(super) fn subtract((mut first, last): Span, others: &[Span]) -> Vec<Span> {
    let mut left = Vec::new();
    let begin = others.partition_point(|(_, end)| *end < first);
    for &(start, end) in &others[begin..] {
        if start > last {
            break;
        }
        if first < start {
            left.push((first, start - 1));
        }
        match end.checked_add(1) {
            Some(next) => first = first.max(next),
            None => return left,
        }
    }
    if first <= last {
        left.push((first, last));
    }
    left
}

/// Input of the search for missing ticks.
pub(super) struct Lacking<'a> {
    /// Ranges that its agent has.
    pub offers: &'a [Offer],
    /// Sequence and time of its newest tick here.
    pub newest: (u64, i64),
    /// Time between two ticks, milliseconds.
    pub interval: i64,
    /// Shift that is added to the agent's timestamps.
    pub shift: i64,
    /// Oldest time of the retention, milliseconds since the Unix epoch.
    pub oldest: i64,
    /// Ticks that are here.
    pub covered: &'a [Span],
    /// Ticks that did not arrive when requested, or were refused.
    pub tried: &'a [Span],
}

impl Lacking<'_> {
    /// The missing ranges, sorted.
    pub fn holes(&self) -> Vec<Hole> {
        let mut holes = Vec::new();
        for offer in self.offers.iter().filter(|offer| offer.first <= self.newest.0) {
            // Ticks after the newest one arrive live.
            let last = offer.last.min(self.newest.0);
            let first = offer.first.max(self.first_kept(offer));
            if first > last {
                continue;
            }
            for span in subtract((first, last), self.covered) {
                let left = subtract(span, self.tried).into_iter();
                holes.extend(left.map(|(first, last)| Hole {
                    first,
                    last,
                    from: self.time(offer, first),
                    to: self.time(offer, last),
                }));
            }
        }
        holes
    }

    /// Approximate time of a tick of an offer.
    fn time(&self, offer: &Offer, seq: u64) -> i64 {
        let ticks = |n: u64| i64::try_from(n).unwrap_or(i64::MAX).saturating_mul(self.interval);
        if offer.last == u64::MAX {
            return self.newest.1.saturating_sub(ticks(self.newest.0.saturating_sub(seq)));
        }
        let (of, all) = ((seq - offer.first) as f64, (offer.last - offer.first).max(1) as f64);
        let within = offer.to.saturating_sub(offer.from) as f64 * (of / all);
        offer.from.saturating_add(within as i64).saturating_add(self.shift)
    }

    /// Approximate first tick of an offer within the retention.
    fn first_kept(&self, offer: &Offer) -> u64 {
        let from = self.time(offer, offer.first);
        let late = self.oldest.saturating_sub(from).max(0) / self.interval.max(1);
        offer.first.saturating_add(late as u64)
    }
}

/// The next range to request, at most `most` ticks: the newest part of the holes in the last hour, else the first part
/// of the oldest hole.
pub(super) fn next(holes: &[Hole], now: i64, most: u64) -> Option<Span> {
    let recent = now.saturating_sub(RECENT_MS);
    match holes.last() {
        Some(newest) if newest.to >= recent => {
            Some((newest.first.max(newest.last.saturating_sub(most.saturating_sub(1))), newest.last))
        }
        _ => holes.first().map(|oldest| (oldest.first, oldest.last.min(oldest.first.saturating_add(most - 1)))),
    }
}

/// Total length of the missing history, milliseconds.
pub(super) fn missing(holes: &[Hole], interval: i64) -> i64 {
    let ticks: u64 = holes.iter().map(|hole| hole.last - hole.first + 1).sum();
    i64::try_from(ticks).unwrap_or(i64::MAX).saturating_mul(interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const HOUR: i64 = 3_600_000;

    fn spans() -> impl Strategy<Value = Vec<Span>> {
        prop::collection::vec((1u64..60, 0u64..8), 0..8).prop_map(|all| {
            let mut spans = Vec::new();
            all.into_iter().for_each(|(first, len)| add(&mut spans, (first, first + len)));
            spans
        })
    }

    fn set(spans: &[Span]) -> BTreeSet<u64> {
        spans.iter().flat_map(|(first, last)| *first..=*last).collect()
    }

    proptest! {
        #[test]
        fn ranges_are_sets_of_ticks(a in spans(), b in spans()) {
            prop_assert!(a.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            let left: Vec<Span> = a.iter().flat_map(|span| subtract(*span, &b)).collect();
            prop_assert_eq!(set(&left), &set(&a) - &set(&b));
            prop_assert!(left.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }

        #[test]
        fn what_is_asked_for_is_lacking_and_all_of_it_comes_in_the_end(offers in spans(), covered in spans(), most in 1u64..9) {
            let wanted = &set(&offers) - &set(&covered);
            let offers: Vec<Offer> = offers.iter().map(|&(first, last)| Offer {
                first, last, from: first as i64 * 1_000, to: last as i64 * 1_000,
            }).collect();
            let (mut covered, mut asked) = (covered, BTreeSet::new());
            for _ in 0..200 {
                let look = Lacking {
                    offers: &offers, newest: (100, 100_000), interval: 1_000, shift: 0, oldest: 0, covered: &covered, tried: &[],
                };
                let Some((first, last)) = next(&look.holes(), 3_640_000, most) else { break };
                prop_assert!(last - first < most);
                prop_assert!((first..=last).all(|seq| asked.insert(seq)), "asked for twice");
                add(&mut covered, (first, last));
            }
            prop_assert_eq!(asked, wanted);
        }
    }

    #[test]
    fn the_last_hour_comes_first_and_then_what_expires_first() {
        let offers = [Offer { first: 1, last: u64::MAX, from: 0, to: i64::MAX }];
        let mut covered = vec![(40_000, 43_200)];
        let mut asked = Vec::new();
        for _ in 0..3 {
            let look = Lacking {
                offers: &offers,
                newest: (43_200, 12 * HOUR),
                interval: 1_000,
                shift: 0,
                oldest: 0,
                covered: &covered,
                tried: &[(5, 9)],
            };
            let span = next(&look.holes(), 12 * HOUR, 600).expect("there are holes");
            asked.push(span);
            add(&mut covered, span);
        }
        assert_eq!(asked, [(39_400, 39_999), (1, 4), (10, 609)]);
    }

    #[test]
    fn what_is_older_than_what_is_kept_is_not_asked_for() {
        let offers = [
            Offer { first: 1, last: 3_600, from: 0, to: HOUR },
            Offer { first: 10_000, last: u64::MAX, from: 5 * HOUR, to: i64::MAX },
        ];
        let look = Lacking {
            offers: &offers,
            newest: (10_100, 6 * HOUR),
            interval: 1_000,
            shift: 0,
            oldest: HOUR / 2,
            covered: &[(10_000, 10_100)],
            tried: &[],
        };
        let holes = look.holes();
        assert_eq!(holes.len(), 1);
        assert!((1_799..=1_802).contains(&holes[0].first) && holes[0].last == 3_600, "{holes:?}");
        assert_eq!(missing(&[Hole { first: 5, last: 14, from: 0, to: 0 }], 1_000), 10_000);
    }

    #[test]
    fn absurd_offers_ask_for_nothing_absurd() {
        let offers = [Offer { first: 0, last: u64::MAX, from: i64::MIN, to: i64::MAX }];
        let look = Lacking {
            offers: &offers,
            newest: (7, 1_000),
            interval: 1_000,
            shift: i64::MAX,
            oldest: 0,
            covered: &[],
            tried: &[],
        };
        assert!(look.holes().iter().all(|hole| hole.last <= 7));
        assert_eq!(next(&[], 0, 10), None);
    }
}
