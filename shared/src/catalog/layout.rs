//! The page, as data: charts in order, sections, the tiles on top. Tags of the page are only here, its charts in
//! `charts.rs`.

use super::charts::{CHARTS, SECTIONS};
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

impl Chart {
    /// The same chart under an id that is unique among these, because two machines may use one id for different charts.
    /// The id is unchanged if it is free, else a number is appended.
    pub fn distinct(mut self, all: &[Chart]) -> Self {
        let base = base_chart(&self.id).to_owned();
        let mut number = 1;
        while all.iter().any(|known| known.id == self.id && *known != self) {
            number += 1;
            self.id = format!("{base}{NUMBER}{number}");
        }
        self
    }
}

/// Separator between the id of a chart and the number that makes it unique.
const NUMBER: char = '~';

/// The id of a chart without the number that makes it [unique](Chart::distinct).
pub fn base_chart(id: &str) -> &str {
    let numbered = id.rsplit_once(NUMBER).filter(|(_, number)| number.parse::<u32>().is_ok());
    numbered.map_or(id, |(base, _)| base)
}

/// A family of charts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Its id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Collectors whose checks explain an empty section.
    pub checks: Vec<String>,
}

/// Reduction of the series of a metric to one number.
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
    /// `busiest: core 41, 100 %`: the extreme series of this metric, by name, after the word.
    Highest(String, String),
    /// `min 12 %, GPU 3`: likewise.
    Lowest(String, String),
    /// `read 312, write 4`: these metrics (tag, word), counters as rates.
    Parts(Vec<(String, String)>),
    /// `RAM 212 of 512 GiB`: the first metric out of the second, after the word.
    Share(String, String, String),
}

/// One of the four tiles on top. It is shown when its metrics have series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tile {
    /// Its id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Text at the right of the title: `{n}` is replaced by the number of series of the second tag.
    pub corner: (String, String),
    /// Tags that make the number, summed after the fold.
    pub metrics: Vec<String>,
    /// Reduction of each.
    pub fold: Fold,
    /// The denominator, folded likewise: `of 512 GiB`.
    pub of: Option<String>,
    /// The line under it.
    pub note: Note,
}

/// A state of a lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LaneState {
    /// The number, or the bits of which one must be set; 0 for any number but 0.
    pub value: u32,
    /// Its name in a few letters; `{n}` is replaced by the number.
    pub word: String,
    /// Whether it needs attention.
    pub alert: bool,
}

/// Meaning of a metric's numbers, and the chart under which they are drawn as a row of bars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Id of the chart.
    pub chart: String,
    /// Its name, in a few letters.
    pub title: String,
    /// Tag of the metric.
    pub metric: String,
    /// True when the number is a set of bits.
    pub bits: bool,
    /// Its states; if several match, the first counts.
    pub states: Vec<LaneState>,
}

/// Charts, sections and tiles in order on screen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// The first of these that has data is the wide chart.
    pub wide: Vec<String>,
    /// Charts after a heat map. A heat map replaces the wide chart if that has more than eight devices, and if its
    /// section has charts here.
    pub beside: Vec<String>,
    /// The first seven charts: those of the notebook tab, and their substitutes if they have no data.
    pub lead: Vec<String>,
    /// All charts.
    pub charts: Vec<Chart>,
    /// All sections.
    pub sections: Vec<Section>,
    /// The first four that have data are on top. A tile with the same metrics as the next is a summary: it is last or
    /// left out.
    pub tiles: Vec<Tile>,
    /// States in words.
    pub lanes: Vec<Lane>,
}

/// Chart, name, tag, whether bits; states with their words and whether they need attention.
type LaneRow = (&'static str, &'static str, &'static str, bool, &'static [(u32, &'static str, bool)]);

const LANES: &[LaneRow] = &[
    (
        "gpu",
        "throttle",
        "gpu.{i}.throttleReasons",
        true,
        &[
            (96, "heat", true),
            (128, "brake", true),
            (8, "slow", true),
            (4, "power", false),
            (2, "set", false),
            (16, "sync", false),
            (256, "view", false),
            (1, "idle", false),
        ],
    ),
    ("gpu", "XID", "gpu.{i}.lastXid", false, &[(0, "{n}", true)]),
    ("gpu", "ECC", "gpu.{i}.uncorrectedMemoryErrors", false, &[(0, "bits lost", true)]),
];

fn lanes() -> Vec<Lane> {
    let state = |&(value, word, alert): &(u32, &str, bool)| LaneState { value, word: word.into(), alert };
    let lane = |&(chart, title, metric, bits, states): &LaneRow| Lane {
        chart: chart.into(),
        title: title.into(),
        metric: metric.into(),
        bits,
        states: states.iter().map(state).collect(),
    };
    LANES.iter().map(lane).collect()
}

const WIDE: &[&str] = &["gpu", "tpu", "tpu.duty", "ipu", "trn", "cpu.cores", "cpu"];

const BESIDE: &[&str] =
    &["gpu.power", "gpu.temp", "tpu.memory", "tpu.throttle", "ipu.power", "ipu.temp.die", "trn.memory"];

const LEAD: &[&str] = &[
    "gpu.memory",
    "gpu.power",
    "gpu.temp",
    "cpu",
    "memory",
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
    Layout {
        wide: WIDE.iter().map(text).collect(),
        beside: BESIDE.iter().map(text).collect(),
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
        lanes: lanes(),
        tiles: tiles(),
    }
}

/// The tiles above the charts, from left to right.
fn tiles() -> Vec<Tile> {
    let tag = |s: &str| s.to_string();
    vec![
        Tile {
            id: tag("gpu"),
            title: tag("GPU utilization"),
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
            id: tag("host"),
            title: tag("Host CPU"),
            corner: (tag("{n} cores"), tag("cpu.{i}.cpu_percent")),
            metrics: vec![tag("system.cpu_percent")],
            fold: Fold::Mean,
            of: None,
            note: Note::Share(tag("RAM"), tag("memory.used"), tag("memory.total")),
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
    ]
}
