//! Axes of a chart: three or four ticks at round values. Steps are binary for sizes and 1-2-5 for all else; the ticks
//! along the bottom are local time.

use shared::catalog::Range;
use shared::unit::{Scale, Unit, fixed, rough_duration};
use std::cell::Cell;

/// A vertical axis; values are in the base unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Value at the lower edge.
    pub lo: f64,
    /// Value at the upper edge.
    pub hi: f64,
    /// Ticks as value and text, from the lowest up.
    pub ticks: Vec<(f64, String)>,
    /// Divisor and symbol of the unit in which this axis writes its numbers.
    pub scale: Scale,
    /// Number of decimals, 0 to 3.
    pub places: usize,
    /// True when the axis begins above zero; the page then shows a note.
    pub cut: bool,
}

impl Axis {
    /// The axis of a drawing without one.
    pub(crate) const NONE: Axis =
        Axis { lo: 0.0, hi: 1.0, ticks: Vec::new(), scale: Scale { divisor: 1.0, symbol: "" }, places: 0, cut: false };

    /// Writes a number in the shown unit, in the format of this chart. Every number has the same number of decimals, so
    /// that they align. A value too small for these decimals gets more of its own.
    pub fn number(&self, base: f64) -> String {
        let (shown, places) = (base / self.scale.divisor, self.places);
        let small = shown.abs() < 9.5 / 10f64.powi(places as i32);
        if small || self.hi >= self.scale.divisor * 10_000.0 { self.round(base) } else { fixed(shown, places) }
    }

    /// Writes a round number, such as a limit or the end of an axis, with no more digits than it needs.
    pub fn round(&self, base: f64) -> String {
        self.scale.number(base)
    }
}

/// Number of decimals that can be distinguished on an axis that ends at `hi` (in the shown unit).
fn places(unit: Unit, hi: f64) -> usize {
    match hi {
        // Tenths of a degree are noise, so temperatures have no decimals.
        _ if unit == Unit::Celsius || hi >= 100.0 => 0,
        _ if hi >= 10.0 => 1,
        _ if hi >= 1.0 => 2,
        _ => 3,
    }
}

/// Makes the axis for values from `min` to `max`, in the base unit of `unit`. Both are NaN or infinite when there are
/// no values; the axis then is that of zero.
pub fn values(unit: Unit, range: Range, min: f64, max: f64) -> Axis {
    let unit = unit.base();
    let (min, max) = if min.is_finite() && max.is_finite() { (min, max) } else { (0.0, 0.0) };
    match range {
        Range::Fixed(lo, hi) if min >= lo && max <= hi => {
            let scale = unit.scale(hi);
            let ticks = [lo, (lo + hi) / 2.0, hi].map(|v| (v, scale.number(v))).to_vec();
            Axis { lo, hi, ticks, places: places(unit, hi / scale.divisor), scale, cut: lo > 0.0 }
        }
        Range::Fit => fit(unit, min, max),
        _ => from_zero(unit, min, max),
    }
}

fn from_zero(unit: Unit, min: f64, max: f64) -> Axis {
    let smallest = match unit {
        Unit::Bytes | Unit::BytesPerSecond => 1024.0, // An idle disk must not fill its chart.
        Unit::Seconds => 1e-4,
        _ => 1.0,
    };
    let max = max.max(smallest);
    let scale = unit.scale(max);
    let span = (max - min.min(0.0)) / scale.divisor;
    let step = step(unit, span / 3.2);
    // The end is a multiple of half a step, so that the axis seldom moves. It is at least 4 % above the largest value.
    let hi = (max / scale.divisor * 1.04 / (step / 2.0)).ceil() * (step / 2.0);
    let lo = if min < 0.0 { (min / scale.divisor / step).floor() * step } else { 0.0 };
    finish(unit, scale, lo, hi, step, false)
}

fn fit(unit: Unit, min: f64, max: f64) -> Axis {
    let scale = unit.scale(max);
    let (min, max) = (min / scale.divisor, max / scale.divisor);
    let least = match unit {
        Unit::Celsius => 10.0,
        _ => (max.abs() * 0.02).max(1e-3),
    };
    let air = (least - (max - min)).max(0.0) / 2.0;
    let step = step(unit, (max - min).max(least) / 3.0);
    let lo = ((min - air) / (step / 2.0)).floor() * (step / 2.0);
    let hi = ((max + air) / (step / 2.0)).ceil() * (step / 2.0);
    let lo = if min >= 0.0 { lo.max(0.0) } else { lo };
    finish(unit, scale, lo, if hi > lo { hi } else { lo + step }, step, lo > 0.0)
}

