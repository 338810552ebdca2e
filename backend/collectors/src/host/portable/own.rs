//! Resource use of this program.

use super::handle;
use crate::{CollectError, OpenError};
use std::time::Duration;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// This program, as sysinfo lists it.
pub(crate) struct PortableOwn {
    system: System,
    pid: Pid,
}

impl PortableOwn {
    pub fn open() -> Result<Self, OpenError> {
        Ok(PortableOwn { system: handle(System::new())?, pid: Pid::from_u32(std::process::id()) })
    }

    pub fn tried(&self) -> Vec<String> {
        vec!["sysinfo".into()]
    }

    /// User and system time since the start. This reads the memory as well.
    pub fn cpu_time(&mut self) -> Result<Duration, CollectError> {
        let kind = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
        self.system.refresh_processes_specifics(ProcessesToUpdate::Some(&[self.pid]), false, kind);
        let own = self.system.process(self.pid);
        own.map(|own| Duration::from_millis(own.accumulated_cpu_time()))
            .ok_or_else(|| CollectError::failed("the system does not list this process"))
    }

    /// Resident memory, bytes.
    pub fn resident(&mut self) -> Result<f64, CollectError> {
        let own = self.system.process(self.pid);
        own.map(|own| own.memory() as f64).ok_or_else(|| CollectError::partial("the system does not list this process"))
    }
}
