//! `[runs]`: how training jobs are followed.

use serde::{Deserialize, Serialize};
use settings::FileTable;
use settings::length::{retention, show_duration};
use std::path::PathBuf;
use std::time::Duration;
use toml::{Table, Value};

/// How long what is known of a run that ended is kept unless it is said, and at least.
const KEPT: Duration = Duration::from_secs(400 * 86_400);
const LEAST: Duration = Duration::from_secs(86_400);

/// Where ranks of training jobs are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Detect {
    /// Below each `watchglass run`, and among the processes that hold a GPU.
    #[default]
    Gpu,
    /// Below each `watchglass run` alone.
    Launched,
    /// Nowhere: no environment of another process is read.
    Off,
}

/// Who may write to the socket on which runs are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum SocketMode {
    /// The user of this program, and root.
    #[default]
    #[serde(rename = "0600")]
    Owner,
    /// The members of a group, too.
    #[serde(rename = "0660")]
    Group,
    /// Every user of this machine.
    #[serde(rename = "0666")]
    All,
}

/// `[runs]`: how training jobs are followed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawRuns")]
pub struct RunsSettings {
    /// Where ranks are looked for.
    pub detect: Detect,
    /// The socket on which runs are told; None: one beside the data folder, for its owner.
    pub socket: Option<PathBuf>,
    /// Who may write to it.
    pub socket_mode: SocketMode,
    /// The group whose members may, by name or number; None: that of this program.
    pub socket_group: Option<String>,
    /// How long what is known of a run that ended outlives its samples, at least a day; None: for ever.
    pub keep: Option<Duration>,
    /// The tool that says how a job of Slurm ended; None: where Slurm's packages put it.
    pub scontrol: Option<PathBuf>,
    /// Whether Kubernetes is asked how pods ended.
    pub kubernetes: bool,
    /// Folder of the service account that asks it; None: where the kubelet mounts it.
    pub kubernetes_account: Option<PathBuf>,
}

