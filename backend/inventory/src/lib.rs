//! What a machine has beside its samples: the numbers of its GPUs, its processes and its Jupyter kernels. A collector
//! fills these tables; whoever shows them reads them.
//!
//! This crate knows the words of [`shared`] alone. It has no reader of a device or of `/proc`, no thread, clock or socket.

mod gpus;
mod kernels;
mod processes;

pub use gpus::GpuNumbers;
pub use kernels::{Kernel, KernelEnd, KernelEndListener, KernelSample, Kernels, MemoryWarning, NoKernel, ReadKernels};
pub use processes::{GpuUse, Processes, RankProcess};