fn finish(unit: Unit, scale: Scale, lo: f64, hi: f64, step: f64, cut: bool) -> Axis {
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    let first = (lo / step).ceil() as i64;
    let ticks = (first..)
        .map(|k| k as f64 * step)
        .take_while(|v| *v <= hi + step * 1e-6)
        .map(|v| (v * scale.divisor, tick(v, decimals)))
        .collect();
    Axis { lo: lo * scale.divisor, hi: hi * scale.divisor, ticks, places: places(unit, hi), scale, cut }
}

fn tick(value: f64, decimals: usize) -> String {
    if decimals == 0 {
        return shared::unit::number(value);
    }
    let text = fixed(value, decimals);
    if value == 0.0 { "0".into() } else { text }
}

/// The smallest round step that is at least `wish`.
fn step(unit: Unit, wish: f64) -> f64 {
    if unit == Unit::Bytes {
        return 2f64.powi(wish.log2().ceil() as i32);
    }
    let power = 10f64.powi(wish.log10().floor() as i32);
    // The step 2.5 is used only if its multiples are whole numbers.
    let quarter = if power >= 10.0 { 2.5 } else { 2.0 };
    [1.0, 2.0, quarter, 5.0].into_iter().map(|m| m * power).find(|s| *s >= wish * 0.999).unwrap_or(10.0 * power)
}

/// Local time minus UTC over the span of a chart, in ms. The clocks may change in it once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// The offset at the end of the span.
    pub offset: i64,
    /// The instant of the change, ms since the epoch, and the offset before it.
    pub change: Option<(i64, i64)>,
}

impl Zone {
    /// UTC, and the zone of a time since a start.
    pub const UTC: Zone = Zone { offset: 0, change: None };

    /// The zone of a span, by the offset at each instant. Clocks change at whole minutes.
    pub fn from_span((from, to): (i64, i64), offset: impl Fn(i64) -> i64) -> Zone {
        let (before, after) = (offset(from), offset(to));
        let (mut old, mut new) = (from, to);
        while before != after && new - old > MINUTE {
            let middle = old + (new - old) / 2;
            *(if offset(middle) == before { &mut old } else { &mut new }) = middle;
        }
        Zone { offset: after, change: (before != after).then_some((new - new.rem_euclid(MINUTE), before)) }
    }

    /// Local time minus UTC at an instant.
    pub fn at(self, t: i64) -> i64 {
        match self.change {
            Some((change, before)) if t < change => before,
            _ => self.offset,
        }
    }

    /// The parts of a span that have one offset each, with it; the first may be empty.
    fn parts(self, from: i64, to: i64) -> [(i64, i64, i64); 2] {
        match self.change {
            Some((change, before)) if from < change => [(from, to.min(change - 1), before), (change, to, self.offset)],
            _ => [(from, from - 1, 0), (from, to, self.offset)],
        }
    }
}

impl From<i64> for Zone {
    fn from(offset: i64) -> Zone {
        Zone { offset, change: None }
    }
}

/// The meaning of a horizontal axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Along {
    /// Instants in ms since the epoch, or since a start.
    #[default]
    Time,
    /// Steps of a training job, in place of ms.
    Steps,
}

impl Along {
    /// Ticks along the bottom: see [`times`].
    pub fn ticks(self, from: i64, to: i64, room: f64, zone: Zone) -> Vec<(i64, String)> {
        match self {
            Along::Time => times(from, to, room, zone),
            Along::Steps => steps(from, to, room),
        }
    }

    /// The position of the crosshair in words.
    pub fn at(self, t: i64, zone: Zone) -> String {
        match self {
            Along::Time => format!("at {}", clock(t + zone.at(t), true)),
            Along::Steps => format!("at step {}", whole(t)),
        }
    }
}

/// Ticks at whole round steps.
fn steps(from: i64, to: i64, room: f64) -> Vec<(i64, String)> {
    let wish = ((to - from) as f64 / room.max(2.0)).max(1.0);
    let width = step(Unit::Count, wish).ceil().max(1.0) as i64;
    let first = from.div_euclid(width) + i64::from(from.rem_euclid(width) != 0);
    (first..).map(|k| k * width).take_while(|at| *at <= to).map(|at| (at, whole(at))).collect()
}

