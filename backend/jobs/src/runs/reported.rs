//! Runs that their launchers tell of by requests, as one without our binary can: begin, heartbeats, end. Their state is that
//! launcher's word, and says so.

use shared::reported::{NewRun, ReportedEvent};
#[cfg(unix)]
use shared::run::Begun;
use shared::run::{About, How, check_id};
use std::fmt;
use tokio::sync::{mpsc, oneshot};
#[cfg(unix)]
use tokio::time::Instant;

/// The most runs that are told of at once; further ones are refused and counted.
pub(super) const MAX_REPORTED: usize = 1_000;

/// Reports that wait to be taken in.
const MAX_WAITING: usize = 64;

/// What a launcher tells, when it keeps to the bounds.
#[derive(Debug)]
pub enum Report {
    /// A run of this id begins.
    Begin(String, About),
    /// It goes on.
    Heartbeat(String),
    /// It has ended.
    End(String, How),
}

impl Report {
    /// The report that a run of this id begins, whose launcher is this user's.
    ///
    /// # Errors
    /// A field keeps no bound: a sentence.
    pub fn begin(new: NewRun, id: String, user: Option<String>) -> Result<Report, String> {
        check_id(&id)?;
        Ok(Report::Begin(id, new.about(user)?))
    }

    /// The report of what happens to the run of this id.
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

/// Why a report is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusedReport {
    /// More than is taken.
    TooMany,
    /// No run of this id is told of now.
    Unknown(String),
    /// The processes of the run of this id are known here.
    Other(String),
    /// No runs are followed here.
    Nobody,
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
            RefusedReport::Nobody => f.write_str("runs need a data folder; start the server without --memory"),
        }
    }
}

/// A report, and who waits for what becomes of it.
#[derive(Debug)]
pub struct ReportAsk {
    pub(super) report: Report,
    pub(super) answer: oneshot::Sender<Result<bool, RefusedReport>>,
}

/// Hands reports to who follows the runs of this machine.
#[derive(Debug)]
pub struct Reports(mpsc::Sender<ReportAsk>);

/// What hands reports over, and what takes them.
pub fn reports() -> (Reports, mpsc::Receiver<ReportAsk>) {
    let (reports, asked) = mpsc::channel(MAX_WAITING);
    (Reports(reports), asked)
}

impl Reports {
    /// Hands one over; whether its run is new.
    ///
    /// # Errors
    /// Why it is not taken.
    pub async fn take(&self, report: Report) -> Result<bool, RefusedReport> {
        let (answer, answered) = oneshot::channel();
        self.0.try_send(ReportAsk { report, answer }).map_err(|_| RefusedReport::TooMany)?;
        answered.await.unwrap_or(Err(RefusedReport::Nobody))
    }
}

/// A run that is told of by requests, and goes on as far as is known.
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
            Report::begin(new, id.into(), Some("mara".into()))
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
