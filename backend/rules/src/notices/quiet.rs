//! Quiet hours of a channel, in local time of a zone.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use shared::alert::Quiet;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Maximum number of consecutive spans without a pause: enough for one a day of a week.
const MAX_SPANS: usize = 16;

#[derive(Clone, Debug)]
struct Span {
    /// Weekdays on which it begins, Monday first.
    days: [bool; 7],
    from: Time,
    to: Time,
}

/// The hours of a channel.
#[derive(Clone, Debug)]
pub struct Hours {
    spans: Vec<Span>,
    zone: TimeZone,
}

fn time(text: &str) -> Result<Time, String> {
    let wrong = || format!("quiet: {text:?} is not a time of day: write it like 22:00");
    let (hour, minute) = text.split_once(':').ok_or_else(wrong)?;
    if minute.len() != 2 {
        return Err(wrong());
    }
    Time::new(hour.parse().map_err(|_| wrong())?, minute.parse().map_err(|_| wrong())?, 0, 0).map_err(|_| wrong())
}

fn days(text: &str) -> Result<[bool; 7], String> {
    let wrong = || format!("quiet: {text:?} is not a range of days: write it like mon-fri or sat,sun");
    let one = |day: &str| DAYS.iter().position(|d| *d == day.trim().to_ascii_lowercase()).ok_or_else(wrong);
    if text.trim().is_empty() {
        return Ok([true; 7]);
    }
    let mut all = [false; 7];
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (one(first)?, one(last)?),
            None => (one(part)?, one(part)?),
        };
        let mut day = first;
        all[day] = true;
        while day != last {
            day = (day + 1) % 7;
            all[day] = true;
        }
    }
    Ok(all)
}

impl Hours {
    /// Parses quiet hours.
    ///
    /// # Errors
    /// A sentence with the valid values.
    pub fn new(quiet: &[Quiet], zone: Option<&str>) -> Result<Self, String> {
        let zone = match zone {
            None | Some("" | "UTC") => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| {
                format!("zone: {name:?} is not a known time zone: write one like Europe/Berlin, or install tzdata")
            })?,
        };
        let spans = quiet
            .iter()
            .map(|q| Ok(Span { days: days(&q.days)?, from: time(&q.from)?, to: time(&q.to)? }))
            .collect::<Result<_, String>>()?;
        Ok(Hours { spans, zone })
    }

    fn at(&self, date: Date, time: Time) -> Option<i64> {
        // A skipped hour maps to the instant of the jump, a repeated one to its first occurrence.
        Some(date.to_datetime(time).to_zoned(self.zone.clone()).ok()?.timestamp().as_second())
    }

    fn end(&self, now: i64) -> Option<i64> {
        let today = Timestamp::from_second(now).ok()?.to_zoned(self.zone.clone()).date();
        let begins = [today.yesterday().ok()?, today];
        let ends = self.spans.iter().flat_map(|span| {
            begins.into_iter().filter_map(move |day| {
                if !span.days[usize::from(day.weekday().to_monday_zero_offset().unsigned_abs())] {
                    return None;
                }
                let last = if span.to <= span.from { day.tomorrow().ok()? } else { day };
                let (from, to) = (self.at(day, span.from)?, self.at(last, span.to)?);
                (from <= now && now < to).then_some(to)
            })
        });
        ends.max()
    }

    /// End of the current quiet time; None: it is not quiet. Seconds since the Unix epoch.
    pub fn until(&self, now: i64) -> Option<i64> {
        let mut end = self.end(now)?;
        for _ in 0..MAX_SPANS {
            match self.end(end) {
                Some(further) => end = further,
                None => break,
            }
        }
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(days: &str, from: &str, to: &str, zone: &str) -> Result<Hours, String> {
        Hours::new(&[Quiet { days: days.into(), from: from.into(), to: to.into() }], Some(zone))
    }

    fn at(text: &str) -> i64 {
        shared::date::from_date(text).expect("a date") / 1000
    }

    #[test]
    fn nights_of_working_days_end_on_the_next_morning() {
        let hours = hours("mon-fri", "22:00", "07:00", "UTC").expect("hours");
        // 2026-11-23 is a Monday.
        for (now, until) in [
            ("2026-11-23T21:59:59Z", None),
            ("2026-11-23T22:00:00Z", Some("2026-11-24T07:00:00Z")),
            ("2026-11-24T06:59:59Z", Some("2026-11-24T07:00:00Z")),
            ("2026-11-24T07:00:00Z", None),
            ("2026-11-28T03:00:00Z", Some("2026-11-28T07:00:00Z")),
            ("2026-11-28T23:00:00Z", None),
            ("2026-11-23T03:00:00Z", None),
        ] {
            assert_eq!(hours.until(at(now)), until.map(at), "{now}");
        }
    }

    #[test]
    fn a_change_of_summer_time_neither_skips_nor_doubles_a_night() {
        // Berlin's, without a zone file.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let hours = Hours { zone, ..hours("", "22:00", "02:30", "UTC").expect("hours") };
        // On 2026-03-29 the hour from 2 to 3 is left out, on 2026-10-25 it comes twice.
        let spring = hours.until(at("2026-03-29T00:30:00Z")).expect("quiet");
        assert_eq!(spring, at("2026-03-29T01:30:00Z"));
        let autumn = hours.until(at("2026-10-24T23:30:00Z")).expect("quiet");
        assert_eq!(autumn, at("2026-10-25T00:30:00Z"));
        assert_eq!(hours.until(at("2026-10-25T00:45:00Z")), None);
        assert_eq!(hours.until(at("2026-10-25T01:15:00Z")), None);
    }

    #[test]
    fn what_is_no_time_no_day_and_no_zone_is_said() {
        assert!(hours("mon", "25:00", "1:00", "UTC").is_err());
        assert!(hours("monday", "22:00", "1:00", "UTC").expect_err("days").contains("mon-fri"));
        assert!(hours("", "22:00", "1:00", "Mars/Base").expect_err("zone").contains("Europe/Berlin"));
        assert!(hours("sat-mon", "0:00", "0:00", "UTC").is_ok_and(|h| h.until(at("2026-11-23T12:00:00Z")).is_some()));
    }
}
