//! Alerts from code, as stored in a machine's records. A script reports a problem by `watchglass alert`, a datagram or
//! the API. The rule evaluation reads the alerts back from JSON through [`AlertCall::kept`], and merges them.
//!
//! Equal calls within a short time are one record with a count, so that a loop that alerts in each step costs little.

use crate::alert::{AlertSeverity, CodeAlert, MAX_TEXT_BYTES, MAX_TITLE_BYTES};
use crate::rule::{MAX_DURATION, clean, duration};
use crate::run::check_id;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a record that is one or more alerts from code.
pub const ALERT_KIND: &str = "alert";

/// Default time in which repeats are merged, seconds.
pub const DEFAULT_WAIT_SECONDS: u32 = 600;

/// Maximum length of the id of a call, bytes.
pub const MAX_CALL_ID_BYTES: usize = 64;

/// Maximum number of ranks of one record.
pub const MAX_CALL_RANKS: usize = 1_024;

/// Maximum lead of a time over our clock, milliseconds.
const MAX_AHEAD_MS: i64 = 60_000;

/// An alert from code, sent once or several times within a short time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertCall {
    /// One clean line of 1 to [`MAX_TITLE_BYTES`] bytes. Its placeholders are never filled.
    pub title: String,
    /// Clean text of at most [`MAX_TEXT_BYTES`] bytes; it may contain newlines. Its placeholders are never filled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[allow(missing_docs, reason = "see AlertSeverity; the worst of the calls")]
    pub severity: AlertSeverity,
    /// Time in which repeats are merged, seconds; at most [`MAX_DURATION`].
    pub wait: u32,
    /// The run that the kernel reported, or that an API caller may write to; None: the alert belongs to the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Ranks that sent it, in order of arrival; at most [`MAX_CALL_RANKS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<u32>,
    /// Number of calls, from 1.
    pub count: u64,
    /// The name that the caller gave the call: calls with the same name are one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Time of the call, or of the first of several, milliseconds since the Unix epoch: the time of the record.
    #[serde(skip)]
    pub t: i64,
}

/// Reason why a call is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadAlertCall {
    /// Its title is empty after cleaning.
    Title,
    /// The merge time is invalid.
    Wait,
    /// The id of its run is invalid.
    Run,
    /// The id of the call is invalid.
    Id,
    /// Its time is invalid, or ahead of our clock.
    Time,
}

impl fmt::Display for BadAlertCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAlertCall::Title => write!(f, "an alert has a title of 1 to {MAX_TITLE_BYTES} bytes"),
            BadAlertCall::Wait => f.write_str("wait is 0s to 7d, such as 90s, 30m or 2h"),
            BadAlertCall::Run => f.write_str("run is the ID of a run; `watchglass runs` lists them"),
            BadAlertCall::Id => {
                write!(f, "id is a name of 1 to {MAX_CALL_ID_BYTES} bytes, without spaces, unique to the call")
            }
            BadAlertCall::Time => f.write_str("t is Unix seconds, and not in the future"),
        }
    }
}

impl std::error::Error for BadAlertCall {}

impl AlertCall {
    /// A caller's alert, clean and within its limits. `now` is milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// [`BadAlertCall`].
    pub fn checked(said: CodeAlert, now: i64) -> Result<AlertCall, BadAlertCall> {
        let title = clean(&said.title, MAX_TITLE_BYTES, false);
        if title.is_empty() {
            return Err(BadAlertCall::Title);
        }
        let wait = match &said.wait {
            Some(wait) => duration(wait).map_err(|_| BadAlertCall::Wait)?,
            None => DEFAULT_WAIT_SECONDS,
        };
        if said.run.as_ref().is_some_and(|run| check_id(run).is_err()) {
            return Err(BadAlertCall::Run);
        }
        let is_id =
            |id: &String| (1..=MAX_CALL_ID_BYTES).contains(&id.len()) && id.chars().all(|c| c.is_ascii_graphic());
        if !said.id.as_ref().is_none_or(is_id) {
            return Err(BadAlertCall::Id);
        }
        let ms = |t: f64| Some((t * 1_000.0).round()).filter(|ms| *ms >= 0.0 && *ms <= (now + MAX_AHEAD_MS) as f64);
        let t = said.t.map_or(Ok(now), |t| ms(t).map(|ms| ms as i64).ok_or(BadAlertCall::Time))?;
        let text = clean(&said.text, MAX_TEXT_BYTES, true);
        let CodeAlert { severity, run, id, .. } = said;
        Ok(AlertCall { title, text, severity, wait, run, ranks: Vec::new(), count: 1, id, t })
    }

    /// The alert in a record of this time, milliseconds since the Unix epoch, within its limits: the record may come
    /// from another machine, of any version. None if it holds no alert.
    pub fn kept(self, t: i64) -> Option<AlertCall> {
        let mut ranks = self.ranks;
        ranks.truncate(MAX_CALL_RANKS);
        let call = AlertCall {
            title: clean(&self.title, MAX_TITLE_BYTES, false),
            text: clean(&self.text, MAX_TEXT_BYTES, true),
            wait: self.wait.min(MAX_DURATION),
            count: self.count.max(1),
            run: self.run.filter(|run| check_id(run).is_ok()),
            id: self.id.filter(|id| id.len() <= MAX_CALL_ID_BYTES),
            severity: self.severity,
            ranks,
            t,
        };
        Some(call).filter(|call| !call.title.is_empty())
    }

