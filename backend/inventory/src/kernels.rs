//! The Jupyter kernels seen on this machine: the running ones, and the last that ended.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Maximum number of ended kernels that are kept.
const MAX_ENDED: usize = 64;

/// A kernel as it was last read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Jupyter's kernel ID, a UUID; of a kernel that no Jupyter server started, the name of its connection file.
    pub id: String,
    /// PID of its process.
    pub pid: u32,
    /// Path of the notebook when the kernel started, as Jupyter reported it.
    pub path: Option<String>,
    /// Start time, milliseconds since the Unix epoch.
    pub started: Option<i64>,
    /// Number of processes: its own and all descendants.
    pub processes: usize,
    /// Memory of these processes, bytes.
    pub memory: Option<u64>,
    /// Memory used by all processes under the same limit, bytes.
    pub used: Option<u64>,
    /// Memory limit: the cgroup's, else the memory of the machine, bytes.
    pub limit: Option<u64>,
    /// Whether the limit is a cgroup's.
    pub limited: bool,
    /// CPU cores that it may use.
    pub cores: Option<f64>,
    /// Set when memory use is near the limit.
    pub warning: Option<MemoryWarning>,
    /// Reason and time of its end; none while it runs.
    pub end: Option<KernelEnd>,
}

/// A warning that memory use is near its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWarning {
    /// Nine tenths of the limit are used.
    Full,
    /// Number of seconds until the limit is reached, if memory keeps growing as in the last ten seconds.
    Seconds(u64),
}

/// The end of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelEnd {
    /// Time at which the process was first missing, milliseconds since the Unix epoch.
    pub at: i64,
    /// In the same second the system killed a process of its cgroup because of memory.
    pub killed_for_memory: bool,
    /// The cell that it was running, as `[7]`. Set by the [`KernelEndListener`] if it knows the cell.
    pub cell: Option<String>,
}

/// Callback for each ended kernel, before it is listed. It may add fields. The default adds nothing.
#[derive(Clone, Default)]
pub struct KernelEndListener(Option<Arc<OnKernelEnd>>);

type OnKernelEnd = dyn Fn(&mut Kernel) + Send + Sync;

impl KernelEndListener {
    /// Makes a listener that calls a function.
    pub fn new(ended: impl Fn(&mut Kernel) + Send + Sync + 'static) -> KernelEndListener {
        KernelEndListener(Some(Arc::new(ended)))
    }

    /// Passes an ended kernel to the listener.
    pub fn ended(&self, kernel: &mut Kernel) {
        if let Some(ended) = &self.0 {
            ended(kernel);
        }
    }
}

impl fmt::Debug for KernelEndListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelEndListener").finish_non_exhaustive()
    }
}

/// Resource use of a kernel at an instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSample {
    /// CPU time of its process and all descendants since its start, seconds.
    pub cpu_seconds: f64,
    /// Memory of these processes, bytes; see [`shared::catalog::kernel::MEMORY`].
    pub memory: Option<u64>,
}

/// Reason why a PID belongs to no known kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKernel {
    /// No collector searches for kernels here.
    Off,
    /// The collector is still being opened; try again in a moment.
    Early,
    /// No process has this PID.
    NoProcess,
    /// The process belongs to another user.
    OtherUser,
    /// Neither the process nor one of its ancestors is a kernel.
    NotOne,
    /// The maximum number of kernels is already watched.
    Full,
}

impl fmt::Display for NoKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoKernel::Off => "this server does not detect kernels",
            NoKernel::Early => "kernels are not detected yet; send the markers again in a second",
            NoKernel::NoProcess => "no process with this pid runs here",
            NoKernel::OtherUser => "this pid is a process of another user",
            NoKernel::NotOne => "this pid is not a Jupyter kernel or one of its descendants",
            NoKernel::Full => "too many kernels run here; shut down kernels that you do not need",
        })
    }
}

