//! Data sources of a server. The serving mode creates them.

use super::hub::Hub;
use crate::remote_write::RemoteWriter;
use jobs::code_alerts::Calls;
use jobs::markers::Markers;
use jobs::runs::RunRegistry;
use std::sync::Arc;
use stream::live::Live;
use watch::alerts::AlertRegistry;
use watch::findings::FindingRegistry;

/// The parts of a server that requests read.
pub struct Services {
    /// The samples of all machines.
    pub live: Arc<Live>,
    /// Markers of notebooks.
    pub markers: Arc<Markers>,
    /// Alerts from code.
    pub calls: Arc<Calls>,
    /// The runs of all machines.
    pub runs: Arc<RunRegistry>,
    /// Findings about the machines.
    pub findings: Arc<FindingRegistry>,
    /// Alert rules and notifications; none: this server has no rules.
    pub alerts: Option<AlertRegistry>,
    /// Accounts and agents; none in a server of a single machine.
    pub hub: Option<Hub>,
    /// Receiver of remote write, if samples are also sent to one.
    pub remote: Option<Arc<RemoteWriter>>,
}

impl Services {
    /// The services of a stream without any other part.
    pub fn new(live: Arc<Live>) -> Self {
        Services {
            live,
            markers: Arc::default(),
            calls: Arc::default(),
            runs: Arc::default(),
            findings: Arc::default(),
            alerts: None,
            hub: None,
            remote: None,
        }
    }
}
