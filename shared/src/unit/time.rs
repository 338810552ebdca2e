//! Lengths of time: for people, `2 h 5 min`, and as typed, `2h5m`.

use super::fixed;

/// A second, a minute, an hour and a day, milliseconds.
pub const SECOND: i64 = 1_000;
#[allow(missing_docs, reason = "see SECOND")]
pub const MINUTE: i64 = 60 * SECOND;
#[allow(missing_docs, reason = "see SECOND")]
pub const HOUR: i64 = 60 * MINUTE;
#[allow(missing_docs, reason = "see SECOND")]
pub const DAY: i64 = 24 * HOUR;
#[allow(missing_docs, reason = "see SECOND")]
pub const WEEK: i64 = 7 * DAY;

/// From this age on, hours are left out.
const DAYS_ALONE: i64 = 4 * DAY;

/// The steps of a length of time, the largest first: the displayed name, the typed name, and its milliseconds.
const STEPS: [(&str, &str, i64); 5] =
    [("d", "d", DAY), ("h", "h", HOUR), ("min", "m", MINUTE), ("s", "s", SECOND), ("ms", "ms", 1)];

/// Other spellings that people type for a step, singular; an `s` may follow.
const OTHER_SPELLINGS: [(&str, i64); 11] = [
    ("sec", SECOND),
    ("second", SECOND),
    ("min", MINUTE),
    ("minute", MINUTE),
    ("hr", HOUR),
    ("hour", HOUR),
    ("day", DAY),
    ("w", WEEK),
    ("week", WEEK),
    ("millisecond", 1),
    ("msec", 1),
];

/// The milliseconds of a step by its typed name.
fn step_of(name: &str) -> Option<i64> {
    let known = STEPS.iter().find(|(word, letter, _)| [*word, *letter].contains(&name)).map(|(.., step)| *step);
    known.or_else(|| {
        let singular = name.strip_suffix('s').unwrap_or(name);
        OTHER_SPELLINGS.iter().find(|(other, _)| *other == singular).map(|(_, step)| *step)
    })
}

/// The nonzero numbers of a length in its steps: at most `most` steps from its largest one on.
fn parts(ms: i64, most: usize) -> impl Iterator<Item = (i64, &'static (&'static str, &'static str, i64))> {
    let ms = ms.max(0);
    let first = STEPS.iter().position(|(.., step)| ms >= *step).unwrap_or(STEPS.len() - 2);
    let mut rest = ms;
    let numbers = STEPS[first..].iter().take(most).map(move |step| {
        let number = rest / step.2;
        rest %= step.2;
        (number, step)
    });
    numbers.filter(move |(number, (.., step))| *number > 0 || ms == 0 && *step == SECOND)
}

fn written(ms: i64, most: usize) -> String {
    parts(ms, most).map(|(number, (word, ..))| format!("{number} {word}")).collect::<Vec<_>>().join(" ")
}

/// A measured length, in its two largest steps: `850 ms`, `9.3 s`, `41 s`, `6 min 12 s`, `2 h 5 min`, `3 d 4 h`.
/// Milliseconds; below 0 it is 0 s.
pub fn duration(ms: i64) -> String {
    match ms {
        1_000..9_950 if ms % SECOND != 0 => {
            let text = fixed(ms as f64 / SECOND as f64, 1);
            format!("{} s", text.strip_suffix(".0").unwrap_or(&text))
        }
        1_000..60_000 => written((ms + SECOND / 2) / SECOND * SECOND, 2),
        _ => written(ms, 2),
    }
}

/// A rounded length, for an age or a remaining time: `40 s`, `1 min 30 s`, `6 min`, `2 h 5 min`, `7 d`. Its format is
/// that of [`duration`], in whole seconds, without seconds from two minutes on, and without hours from four days on.
/// Milliseconds; below 0 it is 0 s.
pub fn rough_duration(ms: i64) -> String {
    let whole = (ms.max(0) + SECOND / 2) / SECOND * SECOND;
    match whole {
        DAYS_ALONE.. => written(whole, 1),
        HOUR.. => written(whole, 2),
        _ if whole >= 2 * MINUTE => written(whole, 1),
        _ => written(whole, 2),
    }
}

/// A configured length, with nothing left out: `90 s` is `1 min 30 s`. Milliseconds.
pub fn set(ms: i64) -> String {
    written(ms, STEPS.len())
}

