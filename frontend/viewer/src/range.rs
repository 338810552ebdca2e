//! Reads the spans that a person types: `90s`, `14:00-14:20`, `yesterday 14:00-15:00`, ISO or Unix times. It also
//! writes the names of windows, which can be read again. It works on text alone.

use shared::unit::instant::{self, Resolved, Typed};
pub use shared::unit::instant::{seconds, since_epoch};
use shared::unit::time;
use shared::window::MAX_SAMPLES_SPAN_MS;

/// The shortest window in ms.
pub const MIN_WINDOW_MS: i64 = 5_000;
/// The longest window in ms, if history is stored that long. A page can hold the minutes of such a window.
pub const MAX_WINDOW_MS: i64 = 31 * DAY_MS;
const DAY_MS: i64 = 86_400_000;

/// The span that a person requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The newest span of this length in ms.
    Last(i64),
    /// Start and end, ms since the epoch.
    Span(i64, i64),
    /// An instant, ms since the epoch, shown in the middle of a window of the present length.
    At(i64),
}

/// The longest window in ms for a history of `retention` ms.
pub fn longest(retention: i64) -> i64 {
    retention.clamp(MAX_SAMPLES_SPAN_MS, MAX_WINDOW_MS)
}

/// The name of a window of `ms` ms: `90s`, `5m`, `1h30m`, `7d`. It is rounded to whole seconds.
pub fn name(ms: i64) -> String {
    let s = (ms + 500) / 1000;
    if s < 120 && s != 60 {
        return format!("{s}s");
    }
    let parts = [(s / 86_400, 'd'), (s / 3600 % 24, 'h'), (s / 60 % 60, 'm'), (s % 60, 's')];
    parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect()
}

/// Reads a length like `90s`, `1h30m` or `2 h` as ms; None when the text is no length.
pub fn length(text: &str) -> Option<i64> {
    time::read(text)
}

/// Reads a typed span. `now` is ms since the epoch, `longest` the longest window in ms; `local` gives local time minus
/// UTC at an instant, in ms.
///
/// # Errors
/// A sentence with the accepted forms.
pub fn read(text: &str, now: i64, longest: i64, local: &dyn Fn(i64) -> i64) -> Result<Asked, String> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(ms) = newest(&text) {
        return fits(ms, longest).map(|()| Asked::Last(ms));
    }
    let clock = Clock { now, local };
    if let Some((from, to)) = clock.span(&text) {
        if to <= from {
            return Err("the end is before the beginning".into());
        }
        return fits(to - from, longest).map(|()| Asked::Span(from, to));
    }
    // A number alone is more often a search than a Unix time.
    let is_number = since_epoch(&text).is_some();
    let time = match text.as_str() {
        "this week" => clock.time("monday", None).map(|monday| Resolved { to: now, ..monday }),
        _ => clock.time(&text, None),
    };
    match time.filter(|_| !is_number && text != "now") {
        Some(day) if day.from < day.to => clock.kept(day, longest),
        Some(at) => Ok(Asked::At(at.past(now).from)),
        None => {
            Err("write 90s, 14:05, 2:15pm, yesterday, 14:00-14:20, last 3 hours or 2026-11-21T14:00/2026-11-21T14:20"
                .into())
        }
    }
}

/// The length of a text such as `5m`, `-5m`, `now-5m`, `last 3 hours` or `the last hour`, ms.
fn newest(text: &str) -> Option<i64> {
    let text = text.strip_prefix("the ").unwrap_or(text);
    let begins = ["last ", "past ", "previous ", "now-", "now -", "-", "last"];
    let bare = begins.iter().find_map(|begin| text.strip_prefix(begin)).unwrap_or(text).trim();
    length(bare).or_else(|| length(&format!("1 {bare}")).filter(|_| bare != text && bare.len() > 2))
}

/// Parses times of a wall clock.
struct Clock<'a> {
    now: i64,
    local: &'a dyn Fn(i64) -> i64,
}

