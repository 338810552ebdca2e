//! The sensors of Watchglass and their one registration table, [`COLLECTORS`].
//!
//! A new collector is one file, its `mod` line and one entry here. Configuration key, doctor, documentation, chart and
//! export follow from the entry. Each part of a collector runs on a thread of its own with a timeout. So a hung driver,
//! mount or endpoint costs only its own series. This crate reads no wall clock and starts no server.
//!
//! Read [`Collector`], then [`Entry`], then `host/linux/memory.rs` as the simplest example.

mod devices;
mod error;
#[cfg(test)]
mod golden;
mod host;
mod job;
pub mod openmetrics;
pub mod options;
mod out;
mod read;
#[cfg(test)]
mod recordings;

pub use error::{CollectError, OpenError, OpenErrorKind};
pub use host::facts::{facts, host_name};
pub use host::monitor;
pub use options::{OptionRow, OwnOptions};
pub use out::{Instance, Out};
pub use read::exec::printed;

use inventory::{GpuNumbers, JobValues, KernelEndListener, Kernels, OtherMachines, Processes};
use shared::catalog::{self as rows, Catalog, MetricDef};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A sensor.
pub trait Collector: Send {
    /// Reads once and puts the available values. Values that cannot be read are left out, never put as zero.
    ///
    /// # Errors
    /// [`CollectError`] if readings failed; values put before are still used.
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError>;
}

/// One independent part of a collector. It has a timeout of its own, and never delays another part.
pub struct Part {
    /// Its subject (`/data` of the disk collector); empty if the collector has only one part.
    pub name: String,
    /// Paths, libraries and addresses that it reads, for doctor.
    pub tried: Vec<String>,
    /// The reader.
    pub collector: Box<dyn Collector>,
}

impl Part {
    /// The only part of a collector.
    pub fn only(tried: impl Into<Vec<String>>, collector: impl Collector + 'static) -> Vec<Part> {
        vec![Part { name: String::new(), tried: tried.into(), collector: Box::new(collector) }]
    }
}

/// One entry of the registration table.
pub struct Entry {
    /// Name in the configuration, in doctor and in the collector's own series.
    pub name: &'static str,
    /// Description of its values, one sentence.
    pub about: &'static str,
    /// The operating systems that it supports.
    pub systems: &'static [System],
    /// The metrics that it produces.
    pub metrics: &'static [&'static [&'static MetricDef]],
    /// Its own keys below `[collectors.NAME]`.
    pub options: &'static [&'static OptionRow],
    /// Opens it on a supported system; see [`Entry::open_here`].
    pub open: fn(&Options, &Roots) -> Result<Vec<Part>, OpenError>,
}

impl Entry {
    /// Opens it. Called again later if it fails.
    ///
    /// # Errors
    /// [`OpenErrorKind::Absent`] on an unsupported system, else the reason why it could not be opened.
    pub fn open_here(&self, options: &Options, roots: &Roots) -> Result<Vec<Part>, OpenError> {
        if !self.systems.contains(&System::HERE) {
            return Err(OpenError::absent([], self.elsewhere(), ""));
        }
        (self.open)(options, roots)
    }

    /// The supported systems, for users of another one: `only on Linux`.
    pub fn elsewhere(&self) -> String {
        let names: Vec<&str> = self.systems.iter().map(|system| system.name()).collect();
        format!("only on {}", names.join(" and "))
    }

    /// Its own option with this key.
    pub fn option(&self, key: &str) -> Option<&'static OptionRow> {
        self.options.iter().find(|row| row.key == key).copied()
    }
}

/// A kind of operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux; the kernel's own files are read.
    Linux,
    /// macOS.
    MacOs,
    /// Windows, and every other system that sysinfo supports.
    Other,
}

impl System {
    /// The system of this program.
    pub const HERE: System = match () {
        () if cfg!(target_os = "linux") => System::Linux,
        () if cfg!(target_os = "macos") => System::MacOs,
        () => System::Other,
    };

    /// Its usual name.
    fn name(self) -> &'static str {
        match self {
            System::Linux => "Linux",
            System::MacOs => "macOS",
            System::Other => "other systems",
        }
    }
}

