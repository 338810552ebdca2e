//! Units, their scaling for people, and the one number formatter.

pub mod instant;
pub mod size;
pub mod time;

pub use size::size;
pub use time::{duration, rough_duration};

use serde::{Deserialize, Serialize};

/// The unit of a metric's values. MB and GB in tag names mean MiB and GiB, as in the W&B vocabulary.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A plain number of things.
    Count,
    /// 0 to 100; may exceed 100 if the help states so.
    Percent,
    /// Bytes.
    Bytes,
    /// 2^20 bytes.
    Mebibytes,
    /// 2^30 bytes.
    Gibibytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Things per second.
    PerSecond,
    /// Degrees Celsius.
    Celsius,
    /// Watts.
    Watts,
    /// Joules.
    Joules,
    /// Megahertz.
    Megahertz,
    /// Seconds.
    Seconds,
    /// Microseconds.
    Microseconds,
    /// Megabits per second.
    MegabitsPerSecond,
    /// Gigatransfers per second (PCIe link speed).
    GigatransfersPerSecond,
    /// 0 or 1, or a small set of named states.
    State,
}

/// Common dimension of units; series that share a chart share a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Percent.
    Ratio,
    /// Bytes of any multiple.
    Size,
    /// Bytes or bits per second.
    Throughput,
    /// Seconds of any multiple.
    Time,
    /// All others are dimensions of their own.
    Other(Unit),
}

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const GIB: f64 = MIB * KIB;
const TIB: f64 = GIB * KIB;

impl Unit {
    /// Every unit, for tests that walk the table.
    pub const ALL: [Unit; 16] = [
        Unit::Count,
        Unit::Percent,
        Unit::Bytes,
        Unit::Mebibytes,
        Unit::Gibibytes,
        Unit::BytesPerSecond,
        Unit::PerSecond,
        Unit::Celsius,
        Unit::Watts,
        Unit::Joules,
        Unit::Megahertz,
        Unit::Seconds,
        Unit::Microseconds,
        Unit::MegabitsPerSecond,
        Unit::GigatransfersPerSecond,
        Unit::State,
    ];

