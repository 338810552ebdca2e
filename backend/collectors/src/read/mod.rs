//! Reading: code that accesses the machine or parses its plain texts to numbers. Collectors interpret the numbers.

pub(crate) mod drm;
pub(crate) mod dylib;
pub(crate) mod exec;
pub(crate) mod grpc;
pub(crate) mod pci;
pub(crate) mod pids;
pub(crate) mod pool;
pub(crate) mod sysfs;

#[cfg(target_os = "linux")]
pub(crate) mod cgroup;
#[cfg(target_os = "linux")]
pub(crate) mod procfs;

#[cfg(target_os = "linux")]
use crate::CollectError;

/// Counts the sources of one reading that answered and that failed, and keeps the first reason.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
pub(crate) struct Sources {
    answered: bool,
    reason: Option<String>,
}

#[cfg(target_os = "linux")]
impl Sources {
    /// A source answered.
    pub fn answered(&mut self) {
        self.answered = true;
    }

    /// A source did not answer.
    pub fn failed(&mut self, reason: impl FnOnce() -> String) {
        self.reason.get_or_insert_with(reason);
    }

    /// Result for the sampler.
    pub fn outcome(self) -> Result<(), CollectError> {
        match self.reason {
            None => Ok(()),
            Some(reason) if self.answered => Err(CollectError::partial(reason)),
            Some(reason) => Err(CollectError::failed(reason)),
        }
    }
}
