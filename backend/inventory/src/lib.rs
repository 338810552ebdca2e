//! Tables of a machine beside its samples: GPU numbers, processes, Jupyter kernels, and values of other machines. Collectors fill these tables;
//! the API and the pages read them. The values that jobs log go the other way: a collector reads them.
//!
//! This crate uses only the types of [`shared`]. It reads no device and no `/proc`, and has no thread, clock or socket.

mod gpus;
mod job_values;
mod kernels;
mod others;
mod processes;

pub use gpus::GpuNumbers;
pub use job_values::{JobProcess, JobValue, JobValues, TakenValues};
pub use kernels::{Kernel, KernelEnd, KernelEndListener, KernelSample, Kernels, MemoryWarning, NoKernel, ReadKernels};
pub use others::{MAX_MACHINES as MAX_OTHER_MACHINES, OtherMachine, OtherMachines};
pub use processes::{GpuUse, Processes, RankProcess};