/// A whole number with commas between thousands, as `12,400`.
fn whole(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|g| std::str::from_utf8(g).ok()).collect();
    format!("{}{}", if n < 0 { "-" } else { "" }, groups.join(","))
}

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

const STEPS: [i64; 15] = [
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    4 * HOUR,
    6 * HOUR,
];

/// Room that texts without seconds need, as a part of that of the longest text.
const WITHOUT_SECONDS: f64 = 0.8;

/// Time between two texts of a span, at least `wish`, ms. One text says nothing about the distance of two instants, so a
/// span with less than two takes the next shorter step, if its texts have no seconds and fit.
fn time_step(span: i64, wish: i64) -> i64 {
    let at = STEPS.iter().position(|step| *step >= wish);
    let step = at.map_or(12 * HOUR, |at| STEPS[at]);
    let shorter = at.and_then(|at| at.checked_sub(1)).map(|at| STEPS[at]);
    let fits = |step: &i64| *step >= MINUTE && *step as f64 >= wish as f64 * WITHOUT_SECONDS;
    match shorter.filter(fits) {
        Some(shorter) if span < 2 * step => shorter,
        _ => step,
    }
}

/// Ticks along the bottom: instants in ms since the epoch, each with its local time, or with the date at the start of a
/// day. `room` is the number of texts that fit. A span that begins at 0 is the time since a start, and its texts are
/// durations. Where the clocks change, a time too near to the one before has no text.
pub fn times(from: i64, to: i64, room: f64, zone: impl Into<Zone>) -> Vec<(i64, String)> {
    let wish = ((to - from) as f64 / room.max(2.0)) as i64;
    let step = time_step(to - from, wish);
    let (mut day, mut all) = (None, Vec::<(i64, String)>::new());
    for (begin, end, offset) in zone.into().parts(from, to) {
        let first = (begin + offset).div_euclid(step) + i64::from((begin + offset).rem_euclid(step) != 0);
        for local in (first..).map(|k| k * step).take_while(|local| *local <= end + offset) {
            let t = local - offset;
            if all.last().is_some_and(|(before, _)| ((t - before) as f64) < step as f64 * WITHOUT_SECONDS) {
                continue;
            }
            let today = local.div_euclid(DAY);
            // Where the clocks go forward at midnight, a day begins at one.
            let begins = local.rem_euclid(DAY) <= HOUR;
            let new_day = day.replace(today).is_some_and(|before| before != today) && begins;
            let text = match () {
                () if from == 0 && local == 0 => "start".into(),
                () if from == 0 => rough_duration(local),
                () if new_day => date(today),
                () => clock(local, step < MINUTE),
            };
            all.push((t, text));
        }
    }
    all
}

thread_local! {
    /// Whether clocks have twelve hours.
    static TWELVE_HOURS: Cell<bool> = const { Cell::new(false) };
}

/// Writes all clocks with twelve hours, as `2:02 PM`, or with 24. A page sets it once, by the locale of its browser.
pub fn use_twelve_hours(twelve: bool) {
    TWELVE_HOURS.set(twelve);
}

/// Room of a time at the axis, in letters: the longest clock and the distance to the next one.
pub fn clock_room() -> f64 {
    if TWELVE_HOURS.get() { 11.5 } else { 8.5 }
}

/// Writes local time as `14:02` or `14:02:10`, or with twelve hours as `2:02 PM` or `2:02:10 PM`; `local` is ms since
/// the epoch plus the offset of local time.
pub fn clock(local: i64, seconds: bool) -> String {
    let s = local.rem_euclid(DAY) / SECOND;
    let (h, m, s) = (s / 3600, s / 60 % 60, s % 60);
    let rest = if seconds { format!(":{m:02}:{s:02}") } else { format!(":{m:02}") };
    match TWELVE_HOURS.get() {
        true => format!("{}{rest} {}", (h + 11) % 12 + 1, if h < 12 { "AM" } else { "PM" }),
        false => format!("{h:02}{rest}"),
    }
}

/// Writes a zone by its local time minus UTC in ms, as `UTC+1` or `UTC+5:30`.
pub fn zone(offset: i64) -> String {
    let minutes = offset.abs() / 60_000;
    let rest = if minutes % 60 == 0 { String::new() } else { format!(":{:02}", minutes % 60) };
    match offset {
        0 => "UTC".into(),
        _ => format!("UTC{}{}{rest}", if offset < 0 { "−" } else { "+" }, minutes / 60),
    }
}

/// Writes day and time of a local time in ms, as `20 Nov 14:05:00`.
pub fn moment(local: i64) -> String {
    format!("{} {}", date(local.div_euclid(DAY)), clock(local, true))
}

