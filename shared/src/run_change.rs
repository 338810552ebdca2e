//! Changes of a run by people: the body of `PATCH /api/v1/runs/{id}`.

use crate::run::{About, MAX_TAGS, MAX_TEXT_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `PATCH /api/v1/runs/{id}`: new names of a run. An absent field stays as it is; an empty text removes the value.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunChange {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The group of runs that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its role in that group, such as `train` or `eval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_type: Option<String>,
    /// Notes for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// All its tags, each with its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// The version that is changed, as `edited.version` of the run; 0 if it was never changed. Without it the change
    /// applies to any version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Checks a text of a run that a person or a program writes; only `lines` may have line breaks and tabs.
///
/// # Errors
/// A sentence: the text is too long, or has control characters.
pub fn check_text(text: &str, lines: bool) -> Result<(), String> {
    let is_bad = |letter: char| letter.is_control() && !(lines && matches!(letter, '\n' | '\t'));
    match (text.len() > MAX_TEXT_BYTES, text.chars().any(is_bad)) {
        (true, _) => Err(format!("a name, tag or note of a run has at most {MAX_TEXT_BYTES} bytes")),
        (_, true) => Err("a name, tag or note of a run has no control characters".into()),
        _ => Ok(()),
    }
}

/// Checks the tags of a run.
///
/// # Errors
/// A sentence: there are too many, one has no name, or a text is invalid.
pub fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), String> {
    if tags.len() > MAX_TAGS {
        return Err(format!("a run has at most {MAX_TAGS} tags"));
    }
    if tags.keys().any(|name| name.is_empty()) {
        return Err("a tag of a run has a name".into());
    }
    tags.iter().flat_map(|(name, value)| [name, value]).try_for_each(|text| check_text(text, false))
}

impl RunChange {
    /// The change with its texts trimmed.
    ///
    /// # Errors
    /// A sentence: a text or the tags are invalid, or nothing is changed.
    pub fn checked(self) -> Result<RunChange, String> {
        let trimmed = |text: Option<String>| text.map(|text| text.trim().to_string());
        let change = RunChange {
            name: trimmed(self.name),
            group: trimmed(self.group),
            job_type: trimmed(self.job_type),
            notes: trimmed(self.notes),
            ..self
        };
        if (RunChange { version: None, ..change.clone() }) == RunChange::default() {
            return Err("the change is empty; send name, group, job_type, notes or tags".into());
        }
        for text in [&change.name, &change.group, &change.job_type].into_iter().flatten() {
            check_text(text, false)?;
        }
        change.notes.iter().try_for_each(|text| check_text(text, true))?;
        change.tags.iter().try_for_each(check_tags)?;
        Ok(change)
    }

    /// This change followed by another one; the other's version is dropped.
    pub fn then(self, next: RunChange) -> RunChange {
        RunChange {
            name: next.name.or(self.name),
            group: next.group.or(self.group),
            job_type: next.job_type.or(self.job_type),
            notes: next.notes.or(self.notes),
            tags: next.tags.or(self.tags),
            version: None,
        }
    }

    /// Replaces the changed names.
    pub fn apply(&self, about: &mut About) {
        let set = |new: &Option<String>, old: &mut Option<String>| {
            if let Some(text) = new {
                *old = Some(text.clone()).filter(|text| !text.is_empty());
            }
        };
        set(&self.name, &mut about.name);
        set(&self.group, &mut about.group);
        set(&self.job_type, &mut about.job_type);
        set(&self.notes, &mut about.notes);
        if let Some(tags) = &self.tags {
            about.tags.clone_from(tags);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> RunChange {
        RunChange { name: Some(name.into()), ..RunChange::default() }
    }

    #[test]
    fn a_change_is_bounded_and_plain() {
        assert_eq!(named("  lr sweep ").checked(), Ok(named("lr sweep")));
        let notes = |text: &str| RunChange { notes: Some(text.into()), ..RunChange::default() };
        assert_eq!(notes("first\n\tsecond").checked(), Ok(notes("first\n\tsecond")));
        let tags =
            |tags: Vec<(String, String)>| RunChange { tags: Some(tags.into_iter().collect()), ..RunChange::default() };
        assert_eq!(tags(Vec::new()).checked(), Ok(tags(Vec::new())), "no tags any more");
        let many = (0..=MAX_TAGS).map(|n| (n.to_string(), String::new())).collect();
        for (wrong, why) in [
            (RunChange::default(), "the change is empty"),
            (RunChange { version: Some(1), ..RunChange::default() }, "the change is empty"),
            (named("a\nb"), "control characters"),
            (named("a\u{1b}[31m"), "control characters"),
            (notes("a\u{0}"), "control characters"),
            (named(&"n".repeat(MAX_TEXT_BYTES + 1)), "at most 1024 bytes"),
            (tags(many), "at most 32 tags"),
            (tags(vec![(String::new(), "x".into())]), "has a name"),
            (tags(vec![("a\r".into(), String::new())]), "control characters"),
        ] {
            let error = wrong.clone().checked().expect_err("refused");
            assert!(error.contains(why), "{wrong:?}: {error}");
        }
    }

    #[test]
    fn a_later_change_replaces_its_fields_only() {
        let group = RunChange { group: Some("sweep".into()), version: Some(1), ..RunChange::default() };
        let both = named("first").then(group).then(named(""));
        let mut about = About { name: Some("old".into()), project: Some("llm".into()), ..About::default() };
        both.apply(&mut about);
        let left = About { group: Some("sweep".into()), project: Some("llm".into()), ..About::default() };
        assert_eq!(about, left, "an empty name is none");
    }
}
