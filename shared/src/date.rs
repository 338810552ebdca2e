//! Times as people and files write them.

/// The end of the year 9999, milliseconds: a later time is damage.
const MAX_TIME_MS: f64 = 253_402_300_799_999.0;

/// Milliseconds of a number of seconds since the Unix epoch or a run's start.
pub fn from_seconds(seconds: f64) -> Option<i64> {
    let ms = (seconds * 1000.0).round();
    (0.0..=MAX_TIME_MS).contains(&ms).then_some(ms as i64)
}

/// Milliseconds since the Unix epoch of a text: seconds, milliseconds (numbers too large for seconds), or a
/// [date](from_date).
pub fn from_text(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        let is_ms = number >= 1e11;
        return from_seconds(if is_ms { number / 1000.0 } else { number });
    }
    from_date(text)
}

/// Milliseconds since the Unix epoch of a date and time as in RFC 3339. A blank may replace the T, and a missing zone
/// is UTC.
pub fn from_date(text: &str) -> Option<i64> {
    let (date, rest) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' ')) {
        return None;
    }
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let day = self::day(parts.next()??, parts.next()??, parts.next()??)?;
    let zone = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone);
    let mut parts = time.split(':');
    let hour = parts.next()?.parse::<i64>().ok()?;
    let minute = parts.next()?.parse::<i64>().ok()?;
    let second = parts.next().map_or(Some(0.0), |part| part.trim_end().parse::<f64>().ok())?;
    let fits = (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..61.0).contains(&second);
    let offset = match zone.as_bytes() {
        [] | [b'Z' | b'z', ..] => 0,
        [sign, ..] => {
            let digits: String = zone[1..].chars().filter(char::is_ascii_digit).collect();
            let hours = digits.get(..2)?.parse::<i64>().ok()?;
            let minutes = digits.get(2..4).map_or(Some(0), |m| m.parse::<i64>().ok())?;
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
    };
    let ms = ((day * 24 + hour) * 60 + minute - offset) * 60_000 + (second * 1000.0).round() as i64;
    (fits && ms >= 0).then_some(ms)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, from then to the end of the year 9999; None for a day that
/// does not exist, such as the 31st of April.
pub fn day(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // With years that begin in March, the leap day is the last day.
    let (shifted, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = shifted / 4 - shifted / 100 + shifted / 400;
    let number = shifted * 365 + leaps + (from_march * 153 + 2) / 5 + day - 1 - 719_468;
    // A day after the last of a month becomes one of the next month.
    (civil(number) == (year, month, day)).then_some(number)
}

/// Year, month and day of a day, counted from 1970-01-01, in the Gregorian calendar.
pub fn civil(day: i64) -> (i64, i64, i64) {
    // Years begin in March here, too.
    let shifted = day + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// An instant as people read it, `2024-05-01 12:34:56` in UTC; milliseconds since the Unix epoch.
pub fn text(ms: i64) -> String {
    let second = ms.rem_euclid(86_400_000) / 1_000;
    let (year, month, day) = civil(ms.div_euclid(86_400_000));
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for written in ["1970-01-01 00:00:00", "2000-02-29 23:59:59", "2024-05-01 12:34:56", "2026-12-31 00:00:01"] {
            assert_eq!(from_text(written).map(text).as_deref(), Some(written));
        }
    }

    #[test]
    fn each_day_is_the_one_after_the_day_before() {
        let mut before = (1969, 12, 31);
        for number in 0..200_000 {
            let (year, month, of_month) = civil(number);
            let begins = of_month == 1 && (month == before.1 + 1 || (month, year) == (1, before.0 + 1));
            assert!(
                begins || (year, month, of_month) == (before.0, before.1, before.2 + 1),
                "{year}-{month}-{of_month}"
            );
            assert_eq!(day(year, month, of_month), Some(number));
            before = (year, month, of_month);
        }
        assert_eq!((civil(-1), civil(-719_528)), ((1969, 12, 31), (0, 1, 1)));
        assert_eq!([day(2026, 4, 31), day(2026, 2, 29), day(2026, 6, 0), day(1969, 12, 31)], [None; 4]);
    }

    #[test]
    fn times_are_read_in_every_spelling() {
        for (text, ms) in [
            ("1714566896.789", Some(1_714_566_896_789)),
            ("1714566896789", Some(1_714_566_896_789)),
            ("2024-05-01T12:34:56.789Z", Some(1_714_566_896_789)),
            ("2024-05-01 14:34:56.789+02:00", Some(1_714_566_896_789)),
            ("2024-05-01 12:34", Some(1_714_566_840_000)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T00:00:00Z", Some(951_782_400_000)),
            ("2024-13-01T00:00:00Z", None),
            ("2024-04-31T00:00:00Z", None),
            ("2024-02-29T00:00:00Z", Some(1_709_164_800_000)),
            ("2023-02-29T00:00:00Z", None),
            ("2100-02-29T00:00:00Z", None),
            ("2024-05-01", None),
            ("-1", None),
            ("NaN", None),
            ("1e300", None),
            ("", None),
            ("soon", None),
            ("2024-05-01T12:34:56+é", None),
        ] {
            assert_eq!(from_text(text), ms, "{text}");
        }
    }
}
