//! The page, as data: charts in order, sections, the tiles on top. Tags and chart ids of the page stand here alone.

use serde::{Deserialize, Serialize};

/// A chart. It draws every series whose metric names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Its id: `data-panel` on the page.
    pub id: String,
    /// Title, sentence case.
    pub title: String,
    /// Id of its section.
    pub section: String,
}

/// A family of charts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Its id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Collectors whose checks say why the section is empty.
    pub checks: Vec<String>,
}

/// How the series of a metric make one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fold {
    /// Mean of all.
    Mean,
    /// Largest of all.
    Max,
    /// Sum of all.
    Sum,
}

/// The line under a tile's number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Note {
    /// `busiest: core 41, 100 %`: the extreme series of this metric, by name, behind the word.
    Highest(String, String),
    /// `min 12 %, GPU 3`: likewise.
    Lowest(String, String),
    /// `read 312, write 4`: these metrics (tag, word), counters as rates.
    Parts(Vec<(String, String)>),
}

/// One of the four tiles on top. It is shown when its metrics have series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tile {
    /// Its id.
    pub id: String,
    /// Title.
    pub title: String,
    /// What stands at the right of the title: `{n}` is replaced by the number of series of the second tag.
    pub corner: (String, String),
    /// Tags that make the number, summed after the fold.
    pub metrics: Vec<String>,
    /// How each is folded.
    pub fold: Fold,
    /// The denominator, folded likewise: `of 512 GiB`.
    pub of: Option<String>,
    /// The line under it.
    pub note: Note,
}

/// Charts, sections and tiles in order on screen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The first of these that has data is the wide chart.
    pub wide: Vec<String>,
    /// The first seven charts: the notebook tab's, and what takes their place where they have no data.
    pub lead: Vec<String>,
    /// All charts.
    pub charts: Vec<Chart>,
    /// All sections.
    pub sections: Vec<Section>,
    /// The first four that have data stand on top.
    pub tiles: Vec<Tile>,
}

/// id, title, section.
const CHARTS: &[(&str, &str, &str)] = &[
    ("gpu", "GPU utilisation", "gpu"),
    ("gpu.memory", "GPU memory used", "gpu"),
    ("gpu.power", "GPU power", "gpu"),
    ("gpu.temp", "GPU temperature", "gpu"),
    ("gpu.memory.activity", "GPU memory utilisation", "gpu"),
    ("gpu.memory.percent", "GPU memory used, share", "gpu"),
    ("gpu.power.percent", "GPU power, share of the limit", "gpu"),
    ("gpu.power.mean", "GPU mean power", "gpu"),
    ("gpu.clock.sm", "GPU SM clock", "gpu"),
    ("gpu.clock.memory", "GPU memory clock", "gpu"),
    ("gpu.clock.graphics", "GPU graphics clock", "gpu"),
    ("gpu.throttle", "GPU throttle reasons", "gpu"),
    ("gpu.fan", "GPU fan speed", "gpu"),
    ("gpu.temp.memory", "GPU memory temperature", "gpu"),
    ("gpu.errors.corrected", "GPU corrected memory errors", "gpu"),
    ("gpu.errors.uncorrected", "GPU uncorrected memory errors", "gpu"),
    ("gpu.errors.recoveries", "GPU recoveries", "gpu"),
    ("gpu.sm", "GPU SMs active", "gpu"),
    ("gpu.sm.occupancy", "GPU SM occupancy", "gpu"),
    ("gpu.dram", "GPU memory bandwidth in use", "gpu"),
    ("gpu.tensor", "GPU tensor cores active", "gpu"),
    ("gpu.tensor.hmma", "GPU tensor cores active, half precision", "gpu"),
    ("gpu.fp64", "GPU FP64 pipe active", "gpu"),
    ("gpu.fp32", "GPU FP32 pipe active", "gpu"),
    ("gpu.fp16", "GPU FP16 pipe active", "gpu"),
    ("gpu.nvlink.tx", "GPU NVLink sent", "gpu"),
    ("gpu.nvlink.rx", "GPU NVLink received", "gpu"),
    ("gpu.pcie.tx", "GPU PCIe sent", "gpu"),
    ("gpu.pcie.rx", "GPU PCIe received", "gpu"),
    ("gpu.pcie.gen", "GPU PCIe generation", "gpu"),
    ("gpu.pcie.width", "GPU PCIe lanes", "gpu"),
    ("gpu.pcie.speed", "GPU PCIe lane speed", "gpu"),
    ("gpu.encoder", "GPU encoder utilisation", "gpu"),
    ("gpu.decoder", "GPU decoder utilisation", "gpu"),
    ("gpu.overdrive", "GPU memory overdrive", "gpu"),
    ("cpu", "CPU utilisation", "cpu"),
    ("cpu.cores", "CPU cores", "cpu"),
    ("cpu.modes", "CPU time by kind", "cpu"),
    ("load", "Load", "cpu"),
    ("tasks", "Runnable tasks", "cpu"),
    ("tasks.all", "Tasks", "cpu"),
    ("cpu.temp", "CPU temperature", "cpu"),
    ("uptime", "Uptime", "cpu"),
    ("pressure.cpu", "CPU pressure", "pressure"),
    ("pressure.memory", "Memory pressure", "pressure"),
    ("pressure.io", "I/O pressure", "pressure"),
    ("memory", "Memory", "memory"),
    ("memory.percent", "Memory in use", "memory"),
    ("memory.available", "Memory available", "memory"),
    ("memory.cache", "Page cache", "memory"),
    ("memory.dirty", "Waiting to be written", "memory"),
    ("swap", "Swap", "memory"),
    ("swap.percent", "Swap in use", "memory"),
    ("disk", "Disk", "disk"),
    ("disk.read", "Disk reads by device", "disk"),
    ("disk.write", "Disk writes by device", "disk"),
    ("disk.busy", "Disk busy", "disk"),
    ("disk.usage", "Disk fullness", "disk"),
    ("disk.space", "Disk space used", "disk"),
    ("network", "Network", "network"),
    ("network.in", "Network in by link", "network"),
    ("network.out", "Network out by link", "network"),
    ("network.retransmits", "TCP retransmits", "network"),
    ("process.cpu", "Process CPU", "process"),
    ("process.memory", "Process memory", "process"),
    ("process.memory.percent", "Process memory, share", "process"),
    ("process.threads", "Process threads", "process"),
    ("process.count", "Processes watched", "process"),
    ("process.throttled", "Process CPU throttled", "process"),
    ("process.oom", "Out-of-memory kills", "process"),
    ("monitor.cpu", "Watchglass CPU", "monitor"),
    ("monitor.memory", "Watchglass memory", "monitor"),
    ("monitor.duration", "Time a collector takes", "monitor"),
    ("monitor.ok", "Collectors that answered", "monitor"),
];

