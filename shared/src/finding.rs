//! Findings: a problem with its machine and device, its onset, its evidence and its end.

use crate::json::Seconds;
use serde::{Deserialize, Serialize};

/// The kind of the records that carry findings: one when it is raised, one when its severity or cause changes, one when
/// it has ended. Each has the whole finding, so that the last one of an id is complete.
pub const FINDING_KIND: &str = "finding";

/// Maximum size of one finding as JSON, bytes.
pub const MAX_FINDING_BYTES: usize = (2 << 10) + 160;

/// Severity of a finding.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It is in the list only.
    Note,
    /// It is on top of the page.
    Warning,
    /// It is on top of the page, and people are notified.
    Critical,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// GPUs of one machine, or the machine.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Name of the machine.
    pub source: String,
    /// Numbers of its GPUs, ascending; empty for the machine itself.
    pub gpus: Vec<u32>,
}

/// One condition of the rule with its value when the finding was raised.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The tag with its placeholder, as `gpu.{i}.powerWatts`.
    pub tag: String,
    /// Name of the machine.
    pub source: String,
    /// Text in the place of the placeholder; empty if there is none.
    pub instance: String,
    /// Its text, such as `power 21 % of the limit, usually 88 %`.
    pub words: String,
    /// The value, in the tag's unit; None if it is missing, which the text states.
    pub value: Option<f64>,
    /// Its usual value under load, in the tag's unit.
    pub level: Option<f64>,
    /// The span on which a chart shows it, milliseconds since the Unix epoch.
    pub from: i64,
    #[allow(missing_docs, reason = "see from")]
    pub to: i64,
}

/// Another series that moved at the onset.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Name of the machine.
    pub source: String,
    /// The tag with its placeholder.
    pub tag: String,
    /// Text in the place of the placeholder.
    pub instance: String,
    /// Its value before and after, in the tag's unit.
    pub before: f64,
    #[allow(missing_docs, reason = "see before")]
    pub after: f64,
    /// Size of the move, as a multiple of the series' own spread.
    pub score: f64,
    /// It moved before the onset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
}

/// One problem.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// `kind:machine:first GPU:onset in seconds`: the same after a restart and in a replay.
    pub id: String,
    /// Its kind, such as `hang`.
    pub kind: String,
    /// The rule that detected it, such as `hang.spin`.
    pub rule: String,
    /// Its current severity.
    pub severity: Severity,
    /// Places with the problem.
    pub subject: Vec<Place>,
    /// Places that are affected by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub affects: Vec<Place>,
    /// The device that is no GPU, as `nvme0n1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Its onset, seconds since the Unix epoch: when the first condition began to hold.
    pub since: i64,
    /// When it was raised, seconds since the Unix epoch.
    pub told: i64,
    /// When it ended, seconds since the Unix epoch; None while it is open.
    #[serde(default)]
    pub until: Option<i64>,
    /// Sentence for people: the subject, the onset, the two strongest numbers. In an answer the onset is in UTC, as
    /// `14:03 UTC`, so that a program may print it as it is. In a record, which has no template, the onset is
    /// `{since}`.
    pub sentence: String,
    /// In an answer: the sentence with `{since}` in the place of the onset, for readers in another zone. The onset
    /// itself is `since`; no program needs to parse a sentence. None in a record. See [`Finding::told_at`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence_template: Option<String>,
    /// The next step for a person: one line without a full stop, by rule and cause, such as `Check fans and airflow of the
    /// machine`. Empty in a record from before there were steps.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// The user whom it concerns, as the owner of GPUs that nothing uses. It is hidden with other names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Every condition of the rule.
    pub evidence: Vec<Evidence>,
    /// Other series that moved, at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
    /// The id of the finding that caused this one.
    #[serde(default)]
    pub because: Option<String>,
    /// The lower 95 % bound of this rule's precision in findings of this severity, from 0 to 1, as measured; None if it
    /// had fewer than 20 cases.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Set if a person marked it as wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<Dismissed>,
}

/// A next step as a line of its own, such as `Next: Restart the machine.`; None for an empty one.
pub fn next_line(step: &str) -> Option<String> {
    (!step.is_empty()).then(|| format!("Next: {step}."))
}

/// The place of the onset in the sentence of a record, and in the template of an answer.
const ONSET: &str = "{since}";

/// Maximum length of the reason for a dismissal, characters.
pub const MAX_REASON: usize = 400;