/// Writes day and month as `20 Nov`; `day` counts days since the epoch.
pub fn date(day: i64) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, month, day) = shared::date::civil(day);
    format!("{day} {}", MONTHS[month as usize - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_clock_of_twelve_hours_says_which_half_of_the_day() {
        let minute = 60_000;
        use_twelve_hours(true);
        let said = [0, 61 * minute, 720 * minute, 845 * minute, 1_439 * minute].map(|local| clock(local, false));
        let (long, room) = (clock(845 * minute + 7_000, true), clock_room());
        use_twelve_hours(false);
        assert_eq!(said, ["12:00 AM", "1:01 AM", "12:00 PM", "2:05 PM", "11:59 PM"]);
        assert_eq!((long.as_str(), room > clock_room()), ("2:05:07 PM", true));
        assert_eq!(clock(845 * minute, false), "14:05");
    }

    #[test]
    fn a_narrow_chart_has_two_times_where_they_fit() {
        let count = |minutes: i64, room: f64| times(7 * MINUTE, (7 + minutes) * MINUTE, room, Zone::UTC).len();
        // Five minutes on a phone, with clocks of twelve hours.
        assert_eq!((count(5, 2.3), count(5, 2.0)), (3, 3));
        assert_eq!((count(9, 2.0), count(60, 2.3)), (2, 2), "shorter steps would touch; there are two already");
        for minutes in 1..720 {
            for room in [2.0, 2.5, 3.0, 5.0, 9.0] {
                assert!(count(minutes, room) as f64 <= room / WITHOUT_SECONDS + 1.0, "{minutes} {room}");
            }
        }
    }

    #[test]
    fn steps_are_whole_round_numbers() {
        let told = |from, to, room| Along::Steps.ticks(from, to, room, Zone::from(3_600_000));
        let texts = |ticks: Vec<(i64, String)>| ticks.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(told(0, 12_400, 4.0)), ["0", "5,000", "10,000"]);
        assert_eq!(texts(told(81_200, 81_260, 3.0)), ["81,200", "81,220", "81,240", "81,260"]);
        assert_eq!(told(3, 4, 8.0), [(3, "3".to_string()), (4, "4".to_string())], "no half steps");
        assert_eq!(Along::Steps.at(1_234_567, Zone::UTC), "at step 1,234,567");
    }

    #[test]
    fn a_zone_is_named_by_its_distance_from_utc() {
        let hour = 3_600_000;
        assert_eq!([0, hour, -8 * hour, 5 * hour + hour / 2].map(zone), ["UTC", "UTC+1", "UTC−8", "UTC+5:30"]);
    }

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, t)| t.as_str()).collect()
    }

    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

    #[test]
    fn sizes_are_binary_and_the_rest_is_decimal() {
        let memory = values(Unit::Gibibytes, Range::FromZero, 0.0, 512.0 * GIB);
        assert_eq!((texts(&memory), memory.scale.symbol), (vec!["0", "256", "512"], "GiB"));
        let rate = values(Unit::BytesPerSecond, Range::FromZero, 0.0, 2.78e9);
        assert_eq!((texts(&rate), rate.scale.symbol), (vec!["0", "1", "2", "3"], "GB/s"));
        assert_eq!(texts(&values(Unit::Percent, Range::PERCENT, 3.0, 97.0)), ["0", "50", "100"]);
        assert_eq!(texts(&values(Unit::Count, Range::FromZero, 0.0, 0.21)), ["0", "0.5", "1.0"]);
    }

    #[test]
    fn a_percentage_beyond_its_range_gets_a_longer_axis() {
        let axis = values(Unit::Percent, Range::PERCENT, 0.0, 390.0);
        assert!(axis.hi >= 390.0 && axis.lo == 0.0);
    }

    #[test]
    fn a_fitted_axis_says_that_it_is_cut() {
        let axis = values(Unit::Celsius, Range::Fit, 54.0, 72.0);
        assert!(axis.cut && axis.lo <= 54.0 && axis.hi >= 72.0, "{axis:?}");
        assert_eq!(texts(&axis), ["50", "60", "70"]);
    }

    #[test]
    fn numbers_of_a_chart_have_the_same_digits_and_a_small_one_its_own() {
        let axis = values(Unit::Gibibytes, Range::FromZero, 0.0, 78.0 * GIB);
        assert_eq!([74.0, 73.96, 0.5, 0.0].map(|v| axis.number(v * GIB)), ["74.0", "74.0", "0.5", "0"]);
        assert_eq!(axis.round(80.0 * GIB), "80");
        let percent = values(Unit::Percent, Range::PERCENT, 0.0, 97.0);
        assert_eq!([97.4, 9.6, 0.25].map(|v| percent.number(v)), ["97", "10", "0.25"]);
    }

    #[test]
    fn times_are_local_and_name_the_day_that_begins() {
        let midnight = 1_795_219_200_000; // 2026-11-21T00:00Z
        let hour = 3_600_000;
        let list = times(midnight - 2 * hour, midnight + hour, 4.0, Zone::UTC);
        let texts: Vec<&str> = list.iter().map(|(_, t)| t.as_str()).collect();
        assert_eq!(texts, ["22:00", "23:00", "21 Nov", "01:00"]);
        assert_eq!(times(midnight, midnight + 60_000, 3.0, 2 * hour)[0].1, "02:00:00");
        assert_eq!(date(59), "1 Mar");
        assert_eq!(date(11_016), "29 Feb");
    }

    #[test]
    fn each_time_has_the_clock_of_its_own_instant() {
        let (midnight, hour) = (1_795_219_200_000, HOUR); // 2026-11-21T00:00Z
        // Clocks go back from 03:00 to 02:00 at 01:00 UTC, or forward from 02:00 to 03:00.
        let back = Zone { offset: hour, change: Some((midnight + hour, 2 * hour)) };
        let forward = Zone { offset: 2 * hour, change: Some((midnight + hour, hour)) };
        let told = |zone: Zone, span: i64, room: f64| {
            let all = times(midnight - hour, midnight - hour + span * hour, room, zone);
            all.into_iter().map(|(t, text)| format!("{} {text}", (t - midnight) / hour)).collect::<Vec<_>>()
        };
        assert_eq!(told(back, 4, 5.0), ["-1 01:00", "0 02:00", "1 02:00", "2 03:00", "3 04:00"]);
        assert_eq!(told(forward, 4, 5.0), ["-1 00:00", "0 01:00", "1 03:00", "2 04:00", "3 05:00"]);
        assert_eq!(told(back, 8, 4.0), ["0 02:00", "3 04:00", "5 06:00", "7 08:00"], "no two texts touch");
        // A day that begins at one has its date there, and no later.
        let night = Zone { offset: 2 * hour, change: Some((midnight - hour, hour)) };
        let texts = |begin: i64, end: i64, room: f64| {
            let all = times(midnight + begin * hour, midnight + end * hour, room, night);
            all.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(texts(-3, 1, 5.0), ["22:00", "23:00", "21 Nov", "02:00", "03:00"]);
        assert_eq!(texts(-5, 3, 4.0), ["20:00", "22:00", "02:00", "04:00"]);
        // The change is found by the offsets alone.
        let local = |t: i64| if t < midnight + hour { 2 * hour } else { hour };
        for (from, to) in [(-1, 3), (-500, 244), (0, 2)] {
            assert_eq!(Zone::from_span((midnight + from * hour + 1_234, midnight + to * hour), local), back);
        }
        assert_eq!(Zone::from_span((midnight + hour, midnight + 2 * hour), local), Zone::from(hour));
        assert_eq!([0, hour, hour - 1].map(|t| back.at(midnight + t)), [2 * hour, hour, 2 * hour]);
        let at = |t: i64| Along::Time.at(midnight + t, back);
        assert_eq!((at(0), at(hour)), ("at 02:00:00".into(), "at 02:00:00".into()));
        // A change outside of the span.
        for (change, text) in [(-9, "01:00"), (9, "02:00")] {
            let zone = Zone { offset: 2 * hour, change: Some((midnight + change * hour, 3 * hour)) };
            assert_eq!(times(midnight - hour, midnight, 9.0, zone)[0].1, text);
        }
    }

    proptest! {
        #[test]
        fn every_axis_has_a_few_ticks_and_holds_its_values(
            unit in prop::sample::select(Unit::ALL.to_vec()), max in 1e-5f64..1e14, share in 0.0f64..1.0, fit in any::<bool>(),
        ) {
            let min = max * share;
            let axis = values(unit, if fit { Range::Fit } else { Range::FromZero }, min, max);
            prop_assert!(axis.lo <= min && axis.hi >= max * 0.999_999, "{:?}", axis);
            prop_assert!((1..=8).contains(&axis.ticks.len()), "{:?}", axis);
        }
    }
}
