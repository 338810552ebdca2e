//! Limits of one source: anything beyond them is dropped and counted by its cause.
//!
//! An agent is a stranger with a key: it can forge the numbers of its own source, and nothing else. Messages that
//! arrive too fast are acknowledged late, so the agent waits and loses nothing. Oversized data is dropped, named and
//! counted.

use shared::agent::{self, AgentHello, MAX_FACT_BYTES, MAX_FACTS, MAX_LABELS, MAX_OFFERS, MAX_TEXT_BYTES};
use shared::wire::Check;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum number of links.
pub const MAX_LINKS: usize = 4_096;

pub use shared::wire::MAX_SOURCES;

/// Maximum number of rows of the whole table.
pub const MAX_TABLE_ROWS: usize = 20_000;

/// Maximum memory of one link, bytes: the names of its rows and series, and a slot for each ID up to the highest.
pub const MAX_LINK_BYTES: usize = 8 << 20;

/// Maximum size of the names that one link may send at once, bytes.
const NAME_BYTES_AT_ONCE: usize = 4 << 20;

/// Maximum number of collector checks, and of tried places per check.
pub const MAX_CHECKS: usize = 64;
const MAX_TRIED: usize = 256;

/// Ticks per second, on average over a minute.
const TICKS_A_SECOND: f64 = 10.0;
/// Bytes per second outside of fills, on average over a minute, and the maximum burst.
const BYTES_A_SECOND: f64 = (256 << 10) as f64;
const BYTES_AT_ONCE: f64 = (1 << 20) as f64;
/// Burst of bytes other than ticks, records and fills: rows and series are sent at the begin of a link.
const TOLD_AT_ONCE: f64 = (NAME_BYTES_AT_ONCE + (1 << 20)) as f64;
/// Minimum size for which a message counts, because its processing costs as much.
const LEAST_MESSAGE: usize = 1 << 10;
/// New series per second once the source's first link is older than `SERIES_FREE`, and the maximum burst.
const SERIES_A_SECOND: f64 = 500.0 / 60.0;
const SERIES_AT_ONCE: f64 = 500.0;
const SERIES_FREE: Duration = Duration::from_secs(300);

/// Maximum time of a tick ahead of the hub's clock, milliseconds.
pub const MAX_AHEAD_MS: i64 = 600_000;

/// 2000-01-01 and 2100-01-01, milliseconds since the Unix epoch: other times are invalid.
const YEARS: std::ops::Range<i64> = 946_684_800_000..4_102_444_800_000;

/// Limits that an operator sets.
#[derive(Clone, Copy, Debug)]
pub struct IngestLimits {
    /// Maximum number of series of one source.
    pub series: u32,
    /// Maximum number of one source's own rows.
    pub rows: u32,
}

impl Default for IngestLimits {
    fn default() -> Self {
        IngestLimits { series: 20_000, rows: 2_000 }
    }
}

/// Reason why data of a source was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A sample of a series over the limit of the source.
    Series,
    /// A sample of a series over the rate of new series.
    SeriesRate,
    /// A row over the limit of the source.
    Rows,
    /// A row of the collectors with another kind or unit than theirs.
    RowConflict,
    /// A row or series whose text is too long or holds control characters.
    Text,
    /// An invalid label or fact, or one over the limit.
    Label,
    /// A tick with an impossible time.
    Time,
    /// An invalid record.
    Record,
    /// A block of a fill that is damaged, or was not requested.
    Fill,
    /// A sample, or a column of a fill, of a series that the agent has not named.
    Unnamed,
    /// A column of a fill, or a whole block, that the agent could not read from its disk.
    Damaged,
    /// A message over the rate limit, whose acknowledgment was delayed: nothing is lost.
    Pace,
    /// A link that was refused.
    Link,
    /// A link that was ended for its content: invalid messages, or more data than a link may hold.
    Ended,
    /// A link whose key is invalid, expired or revoked.
    Key,
    /// A link over the rate of new links per second: the agent retries.
    Handshake,
}