/// Systems of a collector that runs everywhere.
const ALL: &[System] = &[System::Linux, System::MacOs, System::Other];
/// Systems of a collector that reads interfaces of Linux.
const LINUX: &[System] = &[System::Linux];
/// Systems of a collector that reads interfaces of macOS.
const MACOS: &[System] = &[System::MacOs];

/// User settings for collectors.
#[derive(Clone, Debug)]
pub struct Options {
    /// Paths whose file systems are watched.
    pub disk_paths: Vec<PathBuf>,
    /// PIDs of processes to watch with their descendants; empty for none.
    pub pids: Vec<u32>,
    /// GPUs to keep; empty for all. A number is the vendor's own: NVML's index, N of `cardN`, the number in AMD's or
    /// Intel's tool, 0 for Apple.
    pub gpus: Vec<u32>,
    /// Values of the options that collectors declare themselves.
    pub own: OwnOptions,
    /// GPU numbers over all vendors.
    pub gpu_numbers: Arc<GpuNumbers>,
    /// Endpoints to scrape.
    pub endpoints: Vec<openmetrics::Endpoint>,
    /// Process table that collectors fill.
    pub processes: Arc<Processes>,
    /// Table of this user's Jupyter kernels that collectors fill.
    pub kernels: Arc<Kernels>,
    /// Is called with each of them that ends.
    pub kernel_ended: KernelEndListener,
    /// Values that jobs log.
    pub job_values: Arc<JobValues>,
    /// Whether arguments of processes are read.
    pub show_args: bool,
    /// Values of other machines that an endpoint tells of; None to put all of them under this machine.
    pub others: Option<Arc<OtherMachines>>,
}

impl Options {
    /// Whether a GPU is to be read, by its vendor's own number.
    pub(crate) fn keeps_gpu(&self, number: u32) -> bool {
        self.gpus.is_empty() || self.gpus.contains(&number)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            disk_paths: vec![default_disk_path(cfg!(windows), None)],
            pids: Vec::new(),
            gpus: Vec::new(),
            own: OwnOptions::default(),
            gpu_numbers: Arc::default(),
            endpoints: Vec::new(),
            processes: Arc::default(),
            kernels: Arc::default(),
            kernel_ended: KernelEndListener::default(),
            job_values: Arc::default(),
            show_args: false,
            others: None,
        }
    }
}

/// Root folders of the machine's files: `/` for this machine; another folder for a host's files mounted into a
/// container, and for recordings in tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// /proc
    pub proc: PathBuf,
    /// /sys
    pub sys: PathBuf,
    /// /dev
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { proc: "/proc".into(), sys: "/sys".into(), dev: "/dev".into() }
    }
}

impl Roots {
    /// `proc`, `sys` and `dev` below a folder.
    pub fn below(root: &std::path::Path) -> Self {
        Roots { proc: root.join("proc"), sys: root.join("sys"), dev: root.join("dev") }
    }

    /// Folder of the process whose groups and mounts are the machine's: this one, or the first one where a machine's
    /// files are mounted into a container.
    #[cfg(target_os = "linux")]
    pub(crate) fn process(&self) -> PathBuf {
        let first = self.proc.join("1");
        let is_foreign = self.proc != std::path::Path::new("/proc") && first.join("cgroup").exists();
        if is_foreign { first } else { self.proc.join("self") }
    }
}