impl Clock<'_> {
    /// Reads two times with a sign or a word between them, or one with "since", whose end is now.
    fn span(&self, text: &str) -> Option<(i64, i64)> {
        if let Some(begin) = ["since ", "after "].iter().find_map(|word| text.strip_prefix(word)) {
            return Some((self.time(begin, None)?.past(self.now).from, self.now));
        }
        let text = ["from ", "between "].iter().find_map(|word| text.strip_prefix(word)).unwrap_or(text);
        for separator in ["..", "–", "—", " to ", " until ", " till ", " and ", "/", "-"] {
            for (i, _) in text.match_indices(separator) {
                let (left, right) = (text[..i].trim(), text[i + separator.len()..].trim());
                let spans = complete(left, right).into_iter().filter_map(|left| self.read_pair(&left, right));
                // The meaning of the left one that is nearest to the right one.
                let span = spans.min_by_key(|(from, to)| (to <= from, to - from));
                if span.is_some() {
                    return span;
                }
            }
        }
        None
    }

    /// Reads begin and end of a span. A zone or a day that only one of them has is that of both.
    fn read_pair(&self, left: &str, right: &str) -> Option<(i64, i64)> {
        let (left, right) = (instant::read(left)?, instant::read(right)?);
        let (left, right) = (left.in_zone_of(right), right.in_zone_of(left));
        // A span without a day that would begin after now was yesterday.
        let from = self.resolve(left, None).past(self.now).from;
        let to = self.resolve(right, Some(from));
        if to.to >= from {
            return Some((from, to.to));
        }
        if let Some((_, next)) = to.neighbors {
            // A span like 23:50-00:10 crosses midnight.
            return Some((from, next));
        }
        // The day of `14:00-15:00 yesterday` is that of its begin, too.
        let near = self.resolve(left, Some(to.from));
        let begin = near.neighbors.map_or(from, |_| near.past(to.to).from);
        Some((begin, to.to))
    }

    /// Reads one time. Without a day it is on the day of `near`, or today for None.
    fn time(&self, text: &str, near: Option<i64>) -> Option<Resolved> {
        Some(self.resolve(instant::read(text)?, near))
    }

    fn resolve(&self, typed: Typed, near: Option<i64>) -> Resolved {
        typed.resolve(self.now, self.local, near)
    }

    /// The part of a day within the longest window.
    fn kept(&self, day: Resolved, longest: i64) -> Result<Asked, String> {
        let to = day.to.min(self.now);
        let from = day.from.max(self.now - longest);
        if to - from < MIN_WINDOW_MS {
            return Err(format!("history is kept for {}, and that day lies outside of it", name(longest)));
        }
        Ok(Asked::Span(from, to))
    }
}

/// The texts that the left of two times may stand for: `2-3pm` says once what is true of both.
fn complete(left: &str, right: &str) -> Vec<String> {
    let says = |text: &str| ["am", "a.m.", "pm", "p.m."].iter().any(|half| text.contains(half));
    let halves: &[&str] = if says(right) && !says(left) { &["am", "pm", ""] } else { &[""] };
    halves.iter().map(|half| format!("{left}{half}")).collect()
}

