//! What a server answers from. The mode that serves makes it, and hands it over.

use super::hub::Hub;
use crate::remote_write::RemoteWriter;
use jobs::code_alerts::Calls;
use jobs::markers::Markers;
use jobs::runs::RunBook;
use std::sync::Arc;
use stream::live::Live;
use watch::alerts::AlertBook;
use watch::findings::FindingBook;

/// The parts of a server of which requests ask.
pub struct Services {
    /// The samples of all machines.
    pub live: Arc<Live>,
    /// What notebooks say.
    pub markers: Arc<Markers>,
    /// What code says is wrong.
    pub calls: Arc<Calls>,
    /// The runs of all machines.
    pub runs: Arc<RunBook>,
    /// What is wrong with the machines.
    pub findings: Arc<FindingBook>,
    /// What is watched, and who is told; none: this server watches nothing.
    pub alerts: Option<AlertBook>,
    /// Accounts and agents; none where one machine shows itself.
    pub hub: Option<Hub>,
    /// Where samples are also sent.
    pub remote: Option<Arc<RemoteWriter>>,
}

impl Services {
    /// Those of a stream with nothing beside it.
    pub fn of(live: Arc<Live>) -> Self {
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
