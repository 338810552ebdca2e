//! Suggestions for an unknown word.

use strsim::levenshtein;

/// `; did you mean ...?`, or all known words if none is near.
pub fn nearest(word: &str, known: &[&str]) -> String {
    let near = known.iter().map(|k| (levenshtein(word, k), k)).min().filter(|(d, k)| *d <= 1 + k.len() / 3);
    match near {
        Some((_, near)) => format!("; did you mean {near}?"),
        None => format!("; known are {}", known.join(", ")),
    }
}
