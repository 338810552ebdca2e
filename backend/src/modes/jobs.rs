//! The training jobs and findings of the served machines. It is made before the parts that send or show them.

use crate::config::Config;
#[cfg(unix)]
use crate::control;
use ::watch::findings::{FindingRegistry, WantedFindings};
use jobs::code_alerts::{self, Calls};
use jobs::markers::Markers;
#[cfg(unix)]
use jobs::runs::RunSocket;
use jobs::runs::{self, ReportAsk, Reports, RunLogs, RunRegistry, RunRegistryParts};
use shared::wire::SourceId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stream::live::Live;
use tokio::sync::{mpsc, watch};

/// Training jobs, and findings about the machines.
pub(super) struct Jobs {
    pub markers: Arc<Markers>,
    pub calls: Arc<Calls>,
    pub runs: Arc<RunRegistry>,
    pub findings: Arc<FindingRegistry>,
    followed: Option<Followed>,
}

/// The machine of the reported jobs, and the data folder of their socket.
struct Followed {
    source: SourceId,
    folder: PathBuf,
    told: Option<ReportInput>,
}

/// The socket for reports of launchers, and the reports by requests.
#[cfg(unix)]
type ReportInput = (RunSocket, mpsc::Receiver<ReportAsk>);
#[cfg(not(unix))]
type ReportInput = mpsc::Receiver<ReportAsk>;

impl Jobs {
    /// The jobs of all machines. `source` is this one, if it is measured. Reports for it also come by its data folder, if
    /// there is one.
    pub fn new(config: &Config, source: Option<SourceId>, folder: Option<&Path>) -> Self {
        let own = source.zip(folder);
        let findings = Arc::<FindingRegistry>::default();
        let registry = findings.clone();
        let of_runs =
            move |span| registry.seen(&WantedFindings { span: Some(span), ..WantedFindings::default() }, |_| true);
        let (reports, told) = own.and_then(|(_, folder)| open_reports(config, folder)).unzip();
        let markers = Arc::<Markers>::default();
        let parts = RunRegistryParts {
            own: source,
            logs: own.map(|(source, folder)| RunLogs::open(folder, source)).unwrap_or_default(),
            findings: Some(Box::new(of_runs)),
            reports,
            markers: markers.clone(),
            prices: Some(config.cost.clone()),
        };
        Jobs {
            markers,
            calls: Arc::default(),
            runs: Arc::new(RunRegistry::new(parts)),
            findings,
            followed: own.map(|(source, folder)| Followed { source, folder: folder.into(), told }),
        }
    }

    /// Follows the runs of this machine that are reported in its data folder, until `stop` becomes true.
    pub fn follow(&mut self, config: &Config, live: &Arc<Live>, stop: &watch::Receiver<bool>) {
        let Some(Followed { source, folder, told }) = self.followed.take() else { return };
        tokio::spawn(code_alerts::keep_calls(live.clone(), self.calls.clone(), stop.clone()));
        let registry = self.runs.clone();
        tokio::spawn(runs::expire_logs(live.clone(), registry, source, config.retention_bytes, stop.clone()));
        #[cfg(unix)]
        if let Some(told) = told {
            let (lives, stop) = ((live.clone(), self.runs.clone()), stop.clone());
            let tree = config.roots().sys.join("fs/cgroup");
            let settings = (config.runs.clone(), collectors::printed as runs::RunTool, tree);
            let takes = (self.markers.clone(), self.calls.clone());
            tokio::spawn(async move {
                let folders = (&*folder, crate::config::state_folder());
                runs::follow(lives, source, told, folders, takes, settings, stop).await
            });
        }
        #[cfg(not(unix))]
        drop((folder, told));
    }
}

/// The socket of a data folder for reports of launchers; none, with a log line, if it cannot be opened.
#[cfg(unix)]
fn open_reports(config: &Config, folder: &Path) -> Option<(Reports, ReportInput)> {
    match control::runs_path(folder, control::runtime_folder()) {
        Ok(Some(path)) => match RunSocket::bind(&path, &config.runs) {
            Ok(socket) => {
                let (reports, asked) = runs::reports();
                return Some((reports, (socket, asked)));
            }
            Err(why) => tracing::warn!("no run of this machine is told of: {why}"),
        },
        Ok(None) => tracing::warn!("the path of the socket of runs is too long: no run of this machine is told of"),
        Err(error) => tracing::warn!(%error, "there is no socket of the data folder"),
    }
    None
}

#[cfg(not(unix))]
fn open_reports(_: &Config, _: &Path) -> Option<(Reports, ReportInput)> {
    None
}
