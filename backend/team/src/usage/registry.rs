//! Usage since the last note, as rows of days, teams, machines and keys.

use super::meter::{Consumed, Payer};
use crate::accounts::{UsageCount, UsageHomes};
use std::collections::{BTreeMap, HashMap};

/// Measures of a source that are added up, and those of which the largest of a day counts.
const ADDED: [&str; 4] = ["samples", "bytes_in", "late", "dropped"];
const LARGEST: [&str; 2] = ["bytes_disk", "series"];

/// Rows queued while the database is unreachable. When the queue is full, only existing rows are updated.
const MAX_WAITING: usize = 200_000;
/// Rows per write.
const GROUP: usize = 500;

/// Received data of a source since the start, in the order of the measures.
#[derive(Clone, Debug)]
pub(super) struct SourceNow {
    pub key: String,
    pub totals: [u64; ADDED.len()],
    pub largest: [u64; LARGEST.len()],
}

/// Key of a row: day, team, kind, subject, measure.
type UsageKey = (i64, String, &'static str, String, &'static str);

/// Noted usage, and the part of it that is not written yet.
#[derive(Default)]
pub(super) struct UsageRegistry {
    /// By source: the counts noted so far.
    seen: HashMap<String, [u64; ADDED.len()]>,
    /// The largest values written of a day.
    tops: HashMap<UsageKey, f64>,
    day: i64,
    waiting: BTreeMap<UsageKey, f64>,
    /// Rows left out because the queue was full.
    pub left_out: u64,
}

fn is_largest(measure: &str) -> bool {
    LARGEST.contains(&measure) || measure == "viewers_peak"
}

