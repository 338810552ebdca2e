//! The readers of Linux: the kernel's files below /proc and /sys.

pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod gpu_nodes;
pub(crate) mod infiniband;
pub(crate) mod kernels;
mod links;
pub(crate) mod memory;
pub(crate) mod mount;
mod mounts;
pub(crate) mod network;
pub(crate) mod own;
pub(crate) mod pods;
pub(crate) mod power_meter;
pub(crate) mod pressure;
pub(crate) mod process;
pub(crate) mod rapl;
pub(crate) mod scan;
mod temperature;
