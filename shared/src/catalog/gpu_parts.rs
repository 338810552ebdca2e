//! Parts of an NVIDIA GPU: the processes on it, and its critical errors. (A MIG device uses the GPU's own rows.)
//!
//! A process's series names both, GPU and process: `0.proc.4711`.

use super::MetricDef;
use crate::unit::Unit;

const PROCESS: &str = "GPU {process}";

/// A process's memory.
pub static PROCESS_MEMORY: MetricDef = MetricDef::gauge("gpu.{process}.memoryUsedBytes", Unit::Bytes)
    .title("GPU memory by process")
    .on("gpu.proc.memory", PROCESS)
    .steps(super::gpu::MEMORY_ALLOCATED_BYTES.steps)
    .help("Device memory that a process has on a GPU, as in gpu.0.proc.4711.memoryUsedBytes; the driver gives the host's process numbers, and no memory under Windows. NVML compute and graphics running processes, used GPU memory.");

/// A process's share of the multiprocessors.
pub static PROCESS_SM: MetricDef = MetricDef::gauge("gpu.{process}.smUtilization", Unit::Percent)
    .title("GPU share by process")
    .on("gpu.proc.sm", PROCESS)
    .help("Share of a GPU's multiprocessors that a process used, as in gpu.0.proc.4711.smUtilization: the newest of the driver's samples since the previous tick; absent in MIG mode. NVML process utilization, smUtil.");

/// Critical errors.
pub static XID_ERRORS: MetricDef = MetricDef::counter("gpu.{i}.xidErrors", Unit::Count)
    .title("GPU critical errors")
    .on("gpu.errors.xid", "GPU {i}")
    .help("Critical errors (XID) that the driver reported since Watchglass listens; absent where it reports none to us. NVML events, XID critical error; where no event comes, lines NVRM: Xid of the kernel's log (/dev/kmsg), if it may be read. One that both tell counts once.");

/// The last one.
pub static LAST_XID: MetricDef = MetricDef::state("gpu.{i}.lastXid")
    .title("GPU last critical error")
    .on("gpu.xid", "GPU {i}")
    .help("Number of the last critical error (XID) since Watchglass listens, as in NVIDIA's XID catalog: 48 double-bit ECC error, 63 and 64 row remapping, 74 NVLink, 79 fallen off the bus. NVML events, XID critical error; where no event comes, the kernel's log (/dev/kmsg), if it may be read.");

/// The action for it.
pub static LAST_XID_ACTION: MetricDef = MetricDef::state("gpu.{i}.lastXidAction")
    .title("GPU action for the last critical error")
    .on("gpu.xid.action", "GPU {i}")
    .help("Action that NVIDIA's XID catalog gives for the last critical error (XID), to 13 by its cost: 0 none, 1 that of the XID before it, 2 restart the program, 3 update the software, 4 check the NVLinks, 5 check seat and connectors, 6 check unified memory, 7 restart the virtual machine, 8 ask the vendor, 9 read the recovery action, 10 stop peers, 11 reset the GPU, 12 drain and reset, 13 restart the machine, 14 recover the IMEX domain, 15 reset the PCIe bus. Read from the message in the kernel's log (/dev/kmsg) for XIDs 74, 144 to 150 and 154, else from the number.");

/// In order on screen.
pub static ROWS: &[&MetricDef] = &[&XID_ERRORS, &LAST_XID, &LAST_XID_ACTION, &PROCESS_MEMORY, &PROCESS_SM];
