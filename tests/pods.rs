//! Tests that Kubernetes reports how the pods of training jobs ended, with the real binary and an API server that
//! answers by the real one's specification.

use serde_json::{Value, json};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use watchglass_tests::kubernetes::{ApiAnswer, ApiServer};
use watchglass_tests::server::{Server, watchglass};
use watchglass_tests::waiting::until;

const ID: &str = "8f0c1b2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeef";

/// A machine whose runs are in pods.
struct PodBench {
    _folder: tempfile::TempDir,
    api: ApiServer,
    server: Server,
    /// The socket to which launchers report.
    socket: PathBuf,
}

fn uid(n: u32) -> String {
    format!("0d6eb1a6-2d3c-4b9f-8f3e-{n:012}")
}

/// A pod as the API server returns it, with many fields that we do not use.
fn pod(n: u32, status: Value) -> Value {
    json!({ "metadata": { "name": format!("train-{n}"), "namespace": "training", "uid": uid(n), "labels": { "job-name": "train" } },
            "spec": { "nodeName": "node-1", "containers": [{ "name": "train", "image": "train" }] }, "status": status })
}

fn terminated(exit: i32, reason: &str) -> Value {
    json!([{ "name": "train", "state": { "terminated": { "exitCode": exit, "reason": reason,
             "containerID": format!("containerd://{ID}") } }, "lastState": {} }])
}

fn list(items: &[Value], more: &str) -> ApiAnswer {
    ApiAnswer::Text(json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "1", "continue": more }, "items": items }).to_string())
}

impl PodBench {
    fn new(node: Option<&str>, answer: impl Fn(&str) -> ApiAnswer + Send + Sync + 'static) -> PodBench {
        let (folder, api) = (tempfile::tempdir().expect("a folder"), ApiServer::start(answer));
        let file = config(&folder, &api);
        let mut command = watchglass(["--port", "0", "--collectors", "cpu", "--data-dir"]);
        command.arg(folder.path()).arg("--config").arg(file).env_remove("NODE_NAME").envs(api.environment());
        command.envs(node.map(|node| ("NODE_NAME", node)));
        let server = Server::start_command(command);
        let mut job = watchglass(["run", "--data-dir"]);
        job.arg(folder.path()).args(["--", "sh", "-c", "echo $WATCHGLASS_SOCKET"]);
        let output = job.output().expect("it ran");
        let socket = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        PodBench { _folder: folder, api, server, socket }
    }

    /// Reports a run in a pod that ended in this way, as `watchglass run` in the pod does.
    fn ended(&self, n: u32, how: Value) {
        let begun = json!({ "run": format!("in-pod-{n}"), "t": 1_000, "pid": n, "namespace": 1, "program": "train",
                            "pod": { "uid": uid(n), "container": ID } });
        let socket = UnixDatagram::unbound().expect("a socket");
        let over = json!({ "event": "end", "begun": begun, "t": 2_000, "how": how });
        socket.send_to(over.to_string().as_bytes(), &self.socket).expect("sent");
    }

    fn sentence(&self, n: u32) -> String {
        let all: Value = serde_json::from_str(&self.server.get("/api/v1/runs?from=0", &[]).body).expect("JSON");
        let runs = all["runs"].as_array().expect("a list");
        let own = runs.iter().find(|run| run["id"] == format!("in-pod-{n}"));
        own.and_then(|run| run["sentence"].as_str()).unwrap_or_default().into()
    }

    fn says(&self, n: u32, sentence: &str) {
        until(sentence, || (self.sentence(n) == sentence).then_some(()));
    }
}

fn config(folder: &tempfile::TempDir, api: &ApiServer) -> PathBuf {
    let file = folder.path().join("watchglass.toml");
    std::fs::write(&file, format!("[runs]\nkubernetes = true\nkubernetes_account = {:?}\n", api.account()))
        .expect("written");
    file
}

