//! Metrics of this machine itself. Linux has readers of its own, other systems use the library sysinfo. Both have the
//! same interface for the rest of the crate.

pub(crate) mod facts;
pub mod monitor;
pub(crate) mod total;

#[cfg(unix)]
pub(crate) mod disk_usage;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux::own::LinuxOwn as Own;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    cpu, disk, infiniband, kernels, memory, mount, network, pods, power_meter, pressure, process, rapl, scan,
};

#[cfg(any(test, not(target_os = "linux")))]
pub(crate) mod portable;
#[cfg(windows)]
pub(crate) use portable::disk_usage;
#[cfg(not(target_os = "linux"))]
use portable::own::PortableOwn as Own;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::{
    cpu, disk, linux_only as infiniband, linux_only as kernels, linux_only as mount, linux_only as pods,
    linux_only as power_meter, linux_only as pressure, linux_only as rapl, linux_only as scan, memory, network,
    process,
};
