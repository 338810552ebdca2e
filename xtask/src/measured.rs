//! Times of steps. They are written after each run to `target/steps.json`, and the next run reads them as estimates.
//!
//! `xtask/first_build.json` is such a file of the last measured first build, with empty caches on two busy cores. It is
//! used where no time was measured on this machine yet. To renew it: run `cargo xtask build` in a fresh clone with HOME
//! and CARGO_HOME in empty folders, then copy `target/steps.json` over it.

use crate::paths;
use std::path::PathBuf;

/// Result of a step that did its work.
pub const DONE: &str = "done";
/// Result of a step that had nothing to do.
pub const READY: &str = "ready";
/// Result of the row for all steps together.
pub const ALL: &str = "all";

const FIRST_BUILD: &str = include_str!("../first_build.json");

/// A row of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Name of the step, or of the command for the row of all steps.
    pub name: String,
    /// Wall time in seconds.
    pub wall_s: f64,
    /// CPU time in seconds, user and system; absent where the system does not report it.
    pub cpu_s: Option<f64>,
    /// Its result.
    pub result: String,
}

/// The file of the last run.
fn file() -> PathBuf {
    paths::target().join("steps.json")
}

/// Writes the rows of a run.
pub fn keep(rows: &[Measured]) -> Result<(), String> {
    paths::write(&file(), &written(rows))
}

/// Wall time in seconds of a step when it last did its work: on this machine, else in the measured first build.
pub fn usual(step: &str) -> u64 {
    let own = std::fs::read_to_string(file()).unwrap_or_default();
    let took = |text: &str| {
        let rows = read(text).into_iter().rev();
        rows.filter(|row| row.name == step && row.result == DONE).map(|row| row.wall_s.ceil() as u64).next()
    };
    took(&own).or_else(|| took(FIRST_BUILD)).unwrap_or_default()
}

/// The rows as JSON, one per line.
fn written(rows: &[Measured]) -> String {
    let line = |row: &Measured| {
        let cpu = row.cpu_s.map_or_else(|| "null".to_owned(), |cpu| format!("{cpu:.2}"));
        let (name, result) = (escaped(&row.name), escaped(&row.result));
        format!("{{\"step\": \"{name}\", \"wall_s\": {:.2}, \"cpu_s\": {cpu}, \"result\": \"{result}\"}}", row.wall_s)
    };
    format!("[\n{}\n]\n", rows.iter().map(line).collect::<Vec<_>>().join(",\n"))
}

/// Names and results are ours. A quotation mark or a backslash in one would break the file.
fn escaped(text: &str) -> String {
    text.replace(['"', '\\'], "'")
}

/// Reads the output of [`written`]. Lines that are not rows are skipped.
fn read(text: &str) -> Vec<Measured> {
    let row = |line: &str| {
        let after = |key: &str| line.split_once(&format!("\"{key}\": ")).map(|(_, rest)| rest);
        let word = |key: &str| after(key)?.strip_prefix('"')?.split('"').next().map(str::to_owned);
        let number = |key: &str| after(key)?.split([',', '}']).next()?.parse::<f64>().ok();
        Some(Measured {
            name: word("step")?,
            wall_s: number("wall_s")?,
            cpu_s: number("cpu_s"),
            result: word("result")?,
        })
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::{DONE, FIRST_BUILD, Measured, READY, read, written};

    #[test]
    fn what_is_written_is_read() {
        let row = |name: &str, cpu_s, result: &str| Measured {
            name: name.into(),
            wall_s: 12.5,
            cpu_s,
            result: result.into(),
        };
        let rows = [row("page", Some(20.25), DONE), row("a, b", None, READY)];
        assert_eq!(read(&written(&rows)), rows);
        assert_eq!(read("{}\nno row"), []);
    }

    #[test]
    fn the_first_build_was_measured() {
        let rows = read(FIRST_BUILD);
        for part in [crate::setup::WASM_BINDGEN, crate::page::STEP, crate::left::PROGRAM] {
            let row = rows.iter().find(|row| row.name == part && row.result == DONE);
            assert!(row.is_some_and(|row| row.wall_s > 0.0), "{part} is not in first_build.json");
        }
    }
}
