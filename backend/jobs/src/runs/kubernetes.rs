//! The end of a pod according to Kubernetes. The API server lists the pods of our node or namespace, to the service
//! account that is mounted into our own pod. It is asked only after an end.
//!
//! The account needs the right to list pods. For each pod, `metadata.uid` is read, and from its `status` the fields
//! `reason`, `conditions` (the one called `DisruptionTarget`) and the terminated containers in `containerStatuses`.

use super::RunsSettings;
use super::slurm::QUERY_DELAYS;
use client::http::Uri;
use client::{Client, Limits, MaxBytes};
use launch::process::signal_name;
use serde::Deserialize;
use shared::run::{Claim, DISRUPTION, How, KUBERNETES, Pod};
use shared::secret::Secret;
use shared::wire::{Check, CheckState};
use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Folder where the kubelet mounts the account of a pod: the files `token`, `ca.crt` and `namespace`.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

const LIMITS: Limits =
    Limits { connect: Duration::from_secs(3), whole: Duration::from_secs(5), idle: Duration::from_secs(10) };

/// Maximum number of pods of one answer, and its maximum size: a pod takes some 15 kB.
const PAGE: usize = 250;
const MAX_ANSWER: MaxBytes = MaxBytes { sent: 8 << 20, unpacked: 8 << 20 };

/// Maximum number of pages per query. The pods of a node fit the first one.
const MAX_PAGES: usize = 8;

/// Maximum size of a file of the account, bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Time for which an answer is reused: the ranks of a pod end together.
const ANSWER_CACHE_TIME: Duration = Duration::from_secs(1);

/// Time for which a failure is reused, so that not every rank retries an API server that does not respond.
const FAILURE_CACHE_TIME: Duration = Duration::from_secs(5);

/// Reasons in the status of a pod that explain the end of its containers.
const REASONS: [&str; 4] = ["DeadlineExceeded", "Evicted", "Preempting", "NodeLost"];

/// Client of the API server of the cluster in which this process runs.
pub(super) struct Kubernetes {
    account: PathBuf,
    /// `https://HOST:PORT`.
    server: String,
    /// Our node; if it is unknown, the pods of the account's namespace are listed.
    node: Option<String>,
    /// The newest answer, and its time of expiry.
    newest: Mutex<Option<(Instant, PodsAnswer)>>,
    failed: AtomicU64,
}

type PodsAnswer = Result<Arc<Vec<ListedPod>>, Failure>;

/// Reason of a failure, a sentence without a full stop.
#[derive(Clone, Debug)]
struct Failure {
    why: String,
    /// The account lacks the permission.
    denied: bool,
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Failure { why, denied: false }
    }
}

#[derive(Debug, Deserialize)]
struct PodList {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<ListedPod>,
}

#[derive(Debug, Default, Deserialize)]
struct ListMeta {
    /// Token of the next page; empty on the last one.
    #[serde(default, rename = "continue")]
    more: String,
}