/// Default path whose file system is watched: the root, or on Windows the system's drive. `system_drive` is the
/// variable `SystemDrive`, such as `C:`.
pub fn default_disk_path(windows: bool, system_drive: Option<&str>) -> PathBuf {
    let is_drive = |text: &&str| matches!(text.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    match windows {
        false => "/".into(),
        true => format!("{}\\", system_drive.filter(is_drive).unwrap_or("C:")).into(),
    }
}

/// Timeout after which a part counts as hung: twice the interval, at least 5 s.
pub fn deadline(interval: Duration) -> Duration {
    (2 * interval).max(Duration::from_secs(5))
}

/// All collectors, in order on screen.
pub static COLLECTORS: &[Entry] = &[
    Entry {
        name: "cpu",
        about: "Processor time whole and core by core, load, tasks, context switches, interrupts, uptime and temperature.",
        systems: ALL,
        metrics: &[rows::cpu::ROWS, rows::cpu::KERNEL_ROWS],
        options: &[],
        open: host::cpu::open,
    },
    Entry {
        name: "rapl",
        about: "Power of processors and memory by the processor's own counters (RAPL).",
        systems: LINUX,
        metrics: &[rows::power::RAPL],
        options: &[],
        open: host::rapl::open,
    },
    Entry {
        name: "power_meter",
        about: "Power of the whole machine by its ACPI power meter.",
        systems: LINUX,
        metrics: &[rows::power::METER],
        options: &[],
        open: host::power_meter::open,
    },
    Entry {
        name: "memory",
        about: "Memory, page cache, paging and swap of the host or of the container's limit.",
        systems: ALL,
        metrics: &[rows::memory::ROWS, rows::memory::KERNEL_ROWS],
        options: &[],
        open: host::memory::open,
    },
    Entry {
        name: "pressure",
        about: "Time in which tasks were stalled for lack of CPU, memory or I/O.",
        systems: LINUX,
        metrics: &[rows::cpu::PRESSURE_ROWS],
        options: &[],
        open: host::pressure::open,
    },
    Entry {
        name: "disk",
        about: "Reads and writes of all disks and of each, and how busy each is.",
        systems: ALL,
        metrics: &[rows::disk::ROWS],
        options: &[],
        open: host::disk::open,
    },
    Entry {
        name: "disk_usage",
        about: "How full the file systems at the watched paths are.",
        systems: ALL,
        metrics: &[rows::disk::USAGE_ROWS],
        options: &[],
        open: host::disk_usage::open,
    },
    Entry {
        name: "mount",
        about: "Requests, times and slots of NFS and Lustre mounts.",
        systems: LINUX,
        metrics: &[rows::mount::ROWS],
        options: &[],
        open: host::mount::open,
    },
    Entry {
        name: "network",
        about: "Traffic of all links and of each, and TCP segments that were sent again.",
        systems: ALL,
        metrics: &[rows::network::ROWS],
        options: &[],
        open: host::network::open,
    },
    Entry {
        name: "infiniband",
        about: "Traffic, state and errors of the ports of InfiniBand and RoCE adapters.",
        systems: LINUX,
        metrics: &[rows::infiniband::ROWS],
        options: &[],
        open: host::infiniband::open,
    },
    Entry {
        name: "process",
        about: "The watched processes with all their descendants.",
        systems: ALL,
        metrics: &[rows::process::ROWS, rows::process::KERNEL_ROWS],
        options: &[],
        open: host::process::open,
    },
    Entry {
        name: "processes",
        about: "Processes of this machine: user, CPU, memory, threads, disks and container of every process, every 5 s.",
        systems: LINUX,
        metrics: &[
            rows::cpu::TABLE_ROWS,
            rows::process::RANK_ROWS,
            rows::process::SHARED_ROWS,
            rows::process::WANDB_ROWS,
        ],
        options: &[],
        open: host::scan::open,
    },
    Entry {
        name: "kernels",
        about: "Jupyter kernels of this user: CPU, memory, threads and GPU memory of each, with its descendants.",
        systems: LINUX,
        metrics: &[rows::kernel::ROWS],
        options: &[],
        open: host::kernels::open,
    },
    Entry {
        name: "pods",
        about: "GPUs that the kubelet has given to pods of Kubernetes.",
        systems: LINUX,
        metrics: &[rows::gpu_pods::ROWS],
        options: host::pods::OPTIONS,
        open: host::pods::open,
    },
    Entry {
        name: rows::job::SECTION,
        about: "Values that training jobs log, such as their loss, with the step.",
        systems: ALL,
        metrics: &[rows::job::ROWS, job::ROWS],
        options: &[],
        open: job::open,
    },
    Entry {
        name: "monitor",
        about: "Cost of Watchglass itself.",
        systems: ALL,
        metrics: &[monitor::ROWS, rows::link::ROWS],
        options: &[],
        open: monitor::open,
    },
    Entry {
        name: "nvidia",
        about: "NVIDIA GPUs by the driver's library NVML, else by nvidia-smi; of Jetson also the kernel's files.",
        systems: ALL,
        metrics: &[
            rows::gpu::ROWS,
            rows::gpu::MORE,
            rows::gpu_health::ROWS,
            rows::gpu_profile::ROWS,
            rows::gpu_profile::PCIE,
            rows::gpu_process::ROWS,
            rows::gpu_parts::ROWS,
            rows::jetson::ROWS,
        ],
        options: devices::nvidia::OPTIONS,
        open: devices::nvidia::open,
    },
    Entry {
        name: "graphcore",
        about: "Graphcore IPUs by the vendor's command line tools.",
        systems: LINUX,
        metrics: &[rows::ipu::ROWS],
        options: devices::graphcore::OPTIONS,
        open: devices::graphcore::open,
    },
    Entry {
        name: "tpu",
        about: "Google TPUs by the metric service of the program that uses them, else by tpu-info.",
        systems: ALL,
        metrics: &[rows::tpu::DEVICE, rows::tpu::DISTRIBUTIONS],
        options: devices::tpu::OPTIONS,
        open: devices::tpu::open,
    },
    Entry {
        name: "trainium",
        about: "AWS Trainium and Inferentia by neuron-monitor.",
        systems: LINUX,
        metrics: &[rows::trainium::ROWS],
        options: devices::trainium::OPTIONS,
        open: devices::trainium::open,
    },
    Entry {
        name: "amd",
        about: "AMD GPUs by the files of their driver, else by rocm-smi or amd-smi.",
        systems: ALL,
        metrics: &[rows::gpu::ROWS, rows::gpu::AMD, rows::gpu_amd::ROWS, rows::gpu_amd::COMMON],
        options: devices::amd::OPTIONS,
        open: devices::amd::open,
    },
    Entry {
        name: "intel",
        about: "Intel GPUs by the files of their driver, else by xpu-smi.",
        systems: ALL,
        metrics: &[rows::gpu::ROWS, rows::gpu::INTEL],
        options: devices::intel::OPTIONS,
        open: devices::intel::open,
    },
    Entry {
        name: "ascend",
        about: "Huawei Ascend NPUs by npu-smi.",
        systems: LINUX,
        metrics: &[rows::gpu::ROWS],
        options: devices::ascend::OPTIONS,
        open: devices::ascend::open,
    },
    Entry {
        name: "apple",
        about: "Apple silicon: its kinds of cores, its GPU, power and temperatures.",
        systems: MACOS,
        metrics: &[rows::gpu::ROWS, &[&rows::gpu::FREQUENCY], rows::gpu::APPLE, rows::apple::ROWS],
        options: &[],
        open: devices::apple::open,
    },
    Entry {
        name: "openmetrics",
        about: "Series of named endpoints in Prometheus or OpenMetrics text.",
        systems: ALL,
        metrics: &[rows::openmetrics::ROWS, openmetrics::dcgm::ROWS, openmetrics::ROWS],
        options: &[],
        open: openmetrics::open,
    },
];

/// Names of the collectors that read the host's own files, of those above. `tests/linux` has their golden tests;
/// `golden.rs` looks at all others.
pub const HOST_COLLECTORS: [&str; 12] = [
    "cpu",
    "rapl",
    "power_meter",
    "memory",
    "pressure",
    "disk",
    "disk_usage",
    "mount",
    "network",
    "infiniband",
    "process",
    "processes",
];

/// The catalog: the metrics of all collectors, merged.
pub fn catalog() -> Catalog {
    let mut seen = std::collections::HashSet::new();
    let own = COLLECTORS.iter().flat_map(|entry| entry.metrics.iter());
    let rows = shared::catalog::VOCABULARY.iter().chain(own).copied().flatten().copied();
    Catalog::new(rows.filter(|def| seen.insert(def.tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_that_is_watched_by_itself_is_the_systems() {
        for (windows, drive, path) in [
            (false, None, "/"),
            (false, Some("D:"), "/"),
            (true, Some("D:"), "D:\\"),
            (true, None, "C:\\"),
            (true, Some(""), "C:\\"),
            (true, Some("D:\\x"), "C:\\"),
        ] {
            assert_eq!(default_disk_path(windows, drive), PathBuf::from(path), "{drive:?}");
        }
    }
}