/// A person's mark on a wrong finding. The finding stays in the list, but is not on top of a page.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dismissed {
    /// When, seconds since the Unix epoch.
    pub at: i64,
    /// Name of the person.
    pub by: String,
    /// Reason, in their words: at most [`MAX_REASON`] characters.
    pub why: String,
}

impl Finding {
    /// The sentence with the onset as `time` writes it.
    pub fn told_at(&self, time: impl Fn(i64) -> String) -> String {
        self.sentence_template.as_ref().unwrap_or(&self.sentence).replace(ONSET, &time(self.since))
    }

    /// The sentence with the onset in UTC, as `14:03 UTC`.
    pub fn sentence_utc(&self) -> String {
        self.told_at(|since| format!("{} UTC", &crate::date::text(since * 1000)[11..16]))
    }

    /// The finding as answers have it: its sentence in UTC, and its template.
    pub fn into_answer(self) -> Finding {
        let sentence = self.sentence_utc();
        Finding { sentence_template: Some(self.sentence_template.unwrap_or(self.sentence)), sentence, ..self }
    }

    /// Whether it is on top of a page: open, above note, no consequence of another, and not dismissed.
    pub fn is_on_top(&self) -> bool {
        self.until.is_none() && self.severity > Severity::Note && self.because.is_none() && self.dismissed.is_none()
    }
}

/// `GET /api/v1/findings`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The last evaluated instant.
    pub at: Seconds,
    /// Most recently raised first.
    pub findings: Vec<Finding>,
    /// Coverage of each rule.
    pub rules: Vec<RuleState>,
}

/// `POST /api/v1/findings/wrong`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dismissal {
    /// The finding's ID.
    pub id: String,
    /// Reason why it is wrong, at most [`MAX_REASON`] characters; without it, the previous mark is removed.
    pub why: Option<String>,
}

/// The answer to a [`Dismissal`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DismissedFinding {
    /// The finding's id.
    pub id: String,
    /// The mark; null after it was removed.
    pub dismissed: Option<Dismissed>,
}

/// Availability of a rule's data.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watch {
    /// All its data is available.
    Watching,
    /// Some data is missing; the rule continues with less, as the words state.
    Weaker,
    /// It cannot work without the data that the words name.
    Needs,
}

/// Coverage of a rule on the present machines.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleState {
    /// Its name, as `hang.spin`.
    pub rule: String,
    #[allow(missing_docs, reason = "see Watch")]
    pub state: Watch,
    /// Missing data, such as `weaker without NVLink counters`; empty if none is missing.
    pub words: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_step_is_a_line() {
        assert_eq!(next_line("Restart the machine").as_deref(), Some("Next: Restart the machine."));
        assert_eq!(next_line(""), None);
    }

    #[test]
    fn an_answer_has_its_onset_in_utc_and_a_template_for_other_zones() {
        let text = |sentence: &str| Finding {
            id: "hang:node-7:3:1714566840".into(),
            kind: "hang".into(),
            rule: "hang.spin".into(),
            severity: Severity::Warning,
            subject: Vec::new(),
            affects: Vec::new(),
            device: None,
            since: 1_714_566_840,
            told: 1_714_566_900,
            until: None,
            sentence: sentence.into(),
            sentence_template: None,
            next: String::new(),
            user: None,
            evidence: Vec::new(),
            changed: Vec::new(),
            because: None,
            confidence: None,
            dismissed: None,
        };
        let record = text("GPU 3 stopped at {since}");
        let answer = record.clone().into_answer();
        assert_eq!(answer.sentence, "GPU 3 stopped at 12:34 UTC");
        assert_eq!(answer.sentence_template.as_deref(), Some("GPU 3 stopped at {since}"));
        let berlin = |finding: &Finding| finding.told_at(|since| (since + 7_200).to_string());
        assert_eq!(berlin(&answer), "GPU 3 stopped at 1714574040");
        assert_eq!(berlin(&answer), berlin(&record));
        assert_eq!(answer.clone().into_answer(), answer, "once is enough");
        // A time in it that is not the onset stays as it is.
        let other = text("GPU 3, 12:34 UTC in its log, stopped at {since}").into_answer();
        assert_eq!(other.told_at(|_| "14:34".into()), "GPU 3, 12:34 UTC in its log, stopped at 14:34");
    }
}
