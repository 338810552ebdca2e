//! Asks NCCL in the running jobs of this machine, at the ports that their environments name.

use super::registry::RunRegistry;
use crate::nccl::{PORT, ask, port_in};
use shared::nccl::NcclReport;
use shared::wire::SourceId;
use std::collections::BTreeSet;
use std::slice::from_ref;
use stream::live::Live;

/// Maximum number of processes whose environments are read for this.
const MAX_PROCESSES: usize = 64;

/// Maximum number of ports that are asked, one after the other: a hub waits 5 s for the answer.
const MAX_PORTS: usize = 4;

impl RunRegistry {
    /// The ranks that a hanging job waits for, as NCCL names them on a machine, if that is this one. It blocks, for some
    /// seconds at most.
    pub fn nccl(&self, live: &Live, source: SourceId) -> Option<NcclReport> {
        if self.logs.source() != Some(source) {
            return None;
        }
        let own = live.store().source(source).map(|(source, _)| source.clone())?;
        let runs = self.open(live, from_ref(&own));
        let processes = runs.flat_map(|run| run.processes.clone());
        let here = processes.filter(|one| one.source == own.name && one.ended.is_none());
        let ports: BTreeSet<u16> = here.take(MAX_PROCESSES).filter_map(|one| named_port(one.pid)).collect();
        let ports = if ports.is_empty() { BTreeSet::from([PORT]) } else { ports };
        ports.into_iter().take(MAX_PORTS).find_map(ask)
    }
}

/// The port in the environment of a process.
#[cfg(target_os = "linux")]
fn named_port(pid: u32) -> Option<u16> {
    port_in(&super::environ::read(pid).ok()?.nccl?)
}

#[cfg(not(target_os = "linux"))]
fn named_port(_: u32) -> Option<u16> {
    None
}
