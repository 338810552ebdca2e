//! The Jupyter kernels of this user, detected by the argument with which Jupyter starts them: a path that ends in
//! `kernel-UUID.json`. Other arguments are not stored, and of the environment only the notebook's path is.
//!
//! New processes are checked every five seconds; without a kernel nothing else is read.

mod find;
mod member;
mod watch;

use self::find::Finder;
use self::watch::Watch;
use crate::host::facts;
use crate::{CollectError, Collector, OpenError, Options, Out, Part, Roots};
use inventory::Processes;
use inventory::{Kernel, KernelEndListener, KernelSample, Kernels, NoKernel, ReadKernels};
use parking_lot::{Mutex, MutexGuard};
use shared::catalog::kernel;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Interval of checking new processes. Slightly short, so that a tick that is marginally early is not skipped.
const LOOK_INTERVAL: Duration = Duration::from_millis(4_900);
/// Maximum number of kernels that are watched at once.
const MAX_KERNELS: usize = 32;

/// Opens the collector.
pub(crate) fn open(options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
    if let Err(error) = std::fs::read_dir(&roots.proc) {
        options.kernels.set_reader(None);
        return Err(OpenError::from_io(&roots.proc, &error));
    }
    let tried = [roots.proc.join("PID/cmdline").display().to_string()];
    let shared = Arc::new(Shared { inner: Mutex::new(Inner::default()), roots: roots.clone() });
    options.kernels.set_reader(Some(shared.clone()));
    let collector = Collect {
        shared,
        finder: Finder::new(roots.proc.clone()),
        looked: None,
        to: options.kernels.clone(),
        ended: options.kernel_ended.clone(),
        processes: options.processes.clone(),
    };
    Ok(Part::only(tried, collector))
}

/// State shared by the collector and requests between two ticks.
struct Shared {
    inner: Mutex<Inner>,
    roots: Roots,
}

#[derive(Default)]
struct Inner {
    watched: Vec<Watch>,
    /// IDs of kernels above the limit.
    left_out: HashSet<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

impl Inner {
    /// Watches detected kernels. Children of a kernel have its arguments, too; the oldest process with an ID is the
    /// kernel.
    fn take(&mut self, mut found: Vec<find::FoundKernel>, roots: &Roots) {
        found.sort_by_key(|found| found.start);
        for found in found {
            let known = self.watched.iter().any(|watch| watch.kernel.id == found.id && watch.lives());
            if known {
                continue;
            }
            if self.watched.len() >= MAX_KERNELS {
                self.left_out.insert(found.id);
                continue;
            }
            self.left_out.remove(&found.id);
            self.watched.push(Watch::new(found, roots));
        }
    }
}

impl ReadKernels for Shared {
    fn of_process(&self, pid: u32) -> Result<String, NoKernel> {
        let found = find::above(&self.roots.proc, pid)?;
        let id = found.id.clone();
        let mut inner = self.lock();
        inner.take(vec![found], &self.roots);
        if inner.left_out.contains(&id) { Err(NoKernel::Full) } else { Ok(id) }
    }

    fn program(&self, pid: u32) -> Option<String> {
        let comm = std::fs::read(self.roots.proc.join(pid.to_string()).join("comm")).ok()?;
        Some(String::from_utf8_lossy(comm.trim_ascii_end()).into_owned())
    }

    fn read(&self, id: &str) -> Option<KernelSample> {
        let mut inner = self.lock();
        let watch = inner.watched.iter_mut().find(|watch| watch.kernel.id == id)?;
        watch.refresh();
        watch.lives().then(|| KernelSample { cpu_seconds: watch.cpu_seconds(), memory: watch.memory() })
    }
}

struct Collect {
    shared: Arc<Shared>,
    finder: Finder,
    looked: Option<Duration>,
    to: Arc<Kernels>,
    ended: KernelEndListener,
    processes: Arc<Processes>,
}

impl Collector for Collect {
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError> {
        let mut looked = Ok(());
        if self.looked.is_none_or(|then| out.at().saturating_sub(then) >= LOOK_INTERVAL) {
            self.looked = Some(out.at());
            match self.finder.find_kernels() {
                Ok(found) => {
                    let mut inner = self.shared.lock();
                    inner.left_out.retain(|id| self.finder.knows(id));
                    inner.take(found, &self.shared.roots);
                }
                Err(error) => looked = Err(CollectError::failed(error.to_string())),
            }
        }
        if !self.shared.lock().watched.is_empty() {
            self.read(out);
        }
        looked
    }
}

impl Collect {
    fn read(&mut self, out: &mut Out) {
        let uptime = facts::since_boot(&self.shared.roots.proc);
        // Reading the memory of a large process may take long, so it is done without the lock.
        let due: Vec<(u32, u64)> = {
            let mut inner = self.shared.lock();
            inner.watched.iter_mut().flat_map(|watch| watch.tick(out.at(), &self.shared.roots)).collect()
        };
        let read: HashMap<u32, (u64, Option<u64>)> = due
            .into_iter()
            .map(|(pid, start)| (pid, (start, member::proportional(&self.shared.roots.proc, pid))))
            .collect();
        let mut inner = self.shared.lock();
        let mut ended: Vec<Kernel> = Vec::new();
        for watch in &mut inner.watched {
            watch.take_proportional(&read);
            watch.judge(out.at(), out.wall(), uptime, &self.shared.roots);
            match watch.kernel.end {
                Some(_) => ended.push(watch.kernel.clone()),
                None => put(watch, &self.processes, out),
            }
        }
        inner.watched.retain(|watch| watch.kernel.end.is_none());
        ended.iter_mut().for_each(|kernel| self.ended.ended(kernel));
        let running = inner.watched.iter().map(|watch| watch.kernel.clone()).collect();
        self.to.put(running, ended, inner.left_out.len() as u64);
        // A free slot is filled in the next search.
        if !inner.left_out.is_empty() && inner.watched.len() < MAX_KERNELS {
            self.finder.look_anew();
        }
    }
}

fn put(watch: &mut Watch, processes: &Processes, out: &mut Out) {
    let short = kernel::short(&watch.kernel.id).to_string();
    out.put_rounded(&kernel::CPU, &short[..], watch.cpu_percent);
    out.put_some(&kernel::MEMORY, &short[..], watch.kernel.memory.map(|bytes| bytes as f64));
    out.put(&kernel::THREADS, &short[..], watch.threads() as f64);
    let held = processes.each_gpu(|gpu, used| {
        let own = used.iter().filter(|(pid, _)| watch.has(**pid));
        (gpu, own.map(|(pid, used)| (*pid, *used)).collect::<Vec<_>>())
    });
    for (gpu, held) in held {
        let own: Vec<(u64, Option<f32>)> =
            held.into_iter().filter(|(pid, _)| watch.holds_device(*pid)).map(|(_, used)| used).collect();
        if !own.is_empty() {
            let instance = format!("{short}.gpu.{gpu}");
            out.put(&kernel::GPU_MEMORY, &instance[..], own.iter().map(|(bytes, _)| bytes).sum::<u64>() as f64);
            let shares: Vec<f64> = own.iter().filter_map(|(_, share)| share.map(f64::from)).collect();
            out.put_some(&kernel::GPU_SHARE, &instance[..], (!shares.is_empty()).then(|| shares.iter().sum()));
        }
    }
}

#[cfg(test)]
mod tests;
