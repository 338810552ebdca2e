//! Runs, markers and values that a request submits: to the server of this machine, or to its hub, which forwards them.

use crate::markers::Markers;
use crate::runs::{RefusedReport, Report, RunRegistry};
use crate::values::{self, RefusedValues};
use shared::answer::markers::{MarkersTaken, ValuesTaken};
use shared::new_marker::{MAX_NEW_MARKERS, NewMarker};
use shared::new_values::NewValues;
use shared::submission::{
    MAX_SENDER_BYTES, RefusalKind, RefusedSubmission, Submission, SubmissionBody, SubmissionResult,
};
use shared::wire::SourceId;
use stream::live::Live;
use tokio::runtime::Handle;

/// Reason why a hub's submission is refused that names a process of the machine.
const NAMES_PROCESS: &str = "pid, kernel, phase and by are of a process of the machine; send them to the agent there";

/// Reason why a submission for a machine is refused that only an endpoint tells of.
const FOUND: &str =
    "an endpoint tells of this machine, and no agent runs there; start one there, or name another machine";

fn refused<T>(kind: RefusalKind, sentence: impl Into<String>) -> Result<T, RefusedSubmission> {
    Err(RefusedSubmission { kind, sentence: sentence.into() })
}

/// Stores a submission of a hub, as its agent; the answer as JSON. `shift` is the number of milliseconds by which our
/// clock is behind that of the submission.
///
/// It blocks, and so runs on a thread of the runtime for blocking work.
pub fn answer(live: &Live, source: SourceId, runs: &RunRegistry, (json, shift): (&[u8], i64)) -> Vec<u8> {
    let read = serde_json::from_slice::<Submission>(json).ok();
    let fits = |read: &Submission| read.by.as_ref().is_some_and(|by| by.len() <= MAX_SENDER_BYTES);
    let result = match read.filter(fits) {
        Some(mut submission) => {
            if let SubmissionBody::Markers(markers) = &mut submission.body {
                markers.iter_mut().for_each(|marker| marker.set_back(shift));
            }
            store(live, source, runs, submission)
        }
        None => refused(RefusalKind::Bad, "the agent of this machine has another version and cannot read the request"),
    };
    serde_json::to_vec(&result.unwrap_or_else(SubmissionResult::Refused)).unwrap_or_default()
}

/// Stores a submission for this machine. It blocks, and so runs on a thread of the runtime for blocking work.
///
/// # Errors
/// The reason why nothing of it is stored.
pub fn store(
    live: &Live,
    source: SourceId,
    runs: &RunRegistry,
    submission: Submission,
) -> Result<SubmissionResult, RefusedSubmission> {
    if live.is_found(source) {
        return refused(RefusalKind::Conflict, FOUND);
    }
    let Submission { by, user, nonce: _, body } = submission;
    match body {
        SubmissionBody::Run { id, new } => match Report::begin(*new, id, (user, by)) {
            Ok(report) => take(runs, report),
            Err(why) => refused(RefusalKind::Bad, why),
        },
        SubmissionBody::Event { id, event } => match Report::of_event(event, id) {
            Ok(report) => take(runs, report),
            Err(why) => refused(RefusalKind::Bad, why),
        },
        SubmissionBody::Markers(new) => store_markers(live, source, &runs.markers, (new, by)),
        SubmissionBody::Values(new) => store_values(live, source, new, by.is_some()),
    }
}

fn take(runs: &RunRegistry, report: Report) -> Result<SubmissionResult, RefusedSubmission> {
    let taken = match &runs.reports {
        Some(reports) => Handle::current().block_on(reports.take(report)),
        None => Err(RefusedReport::Nobody),
    };
    taken.map(|new| SubmissionResult::Run { new }).or_else(|why| {
        let kind = match why {
            RefusedReport::TooMany => RefusalKind::TooMany,
            RefusedReport::NotStored(_) => RefusalKind::Unavailable,
            RefusedReport::Unknown(_) => RefusalKind::Unknown,
            RefusedReport::Other(_) | RefusedReport::Nobody => RefusalKind::Conflict,
        };
        refused(kind, why.to_string())
    })
}

fn store_markers(
    live: &Live,
    source: SourceId,
    markers: &Markers,
    (new, by): (Vec<NewMarker>, Option<String>),
) -> Result<SubmissionResult, RefusedSubmission> {
    if new.len() > MAX_NEW_MARKERS {
        let sentence = format!("{} markers are too many; send at most {MAX_NEW_MARKERS} at once", new.len());
        return refused(RefusalKind::Bad, sentence);
    }
    if by.is_some() && new.iter().any(NewMarker::names_process) {
        return refused(RefusalKind::Bad, NAMES_PROCESS);
    }
    match markers.take_sent(live, source, new, by.as_deref()) {
        Ok(taken) => Ok(SubmissionResult::Markers(MarkersTaken { taken: taken.taken, dropped: taken.dropped })),
        Err(why) => {
            let kind = match () {
                () if why.is_for_now() => RefusalKind::Unavailable,
                () if why.is_forbidden() => RefusalKind::Forbidden,
                () => RefusalKind::Bad,
            };
            refused(kind, why.to_string())
        }
    }
}

