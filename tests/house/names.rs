//! Names that do not tell what they name.

use super::source::{Source, is_word_char};

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

/// Names of private types that do not tell whose row, answer or state they are. A type that other crates use is read
/// with the name of its module.
const TYPES: &[&str] =
    &["Answer", "Entry", "Found", "Kept", "Known", "Part", "Place", "Row", "Said", "Seen", "State", "Told"];

/// Names of functions without a verb and its object, or with a verb for people. Conversions are `from_*`, `to_*` and
/// `into_*`.
const FUNCTIONS: &[&str] = &["hear", "heard", "look", "of", "said", "say", "told"];

/// The names in code that follow one of these keywords, and their lines.
fn declared<'a>(code: &'a str, keywords: &'a [&str]) -> impl Iterator<Item = (usize, &'a str)> {
    code.lines().enumerate().filter_map(|(at, line)| {
        let mut words = line.split(|c: char| !is_word_char(c)).filter(|part| !part.is_empty());
        let mut before = words.next()?;
        words.find_map(|part| {
            let follows = keywords.contains(&before);
            before = part;
            (follows && part != "mut").then_some((at + 1, part))
        })
    })
}

/// Declarations with one of the refused names, and the advice for them.
fn refused(
    sources: &[Source],
    keywords: &[&str],
    is_refused: impl Fn(&str, &str) -> bool,
    advice: &str,
) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        let lines: Vec<&str> = source.code.lines().collect();
        for (line, name) in declared(&source.code, keywords).filter(|(line, name)| is_refused(lines[line - 1], name)) {
            faults.push(format!("{}:{line}: {name} {advice}", source.path));
        }
    }
    faults
}

/// The name of a constant tells what it measures or limits.
pub fn constants(sources: &[Source]) -> Vec<String> {
    let is_refused = |_: &str, name: &str| CONSTANTS.contains(&name);
    refused(sources, &["const", "static"], is_refused, "does not tell of what: MAX_<WHAT>, <WHAT>_TIMEOUT, ...")
}

/// The name of a private type tells whose row, answer or state it is.
pub fn types(sources: &[Source]) -> Vec<String> {
    let is_refused = |line: &str, name: &str| TYPES.contains(&name) && !line.trim_start().starts_with("pub ");
    refused(
        sources,
        &["struct", "enum", "type", "trait"],
        is_refused,
        "does not tell whose it is: FleetRow, LinkState, ...",
    )
}

/// The name of a function tells what it does, and with what.
pub fn functions(sources: &[Source]) -> Vec<String> {
    let is_refused = |_: &str, name: &str| FUNCTIONS.contains(&name);
    refused(sources, &["fn"], is_refused, "has no verb with an object: list_members, from_bytes, send_message, ...")
}