impl UsageRegistry {
    /// Notes the usage until now, on a day since the Unix epoch. Usage without a team is ignored.
    pub fn note(&mut self, day: i64, homes: &UsageHomes, sources: &[SourceNow], asked: &[(Payer, Consumed)]) {
        if day != self.day {
            self.tops.clear();
            self.day = day;
        }
        let mut together: HashMap<(String, &'static str), f64> = HashMap::new();
        for source in sources {
            let seen = self.seen.entry(source.key.clone()).or_default();
            let before = std::mem::replace(seen, std::array::from_fn(|i| seen[i].max(source.totals[i])));
            let Some(team) = homes.team_of(&source.key) else { continue };
            let added =
                ADDED.iter().zip(source.totals).zip(before).map(|((m, now), was)| (*m, now.saturating_sub(was)));
            for (measure, value) in added.chain(LARGEST.into_iter().zip(source.largest)) {
                *together.entry((team.to_string(), measure)).or_default() += value as f64;
                self.put((day, team.to_string(), "source", source.key.clone(), measure), value as f64);
            }
        }
        for ((team, measure), value) in together {
            self.put((day, team, "day", String::new(), measure), value);
        }
        for (payer, asked) in asked {
            let Some(team) = homes.team(payer.team.as_deref()) else { continue };
            let values = [
                ("queries", asked.queries as f64),
                ("bytes_out", asked.bytes_out as f64),
                ("viewer_hours", asked.watched.as_secs_f64() / 3_600.0),
                ("viewers_peak", asked.peak as f64),
            ];
            let (kind, subject) = match &payer.key {
                Some(key) => ("key", key.clone()),
                None => ("day", String::new()),
            };
            for (measure, value) in values {
                self.put((day, team.to_string(), kind, subject.clone(), measure), value);
            }
        }
    }

    fn put(&mut self, row: UsageKey, value: f64) {
        let largest = is_largest(row.4);
        // Usually unchanged, and written before.
        if value == 0.0 || (largest && self.tops.get(&row).is_some_and(|top| *top >= value)) {
            return;
        }
        if self.waiting.len() >= MAX_WAITING && !self.waiting.contains_key(&row) {
            self.left_out += 1;
            return;
        }
        let waiting = self.waiting.entry(row).or_default();
        *waiting = if largest { waiting.max(value) } else { *waiting + value };
    }

    /// Rows to be written; none when all are.
    pub fn next(&self) -> Option<Vec<UsageCount>> {
        let some = self.waiting.iter().take(GROUP).map(|((day, team, kind, subject, measure), value)| UsageCount {
            day: *day,
            team: team.clone(),
            kind,
            subject: subject.clone(),
            measure,
            value: *value,
            largest: is_largest(measure),
        });
        let some: Vec<UsageCount> = some.collect();
        (!some.is_empty()).then_some(some)
    }

    /// Removes rows that were written.
    pub fn written(&mut self, some: &[UsageCount]) {
        for count in some {
            let row = (count.day, count.team.clone(), count.kind, count.subject.clone(), count.measure);
            self.waiting.remove(&row);
            if count.largest && count.day == self.day {
                self.tops.insert(row, count.value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn homes() -> UsageHomes {
        UsageHomes::new(
            [("s1".into(), "t1".into()), ("s2".into(), "t1".into()), ("s3".into(), "t2".into())],
            vec!["t1".into(), "t2".into()],
        )
    }

    fn now(key: &str, samples: u64, series: u64) -> SourceNow {
        SourceNow { key: key.into(), totals: [samples, samples * 2, 0, 0], largest: [0, series] }
    }

    /// The rows to be written: `team kind subject measure value`.
    fn rows(registry: &mut UsageRegistry) -> Vec<String> {
        let some = registry.next().unwrap_or_default();
        registry.written(&some);
        some.iter().map(|c| format!("{} {} {} {} {}", c.team, c.kind, c.subject, c.measure, c.value)).collect()
    }

    #[test]
    fn what_machines_send_is_added_and_what_they_have_is_the_most_of_the_day() {
        let mut registry = UsageRegistry::default();
        registry.note(7, &homes(), &[now("s1", 10, 5), now("s2", 1, 4), now("s3", 3, 1), now("gone", 9, 9)], &[]);
        let first = rows(&mut registry);
        for row in ["t1 day  samples 11", "t1 day  series 9", "t1 source s1 samples 10", "t2 day  bytes_in 6"] {
            assert!(first.contains(&row.to_string()), "{row}: {first:?}");
        }
        assert!(!first.iter().any(|row| row.contains("gone") || row.contains("late")), "{first:?}");
        // The same number of series as before: nothing to write. More: the new number.
        registry.note(7, &homes(), &[now("s1", 15, 5), now("s2", 1, 5)], &[]);
        assert_eq!(
            rows(&mut registry),
            [
                "t1 day  bytes_in 10",
                "t1 day  samples 5",
                "t1 day  series 10",
                "t1 source s1 bytes_in 10",
                "t1 source s1 samples 5",
                "t1 source s2 series 5"
            ]
        );
        registry.note(8, &homes(), &[now("s1", 15, 5)], &[]);
        assert_eq!(rows(&mut registry), ["t1 day  series 5", "t1 source s1 series 5"], "another day");
    }

    #[test]
    fn what_is_asked_for_counts_for_team_and_key() {
        let asked = Consumed { queries: 3, bytes_out: 0, watched: Duration::from_secs(1_800), peak: 2 };
        let of = |team: Option<&str>, key: Option<&str>| Payer { team: team.map(Into::into), key: key.map(Into::into) };
        let mut registry = UsageRegistry::default();
        let unknown = (of(Some("removed"), None), asked);
        registry.note(7, &homes(), &[], &[(of(None, None), asked), (of(Some("t2"), Some("k")), asked), unknown]);
        let expected = [
            "t1 day  queries 3",
            "t1 day  viewer_hours 0.5",
            "t1 day  viewers_peak 2",
            "t2 key k queries 3",
            "t2 key k viewer_hours 0.5",
            "t2 key k viewers_peak 2",
        ];
        assert_eq!(rows(&mut registry), expected, "who is in no team counts for the first");
    }

    #[test]
    fn what_cannot_be_written_waits_and_is_bounded() {
        let mut registry = UsageRegistry::default();
        registry.note(7, &homes(), &[now("s1", 10, 0)], &[]);
        registry.note(7, &homes(), &[now("s1", 15, 0)], &[]);
        assert!(rows(&mut registry).contains(&"t1 source s1 samples 15".to_string()));
        let key = |n: u32| Payer { team: None, key: Some(n.to_string()) };
        let many: Vec<_> =
            (0..MAX_WAITING as u32 + 5).map(|n| (key(n), Consumed { queries: 1, ..Consumed::default() })).collect();
        registry.note(7, &homes(), &[], &many);
        assert_eq!((registry.waiting.len(), registry.left_out), (MAX_WAITING, 5));
    }
}
