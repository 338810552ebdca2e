//! The process table: the newest one, and the largest users of the last hours.
//!
//! It is not a series, because a process has a name and a limited life. Linux only so far; elsewhere only simulated
//! machines have one.

mod history;

use history::History;
use parking_lot::{Mutex, MutexGuard};
use shared::processes::{ProcessPast, ProcessTable};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Memory (bytes) and share of multiprocessors (percent) by PID, as the GPU collectors read them.
pub type GpuUse = HashMap<u32, (u64, Option<f32>)>;

/// A process that is a rank of a training job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankProcess {
    /// Its PID.
    pub pid: u32,
    /// Start time, clock ticks since boot.
    pub start: u64,
    /// The instance of its series: `/l:rank_3`.
    pub instance: String,
}

/// The newest table and the largest users of the last hours.
#[derive(Debug, Default)]
pub struct Processes {
    inner: Mutex<(Option<Arc<ProcessTable>>, History)>,
    gpus: Mutex<HashMap<u32, GpuUse>>,
    ranks: Mutex<Arc<[RankProcess]>>,
    stopped: Mutex<Option<HashSet<(u32, u64)>>>,
}

impl Processes {
    /// Replaces the set of processes that are ranks.
    pub fn set_ranks(&self, ranks: Vec<RankProcess>) {
        *self.ranks.lock() = ranks.into();
    }

    /// The processes that are ranks.
    pub fn ranks(&self) -> Arc<[RankProcess]> {
        self.ranks.lock().clone()
    }

    /// Replaces the set of processes that a signal has stopped.
    pub fn set_stopped(&self, stopped: HashSet<(u32, u64)>) {
        *self.stopped.lock() = Some(stopped);
    }

    /// PID and start (clock ticks since boot) of the processes that a signal had stopped when the newest table was
    /// made.
    /// None if no table is made here.
    pub fn stopped(&self) -> Option<HashSet<(u32, u64)>> {
        self.stopped.lock().clone()
    }

    /// The newest table.
    pub fn newest(&self) -> Option<Arc<ProcessTable>> {
        self.lock().0.clone()
    }

    /// The largest users in the table nearest to `t` (ms since the Unix epoch).
    pub fn at(&self, t: i64) -> Option<ProcessTable> {
        self.lock().1.at(t)
    }

    /// A process within a span (ms since the Unix epoch), for the times at which it was among the largest users.
    /// The name is part of the key because PIDs are reused.
    pub fn past(&self, pid: u32, name: &str, span: (i64, i64)) -> ProcessPast {
        self.lock().1.past(pid, name, span)
    }

    /// Replaces the processes of one GPU.
    pub fn set_gpu(&self, gpu: u32, used: GpuUse) {
        self.lock_gpus().insert(gpu, used);
    }

    /// The processes that hold GPUs, each with its GPU numbers in ascending order.
    pub fn gpu_holders(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut holders = BTreeMap::<u32, Vec<u32>>::new();
        for (gpu, used) in self.lock_gpus().iter() {
            used.keys().for_each(|pid| holders.entry(*pid).or_default().push(*gpu));
        }
        holders.values_mut().for_each(|gpus| gpus.sort_unstable());
        holders
    }

    /// Use of all GPUs together, by process.
    pub fn gpus(&self) -> GpuUse {
        let mut all = GpuUse::new();
        for (&pid, &(memory, share)) in self.lock_gpus().values().flatten() {
            let sum = all.entry(pid).or_default();
            sum.0 += memory;
            sum.1 = match (sum.1, share) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
        all
    }

    /// Calls `look` with the use of each GPU.
    pub fn each_gpu<T>(&self, mut look: impl FnMut(u32, &GpuUse) -> T) -> Vec<T> {
        self.lock_gpus().iter().map(|(gpu, used)| look(*gpu, used)).collect()
    }

    fn lock_gpus(&self) -> MutexGuard<'_, HashMap<u32, GpuUse>> {
        self.gpus.lock()
    }

    fn lock(&self) -> MutexGuard<'_, (Option<Arc<ProcessTable>>, History)> {
        self.inner.lock()
    }

    /// Stores a table as the newest one.
    pub fn put(&self, table: ProcessTable) {
        let mut inner = self.lock();
        inner.1.keep(&table);
        inner.0 = Some(Arc::new(table));
    }
}
