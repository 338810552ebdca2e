//! Reads CSV files. W&B's charts and API give a time column and one column for each line of the chart. Our own export
//! has one row for each sample.

use super::{ACCEPTED, Damage, ImportError, MAX_TAG_BYTES, Raw};
use shared::date;
use std::io::{BufRead, Read};

/// Size in bytes of the longest row; a longer one counts as damage.
const MAX_ROW_BYTES: usize = 16 << 20;

/// Names of time columns in lower case. Columns with dates come first, then those that count from a run's start.
const DATED: [&str; 5] = ["_timestamp", "timestamp", "wall time", "time", "t"];
const COUNTED: [&str; 4] = ["_runtime", "relative time (wall)", "relative time (process)", "_absolute_runtime"];

/// Content of a column of a wide table.
enum Column {
    /// Values of one tag of a source. `place` is the index of the series; None before its first sample.
    Tag { source: String, tag: String, place: Option<usize> },
    /// Column without readings: extremes beside a mean, steps, indices.
    Skip,
}

enum Table {
    /// One row for each sample; the numbers are the columns of time, source, tag and value.
    Long { time: usize, source: Option<usize>, tag: usize, value: usize },
    /// One row for each instant; `time` is the column of the time.
    Wide { time: usize, columns: Vec<Column> },
}

/// Reads the whole table. Rows that cannot be understood are noted as damage.
pub fn read(mut file: impl BufRead, raw: &mut Raw) -> Result<(), ImportError> {
    let mut record = Vec::new();
    let mut at = next(&mut file, &mut record)?;
    let header = cells(&record).unwrap_or_default();
    let mut table = table(&header, raw)?;
    loop {
        let len = next(&mut file, &mut record)?;
        if len == 0 {
            return Ok(());
        }
        if !record.iter().all(u8::is_ascii_whitespace) {
            let took = cells(&record).is_some_and(|row| take(raw, &mut table, &row, header.len()));
            if !took {
                raw.damages.push(Damage { at, bytes: len });
            }
        }
        at += len;
    }
}

/// Reads the next record: a line, or several when a quoted cell holds line ends. Returns its size in bytes, 0 at the
/// end.
fn next(file: &mut impl BufRead, record: &mut Vec<u8>) -> std::io::Result<u64> {
    record.clear();
    let mut open = false;
    loop {
        let known = record.len();
        let len = file.take(MAX_ROW_BYTES as u64).read_until(b'\n', record)?;
        open ^= record[known..].iter().filter(|b| **b == b'"').count() % 2 == 1;
        if len == 0 || !open || record.len() >= MAX_ROW_BYTES {
            return Ok(record.len() as u64);
        }
    }
}

/// The cells of a record; None when a quoted cell has no end, or when the text is not UTF-8.
fn cells(record: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(record).ok()?.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
    let (mut all, mut cell, mut inside) = (Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if inside && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => inside = !inside,
            ',' if !inside => all.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    all.push(cell);
    (!inside).then_some(all)
}

fn table(header: &[String], raw: &mut Raw) -> Result<Table, ImportError> {
    let names: Vec<String> = header.iter().map(|name| name.trim().to_lowercase()).collect();
    let place = |name: &str| names.iter().position(|n| n == name);
    if let (Some(time), Some(tag), Some(value)) = (place("time"), place("tag"), place("value")) {
        return Ok(Table::Long { time, source: place("source"), tag, value });
    }
    let dated = DATED.iter().find_map(|name| place(name));
    let Some(time) = dated.or_else(|| COUNTED.iter().find_map(|name| place(name))) else {
        let steps = ["step", "_step"].iter().any(|name| place(name).is_some());
        return Err(ImportError::Unknown(match steps {
            true => "its rows are numbered by step and have no time; save the chart's CSV with the x axis set to Wall Time or Relative Time".into(),
            false => format!("no column of the table is a time; what can be opened is {ACCEPTED}"),
        }));
    };
    if dated.is_none() {
        raw.notes
            .push("the file has no dates: times count from the start of the run, shown as 1970-01-01 00:00 UTC".into());
    }
    let columns = header.iter().enumerate().map(|(i, name)| if i == time { Column::Skip } else { column(name.trim()) });
    Ok(Table::Wide { time, columns: columns.collect() })
}

/// Reads the name of a column, like `RUN - system/gpu.0.temp`, `system.gpu.0.temp` or `gpu.0.temp`. A chart's file has
/// two more columns with the extremes.
fn column(name: &str) -> Column {
    let plain = name.to_lowercase();
    if name.is_empty() || name.ends_with("__MIN") || name.ends_with("__MAX") || plain.starts_with('_') {
        return Column::Skip;
    }
    if DATED.contains(&plain.as_str()) || COUNTED.contains(&plain.as_str()) || plain == "step" {
        return Column::Skip;
    }
    // The name of a run may hold the separator too, but a tag of W&B begins with its prefix.
    let parted = ["system/", "system."].iter().find_map(|prefix| name.rfind(&format!(" - {prefix}")));
    let parted = parted.or_else(|| name.rfind(" - "));
    let (run, tag) = parted.map_or(("", name), |at| (&name[..at], &name[at + 3..]));
    if tag.starts_with('_') {
        return Column::Skip;
    }
    let tag = tag.strip_prefix("system/").unwrap_or(tag);
    if tag.len().max(run.len()) > MAX_TAG_BYTES {
        return Column::Skip;
    }
    Column::Tag { source: run.to_string(), tag: tag.to_string(), place: None }
}

/// Adds a row; false if it is invalid.
fn take(raw: &mut Raw, table: &mut Table, row: &[String], width: usize) -> bool {
    if row.len() != width {
        return false;
    }
    match table {
        Table::Long { time, source, tag, value } => {
            let (Some(t), Ok(v)) = (date::from_text(&row[*time]), row[*value].trim().parse::<f64>()) else {
                return false;
            };
            let source = source.map_or("", |at| plain(&row[at]));
            raw.sample(source, plain(&row[*tag]), t, v);
        }
        Table::Wide { time, columns } => {
            let Some(t) = date::from_text(&row[*time]) else { return false };
            for (column, cell) in columns.iter_mut().zip(row) {
                let Some(v) = cell.trim().parse::<f64>().ok().filter(|v| v.is_finite()) else { continue };
                let Column::Tag { source, tag, place } = column else { continue };
                *place = place.or_else(|| raw.place(source, tag));
                match place {
                    Some(place) => raw.add(*place, t, v),
                    None => *column = Column::Skip,
                }
            }
        }
    }
    true
}

/// Removes the apostrophe that our export puts before a text which a spreadsheet would take for a formula.
fn plain(cell: &str) -> &str {
    let formula =
        |rest: &&str| rest.trim_start().starts_with(['=', '+', '-', '@']) || rest.starts_with(['\t', '\r', '\n']);
    cell.strip_prefix('\'').filter(formula).unwrap_or(cell)
}
