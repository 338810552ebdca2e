//! `[runs]`: detection and tracking of training jobs.

use settings::kinds::Words;
use settings::length::{retention, show_duration};
use settings::{Fault, Written, table, value};
use std::path::PathBuf;
use std::time::Duration;
use toml::Value;

/// Default retention of the summary of an ended run, and its minimum.
const DEFAULT_RETENTION: Duration = Duration::from_secs(400 * 86_400);
const MIN_RETENTION: Duration = Duration::from_secs(86_400);

/// Scope of the search for ranks of training jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detect {
    /// Below each `watchglass run`, and among the processes that hold a GPU.
    Gpu,
    /// Only below each `watchglass run`.
    Launched,
    /// None: no environment of another process is read.
    Off,
}

const DETECT: Words<Detect> = &[("gpu", Detect::Gpu), ("launched", Detect::Launched), ("off", Detect::Off)];

/// Users that may write to the socket of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketMode {
    /// The user of this program, and root.
    Owner,
    /// Also the members of a group.
    Group,
    /// Every user of this machine.
    All,
}

const SOCKET_MODES: Words<SocketMode> =
    &[("0600", SocketMode::Owner), ("0660", SocketMode::Group), ("0666", SocketMode::All)];

table! {
    /// `[runs]`: how training jobs are followed.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RunsSettings, checked by RunsSettings::check {
        /// Detection of ranks: `gpu`, below each `watchglass run` and among the processes that hold a GPU; `launched`,
        /// below each `watchglass run` only; `off`
        detect: Detect = Detect::Gpu, word(DETECT);
        /// Socket that receives reports of `watchglass run`, `mark` and `alert`, for a machine with several users; they
        /// find /run/watchglass/run.sock by themselves [default: one beside the data folder, for its owner]
        socket: Option<PathBuf> = None, text(value::absolute), like "\"/run/watchglass/run.sock\"";
        /// Mode of the socket: `0600`, the user of this program and root; `0660`, members of its group; `0666`, every
        /// user of this machine; each user reports their own jobs only
        socket_mode: SocketMode = SocketMode::Owner, word(SOCKET_MODES), like "\"0660\"";
        /// Group of the socket, by name or number; this program must be a member [default: this program's own]
        socket_group: Option<String> = None, text(value::any), like "\"ml\"";
        /// Retention of the summary of an ended run, 1d to 3650d, or 0 for ever
        keep: Option<Duration> = Some(DEFAULT_RETENTION), own(read_keep, show_keep);
        /// Path of scontrol, which reports how a Slurm job ended [default: /usr/bin/scontrol]
        scontrol: Option<PathBuf> = None, text(value::absolute), like "\"/opt/slurm/bin/scontrol\"";
        /// Ask the Kubernetes API server how a pod ended; requires a service account that may list pods
        kubernetes: bool = false, text(value::switch);
        /// Folder with `token`, `ca.crt` and `namespace` of that account
        /// [default: /var/run/secrets/kubernetes.io/serviceaccount]
        kubernetes_account: Option<PathBuf> = None, text(value::absolute), like "\"/etc/watchglass/kubernetes\"";
    }
}

impl RunsSettings {
    fn check(&self) -> Result<(), Fault> {
        if self.socket.is_none() && self.socket_mode != SocketMode::Owner {
            let why = "other users cannot enter the data folder; also write runs.socket, such as \
                /run/watchglass/run.sock";
            return Err(Fault::new("socket_mode", why));
        }
        match self.socket_group.is_some() && self.socket_mode != SocketMode::Group {
            true => Err(Fault::new("socket_group", "also write runs.socket_mode = \"0660\"")),
            false => Ok(()),
        }
    }
}

fn read_keep(value: Value) -> Result<Option<Duration>, String> {
    let text = String::text(value)?;
    match text.as_str() {
        "0" => Ok(None),
        text => match retention(text).map_err(|why| format!("{why}, or 0 for ever"))? {
            keep if keep < MIN_RETENTION => Err("write at least 1d, or 0 for ever".into()),
            keep => Ok(Some(keep)),
        },
    }
}

fn show_keep(keep: &Option<Duration>) -> Option<Value> {
    Some(keep.map_or("0".into(), show_duration).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let read = |text: &str| RunsSettings::TABLE.read_text(text);
        assert_eq!(read("").expect("nothing"), RunsSettings::default());
        let own = "scontrol = \"/opt/slurm/bin/scontrol\"\nkubernetes = true\nkubernetes_account = \"/account\"";
        let own = read(own).expect("a table");
        assert!(own.kubernetes);
        assert_eq!(read(&RunsSettings::TABLE.print(&own).to_string()).expect("a table"), own);
        let own = read("detect = \"launched\"\nkeep = \"0\"").expect("a table");
        assert_eq!((own.detect, own.keep), (Detect::Launched, None));
        assert_eq!(read(&RunsSettings::TABLE.print(&own).to_string()).expect("a table"), own);
        let own = read("socket = \"/run/x.sock\"\nsocket_mode = \"0660\"\nsocket_group = \"ml\"").expect("a table");
        assert_eq!((own.socket_mode, own.socket_group.as_deref()), (SocketMode::Group, Some("ml")));
        assert_eq!(read(&RunsSettings::TABLE.print(&own).to_string()).expect("a table"), own);
        assert_eq!(read("keep = \"30d\"").expect("a table").keep, Some(30 * MIN_RETENTION));
        for (wrong, said) in [
            ("detect = \"all\"", "known are gpu, launched, off"),
            ("keep = \"1h\"", "at least 1d, or 0 for ever"),
            ("keep = \"soon\"", "or 0 for ever"),
            ("kept = \"1d\"", "did you mean keep?"),
            ("socket_mode = \"0666\"", "also write runs.socket"),
            ("socket = \"/run/x.sock\"\nsocket_mode = \"0777\"", "known are 0600, 0660, 0666"),
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