    /// Its symbol beside a number.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Count | Unit::State => "",
            Unit::Percent => "%",
            Unit::Bytes => "B",
            Unit::Mebibytes => "MiB",
            Unit::Gibibytes => "GiB",
            Unit::BytesPerSecond => "B/s",
            Unit::PerSecond => "/s",
            Unit::Celsius => "°C",
            Unit::Watts => "W",
            Unit::Joules => "J",
            Unit::Megahertz => "MHz",
            Unit::Seconds => "s",
            Unit::Microseconds => "µs",
            Unit::MegabitsPerSecond => "Mbit/s",
            Unit::GigatransfersPerSecond => "GT/s",
        }
    }

    /// The unit's name in the API, in tables and (as UNIT) in OpenMetrics.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::Percent => "percent",
            Unit::Bytes => "bytes",
            Unit::Mebibytes => "mebibytes",
            Unit::Gibibytes => "gibibytes",
            Unit::BytesPerSecond => "bytes_per_second",
            Unit::PerSecond => "per_second",
            Unit::Celsius => "celsius",
            Unit::Watts => "watts",
            Unit::Joules => "joules",
            Unit::Megahertz => "megahertz",
            Unit::Seconds => "seconds",
            Unit::Microseconds => "microseconds",
            Unit::MegabitsPerSecond => "megabits_per_second",
            Unit::GigatransfersPerSecond => "gigatransfers_per_second",
            Unit::State => "state",
        }
    }

    /// Units of one dimension can share an axis.
    pub fn dimension(self) -> Dimension {
        match self {
            Unit::Percent => Dimension::Ratio,
            Unit::Bytes | Unit::Mebibytes | Unit::Gibibytes => Dimension::Size,
            Unit::BytesPerSecond | Unit::MegabitsPerSecond => Dimension::Throughput,
            Unit::Seconds | Unit::Microseconds => Dimension::Time,
            other => Dimension::Other(other),
        }
    }

    /// Multiply a value by this to get the dimension's base unit (bytes, bytes per second, seconds).
    pub fn to_base(self) -> f64 {
        match self {
            Unit::Mebibytes => MIB,
            Unit::Gibibytes => GIB,
            Unit::MegabitsPerSecond => 1e6 / 8.0,
            Unit::Microseconds => 1e-6,
            _ => 1.0,
        }
    }

    /// The base unit of this unit's dimension.
    pub fn base(self) -> Unit {
        match self.dimension() {
            Dimension::Ratio => Unit::Percent,
            Dimension::Size => Unit::Bytes,
            Dimension::Throughput => Unit::BytesPerSecond,
            Dimension::Time => Unit::Seconds,
            Dimension::Other(unit) => unit,
        }
    }

    /// The base unit of a counter's increase per second, when the counter itself has this unit.
    pub fn per_second(self) -> Unit {
        match self.base() {
            Unit::Bytes => Unit::BytesPerSecond,
            Unit::Joules => Unit::Watts,
            _ => Unit::PerSecond,
        }
    }

    /// The best scale for values up to `largest` (in the base unit).
    pub fn scale(self, largest: f64) -> Scale {
        let x = largest.abs();
        let pick = |steps: &[(f64, &'static str)]| {
            let (divisor, symbol) = steps.iter().rev().find(|(d, _)| x >= *d).copied().unwrap_or(steps[0]);
            Scale { divisor, symbol }
        };
        match self.base() {
            Unit::Bytes => pick(&[(1.0, "B"), (KIB, "KiB"), (MIB, "MiB"), (GIB, "GiB"), (TIB, "TiB")]),
            Unit::BytesPerSecond => pick(&[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")]),
            Unit::Seconds => {
                pick(&[(1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"), (86400.0, "d")])
            }
            Unit::Watts => pick(&[(1.0, "W"), (1e3, "kW"), (1e6, "MW")]),
            Unit::Joules => pick(&[(1.0, "J"), (1e3, "kJ"), (1e6, "MJ"), (1e9, "GJ")]),
            Unit::Megahertz => pick(&[(1.0, "MHz"), (1e3, "GHz")]),
            Unit::Count => pick(&[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G")]),
            Unit::PerSecond => pick(&[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")]),
            unit => Scale { divisor: 1.0, symbol: unit.symbol() },
        }
    }
}

/// A unit chosen for an axis or a number: divide base values by `divisor` and write `symbol`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Base units per shown unit.
    pub divisor: f64,
    /// The symbol beside the number.
    pub symbol: &'static str,
}

impl Scale {
    /// The number alone, with three significant digits; the value is in the base unit.
    pub fn number(&self, base: f64) -> String {
        number(base / self.divisor)
    }

    /// The number alone, always with the same number of digits, so that text beside it does not move: `36.0`, `0.08`,
    /// `100`.
    pub fn steady(&self, base: f64) -> String {
        let shown = base / self.divisor;
        match shown.abs() {
            0.005..9.995 => fixed(shown, 2),
            9.995..99.95 => fixed(shown, 1),
            _ => number(shown.round()),
        }
    }
}

/// The value with this many decimal places (at most 9), rounded as in the standard library: exactly, a half to the even
/// digit. For numbers from 2^53 on, the first fifteen digits are right. The standard library's function would add ten
/// kilobytes to the page.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let (mut shown, mut zeros) = (value.abs(), 0);
    while shown >= 9e15 {
        (shown, zeros) = (shown / 10.0, zeros + 1);
    }
    let (whole, ten) = (shown as u64, 10u64.pow(decimals as u32));
    // The rest is `digits` / 2^`shift`.
    let bits = (shown - whole as f64).to_bits();
    let (exponent, fraction) = ((bits >> 52) as u32, bits & ((1 << 52) - 1));
    let digits = if exponent == 0 { fraction } else { fraction | (1 << 52) };
    let shift = 1075 - exponent.max(1);
    // Smaller values are zero in nine digits.
    let behind = if shift < 128 {
        let exact = u128::from(digits) * u128::from(ten);
        let (floor, half) = ((exact >> shift) as u64, 1 << (shift - 1));
        let rest = exact & ((1 << shift) - 1);
        let odd = whole.wrapping_mul(ten).wrapping_add(floor) & 1 == 1;
        floor + u64::from(rest > half || rest == half && odd)
    } else {
        0
    };
    let mut text = if value.is_sign_negative() { "-".to_string() } else { String::new() };
    text += &(whole + behind / ten).to_string();
    text += &"0".repeat(zeros);
    if decimals > 0 {
        // A leading one keeps the zeros that follow it.
        text.push('.');
        text += &(ten + behind % ten).to_string()[1..];
    }
    text
}

/// The value with at most three significant digits, no exponent, no trailing zeros: `0.03`, `9.1`, `71.2`, `1,490`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m == 0.0 || m >= 99.95 => 0,
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        _ => 3,
    };
    let mut text = fixed(value, decimals);
    if decimals > 0 {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    match text.as_str() {
        "-0" => "0".into(),
        _ if magnitude >= 9999.5 => grouped(value, decimals),
        _ => text,
    }
}

/// The value with this many decimal places (at most 9), and a comma between thousands: `3,172`, `18,935.0`. For
/// columns, in which all numbers have one format.
pub fn grouped(value: f64, decimals: usize) -> String {
    let text = fixed(value, decimals);
    let whole = text.find('.').unwrap_or(text.len());
    let mut grouped = String::with_capacity(text.len() + whole / 3);
    for (i, c) in text.char_indices() {
        if i > 0 && i < whole && (whole - i).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(c);
    }
    grouped
}

/// A number and its symbol, scaled for itself: `(\"71.2\", \"GiB\")`. The value is in `unit`.
pub fn quantity(value: f64, unit: Unit) -> (String, &'static str) {
    let base = value * unit.to_base();
    let scale = unit.scale(base);
    (scale.number(base), scale.symbol)
}

/// A number with its symbol, scaled for itself: `71.2 GiB`, `21.4 %`, `1,395`. The value is in `unit`.
pub fn text(value: f64, unit: Unit) -> String {
    let (number, symbol) = quantity(value, unit);
    if symbol.is_empty() { number } else { format!("{number} {symbol}") }
}

/// A part and its whole, both in the scale of the whole: `12.3 of 15.9 GiB`. The values are in `unit`.
pub fn part_of(part: f64, whole: f64, unit: Unit) -> String {
    let (part, whole) = (part * unit.to_base(), whole * unit.to_base());
    let scale = unit.scale(whole);
    format!("{} of {} {}", scale.number(part), scale.number(whole), scale.symbol).trim_end().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_significant_digits_and_no_noise() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.0304, "0.03"),
            (0.9996, "1"),
            (9.1, "9.1"),
            (9.996, "10"),
            (71.25, "71.2"),
            (99.96, "100"),
            (1490.4, "1490"),
            (12345.6, "12,346"),
            (-1234567.0, "-1,234,567"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn numbers_of_a_column_have_their_thousands_apart() {
        let written =
            [(3172.0, 0), (18_935.4, 0), (-999.0, 0), (-1000.0, 0), (1_234_567.25, 1), (12.0, 1), (f64::NAN, 0)];
        let texts = written.map(|(value, decimals)| grouped(value, decimals));
        assert_eq!(texts, ["3,172", "18,935", "-999", "-1,000", "1,234,567.2", "12.0", "–"]);
    }

    proptest::proptest! {
        #[test]
        fn digits_behind_the_point_are_those_of_the_library(bits: u64, decimals in 0usize..7, part in -1e6..1e6f64) {
            let value = f64::from_bits(bits);
            if value.abs() < 9e15 {
                proptest::prop_assert_eq!(fixed(value, decimals), format!("{value:.decimals$}"));
            }
            proptest::prop_assert_eq!(fixed(part, decimals), format!("{part:.decimals$}"));
            let half = part.round() + 0.125;
            proptest::prop_assert_eq!(fixed(half, decimals), format!("{half:.decimals$}"));
        }
    }

    #[test]
    fn large_numbers_keep_their_size() {
        assert_eq!(fixed(1e20, 2), "100000000000000000000.00");
        assert_eq!(number(-2e18), "-2,000,000,000,000,000,000");
        assert_eq!(fixed(f64::MAX, 0).len(), 309);
    }

    #[test]
    fn steady_numbers_have_three_digits_whatever_they_are() {
        let percent = Unit::Percent.scale(100.0);
        let texts = [0.0, 0.004, 0.078, 0.5, 9.994, 9.996, 36.0, 99.94, 99.96, 1012.2, -3.0].map(|v| percent.steady(v));
        assert_eq!(texts, ["0", "0", "0.08", "0.50", "9.99", "10.0", "36.0", "99.9", "100", "1012", "-3.00"]);
        assert_eq!(percent.steady(f64::NAN), "–");
    }

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        assert_eq!(quantity(212.0 * 1024.0, Unit::Mebibytes), ("212".into(), "GiB"));
        assert_eq!(quantity(316e6, Unit::BytesPerSecond), ("316".into(), "MB/s"));
        assert_eq!(quantity(250.0, Unit::Microseconds), ("250".into(), "µs"));
        assert_eq!(quantity(5090.0, Unit::Watts), ("5.09".into(), "kW"));
        assert_eq!(quantity(0.0, Unit::Bytes), ("0".into(), "B"));
        assert_eq!([text(76.12e9, Unit::BytesPerSecond), text(3.0, Unit::Count)], ["76.1 GB/s", "3"]);
        assert_eq!(part_of(512.0, 16.0 * 1024.0, Unit::Mebibytes), "0.5 of 16 GiB");
    }

    #[test]
    fn names_are_unique_and_bases_are_fixed_points() {
        let mut names: Vec<_> = Unit::ALL.iter().map(|u| u.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Unit::ALL.len());
        for unit in Unit::ALL {
            assert_eq!(unit.base().base(), unit.base());
            assert_eq!(unit.base().dimension(), unit.dimension());
            assert_eq!(unit.base().to_base(), 1.0);
        }
    }
}
