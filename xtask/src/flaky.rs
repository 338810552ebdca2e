//! Flaky tests: `tests/flaky.txt` lists those that may be repeated, each with its day of entry.

use crate::paths;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of tests in the list.
const MAX_TESTS: usize = 10;
/// Maximum time of a test in the list, in days.
const MAX_DAYS: i64 = 14;

/// A row of the list.
#[derive(Debug, PartialEq)]
pub struct Flaky {
    /// Full name of the test, as the test runner prints it.
    pub name: String,
    /// Day of its entry, in days since 1970-01-01.
    since: i64,
}

/// The tests that may be repeated. An error when the list is too long, or a row of it is too old or cannot be read.
pub fn list() -> Result<Vec<Flaky>, String> {
    let text = paths::read(&paths::root().join("tests").join("flaky.txt"))?;
    #[allow(clippy::disallowed_methods, reason = "the age of a row is told by the day; the ban is for the product")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
    judged(&text, now as i64)
}

/// The rows of a list, checked on a day.
fn judged(text: &str, today: i64) -> Result<Vec<Flaky>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let list = lines.map(row).collect::<Result<Vec<_>, _>>()?;
    if list.len() > MAX_TESTS {
        return Err(format!(
            "tests/flaky.txt names {} tests; at most {MAX_TESTS} may stand there: mend some",
            list.len()
        ));
    }
    match list.iter().find(|flaky| !(0..=MAX_DAYS).contains(&(today - flaky.since))) {
        Some(old) => Err(format!(
            "{} stands in tests/flaky.txt for {} days; {MAX_DAYS} are allowed: mend it",
            old.name,
            today - old.since
        )),
        None => Ok(list),
    }
}

/// Reads `NAME YYYY-MM-DD REASON`.
fn row(line: &str) -> Result<Flaky, String> {
    let wrong = || format!("tests/flaky.txt: `{line}` is not NAME YYYY-MM-DD REASON");
    let mut words = line.splitn(3, ' ');
    let (name, day, reason) = (words.next().unwrap_or_default(), words.next(), words.next().unwrap_or_default());
    let since = day.and_then(days).ok_or_else(wrong)?;
    if reason.trim().is_empty() { Err(wrong()) } else { Ok(Flaky { name: name.to_owned(), since }) }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days(day: &str) -> Option<i64> {
    let mut numbers = day.split('-').map(|number| number.parse::<i64>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    if numbers.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // In years that begin in March, the leap day is last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::{MAX_TESTS, days, judged, list};

    #[test]
    fn the_list_is_short_and_young() {
        list().expect("tests/flaky.txt holds");
    }

    #[test]
    fn an_old_row_a_long_list_and_an_unread_row_are_refused() {
        let today = days("2026-11-27").expect("a day");
        let names = |text: &str| judged(text, today).map(|list| list.into_iter().map(|f| f.name).collect::<Vec<_>>());
        assert_eq!(names("# nothing\n\n"), Ok(vec![]));
        assert_eq!(names("a::b 2026-11-13 waits for a shell\n"), Ok(vec!["a::b".to_owned()]));
        assert!(names("a::b 2026-11-12 waits for a shell").is_err_and(|why| why.contains("15 days")));
        assert!(names("a::b 2026-11-28 of tomorrow").is_err());
        assert!(names("a::b 2026-11-27").is_err_and(|why| why.contains("REASON")));
        assert!(names("a::b yesterday why").is_err());
        let row = |n: usize| format!("a::b{n} 2026-11-27 why\n");
        assert!(names(&(0..MAX_TESTS).map(row).collect::<String>()).is_ok());
        assert!(names(&(0..=MAX_TESTS).map(row).collect::<String>()).is_err_and(|why| why.contains("11 tests")));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!([days("1970-01-01"), days("2000-03-01"), days("2026-11-27")], [Some(0), Some(11_017), Some(20_784)]);
        assert_eq!([days("2026-13-01"), days("2026-1"), days("x")], [None; 3]);
    }
}