#[test]
fn kubernetes_says_why_pods_ended() {
    let pods = [
        pod(1, json!({ "phase": "Failed", "containerStatuses": terminated(137, "OOMKilled") })),
        pod(2, json!({ "phase": "Failed", "containerStatuses": terminated(3, "Error") })),
        pod(
            3,
            json!({ "phase": "Failed", "reason": "DeadlineExceeded", "containerStatuses": terminated(143, "Error") }),
        ),
        pod(
            4,
            json!({ "phase": "Running", "conditions": [
            { "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler" }] }),
        ),
        pod(5, json!({ "phase": "Failed", "reason": "Evicted" })),
    ];
    // The first answer links to the second.
    let answer = move |line: &str| match line.contains("continue=") {
        false => list(&pods[..2], "more"),
        true => list(&pods[2..], ""),
    };
    let bench = PodBench::new(Some("node-1"), answer);
    for (n, how) in [(1, json!({ "signal": "SIGKILL" })), (2, json!({})), (3, json!({ "signal": "SIGTERM" }))] {
        bench.ended(n, how);
    }
    bench.ended(4, json!({ "signal": "SIGTERM" }));
    bench.ended(5, json!({}));
    bench.ended(6, json!({ "signal": "SIGSEGV" }));
    bench.says(1, "out of memory (Kubernetes: OOMKilled)");
    bench.says(2, "failed (Kubernetes: exit 3)");
    bench.says(3, "out of time (Kubernetes: DeadlineExceeded)");
    bench.says(4, "preempted (Kubernetes: PreemptionByScheduler)");
    bench.says(5, "preempted (Kubernetes: Evicted)");
    // A pod that was removed says nothing.
    bench.says(6, "crashed (SIGSEGV)");
    let asked = bench.api.asked();
    let line = asked[0].lines().next().expect("a line");
    assert!(line.starts_with("GET /api/v1/pods?fieldSelector=spec.nodeName") && line.contains("limit=250"), "{line}");
    assert!(asked.iter().all(|head| head.to_lowercase().contains("authorization: bearer first-canary")), "{asked:?}");
    assert!(asked.len() <= 12, "who ends together is asked for together: {}", asked.len());
    // The kubelet writes a new token long before the old one expires.
    bench.api.set_token("second-canary");
    bench.ended(1, json!({}));
    until("the new token", || bench.api.asked().last().filter(|head| head.contains("second-canary")).map(|_| ()));
    assert!(!bench.server.log().contains("canary"), "{}", bench.server.log());
}

#[test]
fn who_does_not_answer_or_sends_too_much_changes_nothing() {
    let answers = |line: &str| match line {
        line if line.contains("/namespaces/training/pods") => ApiAnswer::Flood,
        _ => ApiAnswer::Hang,
    };
    let flood = PodBench::new(None, answers);
    flood.ended(1, json!({ "signal": "SIGKILL" }));
    until("a line in the log", || flood.server.log().contains("the body is larger than 8 MiB").then_some(()));
    flood.says(1, "crashed (SIGKILL)");
    let hangs = PodBench::new(Some("node-1"), answers);
    let begin = Instant::now();
    (1..=8).for_each(|n| hangs.ended(n, json!({ "signal": "SIGKILL" })));
    until("a line in the log", || hangs.server.log().contains("the response timed out after 5 s").then_some(()));
    hangs.says(8, "crashed (SIGKILL)");
    assert!(hangs.server.get("/api/v1/runs", &[]).status == 200 && begin.elapsed() < Duration::from_secs(60));
    assert!(hangs.api.asked().len() <= 3, "it is not asked by each in turn");
}

#[test]
fn doctor_says_which_right_is_missing() {
    let status = std::sync::Arc::new(std::sync::atomic::AtomicU16::new(403));
    let theirs = status.clone();
    let api = ApiServer::start(move |_| match theirs.load(std::sync::atomic::Ordering::Relaxed) {
        200 => list(&[pod(1, json!({}))], ""),
        status => ApiAnswer::Status(status),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = config(&folder, &api);
    let doctor = |environment: &[(&str, String)]| {
        let mut command = watchglass(["doctor", "--json", "--collectors", "cpu", "--config"]);
        command
            .arg(&file)
            .env_remove("NODE_NAME")
            .env_remove("KUBERNETES_SERVICE_HOST")
            .envs(environment.iter().cloned());
        let printed = String::from_utf8(command.output().expect("it runs").stdout).expect("text");
        assert!(!printed.contains("canary"), "{printed}");
        let json: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed}"));
        let servers = json["servers"].as_array().expect("a list").clone();
        servers.into_iter().find(|server| server["id"] == "kubernetes").expect("a check")
    };
    let within = api.environment().to_vec();
    let denied = doctor(&within);
    assert_eq!(denied["state"], "denied");
    let rule = "bind a Role with the rule {apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"list\"]} to it by a RoleBinding";
    assert_eq!(denied["remedy"], rule);
    assert!(denied["reason"].as_str().is_some_and(|why| why.contains("may not list pods (403)")), "{denied}");
    let node = [&within[..], &[("NODE_NAME", "node-1".to_string())]].concat();
    assert!(doctor(&node)["remedy"].as_str().is_some_and(|remedy| remedy.contains("ClusterRoleBinding")));
    status.store(401, std::sync::atomic::Ordering::Relaxed);
    assert!(doctor(&node)["reason"].as_str().is_some_and(|why| why.contains("rejects the token")));
    status.store(200, std::sync::atomic::Ordering::Relaxed);
    let well = doctor(&within);
    assert_eq!((&well["state"], &well["found"]), (&"ok".into(), &"it reports 1 pods of this namespace".into()));
    assert!(doctor(&[])["reason"].as_str().is_some_and(|why| why.contains("KUBERNETES_SERVICE_HOST is not set")));
    // Another server with another authority must not receive the token.
    let other = ApiServer::start(|_| ApiAnswer::Status(200));
    let wrong = doctor(&other.environment());
    assert_eq!(wrong["state"], "failed");
    assert!(wrong["remedy"].as_str().is_some_and(|remedy| remedy.contains("ca.crt")), "{wrong}");
    assert_eq!(other.asked(), [""; 0]);
}