fn fits(ms: i64, longest: i64) -> Result<(), String> {
    let fits = (MIN_WINDOW_MS..=longest).contains(&ms);
    if fits { Ok(()) } else { Err(format!("a window is 5s to {} long", name(longest))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::window;

    /// This is 2026-11-21 15:40:00 UTC; local time is one hour ahead.
    const NOW: i64 = 1_795_275_600_000;

    fn ask(text: &str) -> Result<Asked, String> {
        read(text, NOW, MAX_SAMPLES_SPAN_MS, &|_| 3_600_000)
    }

    fn span(from: i64, to: i64) -> Result<Asked, String> {
        Ok(Asked::Span(from, to))
    }

    #[test]
    fn names_of_windows_read_back() {
        for ms in [5_000, 60_000, 90_000, 119_000, 300_000, 3_661_000, 5_400_000, 43_200_000, 86_400_000, 694_800_000] {
            assert_eq!(length(&name(ms)), Some(ms), "{}", name(ms));
        }
        assert!(window::choices(i64::MAX).all(|w| name(w.ms) == w.name));
        assert_eq!(
            (length("1h 30m"), length("90"), length("m"), length("99999999999999h")),
            (Some(5_400_000), None, None, None)
        );
    }

    #[test]
    fn a_span_is_typed_as_people_write_it() {
        let midnight = NOW - (15 * 60 + 40) * 60_000 - 3_600_000;
        let at = |h: i64, m: i64| midnight + (h * 60 + m) * 60_000;
        assert_eq!(ask("90s"), Ok(Asked::Last(90_000)));
        assert_eq!(ask("last 1h30m"), Ok(Asked::Last(5_400_000)));
        assert_eq!((ask("-30m"), ask("last hour")), (Ok(Asked::Last(1_800_000)), Ok(Asked::Last(3_600_000))));
        assert_eq!((ask("14:05"), ask("yesterday 9:00")), (Ok(Asked::At(at(14, 5))), Ok(Asked::At(at(9, 0) - DAY_MS))));
        assert_eq!(ask("23:50"), Ok(Asked::At(at(23, 50) - DAY_MS)), "not ahead of now");
        assert_eq!(ask("14:00-14:20"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask(" 14:00 – 14:20:30 "), span(at(14, 0), at(14, 20) + 30_000));
        assert_eq!(ask("yesterday 14:00-15:00"), span(at(14, 0) - DAY_MS, at(15, 0) - DAY_MS));
        assert_eq!(ask("yesterday 23:50-00:10"), span(at(23, 50) - DAY_MS, at(0, 10)));
        assert_eq!(ask("23:50-23:55"), span(at(23, 50) - DAY_MS, at(23, 55) - DAY_MS), "not ahead of now");
        assert_eq!(ask("16:00 to now"), span(at(16, 0), NOW));
        assert_eq!(ask("2026-11-21T14:00/2026-11-21T14:20"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask("2026-11-21t13:00z-13:20z"), span(at(14, 0), at(14, 20)));
        assert_eq!(ask("2026-11-20 14:00 - 2026-11-20 14:20"), span(at(14, 0) - DAY_MS, at(14, 20) - DAY_MS));
        assert_eq!(ask("1795271000-1795271600.5"), span(1_795_271_000_000, 1_795_271_600_500));
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let midnight = NOW - (15 * 60 + 40) * 60_000 - 3_600_000;
        let at = |h: i64, m: i64| midnight + (h * 60 + m) * 60_000;
        for (text, ms) in [("10 min", 600_000), ("last 3 hours", 3 * 3_600_000), ("now-1h", 3_600_000)] {
            assert_eq!(ask(text), Ok(Asked::Last(ms)), "{text}");
        }
        for (text, ms) in [("past hour", 3_600_000), ("the last minute", 60_000), ("last 90s", 90_000)] {
            assert_eq!(ask(text), Ok(Asked::Last(ms)), "{text}");
        }
        assert_eq!(
            (ask("5 minutes ago"), ask("an hour ago")),
            (Ok(Asked::At(NOW - 300_000)), Ok(Asked::At(NOW - 3_600_000)))
        );
        for text in
            ["2:15pm", "2:15 pm", "14:15", "today 2:15pm", "today at 14:15", "saturday 2:15pm", "13:15 utc", "13:15z"]
        {
            assert_eq!(ask(text), Ok(Asked::At(at(14, 15))), "{text}");
        }
        assert_eq!((ask("12am"), ask("12:30 pm")), (Ok(Asked::At(at(0, 0))), Ok(Asked::At(at(12, 30)))));
        assert_eq!((ask("noon"), ask("fri 9:00")), (Ok(Asked::At(at(12, 0))), Ok(Asked::At(at(9, 0) - DAY_MS))));
        assert_eq!(ask("6pm"), Ok(Asked::At(at(18, 0) - DAY_MS)), "not ahead of now");
        for text in ["now-2h to now-1h", "now-2h..now-1h", "2h ago - 1h ago", "from 2 hours ago until an hour ago"] {
            assert_eq!(ask(text), span(NOW - 2 * 3_600_000, NOW - 3_600_000), "{text}");
        }
        assert_eq!(ask("2pm-3:30pm"), span(at(14, 0), at(15, 30)));
        for text in ["2-3pm", "2:00-3:00 p.m.", "between 2 and 3 pm", "2pm – 3pm", "13:00-14:00 utc", "13:00–14:00z"]
        {
            assert_eq!(ask(text), span(at(14, 0), at(15, 0)), "{text}");
        }
        for text in ["14:00-15:00 yesterday", "yesterday 2-3pm", "2pm till 3pm friday", "20 Nov 14:00 to 20 Nov 15:00"]
        {
            assert_eq!(ask(text), span(at(14, 0) - DAY_MS, at(15, 0) - DAY_MS), "{text}");
        }
        for text in
            ["1-2pm utc", "10am-11am utc-3", "18:30 – 19:30 utc+5:30", "13:00 utc - 14:00", "15:00-16:00 +02:00"]
        {
            assert_eq!(ask(text), span(at(14, 0), at(15, 0)), "{text}");
        }
        assert_eq!(ask("11-1pm"), span(at(11, 0), at(13, 0)));
        assert_eq!(ask("11-1am"), span(at(23, 0) - DAY_MS, at(1, 0)));
        assert_eq!(ask("23:50-00:10 yesterday"), span(at(23, 50) - 2 * DAY_MS, at(0, 10) - DAY_MS));
        assert_eq!(ask("since 14:00"), span(at(14, 0), NOW));
        assert_eq!(ask("previous hour"), Ok(Asked::Last(3_600_000)));
        assert_eq!(ask("02:30..02:40"), span(at(2, 30), at(2, 40)));
    }

    #[test]
    fn a_day_is_what_is_kept_of_it() {
        let midnight = NOW - (15 * 60 + 40) * 60_000 - 3_600_000;
        let days = |text: &str, longest| read(text, NOW, longest, &|_| 3_600_000);
        let week = longest(7 * DAY_MS);
        assert_eq!(days("yesterday", week), span(midnight - DAY_MS, midnight));
        assert_eq!(
            (days("2026-11-20", week), days("friday", week)),
            (days("yesterday", week), days("yesterday", week))
        );
        assert_eq!((days("today", week), days("2026-11-21", week)), (span(midnight, NOW), span(midnight, NOW)));
        assert_eq!(days("2026-11-19 - 2026-11-20", week), span(midnight - 2 * DAY_MS, midnight));
        assert_eq!((days("1w", week), days("last week", week)), (Ok(Asked::Last(7 * DAY_MS)), days("1w", week)));
        assert_eq!(days("this week", week), span(midnight - 5 * DAY_MS, NOW));
        assert_eq!(days("23:50-now", week), span(midnight - 600_000, NOW), "now is not of yesterday");
        assert_eq!(days("since yesterday", week), span(midnight - DAY_MS, NOW));
        assert_eq!((days("last friday", week), days("20 nov", week)), (days("friday", week), days("friday", week)));
        assert_eq!(ask("today"), span(NOW - MAX_SAMPLES_SPAN_MS, NOW), "12 h are kept");
        for text in ["yesterday", "2026-11-27", "2020-01-01"] {
            assert!(ask(text).is_err_and(|why| why.contains("history is kept for 12h")), "{text}");
        }
    }

    #[test]
    fn words_of_a_search_are_no_times() {
        for text in [
            "oom",
            "gpu 0",
            "m",
            "last",
            "ago",
            "may",
            "14",
            "1795271000",
            "at",
            "monthly",
            "sun gpu",
            "now",
            "é2pm",
            "13pm",
            "0am",
        ] {
            assert!(ask(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_answered_with_what_is_one() {
        for text in ["", "soon", "25:00-26:00", "14:00-", "2026-02-40T1:00/2:00"] {
            assert!(ask(text).is_err_and(|e| e.contains("90s")), "{text}");
        }
        assert_eq!(read("7d", NOW, longest(8 * DAY_MS), &|_| 0), Ok(Asked::Last(7 * DAY_MS)));
        assert!(read("9d", NOW, longest(8 * DAY_MS), &|_| 0).is_err_and(|e| e.contains("5s to 8d")));
        for text in ["1s", "13h", "14:00-14:00:02"] {
            assert!(ask(text).is_err_and(|e| e.contains("5s to 12h")), "{text}");
        }
    }
}
