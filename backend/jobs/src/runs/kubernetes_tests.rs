//! Ends in the status of pods. The request itself is tested against a test server, in tests/pods.rs.

use super::*;
use serde_json::{Value, json};

const ID: &str = "8f0c1b2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeef";
const OTHER: &str = "00000000000000000000000000000000000000000000000000000000000000ff";

fn status(status: Value) -> PodStatus {
    let pod: ListedPod =
        serde_json::from_value(json!({ "metadata": { "uid": "u" }, "status": status })).expect("a pod");
    pod.status
}

fn ended(id: &str, exit: i32, reason: &str) -> Value {
    json!({ "exitCode": exit, "reason": reason, "finishedAt": "2026-11-26T10:00:00Z", "containerID": format!("containerd://{id}") })
}

/// A container with this newest state.
fn container(state: Value) -> Value {
    json!({ "name": "train", "ready": false, "restartCount": 0, "containerID": "containerd://x", "state": state, "lastState": {} })
}

fn killed() -> How {
    How { signal: Some("SIGKILL".into()), ..How::default() }
}

/// State and sentence of a process whose end the kernel reported as `how`, completed by its pod.
fn end_of(pod: &PodStatus, container: Option<&str>, how: &How) -> Option<(&'static str, String)> {
    pod.says(container, how).map(|how| (how.state().name(), how.sentence()))
}

#[test]
fn a_container_that_was_full_was_killed_for_memory() {
    let pod = status(
        json!({ "phase": "Failed", "containerStatuses": [container(json!({ "terminated": ended(ID, 137, "OOMKilled") }))] }),
    );
    let memory = Some(("out_of_memory", "out of memory (Kubernetes: OOMKilled)".to_string()));
    assert_eq!(end_of(&pod, Some(ID), &killed()), memory);
    assert_eq!(end_of(&pod, None, &How::default()), memory, "there is one container alone");
    assert_eq!(end_of(&pod, Some(OTHER), &killed()), None, "another container of this pod");
    let own = How { exit: Some(1), ..How::default() };
    assert_eq!(end_of(&pod, Some(ID), &own), None, "it ended by itself, whatever became of its container");
}

#[test]
fn where_the_kernel_did_not_tell_the_status_of_the_container_counts() {
    let of = |exit, reason| {
        status(json!({ "containerStatuses": [container(json!({ "terminated": ended(ID, exit, reason) }))] }))
    };
    let said_of = |exit, reason, how: &How| end_of(&of(exit, reason), Some(ID), how);
    let unreported = How::default();
    assert_eq!(said_of(3, "Error", &unreported), Some(("failed", "failed (Kubernetes: exit 3)".into())));
    assert_eq!(said_of(139, "Error", &unreported), Some(("crashed", "crashed (Kubernetes: SIGSEGV)".into())));
    assert_eq!(said_of(255, "Error", &unreported), Some(("failed", "failed (Kubernetes: exit 255)".into())));
    assert_eq!(said_of(0, "Completed", &unreported).map(|(state, _)| state), Some("finished"));
    assert_eq!(said_of(3, "Error", &killed()), None, "the kernel knows the process itself");
}

#[test]
fn a_pod_that_had_to_go_was_preempted_and_its_reason_is_kept() {
    let with = |reason: &str, status: &str| {
        json!([
            { "type": "Ready", "status": "False" },
            { "type": "DisruptionTarget", "status": status, "reason": reason, "message": "default-scheduler: preempting" },
        ])
    };
    let of = |reason, truth| status(json!({ "phase": "Running", "conditions": with(reason, truth) }));
    for reason in ["PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager", "TerminationByKubelet"] {
        assert_eq!(
            end_of(&of(reason, "True"), Some(ID), &killed()),
            Some(("preempted", format!("preempted (Kubernetes: {reason})")))
        );
    }
    assert_eq!(end_of(&of("PreemptionByScheduler", "False"), Some(ID), &killed()), None);
    let odd = end_of(&of("a\u{1b}[31m b", "True"), None, &killed()).expect("a word");
    assert_eq!(odd.1, "preempted (Kubernetes: DisruptionTarget)", "what is no word is left out");
    let evicted =
        status(json!({ "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory." }));
    assert_eq!(end_of(&evicted, None, &killed()), Some(("preempted", "preempted (Kubernetes: Evicted)".into())));
}

#[test]
fn a_pod_whose_time_was_over_is_out_of_time() {
    let pod = status(json!({ "phase": "Failed", "reason": "DeadlineExceeded",
        "message": "Pod was active on the node longer than the specified deadline",
        "containerStatuses": [container(json!({ "terminated": ended(ID, 143, "Error") }))] }));
    let term = How { signal: Some("SIGTERM".into()), ..How::default() };
    assert_eq!(end_of(&pod, Some(ID), &term), Some(("timed_out", "out of time (Kubernetes: DeadlineExceeded)".into())));
}

#[test]
fn a_container_that_was_begun_anew_is_found_in_its_last_state() {
    let pod = status(json!({ "containerStatuses": [
        { "state": { "running": { "startedAt": "2026-11-26T10:00:01Z" } }, "lastState": { "terminated": ended(ID, 137, "OOMKilled") } },
        container(json!({ "terminated": ended(OTHER, 0, "Completed") })),
    ] }));
    assert_eq!(end_of(&pod, Some(ID), &killed()).map(|(state, _)| state), Some("out_of_memory"));
    assert_eq!(end_of(&pod, None, &How::default()), None, "nobody knows which of two it is");
    let runs = status(json!({ "containerStatuses": [container(json!({ "running": {} }))] }));
    assert_eq!(end_of(&runs, Some(ID), &How::default()), None, "it is not over yet");
    assert_eq!(end_of(&PodStatus::default(), None, &How::default()), None);
}

#[test]
fn where_it_cannot_be_asked_a_sentence_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings =
        RunsSettings { kubernetes: true, kubernetes_account: Some(folder.path().into()), ..RunsSettings::default() };
    let named = |name: &str| (name == "KUBERNETES_SERVICE_HOST").then(|| "fd00::1".to_string());
    let why = |variable: &dyn Fn(&str) -> Option<String>| match Kubernetes::new(&settings, variable) {
        Ok(_) => panic!("it can be asked"),
        Err(why) => why,
    };
    assert!(why(&|_| None).contains("leave runs.kubernetes out"));
    assert!(why(&named).contains("give this pod serviceAccountName"), "{}", why(&named));
    std::fs::write(folder.path().join("token"), "t").expect("written");
    let asks = Kubernetes::new(&settings, named).map_err(|why| why.to_string()).expect("it can be asked");
    assert_eq!(asks.server, "https://[fd00::1]:443");
    std::fs::write(folder.path().join("ca.crt"), "none").expect("written");
    let Err(Failure { why, denied: false }) = asks.pods() else { panic!("it has no authority") };
    assert!(why.ends_with("ca.crt: the file has no certificate"), "{why}");
}
