//! Runs that their launchers report by requests, without our binary: begin, heartbeats, end. Their state is the
//! launcher's claim, and is labeled as such.

use shared::reported::{NewRun, ReportedEvent};
#[cfg(unix)]
use shared::run::Begun;
use shared::run::{About, How, check_id};
use std::fmt;
use tokio::sync::{mpsc, oneshot};
#[cfg(unix)]
use tokio::time::Instant;

/// Maximum number of reported runs; further ones are refused and counted.
pub(super) const MAX_REPORTED: usize = 1_000;

/// Maximum number of queued reports.
const MAX_WAITING: usize = 64;

/// A valid report of a launcher.
#[derive(Debug)]
pub enum Report {
    /// A run of this id begins.
    Begin(String, About),
    /// The run is still going on.
    Heartbeat(String),
    /// It has ended.
    End(String, How),
}

impl Report {
    /// The report that a run of this ID begins: from a launcher of this user, or by a request of a person or key to a
    /// hub.
    ///
    /// # Errors
    /// A field exceeds its limit: a sentence.
    pub fn begin(new: NewRun, id: String, (user, sent_by): (Option<String>, Option<String>)) -> Result<Report, String> {
        check_id(&id)?;
        Ok(Report::Begin(id, new.about(user, sent_by)?))
    }

    /// The report of an event of the run of this ID.
    ///
    /// # Errors
    /// The fields do not fit the event: a sentence.
    pub fn of_event(event: ReportedEvent, id: String) -> Result<Report, String> {
        check_id(&id)?;
        Ok(match event.end()? {
            Some(how) => Report::End(id, how),
            None => Report::Heartbeat(id),
        })
    }
}

/// Reason why a report is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedReport {
    /// The limit is reached.
    TooMany,
    /// No run of this ID is reported now.
    Unknown(String),
    /// The processes of the run of this ID are known here.
    Other(String),
    /// Runs are not followed here.
    Nobody,
    /// The history does not take it, with the reason.
    NotStored(String),
}

impl fmt::Display for RefusedReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedReport::TooMany => {
                write!(f, "the limit is 100 reports a second and {MAX_REPORTED} runs at once; this report is dropped")
            }
            RefusedReport::Unknown(id) => {
                write!(f, "there is no reported run {id:?} that is still running; begin one with POST api/v1/runs")
            }
            RefusedReport::Other(id) => {
                write!(f, "the run {id:?} is detected from its processes on this machine; choose another id")
            }
            RefusedReport::NotStored(why) => write!(f, "the report could not be stored: {why}; send it again"),
            RefusedReport::Nobody => f.write_str("runs need a data folder; start the server without --memory"),
        }
    }
}

/// A report, and the sender that waits for its result.
#[derive(Debug)]
pub struct ReportAsk {
    pub(super) report: Report,
    pub(super) answer: oneshot::Sender<Result<bool, RefusedReport>>,
}

/// Queue of reports to the tracker of this machine's runs.
#[derive(Debug)]
pub struct Reports(mpsc::Sender<ReportAsk>);

/// A new queue: its sender and its receiver.
pub fn reports() -> (Reports, mpsc::Receiver<ReportAsk>) {
    let (reports, asked) = mpsc::channel(MAX_WAITING);
    (Reports(reports), asked)
}

impl Reports {
    /// Sends a report; true if it begins or ends a run, and is no repetition.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub async fn take(&self, report: Report) -> Result<bool, RefusedReport> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(ReportAsk { report, answer }).map_err(|_| RefusedReport::TooMany)?;
        answered.await.unwrap_or(Err(RefusedReport::Nobody))
    }
}

/// A run that is reported by requests, and has not ended as far as is known.
#[cfg(unix)]
pub(super) struct Reported {
    pub begun: Begun,
    pub heard: Instant,
    pub unheard: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};
    use shared::run::{MAX_TAGS, MAX_TEXT_BYTES};
    use std::collections::BTreeMap;

    fn end(body: Value) -> Result<(String, String), String> {
        let event: ReportedEvent = from_value(body).map_err(|error| error.to_string())?;
        match Report::of_event(event, "a".into())? {
            Report::End(id, how) => Ok((id, how.sentence())),
            Report::Begin(id, _) | Report::Heartbeat(id) => Ok((id, String::new())),
        }
    }

    #[test]
    fn an_end_says_one_thing() {
        let said = |body: Value| end(body).expect("an event").1;
        assert_eq!(said(json!({ "event": "heartbeat" })), "");
        assert_eq!(said(json!({ "event": "end", "exit": 0 })), "finished (by report)");
        assert_eq!(said(json!({ "event": "end", "exit": 3 })), "failed (exit 3, by report)");
        assert_eq!(said(json!({ "event": "end", "signal": "SIGSEGV" })), "crashed (SIGSEGV, by report)");
        assert_eq!(said(json!({ "event": "end", "state": "preempted" })), "preempted (by report)");
        for (wrong, why) in [
            (json!({ "event": "end" }), "one of exit, signal and state"),
            (json!({ "event": "end", "exit": 1, "signal": "SIGKILL" }), "one of exit, signal and state"),
            (json!({ "event": "end", "signal": "KILL" }), "a name, such as SIGKILL"),
            (json!({ "event": "end", "signal": "SIG\u{1b}[31m" }), "a name, such as SIGKILL"),
            (json!({ "event": "end", "state": "running" }), "state is one of finished"),
            (json!({ "event": "end", "state": "lost" }), "state is one of finished"),
            (json!({ "event": "pause" }), "unknown variant"),
            (json!({ "event": "heartbeat", "at": 1 }), "unknown field"),
            (json!({ "event": "heartbeat", "exit": 1 }), "no exit, signal or state"),
        ] {
            let error = end(wrong.clone()).expect_err("refused");
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn names_keep_the_bounds_of_all_runs() {
        let report = |body: Value, id: &str| {
            let new: NewRun = from_value(body).map_err(|error| error.to_string())?;
            Report::begin(new, id.into(), (Some("mara".into()), None))
        };
        let Ok(Report::Begin(id, about)) = report(json!({ "name": "lr", "tags": { "a": "b" } }), "x") else {
            panic!("a run")
        };
        assert_eq!((id.as_str(), about.name.as_deref(), about.user.as_deref()), ("x", Some("lr"), Some("mara")));
        let tags: BTreeMap<String, String> = (0..=MAX_TAGS).map(|n| (n.to_string(), String::new())).collect();
        for (body, id, why) in [
            (json!({}), "../x", "letters, digits"),
            (json!({ "notes": "n".repeat(MAX_TEXT_BYTES + 1) }), "x", "at most 1024 bytes"),
            (json!({ "tags": tags }), "x", "at most 32 tags"),
            (json!({ "user": "root" }), "x", "unknown field"),
        ] {
            let error = report(body, id).expect_err("refused");
            assert!(error.contains(why), "{error}");
        }
    }
}
