//! Labels of machines: validation and stored form.

use super::Denied;
use records::sources::Source;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of labels of one machine.
const LABELS: usize = 32;

/// The stored form of settings and labels.
pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and flags only")
}

pub(super) fn labels_of(source: &Source) -> BTreeMap<String, String> {
    parsed(&source.labels)
}

/// Labels from their stored form.
pub(super) fn parsed(text: &str) -> BTreeMap<String, String> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Checks the limits of labels.
pub(super) fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), Denied> {
    if labels.len() > LABELS {
        return Err(Denied::invalid(format!("a machine has at most {LABELS} labels")));
    }
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._/-".contains(c);
    for (key, value) in labels {
        if key.is_empty() || key.len() > 63 || !key.chars().all(good) {
            let sentence = "the key of a label has 1 to 63 lower-case letters, digits, \".\", \"_\", \"/\" or \"-\"";
            return Err(Denied::invalid(format!("{sentence}; {key:?} does not")));
        }
        if value.len() > 256 || value.chars().any(char::is_control) {
            return Err(Denied::invalid(format!(
                "the value of label {key:?} is longer than 256 bytes or not plain text"
            )));
        }
    }
    Ok(())
}
