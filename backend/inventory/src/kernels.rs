//! The Jupyter kernels that are seen here: those that run, and the last that ended.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kernels that ended and are still told of.
const MAX_ENDED: usize = 64;

/// A kernel as it was seen last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Jupyter's id of it, a UUID.
    pub id: String,
    /// Number of its process.
    pub pid: u32,
    /// Path of the notebook when the kernel began, as Jupyter told it.
    pub path: Option<String>,
    /// When it began, milliseconds since the Unix epoch.
    pub started: Option<i64>,
    /// Its process and all below it.
    pub processes: usize,
    /// What they hold, bytes.
    pub memory: Option<u64>,
    /// What they and all others that share the limit use, bytes.
    pub used: Option<u64>,
    /// What may be used: the cgroup's limit, else the memory of the machine, bytes.
    pub limit: Option<u64>,
    /// Whether the limit is a cgroup's.
    pub limited: bool,
    /// Cores that it may use.
    pub cores: Option<f64>,
    /// The limit is near.
    pub warning: Option<MemoryWarning>,
    /// How it ended; none while it runs.
    pub end: Option<KernelEnd>,
}

/// How near a limit of memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWarning {
    /// Nine tenths of it are used.
    Full,
    /// It is reached in so many seconds if memory grows on as it did in the last ten.
    Seconds(u64),
}

/// How a kernel ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelEnd {
    /// When it was missed first, milliseconds since the Unix epoch.
    pub at: i64,
    /// In the same second the system killed a process of its cgroup for memory.
    pub killed_for_memory: bool,
    /// The cell that it ran, as `[7]`, where the [`KernelEndListener`] knows it.
    pub cell: Option<String>,
}

/// Is called with each kernel that has ended, before it is listed, and adds what it knows. The default adds nothing.
#[derive(Clone, Default)]
pub struct KernelEndListener(Option<Arc<OnKernelEnd>>);

type OnKernelEnd = dyn Fn(&mut Kernel) + Send + Sync;

impl KernelEndListener {
    /// One that calls a function.
    pub fn new(ended: impl Fn(&mut Kernel) + Send + Sync + 'static) -> KernelEndListener {
        KernelEndListener(Some(Arc::new(ended)))
    }

    /// Passes a kernel on that has ended.
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

/// What a kernel has used at an instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelSample {
    /// CPU time of its process and all below it since it began, seconds.
    pub cpu_seconds: f64,
    /// What they hold, bytes; see [`shared::catalog::kernel::MEMORY`].
    pub memory: Option<u64>,
}

/// Why no kernel is known by the number of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKernel {
    /// Kernels are not looked for here.
    Off,
    /// They will be in a moment: the collector is being opened.
    Early,
    /// No such process runs here.
    NoProcess,
    /// The process is another user's.
    OtherUser,
    /// Neither it nor what started it is a kernel.
    NotOne,
    /// As many kernels as are watched at once run already.
    Full,
}

impl fmt::Display for NoKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoKernel::Off => {
                "this server does not detect kernels; send markers to the Watchglass on the machine of Jupyter"
            }
            NoKernel::Early => "kernels are not detected yet; send the markers again in a second",
            NoKernel::NoProcess => "no process with this pid runs here",
            NoKernel::OtherUser => "this pid is a process of another user",
            NoKernel::NotOne => "this pid is not a Jupyter kernel or one of its descendants; leave pid out",
            NoKernel::Full => "too many kernels run here; shut down kernels that you do not need",
        })
    }
}

/// Reads kernels that run on this machine.
pub trait ReadKernels: Send + Sync {
    /// The id of the kernel to which a process belongs, which is watched from then on.
    ///
    /// # Errors
    /// [`NoKernel`].
    fn of_process(&self, pid: u32) -> Result<String, NoKernel>;
    /// Reads a kernel that runs, now.
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

/// Where the kernels of a machine are found.
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
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that run and then those that ended, the newest first; and how many run that are not watched.
    pub fn all(&self) -> (Vec<Kernel>, u64) {
        let list = self.lock();
        let all = list.running.iter().chain(list.ended.iter().rev()).cloned().collect();
        (all, list.left_out)
    }

    /// The one of this id: that which runs, else the last that ended.
    pub fn get(&self, id: &str) -> Option<Kernel> {
        let list = self.lock();
        list.running.iter().chain(list.ended.iter().rev()).find(|kernel| kernel.id == id).cloned()
    }

    /// The id of the kernel to which a process belongs: it, or one of those above it. It is watched from then on.
    ///
    /// # Errors
    /// [`NoKernel`].
    pub fn of_process(&self, pid: u32) -> Result<String, NoKernel> {
        let reader = self.lock().reader.get()?;
        reader.of_process(pid)
    }

    /// Reads a kernel that runs, now; none where it cannot be read. It may take as long as the system takes to answer.
    pub fn read(&self, id: &str) -> Option<KernelSample> {
        let reader = self.lock().reader.get().ok()?;
        reader.read(id)
    }

    /// Whether somebody looks for them here.
    pub fn are_looked_for(&self) -> bool {
        !matches!(self.lock().reader, Reader::None)
    }

    /// Says that the collector will be opened, and so that it is worth while to come again.
    pub fn expect(&self) {
        self.lock().reader = Reader::Expected;
    }

    /// Sets what reads the kernels of this machine; none where nothing does any more.
    pub fn set_reader(&self, reader: Option<Arc<dyn ReadKernels>>) {
        self.lock().reader = reader.map_or(Reader::None, Reader::Here);
    }

    /// Says which run now, and which ended since it was said last.
    pub fn put(&self, running: Vec<Kernel>, ended: Vec<Kernel>, left_out: u64) {
        let mut list = self.lock();
        (list.running, list.left_out) = (running, left_out);
        list.add_ended(ended);
    }

    /// Adds kernels that ended before this program began, in order of their ends.
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