#[derive(Debug, Deserialize)]
struct ListedPod {
    metadata: PodMeta,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
struct PodMeta {
    uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodStatus {
    reason: String,
    conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerStatus {
    state: ContainerState,
    /// State of the previous container, if it was restarted.
    last_state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    terminated: Option<Terminated>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    exit_code: i32,
    #[serde(default)]
    reason: String,
    /// ID of the container, as `containerd://ID`.
    #[serde(default, rename = "containerID")]
    id: String,
}

impl Kubernetes {
    /// Connects to the cluster in which this process runs. `variable` reads an environment.
    ///
    /// # Errors
    /// No cluster or no account was found: a sentence without a full stop, with a remedy.
    pub fn new(settings: &RunsSettings, variable: impl Fn(&str) -> Option<String>) -> Result<Kubernetes, String> {
        let host = variable("KUBERNETES_SERVICE_HOST").ok_or(
            "KUBERNETES_SERVICE_HOST is not set, so this is not a pod of Kubernetes; leave runs.kubernetes out here",
        )?;
        let port = variable("KUBERNETES_SERVICE_PORT").unwrap_or_else(|| "443".into());
        let host = match host.parse::<IpAddr>() {
            Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
            _ => host,
        };
        let account = settings.kubernetes_account.clone().unwrap_or_else(|| ACCOUNT.into());
        if !account.join("token").is_file() {
            let path = account.display();
            return Err(format!(
                "there is no service account in {path}; give this pod serviceAccountName, and take automountServiceAccountToken: \
                 false out"
            ));
        }
        Ok(Kubernetes {
            account,
            server: format!("https://{host}:{port}"),
            node: variable("NODE_NAME").filter(|node| !node.is_empty()),
            newest: Mutex::new(None),
            failed: AtomicU64::new(0),
        })
    }

    /// Polls until the pod reports more about its process's end than `how`, or until the last attempt.
    pub async fn asked(self: Arc<Self>, pod: Pod, how: How) -> Option<How> {
        for pause in QUERY_DELAYS {
            tokio::time::sleep(pause).await;
            match self.clone().newest().await {
                Ok(all) => {
                    // A pod that is no longer listed was removed, and reports nothing further.
                    let own = all.iter().find(|one| one.metadata.uid == pod.uid)?;
                    if let Some(how) = own.status.says(pod.container.as_deref(), &how) {
                        return Some(how);
                    }
                }
                Err(Failure { why, denied }) => {
                    let failed = self.failed.fetch_add(1, Ordering::Relaxed) + 1;
                    if failed.is_power_of_two() {
                        tracing::warn!(failed, "Kubernetes does not say how a pod ended: {why}");
                    }
                    if denied {
                        return None;
                    }
                }
            }
        }
        None
    }

    async fn newest(self: Arc<Self>) -> PodsAnswer {
        let mut newest = self.newest.lock().await;
        if let Some((until, answer)) = &*newest
            && Instant::now() < *until
        {
            return answer.clone();
        }
        let (asks, begin) = (self.clone(), Instant::now());
        let answer = tokio::task::spawn_blocking(move || asks.pods().map(Arc::new)).await;
        let answer = answer.unwrap_or_else(|_| Err("the request was aborted".to_string().into()));
        let until = if answer.is_ok() { begin + ANSWER_CACHE_TIME } else { Instant::now() + FAILURE_CACHE_TIME };
        *newest = Some((until, answer.clone()));
        answer
    }

    /// The pods of our node, else of our namespace. The account's files are read each time, because they are replaced
    /// while we run.
    fn pods(&self) -> Result<Vec<ListedPod>, Failure> {
        let token = self.file("token").map(|text| Secret::new(format!("Bearer {}", text.trim())))?;
        let client = Client::trusting_only(LIMITS, self.file("ca.crt")?.as_bytes())
            .map_err(|why| format!("{}: {why}", self.account.join("ca.crt").display()))?;
        let (path, mut asked) = match &self.node {
            Some(node) => ("/api/v1/pods".into(), vec![("fieldSelector", format!("spec.nodeName={node}"))]),
            None => (format!("/api/v1/namespaces/{}/pods", self.file("namespace")?.trim()), Vec::new()),
        };
        let at = |why: String| format!("{}: {why}", self.server);
        let uri: Uri = format!("{}{path}", self.server).parse().map_err(|_| at("this is not an address".into()))?;
        asked.push(("limit", PAGE.to_string()));
        let mut pods = Vec::new();
        for _ in 0..MAX_PAGES {
            let headers = [("authorization", token.reveal()), ("accept", "application/json")];
            let answer = client.get(&uri, &asked, headers).map_err(at)?;
            match answer.status().as_u16() {
                200 => {}
                401 => {
                    let why = at("it rejects the token of the service account (401)".into());
                    return Err(Failure { why, denied: true });
                }
                403 => {
                    let why = at(format!("the service account may not list pods (403): {}", self.remedy()));
                    return Err(Failure { why, denied: true });
                }
                status => return Err(at(format!("it returned {status}")).into()),
            }
            let bytes = client::read(answer, MAX_ANSWER).map_err(|error| at(client.told_of_body(&uri, error)))?;
            let list: PodList = serde_json::from_slice(&bytes)
                .map_err(|error| at(format!("its response is not a list of pods at line {}", error.line())))?;
            pods.extend(list.items);
            if list.metadata.more.is_empty() {
                break;
            }
            asked.retain(|(name, _)| *name != "continue");
            asked.push(("continue", list.metadata.more));
        }
        Ok(pods)
    }

    fn file(&self, name: &str) -> Result<String, Failure> {
        let path = self.account.join(name);
        read(&path).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// Remedy for a missing permission.
    fn remedy(&self) -> String {
        let (role, of) = if self.node.is_some() { ("ClusterRole", "Cluster") } else { ("Role", "") };
        format!(
            "bind a {role} with the rule {{apiGroups: [\"\"], resources: [\"pods\"], verbs: [\"list\"]}} to it by a \
             {of}RoleBinding"
        )
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

impl PodStatus {
    /// The end of a process in it, if the status says more than the kernel did.
    fn says(&self, container: Option<&str>, how: &How) -> Option<How> {
        let claim = |word: &str| Some(Claim { who: KUBERNETES.into(), word: word.into() });
        let said = |word: &str| Some(How { claim: claim(word), ..how.clone() });
        let had_to_go = self.conditions.iter().find(|one| one.kind == DISRUPTION && one.status == "True");
        if let Some(Condition { reason, .. }) = had_to_go {
            let plain = (1..=64).contains(&reason.len()) && reason.bytes().all(|byte| byte.is_ascii_alphanumeric());
            return said(&if plain { format!("{DISRUPTION}: {reason}") } else { DISRUPTION.into() });
        }
        if let Some(word) = REASONS.iter().find(|word| **word == self.reason) {
            return said(word);
        }
        let Terminated { exit_code, reason, .. } = self.ended(container)?;
        let unreported = how.exit.is_none() && how.signal.is_none();
        if reason == "OOMKilled" && (unreported || how.signal.as_deref() == Some("SIGKILL")) {
            return said(reason);
        }
        // The kernel's report of the process is more exact than the status of its container.
        if !unreported {
            return None;
        }
        let ended = match exit_code {
            // Shells encode a signal this way.
            129..=192 => How { signal: Some(signal_name(exit_code - 128)), ..how.clone() },
            status => How { exit: Some(*status), ..how.clone() },
        };
        Some(How { claim: claim("Error").filter(|_| *exit_code != 0).or_else(|| claim("Completed")), ..ended })
    }

    /// The termination of this container; if its ID is unknown, of the only one.
    fn ended(&self, container: Option<&str>) -> Option<&Terminated> {
        let each = self.container_statuses.iter();
        match container {
            Some(id) => each
                .flat_map(|one| [&one.state, &one.last_state])
                .filter_map(|state| state.terminated.as_ref())
                .find(|ended| ended.id.rsplit('/').next() == Some(id)),
            None => {
                each.as_slice().iter().next().filter(|_| self.container_statuses.len() == 1)?.state.terminated.as_ref()
            }
        }
    }
}

/// Name of the check.
const CHECK: &str = "kubernetes";

/// `watchglass doctor`: tests the connection to Kubernetes; None if it is disabled. Blocks until the answer.
pub fn examine_kubernetes(settings: &RunsSettings, variable: impl Fn(&str) -> Option<String>) -> Option<Check> {
    let check = |state, tried, found: &str, reason: String, remedy: String| {
        Some(Check { id: CHECK.into(), state, tried, found: found.into(), reason, remedy })
    };
    let found = "it reports how the pods of training jobs ended";
    if !settings.kubernetes {
        return None;
    }
    let asks = match Kubernetes::new(settings, variable) {
        Ok(asks) => asks,
        Err(why) => {
            let remedy =
                "set automountServiceAccountToken and serviceAccountName of this pod, or leave runs.kubernetes out";
            return check(CheckState::Failed, Vec::new(), found, why, remedy.into());
        }
    };
    let tried = vec![asks.server.clone()];
    match asks.pods() {
        Ok(pods) => {
            let of = if asks.node.is_some() { "node" } else { "namespace" };
            check(
                CheckState::Ok,
                tried,
                &format!("it reports {} pods of this {of}", pods.len()),
                String::new(),
                String::new(),
            )
        }
        Err(Failure { why, denied: true }) => check(CheckState::Denied, tried, found, why, asks.remedy()),
        Err(Failure { why, .. }) => {
            let remedy =
                "check that this pod can reach the API server, and that ca.crt of its account is that server's";
            check(CheckState::Failed, tried, found, why, remedy.into())
        }
    }
}

#[cfg(test)]
#[path = "kubernetes_tests.rs"]
mod tests;
