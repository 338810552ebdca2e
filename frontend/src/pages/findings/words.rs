//! Findings in words, by the clock of their reader.

use crate::browser::{now, offset};
use charts::axis;
use shared::finding::{Finding, next_line};
use viewer::findings::words::split;
pub use viewer::findings::words::{kind, lasted, place, shape, shape_of, span, waits};

const DAY_MS: i64 = 86_400_000;

/// The clock of an instant in seconds since the epoch, in the zone of the reader, as `14:04`; with its day where that
/// is not today.
pub fn clock(t: i64, seconds: bool) -> String {
    let (local, today) = (t * 1_000 + offset(t * 1_000), now() + offset(now()));
    let clock = axis::clock(local, seconds);
    match local.div_euclid(DAY_MS) {
        day if day == today.div_euclid(DAY_MS) => clock,
        day => format!("{} {clock}", axis::date(day)),
    }
}

/// The sentence on the page: its first clause, and the rest.
pub fn split_sentence(finding: &Finding) -> (String, String) {
    split(&finding.told_at(|since| clock(since, false)))
}

/// Begin and duration: `since 14:01, 6 min`, or `14:01 to 14:07, 6 min`.
pub fn times(finding: &Finding, now: i64, seconds: bool) -> String {
    let (began, lasted) = (clock(finding.since, seconds), lasted(finding, now));
    match finding.until {
        None => format!("since {began}, {lasted}"),
        Some(until) => format!("{began} to {}, {lasted}", clock(until, seconds)),
    }
}

/// The next step as a line; empty if there is none.
pub fn next(finding: &Finding) -> String {
    next_line(&finding.next).unwrap_or_default()
}

/// The second line: severity, kind, begin, duration, and the waiting machines.
pub fn below(finding: &Finding, now: i64) -> String {
    let waits = waits(finding);
    let waits = if waits.is_empty() { String::new() } else { format!("; {waits}") };
    let word = if finding.dismissed.is_some() { "marked as wrong" } else { finding.severity.as_str() };
    format!("{word}: {}, {}{waits}", kind(&finding.kind), times(finding, now, false))
}
