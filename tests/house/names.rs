//! Names that do not tell what they name.

use super::source::{Source, word};

/// Names of constants that give an amount or a relation, but not of what. `MAX_<WHAT>`, `MIN_<WHAT>`,
/// `<WHAT>_TIMEOUT`, `<WHAT>_INTERVAL` or `<WHAT>_LIFETIME` tell it; the unit is in the type or the name.
const CONSTANTS: &[&str] = &[
    "AGAIN",
    "APART",
    "AWAY",
    "BACK",
    "FAR",
    "FEW",
    "FRESH",
    "FULL",
    "GAP",
    "GATHER",
    "HEARD",
    "HELD",
    "HOLDS",
    "IDLES",
    "KEPT",
    "KNOWN",
    "LEAST",
    "LEFT",
    "LESS",
    "LONG",
    "LONGEST",
    "LOOK",
    "LOOKED",
    "LOOKS",
    "MANY",
    "MARGIN",
    "MOST",
    "MOVING",
    "OVER",
    "PATIENCE",
    "PAUSE",
    "PAUSES",
    "PERIOD",
    "QUIET",
    "REMEMBERED",
    "REST",
    "SAID",
    "SHORT",
    "SHORTEST",
    "SHOWN",
    "SILENCE",
    "SLOW",
    "SOON",
    "STALE",
    "SURE",
    "TALLEST",
    "TOGETHER",
    "TOLD",
    "TRIES",
    "TURN",
    "TURNS",
    "UNHEARD",
    "UNTOLD",
    "WITHIN",
    "YOUNG",
];

/// The names in code that follow one of these keywords, and their lines.
fn declared<'a>(code: &'a str, keywords: &'a [&str]) -> impl Iterator<Item = (usize, &'a str)> {
    code.lines().enumerate().filter_map(|(at, line)| {
        let mut words = line.split(|c: char| !word(c)).filter(|part| !part.is_empty());
        let mut before = words.next()?;
        words.find_map(|part| {
            let follows = keywords.contains(&before);
            before = part;
            (follows && part != "mut").then_some((at + 1, part))
        })
    })
}

/// Declarations with one of the refused names, and the advice for them.
fn refused(sources: &[Source], keywords: &[&str], names: &[&str], advice: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        for (line, name) in declared(&source.code, keywords).filter(|(_, name)| names.contains(name)) {
            faults.push(format!("{}:{line}: {name} {advice}", source.path));
        }
    }
    faults
}

/// The name of a constant tells what it measures or limits.
pub fn constants(sources: &[Source]) -> Vec<String> {
    refused(sources, &["const", "static"], CONSTANTS, "does not tell of what: MAX_<WHAT>, <WHAT>_TIMEOUT, ...")
}
