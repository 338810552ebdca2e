//! The sensors of Watchglass and their one registration table, [`COLLECTORS`].
//!
//! A new collector is one file, one `mod` line and one row here; configuration key, doctor, documentation, chart and
//! export follow from the row. Each part of a collector runs on a thread of its own with a deadline, so that a hung
//! driver, mount or endpoint costs its own series only. This crate reads no wall clock and starts no server.
//!
//! Read [`Collector`], then [`Entry`], then `memory.rs` as the simplest example.

mod amd;
mod apple;
mod error;
mod gpu_reading;
mod graphcore;
mod host;
mod intel;
mod out;
mod read;
#[cfg(test)]
mod recordings;
mod total;
mod tpu;
mod trainium;

#[cfg(unix)]
mod disk_usage;
pub mod monitor;
mod numbers;
mod nvidia;
pub mod openmetrics;
mod processes;

#[cfg(any(test, not(target_os = "linux")))]
mod portable;
#[cfg(windows)]
use portable::disk_usage;
#[cfg(not(target_os = "linux"))]
use portable::{cpu, disk, memory, network, pressure, process};

#[cfg(target_os = "linux")]
mod cpu;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod pressure;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod temperature;

pub use error::{CollectError, OpenError, OpenErrorKind};
pub use host::{facts, host_name};
pub use numbers::GpuNumbers;
pub use out::{Instance, Out};
pub use processes::{GpuUse, Processes};

use shared::catalog::{self as rows, Catalog, MetricDef};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A sensor.
pub trait Collector: Send {
    /// Reads once and puts what could be read. What could not be read is left out, never put as zero.
    ///
    /// # Errors
    /// [`CollectError`] when readings failed; what was put before is used all the same.
    fn collect(&mut self, out: &mut Out) -> Result<(), CollectError>;
}

/// One independent part of a collector: it has its own deadline, and keeps no other part waiting.
pub struct Part {
    /// What it is for (`/data` of the disk collector), empty when the collector has one part only.
    pub name: String,
    /// Paths, libraries and addresses that it reads, for doctor.
    pub tried: Vec<String>,
    /// The sensor.
    pub collector: Box<dyn Collector>,
}

impl Part {
    /// The only part of a collector.
    pub fn only(tried: impl Into<Vec<String>>, collector: impl Collector + 'static) -> Vec<Part> {
        vec![Part { name: String::new(), tried: tried.into(), collector: Box::new(collector) }]
    }
}

/// One row of the registration table.
pub struct Entry {
    /// Name in the configuration, in doctor and in the collector's own series.
    pub name: &'static str,
    /// What it reads, one sentence.
    pub about: &'static str,
    /// The rows that it produces.
    pub metrics: &'static [&'static [&'static MetricDef]],
    /// Opens it. Called again later when it fails.
    pub open: fn(&Options, &Roots) -> Result<Vec<Part>, OpenError>,
}

/// What a user chose, as far as collectors care.
#[derive(Clone, Debug)]
pub struct Options {
    /// Paths whose file systems are watched.
    pub disk_paths: Vec<PathBuf>,
    /// Processes to watch, with descendants; empty: none.
    pub pids: Vec<u32>,
    /// GPUs to keep; empty: all. A number is the vendor's own: NVML's index, N of `cardN`, that of AMD's or Intel's tool,
    /// 0 for Apple's.
    pub gpus: Vec<u32>,
    /// NVIDIA's library by path, instead of the system's.
    pub nvml_library: Option<PathBuf>,
    /// NVIDIA's nvidia-smi by path; it takes the library's place where that cannot be loaded.
    pub nvidia_command: Option<PathBuf>,
    /// AMD's rocm-smi by path; it then takes the place of the kernel's files.
    pub rocm_smi: Option<PathBuf>,
    /// AMD's amd-smi by path, likewise.
    pub amd_smi: Option<PathBuf>,
    /// Intel's xpu-smi by path; it then takes the place of the kernel's files.
    pub intel_command: Option<PathBuf>,
    /// Graphcore's gc-inventory or gc-info by path.
    pub graphcore_command: Option<PathBuf>,
    /// neuron-monitor by path.
    pub trainium_command: Option<PathBuf>,
    /// neuron-monitor's own configuration, instead of ours.
    pub trainium_config: Option<PathBuf>,
    /// Where TPU programs serve their metrics; empty: the usual port, on machines with a TPU.
    pub tpu_endpoints: Vec<SocketAddr>,
    /// The numbers of GPUs, over all vendors.
    pub gpu_numbers: Arc<GpuNumbers>,
    /// Endpoints to scrape.
    pub endpoints: Vec<openmetrics::Endpoint>,
    /// Where the process table is put.
    pub processes: Arc<Processes>,
}

impl Options {
    /// Whether a GPU is to be read, by its vendor's own number for it.
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
            nvml_library: None,
            nvidia_command: None,
            rocm_smi: None,
            amd_smi: None,
            intel_command: None,
            graphcore_command: None,
            trainium_command: None,
            trainium_config: None,
            tpu_endpoints: Vec::new(),
            gpu_numbers: Arc::default(),
            endpoints: Vec::new(),
            processes: Arc::default(),
        }
    }
}