fn store_values(
    live: &Live,
    source: SourceId,
    new: NewValues,
    by_hub: bool,
) -> Result<SubmissionResult, RefusedSubmission> {
    if by_hub && new.pid.is_some() {
        return refused(RefusalKind::Bad, NAMES_PROCESS);
    }
    match values::take(live, source, new, None) {
        Ok(taken) => Ok(SubmissionResult::Values(ValuesTaken { taken: taken.taken, dropped: taken.dropped })),
        Err(why @ RefusedValues::Bad(_)) => refused(RefusalKind::Bad, why.to_string()),
        Err(why @ RefusedValues::Gone) => refused(RefusalKind::Conflict, why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markers::between;
    use serde_json::{from_value, json};
    use shared::catalog::{Catalog, cpu};
    use std::sync::Arc;
    use std::time::Duration;
    use stream::clock::Manual;
    use stream::store::{Limits, Store};

    const NOW: i64 = 1_800_000_000_000;

    fn live() -> Arc<Live> {
        let catalog = Arc::new(Catalog::new(cpu::ROWS.iter().copied()));
        let mut store = Store::new(catalog, Limits { retention: 3_600_000, bytes: usize::MAX });
        store.add_source("here".into(), 1_000, Vec::new());
        Live::new(store, Arc::new(Manual::at(NOW, Duration::ZERO)), 1, 3_600_000)
    }

    fn sent(live: &Live, runs: &RunRegistry, by: &str, body: SubmissionBody) -> SubmissionResult {
        let submission = Submission { by: Some(by.into()), user: Some("root".into()), nonce: 1, body };
        let json = serde_json::to_vec(&submission).expect("JSON");
        serde_json::from_slice(&answer(live, 0, runs, (&json, 5_000))).expect("a result")
    }

    fn is_bad(result: &SubmissionResult) -> bool {
        matches!(result, SubmissionResult::Refused(RefusedSubmission { kind: RefusalKind::Bad, .. }))
    }

    #[test]
    fn a_marker_of_a_hub_has_its_sender_our_time_and_is_stored_once() {
        let (live, runs) = (live(), RunRegistry::default());
        let marker = |id: &str| from_value(json!({ "text": "lr", "run": "a", "t": NOW / 1_000, "id": id }));
        let markers = |id: &str| SubmissionBody::Markers(vec![marker(id).expect("a marker")]);
        let taken = SubmissionResult::Markers(MarkersTaken { taken: 1, dropped: 0 });
        assert_eq!(sent(&live, &runs, "mara", markers("x")), taken);
        assert_eq!(sent(&live, &runs, "mara", markers("x")), taken, "the same again");
        let stored = between(&live, 0, (0, i64::MAX), 10, |_| true);
        let facts: Vec<_> = stored.iter().map(|(_, _, m)| (m.sent_by.as_deref(), m.user.as_deref(), m.begun)).collect();
        assert_eq!(facts, [(Some("mara"), None, NOW - 5_000)]);
        assert_eq!(sent(&live, &runs, "olga", markers("x")), taken);
        assert_eq!(
            between(&live, 0, (0, i64::MAX), 10, |_| true).len(),
            2,
            "who chooses another's ID takes nothing away"
        );
    }

    #[test]
    fn a_hub_names_no_process_and_no_user_of_the_machine() {
        let (live, runs) = (live(), RunRegistry::default());
        for wrong in [
            json!({ "text": "x", "pid": 1 }),
            json!({ "text": "x", "kernel": "11111111-2222-3333-4444-555555555555" }),
            json!({ "kind": "cell", "phase": "start", "by": "server" }),
        ] {
            let Ok(marker) = from_value::<NewMarker>(wrong.clone()) else { continue };
            let result = sent(&live, &runs, "mara", SubmissionBody::Markers(vec![marker]));
            assert!(is_bad(&result), "{wrong}: {result:?}");
        }
        let values = |pid| {
            let new = from_value(json!({ "values": { "loss": 0.5 }, "run": "a", "pid": pid }));
            SubmissionBody::Values(new.expect("values"))
        };
        assert!(is_bad(&sent(&live, &runs, "mara", values(Some(1)))));
        let taken = sent(&live, &runs, "mara", values(None));
        assert_eq!(taken, SubmissionResult::Values(ValuesTaken { taken: 1, dropped: 0 }));
        let long = "m".repeat(MAX_SENDER_BYTES + 1);
        assert!(is_bad(&sent(&live, &runs, &long, values(None))));
        let junk: SubmissionResult = serde_json::from_slice(&answer(&live, 0, &runs, (b"{}", 0))).expect("a result");
        assert!(is_bad(&junk));
    }

    #[test]
    fn machines_that_follow_no_runs_refuse_reports() {
        let (live, runs) = (live(), RunRegistry::default());
        let body = SubmissionBody::Run { id: "a".into(), new: Box::default() };
        let result = sent(&live, &runs, "mara", body);
        let SubmissionResult::Refused(why) = result else { panic!("{result:?}") };
        assert_eq!(why.kind, RefusalKind::Conflict);
    }
}
