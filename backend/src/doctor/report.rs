//! The report for a person: first failures, then working families, then absent ones.

use super::Examination;
use shared::wire::{Check, CheckState};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Default width of a terminal, columns.
const COLUMNS: usize = 100;

/// Mark and word of a state; without a word if the heading has it already.
fn words_of_state(state: CheckState) -> (&'static str, &'static str) {
    match state {
        CheckState::Denied => ("■", "not permitted: "),
        CheckState::Failed => ("■", "failed: "),
        CheckState::Hung => ("■", "hung: "),
        CheckState::Partial => ("▲", "partly: "),
        CheckState::Starting => ("◌", "no result yet: "),
        CheckState::Ok => ("●", ""),
        CheckState::Absent => ("◌", ""),
    }
}

/// Link to the guide. Every running Watchglass serves the page.
const GUIDE: &str = "The guide has a section for each name: /docs/start/collectors.html of a running Watchglass.\n\n";

/// The report, wrapped for a terminal; its last lines list the failures.
pub fn report(examination: &Examination) -> String {
    let checks = &examination.checks;
    let here = checks.iter().filter(|c| c.state == CheckState::Ok).count();
    let mut text = format!(
        "Watchglass {} on {} ({}): {here} of {} families work here.\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        checks.len()
    );
    let width = checks.iter().map(|c| c.id.chars().count()).max().unwrap_or(0);
    for (place, heading) in ["Needs attention", "Works", "Not available"].into_iter().enumerate() {
        let of = |check: &Check| match check.state {
            _ if examination.faults.iter().any(|(id, _)| *id == check.id) => 0,
            CheckState::Absent => 2,
            _ => 1,
        };
        let mut group = checks.iter().filter(|c| of(c) == place).peekable();
        if group.peek().is_some() {
            let _ = writeln!(text, "\n{heading}");
            group.for_each(|check| one(&mut text, check, width));
        }
    }
    text.push('\n');
    if checks.iter().any(|check| check.state != CheckState::Ok) {
        text.push_str(GUIDE);
    }
    match &examination.faults[..] {
        [] => text.push_str("All requested collectors work.\n"),
        faults => {
            text.push_str("Problems:\n");
            faults.iter().for_each(|(_, fault)| paragraph(&mut text, "  - ", fault));
        }
    }
    text
}

/// The servers of a hub.
pub fn servers(checks: &[Check]) -> String {
    let width = checks.iter().map(|c| c.id.chars().count()).max().unwrap_or(0);
    let mut text = if checks.is_empty() { String::new() } else { "\nServers in the configuration\n".to_string() };
    checks.iter().for_each(|check| one(&mut text, check, width));
    text
}

fn one(text: &mut String, check: &Check, width: usize) {
    let (mark, word) = words_of_state(check.state);
    let head = format!("  {mark} {:width$}  ", check.id);
    paragraph(text, &head, &format!("{word}{}", check.found));
    let indent = " ".repeat(width + 6);
    // The tried places are useless for a check that works.
    let tried = if check.state == CheckState::Ok { String::new() } else { places(&check.tried) };
    for (word, what) in [("why", &check.reason), ("do", &check.remedy), ("tried", &tried)] {
        if !what.is_empty() {
            paragraph(text, &format!("{indent}{word:<5}  "), what);
        }
    }
}

/// The tried places in short: a tool that was searched in many folders is named once.
fn places(tried: &[String]) -> String {
    let split = |path: &str| path.rsplit_once('/').map(|(folder, name)| (folder.to_string(), name.to_string()));
    let mut words: Vec<String> = Vec::new();
    for path in tried {
        let Some((folder, name)) = split(path) else {
            words.push(path.clone());
            continue;
        };
        let folders: BTreeSet<String> =
            tried.iter().filter_map(|p| split(p)).filter(|(_, n)| *n == name).map(|(folder, _)| folder).collect();
        words.push(match folders.len() {
            0..=3 => path.clone(),
            n => format!("{name} in {n} folders ({}, ...)", folders.first().unwrap_or(&folder)),
        });
    }
    let mut seen = BTreeSet::new();
    words.retain(|word| seen.insert(word.clone()));
    words.join(", ")
}

/// Text behind a head, wrapped below itself. A word that is longer than a line, such as a path, is never cut.
fn paragraph(text: &mut String, head: &str, words: &str) {
    let indent = head.chars().count();
    text.push_str(head);
    let mut column = indent;
    for (i, word) in words.split_whitespace().enumerate() {
        let length = word.chars().count();
        if i > 0 && column + 1 + length > COLUMNS {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if i > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
}