impl Cause {
    /// All causes, in the order of their declaration.
    pub const ALL: [Cause; 16] = [
        Cause::Series,
        Cause::SeriesRate,
        Cause::Rows,
        Cause::RowConflict,
        Cause::Text,
        Cause::Label,
        Cause::Time,
        Cause::Record,
        Cause::Fill,
        Cause::Unnamed,
        Cause::Damaged,
        Cause::Pace,
        Cause::Link,
        Cause::Ended,
        Cause::Key,
        Cause::Handshake,
    ];

    /// Its name in `/metrics` and the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Series => "series",
            Cause::SeriesRate => "series_rate",
            Cause::Rows => "rows",
            Cause::RowConflict => "row_conflict",
            Cause::Text => "text",
            Cause::Label => "label",
            Cause::Time => "time",
            Cause::Record => "record",
            Cause::Fill => "fill",
            Cause::Unnamed => "unnamed",
            Cause::Damaged => "damaged",
            Cause::Pace => "pace",
            Cause::Link => "link",
            Cause::Ended => "ended",
            Cause::Key => "key",
            Cause::Handshake => "handshake",
        }
    }
}

/// Counters of dropped items by cause; of one source, or of all.
#[derive(Debug, Default)]
pub struct Refusals([AtomicU64; Cause::ALL.len()]);

