//! Runs, markers and values that people and programs send to a hub for a machine. Its agent stores them, as it stores
//! those of its own processes.

use crate::answer::markers::{MarkersTaken, ValuesTaken};
use crate::new_marker::NewMarker;
use crate::new_values::NewValues;
use crate::reported::{NewRun, ReportedEvent};
use serde::{Deserialize, Serialize};

/// Maximum length of the name of a sender, bytes.
pub const MAX_SENDER_BYTES: usize = 256;

/// One request, for one machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submission {
    /// Name of the person or key whose request it is; None for a request to the server of the machine itself.
    pub by: Option<String>,
    /// User of the process that sent a run to the server of the machine itself, according to the kernel. A hub cannot
    /// set it.
    #[serde(skip)]
    pub user: Option<String>,
    /// A random number, so that two equal requests are two.
    pub nonce: u64,
    /// The submitted data.
    pub body: SubmissionBody,
}

/// Submitted data. Times are milliseconds since the Unix epoch by the clock of the receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SubmissionBody {
    /// A run begins.
    Run {
        /// Its ID.
        id: String,
        /// Its names.
        new: Box<NewRun>,
    },
    /// An event of a run.
    Event {
        /// ID of the run.
        id: String,
        /// The event.
        event: ReportedEvent,
    },
    /// Markers.
    Markers(Vec<NewMarker>),
    /// Values of a job.
    Values(NewValues),
}

/// Result of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubmissionResult {
    /// The run or the event is stored.
    Run {
        /// Whether the run begins or ends by this request; a repetition changes nothing.
        new: bool,
    },
    /// The markers are stored.
    Markers(MarkersTaken),
    /// The values are stored.
    Values(ValuesTaken),
    /// Nothing is stored.
    Refused(RefusedSubmission),
}

/// Reason why nothing of a submission is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedSubmission {
    /// Kind of the reason.
    pub kind: RefusalKind,
    /// A sentence for the sender.
    pub sentence: String,
}

/// Kind of the reason why a submission is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalKind {
    /// It is invalid.
    Bad,
    /// Its sender has no right to it.
    Forbidden,
    /// It names something unknown.
    Unknown,
    /// It does not fit the state of the machine.
    Conflict,
    /// A limit is reached.
    TooMany,
    /// It may succeed later.
    Unavailable,
}