    /// Owner of its limits, and scope of its title: the run, or empty for the machine.
    pub fn whose(&self) -> &str {
        self.run.as_deref().unwrap_or_default()
    }

    /// Merges another call with the same content.
    pub fn fold(&mut self, newer: AlertCall) {
        self.count = self.count.saturating_add(newer.count);
        self.severity = self.severity.max(newer.severity);
        self.wait = newer.wait;
        if !newer.text.is_empty() {
            self.text = newer.text;
        }
        for rank in newer.ranks {
            if self.ranks.len() < MAX_CALL_RANKS && !self.ranks.contains(&rank) {
                self.ranks.push(rank);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000_000;

    fn code_alert(title: &str) -> CodeAlert {
        CodeAlert { title: title.into(), ..CodeAlert::default() }
    }

    #[test]
    fn a_call_is_kept_as_it_was_said() {
        let all = CodeAlert {
            title: "loss is NaN".into(),
            text: "step 3\nlr {run} @everyone <b>".into(),
            severity: AlertSeverity::Critical,
            wait: Some("30m".into()),
            run: Some("a1b2".into()),
            t: Some(1_789_999_999.5),
            id: Some("one".into()),
            source: None,
        };
        let call = AlertCall::checked(all, NOW).expect("an alert");
        assert_eq!((call.wait, call.count, call.t), (1_800, 1, 1_789_999_999_500));
        assert_eq!(call.text, "step 3\nlr {run} @everyone <b>", "it is data, and stays as it was written");
        assert_eq!(call.clone().kept(call.t), Some(call));
    }

    #[test]
    fn what_is_no_alert_says_why() {
        let wrong = |said: CodeAlert| AlertCall::checked(said, NOW).map(|call| call.title);
        for title in ["", " \n\t", "\u{202e}\u{7}"] {
            assert_eq!(wrong(code_alert(title)), Err(BadAlertCall::Title), "{title:?}");
        }
        for wait in ["8d", "-1s", "soon", "2w", "", "NaN", "inf", "m"] {
            assert_eq!(
                wrong(CodeAlert { wait: Some(wait.into()), ..code_alert("a") }),
                Err(BadAlertCall::Wait),
                "{wait}"
            );
        }
        assert_eq!(wrong(CodeAlert { run: Some("../a".into()), ..code_alert("a") }), Err(BadAlertCall::Run));
        for id in ["", "a b", &"x".repeat(MAX_CALL_ID_BYTES + 1)] {
            assert_eq!(wrong(CodeAlert { id: Some(id.into()), ..code_alert("a") }), Err(BadAlertCall::Id));
        }
        for t in [-1.0, f64::NAN, f64::INFINITY, NOW as f64 / 1_000.0 + 61.0] {
            assert_eq!(wrong(CodeAlert { t: Some(t), ..code_alert("a") }), Err(BadAlertCall::Time), "{t}");
        }
    }

    #[test]
    fn titles_are_one_line_and_texts_keep_theirs() {
        let call = |title: &str, text: &str| {
            let call = AlertCall::checked(CodeAlert { text: text.into(), ..code_alert(title) }, NOW).expect("an alert");
            (call.title, call.text)
        };
        let wild = call(" loss\nis\tNaN \u{1b}[2J\u{202e}x ", "a\r\nb\u{7}\n\n");
        assert_eq!(wild, ("loss is NaN [2Jx".into(), "a\nb".into()));
        let (title, text) = call(&"é".repeat(100), &"é".repeat(1_001));
        assert!(title.len() <= MAX_TITLE_BYTES && text.len() <= MAX_TEXT_BYTES, "{title} {text}");
    }

    #[test]
    fn calls_that_say_the_same_are_one_that_counts() {
        let one = |rank: u32, severity| AlertCall {
            ranks: vec![rank],
            severity,
            ..AlertCall::checked(code_alert("loss is NaN"), NOW).expect("an alert")
        };
        let mut all = one(3, AlertSeverity::Info);
        all.fold(one(1, AlertSeverity::Critical));
        all.fold(AlertCall { text: "step 9".into(), wait: 5, ..one(3, AlertSeverity::Warning) });
        assert_eq!((all.count, all.ranks.as_slice(), all.severity), (3, &[3, 1][..], AlertSeverity::Critical));
        assert_eq!((all.text.as_str(), all.wait), ("step 9", 5));
    }

    #[test]
    fn a_record_of_another_machine_keeps_to_the_bounds_too() {
        let wild = AlertCall {
            title: "a\nb".into(),
            wait: 99_999_999,
            run: Some("../x".into()),
            ranks: (0..9_999).collect(),
            ..AlertCall::default()
        };
        let call = wild.kept(5).expect("an alert");
        assert_eq!((call.title.as_str(), call.wait, call.run, call.count), ("a b", MAX_DURATION, None, 1));
        assert_eq!((call.ranks.len(), call.t), (MAX_CALL_RANKS, 5));
        assert_eq!(AlertCall { title: "\n".into(), ..AlertCall::default() }.kept(5), None);
    }
}
