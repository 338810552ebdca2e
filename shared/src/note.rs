//! Notes of people about a machine or a run, at an instant or over a span.

use crate::json::Seconds;
use serde::{Deserialize, Serialize};

/// Maximum length of a note, bytes.
pub const MAX_NOTE_BYTES: usize = 2 << 10;

/// Maximum time of a note ahead of the server's clock, milliseconds.
const MAX_AHEAD_MS: i64 = 60_000;

/// `POST /api/v1/notes`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewNote {
    /// Its text, at most [`MAX_NOTE_BYTES`] bytes.
    pub text: String,
    /// When it was, Unix seconds; now if it is left out.
    pub t: Option<Seconds>,
    /// When it was over.
    pub end: Option<Seconds>,
    /// Name of its machine. If machine and run are left out, it is about the only machine.
    pub source: Option<String>,
    /// ID of its run.
    pub run: Option<String>,
}

/// `PUT /api/v1/notes/{id}`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NoteChange {
    /// Its new text.
    pub text: String,
    /// The version that is changed.
    pub version: u64,
}

/// A note.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedNote {
    /// Its ID.
    pub id: String,
    /// Its text.
    pub text: String,
    /// When it was.
    pub t: Seconds,
    /// When it was over; left out for an instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Seconds>,
    /// Name of its machine; for a note about a run, of the first one.
    pub source: String,
    /// ID of its run; left out if it is about a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Name of its writer.
    pub by: String,
    /// When it was changed last.
    pub updated: Seconds,
    /// Rises with each change.
    pub version: u64,
    /// Whether the caller may change and remove it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// `GET /api/v1/notes`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// In order of time; the newest ones if there are too many.
    pub notes: Vec<SavedNote>,
}

impl SavedNote {
    /// Its first line.
    pub fn title(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }
}

/// A text as it is stored.
///
/// # Errors
/// A sentence: it is empty or too long, or has control characters other than line breaks and tabs.
pub fn checked(text: &str) -> Result<String, String> {
    let text = text.trim().replace("\r\n", "\n");
    match text.len() {
        0 => Err("the note has no text".into()),
        length if length > MAX_NOTE_BYTES => Err(format!("a note has at most {MAX_NOTE_BYTES} bytes")),
        _ if text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')) => {
            Err("a note has no control characters".into())
        }
        _ => Ok(text),
    }
}

impl NewNote {
    /// Its begin and its end, milliseconds since the Unix epoch, like `now`.
    ///
    /// # Errors
    /// A sentence: it is in the future, or ends before it begins.
    pub fn span(&self, now: i64) -> Result<(i64, Option<i64>), String> {
        let (t, end) = (self.t.map_or(now, Seconds::ms), self.end.map(Seconds::ms));
        if [Some(t), end].into_iter().flatten().any(|t| !(0..=now + MAX_AHEAD_MS).contains(&t)) {
            return Err("t and end are Unix seconds, and not in the future".into());
        }
        match end {
            Some(end) if end < t => Err("end is before t".into()),
            end => Ok((t, end.filter(|end| *end > t))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_bounded_and_plain() {
        assert_eq!(checked("  new PSU\r\n\tin rack 3 "), Ok("new PSU\n\tin rack 3".into()));
        for (wrong, why) in [
            (String::new(), "no text"),
            (" \n ".into(), "no text"),
            ("a\u{1b}[31m".into(), "control characters"),
            ("a\u{0}b".into(), "control characters"),
            ("n".repeat(MAX_NOTE_BYTES + 1), "at most 2048 bytes"),
        ] {
            let error = checked(&wrong).expect_err("refused");
            assert!(error.contains(why), "{wrong:?}: {error}");
        }
    }

    #[test]
    fn a_note_is_at_an_instant_or_over_a_span_of_the_past() {
        let note = |t: Option<i64>, end: Option<i64>| {
            NewNote { t: t.map(Seconds), end: end.map(Seconds), ..NewNote::default() }.span(100_000)
        };
        assert_eq!(note(None, None), Ok((100_000, None)));
        assert_eq!(note(Some(5_000), Some(9_000)), Ok((5_000, Some(9_000))));
        assert_eq!(note(Some(5_000), Some(5_000)), Ok((5_000, None)), "a click is an instant");
        assert!(note(Some(9_000), Some(5_000)).is_err() && note(Some(-1), None).is_err());
        assert!(note(Some(200_000), None).is_err() && note(Some(i64::MAX), None).is_err());
    }
}