/// id, title, collectors that explain its absence.
const SECTIONS: &[(&str, &str, &[&str])] = &[
    ("gpu", "GPU", &["nvidia", "amd", "intel", "apple"]),
    ("cpu", "CPU", &["cpu"]),
    ("memory", "Memory", &["memory"]),
    ("disk", "Disk", &["disk"]),
    ("network", "Network", &["network"]),
    ("pressure", "Pressure", &["pressure"]),
    ("process", "Watched processes", &["process"]),
    ("monitor", "Watchglass itself", &["monitor"]),
];

const WIDE: &[&str] = &["gpu", "cpu"];

const LEAD: &[&str] = &[
    "cpu",
    "memory",
    "gpu.memory",
    "gpu.power",
    "gpu.temp",
    "gpu",
    "gpu.memory.activity",
    "disk",
    "network",
    "load",
    "cpu.cores",
    "disk.usage",
    "pressure.cpu",
    "memory.percent",
];

pub(super) fn layout() -> Layout {
    let text = |s: &&str| s.to_string();
    let tag = |s: &str| s.to_string();
    Layout {
        wide: WIDE.iter().map(text).collect(),
        lead: LEAD.iter().map(text).collect(),
        charts: CHARTS
            .iter()
            .map(|(id, title, section)| Chart { id: text(id), title: text(title), section: text(section) })
            .collect(),
        sections: SECTIONS
            .iter()
            .map(|(id, title, checks)| Section {
                id: text(id),
                title: text(title),
                checks: checks.iter().map(text).collect(),
            })
            .collect(),
        tiles: vec![
            Tile {
                id: tag("gpu"),
                title: tag("GPU utilisation"),
                corner: (tag("mean of {n}"), tag("gpu.{i}.gpu")),
                metrics: vec![tag("gpu.{i}.gpu")],
                fold: Fold::Mean,
                of: None,
                note: Note::Lowest(tag("gpu.{i}.gpu"), tag("min")),
            },
            Tile {
                id: tag("gpu-memory"),
                title: tag("GPU memory"),
                corner: (tag("sum of {n}"), tag("gpu.{i}.memoryAllocatedBytes")),
                metrics: vec![tag("gpu.{i}.memoryAllocatedBytes")],
                fold: Fold::Sum,
                of: Some(tag("gpu.{i}.memoryTotalBytes")),
                note: Note::Highest(tag("gpu.{i}.memoryAllocated"), tag("fullest")),
            },
            Tile {
                id: tag("gpu-power"),
                title: tag("GPU power"),
                corner: (tag("sum of {n}"), tag("gpu.{i}.powerWatts")),
                metrics: vec![tag("gpu.{i}.powerWatts")],
                fold: Fold::Sum,
                of: Some(tag("gpu.{i}.enforcedPowerLimitWatts")),
                note: Note::Highest(tag("gpu.{i}.temp"), tag("hottest")),
            },
            Tile {
                id: tag("cpu"),
                title: tag("CPU"),
                corner: (tag("{n} cores"), tag("cpu.{i}.cpu_percent")),
                metrics: vec![tag("system.cpu_percent")],
                fold: Fold::Mean,
                of: None,
                note: Note::Highest(tag("cpu.{i}.cpu_percent"), tag("busiest")),
            },
            Tile {
                id: tag("memory"),
                title: tag("Memory"),
                corner: (String::new(), String::new()),
                metrics: vec![tag("memory.used")],
                fold: Fold::Sum,
                of: Some(tag("memory.total")),
                note: Note::Parts(vec![(tag("swap.used"), tag("swap")), (tag("memory.cached"), tag("cache"))]),
            },
            Tile {
                id: tag("disk"),
                title: tag("Disk"),
                corner: (tag("all devices"), String::new()),
                metrics: vec![tag("disk.in"), tag("disk.out")],
                fold: Fold::Sum,
                of: None,
                note: Note::Parts(vec![(tag("disk.in"), tag("read")), (tag("disk.out"), tag("write"))]),
            },
            Tile {
                id: tag("network"),
                title: tag("Network"),
                corner: (tag("all links"), String::new()),
                metrics: vec![tag("network.recv"), tag("network.sent")],
                fold: Fold::Sum,
                of: None,
                note: Note::Parts(vec![(tag("network.recv"), tag("in")), (tag("network.sent"), tag("out"))]),
            },
        ],
    }
}