/// Where the machine's files are read: `/` for this machine, a folder for the host's files mounted into a container and
/// for recordings in tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// /proc
    pub proc: PathBuf,
    /// /sys
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { proc: "/proc".into(), sys: "/sys".into() }
    }
}

impl Roots {
    /// `proc` and `sys` below a folder.
    pub fn below(root: &std::path::Path) -> Self {
        Roots { proc: root.join("proc"), sys: root.join("sys") }
    }
}

/// The path whose file system is watched when none is named: the root, on Windows that of the drive that the system is on
/// (`system_drive` is the variable `SystemDrive`, such as `C:`).
pub fn default_disk_path(windows: bool, system_drive: Option<&str>) -> PathBuf {
    let is_drive = |text: &&str| matches!(text.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    match windows {
        false => "/".into(),
        true => format!("{}\\", system_drive.filter(is_drive).unwrap_or("C:")).into(),
    }
}

/// How long a reading may take before the part counts as hung: twice the interval, at least 5 s.
pub fn deadline(interval: Duration) -> Duration {
    (2 * interval).max(Duration::from_secs(5))
}

/// All collectors, in order on screen.
pub static COLLECTORS: &[Entry] = &[
    Entry {
        name: "cpu",
        about: "Processor time whole and core by core, load, tasks, uptime and temperature.",
        metrics: &[rows::cpu::ROWS],
        open: cpu::open,
    },
    Entry {
        name: "memory",
        about: "Memory, page cache and swap of the host or of the container's limit.",
        metrics: &[rows::memory::ROWS],
        open: memory::open,
    },
    Entry {
        name: "pressure",
        about: "Time in which tasks stood still for want of a core, memory or I/O.",
        metrics: &[rows::cpu::PRESSURE_ROWS],
        open: pressure::open,
    },
    Entry {
        name: "disk",
        about: "Reads and writes of all disks and of each, and how busy each is.",
        metrics: &[rows::disk::ROWS],
        open: disk::open,
    },
    Entry {
        name: "disk_usage",
        about: "How full the file systems at the watched paths are.",
        metrics: &[rows::disk::USAGE_ROWS],
        open: disk_usage::open,
    },
    Entry {
        name: "network",
        about: "Traffic of all links and of each, and TCP segments that were sent again.",
        metrics: &[rows::network::ROWS],
        open: network::open,
    },
    Entry {
        name: "process",
        about: "The watched processes with all their descendants.",
        metrics: &[rows::process::ROWS],
        open: process::open,
    },
    #[cfg(target_os = "linux")]
    Entry {
        name: "processes",
        about: "What runs here: user, CPU, memory, threads, disks and container of every process, every 5 s.",
        metrics: &[],
        open: processes::scan::open,
    },
    Entry { name: "monitor", about: "What Watchglass itself costs.", metrics: &[monitor::ROWS], open: monitor::open },
    Entry {
        name: "nvidia",
        about: "NVIDIA GPUs by the driver's library NVML, else by nvidia-smi.",
        metrics: &[
            rows::gpu::ROWS,
            rows::gpu::MORE,
            rows::gpu_profile::ROWS,
            rows::gpu_profile::PCIE,
            rows::gpu_process::ROWS,
            rows::gpu_parts::ROWS,
        ],
        open: nvidia::open,
    },
    Entry {
        name: "graphcore",
        about: "Graphcore IPUs by the vendor's command line tools.",
        metrics: &[rows::ipu::ROWS],
        open: graphcore::open,
    },
    Entry {
        name: "tpu",
        about: "Google TPUs by the metric service of the program that uses them, else by tpu-info.",
        metrics: &[rows::tpu::DEVICE, rows::tpu::DISTRIBUTIONS],
        open: tpu::open,
    },
    Entry {
        name: "trainium",
        about: "AWS Trainium and Inferentia by neuron-monitor.",
        metrics: &[rows::trainium::ROWS],
        open: trainium::open,
    },
    Entry {
        name: "amd",
        about: "AMD GPUs by the files of their driver, else by rocm-smi or amd-smi.",
        metrics: &[rows::gpu::ROWS, rows::gpu::AMD],
        open: amd::open,
    },
    Entry {
        name: "intel",
        about: "Intel GPUs by the files of their driver, else by xpu-smi.",
        metrics: &[rows::gpu::ROWS, rows::gpu::INTEL],
        open: intel::open,
    },
    Entry {
        name: "apple",
        about: "Apple silicon: its kinds of cores, its GPU, power and temperatures.",
        metrics: &[rows::gpu::ROWS, &[&rows::gpu::FREQUENCY], rows::gpu::APPLE, rows::apple::ROWS],
        open: apple::open,
    },
    Entry {
        name: "openmetrics",
        about: "What named endpoints print in Prometheus or OpenMetrics text.",
        metrics: &[rows::openmetrics::ROWS, openmetrics::dcgm::ROWS, openmetrics::ROWS],
        open: openmetrics::open,
    },
];

/// The table: the fold of all collectors' rows.
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
