//! Questions about a hang to the running jobs of this machine: to NCCL, at the ports that their environments name, and to
//! launchers that take stacks.

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

/// Launchers take stacks only on Unix.
#[cfg(unix)]
impl RunRegistry {
    /// Requests the stacks of the jobs on a machine that hold one of these GPUs (all jobs if there are none), if that is
    /// this one. Returns the IDs of the runs whose launchers take them.
    pub fn request_stacks(&self, live: &Live, source: SourceId, gpus: &[u32]) -> Vec<String> {
        if self.logs.source() != Some(source) {
            return Vec::new();
        }
        let own = live.store().source(source).map(|(source, _)| source.clone());
        let Some(own) = own else { return Vec::new() };
        let mut asked = Vec::new();
        for run in self.open(live, from_ref(&own)) {
            let here = run.processes.iter().filter(|one| one.source == own.name && one.ended.is_none());
            let here: Vec<&shared::run::RunProcess> = here.collect();
            let ranks = super::stacks::wanted(&here, gpus);
            if !ranks.is_empty() && self.stacks.request(run.machine_id(), &shared::run::StacksAsked { ranks }) {
                asked.push(run.machine_id().to_string());
            }
        }
        asked
    }
}

#[cfg(not(unix))]
impl RunRegistry {
    /// See the other one.
    pub fn request_stacks(&self, _: &Live, _: SourceId, _: &[u32]) -> Vec<String> {
        Vec::new()
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