impl Default for RunsSettings {
    fn default() -> Self {
        RunsSettings {
            detect: Detect::default(),
            socket: None,
            socket_mode: SocketMode::default(),
            socket_group: None,
            keep: Some(KEPT),
            scontrol: None,
            kubernetes: false,
            kubernetes_account: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRuns {
    #[serde(default)]
    detect: Detect,
    socket: Option<PathBuf>,
    #[serde(default)]
    socket_mode: SocketMode,
    socket_group: Option<String>,
    keep: Option<String>,
    scontrol: Option<PathBuf>,
    #[serde(default)]
    kubernetes: bool,
    kubernetes_account: Option<PathBuf>,
}

impl TryFrom<RawRuns> for RunsSettings {
    type Error = String;

    fn try_from(raw: RawRuns) -> Result<Self, String> {
        let RawRuns { detect, socket, socket_mode, socket_group, keep, scontrol, kubernetes, kubernetes_account } = raw;
        for (key, path) in [("socket", &socket), ("scontrol", &scontrol), ("kubernetes_account", &kubernetes_account)] {
            if path.as_ref().is_some_and(|path| !path.is_absolute()) {
                return Err(format!("runs.{key}: write the whole path, from / on"));
            }
        }
        if socket.is_none() && socket_mode != SocketMode::Owner {
            let why = "other users cannot enter the data folder; also write runs.socket, such as \
                /run/watchglass/run.sock";
            return Err(format!("runs.socket_mode: {why}"));
        }
        if socket_group.is_some() && socket_mode != SocketMode::Group {
            return Err("runs.socket_group: also write runs.socket_mode = \"0660\"".into());
        }
        let keep = match keep.as_deref() {
            None => Some(KEPT),
            Some("0") => None,
            Some(text) => match retention(text).map_err(|why| format!("runs.keep: {why}, or 0 for ever"))? {
                keep if keep < LEAST => return Err("runs.keep: write at least 1d, or 0 for ever".into()),
                keep => Some(keep),
            },
        };
        Ok(RunsSettings { detect, socket, socket_mode, socket_group, keep, scontrol, kubernetes, kubernetes_account })
    }
}

impl FileTable for RunsSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
        (
            "detect",
            "Where ranks are looked for: `gpu`, below each `watchglass run` and among the processes that hold a GPU; `launched`, below each `watchglass run` alone; `off`; `gpu` unless it is written",
        ),
        (
            "socket",
            "The socket on which `watchglass run`, `mark` and `alert` tell, for a machine that several people use; /run/watchglass/run.sock is where they look by themselves; one beside the data folder unless it is written",
        ),
        (
            "socket_mode",
            "Who may write to it: `0600`, the user of this program and root; `0660`, members of its group; `0666`, every user of this machine; each for jobs of their own; `0600` unless it is written",
        ),
        ("socket_group", "That group, by name or number: this program must be a member; its own unless it is written"),
        (
            "keep",
            "How long what is known of a run that ended outlives its samples, 1d to 3650d, or 0 for ever; 400d unless it is written",
        ),
        ("scontrol", "Slurm's tool, which is asked how a job ended; /usr/bin/scontrol unless it is written"),
        (
            "kubernetes",
            "Whether the API server of Kubernetes is asked how a pod ended: needs a service account that may list pods; false unless it is written",
        ),
        (
            "kubernetes_account",
            "Folder with `token`, `ca.crt` and `namespace` of that account; /var/run/secrets/kubernetes.io/serviceaccount unless it is written",
        ),
    ];

    fn print(&self) -> Table {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| Value::from(path.display().to_string()));
        let detect = Value::try_from(self.detect).expect("a word");
        let mode = Value::try_from(self.socket_mode).expect("a word");
        let keep = self.keep.map_or("0".into(), show_duration);
        let all = [
            ("detect", Some(detect)),
            ("socket", path(&self.socket)),
            ("socket_mode", self.socket.is_some().then_some(mode)),
            ("socket_group", self.socket_group.clone().map(Value::from)),
            ("keep", Some(keep.into())),
            ("scontrol", path(&self.scontrol)),
            ("kubernetes", self.kubernetes.then(|| true.into())),
            ("kubernetes_account", path(&self.kubernetes_account)),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| toml::from_str::<RunsSettings>(text);
        assert_eq!(read("").expect("nothing"), RunsSettings::default());
        let own = "scontrol = \"/opt/slurm/bin/scontrol\"\nkubernetes = true\nkubernetes_account = \"/account\"";
        let own = read(own).expect("a table");
        assert!(own.kubernetes);
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        let own = read("detect = \"launched\"\nkeep = \"0\"").expect("a table");
        assert_eq!((own.detect, own.keep), (Detect::Launched, None));
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        let own = read("socket = \"/run/x.sock\"\nsocket_mode = \"0660\"\nsocket_group = \"ml\"").expect("a table");
        assert_eq!((own.socket_mode, own.socket_group.as_deref()), (SocketMode::Group, Some("ml")));
        assert_eq!(read(&own.print().to_string()).expect("a table"), own);
        assert_eq!(read("keep = \"30d\"").expect("a table").keep, Some(30 * LEAST));
        for (wrong, said) in [
            ("detect = \"all\"", "`gpu`"),
            ("keep = \"1h\"", "at least 1d, or 0 for ever"),
            ("keep = \"soon\"", "or 0 for ever"),
            ("kept = \"1d\"", "unknown field"),
            ("socket_mode = \"0666\"", "also write runs.socket"),
            ("socket = \"/run/x.sock\"\nsocket_mode = \"0777\"", "`0660`"),
            ("socket = \"/run/x.sock\"\nsocket_group = \"ml\"", "also write runs.socket_mode = \"0660\""),
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
        for relative in ["socket = \"x.sock\"", "scontrol = \"scontrol\"", "kubernetes_account = \"account\""] {
            assert!(read(relative).expect_err(relative).to_string().contains("from / on"), "{relative}");
        }
    }
}