/// Reads the running kernels of this machine.
pub trait ReadKernels: Send + Sync {
    /// Returns the ID of the kernel that a process belongs to. The kernel is watched from then on.
    ///
    /// # Errors
    /// [`NoKernel`].
    fn of_process(&self, pid: u32) -> Result<String, NoKernel>;
    /// Name of a process's program, as the system has it; none if there is no such process.
    fn program(&self, pid: u32) -> Option<String>;
    /// Reads a running kernel now.
    fn read(&self, id: &str) -> Option<KernelSample>;
}

#[derive(Default)]
struct List {
    running: Vec<Kernel>,
    ended: VecDeque<Kernel>,
    left_out: u64,
    reader: Reader,
}

#[derive(Default)]
enum Reader {
    #[default]
    None,
    Expected,
    Here(Arc<dyn ReadKernels>),
}

impl Reader {
    fn get(&self) -> Result<Arc<dyn ReadKernels>, NoKernel> {
        match self {
            Reader::None => Err(NoKernel::Off),
            Reader::Expected => Err(NoKernel::Early),
            Reader::Here(reader) => Ok(reader.clone()),
        }
    }
}

/// The table of the kernels of this machine.
#[derive(Default)]
pub struct Kernels {
    list: Mutex<List>,
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().0).finish()
    }
}

impl Kernels {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock()
    }

    /// Running kernels, then ended ones, newest first. The number counts running kernels that are not watched.
    pub fn all(&self) -> (Vec<Kernel>, u64) {
        let list = self.lock();
        let all = list.running.iter().chain(list.ended.iter().rev()).cloned().collect();
        (all, list.left_out)
    }

    /// The kernel with this ID: the running one, else the last that ended.
    pub fn get(&self, id: &str) -> Option<Kernel> {
        let list = self.lock();
        list.running.iter().chain(list.ended.iter().rev()).find(|kernel| kernel.id == id).cloned()
    }

    /// Returns the ID of the kernel that a process or one of its ancestors is. The kernel is watched from then on.
    ///
    /// # Errors
    /// [`NoKernel`].
    pub fn of_process(&self, pid: u32) -> Result<String, NoKernel> {
        let reader = self.lock().reader.get()?;
        reader.of_process(pid)
    }

    /// Name of a process's program; none if there is no such process, or no collector that could read it.
    pub fn program(&self, pid: u32) -> Option<String> {
        let reader = self.lock().reader.get().ok()?;
        reader.program(pid)
    }

    /// Reads a running kernel now; none if it cannot be read. Blocks as long as the system takes to answer.
    pub fn read(&self, id: &str) -> Option<KernelSample> {
        let reader = self.lock().reader.get().ok()?;
        reader.read(id)
    }

    /// Whether a collector searches for kernels here, or is about to.
    pub fn are_looked_for(&self) -> bool {
        !matches!(self.lock().reader, Reader::None)
    }

    /// Announces that the collector will be opened, so that callers retry.
    pub fn expect(&self) {
        self.lock().reader = Reader::Expected;
    }

    /// Sets the reader of this machine's kernels; none if there is no longer one.
    pub fn set_reader(&self, reader: Option<Arc<dyn ReadKernels>>) {
        self.lock().reader = reader.map_or(Reader::None, Reader::Here);
    }

    /// Replaces the running kernels, and adds those that ended since the last call.
    pub fn put(&self, running: Vec<Kernel>, ended: Vec<Kernel>, left_out: u64) {
        let mut list = self.lock();
        (list.running, list.left_out) = (running, left_out);
        list.add_ended(ended);
    }

    /// Adds kernels that ended before this program started, in order of their ends.
    pub fn put_former(&self, ended: Vec<Kernel>) {
        self.lock().add_ended(ended);
    }
}

impl List {
    fn add_ended(&mut self, ended: Vec<Kernel>) {
        self.ended.extend(ended);
        let over = self.ended.len().saturating_sub(MAX_ENDED);
        self.ended.drain(..over);
    }
}