/// A length as it is typed and parsed: with the largest step that leaves a whole number, `12h`, `90s`, `100ms`.
pub fn typed(ms: i64) -> String {
    let of = |(.., step): &&(&str, &str, i64)| ms != 0 && ms % step == 0;
    let (_, letter, step) = STEPS.iter().find(of).unwrap_or(&STEPS[3]);
    format!("{}{letter}", ms / step)
}

/// Parses a length as people type it or as it is displayed: numbers, whole or decimal, each with its step: `90s`,
/// `1.5h`, `1h30m`, `2 min 5 s`, `3 hours`, `1w`, `100ms`. Whole milliseconds; None for other text, for part of a
/// millisecond, and above 285,000 years.
pub fn read(text: &str) -> Option<i64> {
    let (mut rest, mut sum) = (text.trim(), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let step = step_of(&rest[..letters])?;
        rest = rest[letters..].trim_start();
        sum += number * step as f64;
    }
    (sum.fract() == 0.0 && sum <= 9e15).then_some(sum as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_written_in_its_two_largest_steps() {
        for (ms, text) in [
            (-5, "0 s"),
            (0, "0 s"),
            (5, "5 ms"),
            (850, "850 ms"),
            (1_000, "1 s"),
            (1_040, "1 s"),
            (9_340, "9.3 s"),
            (9_960, "10 s"),
            (41_400, "41 s"),
            (59_800, "1 min"),
            (60_000, "1 min"),
            (90_000, "1 min 30 s"),
            (372_900, "6 min 12 s"),
            (HOUR, "1 h"),
            (2 * HOUR + 5 * MINUTE + 59_000, "2 h 5 min"),
            (DAY, "1 d"),
            (3 * DAY + 4 * HOUR + MINUTE, "3 d 4 h"),
            (400 * DAY, "400 d"),
        ] {
            assert_eq!(duration(ms), text, "{ms}");
        }
    }

    #[test]
    fn an_age_has_no_more_than_matters() {
        for (ms, text) in [
            (-5, "0 s"),
            (499, "0 s"),
            (1_500, "2 s"),
            (90_000, "1 min 30 s"),
            (119_400, "1 min 59 s"),
            (372_900, "6 min"),
            (2 * HOUR + 5 * MINUTE + 59_000, "2 h 5 min"),
            (3 * DAY + 4 * HOUR, "3 d 4 h"),
            (7 * DAY + 4 * HOUR, "7 d"),
        ] {
            assert_eq!(rough_duration(ms), text, "{ms}");
        }
    }

    #[test]
    fn a_length_that_is_set_leaves_nothing_out() {
        assert_eq!([90_000, HOUR, DAY + 1_500].map(set), ["1 min 30 s", "1 h", "1 d 1 s 500 ms"]);
        assert_eq!([0, 100, 90_000, 12 * HOUR, 36 * HOUR].map(typed), ["0s", "100ms", "90s", "12h", "36h"]);
    }

    #[test]
    fn a_length_is_read_in_every_spelling() {
        for (text, ms) in [
            ("90s", Some(90_000)),
            (" 1h30m ", Some(90 * MINUTE)),
            ("1 h 30 min", Some(90 * MINUTE)),
            ("1.5h", Some(90 * MINUTE)),
            ("100ms", Some(100)),
            ("0s", Some(0)),
            ("0.5ms", None),
            ("90", None),
            ("m", None),
            ("1h30", None),
            ("-1h", None),
            ("1w", Some(WEEK)),
            ("10 minutes", Some(10 * MINUTE)),
            ("1 hour 5 mins", Some(HOUR + 5 * MINUTE)),
            ("2 weeks 1 day", Some(15 * DAY)),
            ("3 hrs", Some(3 * HOUR)),
            ("1 month", None),
            ("1.2.3s", None),
            ("99999999999999h", None),
            ("2é", None),
            ("", None),
        ] {
            assert_eq!(read(text), ms, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_set_comes_back(ms in 0..400 * DAY) {
            proptest::prop_assert_eq!(read(&set(ms)), Some(ms));
            proptest::prop_assert_eq!(read(&typed(ms)), Some(ms));
        }

        #[test]
        fn a_measured_length_is_off_by_less_than_its_last_step(ms in 0..400 * DAY) {
            let (fine, rough) = (read(&duration(ms)), read(&rough_duration(ms)));
            proptest::prop_assert!(fine.is_some_and(|read| (read - ms).abs() <= (ms / 20).max(50)), "{fine:?}");
            proptest::prop_assert!(rough.is_some_and(|read| (read - ms).abs() <= (ms / 2).max(500)), "{rough:?}");
        }
    }
}