impl Refusals {
    /// Counts `n` dropped items.
    pub fn add(&self, cause: Cause, n: u64) {
        self.0[cause as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// Number of items dropped for this cause.
    pub fn count_of(&self, cause: Cause) -> u64 {
        self.0[cause as usize].load(Ordering::Relaxed)
    }

    /// All causes with a nonzero count.
    pub fn all(&self) -> Vec<(String, u64)> {
        let counts = Cause::ALL.iter().map(|cause| (cause.as_str().to_owned(), self.count_of(*cause)));
        counts.filter(|(_, n)| *n > 0).collect()
    }
}

/// Token bucket: a rate per second, and a maximum burst.
#[derive(Debug)]
struct Bucket {
    rate: f64,
    most: f64,
    left: f64,
    at: Duration,
}

impl Bucket {
    fn new(rate: f64, most: f64, now: Duration) -> Self {
        Bucket { rate, most, left: most, at: now }
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.left = (self.left + passed * self.rate).min(self.most);
        self.at = now;
    }

    /// Takes `n` tokens; returns the time until the debt is paid.
    fn take(&mut self, n: f64, now: Duration) -> Duration {
        self.refill(now);
        self.left -= n;
        Duration::from_secs_f64((-self.left).max(0.0) / self.rate)
    }

    /// Takes one token if there is one.
    fn try_take(&mut self, now: Duration) -> bool {
        self.refill(now);
        let there = self.left >= 1.0;
        self.left -= f64::from(u8::from(there));
        there
    }
}

/// Rate limits of one source, over all its links; times are those of the steady clock.
#[derive(Debug)]
pub struct SourcePace {
    began: Duration,
    ticks: Bucket,
    bytes: Bucket,
    told: Bucket,
    series: Bucket,
}

impl SourcePace {
    /// For a source whose first link begins now.
    pub fn new(now: Duration) -> Self {
        SourcePace {
            began: now,
            ticks: Bucket::new(TICKS_A_SECOND, TICKS_A_SECOND * 60.0, now),
            bytes: Bucket::new(BYTES_A_SECOND, BYTES_AT_ONCE, now),
            told: Bucket::new(BYTES_A_SECOND, TOLD_AT_ONCE, now),
            series: Bucket::new(SERIES_A_SECOND, SERIES_AT_ONCE, now),
        }
    }

    /// Counts a message with these ticks and bytes; returns the delay of its acknowledgment.
    pub fn message(&mut self, ticks: u64, bytes: usize, now: Duration) -> Duration {
        self.ticks.take(ticks as f64, now).max(self.bytes.take(bytes as f64, now))
    }

    /// Counts other bytes, without an acknowledgment; returns the time for which the link must not read.
    pub fn count_bytes(&mut self, bytes: usize, now: Duration) -> Duration {
        self.told.take(bytes.max(LEAST_MESSAGE) as f64, now)
    }

    /// Whether one more new series is accepted now.
    pub fn series(&mut self, now: Duration) -> bool {
        now.saturating_sub(self.began) < SERIES_FREE || self.series.try_take(now)
    }
}

/// Usage of a source's limits, over all its links since the start.
#[derive(Debug)]
pub struct Used {
    /// Its rate limits.
    pub pace: SourcePace,
    /// Its own rows in the table, by position, with their versions.
    pub rows: BTreeMap<u16, u64>,
}

impl Used {
    /// For a source whose first link begins now.
    pub fn new(now: Duration) -> Self {
        Used { pace: SourcePace::new(now), rows: BTreeMap::new() }
    }
}

/// Whether a time, milliseconds since the Unix epoch, is plausible at all.
pub fn is_year(t: i64) -> bool {
    YEARS.contains(&t)
}

/// Whether a tick may have this time, milliseconds since the Unix epoch by the hub's clock.
pub fn is_time(t: i64, now: i64, retention: i64) -> bool {
    is_year(t) && t <= now.saturating_add(MAX_AHEAD_MS) && t >= now.saturating_sub(retention)
}

/// Checks a hello: invalid parts are dropped and counted.
///
/// # Errors
/// Reason why the link is refused, one sentence.
pub fn check(hello: &mut AgentHello, refusals: &Refusals) -> Result<(), String> {
    if !(100..=3_600_000).contains(&hello.interval) {
        return Err("the interval of an agent is 100 ms to 1 h".into());
    }
    if hello.offers.len() > MAX_OFFERS {
        return Err(format!("an agent offers at most {MAX_OFFERS} ranges"));
    }
    let rising = hello.offers.iter().all(|offer| offer.first <= offer.last && offer.from <= offer.to)
        && hello.offers.windows(2).all(|pair| pair[0].last < pair[1].first);
    if !rising {
        return Err("the ranges of an agent must rise and not overlap".into());
    }
    hello.retention = hello.retention.max(0);
    for text in [&mut hello.host, &mut hello.version] {
        if !is_fact(text) {
            refusals.add(Cause::Text, 1);
            text.clear();
        }
    }
    hello.facts = facts(std::mem::take(&mut hello.facts), refusals);
    hello.labels = labels(std::mem::take(&mut hello.labels), refusals);
    Ok(())
}

/// Whether a text is valid in a fact.
pub fn is_fact(text: &str) -> bool {
    text.len() <= MAX_FACT_BYTES && agent::is_text(text)
}

/// Whether an agent's report about a collector can be shown.
pub fn is_check(check: &Check) -> bool {
    let texts = [&check.id, &check.found, &check.reason, &check.remedy];
    let fits = |text: &String| text.len() <= MAX_TEXT_BYTES && agent::is_text(text);
    check.tried.len() <= MAX_TRIED && check.tried.iter().chain(texts).all(fits)
}

/// The valid facts.
pub fn facts(facts: Vec<(String, String)>, refusals: &Refusals) -> Vec<(String, String)> {
    sift(facts, MAX_FACTS, |key, value| !key.is_empty() && is_fact(key) && is_fact(value), refusals)
}

/// The valid labels, by key.
pub fn labels(labels: Vec<(String, String)>, refusals: &Refusals) -> Vec<(String, String)> {
    let sound = sift(labels, MAX_LABELS, agent::is_label, refusals);
    sound.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect()
}

fn sift(
    pairs: Vec<(String, String)>,
    most: usize,
    fits: impl Fn(&str, &str) -> bool,
    refusals: &Refusals,
) -> Vec<(String, String)> {
    let all = pairs.len();
    let sound: Vec<_> = pairs.into_iter().filter(|(key, value)| fits(key, value)).take(most).collect();
    refusals.add(Cause::Label, (all - sound.len()) as u64);
    sound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_too_fast_waits_until_it_is_made_up_for() {
        let now = Duration::from_secs(1_000);
        let mut pace = SourcePace::new(now);
        assert_eq!(pace.message(1, 1 << 20, now), Duration::ZERO);
        assert_eq!(pace.message(1, 512 << 10, now), Duration::from_secs(2));
        assert_eq!(pace.message(1, 100, now + Duration::from_secs(60)), Duration::ZERO);
        let mut pace = SourcePace::new(now);
        assert_eq!(pace.message(600, 0, now), Duration::ZERO);
        assert_eq!(pace.message(100, 0, now), Duration::from_secs(10));
    }

    #[test]
    fn of_what_nothing_acknowledges_no_more_is_read_for_a_while() {
        let now = Duration::from_secs(1_000);
        let mut pace = SourcePace::new(now);
        assert_eq!(pace.count_bytes(NAME_BYTES_AT_ONCE, now), Duration::ZERO, "rows and series come at once");
        assert_eq!(pace.count_bytes(1 << 20, now), Duration::ZERO);
        assert_eq!(pace.count_bytes(512 << 10, now), Duration::from_secs(2));
        let mut pace = SourcePace::new(now);
        assert_eq!((0..5 << 10).map(|_| pace.count_bytes(2, now)).max(), Some(Duration::ZERO));
        assert!((0..256).all(|_| pace.count_bytes(2, now) > Duration::ZERO), "short ones count, too");
    }

    #[test]
    fn new_series_are_free_at_first_and_then_500_a_minute() {
        let now = Duration::from_secs(1_000);
        let mut pace = SourcePace::new(now);
        assert!((0..10_000).all(|_| pace.series(now + SERIES_FREE - Duration::from_millis(1))));
        let later = now + SERIES_FREE;
        assert_eq!((0..10_000).filter(|_| pace.series(later)).count(), 500);
        assert_eq!((0..10_000).filter(|_| pace.series(later + Duration::from_secs(30))).count(), 250);
    }

    #[test]
    fn absurd_times_are_none() {
        let now = 1_800_000_000_000;
        let (hour, day) = (3_600_000, 86_400_000);
        assert!(is_time(now, now, hour) && is_time(now - hour, now, hour) && is_time(now + MAX_AHEAD_MS, now, hour));
        for t in [now - hour - 1, now + MAX_AHEAD_MS + 1, 0, i64::MIN, i64::MAX, -1] {
            assert!(!is_time(t, now, hour), "{t}");
        }
        // A hub whose own clock is wrong still refuses implausible years.
        assert!(!is_time(day, day, day) && !is_time(YEARS.end, YEARS.end, hour));
    }

    #[test]
    fn labels_and_facts_that_cannot_be_are_left_out_and_counted() {
        let refusals = Refusals::default();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let given = vec![pair("tier", "gpu"), pair("Tier", "x"), pair("rack", "a\u{1b}[31m"), pair("b", "1")];
        assert_eq!(labels(given, &refusals), [pair("b", "1"), pair("tier", "gpu")]);
        assert_eq!(refusals.all(), [("label".to_owned(), 2)]);
        let many = (0..40).map(|i| pair(&format!("label{i}"), "x")).collect();
        let before = refusals.count_of(Cause::Label);
        assert_eq!(labels(many, &refusals).len(), MAX_LABELS);
        assert_eq!(refusals.count_of(Cause::Label) - before, 8, "what is beyond the 32nd");
        let refusals = Refusals::default();
        refusals.add(Cause::Label, 2);
        let many = (0..100).map(|i| pair(&format!("fact {i}"), "x")).collect();
        assert_eq!(facts(many, &refusals).len(), MAX_FACTS);
        assert_eq!(refusals.count_of(Cause::Label), 2 + 36);
    }
}
