//! `[runs]`: how training jobs are followed.

use super::team::FileTable;
use serde::Deserialize;
use std::path::PathBuf;
use toml::{Table, Value};

/// `[runs]`: how training jobs are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawRuns")]
pub struct RunsSettings {
    /// The tool that says how a job of Slurm ended; None: where Slurm's packages put it.
    pub scontrol: Option<PathBuf>,
    /// Whether Kubernetes is asked how pods ended.
    pub kubernetes: bool,
    /// Folder of the service account that asks it; None: where the kubelet mounts it.
    pub kubernetes_account: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRuns {
    scontrol: Option<PathBuf>,
    #[serde(default)]
    kubernetes: bool,
    kubernetes_account: Option<PathBuf>,
}

impl TryFrom<RawRuns> for RunsSettings {
    type Error = String;

    fn try_from(raw: RawRuns) -> Result<Self, String> {
        let RawRuns { scontrol, kubernetes, kubernetes_account } = raw;
        for (key, path) in [("scontrol", &scontrol), ("kubernetes_account", &kubernetes_account)] {
            if path.as_ref().is_some_and(|path| !path.is_absolute()) {
                return Err(format!("runs.{key}: write the whole path, from / on"));
            }
        }
        Ok(RunsSettings { scontrol, kubernetes, kubernetes_account })
    }
}

impl FileTable for RunsSettings {
    const KEYS: &'static [(&'static str, &'static str)] = &[
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
        let all = [
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
        for relative in ["scontrol = \"scontrol\"", "kubernetes_account = \"account\""] {
            assert!(read(relative).expect_err(relative).to_string().contains("from / on"), "{relative}");
        }
    }
}
