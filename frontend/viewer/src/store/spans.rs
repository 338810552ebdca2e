//! Spans of time for which samples are stored.

/// Spans in order of time that do not touch each other; both ends are included, ms since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<(i64, i64)>);

impl Spans {
    /// True when no span is stored.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a span, and joins it with those that it touches.
    pub fn add(&mut self, (mut from, mut to): (i64, i64)) {
        self.0.retain(|&(a, b)| {
            let apart = b.saturating_add(1) < from || a > to.saturating_add(1);
            if !apart {
                (from, to) = (from.min(a), to.max(b));
            }
            apart
        });
        let at = self.0.partition_point(|span| span.0 < from);
        self.0.insert(at, (from, to));
    }

    /// The part of a span that must be requested: from the first to the last missing instant. None if nothing is
    /// missing.
    pub fn missing(&self, (mut from, mut to): (i64, i64)) -> Option<(i64, i64)> {
        for &(a, b) in &self.0 {
            if (a..=b).contains(&from) {
                from = b.saturating_add(1);
            }
        }
        for &(a, b) in self.0.iter().rev() {
            if (a..=b).contains(&to) {
                to = a - 1;
            }
        }
        (from <= to).then_some((from, to))
    }

    /// Keeps only the parts that are in one of two spans.
    pub fn keep(&mut self, spans: [(i64, i64); 2]) {
        let all = std::mem::take(&mut self.0);
        for (from, to) in spans {
            let parts = all.iter().map(|&(a, b)| (a.max(from), b.min(to)));
            parts.filter(|(a, b)| a <= b).for_each(|part| self.add(part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_asked_for_once_and_what_was_let_go_again() {
        let mut held = Spans::default();
        assert_eq!(held.missing((10, 20)), Some((10, 20)));
        held.add((100, i64::MAX));
        assert_eq!(held.missing((10, 20)), Some((10, 20)));
        assert_eq!(held.missing((50, 150)), Some((50, 99)));
        held.add((10, 20));
        held.add((50, 99));
        assert_eq!(held.missing((60, 10_000)), None);
        assert_eq!(held.missing((15, 70)), Some((21, 49)));
        held.add((21, 49));
        assert_eq!(held, Spans(vec![(10, i64::MAX)]));
        held.keep([(30, 40), (70, i64::MAX)]);
        assert_eq!(held, Spans(vec![(30, 40), (70, i64::MAX)]));
        assert_eq!(held.missing((35, 80)), Some((41, 69)));
        assert_eq!(held.missing((0, 35)), Some((0, 29)));
    }
}
