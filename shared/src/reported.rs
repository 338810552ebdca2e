//! Reports about a training job from a launcher without our binary: the bodies of `POST /api/v1/runs` and `POST
//! /api/v1/runs/{id}/events`.

use crate::run::{About, Claim, How, REPORT, RunState};
use crate::run_change::{check_tags, check_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum length of a signal name, bytes.
const MAX_SIGNAL_BYTES: usize = 16;

/// `POST /api/v1/runs`: a run begins. Each text has at most [`MAX_TEXT_BYTES`](crate::run::MAX_TEXT_BYTES) bytes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NewRun {
    /// Its ID; the server makes one if it is absent.
    pub id: Option<String>,
    /// A name for people.
    pub name: Option<String>,
    /// The project that it belongs to.
    pub project: Option<String>,
    /// The group of runs that it belongs to.
    pub group: Option<String>,
    /// Type of the job in that group, as `train` or `eval`.
    pub job_type: Option<String>,
    /// Tags, each with its value; at most [`MAX_TAGS`](crate::run::MAX_TAGS).
    pub tags: BTreeMap<String, String>,
    /// Notes for people.
    pub notes: Option<String>,
    /// File name of the program.
    pub program: String,
}

/// `POST /api/v1/runs/{id}/events`: what happens to a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedEvent {
    /// Kind of event.
    pub event: ReportedEventKind,
    /// Exit status, of an end.
    #[serde(default)]
    pub exit: Option<i32>,
    /// Signal that ended it, such as `SIGKILL`.
    #[serde(default)]
    pub signal: Option<String>,
    /// Final state, of an end without exit status and signal.
    #[serde(default)]
    pub state: Option<String>,
}

/// An event of a run.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedEventKind {
    /// It goes on.
    Heartbeat,
    /// It has ended.
    End,
}

impl NewRun {
    /// The names of the run; `user` is the user whose launcher reports it, and `sent_by` the person or key whose request
    /// to a hub it is.
    ///
    /// # Errors
    /// A text is too long or has control characters, or there are too many tags: a sentence.
    pub fn about(self, user: Option<String>, sent_by: Option<String>) -> Result<About, String> {
        let NewRun { id: _, name, project, group, job_type, tags, notes, program } = self;
        for text in [&name, &project, &group, &job_type].into_iter().flatten().chain([&program]) {
            check_text(text, false)?;
        }
        notes.iter().try_for_each(|text| check_text(text, true))?;
        check_tags(&tags)?;
        Ok(About { name, project, group, job_type, tags, notes, label: None, user, sent_by, program })
    }
}

impl ReportedEvent {
    /// The end of the run; None for a heartbeat.
    ///
    /// # Errors
    /// The fields do not fit the event: a sentence.
    pub fn end(self) -> Result<Option<How>, String> {
        let ReportedEvent { event, exit, signal, state } = self;
        let is_name = |name: &String| {
            name.len() <= MAX_SIGNAL_BYTES && name.starts_with("SIG") && name.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let word = match (event, exit, &signal, &state) {
            (ReportedEventKind::Heartbeat, None, None, None) => return Ok(None),
            (ReportedEventKind::Heartbeat, ..) => return Err("a heartbeat has no exit, signal or state".into()),
            (ReportedEventKind::End, Some(0), None, None) => RunState::Finished,
            (ReportedEventKind::End, Some(_), None, None) => RunState::Failed,
            (ReportedEventKind::End, None, Some(name), None) if is_name(name) => RunState::Crashed,
            (ReportedEventKind::End, None, Some(_), None) => return Err("signal is a name, such as SIGKILL".into()),
            (ReportedEventKind::End, None, None, Some(state)) => {
                RunState::named(state).filter(|state| state.is_final()).ok_or_else(|| {
                    let known = RunState::ALL.iter().filter(|state| state.is_final()).map(|state| state.name());
                    format!("state is one of {}", known.collect::<Vec<_>>().join(", "))
                })?
            }
            (ReportedEventKind::End, ..) => return Err("an end has one of exit, signal and state".into()),
        };
        let claim = Some(Claim { who: REPORT.into(), word: word.name().into() });
        Ok(Some(How { exit, signal, claim, ..How::default() }))
    }
}
