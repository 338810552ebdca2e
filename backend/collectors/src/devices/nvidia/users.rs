//! Processes on a GPU: the library's lists, in the newest form that the driver has.
//!
//! Drivers from 510 on have version 3 of the three lists. Older ones have version 2 with the same layout, and the
//! functions without a number, whose entries lack the two instances.

use super::library::{Handle, Library, is_older, list};
use nvml_wrapper::error::{NvmlError, nvml_sym};
use nvml_wrapper_sys::bindings::*;
use std::ffi::c_uint;

/// A process on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub pid: u32,
    /// Bytes; none if the driver does not report them.
    pub memory: Option<u64>,
}

/// Kind of process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// Compute processes.
    Compute,
    /// Graphics processes.
    Graphics,
    /// Processes that compute through NVIDIA's multi-process service (MPS).
    Shared,
}

type Call<T> = unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut T) -> nvmlReturn_t;

impl Library {
    /// The processes of one kind.
    ///
    /// # Errors
    /// As the library's.
    pub fn processes(&self, handle: Handle, who: Who) -> Result<Vec<Process>, NvmlError> {
        let lib = self.nvml().lib();
        let (third, second, first) = match who {
            Who::Compute => (
                &lib.nvmlDeviceGetComputeRunningProcesses_v3,
                &lib.nvmlDeviceGetComputeRunningProcesses_v2,
                &lib.nvmlDeviceGetComputeRunningProcesses,
            ),
            Who::Graphics => (
                &lib.nvmlDeviceGetGraphicsRunningProcesses_v3,
                &lib.nvmlDeviceGetGraphicsRunningProcesses_v2,
                &lib.nvmlDeviceGetGraphicsRunningProcesses,
            ),
            Who::Shared => (
                &lib.nvmlDeviceGetMPSComputeRunningProcesses_v3,
                &lib.nvmlDeviceGetMPSComputeRunningProcesses_v2,
                &lib.nvmlDeviceGetMPSComputeRunningProcesses,
            ),
        };
        let plain = |info: &nvmlProcessInfo_v1_t| process(info.pid, info.usedGpuMemory);
        let with_instances = |info: &nvmlProcessInfo_v2_t| process(info.pid, info.usedGpuMemory);
        older(self.ask(handle, nvml_sym(third.as_ref()), with_instances), || {
            older(self.ask(handle, nvml_sym(second.as_ref()), with_instances), || {
                self.ask(handle, nvml_sym(first.as_ref()), plain)
            })
        })
    }

    fn ask<T: Copy>(
        &self,
        handle: Handle,
        call: Result<&Call<T>, NvmlError>,
        process: impl Fn(&T) -> Process,
    ) -> Result<Vec<Process>, NvmlError> {
        let call = call?;
        // SAFETY: `list` provides room for the number of entries that it passes, in the call's own layout.
        let found = list(|count, out: *mut T| unsafe { call(self.raw(handle), count, out) })?;
        Ok(found.iter().map(process).collect())
    }
}

/// The result, or that of an older form of the call if the driver lacks the newer one.
fn older<T>(answer: Result<T, NvmlError>, older: impl FnOnce() -> Result<T, NvmlError>) -> Result<T, NvmlError> {
    match answer {
        Err(error) if is_older(&error) => older(),
        answer => answer,
    }
}

fn process(pid: c_uint, bytes: u64) -> Process {
    Process { pid, memory: Some(bytes).filter(|bytes| *bytes != u64::MAX) }
}

/// Merges entries with the same PID: one process in several parts of a GPU, or several processes to which the driver
/// gives one PID.
pub(super) fn together(list: Vec<Process>) -> Vec<Process> {
    let mut all: Vec<Process> = Vec::with_capacity(list.len());
    for process in list {
        match all.iter_mut().find(|other| other.pid == process.pid) {
            Some(known) => known.memory = known.memory.zip(process.memory).and_then(|(a, b)| a.checked_add(b)),
            None => all.push(process),
        }
    }
    all
}
