//! Values of one GPU in one tick, passed from the reading thread to the tick.

use super::retry::NvmlFailure;
use crate::Out;
use inventory::GpuUse;
use shared::catalog::{MetricDef, gpu, gpu_parts, gpu_process};
use std::collections::HashSet;

/// Subject of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSubject {
    /// The GPU as a whole.
    Gpu,
    /// One of its MIG devices, by index.
    Part(u32),
    /// A process on it.
    Process(u32),
}

/// The values of a GPU.
#[derive(Debug, Default)]
pub(super) struct NvidiaReading {
    values: Vec<(&'static MetricDef, ValueSubject, f64)>,
    /// PIDs of the processes on it, as the driver reports them. A PID that stands for several processes is repeated.
    pub pids: Vec<u32>,
    /// Bytes of the machine's memory that its processes use; None for a GPU with memory of its own.
    pub shared_memory: Option<u64>,
    /// At least one call worked.
    pub answered: bool,
    /// The first failure, except that a card does not support a value.
    pub failure: Option<(NvmlFailure, String)>,
}

impl NvidiaReading {
    /// Memory and share of multiprocessors by process.
    pub fn used(&self) -> GpuUse {
        let mut used = GpuUse::new();
        for &(def, place, value) in &self.values {
            let ValueSubject::Process(pid) = place else { continue };
            if std::ptr::eq(def, &gpu_parts::PROCESS_MEMORY) {
                used.entry(pid).or_default().0 = value as u64;
            } else if std::ptr::eq(def, &gpu_parts::PROCESS_SM) {
                used.entry(pid).or_default().1 = Some(value as f32);
            }
        }
        used
    }

    /// Drops the processes that are not in `own`.
    pub fn keep_processes(&mut self, own: &HashSet<u32>) {
        self.values.retain(|(_, place, _)| !matches!(place, ValueSubject::Process(pid) if !own.contains(pid)));
        self.pids.retain(|pid| own.contains(pid));
    }

    /// Adds a value if there is one.
    pub fn put(&mut self, def: &'static MetricDef, place: ValueSubject, value: Option<f64>) {
        self.values.extend(value.map(|value| (def, place, value)));
    }

    /// Adds the memory that the GPU shares with the machine, which has `total` bytes. `counts`: the machine's memory
    /// counts for this GPU, and for no other.
    pub fn put_shared(&mut self, total: Option<u64>, counts: bool) {
        let Some((used, total)) = self.shared_memory.zip(total).map(|(used, total)| (used as f64, total as f64)) else {
            return;
        };
        self.put(&gpu::MEMORY_SHARED, ValueSubject::Gpu, Some(1.0));
        self.put(&gpu::MEMORY_ALLOCATED_BYTES, ValueSubject::Gpu, Some(used));
        self.put(&gpu::MEMORY_TOTAL_BYTES, ValueSubject::Gpu, Some(total).filter(|_| counts));
        let share = gpu::MEMORY_ALLOCATED.rounded(100.0 * used / total);
        self.put(&gpu::MEMORY_ALLOCATED, ValueSubject::Gpu, Some(share).filter(|share| *share <= 100.0));
    }

    /// Stores a failure; a loss replaces an earlier failure.
    pub fn fail(&mut self, failure: NvmlFailure, reason: String) {
        if self.failure.is_none() || matches!(failure, NvmlFailure::Lost | NvmlFailure::Silent) {
            self.failure = Some((failure, reason));
        }
    }

    /// Whether no more calls are to be made in this tick.
    pub fn stopped(&self) -> bool {
        matches!(self.failure, Some((NvmlFailure::Lost | NvmlFailure::Silent, _)))
    }

    /// Puts the values into the tick under the GPU's number. `watched`: a watched process is on it. `known` is called
    /// for each process before its series are put.
    pub fn publish(&self, number: u32, watched: bool, known: &mut dyn FnMut(u32, u32) -> bool, out: &mut Out) {
        for &(def, place, value) in &self.values {
            match place {
                ValueSubject::Gpu => out.put(def, number, value),
                ValueSubject::Part(part) => out.put(def, format!("{number}.mig.{part}").as_str(), value),
                ValueSubject::Process(pid) if known(number, pid) => {
                    out.put(def, format!("{number}.proc.{pid}").as_str(), value);
                }
                ValueSubject::Process(_) => {}
            }
        }
        if !watched {
            return;
        }
        for (device, copy) in COPIES {
            let value =
                self.values.iter().find(|(def, place, _)| std::ptr::eq(*def, *device) && *place == ValueSubject::Gpu);
            out.put_some(copy, number, value.map(|(.., value)| *value));
        }
    }
}

/// Metrics that W&B repeats for a device while a watched process is on it.
static COPIES: &[(&MetricDef, &MetricDef)] = &[
    (&gpu::UTILIZATION, &gpu_process::UTILIZATION),
    (&gpu::MEMORY_ALLOCATED_BYTES, &gpu_process::MEMORY_ALLOCATED_BYTES),
    (&gpu::POWER_WATTS, &gpu_process::POWER_WATTS),
    (&gpu::POWER_LIMIT_WATTS, &gpu_process::POWER_LIMIT_WATTS),
    (&gpu::TEMP, &gpu_process::TEMP),
    (&gpu::MEMORY_ACTIVITY, &gpu_process::MEMORY_ACTIVITY),
    (&gpu::MEMORY_ALLOCATED, &gpu_process::MEMORY_ALLOCATED),
    (&gpu::POWER_PERCENT, &gpu_process::POWER_PERCENT),
];
