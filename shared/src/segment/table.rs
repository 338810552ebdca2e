//! Rows of the catalog and charts as lists of (key, text): a reader skips unknown keys and uses the default for a
//! missing one, so a new field needs no new version of the format.
//!
//! Keys of a row: 1 tag, 2 alias (one each), 3 title, 4 label, 5 help, 6 unit ([`Unit::name`]), 7 kind (`gauge`,
//! `counter`, `state`), 8 range (`from_zero`, `fit`, or two numbers), 9 chart, 10 draw (`line`, `limit`, `hidden`), 11
//! steps per unit (a number). Keys of a chart: 1 id, 2 title, 3 section.

use super::list::{put_list, put_text, take_list, take_text};
use crate::catalog::{Chart, Draw, Kind, Metric, Range};
use crate::unit::Unit;
use crate::varint::{put, take, take_array};

const KINDS: [(Kind, &str); 3] = [(Kind::Gauge, "gauge"), (Kind::Counter, "counter"), (Kind::State, "state")];
const DRAWS: [(Draw, &str); 3] = [(Draw::Line, "line"), (Draw::Limit, "limit"), (Draw::Hidden, "hidden")];

fn name_of<T: PartialEq + Copy>(names: &[(T, &'static str)], value: T) -> &'static str {
    names.iter().find(|(v, _)| *v == value).map_or("", |(_, name)| name)
}

fn named<T: Copy>(names: &[(T, &str)], name: &str) -> Option<T> {
    names.iter().find(|(_, n)| *n == name).map(|(v, _)| *v)
}

fn put_fields(out: &mut Vec<u8>, fields: &[(u8, &str)]) {
    put_list(out, fields.iter().filter(|(_, text)| !text.is_empty()), |out, (key, text)| {
        out.push(*key);
        put_text(out, text);
    });
}

fn take_fields(bytes: &mut &[u8]) -> Option<Vec<(u8, String)>> {
    take_list(bytes, |bytes| {
        let [key] = take_array(bytes)?;
        Some((key, take_text(bytes)?))
    })
}

pub(super) fn put_row(out: &mut Vec<u8>, row: &Metric) {
    let steps = row.steps.to_string();
    let range = match row.range {
        Range::Fixed(from, to) => format!("{from} {to}"),
        Range::FromZero => "from_zero".into(),
        Range::Fit => "fit".into(),
    };
    let mut fields = vec![(1, row.tag.as_str())];
    fields.extend(row.aliases.iter().map(|alias| (2, alias.as_str())));
    fields.extend([
        (3, row.title.as_str()),
        // As in the catalog: a row without a label of its own has its title's.
        (4, if row.label == row.title { "" } else { &row.label }),
        (5, &row.help),
        (6, row.unit.name()),
        (7, name_of(&KINDS, row.kind)),
        (8, &range),
        (9, &row.chart),
        (10, name_of(&DRAWS, row.draw)),
        (11, &steps),
    ]);
    put_fields(out, &fields);
}

pub(super) fn take_row(bytes: &mut &[u8]) -> Option<Metric> {
    let mut row = Metric {
        tag: String::new(),
        aliases: Vec::new(),
        title: String::new(),
        label: String::new(),
        help: String::new(),
        unit: Unit::Count,
        kind: Kind::Gauge,
        range: Range::FromZero,
        chart: String::new(),
        draw: Draw::Line,
        steps: 0.0,
    };
    for (key, text) in take_fields(bytes)? {
        match key {
            1 => row.tag = text,
            2 => row.aliases.push(text),
            3 => row.title = text,
            4 => row.label = text,
            5 => row.help = text,
            // An unknown name of a later version is shown plainly, not rejected.
            6 => row.unit = Unit::ALL.into_iter().find(|u| u.name() == text).unwrap_or(Unit::Count),
            7 => row.kind = named(&KINDS, &text).unwrap_or(Kind::Gauge),
            8 => row.range = range(&text),
            9 => row.chart = text,
            10 => row.draw = named(&DRAWS, &text).unwrap_or(Draw::Line),
            11 => row.steps = decimal(&text).filter(|s| *s >= 0.0).unwrap_or(0.0),
            _ => {}
        }
    }
    if row.label.is_empty() {
        row.label.clone_from(&row.title);
    }
    Some(row)
}

/// A plain decimal number of at most 15 digits, as steps and ranges are. The page reads it too, and the standard
/// library's parser would be five percent of the page.
fn decimal(text: &str) -> Option<f64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = || whole.bytes().chain(part.bytes());
    if whole.is_empty() || digits().count() > 15 || !digits().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Both are whole numbers that a float holds exactly, so their quotient is the nearest float.
    let number = digits().fold(0.0, |sum, b| sum * 10.0 + f64::from(b - b'0'));
    Some(sign * number / part.bytes().fold(1.0, |power, _| power * 10.0))
}

fn range(text: &str) -> Range {
    let numbers = text.split_once(' ').and_then(|(from, to)| Some((decimal(from)?, decimal(to)?)));
    match numbers {
        Some((from, to)) => Range::Fixed(from, to),
        None if text == "fit" => Range::Fit,
        None => Range::FromZero,
    }
}

pub(super) fn put_chart(out: &mut Vec<u8>, chart: &Chart) {
    put_fields(out, &[(1, &chart.id), (2, &chart.title), (3, &chart.section)]);
}

pub(super) fn take_chart(bytes: &mut &[u8]) -> Option<Chart> {
    let mut chart = Chart { id: String::new(), title: String::new(), section: String::new() };
    for (key, text) in take_fields(bytes)? {
        match key {
            1 => chart.id = text,
            2 => chart.title = text,
            3 => chart.section = text,
            _ => {}
        }
    }
    Some(chart)
}

/// Rows with their numbers, and charts: list(number varint, row), list(chart).
pub fn encode(rows: &[(u16, Metric)], charts: &[Chart]) -> Vec<u8> {
    let mut out = Vec::new();
    put_list(&mut out, rows.iter(), |out, (number, row)| {
        put(out, u64::from(*number));
        put_row(out, row);
    });
    put_list(&mut out, charts.iter(), put_chart);
    out
}

/// Rows with their numbers, and charts.
pub type Table = (Vec<(u16, Metric)>, Vec<Chart>);

/// Reads the bytes of [`encode`]; None if they are damaged.
pub fn decode(mut bytes: &[u8]) -> Option<Table> {
    let rows = take_list(&mut bytes, |bytes| Some((u16::try_from(take(bytes)?).ok()?, take_row(bytes)?)))?;
    let charts = take_list(&mut bytes, take_chart)?;
    bytes.is_empty().then_some((rows, charts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::VOCABULARY;

    #[test]
    fn every_row_of_the_vocabulary_comes_back() {
        for def in VOCABULARY.iter().copied().flatten() {
            let (row, mut bytes) = (Metric::from(*def), Vec::new());
            put_row(&mut bytes, &row);
            let rest = &mut bytes.as_slice();
            assert_eq!(take_row(rest), Some(row));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn decimals_are_read_as_they_were_written() {
        for number in [0.0, 1.0, 100.0, 0.1, 273.15, -40.0, 1_048_576.0, 0.000_001, 999_999_999_999_999.0] {
            assert_eq!(decimal(&number.to_string()), Some(number));
        }
        for wrong in ["", "-", ".5", "1e3", "inf", "NaN", "+1", "1 ", "1.2.3", "1234567890123456"] {
            assert_eq!(decimal(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_table_comes_back() {
        let rows: Vec<(u16, Metric)> = (7..).zip(VOCABULARY[0].iter().map(|def| Metric::from(*def))).collect();
        let charts = vec![Chart { id: "c".into(), title: "C".into(), section: String::new() }];
        let mut bytes = encode(&rows, &charts);
        assert_eq!(decode(&bytes), Some((rows, charts)));
        bytes.push(0);
        assert_eq!(decode(&bytes), None);
    }

    #[test]
    fn an_unknown_key_is_skipped() {
        let mut bytes = Vec::new();
        put_fields(&mut bytes, &[(1, "cpu.{i}.x"), (200, "later"), (6, "furlongs"), (3, "X")]);
        let row = take_row(&mut bytes.as_slice()).expect("a row");
        assert_eq!((row.tag.as_str(), row.unit, row.label.as_str()), ("cpu.{i}.x", Unit::Count, "X"));
    }
}
